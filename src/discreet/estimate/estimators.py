"""Counts, sums, means and variances from released integers, with 95 % margins of error from privacy noise.

A margin covers the noise only, not the bias from contribution bounds, clamping, and rounding to a grid.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from discreet import privacy
from discreet.estimate.intervals import JointNoise, Noise, largest_deviation

CONFIDENCE = Fraction(95, 100)
_TAIL = float(1 - CONFIDENCE)
_MEAN_TAIL = 0.005  # the part of it that a variance spends on its mean, which has only a second-order effect
_MAX_SAFE = 1 << 62


class NumberKind(Enum):
    """Whether a column holds integers or reals."""

    WHOLE = "whole"
    REAL = "real"


class VarianceStatistic(Enum):
    """SQL's four measures of variance."""

    VAR_POP = "var_pop"
    VAR_SAMP = "var_samp"
    STDDEV_POP = "stddev_pop"
    STDDEV_SAMP = "stddev_samp"


@dataclass(frozen=True, eq=False)
class NoisyTotal:
    """A released column of integers, one per group, with its noise in steps and the size of a step.

    `shift` is what was subtracted from every term, in the units of the answer.
    """

    values: np.ndarray
    noise: Noise
    step: Fraction = Fraction(1)
    shift: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.values.dtype != np.int64 or self.values.ndim != 1:
            raise TypeError(
                f"values must be a one-dimensional int64 array, not {self.values.ndim}-dimensional {self.values.dtype}"
            )
        if self.step <= 0:
            raise ValueError("step must be above 0")

    @property
    def scaled_values(self) -> np.ndarray:
        """The released values as floats, in the units of the answer."""
        return self.values * float(self.step)


@dataclass(frozen=True)
class ValueRange:
    """The range of clamped values, and the centre that is subtracted before summing."""

    low: Fraction
    high: Fraction
    centre: Fraction

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError("low must not exceed high")

    @property
    def centred_ends(self) -> tuple[float, float]:
        """Low and high, relative to the centre."""
        return float(self.low - self.centre), float(self.high - self.centre)


@dataclass(frozen=True, eq=False)
class Moments:
    """The totals of a variance: the sums of (x - centre)² and of x - centre, and the count."""

    squares: NoisyTotal
    total: NoisyTotal
    count: NoisyTotal


@dataclass(eq=False)
class ColumnEstimate:
    """An estimate per group, with margins that are computed when needed; NaN where there is none.

    The values are int64 for counts and whole sums, else float64; the margins are float64.
    """

    values: np.ndarray
    lazy_margins: np.ndarray | Callable[[], np.ndarray]

    @cached_property
    def margins(self) -> np.ndarray:
        """The margins of all groups."""
        return self.lazy_margins() if callable(self.lazy_margins) else self.lazy_margins


@dataclass(frozen=True, eq=False)
class IntervalEstimate:
    """An estimate clamped to its possible range, and its confidence interval."""

    low: np.ndarray
    value: np.ndarray
    high: np.ndarray

    @property
    def margins(self) -> np.ndarray:
        """The distances from the estimates to the farther ends."""
        widest: np.ndarray = np.maximum(self.value - self.low, self.high - self.value)
        return widest

    def sqrt(self) -> "IntervalEstimate":
        """Return the interval of the square root."""
        return IntervalEstimate(np.sqrt(self.low), np.sqrt(self.value), np.sqrt(self.high))

    def square(self) -> "IntervalEstimate":
        """Return the interval of the square."""
        one, other = self.low**2, self.high**2
        low = np.where(self.low * self.high < 0, 0.0, np.minimum(one, other))
        return IntervalEstimate(low, self.value**2, np.maximum(one, other))


def describe_noise(total: NoisyTotal) -> str:
    """Describe a total's noise, with its scale in the units of the answer.

    >>> from discreet.kernel.mechanism import Laplace
    >>> describe_noise(NoisyTotal(np.array([1000]), Laplace(50), Fraction(1, 4)))
    'discrete Laplace, scale 12.5'
    """
    return f"discrete {type(total.noise).__name__}, scale {float(total.noise.scale * total.step):.4g}"


def count(total: NoisyTotal) -> ColumnEstimate:
    """Estimate a count as integers; negative values are kept.

    >>> from discreet.kernel.mechanism import Laplace
    >>> people = count(NoisyTotal(np.array([731, -2]), Laplace(10)))
    >>> people.values, people.margins
    (array([731,  -2]), array([30., 30.]))
    """
    return sum_of(total, kind=NumberKind.WHOLE)


