"""The public grid of a sum: a number is clamped, divided by the step and rounded to an integer."""

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.kernel.errors import require
from discreet.kernel.numbers import Number, as_fraction, as_integer, as_positive

_MAX_STEPS = 1 << 40  # a double has twelve bits more


@dataclass(frozen=True, init=False)
class Grid:
    """Numbers from low to high as multiples of the step, counted from `offset`.

    >>> [Grid(0, 500, "1/2").index(x) for x in (-3.0, 0.3, 499.9, 1e300)]
    [0, 1, 1000, 1000]
    """

    low: Fraction
    high: Fraction
    step: Fraction
    offset: int

    def __init__(self, low: Number, high: Number, step: Number, offset: int = 0) -> None:
        ends = {"low": as_fraction(low, "low"), "high": as_fraction(high, "high")}
        offset = as_integer(offset, "offset", minimum=-_MAX_STEPS)
        vars(self).update(ends, step=as_positive(step, "step"), offset=offset)  # frozen
        require(self.low <= self.high, "low must not be above high")
        largest, top = max(abs(self.low), abs(self.high)), Fraction(10) ** 300
        require(
            max(largest, self.step, 1 / self.step) <= top, "low, high and step must be within the range of a double"
        )
        require(
            largest / self.step < _MAX_STEPS and offset <= _MAX_STEPS,
            "step: the grid has too many steps; choose a larger step",
        )

    def index(self, value: float) -> int:
        """Return the index of the grid step nearest to a finite value.

        Claim: low <= high implies index(low) <= index(value) <= index(high), whatever the value.
        Proof: clamping, the division by a positive double, the addition and floor are each monotone in IEEE arithmetic,
            and so is their composition.
        Needs: every engine computes the same four operations on doubles.
        Checked by: test_the_index_never_leaves_the_range, test_the_engine_equals_the_reference
        """
        low, high, step = self.as_floats
        return math.floor(min(max(value, low), high) / step + 0.5)

    @property
    def as_floats(self) -> tuple[float, float, float]:
        """Low, high and step as the doubles that every engine uses."""
        return float(self.low), float(self.high), float(self.step)

    @property
    def first(self) -> int:
        """The smallest index, relative to the offset."""
        return self.index(float(self.low)) - self.offset

    @property
    def last(self) -> int:
        """The largest index, relative to the offset."""
        return self.index(float(self.high)) - self.offset

    @property
    def max_abs_index(self) -> int:
        """The largest absolute index, relative to the offset; at least 1."""
        return max(abs(self.first), abs(self.last), 1)
