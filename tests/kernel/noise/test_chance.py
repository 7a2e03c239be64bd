"""Coins and dice by the million: driven through every choice that they can make."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.kernel.noise import bernoulli
from discreet.kernel.noise.bernoulli import bernoulli_bits, bernoulli_words, uniform_integers
from discreet.kernel.noise.keystream import thread_keystream

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
        asked = self._asked() if self.calls > bernoulli._DENSE_DIGITS else np.ones(len(packed), bool)
        assert count == 8 * np.count_nonzero(asked)  # only words with an open bit are looked at any more
        digit = int(self.wanted * 2**self.calls) & 1
        self.open &= digits == digit
        return bytearray(packed[asked].tobytes())

    def _asked(self):
        return self.open.reshape(-1, 64).any(axis=1)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("wanted", CHANCES)
def test_coins_show_their_chance_when_every_word_is_tried(wanted, last):
    source = EveryNumber(wanted, last)
    shown = np.unpackbits(bernoulli_words(source, (1 << DIGITS) // 64, wanted).view(np.uint8), bitorder="little")
    for number, bit in enumerate(shown):
        low, high = Fraction(number, 1 << DIGITS), Fraction(number + 1, 1 << DIGITS)
        if high <= wanted or low >= wanted:
            assert bit == (high <= wanted)
        else:
            assert bit == (last == 0)  # the digits that follow decide: as low, or as high as can be


def test_coins_of_a_dyadic_chance_need_no_more_digits_than_it_has():
    source = EveryNumber(Fraction(3, 8), 0)
    bernoulli_words(source, (1 << DIGITS) // 64, Fraction(3, 8))
    assert source.calls == 3


@pytest.mark.parametrize("wanted", CHANCES)
def test_real_coins_fall_as_often_as_they_should(wanted):
    count = 1 << 20
    heads = int(np.bitwise_count(bernoulli_words(thread_keystream(), count // 64, wanted)).sum())
    assert stats.binomtest(heads, count, float(wanted)).pvalue > 1e-13
    assert heads == 0 or stats.binomtest(heads, count, float(wanted) * 0.96).pvalue < 1e-13 or wanted < 0.01


def test_coins_of_one_word_are_independent():
    # Neighbouring bits agree as often as independent ones would.
    shown = bernoulli_bits(thread_keystream(), 1 << 20, Fraction(1, 3))
    both = int(np.count_nonzero(shown[:-1] & shown[1:]))
    assert abs(both - (1 << 20) / 9) < 7 * (1 << 10) * 0.42


def test_tosses_are_as_many_as_were_asked_for():
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
def test_dice_are_fair_when_every_word_is_tried(faces):
    highest = np.uint16(65535)  # always taken, and always the last face
    shown = Counter(uniform_integers(Words(np.arange(65536, dtype=np.uint16), highest), 65536, faces).tolist())
    again = 65536 % faces
    shown[faces - 1] -= again
    assert shown == dict.fromkeys(range(faces), 65536 // faces)


@pytest.mark.parametrize("faces", [257, 1000, 65_535, 10**6 + 3, (1 << 31) - 1, (1 << 32) - 5, 1 << 32])
def test_dice_with_many_faces_are_fair(faces):
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
def test_dice_without_faces_or_with_too_many_are_refused(faces):
    with pytest.raises(ValueError, match="bound"):
        uniform_integers(thread_keystream(), 1, faces)
