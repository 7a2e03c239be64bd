"""One random record: a release that is (0, 1/n)-private, and discloses somebody's record in every run."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.attack import (
    Attack,
    AttackResult,
    DefenceRelease,
    Game,
    GuessEvidence,
    Number,
    whole,
)
from discreet.attacks.data.population import POPULATION, Population
from discreet.attacks.defences import CURATOR, EASY, NOTHING, Defence, DefenceChoice
from discreet.attacks.private_answers import private_counts
from discreet.attacks.validation import arrow_table, require


@dataclass(frozen=True)
class _Accusations:
    """For each run, whom the attacker names, which secret they state, and whether a record was somebody's own."""

    named: np.ndarray
    stated: np.ndarray
    is_somebodys: np.ndarray


def random_record(  # noqa: PLR0913 - the common arguments and two settings
    data: Population | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    delta: Number | None = None,
    plays: int = 300,
) -> AttackResult:
    """Name one person and their secret, from a release that shows one random record.

    `data` is a `Population`, a simulated town by default; in each of the `plays` runs everybody's secret is a coin. The
    release is one random record in full ("nothing"), the same without the name ("easy"), or private counts of the
    people who have the secret, by their known values ("curator"; all counts together cost epsilon). A function as
    defence gets the table of people and returns one record, as a dict or a table with one row, or None; it may claim
    an epsilon and a `delta`. The attacker may name whomever they like, so n people allow n times delta.

    >>> result = random_record(random_state=0)
    >>> result.success, result.details["delta of publishing one random record"]
    (1.0, 0.002)
    >>> random_record(defence="curator", epsilon="1/10", random_state=0, plays=100).success < 0.7
    True
    """
    return ATTACK.run(data, defence, epsilon, random_state, delta=delta, plays=plays)


def _play(game: Game) -> AttackResult:
    people, size = game.data, game.data.table.num_rows
    secrets = game.rng.integers(0, 2, (game.settings.plays, size)).astype(bool)
    accusations = game.release(secrets)
    is_right = secrets[np.arange(len(secrets)), accusations.named] == accusations.stated
    return game.result(
        "of runs in which a named person's secret is stated correctly",
        GuessEvidence(int(is_right.sum()), is_right.size),
        {
            "people": size,
            "delta of publishing one random record": 1 / size,
            "runs in which the published record is somebody's": float(accusations.is_somebodys.mean()),
            "different people exposed": len(np.unique(accusations.named[is_right & accusations.is_somebodys])),
        },
        hit=is_right,
        rarity=-people.class_sizes[accusations.named],
        rarity_label="small classes",
        labels=[f"row {row}" for row in accusations.named],
        # P[right about i] <= e^epsilon·P[wrong about i] + delta for everybody, since a person without the secret is not
        # counted, as if they were removed. The sum over n people is the bound for one fair coin with n times delta.
        delta=min(1.0, size * float(game.delta)),
        draw=partial(draw_allowed_by_delta, people=size, success=float(is_right.mean()), defence=game.defence),
    )


def _accuse_the_named(game: Game, secrets: np.ndarray) -> _Accusations:
    published = _draw_records(game, secrets)
    return _accuse(game, secrets, published, published)


def _look_up_and_accuse(game: Game, secrets: np.ndarray) -> _Accusations:
    """Name for each published record a random person with the same known values."""
    published, classes = _draw_records(game, secrets), game.data.class_index
    named = [game.rng.choice(np.flatnonzero(classes == classes[row])) for row in published]
    return _accuse(game, secrets, published, np.array(named))


def _draw_records(game: Game, secrets: np.ndarray) -> np.ndarray:
    return game.rng.integers(0, secrets.shape[1], len(secrets))


def _accuse(game: Game, secrets: np.ndarray, published: np.ndarray, named: np.ndarray) -> _Accusations:
    stated, classes = secrets[np.arange(len(secrets)), published], game.data.class_index
    is_same_class = classes == classes[published][:, None]
    return _Accusations(named, stated, (is_same_class & (secrets == stated[:, None])).any(axis=1))


