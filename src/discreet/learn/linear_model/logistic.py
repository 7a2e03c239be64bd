"""LogisticRegression: a few noisy Newton steps, starting from the class means."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.ledger import Ledger
from discreet.kernel.numbers import Number, as_positive
from discreet.learn.class_fallback import CHECK_SHARE, QuadraticScores, prefers_largest_class
from discreet.learn.class_moments import ClassMoments, noisy_class_moments
from discreet.learn.feature_scaling import FeatureScaling, learn_scaling, sequential_sum, soft_threshold, standardise
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

_MAX_FIRST_WEIGHT = 3.0  # maximum initial weight: with correlated features, naive Bayes is overconfident
_HESSIAN_WEIGHT = 0.5  # weight of second derivatives, relative to first derivatives
_MAX_SCORE = 3.0  # scores along a direction are clamped to ± this
# Up to this many features are refined separately, if the noise in the Hessian is below the limit.
_MAX_SINGLE_FEATURES, _MAX_HESSIAN_NOISE = 20, 0.05
_MAX_STEP = 2.5  # maximum change of a coefficient in one step
_NEARLY_CONSTANT_VARIANCE = 0.06  # relative to the largest variance: below this, a feature may be constant
# Ridge per unit of noise in the class means. With more than two classes all weights form one direction, which later
# steps cannot split, so there is no ridge.
_RIDGE_PER_NOISE, _MAX_RIDGE = 2.0, 0.2
_MIN_SIGNAL_SHARE = 0.2  # minimum share of a gradient's square that noise does not explain

WeightsAndIntercepts = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class LogisticProblem:
    """The regression problem: standardised features, class moments, class codes and an l2 penalty."""

    scaling: FeatureScaling
    class_moments: ClassMoments
    label_codes: np.ndarray
    penalty: float
    fit_intercept: bool

    @property
    def count(self) -> float:
        """The noisy number of units."""
        return float(self.class_moments.counts.sum())

    @property
    def n_scores(self) -> int:
        """The number of linear scores: 1 for two classes (that of the second), else one per class."""
        return 1 if len(self.label_codes) == 2 else len(self.label_codes)


@dataclass(frozen=True)
class _DirectionalWeights:
    """Weights as a linear combination of directions; the last coefficients are the intercepts."""

    directions: np.ndarray  # directions × scores × features
    coefficients: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        return np.asarray(np.tensordot(self.coefficients[: len(self.directions)], self.directions, axes=1))

    def intercepts(self, n_scores: int) -> np.ndarray:
        values = self.coefficients[len(self.directions) :]
        return values if len(values) else np.zeros(n_scores)


def noisy_newton(session: FitSession, problem: LogisticProblem) -> WeightsAndIntercepts:
    """Return weights and intercepts from three releases.

    With few features and little noise, these are three Newton steps over all weights. Otherwise: one step along the
    direction of the class means, then the gradient as a second direction, then one step along both directions.
    """
    fit = _initial_weights(problem)
    length = 1 + problem.class_moments.usual_norm
    radius = length / 2 + _HESSIAN_WEIGHT * length**2 / 10
    d = len(problem.scaling.centre)
    noise = session.sd(radius) / problem.count / _HESSIAN_WEIGHT * math.sqrt(d)
    if problem.n_scores == 1 and d <= _MAX_SINGLE_FEATURES and noise < _MAX_HESSIAN_NOISE:
        fit = _DirectionalWeights(np.eye(d)[:, np.newaxis, :], np.concatenate([fit.weights[0], fit.coefficients[1:]]))
        radius *= min(max(0.3 * _MAX_HESSIAN_NOISE / noise, 0.6), 4.0)  # a larger radius clips fewer rows
        for _ in range(3):
            fit = _newton_step(session, problem, fit, radius)
    else:
        radius = 3.0 if problem.n_scores == 1 else 4.5
        fit = _newton_step(session, problem, fit, radius)
        fit = _newton_step(session, problem, _add_gradient_direction(session, problem, fit), radius)
    return fit.weights, fit.intercepts(problem.n_scores)


def _initial_weights(problem: LogisticProblem) -> _DirectionalWeights:
    """Return the direction of naive Bayes with shared variances, at a limited size."""
    means, shares = problem.class_moments, problem.class_moments.shares
    # Dividing by the variance of a nearly constant feature would only amplify noise.
    ridge = min(_RIDGE_PER_NOISE * means.mean_sd, _MAX_RIDGE) if problem.n_scores == 1 else 0.0
    weights = means.means * means.variances / (means.variances**2 + ridge**2)
    intercepts = -(means.means * weights).sum(axis=1) / 2
    log_shares = np.log(shares)
    if problem.n_scores == 1:
        weights, intercepts, log_shares = (
            weights[1:] - weights[:1],
            intercepts[1:] - intercepts[:1],
            log_shares[1:] - log_shares[:1],
        )
    else:
        weights, intercepts = weights - shares @ weights, intercepts - intercepts.mean()
    direction, size = _normalise(weights)
    first = min(size, _MAX_FIRST_WEIGHT)
    first_intercepts = log_shares + intercepts * (first / size) if problem.fit_intercept else np.empty(0)
    return _DirectionalWeights(direction[np.newaxis], np.concatenate([[first], first_intercepts]))


def _normalise(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return weights scaled so that scores have a standard deviation near 1, correlated or not, and the scale."""
    l1_norm, l2_norm = np.abs(weights).sum(axis=1).mean(), np.sqrt((weights**2).sum(axis=1)).mean()
    size = max(float(np.sqrt(l1_norm * l2_norm)), 1e-9)
    return weights / size, size


