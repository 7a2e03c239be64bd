"""LinearRegression: least squares from one noisy sum of the products of all columns.

A column may be rare: nearly always zero, as the columns of a category are. Its mean deviation then says little of how
far a value lies that is not zero, and its spread may be lost in noise. So units come from squares, never below what
noise can hide; no value is moved towards the others, which would make a rare one's weight too large; and weights are
expected to be moderate over the declared ranges.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.ledger import Ledger
from discreet.kernel.numbers import Number
from discreet.learn.bounds import BoundArrays, parse_bounds
from discreet.learn.fit_cost import REMOVAL
from discreet.learn.fit_inputs import QueryRows, TargetColumn, query_target_bounds, source_from_data, source_from_query
from discreet.learn.fit_session import FitSession, FitSource, open_model_session
from discreet.learn.moments import (
    ColumnLocation,
    fill_pair_products,
    locate_columns,
    noise_norm,
    shrink_to_common_mean,
    shrinkage_factor,
    symmetric_from_upper,
)

_TARGET_LOCATION_WEIGHT = (
    0.4  # the target's weight in the first look, for each feature: a wrong mean costs more than anything
)
_FEATURE_PRODUCT_WEIGHT = 0.4  # weight of a product of two features; one of a feature and the target has 1
_COUNT_WEIGHT, _FEATURE_MEAN_WEIGHT, _TARGET_MEAN_WEIGHT = (
    0.15,
    0.1,
    0.25,
)  # weights of count and first moments, relative to all products together
_NORMAL_MEAN_ABS = np.sqrt(2 / np.pi)  # the mean of |z|, if z is normal
_MAX_CORRELATION_NOISE = 0.25  # noise of correlations, that times the root of the room, up to which long rows get room
_RADIUS_FACTORS = (1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_RADIUS_SHARE = 0.2  # of the widest row's squares: rows usually stay within it, and a row beyond is scaled down
_PRIOR_SQUARE, _PRIOR_SQUARE_SD, _BETWEEN_SQUARES_SD = (
    0.15,
    0.15,
    0.1,
)  # of half a range, squared: what squares one expects, and how different
_NOISE_SHARE_IN_SCALE = (
    0.15  # of the noise in a square: so much of it a unit holds, lest a column seem wide that is constant
)
_MIN_SQUARE = 1e-9
_PRIOR_EFFECT = 0.5  # of the target's range: what a feature is expected to move it by, from end to end of its own
_PRIOR_R2 = 0.4  # the share of the target's variance that one expects features to explain
_PRIOR_CORRELATION_SQUARED = 0.1  # squared: what one expects of two features
_PRIOR_VARIANCE_ERROR = 0.5  # how far a variance may be from its unit's square, which the first look tells
_MIN_SCALE_VARIANCE = (
    0.1  # a narrower column than its unit says is constant for all one knows: its weight is not to grow
)
_TINY = 1e-12
_MIN_EIGENVALUE = 0.03  # no combination of features varies less, unless the noise lets one see it


@dataclass(frozen=True)
class ScaledMoments:
    """What is known of columns in units of their spread: means, second moments, and the noise of each."""

    mean: np.ndarray
    covariance: np.ndarray
    covariance_sd: np.ndarray


def noisy_least_squares(
    session: FitSession, bounds: BoundArrays, origin: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """Return coefficients and intercept for the last column; lines go through the origin, if one is given."""
    n_features = len(bounds[0]) - 1
    weight = np.append(np.ones(n_features), 1 + _TARGET_LOCATION_WEIGHT * n_features)
    location = locate_columns(session, bounds, weight, origin)
    expected_variances, relative_scale = _expected_variances(session, location, weight)
    scale = relative_scale * location.half_range
    moments = _noisy_moments(session, location, scale)
    prior_effect = (
        _PRIOR_EFFECT * relative_scale[:-1] / relative_scale[-1]
    )  # what a feature is to move the target by, both in units
    coefficients = _shrunken_coefficients(moments, expected_variances, prior_effect) * scale[-1] / scale[:-1]
    if origin is not None:
        return coefficients, 0.0
    mean = np.clip(location.centre + moments.mean * scale, *bounds)
    return coefficients, float(mean[-1] - coefficients @ mean[:-1])


def _expected_variances(
    session: FitSession, location: ColumnLocation, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Draw how far columns spread; return the variances to expect in units, and these, as parts of half a range."""
    radius = _RADIUS_SHARE * noise_norm(session, weight)
    noise_sd = session.sd(radius) / location.count / weight
    total = session.sum(
        _squared_deviations, (location.centre, location.half_range, weight), size=len(weight), radius=radius
    )
    shrunken, remaining_sd = shrink_to_common_mean(
        total / location.count / weight,
        noise_sd,
        prior=(_PRIOR_SQUARE, _PRIOR_SQUARE_SD),
        between_sd=_BETWEEN_SQUARES_SD,
    )
    square = np.clip(location.count_reliability * shrunken + (1 - location.count_reliability) * _PRIOR_SQUARE, 0, 1)
    scale_squared = np.clip(square + _NOISE_SHARE_IN_SCALE * remaining_sd, _MIN_SQUARE, 1)
    return square / scale_squared, np.sqrt(scale_squared)


