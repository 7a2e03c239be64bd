"""From one type to another as PostgreSQL does it; what does not fit becomes NULL."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlglot import exp

from discreet.sql.after.values import NUMBERS, STORED, Kind, Value, constant, made
from discreet.sql.places import quoted, refuse, written

_WHOLE = re.compile(r"\s*[+-]?\d{1,18}\s*", re.ASCII)
_FRACTION = re.compile(r"\s*[+-]?(\d{1,300}\.?\d{0,300}|\.\d{1,300})([eE][+-]?\d{1,3})?\s*", re.ASCII)
_TRUTH = {**dict.fromkeys(("t", "true", "yes", "on", "1"), "TRUE")}
_TRUTH |= dict.fromkeys(("f", "false", "no", "off", "0"), "FALSE")
_COLUMN = re.compile(r"\w+\.c\d+")
_NUMBER_WIDTH = 30

# A list of one keeps the text from doubling where a value is looked at twice; short ones may double, which is faster.
FINITE = "list_transform([{}], lambda v: CASE WHEN isfinite(v) THEN v END)[1]"

_SHORT = "CASE WHEN isfinite({0}) THEN {0} END"
_BRIEF = 200


def text_literal(text: str) -> Value:
    """Return a string constant, whose type depends on what it meets."""
    sql = "'" + text.replace("'", "''") + "'"
    return replace(constant(sql, Kind.UNKNOWN), width=len(text), literal=text)


def whole_literal(number: int) -> Value:
    """Return an integer constant."""
    return constant(str(number), Kind.INTEGER)


def number_literal(text: str) -> Value | None:
    """Return a numeric constant; None if it is none."""
    if text.isdecimal() and len(text) < 20 and int(text) < 2**63:
        return whole_literal(int(text))
    if not _FRACTION.fullmatch(text) or not math.isfinite(float(text)):
        return None
    return constant(_double(text), Kind.NUMERIC)


def _double(text: str) -> str:
    """Write a number so that DuckDB takes it for a double: only those with an exponent are."""
    number = repr(float(text))
    return number if "e" in number else f"{number}e0"


def as_number(value: Value, kind: Kind) -> Value:
    """Return a number in the form in which its kind is computed with."""
    if STORED[value.kind] == STORED[kind] and value.kind is not Kind.NUMERIC:  # numeric may be stored as a decimal
        return replace(value, kind=kind)
    return made(f"CAST({{0}} AS {STORED[kind]})", kind, value)


def finite(value: Value) -> Value:
    """Return a number, or NULL where it is infinite or not a number; a column is neither."""
    done = value.sql.startswith((FINITE[:16], _SHORT[:19])) or _COLUMN.fullmatch(value.sql)
    if value.kind not in (Kind.NUMERIC, Kind.REAL) or done:
        return value
    size = max(len(value.sql), len(getattr(value.origin, "sql", "")))
    return made(_SHORT if size < _BRIEF else FINITE.format("{0}"), value.kind, value)


def as_text(value: Value) -> Value:
    """Return the text of a value."""
    match value.kind:
        case Kind.TEXT:
            return value
        case Kind.UNKNOWN:
            return replace(value, kind=Kind.TEXT)
        case Kind.NUMERIC | Kind.REAL:
            template = r"regexp_replace(CAST(CAST({0} AS DOUBLE) AS VARCHAR), '\.0$', '')"
            return made(template, Kind.TEXT, value, width=_NUMBER_WIDTH)
    return made("CAST({0} AS VARCHAR)", Kind.TEXT, value, width=_NUMBER_WIDTH)


def fitted(value: Value, kind: Kind, node: exp.Expr, clause: str) -> Value:
    """Return a value as another kind, where PostgreSQL would do so by itself."""
    if value.kind is Kind.UNKNOWN:
        return _decided(value, kind, node, clause)
    if value.kind in NUMBERS and kind in NUMBERS and NUMBERS.index(value.kind) <= NUMBERS.index(kind):
        return as_number(value, kind)
    if value.kind is kind:
        return value
    if (value.kind, kind) == (Kind.DATE, Kind.TIMESTAMP):
        return made("CAST({0} AS TIMESTAMP)", kind, value)
    raise refuse(node, clause, f"{value.kind} stands where {kind} is needed", "Use CAST to say what is meant")


def unified(values: Sequence[Value], node: exp.Expr, clause: str) -> tuple[list[Value], Kind]:
    """Return values as one kind, which all of them can be."""
    kinds = {value.kind for value in values} - {Kind.UNKNOWN}
    if not kinds:
        kind = Kind.TEXT if any(value.literal is not None for value in values) else Kind.UNKNOWN
    elif kinds <= set(NUMBERS):
        kind = max(kinds, key=NUMBERS.index)
    elif kinds == {Kind.DATE, Kind.TIMESTAMP}:
        kind = Kind.TIMESTAMP
    elif len(kinds) == 1:
        (kind,) = kinds
    else:
        cause = f"{' and '.join(sorted(kinds))} do not fit together"
        raise refuse(node, clause, cause, "Use CAST to bring them to one type")
    return [value if kind is Kind.UNKNOWN else fitted(value, kind, node, clause) for value in values], kind


def _decided(value: Value, kind: Kind, node: exp.Expr, clause: str) -> Value:
    """Return a string constant, or NULL, as the type that it has to be."""
    if kind in (Kind.TEXT, Kind.UNKNOWN):
        return replace(value, kind=kind)
    if value.literal is None:
        return made(f"TRY_CAST({{0}} AS {STORED[kind]})", kind, value)
    read = _read(value.literal, kind)
    if read is None:
        raise refuse(node, clause, f"{quoted(value.literal)} is not of type {kind}", "Write a constant of that type")
    return constant(read, kind)


def _read(text: str, kind: Kind) -> str | None:
    match kind:
        case Kind.INTEGER | Kind.WHOLE if _WHOLE.fullmatch(text):
            return f"({int(text)})"
        case Kind.NUMERIC | Kind.REAL if _FRACTION.fullmatch(text) and math.isfinite(float(text)):
            return f"({_double(text)})"
        case Kind.BOOLEAN:
            return _TRUTH.get(text.strip().lower())
        case Kind.DATE | Kind.TIMESTAMP:
            return _moment(text.strip(), kind)
    return None


def _moment(text: str, kind: Kind) -> str | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if found.tzinfo is not None:
        return None
    if kind is Kind.DATE:
        return f"CAST('{found.date().isoformat()}' AS DATE)"
    return f"CAST('{found.isoformat(sep=' ')}' AS TIMESTAMP)"


def cast(value: Value, to: exp.Expr, node: exp.Expr, clause: str) -> Value:
    """Return CAST(value AS to); what cannot be converted is NULL."""
    target = _TARGETS.get(to.this) if isinstance(to, exp.DataType) else None
    sizes = [size.name for size in to.expressions]
    if target is None or to.args.get("nested") or not all(size.isdecimal() and len(size) < 4 for size in sizes):
        raise refuse(node, clause, f"CAST to {quoted(written(to))} is not supported", f"Types are {_KNOWN}")
    kind, stored = target
    if value.kind is Kind.UNKNOWN:
        return _sized(_decided(value, kind, node, clause), stored, sizes)
    if kind is Kind.TEXT:
        return _sized(as_text(value), stored, sizes)
    if (value.kind, kind) not in _ALLOWED:
        raise refuse(node, clause, f"{value.kind} cannot become {kind}", "Leave the CAST out")
    return _sized(_converted(value, kind), stored, sizes)


def _converted(value: Value, kind: Kind) -> Value:
    if value.kind is kind:
        return value
    if kind is Kind.BOOLEAN and value.kind is Kind.INTEGER:
        return made("({0} <> 0)", kind, value)
    if kind is Kind.INTEGER and value.kind is Kind.NUMERIC:  # numeric rounds halves away from zero, double to even
        return made("TRY_CAST(round(CAST({0} AS DOUBLE)) AS BIGINT)", kind, value)
    return finite(made(f"TRY_CAST({{0}} AS {STORED[kind]})", kind, value))


def _sized(value: Value, stored: str, sizes: list[str]) -> Value:
    """Keep to the size that a type's name tells: int2 and int4, numeric(p, s), varchar(n)."""
    if stored in ("SMALLINT", "INTEGER"):
        return made(f"CAST(TRY_CAST({{0}} AS {stored}) AS BIGINT)", value.kind, value)
    if not sizes:
        return value
    if value.kind is Kind.TEXT:
        return made(f"left({{0}}, {int(sizes[0])})", Kind.TEXT, value, width=min(value.width, int(sizes[0])))
    digits, scale = min(int(sizes[0]), 38), int(sizes[1]) if len(sizes) > 1 else 0
    decimal = f"DECIMAL({max(digits, 1)}, {min(scale, digits)})"
    return made(f"CAST(TRY_CAST({{0}} AS {decimal}) AS DOUBLE)", Kind.NUMERIC, value)


