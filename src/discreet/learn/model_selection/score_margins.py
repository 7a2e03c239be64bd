"""Margins of error of scores: confidence intervals for ratios of noisy sums."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
_NORMAL_QUANTILE = 1.959963984540054  # 95 % of a normal distribution is within this many standard deviations
_BISECTIONS = 45
_SIMULATIONS = 4000


@dataclass(frozen=True)
class SumNoise:
    """Independent noise on several sums: Laplace with this scale, or Gaussian with this standard deviation."""

    scale: float
    is_gaussian: bool

    def margin_of_combination(self, first: float, second: float) -> float:
        """Return the bound that |first·N1 + second·N2|, for two such noises, exceeds with probability 5 %.

        >>> round(SumNoise(1.0, is_gaussian=False).margin_of_combination(1, 0), 3)
        2.996
        """
        if self.is_gaussian:
            return _NORMAL_QUANTILE * self.scale * math.hypot(first, second)
        a, b = max(abs(first), abs(second)), min(abs(first), abs(second))
        return self.scale * a * _bisect_root(lambda t: _laplace_pair_tail(t, b / a) - (1 - CONFIDENCE), 0, 40)

    def simulate(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return simulated noise from this distribution, for public margins only."""
        generator = np.random.default_rng()
        return (generator.normal if self.is_gaussian else generator.laplace)(0, self.scale, shape)


def _laplace_pair_tail(t: float, ratio: float) -> float:
    """Return P[|L1 + ratio·L2| > t] for two Laplace variables of scale 1 and a ratio from 0 to 1."""
    if ratio > 1 - 1e-5:
        return math.exp(-t) * (1 + t / 2)
    small = math.exp(-t / ratio) if ratio > 0 else 0.0
    return (math.exp(-t) - ratio**2 * small) / (1 - ratio**2)


def share_with_interval(cells: np.ndarray, noise: SumNoise) -> tuple[float, float, float]:
    """Return the share of the second of two noisy cells, and its 95 % confidence interval.

    If the true share is p, then (1-p)·second - p·first is pure noise: the interval contains every p for which it is
    within its margin (Fieller 1954). Outwards from the estimate the excess is concave, so it has at most one root.

    >>> [round(share, 3) for share in share_with_interval(np.array([100.0, 300.0]), SumNoise(2.0, is_gaussian=True))]
    [0.75, 0.742, 0.758]
    """
    total = float(cells.sum())
    if total <= 0:
        return 0.5, 0.0, 1.0
    share = min(max(float(cells[1]) / total, 0.0), 1.0)

    def excess(p: float) -> float:
        return abs(float(cells[1]) - p * total) - noise.margin_of_combination(1 - p, p)

    return share, _interval_end(excess, share, 0.0), _interval_end(excess, share, 1.0)


def _interval_end(excess: Callable[[float], float], start: float, limit: float) -> float:
    """Return the end of the interval between the estimate and the limit: the root of the excess, or the limit."""
    if excess(limit) <= 0 or excess(start) > 0:
        return limit
    return _bisect_root(excess, start, limit)


def _bisect_root(function: Callable[[float], float], inside: float, outside: float) -> float:
    """Return the point where a function changes sign, by bisection."""
    positive = function(outside) > 0
    for _ in range(_BISECTIONS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if (function(middle) > 0) is positive else (middle, outside)
    return (inside + outside) / 2


def r2_with_margin(sums: np.ndarray, noise: SumNoise) -> tuple[float, float]:
    """Return R² and its margin, from noisy sums of 1, the error - 1/2, z and z² - 1/2, with y scaled to z in [-1, 1].

    The margin is the 95 % quantile of the change in R² when simulated noise is added to the sums.
    """
    value = float(_r2(sums))
    simulated = _r2(sums + noise.simulate((_SIMULATIONS, 4)))
    deviations = np.abs(simulated - value)
    return value, float(np.quantile(np.where(np.isnan(deviations), np.inf, deviations), CONFIDENCE, method="higher"))


def _r2(sums: np.ndarray) -> np.ndarray:
    """Return R², or NaN if the noisy variance is not positive."""
    count, error, first, second = np.moveaxis(np.asarray(sums, np.float64), -1, 0)
    with np.errstate(all="ignore"):
        variance = (second / count + 0.5 - (first / count) ** 2) / 4
        return np.where((count > 0) & (variance > 0), 1 - (error / count + 0.5) / variance, np.nan)
