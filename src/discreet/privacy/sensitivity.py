"""Global sensitivities of statistics of n values within public bounds, one value per person.

With removal, neighbours differ by the presence of one person. With replacement, n is public and neighbours differ in
one person's value. Sensitivities are exact fractions, and infinite if a bound is.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import product
from typing import Any

from discreet.kernel.numbers import Number, as_fraction, as_integer, as_positive

SensitivityValue = Fraction | float  # a float only if infinite


class NeighbouringRelation(StrEnum):
    """Which data sets are neighbours."""

    REMOVAL = "removal"
    REPLACEMENT = "replacement"


def count() -> Fraction:
    """Return the sensitivity of a count of people, under either neighbouring relation.

    >>> count()
    Fraction(1, 1)
    """
    return Fraction(1)


def histogram(*, neighbours: NeighbouringRelation | str = NeighbouringRelation.REMOVAL) -> Fraction:
    """Return the l1 sensitivity of disjoint counts; a replacement changes two of them.

    >>> histogram(neighbours="replacement")
    Fraction(2, 1)
    """
    return Fraction(2 if NeighbouringRelation(neighbours) is NeighbouringRelation.REPLACEMENT else 1)


def sum(  # noqa: A001 - read as sensitivity.sum
    low: Number, high: Number, *, neighbours: NeighbouringRelation | str = NeighbouringRelation.REMOVAL
) -> SensitivityValue:
    """Return the sensitivity of a sum.

    >>> sum(-1, 10), sum(-1, 10, neighbours="replacement")
    (Fraction(10, 1), Fraction(11, 1))
    """
    bottom, top = _valid_bounds(low, high)
    if NeighbouringRelation(neighbours) is NeighbouringRelation.REPLACEMENT:
        return top - bottom
    return max(-bottom, top)  # the larger absolute value, since bottom <= top


def mean(low: Number, high: Number, n: int) -> SensitivityValue:
    """Return the sensitivity of a mean of n values, under replacement.

    >>> mean(0, 1, n=100)
    Fraction(1, 100)
    """
    return _range_width(low, high) / as_integer(n, "n", minimum=1)


def median(low: Number, high: Number, n: int | None = None) -> SensitivityValue:
    """Return the sensitivity of a median, under replacement: the whole range, or half of it for an even n.

    For an even n, the median is the mean of the two middle values, of which a replacement moves only one across the
    range. Without n, it is the worst case over n.

    >>> median(0, 1), median(0, 1, n=4)
    (Fraction(1, 1), Fraction(1, 2))
    """
    odd = n is None or as_integer(n, "n", minimum=1) % 2 == 1
    return _range_width(low, high) / (1 if odd else 2)


def variance(low: Number, high: Number, n: int, *, ddof: int = 0) -> SensitivityValue:
    """Return the sensitivity of a variance of n values, under replacement; ddof=1 is the sample variance.

    >>> variance(0, 1, n=4), variance(0, 1, n=4, ddof=1)
    (Fraction(3, 16), Fraction(1, 4))
    """
    size = as_integer(n, "n", minimum=1)
    freedom = size - as_integer(ddof, "ddof")
    if freedom < 1:
        raise ValueError(f"ddof must be below n, not {ddof}")
    width = _range_width(low, high)
    return width * width * Fraction(size - 1, size * freedom) if size > 1 else Fraction(0)


def brute_force(
    statistic: Callable[[tuple[Any, ...]], Any],
    values: Sequence[Any],
    n: int,
    *,
    neighbours: NeighbouringRelation | str = NeighbouringRelation.REPLACEMENT,
) -> Any:
    """Return the largest change of a statistic over all neighbouring data sets of n values from a small grid.

    >>> brute_force(max, [0, 1, 5], n=3)
    5
    """
    size = as_integer(n, "n", minimum=1)
    if len(values) ** size * len(values) * size > 10_000_000:
        raise ValueError("values: there are too many data sets to enumerate; use a smaller grid or n")
    results = {data: statistic(data) for data in product(values, repeat=size)}
    if NeighbouringRelation(neighbours) is NeighbouringRelation.REMOVAL:
        return max(
            abs(result - statistic(data[:i] + data[i + 1 :])) for data, result in results.items() for i in range(size)
        )
    return max(
        abs(result - results[(*data[:i], other, *data[i + 1 :])])
        for data, result in results.items()
        for i in range(size)
        for other in values
    )


@dataclass(frozen=True)
class Usefulness:
    """The noise that a statistic needs, relative to its range."""

    statistic: str
    sensitivity: SensitivityValue
    range: SensitivityValue
    noise_share: SensitivityValue

    @property
    def is_useful(self) -> bool:
        """Whether the noise is at most a tenth of the range."""
        return self.noise_share <= Fraction(1, 10)


def usefulness(low: Number, high: Number, n: int, epsilon: Number) -> list[Usefulness]:
    """Compare the scale of Laplace noise at epsilon with the range of each statistic of n values.

    >>> [(row.statistic, row.is_useful) for row in usefulness(0, 1, n=1001, epsilon=0.1)]
    [('count', True), ('sum', True), ('mean', True), ('median', False), ('variance', True)]
    """
    size, cost = as_integer(n, "n", minimum=1), as_positive(epsilon, "epsilon")
    width = _range_width(low, high)
    max_variance = Fraction(size // 2 * (size - size // 2), size * size)  # with half of the values at each end
    rows: list[tuple[str, SensitivityValue, SensitivityValue]] = [
        ("count", count(), Fraction(size)),
        ("sum", sum(low, high, neighbours=NeighbouringRelation.REPLACEMENT), size * width),
        ("mean", mean(low, high, size), width),
        ("median", median(low, high, size), width),
        ("variance", variance(low, high, size), width * width * max_variance if max_variance else Fraction(0)),
    ]
    return [Usefulness(name, change, extent, _noise_share(change / cost, extent)) for name, change, extent in rows]


def _noise_share(noise: SensitivityValue, width: SensitivityValue) -> SensitivityValue:
    if noise == math.inf:
        return math.inf  # also if the range is infinite
    return noise / width if width else Fraction(0)


def _valid_bounds(low: Number, high: Number) -> tuple[SensitivityValue, SensitivityValue]:
    bottom, top = _parse_bound(low, "low"), _parse_bound(high, "high")
    if not bottom <= top:
        raise ValueError(f"high must be at least low, not {high}")
    if math.inf in (bottom, -top):
        raise ValueError("low and high must have a finite value between them")
    return bottom, top


def _parse_bound(value: Number, name: str) -> SensitivityValue:
    return float(value) if isinstance(value, float) and math.isinf(value) else as_fraction(value, name)


def _range_width(low: Number, high: Number) -> SensitivityValue:
    bottom, top = _valid_bounds(low, high)
    return top - bottom
