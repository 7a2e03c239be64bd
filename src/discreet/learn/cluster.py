"""KMeans: initial centres from noisy sums of many small cells, then noisy Lloyd steps."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.ledger import Ledger
from discreet.kernel.numbers import Number, as_integer
from discreet.learn.bounds import BoundArrays
from discreet.learn.cell_sums import ArtificialPoints, nearest_centres, noisy_means
from discreet.learn.cluster_candidates import best_centres
from discreet.learn.cluster_start import MAX_COLUMNS, find_start
from discreet.learn.fit_cost import REMOVAL
from discreet.learn.fit_inputs import QueryRows, source_from_data, source_from_query
from discreet.learn.fit_session import FitSession, FitSource, open_model_session
from discreet.learn.moments import summarise_columns

# The log-odds below which noise made a cluster of nobody, and the usual count to decide it, in noise scales.
_EMPTY, _USUAL = 3.0, 20.0


@dataclass(frozen=True)
class Clusters:
    """Cluster centres, in the order of their first columns, and noisy numbers of units per cluster."""

    centres: np.ndarray
    counts: np.ndarray


def find_clusters(session: FitSession, bounds: BoundArrays, n_clusters: int, n_steps: int) -> Clusters:
    """Return the clusters after `n_steps` noisy Lloyd steps."""
    summary = summarise_columns(session, bounds, (bounds[1] - bounds[0]) / 2)
    start = find_start(session, bounds, summary, n_clusters)
    centres, variances = np.clip(start.centres, *bounds), None
    for _ in range(n_steps + start.releases_left):
        sums = noisy_means(session, centres, start.sample, summary.mean_abs_deviation, variances)
        centres, variances = np.clip(sums.means, *bounds), sums.variances
        # How much more likely noise made the count from what is expected than from nobody, and the expectation too.
        odds = (2 * np.clip(sums.counts, 0, sums.expected) - sums.expected) / sums.count_scale
        empty = sums.expected / start.count_scale + odds < _EMPTY
        if empty.any() and summary.count > _USUAL * n_clusters * sums.count_scale:
            centres = without_empty(start.sample, centres, empty)
    order = np.lexsort(centres.T[::-1])  # so that fits with little noise agree
    return Clusters(centres[order], sums.counts[order])


def without_empty(sample: ArtificialPoints, centres: np.ndarray, empty: np.ndarray) -> np.ndarray:
    """Return the centres, with each empty one moved to the far half of the cluster with the largest inertia.

    It stays where it is if that cluster is a single point, or if all are empty.
    """
    centres = centres.copy()
    weights = np.where(empty[nearest_centres(sample.points, centres)], 0, sample.weights)
    filled = [*np.flatnonzero(~empty)]
    for place in np.flatnonzero(empty) if filled else ():
        cells = nearest_centres(sample.points, centres[filled])
        distances = ((sample.points - centres[filled][cells]) ** 2).sum(axis=1)
        widest = int(np.argmax(np.bincount(cells, weights * distances)))
        part = (cells == widest) & (weights > 0)
        if part.sum() < 2:
            break
        halves = best_centres(ArtificialPoints(sample.points[part], weights[part]), 2, starts=1)
        centres[place] = max(halves, key=lambda half: ((half - centres[filled[widest]]) ** 2).sum())
        filled.append(place)
    return centres


# Percent of the budget: means, deviations, products, tables, small cells, candidates; then all steps together. With
# many columns, the products are those of principal axes, and need more.
_SHARES, _SHARES_OF_MANY_COLUMNS = ((10, 4, 6, 20, 26, 4), 30), ((10, 6, 14, 16, 22, 2), 30)
_MAX_CLUSTERS, _MAX_STEPS = 1000, 100


def budget_shares(n_columns: int, n_steps: int) -> list[int]:
    """Return the relative budget share of each release."""
    start, steps = _SHARES if n_columns <= MAX_COLUMNS else _SHARES_OF_MANY_COLUMNS
    return [share * n_steps for share in start] + [steps] * n_steps


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
        n_iter: int = 2,
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
        bounds = source.rows.low, source.rows.high
        session = open_model_session(self, source, budget_shares(len(bounds[0]), n_steps))
        result = find_clusters(session, bounds, n_clusters, n_steps)
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
