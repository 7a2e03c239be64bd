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
    """A column; `low` and `high` are TOML texts, and a column whose type is None cannot be used in queries.

    `stored_type` is the source's name for the type; `guessed` means that the source defines no type; `unique` means
    that the database has a uniqueness constraint; `nullable` that the schema allows NULL.
    """

    name: str
    type: str | None
    stored_type: str = ""
    guessed: bool = False
    low: str | None = None
    high: str | None = None
    notes: tuple[str, ...] = ()
    unique: bool = False
    nullable: bool = False


@dataclass(frozen=True)
class TableSketch:
    """A table; None means unknown. With `row_is_unit`, each row is a unit."""

    name: str
    source: str | None
    columns: tuple[ColumnSketch, ...]
    unit: str | None = None
    row_is_unit: bool = False
    groups: int | None = None
    rows: int | None = None
    notes: tuple[str, ...] = ()

    def column(self, name: str) -> ColumnSketch | None:
        """Find a column by its name, ignoring case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class CatalogSketch:
    """The tables of an engine's server, under its URL."""

    engine: str
    url: str
    tables: tuple[TableSketch, ...]


def toml_bound(kind: str | None, value: Any) -> str | None:
    """Format a bound as TOML; None if it does not fit the column's type.

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


def positive_integer(value: Any) -> int | None:
    """Return a positive integer, or None if the value is not one."""
    if isinstance(value, bool) or not isinstance(value, int | FloatText | str):
        return None
    try:
        exact = parse_number(value, "number")
    except ValueError:
        return None
    return int(exact) if exact.denominator == 1 and 1 <= exact <= 1 << 62 else None


def option_notes(entry: Iterable[str], known: Mapping[str, str]) -> list[str]:
    """Return notes on options that a policy does not have, without their values, which may come from the data."""
    return [f"{key}: {known[key]}" for key in entry if key in known]


def unknown_key_notes(keys: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return a note on the keys that are not known."""
    unknown = [shorten(key) for key in keys if key not in set(known)]
    return (f"ignored, because unknown: {', '.join(unknown)}",) if unknown else ()
