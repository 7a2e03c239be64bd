"""Sources of a fit's rows: arrays, Arrow tables, DuckDB relations and Spark data frames."""

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.engines.spark.casts import backtick_quote
from discreet.engines.spark.vector_sums import SparkRows
from discreet.kernel.model_release import Batch, PartialSum
from discreet.learn.bounds import BoundArrays

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


RowBatch = tuple[np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class ArrayRows:
    """Rows of an array; `order` sorts them by unit, and `unit_numbers` holds the unit of each in that order."""

    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    order: np.ndarray | None = None
    unit_numbers: np.ndarray | None = None

    @property
    def grouped(self) -> bool:
        """Whether a unit may have several rows."""
        return self.unit_numbers is not None

    def batches(self, size: int) -> Iterator[RowBatch]:
        """Yield the rows, clamped to their bounds."""
        for start in range(0, len(self.values), size):
            part = slice(start, start + size)
            rows = self.values[part if self.order is None else self.order[part]]
            yield np.clip(rows, self.low, self.high), None if self.unit_numbers is None else self.unit_numbers[part]


def array_rows(values: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], unit: Any = None) -> ArrayRows:
    """Return the rows of an array, grouped by `unit`.

    >>> rows = array_rows(np.array([[1.0], [2.0], [9.0]]), (np.zeros(1), np.ones(1) * 5), unit=["b", "a", "b"])
    >>> [(batch.ravel().tolist(), units.tolist()) for batch, units in rows.batches(10)]
    [([1.0, 5.0, 2.0], [0, 0, 1])]
    """
    if unit is None:
        return ArrayRows(np.asfortranarray(values), *bounds)
    unit_numbers = _unit_numbers(unit, len(values))
    order = np.argsort(unit_numbers, kind="stable")
    return ArrayRows(np.asfortranarray(values), *bounds, order, unit_numbers[order])


def _unit_numbers(unit: Any, n_rows: int) -> np.ndarray:
    """Return the unit number of each row: equal for equal units, different otherwise."""
    if isinstance(unit, np.ma.MaskedArray):
        raise TypeError("unit must not be a masked array: every row belongs to a unit")
    # numpy would convert a list to one type, in which 1 and "1", or two large integers, become equal.
    units = np.asarray(unit, object) if isinstance(unit, list | tuple) else np.asarray(unit)
    if units.ndim != 1 or len(units) != n_rows:
        raise ValueError(f"unit must have one entry for each of the {n_rows} rows, not the shape {units.shape}")
    if units.dtype.kind in "fcmMO" and any(map(_is_missing, units)):
        raise ValueError("unit: some rows have no unit; remove those rows, or give each its own unit")
    if units.dtype != object:
        return np.unique(units, return_inverse=True)[1].astype(np.int64)
    number_of: dict[Any, int] = {}  # by equality: 1, 1.0 and True are the same unit
    try:
        return np.array([number_of.setdefault(value, len(number_of)) for value in units], np.int64)
    except TypeError:
        raise TypeError("unit must contain hashable values, such as numbers or strings") from None


def _is_missing(unit: Any) -> bool:
    """Return whether a unit is None, NaN, NaT or pandas.NA: only these are not equal to themselves."""
    try:
        return unit is None or bool(unit != unit)  # noqa: PLR0124
    except TypeError:
        return True


_UNIT_COLUMN = "__unit__"  # added column with the unit number of each row
_NUMERIC_TYPE_CHECKS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)


@dataclass(frozen=True)
class StreamRows:
    """Rows of a table that is read again in every pass; rows with a missing value or unit are left out."""

    table: Any
    columns: tuple[str, ...]
    grouped: bool
    low: np.ndarray
    high: np.ndarray

    def batches(self, size: int) -> Iterator[RowBatch]:
        """Yield the rows, clamped to their bounds."""
        for batch in _arrow_reader(self.table):
            complete = batch.select([*self.columns, *([_UNIT_COLUMN] if self.grouped else [])]).drop_null()
            for start in range(0, complete.num_rows, size):
                part = complete.slice(start, size)
                rows = np.stack([_as_floats(part.column(name)) for name in self.columns], axis=1)
                finite = np.isfinite(rows).all(axis=1)
                unit_numbers = part.column(_UNIT_COLUMN).to_numpy()[finite] if self.grouped else None
                yield np.clip(rows[finite], self.low, self.high), unit_numbers


def _as_floats(column: Any) -> np.ndarray:
    """Return a column as floats; integers above 2^53 are rounded."""
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def is_stream(table: Any) -> bool:
    """Return whether rows can be streamed: Arrow batches or a Spark frame, but no pandas or polars frame."""
    return is_spark_frame(table) or (hasattr(table, "__arrow_c_stream__") and not hasattr(table, "to_numpy"))


def is_spark_frame(table: Any) -> bool:
    """Return whether a table is a Spark data frame, by its type: hasattr is true for every column name."""
    kind = type(table)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")


