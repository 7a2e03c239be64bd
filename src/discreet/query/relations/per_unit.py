"""GROUP BY the unit: one private row per unit and key, with exact aggregates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from operator import itemgetter

from sqlglot import exp

from discreet.kernel.expr import AggregateFunction, Call, Column, Constant, Expr, Type, UnitAggregate
from discreet.kernel.relation import Derive, JoinKind, JoinOnUnit, NumberRows, PerUnit, Relation, Where
from discreet.query.aggregation.additive_aggregates import check_arguments, split_filter
from discreet.query.aggregation.group_keys import GroupedSelect, GroupKey, GroupRewriter, key_domain
from discreet.query.aggregation.quantile_aggregates import null_unless
from discreet.query.aggregation.sum_grids import Scale, finest_grid
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.operands import TYPE_NAMES
from discreet.query.relations.bound_sources import (
    ColumnInfo,
    PrivateSource,
    View,
    bind_clamped,
    bind_stored,
    without_clip,
)
from discreet.query.relations.ownership import (
    determines_unit,
    is_unique,
    unit_key_index,
)
from discreet.query.relations.predicates import conjuncts, filter_rows
from discreet.query.relations.projection import check_row_clauses, complete_order, computed_info, project
from discreet.query.syntax.resolved_query import Reference, computed_column
from discreet.query.syntax.syntax_tree import NO_SUBQUERY, NestedQuery, build_or_refuse, function_name, refuse

_ONE = Constant(1, Type.INTEGER)
_EXTREMES: dict[type[exp.Expr], AggregateFunction] = {
    exp.Min: AggregateFunction.MIN,
    exp.Max: AggregateFunction.MAX,
    exp.LogicalAnd: AggregateFunction.MIN,
    exp.LogicalOr: AggregateFunction.MAX,
}
_ARGUMENTS: dict[type[exp.Expr], bool] = {exp.ArgMin: False, exp.ArgMax: True}  # whether the order is descending
CombineParts = Callable[[tuple[Expr, ...]], Expr]


@dataclass(frozen=True)
class PerUnitAggregate:
    """An aggregate per unit: its parts, how they are combined, and public facts about the result."""

    parts: tuple[UnitAggregate, ...]
    info: ColumnInfo  # still without a name and a column of its own
    combine: CombineParts = itemgetter(0)


def per_unit_aggregate(node: exp.Expr, rows: PrivateSource) -> PerUnitAggregate:
    """Bind an aggregate over the rows of one unit."""
    call, when = split_filter(node, rows)
    check_arguments(call)
    if isinstance(call, exp.Count):
        return _per_unit_count(call, rows, when)
    if type(call) in _EXTREMES:
        return _per_unit_extreme(call, rows, when)
    if isinstance(call, exp.Sum | exp.Avg) and not isinstance(call.this, exp.Distinct):
        return _per_unit_sum(call, rows, when)
    hint = "Supported: COUNT, COUNT(DISTINCT …), MIN, MAX, ARG_MIN, ARG_MAX, SUM, AVG, BOOL_AND and BOOL_OR."
    raise refuse(call, "SELECT", f"{function_name(call)} per unit is not supported", hint)


def _per_unit_count(call: exp.Count, rows: PrivateSource, when: Expr | None) -> PerUnitAggregate:
    if isinstance(call.this, exp.Star):
        counted = null_unless(_ONE, when)
        aggregate = UnitAggregate(AggregateFunction.COUNT, counted) if when else UnitAggregate(AggregateFunction.ROWS)
        info = ColumnInfo("", BoundExpr(_ONE, Fraction(when is None)), never_null=True)
        return PerUnitAggregate((aggregate,), info)
    distinct = isinstance(call.this, exp.Distinct)
    nodes = call.this.expressions if distinct else [call.this]
    if len(nodes) != 1 or isinstance(nodes[0], exp.Tuple) or call.expressions:
        raise refuse(call, "COUNT", "COUNT takes one expression here", "Count one column, or *.")
    bound = bind_stored(nodes[0], rows.views, "COUNT")
    aggregate = UnitAggregate(
        AggregateFunction.DISTINCT if distinct else AggregateFunction.COUNT, null_unless(bound.expr, when)
    )
    domain = key_domain(bound.expr, rows.columns_by_name()) if distinct else None
    upper = None if domain is None else Fraction(len(domain))
    return PerUnitAggregate((aggregate,), ColumnInfo("", BoundExpr(_ONE, Fraction(0), upper), never_null=True))


def _per_unit_extreme(call: exp.Expr, rows: PrivateSource, when: Expr | None) -> PerUnitAggregate:
    name = function_name(call)
    bound = bind_clamped(call.this, rows.views, name)
    columns, expr = rows.columns_by_name(), without_clip(bound.expr)
    aggregate = UnitAggregate(_EXTREMES[type(call)], null_unless(bound.expr, when))
    extreme_bound = BoundExpr(
        bound.expr, bound.low, bound.high, bound.step, unit_key_index=unit_key_index(expr, columns)
    )
    null_is_group = extreme_bound.unit_key_index is not None and when is not None
    info = ColumnInfo("", extreme_bound, lambda: key_domain(expr, columns), null_is_group=null_is_group)
    return PerUnitAggregate((aggregate,), info)


def _per_unit_sum(call: exp.Expr, rows: PrivateSource, when: Expr | None) -> PerUnitAggregate:
    name = function_name(call)
    bound = bind_clamped(call.this, rows.views, name)
    expr = null_unless(without_clip(bound.expr), when)
    if bound.type is Type.INTEGER:
        aggregate, step = UnitAggregate(AggregateFunction.SUM, null_unless(bound.expr, when)), None
    elif bound.type is not Type.REAL:
        cause = f"{name} needs a number, not {TYPE_NAMES[bound.type]}"
        raise refuse(call, name, cause, "Write CASE WHEN … THEN 1 ELSE 0 END.")
    elif isinstance(bound.low, Fraction) and isinstance(bound.high, Fraction):
        grid = finest_grid(
            Scale.with_default_step(bound.low, bound.high, bound.step, bound.type), rows.relation.shape.max_rows
        )
        aggregate, step = UnitAggregate(AggregateFunction.GRID_SUM, expr, grid), grid.step
    else:
        cause = f"{name} of double precision values needs bounds"
        raise refuse(call, name, cause, f"Write {name}(CLIP(…, low, high)) with bounds of your choice.")
    if isinstance(call, exp.Avg):
        count = UnitAggregate(AggregateFunction.COUNT, expr)
        return PerUnitAggregate(
            (aggregate, count),
            ColumnInfo("", BoundExpr(_ONE, bound.low, bound.high)),
            lambda parts: _mean_of(parts, step),
        )
    return PerUnitAggregate(
        (aggregate,), ColumnInfo("", _sum_range(bound, rows)), lambda parts: _steps_to_value(parts[0], step)
    )


def _first_value(node: exp.Expr, rows: PrivateSource, name: str) -> tuple[Relation, ColumnInfo]:
    """Bind ARG_MIN(x, y) or ARG_MAX(x, y): x where y is least or greatest; of equal ones, the least x.

    Rows where x or y is NULL are left out, as in DuckDB. The relation has at most one row per unit.
    """
    call, when = split_filter(node, rows)
    check_arguments(call)
    label = function_name(call)
    if call.args.get("count") or call.expression is None:
        raise refuse(call, label, f"{label} takes two expressions", f"Write {label}(x, y).")
    value, by = (bind_stored(each, rows.views, label) for each in (call.this, call.expression))
    columns = rows.columns_by_name()
    present = [Call("not", (Call("is_null", (each.expr,)),)) for each in (value, by)]
    order = complete_order(((Column("by", by.type), _ARGUMENTS[type(call)]),), {name: value.type})

    def build() -> Relation:
        candidates = Where(rows.relation, Call("and", (*present, *([] if when is None else [when]))))
        derived = Derive(candidates, ((name, value.expr), ("by", by.expr)))
        return Derive(NumberRows(derived, "number", (), order, last=1), ((name, Column(name, value.type)),))

    bound = BoundExpr(Column(name, value.type), value.low, value.high, value.step)
    info = ColumnInfo(name, bound, lambda: key_domain(value.expr, columns), unique=is_unique(value.expr, columns))
    return build_or_refuse(build, call, label), info


def _sum_range(bound: BoundExpr, rows: PrivateSource) -> BoundExpr:
    """Return the range of a unit's sum, if the number of rows per unit is bounded."""
    max_rows = rows.relation.shape.max_rows_per_unit
    if max_rows is None or not isinstance(bound.low, Fraction) or not isinstance(bound.high, Fraction):
        return BoundExpr(bound.expr)
    return BoundExpr(bound.expr, min(bound.low, bound.low * max_rows), max(bound.high, bound.high * max_rows))


