"""How PostgreSQL casts a table's column to a kernel type: each value is kept or becomes NULL, and no cast can raise.

The rules are those of `engines.duckdb.casts`. PostgreSQL has no cast that returns NULL on failure, so each cast is
guarded by a condition on the same column. Instants become local timestamps in the session's time zone, which must be
the policy's. Texts are compared byte by byte, whatever the column's collation; citext keeps its case, and texts of more
than 64 kB become NULL.
"""

from collections.abc import Mapping

from discreet.engines.common_sql import (
    DEFAULT_TYPES,
    INTEGER_TEXT,
    REAL_TEXT,
    TIME_TEXT,
    ZONE_TEXT,
    Cast,
    bit_to_boolean,
    case_when,
    cast_to,
    is_short,
    word_to_boolean,
)
from discreet.engines.postgres.dialect import POSTGRES
from discreet.engines.postgres.text_functions import DATE_PATTERN
from discreet.kernel.expr import Type
from discreet.kernel.sqlgen.dialect import quote_name
from discreet.postgres.server import TYPE_FAMILIES

# Trimming this many bytes takes less than a millisecond. With longer texts, the running time would show whether a row
# has one, and functions fail on very long ones.
_MAX_TEXT_BYTES = 1 << 16
_TIMESTAMP_LENGTH = 26  # characters of 2026-01-31 12:00:00.123456

_RANGE_TEMPLATE = "BETWEEN {0} '0001-01-01{1}' AND {0} '9999-12-31{2}'"
_DATE_RANGE = _RANGE_TEMPLATE.format("DATE", "", "")
_TIMESTAMP_RANGE = _RANGE_TEMPLATE.format("TIMESTAMP", " 00:00:00", " 23:59:59.999999")
_INSTANT_RANGE = _RANGE_TEMPLATE.format("TIMESTAMPTZ", " 00:00:00", " 23:59:59.999999")  # of the session's zone
_INTEGER_RANGE = "BETWEEN -9223372036854775808 AND 9223372036854775807"
_REAL_RANGE = "BETWEEN FLOAT8 '-1.7976931348623157e308' AND FLOAT8 '1.7976931348623157e308'"
# Decimals below these limits round to the largest double, or to 0 instead of the least positive double.
_OVERFLOW_LIMIT = "1.797693134862315807937289714053e308"
_UNDERFLOW_LIMIT = "2.4703282292062327208828439643412e-324"

MISSING_COLUMN_TYPE = ""  # the type of the NULL that replaces a missing column


def default_type(native_type: str) -> Type | None:
    """Return the kernel type of an undeclared column; None if there is none.

    >>> default_type("numeric"), default_type("money")
    (<Type.REAL: 'r'>, None)
    """
    return DEFAULT_TYPES.get(TYPE_FAMILIES.get(native_type, ""))


def can_cast(native_type: str, kind: Type) -> bool:
    """Whether some value of PostgreSQL's type can be cast to a kernel type.

    >>> can_cast("text", Type.DATE), can_cast("date", Type.INTEGER)
    (True, False)
    """
    return TYPE_FAMILIES.get(native_type, "") in _CASTS[kind]


def cast_select(from_sql: str, columns: Mapping[str, tuple[str, str, Type]]) -> str:
    """Return a SELECT of columns, given by name as (SQL expression, PostgreSQL's type, kernel type).

    Claim: each value is a function of its own row, in the range of the kernel type or NULL, and no cast raises.
    Proof: CASE evaluates a cast only where its condition holds, and the condition is on the same column: a range whose
        every value can be cast, or a pattern, on a text of bounded length, whose every match can be. Plain casts go to
        wider types, or to text.
    Needs: _CASTS, case_when, is_short, quote_name, DATE_PATTERN.
    Checked by: test_every_value_equals_that_of_duckdb, test_random_texts_equal_those_of_duckdb,
        test_constants_of_a_view_are_not_cast_before_they_are_checked

    >>> cast_select("clinic.visits", {"who": ('"Who"', "integer", Type.INTEGER)})
    'SELECT CAST("Who" AS BIGINT) AS "who" FROM clinic.visits'
    """
    expressions = [
        f"{_cast_column(text, native, kind)} AS {quote_name(name)}" for name, (text, native, kind) in columns.items()
    ]
    return f"SELECT {', '.join(expressions)} FROM {from_sql}"  # noqa: S608 - of quoted names


def _cast_column(sql: str, native_type: str, kind: Type) -> str:
    return (
        f"CAST({sql} AS {POSTGRES.types[kind]})"
        if native_type == MISSING_COLUMN_TYPE
        else _CASTS[kind][TYPE_FAMILIES[native_type]](sql)
    )


def _collated_text(x: str) -> str:
    return f'(CAST({x} AS TEXT) COLLATE "C")'


def _bounded_text(cast: Cast) -> Cast:
    """Cast a text, unless it is so long that processing it would take a noticeable time."""
    return lambda x: case_when(f"OCTET_LENGTH({_collated_text(x)}) <= {_MAX_TEXT_BYTES}", cast(_collated_text(x)))


