"""Release the histograms of advice one after the other, and choose the numbers from them."""

from collections.abc import Callable
from typing import Any, Protocol

from discreet.advise.advice import Advice, RangeAdvice, bounds_advice
from discreet.advise.advice_plan import AdvicePlan, ColumnToRange
from discreet.advise.value_cells import ValueCells
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
from discreet.kernel.errors import Refused
from discreet.kernel.event import OWNER
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.policy.declarations import AUTO, Bound
from discreet.pricing.automatic_bounds import ContributionEvidence
from discreet.pricing.remaining_budget import BudgetStatus, cost_in_budget

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
