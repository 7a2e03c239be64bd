"""Clustering by k-means, learned privately."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.exact import Number, whole
from discreet.kernel.ledger import Ledger
from discreet.learn.columns.clusters import find_clusters
from discreet.learn.inputs import QueryRows, source_of, source_of_query
from discreet.learn.losses import REMOVAL
from discreet.learn.session import Source, begin_fit

_TO_START = (15, 8, 20, 20)  # hundredths: where columns lie, how far they spread, their products, a grid
_TO_STEP = 37
_MOST_CLUSTERS, _MOST_STEPS = 1000, 100


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
        return self._learn(source_of(self, X, unit=unit, ledger=ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Learn from the rows of a curator's query."""
        return self._learn(source_of_query(self, rows))

    def _learn(self, source: Source) -> Self:
        clusters = whole(self.n_clusters, "n_clusters", least=1)
        steps = whole(self.n_iter, "n_iter", least=1)
        if clusters > _MOST_CLUSTERS or steps > _MOST_STEPS:
            raise ValueError(
                f"n_clusters and n_iter must be at most {_MOST_CLUSTERS} and {_MOST_STEPS}: noise would hide more"
            )
        session = begin_fit(self, source, [each * steps for each in _TO_START] + [_TO_STEP] * steps)
        found = find_clusters(session, (source.rows.low, source.rows.high), clusters, steps)
        self.cluster_centers_, self.counts_, self.n_iter_ = found.centres, found.counts, steps
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
