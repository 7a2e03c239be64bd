"""Conditions on single rows, and the ranges, domains and NULLs that they imply.

Only constants of the query are used, so the results are public. A range that a condition would make empty is kept:
stored values may lie outside the declared range, and are clamped to it when summed.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache

from sqlglot import exp

from discreet.engines.column_usage import columns_of
from discreet.engines.reference.evaluate import evaluate
from discreet.kernel.expr import Call, Column, Constant, Expr, Type, Value
from discreet.kernel.relation import Where
from discreet.query.expressions.bound_expr import RangeEnd
from discreet.query.expressions.operands import TYPE_NAMES
from discreet.query.expressions.public_domains import NOT_EVALUATED, domain_of
from discreet.query.relations.bound_sources import ColumnInfo, PrivateSource, ValuesLookup, View, bind_stored
from discreet.query.syntax.syntax_tree import NO_SUBQUERY, build_or_refuse, check_row_wise, refuse, short_sql

_MAX_VALUES_TESTED = 10_000  # values of a column that a condition is evaluated on
_SUBQUERY_HINT = (
    "Run the inner query first, then write its result as a constant. IN and EXISTS on the unit must be separate "
    "conditions, combined with AND."
)
_SMALLEST_STEP = {
    Type.INTEGER: Fraction(1),
    Type.REAL: Fraction(0),
    Type.DATE: timedelta(days=1),
    Type.TIMESTAMP: timedelta(microseconds=1),
}


def narrow_ranges(views: Sequence[View], condition: Expr) -> tuple[View, ...]:
    """Return the columns with the ranges and domains that a condition implies."""
    terms = condition.args if isinstance(condition, Call) and condition.op == "and" else (condition,)
    for term in terms:
        columns = list(columns_of(term))
        if isinstance(term, Call) and term.op == "and":
            views = narrow_ranges(views, term)
        elif len(columns) == 1:
            views = tuple(
                replace(view, columns=tuple(_narrow_column(column, term) for column in view.columns)) for view in views
            )
    return tuple(views)


def _narrow_column(info: ColumnInfo, condition: Expr) -> ColumnInfo:
    name = info.column.name
    if name not in columns_of(condition):
        return info
    least, most = _comparison_range(condition, info.column)
    narrowed = _intersect_range(info, least, most)
    if not _is_portable(condition):
        return narrowed
    if evaluate(condition, {name: None}) is not True:
        narrowed = replace(narrowed, never_null=True, null_is_group=False)
    return replace(narrowed, values=_remaining_values(info, narrowed, condition))


def _intersect_range(info: ColumnInfo, least: RangeEnd | None, most: RangeEnd | None) -> ColumnInfo:
    """Return a column with its range narrowed by two ends, either of which may be unknown."""
    low, high = _tighter_end(info.bound.low, least, max), _tighter_end(info.bound.high, most, min)
    if low is not None and high is not None and low > high:  # type: ignore[operator]
        return info
    return replace(info, bound=replace(info.bound, low=low, high=high))


def _tighter_end(before: RangeEnd | None, now: RangeEnd | None, choose: object) -> RangeEnd | None:
    if before is None or now is None:
        return before if now is None else now
    return choose((before, now))  # type: ignore[operator, no-any-return]


def _comparison_range(condition: Expr, column: Column) -> tuple[RangeEnd | None, RangeEnd | None]:
    """Return the ends that a comparison with constants implies."""
    match condition:
        case Call("at_most", (Constant(value), Column())) | Call("less", (Constant(value), Column())):
            return _constant_end(value, column.type, 1 if condition.op == "less" else 0), None
        case Call("at_most", (Column(), Constant(value))) | Call("less", (Column(), Constant(value))):
            return None, _constant_end(value, column.type, -1 if condition.op == "less" else 0)
        case Call("equal", (Column(), Constant(value)) | (Constant(value), Column())):
            return _constant_end(value, column.type, 0), _constant_end(value, column.type, 0)
        case Call("one_of", (Column(), *constants)):
            ends = [_constant_end(each.value, column.type, 0) for each in constants if isinstance(each, Constant)]
            return (min(ends), max(ends)) if ends and None not in ends else (None, None)  # type: ignore[type-var]
    return None, None


def _constant_end(value: Value, kind: Type, beyond: int) -> RangeEnd | None:
    """Return a constant as a range end; `beyond` shifts it by the smallest step of its type."""
    if kind not in _SMALLEST_STEP or value is None or isinstance(value, str | bool):
        return None
    try:
        end = value if isinstance(value, date | datetime) else Fraction(str(value))
        moved: RangeEnd = end + beyond * _SMALLEST_STEP[kind]  # type: ignore[operator]
    except OverflowError:
        return None
    return moved


def _is_portable(condition: Expr) -> bool:
    """Return whether a condition has the same result in Python as in every engine."""
    if not isinstance(condition, Call):
        return True
    return condition.op not in NOT_EVALUATED and all(map(_is_portable, condition.args))


def _remaining_values(info: ColumnInfo, narrowed: ColumnInfo, condition: Expr) -> ValuesLookup:
    """Return a lazy lookup of the values that satisfy a condition."""
    name = info.column.name

    @cache
    def values() -> tuple[Value, ...] | None:
        candidates = info.values()
        if candidates is None:
            candidates = domain_of(narrowed.column, {name: narrowed.bound})
            if candidates is None or len(candidates) > _MAX_VALUES_TESTED:
                return None
        if len(candidates) > _MAX_VALUES_TESTED:
            return candidates
        return tuple(value for value in candidates if evaluate(condition, {name: value}) is True) or candidates

    return values


def conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """Return the operands of a chain of ANDs.

    >>> import sqlglot
    >>> [each.sql() for each in conjuncts(sqlglot.parse_one("a AND (b AND c) AND (d OR e)"))]
    ['a', 'b', 'c', '(d OR e)']
    """
    if node is None:
        return []
    bare = node.unnest()
    if isinstance(bare, exp.And):
        return [*conjuncts(bare.this), *conjuncts(bare.expression)]
    return [node]


def conjunction(conditions: Sequence[Expr]) -> Expr | None:
    """Return the AND of conditions; None if there are none."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else None
    return Call("and", tuple(conditions))