def _newton_step(
    session: FitSession, problem: LogisticProblem, fit: _DirectionalWeights, radius: float
) -> _DirectionalWeights:
    """Return the weights after one Newton step, shrunk according to the noise."""
    q, m = len(fit.coefficients), len(fit.directions)
    one_by_one = m == len(problem.scaling.centre)
    scaling = problem.scaling
    public = (
        scaling.centre,
        scaling.scale,
        fit.directions,
        fit.coefficients,
        problem.label_codes,
        math.inf if one_by_one else _MAX_SCORE,
    )
    noise = session.sd(radius) / problem.count
    total = session.sum(_gradient_and_hessian, public, size=q + q * (q + 1) // 2, radius=radius) / problem.count
    rows, columns = np.triu_indices(q)
    hessian = np.zeros((q, q))
    hessian[rows, columns] = hessian[columns, rows] = total[q:] / _HESSIAN_WEIGHT
    flat_directions = fit.directions.reshape(m, -1)
    penalty = np.zeros((q, q))
    penalty[:m, :m] = flat_directions @ flat_directions.T * problem.penalty / problem.count
    eigenvalues, eigenvectors = np.linalg.eigh(hessian + penalty)
    positive_hessian = (eigenvectors * np.maximum(eigenvalues, 1e-4)) @ eigenvectors.T
    gradient = total[:q] + penalty @ fit.coefficients
    noise_variance = noise**2 * (1 + _HESSIAN_WEIGHT**-2)  # prior: a coefficient is off by about 1
    extra_ridge = np.zeros(q)
    if one_by_one:  # the prior weight of a nearly constant feature is 0, not its present one
        variances = problem.class_moments.variances.mean(axis=0)
        extra_ridge[:m] = np.maximum(_NEARLY_CONSTANT_VARIANCE * variances.max() / variances - 1, 0)
    right_hand_side = positive_hessian @ gradient + noise_variance * extra_ridge * fit.coefficients
    step = -np.linalg.solve(
        positive_hessian @ positive_hessian + noise_variance * np.diag(1 + extra_ridge), right_hand_side
    )
    return _DirectionalWeights(fit.directions, fit.coefficients + np.clip(step, -_MAX_STEP, _MAX_STEP))


def _add_gradient_direction(
    session: FitSession, problem: LogisticProblem, fit: _DirectionalWeights
) -> _DirectionalWeights:
    """Return the weights with the noisy gradient as another direction, unless noise dominates it."""
    scaling, class_moments, n_scores = problem.scaling, problem.class_moments, problem.n_scores
    radius = class_moments.usual_norm * (0.5 if n_scores == 1 else 0.8)
    noise_variance = session.sd(radius) ** 2
    weights = fit.weights
    public = (
        scaling.centre,
        scaling.scale,
        class_moments.threshold,
        weights,
        fit.intercepts(n_scores),
        problem.label_codes,
    )
    gradient = session.sum(_gradient, public, size=weights.size, radius=radius).reshape(weights.shape)
    mean_square = float((gradient**2).mean())
    if mean_square - noise_variance * (1 + math.sqrt(5 / gradient.size)) < _MIN_SIGNAL_SHARE * mean_square:
        return fit
    m = len(fit.directions)
    directions = np.concatenate([fit.directions, _normalise(-gradient)[0][np.newaxis]])
    return _DirectionalWeights(directions, np.insert(fit.coefficients, m, 0.0))


def _class_probabilities(scores: np.ndarray) -> np.ndarray:
    """Return the probabilities of the classes that have a score: scores × rows."""
    if len(scores) == 1:
        return np.asarray(1 / (1 + np.exp(-np.clip(scores, -30, 30))))
    powers = np.exp(scores - scores.max(axis=0))
    return np.asarray(powers / sequential_sum(powers))


def _probabilities_and_residuals(
    scores: np.ndarray, label: np.ndarray, label_codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and their residuals (probability - indicator); both are zero for rows of no class."""
    indicators = (label == label_codes[:, np.newaxis]).astype(np.float64)
    has_class = sequential_sum(indicators)
    expected = _class_probabilities(scores) * has_class
    return expected, expected - indicators[-len(scores) :]


def _gradient(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    centre, scale, threshold, weights, intercepts, label_codes = public
    features = standardise(rows, centre, scale)
    scores = sequential_sum(weights[:, :, np.newaxis] * features, axis=1) + intercepts[:, np.newaxis]
    _, residuals = _probabilities_and_residuals(scores, rows[:, -1], label_codes)
    excess = soft_threshold(threshold, features)
    return np.asarray((residuals[:, np.newaxis, :] * excess).reshape(-1, len(rows)).T)


def _gradient_and_hessian(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Return the gradient and the upper triangle of the Hessian for each row."""
    centre, scale, directions, coefficients, label_codes, max_score = public
    (m, n_scores, _), q, n = directions.shape, len(coefficients), len(rows)
    features = standardise(rows, centre, scale)
    parts = np.zeros((q, n_scores, n))
    for k in range(m):
        parts[k] = np.clip(sequential_sum(directions[k][:, :, np.newaxis] * features, axis=1), -max_score, max_score)
    for k in range(q - m):
        parts[m + k, k] = 1
    scores = sequential_sum(coefficients[:, np.newaxis, np.newaxis] * parts)
    expected, residuals = _probabilities_and_residuals(scores, rows[:, -1], label_codes)
    first = sequential_sum(residuals * parts, axis=1)
    means = sequential_sum(expected * parts, axis=1)
    out = [first]
    for k in range(q):
        second = sequential_sum(expected * parts[k] * parts[k:], axis=1) - means[k] * means[k:]
        out.append(_HESSIAN_WEIGHT * second)
    return np.concatenate(out).T


_START_SHARES = (0.05, 0.17, 0.05, 0.53)  # budget shares: row norms, centres and scales, norms again, class moments
_NEWTON_SHARES = (0.04, 0.06, 0.1)


class LogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression with an l2 penalty.

    `C` is the inverse of the regularisation strength, as in scikit-learn; the penalty applies to standardised features.
    All coefficients are zero if noise makes the model worse than always to predict the most frequent class;
    `advantage_` is the noisy difference of their accuracies.

    >>> import numpy as np, discreet as dc
    >>> ages = np.random.default_rng(0).integers(18, 90, size=(5000, 1))
    >>> model = dc.learn.LogisticRegression(epsilon=1, bounds=(0, 120), classes=["paid", "retired"])
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
        C: float = 1.0,
        fit_intercept: bool = True,
        neighbours: str = REMOVAL,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.neighbours = epsilon, delta, bounds, neighbours
        self.classes, self.C, self.fit_intercept = classes, C, fit_intercept

    def fit(self, X: Any, y: Any, *, unit: Any = None, ledger: Ledger | None = None) -> Self:
        """Fit to X and the labels y; rows with the same `unit` together count as one row."""
        labels = read_class_labels(X, y, self.classes)
        return self._fit_source(source_from_data(self, X, target=labels.target, unit=unit, ledger=ledger), labels)

    def fit_rows(self, rows: QueryRows) -> Self:
        """Fit to the rows of a curator's query, whose last column is the numeric label."""
        labels = class_labels_of_column(rows.names[-1], self.classes)
        return self._fit_source(source_from_query(self, rows, labels.target), labels)

    def _fit_source(self, source: FitSource, labels: ClassLabels) -> Self:
        penalty = 1 / float(as_positive(self.C, "C"))
        check = (CHECK_SHARE,) if self.fit_intercept else ()
        session = open_model_session(self, source, [*labels.selection_shares, *_START_SHARES, *_NEWTON_SHARES, *check])
        label_codes, self.classes_ = labels.resolve_classes(session)
        scaling = learn_scaling(session, (source.rows.low[:-1], source.rows.high[:-1]))
        if not self.fit_intercept:
            scaling = scaling.centred_at_zero()
        class_moments = noisy_class_moments(session, scaling, label_codes, _START_SHARES[2:])
        weights, intercepts = noisy_newton(
            session, LogisticProblem(scaling, class_moments, label_codes, penalty, self.fit_intercept)
        )
        self.class_count_ = class_moments.counts
        self.coef_ = weights / scaling.scale
        self.intercept_ = intercepts - (self.coef_ * scaling.centre).sum(axis=1)
        if self.fit_intercept:
            self._compare_with_largest_class(session, label_codes)
        return session.finish(self)

    def _compare_with_largest_class(self, session: FitSession, label_codes: np.ndarray) -> None:
        """Set all coefficients to zero, and the intercepts to the classes' shares, if that is better."""
        first = len(label_codes) - len(self.coef_)  # with two classes, the first has no score
        constants, slopes = np.zeros(len(label_codes)), np.zeros((len(label_codes), self.coef_.shape[1]))
        constants[first:], slopes[first:] = self.intercept_, self.coef_
        none = np.zeros_like(slopes)
        scores = QuadraticScores(constants, slopes, none, none)
        equal, self.advantage_ = prefers_largest_class(
            session, scores, label_codes, self.class_count_, self.class_count_
        )
        if equal:
            logs = np.log(self.class_count_ / self.class_count_.sum())
            self.coef_, self.intercept_ = np.zeros_like(self.coef_), logs[1:] - logs[:1] if first else logs

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each class or, for two classes, of the second only."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        scores = X @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class for each row."""
        scores = self.decision_function(X)
        return np.column_stack([expit(-scores), expit(scores)]) if scores.ndim == 1 else softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the log-probability of each class for each row."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))
