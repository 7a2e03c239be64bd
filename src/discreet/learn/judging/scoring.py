"""How good a model is on held-out data, told privately: a noisy mean of what each row says, with its margin.

The model must be public: fitted on other data, or released before. Rows are judged one at a time, so that what a row
says depends on that row and the model alone: in a batch, the last bits of a prediction depend on the rows beside it.
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

from discreet.kernel.exact import Number
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Loss
from discreet.learn.bounds import declared
from discreet.learn.inputs import check_ledger
from discreet.learn.judging.margins import Noise, explained_share, mean_of_cells
from discreet.learn.rows import ArrayRows, Batch, array_rows
from discreet.learn.session import Public, Session, Source, begin

Ends = tuple[float, float]


@dataclass(frozen=True)
class Score:
    """A private score: within `margin` of the exact one on the same data with 95 % probability, at a price of `loss`.

    >>> str(Score(0.914, 0.011, Loss(1), "accuracy"))
    'accuracy 0.914 ± 0.011'
    """

    value: float
    margin: float
    loss: Loss
    metric: str

    @property
    def merit(self) -> float:
        """The value, with such a sign that more is better; the worst there is if it is not a number."""
        merit = METRICS[self.metric].sign * self.value
        return -math.inf if math.isnan(merit) else merit

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.metric} {self.value:.4g} ± {self.margin:.2g}"


@dataclass(frozen=True)
class Metric:
    """What one row says of a model, between which ends, how a mean of it is shown, and whether more is better (+1)."""

    says: Callable[[Any, Any, Any], float]
    ends: Callable[[Any], Ends]
    sign: int
    show: Callable[[float], float] = float


def evaluate(  # noqa: PLR0913 - what is judged, on what, how, at which price
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

    `bounds` is the declared range (low, high) of y for mean_squared_error, rmse, mean_absolute_error and r2, and of
    what a row says for log_loss, log_likelihood and inertia (per row); beyond it, it counts as the nearer end. A row
    of which the model says nothing, because it fails there or gives no number, does not count.

    >>> parity = SimpleNamespace(predict=lambda X: X[:, 0] % 2)
    >>> X = np.arange(1000).reshape(-1, 1)
    >>> score = evaluate(parity, X, X[:, 0] % 2, metric="accuracy", epsilon=1)
    >>> bool(score.value > 0.95), score.loss
    (True, Loss(epsilon=1, rho=1/2, for the removal of one row))
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, not {metric!r}")
    if y is None and metric not in _WITHOUT_Y:
        raise ValueError(f"y: {metric} compares what is predicted with what is true")
    check_ledger(ledger, unit)
    judged = _Judged(model, X, y, metric=METRICS[metric], bounds=bounds, unit=unit)
    source = Source(
        judged, "row" if unit is None else "unit", ledger, question=f"evaluate {metric} of {type(model).__name__}"
    )
    session = begin(source, name="evaluate", epsilon=epsilon, delta=delta, shares=[1])
    value, margin = (_explained if metric == R2 else _mean)(session, judged)
    session.finish(SimpleNamespace(metric_=metric, value_=value, margin_=margin))
    return Score(value, margin, session.loss, metric)


def _mean(session: Session, judged: "_Judged") -> tuple[float, float]:
    low, high = judged.ends
    noise = Noise(session.scale(), normal=session.is_gaussian)
    shares = mean_of_cells(session.sum(_cells, (), size=2, radius=1), noise)
    value, least, most = (judged.metric.show(low + (high - low) * share) for share in shares)
    return value, max(value - least, most - value)


def _explained(session: Session, _: "_Judged") -> tuple[float, float]:
    radius = math.sqrt(2.5) if session.is_gaussian else 3
    noise = Noise(session.scale(radius), normal=session.is_gaussian)
    return explained_share(session.sum(_moments, (), size=4, radius=radius), noise)


class _Judged:
    """Held-out rows: what each says of the model, and its y, as shares of their ranges; judged after the charge."""

    def __init__(self, model: Any, X: Any, y: Any, *, metric: Metric, bounds: Any, unit: Any) -> None:  # noqa: PLR0913
        check_consistent_length(X, y, unit)
        check_ready(model, X)
        self._model, self._X, self._y, self._bounds, self._unit = model, X, y, bounds, unit
        self.metric, self.ends, self.grouped = metric, metric.ends(bounds), unit is not None
        self.low, self.high = np.zeros(2), np.ones(2)

    def batches(self, size: int) -> Iterator[Batch]:
        """Give the rows."""
        return self._rows.batches(size)

    @cached_property
    def _rows(self) -> ArrayRows:
        low, high = self.ends
        said = (sayings(self._model, self._X, self._y, self.metric.says) - low) / (high - low)
        truths = np.zeros(len(said))
        if self.metric is METRICS[R2]:
            least, most = (float(end[0]) for end in declared(self._bounds, 1))
            truths = (np.array([_number(each) for each in self._y]) - least) / (most - least)
        return array_rows(np.column_stack([said, truths]), (self.low, self.high), self._unit)


def check_ready(model: Any, X: Any) -> None:
    """Stop before anything is charged if a model is not fitted, or for other columns: that depends on no row."""
    if not isinstance(model, BaseEstimator):
        return
    check_is_fitted(model)
    expected, names = getattr(model, "feature_names_in_", None), getattr(X, "columns", None)
    if expected is not None and names is not None and list(expected) != list(names):
        raise ValueError(f"X must have the columns that the model was fitted with: {', '.join(map(str, expected))}")
    width = getattr(model, "n_features_in_", None)
    shape = np.shape(X)
    if width is not None and len(shape) == 2 and shape[1] != width:
        raise ValueError(f"X must have {width} columns, as many as the model was fitted with, not {shape[1]}")


def sayings(model: Any, X: Any, y: Any, says: Callable[[Any, Any, Any], float]) -> np.ndarray:
    """Return what each row says of a model, judged alone; NaN where the model fails."""
    rows = _rows_of(model, X, says)
    truths = [None] * len(X) if y is None else list(y)
    out = np.full(len(X), np.nan)
    with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
        warnings.simplefilter("ignore")  # that an array has no names of columns, which were compared before
        for place, truth in enumerate(truths):
            try:
                out[place] = says(model, _alone(rows[place : place + 1]), truth)
            except Exception:  # noqa: BLE001, S112 - a failure may depend on the row; it must not stop the others
                continue
    return out


def _alone(row: Any) -> Any:
    """Return a copy of a row, from which no other can be reached."""
    return row.copy() if hasattr(row, "copy") else row


def _rows_of(model: Any, X: Any, says: Callable[[Any, Any, Any], float]) -> Any:
    """Return what rows can be cut from: an array if the model can do with one, for of a frame each row takes long."""
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        numbers = X.to_numpy()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                says(model, np.zeros((1, len(X.columns))), 0)
        except Exception:  # noqa: BLE001 - it wants names of columns, or texts
            return X.iloc if hasattr(X, "iloc") else X
        if numbers.dtype.kind in "biuf":
            return numbers
    return X.iloc if hasattr(X, "iloc") else X if hasattr(X, "__arrow_c_stream__") else np.asarray(X)


def _number(value: Any) -> float:
    """Return a number; what is none must not stop the others."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _cells(rows: np.ndarray, _: Public) -> np.ndarray:
    """Divide a row's weight of 1 between the two ends of what it may say."""
    out = np.empty((2, len(rows)))
    out[0], out[1] = 1 - rows[:, 0], rows[:, 0]
    return out.T


