"""How PostgreSQL reads a table's column as one of the kernel's types: as DuckDB does, a value or NULL, and none raises.

`casts` says which texts and numbers are what. PostgreSQL has no cast that gives NULL, so each one stands behind a
condition on the same column: what is cast is known to fit. Instants become local times by the session's time zone,
which must be the policy's. Texts are compared byte by byte, whatever the column's collation; those of type citext count
as they are written, and those of more than 64 kB are NULL.
"""

from collections.abc import Callable, Mapping

from discreet.engines.casts import LONGEST
from discreet.engines.dialects.postgres_texts import DAY
from discreet.kernel.dialect import quoted
from discreet.kernel.expr import Type
from discreet.postgres.columns import FAMILIES

_WHOLE = r"'^ *[+-]?[0-9]{1,19}(\.0*)? *$'"
_NUMBER = r"'^ *[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})? *$'"
_CLOCK = r"[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
_ZONE = "(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)"
# Bytes of a text. To trim so many takes less than a millisecond: more would show in the time whether a row has them,
# and very many make functions stop.
_LONGEST_TEXT = 1 << 16
_TO_MICROSECONDS = 26  # characters of 2026-01-31 12:00:00.123456

_WORDS = "BETWEEN {0} '0001-01-01{1}' AND {0} '9999-12-31{2}'"
_DATES = _WORDS.format("DATE", "", "")
_TIMES = _WORDS.format("TIMESTAMP", " 00:00:00", " 23:59:59.999999")
_INSTANTS = _WORDS.format("TIMESTAMPTZ", " 00:00:00", " 23:59:59.999999")  # of the session's zone
_INTEGERS = "BETWEEN -9223372036854775808 AND 9223372036854775807"
_REALS = "BETWEEN FLOAT8 '-1.7976931348623157e308' AND FLOAT8 '1.7976931348623157e308'"
# Between a double's largest value and the next power of two, and between its least and 0, lies what is rounded to them.
_ROUNDED = "1.797693134862315807937289714053e308"
_VANISHING = "2.4703282292062327208828439643412e-324"

NOTHING = ""  # the type of what stands in the place of a column that is not there: NULL
_TYPES = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "FLOAT8",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "TEXT",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}
_NATURAL = {
    **dict.fromkeys(("integer", "narrow"), Type.INTEGER),
    **dict.fromkeys(("real", "decimal"), Type.REAL),
    "boolean": Type.BOOLEAN,
    "text": Type.TEXT,
    "date": Type.DATE,
    **dict.fromkeys(("local", "instant"), Type.TIMESTAMP),
}


def natural(native: str) -> Type | None:
    """Return the kernel's type for a column that the owner did not describe; None if there is none.

    >>> natural("numeric"), natural("money")
    (<Type.REAL: 'r'>, None)
    """
    return _NATURAL.get(FAMILIES.get(native, ""))


def fits(native: str, kind: Type) -> bool:
    """Whether any value of PostgreSQL's type can be one of the kernel's.

    >>> fits("text", Type.DATE), fits("date", Type.INTEGER)
    (True, False)
    """
    return FAMILIES.get(native, "") in _READERS[kind]


def select(rows: str, columns: Mapping[str, tuple[str, str, Type]]) -> str:
    """Write a SELECT of columns: name, and from what (its text in SQL and PostgreSQL's type), as what.

    >>> select("clinic.visits", {"who": ('"Who"', "integer", Type.INTEGER)})
    'SELECT CAST("Who" AS BIGINT) AS "who" FROM clinic.visits'
    """
    shown = [f"{_read(text, native, kind)} AS {quoted(name)}" for name, (text, native, kind) in columns.items()]
    return f"SELECT {', '.join(shown)} FROM {rows}"  # noqa: S608 - of quoted names


def _read(text: str, native: str, kind: Type) -> str:
    return f"CAST({text} AS {_TYPES[kind]})" if native == NOTHING else _READERS[kind][FAMILIES[native]](text)


_Reader = Callable[[str], str]


def _if(condition: str, value: str) -> str:
    return f"CASE WHEN {condition} THEN {value} END"


def _cast(kind: str) -> _Reader:
    return lambda x: f"CAST({x} AS {kind})"


def _text(x: str) -> str:
    return f'(CAST({x} AS TEXT) COLLATE "C")'


def _of_text(reader: _Reader) -> _Reader:
    """Read a text, unless it is so long that what is done with it would take a time of its own."""
    return lambda x: _if(f"OCTET_LENGTH({_text(x)}) <= {_LONGEST_TEXT}", reader(_text(x)))


