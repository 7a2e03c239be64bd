"""What a model is given, made into rows: arrays, frames, Arrow tables, DuckDB, Spark, or a curator's query."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from discreet.kernel.errors import Refused
from discreet.kernel.ledger import Ledger
from discreet.kernel.summing import Part, Remote
from discreet.learn.bounds import Ends, check_not_from_data, declared
from discreet.learn.rows import Batch, array_rows
from discreet.learn.session import Source
from discreet.learn.spark_rows import SparkTable
from discreet.learn.streams import is_spark, is_stream, names_of, stream_rows


class Model(Protocol):
    """What all estimators have."""

    bounds: Any
    n_features_in_: int


class QueryRows(Protocol):
    """The rows of a curator's query: columns with declared ranges, and the ledger that pays."""

    names: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    ledger: Ledger
    by: str
    question: str
    protects: str

    def batches(self, size: int) -> Iterator[Batch]:
        """Give rows with the place of each row's unit, ascending."""


@dataclass(frozen=True)
class Target:
    """What is to be predicted, beside X: an array, or a column's name; and the ends of its range."""

    values: Any
    low: float
    high: float


def source_of(  # noqa: PLR0913 - what is learned from, and who pays
    model: Model,
    X: Any,
    *,
    target: Target | None = None,
    unit: Any = None,
    ledger: Ledger | None = None,
    least: int = 1,
) -> Source:
    """Return the rows of X, with the target as last column, and set what scikit-learn wants to be known of X."""
    word = "row" if unit is None else "unit"
    check_ledger(ledger, unit)
    if isinstance(unit, str) and not is_stream(X):
        raise TypeError("unit: of a frame or an array, give the units themselves, such as unit=frame['person']")
    if is_stream(X):
        return Source(_streamed(model, X, target, unit), word, ledger)
    X = validate_data(model, X, dtype=np.float64, ensure_min_samples=least)
    ends = declared(model.bounds, X.shape[1])
    check_not_from_data(X, *ends)
    if target is not None:
        values = column_or_1d(target.values, dtype=np.float64, warn=True)
        check_consistent_length(X, values)
        if not np.isfinite(values).all():
            raise ValueError("y must hold finite numbers: leave out rows without one")
        low, high = np.array([target.low]), np.array([target.high])
        check_not_from_data(values[:, np.newaxis], low, high, "target_bounds")
        X, ends = np.column_stack([X, values]), _with_target(ends, target)
    return Source(array_rows(X, ends, unit), word, ledger)


def check_ledger(ledger: Ledger | None, unit: Any) -> None:
    """Stop unless a ledger can be charged for what is learned of these units."""
    if ledger is None:
        return
    if not hasattr(ledger, "charge"):
        raise TypeError("ledger must be one that is open: dc.open_ledger(path), dc.create_ledger(…) or curator.ledger")
    if ledger.promise and unit is None:
        raise ValueError(
            "unit: this ledger belongs to a policy, and counts what is learned of each of its units; name the unit of "
            "every row, or use curator.fit"
        )


def source_of_query(model: Model, rows: QueryRows, target: Target | None = None) -> Source:
    """Return the rows of a curator's query; the target is its last column, and the policy's ranges are the bounds."""
    names = rows.names if target is None else rows.names[:-1]
    if not names:
        raise Refused("SELECT: name the features first and then, as last column, what is to be predicted.")
    _set_names(model, names)
    ends = declared(tuple(zip(*rows.bounds[: len(names)], strict=True)), len(names))
    if model.bounds is not None:
        ends = declared(model.bounds, len(names))
    kind = _Remote if isinstance(rows, Remote) else _Queried
    return Source(
        kind(rows, *(ends if target is None else _with_target(ends, target))),
        rows.protects,
        rows.ledger,
        rows.by,
        f"fit {type(model).__name__}: {rows.question}",
    )


def target_ends(rows: QueryRows) -> tuple[float, float]:
    """Return the declared range of a query's last column."""
    return rows.bounds[-1]


@dataclass(frozen=True)
class _Queried:
    """A query's rows, moved into ranges that the model declares itself."""

    rows: QueryRows
    low: np.ndarray
    high: np.ndarray
    grouped: bool = True

    def batches(self, size: int) -> Iterator[Batch]:
        for numbers, places in self.rows.batches(size):
            yield np.clip(numbers, self.low, self.high), places


class _Remote(_Queried):
    """The same, of rows that are summed where they are."""

    def summed(self, part: Part) -> np.ndarray:
        assert isinstance(self.rows, Remote)
        return self.rows.summed(part)


def _streamed(model: Model, table: Any, target: Target | None, unit: Any) -> Any:
    apart = [] if target is None else [target.values]
    if unit is not None:
        apart.append(unit)
    if not all(isinstance(name, str) for name in apart):
        raise TypeError("y and unit: of a table or relation, name the columns")
    present = names_of(table)
    if missing := [name for name in apart if name not in present]:
        raise ValueError(f"X has no column {missing[0]!r}; it has {', '.join(map(repr, present))}")
    names = tuple(name for name in present if name not in apart)
    ends = declared(model.bounds, len(names))
    _set_names(model, names)
    kind = SparkTable if is_spark(table) else stream_rows
    if target is None:
        return kind(table, names, ends, unit)
    return kind(table, (*names, target.values), _with_target(ends, target), unit)


def _set_names(model: Model, names: tuple[str, ...]) -> None:
    model.n_features_in_ = len(names)
    model.feature_names_in_ = np.array(names, object)  # type: ignore[attr-defined]


def _with_target(ends: Ends, target: Target) -> Ends:
    return np.append(ends[0], target.low), np.append(ends[1], target.high)
