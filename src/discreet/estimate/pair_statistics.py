"""Covariance, correlation and regression of value pairs from released sums, with 95 % margins from privacy noise.

Each statistic is a quotient of two numbers that are computed from noisy sums. Margins are Fieller's for this quotient,
with the noise of both numbers to first order.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from discreet.estimate.estimators import (
    ColumnEstimate,
    IntervalEstimate,
    LinearNoise,
    NoisyTotal,
    ValueRange,
    joint_noise,
    nan_unless_positive,
    quotient_interval,
)

_TAIL = 0.05
_UNBOUNDED = -np.inf, np.inf


class PairStatistic(Enum):
    """SQL's statistics of value pairs."""

    COVAR_POP = "covar_pop"
    COVAR_SAMP = "covar_samp"
    REGR_SLOPE = "regr_slope"
    REGR_INTERCEPT = "regr_intercept"
    CORR = "corr"
    REGR_R2 = "regr_r2"

    @property
    def uses_x_squares(self) -> bool:
        """Whether it needs the variance of x."""
        return self not in (PairStatistic.COVAR_POP, PairStatistic.COVAR_SAMP)

    @property
    def uses_y_squares(self) -> bool:
        """Whether it needs the variance of y."""
        return self in (PairStatistic.CORR, PairStatistic.REGR_R2)


@dataclass(frozen=True, eq=False)
class PairTotals:
    """Totals over the rows where x and y are not NULL.

    `products` is the sum of (x - centre)·(y - centre), `x` and `y` are the sums of x - centre and y - centre, and the
    squares those of (x - centre)² and (y - centre)².
    """

    products: NoisyTotal
    x: NoisyTotal
    y: NoisyTotal
    count: NoisyTotal
    x_squares: NoisyTotal | None = None
    y_squares: NoisyTotal | None = None


def pair_estimate(
    totals: PairTotals, x_range: ValueRange, y_range: ValueRange, statistic: PairStatistic
) -> ColumnEstimate:
    """Estimate a statistic of value pairs.

    NaN where the noisy count is not above 0 (for a sample: 1), or where a variance in the denominator is not above its
    own margin. Covariances and correlations are clamped to what is possible.

    >>> from fractions import Fraction
    >>> from discreet.kernel.mechanism import Gaussian
    >>> def noisy(total, scale):
    ...     return NoisyTotal(np.array([total]), Gaussian(scale))
    >>> sums, squares = (noisy(0, 250), noisy(9, 250)), (noisy(4_000_000, 9000), noisy(4_000_000, 9000))
    >>> totals = PairTotals(noisy(2_000_000, 9000), *sums, noisy(10_000, 5), *squares)
    >>> ages = ValueRange(Fraction(0), Fraction(100), centre=Fraction(50))
    >>> estimate = pair_estimate(totals, ages, ages, PairStatistic.CORR)
    >>> estimate.values, estimate.margins.round(4)
    (array([0.5]), array([0.0047]))
    """
    squares = [each for each in (totals.x_squares, totals.y_squares) if each is not None]
    parts = [totals.products, totals.x, totals.y, totals.count, *squares]
    noises = joint_noise(*parts)
    products, x, y, count, *square_sums = (
        _Linear.of_total(part, place, len(parts)) for place, part in enumerate(parts)
    )
    count = _Linear(nan_unless_positive(count.value), count.weights)
    x_mean, y_mean = x / count, y / count
    centred = products - x * y_mean
    around = [
        total + float(each.shift) * count - of * mean
        for total, each, of, mean in zip(square_sums, squares, (x, y), (x_mean, y_mean), strict=False)
    ]
    around = [each.where_above(noises.quantile(_TAIL, *each.weights)) for each in around]
    match statistic:
        case PairStatistic.COVAR_POP | PairStatistic.COVAR_SAMP:
            ddof = int(statistic is PairStatistic.COVAR_SAMP)
            largest = float((x_range.high - x_range.low) * (y_range.high - y_range.low)) / (2 if ddof else 4)
            degrees = _Linear(nan_unless_positive(count.value - ddof), count.weights)
            return _estimate(quotient_interval(centred, degrees, noises, (-largest, largest)))
        case PairStatistic.REGR_SLOPE:
            return _estimate(quotient_interval(centred, around[0], noises, _UNBOUNDED))
        case PairStatistic.REGR_INTERCEPT:
            line = (y_mean + float(y_range.centre)) * around[0] - (x_mean + float(x_range.centre)) * centred
            return _estimate(quotient_interval(line, around[0], noises, _UNBOUNDED))
    correlation = quotient_interval(centred, (around[0] * around[1]).sqrt(), noises, (-1.0, 1.0))
    return _estimate(correlation if statistic is PairStatistic.CORR else correlation.square())


def _estimate(interval: IntervalEstimate) -> ColumnEstimate:
    return ColumnEstimate(interval.value, interval.margins)


@dataclass(frozen=True, eq=False)
class _Linear(LinearNoise):
    """Arithmetic of numbers with noise, to first order in the noise."""

    @classmethod
    def of_total(cls, total: NoisyTotal, place: int, count: int) -> "_Linear":
        weights = np.zeros((count, len(total.values)))
        weights[place] = 1.0
        return cls(total.scaled_values, weights)

    def __add__(self, other: "_Linear | float") -> "_Linear":
        if isinstance(other, float):
            return _Linear(self.value + other, self.weights)
        return _Linear(self.value + other.value, self.weights + other.weights)

    def __sub__(self, other: "_Linear") -> "_Linear":
        return _Linear(self.value - other.value, self.weights - other.weights)

    def __mul__(self, other: "_Linear") -> "_Linear":
        return _Linear(self.value * other.value, self.weights * other.value + self.value * other.weights)

    def __rmul__(self, factor: float) -> "_Linear":
        return _Linear(factor * self.value, factor * self.weights)

    def __truediv__(self, other: "_Linear") -> "_Linear":
        ratio = self.value / other.value
        return _Linear(ratio, (self.weights - ratio * other.weights) / other.value)

    def sqrt(self) -> "_Linear":
        root = np.sqrt(self.value)
        return _Linear(root, self.weights / (2 * root))

    def where_above(self, least: np.ndarray) -> "_Linear":
        """Return NaN where a number is not above the least."""
        return _Linear(np.where(self.value > least, self.value, np.nan), self.weights)
