"""Validated numbers that only code outside of the kernel takes."""

from fractions import Fraction
from typing import Any

from discreet.kernel.numbers import as_fraction_where


def as_probability(value: Any, name: str) -> Fraction:
    """Return a probability strictly between 0 and 1, as an exact fraction.

    >>> as_probability(0.95, "confidence")
    Fraction(19, 20)
    """
    return as_fraction_where(lambda number: 0 < number < 1, "strictly between 0 and 1", value, name)
