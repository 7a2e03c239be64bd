"""Functions on dates and timestamps, and arithmetic with them."""

import re
from calendar import monthrange
from datetime import datetime
from fractions import Fraction

from sqlglot import exp

from discreet.kernel.expr import Constant
from discreet.sql.values.bound import Bound
from discreet.sql.values.ranges import NUMBERS, PARTS, call, known
from discreet.sql.values.reading import DATE, INTEGER, REAL, TIMESTAMP, Handler, Reader, as_moment, common

_WINDOWS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_DAY = {"day": 1, "hour": 24, "minute": 1440, "second": 86400}
_SECONDS = {"week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1}
_MONTHS = {"year": 12, "month": 1}
_SHORT = {"min": "minute", "sec": "second", "hr": "hour", "mon": "month", "yr": "year"}
_AMOUNTS = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.ASCII)
_CLOCK = re.compile(r"(\d{1,3}):(\d{2})(?::(\d{2}))?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - every timestamp is a local time


def unit(node: exp.Expression) -> str:
    """Return the name of a unit of time in the singular."""
    name = node.name.lower().removesuffix("s")
    return _SHORT.get(name, name)


def _as_date(moment: Bound) -> Bound:
    return moment if moment.type is DATE else call("to_date", moment)


def _as_timestamp(moment: Bound) -> Bound:
    return moment if moment.type is TIMESTAMP else call("to_timestamp", moment)


def _scaled_sum(first: Bound, factor: int, second: Bound) -> Bound:
    return call("add", call("multiply", first, known(factor, INTEGER)), second)


def elapsed(start: Bound, end: Bound, window: str) -> Bound:
    """Return how many beginnings of such windows lie between two moments."""

    def index(moment: Bound) -> Bound:
        moment = _as_timestamp(moment)
        if window == "year":
            return call("year", moment)
        if window in ("quarter", "month"):
            return _scaled_sum(call("year", moment), 4 if window == "quarter" else 12, call(window, moment))
        found = call("hour", moment)
        for finer in ("minute", "second")[: ("hour", "minute", "second").index(window)]:
            found = _scaled_sum(found, 60, call(finer, moment))
        return found

    if window == "week":
        weeks = (call("trunc_week", _as_timestamp(moment)) for moment in (start, end))
        return call("divide", call("days_between", *map(_as_date, weeks)), known(7, INTEGER))
    days = call("days_between", _as_date(start), _as_date(end))
    if window == "day":
        return days
    passed = call("subtract", index(end), index(start))
    return _scaled_sum(days, _DAY[window], passed) if window in _DAY else passed


def extracted(node: exp.Expression, reader: Reader) -> Bound:
    """Read EXTRACT and DATE_PART."""
    name, inner = unit(node.this), node.expression.unnest()
    if isinstance(inner, exp.Sub) and _interval(inner.expression, reader) is None:
        end, start = reader.bind(inner.this), reader.bind(inner.expression)
        if TIMESTAMP in (end.type, start.type):
            ends = reader.turned(inner.this, end, TIMESTAMP), reader.turned(inner.expression, start, TIMESTAMP)
            return _of_interval(node, reader, name, elapsed(ends[1], ends[0], "second"))
        moment = as_moment(node, reader, _subtracted(inner, reader, end, start))
    else:
        moment = reader.moment(node.expression)
    if name == "epoch":
        return call("to_real", elapsed(known(_EPOCH, TIMESTAMP), moment, "second"))
    if name not in PARTS and name != "year":
        names = ", ".join(each.upper() for each in ("year", *PARTS, "epoch"))
        raise reader.refuse(node, f"{node.this.name.upper()[:40]} cannot be extracted", f"There are {names}.")
    return call(name, _as_timestamp(moment))


def _of_interval(node: exp.Expression, reader: Reader, name: str, seconds: Bound) -> Bound:
    if name not in ("epoch", "day"):
        raise reader.refuse(node, "only EPOCH and DAY of an interval can be extracted", "Divide EPOCH, its seconds.")
    return call("to_real", seconds) if name == "epoch" else call("divide", seconds, known(86400, INTEGER))


def part_of_date(name: str) -> Handler:
    """Return the reader of a function such as YEAR(x)."""
    return lambda node, reader: call(name, _as_timestamp(reader.moment(node.this)))


def date_trunc(node: exp.Expression, reader: Reader) -> Bound:
    """Read DATE_TRUNC(window, x)."""
    window = unit(node.args["unit"])
    if window not in _WINDOWS:
        names = ", ".join(_WINDOWS)
        raise reader.refuse(node, "DATE_TRUNC does not know this unit", f"There are {names}, each as a constant.")
    return call(f"trunc_{window}", _as_timestamp(reader.moment(node.this)))


def date_diff(node: exp.Expression, reader: Reader) -> Bound:
    """DATE_DIFF('day', start, end), DATE_DIFF(end, start, DAY) and DATEDIFF(end, start), as other systems write it."""
    first, second, third = node.this, node.expression, node.args.get("unit")
    if third is None:
        return elapsed(reader.moment(second), reader.moment(first), "day")
    if isinstance(third, exp.Var) and unit(third) in _WINDOWS and unit(first) not in _WINDOWS:
        return elapsed(reader.moment(second), reader.moment(first), unit(third))
    if unit(first) not in _WINDOWS or not isinstance(first, exp.Literal | exp.Column):
        way_out = "Write DATE_DIFF('day', start, end)."
        raise reader.refuse(node, "DATE_DIFF takes a unit as a constant and two dates", way_out)
    # The parser takes the third argument for a unit, and a bare name there for a word in capitals.
    end = exp.column(third.name.lower()) if isinstance(third, exp.Var) else third
    end.parent = node
    return elapsed(reader.moment(second), reader.moment(end), unit(first))


def interval(node: exp.Expression) -> tuple[int, Fraction] | None:
    """Return the months and seconds of a constant interval; None if it is none, ValueError if it is not understood."""
    node = node.unnest()  # type: ignore[assignment]
    if isinstance(node, exp.Neg) and (found := interval(node.this)) is not None:
        return -found[0], -found[1]
    if isinstance(node, exp.Mul):
        for side, factor in ((node.this, node.expression), (node.expression, node.this)):
            if (found := interval(side)) is not None:
                if not isinstance(factor, exp.Literal):
                    raise ValueError("an interval must be multiplied by a constant")
                return found[0] * int(factor.name), found[1] * int(factor.name)
    if isinstance(node, exp.Cast) and node.to.this is exp.DType.INTERVAL:
        return _amounts(node.this.name.lower())
    if not isinstance(node, exp.Interval):
        return None
    spelled = node.args.get("unit")
    return _amounts(f"{node.this.name} {spelled.name if isinstance(spelled, exp.Var) else ''}".strip().lower())


def _amounts(text: str) -> tuple[int, Fraction]:
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (int(each or 0) for each in clock.groups())
        return 0, Fraction(hours * 3600 + minutes * 60 + seconds)
    months, seconds_in_all, rest = Fraction(0), Fraction(0), text
    while found := _AMOUNTS.match(rest):
        amount, name = Fraction(found[1]), unit(exp.var(found[2]))
        months += amount * _MONTHS.get(name, 0)
        seconds_in_all += amount * _SECONDS.get(name, 0)
        rest = rest[found.end() :] if name in _MONTHS or name in _SECONDS else "?"
    if rest or not text or months.denominator != 1:
        raise ValueError("text must be an interval")
    return int(months), seconds_in_all


def shifted(node: exp.Expression, reader: Reader, moment: Bound, months: int, seconds: Fraction) -> Bound:
    """Return a moment moved by an interval; only constants can be moved by months, which are not of one length."""
    moment = _as_timestamp(moment)
    if seconds.denominator != 1:
        raise reader.refuse(node, "an interval must have whole seconds", "Write whole seconds.")
    if months:
        value = moment.expr.value if isinstance(moment.expr, Constant) else None
        if not isinstance(value, datetime):
            way_out = "Move the interval to the side of a constant, use days, or compare DATE_TRUNC('month', x)."
            raise reader.refuse(node, "months and years are not of one length", way_out)
        moment = known(_months_later(value, months), TIMESTAMP)
    return call("add_seconds", moment, known(int(seconds), INTEGER)) if seconds else moment


def _months_later(moment: datetime, months: int) -> datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1]))


