"""An expression over released tables: its DuckDB text, its type in PostgreSQL, and the released columns it is made of.

Origin ── Constant     no column at all
       ── Carried      a released column as it is
       ── RowWise      computed from columns of one row of one released table
       ── Mixed        anything else: several rows or tables took part
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class Kind(StrEnum):
    """The types of PostgreSQL, as far as they behave differently; whole numbers of any size are numeric there."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    WHOLE = "whole numeric"
    NUMERIC = "numeric"
    REAL = "double precision"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    UNKNOWN = "unknown"


NUMBERS = (Kind.INTEGER, Kind.WHOLE, Kind.NUMERIC, Kind.REAL)  # in the order in which they give way to each other
STORED = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.WHOLE: "BIGINT",
    Kind.NUMERIC: "DOUBLE",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.INTERVAL: "INTERVAL",
    Kind.UNKNOWN: "VARCHAR",
}

_LONGEST = 20_000  # characters of an expression that is carried through inner queries, where it may double each time

Read = tuple[str, str]  # a released table and its column


@dataclass(frozen=True)
class Constant:
    """No column of any table."""

    sql: str


@dataclass(frozen=True)
class Carried:
    """A column of a released table; its row is the number in hidden column `slot`."""

    slot: int
    table: str
    column: str
    sql: str


@dataclass(frozen=True)
class RowWise:
    """An expression over one row of a released table, whose number is in hidden column `slot`."""

    slot: int
    table: str
    reads: frozenset[Read]
    sql: str


@dataclass(frozen=True)
class Mixed:
    """Neither; `counts` says that even without reading a column it depends on which rows there are."""

    reads: frozenset[Read]
    counts: bool = False


Origin = Constant | Carried | RowWise | Mixed


@dataclass(frozen=True)
class Value:
    """An expression; `width` bounds the length of its text, `literal` is the text of a string whose type is open."""

    sql: str
    kind: Kind
    origin: Origin
    width: int = 0
    literal: str | None = None


def constant(sql: str, kind: Kind) -> Value:
    """Return a value that reads nothing."""
    return Value(sql, kind, Constant(sql))


def made(template: str, kind: Kind, *parts: Value, width: int | None = None) -> Value:
    """Return a value computed from others in the same row; {0}, {1} … stand for them.

    >>> made("{0} + {1}", Kind.INTEGER, constant("1", Kind.INTEGER), constant("2", Kind.INTEGER)).sql
    '1 + 2'
    """
    sql = template.format(*(part.sql for part in parts))
    width = max((part.width for part in parts), default=0) if width is None else width
    return Value(sql, kind, _origin(template, [part.origin for part in parts]), width if kind is Kind.TEXT else 0)


def mixed(sql: str, kind: Kind, *parts: Value, width: int = 0) -> Value:
    """Return a value in which several rows took part."""
    return Value(sql, kind, Mixed(reads(part.origin for part in parts), counts=True), width)


def reads(origins: Iterable[Origin]) -> frozenset[Read]:
    """Return every released column that takes part."""
    found: frozenset[Read] = frozenset()
    for origin in origins:
        match origin:
            case Carried():
                found |= {(origin.table, origin.column)}
            case RowWise() | Mixed():
                found |= origin.reads
    return found


def counts(origin: Origin) -> bool:
    """Tell whether something depends on which rows there are."""
    return isinstance(origin, Mixed) and origin.counts


def moved(origin: Origin, slots: int) -> Origin:
    """Return the origin of a column of a source, whose hidden columns come after so many others.

    What was constant in an inner query is so no more: a join may put NULL in its place.
    """
    if isinstance(origin, Constant):
        return Mixed(frozenset())
    return replace(origin, slot=origin.slot + slots) if isinstance(origin, Carried | RowWise) else origin


def _origin(template: str, origins: list[Origin]) -> Origin:
    texts = [origin.sql for origin in origins if not isinstance(origin, Mixed)]
    rows = {(origin.slot, origin.table) for origin in origins if isinstance(origin, Carried | RowWise)}
    if len(texts) < len(origins) or len(rows) > 1:
        return Mixed(reads(origins), any(counts(origin) for origin in origins))
    sql = template.format(*texts)
    if len(sql) > _LONGEST:
        return Mixed(reads(origins))
    if not rows:
        return Constant(sql)
    ((slot, table),) = rows
    return RowWise(slot, table, reads(origins), sql)
