"""Updates of a component from noisy sums of clipped whitened points, shrunk according to the noise."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import chdtr, chdtrc, chdtri, gammaln  # chi-squared: P(below), P(above), and the inverse of that

_MIN_UNCLIPPED_SHARE = 0.95  # minimum share of a component's points that are not clipped, if it is Gaussian
_MAX_RADIUS = 30.0
_NOISE_TO_SIZE = (
    0.05  # noise of a component's second moments that is accepted for a larger radius, relative to its size
)


class ClipEffect(NamedTuple):
    """The effect on a Gaussian component of clipping whitened points to a radius.

    `variance_factor` is the remaining variance; `mean_factor`, `trace_factor` and `shape_factor` are the factors by
    which clipping attenuates small changes of the mean, of the covariance's trace and of its traceless part.
    `block_weights` multiply the three blocks of a point's vector (responsibility, first and second moments), so that
    its norm is at most 1.
    """

    radius: float
    variance_factor: float
    mean_factor: float
    trace_factor: float
    shape_factor: float
    block_weights: np.ndarray


def clip_for_noise(size: float, sd: float, d: int, *, in_l2: bool) -> ClipEffect:
    """Return the effect of clipping a component of this size at a radius at which the noise is still small.

    So only strong noise clips more than a few points, and tails that are heavier than a Gaussian's are seen.
    """
    low, high = chdtri(d, 1 - _MIN_UNCLIPPED_SHARE), _MAX_RADIUS**2
    return clip_at(math.sqrt(np.clip(_NOISE_TO_SIZE / d * size / sd, low, high)), d, in_l2=in_l2)


def clip_at(radius: float, d: int, *, in_l2: bool) -> ClipEffect:
    """Return the effect of clipping at this radius."""
    squared = radius**2
    inside, inner = float(chdtr(d, squared)), float(chdtr(d + 2, squared))
    # E[1/r] over the points beyond the radius; in one dimension, clipped points show nothing of a shift.
    inverse = (
        math.exp(gammaln((d - 1) / 2) - gammaln(d / 2)) * math.sqrt(0.5) * chdtrc(d - 1, squared) if d > 1 else 0.0
    )
    return ClipEffect(
        radius=radius,
        variance_factor=inner + squared / d * (1 - inside),
        mean_factor=inside + (1 - 1 / d) * radius * inverse,
        trace_factor=inner,
        shape_factor=inner + squared / (d + 2) * (1 - inside),
        block_weights=_block_weights(squared, d, in_l2=in_l2),
    )


def _block_weights(squared: float, d: int, *, in_l2: bool) -> np.ndarray:
    """Return the block weights w for which the noise costs the least likelihood.

    Noise of variance 1/w² in each entry of a block costs likelihood_cost/w². A point on the clipping sphere has norm
    |w·max_norms|, which is set to 1. Lagrange multipliers give w² ~ sqrt(likelihood_cost)/max_norms in l2 and
    w³ ~ likelihood_cost/max_norms in l1.
    """
    likelihood_cost = np.array([1.0, d / 2, d * (d + 1) / 8])
    if in_l2:
        max_norms = np.array([1.0, math.sqrt(squared), squared])
        weights = np.sqrt(np.sqrt(likelihood_cost) / max_norms)
        return np.asarray(weights / np.linalg.norm(weights * max_norms))
    max_norms = np.array([1.0, math.sqrt(d * squared), squared * (1 + (d - 1) / math.sqrt(2))])
    weights = np.cbrt(likelihood_cost / max_norms)
    return np.asarray(weights / (weights @ max_norms))


class ComponentMoments(NamedTuple):
    """The released size of a component, in units, and its mean whitened first and second moments."""

    size: float
    mean: np.ndarray
    second_moment: np.ndarray


def component_moments(sums: np.ndarray, d: int, clip: ClipEffect) -> ComponentMoments:
    """Return one component's moments from its block of the released sums."""
    i, j = np.tril_indices(d)
    share, first, second = clip.block_weights
    size = max(float(sums[0] / share), 1.0)
    matrix = np.zeros((d, d))
    matrix[i, j] = matrix[j, i] = sums[1 + d :] * np.where(i == j, 1.0, math.sqrt(0.5)) / (second * size)
    return ComponentMoments(size, sums[1 : 1 + d] / (first * size), matrix)


def shrunken_update(moments: ComponentMoments, sd: float, clip: ClipEffect) -> tuple[np.ndarray, np.ndarray]:
    """Return the change of mean and covariance in whitened units, shrunk according to the noise."""
    d = len(moments.mean)
    i, j = np.tril_indices(d)
    excess = moments.second_moment - np.outer(moments.mean, moments.mean) - clip.variance_factor * np.eye(d)
    spherical_part = np.trace(excess) / d * np.eye(d)
    growth = (excess - spherical_part) / clip.shape_factor + spherical_part / clip.trace_factor
    shift = moments.mean / clip.mean_factor
    numbers = np.where(i == j, 1.0, math.sqrt(2)) * growth[i, j]
    noise = sd / (clip.block_weights * moments.size)
    return shift * james_stein_factor(shift, noise[1] / clip.mean_factor), growth * james_stein_factor(
        numbers, noise[2] / clip.shape_factor
    )


def james_stein_factor(values: np.ndarray, sd: float) -> float:
    """Return the James-Stein shrinkage factor of noisy values, from 0 to 1.

    >>> james_stein_factor(np.array([30.0, -40.0, 0.0]), sd=1.0), james_stein_factor(np.array([0.1, -0.1, 0.1]), sd=1.0)
    (0.9992, 0.0)
    """
    noise = max(len(values) - 1, 0) * sd * sd
    return max(0.0, 1 - noise / max(float(values @ values), 1e-300))


def grow_covariances(factors: np.ndarray, growth: np.ndarray) -> np.ndarray:
    """Return L(1 + growth)Lᵀ for Cholesky factors L, with 1 + growth kept positive by a smooth limit."""
    values, vectors = np.linalg.eigh(growth)
    scales = np.where(values > -0.5, 1 + values, 0.25 / np.maximum(-values, 0.5))
    rotated = factors @ vectors
    return np.asarray((rotated * scales[..., np.newaxis, :]) @ transpose_matrices(rotated))


def floor_eigenvalues(covariances: np.ndarray, min_variance: float) -> np.ndarray:
    """Return covariances with all eigenvalues at least `min_variance`."""
    values, vectors = np.linalg.eigh(covariances)
    return np.asarray((vectors * np.maximum(values, min_variance)[..., np.newaxis, :]) @ transpose_matrices(vectors))


def transpose_matrices(matrices: np.ndarray) -> np.ndarray:
    """Return matrices with their last two axes swapped."""
    return np.swapaxes(matrices, -1, -2)
