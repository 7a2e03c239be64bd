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

_MIN_SECOND_AXIS, _MIN_FURTHER_AXIS = 0.3, 0.4  # an axis is used if it is that long, relative to the first
_MIN_CLUSTERS_BY_AXES = (1, 3, 4, 7)  # and if there are so many clusters to tell apart
_MIN_CELLS_BY_AXES, _MAX_CELLS_BY_AXES = (
    (4, 4, 3, 3),
    (128, 32, 10, 6),
)  # cells along each axis of a grid of one to four
_CELL_COUNT_TO_NOISE = 10  # a cell's usual count, in scales of its noise
_GRID_HALF_WIDTH, _FULL_RANGE_CELLS = (
    2.2,
    24,
)  # a grid's half width in standard deviations; one of so many cells reaches as far as rows can
_OUTLYING_DEVIATIONS = 3.5  # deviations: so far out, a cell that is only noise would draw a centre after it
_RADIUS_FACTORS = (2, 4, 8)
_MAX_RELATIVE_NOISE = 0.1  # of the spread: centres that are known so well leave room for long rows
_RELATIVE_COUNT_WEIGHT = 0.2  # weight of a row's presence in its cluster, relative to its distance from the centre


@dataclass(frozen=True)
class Clusters:
    """Centres, and the noisy number of units that are nearest to each."""

    centres: np.ndarray
    counts: np.ndarray


def find_clusters(session: FitSession, bounds: BoundArrays, n_clusters: int, n_steps: int) -> Clusters:
    """Return the centres of so many clusters, after so many steps."""
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
    """Return the standard deviations along the axes: never nothing, whatever the noise says."""
    variances = np.maximum(axes.denoised_variances, 0.1 * axes.variances)
    usual_variance = float((axes.mean_abs_deviation**2).max()) * np.pi / 2
    variances[0] = max(variances[0], 0.3 * usual_variance)
    return np.asarray(np.sqrt(variances))


def _grid_dimensions(deviations: np.ndarray, n_clusters: int) -> int:
    """Return how many axes a grid should have."""
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
    """Count rows on a grid in the plane of the first axes, and cluster its cells: no more noise is needed for that."""
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
    # Cells grow with their distance, as sinh does: the middle is told apart, and nobody is beyond the edge.
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
    if (weights > 0).sum() <= n_clusters:  # nothing but noise: as if rows were normal
        weights = np.exp(-0.5 * ((grid / deviations) ** 2).sum(axis=1))
    filled = weights > 0
    kmeans = NonPrivateKMeans(n_clusters, n_init=4, random_state=0)  # of what was released: random, but not secret
    kmeans.fit(grid[filled], sample_weight=weights[filled])
    return np.asarray(axes.mean + kmeans.cluster_centers_ @ plane.T)


def _lloyd_step(
    session: FitSession, axes: PrincipalAxes, centres: np.ndarray, usual_norm: float
) -> tuple[np.ndarray, np.ndarray]:
    """Move each centre to the noisy mean of its rows, as far as the move stands out of the noise."""
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
    """Give each row's cell of the grid; a row beyond it counts at its edge."""
    mean, plane, low, step, cells = public
    cell = np.zeros(len(rows))
    for a in range(plane.shape[1]):
        position = np.zeros(len(rows))
        for j in np.flatnonzero(plane[:, a]):
            position += (rows[:, j] - mean[j]) * plane[j, a]
        cell = cell * cells + np.clip(np.floor((np.arcsinh(position) - low[a]) / step[a]), 0, cells - 1)
    return cell.astype(np.int64)


def _nearest_centre_sums(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Give a row's presence and its distance from the nearest centre in each column, at the place of that centre."""
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


_START_SHARES = (15, 8, 20, 20)  # hundredths: where columns lie, how far they spread, their products, a grid
_STEP_SHARE = 37
_MAX_CLUSTERS, _MAX_STEPS = 1000, 100


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Finds centres such that every row is near to one.

    There are no `labels_`: the label of a row that was learned from tells of that row itself, without any noise.
    Whoever holds rows can `predict` theirs.

    >>> x = np.random.default_rng(0).normal(size=(100_000, 2)) + np.repeat([[-4, 0], [4, 1]], 50_000, axis=0)
    >>> model = KMeans(2, epsilon=1, bounds=(-10, 10)).fit(x)
    >>> np.sort(model.cluster_centers_[:, 0]).round().tolist(), model.loss_
    ([-4.0, 4.0], Loss(epsilon=1, rho=1/2, for the removal of one row))
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's way: every setting is a parameter
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
        """Learn the centres of X; rows with an equal `unit` are one person's, and weigh together as one."""
        return self._fit_source(source_from_data(self, X, unit=unit, ledger=ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Learn from the rows of a curator's query."""
        return self._fit_source(source_from_query(self, rows))

    def _fit_source(self, source: FitSource) -> Self:
        n_clusters = as_integer(self.n_clusters, "n_clusters", minimum=1)
        n_steps = as_integer(self.n_iter, "n_iter", minimum=1)
        if n_clusters > _MAX_CLUSTERS or n_steps > _MAX_STEPS:
            raise ValueError(
                f"n_clusters and n_iter must be at most {_MAX_CLUSTERS} and {_MAX_STEPS}: noise would hide more"
            )
        session = open_model_session(
            self, source, [share * n_steps for share in _START_SHARES] + [_STEP_SHARE] * n_steps
        )
        result = find_clusters(session, (source.rows.low, source.rows.high), n_clusters, n_steps)
        self.cluster_centers_, self.counts_, self.n_iter_ = result.centres, result.counts, n_steps
        return session.finish(self)

    def predict(self, X: Any) -> np.ndarray:
        """Return the place of the nearest centre for each row."""
        return np.asarray(self.transform(X).argmin(axis=1))

    def transform(self, X: Any) -> np.ndarray:
        """Return each row's distances from all centres."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(euclidean_distances(X, self.cluster_centers_))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002 - y is for Pipelines
        """Return minus the sum of squared distances from the nearest centres: exact, of the caller's own rows."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
