"""Aggregates that select values: quantiles, MIN, MAX, MODE, TOP_K and HISTOGRAM."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction

from sqlglot import exp

from discreet.estimate.planned_release import FrequencyFunction, FrequencyOutput
from discreet.estimate.quantile_walk import QuantileTarget
from discreet.kernel.expr import Call, Constant, Expr, Type, Value
from discreet.kernel.numbers import as_fraction
from discreet.kernel.relation import Scan
from discreet.query.aggregation.group_keys import key_domain
from discreet.query.aggregation.sum_grids import Scale
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.operands import TYPE_NAMES
from discreet.query.relations.bound_sources import PrivateSource, bind_clamped, without_clip
from discreet.query.relations.ownership import is_unique, is_unit_or_null
from discreet.query.syntax.syntax_tree import function_name, refuse, short_sql


def null_unless(expr: Expr, when: Expr | None) -> Expr:
    """Return an expression that is NULL where the condition does not hold."""
    return expr if when is None else Call("case", (when, expr, Constant(None, expr.type)))


_MAX_LISTED_VALUES = 1000
_MAX_TOP_VALUES = 100
_MAX_CELLS = 65_535  # per range; finer steps would add more noise than resolution
_DATE_TYPES = (Type.DATE, Type.TIMESTAMP)
_QUANTILE_NAMES = frozenset(
    {"QUANTILE_CONT", "QUANTILE_DISC", "QUANTILE", "APPROX_QUANTILE", "PERCENTILE_CONT", "PERCENTILE_DISC"}
)


@dataclass(frozen=True)
class ValueAggregate:
    """An aggregate that selects values of `expr` from its range or its listed values; dates are days since `origin`."""

    function: QuantileTarget | FrequencyFunction
    expr: Expr
    scale: Scale | None = None
    values: tuple[Value, ...] = ()
    origin: date | None = None
    kind: Type = Type.REAL


def bind_value_aggregate(call: exp.Expr, rows: PrivateSource, when: Expr | None) -> ValueAggregate | None:
    """Bind an aggregate that selects values; None for other functions."""
    inner, ordered = (call.this, call.expression) if isinstance(call, exp.WithinGroup) else (call, None)
    name, arguments = function_name(inner), _call_arguments(inner)
    if ordered is not None:
        arguments = [_order_term(ordered, name), *arguments]
    if isinstance(inner, exp.Min | exp.Max) and len(arguments) == 1:
        return _rank_aggregate(inner, arguments[0], Fraction(isinstance(inner, exp.Max)), rows, when)
    if name == "MEDIAN" and len(arguments) == 1:
        return _rank_aggregate(inner, arguments[0], Fraction(1, 2), rows, when)
    if name in _QUANTILE_NAMES:
        return _bind_quantile(inner, arguments, ordered, rows, when)
    if name in ("MODE", "HISTOGRAM") and len(arguments) == 1:
        function = FrequencyFunction(FrequencyOutput.MODE if name == "MODE" else FrequencyOutput.COUNTS)
        return _frequency_aggregate(inner, arguments[0], function, rows, when)
    if name in ("APPROX_TOP_K", "TOP_K"):
        return _top_k_aggregate(inner, arguments, rows, when)
    return None


def _call_arguments(call: exp.Expr) -> list[exp.Expr]:
    """Return the arguments of a call in order."""
    if isinstance(call, exp.Anonymous):
        return list(call.expressions)
    named_arguments = [call.args.get(name) for name in ("this", "expression", "quantile")]
    return [expression for expression in [*named_arguments, *call.expressions] if isinstance(expression, exp.Expr)]


def _order_term(order: exp.Expr, name: str) -> exp.Expr:
    if len(order.expressions) != 1:
        raise refuse(order, name, "WITHIN GROUP takes one expression", "Write WITHIN GROUP (ORDER BY x).")
    term: exp.Expr = order.expressions[0].this
    return term


def _bind_quantile(
    call: exp.Expr, arguments: list[exp.Expr], order: exp.Expr | None, rows: PrivateSource, when: Expr | None
) -> ValueAggregate:
    name = function_name(call)
    example = f"{name}(0.5) WITHIN GROUP (ORDER BY x)" if name.startswith("PERC") else f"{name}(x, 0.5)"
    if len(arguments) != 2 or (order is None and name.startswith("PERC")):
        raise refuse(call, name, f"{name} takes an expression and a fraction", f"Write {example}.")
    level = _quantile_level(arguments[1], name)
    if order is not None and order.expressions[0].args.get("desc"):
        level = 1 - level
    return _rank_aggregate(call, arguments[0], level, rows, when)


def _quantile_level(node: exp.Expr, name: str) -> Fraction:
    try:
        level = as_fraction(node.name if isinstance(node, exp.Literal) and not node.is_string else "", name)
    except (TypeError, ValueError):
        level = Fraction(-1)
    if not 0 <= level <= 1:
        example = f"{name}(0.9) WITHIN GROUP (ORDER BY x)" if name.startswith("PERC") else f"{name}(x, 0.9)"
        raise refuse(node, name, "the fraction must be a constant between 0 and 1", f"Write {example}, for example.")
    return level


def _rank_aggregate(
    call: exp.Expr, node: exp.Expr, level: Fraction, rows: PrivateSource, when: Expr | None
) -> ValueAggregate:
    name = function_name(call)
    bound = bind_operand(call, node, rows)
    if bound.type not in (Type.INTEGER, Type.REAL, *_DATE_TYPES):
        cause = f"{name} needs a number or a date, not {TYPE_NAMES[bound.type]}"
        raise refuse(call, name, cause, "Use GROUP BY with COUNT(*), or MODE for the most frequent value.")
    if bound.low is None or bound.high is None:
        cause = f"{name}({short_sql(node)}) needs bounds"
        hint = f"Replace {short_sql(node)} by CLIP({short_sql(node)}, low, high)"
        raise refuse(call, name, cause, hint + owner_hint(bound, rows))
    if bound.type in _DATE_TYPES:
        return _date_aggregate(bound, level, when)
    assert isinstance(bound.low, Fraction)
    assert isinstance(bound.high, Fraction)
    scale = Scale.with_default_step(bound.low, bound.high, bound.step, bound.type)
    while (scale.high - scale.low) / scale.step >= _MAX_CELLS:
        scale = Scale(scale.low, scale.high, 2 * scale.step)
    return ValueAggregate(QuantileTarget(level), null_unless(without_clip(bound.expr), when), scale, kind=bound.type)


def _date_aggregate(bound: BoundExpr, level: Fraction, when: Expr | None) -> ValueAggregate:
    """Map dates and timestamps to days since the lower end of their range."""
    assert isinstance(bound.low, date)
    assert isinstance(bound.high, date)
    first, last = (end.date() if isinstance(end, datetime) else end for end in (bound.low, bound.high))
    expr = bound.expr if bound.type is Type.DATE else Call("to_date", (bound.expr,))
    days = Call("days_between", (Constant(first, Type.DATE), expr))
    scale = Scale(Fraction(0), Fraction((last - first) // timedelta(days=1)), Fraction(1))
    return ValueAggregate(QuantileTarget(level), null_unless(days, when), scale, origin=first, kind=bound.type)


def _top_k_aggregate(
    call: exp.Expr, arguments: list[exp.Expr], rows: PrivateSource, when: Expr | None
) -> ValueAggregate:
    name = function_name(call)
    number = arguments[1].name if len(arguments) == 2 and isinstance(arguments[1], exp.Literal) else ""
    if not number.isdecimal() or len(number) > 6 or not 1 <= int(number) <= _MAX_TOP_VALUES:
        raise refuse(call, name, f"{name} takes an expression and a number of values", f"Write {name}(x, 10).")
    return _frequency_aggregate(call, arguments[0], FrequencyFunction(FrequencyOutput.TOP, int(number)), rows, when)


def _frequency_aggregate(
    call: exp.Expr, node: exp.Expr, function: FrequencyFunction, rows: PrivateSource, when: Expr | None
) -> ValueAggregate:
    name = function_name(call)
    bound = bind_operand(call, node, rows)
    expr = without_clip(bound.expr)
    if is_unique(expr, rows.columns_by_name()):
        cause = f"each value of {short_sql(node)} is unique, so no value is more frequent than another"
        raise refuse(call, name, cause, "Use a column whose values many units share, or use COUNT(DISTINCT …).")
    values = tuple(value for value in key_domain(expr, rows.columns_by_name()) or () if value is not None)
    if not 0 < len(values) <= _MAX_LISTED_VALUES:
        cause = f"{name}({short_sql(node)}) needs a list of declared values, and " + (
            f"{len(values):,} are declared, more than {_MAX_LISTED_VALUES:,}" if values else "none are declared"
        )
        hint = "Use GROUP BY with ORDER BY COUNT(*) DESC LIMIT …, or map it to fewer values with CASE or FLOOR."
        raise refuse(call, name, cause, hint)
    return ValueAggregate(function, null_unless(expr, when), values=values, kind=bound.type)


def bind_operand(call: exp.Expr, node: exp.Expr, rows: PrivateSource) -> BoundExpr:
    """Bind an operand whose values are summed or selected."""
    name = function_name(call)
    bound = bind_clamped(node, rows.views, name)
    if is_unit_or_null(bound.expr, rows.columns_by_name()):
        cause = f"{name} of the privacy unit's own column would disclose individuals"
        raise refuse(call, name, cause, "Count units with COUNT(DISTINCT …).")
    return bound


def owner_hint(bound: BoundExpr, rows: PrivateSource) -> str:
    """End a hint on missing bounds: the owner can declare those of a table's column, and not of an expression."""
    scans = [table for table in rows.relation.shape.tables if isinstance(table, Scan)]
    is_declarable = any(bound.expr in scan.columns for scan in scans)
    return ", or ask the owner to declare between." if is_declarable else "."
