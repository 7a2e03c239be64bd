"""Hashes and other codes for identifiers, and the dictionary attack that reverses them."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial

SALT = "c0ffee"  # of the easy fix: the program that made the codes has it, and so has whoever has the program

Encoding = Callable[[str], str]


def md5(number: str) -> str:
    """Return the code that the city released.

    >>> md5("5D12")[:8]
    '42995C2A'
    """
    return hashlib.md5(number.encode(), usedforsecurity=False).hexdigest().upper()


def salted_hash(number: str) -> str:
    """Return the code of the easy fix: a longer hash, of a salt and the number.

    >>> len(salted_hash("5D12"))
    64
    """
    return hash_with("sha256", SALT + number)


def hash_with(name: str, number: str) -> str:
    """Return the hash of this name, as Python's library has it.

    >>> hash_with("md5", "5D12")[:8]
    '42995c2a'
    """
    return str(getattr(hashlib, name)(number.encode(), usedforsecurity=False).hexdigest())


def reversed_text(number: str) -> str:
    """Return a number from its end.

    >>> reversed_text("5D12")
    '21D5'
    """
    return number[::-1]


def base64_text(number: str) -> str:
    """Return a number as mails carry it.

    >>> base64_text("5D12")
    'NUQxMg=='
    """
    return base64.b64encode(number.encode()).decode()


def hash_of_lower_case(name: str, number: str) -> str:
    """Return the hash of a number that was written in small letters.

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
    """Try all numbers, coded in all ways that make codes as long; return the codes met, as `normalise_case` writes them.

    If a code is met in several ways, that way is believed which opens the most codes, and of equal ones the first.

    >>> crack_codes([md5("5D12").lower(), "unknown"], ["5D12", "9Y99"]) == {md5("5D12"): "5D12"}
    True
    """
    released = {normalise_case(code) for code in codes}
    lengths = set(map(len, released))
    samples = {len(number): number for number in numbers}.values()
    candidate_encodings = [way for way in ENCODINGS if any(len(way(sample)) in lengths for sample in samples)]
    matches = [_matches(released, numbers, way) for way in candidate_encodings]
    cracked: dict[str, str] = {}
    for place in sorted(range(len(matches)), key=lambda place: (len(matches[place]), -place)):
        cracked |= matches[place]
    return cracked


def normalise_case(code: str) -> str:
    """Return a code in capital letters if it has small ones only: hashes are written either way.

    >>> normalise_case("42995c2a"), normalise_case("NUQxMg==")
    ('42995C2A', 'NUQxMg==')
    """
    return code.upper() if code.islower() else code


def _matches(released: set[str], numbers: Sequence[str], encoding: Encoding) -> dict[str, str]:
    return {code: number for number in numbers if (code := normalise_case(encoding(number))) in released}
