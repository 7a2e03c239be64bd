"""Values as rows of bits, of which prefixes are known by their marks."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from discreet.kernel.exact import whole
from discreet.local.marks import encoded, mixed, whole_numbers

LONGEST = 4096  # bits
ROOT = np.uint64(0x9E3779B97F4A7C15)  # the mark of the empty prefix
_ALL = bytes(range(1, 256))
_WORD = 64


class Written(Protocol):
    """How values are written as rows of bits: in words of 64, the first bit the highest of the first word."""

    @property
    def bits(self) -> int:
        """How long each is."""

    def words(self, values: Any, name: str) -> np.ndarray:
        """Write values, a row for each."""

    def values(self, words: np.ndarray) -> list[Any]:
        """Read values; None for a row that is none."""


@dataclass(frozen=True)
class Numbers:
    """Whole numbers from 0 to 2^bits - 1.

    >>> Numbers(64).values(Numbers(64).words([7, 2**63], "values"))
    [7, 9223372036854775808]
    """

    bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", whole(self.bits, "bits", 1))
        if self.bits > _WORD:
            raise ValueError(f"bits must be at most {_WORD}, not {self.bits}")

    def words(self, values: Any, name: str) -> np.ndarray:
        """Write numbers."""
        return (whole_numbers(values, name, self.bits) << np.uint64(_WORD - self.bits))[:, None]

    def values(self, words: np.ndarray) -> list[int]:
        """Read numbers."""
        return [int(word) >> (_WORD - self.bits) for word in words[:, 0]]


@dataclass(frozen=True)
class Texts:
    """Texts of at most `length` letters of an alphabet; without one, of at most `length` bytes in UTF-8.

    A small alphabet makes rows of fewer bits, which are found more easily.

    >>> names = Texts(12, alphabet="abcdefghijklmnopqrstuvwxyz.-")
    >>> names.bits, names.values(names.words(["example.org"], "values"))
    (60, ['example.org'])
    """

    length: int
    alphabet: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", whole(self.length, "length", 1))
        if self.alphabet is not None:
            if not isinstance(self.alphabet, str) or not self.alphabet.isascii() or "\0" in self.alphabet:
                raise ValueError("alphabet must be a text of ASCII letters, digits or signs")
            if not self.alphabet or len(set(self.alphabet)) < len(self.alphabet):
                raise ValueError("alphabet must have letters, and each of them once")
        if self.bits > LONGEST:
            raise ValueError(f"length: {self.length} letters have {self.bits} bits; take at most {LONGEST}")

    @property
    def letters(self) -> bytes:
        """What stands for 1, 2, …; 0 is behind the end."""
        return _ALL if self.alphabet is None else self.alphabet.encode()

    @property
    def each(self) -> int:
        """How many bits a letter has."""
        return len(self.letters).bit_length()

    @property
    def bits(self) -> int:
        """How long each text is."""
        return self.length * self.each

    def words(self, values: Any, name: str) -> np.ndarray:
        """Write texts; ValueError for one that is too long, or has another letter."""
        texts = encoded(values, name)
        longest = max(map(len, texts), default=0)
        if longest > self.length:
            raise ValueError(f"{name}: a text has {longest} bytes, more than {self.length}; cut it, or declare more")
        known = np.zeros(256, np.uint64)
        known[list(self.letters)] = np.arange(1, len(self.letters) + 1)
        padded = np.frombuffer(b"".join(text.ljust(self.length, b"\0") for text in texts), np.uint8)
        if np.count_nonzero(known[padded]) < sum(map(len, texts)):
            raise ValueError(f"{name}: a text has a letter that is not in the alphabet")
        codes = known[padded].reshape(len(texts), self.length)
        words = blank(len(texts), self.bits)
        for place in range(self.length):
            put(words, place * self.each, (place + 1) * self.each, codes[:, place])
        return words

    def values(self, words: np.ndarray) -> list[str | None]:
        """Read texts."""
        spans = [(place * self.each, (place + 1) * self.each) for place in range(self.length)]
        codes = np.stack([taken(words, *span) for span in spans], axis=1)
        return [self._text(row) for row in codes.tolist()]

    def _text(self, codes: list[int]) -> str | None:
        end = codes.index(0) if 0 in codes else len(codes)
        if any(codes[end:]) or max(codes) > len(self.letters):
            return None
        try:
            return bytes(self.letters[code - 1] for code in codes[:end]).decode()
        except UnicodeDecodeError:
            return None


@dataclass(frozen=True)
class Prefixes:
    """Values, of which prefixes of several lengths are marked: up to each of the cuts, the last at the end.

    >>> Prefixes(Numbers(8), (4, 8)).marks([3, 5, 200], "values").shape
    (3, 2)
    """

    written: Written
    cuts: tuple[int, ...]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """From which bit to which each level adds."""
        return list(pairwise((0, *self.cuts)))

    def marks(self, values: Any, name: str) -> np.ndarray:
        """Return the marks of each value's prefixes."""
        words = self.written.words(values, name)
        marks = np.empty((len(words), len(self.cuts)), np.uint64)
        last = np.full(len(words), ROOT)
        for level, span in enumerate(self.spans):
            last = marks[:, level] = extended(last, taken(words, *span))
        return marks

    def __str__(self) -> str:
        return f"{self.written} cut at {' '.join(map(str, self.cuts))}"


def extended(marks: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """Return the marks of prefixes with some more bits."""
    return mixed(marks ^ bits)


def blank(count: int, bits: int) -> np.ndarray:
    """Return so many rows of zero bits."""
    return np.zeros((count, -(-bits // _WORD)), np.uint64)


def put(words: np.ndarray, start: int, stop: int, bits: np.ndarray) -> None:
    """Write bits, at most 64, where zeros stand from start to stop."""
    word, end = start // _WORD, stop - start // _WORD * _WORD
    if end <= _WORD:
        words[:, word] |= bits << np.uint64(_WORD - end)
    else:
        words[:, word] |= bits >> np.uint64(end - _WORD)
        words[:, word + 1] |= bits << np.uint64(2 * _WORD - end)


def taken(words: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return the bits, at most 63, from start to stop."""
    word, end = start // _WORD, stop - start // _WORD * _WORD
    mask = np.uint64((1 << (stop - start)) - 1)
    if end <= _WORD:
        low: np.ndarray = words[:, word] >> np.uint64(_WORD - end)
        return low & mask
    low = words[:, word + 1] >> np.uint64(2 * _WORD - end)
    return (low | words[:, word] << np.uint64(end - _WORD)) & mask
