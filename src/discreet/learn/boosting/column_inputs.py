"""Rows of columns with declared bounds or categories; values may be missing."""

import copy
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from discreet.kernel.ledger import Ledger
from discreet.learn.boosting.column_cells import ColumnCells, declare_cells
from discreet.learn.bounds import check_bounds_not_from_data
from discreet.learn.fit_inputs import (
    QueryRows,
    TargetColumn,
    check_ledger,
    source_from_data,
    source_from_query,
)
from discreet.learn.fit_session import FitSource
from discreet.learn.row_sources import array_rows, is_stream, stream_column_names


class AdditiveEstimator(Protocol):
    """The parameters and attributes that declare an additive model's columns."""

    bounds: Any
    categories: Any
    n_features_in_: int


def cells_from_data(
    model: AdditiveEstimator, X: Any, *, target: TargetColumn, unit: Any, ledger: Ledger | None
) -> tuple[FitSource, ColumnCells]:
    """Return the rows of X, with the target as the last column, and how they become cells."""
    if is_stream(X):
        others = (target.values, unit)
        names = tuple(name for name in stream_column_names(X) if name not in others)
        cells = declare_cells(names, model.bounds, model.categories, indexed=False)
        return _source_from_stream(model, X, cells, target=target, unit=unit, ledger=ledger), cells
    check_ledger(ledger, unit)
    if isinstance(unit, str):
        raise TypeError("unit: for a frame or an array, pass the units themselves, such as unit=frame['person']")
    _set_column_names(model, X)
    cells = declare_cells(_column_names(model), model.bounds, model.categories, indexed=True)
    numbers = _read_numbers(model, X, cells)
    y = column_or_1d(target.values, dtype=np.float64, warn=True)
    check_consistent_length(numbers, y)
    _check_not_from_data(numbers, cells, y, target)
    values = _clamp_and_fill(numbers, cells)
    low, high = cells.source_bounds(with_missing=True)
    bounds = np.append(low, target.low), np.append(high, target.high)
    return FitSource(
        array_rows(np.column_stack([values, y]), bounds, unit), "row" if unit is None else "unit", ledger
    ), cells


def cells_from_query(model: AdditiveEstimator, rows: QueryRows, target: TargetColumn) -> tuple[FitSource, ColumnCells]:
    """Return the rows of a curator's query, whose last column is the target, and how they become cells."""
    names = rows.names[:-1]
    low, high = (np.array(ends, np.float64) for ends in zip(*rows.bounds, strict=True))
    cells = declare_cells(names, model.bounds, model.categories, (low[:-1], high[:-1]), indexed=False)
    declared = _with_bounds(model, cells)
    source = source_from_query(declared, rows, target)
    _copy_names(declared, model)
    return source, cells


def _set_column_names(model: AdditiveEstimator, X: Any) -> None:
    """Set scikit-learn's feature attributes; columns of text can be checked only when their categories are known."""
    if model.categories:
        validate_data(model, X, skip_check_array=True)
    else:
        validate_data(model, X, dtype=np.float64, ensure_all_finite="allow-nan")


def read_columns(model: AdditiveEstimator, X: Any, cells: ColumnCells) -> np.ndarray:
    """Return validated rows as numbers: clamped values and category codes, with the column's number for missing ones.

    The names and the number of columns must be those that the model has.
    """
    return _clamp_and_fill(_read_numbers(model, X, cells), cells)


def _read_numbers(model: AdditiveEstimator, X: Any, cells: ColumnCells) -> np.ndarray:
    """Return rows as numbers: values and category codes; missing ones are NaN."""
    if all(codes is None for codes in cells.codes):
        return np.asarray(validate_data(model, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan"))
    validate_data(model, X, reset=False, skip_check_array=True)
    numbers = np.column_stack([_column_numbers(X, j, cells) for j in range(len(cells.names))])
    return np.asarray(check_array(numbers, dtype=np.float64, ensure_all_finite="allow-nan"))


def _clamp_and_fill(numbers: np.ndarray, cells: ColumnCells) -> np.ndarray:
    clamped = np.clip(numbers, *cells.source_bounds(with_missing=False))
    return np.where(np.isnan(clamped), cells.missing_values, clamped)


def _column_numbers(X: Any, j: int, cells: ColumnCells) -> np.ndarray:
    """Return a column as numbers: its values, or the codes of its categories; missing ones are NaN."""
    column = X.iloc[:, j] if hasattr(X, "iloc") else (X if hasattr(X, "shape") else np.asarray(X, object))[:, j]
    codes, names = cells.codes[j], cells.categories[j]
    if codes is None or names is None:
        return np.asarray(column, np.float64)
    code_of: Mapping[Any, float] = dict(zip(names, codes.tolist(), strict=True))
    return np.array([code_of.get(value, np.nan) for value in np.asarray(column, object).tolist()], np.float64)


def _check_not_from_data(numbers: np.ndarray, cells: ColumnCells, y: np.ndarray, target: TargetColumn) -> None:
    """Raise ValueError if declared bounds are the extremes of the data, or if a target is not a finite number."""
    numeric = [j for j, codes in enumerate(cells.codes) if codes is None]
    if numeric:
        present = np.where(np.isnan(numbers), cells.low, numbers)[:, numeric]
        check_bounds_not_from_data(present, cells.low[numeric], cells.high[numeric])
    if not np.isfinite(y).all():
        raise ValueError("y must contain finite numbers only; remove the other rows")
    check_bounds_not_from_data(y[:, np.newaxis], np.array([target.low]), np.array([target.high]), "target_bounds")


def _source_from_stream(  # noqa: PLR0913 - the data and the ledger
    model: AdditiveEstimator, X: Any, cells: ColumnCells, *, target: TargetColumn, unit: Any, ledger: Ledger | None
) -> FitSource:
    declared = _with_bounds(model, cells)
    source = source_from_data(declared, X, target=target, unit=unit, ledger=ledger)
    _copy_names(declared, model)
    return source


def _with_bounds(model: AdditiveEstimator, cells: ColumnCells) -> AdditiveEstimator:
    """Return a copy of the model with the bounds of all columns, also of those with categories."""
    declared = copy.copy(model)
    declared.bounds = cells.source_bounds(with_missing=False)
    return declared


def _copy_names(source: Any, model: Any) -> None:
    model.n_features_in_, model.feature_names_in_ = source.n_features_in_, source.feature_names_in_


def _column_names(model: AdditiveEstimator) -> tuple[str, ...]:
    """Return the names of the columns; those of arrays are x0, x1, … as in scikit-learn."""
    return tuple(getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)]))
