"""Marks: a number of 64 bits for any value, and public functions that sort marks into places."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

_ODD = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Return other numbers of 64 bits, one for one, that show no pattern of the given ones."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _ODD[0]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _ODD[1]
    numbers ^= numbers >> np.uint64(31)
    return numbers


def sorted_into(marks: np.ndarray, row: int, bits: int) -> np.ndarray:
    """Return the place below 2^bits of each mark, by the public function of a row.

    (first·low + second·high + shift) mod 2^64, of which the highest bits are kept: over all three constants, two
    marks meet with probability 2^-bits (Dietzfelbinger 1996). The constants are digits of a hash of the row's number.

    >>> sorted_into(np.array([1, 2, 3], np.uint64), row=0, bits=8)
    array([186, 233,  25])
    """
    digest = hashlib.blake2b(f"discreet row {row}".encode(), digest_size=24).digest()
    first, second, shift = np.frombuffer(digest, "<u8").astype(np.uint64)
    low, high = marks & np.uint64(0xFFFFFFFF), marks >> np.uint64(32)
    places: np.ndarray = (first * low + second * high + shift) >> np.uint64(64 - bits)
    return places.view(np.int64)


@dataclass(frozen=True)
class Anything:
    """Whole numbers from 0 to 2^64 - 1, or texts: values of which no list exists.

    >>> Anything().marks(["a", "b", "a"], "values").shape
    (3, 1)
    """

    def marks(self, values: Any, name: str) -> np.ndarray:
        """Return a mark for each value, in one column: a number has one of its own, a text has a hash."""
        given = values if isinstance(values, np.ndarray) else _listed(values, name)
        if _are_numbers(given):
            return mixed(whole_numbers(given, name, 64))[:, None]
        texts = encoded(given, name)
        known = {text: hashlib.blake2b(text, digest_size=8).digest() for text in set(texts)}
        return np.frombuffer(b"".join(known[text] for text in texts), "<u8").astype(np.uint64)[:, None]

    def __str__(self) -> str:
        return "anything"


def whole_numbers(values: Any, name: str, bits: int) -> np.ndarray:
    """Return whole numbers below 2^bits as they are, as uint64."""
    given = values if isinstance(values, np.ndarray) else np.array(_listed(values, name), object)
    if given.ndim != 1:
        raise ValueError(f"{name} must be a list, not an array of {given.ndim} dimensions")
    if not _are_numbers(given):
        raise TypeError(f"{name} must be whole numbers from 0 to 2^{bits} - 1")
    for worst in (int(given.min()), int(given.max())) if len(given) else ():
        if worst < 0 or worst >> bits:
            raise ValueError(f"{name}: {worst} does not lie from 0 to 2^{bits} - 1")
    return given.astype(np.uint64)


def encoded(values: Any, name: str) -> list[bytes]:
    """Return texts as bytes."""
    given = _listed(values, name)
    wrong = [type(value).__name__ for value in given if not isinstance(value, str | bytes)]
    if wrong:
        raise TypeError(f"{name} must be texts, or all of them whole numbers, not {wrong[0]}")
    return [value.encode() if isinstance(value, str) else bytes(value) for value in given]


def _listed(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list, not {type(values).__name__}")
    return list(values.tolist() if isinstance(values, np.ndarray) else values)


def _are_numbers(values: Any) -> bool:
    """Say whether all are whole numbers; Python's own may be too many bits long for an array of numbers."""
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return values.dtype.kind in "iu"
    whole = (int, np.integer)
    return all(isinstance(value, whole) and not isinstance(value, bool) for value in values)
