"""Validate the input of an estimator (arrays, tables or a query) and turn it into rows to fit on."""

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
from discreet.learn.fit_session import FitSource
from discreet.learn.row_sources import (
    RowBatch,
    SparkTableRows,
    array_rows,
    is_spark_frame,
    is_stream,
    stream_column_names,
    stream_rows,
)


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
