"""LinearRegression: least squares from one noisy sum of the products of all columns.

Values are not clamped any further than to their bounds, which would inflate the coefficients of sparse columns, and the
prior on the coefficients is relative to the declared ranges.
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
from discreet.learn.moments import locate_columns, noise_norm, shrinkage_factor
from discreet.learn.scaled_moments import ScaledMoments, expected_variances_and_scales, noisy_moments

_TARGET_LOCATION_WEIGHT = 0.4  # the target's weight in the first release, per feature: its mean matters most
_FEATURE_PRODUCT_WEIGHT = 0.4  # weight of a product of two features; a product of a feature and the target has 1
# Weights of the first moments, relative to all products together.
_FEATURE_MEAN_WEIGHT, _TARGET_MEAN_WEIGHT = 0.1, 0.25
_MAX_CORRELATION_NOISE = 0.25
_PRIOR_EFFECT = 0.5  # prior effect of a feature over its whole range, relative to the target's range
_PRIOR_R2 = 0.4  # prior share of the target's variance that the features explain
_PRIOR_CORRELATION_SQUARED = 0.1  # prior squared correlation of two features
_PRIOR_VARIANCE_ERROR = 0.5  # prior deviation of a variance in squared scales, after the second release
_MIN_SCALE_VARIANCE = 0.1  # below this, a column may be constant, and its coefficient is not enlarged further
_TINY = 1e-12
_MIN_EIGENVALUE = 0.03  # minimum variance of a combination of features, unless the noise is smaller


@dataclass(frozen=True)
class LeastSquaresFit:
    """Coefficients and intercept with their standard errors."""

    coefficients: np.ndarray
    intercept: float
    coefficient_errors: np.ndarray
    intercept_error: float


def noisy_least_squares(session: FitSession, bounds: BoundArrays, origin: np.ndarray | None = None) -> LeastSquaresFit:
    """Return the regression of the last column on the others; with `origin`, it passes through it."""
    n_features = len(bounds[0]) - 1
    weight = np.append(np.ones(n_features), 1 + _TARGET_LOCATION_WEIGHT * n_features)
    location = locate_columns(session, bounds, weight, origin)
    expected_variances, relative_scale = expected_variances_and_scales(session, location, weight)
    scale = relative_scale * location.half_range
    is_target = np.arange(n_features + 1) == n_features
    moments = noisy_moments(
        session,
        location,
        scale,
        np.where(is_target, 1, _FEATURE_PRODUCT_WEIGHT),
        np.where(is_target, _TARGET_MEAN_WEIGHT, _FEATURE_MEAN_WEIGHT / noise_norm(session, np.ones(n_features))),
        _MAX_CORRELATION_NOISE,
    )
    prior_effect = _PRIOR_EFFECT * relative_scale[:-1] / relative_scale[-1]
    weights, errors = _shrunken_coefficients(moments, expected_variances, prior_effect)
    unit = scale[-1] / scale[:-1]
    coefficients, covariance = weights * unit, errors * np.outer(unit, unit)
    coefficient_errors = np.sqrt(np.diag(covariance))
    if origin is not None:
        return LeastSquaresFit(coefficients, 0.0, coefficient_errors, 0.0)
    mean = np.clip(location.centre + moments.mean * scale, *bounds)
    # Errors of the means, and of the coefficients at the means.
    mean_variance = (np.append(-weights, 1) ** 2) @ moments.mean_sd**2 * scale[-1] ** 2
    residual_variance = _residual_variance(moments, weights) * scale[-1] ** 2 / moments.count
    intercept_variance = mean_variance + residual_variance + mean[:-1] @ covariance @ mean[:-1]
    return LeastSquaresFit(
        coefficients, float(mean[-1] - coefficients @ mean[:-1]), coefficient_errors, float(np.sqrt(intercept_variance))
    )


def _shrunken_coefficients(
    moments: ScaledMoments, expected_variances: np.ndarray, prior_effect: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients in scaled units, shrunk according to the noise, and the covariance of their errors.

    With the features' covariance A, their covariance b with the target, noise variances N in b = A·w + noise and prior
    variances V of w, the posterior mean of w is (A·N⁻¹·A + V⁻¹)⁻¹·A·N⁻¹·b.
    """
    p = len(prior_effect)
    variance = _shrunken_variances(moments, expected_variances)
    scale = np.sqrt(np.maximum(variance[:p], _MIN_SCALE_VARIANCE))
    cross_sd = float(moments.covariance_sd[0, 1]) if p > 1 else float(moments.covariance_sd[0, 0])
    covariance = _feature_correlation(moments, variance, scale, cross_sd)
    with_target = moments.covariance[:p, p] / scale
    noise_variance = (moments.covariance_sd[:p, p] ** 2 + _PRIOR_R2 * cross_sd**2) / scale**2
    prior_precision = p / (_PRIOR_R2 * variance[p]) + (prior_effect * scale) ** -2
    weighted_covariance = covariance / noise_variance
    # The inverse of A, as far as noise and prior allow.
    inverse = np.linalg.solve(weighted_covariance @ covariance + np.diag(prior_precision), weighted_covariance)
    weights = inverse @ with_target
    # Predictions whose variance exceeds their covariance with the target would be worse than the mean.
    raw_covariance = moments.covariance[:p, :p] / np.outer(scale, scale)
    predicted_variance = max(
        float(weights @ covariance @ weights), float(weights @ raw_covariance @ weights), np.finfo(float).tiny
    )
    shrunken = np.clip(weights @ with_target / predicted_variance, 0, 1) * weights
    errors = _error_covariance(moments, shrunken / scale, scale, covariance, inverse, 1 / prior_precision)
    return shrunken / scale, errors / np.outer(scale, scale)


