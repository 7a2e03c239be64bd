"""Tail probabilities of the discrete Laplace, the discrete Gaussian and the normal distribution, between integers."""

import math
from fractions import Fraction
from functools import lru_cache

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.noise.tail_bounds import summed_tail_floors
from discreet.kernel.numbers import exp_bounds, odd_series_bounds

_SUM_BELOW_SIGMA = 64  # up to this sigma a tail is summed term by term


@lru_cache(maxsize=16)
def _sqrt_two_pi_bounds(bits: int) -> tuple[int, int]:
    """Enclose sqrt(2·pi)·2^bits; pi by Machin's formula 16·arctan(1/5) - 4·arctan(1/239)."""
    fifth, small = (odd_series_bounds(Fraction(1, n), 2 * bits, sign=-1) for n in (5, 239))
    return math.isqrt(32 * fifth[0] - 8 * small[1]), math.isqrt(32 * fifth[1] - 8 * small[0]) + 1


def normal_tail_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose P[N >= x]·2^bits for a standard normal N.

    Claim: low <= P[N >= x]·2^bits <= high.
    Proof: P[N >= x] = 1/2 - phi(x)·(x + x³/3 + x⁵/(3·5) + …) for x >= 0. Each step rounds its term down by at most
        a unit and x² by at most a unit; carried over to a later term, either grows to at most 1 + L units, where L
        is the largest term over 2^precision (terms rise only if x > 1, and then from at least 2^precision). So
        term n is low by at most (n+1)·(4+2·L), and so is the sum of all terms after the last, once each term is less
        than half of the previous one: together less than (odd+2)²·(2+L) + 4. Products of enclosures enclose.
    Needs: exp_bounds, odd_series_bounds.
    Checked by: test_normal_tails_enclose_the_value
    """
    if x < 0:
        low, high = normal_tail_bounds(-x, bits)
        return (1 << bits) - high, (1 << bits) - low
    square = x * x
    if square > 4 * bits + 64:  # P <= exp(-x²/2)
        return 0, 1
    # The terms grow to about exp(x²/2) before they decrease; phi(x) compensates.
    precision = bits + 2 * math.ceil(square) + 32
    fixed = (square.numerator << precision) // square.denominator
    term = (x.numerator << precision) // x.denominator
    total, odd, largest = term, 1, term
    while term > 0 or odd < 2 * square:
        odd += 2
        term = (term * fixed >> precision) // odd
        total += term
        largest = max(largest, term)
    error = (odd + 2) ** 2 * (2 + (largest >> precision)) + 4
    root_low, root_high = _sqrt_two_pi_bounds(precision)
    phi_low, phi_high = exp_bounds(square / 2, precision)
    half = 1 << (precision - 1)
    area_low = total * phi_low // root_high
    area_high = (total + error) * phi_high // root_low + 1
    shift = precision - bits
    return max(0, half - area_high) >> shift, -(-max(0, half - area_low) >> shift)


def tail_bounds(noise: Laplace | Gaussian, k: int, bits: int) -> tuple[int, int]:
    """Enclose P[noise >= k]·2^bits; P[X >= k] = 1 - P[X >= 1-k]."""
    if k <= 0:
        low, high = tail_bounds(noise, 1 - k, bits)
        return (1 << bits) - high, (1 << bits) - low
    tail = _laplace_tail_bounds if isinstance(noise, Laplace) else _gaussian_tail_bounds
    return tail(noise.scale, k, bits)


def _laplace_tail_bounds(scale: Fraction, k: int, bits: int) -> tuple[int, int]:
    """Enclose P[X >= k]·2^bits for a discrete Laplace X and k >= 1: q^k/(1+q) with q = exp(-1/scale).

    Claim: low <= P[X >= k]·2^bits <= high.
    Proof: the geometric series; the quotient of the enclosures, rounded outwards.
    Needs: exp_bounds.
    Checked by: test_tails_of_the_laplace_noise_enclose_the_sum
    """
    q_low, q_high = exp_bounds(1 / scale, bits)
    low, high = exp_bounds(k / scale, bits)
    one = 1 << bits
    return (low << bits) // (one + q_high), -((-high << bits) // (one + q_low))


def _gaussian_tail_bounds(sigma: Fraction, k: int, bits: int) -> tuple[int, int]:
    """Enclose P[X >= k]·2^bits for a discrete Gaussian X and k >= 1.

    Claim: low <= P[X >= k]·2^bits <= high.
    Proof: small sigma: the exact floor (summed_tail_floors). Large sigma, f(y) = exp(-y²/(2·sigma²)): by the
        summation formula of Euler and Maclaurin at midpoints, the sum of f(j) over j >= k is the integral of f from
        k-1/2 plus f'(k-1/2)/24, up to 1/384 of the integral of the fourth derivative's absolute value, which is at
        most sqrt(24)·sqrt(2·pi)/sigma³. The weight of all integers is sigma·sqrt(2·pi)·(1+t) with
        0 < t < 10^-50 by Poisson summation. Dividing: within 1/(64·sigma⁴). Beyond one sigma f is convex, so
        f(j) is at most its integral over (j-1/2, j+1/2), and the sum at least the integral from k: this
        bounds far tails by a ratio.
    Needs: normal_tail_bounds, summed_tail_floors, exp_bounds.
    Checked by: test_tails_of_the_discrete_gaussian_enclose_the_sum
    """
    if sigma < _SUM_BELOW_SIGMA:
        floors = summed_tail_floors(sigma, bits)
        low = floors[k - 1] if k <= len(floors) else 0
        return low, low + 1
    start = (k - Fraction(1, 2)) / sigma
    low, high = normal_tail_bounds(start, bits)
    error = Fraction(1 << bits, 64) / sigma**4 + 2
    # f'(k-1/2)/24 over sigma·sqrt(2·pi), with 0.3989422 < 1/sqrt(2·pi) < 0.3989423
    slope = exp_bounds(start * start / 2, bits)[0] * start / (24 * sigma * sigma)
    lows = [low - slope * Fraction("0.3989423") - error]
    highs = [high - slope * Fraction("0.3989422") + error]
    if start >= 1:
        lows.append(normal_tail_bounds(k / sigma, bits)[0] * (1 - Fraction(1, 10**50)))
        highs.append(Fraction(high))
    return max(0, math.floor(max(lows))), math.ceil(min(highs))
