"""Sampling error of released estimates, where the units in the data are a simple random sample of a population.

This is post-processing: variances come from released numbers, declared ranges and contribution bounds. Two facts bound
what is not released. Units are sampled, not rows, and the rows of a unit may all be alike: by Cauchy-Schwarz, the
squared sum of a unit's deviations is at most its number of rows times the sum of their squares, so the design effect is
at most the number of rows. And for numbers in [low, high] with mean m, the variance is at most (m - low)·(high - m),
with equality if all of them are at the ends, as for proportions (Bhatia and Davis). Variances of totals are those of
n draws without replacement; variances of means are those of a ratio, linearised. Margins are normal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from statistics import NormalDist

import numpy as np

from discreet.estimate.estimators import CONFIDENCE, ColumnEstimate, VarianceStatistic
from discreet.estimate.intervals import ReleaseNoise
from discreet.estimate.planned_release import (
    Mean,
    Measure,
    NoisyCount,
    NoisySum,
    PlannedRelease,
    Variance,
    describes_population,
    estimate_measure,
    noisy_total,
)
from discreet.kernel.ball import Norm
from discreet.kernel.expr import Type
from discreet.kernel.question import Count, CountUnits, Sum
from discreet.policy.declarations import SimpleRandomSample

_Z = NormalDist().inv_cdf(float(1 + CONFIDENCE) / 2)
_UNKNOWN_NOTE = "The margin of {0} covers privacy noise only: its sampling error does not follow from released numbers."
_SAMPLE_TOTAL_NOTE = (
    "Counts and sums are totals of the sample, and their margins cover privacy noise only. With sample_size and "
    "population_size in the policy they would estimate the totals of the population."
)
_RANGE_NOTE = (
    "The sampling error of {0} is an upper bound from the range of the values. Add STDDEV of the same values to the "
    "query to have it estimated."
)
_ROWS_NOTE = (
    "The sampling error of {0} is an upper bound, as if all rows of a unit in a group were alike (up to {1:,} rows). "
    "Aggregate per unit in a subquery to have it estimated."
)


@dataclass(frozen=True, eq=False)
class SamplingError:
    """The 95 % margins of a measure from sampling, one per group; NaN where unknown.

    `note` says why they are upper bounds or unknown; it is empty if they are estimates. They are `uncorrelated` between
    groups for means, if a unit contributes to one group only.
    """

    margins: np.ndarray
    note: str = ""
    uncorrelated: bool = False


@dataclass(frozen=True, eq=False)
class SampledRelease:
    """The noisy totals (groups × totals) of a release from a sample."""

    release: PlannedRelease
    sample: SimpleRandomSample
    noisy: np.ndarray
    noises: tuple[ReleaseNoise, ...]

    def errors(self, estimates: Mapping[str, ColumnEstimate]) -> dict[str, SamplingError]:
        """Return the sampling error of each measure, given its estimates."""
        return {measure.name: self._error(measure, estimates[measure.name].values) for measure in self.release.measures}

    def _error(self, measure: Measure, values: np.ndarray) -> SamplingError:
        totals, unknown = self.release.question.totals, np.full(len(self.noisy), np.nan)
        match measure.estimator:
            case Mean() as mean:
                return self._mean_error(measure.label, mean, values)
            case (NoisyCount() | NoisySum()) as total if describes_population(self.release, total):
                return self._total_error(measure.label, total, values)
            case (NoisyCount() | NoisySum()) as total if isinstance(totals[total.total], Count | CountUnits | Sum):
                return SamplingError(unknown, _SAMPLE_TOTAL_NOTE)
        return SamplingError(unknown, _UNKNOWN_NOTE.format(measure.label))

    def _mean_error(self, label: str, mean: Mean, values: np.ndarray) -> SamplingError:
        count, rows = np.maximum(self._sample_total(mean.count), 1.0), self._max_rows(mean.count)
        ends = float(mean.low), float(mean.high)
        variance, squares = _max_variance(values, count / rows, *ends), self._variance_of(mean.total)
        if squares is not None:
            variance = np.fmin(variance, squares * count / np.maximum(count - 1, 1.0))
        margins = np.minimum(_Z * np.sqrt(self._correction * rows * variance / count), ends[1] - ends[0])
        estimated = squares is not None or self._is_indicator(mean.total, mean.low, mean.high)
        disjoint = self.release.question.l0_bound == 1
        return SamplingError(margins, _bound_note(label, rows, estimated=estimated), uncorrelated=disjoint)

    def _total_error(self, label: str, total: NoisyCount | NoisySum, values: np.ndarray) -> SamplingError:
        assert self.sample.size is not None
        size, expansion, rows = self.sample.size, float(self.sample.expansion), self._max_rows(total.total)
        kernel_total, unit_mean = self.release.question.totals[total.total], values / expansion / size
        low, high = (kernel_total.grid.low, kernel_total.grid.high) if isinstance(kernel_total, Sum) else (0, 1)
        # A unit without rows in the group contributes 0.
        variance = _max_variance(unit_mean, size, float(min(0, rows * low)), float(max(0, rows * high)))
        squares = self._sum_of_squares(total.total) if isinstance(kernel_total, Sum) else None
        if squares is not None:
            variance = np.minimum(variance, np.maximum(rows * squares / size - unit_mean**2, 0.0))
        margins = _Z * expansion * np.sqrt(size * self._correction * variance)
        estimated = squares is not None or not isinstance(kernel_total, Sum)
        estimated = estimated or self._is_indicator(total.total, Fraction(low), Fraction(high), absent=True)
        return SamplingError(margins, _bound_note(label, rows, estimated=estimated))

    @property
    def _correction(self) -> float:
        return float(self.sample.unsampled_share)

    def _max_rows(self, index: int) -> int:
        """Return the maximum number of rows of a unit that count in a group, after clipping."""
        question = self.release.question
        total, most = question.totals[index], question.relation.shape.max_rows_per_unit
        if isinstance(total, CountUnits):
            return 1
        if not question.needs_clipping:
            return most or 1
        groups = question.bounds.groups if question.bounds.norm is Norm.L1 else isqrt(question.bounds.groups - 1) + 1
        return question.max_rows_per_group * (1 if question.caps_terms(total) else groups)

    def _sample_total(self, index: int) -> np.ndarray:
        unexpanded = replace(self.release, sample=None)
        return noisy_total(unexpanded, index, self.noisy, self.noises).scaled_values

    def _is_indicator(self, index: int, low: Fraction, high: Fraction, *, absent: bool = False) -> bool:
        """Return whether all values are at the ends of their range, and 0 too if units may be absent."""
        total = self.release.question.totals[index]
        return isinstance(total, Sum) and total.expr.type is Type.INTEGER and high - low <= 1 and not (absent and low)

    def _variance_measure(self, index: int) -> Variance | None:
        """Return a variance of the same values, if the query has one."""
        totals = self.release.question.totals
        variances = [each.estimator for each in self.release.measures if isinstance(each.estimator, Variance)]
        return next((each for each in variances if totals[each.total].expr == totals[index].expr), None)

    def _variance_of(self, index: int) -> np.ndarray | None:
        found = self._variance_measure(index)
        if found is None:
            return None
        population = replace(found, statistic=VarianceStatistic.VAR_POP)
        return estimate_measure(self.release, population, self.noisy, self.noises).values

    def _sum_of_squares(self, index: int) -> np.ndarray | None:
        found, variance = self._variance_measure(index), self._variance_of(index)
        if found is None or variance is None:
            return None
        mean = Mean(found.total, found.count, found.low, found.high)
        middle = estimate_measure(self.release, mean, self.noisy, self.noises).values
        count = np.maximum(self._sample_total(found.count), 0.0)
        squares: np.ndarray = np.nan_to_num(count * (variance + middle**2))
        return squares


def _bound_note(label: str, rows: int, *, estimated: bool) -> str:
    if rows > 1:
        return _ROWS_NOTE.format(label, rows)
    return "" if estimated else _RANGE_NOTE.format(label)


def _max_variance(means: np.ndarray, count: float | np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the largest variance of `count` values in a range with these means.

    The means are moved towards the middle by z² more values (Agresti and Coull), so that an estimated share of 0 has a
    sampling error.
    """
    centred = (np.clip(means, low, high) * count + _Z**2 * (low + high) / 2) / (count + _Z**2)
    variance: np.ndarray = (centred - low) * (high - centred)
    return variance
