"""Single values as metadata tell them, written for a policy; what cannot be written is told in a note."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from discreet.policy.problems import brief
from discreet.policy.toml import Real
from discreet.policy.toml_text import value_text
from discreet.policy.values import number

_MOST_KEYS = 1_000_000


def bound_text(kind: str | None, value: Any) -> str | None:
    """Write an end of a range; None if it does not fit the column's type.

    >>> bound_text("integer", Real("176.0")), bound_text("date", "2025-01-02T00:00:00"), bound_text("text", "a")
    ('176', '2025-01-02', None)
    """
    try:
        if kind in ("integer", "real", "decimal") and isinstance(value, int | Real | str):
            exact = number(value, "bound")
            return value_text(exact) if kind != "integer" or exact.denominator == 1 else None
        if kind in ("date", "timestamp") and isinstance(value, str):
            moment = datetime.fromisoformat(value)
            day = kind == "date" or ("T" not in value and " " not in value.strip())
            return None if moment.tzinfo else value_text(moment.date() if day else moment)
    except ValueError:
        pass
    return None


def key_texts(kind: str | None, values: Any) -> tuple[str, ...] | None:
    """Write a list of keys; None if one does not fit the column's type, or the type has no keys."""
    if not isinstance(values, list) or not 0 < len(values) <= _MOST_KEYS:
        return None
    texts = [_key_text(kind, value) for value in values]
    known = [text for text in texts if text is not None]
    return tuple(known) if len(set(known)) == len(texts) else None


def _key_text(kind: str | None, value: Any) -> str | None:
    if kind == "text":
        return value_text(str(value)) if isinstance(value, str | int | Real) and not isinstance(value, bool) else None
    if kind == "boolean":
        return value_text(value) if isinstance(value, bool) else None
    return bound_text(kind, value) if kind in ("integer", "decimal", "date", "timestamp") else None


def whole(value: Any) -> int | None:
    """Return a whole number from 1 on, or None."""
    if isinstance(value, bool) or not isinstance(value, int | Real | str):
        return None
    try:
        exact = number(value, "number")
    except ValueError:
        return None
    return int(exact) if exact.denominator == 1 and 1 <= exact <= 1 << 62 else None


def option_notes(entry: Iterable[str], known: Mapping[str, str]) -> list[str]:
    """Tell what has no place in a policy, and what happens instead; not its value, which may have been counted."""
    return [f"{key}: {known[key]}" for key in entry if key in known]


def unknown_notes(keys: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Tell which keys were not understood."""
    strange = [brief(key) for key in keys if key not in set(known)]
    return (f"not understood, and left out: {', '.join(strange)}",) if strange else ()
