"""Dates and times above a release."""

from sqlglot import exp

from discreet.sql.after.casts import fitted
from discreet.sql.after.env import Env, Rule, Rules
from discreet.sql.after.values import Kind, Value, constant, made
from discreet.sql.places import quoted

MOMENTS = (Kind.DATE, Kind.TIMESTAMP)
_UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_PARTS = ("year", "isoyear", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute")
_MOST_DAYS = 1_000_000


def with_dates(node: exp.Binary, sign: str, given: list[Value], env: Env) -> Value:
    """Return a sum or difference in which a date takes part."""
    one, other = given
    if sign == "-" and other.literal is not None and one.kind in MOMENTS:
        other = fitted(other, one.kind, node, env.clause)
    match one.kind, sign, other.kind:
        case Kind.DATE, "-", Kind.DATE:
            return made("CAST({0} - {1} AS BIGINT)", Kind.INTEGER, one, other)
        case ((Kind.DATE | Kind.TIMESTAMP), "-", (Kind.DATE | Kind.TIMESTAMP)):
            parts = [fitted(each, Kind.TIMESTAMP, node, env.clause) for each in (one, other)]
            return made("({0} - {1})", Kind.INTERVAL, *parts)
        case ((Kind.DATE | Kind.TIMESTAMP), ("+" | "-"), Kind.INTERVAL):
            return made(f"CAST({{0}} {sign} {{1}} AS TIMESTAMP)", Kind.TIMESTAMP, one, other)
        case Kind.DATE, ("+" | "-"), Kind.INTEGER:
            return made(f"CAST({{0}} {sign} {env.whole(node.expression, most=_MOST_DAYS)} AS DATE)", Kind.DATE, one)
    cause = f"{one.kind} {sign} {other.kind} is not supported"
    raise env.refuse(node, cause, "A date takes a constant number of days, or an interval such as INTERVAL '1 month'")


def _interval(node: exp.Interval, env: Env) -> Value:
    unit = node.args["unit"].name.upper().removesuffix("S") if node.args.get("unit") else ""
    number = node.this.name if isinstance(node.this, exp.Literal) else ""
    if unit not in _UNITS or not number.removeprefix("-").isdecimal() or len(number) > 6:
        raise env.refuse(node, "this interval is not supported", "Write one number and one unit: INTERVAL '3 months'")
    return constant(f"INTERVAL ({int(number)}) {unit}", Kind.INTERVAL)


def _extract(node: exp.Extract, env: Env) -> Value:
    part, moment = node.this.name.lower(), env.value(node.expression)
    if moment.kind not in (MOMENTS if part != "epoch" else (*MOMENTS, Kind.INTERVAL)):
        raise env.refuse(node, f"there is no {quoted(part)} in {moment.kind}", "Use a date or a timestamp")
    if part == "epoch":
        return made("CAST(epoch({0}) AS DOUBLE)", Kind.NUMERIC, moment)
    if part == "second":
        return made("(date_part('microseconds', CAST({0} AS TIMESTAMP)) / 1e6)", Kind.NUMERIC, moment)
    if part not in _PARTS:
        way_out = f"The parts are {', '.join(_PARTS)}, second, epoch"
        raise env.refuse(node, f"{quoted(part)} is not a part of a date", way_out)
    return made(f"CAST(date_part('{part}', CAST({{0}} AS TIMESTAMP)) AS BIGINT)", Kind.WHOLE, moment)


def _truncated(node: exp.TimestampTrunc, env: Env) -> Value:
    unit, moment = node.args["unit"].name.lower(), env.value(node.this)
    if unit.upper() not in (*_UNITS, "QUARTER") or moment.kind not in MOMENTS:
        raise env.refuse(node, "date_trunc takes a unit and a date", "Write date_trunc('month', a date)")
    return made(f"CAST(date_trunc('{unit}', CAST({{0}} AS TIMESTAMP)) AS TIMESTAMP)", Kind.TIMESTAMP, moment)


DATES: Rules = {
    exp.Interval: Rule("this unit", _interval),
    exp.Extract: Rule("this expression", _extract),
    exp.TimestampTrunc: Rule("this unit", _truncated),
}
