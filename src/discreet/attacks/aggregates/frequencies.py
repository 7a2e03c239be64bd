"""What a study publishes of its people: exact means, three easy fixes, and private means."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.aggregates.fields import below, numbers_or_gaps
from discreet.attacks.aggregates.panel import Play

_TOTALS = "SELECT place, SUM(value) AS total FROM people GROUP BY place ORDER BY place"
_ROUNDING = 1e-9  # what arithmetic may add to a mean
_GROUPS = 30_000  # so many totals at once are asked of the curator; more are drawn by its mechanism alone


def exact(members: np.ndarray, most: int) -> np.ndarray:
    """Return the exact mean of every attribute, from 0 to 1.

    >>> exact(np.array([[0, 2], [1, 2]]), most=2).tolist()
    [0.25, 1.0]
    """
    return np.asarray(members.mean(axis=0) / most)


def rounded(members: np.ndarray, most: int) -> np.ndarray:
    """Return the means in whole percents, the easy fix.

    >>> rounded(np.array([[0, 2], [1, 2], [0, 1]]), most=2).tolist()
    [0.17, 0.83]
    """
    return np.round(exact(members, most), 2)


def blurred(members: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return the means, each up to one percent too high or too low, but none below 0 or above 1."""
    return np.clip(exact(members, most) + rng.uniform(-0.01, 0.01, members.shape[1]), 0, 1)


def common(members: np.ndarray, most: int) -> np.ndarray:
    """Return the means of values that at least a twentieth has and a twentieth lacks; the others are left out.

    >>> common(np.array([[0, 2], [1, 2]]), most=2).tolist()
    [0.25, nan]
    """
    means = exact(members, most)
    return np.where(np.minimum(means, 1 - means) >= 0.05, means, np.nan)  # what geneticists call common


def own(make: Callable[..., Any], members: np.ndarray, most: int) -> np.ndarray:
    """Return what a function of the user's own publishes: one mean for every attribute, NaN where there is none.

    >>> own(lambda rows: rows.mean(axis=0), np.array([[0, 2], [1, 2]]), most=2)
    Traceback (most recent call last):
        ...
    ValueError: the defence must return means from 0 to 1: divide by most = 2, and np.clip what noise carries beyond
    """
    means = numbers_or_gaps(make(members.copy()), (members.shape[1],), "the defence")
    shown = means[~np.isnan(means)]
    if shown.size and not -_ROUNDING <= shown.min() <= shown.max() <= 1 + _ROUNDING:
        raise ValueError(
            f"the defence must return means from 0 to 1: divide by most = {most}, and np.clip what noise carries beyond"
        )
    return means


def private(
    plays: Sequence[Play], most: int, pool: int, epsilon: Fraction, delta: Fraction
) -> tuple[list[np.ndarray], str]:
    """Return private means for each study, and who made them.

    The number of members is nobody's business, so totals are divided by the number that the study was planned for.
    """
    d = plays[0].members.shape[1]
    totals = np.array([play.members.sum(axis=0, dtype=np.int64) for play in plays])
    if totals.size <= _GROUPS:
        noisy, by = _asked(plays, most, epsilon, delta), "the curator, one question"
    else:
        # All attributes of a person are removed with them: d totals move by up to `most` each.
        moved = dc.Sensitivity(groups=d, size=most)
        noise = dc.gaussian_for(moved, epsilon, delta) if delta else dc.laplace_for(moved, epsilon)
        noisy, by = noise.perturb(totals), "the mechanism alone, so many totals"
    return list(noisy / (most * pool)), by


def _asked(plays: Sequence[Play], most: int, epsilon: Fraction, delta: Fraction) -> np.ndarray:
    """Ask the curator for the totals of all studies at once: each has people, and so noise, of its own."""
    d = plays[0].members.shape[1]
    study = np.repeat(np.arange(len(plays)), [len(play.members) for play in plays])
    values = np.concatenate([play.members for play in plays])
    person, attribute = np.nonzero(values)  # a zero adds nothing to a total
    table = pa.table(
        {
            "person": person,
            "place": study[person] * d + attribute,
            "value": values[person, attribute].astype(np.int64),
        }
    )
    with dc.open(
        table,
        table="people",
        unit="person",
        budget=(epsilon, delta) if delta else epsilon,
        columns={"place": below(len(plays) * d), "value": (0, most)},
        groups=d,
        rows=1,
        ledger=":memory:",
    ) as curator:
        answer = curator.ask(_TOTALS, epsilon=epsilon)
    return np.asarray(answer.table["total"].to_numpy()).reshape(len(plays), d)
