"""Global sensitivities: how far one person can move a statistic of n values within public bounds.

Removal: one data set lacks one person. Replacement: n is public, and one person's value is another one.
Exact fractions; bounds may be infinite, and then so is the sensitivity.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import product
from typing import Any

from discreet.kernel.exact import Number, fraction, positive, whole

Size = Fraction | float  # a float only if it is infinite


class Neighbours(StrEnum):
    """Which pairs of data sets must be hard to tell apart."""

    REMOVAL = "removal"
    REPLACEMENT = "replacement"


def count() -> Fraction:
    """Return the sensitivity of a number of people, under either kind of neighbours.

    >>> count()
    Fraction(1, 1)
    """
    return Fraction(1)


def histogram(*, neighbours: Neighbours | str = Neighbours.REMOVAL) -> Fraction:
    """Return the l1 sensitivity of disjoint counts: a person who is replaced leaves one and enters another.

    >>> histogram(neighbours="replacement")
    Fraction(2, 1)
    """
    return Fraction(2 if Neighbours(neighbours) is Neighbours.REPLACEMENT else 1)


def sum(  # noqa: A001 - read as sensitivity.sum
    low: Number, high: Number, *, neighbours: Neighbours | str = Neighbours.REMOVAL
) -> Size:
    """Return the sensitivity of a sum.

    >>> sum(-1, 10), sum(-1, 10, neighbours="replacement")
    (Fraction(10, 1), Fraction(11, 1))
    """
    bottom, top = _bounds(low, high)
    if Neighbours(neighbours) is Neighbours.REPLACEMENT:
        return top - bottom
    return max(-bottom, top)  # bottom <= top: the larger of the two sizes


def mean(low: Number, high: Number, n: int) -> Size:
    """Return the sensitivity of a mean of n values, one of them replaced.

    >>> mean(0, 1, n=100)
    Fraction(1, 100)
    """
    return _range(low, high) / whole(n, "n", least=1)


def median(low: Number, high: Number, n: int | None = None) -> Size:
    """Return the sensitivity of a median, one value replaced: the whole range, or half of it for an even n.

    With an even n the median is the middle of the two middle values, and a replacement moves only one of them
    across the range. Without n, the worst n counts.

    >>> median(0, 1), median(0, 1, n=4)
    (Fraction(1, 1), Fraction(1, 2))
    """
    odd = n is None or whole(n, "n", least=1) % 2 == 1
    return _range(low, high) / (1 if odd else 2)


def variance(low: Number, high: Number, n: int, *, ddof: int = 0) -> Size:
    """Return the sensitivity of a variance of n values, one replaced: of the population, or with ddof=1 of a sample.

    >>> variance(0, 1, n=4), variance(0, 1, n=4, ddof=1)
    (Fraction(3, 16), Fraction(1, 4))
    """
    size = whole(n, "n", least=1)
    freedom = size - whole(ddof, "ddof")
    if freedom < 1:
        raise ValueError(f"ddof must be below n, not {ddof}")
    width = _range(low, high)
    return width * width * Fraction(size - 1, size * freedom) if size > 1 else Fraction(0)


def enumerated(
    statistic: Callable[[tuple[Any, ...]], Any],
    values: Sequence[Any],
    n: int,
    *,
    neighbours: Neighbours | str = Neighbours.REPLACEMENT,
) -> Any:
    """Return the largest change of a statistic over all neighbours of n values from a small grid, by trying.

    >>> enumerated(max, [0, 1, 5], n=3)
    5
    """
    size = whole(n, "n", least=1)
    if len(values) ** size * len(values) * size > 10_000_000:
        raise ValueError("values: too many data sets to try all; take a smaller grid or n")
    before = {data: statistic(data) for data in product(values, repeat=size)}
    if Neighbours(neighbours) is Neighbours.REMOVAL:
        return max(
            abs(result - statistic(data[:i] + data[i + 1 :])) for data, result in before.items() for i in range(size)
        )
    return max(
        abs(result - before[(*data[:i], other, *data[i + 1 :])])
        for data, result in before.items()
        for i in range(size)
        for other in values
    )


@dataclass(frozen=True)
class Usefulness:
    """The noise that a statistic needs, beside what the statistic can be at all."""

    statistic: str
    sensitivity: Size
    range: Size
    share: Size

    @property
    def useful(self) -> bool:
        """Whether the noise is at most a tenth of the range."""
        return self.share <= Fraction(1, 10)


def useful(low: Number, high: Number, n: int, epsilon: Number) -> list[Usefulness]:
    """Compare, for each statistic of n values, the scale of Laplace noise at epsilon with the statistic's range.

    >>> [(row.statistic, row.useful) for row in useful(0, 1, n=1001, epsilon=0.1)]
    [('count', True), ('sum', True), ('mean', True), ('median', False), ('variance', True)]
    """
    size, price = whole(n, "n", least=1), positive(epsilon, "epsilon")
    width = _range(low, high)
    most = Fraction(size // 2 * (size - size // 2), size * size)  # a variance is largest with half at each end
    rows: list[tuple[str, Size, Size]] = [
        ("count", count(), Fraction(size)),
        ("sum", sum(low, high, neighbours=Neighbours.REPLACEMENT), size * width),
        ("mean", mean(low, high, size), width),
        ("median", median(low, high, size), width),
        ("variance", variance(low, high, size), width * width * most if most else Fraction(0)),
    ]
    return [Usefulness(name, moved, spread, _share(moved / price, spread)) for name, moved, spread in rows]


def _share(noise: Size, spread: Size) -> Size:
    if noise == math.inf:
        return math.inf  # unbounded noise helps nobody, however wide the range
    return noise / spread if spread else Fraction(0)


def _bounds(low: Number, high: Number) -> tuple[Size, Size]:
    bottom, top = _bound(low, "low"), _bound(high, "high")
    if not bottom <= top:
        raise ValueError(f"high must be at least low, not {high}")
    if math.inf in (bottom, -top):
        raise ValueError("low and high leave no value between them")
    return bottom, top


def _bound(value: Number, name: str) -> Size:
    return float(value) if isinstance(value, float) and math.isinf(value) else fraction(value, name)


def _range(low: Number, high: Number) -> Size:
    bottom, top = _bounds(low, high)
    return top - bottom