def _interval(node: exp.Expression, reader: Reader) -> tuple[int, Fraction] | None:
    try:
        return interval(node)
    except ValueError:
        raise reader.refuse(node, "this interval is not understood", "Write INTERVAL '3 days 12 hours'.") from None


def added(node: exp.Expression, reader: Reader) -> Bound:
    """Read a + b, of numbers or times."""
    sides = ((node.this, node.expression), (node.expression, node.this))
    for moment, other in sides:
        if (found := _interval(other, reader)) is not None:
            return shifted(node, reader, reader.moment(moment), *found)
    left, right = reader.bind(node.this), reader.bind(node.expression)
    for moment, days in ((left, right), (right, left)):
        if moment.type is DATE and days.type is not DATE:
            return _days_later(node, reader, moment, days, 1)
    return arithmetic("add", node, reader, left, right)


def subtracted(node: exp.Expression, reader: Reader) -> Bound:
    """Read a - b, of numbers or times."""
    if (found := _interval(node.expression, reader)) is not None:
        return shifted(node, reader, reader.moment(node.this), -found[0], -found[1])
    return _subtracted(node, reader, reader.bind(node.this), reader.bind(node.expression))


def _subtracted(node: exp.Expression, reader: Reader, left: Bound, right: Bound) -> Bound:
    if TIMESTAMP in (left.type, right.type):
        way_out = "Write DATE_DIFF('second', start, end), or subtract dates: CAST(x AS DATE) - CAST(y AS DATE)."
        raise reader.refuse(node, "the difference of two timestamps is an interval, not a number", way_out)
    if left.type is DATE and right.type in NUMBERS:
        return _days_later(node, reader, left, right, -1)
    if DATE in (left.type, right.type):
        start, end = reader.turned(node.expression, right, DATE), reader.turned(node.this, left, DATE)
        return call("days_between", start, end)
    return arithmetic("subtract", node, reader, left, right)


def _days_later(node: exp.Expression, reader: Reader, moment: Bound, days: Bound, sign: int) -> Bound:
    days = reader.turned(node, days, INTEGER)
    if not isinstance(days.expr, Constant) or days.expr.value is None:
        way_out = "Write a whole number, or compare the difference of two dates with it."
        raise reader.refuse(node, "only a constant number of days can be added to a date", way_out)
    return call("add_days", moment, known(sign * int(days.expr.value), INTEGER))  # type: ignore[arg-type]


def arithmetic(op: str, node: exp.Expression, reader: Reader, left: Bound, right: Bound) -> Bound:
    """Return an operation on two numbers of one type."""
    kind = common([left, right])
    kind = kind if kind in NUMBERS else INTEGER if INTEGER in (left.type, right.type) else REAL
    return call(op, reader.turned(node.this, left, kind), reader.turned(node.expression, right, kind))


def date_add(node: exp.Expression, reader: Reader) -> Bound:
    """Read DATE_ADD(x, interval)."""
    return (subtracted if isinstance(node, exp.DateSub) else added)(node, reader)


def to_date(node: exp.Expression, reader: Reader) -> Bound:
    """Read DATE(x)."""
    return _as_date(reader.moment(node.this))