def _noisy_moments(session: FitSession, location: ColumnLocation, scale: np.ndarray) -> ScaledMoments:
    """Draw the products of all columns, with their means and the number of rows once more."""
    d = len(scale)
    weights = _entry_weights(session, d)
    usual_sizes = np.concatenate(
        [
            weights[:1],
            weights[1 : d + 1] * _usual_column_size(session),
            weights[d + 1 :] * _usual_product_sizes(session, d),
        ]
    )
    radius = float(np.sqrt((usual_sizes**2).sum()) if session.is_gaussian else usual_sizes.sum())
    max_factor = _MAX_CORRELATION_NOISE * location.count / (session.sd(radius) * np.sqrt(d))
    radius_factor = max((factor for factor in _RADIUS_FACTORS if factor**1.5 <= max_factor), default=1.0)
    sd = session.sd(radius_factor * radius)
    public = location.centre, scale, weights
    total = session.sum(_weighted_moments, public, size=len(weights), radius=radius_factor * radius) / weights
    # Long rows are scaled down as a whole, also their presence: what is divided by is the weight of all rows.
    count = max(float(total[0]), 2 * sd / weights[0], 10.0)
    noise_sd = sd / count / weights[1:]
    mean = total[1 : d + 1] / count * shrinkage_factor(location.centre_sd / scale, noise_sd[:d])
    covariance = symmetric_from_upper(total[d + 1 :] / count, d) - np.outer(mean, mean)
    return ScaledMoments(mean, covariance, symmetric_from_upper(noise_sd[d:], d))


def _shrunken_coefficients(
    moments: ScaledMoments, expected_variances: np.ndarray, prior_effect: np.ndarray
) -> np.ndarray:
    """Return the weights of features, in units: least squares as far as the noise lets one see it.

    With covariances A between features and b with the target, b is A·w and noise: both are corrected by what one
    expects of w without data, which has variances V, and of the noise, N, which gives (A·N⁻¹·A + V⁻¹)⁻¹·A·N⁻¹·b.
    """
    p = len(prior_effect)
    variance = _shrunken_variances(moments, expected_variances)
    scale = np.sqrt(np.maximum(variance[:p], _MIN_SCALE_VARIANCE))
    cross_sd = float(moments.covariance_sd[0, 1]) if p > 1 else float(moments.covariance_sd[0, 0])
    covariance = _feature_correlation(moments, variance, scale, cross_sd)
    with_target = moments.covariance[:p, p] / scale
    noise_variance = (moments.covariance_sd[:p, p] ** 2 + _PRIOR_R2 * cross_sd**2) / scale**2
    prior_precision = p / (_PRIOR_R2 * variance[p]) + (prior_effect * scale) ** -2
    weighted_covariance = (
        covariance / noise_variance
    )  # each column by its own noise: where a spread is small, noise is not
    weights = np.linalg.solve(
        weighted_covariance @ covariance + np.diag(prior_precision), weighted_covariance @ with_target
    )
    # Weights that vary more than what they explain, as far as was seen, predict worse than the mean alone.
    raw_covariance = moments.covariance[:p, :p] / np.outer(scale, scale)
    predicted_variance = max(
        float(weights @ covariance @ weights), float(weights @ raw_covariance @ weights), np.finfo(float).tiny
    )
    return np.asarray(weights / scale * np.clip(weights @ with_target / predicted_variance, 0, 1))


def _shrunken_variances(moments: ScaledMoments, expected_variances: np.ndarray) -> np.ndarray:
    """Return the variances of columns, as far as one can see them, and none that noise would hide."""
    noise_sd = np.diag(moments.covariance_sd)
    shrunken = expected_variances + (np.diag(moments.covariance) - expected_variances) * shrinkage_factor(
        np.full(len(noise_sd), _PRIOR_VARIANCE_ERROR), noise_sd
    )
    return np.asarray(np.maximum(shrunken, np.minimum(noise_sd, _PRIOR_VARIANCE_ERROR) + _TINY))


def _feature_correlation(
    moments: ScaledMoments, variance: np.ndarray, scale: np.ndarray, cross_sd: float
) -> np.ndarray:
    """Return how features go together, in scales: every number by as much as one believes it, no direction flat."""
    p = len(scale)
    shrunken = moments.covariance * shrinkage_factor(
        np.full_like(moments.covariance_sd, np.sqrt(_PRIOR_CORRELATION_SQUARED)), moments.covariance_sd
    )
    np.fill_diagonal(shrunken, variance)
    values, vectors = np.linalg.eigh(shrunken[:p, :p] / np.outer(scale, scale))
    values = np.maximum(values, min(_MIN_EIGENVALUE, cross_sd * np.sqrt(p)) + _TINY)
    return np.asarray((vectors * values) @ vectors.T)


