"""Counts, sums, means and variances from released integers, with 95 % margins from privacy noise.

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

from discreet.estimate.intervals import JointNoise, Noise, largest_deviation

CONFIDENCE = Fraction(95, 100)
_TAIL = float(1 - CONFIDENCE)
_MEAN_TAIL = 0.005  # of that, what a variance spends on where the mean is: it matters to second order only
_MAX_SAFE = 1 << 62


class NumberKind(Enum):
    """What a column holds: whole numbers, shown as such, or reals."""

    WHOLE = "whole"
    REAL = "real"


class VarianceStatistic(Enum):
    """The four spreads of SQL."""

    VAR_POP = "var_pop"
    VAR_SAMP = "var_samp"
    STDDEV_POP = "stddev_pop"
    STDDEV_SAMP = "stddev_samp"


@dataclass(frozen=True, eq=False)
class NoisyTotal:
    """One released column of integers, an entry per group: its noise in steps, and what a step is worth."""

    values: np.ndarray
    noise: Noise
    step: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.values.dtype != np.int64 or self.values.ndim != 1:
            raise TypeError(
                f"values must be a one-dimensional int64 array, not {self.values.ndim}-dimensional {self.values.dtype}"
            )
        if self.step <= 0:
            raise ValueError("step must be above 0")

    @property
    def scaled_values(self) -> np.ndarray:
        """The released numbers as floats, in the units of the answer."""
        return self.values * float(self.step)


@dataclass(frozen=True)
class ValueRange:
    """Where a value lies once it is clipped, and the centre that was taken from it before it was summed."""

    low: Fraction
    high: Fraction
    centre: Fraction

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError("low must not exceed high")

    @property
    def centred_ends(self) -> tuple[float, float]:
        """Low and high, from the centre."""
        return float(self.low - self.centre), float(self.high - self.centre)


@dataclass(frozen=True, eq=False)
class Moments:
    """What a variance is made of: the sums of (x - centre)² - shift and of x - centre, and the count."""

    squares: NoisyTotal
    total: NoisyTotal
    count: NoisyTotal
    shift: Fraction


@dataclass(eq=False)
class ColumnEstimate:
    """A number per group, and how far the noise can have moved it, found when asked for; nan where there is none.

    The values are int64 for counts and whole sums, else float64; the margins are float64.
    """

    values: np.ndarray
    lazy_margins: np.ndarray | Callable[[], np.ndarray]

    @cached_property
    def margins(self) -> np.ndarray:
        """The margins of all groups."""
        return self.lazy_margins() if callable(self.lazy_margins) else self.lazy_margins


@dataclass(frozen=True, eq=False)
class _Interval:
    """An estimate that was held within its possible range, and the ends of what the noise leaves open."""

    low: np.ndarray
    value: np.ndarray
    high: np.ndarray

    @property
    def margins(self) -> np.ndarray:
        widest: np.ndarray = np.maximum(self.value - self.low, self.high - self.value)
        return widest

    def sqrt(self) -> "_Interval":
        return _Interval(np.sqrt(self.low), np.sqrt(self.value), np.sqrt(self.high))


def describe_noise(total: NoisyTotal) -> str:
    """Name a total's noise, with its scale in the units of the answer.

    >>> from discreet.kernel.mechanism import Laplace
    >>> describe_noise(NoisyTotal(np.array([1000]), Laplace(50), Fraction(1, 4)))
    'discrete Laplace, scale 12.5'
    """
    return f"discrete {type(total.noise).__name__}, scale {float(total.noise.scale * total.step):.4g}"


def count(total: NoisyTotal) -> ColumnEstimate:
    """Return a count, as whole numbers; negative ones are noise and stay.

    >>> from discreet.kernel.mechanism import Laplace
    >>> people = count(NoisyTotal(np.array([731, -2]), Laplace(10)))
    >>> people.values, people.margins
    (array([731,  -2]), array([30., 30.]))
    """
    return sum_of(total, kind=NumberKind.WHOLE)


def sum_of(total: NoisyTotal, *, kind: NumberKind) -> ColumnEstimate:
    """Return a sum, with the least margin that the exact law of the noise allows.

    >>> from discreet.kernel.mechanism import Laplace
    >>> sum_of(NoisyTotal(np.array([1000]), Laplace(8), Fraction(1, 4)), kind=NumberKind.REAL).values
    array([250.])
    """
    margin = _margin_in_steps(total.noise) * total.step
    if kind is NumberKind.REAL:
        return _with_constant_margin(total.scaled_values, _float_above(margin))
    values, rounding = _rounded_sum((total.values, total.step))
    return _with_constant_margin(values, _float_above(margin + rounding))


def sum_from_centre(total: NoisyTotal, count: NoisyTotal, *, centre: Fraction, kind: NumberKind) -> ColumnEstimate:
    """Return the sum of x, from the sum of x - centre and the count: their noises add up.

    >>> from discreet.kernel.mechanism import Laplace
    >>> around, people = NoisyTotal(np.array([-20]), Laplace(3)), NoisyTotal(np.array([10]), Laplace(1))
    >>> sum_from_centre(around, people, centre=Fraction(50), kind=NumberKind.WHOLE).values
    array([480])
    """
    if not centre:
        return sum_of(total, kind=kind)
    margin = _joint_noise(total, count).quantile(_TAIL, 1.0, abs(float(centre))).item()
    if kind is NumberKind.REAL:
        return _with_constant_margin(total.scaled_values + float(centre) * count.scaled_values, margin)
    values, rounding = _rounded_sum((total.values, total.step), (count.values, centre * count.step))
    return _with_constant_margin(values, margin + float(rounding))


def mean(total: NoisyTotal, count: NoisyTotal, *, within: ValueRange) -> ColumnEstimate:
    """Return the mean of x, from the sum of x - centre and the count; nan where the noisy count is not above 0.

    The margin is Fieller's: it reaches as far as any mean that the two noises, at 95 %, leave possible. Where the
    count is too small for them to exclude anything it reaches to the farther end of the range. The value is held
    within the range, which can only bring it nearer to the truth; the margin stays that of the value before.

    >>> from discreet.kernel.mechanism import Gaussian
    >>> total, people = NoisyTotal(np.array([4000, 5]), Gaussian(80)), NoisyTotal(np.array([1000, -3]), Gaussian(8))
    >>> ages = mean(total, people, within=ValueRange(Fraction(0), Fraction(100), centre=Fraction(40)))
    >>> ages.values, ages.margins.round(2)
    (array([44., nan]), array([0.17,  nan]))
    """
    offset = np.clip(_unclamped_ratio(total, count), *within.centred_ends)
    # Of two numbers near each other and far from 0 the last digit may be wrong: not outside the range.
    values = np.clip(float(within.centre) + offset, float(within.low), float(within.high))
    return ColumnEstimate(values, lambda: _ratio_interval(total, count, within, _TAIL).margins)


def variance_estimate(moments: Moments, *, within: ValueRange, statistic: VarianceStatistic) -> ColumnEstimate:
    """Return a variance or standard deviation; nan where the noisy count is not above 0 (of a sample: above 1).

    Were the mean known, the margin would be Fieller's, for V·(n - ddof) = sum of (x - mean)². So it is found for
    every mean that the noise leaves possible but for half a percent, and the widest is taken, at 95.5 %. A value is
    never below 0, nor above what the range allows; where the count is too small, its margin reaches to the farther
    of these two.

    >>> from discreet.kernel.mechanism import Gaussian
    >>> squares = NoisyTotal(np.array([4_000_000]), Gaussian(9000))
    >>> total, people = NoisyTotal(np.array([0]), Gaussian(250)), NoisyTotal(np.array([10_000]), Gaussian(5))
    >>> moments = Moments(squares, total, people, shift=Fraction(0))
    >>> ages = ValueRange(Fraction(0), Fraction(100), centre=Fraction(50))
    >>> found = variance_estimate(moments, within=ages, statistic=VarianceStatistic.STDDEV_POP)
    >>> found.values, found.margins.round(3)
    (array([20.]), array([0.047]))
    """
    ddof = 1 if statistic in (VarianceStatistic.VAR_SAMP, VarianceStatistic.STDDEV_SAMP) else 0
    value = np.clip(_unclamped_variance(moments, within, ddof), 0.0, _max_variance(within, ddof))
    if statistic in (VarianceStatistic.VAR_POP, VarianceStatistic.VAR_SAMP):
        return ColumnEstimate(value, lambda: _variance_interval(moments, within, ddof).margins)
    return ColumnEstimate(np.sqrt(value), lambda: _variance_interval(moments, within, ddof).sqrt().margins)


def _max_variance(within: ValueRange, ddof: int) -> float:
    """Return the largest variance that a range allows: of two values, or of many, half at each end."""
    return float((within.high - within.low) ** 2) / (2 if ddof else 4)


def _unclamped_variance(moments: Moments, within: ValueRange, ddof: int) -> np.ndarray:
    """Return a variance before it is held within its possible range."""
    size, raw = _nan_unless_positive(moments.count.scaled_values), _unclamped_ratio(moments.total, moments.count)
    middle = np.clip(raw, *within.centred_ends)
    # Around another mean the sum of squares is larger by n times its squared distance.
    around = moments.squares.scaled_values + size * (float(moments.shift) + middle * (middle - 2 * raw))
    unclamped: np.ndarray = around / _nan_unless_positive(size - ddof)
    return unclamped


def _variance_interval(moments: Moments, within: ValueRange, ddof: int) -> _Interval:
    tail, shift = _TAIL - _MEAN_TAIL, float(moments.shift)
    noises = _joint_noise(moments.squares, moments.total, moments.count)
    size = _nan_unless_positive(moments.count.scaled_values)
    degrees = _nan_unless_positive(size - ddof)
    middle, raw = (
        _ratio_interval(moments.total, moments.count, within, _MEAN_TAIL),
        _unclamped_ratio(moments.total, moments.count),
    )
    near, far = np.clip(0.0, middle.low, middle.high), np.maximum(np.abs(middle.low), np.abs(middle.high))
    farthest = np.maximum((middle.low - raw) ** 2, (middle.high - raw) ** 2)
    larger = size * (farthest - (middle.value - raw) ** 2)

    def push(variance: np.ndarray) -> np.ndarray:
        gap = np.maximum(np.abs(shift + far * far - variance), np.abs(shift + near * near - variance))
        return noises.quantile(tail, 1.0, 2 * far, gap)

    unclamped, largest = _unclamped_variance(moments, within, ddof), _max_variance(within, ddof)
    slope = noises.quantile(tail, 0.0, 0.0, 1.0).item()
    up = largest_deviation(degrees, lambda d: larger + push(unclamped + d), slope, largest - unclamped)
    down = largest_deviation(degrees, lambda d: push(unclamped - d), slope, unclamped)
    return _clamp_interval(unclamped, down, up, (0.0, largest))


def _unclamped_ratio(total: NoisyTotal, count: NoisyTotal) -> np.ndarray:
    ratio: np.ndarray = total.scaled_values / _nan_unless_positive(count.scaled_values)
    return ratio


def _ratio_interval(total: NoisyTotal, count: NoisyTotal, within: ValueRange, tail: float) -> _Interval:
    """Return sum/count and what is open at this level: every t with |sum - t·count| at most its noise's quantile."""
    least, most = within.centred_ends
    noises, size, ratio = (
        _joint_noise(total, count),
        _nan_unless_positive(count.scaled_values),
        _unclamped_ratio(total, count),
    )
    slope = noises.quantile(tail, 0.0, 1.0).item()
    up = largest_deviation(size, lambda d: noises.quantile(tail, 1.0, ratio + d), slope, most - ratio)
    down = largest_deviation(size, lambda d: noises.quantile(tail, 1.0, ratio - d), slope, ratio - least)
    return _clamp_interval(ratio, down, up, (least, most))