def _moments(rows: np.ndarray, _: Public) -> np.ndarray:
    """Give a 1, the error, y and its square, the last three around 0: within 3 in l1 and sqrt(5/2) in l2."""
    z = 2 * rows[:, 1] - 1
    out = np.empty((4, len(rows)))
    out[0], out[1], out[2], out[3] = 1, rows[:, 0] - 0.5, z, z * z - 0.5
    return out.T


def right(model: Any, row: Any, truth: Any) -> float:
    """Return 1 if the model is right about a row, else 0."""
    return float(model.predict(row)[0] == truth)


def _wrong(model: Any, row: Any, truth: Any) -> float:
    return 1 - right(model, row, truth)


def _surprise(model: Any, row: Any, truth: Any) -> float:
    chances = dict(zip(list(model.classes_), model.predict_proba(row)[0], strict=True))
    chance = float(chances.get(truth, 0.0))
    return -math.log(chance) if chance > 0 else math.inf


def _squared(model: Any, row: Any, truth: Any) -> float:
    error = float(model.predict(row)[0]) - float(truth)
    return error * error  # ** would fail where this is infinite


def _absolute(model: Any, row: Any, truth: Any) -> float:
    return abs(float(model.predict(row)[0]) - float(truth))


def _likelihood(model: Any, row: Any, _: Any) -> float:
    return float(model.score_samples(row)[0])


def _distance(model: Any, row: Any, _: Any) -> float:
    return float(((np.asarray(row, np.float64) - model.cluster_centers_) ** 2).sum(axis=1).min())


def _unit_ends(bounds: Any) -> Ends:
    if bounds is not None:
        raise ValueError("bounds: right or wrong needs none")
    return 0.0, 1.0


def _declared(bounds: Any) -> Ends:
    low, high = declared(bounds, 1)
    return float(low[0]), float(high[0])


def _squared_ends(bounds: Any) -> Ends:
    low, high = _declared(bounds)
    return 0.0, (high - low) ** 2


def _absolute_ends(bounds: Any) -> Ends:
    low, high = _declared(bounds)
    return 0.0, high - low


R2 = "r2"
_WITHOUT_Y = ("log_likelihood", "inertia")
METRICS = {
    "accuracy": Metric(right, _unit_ends, +1),
    "error": Metric(_wrong, _unit_ends, -1),
    "log_loss": Metric(_surprise, _declared, -1),
    "mean_squared_error": Metric(_squared, _squared_ends, -1),
    "rmse": Metric(_squared, _squared_ends, -1, math.sqrt),
    "mean_absolute_error": Metric(_absolute, _absolute_ends, -1),
    R2: Metric(_squared, _squared_ends, +1),
    "log_likelihood": Metric(_likelihood, _declared, +1),
    "inertia": Metric(_distance, _declared, -1),
}
