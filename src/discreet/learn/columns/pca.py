"""Principal component analysis, learned privately."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.exact import Number, whole
from discreet.kernel.ledger import Ledger
from discreet.learn.columns.axes import Axes, principal_axes
from discreet.learn.inputs import QueryRows, source_of, source_of_query
from discreet.learn.losses import REMOVAL
from discreet.learn.session import Source, begin_fit

_SHARES = ("0.15", "0.1", "0.75")  # where columns lie, how far they spread, their products


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Finds the directions in which rows differ most.

    >>> x = np.random.default_rng(0).normal(size=(100_000, 1))
    >>> pca = PCA(1, epsilon=1, bounds=(-5, 5)).fit(np.hstack([x, 0.1 - x]))
    >>> bool(abs(pca.components_[0] @ [1, -1]) > 1.4), pca.loss_
    (True, Loss(epsilon=1, rho=1/2, for the removal of one row))
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's way: every setting is a parameter
        self,
        n_components: int | None = None,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        whiten: bool = False,
        centered: bool = False,
        neighbours: str = REMOVAL,
    ) -> None:
        self.n_components, self.whiten, self.centered = n_components, whiten, centered
        self.epsilon, self.delta, self.bounds, self.neighbours = epsilon, delta, bounds, neighbours

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, ledger: Ledger | None = None) -> Self:  # noqa: ARG002 - y is for Pipelines
        """Learn the components of X; rows with an equal `unit` are one person's, and weigh together as one."""
        return self._learn(source_of(self, X, unit=unit, ledger=ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Learn from the rows of a curator's query."""
        return self._learn(source_of_query(self, rows))

    def _learn(self, source: Source) -> Self:
        ends = source.rows.low, source.rows.high
        columns = len(ends[0])
        kept = columns if self.n_components is None else whole(self.n_components, "n_components", least=1)
        if kept > columns:
            raise ValueError(f"n_components must be at most {columns}, the number of columns, not {kept}")
        session = begin_fit(self, source, _SHARES)
        axes = principal_axes(session, ends, least=kept, known=np.zeros(columns) if self.centered else None)
        self._keep(axes, kept)
        return session.finish(self)

    def _keep(self, axes: Axes, kept: int) -> None:
        components = axes.directions.T[:kept]
        largest = np.abs(components).argmax(axis=1)
        self.components_ = components * np.sign(components[np.arange(kept), largest])[:, np.newaxis]
        self.mean_, self.n_components_, self.n_samples_ = axes.mean, kept, axes.count
        self.explained_variance_ = axes.sure[:kept]
        explained = float(self.explained_variance_.sum())
        total = max(axes.total, explained, np.finfo(float).tiny)
        self.explained_variance_ratio_ = self.explained_variance_ / total
        self.singular_values_ = np.sqrt(self.explained_variance_ * max(axes.count - 1, 1.0))
        rest = axes.directions.shape[0] - kept
        self.noise_variance_ = (total - explained) / rest if rest else 0.0

    def transform(self, X: Any) -> np.ndarray:
        """Return the rows' places along the components."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray((X - self.mean_) @ self.components_.T / self._scale())

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the rows with these places along the components."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, np.float64) * self._scale() @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _scale(self) -> Any:
        if not self.whiten:
            return 1.0
        least = np.finfo(float).eps * (self.explained_variance_.max() + np.finfo(float).tiny)
        return np.sqrt(np.maximum(self.explained_variance_, least))
