"""PostgreSQL's types: their numbers, and how columns of answers are sent."""

import datetime as dt
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from discreet.server.pgwire.encodings import (
    Decode,
    Encode,
    binary_date,
    binary_interval,
    binary_numeric,
    binary_time,
    binary_timestamp,
    float4_text,
    float_text,
    interval_text,
    packed,
    plain_text,
    read_binary_date,
    read_binary_numeric,
    read_binary_time,
    read_binary_timestamp,
    read_binary_timestamptz,
    read_bool,
    read_number,
    read_text,
    timestamp_text,
    timestamptz_text,
    unreadable,
)

_NULL_FIELD = struct.pack("!i", -1)


@dataclass(frozen=True)
class PgType:
    r"""A type: its number, name and size in bytes (-1 if it varies), the number of its array type, and how it is sent.

    >>> pg_type(pa.int64()).name, pg_type(pa.int64()).to_binary(258)
    ('int8', b'\x00\x00\x00\x00\x00\x00\x01\x02')
    """

    oid: int
    name: str
    size: int
    array_oid: int
    to_text: Encode
    to_binary: Encode
    from_text: Decode
    from_binary: Decode


def _type(  # noqa: PLR0913, PLR0917 - one row of a table
    oid: int, name: str, size: int, array_oid: int, text: tuple[Encode, Decode], binary: tuple[Encode, Decode]
) -> PgType:
    return PgType(oid, name, size, array_oid, text[0], binary[0], text[1], binary[1])


_INTEGER = (plain_text, lambda data: int(data.decode()))
_CHARACTERS = (plain_text, read_text)
_NUMBER = (float_text, lambda data: float(data.decode()))
_BOOL = _type(16, "bool", 1, 1000, (lambda value: b"t" if value else b"f", read_bool), (packed("?")[0], packed("?")[1]))
_INT2 = _type(21, "int2", 2, 1005, _INTEGER, packed("h"))
_INT4 = _type(23, "int4", 4, 1007, _INTEGER, packed("i"))
_INT8 = _type(20, "int8", 8, 1016, _INTEGER, packed("q"))
_OID = _type(26, "oid", 4, 1028, _INTEGER, packed("I"))
_FLOAT4 = _type(700, "float4", 4, 1021, (float4_text, _NUMBER[1]), packed("f"))
_FLOAT8 = _type(701, "float8", 8, 1022, _NUMBER, packed("d"))
_NUMERIC = _type(
    1700,
    "numeric",
    -1,
    1231,
    (lambda value: f"{value:f}".encode(), read_number),
    (binary_numeric, read_binary_numeric),
)
TEXT = _type(25, "text", -1, 1009, _CHARACTERS, _CHARACTERS)
_DATE = _type(
    1082,
    "date",
    4,
    1182,
    (plain_text, lambda data: dt.date.fromisoformat(data.decode())),
    (binary_date, read_binary_date),
)
_TIMESTAMP = _type(
    1114,
    "timestamp",
    8,
    1115,
    (timestamp_text, lambda data: dt.datetime.fromisoformat(data.decode())),
    (binary_timestamp, read_binary_timestamp),
)
_TIMESTAMPTZ = _type(
    1184,
    "timestamptz",
    8,
    1185,
    (timestamptz_text, _TIMESTAMP.from_text),
    (binary_timestamp, read_binary_timestamptz),
)
_TIME = _type(
    1083,
    "time",
    8,
    1183,
    (plain_text, lambda data: dt.time.fromisoformat(data.decode())),
    (binary_time, read_binary_time),
)
_INTERVAL = _type(1186, "interval", 16, 1187, (interval_text, unreadable), (binary_interval, unreadable))
TYPES = (
    _BOOL,
    _INT2,
    _INT4,
    _INT8,
    _OID,
    _FLOAT4,
    _FLOAT8,
    _NUMERIC,
    TEXT,
    _DATE,
    _TIMESTAMP,
    _TIMESTAMPTZ,
    _TIME,
    _INTERVAL,
)
TEXT_OID, INT8_OID, UNKNOWN_OID = TEXT.oid, _INT8.oid, 705
_FIXED: Mapping[pa.DataType, PgType] = {
    pa.bool_(): _BOOL,
    pa.int8(): _INT2,
    pa.uint8(): _INT2,
    pa.int16(): _INT2,
    pa.uint16(): _INT4,
    pa.int32(): _INT4,
    pa.uint32(): _OID,
    pa.int64(): _INT8,
    pa.uint64(): _NUMERIC,
    pa.float32(): _FLOAT4,
    pa.float64(): _FLOAT8,
    pa.date32(): _DATE,
}
_FAMILIES: tuple[tuple[Callable[[pa.DataType], bool], PgType], ...] = (
    (pa.types.is_decimal, _NUMERIC),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, _TIMESTAMPTZ),
    (pa.types.is_timestamp, _TIMESTAMP),
    (pa.types.is_time, _TIME),
    (pa.types.is_duration, _INTERVAL),
    (pa.types.is_date, _DATE),
)


def pg_type(kind: pa.DataType) -> PgType:
    """Return the type of a column of an answer; text for what PostgreSQL has no type for.

    >>> pg_type(pa.list_(pa.int16())).name, pg_type(pa.null()).name
    ('_int2', 'text')
    """
    if pa.types.is_list(kind):
        return _array_type(pg_type(kind.value_type))
    fixed = _FIXED.get(kind)
    return fixed or next((found for check, found in _FAMILIES if check(kind)), TEXT)


def _array_type(element: PgType) -> PgType:
    def text(values: Sequence[Any]) -> bytes:
        return (
            b"{" + b",".join(b"NULL" if value is None else _quoted(element.to_text(value)) for value in values) + b"}"
        )

    def binary(values: Sequence[Any]) -> bytes:
        if not values:
            return struct.pack("!iiI", 0, 0, element.oid)
        fields = b"".join(_field(element.to_binary, value) for value in values)
        has_null = any(value is None for value in values)
        return struct.pack("!iiIii", 1, has_null, element.oid, len(values), 1) + fields

    return PgType(element.array_oid, f"_{element.name}", -1, 0, text, binary, unreadable, unreadable)


def _quoted(text: bytes) -> bytes:
    """Quote an element of an array where PostgreSQL would."""
    if text and text.upper() != b"NULL" and not set(text) & set(b'{},"\\ \t\n\r\v\f'):
        return text
    return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _field(encode: Encode, value: Any) -> bytes:
    if value is None:
        return _NULL_FIELD
    data = encode(value)
    return struct.pack("!i", len(data)) + data


def encode_columns(table: pa.Table, formats: Sequence[int]) -> list[list[bytes]]:
    r"""Return the fields of each column with their lengths, as text (0) or binary (1).

    >>> encode_columns(pa.table({"n": [7, None]}), [0])
    [[b'\x00\x00\x00\x017', b'\xff\xff\xff\xff']]
    """
    encoded = []
    for column, form in zip(table.columns, formats, strict=True):
        kind = pg_type(column.type)
        encode = kind.to_binary if form else kind.to_text
        encoded.append([_field(encode, value) for value in column.to_pylist()])
    return encoded
