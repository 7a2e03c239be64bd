"""How Spark casts a source column to a kernel type: each value is kept or becomes NULL, and no cast can raise.

The rules are those of `engines.duckdb.casts`. Texts that are not valid UTF-8 become NULL; others are compared byte by
byte, whatever the column's collation. INT96 values are instants, as in Spark.

Two limitations are Spark's own: it fails to read files with millisecond timestamps beyond the year 294,000, and reads
nanosecond timestamps as integers.
"""

from collections.abc import Callable, Mapping

from discreet.engines.duckdb.casts import MAX_PARSED_LENGTH
from discreet.engines.spark.dialect import SPARK
from discreet.engines.spark.literals import text_literal
from discreet.kernel.expr import Type

_INTEGER_PATTERN = text_literal(r"\A *[+-]?[0-9]{1,19}([.]0*)? *\z")
_REAL_PATTERN = text_literal(r"\A *[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,3})? *\z")
_DATE_PATTERN = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME_PATTERN = "[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
_ZONE_PATTERN = "(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)"
_LOCAL_TIMESTAMP = text_literal(rf"\A{_DATE_PATTERN}({_TIME_PATTERN})?\z")
_ZONED_TIMESTAMP = text_literal(rf"\A{_DATE_PATTERN}{_TIME_PATTERN}{_ZONE_PATTERN}\z")
_ZONE_AT_END = text_literal(rf"{_ZONE_PATTERN}\z")

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
_DEFAULT_TYPES = {
    **dict.fromkeys(("integer", "narrow"), Type.INTEGER),
    **dict.fromkeys(("real", "decimal"), Type.REAL),
    "boolean": Type.BOOLEAN,
    **dict.fromkeys(("text", "collated"), Type.TEXT),
    "date": Type.DATE,
    **dict.fromkeys(("local", "instant"), Type.TIMESTAMP),
}


def default_type(native_type: str) -> Type | None:
    """Return the kernel type of an undeclared column; None if there is none.

    >>> default_type("decimal(18,2)"), default_type("array<bigint>")
    (<Type.REAL: 'r'>, None)
    """
    return _DEFAULT_TYPES.get(_type_family(native_type))


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


_Cast = Callable[[str], str]


def _casts_by_type(zone: str) -> dict[Type, dict[str, _Cast]]:
    """Return the cast from each type family to each kernel type; pairs that are not listed cannot be cast."""
    to_zone = _utc_to_zone(zone)
    times: dict[str, _Cast] = {
        "local": _unchanged,
        "date": lambda x: f"CAST(CASE WHEN {x} {_DATE_RANGE} THEN {x} END AS TIMESTAMP_NTZ)",
        "instant": lambda x: to_zone(f"CAST(CASE WHEN {x} {_WIDE_INSTANT_RANGE} THEN {x} END AS TIMESTAMP_NTZ)"),
        **_text_and_collated(_timestamp_parser(to_zone)),
    }
    casts: dict[Type, dict[str, _Cast]] = {
        Type.INTEGER: {
            "integer": _unchanged,
            **dict.fromkeys(("narrow", "boolean"), _cast_to("BIGINT")),
            "real": _double_to_integer,
            "decimal": _decimal_to_integer,
            **_text_and_collated(_parse_integer),
        },
        Type.REAL: {
            **dict.fromkeys(("real", "integer", "narrow", "decimal"), _cast_to("DOUBLE")),
            **_text_and_collated(_parse_real),
        },
        Type.BOOLEAN: {
            "boolean": _unchanged,
            **dict.fromkeys(("integer", "narrow"), _bit_to_boolean),
            "real": lambda x: _bit_to_boolean(_double_to_integer(x)),
            "decimal": lambda x: _bit_to_boolean(_decimal_to_integer(x)),
            **_text_and_collated(_parse_boolean),
        },
        Type.TEXT: {
            **_text_and_collated(lambda x: f"TRY_VALIDATE_UTF8({x})"),
            **dict.fromkeys(("integer", "narrow"), _cast_to("STRING")),
        },
        Type.DATE: times | {"date": _unchanged},
        Type.TIMESTAMP: times,
    }
    return {kind: by_family | {"nothing": _cast_to(SPARK.types[kind])} for kind, by_family in casts.items()}


def _unchanged(x: str) -> str:
    return x


def _cast_to(kind: str) -> _Cast:
    return lambda x: f"CAST({x} AS {kind})"


def _text_and_collated(cast: _Cast) -> dict[str, _Cast]:
    return {"text": cast, "collated": lambda x: cast(f"({x} {_BINARY_COLLATION})")}


def _bit_to_boolean(x: str) -> str:
    return f"CASE {x} WHEN 0 THEN FALSE WHEN 1 THEN TRUE END"


def _double_to_integer(x: str) -> str:
    truncated = f"TRY_CAST({x} AS BIGINT)"  # differs from every number that is not an integer
    in_range = f"{x} >= {_MIN_INT64} AND {x} < {_ABOVE_INT64}"
    return f"CASE WHEN {in_range} AND CAST({truncated} AS DOUBLE) = {x} THEN {truncated} END"


def _decimal_to_integer(x: str) -> str:
    # Not `{x} % 1 = 0`: for this comparison, Spark would round away the last of 38 digits.
    return f"CASE WHEN SIGN({x} % 1) = 0 THEN TRY_CAST({x} AS BIGINT) END"


def _is_short(x: str) -> str:
    return f"LENGTH({x}) <= {MAX_PARSED_LENGTH}"


def _parse_integer(x: str) -> str:
    is_integer = f"{_is_short(x)} AND {x} RLIKE {_INTEGER_PATTERN}"
    return f"CASE WHEN {is_integer} THEN TRY_CAST(SUBSTRING_INDEX({x}, '.', 1) AS BIGINT) END"


def _parse_real(x: str) -> str:
    return f"CASE WHEN {_is_short(x)} AND {x} RLIKE {_REAL_PATTERN} THEN TRY_CAST({x} AS DOUBLE) END"


def _parse_boolean(x: str) -> str:
    word = f"LOWER(TRIM({x}))"
    return (
        f"CASE WHEN {word} IN ('true', 't', 'yes', 'y', '1') THEN TRUE "
        f"WHEN {word} IN ('false', 'f', 'no', 'n', '0') THEN FALSE END"
    )


def _utc_to_zone(zone: str) -> _Cast:
    """Convert a timestamp from UTC, the session's zone, to the policy's zone."""
    if zone in ("UTC", "Etc/UTC"):
        return _unchanged
    return lambda x: f"CONVERT_TIMEZONE('UTC', '{zone}', CASE WHEN {x} {_WIDE_TIMESTAMP_RANGE} THEN {x} END)"


def _timestamp_parser(to_zone: _Cast) -> _Cast:
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
            f"CASE WHEN LENGTH({x}) > {MAX_PARSED_LENGTH} THEN NULL "
            f"WHEN {trimmed} RLIKE {_LOCAL_TIMESTAMP} THEN TRY_CAST({trimmed} AS TIMESTAMP_NTZ) "
            f"WHEN {trimmed} RLIKE {_ZONED_TIMESTAMP} THEN {to_zone(f'({in_utc})')} END"
        )

    return parse
