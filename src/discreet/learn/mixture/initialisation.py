"""Initial mixtures: several candidates from released tables, of which the best is kept. This is post-processing.

Artificial points are sampled whose pairs of columns follow the noisy tables; ordinary mixtures fitted to these points
are the candidates; the composite likelihood of the tables refines and ranks them. Then components of the best one are
moved elsewhere, as long as that is better. In the end the mixture is fitted to the counts that it expects, corrected
where the tables differ significantly: a few units far from all components cost much likelihood, but hide in the noise.
"""

import math
import warnings
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from discreet.learn.mixture.artificial_points import PlacedPoints, artificial_points
from discreet.learn.mixture.composite_likelihood import (
    Mixtures,
    expected_counts,
    mixtures_log_likelihood,
    parameter_layout,
    refine_mixtures,
)
from discreet.learn.mixture.marginals import MIN_VARIANCE, MarginalTables, denoise

_GUESSES = 6  # candidates to begin with
_RELOCATIONS, _CANDIDATES = 4, 8  # times that the best candidate is varied, and its variants
_NEIGHBOUR_SHARES = (0.02, 0.05, 0.15)  # of the artificial points, from which a relocated component begins
_CORRECTIONS, _CORRECTION_STEPS = 2, 6  # fits to corrected counts, and their steps
_FIRST_STEPS, _FINE_STEPS = 6, 10  # steps of all candidates; of the best one, also with finer cells
_MIN_ARTIFICIAL_POINTS = 1000
_CHANCE_GAIN = 0.3  # log-likelihood that a parameter gains by chance; the prior keeps it below 1/2
_COARSE_CELLS = 4096  # approximate number of cells in all tables for the candidates


