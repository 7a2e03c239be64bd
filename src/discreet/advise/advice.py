"""Advice: contribution bounds and ranges that were chosen from released histograms, as numbers, text and TOML."""

import math
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.advise.advice_plan import AdvicePlan, ColumnToRange, Grouping
from discreet.advise.advice_plot import advice_figure
from discreet.advise.advice_text import advice_text
from discreet.advise.policy_lines import policy_lines
from discreet.advise.value_cells import ValueScale
from discreet.advise.value_range import ChosenRange, ValueCounts
from discreet.estimate.contribution_buckets import RadiusGoal, forecast_bias
from discreet.estimate.contribution_histogram import ChosenBounds, squared_radius
from discreet.kernel.ball import Norm
from discreet.kernel.loss import Loss
from discreet.kernel.question import ContributionBounds
from discreet.kernel.totals import Count
from discreet.policy.column_domains import Between, DeclaredColumn
from discreet.pricing.automatic_bounds import ContributionEvidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GAUSSIAN_MARGIN, _LAPLACE_MARGIN = 1.96, math.log(20) / math.sqrt(2)  # 95 % margins, in deviations


@dataclass(frozen=True, eq=False)
class BoundsAdvice:
    """Contribution bounds for one grouping: those whose margins are honest, and those of the least total error."""

    grouping: Grouping
    evidence: ContributionEvidence
    query_cost: Loss
    bounds: ChosenBounds
    least_error: ChosenBounds

    @property
    def norm(self) -> Norm:
        """The norm in which contributions are clipped."""
        return self.evidence.norm

    def radius(self, bounds: ChosenBounds) -> float:
        """Return the radius of bounds, in rows."""
        return math.sqrt(squared_radius(ContributionBounds(bounds.groups, bounds.rows, self.norm)))

    def margin(self, radius: float | np.ndarray) -> np.ndarray:
        """Return the margin of error of a group's count at a radius."""
        deviations = _LAPLACE_MARGIN if self.norm is Norm.L1 else _GAUSSIAN_MARGIN
        return np.asarray(deviations * self.evidence.noise_ratio(self.query_cost) * radius)

    def bias(self, probability: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the radii of the histogram, and a quantile of the forecast clipping bias of a group at each."""
        buckets = next(each for measured, each in self.evidence.buckets.items() if isinstance(measured, Count))
        forecast = forecast_bias(buckets, self.evidence.cells)
        return forecast.radii, forecast.quantile(probability)

    def bias_at(self, radius: float, probability: float) -> float:
        """Return a quantile of the forecast clipping bias at a radius, interpolated."""
        radii, biases = self.bias(probability)
        return float(np.interp(math.log(radius), np.log(radii), biases))


@dataclass(frozen=True, eq=False)
class RangeAdvice:
    """The range for a column, None if its histogram cannot tell; and the histogram. `units_needed` is what it takes."""

    target: ColumnToRange
    chosen: ChosenRange | None
    counts: ValueCounts
    units_needed: float
    rough: bool
    beyond_grid: bool

    @property
    def column(self) -> DeclaredColumn:
        """The column, declared with the range if there is one."""
        column, chosen = self.target.column, self.chosen
        if chosen is None:
            return column
        step = column.domain.step if isinstance(column.domain, Between) else None
        outside = column.domain.outside if isinstance(column.domain, Between) else "clip"
        low, high = self.ends
        return replace(column, domain=Between(low, high, step, outside))

    @property
    def ends(self) -> tuple[int | Fraction | date, int | Fraction | date]:
        """The ends of the range, in the column's type."""
        assert self.chosen is not None
        low, high = self.chosen.low, self.chosen.high
        if self.target.cells.scale is ValueScale.YEAR:
            return _first_day(low), _first_day(high) - timedelta(days=1)
        return (int(low), int(high)) if self.target.whole else (low, high)


def _first_day(month: Fraction) -> date:
    return date(int(month) // 12, int(month) % 12 + 1, 1)


@dataclass(frozen=True, eq=False)
class Advice:
    """Numbers for a policy that were chosen from released histograms only; `paid` is what was charged now.

    `str(advice)` is the report, `toml()` has the lines for the policy, `plot()` the pictures.
    """

    plan: AdvicePlan
    bounds: tuple[BoundsAdvice, ...]
    ranges: tuple[RangeAdvice, ...]
    cost: Loss
    paid: Loss
    receipts: tuple[str, ...]

    @property
    def noun(self) -> str:
        """The policy's noun for a privacy unit."""
        return self.plan.policy.data.protects

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that the advice is about, in the policy's order."""
        named = {each.grouping.table for each in self.bounds} | {each.target.table for each in self.ranges}
        return tuple(name for name in self.plan.policy.tables if name in named | set(self.plan.row_tables))

    def toml(self) -> str:
        """Return the lines to paste into the policy, with comments on how they were chosen and what was paid."""
        return policy_lines(self)

    def plot(self) -> "Figure":
        """Draw clipping bias and noise for each grouping, and the histogram of each column. Needs matplotlib."""
        return advice_figure(self)

    def __str__(self) -> str:
        return advice_text(self)

    def table_bounds(self, table: str) -> BoundsAdvice | None:
        """Return the advice for the first grouping of a table: the policy has one pair of bounds for all queries."""
        return next((each for each in self.bounds if each.grouping.table == table), None)


def bounds_advice(grouping: Grouping, evidence: ContributionEvidence, query_cost: Loss) -> BoundsAdvice:
    """Return the bounds of one grouping for queries at a cost."""
    return BoundsAdvice(
        grouping,
        evidence,
        query_cost,
        evidence.choose(query_cost, RadiusGoal.MARGINS),
        evidence.choose(query_cost, RadiusGoal.ERROR),
    )
