"""Quantiles of weighted sums of noises, and how far they can move a quotient.

Floats are fine here: all of this comes after the release. Every approximation errs to the wide side, so that a
margin made of these parts covers at least as often as it says.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from statistics import NormalDist

import numpy as np

from discreet.kernel.mechanism import Gaussian, Laplace

Noise = Laplace | Gaussian

_MIN_SEPARATION = 1e-4  # scales nearer to each other are taken apart, upwards: the partial fractions would cancel
_NEWTON_STEPS = 2  # steps: after one the quantile is right to a thousandth, after two to seven digits
_MAX_CHORD_STEPS = 5  # steps at most, for groups hardly larger than their noise; for large ones two settle it
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class JointNoise:
    """Independent noises of one law, each with the scale and the inexactness of its steps.

    >>> pair = JointNoise.from_parts((Gaussian(30), Fraction(1)), (Gaussian(40), Fraction(1)))
    >>> pair.quantile(0.05, 1.0, 1.0).round(1)
    array([99.])
    """

    distribution: type[Laplace] | type[Gaussian]
    scales: tuple[float, ...]
    slacks: tuple[float, ...]

    @classmethod
    def from_parts(cls, *parts: tuple[Noise, Fraction]) -> "JointNoise":
        """Take noises together, each with what one of its steps is worth."""
        distributions = {type(noise) for noise, _ in parts}
        if len(distributions) != 1:
            raise TypeError("noise distributions must be all Laplace or all Gaussian to be combined")
        scales = tuple(float(noise.scale * step) for noise, step in parts)
        slacks = tuple(_rounding_slack(float(noise.scale)) * float(step) for noise, step in parts)
        return cls(distributions.pop(), scales, slacks)

    def quantile(self, tail: float, *weights: float | np.ndarray) -> np.ndarray:
        """Return what |sum of weight·noise| exceeds with at most this probability.

        As a function of the weights it is a norm, hence convex and growing with each |weight|: quantiles of
        symmetric log-concave laws are (Bobkov 2010, Convex bodies and norms associated to convex measures).
        """
        sizes = np.abs(np.stack(np.broadcast_arrays(*map(np.atleast_1d, weights))))
        scales = sizes * np.array(self.scales)[:, None]
        quantile = (
            _gaussian_quantile(scales, tail) if self.distribution is Gaussian else _laplace_quantile(scales, tail)
        )
        quantile += np.array(self.slacks) @ sizes
        return quantile


def _rounding_slack(scale: float) -> float:
    """Return how many steps an integer noise can be from the continuous one of its name when they are drawn together.

    Equal probabilities of their sizes are drawn together: half a step apart, a little more in the tails.
    """
    return min(1.0, 0.5 + 0.3 / scale)


def _gaussian_quantile(scales: np.ndarray, tail: float) -> np.ndarray:
    quantile: np.ndarray = NormalDist().inv_cdf(1 - tail / 2) * np.sqrt((scales * scales).sum(axis=0))
    return quantile


def _laplace_quantile(scales: np.ndarray, tail: float) -> np.ndarray:
    """Solve P[|sum| > x] = tail, which is a sum of exponentials: partial fractions of the characteristic function.

    The logarithm of that probability is concave, so each of Newton's steps ends at or above the solution.
    """
    order = list(scales)
    for i, j in combinations(range(len(order)), 2):  # np.sort is many times slower on so short an axis
        order[i], order[j] = np.minimum(order[i], order[j]), np.maximum(order[i], order[j])
    order[0] = np.maximum(order[0], _MIN_SEPARATION * order[-1])
    for i, j in pairwise(range(len(order))):
        order[j] = np.maximum(order[j], (1 + _MIN_SEPARATION) * order[i])
    scales = np.stack(order)
    squares = scales * scales
    shares = np.ones_like(scales)
    for i, j in permutations(range(len(scales)), 2):
        shares[i] *= squares[i] / (squares[i] - squares[j])
    quantile: np.ndarray = np.sqrt(squares.sum(axis=0)) * -math.log(tail)
    for _ in range(_NEWTON_STEPS):
        parts = shares * np.exp(-quantile / scales)
        beyond = parts.sum(axis=0)
        quantile = quantile + np.log(beyond / tail) * beyond / (parts / scales).sum(axis=0)
    return quantile


def largest_deviation(
    pull: np.ndarray, push: Callable[[np.ndarray], np.ndarray], slope: float, limit: np.ndarray
) -> np.ndarray:
    """Return how far d can be before pull·d outgrows push(d): not less, and more by a hundredth at most.

    `push` is convex and grows by at most `slope` per unit; where that is not less than the pull, d is infinite.
    Beyond `limit` nobody asks, so the search starts there. The chord of the concave pull·d - push(d) lies below it,
    so every step still ends at or above the solution.
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