def _steps_to_value(total: Expr, step: Fraction | None) -> Expr:
    """Convert a number of grid steps to a value."""
    if step is None:
        return total
    return Call("multiply", (Call("to_real", (total,)), Constant(float(step), Type.REAL)))


def _mean_of(parts: tuple[Expr, ...], step: Fraction | None) -> Expr:
    total = _steps_to_value(parts[0], step)
    total = total if total.type is Type.REAL else Call("to_real", (total,))
    return Call("divide", (total, Call("to_real", (parts[1],))))


_UNIT_REF = "unit"  # the source of the per-unit columns, while the SELECT list is bound


def is_per_unit(keys: Sequence[GroupKey], rows: PrivateSource) -> bool:
    """Return whether every group belongs to one unit: the keys include the unit's key or determine it."""
    return determines_unit([key.bound.expr for key in keys], rows)


def group_by_unit(grouped: GroupedSelect) -> PrivateSource:
    """Bind a SELECT that groups by the unit."""
    select = grouped.select
    check_row_clauses(select)
    if select.distinct and select.group:
        hint = "Leave out DISTINCT: there is already one row per unit and key."
        raise refuse(select.node, "SELECT", "DISTINCT cannot be combined with GROUP BY the unit", hint)
    builder = _PerUnitBuilder(grouped.keys, grouped.rows)
    rewriter = GroupRewriter(grouped, builder.key_column, builder.add_aggregate, builder.key_column, _refuse_subquery)
    output = [replace(item, node=rewriter.rewrite(item.node, "SELECT")) for item in select.items]
    conditions = [rewriter.rewrite(node, "HAVING") for node in conjuncts(select.having)]
    return project(output, filter_rows(builder.build(), conditions, "HAVING"))


