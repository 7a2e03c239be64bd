"""KMeans: initial centres from a noisy grid on the first principal axes, then noisy Lloyd steps."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import KMeans as NonPrivateKMeans
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.ledger import Ledger
from discreet.kernel.numbers import Number, as_integer
from discreet.learn.bounds import BoundArrays
from discreet.learn.decomposition import PrincipalAxes, principal_axes
from discreet.learn.fit_cost import REMOVAL
from discreet.learn.fit_inputs import QueryRows, source_from_data, source_from_query
from discreet.learn.fit_session import FitSession, FitSource, open_model_session
from discreet.learn.moments import noise_norm

_MIN_SECOND_AXIS, _MIN_FURTHER_AXIS = 0.3, 0.4  # minimum deviation of an axis of the grid, relative to the first
_MIN_CLUSTERS_BY_AXES = (1, 3, 4, 7)  # minimum number of clusters for a grid of 1 to 4 axes
_MIN_CELLS_BY_AXES, _MAX_CELLS_BY_AXES = (4, 4, 3, 3), (128, 32, 10, 6)  # cells per axis, for a grid of 1 to 4 axes
_CELL_COUNT_TO_NOISE = 10  # typical count of a cell, in noise scales
_GRID_HALF_WIDTH = 2.2  # in standard deviations
_FULL_RANGE_CELLS = 24  # a grid with this many cells per axis covers the full range of the rows
_OUTLYING_DEVIATIONS = (
    3.5  # beyond this many deviations, a cell needs a higher count: pure noise would attract a centre
)
_RADIUS_FACTORS = (2, 4, 8)
_MAX_RELATIVE_NOISE = 0.1  # in standard deviations: with less noise in the centres, the radius is enlarged
_RELATIVE_COUNT_WEIGHT = 0.2  # weight of a row's presence, relative to its typical distance from the centre


@dataclass(frozen=True)
class Clusters:
    """Cluster centres and noisy numbers of units per cluster."""

    centres: np.ndarray
    counts: np.ndarray


def find_clusters(session: FitSession, bounds: BoundArrays, n_clusters: int, n_steps: int) -> Clusters:
    """Return the clusters after `n_steps` noisy Lloyd steps."""
    axes = principal_axes(session, bounds, min_axes=1)
    deviations = _axis_deviations(axes)
    dimensions = _grid_dimensions(deviations, n_clusters)
    centres = np.clip(_initial_centres(session, bounds, axes, deviations[:dimensions], n_clusters), *bounds)
    explained_share = 0.8 * float(axes.variances[:dimensions].sum() / max(axes.variances.sum(), np.finfo(float).tiny))
    usual_norm = noise_norm(session, axes.mean_abs_deviation) * np.sqrt(max(1 - explained_share, 0.2))
    if session.is_gaussian:
        usual_norm *= np.sqrt(np.pi / 2)
    counts = np.zeros(n_clusters)
    for _ in range(n_steps):
        centres, counts = _lloyd_step(session, axes, centres, usual_norm)
        centres = np.clip(centres, *bounds)
    return Clusters(centres, counts)


def _axis_deviations(axes: PrincipalAxes) -> np.ndarray:
    """Return the standard deviation along each axis, kept above zero whatever the noise."""
    variances = np.maximum(axes.denoised_variances, 0.1 * axes.variances)
    usual_variance = float((axes.mean_abs_deviation**2).max()) * np.pi / 2
    variances[0] = max(variances[0], 0.3 * usual_variance)
    return np.asarray(np.sqrt(variances))


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


def _initial_centres(
    session: FitSession, bounds: BoundArrays, axes: PrincipalAxes, deviations: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Cluster the cells of a noisy grid on the first axes; the clustering is post-processing."""
    q = len(deviations)
    scale = session.scale()
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
    grid *= deviations
    if (weights > 0).sum() <= n_clusters:  # only noise: assume a normal distribution
        weights = np.exp(-0.5 * ((grid / deviations) ** 2).sum(axis=1))
    filled = weights > 0
    kmeans = NonPrivateKMeans(n_clusters, n_init=4, random_state=0)  # post-processing: the seed need not be secret
    kmeans.fit(grid[filled], sample_weight=weights[filled])
    return np.asarray(axes.mean + kmeans.cluster_centers_ @ plane.T)


