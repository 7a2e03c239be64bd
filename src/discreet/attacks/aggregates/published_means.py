"""The studies of the membership game: who takes part, and the means that each study publishes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from discreet.attacks.attack import Game
from discreet.attacks.data.panel import Panel
from discreet.attacks.private_answers import ask_curator, noise_for
from discreet.attacks.validation import finite_array, integer_domain, require

_TOTALS_SQL = "SELECT place, SUM(value) AS total FROM data GROUP BY place ORDER BY place"
_TOLERANCE = 1e-9  # rounding error of a mean
_MAX_CURATOR_GROUPS = 30_000  # more totals than this use the mechanism directly instead of the curator


@dataclass(frozen=True)
class StudySample:
    """One study: its members, comparable non-members, and a reference sample that the attacker knows."""

    members: np.ndarray
    non_members: np.ndarray
    reference: np.ndarray


def draw_study_samples(panel: Panel, pool: int, plays: int, rng: np.random.Generator) -> list[StudySample]:
    """Draw `plays` studies: 2 · `pool` candidates, each a member with probability 1/2, and all others as the reference.

    Members are drawn independently, without a fixed number, so that membership is the addition or removal of one
    person, which is what the curator's epsilon covers. Candidates and reference are balanced over the populations;
    otherwise the score would measure ancestry instead of membership.
    """
    candidates, people = 2 * pool, len(panel.values)
    require(
        people >= candidates + pool,
        f"pool: {pool} members need {candidates} candidates and at least {pool} others as a reference, "
        f"but there are only {people} people. Choose a pool of at most {people // 3}.",
    )
    return [_draw_study_sample(panel, candidates, rng) for _ in range(plays)]


def _draw_study_sample(panel: Panel, candidates: int, rng: np.random.Generator) -> StudySample:
    people, populations = len(panel.values), np.asarray(panel.populations)
    shuffled = rng.permutation(people)
    order = shuffled[np.argsort(populations[shuffled], kind="stable")]
    steps = np.arange(people + 1) * candidates // people
    is_candidate = np.diff(steps) > 0
    is_member = rng.random(candidates) < 1 / 2
    while is_member.all() or not is_member.any():  # rare: probability 2e-6 with the smallest pool
        is_member = rng.random(candidates) < 1 / 2
    chosen_people = order[is_candidate]
    return StudySample(
        panel.values[chosen_people[is_member]],
        panel.values[chosen_people[~is_member]],
        panel.values[order[~is_candidate]],
    )


def sample_attributes(panel: Panel, attributes: int | None, rng: np.random.Generator) -> Panel:
    """Return the panel with this many randomly drawn attributes; None keeps all."""
    if attributes is None:
        return panel
    available = panel.values.shape[1]
    require(attributes <= available, f"attributes must be at most {available}, not {attributes}")
    columns = np.sort(rng.choice(available, attributes, replace=False))
    return replace(panel, values=panel.values[:, columns])


def rarity_of_values(people: np.ndarray, reference: np.ndarray, max_value: int) -> np.ndarray:
    """Return the rarity of each person: squared deviations from the reference means, divided by their variances.

    >>> reference = np.array([[0, 0], [0, 1], [0, 0], [0, 1]])
    >>> rarity_of_values(np.array([[0, 1], [1, 1]]), reference, max_value=1).round(1).tolist()
    [1.2, 6.0]
    """
    reference_means = (reference.sum(axis=0, dtype=float) + 1) / (max_value * len(reference) + 2)
    return np.asarray((people / max_value - reference_means) ** 2 @ (1 / (reference_means * (1 - reference_means))))


def exact_means(members: np.ndarray, max_value: int) -> np.ndarray:
    """Return the non-private mean of every attribute, from 0 to 1.

    >>> exact_means(np.array([[0, 2], [1, 2]]), max_value=2).tolist()
    [0.25, 1.0]
    """
    return np.asarray(members.mean(axis=0) / max_value)


def rounded_means(members: np.ndarray, max_value: int) -> np.ndarray:
    """Return the means rounded to whole percentages, the easy fix.

    >>> rounded_means(np.array([[0, 2], [1, 2], [0, 1]]), max_value=2).tolist()
    [0.17, 0.83]
    """
    return np.round(exact_means(members, max_value), 2)


def publish_user_means(game: Game, samples: Sequence[StudySample]) -> tuple[list[np.ndarray], str]:
    """Return the means that the user's function publishes for each study, NaN if withheld."""
    return [_user_means(game, play.members) for play in samples], "the user's function"


def _user_means(game: Game, members: np.ndarray) -> np.ndarray:
    means = finite_array(game.ask_user(members.copy()), (members.shape[1],), "the defence", may_withhold=True)
    shown, max_value = means[~np.isnan(means)], game.data.max_value
    require(
        not shown.size or -_TOLERANCE <= shown.min() <= shown.max() <= 1 + _TOLERANCE,
        f"the defence must return means from 0 to 1: divide by max_value = {max_value}, and clip noisy means",
    )
    return means


def publish_private_means(game: Game, samples: Sequence[StudySample]) -> tuple[list[np.ndarray], str]:
    """Return private means for each study, and a description of their source.

    The number of members is private, so totals are divided by the planned size of the study.
    """
    totals = np.array([play.members.sum(axis=0, dtype=np.int64) for play in samples])
    if totals.size <= _MAX_CURATOR_GROUPS:
        noisy, publisher = _ask_curator(game, samples), "the curator, in one query"
    else:
        # Removing a person changes all totals by up to `max_value` each.
        noise = noise_for(totals.shape[1], game.data.max_value, game.epsilon, game.delta)
        noisy, publisher = noise.perturb(totals), "the mechanism directly, because there are so many totals"
    return list(noisy / (game.data.max_value * game.settings.pool)), publisher


def _ask_curator(game: Game, samples: Sequence[StudySample]) -> np.ndarray:
    """Query the totals of all studies at once: each study has its own people, and so its own noise."""
    d = samples[0].members.shape[1]
    study = np.repeat(np.arange(len(samples)), [len(play.members) for play in samples])
    values = np.concatenate([play.members for play in samples])
    person, attribute = np.nonzero(values)  # a zero adds nothing to a total
    columns = {"place": integer_domain(len(samples) * d), "value": (0, game.data.max_value)}
    table = pa.table({
        "person": person,
        "place": study[person] * d + attribute,
        "value": values[person, attribute].astype(np.int64),
    })  # fmt: skip
    answer = ask_curator(table, _TOTALS_SQL, game.epsilon, columns, unit="person", groups=d, delta=game.delta)
    return np.asarray(answer["total"].to_numpy()).reshape(len(samples), d)
