"""Artificial points for k-means that have the rows' noisy tables of columns, and their noisy correlations.

Coordinates are scaled by asinh, which is linear near the mean and logarithmic far from it: tables have narrow cells in
the middle and wide ones far away, and no single row matters much for a correlation.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from discreet.kernel.model_release import Combine
from discreet.learn.bounds import BoundArrays
from discreet.learn.cell_sums import ArtificialPoints
from discreet.learn.decomposition import PrincipalAxes
from discreet.learn.fit_session import FitSession
from discreet.learn.moments import ColumnSummary, fill_pair_products, noise_norm, shrinkage_factor, symmetric_from_upper

_MAX_TABLES = 16
_MIN_DEVIATION = 0.02  # of a direction that has a table, relative to the largest
_CELLS = 64  # of a table
_POINTS = 4000
_FAR = 8.0  # in the largest typical deviation: a row that is so far out has its full weight in a table
_CLEAR, _MIN_INSIDE = 5.0, 1.0  # noise deviations above which a count is no noise, and above which it is kept inside
_USUAL_PRODUCT = 2 / np.pi  # of the absolute values of two normal coordinates
_MAX_NOISE, _MAX_RADIUS = 0.03, 10.0  # in the mean products, and in usual norms
_USUAL_CORRELATION = 0.3  # prior deviation
_MIN_VARIANCE = 0.05  # of a scaled coordinate
_SLACK = 1 + 2.0**-10  # so that rounding to the grid clips nothing


@dataclass(frozen=True)
class TableDirections:
    """The origin, the directions (columns × directions), and the typical deviations along them, the largest first."""

    origin: np.ndarray
    directions: np.ndarray
    deviations: np.ndarray

    @property
    def public(self) -> tuple[np.ndarray, np.ndarray]:
        """What a rule needs to compute scaled coordinates."""
        return self.origin, self.directions / self.deviations

    def largest(self, bounds: BoundArrays) -> np.ndarray:
        """Return the largest scaled coordinate that bounds allow along each direction."""
        farthest = np.maximum(bounds[1] - self.origin, self.origin - bounds[0])
        return np.asarray(np.arcsinh(np.maximum(np.abs(self.directions.T) @ farthest / self.deviations, 2.0)))


def directions_of_columns(summary: ColumnSummary) -> TableDirections:
    """Return the columns as directions: columns of integers and with many zeros are blurred by any rotation."""
    order = np.argsort(-summary.mean_abs_deviation)
    return _wide(summary.centre, np.eye(len(order))[:, order], summary.mean_abs_deviation[order])


def directions_of_axes(axes: PrincipalAxes) -> TableDirections:
    """Return the first principal axes as directions."""
    return _wide(axes.mean, axes.directions, axes.deviations)


def _wide(origin: np.ndarray, directions: np.ndarray, deviations: np.ndarray) -> TableDirections:
    q = min(int((deviations >= _MIN_DEVIATION * deviations[0]).sum()), _MAX_TABLES)
    return TableDirections(origin, directions[:, :q], deviations[:q])


def noisy_correlations(session: FitSession, count: float, directions: TableDirections) -> np.ndarray:
    """Return the noisy mean products of the scaled coordinates, shrunk according to the noise, from one release."""
    q = len(directions.deviations)
    first, second = np.triu_indices(q)
    usual = np.where(first == second, 1.0, 1.0 if session.is_gaussian else _USUAL_PRODUCT)
    radius = noise_norm(session, usual)
    radius *= float(np.clip(_MAX_NOISE * count / session.sd(radius), 1, _MAX_RADIUS))  # a larger one clips fewer rows
    noise = session.sd(radius) / count
    products = session.sum(_coordinate_products, directions.public, size=len(first), radius=radius) / count
    shrinkage = shrinkage_factor(np.full(1, _USUAL_CORRELATION), np.full(1, noise))
    return symmetric_from_upper(shrinkage * products, q)


def table_points(
    session: FitSession, bounds: BoundArrays, count: float, directions: TableDirections, products: np.ndarray | None
) -> ArtificialPoints:
    """Return points that follow a noisy table of each direction, from one release, and have these mean products.

    Without products, their coordinates are independent.
    """
    deviations, q = directions.deviations, len(directions.deviations)
    largest = directions.largest(bounds)
    step = 2 * largest / _CELLS
    edges = -largest[:, np.newaxis] + step[:, np.newaxis] * np.arange(_CELLS + 1)
    middles = (edges[:, 1:] + edges[:, :-1]) / 2
    weight, radius = _cell_weights(session, deviations, middles)
    sd = session.sd(radius) / weight
    public = *directions.public, -largest, step, weight
    counts = session.sparse_sum(_table_cells, public, size=q * _CELLS, radius=radius, combine=Combine.MEAN)
    masses = np.array([_filled_cells(*each) for each in zip(counts.reshape(q, -1) / weight, sd, strict=True)])
    shares = masses / masses.sum(axis=1, keepdims=True)
    correlations = np.eye(q) if products is None else _correlations(products, shares, middles)
    coordinates = np.empty((_POINTS, q))
    for a, scores in enumerate(_correlated_normals(correlations).T):
        ranks = (np.argsort(np.argsort(scores)) + 0.5) / _POINTS
        coordinates[:, a] = np.interp(ranks, np.append(0, np.cumsum(shares[a])), np.sinh(edges[a]))
    points = np.clip(directions.origin + coordinates * deviations @ directions.directions.T, *bounds)
    return ArtificialPoints(points, np.full(_POINTS, count / _POINTS))


def _cell_weights(session: FitSession, deviations: np.ndarray, middles: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the weight of a row in each cell, tables × cells, and the radius.

    Few rows are far out, but their squares matter, so that noise is least there. The radius is the norm of a row that
    is far out in one direction, and near the middle in the others.
    """
    power = 1 / 2 if session.is_gaussian else 2 / 3  # minimises the sum of the noise in the variances, at a given norm
    relative = deviations / deviations[0] / _FAR
    distances = relative[:, np.newaxis] * np.maximum(np.abs(np.sinh(middles)), 1)
    weight = np.minimum(distances, 1) ** power
    return weight, _SLACK * noise_norm(session, np.append(relative[1:] ** power, weight.max()))


