"""How far noise may have moved a ratio of noisy sums: margins of released numbers, which look at no data."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
_NORMAL = 1.959963984540054  # 95 % of a normal law lies within so many standard deviations
_HALVINGS = 45
_DRAWS = 4000


@dataclass(frozen=True)
class Noise:
    """The noise of each of several sums, independent: Laplace with this scale or, if normal, with this deviation."""

    scale: float
    normal: bool

    def reach(self, first: float, second: float) -> float:
        """Return what first·N1 + second·N2, of two such noises, exceeds in size with a probability of 5 %.

        >>> round(Noise(1.0, normal=False).reach(1, 0), 3)
        2.996
        """
        if self.normal:
            return _NORMAL * self.scale * math.hypot(first, second)
        a, b = max(abs(first), abs(second)), min(abs(first), abs(second))
        return self.scale * a * _crossing(lambda t: _tail(t, b / a) - (1 - CONFIDENCE), 0, 40)

    def drawn(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return noise of this law, to see what it does to numbers that are public."""
        generator = np.random.default_rng()
        return (generator.normal if self.normal else generator.laplace)(0, self.scale, shape)


def _tail(t: float, ratio: float) -> float:
    """Return P[|L1 + ratio·L2| > t] of two Laplace noises of scale 1, for a ratio from 0 to 1."""
    if ratio > 1 - 1e-5:
        return math.exp(-t) * (1 + t / 2)
    small = math.exp(-t / ratio) if ratio > 0 else 0.0
    return (math.exp(-t) - ratio**2 * small) / (1 - ratio**2)


def mean_of_cells(cells: np.ndarray, noise: Noise) -> tuple[float, float, float]:
    """Return the share of the second of two noisy cells, and the ends between which it lies with 95 %.

    If the true share is p, (1-p)·second - p·first is noise alone: every p for which it is not too large is possible
    (Fieller 1954). From the estimate outwards the excess is concave, so it is crossed at most once.

    >>> [round(share, 3) for share in mean_of_cells(np.array([100.0, 300.0]), Noise(2.0, normal=True))]
    [0.75, 0.742, 0.758]
    """
    total = float(cells.sum())
    if total <= 0:
        return 0.5, 0.0, 1.0
    share = min(max(float(cells[1]) / total, 0.0), 1.0)

    def excess(p: float) -> float:
        return abs(float(cells[1]) - p * total) - noise.reach(1 - p, p)

    return share, _end(excess, share, 0.0), _end(excess, share, 1.0)


def _end(excess: Callable[[float], float], start: float, limit: float) -> float:
    """Return how far one can go from the start until there is an excess: at most to the limit."""
    if excess(limit) <= 0 or excess(start) > 0:
        return limit
    return _crossing(excess, start, limit)


def _crossing(value: Callable[[float], float], inside: float, outside: float) -> float:
    """Return where a function changes its sign, found by halving."""
    positive = value(outside) > 0
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if (value(middle) > 0) is positive else (middle, outside)
    return (inside + outside) / 2


def explained_share(sums: np.ndarray, noise: Noise) -> tuple[float, float]:
    """Return R² and its margin, from noisy sums of 1, the error less 1/2, z, and z² less 1/2; z is y in [-1, 1].

    The margin is what the same noise does to these sums once more, with a probability of 95 %.
    """
    value = float(_explained(sums))
    again = _explained(sums + noise.drawn((_DRAWS, 4)))
    away = np.abs(again - value)
    return value, float(np.quantile(np.where(np.isnan(away), np.inf, away), CONFIDENCE, method="higher"))


def _explained(sums: np.ndarray) -> np.ndarray:
    """Return R², or NaN if the noise leaves no variance to explain."""
    count, error, first, second = np.moveaxis(np.asarray(sums, np.float64), -1, 0)
    with np.errstate(all="ignore"):
        variance = (second / count + 0.5 - (first / count) ** 2) / 4
        return np.where((count > 0) & (variance > 0), 1 - (error / count + 0.5) / variance, np.nan)
