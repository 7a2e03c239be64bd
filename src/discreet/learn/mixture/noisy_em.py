"""EM on noisy rows that knows the covariance of the noise: the maximum likelihood of the rows without noise.

The noise is spherical, so a component of the noisy rows has its own covariance plus a multiple of the identity. The
M-step is exact: of all covariances of this form, the likeliest has the eigenvectors of the sample covariance, and its
eigenvalues where they exceed the variance of the noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from discreet.learn.mixture.density import log_densities
from discreet.learn.mixture.dp_em import GaussianMixtureParameters

_SAMPLE_ROWS, _SAMPLE_ITERATIONS = 4000, 60  # to choose among the starts
_MAX_ITERATIONS, _MIN_GAIN = 300, 1e-6  # of the mean log-likelihood
_SIMULATIONS = 3  # of rows of a single component


@dataclass(frozen=True)
class NoiseModel:
    """What EM knows: the variance of the noise in each column, how to draw it, and a component's least variance."""

    variance: float
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    floor: float

    def without_noise(self, covariances: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the likeliest covariances of the rows without noise, from those of noisy rows."""
        # A variance below the sampling error of the noise is not resolved.
        errors = self.variance * np.sqrt(2 / np.maximum(sizes, 2))
        values, vectors = np.linalg.eigh(covariances)  # spherical noise adds equally to every eigenvalue
        kept = np.clip(values - self.variance, np.clip(errors, self.floor, 1.0)[:, None], 1.0)
        return np.asarray((vectors * kept[:, None, :]) @ vectors.transpose(0, 2, 1))


def fit_noisy_rows(
    noisy: np.ndarray, starts: Sequence[GaussianMixtureParameters], noise: NoiseModel
) -> GaussianMixtureParameters:
    """Return the mixture of the rows without noise, from the best start; a single component if no more are resolved.

    More components also fit noise that is not Gaussian. So they have to gain more likelihood than on simulated rows of
    the single component with the same noise (McLachlan's bootstrap).
    """
    with threadpool_limits(1, "blas"):  # the matrices are too small for threads
        several, single, gain = _compare_with_single(noisy, starts, noise)
        rng = np.random.default_rng()
        for _ in range(_SIMULATIONS if len(several.weights) > 1 else 0):
            rows = rng.multivariate_normal(single.means[0], single.covariances[0], len(noisy))
            if gain <= _compare_with_single(rows + noise.draw(rng, rows.shape), starts, noise)[2]:
                return single
    return several


def _compare_with_single(
    noisy: np.ndarray, starts: Sequence[GaussianMixtureParameters], noise: NoiseModel
) -> tuple[GaussianMixtureParameters, GaussianMixtureParameters, float]:
    """Return the mixture from the best start, a single component, and the gain in log-likelihood per row."""
    d = noisy.shape[1]
    tried = [_run_em(noisy[:_SAMPLE_ROWS], start, noise, _SAMPLE_ITERATIONS) for start in starts]
    several, score = _run_em(noisy, max(tried, key=lambda each: each[1])[0], noise, _MAX_ITERATIONS)
    anywhere = GaussianMixtureParameters(np.ones(1), np.zeros((1, d)), np.eye(d)[None])
    single, single_score = _run_em(noisy, anywhere, noise, 1)
    return several, single, score - single_score


def _run_em(
    noisy: np.ndarray, start: GaussianMixtureParameters, noise: NoiseModel, iterations: int
) -> tuple[GaussianMixtureParameters, float]:
    """Return the mixture after EM, and the mean log-likelihood of the noisy rows."""
    current, before = start, -np.inf
    logs, score = _densities(noisy, current, noise)
    for _ in range(iterations):
        if score - before < _MIN_GAIN:
            break
        current, before = _maximise(noisy, np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), noise), score
        logs, score = _densities(noisy, current, noise)
    return current, score


def _densities(noisy: np.ndarray, mixture: GaussianMixtureParameters, noise: NoiseModel) -> tuple[np.ndarray, float]:
    convolved = mixture.covariances + noise.variance * np.eye(noisy.shape[1])
    logs = log_densities(noisy, mixture.weights, mixture.means, convolved)
    return logs, float(logsumexp(logs, axis=1).mean())


def _maximise(noisy: np.ndarray, shares: np.ndarray, noise: NoiseModel) -> GaussianMixtureParameters:
    sizes = shares.sum(axis=0) + 1e-9
    means = (shares.T @ noisy) / sizes[:, None]
    offsets = noisy[None] - means[:, None]  # components × rows × columns
    covariances = np.einsum("nk,kni,knj->kij", shares, offsets, offsets, optimize=True) / sizes[:, None, None]
    return GaussianMixtureParameters(sizes / sizes.sum(), means, noise.without_noise(covariances, sizes))
