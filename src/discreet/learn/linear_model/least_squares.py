"""LinearRegression: least squares from one noisy sum of the products of all columns.

A column may be sparse (nearly always zero), as one-hot columns are: its mean absolute deviation then says little about
its non-zero values, and its variance may be below the noise. Therefore scales are root mean squares with a floor at the
noise, values are not clamped any further, which would inflate the coefficients of sparse columns, and the prior on the
coefficients is relative to the declared ranges.
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

_TARGET_LOCATION_WEIGHT = 0.4  # the target's weight in the first release, per feature: its mean matters most
_FEATURE_PRODUCT_WEIGHT = 0.4  # weight of a product of two features; a product of a feature and the target has 1
# Weights of the count and of the first moments, relative to all products together.
_COUNT_WEIGHT, _FEATURE_MEAN_WEIGHT, _TARGET_MEAN_WEIGHT = 0.15, 0.1, 0.25
_NORMAL_MEAN_ABS = np.sqrt(2 / np.pi)  # E|z| of a standard normal z
_MAX_CORRELATION_NOISE = 0.25  # the radius is enlarged while noise · sqrt(factor) in the correlations stays below this
_RADIUS_FACTORS = (1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_RADIUS_SHARE = 0.2  # clipping radius of the squares, relative to the largest possible norm
# Prior mean and deviation of mean squares, and the deviation between columns, in squared half ranges.
_PRIOR_SQUARE, _PRIOR_SQUARE_SD, _BETWEEN_SQUARES_SD = 0.15, 0.15, 0.1
_NOISE_SHARE_IN_SCALE = 0.15  # share of the noise added to a mean square, so that constant columns do not look wide
_MIN_SQUARE = 1e-9
_PRIOR_EFFECT = 0.5  # prior effect of a feature over its whole range, relative to the target's range
_PRIOR_R2 = 0.4  # prior share of the target's variance that the features explain
_PRIOR_CORRELATION_SQUARED = 0.1  # prior squared correlation of two features
_PRIOR_VARIANCE_ERROR = 0.5  # prior deviation of a variance in squared scales, after the second release
_MIN_SCALE_VARIANCE = 0.1  # below this, a column may be constant, and its coefficient is not enlarged further
_TINY = 1e-12
_MIN_EIGENVALUE = 0.03  # minimum variance of a combination of features, unless the noise is smaller


@dataclass(frozen=True)
class ScaledMoments:
    """Means and covariances of columns in units of their scales, and the noise in the covariances."""

    mean: np.ndarray
    covariance: np.ndarray
    covariance_sd: np.ndarray


def noisy_least_squares(
    session: FitSession, bounds: BoundArrays, origin: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """Return coefficients and intercept for the last column; with `origin`, the regression passes through it."""
    n_features = len(bounds[0]) - 1
    weight = np.append(np.ones(n_features), 1 + _TARGET_LOCATION_WEIGHT * n_features)
    location = locate_columns(session, bounds, weight, origin)
    expected_variances, relative_scale = _expected_variances(session, location, weight)
    scale = relative_scale * location.half_range
    moments = _noisy_moments(session, location, scale)
    prior_effect = _PRIOR_EFFECT * relative_scale[:-1] / relative_scale[-1]
    coefficients = _shrunken_coefficients(moments, expected_variances, prior_effect) * scale[-1] / scale[:-1]
    if origin is not None:
        return coefficients, 0.0
    mean = np.clip(location.centre + moments.mean * scale, *bounds)
    return coefficients, float(mean[-1] - coefficients @ mean[:-1])


def _expected_variances(
    session: FitSession, location: ColumnLocation, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected variances in squared scales, and the scales relative to half a range, from one release."""
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
    """Return the noisy products of all columns, released together with their means and the count."""
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
    # A clipped row is scaled as a whole, including its presence; so the divisor is the sum of the clipped weights.
    count = max(float(total[0]), 2 * sd / weights[0], 10.0)
    noise_sd = sd / count / weights[1:]
    mean = total[1 : d + 1] / count * shrinkage_factor(location.centre_sd / scale, noise_sd[:d])
    covariance = symmetric_from_upper(total[d + 1 :] / count, d) - np.outer(mean, mean)
    return ScaledMoments(mean, covariance, symmetric_from_upper(noise_sd[d:], d))


