"""Logistic regression, learned privately."""

from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.exact import Number, positive
from discreet.kernel.ledger import Ledger
from discreet.learn.classes.class_means import class_means
from discreet.learn.classes.labels import Labels, column_labels, labels_of
from discreet.learn.classes.newton import Problem, refined
from discreet.learn.classes.spread import spread_of
from discreet.learn.inputs import QueryRows, source_of, source_of_query
from discreet.learn.losses import REMOVAL
from discreet.learn.session import Source, begin_fit

_BEGINNING = (0.05, 0.17, 0.05, 0.53)  # of the price: lengths of rows, centres and scales, lengths again, classes
_REFINING = (0.04, 0.06, 0.1)


class LogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts classes from sums of features, weighted so that the labels would be likely.

    `C` is the strength of the data against a penalty on large weights, of features in deviations, as scikit-learn's.

    >>> import numpy as np, discreet as dc
    >>> ages = np.random.default_rng(0).integers(18, 90, size=(5000, 1))
    >>> model = dc.learn.LogisticRegression(epsilon=1, bounds=(0, 120), classes=["paid", "retired"])
    >>> model.fit(ages, np.where(ages[:, 0] < 65, "paid", "retired")).predict([[30], [80]]).tolist()
    ['paid', 'retired']
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's way: every setting is a parameter
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        classes: Any = None,
        C: float = 1.0,
        fit_intercept: bool = True,
        neighbours: str = REMOVAL,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.neighbours = epsilon, delta, bounds, neighbours
        self.classes, self.C, self.fit_intercept = classes, C, fit_intercept

    def fit(self, X: Any, y: Any, *, unit: Any = None, ledger: Ledger | None = None) -> Self:
        """Learn weights from X and its labels y; rows with an equal `unit` are one person's, and weigh as one."""
        labels = labels_of(X, y, self.classes)
        return self._learn(source_of(self, X, target=labels.target, unit=unit, ledger=ledger), labels)

    def fit_rows(self, rows: QueryRows) -> Self:
        """Learn from the rows of a curator's query, whose last column is the label, a number."""
        labels = column_labels(rows.names[-1], self.classes)
        return self._learn(source_of_query(self, rows, labels.target), labels)

    def _learn(self, source: Source, labels: Labels) -> Self:
        penalty = 1 / float(positive(self.C, "C"))
        session = begin_fit(self, source, (*labels.shares, *_BEGINNING, *_REFINING))
        marks, self.classes_ = labels.found(session)
        spread = spread_of(session, (source.rows.low[:-1], source.rows.high[:-1]))
        if not self.fit_intercept:
            spread = spread.around_zero()
        means = class_means(session, spread, marks, _BEGINNING[2:])
        weights, offsets = refined(session, Problem(spread, means, marks, penalty, self.fit_intercept))
        self.class_count_ = means.counts
        self.coef_ = weights / spread.scale
        self.intercept_ = offsets - (self.coef_ * spread.centre).sum(axis=1)
        return session.finish(self)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return a score for every class, or of two classes for the second alone."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        scores = X @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest class of every row."""
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return every class's probability."""
        scores = self.decision_function(X)
        return np.column_stack([expit(-scores), expit(scores)]) if scores.ndim == 1 else softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of every class's probability."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))
