"""Dice and coins, driven through every choice that they can make."""

from collections import Counter
from fractions import Fraction

import mpmath
import pytest

from discreet.kernel.noise.bernoulli import bernoulli_exp, uniform_integer
from discreet.kernel.noise.keystream import thread_keystream


class EndOfScriptError(Exception):
    """The coin asked for more than was written down."""


class Script:
    """A source that says what it was told to say."""

    def __init__(self, *parts):
        self._left = b"".join(parts)

    def bytes(self, count):
        if len(self._left) < count:
            raise EndOfScriptError
        out, self._left = self._left[:count], self._left[count:]
        return bytearray(out)

    @property
    def left(self):
        return len(self._left)


def word(value):
    return value.to_bytes(8)


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


def test_a_refused_number_is_drawn_anew_from_fresh_bits():
    script = Script(bytes([255, 254, 0b01000000, 77]))
    assert uniform_integer(script, 3) == 1  # two bits of each byte count: 11 and 11 are refused, 01 is taken
    assert script.left == 1


def test_large_counts_are_below_themselves():
    drawn = [uniform_integer(thread_keystream(), 10**30) for _ in range(100)]
    assert all(0 <= x < 10**30 for x in drawn)
    assert len(set(drawn)) == 100


def threshold(gap, bits):
    with mpmath.workdps(200):
        return int(mpmath.floor(mpmath.exp(-mpmath.mpf(gap.numerator) / gap.denominator) * 2**bits))


@pytest.mark.parametrize("gap", [Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40)])
def test_heads_are_decided_at_the_exact_boundary(gap):
    edge = threshold(gap, 64)
    for away in (1, 2, 5, min(edge, 1000)):
        for rest in (word(0), word(2**64 - 1)):
            assert bernoulli_exp(Script(word(edge - away), rest * 8), gap)
            assert not bernoulli_exp(Script(word(edge + away), rest * 8), gap)
    further = threshold(gap, 128)
    assert further >> 64 == edge
    low = further % 2**64
    for away in (1, 3, 10**6):
        for rest in (word(0), word(2**64 - 1)):
            assert bernoulli_exp(Script(word(edge), word(low - away), rest * 8), gap)
            assert not bernoulli_exp(Script(word(edge), word(low + away), rest * 8), gap)


def test_an_easy_toss_takes_eight_bytes_and_an_equal_one_takes_more():
    gap = Fraction(1, 3)
    for value in (0, 2**64 - 1):
        script = Script(word(value), word(0) * 4)
        assert bernoulli_exp(script, gap) == (value == 0)
        assert script.left == 32
    script = Script(word(threshold(gap, 64)), word(0) * 4)
    bernoulli_exp(script, gap)
    assert script.left == 24


def test_bits_that_are_known_already_are_the_first_ones():
    gap = Fraction(1, 3)
    edge = threshold(gap, 63)
    assert bernoulli_exp(Script(), gap, prefix=edge - 2, bits=63)
    assert not bernoulli_exp(Script(), gap, prefix=edge + 2, bits=63)
    low = threshold(gap, 127) % 2**64
    assert bernoulli_exp(Script(word(low - 2)), gap, prefix=edge, bits=63)
    assert not bernoulli_exp(Script(word(low + 2)), gap, prefix=edge, bits=63)


def test_a_gap_of_nothing_is_always_heads_and_a_huge_one_never():
    assert bernoulli_exp(Script(word(2**64 - 1), word(0)), Fraction(0))
    assert not bernoulli_exp(Script(word(1), word(5)), Fraction(10**6))
    assert all(bernoulli_exp(thread_keystream(), Fraction(0)) for _ in range(100))


@pytest.mark.long
def test_real_coins_come_up_as_often_as_they_should():
    tosses, gap = 20_000, Fraction(1, 2)
    heads = sum(bernoulli_exp(thread_keystream(), gap) for _ in range(tosses))
    chance = float(mpmath.exp(-0.5))
    # Hoeffding: farther than this with a probability below 1e-10
    assert abs(heads - tosses * chance) < (tosses * 11.9) ** 0.5