def stream_rows(
    table: Any, columns: tuple[str, ...], bounds: tuple[np.ndarray, np.ndarray], unit: str | None
) -> StreamRows:
    """Return the rows of a table or relation, sorted by unit."""
    schema = _arrow_reader(table).schema
    for name in columns:
        kind = schema.field(name).type
        if not any(is_kind(kind) for is_kind in _NUMERIC_TYPE_CHECKS):
            raise TypeError(f"X: column {name!r} has type {kind}, but a model needs numeric columns")
    return StreamRows(table if unit is None else _sort_by_unit(table, unit), columns, unit is not None, *bounds)


def stream_column_names(table: Any) -> tuple[str, ...]:
    """Return the names of a stream's columns."""
    if isinstance(table, pa.RecordBatchReader):
        raise TypeError(
            "X: a RecordBatchReader can be read only once, but a fit needs several passes; pass a table or a relation"
        )
    has_column_list = is_spark_frame(table) or hasattr(table, "order")
    return tuple(table.columns) if has_column_list else tuple(_arrow_reader(table).schema.names)


def _arrow_reader(table: Any) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_stream(table)


def _sort_by_unit(table: Any, unit: str) -> Any:
    """Return the table sorted by unit, with a unit number for each row."""
    if hasattr(
        table, "order"
    ):  # a DuckDB relation: DuckDB sorts, on disk if needed, and its collation decides equality
        name = '"' + unit.replace('"', '""') + '"'
        numbered = f'*, dense_rank() OVER (ORDER BY {name}) AS "{_UNIT_COLUMN}"'
        return table.filter(f"{name} IS NOT NULL").project(numbered).order(f'"{_UNIT_COLUMN}"')
    arrow_table = pa.table(table)
    units = arrow_table.column(unit).combine_chunks()
    if pa.types.is_dictionary(units.type):
        units = units.cast(units.type.value_type)
    if pa.types.is_nested(units.type):
        raise TypeError(f"unit: column {unit!r} has type {units.type}; it must contain numbers, strings or times")
    if pa.types.is_floating(units.type):
        units = pc.if_else(pc.is_nan(units), None, pc.add(units, 0.0))  # -0.0 equals 0.0, and NaN is a missing unit
    unit_numbers = units.dictionary_encode().indices.cast(pa.int64())
    return arrow_table.append_column(_UNIT_COLUMN, unit_numbers).sort_by(_UNIT_COLUMN)


_SPARK_NUMERIC_TYPES = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "decimal")
_SPARK_NESTED_TYPES = ("array", "map", "struct", "variant")


class SparkTableRows:
    """Rows of a Spark data frame, persisted on Spark during the fit; rows with a missing value or unit are left out."""

    def __init__(self, frame: "DataFrame", columns: tuple[str, ...], bounds: BoundArrays, unit: str | None) -> None:
        self._table, self._columns, self._unit = frame, columns, unit
        self.low, self.high = bounds
        self.grouped = unit is not None
        self._rows = SparkRows(
            _select_complete_rows(frame, columns, unit), units=int(self.grouped), numbers=len(columns)
        )
        self._rows.persist()
        weakref.finalize(self, self._rows.unpersist).atexit = False

    def sum_units(self, part: PartialSum) -> np.ndarray:
        """Return a partial sum over all rows, computed on Spark."""
        return self._rows.sums(part, [*zip(self.low, self.high, strict=True)])

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield the rows themselves, all collected locally, for the few methods that need more than sums."""
        table = self._table.toArrow()
        return stream_rows(table, self._columns, (self.low, self.high), self._unit).batches(size)


def _select_complete_rows(frame: "DataFrame", columns: tuple[str, ...], unit: str | None) -> "DataFrame":
    """Return the unit and the numeric columns of the complete rows."""
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    for name in columns:
        if not types[name].startswith(_SPARK_NUMERIC_TYPES):
            raise TypeError(f"X: column {name!r} has type {types[name]}, but a model needs numeric columns")
    names = [f"x{index}" for index in range(len(columns))]
    expressions = [
        f"CAST({backtick_quote(column)} AS DOUBLE) AS {name}" for column, name in zip(columns, names, strict=True)
    ]
    conditions = [f"abs({name}) < CAST('Infinity' AS DOUBLE)" for name in names]  # false for NaN too
    if unit is not None:
        if types[unit].startswith(_SPARK_NESTED_TYPES):
            raise TypeError(f"unit: column {unit!r} has type {types[unit]}; it must contain numbers, strings or times")
        is_float = types[unit] in {"float", "double"}  # -0.0 equals 0.0, and NaN is a missing unit
        expressions.insert(0, f"{backtick_quote(unit)}{' + 0.0D' if is_float else ''} AS u")
        conditions.append("u IS NOT NULL AND NOT isnan(u)" if is_float else "u IS NOT NULL")
    return frame.selectExpr(*expressions).where(" AND ".join(conditions))
