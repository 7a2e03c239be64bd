"""The means that a study publishes: non-private, with an easy fix, or private."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.aggregates.panel import StudySample
from discreet.attacks.validation import array_with_gaps, integer_domain

_TOTALS_SQL = "SELECT place, SUM(value) AS total FROM people GROUP BY place ORDER BY place"
_TOLERANCE = 1e-9  # rounding error of a mean
_MAX_CURATOR_GROUPS = 30_000  # more totals than this use the mechanism directly instead of the curator


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


def noisy_means(members: np.ndarray, max_value: int, rng: np.random.Generator) -> np.ndarray:
    """Return the means with uniform noise of up to one percentage point, clamped to 0 and 1."""
    return np.clip(exact_means(members, max_value) + rng.uniform(-0.01, 0.01, members.shape[1]), 0, 1)


def common_means(members: np.ndarray, max_value: int) -> np.ndarray:
    """Return the means of common attributes, with a minor frequency of at least 5 %; NaN for the others.

    >>> common_means(np.array([[0, 2], [1, 2]]), max_value=2).tolist()
    [0.25, nan]
    """
    means = exact_means(members, max_value)
    return np.where(np.minimum(means, 1 - means) >= 0.05, means, np.nan)  # common in the sense of genetics


def user_means(user_function: Callable[..., Any], members: np.ndarray, max_value: int) -> np.ndarray:
    """Return the means that the user's function publishes, one per attribute, NaN if withheld.

    >>> user_means(lambda rows: rows.mean(axis=0), np.array([[0, 2], [1, 2]]), max_value=2)
    Traceback (most recent call last):
        ...
    ValueError: the defence must return means from 0 to 1: divide by max_value = 2, and clip noisy means
    """
    means = array_with_gaps(user_function(members.copy()), (members.shape[1],), "the defence")
    shown = means[~np.isnan(means)]
    if shown.size and not -_TOLERANCE <= shown.min() <= shown.max() <= 1 + _TOLERANCE:
        raise ValueError(
            f"the defence must return means from 0 to 1: divide by max_value = {max_value}, and clip noisy means"
        )
    return means


def private_means(
    samples: Sequence[StudySample], max_value: int, pool: int, epsilon: Fraction, delta: Fraction
) -> tuple[list[np.ndarray], str]:
    """Return private means for each study, and a description of their source.

    The number of members is private, so totals are divided by the planned size of the study.
    """
    d = samples[0].members.shape[1]
    totals = np.array([play.members.sum(axis=0, dtype=np.int64) for play in samples])
    if totals.size <= _MAX_CURATOR_GROUPS:
        noisy, publisher = _ask_curator(samples, max_value, epsilon, delta), "the curator, in one query"
    else:
        # Removing a person changes d totals by up to `max_value` each.
        sensitivity = dc.Sensitivity(groups=d, size=max_value)
        noise = dc.gaussian_for(sensitivity, epsilon, delta) if delta else dc.laplace_for(sensitivity, epsilon)
        noisy, publisher = noise.perturb(totals), "the mechanism directly, because there are so many totals"
    return list(noisy / (max_value * pool)), publisher


def _ask_curator(samples: Sequence[StudySample], max_value: int, epsilon: Fraction, delta: Fraction) -> np.ndarray:
    """Query the totals of all studies at once: each study has its own people, and so its own noise."""
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
