"""ExplainableBoostingClassifier and ExplainableBoostingRegressor: additive models whose effects can be drawn."""

from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from discreet.kernel.ledger import Ledger
from discreet.kernel.numbers import Number, as_integer
from discreet.learn.boosting.boosting_rounds import (
    AdditiveModel,
    additive_scores,
    boost,
    budget_shares,
    start_classes,
    start_target,
)
from discreet.learn.boosting.column_cells import CELLS, ColumnCells, cells_of
from discreet.learn.boosting.column_inputs import cells_from_data, cells_from_query, read_columns
from discreet.learn.bounds import parse_bounds
from discreet.learn.fit_cost import REMOVAL
from discreet.learn.fit_inputs import (
    ClassLabels,
    QueryRows,
    TargetColumn,
    class_labels_of_column,
    query_target_bounds,
    read_class_labels,
)
from discreet.learn.fit_session import FitSource, open_model_session


class ExplainableBoostingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier for two classes: log-odds as a sum of one effect per feature, a step function or a list of values.

    `categories` maps columns to their possible values; other columns are numeric and have `bounds`, a dict from columns
    to (low, high) or as for other estimators. Missing values and undeclared categories have an effect of their own.
    `effects_` and their `margins_` (approximate, from noise only) are lists of one array per feature; the first number
    of each is for missing values. `bins_` has the categories of a feature, or the inner ends of its intervals.

    >>> import numpy as np, discreet as dc
    >>> ages = np.random.default_rng(0).integers(18, 90, size=(5000, 1))
    >>> model = dc.learn.ExplainableBoostingClassifier(epsilon=1, bounds=(0, 120), classes=["paid", "retired"])
    >>> model.fit(ages, np.where(ages[:, 0] < 65, "paid", "retired")).predict([[30], [80]]).tolist()
    ['paid', 'retired']
    """

    def __init__(  # noqa: PLR0913 - scikit-learn requires one parameter per setting
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        categories: Any = None,
        classes: Any = None,
        rounds: int = 3,
        max_bins: int = 32,
        neighbours: str = REMOVAL,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.neighbours = epsilon, delta, bounds, neighbours
        self.categories, self.classes, self.rounds, self.max_bins = categories, classes, rounds, max_bins

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan, tags.classifier_tags.multi_class = True, False
        return tags

    def fit(self, X: Any, y: Any, *, unit: Any = None, ledger: Ledger | None = None) -> Self:
        """Fit to X and the labels y; rows with the same `unit` together count as one row."""
        labels = _check_two_classes(read_class_labels(X, y, self.classes))
        source, cells = cells_from_data(self, X, target=labels.target, unit=unit, ledger=ledger)
        return self._fit_source(source, cells, labels)

    def fit_rows(self, rows: QueryRows) -> Self:
        """Fit to the rows of a curator's query, whose last column is the numeric label."""
        labels = _check_two_classes(class_labels_of_column(rows.names[-1], self.classes))
        return self._fit_source(*cells_from_query(self, rows, labels.target), labels)

    def _fit_source(self, source: FitSource, cells: ColumnCells, labels: ClassLabels) -> Self:
        rounds, max_bins = as_integer(self.rounds, "rounds", 1), as_integer(self.max_bins, "max_bins", 2)
        shares = budget_shares(len(cells.names), rounds)
        session = open_model_session(self, source, (*labels.selection_shares, *shares))
        label_codes, self.classes_ = labels.resolve_classes(session)
        if len(label_codes) != 2:
            session.stop(f"classes: the noisy counts show {len(label_codes)}; {_TWO_CLASSES}")
        start = start_classes(session, cells, label_codes, rounds)
        _keep(self, cells, boost(session, cells, start, rounds=rounds, max_bins=max_bins))
        return session.finish(self)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the log-odds of the second class for each row."""
        return _scores(self, X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(int)])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class for each row."""
        scores = self.decision_function(X)
        return np.column_stack([expit(-scores), expit(scores)])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the log-probability of each class for each row."""
        scores = self.decision_function(X)
        return np.column_stack([log_expit(-scores), log_expit(scores)])


class ExplainableBoostingRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression whose prediction is a sum of one effect per feature, a step function or a list of values.

    `bounds`, `categories` and the fitted attributes are those of ExplainableBoostingClassifier; `target_bounds` are the
    bounds of y, and of predictions.

    >>> import numpy as np, discreet as dc
    >>> hours = np.random.default_rng(0).uniform(0, 24, size=(5000, 1))
    >>> warmth = 10 - 5 * np.cos(hours[:, 0] * np.pi / 12)
    >>> model = dc.learn.ExplainableBoostingRegressor(epsilon=1, bounds=(0, 24), target_bounds=(-10, 30))
    >>> night, noon = model.fit(hours, warmth).predict([[0], [12]])
    >>> bool(night < 8 < 12 < noon)
    True
    """

    def __init__(  # noqa: PLR0913 - scikit-learn requires one parameter per setting
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        categories: Any = None,
        target_bounds: Any = None,
        rounds: int = 3,
        max_bins: int = 32,
        neighbours: str = REMOVAL,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.neighbours = epsilon, delta, bounds, neighbours
        self.categories, self.target_bounds, self.rounds, self.max_bins = categories, target_bounds, rounds, max_bins

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any, *, unit: Any = None, ledger: Ledger | None = None) -> Self:
        """Fit to X and the target y; rows with the same `unit` together count as one row."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        target = self._target(y, self.target_bounds)
        source, cells = cells_from_data(self, X, target=target, unit=unit, ledger=ledger)
        return self._fit_source(source, cells, target)

    def fit_rows(self, rows: QueryRows) -> Self:
        """Fit to the rows of a curator's query, whose last column is the target."""
        declared = query_target_bounds(rows) if self.target_bounds is None else self.target_bounds
        target = self._target(rows.names[-1], declared)
        return self._fit_source(*cells_from_query(self, rows, target), target)

    def _target(self, values: Any, bounds: Any) -> TargetColumn:
        low, high = parse_bounds(bounds, 1, "target_bounds")
        return TargetColumn(values, float(low[0]), float(high[0]))

    def _fit_source(self, source: FitSource, cells: ColumnCells, target: TargetColumn) -> Self:
        rounds, max_bins = as_integer(self.rounds, "rounds", 1), as_integer(self.max_bins, "max_bins", 2)
        session = open_model_session(self, source, budget_shares(len(cells.names), rounds))
        start = start_target(session, cells, (target.low, target.high), rounds)
        self.target_bounds_ = (target.low, target.high)
        _keep(self, cells, boost(session, cells, start, rounds=rounds, max_bins=max_bins))
        return session.finish(self)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target of each row, clamped to the target's bounds."""
        scores = _scores(self, X)
        return np.asarray(np.clip(scores, *self.target_bounds_))