def _residual_variance(moments: ScaledMoments, weights: np.ndarray) -> float:
    """Return the variance of the target that the coefficients leave, in squared scales, at least the noise in it."""
    p = len(weights)
    vector = np.append(-weights, 1)
    return float(max(vector @ moments.covariance @ vector, min(moments.covariance_sd[p, p], 1.0)))


def _error_covariance(  # noqa: PLR0913, PLR0917 - the parts of the estimate
    moments: ScaledMoments,
    weights: np.ndarray,
    scale: np.ndarray,
    covariance: np.ndarray,
    inverse: np.ndarray,
    prior_variance: np.ndarray,
) -> np.ndarray:
    """Return the covariance of the errors: of shrinkage, of the noise in A and b, and of sampling the rows.

    With w = M·b and b = A·w* + noise, the error is (M·A - 1)·w* + M·noise.
    """
    p = len(scale)
    bias = inverse @ covariance - np.eye(p)
    size = prior_variance + (weights * scale) ** 2
    shrinkage = (bias * size) @ bias.T
    vector = np.append(weights**2 + np.diag(shrinkage) / scale**2, 1)
    privacy = (moments.covariance_sd[:p] ** 2 @ vector) / scale**2
    sampling = _residual_variance(moments, weights) / moments.count * covariance
    return np.asarray(shrinkage + inverse @ (np.diag(privacy) + sampling) @ inverse.T)


def _shrunken_variances(moments: ScaledMoments, expected_variances: np.ndarray) -> np.ndarray:
    """Return shrunken variances of columns, none below the noise."""
    noise_sd = np.diag(moments.covariance_sd)
    shrunken = expected_variances + (np.diag(moments.covariance) - expected_variances) * shrinkage_factor(
        np.full(len(noise_sd), _PRIOR_VARIANCE_ERROR), noise_sd
    )
    return np.asarray(np.maximum(shrunken, np.minimum(noise_sd, _PRIOR_VARIANCE_ERROR) + _TINY))


def _feature_correlation(
    moments: ScaledMoments, variance: np.ndarray, scale: np.ndarray, cross_sd: float
) -> np.ndarray:
    """Return the shrunken covariance of features in scaled units, with a floor on its eigenvalues."""
    p = len(scale)
    shrunken = moments.covariance * shrinkage_factor(
        np.full_like(moments.covariance_sd, np.sqrt(_PRIOR_CORRELATION_SQUARED)), moments.covariance_sd
    )
    np.fill_diagonal(shrunken, variance)
    values, vectors = np.linalg.eigh(shrunken[:p, :p] / np.outer(scale, scale))
    values = np.maximum(values, min(_MIN_EIGENVALUE, cross_sd * np.sqrt(p)) + _TINY)
    return np.asarray((vectors * values) @ vectors.T)


_SHARES = ("0.2", "0.1", "0.7")  # budget shares: means, mean squares, products


class LinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Least-squares linear regression, with coefficients shrunk according to their noise.

    `coef_errors_` and `intercept_error_` are standard errors: of the privacy noise, of the shrinkage, and of the rows
    as a sample. They leave out what declared bounds and clipping change.

    >>> x = np.random.default_rng(0).uniform(0, 10, (100_000, 1))
    >>> model = LinearRegression(epsilon=1, bounds=(0, 10), target_bounds=(0, 100)).fit(x, 7 * x[:, 0] + 20)
    >>> bool(abs(model.coef_[0] - 7) < 1), bool(abs(model.intercept_ - 20) < 6), model.loss_
    (True, True, Loss(epsilon=1, rho=1/2, for the removal of one row))
    """

    def __init__(  # noqa: PLR0913 - scikit-learn requires one parameter per setting
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
        """Fit to X and the target y; rows with the same `unit` together count as one row."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        return self._fit_source(source_from_data(self, X, target=self._target(y), unit=unit, ledger=ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Fit to the rows of a curator's query, whose last column is the target."""
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
        fit = noisy_least_squares(session, bounds, origin)
        self.coef_, self.intercept_ = fit.coefficients, fit.intercept
        self.coef_errors_, self.intercept_error_ = fit.coefficient_errors, fit.intercept_error
        self.target_range_ = float(bounds[0][-1]), float(bounds[1][-1])
        return session.finish(self)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target of each row, clamped to its declared bounds."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(np.clip(X @ self.coef_ + self.intercept_, *self.target_range_))