def _shrunken_coefficients(
    moments: ScaledMoments, expected_variances: np.ndarray, prior_effect: np.ndarray
) -> np.ndarray:
    """Return the coefficients in scaled units, shrunk according to the noise.

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
    weights = np.linalg.solve(
        weighted_covariance @ covariance + np.diag(prior_precision), weighted_covariance @ with_target
    )
    # Predictions whose variance exceeds their covariance with the target would be worse than the mean.
    raw_covariance = moments.covariance[:p, :p] / np.outer(scale, scale)
    predicted_variance = max(
        float(weights @ covariance @ weights), float(weights @ raw_covariance @ weights), np.finfo(float).tiny
    )
    return np.asarray(weights / scale * np.clip(weights @ with_target / predicted_variance, 0, 1))


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


def _entry_weights(session: FitSession, d: int) -> np.ndarray:
    """Return the weights of the summed entries: presence, columns, products of two columns."""
    first, second = np.triu_indices(d)
    pairs = np.where(second == d - 1, 1.0, _FEATURE_PRODUCT_WEIGHT)
    if session.is_gaussian:
        pairs = pairs * np.where(first == second, 1, np.sqrt(2))  # preserves the Frobenius norm
    usual_sizes = pairs * _usual_product_sizes(session, d)
    size = float(np.sqrt((usual_sizes**2).sum()) if session.is_gaussian else usual_sizes.sum())
    feature_weight = _FEATURE_MEAN_WEIGHT * size / (np.sqrt(d - 1) if session.is_gaussian else d - 1)
    return np.concatenate([[_COUNT_WEIGHT * size], np.full(d - 1, feature_weight), [_TARGET_MEAN_WEIGHT * size], pairs])


def _usual_column_size(session: FitSession) -> float:
    """Return the typical size of a normal column in the norm of the noise."""
    return 1.0 if session.is_gaussian else float(_NORMAL_MEAN_ABS)


def _usual_product_sizes(session: FitSession, d: int) -> np.ndarray:
    """Return the typical sizes of the products of two columns."""
    first, second = np.triu_indices(d)
    if session.is_gaussian:
        return np.where(first == second, np.sqrt(3), 1.0)
    return np.where(first == second, 1.0, _NORMAL_MEAN_ABS**2)


def _squared_deviations(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    centre, half_range, weight = public
    deviations = (rows.T - centre[:, np.newaxis]) / half_range[:, np.newaxis]
    return np.asarray((deviations * deviations * weight[:, np.newaxis]).T)


def _weighted_moments(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Return each row's presence, columns and products of pairs of columns, weighted."""
    centre, scale, weights = public
    d = len(scale)
    out = np.empty((len(weights), len(rows)))
    z = (rows.T - centre[:, np.newaxis]) / scale[:, np.newaxis]
    out[0] = 1
    out[1 : d + 1] = z
    fill_pair_products(z, out[d + 1 :])
    out *= weights[:, np.newaxis]
    return out.T


_SHARES = ("0.2", "0.1", "0.7")  # budget shares: means, mean squares, products


class LinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Least-squares linear regression, with coefficients shrunk according to their noise.

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
        self.coef_, self.intercept_ = noisy_least_squares(session, bounds, origin)
        self.target_range_ = float(bounds[0][-1]), float(bounds[1][-1])
        return session.finish(self)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target of each row, clamped to its declared bounds."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(np.clip(X @ self.coef_ + self.intercept_, *self.target_range_))
