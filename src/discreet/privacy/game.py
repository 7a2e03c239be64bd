"""The threshold game: is somebody in the data? Guess by whether a noisy mean lies above a threshold."""

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.kernel.exact import Number, fraction, not_negative, whole
from discreet.kernel.mechanism import Laplace
from discreet.privacy.pmf import log_ratio

_STEPS = 1 << 20  # of the noise's grid in the distance between the two means
_BITS = 160
_FARTHEST = 2000  # scales; beyond, both probabilities are 0 to a float


@dataclass(frozen=True)
class Game:
    """How often the noisy mean A exceeds T for n zeros, and with one of them a 1; and what that proves.

    `log_ratio` is the evidence at this one threshold: a lower bound on `epsilon`, which is the mechanism's own.
    """

    zeros: float
    one: float
    log_ratio: float
    epsilon: Fraction | float


def threshold_game(width: Number, *, n: int = 100, threshold: Number | None = None) -> Game:
    """Play with Laplace noise of this width (its scale) on the mean of n bits; 0 is no noise.

    The threshold is halfway between the two means unless given. The noise is the exact discrete law on a grid so
    fine (a millionth of the distance between the means) that it agrees with the continuous one to five decimals.

    >>> game = threshold_game(Fraction(1, 300))
    >>> round(game.zeros, 3), round(game.one, 3), round(game.log_ratio, 2), game.epsilon
    (0.112, 0.888, 2.07, Fraction(3, 1))
    """
    size = whole(n, "n", least=1)
    scale = not_negative(width, "width")
    cut = Fraction(1, 2 * size) if threshold is None else fraction(threshold, "threshold")
    chances = [_above(mean, cut, scale, Fraction(1, size * _STEPS)) for mean in (Fraction(0), Fraction(1, size))]
    (_, zeros), (one, _) = chances  # the ends that prove less
    evidence = log_ratio(one, zeros) if one else 0.0
    return Game(float(zeros), float(one), evidence, 1 / (size * scale) if scale else math.inf)


def _above(mean: Fraction, cut: Fraction, scale: Fraction, step: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose P[mean + noise > cut]."""
    if not scale:
        return Fraction(mean > cut), Fraction(mean > cut)
    least = math.floor((cut - mean) / step) + 1
    bits = _BITS + 2 * min(_FARTHEST, math.ceil(abs(least) * step / scale))  # a far tail keeps its digits
    low, high = Laplace(scale / step).tail_bounds(least, bits)
    return Fraction(low, 1 << bits), Fraction(high, 1 << bits)