def _correlations(products: np.ndarray, shares: np.ndarray, middles: np.ndarray) -> np.ndarray:
    """Return the correlations of coordinates with these mean products and these tables."""
    means = (shares * middles).sum(axis=1)
    variances = np.maximum((shares * (middles - means[:, np.newaxis]) ** 2).sum(axis=1), _MIN_VARIANCE)
    correlations = (products - np.outer(means, means)) / np.sqrt(np.outer(variances, variances))
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(np.clip(correlations, -1, 1))


def _correlated_normals(correlations: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(correlations)
    normals = np.random.default_rng(0).normal(size=(_POINTS, len(values)))  # post-processing: no secret seed
    return np.asarray(normals * np.sqrt(np.maximum(values, 0)) @ vectors.T)


def _filled_cells(counts: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Return the counts above the noise; beyond all clear ones, tails that do not increase outwards."""
    clear = np.flatnonzero(counts > _CLEAR * sd)
    first, last = (clear[0], clear[-1]) if len(clear) else (np.argmax(counts),) * 2
    masses = np.where(counts > _MIN_INSIDE * sd, counts, 0)
    masses[last + 1 :] = _tail(counts[last + 1 :], sd[last + 1 :])
    masses[:first] = _tail(counts[:first][::-1], sd[:first][::-1])[::-1]
    masses[first] = max(masses[first], np.finfo(float).tiny)
    return masses


def _tail(counts: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Return the decreasing counts that fit best, and zero where one standard error could explain them."""
    if not len(counts):
        return counts
    fit = isotonic_regression(counts, sample_weight=sd**-2, increasing=False)
    level = np.cumsum(np.diff(fit, prepend=fit[0]) != 0)
    errors = np.bincount(level, sd**-2)[level] ** -0.5
    return np.where(fit > errors, fit, 0)


def scaled_coordinates(rows: np.ndarray, origin: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return each row's scaled coordinates, directions × rows."""
    coordinates = np.zeros((directions.shape[1], len(rows)))
    for a, j in np.argwhere(directions.T):  # one by one: the rounding of a product of matrices depends on other rows
        coordinates[a] += (rows[:, j] - origin[j]) * directions[j, a]
    return np.arcsinh(coordinates, out=coordinates)


def _coordinate_products(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    coordinates = scaled_coordinates(rows, *public)
    out = np.empty((len(coordinates) * (len(coordinates) + 1) // 2, len(rows)))
    fill_pair_products(coordinates, out)
    return out.T


def _table_cells(rows: np.ndarray, public: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's cell in every table, and the weights of these cells."""
    origin, directions, low, step, weight = public
    cells = (scaled_coordinates(rows, origin, directions) - low[:, np.newaxis]) / step[:, np.newaxis]
    cells = np.clip(np.nan_to_num(cells), 0, _CELLS - 1).astype(np.int64)
    return cells.T, np.take_along_axis(weight, cells, axis=1).T