def _exactly(x: str) -> str:
    """Write a number that is whole; a NaN is equal to itself here, and above all others."""
    return _if(f"{x} {_INTEGERS} AND {x} = TRUNC({x})", f"CAST({x} AS BIGINT)")


def _exact_real(x: str) -> str:
    """Write a double that is whole: below 2^63, which bigint does not have and no double lies next to."""
    inside = f"{x} >= FLOAT8 '-9223372036854775808' AND {x} < FLOAT8 '9223372036854775808'"
    return _if(f"{inside} AND {x} = TRUNC(CAST({x} AS FLOAT8))", f"CAST({x} AS BIGINT)")


def _finite(x: str) -> str:
    return _if(f"{x} {_REALS}", f"CAST({x} AS FLOAT8)")


def _rounded(x: str) -> str:
    """Write the double next to a decimal; where that is 0 for another number, PostgreSQL would stop."""
    near = f"CASE WHEN ABS({x}) < {_VANISHING} THEN FLOAT8 '0' ELSE CAST({x} AS FLOAT8) END"
    return _if(f"ABS({x}) < {_ROUNDED}", near)


def _bit(x: str) -> str:
    return f"CASE WHEN {x} = 0 THEN FALSE WHEN {x} = 1 THEN TRUE END"


def _short(x: str) -> str:
    return f"LENGTH({x}) <= {LONGEST}"


def _whole(x: str) -> str:
    return _if(f"{_short(x)} AND {x} ~ {_WHOLE}", _exactly(f"CAST({x} AS NUMERIC)"))


def _number(x: str) -> str:
    return _if(f"{_short(x)} AND {x} ~ {_NUMBER}", _rounded(f"CAST({x} AS NUMERIC)"))


def _truth(x: str) -> str:
    word = f"LOWER(BTRIM({x}, ' '))"
    return (
        f"CASE WHEN {word} IN ('true', 't', 'yes', 'y', '1') THEN TRUE "
        f"WHEN {word} IN ('false', 'f', 'no', 'n', '0') THEN FALSE END"
    )


def _local(x: str) -> str:
    return _if(f"{x} {_INSTANTS}", f"CAST({x} AS TIMESTAMP)")


def _time(x: str) -> str:
    """Write a text's time. PostgreSQL rounds to microseconds; what is behind them is cut off before."""
    text = f"BTRIM({x}, ' ')"
    clock, zone = f"SUBSTRING({text} FROM '^.{{10}}.[0-9:.]*')", f"SUBSTRING({text} FROM '{_ZONE}$')"
    instant = f"CAST(LEFT({clock}, {_TO_MICROSECONDS}) || {zone} AS TIMESTAMPTZ)"
    return (
        f"CASE WHEN LENGTH({x}) > {LONGEST} THEN NULL "
        f"WHEN {text} ~ '^{DAY}({_CLOCK})?$' THEN CAST(LEFT({text}, {_TO_MICROSECONDS}) AS TIMESTAMP) "
        f"WHEN {text} ~ '^{DAY}{_CLOCK}{_ZONE}$' THEN {_local(instant)} END"
    )


def _within(bounds: str, kind: str) -> _Reader:
    return lambda x: _if(f"{x} {bounds}", f"CAST({x} AS {kind})")


def _day_of(reader: _Reader) -> _Reader:
    return lambda x: f"CAST({reader(x)} AS DATE)"


_BITS: dict[str, _Reader] = dict.fromkeys(("integer", "narrow", "real", "decimal"), _bit)
_TIMES_OF: dict[str, _Reader] = {"local": _within(_TIMES, "TIMESTAMP"), "instant": _local, "text": _of_text(_time)}
_READERS: dict[Type, dict[str, _Reader]] = {
    Type.INTEGER: {
        **dict.fromkeys(("integer", "narrow"), _cast("BIGINT")),
        "boolean": lambda x: f"CAST(CAST({x} AS INTEGER) AS BIGINT)",
        "real": _exact_real,
        "decimal": _exactly,
        "text": _of_text(_whole),
    },
    Type.REAL: {
        "real": _finite,
        **dict.fromkeys(("integer", "narrow"), _cast("FLOAT8")),
        "decimal": _rounded,
        "text": _of_text(_number),
    },
    Type.BOOLEAN: {"boolean": _cast("BOOLEAN"), **_BITS, "text": _of_text(_truth)},
    Type.TEXT: {"text": _of_text(str), **dict.fromkeys(("integer", "narrow"), _text)},
    Type.DATE: {"date": _within(_DATES, "DATE"), **{family: _day_of(reader) for family, reader in _TIMES_OF.items()}},
    Type.TIMESTAMP: {"date": _within(_DATES, "TIMESTAMP"), **_TIMES_OF},
}
