"""Build a release from a SELECT with aggregates: one question, and a SELECT over the released table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.estimate.estimators import NumberKind, VarianceStatistic
from discreet.estimate.planned_release import (
    Frequencies,
    FrequencyFunction,
    Mean,
    Measure,
    NoisyCount,
    NoisySum,
    PairMeasure,
    PlannedRelease,
    Quantile,
    QuantileMethod,
    TotalsEstimator,
    Variance,
    centre_of,
    grouping_column,
)
from discreet.estimate.quantile_walk import QuantileTarget, tree_shape_for
from discreet.kernel.expr import Expr, Type
from discreet.kernel.grid import Grid
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import PublicGroups, Question, SelectedGroups
from discreet.kernel.totals import Count, CountDistinct, CountUnits, HistogramTree, SelectionWeight, Total
from discreet.query.aggregation.additive_aggregates import (
    Aggregate,
    BasicFunction,
    PairAggregate,
    SelectedAggregate,
    bind_aggregate,
    count_operand,
)
from discreet.query.aggregation.contribution_bounds import (
    bounds_notes,
    contribution_bounds_for,
    left_out_note,
    limit_selection,
    possible_contribution,
)
from discreet.query.aggregation.group_keys import GroupedSelect, GroupRewriter, RowGrouping, group_rows
from discreet.query.aggregation.quantile_aggregates import ValueAggregate
from discreet.query.aggregation.sum_grids import Scale, SumTotals, max_magnitude, product_total, sum_totals
from discreet.query.relations.bound_sources import BindContext, ColumnInfo
from discreet.query.syntax.resolved_query import FromItem, Reference, ResolvedSelect, ResolvedTable, computed_column
from discreet.query.syntax.syntax_tree import NestedQuery, refuse

_FULL_WEIGHT = Fraction(1)
# When the count changes by one, a mean changes in proportion to its distance from the centre: at most half the range,
# typically a quarter of it, hence this weight for squared margins.
_COUNT_WEIGHT = Fraction(1, 4)
_SELECTION_WEIGHT = Fraction(2)  # of one quantile and its margin, each of which is a selection
_MAX_SELECTED = {Laplace: 1, Gaussian: 3}  # quantiles of an expression; for more, a tree is more accurate
_MOST_CHOSEN_GROUPS, _MOST_CHOSEN_ROWS = 8, 1 << 20  # automatic bounds are rarely larger
_MAX_SELECTED_GROUPS = 10_000  # a selection takes a fraction of a millisecond for each group


_SUBTOTALS_NOTE = "Subtotals are over the groups that are shown."


class TotalsBuilder:
    """Collects the totals of one question in order of first use, with their weights."""

    def __init__(
        self,
        columns: Mapping[str, ColumnInfo],
        fits: Callable[[Total], bool],
        noise_type: type[Laplace | Gaussian],
        groups: PublicGroups | SelectedGroups,
        *,
        same_weights: bool,
    ) -> None:
        self._columns = columns
        self._same_weights = same_weights
        self._group_count = groups.key_count if isinstance(groups, PublicGroups) else 0
        self._noise_type = noise_type
        self._fits = fits
        self._weights: dict[Total, Fraction] = {}
        self._squared: set[Expr | None] = set()
        self._unit_count: Total = CountUnits()
        if isinstance(groups, SelectedGroups):
            self._weights[SelectionWeight()] = _FULL_WEIGHT
            if groups.max_groups == 1:  # then a unit's only key has all of its weight
                self._unit_count = SelectionWeight()
        self._indices = {total: index for index, total in enumerate(self._weights)}

    def estimators(self, aggregates: Sequence[SelectedAggregate]) -> list[TotalsEstimator]:
        """Return the estimator of each aggregate."""
        additive = [aggregate for aggregate in aggregates if isinstance(aggregate, Aggregate)]
        pairs = [aggregate for aggregate in aggregates if isinstance(aggregate, PairAggregate)]
        values = [aggregate for aggregate in aggregates if isinstance(aggregate, ValueAggregate)]
        counting = [
            each
            for each in additive
            if each.function not in (BasicFunction.COUNT_UNITS, BasicFunction.SUM, BasicFunction.COUNT_DISTINCT)
        ]
        counts = {self._count_operand(expr) for expr in [each.expr for each in counting] + [p.counted for p in pairs]}
        self._squared = {each.expr for each in additive if isinstance(each.function, VarianceStatistic)}
        self._squared |= {each.x.expr for each in pairs if each.function.uses_x_squares}
        self._squared |= {each.y.expr for each in pairs if each.function.uses_y_squares}
        return [
            self._additive_estimator(aggregate, counts)
            if isinstance(aggregate, Aggregate)
            else self._pair_estimator(aggregate)
            if isinstance(aggregate, PairAggregate)
            else self._value_estimator(aggregate, values)
            for aggregate in aggregates
        ]

    def totals_and_weights(self) -> tuple[tuple[Total, ...], tuple[Fraction, ...]]:
        """Return the totals and their weights; COUNT(*) if there is no total."""
        if not self._weights:
            self._add_total(Count(), _FULL_WEIGHT)
        return tuple(self._weights), tuple(weight.limit_denominator(100) for weight in self._weights.values())

    def _count_operand(self, expr: Expr | None) -> Expr | None:
        return None if expr is None else count_operand(expr, self._columns)

    def _add_total(self, total: Total, weight: Fraction) -> int:
        self._weights[total] = self._weights.get(total, Fraction(0)) + weight
        return self._indices.setdefault(total, len(self._indices))

    def _sum_totals(self, expr: Expr, scale: Scale) -> SumTotals:
        return sum_totals(expr, scale, self._fits, squared=expr in self._squared)

    def _additive_estimator(self, aggregate: Aggregate, counts: set[Expr | None]) -> TotalsEstimator:
        if aggregate.function is BasicFunction.COUNT:
            return NoisyCount(self._add_total(Count(self._count_operand(aggregate.expr)), _FULL_WEIGHT))
        if aggregate.function is BasicFunction.COUNT_UNITS:
            units = self._unit_count if aggregate.expr is None else CountUnits(aggregate.expr)
            return NoisyCount(self._add_total(units, _FULL_WEIGHT))
        expr, scale = aggregate.expr, aggregate.scale
        assert expr is not None
        if aggregate.function is BasicFunction.COUNT_DISTINCT:
            return NoisyCount(self._add_total(CountDistinct(expr), _FULL_WEIGHT))
        assert scale is not None
        candidates, count = self._sum_totals(expr, scale), self._count_operand(expr)
        if aggregate.function is BasicFunction.SUM:
            kind = NumberKind.WHOLE if expr.type is Type.INTEGER else NumberKind.REAL
            return (
                self._centred_sum(candidates, count, kind)
                if self._same_weights and count in counts and _centring_helps(candidates)
                else NoisySum(self._add_total(candidates.uncentred, _FULL_WEIGHT), kind)
            )
        total, divisor = self._add_total(candidates.centred, _FULL_WEIGHT), self._add_total(Count(count), _COUNT_WEIGHT)
        if aggregate.function is BasicFunction.AVG:
            return Mean(total, divisor, scale.low, scale.high)
        return Variance(
            self._add_total(candidates.squares, _FULL_WEIGHT), total, divisor, scale.low, scale.high, aggregate.function
        )

    def _pair_estimator(self, pair: PairAggregate) -> TotalsEstimator:
        scales = [aggregate.scale for aggregate in (pair.x, pair.y) if aggregate.scale is not None]
        sums = [
            self._sum_totals(aggregate.expr, scale)
            for aggregate, scale in zip((pair.x, pair.y), scales, strict=True)
            if aggregate.expr is not None
        ]
        product = self._add_total(product_total(sums[0].centred, sums[1].centred, self._fits), _FULL_WEIGHT)
        x, y = (self._add_total(each.centred, _FULL_WEIGHT) for each in sums)
        count = self._add_total(Count(self._count_operand(pair.counted)), _COUNT_WEIGHT)
        uses = pair.function.uses_x_squares, pair.function.uses_y_squares
        squares = [
            self._add_total(each.squares, _FULL_WEIGHT) if used else None for each, used in zip(sums, uses, strict=True)
        ]
        ends = [(scale.low, scale.high) for scale in scales]
        return PairMeasure(product, x, y, count, squares[0], squares[1], ends[0], ends[1], pair.function)

    def _value_estimator(self, aggregate: ValueAggregate, others: Sequence[ValueAggregate]) -> TotalsEstimator:
        if isinstance(aggregate.function, FrequencyFunction):
            total = HistogramTree(aggregate.expr, aggregate.values, branching=len(aggregate.values), depth=1)
            return Frequencies(self._add_total(total, _FULL_WEIGHT), aggregate.function)
        assert aggregate.scale is not None
        grid = Grid(aggregate.scale.low, aggregate.scale.high, aggregate.scale.step)
        cells, method = grid.last - grid.first + 1, self._quantile_method(aggregate, others)
        if method is QuantileMethod.SELECTION:
            fan, depth, weight = cells, 1, _SELECTION_WEIGHT
        else:
            fan, depth = tree_shape_for(cells, power=2 if self._noise_type is Laplace else 1)
            weight = Fraction(depth)
        index = self._add_total(HistogramTree(aggregate.expr, grid, fan, depth), weight)
        return Quantile(index, aggregate.function, method, aggregate.kind, aggregate.origin)

    def _quantile_method(self, aggregate: ValueAggregate, others: Sequence[ValueAggregate]) -> QuantileMethod:
        """Return the more accurate method for the quantiles of an expression; all of them share it.

        A selection pays for each quantile, a tree once for all. MIN and MAX are found by the tree.
        """
        levels = {
            each.function.level
            for each in others
            if isinstance(each.function, QuantileTarget)
            and (each.expr, each.scale) == (aggregate.expr, aggregate.scale)
        }
        few = len(levels) <= _MAX_SELECTED[self._noise_type] and not levels & {0, 1}
        return QuantileMethod.SELECTION if few and self._group_count <= _MAX_SELECTED_GROUPS else QuantileMethod.TREE

    def _centred_sum(self, candidates: SumTotals, count: Expr | None, kind: NumberKind) -> NoisySum:
        reference = max_magnitude(candidates.uncentred) ** 2
        total = self._add_total(candidates.centred, max_magnitude(candidates.centred) ** 2 / reference)
        return NoisySum(total, kind, self._add_total(Count(count), centre_of(candidates.centred) ** 2 / reference))


def _centring_helps(candidates: SumTotals) -> bool:
    """Return whether a sum is more accurate if computed from the centred sum and a count that is released anyway.

    With values in [c - h, c + h], the sum alone needs noise for |c| + h. The two totals need independent noise for h
    and for |c|, with variances that add up, and h² + c² < (|c| + h)² unless c = 0.
    """
    return (
        max_magnitude(candidates.centred) ** 2 + centre_of(candidates.centred) ** 2
        < max_magnitude(candidates.uncentred) ** 2
    )


def build_release(
    grouped: GroupedSelect, context: BindContext, bind_subquery: Callable[[NestedQuery], exp.Expr]
) -> ResolvedSelect:
    """Return a SELECT over a released table; HAVING, ORDER BY and later clauses are computed from noisy values."""
    labels: dict[SelectedAggregate, str] = {}
    places: dict[SelectedAggregate, int] = {}
    select, ref = grouped.select, f"{grouped.select.ref}r"
    key_names = [f"k{place}" for place in range(len(grouped.keys))]
    columns = list(key_names) + [grouping_column(name) for name in key_names]  # and then the aggregates, as they come

    def column(place: int, node: exp.Expr) -> exp.Column:
        return computed_column(columns[place], Reference(ref, place), node)

    def measure(node: exp.Expr) -> exp.Column:
        aggregate = bind_aggregate(node, grouped.rows)
        if aggregate not in places:
            places[aggregate] = len(columns)
            columns.append(f"m{len(labels)}")
            labels[aggregate] = _aggregate_label(node)
        return column(places[aggregate], node)

    rewriter = GroupRewriter(
        grouped,
        column,
        measure,
        lambda place, node: column(len(key_names) + place, node),
        bind_subquery,
    )
    outer = _outer_select(select, rewriter)
    if not labels and not grouped.keys:
        cause = "the SELECT list has only constants"
        raise refuse(select.node, "SELECT", cause, "Add an aggregate such as COUNT(*), or group by a column.")
    release = _planned_release(grouped, labels, group_rows(grouped.rows, grouped.keys, context), context)
    table = ResolvedTable(release, tuple(columns), is_single_row=not grouped.keys)
    return replace(outer, sources=(FromItem(ref, None, table, table.columns, select.node),))


def _aggregate_label(node: exp.Expr) -> str:
    """Return an aggregate as the query wrote it (sqlglot rewrites MEDIAN)."""
    if isinstance(node, exp.Median):
        return f"MEDIAN({node.this.sql(dialect='postgres')})"
    return node.sql(dialect="postgres")


def _outer_select(select: ResolvedSelect, rewriter: GroupRewriter) -> ResolvedSelect:
    """Return the SELECT over the released table, without its FROM."""

    def over_groups(node: exp.Expr | None, clause: str) -> exp.Expr | None:
        return None if node is None else rewriter.rewrite(node, clause)

    return replace(
        select,
        items=tuple(replace(item, node=rewriter.rewrite(item.node, "SELECT")) for item in select.items),
        where=over_groups(select.having, "HAVING"),
        where_clause="HAVING",
        group=None,
        having=None,
        qualify=over_groups(select.qualify, "QUALIFY"),
        order=tuple(replace(term, expression=over_groups(term.expression, "ORDER BY")) for term in select.order),
        distinct=select.distinct and select.group is not None,
    )


def _check_subtotals(grouped: GroupedSelect, labels: Mapping[SelectedAggregate, str], *, one_group: bool) -> None:
    """Refuse aggregates that cannot be computed for several groups together from those of each."""
    hint = "Leave it out, or write one SELECT per grouping set and combine them with UNION ALL."
    for aggregate, label in labels.items():
        counts_units = aggregate.function is BasicFunction.COUNT_UNITS and not one_group
        if isinstance(aggregate, ValueAggregate) or aggregate.function is BasicFunction.COUNT_DISTINCT or counts_units:
            raise refuse(grouped.select.node, "GROUP BY", f"subtotals of {label} do not follow from its groups", hint)


def _planned_release(
    grouped: GroupedSelect, labels: dict[SelectedAggregate, str], grouping: RowGrouping, context: BindContext
) -> PlannedRelease:
    relation = grouping.rows.relation
    possible = possible_contribution(grouping, list(labels))
    grouping_sets = tuple(tuple(f"k{place}" for place in places) for places in grouped.grouping_sets)
    if grouping_sets:
        _check_subtotals(grouped, labels, one_group=possible.groups == 1)
    limit, automatic = contribution_bounds_for(grouping, list(labels), possible, context, grouped)
    groups = limit_selection(grouping, limit)

    # The steps of a sum must not depend on a chosen radius, or the same query would not find its earlier answers.
    widest = replace(limit, groups=max(limit.groups, _MOST_CHOSEN_GROUPS), rows=max(limit.rows, _MOST_CHOSEN_ROWS))

    def fits(total: Total) -> bool:
        try:
            Question(relation, (), PublicGroups(()), widest if automatic else limit, (total,))
        except ValueError:
            return False
        return True

    noise_type = Laplace if context.policy.budget.rho is None else Gaussian
    # Where a sum and its count are clipped each in a ball of its own, the count does not belong to the sum.
    same_weights = limit.cap_rows or relation.shape.unit is None or relation.shape.max_rows_per_unit == 1
    builder = TotalsBuilder(grouping.rows.columns_by_name(), fits, noise_type, groups, same_weights=same_weights)
    try:
        estimators = builder.estimators(list(labels))
        totals, weights = builder.totals_and_weights()
        question = Question(relation, grouping.by, groups, limit, totals)
    except ValueError as error:
        hint = "Select fewer aggregates, or values with a smaller range."
        raise refuse(grouped.select.node, "SELECT", f"the query cannot be computed exactly: {error}", hint) from None
    measures = tuple(
        Measure(f"m{index}", label, estimator)
        for index, (label, estimator) in enumerate(zip(labels.values(), estimators, strict=True))
    )
    keys = tuple(name for name, _ in grouping.by)
    notes = bounds_notes(question, labels, grouping.rows, context, automatic)
    return PlannedRelease(
        "",
        question,
        keys,
        measures,
        weights,
        (*notes, *([_SUBTOTALS_NOTE] if grouping_sets else [])),
        sample=context.policy.sample,
        possible=possible,
        automatic=automatic,
        left_out=left_out_note(question, grouping.rows),
        grouping_sets=grouping_sets,
    )
