"""Bernoulli variables and uniform integers, driven through every choice that they can make."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.selection import uniform_integer
from discreet.local import random_variables
from discreet.local.random_variables import bernoulli_bits, bernoulli_words, uniform_integers
from tests.scripted_bytes import EndOfScriptError, Script

CHANCES = [
    Fraction(1, 3),
    Fraction(1, 2),
    Fraction(3, 8),
    Fraction(269, 1000),
    Fraction(1, 2**40 + 1),
    1 - Fraction(1, 10**9),
]
DIGITS = 12  # of each bit's own number, all of which are tried


class EveryNumber:
    """Gives bit i of the words the binary digits of i, then the same digit for ever."""

    def __init__(self, wanted, last):
        self.wanted, self.last, self.calls = wanted, last, 0
        self.numbers = np.arange(1 << DIGITS)
        self.open = np.ones(len(self.numbers), bool)

    def bytes(self, count):
        self.calls += 1
        if self.calls <= DIGITS:
            digits = self.numbers >> (DIGITS - self.calls) & 1
        else:
            digits = np.full(len(self.numbers), self.last)
        packed = np.packbits(digits.astype(bool), bitorder="little").view(np.uint64)
        asked = self._asked() if self.calls > random_variables._DENSE_DIGITS else np.ones(len(packed), bool)
        assert count == 8 * np.count_nonzero(asked)  # only words with an open bit are looked at any more
        digit = int(self.wanted * 2**self.calls) & 1
        self.open &= digits == digit
        return bytearray(packed[asked].tobytes())

    def _asked(self):
        return self.open.reshape(-1, 64).any(axis=1)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("wanted", CHANCES)
def test_bernoulli_draws_have_their_probability_when_every_word_is_enumerated(wanted, last):
    source = EveryNumber(wanted, last)
    shown = np.unpackbits(bernoulli_words(source, (1 << DIGITS) // 64, wanted).view(np.uint8), bitorder="little")
    for number, bit in enumerate(shown):
        low, high = Fraction(number, 1 << DIGITS), Fraction(number + 1, 1 << DIGITS)
        if high <= wanted or low >= wanted:
            assert bit == (high <= wanted)
        else:
            assert bit == (last == 0)  # the digits that follow decide: as low, or as high as can be


def test_a_dyadic_probability_needs_no_more_bits_than_it_has():
    source = EveryNumber(Fraction(3, 8), 0)
    bernoulli_words(source, (1 << DIGITS) // 64, Fraction(3, 8))
    assert source.calls == 3


@pytest.mark.parametrize("wanted", CHANCES)
def test_real_bernoulli_draws_have_their_probability(wanted):
    count = 1 << 20
    heads = int(np.bitwise_count(bernoulli_words(thread_keystream(), count // 64, wanted)).sum())
    assert stats.binomtest(heads, count, float(wanted)).pvalue > 1e-13
    assert heads == 0 or stats.binomtest(heads, count, float(wanted) * 0.96).pvalue < 1e-13 or wanted < 0.01


def test_bernoulli_draws_from_one_word_are_independent():
    # Neighbouring bits agree as often as independent ones would.
    shown = bernoulli_bits(thread_keystream(), 1 << 20, Fraction(1, 3))
    both = int(np.count_nonzero(shown[:-1] & shown[1:]))
    assert abs(both - (1 << 20) / 9) < 7 * (1 << 10) * 0.42


def test_the_number_of_bernoulli_draws_is_as_requested():
    for count in (0, 1, 63, 64, 65, 1000):
        drawn = bernoulli_bits(thread_keystream(), count, Fraction(1, 3))
        assert (drawn.shape, drawn.dtype) == ((count,), bool)


class Words:
    """A source that says these words, and then one word for ever."""

    def __init__(self, words, then):
        self._words, self._then = words, then

    def bytes(self, count):
        if self._words is None:
            return bytearray(np.full(count // self._then.itemsize, self._then).tobytes())
        out, self._words = self._words, None
        assert len(out) * out.itemsize == count
        return bytearray(out.tobytes())


@pytest.mark.parametrize("faces", [1, 2, 3, 5, 6, 7, 10, 64, 100, 127, 128, 200, 255, 256])
def test_uniform_integers_are_uniform_when_every_word_is_enumerated(faces):
    highest = np.uint16(65535)  # always taken, and always the last face
    shown = Counter(uniform_integers(Words(np.arange(65536, dtype=np.uint16), highest), 65536, faces).tolist())
    again = 65536 % faces
    shown[faces - 1] -= again
    assert shown == dict.fromkeys(range(faces), 65536 // faces)


@pytest.mark.parametrize("faces", [257, 1000, 65_535, 10**6 + 3, (1 << 31) - 1, (1 << 32) - 5, 1 << 32])
def test_uniform_integers_of_a_large_range_are_uniform(faces):
    rng = np.random.default_rng(faces)
    uneven = (1 << 32) % faces
    highest = np.uint32((1 << 32) - 1)
    for face in {0, faces - 1, *rng.integers(0, faces, 20).tolist()}:
        first, beyond = -((-face << 32) // faces), -(((-face - 1) << 32) // faces)
        words = np.array([first, *range(max(first + 1, beyond - 2), beyond)], np.uint32)
        refused = first * faces % (1 << 32) < uneven
        shown = uniform_integers(Words(words, highest), len(words), faces).tolist()
        assert shown[1:] == [face] * (len(words) - 1)
        assert shown[0] == (faces - 1 if refused else face)
        assert beyond - first - refused == (1 << 32) // faces  # as many words as every other face has


@pytest.mark.parametrize("faces", [0, -1, (1 << 32) + 1])
def test_an_empty_or_too_large_range_is_refused(faces):
    with pytest.raises(ValueError, match="bound"):
        uniform_integers(thread_keystream(), 1, faces)


@pytest.mark.parametrize("count", [*range(1, 256), 256, 257, 300, 511, 512, 1000, 40_000, 65_535])
def test_integers_below_a_count_are_uniform(count):
    size = -(-count.bit_length() // 8)
    seen = Counter()
    for value in range(256**size):
        try:
            seen[uniform_integer(Script(value.to_bytes(size)), count)] += 1
        except EndOfScriptError:
            seen["again"] += 1
    again = seen.pop("again", 0)
    assert set(seen) == set(range(count))
    assert len(set(seen.values())) == 1
    assert again < 256**size  # and what is drawn again is less than all
    assert again <= 256**size // 2


def test_a_rejected_integer_is_redrawn_from_fresh_bits():
    script = Script(bytes([255, 254, 0b01000000, 77]))
    assert uniform_integer(script, 3) == 1  # two bits of each byte count: 11 and 11 are refused, 01 is taken
    assert script.left == 1


def test_uniform_integers_below_large_counts_stay_below():
    drawn = [uniform_integer(thread_keystream(), 10**30) for _ in range(100)]
    assert all(0 <= x < 10**30 for x in drawn)
    assert len(set(drawn)) == 100


def test_integers_below_a_large_count_are_uniform_in_every_bit():
    for count in (256, 1000, 65536, 2**64 - 1, 10**30):
        size = -(-count.bit_length() // 8)
        shift = 8 * size - count.bit_length()
        for value in (0, 1, count // 2, count - 1):
            for junk in (0, (1 << shift) - 1):
                assert uniform_integer(Script((value << shift | junk).to_bytes(size)), count) == value
        for value in range(count, min(count + 3, 1 << count.bit_length())):
            with pytest.raises(EndOfScriptError):
                uniform_integer(Script((value << shift).to_bytes(size)), count)
