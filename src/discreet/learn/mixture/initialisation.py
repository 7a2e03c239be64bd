"""Initial mixtures: several candidates from released tables, of which the best is kept. This is post-processing.

Artificial points are sampled whose pairs of columns follow the noisy tables; ordinary mixtures fitted to these points
are the candidates; the composite likelihood of the tables refines and ranks them.
"""

import math
import warnings
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from discreet.learn.mixture.composite_likelihood import (
    Mixtures,
    mixtures_log_likelihood,
    parameter_layout,
    refine_mixtures,
)
from discreet.learn.mixture.marginals import MarginalTables
from discreet.learn.mixture.shrinkage import floor_eigenvalues

_GUESSES, _SURVIVORS = 6, 2  # candidates, and how many of them are refined further
_FIRST_STEPS, _SURVIVOR_STEPS, _FINE_STEPS = 6, 12, 8  # steps of all candidates, of the survivors, and with finer cells
_MIN_ARTIFICIAL_POINTS = 1000
_GIBBS_SWEEPS = 3
_EFFECTIVE_COLUMNS = 2.5  # the other columns are not independent: together they are as informative as this many
_MIN_CELL_VARIANCES = 0.3  # minimum variance of a component, in cell variances
_CHANCE_GAIN = 0.3  # log-likelihood that a parameter gains by chance; the prior keeps it below 1/2
_COARSE_CELLS = 4096  # approximate number of cells in all tables for the candidates


class InitialMixture(NamedTuple):
    """A mixture in window units, less the cell variance, and its penalised log-likelihood."""

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
    mixtures = _initial_guesses(coarse, components, rng)
    prior = np.diag(np.einsum("rkii,rk->i", mixtures.covariances, mixtures.sizes) / mixtures.sizes.sum())
    mixtures, log_likelihoods = refine_mixtures(coarse, mixtures, prior, _FIRST_STEPS)
    mixtures, log_likelihoods = refine_mixtures(
        coarse, mixtures.select(np.argsort(-log_likelihoods)[:_SURVIVORS]), prior, _SURVIVOR_STEPS
    )
    if coarse is not tables:
        sharper = floor_eigenvalues(
            mixtures.covariances - (coarse.cell_variance - tables.cell_variance) * np.eye(tables.n_columns),
            1.5 * tables.cell_variance,
        )
        mixtures, log_likelihoods = refine_mixtures(tables, mixtures._replace(covariances=sharper), prior, _FINE_STEPS)
    best = int(np.argmax(log_likelihoods))
    sizes, means, blurred = mixtures.select(np.array([best]))
    covariances = floor_eigenvalues(
        blurred[0] - tables.cell_variance * np.eye(tables.n_columns), _MIN_CELL_VARIANCES * tables.cell_variance
    )
    return InitialMixture(
        sizes[0] / sizes.sum(), means[0], covariances, _evidence(tables, Mixtures(sizes, means, blurred))
    )


def _coarse_side(tables: MarginalTables) -> int:
    """Return the number of cells per side for the candidates."""
    side = tables.side
    while side > 16 and side ** len(tables.marginals[0]) * len(tables.marginals) > _COARSE_CELLS:
        side //= 2
    return side


def _initial_guesses(tables: MarginalTables, components: int, rng: np.random.Generator) -> Mixtures:
    """Return ordinary mixtures fitted to artificial points, with different random starts."""
    diagonal = parameter_layout(tables, components).diagonal
    points = artificial_points(tables, max(_MIN_ARTIFICIAL_POINTS, 20 * components), rng)
    guesses = []
    for _ in range(_GUESSES):
        guess = GaussianMixture(
            components,
            covariance_type="diag" if diagonal else "full",
            init_params="k-means++",
            reg_covar=2 * tables.cell_variance,
            max_iter=30,
            random_state=int(rng.integers(1 << 31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # candidates need not converge
            guess.fit(points)
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
    return Mixtures(weights / weights.sum(axis=1, keepdims=True) * tables.total, means, covariances)


def artificial_points(tables: MarginalTables, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return points, (count, d), whose marginals follow the tables above the noise."""
    side, d = tables.side, tables.n_columns
    masses = np.maximum(tables.counts - tables.sd, 0) + 1e-3 * tables.total / tables.counts.shape[1]
    masses /= masses.sum(axis=1, keepdims=True)
    cells = (
        rng.choice(side, (count, 1), p=masses[0])
        if d == 1
        else _gibbs_sample(_pair_tables(tables, masses), d, count, rng)
    )
    return np.asarray((cells + rng.random((count, d))) / side - 0.5)


def _pair_tables(tables: MarginalTables, masses: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """Return the table of each ordered pair of columns."""
    square = masses.reshape(-1, tables.side, tables.side)
    forward = dict(zip(tables.marginals, square, strict=True))
    return {
        (i, j): forward[i, j] if (i, j) in forward else forward[j, i].T for i, j in _ordered_pairs(tables.marginals)
    }


def _ordered_pairs(marginals: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    return [(i, j) for i, j in marginals] + [(j, i) for i, j in marginals]


def _gibbs_sample(
    pair_tables: dict[tuple[int, int], np.ndarray], d: int, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return cells, (count, d), by Gibbs sampling: each column given the others, by its pair tables."""
    partners = {j: [i for i, other in pair_tables if other == j] for j in range(d)}
    column_shares = np.array([np.mean([pair_tables[j, i].sum(axis=1) for i in partners[j]], axis=0) for j in range(d)])
    log_ratios = {
        (i, j): np.log(pair_tables[i, j] / np.outer(column_shares[i], column_shares[j]) + 1e-6) for i, j in pair_tables
    }
    cells = np.zeros((count, d), np.int64)
    sampled_columns: set[int] = set()
    for sweep in range(_GIBBS_SWEEPS):
        for j in rng.permutation(d):
            conditions = [i for i in partners[j] if i in sampled_columns and i != j]
            logs = np.tile(np.log(column_shares[j]), (count, 1))
            for i in conditions:
                logs += min(1.0, _EFFECTIVE_COLUMNS / len(conditions)) * log_ratios[i, j][cells[:, i]]
            cumulative = np.exp(logs - logs.max(axis=1, keepdims=True)).cumsum(axis=1)
            sampled_cells = (cumulative < rng.random((count, 1)) * cumulative[:, -1:]).sum(axis=1)
            cells[:, j] = np.minimum(sampled_cells, column_shares.shape[1] - 1)
            sampled_columns.add(int(j))
        if d == 2 and sweep == 0:
            break  # a single pair is sampled exactly
    return cells
