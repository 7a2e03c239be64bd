"""64-bit hashes of strings and integers, and the public hash functions of a sketch."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def mix64(numbers: np.ndarray) -> np.ndarray:
    """Apply the finaliser of SplitMix64, a bijection that mixes the bits of 64-bit numbers."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _MULTIPLIERS[0]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _MULTIPLIERS[1]
    numbers ^= numbers >> np.uint64(31)
    return numbers


def hash_to_position(hashes: np.ndarray, row: int, bits: int) -> np.ndarray:
    """Return the position below 2^bits of each hash, by the public function of a row.

    It is the highest bits of (first·low + second·high + shift) mod 2^64. Over the choice of the three constants, two
    hashes collide with probability 2^-bits (Dietzfelbinger 1996). The constants are derived from the row's number.

    >>> hash_to_position(np.array([1, 2, 3], np.uint64), row=0, bits=8)
    array([186, 233,  25])
    """
    digest = hashlib.blake2b(f"discreet row {row}".encode(), digest_size=24).digest()
    first, second, shift = np.frombuffer(digest, "<u8").astype(np.uint64)
    low, high = hashes & np.uint64(0xFFFFFFFF), hashes >> np.uint64(32)
    positions: np.ndarray = (first * low + second * high + shift) >> np.uint64(64 - bits)
    return positions.view(np.int64)


@dataclass(frozen=True)
class OpenDomain:
    """An open domain: integers from 0 to 2^64 - 1, or strings.

    >>> OpenDomain().hash_values(["a", "b", "a"], "values").shape
    (3, 1)
    """

    def hash_values(self, values: Any, name: str) -> np.ndarray:
        """Return the hash of each value, in one column; different integers have different hashes."""
        given = values if isinstance(values, np.ndarray) else _as_list(values, name)
        if _are_integers(given):
            return mix64(as_uint64(given, name, 64))[:, None]
        texts = as_bytes(given, name)
        digest_of_text = {text: hashlib.blake2b(text, digest_size=8).digest() for text in set(texts)}
        return np.frombuffer(b"".join(digest_of_text[text] for text in texts), "<u8").astype(np.uint64)[:, None]

    def __str__(self) -> str:
        return "anything"


def as_uint64(values: Any, name: str, bits: int) -> np.ndarray:
    """Return integers below 2^bits as uint64."""
    given = values if isinstance(values, np.ndarray) else np.array(_as_list(values, name), object)
    if given.ndim != 1:
        raise ValueError(f"{name} must be a list, not an array of {given.ndim} dimensions")
    if not _are_integers(given):
        raise TypeError(f"{name} must be integers from 0 to 2^{bits} - 1")
    for worst in (int(given.min()), int(given.max())) if len(given) else ():
        if worst < 0 or worst >> bits:
            raise ValueError(f"{name}: {worst} is outside the range 0 to 2^{bits} - 1")
    return given.astype(np.uint64)


def as_bytes(values: Any, name: str) -> list[bytes]:
    """Return strings as bytes."""
    given = _as_list(values, name)
    wrong = [type(value).__name__ for value in given if not isinstance(value, str | bytes)]
    if wrong:
        raise TypeError(f"{name} must be all strings or all integers, not {wrong[0]}")
    return [value.encode() if isinstance(value, str) else bytes(value) for value in given]


def _as_list(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list, not {type(values).__name__}")
    return list(values.tolist() if isinstance(values, np.ndarray) else values)


def _are_integers(values: Any) -> bool:
    """Return whether all values are integers; Python integers may be too large for a numeric array."""
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return values.dtype.kind in "iu"
    integer_types = (int, np.integer)
    return all(isinstance(value, integer_types) and not isinstance(value, bool) for value in values)
