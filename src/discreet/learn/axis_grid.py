"""One noisy table on the first principal axes: where the rows are, if they are too few for more."""

from typing import Any

import numpy as np

from discreet.learn.bounds import BoundArrays
from discreet.learn.cell_sums import ArtificialPoints
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
