"""Released integers become numbers with margins: how far the privacy noise can have moved them, at 95 %.

A margin is about the noise alone. It says nothing of what bounding (groups, rows, ranges) and the rounding of single
values to their grid have done to the truth before the noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from discreet.sql.intervals import Noise, Noises, reach

CONFIDENCE = Fraction(95, 100)
_TAIL = float(1 - CONFIDENCE)
_ASIDE = 0.005  # of that, what a variance spends on where the mean is: it matters to second order only
_SAFE = 1 << 62


class Kind(Enum):
    """What a column holds: whole numbers, shown as such, or reals."""

    WHOLE = "whole"
    REAL = "real"


class Statistic(Enum):
    """The four spreads of SQL."""

    VAR_POP = "var_pop"
    VAR_SAMP = "var_samp"
    STDDEV_POP = "stddev_pop"
    STDDEV_SAMP = "stddev_samp"


@dataclass(frozen=True, eq=False)
class Total:
    """One released column of integers, an entry per group: its noise in steps, and what a step is worth."""

    noisy: np.ndarray
    noise: Noise
    step: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.noisy.dtype != np.int64 or self.noisy.ndim != 1:
            raise TypeError(
                f"noisy must be one column of int64, not {self.noisy.ndim} dimensions of {self.noisy.dtype}"
            )
        if self.step <= 0:
            raise ValueError("step must be above 0")

    @property
    def worth(self) -> np.ndarray:
        """The released numbers as floats, in the units of the answer."""
        return self.noisy * float(self.step)


@dataclass(frozen=True)
class Range:
    """Where a value lies once it is clipped, and the centre that was taken from it before it was summed."""

    low: Fraction
    high: Fraction
    centre: Fraction

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError("low must not be above high")

    @property
    def ends(self) -> tuple[float, float]:
        """Low and high, from the centre."""
        return float(self.low - self.centre), float(self.high - self.centre)


@dataclass(frozen=True, eq=False)
class Moments:
    """What a variance is made of: the sums of (x - centre)² - shift and of x - centre, and the count."""

    squares: Total
    total: Total
    count: Total
    shift: Fraction


@dataclass(eq=False)
class Estimate:
    """A number per group, and how far the noise can have moved it, found when asked for; nan where there is none.

    The values are int64 for counts and whole sums, else float64; the margins are float64.
    """

    values: np.ndarray
    reach: np.ndarray | Callable[[], np.ndarray]

    @cached_property
    def margins(self) -> np.ndarray:
        """The margins of all groups."""
        return self.reach() if callable(self.reach) else self.reach


@dataclass(frozen=True, eq=False)
class _Between:
    """An estimate that was held within its possible range, and the ends of what the noise leaves open."""

    low: np.ndarray
    value: np.ndarray
    high: np.ndarray

    @property
    def margins(self) -> np.ndarray:
        found: np.ndarray = np.maximum(self.value - self.low, self.high - self.value)
        return found

    def root(self) -> "_Between":
        return _Between(np.sqrt(self.low), np.sqrt(self.value), np.sqrt(self.high))


def described(total: Total) -> str:
    """Name a total's noise, with its scale in the units of the answer.

    >>> from discreet.kernel.mechanism import Laplace
    >>> described(Total(np.array([1000]), Laplace(50), Fraction(1, 4)))
    'discrete Laplace, scale 12.5'
    """
    return f"discrete {type(total.noise).__name__}, scale {float(total.noise.scale * total.step):.4g}"


def count(total: Total) -> Estimate:
    """Return a count, as whole numbers; negative ones are noise and stay.

    >>> from discreet.kernel.mechanism import Laplace
    >>> people = count(Total(np.array([731, -2]), Laplace(10)))
    >>> people.values, people.margins
    (array([731,  -2]), array([30., 30.]))
    """
    return sum_of(total, kind=Kind.WHOLE)


def sum_of(total: Total, *, kind: Kind) -> Estimate:
    """Return a sum, with the least margin that the exact law of the noise allows.

    >>> from discreet.kernel.mechanism import Laplace
    >>> sum_of(Total(np.array([1000]), Laplace(8), Fraction(1, 4)), kind=Kind.REAL).values
    array([250.])
    """
    margin = _steps(total.noise) * total.step
    if kind is Kind.REAL:
        return _constant(total.worth, _up(margin))
    values, rounding = _whole((total.noisy, total.step))
    return _constant(values, _up(margin + rounding))


def sum_around(total: Total, count: Total, *, centre: Fraction, kind: Kind) -> Estimate:
    """Return the sum of x, from the sum of x - centre and the count: their noises add up.

    >>> from discreet.kernel.mechanism import Laplace
    >>> around, people = Total(np.array([-20]), Laplace(3)), Total(np.array([10]), Laplace(1))
    >>> sum_around(around, people, centre=Fraction(50), kind=Kind.WHOLE).values
    array([480])
    """
    if not centre:
        return sum_of(total, kind=kind)
    margin = _noises(total, count).quantile(_TAIL, 1.0, abs(float(centre))).item()
    if kind is Kind.REAL:
        return _constant(total.worth + float(centre) * count.worth, margin)
    values, rounding = _whole((total.noisy, total.step), (count.noisy, centre * count.step))
    return _constant(values, margin + float(rounding))


def mean(total: Total, count: Total, *, within: Range) -> Estimate:
    """Return the mean of x, from the sum of x - centre and the count; nan where the noisy count is not above 0.

    The margin is Fieller's: it reaches as far as any mean that the two noises, at 95 %, leave possible. Where the
    count is too small for them to exclude anything it reaches to the farther end of the range. The value is held
    within the range, which can only bring it nearer to the truth; the margin stays that of the value before.

    >>> from discreet.kernel.mechanism import Gaussian
    >>> total, people = Total(np.array([4000, 5]), Gaussian(80)), Total(np.array([1000, -3]), Gaussian(8))
    >>> ages = mean(total, people, within=Range(Fraction(0), Fraction(100), centre=Fraction(40)))
    >>> ages.values, ages.margins.round(2)
    (array([44., nan]), array([0.17,  nan]))
    """
    offset = np.clip(_raw_ratio(total, count), *within.ends)
    # Of two numbers near each other and far from 0 the last digit may be wrong: not outside the range.
    values = np.clip(float(within.centre) + offset, float(within.low), float(within.high))
    return Estimate(values, lambda: _ratio(total, count, within, _TAIL).margins)


def spread(moments: Moments, *, within: Range, statistic: Statistic) -> Estimate:
    """Return a variance or standard deviation; nan where the noisy count is not above 0 (of a sample: above 1).

    Were the mean known, the margin would be Fieller's, for V·(n - ddof) = sum of (x - mean)². So it is found for
    every mean that the noise leaves possible but for half a percent, and the widest is taken, at 95.5 %. A value is
    never below 0, nor above what the range allows; where the count is too small, its margin reaches to the farther
    of these two.

    >>> from discreet.kernel.mechanism import Gaussian
    >>> squares = Total(np.array([4_000_000]), Gaussian(9000))
    >>> total, people = Total(np.array([0]), Gaussian(250)), Total(np.array([10_000]), Gaussian(5))
    >>> moments = Moments(squares, total, people, shift=Fraction(0))
    >>> ages = Range(Fraction(0), Fraction(100), centre=Fraction(50))
    >>> found = spread(moments, within=ages, statistic=Statistic.STDDEV_POP)
    >>> found.values, found.margins.round(3)
    (array([20.]), array([0.047]))
    """
    ddof = 1 if statistic in (Statistic.VAR_SAMP, Statistic.STDDEV_SAMP) else 0
    value = np.clip(_raw_variance(moments, within, ddof), 0.0, _most(within, ddof))
    if statistic in (Statistic.VAR_POP, Statistic.VAR_SAMP):
        return Estimate(value, lambda: _variance(moments, within, ddof).margins)
    return Estimate(np.sqrt(value), lambda: _variance(moments, within, ddof).root().margins)


def _most(within: Range, ddof: int) -> float:
    """Return the largest variance that a range allows: of two values, or of many, half at each end."""
    return float((within.high - within.low) ** 2) / (2 if ddof else 4)


def _raw_variance(moments: Moments, within: Range, ddof: int) -> np.ndarray:
    """Return a variance before it is held within its possible range."""
    size, raw = _positive(moments.count.worth), _raw_ratio(moments.total, moments.count)
    middle = np.clip(raw, *within.ends)
    # Around another mean the sum of squares is larger by n times its squared distance.
    around = moments.squares.worth + size * (float(moments.shift) + middle * (middle - 2 * raw))
    found: np.ndarray = around / _positive(size - ddof)
    return found


def _variance(moments: Moments, within: Range, ddof: int) -> _Between:
    tail, shift = _TAIL - _ASIDE, float(moments.shift)
    noises = _noises(moments.squares, moments.total, moments.count)
    size = _positive(moments.count.worth)
    degrees = _positive(size - ddof)
    middle, raw = _ratio(moments.total, moments.count, within, _ASIDE), _raw_ratio(moments.total, moments.count)
    near, far = np.clip(0.0, middle.low, middle.high), np.maximum(np.abs(middle.low), np.abs(middle.high))
    farthest = np.maximum((middle.low - raw) ** 2, (middle.high - raw) ** 2)
    larger = size * (farthest - (middle.value - raw) ** 2)

    def push(variance: np.ndarray) -> np.ndarray:
        gap = np.maximum(np.abs(shift + far * far - variance), np.abs(shift + near * near - variance))
        return noises.quantile(tail, 1.0, 2 * far, gap)

    found, most = _raw_variance(moments, within, ddof), _most(within, ddof)
    slope = noises.quantile(tail, 0.0, 0.0, 1.0).item()
    up = reach(degrees, lambda d: larger + push(found + d), slope, most - found)
    down = reach(degrees, lambda d: push(found - d), slope, found)
    return _held(found, down, up, (0.0, most))


def _raw_ratio(total: Total, count: Total) -> np.ndarray:
    found: np.ndarray = total.worth / _positive(count.worth)
    return found


def _ratio(total: Total, count: Total, within: Range, tail: float) -> _Between:
    """Return sum/count and what is open at this level: every t with |sum - t·count| at most its noise's quantile."""
    least, most = within.ends
    noises, size, found = _noises(total, count), _positive(count.worth), _raw_ratio(total, count)
    slope = noises.quantile(tail, 0.0, 1.0).item()
    up = reach(size, lambda d: noises.quantile(tail, 1.0, found + d), slope, most - found)
    down = reach(size, lambda d: noises.quantile(tail, 1.0, found - d), slope, found - least)
    return _held(found, down, up, (least, most))


