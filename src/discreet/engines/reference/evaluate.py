"""The meaning of the kernel's expressions, in plain Python; every engine's SQL is tested against it.

NULL is None. An operation with a NULL argument is NULL, except for those in _NULL_TOLERANT. Integers have 64 bits and
become NULL on overflow; reals are doubles, with infinities and NaN as intermediate results, where NaN equals itself and
is above all other values.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from discreet.engines.portable_regex import check_regex
from discreet.kernel.expr import MAX_TEXT_LENGTH, TEXT_SCANS, Column, Constant, Expr, Value

_INTEGER_PATTERN = re.compile(r"[+-]?[0-9]{1,18}")
# With so few digits, the number neither overflows nor underflows a double.
_REAL_PATTERN = re.compile(r"[+-]?([0-9]{1,100}(\.[0-9]{0,100})?|\.[0-9]{1,100})([eE][+-]?(0?[0-9]{1,2}|1[0-9]{2}))?")
_DATE_PATTERN = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIMESTAMP_PATTERN = re.compile(_DATE_PATTERN.pattern + r"[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?")


def evaluate(expr: Expr, row: Mapping[str, Value]) -> Value:
    """Return the value of an expression in a row; it never raises.

    >>> from discreet.kernel.expr import Call, Type
    >>> visits = Column("visits", Type.INTEGER)
    >>> evaluate(Call("divide", (visits, Constant(2, Type.INTEGER))), {"visits": -7})
    -3
    """
    match expr:
        case Column(name):
            return row[name]
        case Constant(value):
            return value
    if expr.op == "case":
        return evaluate(_case_branch(expr.args, row), row)
    args = [evaluate(arg, row) for arg in expr.args]
    if expr.op in _NULL_TOLERANT:
        return _NULL_TOLERANT[expr.op](*args)
    if expr.op in TEXT_SCANS and isinstance(args[0], str):
        args[0] = args[0][:MAX_TEXT_LENGTH]
    return None if None in args else _NULL_PROPAGATING[expr.op](*args)


def sort_key(value: Value) -> Any:
    """Return the sort key of a value among values of its type: NULL last, and NaN before it."""
    if value is None:
        return (2,)
    return (1,) if isinstance(value, float) and math.isnan(value) else (0, value)


def finite_or_null(value: Value) -> Value:
    """Return a value in the form in which it is aggregated: non-finite reals are NULL, and zero has one sign."""
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None
    return value


def _case_branch(args: tuple[Expr, ...], row: Mapping[str, Value]) -> Expr:
    for condition, value in zip(args[:-1:2], args[1:-1:2], strict=True):
        if evaluate(condition, row) is True:
            return value
    return args[-1]


def _not_null(values: Iterable[Value]) -> list[Value]:
    return [value for value in values if value is not None]


def _and(*args: bool | None) -> bool | None:
    if False in args:
        return False
    return None if None in args else True


def _or(*args: bool | None) -> bool | None:
    if True in args:
        return True
    return None if None in args else False


def _int64_or_null(number: int) -> int | None:
    return number if -(1 << 63) <= number < 1 << 63 else None


def _sign(number: float) -> Any:
    return type(number)((number > 0) - (number < 0))  # the sign of NaN is 0


def _overflow_to_null(number: float) -> float | None:
    return _int64_or_null(number) if isinstance(number, int) else number


def _divide(a: float, b: float) -> float | None:
    if b == 0:
        return None
    if not isinstance(a, int) or not isinstance(b, int):
        return a / b
    quotient = abs(a) // abs(b)  # towards zero
    return _int64_or_null(quotient if (a < 0) is (b < 0) else -quotient)


def _modulo(a: int, b: int) -> int | None:
    if b == 0:
        return None
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def _floor_or_ceil(rounding: Callable[[float], int], x: float) -> float:
    return math.copysign(float(rounding(x)), x) if math.isfinite(x) else x


def _round_half_away(x: float) -> float:
    """Return the nearest integer, halves away from zero."""
    size = abs(x)
    if not size < 1 << 53:  # an integer, or not finite
        return x
    below = math.floor(size)
    return math.copysign(below + (size - below >= 0.5), x)


def _round(x: float, places: int) -> float:
    """Round to a number of decimal places as DuckDB does, with two roundings."""
    if not math.isfinite(x):
        return x
    factor = float(10 ** abs(places))
    rounded = _round_half_away(x * factor) / factor if places >= 0 else _round_half_away(x / factor) * factor
    if math.isfinite(rounded):
        return rounded
    return x if places >= 0 else 0.0


def _logarithm(function: Callable[[float], float], x: float) -> float | None:
    if x <= 0:
        return None
    return function(x) if math.isfinite(x) else x


def _sqrt(x: float) -> float | None:
    return None if x < 0 else math.sqrt(x)


def _exp(x: float) -> float | None:
    return math.exp(max(x, -708)) if x <= 709 else None  # engines may fail on subnormal results, below exp(-708)


def _power(x: float, y: float) -> float | None:
    if not (math.isfinite(x) and math.isfinite(y)):
        return None
    try:
        power = math.pow(x, y)
    except (OverflowError, ValueError):
        return None
    if abs(power) > 1e307:
        return None
    return power if abs(power) >= 1e-307 else 0.0


def _clip(value: Value, low: Value, high: Value) -> Value:
    if sort_key(value) < sort_key(low):
        return low
    return high if sort_key(value) > sort_key(high) else value


def _null_outside(value: Value, low: Value, high: Value) -> Value:
    return value if sort_key(low) <= sort_key(value) <= sort_key(high) else None


def _to_integer(x: float) -> int | None:
    return _int64_or_null(round(x)) if math.isfinite(x) else None


def _parse_date(text: str) -> date | None:
    parts = _DATE_PATTERN.fullmatch(text)
    try:
        return date(*map(int, parts.groups())) if parts else None
    except ValueError:
        return None


def _parse_timestamp(text: str) -> datetime | None:
    parts = _TIMESTAMP_PATTERN.fullmatch(text)
    if not parts:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in parts.groups()[:6])
    microseconds = int((parts[7] or "").ljust(6, "0"))
    try:
        return datetime(year, month, day, hour, minute, second, microseconds)  # noqa: DTZ001
    except ValueError:
        return None


def lower_case(text: str) -> str:
    """Return a text in lower case, mapping each code point to one, where Python may return two.

    >>> lower_case("ÉİA")
    'éia'
    """
    return "".join("i" if letter == "İ" else letter.lower() for letter in text)


def upper_case(text: str) -> str:
    """Return a text in upper case, mapping each code point to one, where Python may return two or three.

    >>> upper_case("éßﬀ")
    'Éẞﬀ'
    """
    return "".join(map(_upper_letter, text))


def _upper_letter(letter: str) -> str:
    if letter == "ß":
        return "ẞ"
    return next((upper for upper in (letter.upper(), letter.title()) if len(upper) == 1), letter)


def _split_part(text: str, number: int, delimiter: str) -> str:
    parts = text.split(delimiter)
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _like(text: str, pattern: str) -> bool:
    return _like_pattern(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1000)
def _like_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of LIKE; what is between two % is matched where it occurs first, and never tried elsewhere."""
    pieces = [""]
    for part in re.findall(r"\\.|[^\\]", pattern, re.DOTALL):
        if part == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if part == "_" else re.escape(part[-1])
    start, *others = pieces
    between, end = "".join(f"(?>.*?{piece})" for piece in others[:-1]), f".*{others[-1]}" if others else ""
    return re.compile(f"{start}{between}{end}", re.DOTALL)


