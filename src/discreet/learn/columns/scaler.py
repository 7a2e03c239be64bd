"""Standardising features: means and variances, learned privately."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.exact import Number
from discreet.kernel.ledger import Ledger
from discreet.learn.bounds import Ends
from discreet.learn.columns.moments import counted, pooled
from discreet.learn.inputs import QueryRows, source_of, source_of_query
from discreet.learn.losses import REMOVAL
from discreet.learn.session import Session, Source, begin_fit

_TYPICAL = 0.1, 0.1  # of half a range, squared: the variance that one expects without any data, give or take
_NARROWEST = 1e-8, 1e-2  # no variance is taken to be smaller, as far as the noise lets one see it


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Takes off the mean and divides by the standard deviation of every feature, both learned privately.

    >>> import numpy as np, discreet as dc
    >>> ages = np.random.default_rng(0).integers(18, 90, size=(5000, 1))
    >>> scaler = dc.learn.StandardScaler(epsilon=1, bounds=(0, 120)).fit(ages)
    >>> bool(abs(scaler.mean_[0] - ages.mean()) < 2), scaler.loss_
    (True, Loss(epsilon=1, rho=1/2, for the removal of one row))
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's way: every setting is a parameter
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
        """Learn the means and variances of X; rows with an equal `unit` are one person's, and weigh together as one."""
        return self._learn(source_of(self, X, unit=unit, ledger=ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Learn from the rows of a curator's query."""
        return self._learn(source_of_query(self, rows))

    def _learn(self, source: Source) -> Self:
        ends = source.rows.low, source.rows.high
        session = begin_fit(self, source, [1])
        self.n_samples_seen_, self.mean_, self.var_ = _moments(session, ends)
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


def _moments(session: Session, ends: Ends) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the noisy number of units, and the mean and variance of every column, shrunk as their noise asks for.

    A column scaled to [-1, 1] gives z and z²-1/2, both within 1; with a 1 for the unit itself the vector is within
    1 + 2d in l1 and sqrt(1 + 2d) in l2 at most. z² and z are both large at the ends only: z² + (z²-1/2)² <= 5/4.
    """
    low, high = ends
    d = len(low)
    radius = float(np.sqrt(1 + 1.25 * d) if session.is_gaussian else 1 + 1.5 * d)
    noise = session.sd(radius)
    total = session.sum(_powers, (low, high), size=1 + 2 * d, radius=radius)
    count, trust = counted(float(total[0]), noise)
    each = np.full(d, noise / count)
    first, left = pooled(total[1 : d + 1] / count, each, expected=(0.0, 0.4), apart=0.4)
    first = np.clip(trust * first, -1, 1)
    spoiled = np.hypot(each, 2 * first * left)  # the noise in z² and in the mean's square
    square, left = pooled(total[d + 1 :] / count + 0.5 - first**2, spoiled, expected=_TYPICAL, apart=_TYPICAL[1])
    variance = np.clip(trust * square + (1 - trust) * _TYPICAL[0], np.clip(left / 4, *_NARROWEST), 1)
    middle, half = (low + high) / 2, (high - low) / 2
    return float(total[0]), middle + half * first, half**2 * variance


def _powers(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    low, high = public
    d = len(low)
    out = np.empty((1 + 2 * d, len(rows)))
    out[0] = 1
    for j in range(d):
        z = (2 * rows[:, j] - low[j] - high[j]) / (high[j] - low[j])
        out[1 + j] = z
        out[1 + d + j] = z * z - 0.5
    return out.T