def sum_of(total: NoisyTotal, *, kind: NumberKind) -> ColumnEstimate:
    """Estimate a sum, with the smallest margin for the exact noise distribution.

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
    """Estimate the sum of x as Σ(x - centre) + centre·count.

    >>> from discreet.kernel.mechanism import Laplace
    >>> around, people = NoisyTotal(np.array([-20]), Laplace(3)), NoisyTotal(np.array([10]), Laplace(1))
    >>> sum_from_centre(around, people, centre=Fraction(50), kind=NumberKind.WHOLE).values
    array([480])
    """
    if not centre:
        return sum_of(total, kind=kind)
    margin = joint_noise(total, count).quantile(_TAIL, 1.0, abs(float(centre))).item()
    if kind is NumberKind.REAL:
        return _with_constant_margin(total.scaled_values + float(centre) * count.scaled_values, margin)
    values, rounding = _rounded_sum((total.values, total.step), (count.values, centre * count.step))
    return _with_constant_margin(values, margin + float(rounding))


def mean(total: NoisyTotal, count: NoisyTotal, *, within: ValueRange) -> ColumnEstimate:
    """Estimate the mean of x from Σ(x - centre) and the count; NaN where the noisy count is not positive.

    The margin is Fieller's: it covers every mean that is consistent with the noise of both totals at 95 %. If the
    count is too small to exclude any mean, it extends to the farther end of the range. The estimate is clamped to the
    range, which can only reduce its error; the margin is that of the estimate before clamping.

    >>> from discreet.kernel.mechanism import Gaussian
    >>> total, people = NoisyTotal(np.array([4000, 5]), Gaussian(80)), NoisyTotal(np.array([1000, -3]), Gaussian(8))
    >>> ages = mean(total, people, within=ValueRange(Fraction(0), Fraction(100), centre=Fraction(40)))
    >>> ages.values, ages.margins.round(2)
    (array([44., nan]), array([0.17,  nan]))
    """
    offset = np.clip(_unclamped_ratio(total, count), *within.centred_ends)
    # Rounding errors of nearly equal large numbers must not lead outside the range.
    values = np.clip(float(within.centre) + offset, float(within.low), float(within.high))
    return ColumnEstimate(values, lambda: _ratio_interval(total, count, within, _TAIL).margins)


def variance_estimate(moments: Moments, *, within: ValueRange, statistic: VarianceStatistic) -> ColumnEstimate:
    """Estimate a variance or standard deviation; NaN where the noisy count is not above 0 (for a sample: 1).

    If the mean were known, the margin would be Fieller's for V·(n - ddof) = Σ(x - mean)². It is computed at 95.5 % for
    all means in a 99.5 % interval, and the widest is used. Estimates are clamped to [0, the maximum for the range]; if
    the count is too small, the margin extends to the farther of these two ends.

    >>> from discreet.kernel.mechanism import Gaussian
    >>> squares = NoisyTotal(np.array([4_000_000]), Gaussian(9000))
    >>> total, people = NoisyTotal(np.array([0]), Gaussian(250)), NoisyTotal(np.array([10_000]), Gaussian(5))
    >>> moments = Moments(squares, total, people)
    >>> ages = ValueRange(Fraction(0), Fraction(100), centre=Fraction(50))
    >>> estimate = variance_estimate(moments, within=ages, statistic=VarianceStatistic.STDDEV_POP)
    >>> estimate.values, estimate.margins.round(3)
    (array([20.]), array([0.047]))
    """
    ddof = 1 if statistic in (VarianceStatistic.VAR_SAMP, VarianceStatistic.STDDEV_SAMP) else 0
    value = np.clip(_unclamped_variance(moments, within, ddof), 0.0, _max_variance(within, ddof))
    if statistic in (VarianceStatistic.VAR_POP, VarianceStatistic.VAR_SAMP):
        return ColumnEstimate(value, lambda: _variance_interval(moments, within, ddof).margins)
    return ColumnEstimate(np.sqrt(value), lambda: _variance_interval(moments, within, ddof).sqrt().margins)


def _max_variance(within: ValueRange, ddof: int) -> float:
    """Return the largest variance of values in a range: half at each end, or two values for a sample variance."""
    return float((within.high - within.low) ** 2) / (2 if ddof else 4)


def _unclamped_variance(moments: Moments, within: ValueRange, ddof: int) -> np.ndarray:
    """Return a variance before clamping to its possible range."""
    size, raw = nan_unless_positive(moments.count.scaled_values), _unclamped_ratio(moments.total, moments.count)
    middle = np.clip(raw, *within.centred_ends)
    # Around another centre, the sum of squares is larger by n times the squared distance from the mean.
    around = moments.squares.scaled_values + size * (float(moments.squares.shift) + middle * (middle - 2 * raw))
    unclamped: np.ndarray = around / nan_unless_positive(size - ddof)
    return unclamped


def _variance_interval(moments: Moments, within: ValueRange, ddof: int) -> IntervalEstimate:
    tail, shift = _TAIL - _MEAN_TAIL, float(moments.squares.shift)
    noises = joint_noise(moments.squares, moments.total, moments.count)
    size = nan_unless_positive(moments.count.scaled_values)
    degrees = nan_unless_positive(size - ddof)
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
    ratio: np.ndarray = total.scaled_values / nan_unless_positive(count.scaled_values)
    return ratio


def _ratio_interval(total: NoisyTotal, count: NoisyTotal, within: ValueRange, tail: float) -> IntervalEstimate:
    size, one = nan_unless_positive(count.scaled_values), np.ones(len(count.values))
    numerator = LinearNoise(total.scaled_values, np.stack([one, 0 * one]))
    divisor = LinearNoise(size, np.stack([0 * one, one]))
    return quotient_interval(numerator, divisor, joint_noise(total, count), within.centred_ends, tail)


@dataclass(frozen=True, eq=False)
class LinearNoise:
    """A number per group, and the weights (totals × groups) with which noise enters it, to first order."""

    value: np.ndarray
    weights: np.ndarray


def quotient_interval(
    numerator: LinearNoise, divisor: LinearNoise, noises: JointNoise, ends: tuple[float, float], tail: float = _TAIL
) -> IntervalEstimate:
    """Return N/D, and Fieller's interval: all t for which |N - t·D| is at most the quantile of its noise."""
    ratio = numerator.value / divisor.value
    weights = numerator.weights - ratio * divisor.weights
    slope = noises.quantile(tail, *divisor.weights)

    def deviation(sign: int, end: float) -> np.ndarray:
        def push(d: np.ndarray) -> np.ndarray:
            return noises.quantile(tail, *(weights - sign * d * divisor.weights))

        return largest_deviation(divisor.value, push, slope, sign * (end - ratio))

    down, up = deviation(-1, ends[0]), deviation(1, ends[1])
    return _clamp_interval(ratio, down, up, ends)


