"""Hashes and other codes for identifiers, and the dictionary attack that reverses them."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial

SALT = "c0ffee"  # of the easy fix: stored in the program, so anyone with the program knows it

Encoding = Callable[[str], str]


def salted_hash(number: str) -> str:
    """Return the hash of the easy fix: SHA-256 of a salt and the number.

    >>> len(salted_hash("5D12"))
    64
    """
    return hash_with("sha256", SALT + number)


def hash_with(name: str, number: str) -> str:
    """Return the hash of a number by the named algorithm of hashlib.

    >>> hash_with("md5", "5D12")[:8]
    '42995c2a'
    """
    return str(getattr(hashlib, name)(number.encode(), usedforsecurity=False).hexdigest())


def reversed_text(number: str) -> str:
    """Return the number reversed.

    >>> reversed_text("5D12")
    '21D5'
    """
    return number[::-1]


def base64_text(number: str) -> str:
    """Return the number in base64.

    >>> base64_text("5D12")
    'NUQxMg=='
    """
    return base64.b64encode(number.encode()).decode()


def hash_of_lower_case(name: str, number: str) -> str:
    """Return the hash of the number in lower case.

    >>> hash_of_lower_case("md5", "5D12") == hash_with("md5", "5d12")
    True
    """
    return hash_with(name, number.lower())


_HASH_NAMES = [name for name in sorted(hashlib.algorithms_guaranteed) if not name.startswith("shake")]
ENCODINGS: tuple[Encoding, ...] = (
    str,
    reversed_text,
    base64_text,
    *(partial(hash_with, name) for name in _HASH_NAMES),
    *(partial(hash_of_lower_case, name) for name in _HASH_NAMES),
    salted_hash,
)


def crack_codes(codes: Iterable[str], numbers: Sequence[str]) -> dict[str, str]:
    """Try all numbers with all encodings of matching length; return numbers by code, in normalised case.

    If several encodings match a code, the one that matches most codes wins, and among equals the first.

    >>> crack_codes([reversed_text("5D12"), "unknown"], ["5D12", "9Y99"])
    {'21D5': '5D12'}
    """
    released = {normalise_case(code) for code in codes}
    lengths = set(map(len, released))
    samples = {len(number): number for number in numbers}.values()
    candidate_encodings = [encode for encode in ENCODINGS if any(len(encode(sample)) in lengths for sample in samples)]
    matches = [_matches(released, numbers, encode) for encode in candidate_encodings]
    cracked: dict[str, str] = {}
    for index in sorted(range(len(matches)), key=lambda index: (len(matches[index]), -index)):
        cracked |= matches[index]
    return cracked


def normalise_case(code: str) -> str:
    """Return a lower-case code in upper case, because hashes are written either way.

    >>> normalise_case("42995c2a"), normalise_case("NUQxMg==")
    ('42995C2A', 'NUQxMg==')
    """
    return code.upper() if code.islower() else code


def _matches(released: set[str], numbers: Sequence[str], encoding: Encoding) -> dict[str, str]:
    return {code: number for number in numbers if (code := normalise_case(encoding(number))) in released}
