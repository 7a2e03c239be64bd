"""Updates of a component from noisy sums of clipped whitened points, shrunk according to the noise."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import chdtr, chdtrc, gammaln  # chi-squared: P(below), P(above)

_MIN_OUTER = 3.0  # minimum of the squared outer radius, relative to the mean squared norm of a Gaussian's points
_SIGNIFICANT = 4.0  # noise variances of the squared norms beyond the radius that are shrunk to 0
_MAX_RADIUS = 30.0
_SHAPE_NOISE, _SIZE_NOISE = 0.05, 0.1  # relative noise of second moments and of squared norms accepted for larger radii


class ClipEffect(NamedTuple):
    """The effect on a Gaussian component of clipping whitened points to a radius.

    Of points farther away, the squared norm is recorded too, up to the outer radius. `variance_factor` is the variance
    that remains; `mean_factor`, `trace_factor` and `shape_factor` are the factors by which clipping attenuates small
    changes of the mean, of the covariance's trace and of its traceless part. `beyond_variance` and `beyond_factor` are
    what the squared norms beyond the radius add to `variance_factor` and `trace_factor`. `block_weights` multiply the
    four blocks of a point's vector (responsibility, first and second moments, squared norm beyond the radius), so that
    its norm is at most 1.
    """

    radius: float
    outer_radius: float
    variance_factor: float
    mean_factor: float
    trace_factor: float
    shape_factor: float
    beyond_variance: float
    beyond_factor: float
    block_weights: np.ndarray


def clip_for_noise(size: float, sd: float, d: int, *, in_l2: bool) -> ClipEffect:
    """Return the effect of clipping a component of this size at radii at which the noise is still small.

    Strong noise clips half of the points, which still show the shape; their norms show heavy tails at less noise.
    """
    ratio, most = size / sd, _MAX_RADIUS**2
    squared = np.clip(_SHAPE_NOISE / d * ratio, d, most)
    outer = np.clip(_SIZE_NOISE * ratio, max(_MIN_OUTER * d, squared), most)
    return clip_at(math.sqrt(squared), math.sqrt(outer), d, in_l2=in_l2)


def clip_at(radius: float, outer_radius: float, d: int, *, in_l2: bool) -> ClipEffect:
    """Return the effect of clipping at these radii."""
    squared, outer = radius**2, outer_radius**2
    inside, inner = float(chdtr(d, squared)), float(chdtr(d + 2, squared))
    # E[1/r] over the points beyond the radius; in one dimension, clipped points show nothing of a shift.
    inverse = (
        math.exp(gammaln((d - 1) / 2) - gammaln(d / 2)) * math.sqrt(0.5) * chdtrc(d - 1, squared) if d > 1 else 0.0
    )
    variance_factor = inner + squared / d * (1 - inside)
    outer_inner = float(chdtr(d + 2, outer))
    return ClipEffect(
        radius=radius,
        outer_radius=outer_radius,
        variance_factor=variance_factor,
        mean_factor=inside + (1 - 1 / d) * radius * inverse,
        trace_factor=inner,
        shape_factor=inner + squared / (d + 2) * (1 - inside),
        beyond_variance=outer_inner + outer / d * float(chdtrc(d, outer)) - variance_factor,
        beyond_factor=outer_inner - inner,
        block_weights=_block_weights(squared, outer, d, in_l2=in_l2),
    )


def _block_weights(squared: float, outer: float, d: int, *, in_l2: bool) -> np.ndarray:
    """Return the block weights w for which the noise costs the least likelihood.

    Noise of variance 1/w² in each entry of a block costs likelihood_cost/w². A point beyond the outer radius has norm
    |w·max_norms|, which is set to 1. Lagrange multipliers give w² ~ sqrt(likelihood_cost)/max_norms in l2 and
    w³ ~ likelihood_cost/max_norms in l1.
    """
    likelihood_cost = np.array([1.0, d / 2, d * (d + 1) / 8, 1 / 4])
    beyond = max((outer - squared) / math.sqrt(d), 1e-6)
    if in_l2:
        max_norms = np.array([1.0, math.sqrt(squared), squared, beyond])
        weights = np.sqrt(np.sqrt(likelihood_cost) / max_norms)
        return np.asarray(weights / np.linalg.norm(weights * max_norms))
    max_norms = np.array([1.0, math.sqrt(d * squared), squared * (1 + (d - 1) / math.sqrt(2)), beyond])
    weights = np.cbrt(likelihood_cost / max_norms)
    return np.asarray(weights / (weights @ max_norms))


class ComponentMoments(NamedTuple):
    """The released size of a component, its mean whitened moments, and the mean squared norm beyond the radius."""

    size: float
    mean: np.ndarray
    second_moment: np.ndarray
    beyond: float


def component_moments(sums: np.ndarray, d: int, clip: ClipEffect) -> ComponentMoments:
    """Return one component's moments from its block of the released sums."""
    i, j = np.tril_indices(d)
    share, first, second, beyond = clip.block_weights
    size = max(float(sums[0] / share), 1.0)
    matrix = np.zeros((d, d))
    matrix[i, j] = matrix[j, i] = sums[1 + d : -1] * np.where(i == j, 1.0, math.sqrt(0.5)) / (second * size)
    return ComponentMoments(
        size, sums[1 : 1 + d] / (first * size), matrix, math.sqrt(d) * float(sums[-1]) / (beyond * size)
    )


def shrunken_update(moments: ComponentMoments, sd: float, clip: ClipEffect) -> tuple[np.ndarray, np.ndarray]:
    """Return the change of mean and covariance in whitened units, shrunk according to the noise."""
    d = len(moments.mean)
    _, mean_noise, shape_noise, beyond_noise = sd / (clip.block_weights * moments.size)
    shift, mean_noise = moments.mean / clip.mean_factor, mean_noise / clip.mean_factor
    excess = moments.second_moment - np.outer(moments.mean, moments.mean) - clip.variance_factor * np.eye(d)
    spherical = float(np.trace(excess)) / d
    shape = (excess - spherical * np.eye(d)) / clip.shape_factor
    spherical /= clip.trace_factor
    growth = shape + spherical * np.eye(d)
    i, j = np.tril_indices(d)
    growth *= james_stein_factor(np.where(i == j, 1.0, math.sqrt(2)) * growth[i, j], shape_noise / clip.shape_factor)
    tails = moments.beyond / d - clip.beyond_variance - spherical * clip.beyond_factor
    tails_noise = beyond_noise / math.sqrt(d)
    tails *= max(0.0, 1 - _SIGNIFICANT * (tails_noise / max(abs(tails), 1e-300)) ** 2)
    return shift * james_stein_factor(shift, mean_noise), growth + tails * np.eye(d)


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