def _clamp_interval(unclamped: np.ndarray, down: np.ndarray, up: np.ndarray, ends: tuple[float, float]) -> _Interval:
    """Move an estimate into its possible range; what is open around it keeps its width, and ends there too."""
    value = np.clip(unclamped, *ends)
    return _Interval(np.maximum(value - down, ends[0]), value, np.minimum(value + up, ends[1]))


def _nan_unless_positive(sizes: np.ndarray) -> np.ndarray:
    return np.where(sizes > 0, sizes, np.nan)


def _joint_noise(*totals: NoisyTotal) -> JointNoise:
    return JointNoise.from_parts(*((total.noise, total.step) for total in totals))


@lru_cache(maxsize=1024)
def _margin_in_steps(noise: Noise) -> int:
    return noise.margin(CONFIDENCE)


def _with_constant_margin(values: np.ndarray, margin: float) -> ColumnEstimate:
    return ColumnEstimate(values, np.full(len(values), margin))


def _float_above(margin: Fraction) -> float:
    near = float(margin)
    return near if Fraction(near) >= margin else math.nextafter(near, math.inf)


def _rounded_sum(*parts: tuple[np.ndarray, Fraction]) -> tuple[np.ndarray, Fraction]:
    """Return the sum of column·step in whole numbers, halves upwards, and the most that rounding can have moved it."""
    grid = math.lcm(*(step.denominator for _, step in parts))
    factors = [2 * int(step * grid) for _, step in parts]
    largest = sum(
        max(int(column.max(initial=1)), -int(column.min(initial=0))) * abs(factor)
        for (column, _), factor in zip(parts, factors, strict=True)
    )
    # Python's own integers where 64 bits may not hold what is formed on the way.
    columns = [column if largest + grid < _MAX_SAFE else column.astype(object) for column, _ in parts]
    doubled = sum((column * factor for column, factor in zip(columns, factors, strict=True)), start=grid)
    ends = np.iinfo(np.int64)
    values = np.clip(doubled // (2 * grid), ends.min, ends.max).astype(np.int64)
    return values, Fraction(grid // 2, grid)
