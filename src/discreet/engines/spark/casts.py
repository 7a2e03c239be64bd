"""How Spark casts a source column to a kernel type: each value is kept or becomes NULL, and no cast can raise.

The rules are those of `engines.duckdb.casts`. Texts that are not valid UTF-8 become NULL; others are compared byte by
byte, whatever the column's collation. INT96 values are instants, as in Spark.

Two limitations are Spark's own: it fails to read files with millisecond timestamps beyond the year 294,000, and reads
nanosecond timestamps as integers.
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
    cast_to,
    is_short,
    word_to_boolean,
)
from discreet.engines.spark.dialect import SPARK
from discreet.engines.spark.literals import text_literal
from discreet.kernel.expr import Type

_INTEGER_PATTERN, _REAL_PATTERN = (text_literal(rf"\A{pattern}\z") for pattern in (INTEGER_TEXT, REAL_TEXT))
_DATE_TEXT = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_LOCAL_TIMESTAMP = text_literal(rf"\A{_DATE_TEXT}({TIME_TEXT})?\z")
_ZONED_TIMESTAMP = text_literal(rf"\A{_DATE_TEXT}{TIME_TEXT}{ZONE_TEXT}\z")
_ZONE_AT_END = text_literal(rf"{ZONE_TEXT}\z")

_DATE_RANGE = "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
_TIMESTAMP_RANGE = "BETWEEN TIMESTAMP_NTZ '0001-01-01 00:00:00' AND TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"
# Wider by two days, more than any zone's offset; beyond this range, Spark may fail to convert a timestamp.
_WIDE_RANGE = "BETWEEN CAST('0000-12-30 00:00:00{0}' AS {1}) AND CAST('10000-01-02 00:00:00{0}' AS {1})"
_WIDE_INSTANT_RANGE, _WIDE_TIMESTAMP_RANGE = (
    _WIDE_RANGE.format("Z", "TIMESTAMP_LTZ"),
    _WIDE_RANGE.format("", "TIMESTAMP_NTZ"),
)
_MIN_INT64, _ABOVE_INT64 = "CAST('-9223372036854775808' AS DOUBLE)", "CAST('9223372036854775808' AS DOUBLE)"
_BINARY_COLLATION = "COLLATE UTF8_BINARY"

_TYPE_FAMILIES = {
    "bigint": "integer",
    **dict.fromkeys(("tinyint", "smallint", "int"), "narrow"),
    **dict.fromkeys(("double", "float"), "real"),
    "decimal": "decimal",
    "boolean": "boolean",
    **dict.fromkeys(("string", "char", "varchar"), "text"),
    "date": "date",
    "timestamp_ntz": "local",
    "timestamp": "instant",
    "void": "nothing",
}


def default_type(native_type: str) -> Type | None:
    """Return the kernel type of an undeclared column; None if there is none.

    >>> default_type("decimal(18,2)"), default_type("array<bigint>")
    (<Type.REAL: 'r'>, None)
    """
    return DEFAULT_TYPES.get(_type_family(native_type))


def policy_type(native_type: str) -> str | None:
    """Return the type that a policy would declare for a column; None if there is none.

    >>> policy_type("decimal(18,2)"), policy_type("timestamp"), policy_type("array<bigint>")
    ('decimal', 'timestamp', None)
    """
    kind = default_type(native_type)
    return None if kind is None else "decimal" if _type_family(native_type) == "decimal" else kind.name.lower()


def can_cast(native_type: str, kind: Type) -> bool:
    """Whether some value of Spark's type can be cast to a kernel type.

    >>> can_cast("string", Type.DATE), can_cast("date", Type.INTEGER)
    (True, False)
    """
    return _type_family(native_type) in _casts_by_type("UTC")[kind]


def backtick_quote(name: str) -> str:
    """Return a name in backticks.

    >>> backtick_quote("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def cast_columns(columns: Mapping[str, tuple[str, str, Type]], zone: str) -> tuple[list[str], list[str]]:
    """Return SELECT lists for columns, given by name as (SQL expression, Spark's type, kernel type).

    The first list casts, and the second replaces values out of range by NULL, so that nothing is computed twice.

    Claim: each value is a function of its own row, in the range of the kernel type or NULL, and no cast raises.
    Proof: a cast that can fail is a TRY_CAST, behind a pattern, a comparison or both; plain casts go to wider types or
        to text, or are of times in a range that Spark converts in every zone. Reals that are not finite and times
        outside the years 1 to 9999 are replaced by NULL in the second list.
    Needs: _casts_by_type, _null_out_of_range, is_short, backtick_quote.
    Checked by: test_every_value_equals_that_of_duckdb_in_every_time_zone,
        test_a_collation_does_not_make_two_texts_equal

    >>> cast_columns({"who": ("c0", "int", Type.INTEGER)}, "UTC")
    (['CAST(c0 AS BIGINT) AS v0'], ['v0 AS `who`'])
    """
    casts = _casts_by_type(zone)
    converted, in_range = [], []
    for index, (name, (sql, native_type, kind)) in enumerate(columns.items()):
        converted.append(f"{casts[kind][_type_family(native_type)](sql)} AS v{index}")
        in_range.append(f"{_null_out_of_range(f'v{index}', kind, _type_family(native_type))} AS {backtick_quote(name)}")
    return converted, in_range


def _type_family(native_type: str) -> str:
    """Return the family of a type: decimal(18,2) is a decimal, array<bigint> has none ("")."""
    base, _, collation = native_type.lower().partition(" collate ")
    family = _TYPE_FAMILIES.get(base.partition("(")[0], "")
    return "collated" if collation and family == "text" else family


def _null_out_of_range(x: str, kind: Type, family: str) -> str:
    if family == "nothing":
        return x
    if kind is Type.REAL and family in ("real", "text", "collated"):
        return f"CASE WHEN ABS({x}) < CAST('Infinity' AS DOUBLE) THEN {x} END"  # NaN is above it
    if kind is Type.DATE:
        return f"CAST(CASE WHEN {x} {_DATE_RANGE if family == 'date' else _TIMESTAMP_RANGE} THEN {x} END AS DATE)"
    return f"CASE WHEN {x} {_TIMESTAMP_RANGE} THEN {x} END" if kind is Type.TIMESTAMP else x


def _casts_by_type(zone: str) -> dict[Type, dict[str, Cast]]:
    """Return the cast from each type family to each kernel type; pairs that are not listed cannot be cast."""
    to_zone = _utc_to_zone(zone)
    times: dict[str, Cast] = {
        "local": str,
        "date": lambda x: f"CAST(CASE WHEN {x} {_DATE_RANGE} THEN {x} END AS TIMESTAMP_NTZ)",
        "instant": lambda x: to_zone(f"CAST(CASE WHEN {x} {_WIDE_INSTANT_RANGE} THEN {x} END AS TIMESTAMP_NTZ)"),
        **_text_and_collated(_timestamp_parser(to_zone)),
    }
    casts: dict[Type, dict[str, Cast]] = {
        Type.INTEGER: {
            "integer": str,
            **dict.fromkeys(("narrow", "boolean"), cast_to("BIGINT")),
            "real": _double_to_integer,
            "decimal": _decimal_to_integer,
            **_text_and_collated(_parse_integer),
        },
        Type.REAL: {
            **dict.fromkeys(("real", "integer", "narrow", "decimal"), cast_to("DOUBLE")),
            **_text_and_collated(_parse_real),
        },
        Type.BOOLEAN: {
            "boolean": str,
            **dict.fromkeys(("integer", "narrow"), bit_to_boolean),
            "real": lambda x: bit_to_boolean(_double_to_integer(x)),
            "decimal": lambda x: bit_to_boolean(_decimal_to_integer(x)),
            **_text_and_collated(_parse_boolean),
        },
        Type.TEXT: {
            **_text_and_collated(lambda x: f"TRY_VALIDATE_UTF8({x})"),
            **dict.fromkeys(("integer", "narrow"), cast_to("STRING")),
        },
        Type.DATE: times | {"date": str},
        Type.TIMESTAMP: times,
    }
    return {kind: by_family | {"nothing": cast_to(SPARK.types[kind])} for kind, by_family in casts.items()}


def _text_and_collated(cast: Cast) -> dict[str, Cast]:
    return {"text": cast, "collated": lambda x: cast(f"({x} {_BINARY_COLLATION})")}


def _double_to_integer(x: str) -> str:
    truncated = f"TRY_CAST({x} AS BIGINT)"  # differs from every number that is not an integer
    in_range = f"{x} >= {_MIN_INT64} AND {x} < {_ABOVE_INT64}"
    return f"CASE WHEN {in_range} AND CAST({truncated} AS DOUBLE) = {x} THEN {truncated} END"


def _decimal_to_integer(x: str) -> str:
    # Not `{x} % 1 = 0`: for this comparison, Spark would round away the last of 38 digits.
    return f"CASE WHEN SIGN({x} % 1) = 0 THEN TRY_CAST({x} AS BIGINT) END"


def _parse_integer(x: str) -> str:
    is_integer = f"{is_short(x)} AND {x} RLIKE {_INTEGER_PATTERN}"
    return f"CASE WHEN {is_integer} THEN TRY_CAST(SUBSTRING_INDEX({x}, '.', 1) AS BIGINT) END"


def _parse_real(x: str) -> str:
    return f"CASE WHEN {is_short(x)} AND {x} RLIKE {_REAL_PATTERN} THEN TRY_CAST({x} AS DOUBLE) END"


def _parse_boolean(x: str) -> str:
    return word_to_boolean(f"LOWER(TRIM({x}))")


def _utc_to_zone(zone: str) -> Cast:
    """Convert a timestamp from UTC, the session's zone, to the policy's zone."""
    if zone in ("UTC", "Etc/UTC"):
        return str
    return lambda x: f"CONVERT_TIMEZONE('UTC', '{zone}', CASE WHEN {x} {_WIDE_TIMESTAMP_RANGE} THEN {x} END)"


def _timestamp_parser(to_zone: Cast) -> Cast:
    """Return a parser of timestamps; Spark's own accepts fewer forms of offsets."""

    def parse(x: str) -> str:
        trimmed = f"TRIM({x})"
        zone = f"REGEXP_EXTRACT({trimmed}, {_ZONE_AT_END}, 1)"
        local = f"TRY_CAST(SUBSTRING({trimmed}, 1, LENGTH({trimmed}) - LENGTH({zone})) AS TIMESTAMP_NTZ)"
        sign = f"CASE WHEN {zone} LIKE '-%' THEN 1 ELSE -1 END"
        hours = f"COALESCE(TRY_CAST(SUBSTRING({zone}, 2, 2) AS INT), 0)"
        minutes = f"CASE WHEN LENGTH({zone}) > 3 THEN COALESCE(TRY_CAST(SUBSTRING({zone}, -2, 2) AS INT), 0) ELSE 0 END"
        in_utc = f"{local} + MAKE_DT_INTERVAL(0, ({sign}) * {hours}, ({sign}) * ({minutes}), 0)"
        return (
            f"CASE WHEN NOT {is_short(x)} THEN NULL "
            f"WHEN {trimmed} RLIKE {_LOCAL_TIMESTAMP} THEN TRY_CAST({trimmed} AS TIMESTAMP_NTZ) "
            f"WHEN {trimmed} RLIKE {_ZONED_TIMESTAMP} THEN {to_zone(f'({in_utc})')} END"
        )

    return parse
