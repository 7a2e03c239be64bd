"""The game of the profile attack: planted habits, sessions linked by similar visits, and predicted visits."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.attacks.data.visits import Visits
from discreet.attacks.validation import require

HABIT_RATE = 0.5  # on which share of their days people with the habit visit the sensitive site
_LINKED_SESSIONS = 10  # the most similar sessions that the attacker takes for those of the target
_ROUNDS = 3  # of linking by the visits of the sessions found so far
_GUESSES = 3  # sites guessed for the hidden visit
_USUAL_SITES = 3  # the most visited sites that make up a habit


@dataclass(frozen=True, eq=False)
class HabitGame:
    """A log of visits with planted habits, and what the attacker sees of each target's last day.

    `person`, `day` and `site` describe the visits of the log, without the hidden ones. `seen` is targets × sites.
    """

    person: np.ndarray
    day: np.ndarray
    site: np.ndarray
    is_last_day: np.ndarray
    people: int
    site_count: int
    targets: np.ndarray
    has_habit: np.ndarray
    hidden_site: np.ndarray
    seen: Any

    @property
    def secret_site(self) -> int:
        """The number of the sensitive site, the last one."""
        return self.site_count - 1

    @cached_property
    def rarity(self) -> np.ndarray:
        """The mean rarity of the sites that each target was seen at."""
        information = -np.log(np.maximum(popular_sites(self), 0.5) / self.people)
        return np.asarray(self.seen @ information / np.maximum(self.seen.sum(axis=1), 1))


def plant_habits(visits: Visits, max_targets: int, rng: np.random.Generator) -> HabitGame:
    """Decide by a coin who has the secret habit, and hide one visit of each target's last day.

    Targets are people who visited at least two sites on their last day, and some site before.
    """
    (names, who), (sites, where) = (np.unique(each, return_inverse=True) for each in (visits.person, visits.site))
    person, day, site = np.unique(np.stack([who, visits.day, where]), axis=1)
    last = np.full(len(names), np.iinfo(np.int64).min)
    np.maximum.at(last, person, day)
    is_last = day == last[person]
    counts = np.bincount(person[is_last], minlength=len(names))
    has_history = np.bincount(person[~is_last], minlength=len(names)) > 0
    eligible = np.flatnonzero((counts >= 2) & has_history)
    require(eligible.size, "data: nobody visited two sites on their last day, and another one before")
    targets = np.sort(rng.permutation(eligible)[:max_targets])
    habits = rng.integers(0, 2, len(names)).astype(bool)
    hidden = np.array([rng.choice(np.flatnonzero(is_last & (person == target))) for target in targets])
    hidden_site, is_kept = site[hidden], np.ones(person.size, bool)
    is_kept[hidden] = False
    earlier_days = np.unique(np.stack([person[~is_last], day[~is_last]]), axis=1)
    is_planted = habits[earlier_days[0]] & (rng.random(earlier_days.shape[1]) < HABIT_RATE)
    planted_person, planted_day = earlier_days[:, is_planted]
    log_person = np.concatenate([person[is_kept], planted_person])
    log_site = np.concatenate([site[is_kept], np.full(planted_person.size, len(sites))])
    on_last_day = np.concatenate([is_last[is_kept], np.zeros(planted_person.size, bool)])
    return HabitGame(
        log_person,
        np.concatenate([day[is_kept], planted_day]),
        log_site,
        on_last_day,
        len(names),
        len(sites) + 1,
        targets,
        habits[targets],
        hidden_site,
        visit_counts(log_person[on_last_day], log_site[on_last_day], len(sites) + 1, len(names))[targets],
    )


def visit_counts(row: np.ndarray, site: np.ndarray, site_count: int, row_count: int | None = None) -> Any:
    """Return a sparse matrix of how often each row (a session, or a person) has a visit to each site.

    >>> visit_counts(np.array([0, 0, 1]), np.array([2, 2, 0]), site_count=3).toarray().astype(int).tolist()
    [[0, 0, 2], [1, 0, 0]]
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - an extra

    shape = (int(row.max()) + 1 if row_count is None else row_count, site_count)
    return csr_array((np.ones(row.size), (row, site)), shape=shape)


def linked_sessions(game: HabitGame, pseudonyms: np.ndarray, sessions: Any) -> np.ndarray:
    """Return the weights, targets × sessions, with which the attacker takes a session of the log for the target's.

    The session under the pseudonym of the last day has all the weight. Without it, the sessions with the most similar
    visits share it: similar to those of the last day, and then to all visits of the sessions found first.
    """
    from scipy.sparse import diags_array  # noqa: PLC0415 - an extra

    visited = sessions > 0
    information = np.log((sessions.shape[0] + 1) / np.maximum(visited.sum(axis=0), 1))
    information[game.secret_site] = 0
    informative = visited @ diags_array(information)
    lengths = np.sqrt(np.maximum(informative.sum(axis=1), 1e-9))
    profile = game.seen.toarray()
    for _ in range(_ROUNDS):
        weights = _most_similar((informative @ profile.T).T / lengths)
        profile = np.maximum(weights @ visited, game.seen.toarray())
    pseudonym_of = np.full(game.people, -1)
    pseudonym_of[game.person[game.is_last_day]] = pseudonyms[game.is_last_day]
    is_same = (np.arange(sessions.shape[0]) == pseudonym_of[game.targets][:, None]) & (sessions.sum(axis=1) > 0)
    return np.where(is_same.any(axis=1, keepdims=True), is_same, weights)


def _most_similar(scores: np.ndarray) -> np.ndarray:
    """Return the scores of the most similar sessions, which add up to 1 for each target, and 0 for all others."""
    most = min(_LINKED_SESSIONS, scores.shape[1])
    lowest = -np.partition(-scores, most - 1, axis=1)[:, [most - 1]]
    kept = np.where(scores >= lowest, scores, 0)
    return np.asarray(kept / np.maximum(kept.sum(axis=1, keepdims=True), 1e-9))


def predicted_sites(game: HabitGame, scores: np.ndarray) -> np.ndarray:
    """Return whose hidden visit is among the sites with the highest scores that were not seen on the last day."""
    open_scores = scores + 1e-9 * popular_sites(game)
    open_scores[game.seen.toarray() > 0] = -1
    open_scores[:, game.secret_site] = -1
    best = np.argpartition(-open_scores, _GUESSES - 1, axis=1)[:, :_GUESSES]
    return np.asarray((best == game.hidden_site[:, None]).any(axis=1))


def popular_sites(game: HabitGame) -> np.ndarray:
    """Return how many people visited each site before their last day."""
    return np.asarray((earlier_visits(game) > 0).sum(axis=0))


def earlier_visits(game: HabitGame) -> Any:
    """Return how often each person visited each site before their last day."""
    is_earlier = ~game.is_last_day
    return visit_counts(game.person[is_earlier], game.site[is_earlier], game.site_count, game.people)


def unique_habits(game: HabitGame) -> np.ndarray:
    """Return which targets are the only ones with their most visited sites before the last day."""
    counts = earlier_visits(game).toarray()
    counts[:, game.secret_site] = 0
    usual = np.sort(np.argsort(-counts, axis=1, kind="stable")[:, :_USUAL_SITES], axis=1)
    _, group, sizes = np.unique(usual, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(sizes[group.ravel()][game.targets] == 1)
