"""Pseudonyms: the same id always gets the same code, which nobody can work out or check without the key.

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
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.anonymity.coding.columns import encode
from discreet.anonymity.coding.tables import names, read
from discreet.anonymity.pseudonyms.candidates import candidates, why_no_hash
from discreet.anonymity.pseudonyms.ids import written
from discreet.anonymity.pseudonyms.keys import checked_key

_PREFIX = b"discreet pseudonym 1\0"  # a key that serves elsewhere too gives other codes there
_SHOWN = 16  # bytes of 32: two of a billion ids collide once in 10²⁰
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", np.uint8)
_LENGTH = 26  # of five bits each
_BLOCK = 65_536
_LISTED = 6


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
    rows = read(table)
    found = names(column, "column", rows)
    if len(found) > 1:
        raise ValueError("column: name one. For several, pseudonymise one after the other.")
    (name,) = found
    ids = encode(rows, name)
    values = ids.values.drop_null()  # null, where there is one, is the last
    if key is None:
        raise ValueError(
            f"key: without one this is plain hashing, which whoever has the table undoes: "
            f"{why_no_hash(candidates(values))}. Give new_key(), and keep it apart from the table."
        )
    others = [each for each in rows.names if each != name]
    coded = _codes(checked_key(key), *written(values))
    coded = pa.concat_arrays([coded, pa.nulls(1, coded.type)])
    return rows.give_back({name: coded.take(pa.array(ids.codes))}, note=not_protected([name], others))


def not_protected(columns: Sequence[str], others: Sequence[str]) -> str:
    """Name the attacks that pseudonyms leave open.

    >>> not_protected(["medallion"], ["time", "place"])
    "Not protected against: linkage attack (who is behind a pseudonym of 'medallion' can be found by time, place); \
profiling (the rows of one person are seen to belong together)."
    """
    listed = ", ".join(name[:60] for name in others[:_LISTED]) + (", …" if len(others) > _LISTED else "")
    named = " or ".join(repr(name[:60]) for name in columns)
    how = f"linkage attack (who is behind a pseudonym of {named} can be found by {listed})"
    often = f"frequency attack (who is behind a pseudonym of {named} can be found by how often it appears)"
    return (
        f"Not protected against: {how if others else often}; "
        "profiling (the rows of one person are seen to belong together)."
    )


def _codes(key: bytes, kind: bytes, texts: Iterable[bytes]) -> pa.Array:
    """Return the pseudonyms of some values."""
    prefix = _PREFIX + kind + b"\0"
    digests = b"".join(hmac.digest(key, prefix + text, "sha256")[:_SHOWN] for text in texts)
    whole = np.frombuffer(digests, np.uint8).reshape(-1, _SHOWN)
    letters = np.concatenate(
        [_spelled(whole[start : start + _BLOCK]) for start in range(0, len(whole), _BLOCK)] or [whole]
    )
    places = np.arange(len(whole) + 1, dtype=np.int64) * _LENGTH
    return pa.LargeStringArray.from_buffers(len(whole), pa.py_buffer(places), pa.py_buffer(letters.tobytes()))


def _spelled(digests: np.ndarray) -> np.ndarray:
    """Write 128 bits as 26 letters of five bits each, the last two zeros."""
    bits = np.zeros((len(digests), _LENGTH * 5), np.uint8)
    bits[:, : _SHOWN * 8] = np.unpackbits(digests, axis=1)
    fives = np.packbits(bits.reshape(-1, _LENGTH, 5), axis=2)[:, :, 0] >> 3
    return np.asarray(_LETTERS[fives])
