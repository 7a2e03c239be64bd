"""How Spark reads a source's column as one of the kernel's types: as DuckDB does, a value or NULL, and none raises.

`casts` says which texts and numbers are what. Texts that are not UTF-8 are NULL, and are compared byte by byte,
whatever the column's collation. What was written as INT96 counts as an instant, as Spark takes it.

Two things are Spark's own, before any of this: times in milliseconds of a year beyond 294,000 make it stop while it
reads the file, and times in nanoseconds are whole numbers to it.
"""

from collections.abc import Callable, Mapping

from discreet.engines.casts import LONGEST
from discreet.engines.dialects.spark import SPARK
from discreet.engines.dialects.spark_constants import text
from discreet.kernel.expr import Type

_WHOLE = text(r"\A *[+-]?[0-9]{1,19}([.]0*)? *\z")
_NUMBER = text(r"\A *[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,3})? *\z")
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
_ZONE = "(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)"
_LOCAL = text(rf"\A{_DAY}({_CLOCK})?\z")
_INSTANT = text(rf"\A{_DAY}{_CLOCK}{_ZONE}\z")
_LAST_ZONE = text(rf"{_ZONE}\z")

_DATES = "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
_TIMES = "BETWEEN TIMESTAMP_NTZ '0001-01-01 00:00:00' AND TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"
# Wider by two days: a zone moves a time by less, and beyond this Spark may stop when it moves one.
_NEAR = "BETWEEN CAST('0000-12-30 00:00:00{0}' AS {1}) AND CAST('10000-01-02 00:00:00{0}' AS {1})"
_NEAR_INSTANT, _NEAR_TIME = _NEAR.format("Z", "TIMESTAMP_LTZ"), _NEAR.format("", "TIMESTAMP_NTZ")
_LEAST, _BEYOND = "CAST('-9223372036854775808' AS DOUBLE)", "CAST('9223372036854775808' AS DOUBLE)"
_PLAIN = "COLLATE UTF8_BINARY"

