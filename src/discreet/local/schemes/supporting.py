"""What most protocols share: a report supports some values, its owner's more often than the others."""

from fractions import Fraction

import numpy as np


def shares_of(
    supports: np.ndarray, people: int, rates: tuple[Fraction, Fraction], spreads: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares behind counts of supports, unbiased, and their margins.

    `rates` are the probabilities with which a report supports its owner's value, and any other.
    """
    own, other = map(float, rates)
    gap = float(rates[0] - rates[1])
    shares = (supports / people - other) / gap
    # One more for its being an integer, the skewness of rare events (Cornish, Fisher), and the variance that the share
    # has where it may be at most: margins hold for few people, too.
    surplus = 1 + (spreads**2 - 1) / 6
    margins = np.zeros(shares.shape)
    for _ in range(2):
        farther = shares + margins if own * (1 - own) > other * (1 - other) else shares - margins
        likely = np.clip(farther, 0, 1)
        variance = likely * own * (1 - own) + (1 - likely) * other * (1 - other)
        margins = (spreads * np.sqrt(people * variance) + surplus) / (people * gap)
    return shares, margins


def smallest(count: int) -> np.dtype:
    """Return the shortest unsigned little-endian type that holds 0 to count - 1."""
    return np.dtype(next(kind for kind, bits in (("<u1", 8), ("<u2", 16), ("<u4", 32)) if count <= 1 << bits))