_TWO_CLASSES = "this classifier needs two; declare them, such as classes=[0, 1]"


def _check_two_classes(labels: ClassLabels) -> ClassLabels:
    if labels.codes is not None and len(labels.codes) != 2:
        raise ValueError(f"classes: {len(labels.codes)} are declared, but {_TWO_CLASSES}")
    return labels


def _keep(model: Any, cells: ColumnCells, fitted: AdditiveModel) -> None:
    """Store the fitted attributes."""
    model._cells, model._bins = cells, fitted.bins  # noqa: SLF001 - these two estimators' own
    model.intercept_ = fitted.intercept
    model.effects_ = [shape.centred for shape in fitted.shapes]
    model.margins_ = [shape.margins for shape in fitted.shapes]
    model.bin_counts_ = [shape.weights for shape in fitted.shapes]
    model.feature_bounds_ = [
        (float(low), float(high)) if codes is None else None
        for low, high, codes in zip(cells.low, cells.high, cells.codes, strict=True)
    ]
    model.bins_ = [
        _inner_ends(bins, low, high) if names is None else list(names)
        for bins, low, high, names in zip(fitted.bins, cells.low, cells.high, cells.categories, strict=True)
    ]


def _inner_ends(bins: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the values between a numeric column's bins; `bins` has the bin of each cell, the first for missing."""
    return np.asarray(low + (high - low) / CELLS * (np.flatnonzero(np.diff(bins[1:])) + 1))


def _scores(model: Any, X: Any) -> np.ndarray:
    check_is_fitted(model)
    cells: ColumnCells = model._cells  # noqa: SLF001 - these two estimators' own
    effects = np.concatenate([values[bins] for values, bins in zip(model.effects_, model._bins, strict=True)])  # noqa: SLF001
    places = cells_of(read_columns(model, X, cells), cells.for_rules)
    return additive_scores(places, np.cumsum(cells.sizes) - cells.sizes, effects, model.intercept_)