_TYPE = exp.DType
_TARGETS = {
    _TYPE.BOOLEAN: (Kind.BOOLEAN, "BOOLEAN"),
    _TYPE.SMALLINT: (Kind.INTEGER, "SMALLINT"),
    _TYPE.INT: (Kind.INTEGER, "INTEGER"),
    _TYPE.BIGINT: (Kind.INTEGER, "BIGINT"),
    _TYPE.DECIMAL: (Kind.NUMERIC, "DECIMAL"),
    _TYPE.FLOAT: (Kind.REAL, "DOUBLE"),
    _TYPE.DOUBLE: (Kind.REAL, "DOUBLE"),
    _TYPE.TEXT: (Kind.TEXT, "VARCHAR"),
    _TYPE.VARCHAR: (Kind.TEXT, "VARCHAR"),
    _TYPE.DATE: (Kind.DATE, "DATE"),
    _TYPE.TIMESTAMP: (Kind.TIMESTAMP, "TIMESTAMP"),
}
_KNOWN = "boolean, smallint, integer, bigint, numeric(p, s), real, double precision, text, varchar(n), date, timestamp"
_ALLOWED = frozenset(
    [(kind, kind) for kind in Kind]
    + [(one, other) for one in (*NUMBERS, Kind.TEXT) for other in NUMBERS]
    + [(Kind.INTEGER, Kind.BOOLEAN), (Kind.BOOLEAN, Kind.INTEGER), (Kind.TEXT, Kind.BOOLEAN)]
    + [(one, other) for one in (Kind.TEXT, Kind.DATE, Kind.TIMESTAMP) for other in (Kind.DATE, Kind.TIMESTAMP)]
)
