"""Bernoulli variables of probability exp(-x), driven through every choice that they can make."""

from fractions import Fraction

import mpmath
import pytest

from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.noise.sampler import bernoulli_exp
from tests.scripted_bytes import Script


def word(value):
    return value.to_bytes(8)


def threshold(gap, bits):
    with mpmath.workdps(200):
        return int(mpmath.floor(mpmath.exp(-mpmath.mpf(gap.numerator) / gap.denominator) * 2**bits))


@pytest.mark.parametrize("gap", [Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40)])
def test_a_bernoulli_draw_is_decided_at_the_exact_boundary(gap):
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


def test_a_clear_draw_takes_eight_bytes_and_a_tie_takes_more():
    gap = Fraction(1, 3)
    for value in (0, 2**64 - 1):
        script = Script(word(value), word(0) * 4)
        assert bernoulli_exp(script, gap) == (value == 0)
        assert script.left == 32
    script = Script(word(threshold(gap, 64)), word(0) * 4)
    bernoulli_exp(script, gap)
    assert script.left == 24


def test_known_bits_are_the_leading_ones():
    gap = Fraction(1, 3)
    edge = threshold(gap, 63)
    assert bernoulli_exp(Script(), gap, prefix=edge - 2, bits=63)
    assert not bernoulli_exp(Script(), gap, prefix=edge + 2, bits=63)
    low = threshold(gap, 127) % 2**64
    assert bernoulli_exp(Script(word(low - 2)), gap, prefix=edge, bits=63)
    assert not bernoulli_exp(Script(word(low + 2)), gap, prefix=edge, bits=63)


def test_a_gap_of_zero_always_succeeds_and_a_huge_one_never():
    assert bernoulli_exp(Script(word(2**64 - 1), word(0)), Fraction(0))
    assert not bernoulli_exp(Script(word(1), word(5)), Fraction(10**6))
    assert all(bernoulli_exp(thread_keystream(), Fraction(0)) for _ in range(100))


@pytest.mark.long
def test_real_bernoulli_draws_have_the_exponential_probability():
    tosses, gap = 20_000, Fraction(1, 2)
    heads = sum(bernoulli_exp(thread_keystream(), gap) for _ in range(tosses))
    chance = float(mpmath.exp(-0.5))
    # Hoeffding: farther than this with a probability below 1e-10
    assert abs(heads - tosses * chance) < (tosses * 11.9) ** 0.5
