"""The tails of the normal law and of our noise lie where their enclosures say."""

import random
from fractions import Fraction

import mpmath
import pytest

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.privacy.tail_enclosures import normal_tail_bounds, tail_bounds

RANDOM = random.Random(21)


def real(x):
    return mpmath.mpf(x.numerator) / x.denominator


@pytest.mark.long(only=["300"])
@pytest.mark.parametrize("bits", [1, 16, 64, 160, 300])
def test_normal_tails_enclose_the_value(bits):
    xs = [Fraction(n, 8) for n in range(-160, 161, 3)] + [Fraction(0), Fraction(1, 10**30), Fraction(10**30)]
    xs += [Fraction(RANDOM.randrange(-(10**9), 10**9), 10**8) for _ in range(100)]
    edge = Fraction(str(float((4 * bits + 64) ** 0.5)))  # beyond it the tail is not computed any more
    xs += [edge - Fraction(1, 10**6), edge, edge + Fraction(1, 10**6), -edge, 2 * edge, -2 * edge]
    widest = 0
    for x in xs:
        low, high = normal_tail_bounds(x, bits)
        with mpmath.workprec(bits + 400):
            value = mpmath.ldexp(mpmath.erfc(real(x) / mpmath.sqrt(2)) / 2, bits)
            assert low <= value <= high, x
        assert 0 <= low <= high <= 1 << bits
        widest = max(widest, high - low)
    assert widest <= 2


class Sums:
    """P[X >= k] of the discrete Gaussian law, by adding up."""

    def __init__(self, sigma, bits):
        self.precision = bits + 200
        with mpmath.workprec(self.precision):
            variance = 2 * real(sigma) ** 2
            weights, k = [], 0
            while not weights or weights[-1] > mpmath.ldexp(1, -bits - 100):
                weights.append(mpmath.exp(-mpmath.mpf(k * k) / variance))
                k += 1
            total, self.tails = mpmath.mpf(0), []
            for weight in reversed(weights):
                total += weight
                self.tails.append(total)
            self.tails.reverse()
            self.all = 2 * total - 1

    def __getitem__(self, k):
        with mpmath.workprec(self.precision):
            if k <= 0:
                return 1 - self[1 - k]
            return self.tails[k] / self.all if k < len(self.tails) else mpmath.mpf(0)


def ks_of(sigma):
    spread = [0, 1, 2, 3, 5, *(round(sigma * n / 4) for n in range(1, 60, 2)), round(30 * sigma) + 3]
    return sorted({sign * k + shift for k in spread for sign in (-1, 1) for shift in (0, 1)})


@pytest.mark.long(only=["160-1000", "64-1000"])
@pytest.mark.parametrize("sigma", ["1/1000", "1/3", "1", "7.3", "63.999", "64", "65", "100", "1000/3", "1000"], ids=str)
@pytest.mark.parametrize("bits", [64, 160])
def test_tails_of_the_discrete_gaussian_enclose_the_sum(sigma, bits):
    sigma = Fraction(sigma)
    truth = Sums(sigma, bits)
    # As wide as the remainder of the formula, and what seven digits of 1/sqrt(2·pi) leave open.
    slack = (1 << bits) * (1 / (31 * sigma**4) + Fraction(1, 10**8) / sigma**2) + 8 if sigma >= 64 else 8
    for k in ks_of(sigma):
        low, high = tail_bounds(Gaussian(sigma), k, bits)
        with mpmath.workprec(bits + 200):
            value = mpmath.ldexp(truth[k], bits)
            assert low <= value <= high, k
        assert 0 <= low <= high <= 1 << bits
        assert high - low <= slack, k
        # Far out it is the ratio of the bounds that counts.
        if sigma >= 64 and 2 * sigma < k < 6 * sigma:
            assert high <= low * (1 + 8 * Fraction(k) / sigma**2)


@pytest.mark.parametrize("sigma", [10**4, 10**6, 10**12])
def test_tails_of_a_wide_gaussian_enclose_the_formula_of_euler_and_maclaurin(sigma):
    bits = 160
    for k in (1, sigma // 7, sigma, 3 * sigma + 1, 6 * sigma):
        low, high = tail_bounds(Gaussian(sigma), k, bits)
        with mpmath.workprec(500):
            s, y = mpmath.mpf(sigma), mpmath.mpf(k)
            f = mpmath.exp(-((y / s) ** 2) / 2)
            integral = mpmath.erfc(y / s / mpmath.sqrt(2)) / 2 * s * mpmath.sqrt(2 * mpmath.pi)
            z = y / s
            odd = [-z * f / s, -(z**3 - 3 * z) * f / s**3, -(z**5 - 10 * z**3 + 15 * z) * f / s**5]
            total = integral + f / 2 - odd[0] / 12 + odd[1] / 720 - odd[2] / 30240
            # What is left out is of the order of sigma^-7, far inside the enclosure's own width.
            value = mpmath.ldexp(total / (s * mpmath.sqrt(2 * mpmath.pi)), bits)
            assert low <= value <= high, k


@pytest.mark.parametrize("scale", ["1/1000", "1/3", "1", "10", "1000", "1e12", "1e25"])
@pytest.mark.parametrize("bits", [64, 160])
def test_tails_of_the_laplace_noise_enclose_the_sum(scale, bits):
    scale = Fraction(scale)
    for k in ks_of(scale):
        low, high = tail_bounds(Laplace(scale), k, bits)
        with mpmath.workprec(bits + 300):
            q = mpmath.exp(-1 / real(scale))
            value = q**k / (1 + q) if k > 0 else 1 - q ** (1 - k) / (1 + q)
            assert low <= mpmath.ldexp(value, bits) <= high, k
        assert 0 <= low <= high <= 1 << bits
        assert high - low <= 4


def test_the_formula_of_the_laplace_tail_is_the_sum_of_its_probabilities():
    with mpmath.workprec(200):
        q = mpmath.exp(mpmath.mpf(-1) / 3)
        pmf = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-600, 601)]
        assert abs(sum(pmf) - 1) < 1e-50
        for k in (-5, 0, 1, 7):
            low, high = tail_bounds(Laplace(3), k, 100)
            assert low <= mpmath.ldexp(sum(pmf[600 + k :]), 100) <= high


def test_opposite_tails_sum_to_one():
    for mechanism in (Laplace("7/3"), Gaussian("7/3"), Gaussian(500)):
        for k in (-1000, -3, 0, 1, 2, 12, 700):
            low, high = tail_bounds(mechanism, k, 80)
            other_low, other_high = tail_bounds(mechanism, 1 - k, 80)
            assert low + other_low <= 1 << 80 <= high + other_high