def _entry_weights(session: FitSession, d: int) -> np.ndarray:
    """Return the weight of everything that is summed: the row itself, each column, each product of two."""
    first, second = np.triu_indices(d)
    pairs = np.where(second == d - 1, 1.0, _FEATURE_PRODUCT_WEIGHT)
    if session.is_gaussian:
        pairs = pairs * np.where(first == second, 1, np.sqrt(2))  # in l2 a product that stands twice counts twice
    usual_sizes = pairs * _usual_product_sizes(session, d)
    size = float(np.sqrt((usual_sizes**2).sum()) if session.is_gaussian else usual_sizes.sum())
    feature_weight = _FEATURE_MEAN_WEIGHT * size / (np.sqrt(d - 1) if session.is_gaussian else d - 1)
    return np.concatenate([[_COUNT_WEIGHT * size], np.full(d - 1, feature_weight), [_TARGET_MEAN_WEIGHT * size], pairs])


def _usual_column_size(session: FitSession) -> float:
    """Return how large a column is, in the norm of the noise, if it is normal."""
    return 1.0 if session.is_gaussian else float(_NORMAL_MEAN_ABS)


def _usual_product_sizes(session: FitSession, d: int) -> np.ndarray:
    """Return how large a product of two columns is."""
    first, second = np.triu_indices(d)
    if session.is_gaussian:
        return np.where(first == second, np.sqrt(3), 1.0)
    return np.where(first == second, 1.0, _NORMAL_MEAN_ABS**2)


def _squared_deviations(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    centre, half_range, weight = public
    deviations = (rows.T - centre[:, np.newaxis]) / half_range[:, np.newaxis]
    return np.asarray((deviations * deviations * weight[:, np.newaxis]).T)


def _weighted_moments(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Give a row's presence, its columns and the products of all pairs of them, each with its weight."""
    centre, scale, weights = public
    d = len(scale)
    out = np.empty((len(weights), len(rows)))
    z = (rows.T - centre[:, np.newaxis]) / scale[:, np.newaxis]
    out[0] = 1
    out[1 : d + 1] = z
    fill_pair_products(z, out[d + 1 :])
    out *= weights[:, np.newaxis]
    return out.T


_SHARES = ("0.2", "0.1", "0.7")  # where columns lie, how far they spread, their products


class LinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts a number as a weighted sum of features; weights are shrunk as far as their noise asks for.

    >>> x = np.random.default_rng(0).uniform(0, 10, (100_000, 1))
    >>> model = LinearRegression(epsilon=1, bounds=(0, 10), target_bounds=(0, 100)).fit(x, 7 * x[:, 0] + 20)
    >>> bool(abs(model.coef_[0] - 7) < 1), bool(abs(model.intercept_ - 20) < 6), model.loss_
    (True, True, Loss(epsilon=1, rho=1/2, for the removal of one row))
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's way: every setting is a parameter
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        target_bounds: Any = None,
        fit_intercept: bool = True,
        neighbours: str = REMOVAL,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.neighbours = epsilon, delta, bounds, neighbours
        self.target_bounds, self.fit_intercept = target_bounds, fit_intercept

    def fit(self, X: Any, y: Any, *, unit: Any = None, ledger: Ledger | None = None) -> Self:
        """Learn to predict y from X; rows with an equal `unit` are one person's, and weigh together as one."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: say what is to be predicted")
        return self._fit_source(source_from_data(self, X, target=self._target(y), unit=unit, ledger=ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Learn from the rows of a curator's query, to predict its last column from the others."""
        bounds = query_target_bounds(rows) if self.target_bounds is None else self._declared_target_bounds()
        return self._fit_source(source_from_query(self, rows, TargetColumn(None, *bounds)))

    def _target(self, y: Any) -> TargetColumn:
        return TargetColumn(y, *self._declared_target_bounds())

    def _declared_target_bounds(self) -> tuple[float, float]:
        (low,), (high,) = parse_bounds(self.target_bounds, 1, "target_bounds")
        return float(low), float(high)

    def _fit_source(self, source: FitSource) -> Self:
        session = open_model_session(self, source, _SHARES)
        bounds = source.rows.low, source.rows.high
        origin = None if self.fit_intercept else np.zeros(len(bounds[0]))
        self.coef_, self.intercept_ = noisy_least_squares(session, bounds, origin)
        self.target_range_ = float(bounds[0][-1]), float(bounds[1][-1])
        return session.finish(self)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of each row, within its declared range."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(np.clip(X @ self.coef_ + self.intercept_, *self.target_range_))
