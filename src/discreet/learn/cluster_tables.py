"""Artificial points for k-means that have the rows' noisy tables of columns, and their noisy correlations.

Coordinates are scaled by asinh, which is linear near the mean and logarithmic far from it: tables have narrow cells in
the middle and wide ones far away, and no single row matters much for a correlation.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.kernel.model_release import Combine
from discreet.learn.bounds import BoundArrays
from discreet.learn.cell_sums import ArtificialPoints
from discreet.learn.decomposition import PrincipalAxes
from discreet.learn.fit_session import FitSession
from discreet.learn.moments import ColumnSummary, fill_pair_products, noise_norm, shrinkage_factor, symmetric_from_upper

_MAX_TABLES = 16
_MIN_DEVIATION = 0.1  # of a direction that has a table, relative to the largest
_CELLS = 64  # of a table
_POINTS = 4000
_MIN_MERGED, _MIN_SINGLE = 1.2, 3.0  # noise deviations above which merged cells and single cells are not empty
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
    # Minimises the sum of the noise in the variances, at a given norm.
    weight = (deviations / deviations[0]) ** (1 / 2 if session.is_gaussian else 2 / 3)
    radius = noise_norm(session, weight) * _SLACK
    sd = session.sd(radius) / weight
    public = *directions.public, -largest, step, weight
    counts = session.sparse_sum(_table_cells, public, size=q * _CELLS, radius=radius, combine=Combine.MEAN)
    tables = counts.reshape(q, -1) / weight[:, np.newaxis]
    masses = np.array([_filled_cells(*each) for each in zip(tables, sd, strict=True)])
    shares = masses / masses.sum(axis=1, keepdims=True)
    edges = -largest[:, np.newaxis] + step[:, np.newaxis] * np.arange(_CELLS + 1)
    correlations = (
        np.eye(q) if products is None else _correlations(products, shares, (edges[:, 1:] + edges[:, :-1]) / 2)
    )
    coordinates = np.empty((_POINTS, q))
    for a, scores in enumerate(_correlated_normals(correlations).T):
        ranks = (np.argsort(np.argsort(scores)) + 0.5) / _POINTS
        coordinates[:, a] = np.interp(ranks, np.append(0, np.cumsum(shares[a])), np.sinh(edges[a]))
    points = np.clip(directions.origin + coordinates * deviations @ directions.directions.T, *bounds)
    return ArtificialPoints(points, np.full(_POINTS, count / _POINTS))


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


def _filled_cells(counts: np.ndarray, sd: float) -> np.ndarray:
    """Return the counts above the noise; from both ends, cells are merged until they exceed it together."""
    masses = np.zeros(len(counts))
    middle = int(np.argmax(counts))
    for order in (range(middle), range(len(counts) - 1, middle - 1, -1)):
        merged: list[int] = []
        for cell in order:
            merged.append(cell)
            total = counts[merged].sum()
            if total > _MIN_MERGED * sd * np.sqrt(2 * len(merged)):
                shown = np.where(counts[merged] > _MIN_MERGED * sd, counts[merged], 0)
                shown += 0.0 if shown.any() else 1.0
                masses[merged] = total * shown / shown.sum()
                merged = []
        masses[merged] = np.where(counts[merged] > _MIN_SINGLE * sd, counts[merged], 0)
    masses[middle] = max(masses[middle], np.finfo(float).tiny)
    return masses


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
    """Return each row's cell in every table, and the weights of the tables."""
    origin, directions, low, step, weight = public
    cells = (scaled_coordinates(rows, origin, directions) - low[:, np.newaxis]) / step[:, np.newaxis]
    cells = np.clip(cells, 0, _CELLS - 1).astype(np.int64)
    return cells.T, np.broadcast_to(weight, (len(rows), len(weight)))
