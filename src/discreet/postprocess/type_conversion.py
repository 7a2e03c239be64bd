"""Type conversion as in PostgreSQL, with NULL for values that cannot be converted."""

import re
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from discreet.kernel.expr import Type
from discreet.postprocess.sql_expression import (
    DUCKDB_TYPES,
    NUMERIC_TYPES,
    SqlExpr,
    SqlType,
    compose_expr,
    constant_expr,
)
from discreet.query.syntax.constants import parse_constant
from discreet.query.syntax.syntax_tree import quote_name, refuse, sql_of

_PARSED_TYPES = {
    SqlType.BOOLEAN: Type.BOOLEAN,
    **dict.fromkeys((SqlType.INTEGER, SqlType.WHOLE), Type.INTEGER),
    **dict.fromkeys((SqlType.NUMERIC, SqlType.REAL), Type.REAL),
    SqlType.DATE: Type.DATE,
    SqlType.TIMESTAMP: Type.TIMESTAMP,
}
_COLUMN_SQL = re.compile(r"\w+\.c\d+")
_NUMBER_WIDTH = 30

# The list avoids repeating the SQL of a value that is used twice; short SQL is repeated, which is faster.
FINITE_SQL = "list_transform([{}], lambda v: CASE WHEN isfinite(v) THEN v END)[1]"

_FINITE_SHORT_SQL = "CASE WHEN isfinite({0}) THEN {0} END"
_MAX_DOUBLED = 200


def text_literal(text: str) -> SqlExpr:
    """Return a string constant, which adopts the type of its context."""
    sql = "'" + text.replace("'", "''") + "'"
    return replace(constant_expr(sql, SqlType.UNKNOWN), width=len(text), literal=text)


def number_literal(number: float) -> SqlExpr:
    """Return a numeric constant; an exponent makes it a double in DuckDB."""
    if isinstance(number, int):
        return constant_expr(str(number), SqlType.INTEGER)
    text = repr(number)
    return constant_expr(text if "e" in text else f"{text}e0", SqlType.NUMERIC)


def as_number(value: SqlExpr, kind: SqlType) -> SqlExpr:
    """Cast a number to the DuckDB type that its kind is computed in."""
    if (
        DUCKDB_TYPES[value.kind] == DUCKDB_TYPES[kind] and value.kind is not SqlType.NUMERIC
    ):  # numeric columns may be decimals
        return replace(value, kind=kind)
    return compose_expr(f"CAST({{0}} AS {DUCKDB_TYPES[kind]})", kind, value)


def null_unless_finite(value: SqlExpr) -> SqlExpr:
    """Return a number, with NULL for infinities and NaN; columns are always finite."""
    already_finite = value.sql.startswith((FINITE_SQL[:16], _FINITE_SHORT_SQL[:19])) or _COLUMN_SQL.fullmatch(value.sql)
    if value.kind not in (SqlType.NUMERIC, SqlType.REAL) or already_finite:
        return value
    size = max(len(value.sql), len(getattr(value.origin, "sql", "")))
    return compose_expr(_FINITE_SHORT_SQL if size < _MAX_DOUBLED else FINITE_SQL.format("{0}"), value.kind, value)


def as_text(value: SqlExpr) -> SqlExpr:
    """Return a value as text."""
    match value.kind:
        case SqlType.TEXT:
            return value
        case SqlType.UNKNOWN:
            return replace(value, kind=SqlType.TEXT)
        case SqlType.NUMERIC | SqlType.REAL:
            template = r"regexp_replace(CAST(CAST({0} AS DOUBLE) AS VARCHAR), '\.0$', '')"
            return compose_expr(template, SqlType.TEXT, value, width=_NUMBER_WIDTH)
    return compose_expr("CAST({0} AS VARCHAR)", SqlType.TEXT, value, width=_NUMBER_WIDTH)


def coerce(value: SqlExpr, kind: SqlType, node: exp.Expr, clause: str) -> SqlExpr:
    """Cast a value implicitly, as PostgreSQL does, or refuse it."""
    if value.kind is SqlType.UNKNOWN:
        return _type_literal(value, kind, node, clause)
    if (
        value.kind in NUMERIC_TYPES
        and kind in NUMERIC_TYPES
        and NUMERIC_TYPES.index(value.kind) <= NUMERIC_TYPES.index(kind)
    ):
        return as_number(value, kind)
    if value.kind is kind:
        return value
    if (value.kind, kind) == (SqlType.DATE, SqlType.TIMESTAMP):
        return compose_expr("CAST({0} AS TIMESTAMP)", kind, value)
    raise refuse(node, clause, f"expected {kind}, not {value.kind}", "Convert it with CAST")


def coerce_together(values: Sequence[SqlExpr], node: exp.Expr, clause: str) -> tuple[list[SqlExpr], SqlType]:
    """Return values cast to their common type, and the type."""
    kinds = {value.kind for value in values} - {SqlType.UNKNOWN}
    if not kinds:
        kind = SqlType.TEXT if any(value.literal is not None for value in values) else SqlType.UNKNOWN
    elif kinds <= set(NUMERIC_TYPES):
        kind = max(kinds, key=NUMERIC_TYPES.index)
    elif kinds == {SqlType.DATE, SqlType.TIMESTAMP}:
        kind = SqlType.TIMESTAMP
    elif len(kinds) == 1:
        (kind,) = kinds
    else:
        cause = f"types {' and '.join(sorted(kinds))} cannot be matched"
        raise refuse(node, clause, cause, "Convert one of them with CAST")
    return [value if kind is SqlType.UNKNOWN else coerce(value, kind, node, clause) for value in values], kind


