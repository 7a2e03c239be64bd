"""Densities of and samples from a mixture, given its parameters."""

import math

import numpy as np
from scipy.linalg import solve_triangular

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")


def log_densities(points: np.ndarray, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    """Return ln(weight·density) of each point under each component: (n, K), for full covariances (K, d, d).

    >>> one = log_densities(np.zeros((1, 1)), np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1)))
    >>> float(one[0, 0].round(4))
    -0.9189
    """
    n, d = points.shape
    densities = np.empty((n, len(weights)))
    for k, (weight, mean, covariance) in enumerate(zip(weights, means, covariances, strict=True)):
        factor = np.linalg.cholesky(covariance)
        white = solve_triangular(factor, (points - mean).T, lower=True)
        height = math.log(weight) - np.log(np.diagonal(factor)).sum() - d * math.log(2 * math.pi) / 2
        densities[:, k] = height - (white * white).sum(axis=0) / 2
    return densities


def to_full_covariances(covariances: np.ndarray, covariance_type: str, n_components: int, d: int) -> np.ndarray:
    """Return covariances of any type as matrices, one per component."""
    if covariance_type == "full":
        return covariances
    if covariance_type == "tied":
        return np.tile(covariances, (n_components, 1, 1))
    diagonals = covariances if covariance_type == "diag" else np.repeat(covariances[:, np.newaxis], d, axis=1)
    return np.asarray(diagonals[:, :, np.newaxis] * np.eye(d))


def to_covariance_type(covariances: np.ndarray, weights: np.ndarray, covariance_type: str) -> np.ndarray:
    """Return full covariances in the form of a covariance type, by averaging or dropping entries.

    >>> to_covariance_type(np.array([[[4.0, 1.0], [1.0, 2.0]]]), np.ones(1), "spherical")
    array([3.])
    """
    diagonals = np.diagonal(covariances, axis1=1, axis2=2)
    match covariance_type:
        case "full":
            return covariances
        case "tied":
            return np.asarray(np.average(covariances, axis=0, weights=weights))
        case "diag":
            return diagonals.copy()
        case "spherical":
            return np.asarray(diagonals.mean(axis=1))
    raise ValueError(
        f"covariance_type must be one of {', '.join(map(repr, COVARIANCE_TYPES))}, not {covariance_type!r}"
    )


def sample_mixture(
    count: int, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return points sampled from a mixture with full covariances, and the component of each."""
    labels = np.repeat(np.arange(len(weights)), rng.multinomial(count, weights))
    factors = np.linalg.cholesky(covariances)
    offsets = np.einsum("nij,nj->ni", factors[labels], rng.standard_normal((count, means.shape[1])))
    return means[labels] + offsets, labels
