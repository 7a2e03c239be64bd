"""Mixtures fitted to noisy marginal tables by a composite likelihood that accounts for the noise.

A cell with m expected units has a noisy count of mean m and variance m + sd², like a Poisson variable of mean m + sd²
from which sd² is subtracted. The likelihood of such variables is maximised by the Levenberg-Marquardt method, for
several mixtures at once. This is post-processing of
released tables. Steps are taken in each component's whitened units; so covariances stay positive definite, and the
damping has the same meaning for components of any size and shape.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from discreet.learn.mixture.cell_moments import cell_moments
from discreet.learn.mixture.marginals import MIN_VARIANCE, MarginalTables
from discreet.learn.mixture.shrinkage import floor_eigenvalues, grow_covariances, transpose_matrices

_MAX_PARAMETERS = 600  # with more, the initial covariances are diagonal
_MIN_EXPECTED = 1e-200  # units per cell
_PRIOR_DEGREES = 30.0  # degrees of freedom of the prior on each covariance, in units


class Mixtures(NamedTuple):
    """R mixtures: (R, K) sizes in units, (R, K, d) means, (R, K, d, d) covariances."""

    sizes: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    def select(self, which: np.ndarray) -> "Mixtures":
        """Return the mixtures at these indices."""
        return Mixtures(self.sizes[which], self.means[which], self.covariances[which])


@dataclass(frozen=True)
class ParameterLayout:
    """The free parameters of a component, and the positions of those that each marginal depends on."""

    tables: MarginalTables
    n_components: int
    diagonal: bool

    @property
    def covariance_entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column indices of the free covariance entries, in the lower triangle."""
        indices = np.arange(self.tables.n_columns)
        return (indices, indices) if self.diagonal else np.tril_indices(self.tables.n_columns)

    @property
    def n_parameters(self) -> int:
        """Number of parameters of one component: size, mean, covariance."""
        return 1 + self.tables.n_columns + len(self.covariance_entries[0])

    @property
    def marginal_entries(self) -> list[tuple[int, int]]:
        """The free entries of a marginal's covariance."""
        r = len(self.tables.marginals[0])
        return [(i, j) for i in range(r) for j in range(i + 1) if i == j or not self.diagonal]

    @cached_property
    def parameter_positions(self) -> np.ndarray:
        """Positions of the parameters of each marginal: (marginals, K · parameters per marginal)."""
        d = self.tables.n_columns
        entry_position = {
            (int(i), int(j)): 1 + d + index for index, (i, j) in enumerate(zip(*self.covariance_entries, strict=True))
        }
        within = [
            [
                0,
                *(1 + column for column in marginal),
                *(
                    entry_position[max(marginal[i], marginal[j]), min(marginal[i], marginal[j])]
                    for i, j in self.marginal_entries
                ),
            ]
            for marginal in self.tables.marginals
        ]
        first = np.arange(self.n_components) * self.n_parameters
        return np.asarray((first[:, np.newaxis] + np.array(within)[:, np.newaxis]).reshape(len(within), -1))


def parameter_layout(tables: MarginalTables, n_components: int) -> ParameterLayout:
    """Return the layout with full covariances, or with diagonal ones if there are too many parameters."""
    full = ParameterLayout(tables, n_components, diagonal=False)
    return (
        full
        if n_components * full.n_parameters <= _MAX_PARAMETERS
        else ParameterLayout(tables, n_components, diagonal=True)
    )


class _ExpectedTables(NamedTuple):
    """Expected tables of mixtures, (R, V, K, cells), and the mean score of the units in a cell for each parameter."""

    expected: np.ndarray
    residuals: np.ndarray  # (R, V, K, r, cells): precision · deviation, the score of the mean
    curvatures: np.ndarray  # (R, V, K, entries, cells): the score of the covariance


