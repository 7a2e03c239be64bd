"""Initial centres for k-means from noisy tables, and artificial points that show where the rows are.

many rows: tables of columns ──► independent points ──► small cells ──► noisy sums of cells ──► corrected points
           ──► ordinary k-means of them from many starts ──► noisy inertia of the best
few rows:  one table on the first principal axes ──► ordinary k-means of its cells
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.kernel.model_release import Combine
from discreet.learn.bounds import BoundArrays
from discreet.learn.cell_sums import ArtificialPoints, moved_centres, nearest_centres
from discreet.learn.cluster_candidates import best_centres, candidate_centres, select_centres
from discreet.learn.decomposition import PrincipalAxes
from discreet.learn.fit_session import FitSession

_MIN_SECOND_AXIS, _MIN_FURTHER_AXIS = 0.3, 0.4  # minimum deviation of an axis of the grid, relative to the first
_MIN_CLUSTERS_BY_AXES = (1, 3, 4, 7)  # minimum number of clusters for a grid of 1 to 4 axes
_MIN_CELLS_BY_AXES, _MAX_CELLS_BY_AXES = (4, 4, 3, 3), (128, 32, 10, 6)  # cells per axis, for a grid of 1 to 4 axes
_CELL_COUNT_TO_NOISE = 10  # typical count of a cell, in noise scales
_GRID_HALF_WIDTH = 2.2  # in standard deviations
_FULL_RANGE_CELLS = 24  # a grid with this many cells per axis covers the full range of the rows
# Beyond this many deviations, a cell needs a higher count: pure noise would attract a centre.
_OUTLYING_DEVIATIONS = 3.5
_MIN_RESIDUAL_SHARE = 0.2  # of a column's variance, that the axes of the grid do not explain


def grid_on_axes(
    session: FitSession, bounds: BoundArrays, axes: PrincipalAxes, n_clusters: int, n_points: int
) -> tuple[ArtificialPoints, ArtificialPoints]:
    """Return the filled cells of a noisy grid, and points that follow it and have the columns' deviations."""
    deviations = axes.deviations
    deviations = deviations[: _grid_dimensions(deviations, n_clusters)]
    q, scale = len(deviations), session.scale()
    cells = int(
        np.clip(
            (axes.count / scale / _CELL_COUNT_TO_NOISE) ** (1 / q), _MIN_CELLS_BY_AXES[q - 1], _MAX_CELLS_BY_AXES[q - 1]
        )
    )
    cells = max(cells, int(np.ceil((4 * n_clusters) ** (1 / q))))
    plane = np.ascontiguousarray(axes.directions[:, :q])
    farthest = np.abs(plane.T) @ np.maximum(bounds[1] - axes.mean, axes.mean - bounds[0])
    # Cell widths grow with sinh: fine cells in the middle, and no row outside the grid.
    half_width = np.arcsinh(
        np.maximum(farthest / deviations if cells >= _FULL_RANGE_CELLS else _GRID_HALF_WIDTH, _GRID_HALF_WIDTH)
        * np.ones(q)
    )
    step = 2 * half_width / cells
    noisy_counts = session.histogram(
        _grid_cell, (axes.mean, plane / deviations, -half_width, step, cells), cells=cells**q
    )
    cell_centres = [np.sinh(-half_width[a] + step[a] * (np.arange(cells) + 0.5)) for a in range(q)]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*cell_centres, indexing="ij")], axis=1)
    outside = np.abs(grid).max(axis=1) > _OUTLYING_DEVIATIONS
    weights = np.where(
        noisy_counts > scale * np.where(outside, np.log(noisy_counts.size) + 3, 1), noisy_counts - scale, 0
    )
    if (weights > 0).sum() <= n_clusters:  # only noise: assume a normal distribution
        weights = np.exp(-0.5 * (grid**2).sum(axis=1))
    filled = weights > 0
    points, weights = axes.mean + grid[filled] * deviations @ plane.T, weights[filled]
    return ArtificialPoints(points, weights), _spread_points(axes, ArtificialPoints(points, weights), q, n_points)


def _spread_points(axes: PrincipalAxes, grid: ArtificialPoints, q: int, n_points: int) -> ArtificialPoints:
    """Return points of the grid, moved at random by what its axes do not explain of each column."""
    rng = np.random.default_rng(0)  # post-processing: the seed need not be secret
    drawn = rng.choice(len(grid.points), n_points, p=grid.weights / grid.weights.sum())
    variances = axes.mean_abs_deviation**2 * np.pi / 2
    explained = (axes.directions[:, :q] ** 2) @ axes.deviations[:q] ** 2
    residual = np.sqrt(np.maximum(variances - explained, _MIN_RESIDUAL_SHARE * variances))
    points = grid.points[drawn] + residual * rng.normal(size=(n_points, len(residual)))
    return ArtificialPoints(points, np.full(n_points, axes.count / n_points))


