"""The nearest distribution to noisy shares: post-processing, which costs nothing."""

import numpy as np


def onto_simplex(shares: np.ndarray) -> np.ndarray:
    """Return the closest shares that are not negative and add up to one.

    >>> onto_simplex(np.array([0.8, 0.4, -0.1]))
    array([0.7, 0.3, 0. ])
    """
    falling = np.sort(shares)[::-1]
    surplus = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    # The last value that stays above what all values up to it must give away.
    kept = int(np.flatnonzero(falling > surplus)[-1])
    nearest: np.ndarray = np.maximum(shares - surplus[kept], 0)
    return nearest
