"""Probability mass functions as dictionaries, and log ratios of probabilities."""

import math
from collections.abc import Collection, Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.numbers import as_fraction_where, as_integer

Probability = float | Fraction
Pmf = Mapping[Any, Probability]

_ROUNDING = 1e-9  # by which a sum of rounded probabilities may exceed 1


def as_probability(value: Any, name: str) -> Fraction:
    """Return a probability strictly between 0 and 1, as an exact fraction."""
    return as_fraction_where(lambda number: 0 < number < 1, "strictly between 0 and 1", value, name)


def validate_pmf(pmf: Any, name: str) -> dict[Hashable, Probability]:
    """Return a pmf with floats and fractions; raise if it is not valid.

    A sum below 1 is accepted, for an infinite distribution truncated to the listed outcomes. Divergences of a truncated
    pmf are those of the listed outcomes.
    """
    if not isinstance(pmf, Mapping):
        raise TypeError(f"{name} must be a pmf {{outcome: probability}} or an output, not {type(pmf).__name__}")
    probabilities = {outcome: _valid_probability(value, f"{name}[{outcome!r}]") for outcome, value in pmf.items()}
    total = total_probability(probabilities.values())
    if not 0 < total <= 1 + _ROUNDING:
        raise ValueError(f"{name} must sum to 1, or less if it is truncated; it sums to {float(total)}")
    return probabilities


def _valid_probability(value: Any, name: str) -> Probability:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | Fraction | np.floating | np.integer):
        raise TypeError(f"{name} must be a float or a Fraction, not {value!r}")
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a probability, not {value}")
    return (
        float(value)
        if isinstance(value, float | np.floating)
        else Fraction(value if isinstance(value, Fraction) else int(value))
    )


def total_probability(probabilities: Collection[Probability]) -> Probability:
    """Sum probabilities, exactly if all are fractions, else with one rounding."""
    if all(isinstance(p, Fraction) for p in probabilities):
        return sum(probabilities, Fraction(0))
    return math.fsum(probabilities)


def log_ratio(p: Probability, q: Probability) -> float:
    """Return ln(p/q) for p > 0, accurate even near p = q; infinite for q = 0."""
    if not q:
        return math.inf
    if 0.5 < p / q < 2:
        return math.log1p(float((p - q) / q))  # p - q is exact here, for floats too
    return _log(p) - _log(q)


def _log(p: Probability) -> float:
    return math.log(p.numerator) - math.log(p.denominator) if isinstance(p, Fraction) else math.log(p)


def uniform_pmf(low: int, high: int) -> dict[int, Fraction]:
    """Return the uniform distribution on the integers from low to high, inclusive.

    >>> uniform_pmf(0, 1)
    {0: Fraction(1, 2), 1: Fraction(1, 2)}
    """
    first, last = as_integer(low, "low", minimum=-(1 << 62)), as_integer(high, "high", minimum=-(1 << 62))
    if last < first:
        raise ValueError(f"high must be at least low, not {high}")
    return dict.fromkeys(range(first, last + 1), Fraction(1, last - first + 1))
