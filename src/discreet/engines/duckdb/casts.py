"""How DuckDB casts a source column to a kernel type: each value is kept or becomes NULL, and no cast can raise.

integer    64-bit integers; reals, decimals and texts only if they are integers: 3.0 and "3.0" are, 3.7 is not (and is
           never rounded), "3e0" is not; false and true become 0 and 1
real       finite numbers
boolean    the numbers 0 and 1; the texts true, t, yes, y, 1 and false, f, no, n, 0 in any case
text       texts, labels of an enumeration, UUIDs, and integers as decimal digits
date       dates in the years 1 to 9999; a timestamp becomes its day in the policy's time zone
timestamp  timestamps in these years with microseconds, local in the policy's time zone: converted if they have a zone,
           kept if they have none; a date becomes its midnight

A text is a date or a timestamp only in the form 2026-01-31 or 2026-01-31 12:00:00.5, with a space or a T, optionally
followed by Z or an offset such as +01:00 of at most 15:59; hours end at 23, and fractions of a microsecond are
truncated. The exponent of a number has at most three digits. Spaces around a number, a date or a timestamp are
ignored, and a text of more than 400 characters, spaces included, is none of these. Other engines follow the same rules.
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
from discreet.engines.duckdb.dialect import DUCKDB, opaque
from discreet.kernel.expr import Type
from discreet.kernel.sqlgen.dialect import quote_name

_DATE_TEXT = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DATE_RANGE = "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
_TIMESTAMP_RANGE = "BETWEEN TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999'"

_TYPE_FAMILIES = {
    "BIGINT": "integer",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"), "narrow"),
    **dict.fromkeys(("HUGEINT", "UBIGINT", "UHUGEINT"), "wide"),
    **dict.fromkeys(("DOUBLE", "FLOAT"), "real"),
    "DECIMAL": "decimal",
    "BOOLEAN": "boolean",
    "VARCHAR": "text",
    **dict.fromkeys(("ENUM", "UUID"), "label"),
    "DATE": "date",
    "TIMESTAMP": "local",
    **dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "other local"),
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"), "instant"),
    '"NULL"': "nothing",
}


def default_type(native_type: str) -> Type | None:
    """Return the kernel type of an undeclared column; None if there is none.

    >>> default_type("DECIMAL(18,2)"), default_type("DECIMAL(18,2)[]")
    (<Type.REAL: 'r'>, None)
    """
    return DEFAULT_TYPES.get(_type_family(native_type))


def can_cast(native_type: str, kind: Type) -> bool:
    """Whether some value of DuckDB's type can be cast to a kernel type.

    >>> can_cast("HUGEINT", Type.INTEGER), can_cast("UHUGEINT", Type.REAL), can_cast("DATE", Type.INTEGER)
    (True, True, False)
    """
    return _type_family(native_type) in _casts_by_type("UTC")[kind]


def cast_select(from_sql: str, columns: Mapping[str, tuple[str, str, Type]], zone: str) -> str:
    """Return a SELECT of columns, given by name as (SQL expression, DuckDB's type, kernel type).

    The inner SELECT casts, and the outer one replaces values out of range by NULL, so that nothing is computed twice.

    Claim: each value is a function of its own row, in the range of the kernel type or NULL, and no cast raises.
    Proof: a cast that can fail is a TRY_CAST, most behind a pattern or a comparison; plain casts go to wider types, or
        to text. Reals that are not finite and times outside the years 1 to 9999 are replaced by NULL outside. What a
        CASE compares is opaque, so that no plan follows from a column's statistics, which omit NaN.
    Needs: _casts_by_type, _null_out_of_range, is_short, quote_name, opaque.
    Checked by: test_every_value_in_arrow_is_unchanged_or_null, test_every_text_in_csv_is_unchanged_or_null,
        test_columns_that_a_view_computes_have_no_statistics
    """
    inner = [f"{_convert(*column, zone)} AS {quote_name(name)}" for name, column in columns.items()]
    outer = [
        f"{_null_out_of_range(quote_name(name), *column[1:])} AS {quote_name(name)}" for name, column in columns.items()
    ]
    return f"SELECT {', '.join(outer)} FROM (SELECT {', '.join(inner)} FROM {from_sql})"  # noqa: S608 - of quoted names


def _type_family(native_type: str) -> str:
    """Return the family of a type: DECIMAL(18,2) is a decimal, ENUM('a', 'b') a label, BIGINT[] has none ("")."""
    return "" if native_type.endswith("]") else _TYPE_FAMILIES.get(native_type.partition("(")[0], "")


def _convert(sql: str, native_type: str, kind: Type, zone: str) -> str:
    return _casts_by_type(zone)[kind][_type_family(native_type)](
        sql if default_type(native_type) is kind else opaque(sql)  # the cast to the default type has no condition
    )


def _null_out_of_range(name: str, native_type: str, kind: Type) -> str:
    family, value = _type_family(native_type), opaque(name)
    if kind is Type.REAL and family in ("real", "text", "label"):
        return case_when(f"ISFINITE({value})", value)
    if kind is Type.DATE and family == "date":
        return case_when(f"{value} {_DATE_RANGE}", value)
    if kind in (Type.DATE, Type.TIMESTAMP):
        in_range = case_when(f"{value} {_TIMESTAMP_RANGE}", value)
        return f"CAST({in_range} AS DATE)" if kind is Type.DATE else in_range
    return name


def _casts_by_type(zone: str) -> dict[Type, dict[str, Cast]]:
    """Return the cast from each type family to each kernel type; pairs that are not listed cannot be cast."""
    times: dict[str, Cast] = {
        "local": str,
        "other local": _try_cast_to("TIMESTAMP"),
        "date": _try_cast_to("TIMESTAMP"),
        "instant": _instant_to_local(zone),
        **_text_and_label(_timestamp_parser(zone)),
    }
    bits: dict[str, Cast] = {
        **dict.fromkeys(("integer", "narrow", "wide"), bit_to_boolean),
        **dict.fromkeys(("real", "decimal"), lambda x: bit_to_boolean(_whole_to_integer(x))),
    }
    casts: dict[Type, dict[str, Cast]] = {
        Type.INTEGER: {
            "integer": str,
            **dict.fromkeys(("narrow", "boolean"), cast_to("BIGINT")),
            "wide": _try_cast_to("BIGINT"),
            **dict.fromkeys(("real", "decimal"), _whole_to_integer),
            **_text_and_label(_number_parser(INTEGER_TEXT, "BIGINT")),
        },
        Type.REAL: {
            **dict.fromkeys(("real", "integer", "narrow", "wide", "decimal"), cast_to("DOUBLE")),
            **_text_and_label(_number_parser(REAL_TEXT, "DOUBLE")),
        },
        Type.BOOLEAN: {"boolean": str, **bits, **_text_and_label(lambda x: word_to_boolean(f"LOWER(TRIM({x}, ' '))"))},
        Type.TEXT: {**_text_and_label(str), **dict.fromkeys(("integer", "narrow", "wide"), cast_to("VARCHAR"))},
        Type.DATE: times | {"date": str},
        Type.TIMESTAMP: times,
    }
    return {kind: by_family | {"nothing": cast_to(DUCKDB.types[kind])} for kind, by_family in casts.items()}


def _try_cast_to(kind: str) -> Cast:
    return lambda x: f"TRY_CAST({x} AS {kind})"


def _text_and_label(cast: Cast) -> dict[str, Cast]:
    return {"text": cast, "label": lambda x: cast(f"CAST({x} AS VARCHAR)")}


def _whole_to_integer(x: str) -> str:
    return case_when(f"{x} = TRUNC({x})", f"TRY_CAST({x} AS BIGINT)")


def _number_parser(pattern: str, kind: str) -> Cast:
    return lambda x: case_when(f"{is_short(x)} AND REGEXP_FULL_MATCH({x}, '{pattern}')", f"TRY_CAST({x} AS {kind})")


def _instant_to_local(zone: str) -> Cast:
    """Convert an instant to the session's zone, which is the policy's; UTC needs no calendar and is 20 times faster."""
    if zone in ("UTC", "Etc/UTC"):
        return lambda x: f"MAKE_TIMESTAMP(EPOCH_US(TRY_CAST({x} AS TIMESTAMPTZ)))"
    return lambda x: f"TRY_CAST(TRY_CAST({x} AS TIMESTAMPTZ) AS TIMESTAMP)"


def _timestamp_parser(zone: str) -> Cast:
    to_local = _instant_to_local(zone)

    def parse(x: str) -> str:
        text = f"TRIM({x}, ' ')"
        return (
            f"CASE WHEN NOT {is_short(x)} THEN NULL "
            f"WHEN REGEXP_FULL_MATCH({text}, '{_DATE_TEXT}({TIME_TEXT})?') THEN TRY_CAST({text} AS TIMESTAMP) "
            f"WHEN REGEXP_FULL_MATCH({text}, '{_DATE_TEXT}{TIME_TEXT}{ZONE_TEXT}') THEN {to_local(text)} END"
        )

    return parse
