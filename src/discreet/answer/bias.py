"""Clipping bias: by how much contribution bounds make a number too low."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bias:
    """The amount by which clipping makes a number too low, in the units of the column; never negative.

    >>> Bias(low=120.0, estimate=180.0, high=None)
    Bias(low=120.0, estimate=180.0, high=None)
    """

    low: float | None  # lower bound with 95 % confidence; 0 if the number may be biased and nothing can be proved
    estimate: float | None  # not a bound: it rests on assumptions about the data
    high: float | None  # upper bound with 95 % confidence; only if the policy declares the largest contribution
