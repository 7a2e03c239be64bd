"""How DuckDB reads a source's column as one of the kernel's types: a value is itself, or NULL, and none can raise.

integer    whole numbers that 64 bits hold; a real, a decimal or a text only if it is such a number: 3.0 and "3.0" are,
           3.7 is not and is never rounded, "3e0" is not; false and true are 0 and 1
real       finite numbers
boolean    0 and 1 among numbers; true, t, yes, y, 1 and false, f, no, n, 0 among texts, in any case
text       texts, labels of an enumeration, UUIDs, and whole numbers as they are written
date       dates of the years 1 to 9999; of a time, its day in the policy's time zone
timestamp  times of these years in microseconds, local in the policy's time zone: moved there if they have a zone, taken
           as they are if they have none; a date is its midnight

A text is a date or a time only in the form 2026-01-31 or 2026-01-31 12:00:00.5, with T for the blank, with Z or +01:00
behind it, at most 15:59; hours end at 23, and what is smaller than a microsecond is cut off. The exponent of a number
has at most three digits. Blanks around a number, a date or a time do not count, and none has more than 400 characters
with them. Other engines read the same.
"""

from collections.abc import Callable, Mapping

from discreet.kernel.dialect import quoted
from discreet.kernel.expr import Type

LONGEST = 400  # characters of a text that is read as a number or a time

_WHOLE = r"' *[+-]?[0-9]{1,19}(\.0*)? *'"
_NUMBER = r"' *[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})? *'"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
_ZONE = "(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)"

_DATES = "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
_TIMES = "BETWEEN TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999'"

_FAMILIES = {
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
_NATURAL = {
    **dict.fromkeys(("integer", "narrow", "wide"), Type.INTEGER),
    **dict.fromkeys(("real", "decimal"), Type.REAL),
    "boolean": Type.BOOLEAN,
    **dict.fromkeys(("text", "label"), Type.TEXT),
    "date": Type.DATE,
    **dict.fromkeys(("local", "other local", "instant"), Type.TIMESTAMP),
}
_TYPES = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}


def natural(native: str) -> Type | None:
    """Return the kernel's type for a column that the owner did not describe; None if there is none.

    >>> natural("DECIMAL(18,2)"), natural("BIGINT[]")
    (<Type.REAL: 'r'>, None)
    """
    return _NATURAL.get(_family(native))


def fits(native: str, kind: Type) -> bool:
    """Whether any value of DuckDB's type can be one of the kernel's."""
    return _family(native) in _readers("UTC")[kind]


def select(rows: str, columns: Mapping[str, tuple[str, str, Type]], zone: str) -> str:
    """Write a SELECT of columns: name, and from what (its text in SQL and DuckDB's type), as what.

    The inner one converts, the outer one keeps what lies in the type's range, so that nothing is computed twice.
    """
    inner = [f"{_convert(*column, zone)} AS {quoted(name)}" for name, column in columns.items()]
    outer = [f"{_keep(quoted(name), *column[1:])} AS {quoted(name)}" for name, column in columns.items()]
    return f"SELECT {', '.join(outer)} FROM (SELECT {', '.join(inner)} FROM {rows})"  # noqa: S608 - of quoted names


def _family(native: str) -> str:
    """Return what a type is read like: DECIMAL(18,2) is a decimal, ENUM('a', 'b') a label, BIGINT[] nothing we know."""
    return "" if native.endswith("]") else _FAMILIES.get(native.partition("(")[0], "")


def _convert(text: str, native: str, kind: Type, zone: str) -> str:
    return _readers(zone)[kind][_family(native)](text)


def _keep(name: str, native: str, kind: Type) -> str:
    family = _family(native)
    if kind is Type.REAL and family in ("real", "text", "label"):
        # Not by comparison: a file's statistics leave NaN out, and DuckDB would take the comparison for true.
        return f"CASE WHEN ISFINITE({name}) THEN {name} END"
    if kind is Type.DATE and family == "date":
        return f"CASE WHEN {name} {_DATES} THEN {name} END"
    if kind in (Type.DATE, Type.TIMESTAMP):
        kept = f"CASE WHEN {name} {_TIMES} THEN {name} END"
        return f"CAST({kept} AS DATE)" if kind is Type.DATE else kept
    return name


