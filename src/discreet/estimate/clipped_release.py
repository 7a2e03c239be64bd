"""A release whose contributions may be clipped, and the clipping bias of its released columns."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from discreet.answer.bias import POSSIBLE_BIAS, Bias
from discreet.estimate.contribution_buckets import ContributionBuckets, clipped_rows
from discreet.estimate.contribution_histogram import (
    Measured,
    effective_bounds,
    squared_radius,
)
from discreet.estimate.intervals import ReleaseNoise
from discreet.estimate.planned_release import (
    Measure,
    NoisyCount,
    NoisySum,
    PlannedRelease,
    estimate_measure,
    grouping_column,
)
from discreet.kernel.ball import Norm
from discreet.kernel.question import PublicGroups
from discreet.kernel.totals import Count, CountUnits, Sum, max_abs_contribution


@dataclass(frozen=True, eq=False)
class MeasuredClipping:
    """The contribution histogram of a release, and the radius of the ball that its contributions were clipped to.

    `counted` is the total that it is about: the histogram bounds what clipping removed from it, over all groups; of a
    sum only if its values have one sign.
    """

    buckets: ContributionBuckets
    radius: float
    counted: Measured

    @property
    def step(self) -> float:
        """The unit of the radius: the step of a sum, else 1."""
        return float(self.counted.grid.step) if isinstance(self.counted, Sum) else 1.0


@dataclass(frozen=True, eq=False)
class ClippedRelease:
    """A release whose contributions may be clipped, and the clipping if it was measured."""

    release: PlannedRelease
    table: pa.Table
    noises: tuple[ReleaseNoise, ...]
    measured: MeasuredClipping | None = None
    contribution_max: int | None = None

    @cached_property
    def groups(self) -> pa.Table:
        """The rows of the released table that are groups; of several grouping sets, those of the first."""
        if not self.release.grouping_sets or not self.table.num_rows:
            return self.table
        levels = np.stack([self.table.column(grouping_column(key)).to_numpy() for key in self.release.keys])
        return self.table.filter(pa.array((levels == levels[:, :1]).all(axis=0)))

    @cached_property
    def removed(self) -> Bias | None:
        """What clipping removed from the measured count, over all groups; None if it was not measured.

        The histogram bounds the excess of the norms. In one group, or in the l1 norm, that is what is removed. In the
        l2 norm, at least that is removed from all groups together; the estimate assumes that the units above the bounds
        are spread over the groups as all rows are. Only in one group is there an upper bound.
        """
        if self.measured is None:
            return None
        buckets = self.measured.buckets
        automatic = self.release.automatic  # a blind choice takes the declared radius, if there is one
        candidates = len(buckets.radii) + (automatic.declared is not None) if automatic else 1
        most = self.contribution_max and self.contribution_max * max_abs_contribution(self.measured.counted)
        excess = clipped_rows(buckets, self.measured.radius, most, candidates).scaled(self.measured.step)
        estimate = float(excess.estimate) * self.spread if excess.estimate else None  # nothing visible is no estimate
        return Bias(float(excess.low), estimate, excess.high if self.has_one_group else None)

    @cached_property
    def spread(self) -> float:
        """The l1 norm of a typical contribution, as a multiple of the norm that is bounded."""
        if self.has_one_group or self.release.question.bounds.norm is Norm.L1:
            return 1.0
        most = math.sqrt(min(self.cell_count, self.release.possible.groups or self.cell_count))
        counts = np.zeros(1) if self.count is None else np.maximum(self.groups.column(self.count.name).to_numpy(), 0)
        return min(most, float(counts.sum() / np.linalg.norm(counts))) if counts.any() else most

    @property
    def has_one_group(self) -> bool:
        """Whether the question has one group, whatever the data."""
        groups = self.release.question.groups
        return isinstance(groups, PublicGroups) and groups.key_count == 1

    @property
    def cell_count(self) -> int:
        """The number of groups: of the declared ones, or of those shown."""
        groups = self.release.question.groups
        return groups.key_count if isinstance(groups, PublicGroups) else max(1, int(self.groups.num_rows))

    @property
    def count(self) -> Measure | None:
        """The measured count or sum, if it is among the measures."""
        return next(filter(self.is_measured, self.release.measures), None)

    @property
    def count_in_all_groups(self) -> float | None:
        """The sum of the measured count over all groups; None without it, or if some groups may be hidden."""
        if not self.count or not isinstance(self.release.question.groups, PublicGroups):
            return None
        return float(self.groups.column(self.count.name).to_numpy().sum())

    @property
    def count_margin(self) -> float | None:
        """The margin of error of the measured count in a group; None without it."""
        if not self.count:
            return None
        zeros = np.zeros((1, len(self.release.question.totals)), np.int64)
        return float(estimate_measure(self.release, self.count.estimator, zeros, self.noises).margins[0])

    @property
    def expansion(self) -> float:
        """How many units of the population each unit stands for."""
        sample = self.release.sample
        return float(sample.expansion) if sample and sample.size else 1.0

    def is_measured(self, measure: Measure) -> bool:
        """Return whether a measure is the count, or the sum of values above zero, that the histogram is about."""
        estimator = measure.estimator
        if self.measured is None or not isinstance(estimator, NoisyCount | NoisySum):
            return False
        total = self.release.question.totals[estimator.total]
        if isinstance(total, Sum):
            return replace(total, max_term=None) == self.measured.counted and total.grid.first >= 0
        return total == self.measured.counted

    def counts_units(self, measure: Measure) -> bool:
        """Return whether a measure is COUNT(DISTINCT unit)."""
        estimator, totals = measure.estimator, self.release.question.totals
        return isinstance(estimator, NoisyCount) and isinstance(totals[estimator.total], CountUnits)

    def may_bias(self, measure: Measure) -> bool:
        """Return whether clipping can change a measure; a number of units is clipped by groups only."""
        return not self.counts_units(measure) or _can_exceed_groups(self.release, self.contribution_max)

    def bias_of(self, measure: Measure) -> list[Bias]:
        """Return the bias of a measure that clipping can change, in each row of the released table."""
        rows = int(self.table.num_rows)
        if self.removed is None or not self.is_measured(measure) or self.counts_units(measure):
            return [POSSIBLE_BIAS] * rows
        removed = self.removed.scaled(self.expansion)
        return [removed] * rows if self.has_one_group else self._spread(measure, removed.estimate)

    def _spread(self, measure: Measure, estimate: float | None) -> list[Bias]:
        """Return the share of each group in the estimate, in proportion to its released count."""
        counts = np.maximum(self.table.column(measure.name).to_numpy(), 0).astype(np.float64)
        if estimate is None or not counts.any():
            return [POSSIBLE_BIAS] * len(counts)
        all_groups = np.maximum(self.groups.column(measure.name).to_numpy(), 0).sum()
        return [Bias(0, share) for share in (estimate * (counts / max(all_groups, 1))).tolist()]


def can_be_clipped(release: PlannedRelease, contribution_max: int | None = None) -> bool:
    """Return whether a unit can contribute more than the bounds allow; never to a histogram, with one row per unit.

    `contribution_max` is the largest number of rows of a unit by the owner's statement.
    """
    question, possible = release.question, release.possible
    if not question.needs_clipping:
        return False
    if question.bounds.cap_rows or not all(isinstance(total, Count | CountUnits | Sum) for total in question.totals):
        rows = _least(possible.rows, contribution_max)
        too_many_rows = rows is None or rows > question.max_rows_per_group
        return too_many_rows or _can_exceed_groups(release, contribution_max)
    shape = question.relation.shape
    most = min(shape.max_rows, _least(shape.max_rows_per_unit, contribution_max) or shape.max_rows)
    return possible.squared_norm(question.bounds.norm, most) > squared_radius(effective_bounds(question))


def _can_exceed_groups(release: PlannedRelease, contribution_max: int | None) -> bool:
    groups = _least(release.possible.groups, contribution_max)  # each group of a unit has a row
    return release.question.needs_l0_clipping and (groups is None or groups > release.question.bounds.groups)


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