def _grid_dimensions(deviations: np.ndarray, n_clusters: int) -> int:
    """Return the number of axes of the grid."""
    dimensions = 1
    for min_relative_length in (_MIN_SECOND_AXIS, _MIN_FURTHER_AXIS, _MIN_FURTHER_AXIS):
        enough_clusters = n_clusters >= _MIN_CLUSTERS_BY_AXES[dimensions]
        if (
            len(deviations) <= dimensions
            or deviations[dimensions] < min_relative_length * deviations[0]
            or not enough_clusters
        ):
            break
        dimensions += 1
    return dimensions


def _grid_cell(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Return each row's cell in the grid; rows outside count in the nearest cell."""
    mean, plane, low, step, cells = public
    cell = np.zeros(len(rows))
    for a in range(plane.shape[1]):
        position = np.zeros(len(rows))
        for j in np.flatnonzero(plane[:, a]):
            position += (rows[:, j] - mean[j]) * plane[j, a]
        cell = cell * cells + np.clip(np.floor((np.arcsinh(position) - low[a]) / step[a]), 0, cells - 1)
    return cell.astype(np.int64)


_MIN_UNITS = 125  # per cluster and table, in noise scales: with fewer, one table on few axes shows more
_MAX_COLUMNS, _MAX_AXES = 12, 16  # with more columns, tables are those of the first principal axes
_MIN_DEVIATION = 0.1  # of a column or an axis that has a table, relative to the largest
_TABLE_CELLS = 64  # narrow near the mean and wide far away
_MIN_MERGED, _MIN_SINGLE = 2.0, 3.0  # noise deviations above which merged cells and single cells are not empty
_POINTS, _GRID_POINTS = 4000, 1000  # artificial points, from tables and from a grid
_CELLS_PER_CLUSTER, _MAX_CELLS = 10, 128
_PRESENCE_NOISE = 3  # noise in the count of a small cell, relative to a plain count: offsets share the ball with it
_USUAL_COUNT, _MIN_EXPECTED, _MIN_COUNT = 12, 6.0, 2.0  # counts of small cells, in noise scales
_SLACK = 1 + 2.0**-10  # so that rounding to the grid clips nothing


@dataclass(frozen=True)
class ClusterStart:
    """Initial centres, points that resemble the rows, and how many releases were left for further steps."""

    centres: np.ndarray
    sample: ArtificialPoints
    releases_left: int


def find_start(session: FitSession, bounds: BoundArrays, axes: PrincipalAxes, n_clusters: int) -> ClusterStart:
    """Return initial centres from three releases or, if there are few rows, from one."""
    deviations, directions = _table_directions(axes)
    if axes.count < _MIN_UNITS * (n_clusters + len(deviations)) * session.scale():
        grid, sample = grid_on_axes(session, bounds, axes, n_clusters, _GRID_POINTS)
        return ClusterStart(best_centres(grid, n_clusters, starts=4), sample, releases_left=2)
    sample = _independent_points(session, bounds, axes, deviations, directions)
    corrected, cells = _corrected_by_cells(session, bounds, axes, sample, n_clusters)
    candidates = candidate_centres(corrected, cells, n_clusters)
    return ClusterStart(select_centres(session, corrected, candidates), corrected, releases_left=0)


def _independent_points(
    session: FitSession, bounds: BoundArrays, axes: PrincipalAxes, deviations: np.ndarray, directions: np.ndarray
) -> ArtificialPoints:
    """Return points whose coordinates in these directions are independent, and follow a noisy table of each."""
    q = len(deviations)
    farthest = np.abs(directions.T) @ np.maximum(bounds[1] - axes.mean, axes.mean - bounds[0]) / deviations
    half_width = np.arcsinh(np.maximum(farthest, 2.0))  # cell widths grow with sinh, and no row is outside
    step = 2 * half_width / _TABLE_CELLS
    # Minimises the sum of the noise in the variances, at a given norm.
    weight = (deviations / deviations[0]) ** (1 / 2 if session.is_gaussian else 2 / 3)
    radius = float(np.linalg.norm(weight, ord=2 if session.is_gaussian else 1)) * _SLACK
    sd = session.sd(radius) / weight
    public = axes.mean, directions / deviations, -half_width, step, weight
    tables = session.sparse_sum(_table_cells, public, size=q * _TABLE_CELLS, radius=radius, combine=Combine.MEAN)
    tables = tables.reshape(q, -1) / weight[:, np.newaxis]
    middles = np.sinh(-half_width[:, np.newaxis] + step[:, np.newaxis] * (np.arange(_TABLE_CELLS) + 0.5))
    rng = np.random.default_rng(0)  # post-processing
    coordinates = np.empty((_POINTS, q))
    for a in range(q):
        masses = _filled_cells(tables[a], float(sd[a]))
        cumulative = np.cumsum(masses) / max(masses.sum(), np.finfo(float).tiny)
        ranks = (rng.permutation(_POINTS) + 0.5) / _POINTS
        coordinates[:, a] = middles[a][np.minimum(np.searchsorted(cumulative, ranks), _TABLE_CELLS - 1)]
    points = np.clip(axes.mean + coordinates * deviations @ directions.T, *bounds)
    return ArtificialPoints(points, np.full(_POINTS, axes.count / _POINTS))


def _table_directions(axes: PrincipalAxes) -> tuple[np.ndarray, np.ndarray]:
    """Return the deviations along the directions of the tables, and the directions: the columns, if these are few.

    Columns of integers and with many zeros are blurred by any rotation.
    """
    if len(axes.mean) <= _MAX_COLUMNS:
        order = np.argsort(-axes.mean_abs_deviation)
        deviations, directions = axes.mean_abs_deviation[order], np.eye(len(order))[:, order]
    else:
        deviations, directions = axes.deviations, axes.directions
    q = min(int((deviations >= _MIN_DEVIATION * deviations[0]).sum()), _MAX_AXES)
    return deviations[:q], directions[:, :q]


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
                shown[-1] += 0.0 if shown.any() else 1.0  # the cell nearest to the middle
                masses[merged] = total * shown / shown.sum()
                merged = []
        masses[merged] = np.where(counts[merged] > _MIN_SINGLE * sd, counts[merged], 0)
    masses[middle] = max(masses[middle], np.finfo(float).tiny)
    return masses


def _corrected_by_cells(
    session: FitSession, bounds: BoundArrays, axes: PrincipalAxes, sample: ArtificialPoints, n_clusters: int
) -> tuple[ArtificialPoints, ArtificialPoints]:
    """Return the points moved and weighted by noisy sums of small cells, and the filled cells' own means."""
    noise = session.scale(_PRESENCE_NOISE)
    n_cells = max(int(axes.count / (_USUAL_COUNT * noise)), n_clusters)
    n_cells = min(n_cells, _CELLS_PER_CLUSTER * n_clusters, max(_MAX_CELLS, 2 * n_clusters))
    start = best_centres(sample, n_cells, starts=1)
    cells = _without_small_cells(sample, start, min_count=_MIN_EXPECTED * noise, at_least=n_clusters)
    sums = moved_centres(session, cells, sample, axes.mean_abs_deviation)
    centres = np.clip(sums.centres, *bounds)
    counts = np.where(sums.counts > _MIN_COUNT * sums.count_scale, sums.counts, 0)
    nearest = nearest_centres(sample.points, cells)
    expected = np.bincount(nearest, sample.weights, len(cells))
    factors = np.maximum(counts, 1e-6) / np.maximum(expected, 1e-9)  # positive: k-means needs enough points
    points = np.clip(sample.points + (centres - cells)[nearest], *bounds)
    filled = counts > 0
    return (
        ArtificialPoints(points, sample.weights * factors[nearest]),
        ArtificialPoints(centres[filled], counts[filled]),
    )


def _without_small_cells(sample: ArtificialPoints, cells: np.ndarray, min_count: float, at_least: int) -> np.ndarray:
    """Return the cells that are expected to have this count; points of others are left to the nearest of these."""
    distances = ((cells**2).sum(axis=1) - 2 * sample.points @ cells.T).T
    removed = np.zeros(len(cells), bool)
    while len(cells) - removed.sum() > at_least:
        counts = np.bincount(distances.argmin(axis=0), sample.weights, len(cells))
        smallest = int(np.argmin(np.where(removed, np.inf, counts)))
        if counts[smallest] >= min_count:
            break
        removed[smallest], distances[smallest] = True, np.inf
    return np.asarray(cells[~removed])


def _table_cells(rows: np.ndarray, public: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's cell in every table, and the weights of the tables."""
    mean, directions, low, step, weight = public
    cells = np.empty((directions.shape[1], len(rows)), np.int64)
    for a, direction in enumerate(directions.T):
        position = np.zeros(len(rows))
        for j in np.flatnonzero(direction):
            position += (rows[:, j] - mean[j]) * direction[j]
        cells[a] = np.clip(np.floor((np.arcsinh(position) - low[a]) / step[a]), 0, _TABLE_CELLS - 1)
    return cells.T, np.broadcast_to(weight, (len(rows), len(weight)))