def _held(found: np.ndarray, down: np.ndarray, up: np.ndarray, ends: tuple[float, float]) -> _Between:
    """Move an estimate into its possible range; what is open around it keeps its width, and ends there too."""
    value = np.clip(found, *ends)
    return _Between(np.maximum(value - down, ends[0]), value, np.minimum(value + up, ends[1]))


def _positive(sizes: np.ndarray) -> np.ndarray:
    return np.where(sizes > 0, sizes, np.nan)


def _noises(*totals: Total) -> Noises:
    return Noises.of(*((total.noise, total.step) for total in totals))


@lru_cache(maxsize=1024)
def _steps(noise: Noise) -> int:
    return noise.margin(CONFIDENCE)


def _constant(values: np.ndarray, margin: float) -> Estimate:
    return Estimate(values, np.full(len(values), margin))


def _up(margin: Fraction) -> float:
    near = float(margin)
    return near if Fraction(near) >= margin else math.nextafter(near, math.inf)


def _whole(*parts: tuple[np.ndarray, Fraction]) -> tuple[np.ndarray, Fraction]:
    """Return the sum of column·step in whole numbers, halves upwards, and the most that rounding can have moved it."""
    grid = math.lcm(*(step.denominator for _, step in parts))
    factors = [2 * int(step * grid) for _, step in parts]
    largest = sum(
        max(int(column.max(initial=1)), -int(column.min(initial=0))) * abs(factor)
        for (column, _), factor in zip(parts, factors, strict=True)
    )
    # Python's own integers where 64 bits may not hold what is formed on the way.
    columns = [column if largest + grid < _SAFE else column.astype(object) for column, _ in parts]
    doubled = sum((column * factor for column, factor in zip(columns, factors, strict=True)), start=grid)
    ends = np.iinfo(np.int64)
    values = np.clip(doubled // (2 * grid), ends.min, ends.max).astype(np.int64)
    return values, Fraction(grid // 2, grid)
