"""An expression over released tables: its DuckDB SQL, its PostgreSQL type, and its origin.

Origin ── Constant     no column at all
       ── Carried      a released column as it is
       ── RowWise      computed from columns of one row of one released table
       ── Mixed        anything else: several rows or tables took part
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class SqlType(StrEnum):
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


NUMERIC_TYPES = (
    SqlType.INTEGER,
    SqlType.WHOLE,
    SqlType.NUMERIC,
    SqlType.REAL,
)  # in the order in which they give way to each other
DUCKDB_TYPES = {
    SqlType.BOOLEAN: "BOOLEAN",
    SqlType.INTEGER: "BIGINT",
    SqlType.WHOLE: "BIGINT",
    SqlType.NUMERIC: "DOUBLE",
    SqlType.REAL: "DOUBLE",
    SqlType.TEXT: "VARCHAR",
    SqlType.DATE: "DATE",
    SqlType.TIMESTAMP: "TIMESTAMP",
    SqlType.INTERVAL: "INTERVAL",
    SqlType.UNKNOWN: "VARCHAR",
}

_MAX_CARRIED_LENGTH = (
    20_000  # characters of an expression that is carried through inner queries, where it may double each time
)

ReleasedColumn = tuple[str, str]  # a released table and its column


@dataclass(frozen=True)
class ConstantOrigin:
    """No column of any table."""

    sql: str


@dataclass(frozen=True)
class ColumnOrigin:
    """A column of a released table; its row is the number in hidden column `slot`."""

    slot: int
    table: str
    column: str
    sql: str


@dataclass(frozen=True)
class RowWiseOrigin:
    """An expression over one row of a released table, whose number is in hidden column `slot`."""

    slot: int
    table: str
    reads: frozenset[ReleasedColumn]
    sql: str


@dataclass(frozen=True)
class MixedOrigin:
    """Neither; `depends_on_rows` says that even without reading a column it depends on which rows there are."""

    reads: frozenset[ReleasedColumn]
    depends_on_rows: bool = False


Origin = ConstantOrigin | ColumnOrigin | RowWiseOrigin | MixedOrigin


@dataclass(frozen=True)
class SqlExpr:
    """An expression; `width` bounds the length of its text, `literal` is the text of a string whose type is open."""

    sql: str
    kind: SqlType
    origin: Origin
    width: int = 0
    literal: str | None = None


def constant_expr(sql: str, kind: SqlType) -> SqlExpr:
    """Return a value that reads nothing."""
    return SqlExpr(sql, kind, ConstantOrigin(sql))


def compose_expr(template: str, kind: SqlType, *operands: SqlExpr, width: int | None = None) -> SqlExpr:
    """Return a value computed from others in the same row; {0}, {1} … stand for them.

    >>> compose_expr("{0} + {1}", SqlType.INTEGER, constant_expr("1", SqlType.INTEGER), constant_expr("2", SqlType.INTEGER)).sql
    '1 + 2'
    """
    sql = template.format(*(operand.sql for operand in operands))
    width = max((part.width for part in operands), default=0) if width is None else width
    return SqlExpr(
        sql, kind, _combined_origin(template, [part.origin for part in operands]), width if kind is SqlType.TEXT else 0
    )


def mixed_expr(sql: str, kind: SqlType, *operands: SqlExpr, width: int = 0) -> SqlExpr:
    """Return a value in which several rows took part."""
    return SqlExpr(
        sql, kind, MixedOrigin(columns_read(operand.origin for operand in operands), depends_on_rows=True), width
    )


def columns_read(origins: Iterable[Origin]) -> frozenset[ReleasedColumn]:
    """Return every released column that takes part."""
    columns: frozenset[ReleasedColumn] = frozenset()
    for origin in origins:
        match origin:
            case ColumnOrigin():
                columns |= {(origin.table, origin.column)}
            case RowWiseOrigin() | MixedOrigin():
                columns |= origin.reads
    return columns


def depends_on_rows(origin: Origin) -> bool:
    """Tell whether something depends on which rows there are."""
    return isinstance(origin, MixedOrigin) and origin.depends_on_rows


def shift_slots(origin: Origin, slots: int) -> Origin:
    """Return the origin of a column of a source, whose hidden columns come after so many others.

    What was constant in an inner query is so no more: a join may put NULL in its place.
    """
    if isinstance(origin, ConstantOrigin):
        return MixedOrigin(frozenset())
    return replace(origin, slot=origin.slot + slots) if isinstance(origin, ColumnOrigin | RowWiseOrigin) else origin


def _combined_origin(template: str, origins: list[Origin]) -> Origin:
    texts = [origin.sql for origin in origins if not isinstance(origin, MixedOrigin)]
    rows = {(origin.slot, origin.table) for origin in origins if isinstance(origin, ColumnOrigin | RowWiseOrigin)}
    if len(texts) < len(origins) or len(rows) > 1:
        return MixedOrigin(columns_read(origins), any(depends_on_rows(origin) for origin in origins))
    sql = template.format(*texts)
    if len(sql) > _MAX_CARRIED_LENGTH:
        return MixedOrigin(columns_read(origins))
    if not rows:
        return ConstantOrigin(sql)
    ((slot, table),) = rows
    return RowWiseOrigin(slot, table, columns_read(origins), sql)