@lru_cache(maxsize=1000)
def _compile_search(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which $ matches only at the end of the text, not before a final line break."""
    check_regex(pattern)
    anchored = re.fullmatch(r"((?:\\.|[^\\])*)\$", pattern, re.DOTALL)
    return re.compile(f"{anchored[1]}\\Z" if anchored else pattern)


def _truncate(precision: str, time: datetime) -> datetime:
    if precision == "week":
        return _truncate("day", time - timedelta(days=time.weekday()))
    if precision == "quarter":
        return _truncate("month", time.replace(day=1, month=(time.month - 1) // 3 * 3 + 1))
    kept_fields = ("year", "month", "day", "hour", "minute", "second").index(precision) + 1
    fields = (time.year, time.month, time.day, time.hour, time.minute, time.second)
    year, month, day, hour, minute, second = (*fields[:kept_fields], *(1, 1, 1, 0, 0, 0)[kept_fields:])
    return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001


def _shift(time: Any, by: timedelta) -> Any:
    try:
        return time + by
    except OverflowError:
        return None


_NULL_TOLERANT: dict[str, Callable[..., Value]] = {
    "and": _and,
    "or": _or,
    "is_null": lambda a: a is None,
    "coalesce": lambda *args: next(iter(_not_null(args)), None),
    "nullif": lambda a, b: None if sort_key(a) == sort_key(b) else a,
    "least": lambda *args: min(_not_null(args), key=sort_key, default=None),
    "greatest": lambda *args: max(_not_null(args), key=sort_key, default=None),
}

_NULL_PROPAGATING: dict[str, Callable[..., Value]] = {
    "add": lambda a, b: _overflow_to_null(a + b),
    "subtract": lambda a, b: _overflow_to_null(a - b),
    "multiply": lambda a, b: _overflow_to_null(a * b),
    "divide": _divide,
    "modulo": _modulo,
    "negate": lambda a: _overflow_to_null(-a),
    "abs": lambda a: _overflow_to_null(abs(a)),
    "sign": _sign,
    "floor": lambda x: _floor_or_ceil(math.floor, x),
    "ceil": lambda x: _floor_or_ceil(math.ceil, x),
    "round": _round,
    "sqrt": _sqrt,
    "ln": lambda x: _logarithm(math.log, x),
    "log10": lambda x: _logarithm(math.log10, x),
    "exp": _exp,
    "power": _power,
    "clip": _clip,
    "inside": _null_outside,
    "to_real": float,
    "to_integer": _to_integer,
    "as_integer": int,
    "read_integer": lambda text: int(text) if _INTEGER_PATTERN.fullmatch(text) else None,
    "read_real": lambda text: float(text) if _REAL_PATTERN.fullmatch(text) else None,
    "read_date": _parse_date,
    "read_timestamp": _parse_timestamp,
    "write_integer": str,
    "write_boolean": lambda value: "true" if value else "false",
    "write_date": date.isoformat,
    "equal": lambda a, b: sort_key(a) == sort_key(b),
    "less": lambda a, b: sort_key(a) < sort_key(b),
    "at_most": lambda a, b: sort_key(a) <= sort_key(b),
    "not": lambda a: not a,
    "one_of": lambda a, *options: sort_key(a) in map(sort_key, options),
    "lower": lower_case,
    "upper": upper_case,
    "trim": lambda text: text.strip(" "),
    "trim_left": lambda text: text.lstrip(" "),
    "trim_right": lambda text: text.rstrip(" "),
    "length": len,
    "part": lambda text, start, count: text[start - 1 : start - 1 + count],
    "keep_last": lambda text, count: text[-count:],
    "drop_last": lambda text, count: text[:-count],
    "position": lambda text, part: text.find(part) + 1,
    "replace": lambda text, old, new: text.replace(old, new)[:MAX_TEXT_LENGTH],
    "split_part": _split_part,
    "join": lambda *texts: "".join(texts)[:MAX_TEXT_LENGTH],
    "like": _like,
    "like_any_case": lambda text, pattern: _like(lower_case(text), lower_case(pattern)),
    "matches": lambda text, pattern: _compile_search(pattern).search(text) is not None,
    "year": lambda time: time.year,
    "quarter": lambda time: (time.month + 2) // 3,
    "month": lambda time: time.month,
    "week": lambda time: time.isocalendar().week,
    "day": lambda time: time.day,
    "dow": lambda time: time.isoweekday() % 7,
    "isodow": lambda time: time.isoweekday(),
    "doy": lambda time: time.timetuple().tm_yday,
    "hour": lambda time: time.hour,
    "minute": lambda time: time.minute,
    "second": lambda time: time.second,
    **{
        f"trunc_{window}": lambda time, window=window: _truncate(window, time)
        for window in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    },
    "to_date": lambda time: time.date(),
    "to_timestamp": lambda day: datetime(day.year, day.month, day.day),  # noqa: DTZ001
    "days_between": lambda first, second: (second - first).days,
    "add_days": lambda day, days: _shift(day, timedelta(days=days)),
    "add_seconds": lambda time, seconds: _shift(time, timedelta(seconds=seconds)),
}
