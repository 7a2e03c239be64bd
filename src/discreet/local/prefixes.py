"""Values as bit strings, and the hashes of their prefixes."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.kernel.numbers import as_integer
from discreet.local.value_hashes import as_bytes, as_uint64, mix64

MAX_BITS = 4096
ROOT_HASH = np.uint64(0x9E3779B97F4A7C15)  # of the empty prefix
_ALL_BYTES = bytes(range(1, 256))
_WORD_BITS = 64


@dataclass(frozen=True)
class IntegerDomain:
    """Integers from 0 to 2^bits - 1.

    >>> IntegerDomain(64).decode(IntegerDomain(64).encode([7, 2**63], "values"))
    [7, 9223372036854775808]
    """

    bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", as_integer(self.bits, "bits", 1))
        if self.bits > _WORD_BITS:
            raise ValueError(f"bits must be at most {_WORD_BITS}, not {self.bits}")

    def encode(self, values: Any, name: str) -> np.ndarray:
        """Return a row of words for each integer."""
        return (as_uint64(values, name, self.bits) << np.uint64(_WORD_BITS - self.bits))[:, None]

    def decode(self, words: np.ndarray) -> list[int]:
        """Return the integer of each row."""
        return [int(word) >> (_WORD_BITS - self.bits) for word in words[:, 0]]


@dataclass(frozen=True)
class StringDomain:
    """Strings of at most `length` characters of an alphabet; without an alphabet, of at most `length` UTF-8 bytes.

    A small alphabet gives shorter bit strings, whose heavy hitters are easier to find.

    >>> names = StringDomain(12, alphabet="abcdefghijklmnopqrstuvwxyz.-")
    >>> names.bits, names.decode(names.encode(["example.org"], "values"))
    (60, ['example.org'])
    """

    length: int
    alphabet: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", as_integer(self.length, "length", 1))
        if self.alphabet is not None:
            if not isinstance(self.alphabet, str) or not self.alphabet.isascii() or "\0" in self.alphabet:
                raise ValueError("alphabet must be a string of ASCII characters")
            if not self.alphabet or len(set(self.alphabet)) < len(self.alphabet):
                raise ValueError("alphabet must not be empty, and must contain each character once")
        if self.bits > MAX_BITS:
            raise ValueError(f"length: {self.length} characters take {self.bits} bits, more than {MAX_BITS}")

    @property
    def letters(self) -> bytes:
        """The characters with the codes 1, 2, …; 0 is padding after the end."""
        return _ALL_BYTES if self.alphabet is None else self.alphabet.encode()

    @property
    def bits_per_letter(self) -> int:
        """The number of bits per character."""
        return len(self.letters).bit_length()

    @property
    def bits(self) -> int:
        """The length of a bit string."""
        return self.length * self.bits_per_letter

    def encode(self, values: Any, name: str) -> np.ndarray:
        """Return a row of words for each string; ValueError if one is too long or not in the alphabet."""
        texts = as_bytes(values, name)
        longest = max(map(len, texts), default=0)
        if longest > self.length:
            hint = "Truncate it, or use a larger length."
            raise ValueError(f"{name}: a string has {longest} bytes, more than {self.length}. {hint}")
        code_of_letter = np.zeros(256, np.uint64)
        code_of_letter[list(self.letters)] = np.arange(1, len(self.letters) + 1)
        padded = np.frombuffer(b"".join(text.ljust(self.length, b"\0") for text in texts), np.uint8)
        if np.count_nonzero(code_of_letter[padded]) < sum(map(len, texts)):
            raise ValueError(f"{name}: a string has a character that is not in the alphabet")
        codes = code_of_letter[padded].reshape(len(texts), self.length)
        words = zero_words(len(texts), self.bits)
        for position in range(self.length):
            write_bits(
                words, position * self.bits_per_letter, (position + 1) * self.bits_per_letter, codes[:, position]
            )
        return words

    def decode(self, words: np.ndarray) -> list[str | None]:
        """Return the string of each row; None if it encodes none."""
        spans = [
            (position * self.bits_per_letter, (position + 1) * self.bits_per_letter) for position in range(self.length)
        ]
        codes = np.stack([read_bits(words, *span) for span in spans], axis=1)
        return [self._decode_text(row) for row in codes.tolist()]

    def _decode_text(self, codes: list[int]) -> str | None:
        end = codes.index(0) if 0 in codes else len(codes)
        if any(codes[end:]) or max(codes) > len(self.letters):
            return None
        try:
            return bytes(self.letters[code - 1] for code in codes[:end]).decode()
        except UnicodeDecodeError:
            return None


@dataclass(frozen=True)
class Prefixes:
    """Values, and the lengths of the prefixes that are hashed; the last is the whole value.

    >>> Prefixes(IntegerDomain(8), (4, 8)).hash_values([3, 5, 200], "values").shape
    (3, 2)
    """

    encoding: IntegerDomain | StringDomain
    prefix_lengths: tuple[int, ...]

    @property
    def bit_ranges(self) -> list[tuple[int, int]]:
        """The start and end of the bits that each level adds."""
        return list(pairwise((0, *self.prefix_lengths)))

    def hash_values(self, values: Any, name: str) -> np.ndarray:
        """Return the hashes of each value's prefixes."""
        words = self.encoding.encode(values, name)
        hashes = np.empty((len(words), len(self.prefix_lengths)), np.uint64)
        prefix_hashes = np.full(len(words), ROOT_HASH)
        for level, span in enumerate(self.bit_ranges):
            prefix_hashes = hashes[:, level] = extend_hashes(prefix_hashes, read_bits(words, *span))
        return hashes

    def __str__(self) -> str:
        return f"{self.encoding} cut at {' '.join(map(str, self.prefix_lengths))}"


def extend_hashes(hashes: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """Return the hashes of prefixes extended by some bits."""
    return mix64(hashes ^ bits)


def zero_words(count: int, bits: int) -> np.ndarray:
    """Return `count` rows of `bits` zero bits."""
    return np.zeros((count, -(-bits // _WORD_BITS)), np.uint64)


def write_bits(words: np.ndarray, start: int, stop: int, bits: np.ndarray) -> None:
    """Write at most 64 bits from start to stop, where all bits are still zero."""
    word, end = start // _WORD_BITS, stop - start // _WORD_BITS * _WORD_BITS
    if end <= _WORD_BITS:
        words[:, word] |= bits << np.uint64(_WORD_BITS - end)
    else:
        words[:, word] |= bits >> np.uint64(end - _WORD_BITS)
        words[:, word + 1] |= bits << np.uint64(2 * _WORD_BITS - end)


def read_bits(words: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return the bits from start to stop, at most 63."""
    word, end = start // _WORD_BITS, stop - start // _WORD_BITS * _WORD_BITS
    mask = np.uint64((1 << (stop - start)) - 1)
    if end <= _WORD_BITS:
        low: np.ndarray = words[:, word] >> np.uint64(_WORD_BITS - end)
        return low & mask
    low = words[:, word + 1] >> np.uint64(2 * _WORD_BITS - end)
    return (low | words[:, word] << np.uint64(end - _WORD_BITS)) & mask