_Reader = Callable[[str], str]


def _readers(zone: str) -> dict[Type, dict[str, _Reader]]:
    """Return how each family of types is read as each of the kernel's; what is not listed never fits."""
    times: dict[str, _Reader] = {
        "local": _same,
        "other local": _try("TIMESTAMP"),
        "date": _try("TIMESTAMP"),
        "instant": _mover(zone),
        **_texts(_time_reader(zone)),
    }
    bits: dict[str, _Reader] = {
        **dict.fromkeys(("integer", "narrow", "wide"), _bit),
        **dict.fromkeys(("real", "decimal"), lambda x: _bit(_exactly(x))),
    }
    readers: dict[Type, dict[str, _Reader]] = {
        Type.INTEGER: {
            "integer": _same,
            **dict.fromkeys(("narrow", "boolean"), _cast("BIGINT")),
            "wide": _try("BIGINT"),
            **dict.fromkeys(("real", "decimal"), _exactly),
            **_texts(_whole),
        },
        Type.REAL: {
            **dict.fromkeys(("real", "integer", "narrow", "wide", "decimal"), _cast("DOUBLE")),
            **_texts(_number),
        },
        Type.BOOLEAN: {"boolean": _same, **bits, **_texts(_truth)},
        Type.TEXT: {**_texts(_same), **dict.fromkeys(("integer", "narrow", "wide"), _cast("VARCHAR"))},
        Type.DATE: times | {"date": _same},
        Type.TIMESTAMP: times,
    }
    return {kind: known | {"nothing": _cast(_TYPES[kind])} for kind, known in readers.items()}


def _same(x: str) -> str:
    return x


def _cast(kind: str) -> _Reader:
    return lambda x: f"CAST({x} AS {kind})"


def _try(kind: str) -> _Reader:
    return lambda x: f"TRY_CAST({x} AS {kind})"


def _texts(reader: _Reader) -> dict[str, _Reader]:
    return {"text": reader, "label": lambda x: reader(f"CAST({x} AS VARCHAR)")}


def _bit(x: str) -> str:
    return f"CASE {x} WHEN 0 THEN FALSE WHEN 1 THEN TRUE END"


def _exactly(x: str) -> str:
    return f"CASE WHEN {x} = TRUNC({x}) THEN TRY_CAST({x} AS BIGINT) END"


def _number(x: str) -> str:
    return f"CASE WHEN {_short(x)} AND REGEXP_FULL_MATCH({x}, {_NUMBER}) THEN TRY_CAST({x} AS DOUBLE) END"


def _whole(x: str) -> str:
    return f"CASE WHEN {_short(x)} AND REGEXP_FULL_MATCH({x}, {_WHOLE}) THEN TRY_CAST({x} AS BIGINT) END"


def _short(x: str) -> str:
    return f"LENGTH({x}) <= {LONGEST}"


def _truth(x: str) -> str:
    word = f"LOWER(TRIM({x}, ' '))"
    return (
        f"CASE WHEN {word} IN ('true', 't', 'yes', 'y', '1') THEN TRUE "
        f"WHEN {word} IN ('false', 'f', 'no', 'n', '0') THEN FALSE END"
    )


def _mover(zone: str) -> _Reader:
    """Move an instant to the session's zone, which is the policy's; UTC needs no calendar, and 20 times less time."""
    if zone in ("UTC", "Etc/UTC"):
        return lambda x: f"MAKE_TIMESTAMP(EPOCH_US(TRY_CAST({x} AS TIMESTAMPTZ)))"
    return lambda x: f"TRY_CAST(TRY_CAST({x} AS TIMESTAMPTZ) AS TIMESTAMP)"


def _time_reader(zone: str) -> _Reader:
    moved = _mover(zone)

    def read(x: str) -> str:
        text = f"TRIM({x}, ' ')"
        return (
            f"CASE WHEN LENGTH({x}) > {LONGEST} THEN NULL "
            f"WHEN REGEXP_FULL_MATCH({text}, '{_DAY}({_CLOCK})?') THEN TRY_CAST({text} AS TIMESTAMP) "
            f"WHEN REGEXP_FULL_MATCH({text}, '{_DAY}{_CLOCK}{_ZONE}') THEN {moved(text)} END"
        )

    return read
