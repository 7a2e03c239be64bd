"""What noisy sums of whitened points say of a component, and how much of it to believe."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import chdtr, chdtrc, chdtri, gammaln  # chi-squared: P(below), P(above), and the inverse of that


class Clip(NamedTuple):
    """Whitened points are moved to within a radius; what that does to a Gaussian component, and how blocks weigh.

    `kept` is what remains of the variance; `of_mean`, `of_size` and `of_shape` say how much of a small change of
    the mean, of the covariance's trace and of the rest of it remains visible. `weights` multiply the three blocks of a
    point's vector (share, first and second moments), which then lies in the ball of radius 1.
    """

    radius: float
    kept: float
    of_mean: float
    of_size: float
    of_shape: float
    weights: np.ndarray


def clip_at(quantile: float, d: int, *, in_l2: bool) -> Clip:
    """Return the clip that leaves this share of a component's points where they are."""
    squared = float(chdtri(d, 1 - quantile))
    inside, inner = float(chdtr(d, squared)), float(chdtr(d + 2, squared))
    radius = math.sqrt(squared)
    # The mean of 1/r over the points beyond the radius; on a line, none of a shift is seen there.
    inverse = (
        math.exp(gammaln((d - 1) / 2) - gammaln(d / 2)) * math.sqrt(0.5) * chdtrc(d - 1, squared) if d > 1 else 0.0
    )
    return Clip(
        radius=radius,
        kept=inner + squared / d * (1 - inside),
        of_mean=inside + (1 - 1 / d) * radius * inverse,
        of_size=inner,
        of_shape=inner + squared / (d + 2) * (1 - inside),
        weights=_weights(squared, d, in_l2=in_l2),
    )


def _weights(squared: float, d: int, *, in_l2: bool) -> np.ndarray:
    """Return the blocks' weights for which noise costs the least likelihood.

    Noise of variance 1/w² in every number of a block costs price/w², in sum; a point on the clip's sphere has the
    norm |w·longest|, which is 1. (Lagrange: w² ~ sqrt(price)/longest in l2 and w³ ~ price/longest in l1.)
    """
    price = np.array([1.0, d / 2, d * (d + 1) / 8])
    if in_l2:
        longest = np.array([1.0, math.sqrt(squared), squared])
        weights = np.sqrt(np.sqrt(price) / longest)
        return np.asarray(weights / np.linalg.norm(weights * longest))
    longest = np.array([1.0, math.sqrt(d * squared), squared * (1 + (d - 1) / math.sqrt(2))])
    weights = np.cbrt(price / longest)
    return np.asarray(weights / (weights @ longest))


class Seen(NamedTuple):
    """What was released of one component: how many units, and its whitened first and second moments, per unit."""

    size: float
    mean: np.ndarray
    second: np.ndarray


def read(sums: np.ndarray, d: int, clip: Clip) -> Seen:
    """Return one component's part of the released sums, in its own units."""
    i, j = np.tril_indices(d)
    share, first, second = clip.weights
    size = max(float(sums[0] / share), 1.0)
    matrix = np.zeros((d, d))
    matrix[i, j] = matrix[j, i] = sums[1 + d :] * np.where(i == j, 1.0, math.sqrt(0.5)) / (second * size)
    return Seen(size, sums[1 : 1 + d] / (first * size), matrix)


def change_of(seen: Seen, sd: float, clip: Clip) -> tuple[np.ndarray, np.ndarray]:
    """Return the change of mean and covariance, in whitened units, as far as it stands out of the noise."""
    d = len(seen.mean)
    i, j = np.tril_indices(d)
    beyond = seen.second - np.outer(seen.mean, seen.mean) - clip.kept * np.eye(d)
    round_part = np.trace(beyond) / d * np.eye(d)
    growth = (beyond - round_part) / clip.of_shape + round_part / clip.of_size
    shift = seen.mean / clip.of_mean
    numbers = np.where(i == j, 1.0, math.sqrt(2)) * growth[i, j]
    noise = sd / (clip.weights * seen.size)
    return shift * believed(shift, noise[1] / clip.of_mean), growth * believed(numbers, noise[2] / clip.of_shape)


def believed(values: np.ndarray, sd: float) -> float:
    """Return James and Stein's factor: which part of noisy values to keep, from 0 to 1.

    >>> believed(np.array([30.0, -40.0, 0.0]), sd=1.0), believed(np.array([0.1, -0.1, 0.1]), sd=1.0)
    (0.9992, 0.0)
    """
    noise = max(len(values) - 1, 0) * sd * sd
    return max(0.0, 1 - noise / max(float(values @ values), 1e-300))


def grown(factors: np.ndarray, growth: np.ndarray) -> np.ndarray:
    """Return L(1 + growth)Lᵀ for factors L of covariances; where it would not be positive, a smooth limit of it."""
    values, vectors = np.linalg.eigh(growth)
    kept = np.where(values > -0.5, 1 + values, 0.25 / np.maximum(-values, 0.5))
    turned = factors @ vectors
    return np.asarray((turned * kept[..., np.newaxis, :]) @ swapped(turned))


def floored(covariances: np.ndarray, least: float) -> np.ndarray:
    """Return covariances with all eigenvalues at least `least`."""
    values, vectors = np.linalg.eigh(covariances)
    return np.asarray((vectors * np.maximum(values, least)[..., np.newaxis, :]) @ swapped(vectors))


def swapped(matrices: np.ndarray) -> np.ndarray:
    """Return matrices with their last two axes exchanged."""
    return np.swapaxes(matrices, -1, -2)
