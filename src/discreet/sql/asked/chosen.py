"""Aggregates that choose values instead of adding them up: quantiles, the ends of a range, and the most frequent."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction

from sqlglot import exp

from discreet.kernel.exact import fraction
from discreet.kernel.expr import Call, Constant, Expr, Type, Value
from discreet.sql.asked.calls import function_name, kept, text_of
from discreet.sql.asked.grids import Scale
from discreet.sql.asked.groups import domain_in
from discreet.sql.places import refuse
from discreet.sql.plan import Frequent, Shown
from discreet.sql.rows.owners import is_person_or_null, is_unique
from discreet.sql.rows.scope import Rows, held, value_of, without_clip
from discreet.sql.values.bound import Bound

_MOST_PLACES = 1000
_MOST_SHOWN = 100
_MOST_CELLS = 65_535  # of a range; finer steps would cost more noise than they are worth
_TIMES = (Type.DATE, Type.TIMESTAMP)
_SHARES = frozenset(
    {"QUANTILE_CONT", "QUANTILE_DISC", "QUANTILE", "APPROX_QUANTILE", "PERCENTILE_CONT", "PERCENTILE_DISC"}
)


@dataclass(frozen=True)
class Ranked:
    """The value with this share of all values below it; of an end, as few as the noise allows."""

    share: Fraction


@dataclass(frozen=True)
class Choice:
    """What is chosen from: the expression, its range or its listed values; days since `origin` stand for dates."""

    function: Ranked | Frequent
    expr: Expr
    scale: Scale | None = None
    places: tuple[Value, ...] = ()
    origin: date | None = None
    kind: Type = Type.REAL


def chosen(call: exp.Expr, rows: Rows, when: Expr | None) -> Choice | None:
    """Read an aggregate that chooses values; None if it is none of them."""
    inner, ordered = (call.this, call.expression) if isinstance(call, exp.WithinGroup) else (call, None)
    name, arguments = function_name(inner), _arguments(inner)
    if ordered is not None:
        arguments = [_only(ordered, name), *arguments]
    if isinstance(inner, exp.Min | exp.Max) and len(arguments) == 1:
        return _ranked(inner, arguments[0], Fraction(isinstance(inner, exp.Max)), rows, when)
    if name == "MEDIAN" and len(arguments) == 1:
        return _ranked(inner, arguments[0], Fraction(1, 2), rows, when)
    if name in _SHARES:
        return _quantile(inner, arguments, ordered, rows, when)
    if name in ("MODE", "HISTOGRAM") and len(arguments) == 1:
        how = Frequent(Shown.MODE if name == "MODE" else Shown.COUNTS)
        return _frequent(inner, arguments[0], how, rows, when)
    if name in ("APPROX_TOP_K", "TOP_K"):
        return _top(inner, arguments, rows, when)
    return None


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    """Return what stands between the brackets, in order."""
    if isinstance(call, exp.Anonymous):
        return list(call.expressions)
    found = [call.args.get(name) for name in ("this", "expression", "quantile")]
    return [each for each in [*found, *call.expressions] if isinstance(each, exp.Expr)]


def _only(order: exp.Expr, name: str) -> exp.Expr:
    if len(order.expressions) != 1:
        raise refuse(order, name, "WITHIN GROUP orders by one expression", "Write WITHIN GROUP (ORDER BY x).")
    found: exp.Expr = order.expressions[0].this
    return found


def _quantile(
    call: exp.Expr, arguments: list[exp.Expr], order: exp.Expr | None, rows: Rows, when: Expr | None
) -> Choice:
    name = function_name(call)
    written = f"{name}(0.5) WITHIN GROUP (ORDER BY x)" if name.startswith("PERC") else f"{name}(x, 0.5)"
    if len(arguments) != 2 or (order is None and name.startswith("PERC")):
        raise refuse(call, name, f"{name} takes an expression and a share", f"Write {written}.")
    share = _share(arguments[1], name)
    if order is not None and order.expressions[0].args.get("desc"):
        share = 1 - share
    return _ranked(call, arguments[0], share, rows, when)


def _share(node: exp.Expr, name: str) -> Fraction:
    try:
        found = fraction(node.name if isinstance(node, exp.Literal) and not node.is_string else "", name)
    except (TypeError, ValueError):
        found = Fraction(-1)
    if not 0 <= found <= 1:
        written = f"{name}(0.9) WITHIN GROUP (ORDER BY x)" if name.startswith("PERC") else f"{name}(x, 0.9)"
        raise refuse(node, name, "the share must be a number from 0 to 1", f"Write it out, such as {written}.")
    return found


def _ranked(call: exp.Expr, node: exp.Expr, share: Fraction, rows: Rows, when: Expr | None) -> Choice:
    name = function_name(call)
    bound = _value(call, node, rows)
    if bound.type not in (Type.INTEGER, Type.REAL, *_TIMES):
        cause = f"{name} takes a number or a date"
        raise refuse(call, name, cause, "Group by it and count, or use MODE for the most frequent value.")
    if bound.low is None or bound.high is None:
        cause = f"{name}({text_of(node)}) needs a public range, and none is known"
        way_out = f"Write {name} of CLIP({text_of(node)}, low, high), or ask the owner to declare between."
        raise refuse(call, name, cause, way_out)
    if bound.type in _TIMES:
        return _day(bound, share, when)
    assert isinstance(bound.low, Fraction)
    assert isinstance(bound.high, Fraction)
    scale = Scale.of(bound.low, bound.high, bound.step, bound.type)
    while (scale.high - scale.low) / scale.step >= _MOST_CELLS:
        scale = Scale(scale.low, scale.high, 2 * scale.step)
    return Choice(Ranked(share), kept(without_clip(bound.expr), when), scale, kind=bound.type)


def _day(bound: Bound, share: Fraction, when: Expr | None) -> Choice:
    """Count dates and times in days from the first."""
    assert isinstance(bound.low, date)
    assert isinstance(bound.high, date)
    first, last = (end.date() if isinstance(end, datetime) else end for end in (bound.low, bound.high))
    expr = bound.expr if bound.type is Type.DATE else Call("to_date", (bound.expr,))
    days = Call("days_between", (Constant(first, Type.DATE), expr))
    scale = Scale(Fraction(0), Fraction((last - first) // timedelta(days=1)), Fraction(1))
    return Choice(Ranked(share), kept(days, when), scale, origin=first, kind=bound.type)


def _top(call: exp.Expr, arguments: list[exp.Expr], rows: Rows, when: Expr | None) -> Choice:
    name = function_name(call)
    number = arguments[1].name if len(arguments) == 2 and isinstance(arguments[1], exp.Literal) else ""
    if not number.isdecimal() or len(number) > 6 or not 1 <= int(number) <= _MOST_SHOWN:
        raise refuse(call, name, f"{name} takes an expression and how many", f"Write {name}(x, 10).")
    return _frequent(call, arguments[0], Frequent(Shown.TOP, int(number)), rows, when)


def _frequent(call: exp.Expr, node: exp.Expr, how: Frequent, rows: Rows, when: Expr | None) -> Choice:
    name = function_name(call)
    bound = _value(call, node, rows)
    expr = without_clip(bound.expr)
    if is_unique(expr, rows.by_column()):
        cause = f"each value of {text_of(node)} is unique, so none is more frequent than the others"
        raise refuse(call, name, cause, "Use a column whose values many share, or count with COUNT(DISTINCT …).")
    places = tuple(value for value in domain_in(expr, rows.by_column()) or () if value is not None)
    if not 0 < len(places) <= _MOST_PLACES:
        cause = f"{name}({text_of(node)}) chooses among public values, and " + (
            f"there are {len(places):,}, more than {_MOST_PLACES:,}" if places else "none are declared"
        )
        way_out = "GROUP BY it and ORDER BY COUNT(*) DESC LIMIT …, or make fewer values of it with CASE or FLOOR."
        raise refuse(call, name, cause, way_out)
    return Choice(how, kept(expr, when), places=places, kind=bound.type)


def _value(call: exp.Expr, node: exp.Expr, rows: Rows) -> Bound:
    name = function_name(call)
    bound = value_of(node, held(rows.views, name), name)
    if is_person_or_null(bound.expr, rows.by_column()):
        cause = f"{name} of the unit's own column would tell about single people"
        raise refuse(call, name, cause, "Count units with COUNT(DISTINCT …).")
    return bound