def _lloyd_step(
    session: FitSession, axes: PrincipalAxes, centres: np.ndarray, usual_norm: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres, moved towards the noisy means of their rows and shrunk by the noise, and the noisy counts."""
    n_clusters, d = centres.shape
    count_weight = _RELATIVE_COUNT_WEIGHT * usual_norm
    deviation = float(np.sqrt((axes.mean_abs_deviation**2).sum() * np.pi / 2))
    centre_noise = session.sd(usual_norm + count_weight) * np.sqrt(d) * n_clusters / axes.count
    radius_factor = max(
        (factor for factor in _RADIUS_FACTORS if factor * centre_noise < _MAX_RELATIVE_NOISE * deviation), default=1
    )
    radius = radius_factor * usual_norm + count_weight
    sd = session.sd(radius)
    size = n_clusters * (d + 1)
    total = session.sum(_nearest_centre_sums, (centres, count_weight), size=size, radius=radius).reshape(
        n_clusters, d + 1
    )
    counts = total[:, 0] / count_weight
    weight = np.maximum(counts, 2 * sd / count_weight)[:, np.newaxis]
    move = total[:, 1:] / weight
    noise = d * (sd / weight) ** 2
    shrinkage = np.maximum(1 - noise / np.maximum((move**2).sum(axis=1, keepdims=True), np.finfo(float).tiny), 0)
    return centres + shrinkage * move, counts


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


def _nearest_centre_sums(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Return each row's presence and its offset from the nearest centre, in that centre's block."""
    centres, count_weight = public
    n_clusters, d = centres.shape
    best, nearest = np.full(len(rows), np.inf), np.zeros(len(rows), np.int64)
    for c in range(n_clusters):
        distance = np.zeros(len(rows))
        for j in range(d):
            distance += (rows[:, j] - centres[c, j]) ** 2
        nearest[distance < best] = c
        best = np.minimum(best, distance)
    out = np.zeros((n_clusters, d + 1, len(rows)))
    for c in range(n_clusters):
        in_cluster = nearest == c
        out[c, 0] = in_cluster * count_weight
        np.multiply(rows.T - centres[c][:, np.newaxis], in_cluster, out=out[c, 1:])
    return out.reshape(n_clusters * (d + 1), len(rows)).T


_START_SHARES = (15, 8, 20, 20)  # percent of the budget: means, deviations, products, grid
_STEP_SHARE = 37
_MAX_CLUSTERS, _MAX_STEPS = 1000, 100


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Finds k cluster centres, as scikit-learn's KMeans does.

    There is no `labels_`: the exact labels of the training rows would not be private. Call `predict` on your own rows.

    >>> x = np.random.default_rng(0).normal(size=(100_000, 2)) + np.repeat([[-4, 0], [4, 1]], 50_000, axis=0)
    >>> model = KMeans(2, epsilon=1, bounds=(-10, 10)).fit(x)
    >>> np.sort(model.cluster_centers_[:, 0]).round().tolist(), model.loss_
    ([-4.0, 4.0], Loss(epsilon=1, rho=1/2, for the removal of one row))
    """

    def __init__(  # noqa: PLR0913 - scikit-learn requires one parameter per setting
        self,
        n_clusters: int = 8,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        n_iter: int = 1,
        neighbours: str = REMOVAL,
    ) -> None:
        self.n_clusters, self.n_iter = n_clusters, n_iter
        self.epsilon, self.delta, self.bounds, self.neighbours = epsilon, delta, bounds, neighbours

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, ledger: Ledger | None = None) -> Self:  # noqa: ARG002 - y is for Pipelines
        """Fit the centres to X; rows with the same `unit` together count as one row."""
        return self._fit_source(source_from_data(self, X, unit=unit, ledger=ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Fit to the rows of a curator's query."""
        return self._fit_source(source_from_query(self, rows))

    def _fit_source(self, source: FitSource) -> Self:
        n_clusters = as_integer(self.n_clusters, "n_clusters", minimum=1)
        n_steps = as_integer(self.n_iter, "n_iter", minimum=1)
        if n_clusters > _MAX_CLUSTERS or n_steps > _MAX_STEPS:
            raise ValueError(
                f"n_clusters must be at most {_MAX_CLUSTERS} and n_iter at most {_MAX_STEPS}: beyond, noise dominates"
            )
        session = open_model_session(
            self, source, [share * n_steps for share in _START_SHARES] + [_STEP_SHARE] * n_steps
        )
        result = find_clusters(session, (source.rows.low, source.rows.high), n_clusters, n_steps)
        self.cluster_centers_, self.counts_, self.n_iter_ = result.centres, result.counts, n_steps
        return session.finish(self)

    def predict(self, X: Any) -> np.ndarray:
        """Return the index of the nearest centre for each row."""
        return np.asarray(self.transform(X).argmin(axis=1))

    def transform(self, X: Any) -> np.ndarray:
        """Return the distances of each row to all centres."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(euclidean_distances(X, self.cluster_centers_))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002 - y is for Pipelines
        """Return minus the sum of squared distances to the nearest centres, without noise; see `evaluate`."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
