"""The noise of a family of tables, and the margin of error of sums of it."""

import math
from enum import Enum
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from discreet.kernel.errors import require

_INTERVALS = 2_000  # of a numerical integral


class Noise(Enum):
    """The distribution of noise, by the norm that bounds a unit's contributions to all tables together."""

    GAUSSIAN = 2
    LAPLACE = 1


@lru_cache(maxsize=64)
def margin_factor(noise: Noise, level: float = 0.95) -> float:
    """Return how many standard deviations a weighted sum of independent noise stays within, with chance `level`.

    For Gaussian noise this is a quantile. For Laplace noise it is a bound for all weights. Given independent
    exponential E_i, the sum is normal with a variance that is a weighted mean Q of them, so its tail at c standard
    deviations is the mean of h(Q) = erfc(c/√(2Q)). h is convex up to Q = c²/3 and concave above; replace it by its
    tangent there, which is larger. The mean of a convex function of Q is largest if all weight is on one E_i.

    >>> round(margin_factor(Noise.GAUSSIAN), 2), round(margin_factor(Noise.LAPLACE), 2)
    (1.96, 2.16)
    """
    require(0 < level < 1, f"level must be strictly between 0 and 1, not {level}")
    if noise is Noise.GAUSSIAN:
        return NormalDist().inv_cdf((1 + level) / 2)
    low, high = 0.0, 4.0 + math.log(1 / (1 - level))  # at most: the tail of one variable is exp(-√2·c)
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _laplace_tail(middle) <= 1 - level else (middle, high)
    return high


def _laplace_tail(c: float) -> float:
    """Return a bound on the chance that a weighted sum of Laplace variables exceeds c standard deviations."""
    bend = c * c / 3
    width = bend / _INTERVALS
    below = sum(
        math.erfc(c / math.sqrt(2 * q)) * math.exp(-q) for q in (width * (np.arange(_INTERVALS) + 0.5)).tolist()
    )
    slope = c * math.exp(-1.5) / math.sqrt(2 * math.pi) * bend**-1.5
    above = math.exp(-bend) * (math.erfc(math.sqrt(1.5)) + slope)  # E exceeds the bend by 1 on average, if it does
    return float(below * width + above)
