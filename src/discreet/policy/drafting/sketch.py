"""Sketches of tables and columns, from schemas or metadata, before a policy is written."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from discreet.policy.problems import shorten
from discreet.policy.toml import FloatText, value_text
from discreet.policy.validators import parse_number


@dataclass(frozen=True)
class ColumnSketch:
    """A column; `low`, `high` and `keys` are TOML texts, and a type of None cannot be asked about.

    `stored_type` is the source's own word for the type; `guessed` is a type that the source does not tell; `references` are
    another table and its column, if metadata say so; `unique` says that the database keeps its values different.
    """

    name: str
    type: str | None
    stored_type: str = ""
    guessed: bool = False
    low: str | None = None
    high: str | None = None
    keys: tuple[str, ...] = ()
    references: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()
    unique: bool = False


@dataclass(frozen=True)
class TableSketch:
    """A table; what is None is not known. `row_is_unit` says that each row is protected alone."""

    name: str
    source: str | None
    columns: tuple[ColumnSketch, ...]
    unit: str | None = None
    row_is_unit: bool = False
    groups: int | None = None
    rows: int | None = None
    rows_max: int | None = None
    notes: tuple[str, ...] = ()

    def column(self, name: str) -> ColumnSketch | None:
        """Find a column by its name in any case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class CatalogSketch:
    """The tables of an engine's server, under its URL."""

    engine: str
    url: str
    tables: tuple[TableSketch, ...]


_MAX_KEYS = 1_000_000


def toml_bound(kind: str | None, value: Any) -> str | None:
    """Write an end of a range; None if it does not fit the column's type.

    >>> toml_bound("integer", FloatText("176.0")), toml_bound("date", "2025-01-02T00:00:00"), toml_bound("text", "a")
    ('176', '2025-01-02', None)
    """
    try:
        if kind in ("integer", "real", "decimal") and isinstance(value, int | FloatText | str):
            exact = parse_number(value, "bound")
            return value_text(exact) if kind != "integer" or exact.denominator == 1 else None
        if kind in ("date", "timestamp") and isinstance(value, str):
            moment = datetime.fromisoformat(value)
            is_date = kind == "date" or ("T" not in value and " " not in value.strip())
            return None if moment.tzinfo else value_text(moment.date() if is_date else moment)
    except ValueError:
        pass
    return None


def toml_keys(kind: str | None, values: Any) -> tuple[str, ...] | None:
    """Write a list of keys; None if one does not fit the column's type, or the type has no keys."""
    if not isinstance(values, list) or not 0 < len(values) <= _MAX_KEYS:
        return None
    texts = [_toml_key(kind, value) for value in values]
    valid = [text for text in texts if text is not None]
    return tuple(valid) if len(set(valid)) == len(texts) else None


def _toml_key(kind: str | None, value: Any) -> str | None:
    if kind == "text":
        return (
            value_text(str(value)) if isinstance(value, str | int | FloatText) and not isinstance(value, bool) else None
        )
    if kind == "boolean":
        return value_text(value) if isinstance(value, bool) else None
    return toml_bound(kind, value) if kind in ("integer", "decimal", "date", "timestamp") else None


def positive_integer(value: Any) -> int | None:
    """Return a whole number from 1 on, or None."""
    if isinstance(value, bool) or not isinstance(value, int | FloatText | str):
        return None
    try:
        exact = parse_number(value, "number")
    except ValueError:
        return None
    return int(exact) if exact.denominator == 1 and 1 <= exact <= 1 << 62 else None


def option_notes(entry: Iterable[str], known: Mapping[str, str]) -> list[str]:
    """Tell what has no place in a policy, and what happens instead; not its value, which may have been counted."""
    return [f"{key}: {known[key]}" for key in entry if key in known]


def unknown_key_notes(keys: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Tell which keys were not understood."""
    unknown = [shorten(key) for key in keys if key not in set(known)]
    return (f"not understood, and left out: {', '.join(unknown)}",) if unknown else ()
