"""The profile attack: what a consistent pseudonym discloses about somebody's habits, although nobody is named."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from discreet.attacks.attack import (
    CURATOR,
    EASY,
    NOTHING,
    Attack,
    AttackResult,
    DefenceChoice,
    DefenceRelease,
    Game,
    GuessEvidence,
    Number,
    whole,
)
from discreet.attacks.data.visits import VISITS, Visits
from discreet.attacks.private_answers import (
    CountOracle,
    answers_and_decoys,
    is_count_oracle,
    private_count_oracle,
)
from discreet.attacks.tables.habits import (
    HABIT_RATE,
    HabitGame,
    earlier_visits,
    linked_sessions,
    plant_habits,
    popular_sites,
    predicted_sites,
    unique_habits,
    visit_counts,
)
from discreet.attacks.validation import id_array, require


@dataclass(frozen=True)
class _Predictions:
    """For each target, whether the habit was predicted correctly, and whether the hidden visit was."""

    habit_right: np.ndarray
    visit_right: np.ndarray


def profiles(  # noqa: PLR0913 - the common arguments and two settings
    data: Visits | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    rotate: int = 1,
    targets: int = 400,
) -> AttackResult:
    """Predict what people do from earlier days, by the pseudonym in a log of visits; nobody is named.

    `data` are `Visits`, simulated by default. A coin decides for each person whether they also visited a sensitive site
    on half of their days. The attacker meets a person on their last day, and sees all but one of the day's visits. The
    release is a log of the earlier days in which each person has the same pseudonym on all days ("nothing"), a new one
    after `rotate` days ("easy"), or the curator's private count of the people with similar visits who also visited the
    sensitive site ("curator"). A function as defence gets the log, a table with the columns pseudonym, day and site,
    and returns one pseudonym for each of its rows, or a function that answers arrays of counts.

    >>> result = profiles(random_state=0)
    >>> result.success > 0.99, result.details["people whose habits are unique"] > 0.7
    (True, True)
    >>> rotated = profiles(random_state=0, defence="easy")
    >>> rotated.success > 0.6
    True
    """
    return ATTACK.run(data, defence, epsilon, random_state, rotate=rotate, targets=targets)


def _play(game: Game) -> AttackResult:
    world = plant_habits(game.data, game.settings.targets, game.rng)
    release = game.release(world)
    predictions = _predict_from_counts(world, release) if callable(release) else _predict_from_log(world, release)
    unique = unique_habits(world)
    return game.result(
        "of people's secret habits predicted",
        # The habit adds a person to the count, or not: as if they were removed. So epsilon bounds this game.
        GuessEvidence(int(predictions.habit_right.sum()), world.targets.size),
        {
            "people targeted": world.targets.size,
            "people whose habits are unique": float(unique.mean()),
            "unique and predicted": float((unique & predictions.habit_right).mean()),
            "hidden visits predicted, in three guesses": float(predictions.visit_right.mean()),
            "hidden visits predicted from popularity alone": float(_by_popularity(world).mean()),
        },
        hit=predictions.habit_right,
        rarity=world.rarity,
        rarity_label="rare sites",
        labels=[f"person {person}" for person in world.targets],
    )


def _rotated_pseudonyms(world: HabitGame, days: int | None) -> np.ndarray:
    """Return one pseudonym for each visit of the log: everybody gets a new one after some days, or never."""
    period = np.zeros_like(world.day) if days is None else world.day // days
    return np.unique(np.stack([world.person, period]), axis=1, return_inverse=True)[1].ravel()


def _user_pseudonyms(game: Game, world: HabitGame) -> np.ndarray | CountOracle:
    log = pa.table({"pseudonym": world.person, "day": world.day, "site": world.site})
    returned = game.ask_user(log)
    if is_count_oracle(returned):
        return returned
    pseudonyms = id_array(returned, "the defence's pseudonyms")
    require(
        len(pseudonyms) == log.num_rows,
        f"the defence must return one pseudonym for each of the {log.num_rows:,} visits, not {len(pseudonyms):,}; "
        "or a function that takes an array of counts and returns them with noise",
    )
    return np.unique(pseudonyms, return_inverse=True)[1]


def _predict_from_log(game: HabitGame, pseudonyms: np.ndarray) -> _Predictions:
    """Follow the pseudonym of the last day, or else the sessions most similar to that day's visits."""
    is_earlier = ~game.is_last_day
    sessions = visit_counts(pseudonyms[is_earlier], game.site[is_earlier], game.site_count)
    weights = linked_sessions(game, pseudonyms, sessions)
    habit_share = (weights @ (sessions[:, [game.secret_site]] > 0)).ravel()
    return _Predictions((habit_share > HABIT_RATE / 2) == game.has_habit, predicted_sites(game, weights @ sessions))


def _predict_from_counts(game: HabitGame, oracle: CountOracle) -> _Predictions:
    """Query how many people with all of the day's visits but one also visited the sensitive site."""
    has_visited = earlier_visits(game).toarray() > 0
    common = game.seen @ has_visited.T
    is_similar = common >= np.maximum(game.seen.sum(axis=1) - 1, 1)[:, None]
    counts = (is_similar & has_visited[:, game.secret_site]).sum(axis=1)
    answers, _ = answers_and_decoys(oracle, counts[:, None])
    return _Predictions((answers[:, 0] > is_similar.sum(axis=1) / 2) == game.has_habit, _by_popularity(game))


def _by_popularity(game: HabitGame) -> np.ndarray:
    return predicted_sites(game, np.tile(popular_sites(game), (game.targets.size, 1)))


ATTACK = Attack(
    function=profiles,
    docs_page="tables",
    summary="Predicts people's habits from earlier days, by the pseudonym in a log of visits without names.",
    data=VISITS,
    releases={
        NOTHING: DefenceRelease(
            "a log of visits with one pseudonym for each person", lambda _, world: _rotated_pseudonyms(world, None)
        ),
        EASY: DefenceRelease(
            "a log in which everybody gets a new pseudonym every day",
            lambda game, world: _rotated_pseudonyms(world, game.settings.rotate),
        ),
        CURATOR: DefenceRelease(
            "a private count of the people with similar visits who also visited the sensitive site",
            private_count_oracle,
        ),
    },
    own=_user_pseudonyms,
    play=_play,
    settings={"rotate": whole(1), "targets": whole(1)},
)
