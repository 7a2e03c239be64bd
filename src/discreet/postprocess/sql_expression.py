"""An expression over released tables: its DuckDB SQL, its PostgreSQL type, and its origin.

ConstantOrigin     no column
ColumnOrigin       a released column, unchanged
RowWiseOrigin      computed from one row of one released table
MixedOrigin        anything else: several rows or tables
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class SqlType(StrEnum):
    """PostgreSQL types with different behaviour; WHOLE is a numeric without fractional digits."""

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
)  # in order of implicit conversion
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
    20_000  # characters of an expression that is tracked through subqueries, where it may double each time
)

ReleasedColumn = tuple[str, str]  # table and column


@dataclass(frozen=True)
class ConstantOrigin:
    """A constant."""

    sql: str


@dataclass(frozen=True)
class ColumnOrigin:
    """A column of a released table, whose row number is in hidden column `slot`."""

    slot: int
    table: str
    column: str
    sql: str


@dataclass(frozen=True)
class RowWiseOrigin:
    """An expression over one row of a released table, whose row number is in hidden column `slot`."""

    slot: int
    table: str
    reads: frozenset[ReleasedColumn]
    sql: str


@dataclass(frozen=True)
class MixedOrigin:
    """Several rows or tables; `depends_on_rows` if it depends on the set of rows even without reading a column.

    `selected_by` are the columns that it is selected by, as a maximum is. Their noise does not only spread the result,
    but also biases it.
    """

    reads: frozenset[ReleasedColumn]
    depends_on_rows: bool = False
    selected_by: frozenset[ReleasedColumn] = frozenset()


Origin = ConstantOrigin | ColumnOrigin | RowWiseOrigin | MixedOrigin


@dataclass(frozen=True)
class SqlExpr:
    """An expression; `width` bounds the length of a text, `literal` is the text of an untyped string constant."""

    sql: str
    kind: SqlType
    origin: Origin
    width: int = 0
    literal: str | None = None


def constant_expr(sql: str, kind: SqlType) -> SqlExpr:
    """Return a constant expression."""
    return SqlExpr(sql, kind, ConstantOrigin(sql))


def compose_expr(template: str, kind: SqlType, *operands: SqlExpr, width: int | None = None) -> SqlExpr:
    """Return an expression computed from operands of the same row, which replace {0}, {1} ….

    >>> one, two = (constant_expr(text, SqlType.INTEGER) for text in "12")
    >>> compose_expr("{0} + {1}", SqlType.INTEGER, one, two).sql
    '1 + 2'
    """
    sql = template.format(*(operand.sql for operand in operands))
    width = max((part.width for part in operands), default=0) if width is None else width
    return SqlExpr(
        sql, kind, _combined_origin(template, [part.origin for part in operands]), width if kind is SqlType.TEXT else 0
    )


def mixed_expr(
    sql: str, kind: SqlType, *operands: SqlExpr, width: int = 0, selectors: Iterable[SqlExpr] = ()
) -> SqlExpr:
    """Return an expression that depends on several rows, and that `selectors` select."""
    origins, by = [operand.origin for operand in operands], [selector.origin for selector in selectors]
    selected_by = columns_read(by) | columns_selecting([*origins, *by])
    return SqlExpr(
        sql, kind, MixedOrigin(columns_read([*origins, *by]), depends_on_rows=True, selected_by=selected_by), width
    )


def columns_read(origins: Iterable[Origin]) -> frozenset[ReleasedColumn]:
    """Return the released columns that the origins read."""
    columns: frozenset[ReleasedColumn] = frozenset()
    for origin in origins:
        match origin:
            case ColumnOrigin():
                columns |= {(origin.table, origin.column)}
            case RowWiseOrigin() | MixedOrigin():
                columns |= origin.reads
    return columns


def columns_selecting(origins: Iterable[Origin]) -> frozenset[ReleasedColumn]:
    """Return the released columns that values with these origins are selected by."""
    return frozenset().union(*(origin.selected_by for origin in origins if isinstance(origin, MixedOrigin)))


def untracked_origin(origins: Iterable[Origin]) -> MixedOrigin:
    """Return the origin of a value that one of these became, without its row."""
    origins = list(origins)
    return MixedOrigin(columns_read(origins), any(map(depends_on_rows, origins)), columns_selecting(origins))


def depends_on_rows(origin: Origin) -> bool:
    """Return whether an origin depends on the set of rows."""
    return isinstance(origin, MixedOrigin) and origin.depends_on_rows


def shift_slots(origin: Origin, slots: int) -> Origin:
    """Return the origin of a source's column, with `slots` hidden columns before those of the source.

    A constant of a subquery becomes mixed, because an outer join may replace it by NULL.
    """
    if isinstance(origin, ConstantOrigin):
        return MixedOrigin(frozenset())
    return replace(origin, slot=origin.slot + slots) if isinstance(origin, ColumnOrigin | RowWiseOrigin) else origin


def _combined_origin(template: str, origins: list[Origin]) -> Origin:
    texts = [origin.sql for origin in origins if not isinstance(origin, MixedOrigin)]
    rows = {(origin.slot, origin.table) for origin in origins if isinstance(origin, ColumnOrigin | RowWiseOrigin)}
    if len(texts) < len(origins) or len(rows) > 1:
        return untracked_origin(origins)
    sql = template.format(*texts)
    if len(sql) > _MAX_CARRIED_LENGTH:
        return MixedOrigin(columns_read(origins))
    if not rows:
        return ConstantOrigin(sql)
    ((slot, table),) = rows
    return RowWiseOrigin(slot, table, columns_read(origins), sql)