def _clamp_interval(
    unclamped: np.ndarray, down: np.ndarray, up: np.ndarray, ends: tuple[float, float]
) -> IntervalEstimate:
    """Clamp an estimate to its possible range; its interval keeps its width and is clamped too."""
    value = np.clip(unclamped, *ends)
    return IntervalEstimate(np.maximum(value - down, ends[0]), value, np.minimum(value + up, ends[1]))


def nan_unless_positive(sizes: np.ndarray) -> np.ndarray:
    """Return sizes with NaN for those that are not above 0."""
    return np.where(sizes > 0, sizes, np.nan)


def joint_noise(*totals: NoisyTotal) -> JointNoise:
    """Return the independent noise of several totals."""
    return JointNoise.from_parts(*((total.noise, total.step) for total in totals))


@lru_cache(maxsize=1024)
def _margin_in_steps(noise: Noise) -> int:
    return privacy.margin(noise, CONFIDENCE)


def _with_constant_margin(values: np.ndarray, margin: float) -> ColumnEstimate:
    return ColumnEstimate(values, np.full(len(values), margin))


def _float_above(margin: Fraction) -> float:
    near = float(margin)
    return near if Fraction(near) >= margin else math.nextafter(near, math.inf)


def _rounded_sum(*parts: tuple[np.ndarray, Fraction]) -> tuple[np.ndarray, Fraction]:
    """Return Σ column·step rounded to integers, ties upwards, and the maximum rounding error."""
    grid = math.lcm(*(step.denominator for _, step in parts))
    factors = [2 * int(step * grid) for _, step in parts]
    largest = sum(
        max(int(column.max(initial=1)), -int(column.min(initial=0))) * abs(factor)
        for (column, _), factor in zip(parts, factors, strict=True)
    )
    # Python integers where intermediate results may exceed 64 bits.
    columns = [column if largest + grid < _MAX_SAFE else column.astype(object) for column, _ in parts]
    doubled = sum((column * factor for column, factor in zip(columns, factors, strict=True)), start=grid)
    ends = np.iinfo(np.int64)
    values = np.clip(doubled // (2 * grid), ends.min, ends.max).astype(np.int64)
    return values, Fraction(grid // 2, grid)
