"""Naive Bayes with normal features, learned privately."""

from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.exact import Number
from discreet.kernel.ledger import Ledger
from discreet.learn.classes.class_means import class_means
from discreet.learn.classes.labels import Labels, column_labels, labels_of
from discreet.learn.classes.spread import spread_of
from discreet.learn.inputs import QueryRows, source_of, source_of_query
from discreet.learn.losses import REMOVAL
from discreet.learn.session import Source, begin_fit

_SHARES = (0.05, 0.2, 0.05, 0.7)  # of the price: lengths of rows, centres and scales, lengths again, classes
_VARIANCES = ("shared", "own")


class GaussianNB(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts the class whose features are normally distributed around the likeliest centre, one by one.

    All classes share the variances of features: there is half as much to learn, and noise hides less of it.
    `variances="own"` asks for those of every class, as scikit-learn does.

    >>> import numpy as np, discreet as dc
    >>> ages = np.random.default_rng(0).integers(18, 90, size=(5000, 1))
    >>> model = dc.learn.GaussianNB(epsilon=1, bounds=(0, 120), classes=["paid", "retired"])
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
        priors: Any = None,
        variances: str = "shared",
        neighbours: str = REMOVAL,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.neighbours = epsilon, delta, bounds, neighbours
        self.classes, self.priors, self.variances = classes, priors, variances

    def fit(self, X: Any, y: Any, *, unit: Any = None, ledger: Ledger | None = None) -> Self:
        """Learn classes from X and their labels y; rows with an equal `unit` are one person's, and weigh as one."""
        labels = labels_of(X, y, self.classes)
        return self._learn(source_of(self, X, target=labels.target, unit=unit, ledger=ledger), labels)

    def fit_rows(self, rows: QueryRows) -> Self:
        """Learn from the rows of a curator's query, whose last column is the label, a number."""
        labels = column_labels(rows.names[-1], self.classes)
        return self._learn(source_of_query(self, rows, labels.target), labels)

    def _learn(self, source: Source, labels: Labels) -> Self:
        if self.variances not in _VARIANCES:
            raise ValueError(f"variances must be one of {_VARIANCES}, not {self.variances!r}")
        priors = _checked(self.priors, labels)
        session = begin_fit(self, source, (*labels.shares, *_SHARES))
        marks, self.classes_ = labels.found(session)
        spread = spread_of(session, (source.rows.low[:-1], source.rows.high[:-1]))
        learned = class_means(session, spread, marks, _SHARES[2:], own=self.variances == "own")
        self.class_count_ = learned.counts
        self.class_prior_ = learned.shares if priors is None else priors
        self.theta_ = spread.centre + spread.scale * learned.means
        self.var_ = spread.scale**2 * learned.variances
        return session.finish(self)

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest class of every row."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[joint.argmax(axis=1)])

    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of the density of every row together with each class."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        joint = np.empty((len(X), len(self.classes_)))
        with np.errstate(divide="ignore"):  # a prior may be zero
            constant = np.log(self.class_prior_) - np.log(2 * np.pi * self.var_).sum(axis=1) / 2
        for k in range(len(self.classes_)):
            joint[:, k] = constant[k] - ((X - self.theta_[k]) ** 2 / self.var_[k]).sum(axis=1) / 2
        return joint

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of every class's probability."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(joint - logsumexp(joint, axis=1)[:, np.newaxis])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return every class's probability."""
        return np.asarray(np.exp(self.predict_log_proba(X)))


def _checked(priors: Any, labels: Labels) -> np.ndarray | None:
    """Read probabilities of classes that the caller knows beforehand."""
    if priors is None:
        return None
    if labels.marks is None:
        raise ValueError("priors: name the classes too, such as classes=[0, 1], in the order of their priors")
    classes = len(labels.names)
    shares = np.asarray(priors, dtype=np.float64)
    if shares.shape != (classes,) or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise ValueError(f"priors must be {classes} probabilities, one for each class in order, that add up to 1")
    return shares
