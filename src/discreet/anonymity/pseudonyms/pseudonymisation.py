"""Pseudonyms: HMAC-SHA-256 of the canonical form of an identifier, under a secret key.

A code is HMAC-SHA-256 of the value under the key, cut to 128 bits and written as 26 letters and digits, so that no
program takes it for a number. The name of the column is left out: a person has the same pseudonym in every table that
was given the same key. What counts is the value and its kind, not how it is stored:

    text        in Unicode's composed form (NFC); capital letters and blanks count
    numbers     by their exact value: 17, 17.0 and Decimal("17.00") are one id, the text "17" is another
    dates       days; a time at midnight is another id
    times       to the nanosecond; those with a time zone in UTC, and apart from those without
    booleans, bytes
"""

import hmac
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.anonymity.encoding.encoded_table import encode_column
from discreet.anonymity.encoding.table_adapters import adapt_table, resolve_column_names
from discreet.anonymity.pseudonyms.brute_force import estimate_candidates, explain_brute_force
from discreet.anonymity.pseudonyms.keys import check_key

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def canonical_bytes(values: pa.Array) -> tuple[bytes, Iterable[bytes]]:
    """Return the kind of some values, none of them null, and the bytes of each.

    >>> kind, texts = canonical_bytes(pa.array([17.0, 17.5]))
    >>> kind, list(texts)
    (b'number', [b'17', b'17.5'])
    """
    for fits, kind, write in _CANONICAL_FORMS:
        if fits(values.type):
            return kind, write(values)
    raise TypeError(f"column: values of type {values.type} are no ids. Make a text of each first.")


def _text_bytes(values: pa.Array) -> Iterable[bytes]:
    for text in values.to_pylist():
        yield (text if text.isascii() else unicodedata.normalize("NFC", text)).encode()


def _number_bytes(values: pa.Array) -> Iterable[bytes]:
    if pa.types.is_integer(values.type):
        return (b"%d" % number for number in values.to_pylist())
    return (
        _decimal_bytes(Decimal(repr(number)) if isinstance(number, float) else number) for number in values.to_pylist()
    )


def _decimal_bytes(value: Decimal) -> bytes:
    if value.is_finite() and value == value.to_integral_value():
        return b"%d" % int(value)
    return f"{value:f}".rstrip("0").encode()  # normalize() would round to 28 digits


def _date_bytes(values: pa.Array) -> Iterable[bytes]:
    return _number_bytes(values.cast(pa.date32()).cast(pa.int32()))


def _timestamp_bytes(values: pa.Array) -> Iterable[bytes]:
    size, zone = _NANOSECONDS[values.type.unit], b"Z" if values.type.tz else b""
    return (b"%d%b" % (number * size, zone) for number in values.cast(pa.int64()).to_pylist())


def _raw_bytes(values: pa.Array) -> Iterable[bytes]:
    yield from values.to_pylist()


def _boolean_bytes(values: pa.Array) -> Iterable[bytes]:
    return _number_bytes(values.cast(pa.int8()))


