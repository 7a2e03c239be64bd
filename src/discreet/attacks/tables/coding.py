"""Codes in place of numbers, and the ways of making them that come to anybody's mind."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial

SALT = "c0ffee"  # of the easy fix: the program that made the codes has it, and so has whoever has the program

Way = Callable[[str], str]


def md5(number: str) -> str:
    """Return the code that the city released.

    >>> md5("5D12")[:8]
    '42995C2A'
    """
    return hashlib.md5(number.encode(), usedforsecurity=False).hexdigest().upper()


def salted(number: str) -> str:
    """Return the code of the easy fix: a longer hash, of a salt and the number.

    >>> len(salted("5D12"))
    64
    """
    return hashed("sha256", SALT + number)


def hashed(name: str, number: str) -> str:
    """Return the hash of this name, as Python's library has it.

    >>> hashed("md5", "5D12")[:8]
    '42995c2a'
    """
    return str(getattr(hashlib, name)(number.encode(), usedforsecurity=False).hexdigest())


def reversed_(number: str) -> str:
    """Return a number from its end.

    >>> reversed_("5D12")
    '21D5'
    """
    return number[::-1]


def in_base64(number: str) -> str:
    """Return a number as mails carry it.

    >>> in_base64("5D12")
    'NUQxMg=='
    """
    return base64.b64encode(number.encode()).decode()


def of_small_letters(name: str, number: str) -> str:
    """Return the hash of a number that was written in small letters.

    >>> of_small_letters("md5", "5D12") == hashed("md5", "5d12")
    True
    """
    return hashed(name, number.lower())


_HASHES = [name for name in sorted(hashlib.algorithms_guaranteed) if not name.startswith("shake")]
WAYS: tuple[Way, ...] = (
    str,
    reversed_,
    in_base64,
    *(partial(hashed, name) for name in _HASHES),
    *(partial(of_small_letters, name) for name in _HASHES),
    salted,
)


def opened(codes: Iterable[str], numbers: Sequence[str]) -> dict[str, str]:
    """Try all numbers, coded in all ways that make codes as long; return the codes met, as `folded` writes them.

    If a code is met in several ways, that way is believed which opens the most codes, and of equal ones the first.

    >>> opened([md5("5D12").lower(), "unknown"], ["5D12", "9Y99"]) == {md5("5D12"): "5D12"}
    True
    """
    released = {folded(code) for code in codes}
    lengths = set(map(len, released))
    samples = {len(number): number for number in numbers}.values()
    likely = [way for way in WAYS if any(len(way(sample)) in lengths for sample in samples)]
    met = [_met(released, numbers, way) for way in likely]
    found: dict[str, str] = {}
    for place in sorted(range(len(met)), key=lambda place: (len(met[place]), -place)):
        found |= met[place]
    return found


def folded(code: str) -> str:
    """Return a code in capital letters if it has small ones only: hashes are written either way.

    >>> folded("42995c2a"), folded("NUQxMg==")
    ('42995C2A', 'NUQxMg==')
    """
    return code.upper() if code.islower() else code


def _met(released: set[str], numbers: Sequence[str], way: Way) -> dict[str, str]:
    return {code: number for number in numbers if (code := folded(way(number))) in released}
