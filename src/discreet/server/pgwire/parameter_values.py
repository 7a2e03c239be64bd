"""The values of parameters, read from text and from binary."""

import struct
from collections.abc import Mapping
from decimal import InvalidOperation
from typing import Any

from discreet.dbapi.parameters import ArrayValue
from discreet.server.pgwire.encodings import UnreadableValue
from discreet.server.pgwire.pg_types import TEXT, TYPES, PgType

_ALIASES = {  # further types of parameters, and those that they are read like
    **dict.fromkeys((18, 19, 705, 1042, 1043, 2950, 2205, 2206, 3802, 114), TEXT),
}
BY_OID: Mapping[int, PgType] = {kind.oid: kind for kind in TYPES} | _ALIASES
_BY_ARRAY_OID: Mapping[int, PgType] = {kind.array_oid: kind for kind in TYPES} | {1002: TEXT, 1003: TEXT, 1015: TEXT}


def read_parameter(data: bytes | None, oid: int, form: int) -> Any:
    r"""Return the value of a parameter as a Python object; UnreadableValue if it is none of this type.

    >>> read_parameter(b"2026-01-31", 1082, 0), read_parameter(b"\x00\x00\x00\x07", 23, 1)
    (datetime.date(2026, 1, 31), 7)
    """
    if data is None:
        return None
    element = _BY_ARRAY_OID.get(oid)
    kind = element or BY_OID.get(oid)
    if kind is None:
        raise UnreadableValue
    try:
        if element is not None:
            return _read_binary_array(data, element) if form else _read_text_array(data, element)
        return kind.from_binary(data) if form else kind.from_text(data)
    except (ValueError, KeyError, OverflowError, struct.error, InvalidOperation):
        raise UnreadableValue from None


def _read_binary_array(data: bytes, element: PgType) -> ArrayValue:
    dimensions, _, _ = struct.unpack_from("!iiI", data)
    if dimensions == 0:
        return ArrayValue()
    count, _ = struct.unpack_from("!ii", data, 12)
    if dimensions != 1 or not 0 <= count <= len(data):
        raise UnreadableValue
    at, values = 20, ArrayValue()
    for _ in range(count):
        (size,) = struct.unpack_from("!i", data, at)
        end = at + 4 + max(0, size)
        if size < -1 or end > len(data):
            raise UnreadableValue
        values.append(None if size == -1 else element.from_binary(data[at + 4 : end]))
        at = end
    return values


def _read_text_array(data: bytes, element: PgType) -> ArrayValue:
    """Read {a,"b c",NULL}: one dimension."""
    text = data.decode().strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise UnreadableValue
    values = ArrayValue()
    word, is_quoted, is_inside, at = "", False, False, 1
    if text == "{}":
        return values
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            word, at = word + text[at + 1], at + 1
        elif char == '"':
            is_quoted, is_inside = True, not is_inside
        elif is_inside or char not in ",} \t\n":
            word += char
        elif char not in ",}":
            pass  # space around an element
        else:
            values.append(None if word.upper() == "NULL" and not is_quoted else element.from_text(word.encode()))
            word, is_quoted = "", False
        at += 1
    return values
