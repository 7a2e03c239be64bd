"""Advice: contribution bounds and ranges that were chosen from released histograms, as numbers, text and TOML."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet.advise.advice_plan import AdvicePlan, ColumnToRange, Grouping
from discreet.advise.advice_plot import advice_figure
from discreet.advise.advice_text import advice_text, policy_lines
from discreet.advise.value_cells import ValueCells, ValueScale
from discreet.advise.value_range import (
    UNITS_PER_DEVIATION,
    ChosenRange,
    ValueCounts,
    chosen_range,
    coarse_range,
    read_counts,
    refined_cells,
)
from discreet.answer.model import Answer, Explanation
from discreet.estimate.contribution_buckets import RadiusGoal, forecast_bias
from discreet.estimate.contribution_histogram import ChosenBounds, squared_radius
from discreet.kernel.ball import Norm
from discreet.kernel.errors import Refused
from discreet.kernel.event import OWNER
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.question import ContributionBounds
from discreet.kernel.totals import Count
from discreet.policy.column_domains import Between, DeclaredColumn
from discreet.policy.declarations import AUTO, Bound
from discreet.pricing.automatic_bounds import ContributionEvidence
from discreet.pricing.remaining_budget import BudgetStatus, cost_in_budget

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


Progress = Callable[[str], None]


class Releasing(Protocol):
    """The methods of a curator that advice needs; each checks and charges its own cost."""

    def ask(  # noqa: PLR0913 - as Curator's
        self,
        sql: str,
        *,
        by: str = OWNER,
        epsilon: Any = None,
        rho: Any = None,
        groups: Bound | None = None,
        rows: Bound | None = None,
    ) -> Answer:
        """Answer a query."""

    def explain(  # noqa: PLR0913 - as Curator's
        self,
        sql: str,
        *,
        by: str = OWNER,
        epsilon: Any = None,
        rho: Any = None,
        groups: Bound | None = None,
        rows: Bound | None = None,
    ) -> Explanation:
        """Forecast the cost of a query."""

    def contribution_histograms(
        self, sql: str, *, by: str = OWNER, epsilon: Any = None, rho: Any = None
    ) -> ContributionEvidence:
        """Release the contribution histograms of a query."""

    def budget(self, by: str | None = None, *, dataset: str | None = None) -> BudgetStatus:
        """Return the remaining budget."""


class _Receipts:
    """What was paid, and the ledger entries."""

    def __init__(self) -> None:
        self.cost, self.paid = ZERO_LOSS, ZERO_LOSS
        self.ids: dict[str, None] = {}

    def add(self, cost: Loss, paid: Loss | None, *receipts: str) -> None:
        """Add one histogram."""
        self.cost += cost
        self.paid += paid or ZERO_LOSS
        self.ids |= dict.fromkeys(receipts)


def give_advice(curator: Releasing, plan: AdvicePlan, progress: Progress) -> Advice:
    """Release the histograms of a plan, unless they are stored, and choose from them."""
    check_plan(curator, plan)
    receipts = _Receipts()
    bounds = []
    for grouping in plan.groupings:
        progress(f"contribution histogram of {grouping.table}" + f" by {grouping.keys}" * bool(grouping.keys))
        evidence = curator.contribution_histograms(grouping.sql, **plan.share)
        receipts.add(evidence.cost, evidence.paid, *evidence.receipts)
        bounds.append(bounds_advice(grouping, evidence, plan.query_cost))
    ranges = [_range_advice(curator, plan, column, receipts, progress) for column in plan.columns]
    return Advice(plan, tuple(bounds), tuple(ranges), receipts.cost, receipts.paid, tuple(receipts.ids))


def check_plan(curator: Releasing, plan: AdvicePlan) -> None:
    """Refuse, before anything is charged, what the front end or the budget refuses."""
    for grouping in plan.groupings:
        curator.explain(grouping.sql, groups=AUTO, rows=AUTO, **plan.share)
    forecasts = [_explain(curator, plan, column) for column in plan.columns]
    remaining, cost = curator.budget().remaining, plan.cost
    left = remaining.rho if cost.epsilon is None else remaining.epsilon
    needed = cost.rho if cost.epsilon is None else cost.epsilon
    is_stored = bool(forecasts) and all(each.paid == ZERO_LOSS for each in forecasts)
    if needed > left and not is_stored:
        text = cost_in_budget(cost, plan.policy.budget)
        raise Refused(
            f"epsilon: not enough budget left: advice needs {text}; epsilon {float(remaining.epsilon):g} remains."
        )


def _explain(curator: Releasing, plan: AdvicePlan, column: ColumnToRange) -> Explanation:
    sql = column.cells.count_sql(column.table, column.column.name)
    return curator.explain(sql, groups=1, rows=1, **plan.share)


def _range_advice(
    curator: Releasing, plan: AdvicePlan, target: ColumnToRange, receipts: _Receipts, progress: Progress
) -> RangeAdvice:
    """Count the values of a column by coarse cells, then by finer ones at both ends."""
    name = f"{target.table}.{target.column.name}"
    progress(f"histogram of {name}")
    counts = _count_values(curator, plan, target, target.cells, receipts)
    coarse = coarse_range(counts)
    chosen: ChosenRange | None = None
    if coarse is not None:
        progress(f"finer histogram of {name}")
        cells = refined_cells(coarse, whole=target.whole)
        fine = _count_values(curator, plan, target, cells, receipts)
        chosen = chosen_range(coarse, counts, fine, whole=target.whole)
    needed = UNITS_PER_DEVIATION * counts.deviation
    return RangeAdvice(
        target, chosen, counts, needed, bool(coarse and coarse.rough), bool(coarse and coarse.beyond_grid)
    )


def _count_values(
    curator: Releasing, plan: AdvicePlan, target: ColumnToRange, cells: ValueCells, receipts: _Receipts
) -> ValueCounts:
    """Release the noisy counts of a column's values; each unit's rows are clipped to the weight of one row."""
    answer = curator.ask(cells.count_sql(target.table, target.column.name), groups=1, rows=1, **plan.share)
    assert answer.receipt is not None
    receipts.add(answer.loss, answer.paid, answer.receipt.id)
    return read_counts(answer, cells, is_laplace=plan.cost.epsilon is not None)
