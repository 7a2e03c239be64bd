"""GaussianNB: naive Bayes with private class means and variances."""

from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.ledger import Ledger
from discreet.kernel.numbers import Number
from discreet.learn.class_fallback import CHECK_SHARE, QuadraticScores, prefers_largest_class
from discreet.learn.class_moments import noisy_class_moments
from discreet.learn.feature_scaling import learn_scaling
from discreet.learn.fit_cost import REMOVAL
from discreet.learn.fit_inputs import (
    ClassLabels,
    QueryRows,
    class_labels_of_column,
    read_class_labels,
    source_from_data,
    source_from_query,
)
from discreet.learn.fit_session import FitSession, FitSource, open_model_session

_SHARES = (0.05, 0.2, 0.05, 0.7)  # budget shares: row norms, centres and scales, norms again, class moments
_VARIANCE_CHOICES = ("shared", "own")


class GaussianNB(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian naive Bayes classifier.

    By default all classes share the feature variances, which halves the number of parameters and the noise.
    `variances="own"` estimates variances per class, as scikit-learn does. Classes differ in nothing but their priors if
    noise makes the model worse than always to predict the class with the largest prior; `advantage_` is the noisy
    difference of their accuracies.

    >>> import numpy as np, discreet as dc
    >>> ages = np.random.default_rng(0).integers(18, 90, size=(5000, 1))
    >>> model = dc.learn.GaussianNB(epsilon=1, bounds=(0, 120), classes=["paid", "retired"])
    >>> model.fit(ages, np.where(ages[:, 0] < 65, "paid", "retired")).predict([[30], [80]]).tolist()
    ['paid', 'retired']
    """

    def __init__(  # noqa: PLR0913 - scikit-learn requires one parameter per setting
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
        """Fit to X and the labels y; rows with the same `unit` together count as one row."""
        labels = read_class_labels(X, y, self.classes)
        return self._fit_source(source_from_data(self, X, target=labels.target, unit=unit, ledger=ledger), labels)

    def fit_rows(self, rows: QueryRows) -> Self:
        """Fit to the rows of a curator's query, whose last column is the numeric label."""
        labels = class_labels_of_column(rows.names[-1], self.classes)
        return self._fit_source(source_from_query(self, rows, labels.target), labels)

    def _fit_source(self, source: FitSource, labels: ClassLabels) -> Self:
        if self.variances not in _VARIANCE_CHOICES:
            raise ValueError(f"variances must be one of {_VARIANCE_CHOICES}, not {self.variances!r}")
        priors = _check_priors(self.priors, labels)
        session = open_model_session(self, source, (*labels.selection_shares, *_SHARES, CHECK_SHARE))
        label_codes, self.classes_ = labels.resolve_classes(session)
        scaling = learn_scaling(session, (source.rows.low[:-1], source.rows.high[:-1]))
        class_moments = noisy_class_moments(
            session, scaling, label_codes, _SHARES[2:], own_variances=self.variances == "own"
        )
        self.class_count_ = class_moments.counts
        self.class_prior_ = class_moments.shares if priors is None else priors
        self.theta_ = scaling.centre + scaling.scale * class_moments.means
        self.var_ = scaling.scale**2 * class_moments.variances
        self._compare_with_largest_class(session, label_codes)
        return session.finish(self)

    def _compare_with_largest_class(self, session: FitSession, label_codes: np.ndarray) -> None:
        """Make all classes alike but for their priors if that is better."""
        constants = self._log_constants()
        scores = QuadraticScores(constants, np.zeros_like(self.theta_), self.theta_, 1 / (2 * self.var_))
        equal, self.advantage_ = prefers_largest_class(
            session, scores, label_codes, self.class_count_, self.class_prior_
        )
        if equal:
            self.theta_, self.var_ = (
                np.tile(self.class_count_ @ each / self.class_count_.sum(), (len(each), 1))
                for each in (self.theta_, self.var_)
            )

    def _log_constants(self) -> np.ndarray:
        """Return the log-density of each class at its mean, with its prior."""
        with np.errstate(divide="ignore"):  # a prior may be zero
            return np.asarray(np.log(self.class_prior_) - np.log(2 * np.pi * self.var_).sum(axis=1) / 2)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[joint.argmax(axis=1)])

    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        """Return the joint log-density of each row and each class."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        joint = np.empty((len(X), len(self.classes_)))
        constant = self._log_constants()
        for k in range(len(self.classes_)):
            joint[:, k] = constant[k] - ((X - self.theta_[k]) ** 2 / self.var_[k]).sum(axis=1) / 2
        return joint

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the log-probability of each class for each row."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(joint - logsumexp(joint, axis=1)[:, np.newaxis])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class for each row."""
        return np.asarray(np.exp(self.predict_log_proba(X)))


def _check_priors(priors: Any, labels: ClassLabels) -> np.ndarray | None:
    """Return the declared class probabilities, or None."""
    if priors is None:
        return None
    if labels.codes is None:
        raise ValueError("priors: declare the classes too, in the same order, such as classes=[0, 1]")
    n_classes = len(labels.names)
    probabilities = np.asarray(priors, dtype=np.float64)
    if probabilities.shape != (n_classes,) or not (probabilities >= 0).all() or abs(probabilities.sum() - 1) > 1e-6:
        raise ValueError(f"priors must be {n_classes} probabilities that add up to 1, one per class in sorted order")
    return probabilities
