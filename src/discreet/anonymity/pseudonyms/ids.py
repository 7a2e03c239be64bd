"""Ids as bytes: the same id is the same bytes, however it is stored, and two different ones never are."""

import unicodedata
from collections.abc import Callable, Iterable
from decimal import Decimal

import pyarrow as pa

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def written(values: pa.Array) -> tuple[bytes, Iterable[bytes]]:
    """Return the kind of some values, none of them null, and the bytes of each.

    >>> kind, texts = written(pa.array([17.0, 17.5]))
    >>> kind, list(texts)
    (b'number', [b'17', b'17.5'])
    """
    for fits, kind, write in _KINDS:
        if fits(values.type):
            return kind, write(values)
    raise TypeError(f"column: values of type {values.type} are no ids. Make a text of each first.")


def _texts(values: pa.Array) -> Iterable[bytes]:
    for text in values.to_pylist():
        yield (text if text.isascii() else unicodedata.normalize("NFC", text)).encode()


def _numbers(values: pa.Array) -> Iterable[bytes]:
    if pa.types.is_integer(values.type):
        return (b"%d" % number for number in values.to_pylist())
    return (_number(Decimal(repr(number)) if isinstance(number, float) else number) for number in values.to_pylist())


def _number(value: Decimal) -> bytes:
    if value.is_finite() and value == value.to_integral_value():
        return b"%d" % int(value)
    return f"{value:f}".rstrip("0").encode()  # normalize() would round to 28 digits


def _days(values: pa.Array) -> Iterable[bytes]:
    return _numbers(values.cast(pa.date32()).cast(pa.int32()))


def _times(values: pa.Array) -> Iterable[bytes]:
    size, zone = _NANOSECONDS[values.type.unit], b"Z" if values.type.tz else b""
    return (b"%d%b" % (number * size, zone) for number in values.cast(pa.int64()).to_pylist())


def _bytes(values: pa.Array) -> Iterable[bytes]:
    yield from values.to_pylist()


def _truths(values: pa.Array) -> Iterable[bytes]:
    return _numbers(values.cast(pa.int8()))


def _is_text(kind: pa.DataType) -> bool:
    return any(fits(kind) for fits in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_number(kind: pa.DataType) -> bool:
    return any(fits(kind) for fits in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def _is_bytes(kind: pa.DataType) -> bool:
    plain = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(fits(kind) for fits in plain)


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], bytes, Callable[[pa.Array], Iterable[bytes]]], ...] = (
    (_is_text, b"text", _texts),
    (_is_number, b"number", _numbers),
    (pa.types.is_date, b"date", _days),
    (pa.types.is_timestamp, b"time", _times),
    (_is_bytes, b"bytes", _bytes),
    (pa.types.is_boolean, b"boolean", _truths),
    (pa.types.is_null, b"null", _bytes),
)
