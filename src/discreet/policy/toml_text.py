"""Values as TOML text that reads back as exactly the same."""

import json
import re
from collections.abc import Iterable
from datetime import date, datetime
from fractions import Fraction
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def key_text(name: str) -> str:
    """Write a key, in quotes if it needs them.

    >>> key_text("ward"), key_text("Last Name")
    ('ward', '"Last Name"')
    """
    return name if _BARE.fullmatch(name) else value_text(name)


def value_text(value: Any) -> str:
    r"""Write a value of the policy.

    >>> value_text("a\tb"), value_text(Fraction(1, 8)), value_text(Fraction(1, 3)), value_text(True)
    ('"a\\tb"', '0.125', '"1/3"', 'true')
    """
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int():
            return str(value)
        case Fraction():
            return _number_text(value)
        case datetime() | date():
            return value.isoformat()
    raise TypeError(f"value must be a text, number, boolean, date or time, not {type(value).__name__}")


def list_text(values: Iterable[Any]) -> str:
    """Write a list on one line."""
    return f"[{', '.join(map(value_text, values))}]"


def inline_text(entries: dict[str, str]) -> str:
    """Write keys and their texts as an inline table."""
    return "{ " + ", ".join(f"{key_text(key)} = {text}" for key, text in entries.items()) + " }"


def _number_text(value: Fraction) -> str:
    """Write an exact decimal if there is a short one, else a fraction in quotes, which policies read as exactly."""
    if value.denominator == 1:
        return str(value.numerator) if abs(value) < 1 << 62 else f'"{value}"'
    digits = next((places for places in range(1, 40) if 10**places % value.denominator == 0), None)
    if digits is None:
        return f'"{value}"'
    whole = abs(value.numerator) * 10**digits // value.denominator
    text = f"{whole // 10**digits}.{whole % 10**digits:0{digits}d}"
    return f"-{text}" if value < 0 else text
