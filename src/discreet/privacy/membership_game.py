"""The threshold game: guess membership by whether a noisy mean exceeds a threshold."""

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.kernel.mechanism import Laplace
from discreet.kernel.numbers import Number, as_fraction, as_integer, as_nonnegative
from discreet.privacy.probability import log_ratio
from discreet.privacy.tail_enclosures import tail_bounds

_GRID_STEPS = 1 << 20  # of the noise's grid between the two means
_PRECISION_BITS = 160
_MAX_SCALES = 2000  # beyond which both probabilities underflow a float


@dataclass(frozen=True)
class ThresholdGame:
    """The rates at which the noisy mean exceeds the threshold for n zeros, and for n-1 zeros and a one.

    `log_ratio`, the log of their ratio, is a lower bound on the mechanism's `epsilon`.
    """

    false_positive_rate: float
    true_positive_rate: float
    log_ratio: float
    epsilon: Fraction | float


def threshold_game(width: Number, *, n: int = 100, threshold: Number | None = None) -> ThresholdGame:
    """Play the game with Laplace noise of this width (its scale) on the mean of n bits; 0 is no noise.

    By default, the threshold is halfway between the two means. The noise is exact and discrete, on a grid so fine (a
    millionth of the distance between the means) that it agrees with continuous noise to five decimals.

    >>> game = threshold_game(Fraction(1, 300))
    >>> round(game.false_positive_rate, 3), round(game.true_positive_rate, 3), round(game.log_ratio, 2), game.epsilon
    (0.112, 0.888, 2.07, Fraction(3, 1))
    """
    size = as_integer(n, "n", minimum=1)
    scale = as_nonnegative(width, "width")
    cutoff = Fraction(1, 2 * size) if threshold is None else as_fraction(threshold, "threshold")
    chances = [
        _exceedance_bounds(mean, cutoff, scale, Fraction(1, size * _GRID_STEPS))
        for mean in (Fraction(0), Fraction(1, size))
    ]
    (_, false_positive_rate), (true_positive_rate, _) = chances  # the conservative ends
    evidence = log_ratio(true_positive_rate, false_positive_rate) if true_positive_rate else 0.0
    return ThresholdGame(
        float(false_positive_rate), float(true_positive_rate), evidence, 1 / (size * scale) if scale else math.inf
    )


def _exceedance_bounds(mean: Fraction, cutoff: Fraction, scale: Fraction, step: Fraction) -> tuple[Fraction, Fraction]:
    """Return lower and upper bounds on P[mean + noise > cutoff]."""
    if not scale:
        return Fraction(mean > cutoff), Fraction(mean > cutoff)
    least = math.floor((cutoff - mean) / step) + 1
    bits = _PRECISION_BITS + 2 * min(_MAX_SCALES, math.ceil(abs(least) * step / scale))  # more bits for the far tail
    low, high = tail_bounds(Laplace(scale / step), least, bits)
    return Fraction(low, 1 << bits), Fraction(high, 1 << bits)
