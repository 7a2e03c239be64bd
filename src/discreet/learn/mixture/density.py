"""What a mixture says of points: densities, shares, and points of its own. It needs the parameters alone."""

import math

import numpy as np
from scipy.linalg import solve_triangular

KINDS = ("full", "tied", "diag", "spherical")


def log_densities(points: np.ndarray, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    """Return ln(weight·density) of every point under every component: (n, K), for full covariances (K, d, d).

    >>> one = log_densities(np.zeros((1, 1)), np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1)))
    >>> float(one[0, 0].round(4))
    -0.9189
    """
    n, d = points.shape
    found = np.empty((n, len(weights)))
    for k, (weight, mean, covariance) in enumerate(zip(weights, means, covariances, strict=True)):
        factor = np.linalg.cholesky(covariance)
        white = solve_triangular(factor, (points - mean).T, lower=True)
        height = math.log(weight) - np.log(np.diagonal(factor)).sum() - d * math.log(2 * math.pi) / 2
        found[:, k] = height - (white * white).sum(axis=0) / 2
    return found


def as_full(covariances: np.ndarray, kind: str, components: int, d: int) -> np.ndarray:
    """Return covariances of any kind as matrices, one for each component."""
    if kind == "full":
        return covariances
    if kind == "tied":
        return np.tile(covariances, (components, 1, 1))
    diagonals = covariances if kind == "diag" else np.repeat(covariances[:, np.newaxis], d, axis=1)
    return np.asarray(diagonals[:, :, np.newaxis] * np.eye(d))


def of_kind(covariances: np.ndarray, weights: np.ndarray, kind: str) -> np.ndarray:
    """Return full covariances in the shape of a kind; what a kind has no room for is averaged or left out.

    >>> of_kind(np.array([[[4.0, 1.0], [1.0, 2.0]]]), np.ones(1), "spherical")
    array([3.])
    """
    diagonals = np.diagonal(covariances, axis1=1, axis2=2)
    match kind:
        case "full":
            return covariances
        case "tied":
            return np.asarray(np.average(covariances, axis=0, weights=weights))
        case "diag":
            return diagonals.copy()
        case "spherical":
            return np.asarray(diagonals.mean(axis=1))
    raise ValueError(f"covariance_type must be one of {', '.join(map(repr, KINDS))}, not {kind!r}")


def sampled(
    count: int, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a mixture with full covariances, and the component of each."""
    labels = np.repeat(np.arange(len(weights)), rng.multinomial(count, weights))
    factors = np.linalg.cholesky(covariances)
    spread = np.einsum("nij,nj->ni", factors[labels], rng.standard_normal((count, means.shape[1])))
    return means[labels] + spread, labels
