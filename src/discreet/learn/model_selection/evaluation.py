"""Private evaluation of a model on held-out data: a noisy mean of row scores, with its margin of error.

The model must be public: fitted on other data, or released before. Rows are scored one at a time, so that a row's score
depends only on that row and the model: in a batch, the last bits of a prediction may depend on the other rows.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Loss
from discreet.kernel.numbers import Number
from discreet.learn.bounds import parse_bounds
from discreet.learn.fit_inputs import check_ledger
from discreet.learn.fit_session import FitSession, FitSource, PublicValues, open_session
from discreet.learn.model_selection.score_margins import SumNoise, r2_with_margin, share_with_interval
from discreet.learn.row_sources import ArrayRows, RowBatch, array_rows

ScoreBounds = tuple[float, float]


@dataclass(frozen=True)
class Score:
    """A private score: with 95 % probability within `margin` of the non-private score on the same data.

    >>> str(Score(0.914, 0.011, Loss(1), "accuracy"))
    'accuracy 0.914 ± 0.011'
    """

    value: float
    margin: float
    loss: Loss
    metric: str

    @property
    def utility(self) -> float:
        """The value, signed so that higher is better; -inf if it is NaN."""
        utility = METRICS[self.metric].sign * self.value
        return -math.inf if math.isnan(utility) else utility

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.metric} {self.value:.4g} ± {self.margin:.2g}"


@dataclass(frozen=True)
class Metric:
    """The score of one row, its bounds, the sign (+1 if higher is better), and the metric as a function of the mean."""

    row_score: Callable[[Any, Any, Any], float]
    row_bounds: Callable[[Any], ScoreBounds]
    sign: int
    from_mean: Callable[[float], float] = float


def evaluate(  # noqa: PLR0913 - the model, the data, the metric and the privacy parameters
    model: Any,
    X: Any,
    y: Any = None,
    *,
    metric: str,
    epsilon: Number,
    delta: Number = 0,
    bounds: Any = None,
    unit: Any = None,
    ledger: Ledger | None = None,
) -> Score:
    """Return a private score of a public model: the mean over rows or, with `unit`, over units of their rows' means.

    `bounds` is the declared range (low, high) of y for mean_squared_error, rmse, mean_absolute_error and r2, and of the
    row scores for log_loss, log_likelihood and inertia; values outside are clamped. Rows for which the model fails or
    returns NaN are ignored.

    >>> parity = SimpleNamespace(predict=lambda X: X[:, 0] % 2)
    >>> X = np.arange(1000).reshape(-1, 1)
    >>> score = evaluate(parity, X, X[:, 0] % 2, metric="accuracy", epsilon=1)
    >>> bool(score.value > 0.95), score.loss
    (True, Loss(epsilon=1, rho=1/2, for the removal of one row))
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, not {metric!r}")
    if y is None and metric not in _WITHOUT_Y:
        raise ValueError(f"y: metric {metric!r} needs the true values y")
    check_ledger(ledger, unit)
    scored_rows = _ScoredRows(model, X, y, metric=METRICS[metric], bounds=bounds, unit=unit)
    source = FitSource(
        scored_rows, "row" if unit is None else "unit", ledger, question=f"evaluate {metric} of {type(model).__name__}"
    )
    session = open_session(source, name="evaluate", epsilon=epsilon, delta=delta, shares=[1])
    value, margin = (_r2_score if metric == R2 else _mean_score)(session, scored_rows)
    session.finish(SimpleNamespace(metric_=metric, value_=value, margin_=margin))
    return Score(value, margin, session.loss, metric)


def _mean_score(session: FitSession, scored_rows: "_ScoredRows") -> tuple[float, float]:
    low, high = scored_rows.row_bounds
    noise = SumNoise(session.scale(), is_gaussian=session.is_gaussian)
    shares = share_with_interval(session.sum(_split_between_bounds, (), size=2, radius=1), noise)
    value, lower, upper = (scored_rows.metric.from_mean(low + (high - low) * share) for share in shares)
    return value, max(value - lower, upper - value)


def _r2_score(session: FitSession, _: "_ScoredRows") -> tuple[float, float]:
    radius = math.sqrt(2.5) if session.is_gaussian else 3
    noise = SumNoise(session.scale(radius), is_gaussian=session.is_gaussian)
    return r2_with_margin(session.sum(_r2_moments, (), size=4, radius=radius), noise)


class _ScoredRows:
    """Held-out rows: scores and y, each scaled to [0, 1]; computed after the charge."""

    def __init__(self, model: Any, X: Any, y: Any, *, metric: Metric, bounds: Any, unit: Any) -> None:  # noqa: PLR0913
        check_consistent_length(X, y, unit)
        check_model_and_columns(model, X)
        self._model, self._X, self._y, self._bounds, self._unit = model, X, y, bounds, unit
        self.metric, self.row_bounds, self.grouped = metric, metric.row_bounds(bounds), unit is not None
        self.low, self.high = np.zeros(2), np.ones(2)

    def batches(self, size: int) -> Iterator[RowBatch]:
        """Yield the scored rows."""
        return self._rows.batches(size)

    @cached_property
    def _rows(self) -> ArrayRows:
        low, high = self.row_bounds
        scores = (row_scores(self._model, self._X, self._y, self.metric.row_score) - low) / (high - low)
        truths = np.zeros(len(scores))
        if self.metric is METRICS[R2]:
            target_low, target_high = (float(end[0]) for end in parse_bounds(self._bounds, 1))
            truths = (np.array([_to_float(truth) for truth in self._y]) - target_low) / (target_high - target_low)
        return array_rows(np.column_stack([scores, truths]), (self.low, self.high), self._unit)