def _expected_tables(layout: ParameterLayout, mixtures: Mixtures) -> _ExpectedTables:
    tables = layout.tables
    marginals = np.array(tables.marginals)
    means = mixtures.means[..., marginals].swapaxes(1, 2)  # (R, V, K, r)
    covariances = mixtures.covariances[..., marginals[:, :, np.newaxis], marginals[:, np.newaxis, :]].swapaxes(1, 2)
    precisions = np.linalg.inv(covariances)
    moments = cell_moments(tables.marginal_edges, means, covariances)
    residuals = precisions @ moments.deviations
    whitened = np.einsum("...ia,...abc,...bj->...ijc", precisions, moments.covariances, precisions, optimize=True)
    curvatures = []
    for i, j in layout.marginal_entries:
        both = residuals[..., i, :] * residuals[..., j, :] + whitened[..., i, j, :] - precisions[..., i, j, np.newaxis]
        curvatures.append(both / 2 if i == j else both)
    sizes = mixtures.sizes[:, np.newaxis, :, np.newaxis]
    return _ExpectedTables(sizes * moments.masses, residuals, np.stack(curvatures, axis=-2))


def tables_log_likelihood(tables: MarginalTables, expected: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of the noisy counts given expected units (…, V, cells), up to a constant."""
    variance = tables.sd**2
    return np.asarray(
        (tables.shifted_counts * np.log(expected + variance + _MIN_EXPECTED) - expected).sum(axis=(-1, -2))
    )


def mixtures_log_likelihood(tables: MarginalTables, mixtures: Mixtures) -> np.ndarray:
    """Return the log-likelihood of each mixture, without the prior."""
    return tables_log_likelihood(tables, expected_counts(tables, mixtures))


def expected_counts(tables: MarginalTables, mixtures: Mixtures) -> np.ndarray:
    """Return the expected tables of each mixture: (R, V, cells)."""
    layout = parameter_layout(tables, mixtures.means.shape[1])
    return np.asarray(_expected_tables(layout, mixtures).expected.sum(axis=-2))


def refine_mixtures(
    tables: MarginalTables, mixtures: Mixtures, prior: np.ndarray, steps: int
) -> tuple[Mixtures, np.ndarray]:
    """Return the mixtures after `steps` ascent steps, and their objectives; the covariances have the modes `prior`."""
    layout = parameter_layout(tables, mixtures.means.shape[1])
    damping = np.full(len(mixtures.sizes), 0.03)
    expected = _expected_tables(layout, mixtures)
    objective = tables_log_likelihood(tables, expected.expected.sum(axis=-2)) + _log_prior(mixtures.covariances, prior)
    for _ in range(steps):
        trial = _damped_step(layout, mixtures, expected, prior, damping)
        trial_expected = _expected_tables(layout, trial)
        trial_objective = tables_log_likelihood(tables, trial_expected.expected.sum(axis=-2)) + _log_prior(
            trial.covariances, prior
        )
        better = trial_objective > objective
        mixtures = Mixtures(*(_where_better(better, new, old) for new, old in zip(trial, mixtures, strict=True)))
        expected = _ExpectedTables(
            *(_where_better(better, new, old) for new, old in zip(trial_expected, expected, strict=True))
        )
        objective = np.where(better, trial_objective, objective)
        damping = np.clip(np.where(better, damping * 0.3, damping * 6), 1e-7, 1e4)
    return mixtures, objective


def _where_better(better: np.ndarray, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    return np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def _log_prior(covariances: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return the log-density of covariances under inverse Wishart priors with modes `prior`, less the maximum."""
    ratios = np.linalg.solve(covariances, prior)
    excess = np.trace(ratios, axis1=-2, axis2=-1) - np.linalg.slogdet(ratios)[1] - covariances.shape[-1]
    return np.asarray(-_PRIOR_DEGREES / 2 * excess.sum(axis=-1))


def _damped_step(
    layout: ParameterLayout, mixtures: Mixtures, expected: _ExpectedTables, prior: np.ndarray, damping: np.ndarray
) -> Mixtures:
    """Return the mixtures after one damped step."""
    curvature, gradient = _normal_equations(layout, expected)
    runs, components, d = mixtures.means.shape
    factors = np.linalg.cholesky(mixtures.covariances)
    white = np.linalg.inv(factors)
    to_white = _whitening_jacobian(layout, white)
    target = white @ prior @ transpose_matrices(white) - np.eye(d)
    i, j = layout.covariance_entries
    prior_gradient = _PRIOR_DEGREES / 2 * np.where(i == j, 1.0, np.sqrt(2)) * target[..., i, j]
    damping_diagonal = np.full((runs, layout.n_parameters), 0.0)
    damping_diagonal[:, 1 + d :] = _PRIOR_DEGREES / 2
    scale = curvature[:, :: layout.n_parameters, :: layout.n_parameters].diagonal(axis1=1, axis2=2).mean(axis=1)
    damping_diagonal += (damping * scale + 1e-9)[:, np.newaxis]
    for k in range(components):
        block = slice(k * layout.n_parameters, (k + 1) * layout.n_parameters)
        from_white = transpose_matrices(to_white[:, k])
        curvature[:, block, block] += (from_white * damping_diagonal[:, np.newaxis]) @ to_white[:, k]
        gradient[:, block] += (from_white[..., 1 + d :] @ prior_gradient[:, k, :, np.newaxis])[..., 0]
    change = np.linalg.solve(curvature, gradient[..., np.newaxis]).reshape(runs, components, -1, 1)
    return _apply_change(layout, mixtures, factors, (to_white @ change)[..., 0])


def _normal_equations(layout: ParameterLayout, expected_tables: _ExpectedTables) -> tuple[np.ndarray, np.ndarray]:
    """Return JᵀWJ and JᵀW(counts - expected), with J the Jacobian of the cells by the parameters."""
    tables, (expected, residuals, curvatures) = layout.tables, expected_tables
    jacobian = np.concatenate([np.ones_like(expected)[..., np.newaxis, :], residuals, curvatures], axis=-2)
    jacobian *= expected[..., np.newaxis, :]
    jacobian = jacobian.reshape(*expected.shape[:2], -1, expected.shape[-1])
    total_expected = expected.sum(axis=-2)
    weights = 1 / (tables.sd**2 + total_expected + _MIN_EXPECTED)
    squares = (jacobian * weights[:, :, np.newaxis]) @ transpose_matrices(jacobian)
    gradients = (jacobian @ (weights * tables.shifted_counts - 1)[..., np.newaxis])[..., 0]
    size = layout.n_components * layout.n_parameters
    curvature, gradient = np.zeros((len(expected), size, size)), np.zeros((len(expected), size))
    for marginal, positions in enumerate(layout.parameter_positions):
        curvature[:, positions[:, np.newaxis], positions] += squares[:, marginal]
        gradient[:, positions] += gradients[:, marginal]
    return curvature, gradient


def _whitening_jacobian(layout: ParameterLayout, white: np.ndarray) -> np.ndarray:
    """Return the matrix that maps changes of a component's parameters to its whitened units."""
    d, (i, j) = layout.tables.n_columns, layout.covariance_entries
    a, b = i[:, np.newaxis], j[:, np.newaxis]
    out = np.zeros((*white.shape[:2], layout.n_parameters, layout.n_parameters))
    out[..., 0, 0] = 1
    out[..., 1 : 1 + d, 1 : 1 + d] = white
    symmetric_products = white[..., a, i] * white[..., b, j] + white[..., a, j] * white[..., b, i]
    out[..., 1 + d :, 1 + d :] = symmetric_products * np.where(i == j, 0.5, 1.0) * np.where(a == b, 1.0, np.sqrt(2))
    return out


def _apply_change(layout: ParameterLayout, mixtures: Mixtures, factors: np.ndarray, change: np.ndarray) -> Mixtures:
    """Return the mixtures after a change in whitened units, limited in size."""
    d, (i, j) = layout.tables.n_columns, layout.covariance_entries
    sizes = np.maximum(mixtures.sizes * np.exp(np.clip(change[..., 0], -1, 1)), 1e-3)
    shift = change[..., 1 : 1 + d]
    shift = shift / np.maximum(np.linalg.norm(shift, axis=-1, keepdims=True), 1)
    means = np.clip(mixtures.means + (factors @ shift[..., np.newaxis])[..., 0], 0, 1)
    growth = np.zeros(mixtures.covariances.shape)
    growth[..., i, j] = growth[..., j, i] = np.where(i == j, 1.0, np.sqrt(0.5)) * np.clip(change[..., 1 + d :], -4, 4)
    covariances = floor_eigenvalues(grow_covariances(factors, growth), MIN_VARIANCE)
    return Mixtures(sizes, means, covariances)
