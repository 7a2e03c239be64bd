"""Upper bounds on the tail probabilities of the discrete Laplace and the discrete Gaussian distribution."""

import math
from fractions import Fraction
from functools import lru_cache

from discreet.kernel.noise.distribution import NoiseDistribution
from discreet.kernel.numbers import exp_bounds

_SUM_BELOW_SIGMA = 64  # up to this sigma a tail is summed term by term
_FRACTION_DEPTH = 64  # even; the bound is too high by a factor of 1 + 10^-6 at one sigma, and by less beyond
_FRACTION_BITS = 40


def laplace_tail_up(scale: Fraction, k: int, bits: int) -> int:
    """Return an upper bound of P[X >= k]·2^bits for a discrete Laplace X: q^k/(1+q) for k >= 1 and q = exp(-1/scale).

    Claim: P[X >= k]·2^bits is at most the result.
    Proof: the geometric series; the upper end of the numerator over the lower end of the denominator, rounded up.
    Needs: exp_bounds.
    Checked by: test_upper_bounds_of_tails_are_above_the_sum_and_close
    """
    if k <= 0:
        return 1 << bits
    return (exp_bounds(k / scale, bits)[1] << bits) // ((1 << bits) + exp_bounds(1 / scale, bits)[0]) + 1


def gaussian_tail_up(sigma: Fraction, k: int, bits: int) -> int:
    """Return an upper bound of P[X >= k]·2^bits for a discrete Gaussian X.

    Claim: P[X >= k]·2^bits is at most the result.
    Proof: small sigma: the exact floor (two_sided_tail_floors), plus one. Large sigma, f(y) = exp(-y²/(2·sigma²)): for
        k >= 1 the tail is below 1/2 by symmetry. Beyond one sigma f is convex, so f(j) is at most its integral over
        (j-1/2, j+1/2), and the weight of all integers is above sigma·sqrt(2·pi) by Poisson summation: the tail is at
        most that of a standard normal at x = (k-1/2)/sigma, which grows if x is rounded down. That is
        exp(-x²/2)/sqrt(2·pi) over Laplace's continued fraction x + 1/(x + 2/(x + 3/(x + …))), whose convergents of even
        depth are below it, as all of its terms are positive. The convergent is computed exactly.
    Needs: NoiseDistribution.two_sided_tail_floors, exp_bounds.
    Checked by: test_upper_bounds_of_tails_are_above_the_sum_and_close
    """
    if k <= 0:
        return 1 << bits
    if sigma < _SUM_BELOW_SIGMA:
        floors = summed_tail_floors(sigma, bits)
        return 1 + (floors[k - 1] if k <= len(floors) else 0)
    one = 1 << _FRACTION_BITS
    x = math.floor((k - Fraction(1, 2)) / sigma * one)
    if x < one:
        return 1 << (bits - 1)
    numerator, denominator = x, one
    for j in range(_FRACTION_DEPTH, 0, -1):
        numerator, denominator = x * numerator + j * one * denominator, one * numerator
    density = exp_bounds(Fraction(x * x, 2 * one * one), bits)[1] * Fraction("0.39894228040143267794")  # 1/sqrt(2·pi)
    return math.ceil(density * denominator / numerator)


@lru_cache(maxsize=64)
def summed_tail_floors(sigma: Fraction, bits: int) -> list[int]:
    """Return floor(P[X >= k]·2^bits) of a discrete Gaussian X, for k = 1, 2, … up to the first 0."""
    return NoiseDistribution(Fraction(0), 1 / (2 * sigma * sigma)).two_sided_tail_floors(bits)
