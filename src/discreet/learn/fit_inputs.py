"""Validate the input of an estimator (arrays, tables or a query) and turn it into rows to fit on."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from discreet.engines.row_sums import RemoteRowSource
from discreet.kernel.errors import Refused
from discreet.kernel.ledger import Ledger
from discreet.kernel.model_release import PartialSum
from discreet.learn.bounds import BoundArrays, check_bounds_not_from_data, parse_bounds
from discreet.learn.fit_session import FitSession, FitSource
from discreet.learn.row_sources import (
    RowBatch,
    SparkTableRows,
    array_rows,
    is_spark_frame,
    is_stream,
    stream_column_names,
    stream_rows,
)

MAX_LABELS = 256  # without declared classes, the labels 0 to 255 are counted
_FALSE_LABEL_PROBABILITY = 1e-3  # probability that any absent label is selected as a class


@dataclass(frozen=True)
class ClassLabels:
    """The target column, the code of each class in it (None until classes are selected) and the class names."""

    target: "TargetColumn"
    codes: np.ndarray | None
    names: np.ndarray

    @property
    def selection_shares(self) -> tuple[str, ...]:
        """Budget share for selecting the classes, relative to 1 for the rest: a tenth of the total, or none."""
        return () if self.codes is not None else ("1/9",)

    def resolve_classes(self, session: FitSession) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes and names of the classes, selected by noisy counts if they were not declared."""
        if self.codes is not None:
            return self.codes, self.names
        threshold = _selection_threshold(session)
        counts = session.histogram(_label_cell, (), cells=MAX_LABELS)
        selected = np.flatnonzero(counts > threshold)
        if len(selected) < 2:
            session.stop(
                f"classes: the noisy counts show {len(selected)} class{'' if len(selected) == 1 else 'es'} among the "
                f"labels 0 to {MAX_LABELS - 1}, but a classifier needs at least 2. "
                f"At this epsilon a label needs a count of about {math.ceil(threshold)} to be selected. "
                "Declare the labels, such as classes=[0, 1]; then no budget is spent on selecting them."
            )
        return selected.astype(np.float64), selected.astype(self.names.dtype)


def read_class_labels(X: Any, y: Any, classes: Any) -> ClassLabels:
    """Return the class labels in y; a label outside the declared classes gets the code -1."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if is_stream(X):
        return class_labels_of_column(y, classes)
    labels = column_or_1d(y, warn=True)
    if classes is None:
        if labels.dtype.kind not in "iubf" or (labels.dtype.kind == "f" and (labels != np.floor(labels)).any()):
            raise ValueError(
                "classes: declare the labels, such as classes=['no', 'yes']. Unknown label type: without declared "
                "classes only integer labels are counted, because text or continuous labels could identify one person."
            )
        return ClassLabels(TargetColumn(labels.astype(np.float64), -1, MAX_LABELS), None, np.empty(0, labels.dtype))
    names = _check_class_names(classes)
    return ClassLabels(
        TargetColumn(_codes_of_labels(labels, names), -1, len(names)), np.arange(len(names), dtype=np.float64), names
    )


def class_labels_of_column(column: Any, classes: Any) -> ClassLabels:
    """Return the class labels of a numeric column that has not been read yet."""
    if classes is None:
        return ClassLabels(TargetColumn(column, -1, MAX_LABELS), None, np.empty(0, np.int64))
    names = _check_class_names(classes)
    if names.dtype.kind not in "iubf":
        raise ValueError("classes: the labels of a column must be numbers; convert text labels to numbers in the query")
    codes = names.astype(np.float64)
    return ClassLabels(TargetColumn(column, codes.min() - 1, codes.max() + 1), codes, names)


def _check_class_names(classes: Any) -> np.ndarray:
    names = np.unique(np.asarray(classes))
    if np.ndim(classes) != 1 or len(names) < 2 or len(names) != np.size(classes):
        raise ValueError("classes must list at least two distinct labels, such as classes=['no', 'yes']")
    return names


def _codes_of_labels(labels: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Return the index of each label in `names`, or -1."""
    if (labels.dtype.kind in "iubf") != (names.dtype.kind in "iubf"):
        raise ValueError("classes and y must both be numbers or both be strings")
    if labels.dtype.kind == "O":
        code_of = {name: code for code, name in enumerate(names.tolist())}
        return np.array([code_of.get(label, -1) for label in labels.tolist()], dtype=np.float64)
    nearest = np.minimum(np.searchsorted(names, labels), len(names) - 1)
    return np.where(names[nearest] == labels, nearest, -1).astype(np.float64)


def _selection_threshold(session: FitSession) -> float:
    """Return the count that no absent label exceeds, except with probability _FALSE_LABEL_PROBABILITY overall."""
    if session.is_gaussian:
        return session.scale() * math.sqrt(2 * math.log(MAX_LABELS / _FALSE_LABEL_PROBABILITY))
    return session.scale() * math.log(MAX_LABELS / (2 * _FALSE_LABEL_PROBABILITY))


def _label_cell(rows: np.ndarray, _: tuple[Any, ...]) -> np.ndarray:
    label = rows[:, -1]
    return np.where(label == np.floor(label), label, -1).astype(np.int64)


class Estimator(Protocol):
    """The attributes that all estimators have."""

    bounds: Any
    n_features_in_: int


