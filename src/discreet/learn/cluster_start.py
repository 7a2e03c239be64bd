"""Initial centres for k-means from noisy tables, and artificial points that show where the rows are.

many rows: correlations and tables of columns ──► artificial points ──► small cells ──► noisy sums of cells
           ──► corrected points ──► ordinary k-means of them from many starts ──► noisy inertia of the best
few rows:  one table on the first principal axes ──► ordinary k-means of its cells
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.bounds import BoundArrays
from discreet.learn.cell_sums import ArtificialPoints, CellSums, noisy_means
from discreet.learn.cluster_candidates import best_centres, candidate_centres, select_centres
from discreet.learn.cluster_tables import (
    directions_of_axes,
    directions_of_columns,
    noisy_correlations,
    scaled_coordinates,
    table_points,
)
from discreet.learn.decomposition import PrincipalAxes, axes_of_columns
from discreet.learn.fit_session import FitSession
from discreet.learn.moments import ColumnSummary

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
    cell = np.zeros(len(rows), np.int64)
    for line, first, width in zip(scaled_coordinates(rows, mean, plane), low, step, strict=True):
        cell = cell * cells + np.clip((line - first) / width, 0, cells - 1).astype(np.int64)
    return cell


# Per cluster and table, in noise scales of the release of correlations or, of axes, of tables: with fewer units, one
# table on few axes shows more.
_MIN_UNITS, _MIN_UNITS_OF_AXES = 40, 125
MAX_COLUMNS = 12  # with more columns, tables are those of the first principal axes
_GRID_POINTS = 1000  # artificial points of a grid
_CELLS_PER_CLUSTER, _MAX_CELLS = 10, 128
_PRESENCE_NOISE = 3  # noise in the count of a small cell, relative to a plain count: offsets share the ball with it
_USUAL_COUNT, _MIN_EXPECTED = 12, 4.5  # counts of small cells, in noise scales


@dataclass(frozen=True)
class ClusterStart:
    """Initial centres, points that resemble the rows, and how many releases were left for further steps.

    `count_scale` is the noise scale of the counts that the weights of the points follow.
    """

    centres: np.ndarray
    sample: ArtificialPoints
    count_scale: float
    releases_left: int


def find_start(session: FitSession, bounds: BoundArrays, summary: ColumnSummary, n_clusters: int) -> ClusterStart:
    """Return initial centres from four releases or, if there are few rows, from two."""
    directions, correlations = directions_of_columns(summary), None
    wanted = n_clusters + len(directions.deviations)
    if len(summary.centre) <= MAX_COLUMNS and summary.count >= _MIN_UNITS * wanted * session.scale():
        correlations = noisy_correlations(session, summary.count, directions)
    else:
        axes = axes_of_columns(session, summary, min_axes=1)
        directions = directions_of_axes(axes)
        wanted = n_clusters + len(directions.deviations)
        if axes.count < _MIN_UNITS_OF_AXES * wanted * session.scale():
            scale = session.scale()
            grid, sample = grid_on_axes(session, bounds, axes, n_clusters, _GRID_POINTS)
            return ClusterStart(best_centres(grid, n_clusters, starts=4), sample, scale, releases_left=2)
    sample = table_points(session, bounds, summary.count, directions, correlations)
    sums = _sums_of_small_cells(session, summary, sample, n_clusters)
    sample = sums.correct(sample, bounds)
    cells = ArtificialPoints(np.clip(sums.means, *bounds)[sums.filled], sums.counts[sums.filled])
    candidates = candidate_centres(sample, cells, n_clusters)
    return ClusterStart(select_centres(session, sample, candidates), sample, sums.count_scale, releases_left=0)


def _sums_of_small_cells(
    session: FitSession, summary: ColumnSummary, sample: ArtificialPoints, n_clusters: int
) -> CellSums:
    """Return the noisy sums of cells with about as many units as their noise allows."""
    noise = session.scale(_PRESENCE_NOISE)
    n_cells = max(int(summary.count / (_USUAL_COUNT * noise)), n_clusters)
    n_cells = min(n_cells, _CELLS_PER_CLUSTER * n_clusters, max(_MAX_CELLS, 2 * n_clusters))
    cells = best_centres(sample, n_cells, starts=1)
    cells = _without_small_cells(sample, cells, min_count=_MIN_EXPECTED * noise, at_least=n_clusters)
    return noisy_means(session, cells, sample, summary.mean_abs_deviation)


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
