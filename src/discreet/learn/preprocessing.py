"""StandardScaler: private means and variances of features."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.ledger import Ledger
from discreet.kernel.numbers import Number
from discreet.learn.bounds import BoundArrays
from discreet.learn.fit_cost import REMOVAL
from discreet.learn.fit_inputs import QueryRows, source_from_data, source_from_query
from discreet.learn.fit_session import FitSession, FitSource, open_model_session
from discreet.learn.moments import shrink_to_common_mean, usable_count

_PRIOR_VARIANCE = 0.1, 0.1  # mean and deviation of the prior on a variance, in squared half ranges
_MIN_VARIANCE_RANGE = 1e-8, 1e-2  # limits of the minimum variance; between them, it follows the noise


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Standardises features by private means and standard deviations.

    >>> import numpy as np, discreet as dc
    >>> ages = np.random.default_rng(0).integers(18, 90, size=(5000, 1))
    >>> scaler = dc.learn.StandardScaler(epsilon=1, bounds=(0, 120)).fit(ages)
    >>> bool(abs(scaler.mean_[0] - ages.mean()) < 2), scaler.loss_
    (True, Loss(epsilon=1, rho=1/2, for the removal of one row))
    """

    def __init__(  # noqa: PLR0913 - scikit-learn requires one parameter per setting
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        with_mean: bool = True,
        with_std: bool = True,
        neighbours: str = REMOVAL,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.neighbours = epsilon, delta, bounds, neighbours
        self.with_mean, self.with_std = with_mean, with_std

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, ledger: Ledger | None = None) -> Self:  # noqa: ARG002 - y is for Pipelines
        """Fit the means and variances of X; rows with the same `unit` together count as one row."""
        return self._fit_source(source_from_data(self, X, unit=unit, ledger=ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Fit to the rows of a curator's query."""
        return self._fit_source(source_from_query(self, rows))

    def _fit_source(self, source: FitSource) -> Self:
        bounds = source.rows.low, source.rows.high
        session = open_model_session(self, source, [1])
        self.n_samples_seen_, self.mean_, self.var_ = _noisy_moments(session, bounds)
        self.scale_ = np.sqrt(self.var_) if self.with_std else None
        return session.finish(self)

    def transform(self, X: Any) -> np.ndarray:
        """Standardise X."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, copy=True)
        X -= self.mean_ if self.with_mean else 0
        X /= self.scale_ if self.with_std else 1
        return np.asarray(X)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Undo `transform`."""
        check_is_fitted(self)
        X = np.array(X, np.float64)
        return np.asarray(X * (self.scale_ if self.with_std else 1) + (self.mean_ if self.with_mean else 0))


def _noisy_moments(session: FitSession, bounds: BoundArrays) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the noisy number of units and the shrunken mean and variance of each column.

    A column scaled to [-1, 1] contributes z and z² - 1/2. Since z² + (z² - 1/2)² <= 5/4 and |z| + |z² - 1/2| <= 3/2,
    the vector with a leading 1 has norm at most sqrt(1 + 5d/4) in l2 and 1 + 3d/2 in l1.
    """
    low, high = bounds
    d = len(low)
    radius = float(np.sqrt(1 + 1.25 * d) if session.is_gaussian else 1 + 1.5 * d)
    noise_sd = session.sd(radius)
    total = session.sum(_count_and_powers, (low, high), size=1 + 2 * d, radius=radius)
    count, reliability = usable_count(float(total[0]), noise_sd)
    entry_sd = np.full(d, noise_sd / count)
    first, remaining_sd = shrink_to_common_mean(total[1 : d + 1] / count, entry_sd, prior=(0.0, 0.4), between_sd=0.4)
    first = np.clip(reliability * first, -1, 1)
    square_sd = np.hypot(entry_sd, 2 * first * remaining_sd)  # the noise in z² and in the squared mean
    square, remaining_sd = shrink_to_common_mean(
        total[d + 1 :] / count + 0.5 - first**2, square_sd, prior=_PRIOR_VARIANCE, between_sd=_PRIOR_VARIANCE[1]
    )
    variance = np.clip(
        reliability * square + (1 - reliability) * _PRIOR_VARIANCE[0],
        np.clip(remaining_sd / 4, *_MIN_VARIANCE_RANGE),
        1,
    )
    middle, half = (low + high) / 2, (high - low) / 2
    return float(total[0]), middle + half * first, half**2 * variance


def _count_and_powers(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    low, high = public
    d = len(low)
    out = np.empty((1 + 2 * d, len(rows)))
    out[0] = 1
    for j in range(d):
        z = (2 * rows[:, j] - low[j] - high[j]) / (high[j] - low[j])
        out[1 + j] = z
        out[1 + d + j] = z * z - 0.5
    return out.T