def _whole_to_integer(x: str) -> str:
    """Cast a number if it is an integer; PostgreSQL's NaN equals itself and is above all numbers."""
    return case_when(f"{x} {_INTEGER_RANGE} AND {x} = TRUNC({x})", f"CAST({x} AS BIGINT)")


def _double_to_integer(x: str) -> str:
    """Cast a double if it is an integer below 2^63, which BIGINT does not have; the next double below fits."""
    inside = f"{x} >= FLOAT8 '-9223372036854775808' AND {x} < FLOAT8 '9223372036854775808'"
    return case_when(f"{inside} AND {x} = TRUNC(CAST({x} AS FLOAT8))", f"CAST({x} AS BIGINT)")


def _finite_or_null(x: str) -> str:
    return case_when(f"{x} {_REAL_RANGE}", f"CAST({x} AS FLOAT8)")


def _decimal_to_double(x: str) -> str:
    """Cast a decimal to the nearest double; PostgreSQL would raise an error on underflow to 0."""
    nearest_double = f"CASE WHEN ABS({x}) < {_UNDERFLOW_LIMIT} THEN FLOAT8 '0' ELSE CAST({x} AS FLOAT8) END"
    return case_when(f"ABS({x}) < {_OVERFLOW_LIMIT}", nearest_double)


def _parse_integer(x: str) -> str:
    return case_when(f"{is_short(x)} AND {x} ~ '^{INTEGER_TEXT}$'", _whole_to_integer(f"CAST({x} AS NUMERIC)"))


def _parse_real(x: str) -> str:
    return case_when(f"{is_short(x)} AND {x} ~ '^{REAL_TEXT}$'", _decimal_to_double(f"CAST({x} AS NUMERIC)"))


def _parse_boolean(x: str) -> str:
    return word_to_boolean(f"LOWER(BTRIM({x}, ' '))")


def _instant_to_local(x: str) -> str:
    return case_when(f"{x} {_INSTANT_RANGE}", f"CAST({x} AS TIMESTAMP)")


def _parse_timestamp(x: str) -> str:
    """Parse a timestamp. PostgreSQL rounds to microseconds, so further digits are cut off first."""
    text = f"BTRIM({x}, ' ')"
    clock, zone = f"SUBSTRING({text} FROM '^.{{10}}.[0-9:.]*')", f"SUBSTRING({text} FROM '{ZONE_TEXT}$')"
    instant = f"CAST(LEFT({clock}, {_TIMESTAMP_LENGTH}) || {zone} AS TIMESTAMPTZ)"
    return (
        f"CASE WHEN NOT {is_short(x)} THEN NULL "
        f"WHEN {text} ~ '^{DATE_PATTERN}({TIME_TEXT})?$' THEN CAST(LEFT({text}, {_TIMESTAMP_LENGTH}) AS TIMESTAMP) "
        f"WHEN {text} ~ '^{DATE_PATTERN}{TIME_TEXT}{ZONE_TEXT}$' THEN {_instant_to_local(instant)} END"
    )


def _cast_within(bounds: str, kind: str) -> Cast:
    return lambda x: case_when(f"{x} {bounds}", f"CAST({x} AS {kind})")


def _date_of(cast: Cast) -> Cast:
    return lambda x: f"CAST({cast(x)} AS DATE)"


_BIT_CASTS: dict[str, Cast] = dict.fromkeys(("integer", "narrow", "real", "decimal"), bit_to_boolean)
_TIMESTAMP_CASTS: dict[str, Cast] = {
    "local": _cast_within(_TIMESTAMP_RANGE, "TIMESTAMP"),
    "instant": _instant_to_local,
    "text": _bounded_text(_parse_timestamp),
}
_CASTS: dict[Type, dict[str, Cast]] = {
    Type.INTEGER: {
        **dict.fromkeys(("integer", "narrow"), cast_to("BIGINT")),
        "boolean": lambda x: f"CAST(CAST({x} AS INTEGER) AS BIGINT)",
        "real": _double_to_integer,
        "decimal": _whole_to_integer,
        "text": _bounded_text(_parse_integer),
    },
    Type.REAL: {
        "real": _finite_or_null,
        **dict.fromkeys(("integer", "narrow"), cast_to("FLOAT8")),
        "decimal": _decimal_to_double,
        "text": _bounded_text(_parse_real),
    },
    Type.BOOLEAN: {"boolean": cast_to("BOOLEAN"), **_BIT_CASTS, "text": _bounded_text(_parse_boolean)},
    Type.TEXT: {"text": _bounded_text(str), **dict.fromkeys(("integer", "narrow"), _collated_text)},
    Type.DATE: {
        "date": _cast_within(_DATE_RANGE, "DATE"),
        **{family: _date_of(reader) for family, reader in _TIMESTAMP_CASTS.items()},
    },
    Type.TIMESTAMP: {"date": _cast_within(_DATE_RANGE, "TIMESTAMP"), **_TIMESTAMP_CASTS},
}
