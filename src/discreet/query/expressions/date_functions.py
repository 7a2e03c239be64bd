"""Functions and arithmetic on dates and timestamps."""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction

from sqlglot import exp

from discreet.kernel.expr import Constant
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.operands import (
    DATE,
    INTEGER,
    REAL,
    TIMESTAMP,
    ExprReader,
    common_type,
)
from discreet.query.expressions.value_ranges import DATE_PARTS, NUMERIC, bound_call, bound_constant

_WINDOWS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_PER_DAY = {"day": 1, "hour": 24, "minute": 1440, "second": 86400}
_SECONDS = {"week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1}
_MONTHS = {"year": 12, "month": 1}
_ABBREVIATIONS = {"min": "minute", "sec": "second", "hr": "hour", "mon": "month", "yr": "year"}
_AMOUNT = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.ASCII)
_CLOCK_TIME = re.compile(r"(\d{1,3}):(\d{2})(?::(\d{2}))?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - all timestamps are local times


def time_unit(node: exp.Expr) -> str:
    """Return the singular name of a time unit."""
    name = node.name.lower().removesuffix("s")
    return _ABBREVIATIONS.get(name, name)


def _as_date(moment: BoundExpr) -> BoundExpr:
    return moment if moment.type is DATE else bound_call("to_date", moment)


def _as_timestamp(moment: BoundExpr) -> BoundExpr:
    return moment if moment.type is TIMESTAMP else bound_call("to_timestamp", moment)


def _scaled_sum(first: BoundExpr, factor: int, second: BoundExpr) -> BoundExpr:
    return bound_call("add", bound_call("multiply", first, bound_constant(factor, INTEGER)), second)


def _second_of_day(moment: BoundExpr, window: str) -> BoundExpr:
    """Return the number of hours, minutes or seconds since midnight."""
    total = bound_call("hour", moment)
    for finer in ("minute", "second")[: ("hour", "minute", "second").index(window)]:
        total = _scaled_sum(total, 60, bound_call(finer, moment))
    return total


def windows_between(start: BoundExpr, end: BoundExpr, window: str) -> BoundExpr:
    """Return the number of window boundaries between two moments."""

    def index(moment: BoundExpr) -> BoundExpr:
        moment = _as_timestamp(moment)
        if window == "year":
            return bound_call("year", moment)
        if window in ("quarter", "month"):
            return _scaled_sum(bound_call("year", moment), 4 if window == "quarter" else 12, bound_call(window, moment))
        return _second_of_day(moment, window)

    if window == "week":
        weeks = (bound_call("trunc_week", _as_timestamp(moment)) for moment in (start, end))
        return bound_call("divide", bound_call("days_between", *map(_as_date, weeks)), bound_constant(7, INTEGER))
    days = bound_call("days_between", _as_date(start), _as_date(end))
    if window == "day":
        return days
    difference = bound_call("subtract", index(end), index(start))
    return _scaled_sum(days, _PER_DAY[window], difference) if window in _PER_DAY else difference


def bind_extract(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    """Bind EXTRACT and DATE_PART."""
    name, inner = time_unit(node.this), node.expression.unnest()
    if isinstance(inner, exp.Anonymous) and inner.name.upper() == "AGE":
        return _extract_from_age(node, reader, name, inner.expressions)
    if isinstance(inner, exp.Sub) and _interval_or_refuse(inner.expression, reader) is None:
        end, start = reader.bind(inner.this), reader.bind(inner.expression)
        if TIMESTAMP in (end.type, start.type):
            ends = reader.coerce(inner.this, end, TIMESTAMP), reader.coerce(inner.expression, start, TIMESTAMP)
            return _extract_from_interval(node, reader, name, windows_between(ends[1], ends[0], "second"))
        moment = reader.to_moment(node, _subtract(inner, reader, end, start))
    else:
        moment = reader.bind_moment(node.expression)
    if name == "epoch":
        return bound_call("to_real", windows_between(bound_constant(_EPOCH, TIMESTAMP), moment, "second"))
    if name not in DATE_PARTS and name != "year":
        names = ", ".join(each.upper() for each in ("year", *DATE_PARTS, "epoch"))
        raise reader.refuse(node, f"EXTRACT does not support {node.this.name.upper()[:40]}", f"Supported: {names}.")
    return bound_call(name, _as_timestamp(moment))


def _extract_from_interval(node: exp.Expr, reader: ExprReader, name: str, seconds: BoundExpr) -> BoundExpr:
    if name not in ("epoch", "day"):
        raise reader.refuse(
            node, "only EPOCH and DAY can be extracted from an interval", "Divide EPOCH, the number of seconds."
        )
    return (
        bound_call("to_real", seconds)
        if name == "epoch"
        else bound_call("divide", seconds, bound_constant(86400, INTEGER))
    )


def _extract_from_age(node: exp.Expr, reader: ExprReader, name: str, moments: list[exp.Expr]) -> BoundExpr:
    """Bind EXTRACT(YEAR or MONTH FROM AGE(end, start)): whole years, and whole months beyond them."""
    if len(moments) != 2:
        cause = "AGE takes two dates here, because today's date changes from day to day"
        raise reader.refuse(node, cause, "Write AGE(end, start), with a constant date if necessary.")
    if name not in ("year", "month"):
        hint = "Subtract dates for a number of days, or write DATE_DIFF('hour', start, end)."
        raise reader.refuse(node, "only YEAR and MONTH can be extracted from AGE", hint)
    end, start = (reader.bind_moment(moment) for moment in moments)
    return bound_call("divide" if name == "year" else "modulo", _whole_months(start, end), bound_constant(12, INTEGER))


def _whole_months(start: BoundExpr, end: BoundExpr) -> BoundExpr:
    """Return the number of whole months between two moments, to the second; negative if they are in reverse order."""
    months, has_times = windows_between(start, end, "month"), TIMESTAMP in (start.type, end.type)

    def within_month(moment: BoundExpr) -> BoundExpr:
        day, moment = bound_call("day", _as_timestamp(moment)), _as_timestamp(moment)
        return _scaled_sum(day, 86400, _second_of_day(moment, "second")) if has_times else day

    def is_beyond(later: BoundExpr, earlier: BoundExpr, sign: BoundExpr) -> BoundExpr:
        return bound_call("and", bound_call("less", zero, sign), bound_call("less", later, earlier))

    zero, one, minus_one = (bound_constant(number, INTEGER) for number in (0, 1, -1))
    last, first = within_month(end), within_month(start)
    incomplete = bound_call(
        "case",
        *(is_beyond(last, first, months), minus_one),
        *(is_beyond(first, last, bound_call("negate", months)), one),
        zero,
    )
    return bound_call("add", months, incomplete)


def date_part_function(name: str) -> Callable[[exp.Expr, ExprReader], BoundExpr]:
    """Return the handler of a function such as YEAR(x)."""
    return lambda node, reader: bound_call(name, _as_timestamp(reader.bind_moment(node.this)))


def bind_date_trunc(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    """Bind DATE_TRUNC(window, x)."""
    window = time_unit(node.args["unit"])
    if window not in _WINDOWS:
        names = ", ".join(_WINDOWS)
        raise reader.refuse(node, "DATE_TRUNC does not support this unit", f"Supported: {names}, written as constants.")
    return bound_call(f"trunc_{window}", _as_timestamp(reader.bind_moment(node.this)))


def bind_date_diff(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    """Bind DATE_DIFF(end, start, DAY), which DATE_DIFF('day', start, end) is too once it is parsed, or DATEDIFF."""
    assert isinstance(node, exp.DateDiff)
    unit = node.args.get("unit")
    window = "day" if unit is None else time_unit(unit)
    if window not in _WINDOWS:
        raise reader.refuse(
            node, "DATE_DIFF takes a constant unit and two dates", "Write DATE_DIFF('day', start, end)."
        )
    return windows_between(reader.bind_moment(node.expression), reader.bind_moment(node.this), window)


def constant_interval(node: exp.Expr) -> tuple[int, Fraction] | None:
    """Return the months and seconds of a constant interval; None if it is not an interval, ValueError if invalid."""
    node = node.unnest()
    if isinstance(node, exp.Neg) and (inner := constant_interval(node.this)) is not None:
        return -inner[0], -inner[1]
    if isinstance(node, exp.Mul):
        for side, factor in ((node.this, node.expression), (node.expression, node.this)):
            if (inner := constant_interval(side)) is not None:
                if not isinstance(factor, exp.Literal):
                    raise ValueError("an interval must be multiplied by a constant")
                return inner[0] * int(factor.name), inner[1] * int(factor.name)
    if isinstance(node, exp.Cast) and node.to.this is exp.DType.INTERVAL:
        return _parse_interval(node.this.name.lower())
    if not isinstance(node, exp.Interval):
        return None
    spelled = node.args.get("unit")
    return _parse_interval(f"{node.this.name} {spelled.name if isinstance(spelled, exp.Var) else ''}".strip().lower())


def _parse_interval(text: str) -> tuple[int, Fraction]:
    if clock := _CLOCK_TIME.fullmatch(text):
        hours, minutes, seconds = (int(each or 0) for each in clock.groups())
        return 0, Fraction(hours * 3600 + minutes * 60 + seconds)
    months, seconds_in_all, rest = Fraction(0), Fraction(0), text
    while match := _AMOUNT.match(rest):
        amount, name = Fraction(match[1]), time_unit(exp.var(match[2]))
        months += amount * _MONTHS.get(name, 0)
        seconds_in_all += amount * _SECONDS.get(name, 0)
        rest = rest[match.end() :] if name in _MONTHS or name in _SECONDS else "?"
    if rest or not text or months.denominator != 1:
        raise ValueError("the text is not a valid interval")
    return int(months), seconds_in_all


def shift_moment(node: exp.Expr, reader: ExprReader, moment: BoundExpr, months: int, seconds: Fraction) -> BoundExpr:
    """Add an interval to a moment; months can be added only to constants, because their lengths vary."""
    moment = _as_timestamp(moment)
    if seconds.denominator != 1:
        raise reader.refuse(node, "fractions of a second are not supported in intervals", "Write whole seconds.")
    if months:
        value = moment.expr.value if isinstance(moment.expr, Constant) else None
        if not isinstance(value, datetime):
            hint = "Move the interval to the constant's side, use days, or compare DATE_TRUNC('month', x)."
            raise reader.refuse(
                node, "intervals of months or years can be added to constants only, because their lengths vary", hint
            )
        moment = bound_constant(_add_months(value, months), TIMESTAMP)
    return bound_call("add_seconds", moment, bound_constant(int(seconds), INTEGER)) if seconds else moment


def _add_months(moment: datetime, months: int) -> datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1]))


def _interval_or_refuse(node: exp.Expr, reader: ExprReader) -> tuple[int, Fraction] | None:
    try:
        return constant_interval(node)
    except ValueError:
        raise reader.refuse(
            node, "invalid input syntax for type interval", "Write INTERVAL '3 days 12 hours'."
        ) from None


def bind_add(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    """Bind a + b of numbers or times."""
    sides = ((node.this, node.expression), (node.expression, node.this))
    for moment, other in sides:
        if (shift := _interval_or_refuse(other, reader)) is not None:
            return shift_moment(node, reader, reader.bind_moment(moment), *shift)
    left, right = reader.bind(node.this), reader.bind(node.expression)
    for moment, days in ((left, right), (right, left)):
        if moment.type is DATE and days.type is not DATE:
            return _add_days(node, reader, moment, days, 1)
    return numeric_operation("add", node, reader, left, right)


def bind_subtract(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    """Bind a - b of numbers or times."""
    if (shift := _interval_or_refuse(node.expression, reader)) is not None:
        return shift_moment(node, reader, reader.bind_moment(node.this), -shift[0], -shift[1])
    return _subtract(node, reader, reader.bind(node.this), reader.bind(node.expression))


def _subtract(node: exp.Expr, reader: ExprReader, left: BoundExpr, right: BoundExpr) -> BoundExpr:
    if TIMESTAMP in (left.type, right.type):
        hint = "Write DATE_DIFF('second', start, end), or subtract dates: CAST(x AS DATE) - CAST(y AS DATE)."
        raise reader.refuse(node, "the difference of two timestamps is an interval, not a number", hint)
    if left.type is DATE and right.type in NUMERIC:
        return _add_days(node, reader, left, right, -1)
    if DATE in (left.type, right.type):
        start, end = reader.coerce(node.expression, right, DATE), reader.coerce(node.this, left, DATE)
        return bound_call("days_between", start, end)
    return numeric_operation("subtract", node, reader, left, right)


def _add_days(node: exp.Expr, reader: ExprReader, moment: BoundExpr, days: BoundExpr, sign: int) -> BoundExpr:
    days = reader.coerce(node, days, INTEGER)
    if not isinstance(days.expr, Constant) or days.expr.value is None:
        hint = "Write an integer constant, or compare with the difference of two dates."
        raise reader.refuse(node, "a date takes only a constant number of days", hint)
    return bound_call("add_days", moment, bound_constant(sign * int(days.expr.value), INTEGER))  # type: ignore[arg-type]


def numeric_operation(op: str, node: exp.Expr, reader: ExprReader, left: BoundExpr, right: BoundExpr) -> BoundExpr:
    """Return an operation on two numbers, converted to one type."""
    kind = common_type([left, right])
    kind = kind if kind in NUMERIC else INTEGER if INTEGER in (left.type, right.type) else REAL
    return bound_call(op, reader.coerce(node.this, left, kind), reader.coerce(node.expression, right, kind))


def bind_date(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    """Bind DATE(x)."""
    return _as_date(reader.bind_moment(node.this))
