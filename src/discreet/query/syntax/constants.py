"""Constants of a query: numbers, and texts that stand for values of other types, as PostgreSQL reads them."""

import re
from datetime import date, datetime, time
from math import isfinite

from discreet.kernel.expr import Type, Value

TRUE_TEXTS = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
FALSE_TEXTS = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")
_INTEGER_TEXT = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_REAL_TEXT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII)
_MOMENT_TEXT = re.compile(r"(\d{4}-\d{1,2}-\d{1,2})(?:[ t]+(\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?", re.ASCII)
_INT64 = 1 << 63


def parse_constant(text: str, kind: Type) -> Value:
    """Convert a text constant to another type as PostgreSQL does; ValueError if it is invalid.

    >>> parse_constant("2010-1-31", Type.DATE)
    datetime.date(2010, 1, 31)
    """
    bare = text.strip().lower()
    match kind:
        case Type.TEXT:
            return text
        case Type.INTEGER if _INTEGER_TEXT.fullmatch(bare) and -_INT64 <= int(bare) < _INT64:
            return int(bare)
        case Type.REAL if _REAL_TEXT.fullmatch(bare) and isfinite(float(bare)):
            return float(bare)
        case Type.BOOLEAN if bare in (*TRUE_TEXTS, *FALSE_TEXTS):
            return bare in TRUE_TEXTS
        case Type.DATE | Type.TIMESTAMP if match := _MOMENT_TEXT.fullmatch(bare):
            day = date(*map(int, match[1].split("-")))
            clock = time.fromisoformat(("0" if (match[2] or "")[1:2] == ":" else "") + (match[2] or "00:00"))
            if kind is Type.TIMESTAMP:
                return datetime.combine(day, clock)
            if clock == time.min:
                return day
    raise ValueError("the text is not a valid constant of this type")


def parse_number(text: str) -> int | float:
    """Return the value of a numeric literal, an integer if it fits in 64 bits; ValueError if it is no finite number.

    >>> parse_number("007"), parse_number("1e3"), parse_number("9223372036854775808")
    (7, 1000.0, 9.223372036854776e+18)
    """
    digits = (text.lstrip("0") or "0") if text.isdecimal() else ""  # int() refuses very long texts
    if digits and len(digits) < 20 and int(digits) < _INT64:
        return int(digits)
    number = parse_constant(text, Type.REAL)
    assert isinstance(number, float)
    return number