class InitialMixture(NamedTuple):
    """A mixture in the unit cube, and its penalised log-likelihood."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    evidence: float


def best_initial_mixture(tables: MarginalTables, candidates: Collection[int]) -> InitialMixture:
    """Return the best mixture over the candidate numbers of components, by evidence."""
    with threadpool_limits(1, "blas"):  # the matrices are too small for threads
        return max(
            (_initial_mixture(tables, components) for components in candidates), key=lambda start: start.evidence
        )


def _evidence(tables: MarginalTables, mixture: Mixtures) -> float:
    """Return the log-likelihood of the tables less the gain expected by chance.

    Every unit is in all tables, so the sampling errors of the tables are correlated: where they exceed the noise, the
    gain by chance grows up to the number of tables per column.
    """
    per_cell = tables.total / tables.counts.shape[1]
    tables_per_column = max(tables.n_columns - 1, 1)
    inflation = (tables.sd**2 + tables_per_column * per_cell) / (tables.sd**2 + per_cell)
    components = mixture.sizes.shape[1]
    # The best of many positions for a component, and parameters that fit the noise there.
    chance_gain = components * (
        math.log(tables.counts.shape[1]) / 2 + _CHANCE_GAIN * parameter_layout(tables, components).n_parameters
    )
    return float(mixtures_log_likelihood(tables, mixture)[0] - inflation * chance_gain)


def _initial_mixture(tables: MarginalTables, components: int) -> InitialMixture:
    rng = np.random.default_rng(list(tables.counts.tobytes()[:4096]))  # deterministic, given the tables
    coarse = tables.coarsen(_coarse_side(tables))
    artificial = artificial_points(coarse, max(_MIN_ARTIFICIAL_POINTS, 20 * components), rng)
    best = _refined_best(coarse, _initial_guesses(coarse, components, artificial, rng), _FIRST_STEPS)
    for _ in range(min(_RELOCATIONS, components - 1)):
        trial = _refined_best(coarse, _with_relocated_components(coarse, best.mixture, artificial, rng), _FIRST_STEPS)
        best = max(best, trial, key=lambda candidate: candidate.log_likelihood)
    best = _refined_best(coarse, best.mixture, _FINE_STEPS)
    if coarse is not tables:
        best = _refined_best(tables, best.mixture, _FINE_STEPS)
    for _ in range(_CORRECTIONS):
        (expected,) = expected_counts(tables, best.mixture)
        denoised = replace(tables, counts=denoise(tables, expected), sd=0.0)
        best = _refined_best(denoised, best.mixture, _CORRECTION_STEPS)
    (sizes,), (means,), (covariances,) = best.mixture
    return InitialMixture(sizes / sizes.sum(), means, covariances, _evidence(tables, best.mixture))


class _Candidate(NamedTuple):
    """A single refined mixture and its penalised log-likelihood."""

    mixture: Mixtures
    log_likelihood: float


def _refined_best(tables: MarginalTables, mixtures: Mixtures, steps: int) -> _Candidate:
    """Return the best of several mixtures after so many steps; their covariances are the prior ones."""
    mixtures, log_likelihoods = refine_mixtures(tables, mixtures, mixtures.covariances, steps)
    best = int(np.argmax(log_likelihoods))
    return _Candidate(mixtures.select(np.array([best])), float(log_likelihoods[best]))


def _with_relocated_components(
    tables: MarginalTables, mixture: Mixtures, artificial: PlacedPoints, rng: np.random.Generator
) -> Mixtures:
    """Return copies of a mixture in each of which a component has moved to an artificial point and its neighbours."""
    points, positions = artificial
    copies = Mixtures(*(np.repeat(part, _CANDIDATES, axis=0) for part in mixture))
    components, d = mixture.means.shape[1:]
    for sizes, means, covariances in zip(*copies, strict=True):
        share = rng.choice(_NEIGHBOUR_SHARES)
        distances = ((positions - positions[rng.integers(len(points))]) ** 2).sum(axis=1)
        nearest = points[np.argsort(distances)[: max(int(share * len(points)), 2 * d)]]
        moved = rng.integers(components)
        sizes[moved] = share * sizes.sum()
        means[moved] = nearest.mean(axis=0)
        covariances[moved] = np.cov(nearest.T).reshape(d, d) + tables.cell_variances(means[moved]) * np.eye(d)
    return copies


def _coarse_side(tables: MarginalTables) -> int:
    """Return the number of cells per side for the candidates."""
    side = tables.side
    while side > 16 and side ** len(tables.marginals[0]) * len(tables.marginals) > _COARSE_CELLS:
        side //= 2
    return side


def _initial_guesses(
    tables: MarginalTables, components: int, artificial: PlacedPoints, rng: np.random.Generator
) -> Mixtures:
    """Return ordinary mixtures fitted to artificial points, from clusters of the points or of their cells."""
    diagonal = parameter_layout(tables, components).diagonal
    guesses = []
    for index in range(_GUESSES):
        guess = GaussianMixture(
            components,
            covariance_type="diag" if diagonal else "full",
            init_params="k-means++",
            reg_covar=MIN_VARIANCE,
            max_iter=30,
            random_state=int(rng.integers(1 << 31)),
        )
        if index % 2:
            weights, means, precisions = _moments_of_clusters(artificial, components, int(rng.integers(1 << 31)))
            precisions = np.diagonal(precisions, axis1=1, axis2=2) if diagonal else precisions
            guess.set_params(weights_init=weights, means_init=means, precisions_init=precisions)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # candidates need not converge
            guess.fit(artificial.points)
        covariances = guess.covariances_
        guesses.append(
            (
                guess.weights_,
                guess.means_,
                covariances[..., np.newaxis] * np.eye(tables.n_columns) if diagonal else covariances,
            )
        )
    weights, means, covariances = (np.array(part) for part in zip(*guesses, strict=True))
    weights = np.maximum(weights, 0.1 / components)
    covariances += tables.cell_variances(means)[..., np.newaxis] * np.eye(tables.n_columns)
    return Mixtures(weights / weights.sum(axis=1, keepdims=True) * tables.total, means, covariances)


def _moments_of_clusters(artificial: PlacedPoints, components: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return weights, means and precisions of clusters of the points' positions in cells."""
    points, positions = artificial
    labels = KMeans(components, n_init=1, max_iter=20, random_state=seed).fit_predict(positions)
    d = points.shape[1]
    members = [points[labels == k] for k in range(components)]
    covariances = [
        np.cov((cluster if len(cluster) > d else points).T).reshape(d, d) + MIN_VARIANCE * np.eye(d)
        for cluster in members
    ]
    weights = np.array([len(cluster) for cluster in members]) / len(points)
    return weights, np.array([cluster.mean(axis=0) for cluster in members]), np.linalg.inv(covariances)