_FAMILIES = {
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
_NATURAL = {
    **dict.fromkeys(("integer", "narrow"), Type.INTEGER),
    **dict.fromkeys(("real", "decimal"), Type.REAL),
    "boolean": Type.BOOLEAN,
    **dict.fromkeys(("text", "collated"), Type.TEXT),
    "date": Type.DATE,
    **dict.fromkeys(("local", "instant"), Type.TIMESTAMP),
}


def natural(native: str) -> Type | None:
    """Return the kernel's type for a column that the owner did not describe; None if there is none.

    >>> natural("decimal(18,2)"), natural("array<bigint>")
    (<Type.REAL: 'r'>, None)
    """
    return _NATURAL.get(_family(native))


def declared(native: str) -> str | None:
    """Return the type that a policy would declare for a column; None if there is none.

    >>> declared("decimal(18,2)"), declared("timestamp"), declared("array<bigint>")
    ('decimal', 'timestamp', None)
    """
    kind = natural(native)
    return None if kind is None else "decimal" if _family(native) == "decimal" else kind.name.lower()


def fits(native: str, kind: Type) -> bool:
    """Whether any value of Spark's type can be one of the kernel's.

    >>> fits("string", Type.DATE), fits("date", Type.INTEGER)
    (True, False)
    """
    return _family(native) in _readers("UTC")[kind]


def ticked(name: str) -> str:
    """Write a name so that it can be nothing else.

    >>> ticked("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def shown(columns: Mapping[str, tuple[str, str, Type]], zone: str) -> tuple[list[str], list[str]]:
    """Write columns, each by name, and from what (its text in SQL and Spark's type), as what.

    The first list converts, the second keeps what lies in the type's range, so that nothing is computed twice.

    >>> shown({"who": ("c0", "int", Type.INTEGER)}, "UTC")
    (['CAST(c0 AS BIGINT) AS v0'], ['v0 AS `who`'])
    """
    readers = _readers(zone)
    converted, kept = [], []
    for place, (name, (stored, native, kind)) in enumerate(columns.items()):
        converted.append(f"{readers[kind][_family(native)](stored)} AS v{place}")
        kept.append(f"{_keep(f'v{place}', kind, _family(native))} AS {ticked(name)}")
    return converted, kept


def _family(native: str) -> str:
    """Return what a type is read like: decimal(18,2) is a decimal, array<bigint> nothing we know."""
    base, _, collation = native.lower().partition(" collate ")
    family = _FAMILIES.get(base.partition("(")[0], "")
    return "collated" if collation and family == "text" else family


def _keep(x: str, kind: Type, family: str) -> str:
    if family == "nothing":
        return x
    if kind is Type.REAL and family in ("real", "text", "collated"):
        return f"CASE WHEN ABS({x}) < CAST('Infinity' AS DOUBLE) THEN {x} END"  # NaN is above it
    if kind is Type.DATE:
        return f"CAST(CASE WHEN {x} {_DATES if family == 'date' else _TIMES} THEN {x} END AS DATE)"
    return f"CASE WHEN {x} {_TIMES} THEN {x} END" if kind is Type.TIMESTAMP else x


_Reader = Callable[[str], str]


def _readers(zone: str) -> dict[Type, dict[str, _Reader]]:
    """Return how each family of types is read as each of the kernel's; what is not listed never fits."""
    moved = _mover(zone)
    times: dict[str, _Reader] = {
        "local": _same,
        "date": lambda x: f"CAST(CASE WHEN {x} {_DATES} THEN {x} END AS TIMESTAMP_NTZ)",
        "instant": lambda x: moved(f"CAST(CASE WHEN {x} {_NEAR_INSTANT} THEN {x} END AS TIMESTAMP_NTZ)"),
        **_texts(_time_reader(moved)),
    }
    readers: dict[Type, dict[str, _Reader]] = {
        Type.INTEGER: {
            "integer": _same,
            **dict.fromkeys(("narrow", "boolean"), _cast("BIGINT")),
            "real": _exact_real,
            "decimal": _exact_decimal,
            **_texts(_whole),
        },
        Type.REAL: {
            **dict.fromkeys(("real", "integer", "narrow", "decimal"), _cast("DOUBLE")),
            **_texts(_number),
        },
        Type.BOOLEAN: {
            "boolean": _same,
            **dict.fromkeys(("integer", "narrow"), _bit),
            "real": lambda x: _bit(_exact_real(x)),
            "decimal": lambda x: _bit(_exact_decimal(x)),
            **_texts(_truth),
        },
        Type.TEXT: {
            **_texts(lambda x: f"TRY_VALIDATE_UTF8({x})"),
            **dict.fromkeys(("integer", "narrow"), _cast("STRING")),
        },
        Type.DATE: times | {"date": _same},
        Type.TIMESTAMP: times,
    }
    return {kind: known | {"nothing": _cast(SPARK.types[kind])} for kind, known in readers.items()}


def _same(x: str) -> str:
    return x


def _cast(kind: str) -> _Reader:
    return lambda x: f"CAST({x} AS {kind})"


def _texts(reader: _Reader) -> dict[str, _Reader]:
    return {"text": reader, "collated": lambda x: reader(f"({x} {_PLAIN})")}


def _bit(x: str) -> str:
    return f"CASE {x} WHEN 0 THEN FALSE WHEN 1 THEN TRUE END"


def _exact_real(x: str) -> str:
    whole = f"TRY_CAST({x} AS BIGINT)"  # cut off towards 0, which changes what is not whole
    return f"CASE WHEN {x} >= {_LEAST} AND {x} < {_BEYOND} AND CAST({whole} AS DOUBLE) = {x} THEN {whole} END"


def _exact_decimal(x: str) -> str:
    # By its sign: to compare it with 0, Spark would round the last of 38 places away.
    return f"CASE WHEN SIGN({x} % 1) = 0 THEN TRY_CAST({x} AS BIGINT) END"


def _short(x: str) -> str:
    return f"LENGTH({x}) <= {LONGEST}"


def _whole(x: str) -> str:
    return f"CASE WHEN {_short(x)} AND {x} RLIKE {_WHOLE} THEN TRY_CAST(SUBSTRING_INDEX({x}, '.', 1) AS BIGINT) END"


def _number(x: str) -> str:
    return f"CASE WHEN {_short(x)} AND {x} RLIKE {_NUMBER} THEN TRY_CAST({x} AS DOUBLE) END"


def _truth(x: str) -> str:
    word = f"LOWER(TRIM({x}))"
    return (
        f"CASE WHEN {word} IN ('true', 't', 'yes', 'y', '1') THEN TRUE "
        f"WHEN {word} IN ('false', 'f', 'no', 'n', '0') THEN FALSE END"
    )


def _mover(zone: str) -> _Reader:
    """Move a time of UTC, the session's zone, to the policy's."""
    if zone in ("UTC", "Etc/UTC"):
        return _same
    return lambda x: f"CONVERT_TIMEZONE('UTC', '{zone}', CASE WHEN {x} {_NEAR_TIME} THEN {x} END)"


def _time_reader(moved: _Reader) -> _Reader:
    """Read a text's time; Spark itself knows fewer forms of zones."""

    def read(x: str) -> str:
        said = f"TRIM({x})"
        zone = f"REGEXP_EXTRACT({said}, {_LAST_ZONE}, 1)"
        local = f"TRY_CAST(SUBSTRING({said}, 1, LENGTH({said}) - LENGTH({zone})) AS TIMESTAMP_NTZ)"
        sign = f"CASE WHEN {zone} LIKE '-%' THEN 1 ELSE -1 END"
        hours = f"COALESCE(TRY_CAST(SUBSTRING({zone}, 2, 2) AS INT), 0)"
        minutes = f"CASE WHEN LENGTH({zone}) > 3 THEN COALESCE(TRY_CAST(SUBSTRING({zone}, -2, 2) AS INT), 0) ELSE 0 END"
        in_utc = f"{local} + MAKE_DT_INTERVAL(0, ({sign}) * {hours}, ({sign}) * ({minutes}), 0)"
        return (
            f"CASE WHEN LENGTH({x}) > {LONGEST} THEN NULL "
            f"WHEN {said} RLIKE {_LOCAL} THEN TRY_CAST({said} AS TIMESTAMP_NTZ) "
            f"WHEN {said} RLIKE {_INSTANT} THEN {moved(f'({in_utc})')} END"
        )

    return read
