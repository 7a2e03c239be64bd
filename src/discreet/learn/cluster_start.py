"""Initial centres for k-means, and artificial points that show where the rows are.

noisy tables of the principal axes ──► independent points ──► many small cells ──► noisy sums of the cells
        ──► corrected points and weighted means of cells ──► ordinary k-means, from many starts (post-processing)
"""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans as NonPrivateKMeans

from discreet.kernel.model_release import Combine
from discreet.learn.bounds import BoundArrays
from discreet.learn.cell_sums import ArtificialPoints, moved_centres, nearest_centres
from discreet.learn.decomposition import PrincipalAxes
from discreet.learn.fit_session import FitSession

_TABLE_CELLS = 64  # cells of an axis, narrow near the mean and wide far away
_MAX_AXES, _MIN_AXIS_DEVIATION = 16, 0.1  # how many axes have a table, and their deviation relative to the first
_MIN_FILLED, _SINGLE_CELL = 2.0, 3.0  # noise deviations above which merged cells and single cells are not empty
_POINTS = 4000
_CELLS_PER_CLUSTER, _MAX_CELLS = 10, 128
_CELL_COUNT_TO_NOISE = 12  # a cell's usual count, in noise scales
_STARTS = 16
_COUNT_NOISE = 5  # noise in a cell's count, relative to that in a plain count: presence shares the ball with offsets
_SLACK = 1 + 2.0**-10  # so that rounding to the grid clips nothing


def artificial_points(session: FitSession, bounds: BoundArrays, axes: PrincipalAxes) -> ArtificialPoints:
    """Return points whose coordinates on the principal axes are independent and follow a noisy table of each axis."""
    deviations = axis_deviations(axes)
    q = min(int((deviations >= _MIN_AXIS_DEVIATION * deviations[0]).sum()), _MAX_AXES)
    deviations, directions = deviations[:q], axes.directions[:, :q]
    farthest = np.abs(directions.T) @ np.maximum(bounds[1] - axes.mean, axes.mean - bounds[0]) / deviations
    half_width = np.arcsinh(np.maximum(farthest, 2.0))  # cell widths grow with sinh, and no row is outside
    step = 2 * half_width / _TABLE_CELLS
    # Minimises the sum of the noise in the axes' variances at a given norm.
    weight = (deviations / deviations[0]) ** (1 / 2 if session.is_gaussian else 2 / 3)
    radius = float(np.linalg.norm(weight, ord=2 if session.is_gaussian else 1)) * _SLACK
    sd = session.sd(radius) / weight
    public = axes.mean, directions / deviations, -half_width, step, weight
    tables = session.sparse_sum(_axis_cells, public, size=q * _TABLE_CELLS, radius=radius, combine=Combine.MEAN)
    middles = np.sinh(-half_width[:, np.newaxis] + step[:, np.newaxis] * (np.arange(_TABLE_CELLS) + 0.5))
    rng = np.random.default_rng(0)  # post-processing: the seed need not be secret
    count = _POINTS
    coordinates = np.empty((count, q))
    for a, table in enumerate(tables.reshape(q, -1) / weight[:, np.newaxis]):
        masses = _filled_cells(table, float(sd[a]))
        if masses.sum() <= max(axes.count / 2, 0):  # only noise: assume a normal distribution
            masses = np.exp(-(middles[a] ** 2) / 2) * np.gradient(middles[a])
        ranks = (rng.permutation(count) + 0.5) / count
        places = np.searchsorted(np.cumsum(masses) / masses.sum(), ranks)
        coordinates[:, a] = middles[a][np.minimum(places, _TABLE_CELLS - 1)]
    points = np.clip(axes.mean + coordinates * deviations @ directions.T, *bounds)
    return ArtificialPoints(points, np.full(count, max(axes.count, 1.0) / count))


