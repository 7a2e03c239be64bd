"""The means that a study publishes: exact, with an easy fix, or private."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.aggregates.panel import StudySample
from discreet.attacks.validation import array_with_gaps, integer_domain

_TOTALS_SQL = "SELECT place, SUM(value) AS total FROM people GROUP BY place ORDER BY place"
_TOLERANCE = 1e-9  # what arithmetic may add to a mean
_MAX_CURATOR_GROUPS = 30_000  # so many totals at once are asked of the curator; more are drawn by its mechanism alone


def exact_means(members: np.ndarray, max_value: int) -> np.ndarray:
    """Return the exact mean of every attribute, from 0 to 1.

    >>> exact_means(np.array([[0, 2], [1, 2]]), max_value=2).tolist()
    [0.25, 1.0]
    """
    return np.asarray(members.mean(axis=0) / max_value)


def rounded_means(members: np.ndarray, max_value: int) -> np.ndarray:
    """Return the means in whole percents, the easy fix.

    >>> rounded_means(np.array([[0, 2], [1, 2], [0, 1]]), max_value=2).tolist()
    [0.17, 0.83]
    """
    return np.round(exact_means(members, max_value), 2)


def noisy_means(members: np.ndarray, max_value: int, rng: np.random.Generator) -> np.ndarray:
    """Return the means, each up to one percent too high or too low, but none below 0 or above 1."""
    return np.clip(exact_means(members, max_value) + rng.uniform(-0.01, 0.01, members.shape[1]), 0, 1)


def common_means(members: np.ndarray, max_value: int) -> np.ndarray:
    """Return the means of values that at least a twentieth has and a twentieth lacks; the others are left out.

    >>> common_means(np.array([[0, 2], [1, 2]]), max_value=2).tolist()
    [0.25, nan]
    """
    means = exact_means(members, max_value)
    return np.where(np.minimum(means, 1 - means) >= 0.05, means, np.nan)  # what geneticists call common


def user_means(user_function: Callable[..., Any], members: np.ndarray, max_value: int) -> np.ndarray:
    """Return what a function of the user's own publishes: one mean for every attribute, NaN where there is none.

    >>> user_means(lambda rows: rows.mean(axis=0), np.array([[0, 2], [1, 2]]), max_value=2)
    Traceback (most recent call last):
        ...
    ValueError: the defence must return means from 0 to 1: divide by most = 2, and np.clip what noise carries beyond
    """
    means = array_with_gaps(user_function(members.copy()), (members.shape[1],), "the defence")
    shown = means[~np.isnan(means)]
    if shown.size and not -_TOLERANCE <= shown.min() <= shown.max() <= 1 + _TOLERANCE:
        raise ValueError(
            f"the defence must return means from 0 to 1: divide by most = {max_value}, and np.clip what noise carries beyond"
        )
    return means


def private_means(
    samples: Sequence[StudySample], max_value: int, pool: int, epsilon: Fraction, delta: Fraction
) -> tuple[list[np.ndarray], str]:
    """Return private means for each study, and who made them.

    The number of members is nobody's business, so totals are divided by the number that the study was planned for.
    """
    d = samples[0].members.shape[1]
    totals = np.array([play.members.sum(axis=0, dtype=np.int64) for play in samples])
    if totals.size <= _MAX_CURATOR_GROUPS:
        noisy, publisher = _ask_curator(samples, max_value, epsilon, delta), "the curator, one question"
    else:
        # All attributes of a person are removed with them: d totals move by up to `max_value` each.
        sensitivity = dc.Sensitivity(groups=d, size=max_value)
        noise = dc.gaussian_for(sensitivity, epsilon, delta) if delta else dc.laplace_for(sensitivity, epsilon)
        noisy, publisher = noise.perturb(totals), "the mechanism alone, so many totals"
    return list(noisy / (max_value * pool)), publisher


def _ask_curator(samples: Sequence[StudySample], max_value: int, epsilon: Fraction, delta: Fraction) -> np.ndarray:
    """Ask the curator for the totals of all studies at once: each has people, and so noise, of its own."""
    d = samples[0].members.shape[1]
    study = np.repeat(np.arange(len(samples)), [len(play.members) for play in samples])
    values = np.concatenate([play.members for play in samples])
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
        columns={"place": integer_domain(len(samples) * d), "value": (0, max_value)},
        groups=d,
        rows=1,
        ledger=":memory:",
    ) as curator:
        answer = curator.ask(_TOTALS_SQL, epsilon=epsilon)
    return np.asarray(answer.table["total"].to_numpy()).reshape(len(samples), d)
