"""Quantiles of weighted sums of noise, and how far they can move a quotient.

Floats are safe here, because this is post-processing. Every approximation is conservative: margins cover at least
as often as stated.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from statistics import NormalDist

import numpy as np

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.selection import QuantileSelection

Noise = Laplace | Gaussian
ReleaseNoise = Noise | QuantileSelection

_MIN_SEPARATION = 1e-4  # closer scales are separated upwards, because the partial fractions would cancel
_MAX_SIMILAR_FRACTIONS, _WIDE_SEPARATION = 3, 1.2  # more parts with closer scales would cancel
_NEWTON_STEPS = 2  # one step gives a relative error of 1e-3, two steps 1e-7
_MAX_CHORD_STEPS = 5  # for groups hardly larger than their noise; two suffice for large groups
_TOLERANCE = 1e-4


def additive(mechanism: ReleaseNoise) -> Noise:
    """Return the noise of a total that has additive noise."""
    if isinstance(mechanism, QuantileSelection):
        raise TypeError("a selection of quantiles adds no noise")
    return mechanism


@dataclass(frozen=True)
class JointNoise:
    """Independent noise of one family, with the scales and the rounding slack of each part.

    >>> pair = JointNoise.from_parts((Gaussian(30), Fraction(1)), (Gaussian(40), Fraction(1)))
    >>> pair.quantile(0.05, 1.0, 1.0).round(1)
    array([99.])
    """

    distribution: type[Laplace] | type[Gaussian]
    scales: tuple[float, ...]
    slacks: tuple[float, ...]

    @classmethod
    def from_parts(cls, *parts: tuple[Noise, Fraction]) -> "JointNoise":
        """Combine noise distributions, each given with the size of its step."""
        distributions = {type(noise) for noise, _ in parts}
        if len(distributions) != 1:
            raise TypeError("noise distributions must be all Laplace or all Gaussian to be combined")
        scales = tuple(float(noise.scale * step) for noise, step in parts)
        slacks = tuple(_rounding_slack(float(noise.scale)) * float(step) for noise, step in parts)
        return cls(distributions.pop(), scales, slacks)

    def quantile(self, tail: float, *weights: float | np.ndarray) -> np.ndarray:
        """Return a value that |Σ weight·noise| exceeds with at most this probability.

        As a function of the weights it is a norm, hence convex and increasing in each |weight|; this holds for
        quantiles of symmetric log-concave distributions (Bobkov 2010, Convex bodies and norms associated to convex
        measures).
        """
        sizes = np.abs(np.stack(np.broadcast_arrays(*map(np.atleast_1d, weights))))
        scales = sizes * np.array(self.scales)[:, None]
        quantile = (
            _gaussian_quantile(scales, tail) if self.distribution is Gaussian else _laplace_quantile(scales, tail)
        )
        quantile += np.array(self.slacks) @ sizes
        return quantile


def _rounding_slack(scale: float) -> float:
    """Return the maximum distance, in steps, between discrete noise and its continuous counterpart when coupled.

    The coupling matches quantiles of the absolute values: half a step apart, a little more in the tails.
    """
    return min(1.0, 0.5 + 0.3 / scale)


def _gaussian_quantile(scales: np.ndarray, tail: float) -> np.ndarray:
    quantile: np.ndarray = NormalDist().inv_cdf(1 - tail / 2) * np.sqrt((scales * scales).sum(axis=0))
    return quantile


def _laplace_quantile(scales: np.ndarray, tail: float) -> np.ndarray:
    """Solve P[|sum| > x] = tail, a sum of exponentials by partial fractions of the characteristic function.

    The logarithm of the probability is concave, so every Newton step ends at or above the solution. More than three
    parts of similar scales, whose fractions would cancel, have the quantile of one part with their variance: it is
    larger, by at most 8 % at a tail of 5 %.
    """
    order = list(scales)
    for i, j in combinations(range(len(order)), 2):  # np.sort is much slower on such a short axis
        order[i], order[j] = np.minimum(order[i], order[j]), np.maximum(order[i], order[j])
    order[0] = np.maximum(order[0], _MIN_SEPARATION * order[-1])
    for i, j in pairwise(range(len(order))):
        order[j] = np.maximum(order[j], (1 + _MIN_SEPARATION) * order[i])
    separated = np.stack(order)
    quantile: np.ndarray = np.sqrt((scales * scales).sum(axis=0)) * -math.log(tail)
    if len(order) <= _MAX_SIMILAR_FRACTIONS:
        return _solve_fractions(separated, quantile, tail)
    solvable = (separated[1:] >= _WIDE_SEPARATION * separated[:-1]).all(axis=0)
    quantile[solvable] = _solve_fractions(separated[:, solvable], quantile[solvable], tail)
    return quantile


def _solve_fractions(scales: np.ndarray, quantile: np.ndarray, tail: float) -> np.ndarray:
    """Solve by Newton's method, from an upper bound of the quantile."""
    squares = scales * scales
    shares = np.ones_like(scales)
    for i, j in permutations(range(len(scales)), 2):
        shares[i] *= squares[i] / (squares[i] - squares[j])
    for _ in range(_NEWTON_STEPS):
        parts = shares * np.exp(-quantile / scales)
        beyond = parts.sum(axis=0)
        quantile = quantile + np.log(beyond / tail) * beyond / (parts / scales).sum(axis=0)
    return quantile


def largest_deviation(
    pull: np.ndarray, push: Callable[[np.ndarray], np.ndarray], slope: float | np.ndarray, limit: np.ndarray
) -> np.ndarray:
    """Return the largest d with pull·d <= push(d), rounded up by at most 1 %.

    `push` is convex with slope at most `slope`; if that is not below the pull, d is infinite. The search starts at
    `limit`, beyond which the result does not matter. The chord of the concave pull·d - push(d) lies below it, so
    every step ends at or above the solution.
    """
    feasible_pull = np.where(pull > slope, pull, np.nan)
    first = push(np.zeros_like(feasible_pull))
    far = np.minimum(first / (feasible_pull - slope), np.maximum(limit, first / feasible_pull))
    for _ in range(_MAX_CHORD_STEPS):
        nearer = np.minimum(far, first * far / (feasible_pull * far - push(far) + first))
        settled = not (nearer < (1 - _TOLERANCE) * far).any()
        far = nearer
        if settled:
            break
    return np.where(pull > slope, far, np.inf)
