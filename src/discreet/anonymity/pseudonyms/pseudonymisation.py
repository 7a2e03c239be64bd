"""Pseudonyms: HMAC-SHA-256 of the canonical form of an identifier, under a secret key.

A pseudonym is truncated to 128 bits and written in base32, as 26 letters and digits. It does not depend on the name of
the column: the same key gives a person the same pseudonym in every table. It depends on the value and its kind, not on
how the value is stored:

    text        in Unicode's composed form (NFC); case and spaces matter
    numbers     by their exact value: 17, 17.0 and Decimal("17.00") are one id, the text "17" is another
    dates       by day; a timestamp at midnight is another id
    timestamps  to the nanosecond; with a time zone, in UTC, and different from those without
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
from discreet.arguments import ArgumentError, ArgumentTypeError, require

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def canonical_bytes(values: pa.Array) -> tuple[bytes, Iterable[bytes]]:
    """Return the kind of the values, none of which is null, and the canonical bytes of each.

    >>> kind, encoded = canonical_bytes(pa.array([17.0, 17.5]))
    >>> kind, list(encoded)
    (b'number', [b'17', b'17.5'])
    """
    for fits, kind, write in _CANONICAL_FORMS:
        if fits(values.type):
            return kind, write(values)
    raise ArgumentTypeError(
        "column", f"values of type {values.type} cannot be identifiers. Convert them to text first."
    )


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


_PREFIX = b"discreet pseudonym 1\0"  # separates these pseudonyms from other uses of the same key
_DIGEST_BYTES = 16  # of 32: two of a billion ids collide with probability 10⁻²⁰
_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", np.uint8)
_PSEUDONYM_LENGTH = 26  # characters of five bits each
_BLOCK = 65_536
_MAX_LISTED_COLUMNS = 6


def pseudonymise(table: Any, column: str, key: bytes | None) -> Any:
    """Return the table with keyed pseudonyms in place of a column's identifiers; nulls stay null.

    Rows keep their order. Metadata, attrs, unused categories and the pandas index are removed, because they can contain
    the identifiers.

    >>> from discreet.anonymity.pseudonyms.keys import new_key
    >>> table = pa.table({"medallion": ["5D12", "9Y99", None, "5D12"], "fare": [11.0, 34.0, 6.5, 8.0]})
    >>> first, second, empty, again = pseudonymise(table, "medallion", new_key())["medallion"].to_pylist()
    >>> len(first), first == again, first == second, empty
    (26, True, False, None)
    >>> pseudonymise(table, "medallion", key=None)
    Traceback (most recent call last):
    discreet.arguments.ArgumentError: key: without a key, this is a plain hash, which anyone with the table can \
reverse: 26,000 candidates for ids of the form 9A99 (9: digit, A: letter), which one core hashes in 0.03 s. Use a \
random key, and store it apart from the table.
    """
    source = adapt_table(table)
    resolved = resolve_column_names(column, "column", source)
    require(len(resolved) <= 1, "name one column. Pseudonymise several columns one after the other.", "column")
    (name,) = resolved
    ids = encode_column(source, name)
    values = ids.values.drop_null()  # a null is the last value, so the other codes stay the same
    if key is None:
        raise ArgumentError(
            "key",
            f"without a key, this is a plain hash, which anyone with the table can reverse: "
            f"{explain_brute_force(estimate_candidates(values))}. Use a random key, and store it apart from the table.",
        )
    other_columns = [other_name for other_name in source.column_names if other_name != name]
    pseudonyms = _compute_pseudonyms(check_key(key), *canonical_bytes(values))
    pseudonyms = pa.concat_arrays([pseudonyms, pa.nulls(1, pseudonyms.type)])
    return source.rebuild(
        {name: pseudonyms.take(pa.array(ids.codes))}, note=describe_attacks_on_pseudonyms([name], other_columns)
    )


def describe_attacks_on_pseudonyms(columns: Sequence[str], other_columns: Sequence[str]) -> str:
    """Return a sentence that names the attacks that pseudonyms do not protect against.

    >>> describe_attacks_on_pseudonyms(["medallion"], ["time", "place"])
    "Not protected against: linkage attack (who is behind a pseudonym of 'medallion' can be inferred from time, \
place); profiling (all rows of a person have the same pseudonym)."
    """
    listed = ", ".join(name[:60] for name in other_columns[:_MAX_LISTED_COLUMNS]) + (
        ", …" if len(other_columns) > _MAX_LISTED_COLUMNS else ""
    )
    named = " or ".join(repr(name[:60]) for name in columns)
    linkage = f"linkage attack (who is behind a pseudonym of {named} can be inferred from {listed})"
    frequency = f"frequency attack (who is behind a pseudonym of {named} can be inferred from how often it occurs)"
    return (
        f"Not protected against: {linkage if other_columns else frequency}; "
        "profiling (all rows of a person have the same pseudonym)."
    )


def _compute_pseudonyms(key: bytes, kind: bytes, texts: Iterable[bytes]) -> pa.Array:
    """Return the pseudonym of each value."""
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
    """Return each digest of 128 bits as 26 characters of five bits; the last two bits are zero."""
    bits = np.zeros((len(digests), _PSEUDONYM_LENGTH * 5), np.uint8)
    bits[:, : _DIGEST_BYTES * 8] = np.unpackbits(digests, axis=1)
    quintets = np.packbits(bits.reshape(-1, _PSEUDONYM_LENGTH, 5), axis=2)[:, :, 0] >> 3
    return np.asarray(_ALPHABET[quintets])
