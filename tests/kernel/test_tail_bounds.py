"""The kernel bounds tails from above, closely."""

from fractions import Fraction

import mpmath
import pytest

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.privacy.tail_enclosures import tail_bounds

SCALES = ["1/1000", "1/3", "1", "7.3", "63.999", "64", "65", "1000/3", "1e4", "1e12"]


def ks_of(scale):
    spread = [1, 2, 3, 5, *(round(scale * n / 4) for n in range(1, 60, 2)), round(30 * scale) + 3]
    return sorted({sign * k + shift for k in spread for sign in (-1, 1) for shift in (0, 1)})


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_upper_bounds_of_tails_are_above_the_sum_and_close(kind, scale):
    """The enclosures of the privacy package are computed in another way, and tested against sums."""
    noise, bits = kind(scale), 256
    for k in ks_of(noise.scale):
        low, high = tail_bounds(noise, k, bits)
        bound = noise.tail_up(k, bits)
        assert low <= bound <= 1 << bits
        assert bound >= 1  # nothing is impossible
        if k <= 0:
            assert bound == 1 << bits
        elif kind is Laplace or noise.scale < 64:
            assert bound <= high + 2
        elif k - Fraction(1, 2) < noise.scale:
            assert bound == 1 << (bits - 1)
        else:
            x = (k - Fraction(1, 2)) / noise.scale
            assert bound <= high * (1 + (x**2 + 2) / (24 * noise.scale**2) + Fraction(1, 10**6)) + 2


def exact_tail(kind, scale, k):
    """Return P[X >= k] for k >= 1, summed from the definition."""
    if kind is Laplace:
        q = mpmath.exp(-1 / scale)
        return q**k / (1 + q)
    weights = [mpmath.exp(-((j / scale) ** 2) / 2) for j in range(int(30 * scale) + 30)]
    return mpmath.fsum(weights[k:]) / (2 * mpmath.fsum(weights) - 1)


@pytest.mark.parametrize("bits", [8, 64, 100])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_bounds_of_short_tails_are_rounded_up_from_the_probability(kind, bits):
    with mpmath.workprec(400):
        for numerator, denominator in ((1, 3), (1, 1), (7, 2), (9, 1)):
            for k in range(1, 12):
                tail = mpmath.ldexp(exact_tail(kind, mpmath.mpf(numerator) / denominator, k), bits)
                bound = kind(Fraction(numerator, denominator)).tail_up(k, bits)
                assert tail <= bound <= tail + (3 if kind is Laplace else 1)  # an exact floor, plus one