def _is_text(kind: pa.DataType) -> bool:
    return any(fits(kind) for fits in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_number(kind: pa.DataType) -> bool:
    return any(fits(kind) for fits in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def _is_bytes(kind: pa.DataType) -> bool:
    binary_types = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    return any(fits(kind) for fits in binary_types)


_CANONICAL_FORMS: tuple[tuple[Callable[[pa.DataType], bool], bytes, Callable[[pa.Array], Iterable[bytes]]], ...] = (
    (_is_text, b"text", _text_bytes),
    (_is_number, b"number", _number_bytes),
    (pa.types.is_date, b"date", _date_bytes),
    (pa.types.is_timestamp, b"time", _timestamp_bytes),
    (_is_bytes, b"bytes", _raw_bytes),
    (pa.types.is_boolean, b"boolean", _boolean_bytes),
    (pa.types.is_null, b"null", _raw_bytes),
)


_PREFIX = b"discreet pseudonym 1\0"  # a key that serves elsewhere too gives other codes there
_DIGEST_BYTES = 16  # bytes of 32: two of a billion ids collide once in 10²⁰
_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", np.uint8)
_PSEUDONYM_LENGTH = 26  # of five bits each
_BLOCK = 65_536
_MAX_LISTED_COLUMNS = 6


def pseudonymise(table: Any, column: str, key: bytes | None) -> Any:
    """Return the table with keyed pseudonyms in place of a column's ids; empty ones stay empty.

    Rows keep their order, and count from 0: an index of pandas may hold the ids, and stays behind as metadata, attrs
    and categories that no row has do.

    >>> from discreet.anonymity.pseudonyms.keys import new_key
    >>> table = pa.table({"medallion": ["5D12", "9Y99", None, "5D12"], "fare": [11.0, 34.0, 6.5, 8.0]})
    >>> first, second, empty, again = pseudonymise(table, "medallion", new_key())["medallion"].to_pylist()
    >>> len(first), first == again, first == second, empty
    (26, True, False, None)
    >>> pseudonymise(table, "medallion", key=None)
    Traceback (most recent call last):
    ValueError: key: without one this is plain hashing, which whoever has the table undoes: ids such as 9A99 \
(9 a digit, A a letter) are 26,000 candidates, and one core hashes all of them in 0.03 s. Give new_key(), and keep it \
apart from the table.
    """
    source = adapt_table(table)
    resolved = resolve_column_names(column, "column", source)
    if len(resolved) > 1:
        raise ValueError("column: name one. For several, pseudonymise one after the other.")
    (name,) = resolved
    ids = encode_column(source, name)
    values = ids.values.drop_null()  # null, where there is one, is the last
    if key is None:
        raise ValueError(
            f"key: without one this is plain hashing, which whoever has the table undoes: "
            f"{explain_brute_force(estimate_candidates(values))}. Give new_key(), and keep it apart from the table."
        )
    other_columns = [other_name for other_name in source.column_names if other_name != name]
    pseudonyms = _compute_pseudonyms(check_key(key), *canonical_bytes(values))
    pseudonyms = pa.concat_arrays([pseudonyms, pa.nulls(1, pseudonyms.type)])
    return source.rebuild(
        {name: pseudonyms.take(pa.array(ids.codes))}, note=describe_attacks_on_pseudonyms([name], other_columns)
    )


def describe_attacks_on_pseudonyms(columns: Sequence[str], other_columns: Sequence[str]) -> str:
    """Name the attacks that pseudonyms leave open.

    >>> describe_attacks_on_pseudonyms(["medallion"], ["time", "place"])
    "Not protected against: linkage attack (who is behind a pseudonym of 'medallion' can be found by time, place); \
profiling (the rows of one person are seen to belong together)."
    """
    listed = ", ".join(name[:60] for name in other_columns[:_MAX_LISTED_COLUMNS]) + (
        ", …" if len(other_columns) > _MAX_LISTED_COLUMNS else ""
    )
    named = " or ".join(repr(name[:60]) for name in columns)
    linkage = f"linkage attack (who is behind a pseudonym of {named} can be found by {listed})"
    frequency = f"frequency attack (who is behind a pseudonym of {named} can be found by how often it appears)"
    return (
        f"Not protected against: {linkage if other_columns else frequency}; "
        "profiling (the rows of one person are seen to belong together)."
    )


def _compute_pseudonyms(key: bytes, kind: bytes, texts: Iterable[bytes]) -> pa.Array:
    """Return the pseudonyms of some values."""
    prefix = _PREFIX + kind + b"\0"
    digests = b"".join(hmac.digest(key, prefix + text, "sha256")[:_DIGEST_BYTES] for text in texts)
    digest_rows = np.frombuffer(digests, np.uint8).reshape(-1, _DIGEST_BYTES)
    letters = np.concatenate(
        [_encode_base32(digest_rows[start : start + _BLOCK]) for start in range(0, len(digest_rows), _BLOCK)]
        or [digest_rows]
    )
    offsets = np.arange(len(digest_rows) + 1, dtype=np.int64) * _PSEUDONYM_LENGTH
    return pa.LargeStringArray.from_buffers(len(digest_rows), pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))


def _encode_base32(digests: np.ndarray) -> np.ndarray:
    """Write 128 bits as 26 letters of five bits each, the last two zeros."""
    bits = np.zeros((len(digests), _PSEUDONYM_LENGTH * 5), np.uint8)
    bits[:, : _DIGEST_BYTES * 8] = np.unpackbits(digests, axis=1)
    quintets = np.packbits(bits.reshape(-1, _PSEUDONYM_LENGTH, 5), axis=2)[:, :, 0] >> 3
    return np.asarray(_ALPHABET[quintets])
