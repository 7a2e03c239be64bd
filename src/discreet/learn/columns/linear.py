"""Linear regression, learned privately from noisy products of columns."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.exact import Number
from discreet.kernel.ledger import Ledger
from discreet.learn.bounds import declared
from discreet.learn.columns.regressing import regress
from discreet.learn.inputs import QueryRows, Target, source_of, source_of_query, target_ends
from discreet.learn.losses import REMOVAL
from discreet.learn.session import Source, begin_fit

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
        return self._learn(source_of(self, X, target=self._target(y), unit=unit, ledger=ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Learn from the rows of a curator's query, to predict its last column from the others."""
        ends = target_ends(rows) if self.target_bounds is None else self._target_ends()
        return self._learn(source_of_query(self, rows, Target(None, *ends)))

    def _target(self, y: Any) -> Target:
        return Target(y, *self._target_ends())

    def _target_ends(self) -> tuple[float, float]:
        (low,), (high,) = declared(self.target_bounds, 1, "target_bounds")
        return float(low), float(high)

    def _learn(self, source: Source) -> Self:
        session = begin_fit(self, source, _SHARES)
        ends = source.rows.low, source.rows.high
        origin = None if self.fit_intercept else np.zeros(len(ends[0]))
        self.coef_, self.intercept_ = regress(session, ends, origin)
        self.target_range_ = float(ends[0][-1]), float(ends[1][-1])
        return session.finish(self)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of each row, within its declared range."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(np.clip(X @ self.coef_ + self.intercept_, *self.target_range_))