class QueryRows(Protocol):
    """The rows of a curator's query: columns with declared bounds, and the ledger to charge."""

    names: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    ledger: Ledger
    by: str
    question: str
    protects: str

    def batches(self, size: int) -> Iterator[RowBatch]:
        """Yield batches of rows with the number of each row's unit, ascending."""


@dataclass(frozen=True)
class TargetColumn:
    """The target y: an array or a column name, and its bounds."""

    values: Any
    low: float
    high: float


def source_from_data(  # noqa: PLR0913 - the data and the ledger
    model: Estimator,
    X: Any,
    *,
    target: TargetColumn | None = None,
    unit: Any = None,
    ledger: Ledger | None = None,
    min_rows: int = 1,
) -> FitSource:
    """Return the rows of X, with the target as the last column, and set scikit-learn's feature attributes."""
    unit_noun = "row" if unit is None else "unit"
    check_ledger(ledger, unit)
    if isinstance(unit, str) and not is_stream(X):
        raise TypeError("unit: for a frame or an array, pass the units themselves, such as unit=frame['person']")
    if is_stream(X):
        return FitSource(_rows_of_stream(model, X, target, unit), unit_noun, ledger)
    X = validate_data(model, X, dtype=np.float64, ensure_min_samples=min_rows)
    bounds = parse_bounds(model.bounds, X.shape[1])
    check_bounds_not_from_data(X, *bounds)
    if target is not None:
        values = column_or_1d(target.values, dtype=np.float64, warn=True)
        check_consistent_length(X, values)
        if not np.isfinite(values).all():
            raise ValueError("y must contain finite numbers only; remove the other rows")
        low, high = np.array([target.low]), np.array([target.high])
        check_bounds_not_from_data(values[:, np.newaxis], low, high, "target_bounds")
        X, bounds = np.column_stack([X, values]), _append_target_bounds(bounds, target)
    return FitSource(array_rows(X, bounds, unit), unit_noun, ledger)


def check_ledger(ledger: Ledger | None, unit: Any) -> None:
    """Raise unless the ledger is open and its privacy unit is given."""
    if ledger is None:
        return
    if not hasattr(ledger, "charge"):
        raise TypeError("ledger must be an open ledger: dc.open_ledger(path), dc.create_ledger(…) or curator.ledger")
    if ledger.terms.unit_declaration and unit is None:
        raise ValueError(
            "unit: this ledger belongs to a policy and accounts for its privacy unit; pass the unit of each row, or "
            "use curator.fit"
        )


def source_from_query(model: Estimator, rows: QueryRows, target: TargetColumn | None = None) -> FitSource:
    """Return the rows of a curator's query; a target is its last column, and bounds default to the policy's."""
    names = rows.names if target is None else rows.names[:-1]
    if not names:
        raise Refused("SELECT: list the features first and the target as the last column.")
    _set_feature_names(model, names)
    bounds = parse_bounds(tuple(zip(*rows.bounds[: len(names)], strict=True)), len(names))
    if model.bounds is not None:
        bounds = parse_bounds(model.bounds, len(names))
    row_type = _RemoteQueryRows if isinstance(rows, RemoteRowSource) else _BoundedQueryRows
    return FitSource(
        row_type(rows, *(bounds if target is None else _append_target_bounds(bounds, target))),
        rows.protects,
        rows.ledger,
        rows.by,
        f"fit {type(model).__name__}: {rows.question}",
    )


def query_target_bounds(rows: QueryRows) -> tuple[float, float]:
    """Return the declared bounds of a query's last column."""
    return rows.bounds[-1]


@dataclass(frozen=True)
class _BoundedQueryRows:
    """A query's rows, clamped to the model's own bounds."""

    rows: QueryRows
    low: np.ndarray
    high: np.ndarray
    grouped: bool = True

    def batches(self, size: int) -> Iterator[RowBatch]:
        for values, unit_numbers in self.rows.batches(size):
            yield np.clip(values, self.low, self.high), unit_numbers


class _RemoteQueryRows(_BoundedQueryRows):
    """The same for rows that are summed remotely."""

    def sum_units(self, part: PartialSum) -> np.ndarray:
        assert isinstance(self.rows, RemoteRowSource)
        return self.rows.sum_units(part)


def _rows_of_stream(model: Estimator, table: Any, target: TargetColumn | None, unit: Any) -> Any:
    other_columns = [] if target is None else [target.values]
    if unit is not None:
        other_columns.append(unit)
    if not all(isinstance(name, str) for name in other_columns):
        raise TypeError("y and unit: for a table or relation, pass column names")
    column_names = stream_column_names(table)
    if missing := [name for name in other_columns if name not in column_names]:
        raise ValueError(
            f"column {missing[0]!r} does not exist in X; its columns are {', '.join(map(repr, column_names))}"
        )
    names = tuple(name for name in column_names if name not in other_columns)
    bounds = parse_bounds(model.bounds, len(names))
    _set_feature_names(model, names)
    row_type = SparkTableRows if is_spark_frame(table) else stream_rows
    if target is None:
        return row_type(table, names, bounds, unit)
    return row_type(table, (*names, target.values), _append_target_bounds(bounds, target), unit)


def _set_feature_names(model: Estimator, names: tuple[str, ...]) -> None:
    model.n_features_in_ = len(names)
    model.feature_names_in_ = np.array(names, object)  # type: ignore[attr-defined]


def _append_target_bounds(bounds: BoundArrays, target: TargetColumn) -> BoundArrays:
    return np.append(bounds[0], target.low), np.append(bounds[1], target.high)
