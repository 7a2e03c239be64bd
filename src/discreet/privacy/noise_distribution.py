"""The distribution of additive noise, for display and analysis: probabilities and margins of error."""

import math
from fractions import Fraction

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.numbers import Number, as_integer, power_down
from discreet.number_arguments import as_probability
from discreet.privacy.bisection import lowest_integer
from discreet.privacy.tail_enclosures import tail_bounds

_MAX_DISTANCE = 10**100  # beyond it, every probability is 0 as a float


def pmf(noise: Laplace | Gaussian, k: int) -> float:
    """Return the probability that the noise is k.

    >>> round(pmf(Laplace(1), 0), 4), round(pmf(Gaussian(1), 0), 4)
    (0.4621, 0.3989)
    """
    scale = float(noise.scale)
    ratio = min(abs(as_integer(k, "k", minimum=-_MAX_DISTANCE)), _MAX_DISTANCE) / scale
    if isinstance(noise, Laplace):
        return math.tanh(1 / (2 * scale)) * math.exp(-ratio)
    # The sum over all integers: directly if few terms matter, else by Poisson summation.
    if scale < 2:
        norm = 1 + 2 * sum(math.exp(-((j / scale) ** 2) / 2) for j in range(1, 80))
    else:
        norm = scale * math.sqrt(2 * math.pi) * (1 + 2 * math.exp(-2 * (math.pi * scale) ** 2))
    return math.exp(-ratio * ratio / 2) / norm


def margin(noise: Laplace | Gaussian, confidence: Number, count: int = 1) -> int:
    """Return the least m such that `count` draws are all within ±m with at least this probability.

    The probability is enclosed between integers, so the result is exact; where the enclosure for a very wide Gaussian
    cannot distinguish two neighbouring m, it is the larger.

    >>> margin(Gaussian(10), 0.95), margin(Laplace(1), 0.95, count=10_000)
    (20, 12)
    """
    level = as_probability(confidence, "confidence")
    draws = as_integer(count, "count", minimum=1)
    bits = 128 + (draws * math.ceil(1 / (1 - level))).bit_length()  # enough for the probability of being outside

    def is_sufficient(m: int) -> bool:
        outside = 2 * tail_bounds(noise, m + 1, bits)[1]
        inside = max(0, (1 << bits) - outside)
        return Fraction(power_down(inside, draws, bits), 1 << bits) >= level

    return lowest_integer(is_sufficient, -1, 1)