def _accuse_from_counts(game: Game, secrets: np.ndarray) -> _Accusations:
    """Name a person who is alone in their class, by the count of their class."""
    alone = np.flatnonzero(game.data.class_sizes == 1)
    counts = private_counts(secrets[:, alone].reshape(-1, 1).astype(np.int64), game.epsilon)
    answers = counts.reshape(len(secrets), alone.size)
    # Every count above 0 is equally strong evidence, and so is every other one: it does not matter whom to choose.
    chosen = game.rng.integers(0, alone.size, len(secrets))
    stated = answers[np.arange(len(secrets)), chosen] > 0
    return _Accusations(alone[chosen], stated, np.zeros(len(secrets), bool))


def _accuse_from_records(game: Game, secrets: np.ndarray) -> _Accusations:
    """Look up the known values of each published record, and believe its secret."""
    runs = [_accuse_from_record(game, each) for each in secrets]
    return _Accusations(*(np.array(part) for part in zip(*runs, strict=True)))


def _accuse_from_record(game: Game, secret: np.ndarray) -> tuple[int, bool, bool]:
    people, rng = game.data, game.rng
    index = people.table.column_names.index(people.secret)
    table = people.table.set_column(index, people.secret, pa.array(secret.astype(np.int64)))
    record = _checked_record(game.ask_user(table), people)
    candidates = np.arange(secret.size)
    if record is not None:
        is_match = np.all([table[name].to_numpy() == record[name] for name in people.known], axis=0)
        candidates = np.flatnonzero(is_match) if is_match.any() else candidates
    named, is_found = int(rng.choice(candidates)), record is not None and candidates.size < secret.size
    stated = bool(record[people.secret]) if record is not None and is_found else bool(rng.integers(2))
    return named, stated, is_found and bool((secret[candidates] == stated).any())


def _checked_record(returned: Any, people: Population) -> Mapping[str, Any] | None:
    """Return the record that the user's defence published, or None if it published none."""
    if returned is None:
        return None
    if isinstance(returned, Mapping):
        returned = {name: [value] for name, value in returned.items()}
    table = arrow_table(returned, "the defence's record")
    required = (*people.known, people.secret)
    require(
        table.num_rows == 1 and not any(name not in table.column_names for name in required),
        f"the defence must return one record with the columns {', '.join(required)}, or None",
    )
    record: Mapping[str, Any] = table.select(required).to_pylist()[0]
    require(record[people.secret] in {0, 1}, f"the defence's record: {people.secret!r} must be 0 or 1")
    return record


def draw_allowed_by_delta(axes: Any, *, people: int, success: float, defence: Defence) -> None:
    """Draw the success that delta allows with an epsilon near 0, with 1/n marked, beside the measured success."""
    from discreet.attacks.plots import DEFENCE_COLOURS  # noqa: PLC0415 - only for figures
    from discreet.plotting import GREY, INK  # noqa: PLC0415

    deltas = np.geomspace(1e-4 / people, 10 / people, 200)
    allowed = [GuessEvidence(1, 2).ceiling(0.0, min(1.0, people * each)) for each in deltas]
    axes.plot(deltas, allowed, color=INK, lw=1.6, label="allowed at epsilon 0")
    axes.axhline(success, color=DEFENCE_COLOURS[defence.kind], lw=1.6, label="the attack")
    axes.axhline(0.5, color=GREY, ls=":", lw=1.2, label="guessing")
    axes.axvline(1 / people, color=INK, ls="--", lw=1, label=f"delta = 1/n, n = {people:,}")
    axes.set(xscale="log", xlabel="delta", ylim=(0.4, 1.05), ylabel="share of runs in which\nsomebody is exposed")


ATTACK = Attack(
    function=random_record,
    docs_page="queries",
    summary="Publishes one random record, which is (0, 1/n)-private, and exposes somebody in every run.",
    data=POPULATION,
    releases={
        NOTHING: DefenceRelease("one random record, with the name", _accuse_the_named),
        EASY: DefenceRelease("one random record without the name", _look_up_and_accuse),
        CURATOR: DefenceRelease(
            "private counts of the people with the secret, by their known values", _accuse_from_counts
        ),
    },
    own=_accuse_from_records,
    play=_play,
    settings={"plays": whole(1)},
)