def _refuse_subquery(query: NestedQuery) -> exp.Expr:
    raise refuse(query, "SELECT", *NO_SUBQUERY)


class _PerUnitBuilder:
    """Collects the per-unit columns while the SELECT list is bound."""

    def __init__(self, keys: Sequence[GroupKey], rows: PrivateSource) -> None:
        self._keys = keys
        self._rows = rows
        self._columns = rows.columns_by_name()
        self._aggregates: dict[UnitAggregate, str] = {}
        self._computed: dict[Expr, ColumnInfo] = {}  # the columns after the keys, in their order
        self._first_values: dict[exp.Expr, tuple[Relation, ColumnInfo]] = {}

    def key_column(self, index: int, node: exp.Expr) -> exp.Column:
        """Return the column of a key."""
        return computed_column(f"k{index}", Reference(_UNIT_REF, index), node)

    def add_aggregate(self, node: exp.Expr) -> exp.Column:
        """Return the column of an aggregate, adding it if necessary."""
        if type(node.this if isinstance(node, exp.Filter) else node) in _ARGUMENTS:
            return self._add_first_value(node)
        aggregate = per_unit_aggregate(node, self._rows)
        names = {folded: self._aggregates.setdefault(folded, f"f{len(self._aggregates)}") for folded in aggregate.parts}
        expr = aggregate.combine(tuple(Column(names[folded], folded.type) for folded in aggregate.parts))
        if expr not in self._computed:
            name = expr.name if isinstance(expr, Column) else f"a{len(self._computed)}"
            bound = replace(aggregate.info.bound, expr=Column(name, expr.type))
            self._computed[expr] = replace(aggregate.info, name=name, bound=bound)
        return self._column(expr, node)

    def _column(self, expr: Expr, node: exp.Expr) -> exp.Column:
        place = len(self._keys) + list(self._computed).index(expr)
        return computed_column(self._computed[expr].name, Reference(_UNIT_REF, place), node)

    def _add_first_value(self, node: exp.Expr) -> exp.Column:
        if any(unit_key_index(key.bound.expr, self._columns) is None for key in self._keys):
            cause = f"{function_name(node.find(*_ARGUMENTS) or node)} is supported only if the unit is the only key"
            hint = "Write ROW_NUMBER() OVER (PARTITION BY unit, key ORDER BY …) AS n in a subquery, and WHERE n = 1."
            raise refuse(node, "SELECT", cause, hint)
        if node not in self._first_values:
            relation, info = _first_value(node, self._rows, f"g{len(self._first_values)}")
            self._first_values[node] = relation, info
            self._computed[info.column] = info
        return self._column(self._first_values[node][1].column, node)

    def build(self) -> PrivateSource:
        """Return the source with one row per unit and key."""
        keys, values, infos = [], [], []
        for index, key in enumerate(self._keys):
            name, expr = f"k{index}", key.bound.expr
            if unit_key_index(expr, self._columns) is None:
                keys.append((name, expr))
            else:
                values.append((name, UnitAggregate(AggregateFunction.MIN, expr)))  # one value per unit
            infos.append(self._key_info(name, key))
        values += [(name, folded) for folded, name in self._aggregates.items()]
        first = self._keys[0].node
        relation: Relation = build_or_refuse(
            lambda: PerUnit(self._rows.relation, tuple(keys), tuple(values)), first, "GROUP BY"
        )
        for value, _ in self._first_values.values():
            relation = build_or_refuse(
                partial(JoinOnUnit, relation, value, None, JoinKind.LEFT, max_rows_per_unit=1), first, "GROUP BY"
            )
        derived = tuple((info.name, expr) for expr, info in self._computed.items() if not isinstance(expr, Column))
        if derived:
            plain = tuple((name, Column(name, kind)) for name, kind in relation.shape.schema.items())
            relation = build_or_refuse(partial(Derive, relation, (*plain, *derived)), first, "GROUP BY")
        return PrivateSource(relation, (View(_UNIT_REF, None, (*infos, *self._computed.values())),))

    def _key_info(self, name: str, key: GroupKey) -> ColumnInfo:
        info, columns, expr = computed_info(name, name, key.bound, self._columns), self._columns, key.bound.expr
        if not isinstance(expr, Column):
            return replace(info, in_range=False)
        known = columns[expr.name]
        return replace(info, in_range=False, window=known.window, declared_values=known.declared_values)