def corrected_by_cells(
    session: FitSession, bounds: BoundArrays, axes: PrincipalAxes, sample: ArtificialPoints, n_clusters: int
) -> tuple[ArtificialPoints, ArtificialPoints]:
    """Return the points moved and weighted by noisy sums of many small cells, and the cells' own weighted means."""
    usable = int(axes.count / (_CELL_COUNT_TO_NOISE * session.scale(_COUNT_NOISE)))
    n_cells = max(min(usable, _CELLS_PER_CLUSTER * n_clusters, max(_MAX_CELLS, 2 * n_clusters)), n_clusters)
    cells = _fitted_centres(sample, n_cells, starts=1)
    sums = moved_centres(session, cells, sample, axes.mean_abs_deviation)
    centres = np.clip(sums.centres, *bounds)
    weights = np.where(sums.counts > np.log(n_cells + 1) * sums.count_scale, sums.counts, 0)
    nearest = nearest_centres(sample.points, cells)
    expected = np.bincount(nearest, sample.weights, n_cells)
    points = np.clip(sample.points + (centres - cells)[nearest], *bounds)
    corrected = sample.weights * (np.maximum(weights, 1e-6) / np.maximum(expected, 1e-9))[nearest]
    return ArtificialPoints(points, corrected), ArtificialPoints(centres, weights)


def initial_centres(sample: ArtificialPoints, cells: ArtificialPoints, n_clusters: int) -> np.ndarray:
    """Return the centres of ordinary k-means of the cells, or of the points if too few cells are filled."""
    filled = cells.weights > 0
    if filled.sum() <= n_clusters:
        return cells.points if len(cells.points) == n_clusters else _fitted_centres(sample, n_clusters, starts=4)
    return _fitted_centres(ArtificialPoints(cells.points[filled], cells.weights[filled]), n_clusters, starts=_STARTS)


def _fitted_centres(sample: ArtificialPoints, count: int, starts: int) -> np.ndarray:
    kmeans = NonPrivateKMeans(count, n_init=starts, random_state=0)  # post-processing: the seed need not be secret
    return np.asarray(kmeans.fit(sample.points, sample_weight=sample.weights).cluster_centers_)


def axis_deviations(axes: PrincipalAxes) -> np.ndarray:
    """Return the standard deviation along each axis, kept above zero whatever the noise."""
    variances = np.maximum(axes.denoised_variances, 0.1 * axes.variances)
    usual_variance = float((axes.mean_abs_deviation**2).max()) * np.pi / 2
    variances[0] = max(variances[0], 0.3 * usual_variance)
    return np.asarray(np.sqrt(variances))


def _filled_cells(counts: np.ndarray, sd: float) -> np.ndarray:
    """Return the counts above the noise; in the tails, cells are merged until they exceed it together."""
    masses = np.zeros(len(counts))
    middle = int(np.argmax(counts))
    for order in (range(middle), range(len(counts) - 1, middle - 1, -1)):
        merged: list[int] = []
        for cell in order:
            merged.append(cell)
            total = counts[merged].sum()
            if total > _MIN_FILLED * sd * np.sqrt(2 * len(merged)):
                shown = np.where(counts[merged] > _MIN_FILLED * sd, counts[merged], 0)
                shown[-1] += 0 if shown.any() else 1.0  # the cell that is nearest to the middle
                masses[merged] = total * shown / shown.sum()
                merged = []
        masses[merged] += np.where(counts[merged] > _SINGLE_CELL * sd, counts[merged], 0)
    return masses


def _axis_cells(rows: np.ndarray, public: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's cell on each axis, and the weight of the axis."""
    mean, directions, low, step, weight = public
    cells = np.empty((directions.shape[1], len(rows)), np.int64)
    for a, direction in enumerate(directions.T):
        position = np.zeros(len(rows))
        for j in np.flatnonzero(direction):
            position += (rows[:, j] - mean[j]) * direction[j]
        cells[a] = np.clip(np.floor((np.arcsinh(position) - low[a]) / step[a]), 0, _TABLE_CELLS - 1)
    return cells.T, np.broadcast_to(weight, (len(rows), len(weight)))