def bind_condition(node: exp.Expr, views: Sequence[View], clause: str) -> Expr:
    """Bind a condition on single rows."""
    aggregates = f"aggregate functions are not allowed in {clause}", "Use HAVING, or aggregate per unit in a subquery."
    check_row_wise(node, clause, aggregates, (NO_SUBQUERY[0], _SUBQUERY_HINT))
    expr = bind_stored(node, views, clause).expr
    if isinstance(expr, Constant) and expr.value is None:
        return Constant(None, Type.BOOLEAN)
    if expr.type is not Type.BOOLEAN:
        raise refuse(
            node, clause, f"the condition must be boolean, not {TYPE_NAMES[expr.type]}", "Compare it with a value."
        )
    return expr


_NEVER_TRUE = "the condition is never true, so that no row would be counted"
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def filter_rows(rows: PrivateSource, nodes: Sequence[exp.Expr], clause: str) -> PrivateSource:
    """Return the rows that satisfy all conditions."""
    if not nodes:
        return rows
    predicates = [bind_condition(node, rows.views, clause) for node in nodes]
    for node, each in zip(nodes, predicates, strict=True):
        if not columns_of(each) and evaluate(each, {}) is not True:
            hint = "The result is known without a query. DESCRIBE shows the columns of a table, free of charge."
            raise refuse(node, clause, _NEVER_TRUE, hint)
        if isinstance(node, _COMPARISONS) and exp.Null in map(type, (node.this, node.expression)):
            raise refuse(node, clause, f"{_NEVER_TRUE}: {short_sql(node)}", "Write IS NULL, or IS NOT NULL.")
    predicate = (
        predicates[0]
        if len(predicates) == 1
        else build_or_refuse(lambda: Call("and", tuple(predicates)), nodes[0], clause)
    )
    return PrivateSource(
        build_or_refuse(lambda: Where(rows.relation, predicate), nodes[0], clause), narrow_ranges(rows.views, predicate)
    )
