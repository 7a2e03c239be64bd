"""EmpiricalCovariance: means, covariances and correlations from one noisy sum of the products of all columns."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.ledger import Ledger
from discreet.kernel.numbers import Number
from discreet.learn.bounds import BoundArrays
from discreet.learn.fit_cost import REMOVAL
from discreet.learn.fit_inputs import QueryRows, source_from_data, source_from_query
from discreet.learn.fit_session import FitSession, FitSource, open_model_session
from discreet.learn.moments import locate_columns, noise_norm
from discreet.learn.scaled_moments import ScaledMoments, expected_variances_and_scales, noisy_moments

_MEAN_WEIGHT = 0.2  # weight of the first moments, relative to all products together
_MAX_NOISE = 0.7  # in the correlations: clipping of rows with large values changes them more than noise does
_MIN_EIGENVALUE = 0.03  # of the correlations, unless the noise is smaller
_RESOLVED = 2.0  # noise deviations above which a variance is distinguished from zero
_GAUSSIAN_Z, _LAPLACE_Z = 1.96, 2.12  # of margins at 95 %, in standard deviations of the noise
_TINY = 1e-12
_SHARES = ("0.2", "0.1", "0.7")  # budget shares: means, mean squares, products


class EmpiricalCovariance(BaseEstimator):  # type: ignore[misc]
    """Covariances and correlations of columns.

    `correlation_margins_` are 95 % margins of error from privacy noise. They leave out what declared bounds and
    clipping change. A correlation whose margin reaches both -1 and 1 is hidden by the noise.

    >>> import numpy as np, discreet as dc
    >>> ages = np.random.default_rng(0).integers(18, 90, size=(20_000, 1))
    >>> rows = np.hstack([ages, 100 + 0.5 * ages])
    >>> model = dc.learn.EmpiricalCovariance(epsilon=1, bounds=([0, 50], [120, 250])).fit(rows)
    >>> bool(model.correlation_[0, 1] > 0.9), bool(model.correlation_margins_[0, 1] < 0.1), model.loss_
    (True, True, Loss(epsilon=1, rho=1/2, for the removal of one row))
    """

    def __init__(self, *, epsilon: Number, delta: Number = 0, bounds: Any = None, neighbours: str = REMOVAL) -> None:
        self.epsilon, self.delta, self.bounds, self.neighbours = epsilon, delta, bounds, neighbours

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, ledger: Ledger | None = None) -> Self:  # noqa: ARG002 - y is for Pipelines
        """Fit to X; rows with the same `unit` together count as one row."""
        return self._fit_source(source_from_data(self, X, unit=unit, ledger=ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Fit to the rows of a curator's query."""
        return self._fit_source(source_from_query(self, rows))

    def _fit_source(self, source: FitSource) -> Self:
        session = open_model_session(self, source, _SHARES)
        bounds = source.rows.low, source.rows.high
        moments, centre, scale = _all_moments(session, bounds)
        self.location_ = np.clip(centre + scale * moments.mean, *bounds)
        correlation, deviation = _correlation(moments)
        self.covariance_ = correlation * np.outer(scale * deviation, scale * deviation)
        z = _GAUSSIAN_Z if float(self.delta) > 0 else _LAPLACE_Z
        self.correlation_, self.correlation_margins_ = correlation, _margins(moments, correlation, z)
        self.n_samples_ = moments.count
        return session.finish(self)

    def get_precision(self) -> np.ndarray:
        """Return the inverse of the covariance, which is positive definite."""
        check_is_fitted(self)
        return np.asarray(np.linalg.inv(self.covariance_))

    def mahalanobis(self, X: Any) -> np.ndarray:
        """Return the squared Mahalanobis distances of the rows from the mean."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        offsets = X - self.location_
        return np.asarray(((offsets @ self.get_precision()) * offsets).sum(axis=1))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002 - y is for Pipelines
        """Return the mean log-likelihood of the rows under a normal distribution, without noise; see `evaluate`."""
        distances = self.mahalanobis(X)
        constant = len(self.location_) * np.log(2 * np.pi) + np.linalg.slogdet(self.covariance_)[1]
        return -float(distances.mean() + constant) / 2


def _all_moments(session: FitSession, bounds: BoundArrays) -> tuple[ScaledMoments, np.ndarray, np.ndarray]:
    """Return the moments of all columns in units of their scales, with centres and scales."""
    equal = np.ones(len(bounds[0]))
    location = locate_columns(session, bounds, equal)
    relative_scale = expected_variances_and_scales(session, location, equal)[1]
    scale = relative_scale * location.half_range
    mean_weights = equal * _MEAN_WEIGHT / noise_norm(session, equal)
    return noisy_moments(session, location, scale, equal, mean_weights, _MAX_NOISE), location.centre, scale


def _correlation(moments: ScaledMoments) -> tuple[np.ndarray, np.ndarray]:
    """Return correlations that are positive definite, and the deviations of the columns in units of their scales."""
    deviation = np.sqrt(_variances(moments))
    raw = np.clip(moments.covariance / np.outer(deviation, deviation), -1, 1)
    np.fill_diagonal(raw, 1)
    values, vectors = np.linalg.eigh(raw)
    noise = np.median(moments.covariance_sd) * np.sqrt(len(values))
    values = np.maximum(values, min(_MIN_EIGENVALUE, noise) + _TINY)
    definite = (vectors * values) @ vectors.T
    size = np.sqrt(np.diag(definite))
    definite /= np.outer(size, size)
    np.fill_diagonal(definite, 1)
    return definite, deviation


def _variances(moments: ScaledMoments) -> np.ndarray:
    """Return the variances in squared scales, none below the noise."""
    return np.asarray(np.maximum(np.diag(moments.covariance), np.diag(moments.covariance_sd) + _TINY))


def _margins(moments: ScaledMoments, correlation: np.ndarray, z: float) -> np.ndarray:
    """Return the margins of the correlations, from the noise in covariances, variances and means."""
    sd = moments.covariance_sd
    resolved = _variances(moments) > _RESOLVED * np.diag(sd)
    variance = np.where(resolved, _variances(moments) - np.diag(sd), 1)  # cautious where its noise is large
    # An error in a mean moves the covariance and the variance, at worst in the same direction.
    size = np.abs(moments.mean)
    shift = (size + np.abs(correlation) * size[:, np.newaxis]) * moments.mean_sd[:, np.newaxis]
    relative = (np.diag(sd) / variance) ** 2
    noise = (sd**2 + shift**2 + shift.T**2) / np.outer(variance, variance)
    noise = noise + correlation**2 * np.add.outer(relative, relative) / 4
    all_values = 1 + np.abs(correlation)  # from -1 to 1
    margins = np.where(np.outer(resolved, resolved), np.minimum(z * np.sqrt(noise), all_values), all_values)
    np.fill_diagonal(margins, 0)
    return np.asarray(margins)