def check_model_and_columns(model: Any, X: Any) -> None:
    """Raise before the charge if a model is not fitted or needs other columns; this depends on no row."""
    if not isinstance(model, BaseEstimator):
        return
    check_is_fitted(model)
    expected, names = getattr(model, "feature_names_in_", None), getattr(X, "columns", None)
    if expected is not None and names is not None and list(expected) != list(names):
        raise ValueError(f"X must have the columns that the model was fitted on: {', '.join(map(str, expected))}")
    width = getattr(model, "n_features_in_", None)
    shape = np.shape(X)
    if width is not None and len(shape) == 2 and shape[1] != width:
        raise ValueError(f"X must have {width} columns, as in the fit, not {shape[1]}")


def row_scores(model: Any, X: Any, y: Any, row_score: Callable[[Any, Any, Any], float]) -> np.ndarray:
    """Return the score of each row, computed one row at a time; NaN where the model fails."""
    rows = _sliceable_rows(model, X, row_score)
    truths = [None] * len(X) if y is None else list(y)
    out = np.full(len(X), np.nan)
    with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
        warnings.simplefilter("ignore")  # about missing feature names, which were checked before
        for index, truth in enumerate(truths):
            try:
                out[index] = row_score(model, _copy_row(rows[index : index + 1]), truth)
            except Exception:  # noqa: BLE001, S112 - a failure may depend on the row and must not be observable
                continue
    return out


def _copy_row(row: Any) -> Any:
    """Return a copy of a row, so that the model cannot reach other rows through its base array."""
    return row.copy() if hasattr(row, "copy") else row


def _sliceable_rows(model: Any, X: Any, row_score: Callable[[Any, Any, Any], float]) -> Any:
    """Return X in a form that can be sliced: an array if the model accepts one, since slicing frames is slow."""
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        numbers = X.to_numpy()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row_score(model, np.zeros((1, len(X.columns))), 0)
        except Exception:  # noqa: BLE001 - it needs column names or strings
            return X.iloc if hasattr(X, "iloc") else X
        if numbers.dtype.kind in "biuf":
            return numbers
    return X.iloc if hasattr(X, "iloc") else X if hasattr(X, "__arrow_c_stream__") else np.asarray(X)


def _to_float(value: Any) -> float:
    """Return a float, or NaN: a bad value must not stop the evaluation."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _split_between_bounds(rows: np.ndarray, _: PublicValues) -> np.ndarray:
    """Split a row's weight of 1 between the lower and upper bound of its score."""
    out = np.empty((2, len(rows)))
    out[0], out[1] = 1 - rows[:, 0], rows[:, 0]
    return out.T


def _r2_moments(rows: np.ndarray, _: PublicValues) -> np.ndarray:
    """Return 1, the error - 1/2, z and z² - 1/2 for y scaled to z in [-1, 1]: norm at most 3 in l1, sqrt(5/2) in l2."""
    z = 2 * rows[:, 1] - 1
    out = np.empty((4, len(rows)))
    out[0], out[1], out[2], out[3] = 1, rows[:, 0] - 0.5, z, z * z - 0.5
    return out.T


def is_correct(model: Any, row: Any, truth: Any) -> float:
    """Return 1 if the prediction for a row is correct, else 0."""
    return float(model.predict(row)[0] == truth)


def _is_wrong(model: Any, row: Any, truth: Any) -> float:
    return 1 - is_correct(model, row, truth)


def _row_log_loss(model: Any, row: Any, truth: Any) -> float:
    probabilities = dict(zip(list(model.classes_), model.predict_proba(row)[0], strict=True))
    probability = float(probabilities.get(truth, 0.0))
    return -math.log(probability) if probability > 0 else math.inf


def _squared_error(model: Any, row: Any, truth: Any) -> float:
    error = float(model.predict(row)[0]) - float(truth)
    return error * error  # ** raises OverflowError


def _absolute_error(model: Any, row: Any, truth: Any) -> float:
    return abs(float(model.predict(row)[0]) - float(truth))


def _row_log_likelihood(model: Any, row: Any, _: Any) -> float:
    return float(model.score_samples(row)[0])


def _row_inertia(model: Any, row: Any, _: Any) -> float:
    return float(((np.asarray(row, np.float64) - model.cluster_centers_) ** 2).sum(axis=1).min())


def _zero_one_bounds(bounds: Any) -> ScoreBounds:
    if bounds is not None:
        raise ValueError("bounds: accuracy and error take no bounds")
    return 0.0, 1.0


def _declared_bounds(bounds: Any) -> ScoreBounds:
    low, high = parse_bounds(bounds, 1)
    return float(low[0]), float(high[0])


def _squared_error_bounds(bounds: Any) -> ScoreBounds:
    low, high = _declared_bounds(bounds)
    return 0.0, (high - low) ** 2


def _absolute_error_bounds(bounds: Any) -> ScoreBounds:
    low, high = _declared_bounds(bounds)
    return 0.0, high - low


R2 = "r2"
_WITHOUT_Y = ("log_likelihood", "inertia")
METRICS = {
    "accuracy": Metric(is_correct, _zero_one_bounds, +1),
    "error": Metric(_is_wrong, _zero_one_bounds, -1),
    "log_loss": Metric(_row_log_loss, _declared_bounds, -1),
    "mean_squared_error": Metric(_squared_error, _squared_error_bounds, -1),
    "rmse": Metric(_squared_error, _squared_error_bounds, -1, math.sqrt),
    "mean_absolute_error": Metric(_absolute_error, _absolute_error_bounds, -1),
    R2: Metric(_squared_error, _squared_error_bounds, +1),
    "log_likelihood": Metric(_row_log_likelihood, _declared_bounds, +1),
    "inertia": Metric(_row_inertia, _declared_bounds, -1),
}