def _type_literal(value: SqlExpr, kind: SqlType, node: exp.Expr, clause: str) -> SqlExpr:
    """Convert a string constant or NULL to a type."""
    if kind in (SqlType.TEXT, SqlType.UNKNOWN):
        return replace(value, kind=kind)
    if value.literal is None:
        return compose_expr(f"TRY_CAST({{0}} AS {DUCKDB_TYPES[kind]})", kind, value)
    try:
        parsed = parse_constant(value.literal, _PARSED_TYPES[kind])
    except (KeyError, ValueError):
        cause = f"invalid input syntax for type {kind}: {quote_name(value.literal)}"
        raise refuse(node, clause, cause, "Write a constant of that type") from None
    match parsed:
        case bool():
            return constant_expr(str(parsed).upper(), kind)
        case int() | float():
            return constant_expr(f"({number_literal(parsed).sql})", kind)
    return constant_expr(f"CAST('{parsed}' AS {DUCKDB_TYPES[kind]})", kind)


def cast(value: SqlExpr, to: exp.Expr, node: exp.Expr, clause: str) -> SqlExpr:
    """Return CAST(value AS to), with NULL for values that cannot be converted."""
    target = _CAST_TARGETS.get(to.this) if isinstance(to, exp.DataType) else None
    sizes = [size.name for size in to.expressions]
    if target is None or to.args.get("nested") or not all(size.isdecimal() and len(size) < 4 for size in sizes):
        raise refuse(node, clause, f"cannot cast to type {quote_name(sql_of(to))}", f"Supported: {_TYPE_LIST}")
    kind, stored_type = target
    if value.kind is SqlType.UNKNOWN:
        return _apply_size(_type_literal(value, kind, node, clause), stored_type, sizes)
    if kind is SqlType.TEXT:
        return _apply_size(as_text(value), stored_type, sizes)
    if (value.kind, kind) not in _ALLOWED_CASTS:
        raise refuse(node, clause, f"cannot cast type {value.kind} to {kind}", "Leave out the CAST")
    return _apply_size(_convert(value, kind), stored_type, sizes)


def _convert(value: SqlExpr, kind: SqlType) -> SqlExpr:
    if value.kind is kind:
        return value
    if kind is SqlType.BOOLEAN and value.kind is SqlType.INTEGER:
        return compose_expr("({0} <> 0)", kind, value)
    if (
        kind is SqlType.INTEGER and value.kind is SqlType.NUMERIC
    ):  # numeric rounds ties away from zero, double precision to even
        return compose_expr("TRY_CAST(round(CAST({0} AS DOUBLE)) AS BIGINT)", kind, value)
    return null_unless_finite(compose_expr(f"TRY_CAST({{0}} AS {DUCKDB_TYPES[kind]})", kind, value))


def _apply_size(value: SqlExpr, stored_type: str, sizes: list[str]) -> SqlExpr:
    """Apply the size of a type: int2 and int4, numeric(p, s), varchar(n)."""
    if stored_type in ("SMALLINT", "INTEGER"):
        return compose_expr(f"CAST(TRY_CAST({{0}} AS {stored_type}) AS BIGINT)", value.kind, value)
    if not sizes:
        return value
    if value.kind is SqlType.TEXT:
        return compose_expr(f"left({{0}}, {int(sizes[0])})", SqlType.TEXT, value, width=min(value.width, int(sizes[0])))
    digits, scale = min(int(sizes[0]), 38), int(sizes[1]) if len(sizes) > 1 else 0
    decimal = f"DECIMAL({max(digits, 1)}, {min(scale, digits)})"
    return compose_expr(f"CAST(TRY_CAST({{0}} AS {decimal}) AS DOUBLE)", SqlType.NUMERIC, value)


_TYPE = exp.DType
_CAST_TARGETS = {
    _TYPE.BOOLEAN: (SqlType.BOOLEAN, "BOOLEAN"),
    _TYPE.SMALLINT: (SqlType.INTEGER, "SMALLINT"),
    _TYPE.INT: (SqlType.INTEGER, "INTEGER"),
    _TYPE.BIGINT: (SqlType.INTEGER, "BIGINT"),
    _TYPE.DECIMAL: (SqlType.NUMERIC, "DECIMAL"),
    _TYPE.FLOAT: (SqlType.REAL, "DOUBLE"),
    _TYPE.DOUBLE: (SqlType.REAL, "DOUBLE"),
    _TYPE.TEXT: (SqlType.TEXT, "VARCHAR"),
    _TYPE.VARCHAR: (SqlType.TEXT, "VARCHAR"),
    _TYPE.DATE: (SqlType.DATE, "DATE"),
    _TYPE.TIMESTAMP: (SqlType.TIMESTAMP, "TIMESTAMP"),
}
_TYPE_LIST = (
    "boolean, smallint, integer, bigint, numeric(p, s), real, double precision, text, varchar(n), date, timestamp"
)
_ALLOWED_CASTS = frozenset(
    [(kind, kind) for kind in SqlType]
    + [(one, other) for one in (*NUMERIC_TYPES, SqlType.TEXT) for other in NUMERIC_TYPES]
    + [(SqlType.INTEGER, SqlType.BOOLEAN), (SqlType.BOOLEAN, SqlType.INTEGER), (SqlType.TEXT, SqlType.BOOLEAN)]
    + [
        (one, other)
        for one in (SqlType.TEXT, SqlType.DATE, SqlType.TIMESTAMP)
        for other in (SqlType.DATE, SqlType.TIMESTAMP)
    ]
)
