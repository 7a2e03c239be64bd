"""Rows to learn from, streamed: Arrow tables, DuckDB relations and whatever else gives Arrow batches, in passes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.learn.rows import Batch

_UNIT = "__unit__"  # the column with the number of each row's unit
_COUNTABLE = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)


@dataclass(frozen=True)
class StreamRows:
    """Rows of a table that is read anew in every pass; those with a missing number or unit are left out."""

    table: Any
    columns: tuple[str, ...]
    grouped: bool
    low: np.ndarray
    high: np.ndarray

    def batches(self, size: int) -> Iterator[Batch]:
        """Give the rows, moved into their ranges."""
        for batch in _reader(self.table):
            held = batch.select([*self.columns, *([_UNIT] if self.grouped else [])]).drop_null()
            for start in range(0, held.num_rows, size):
                part = held.slice(start, size)
                rows = np.stack([_numbers(part.column(name)) for name in self.columns], axis=1)
                finite = np.isfinite(rows).all(axis=1)
                places = part.column(_UNIT).to_numpy()[finite] if self.grouped else None
                yield np.clip(rows[finite], self.low, self.high), places


def _numbers(column: Any) -> np.ndarray:
    """Return a column as floats: the nearest, where an integer is larger than a float can tell."""
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def is_stream(table: Any) -> bool:
    """Tell whether rows can be streamed from an object: it gives Arrow batches, and is no pandas or polars frame."""
    return is_spark(table) or (hasattr(table, "__arrow_c_stream__") and not hasattr(table, "to_numpy"))


def is_spark(table: Any) -> bool:
    """Tell whether a table is a frame of Spark, which has an attribute of every name."""
    kind = type(table)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")


def stream_rows(
    table: Any, columns: tuple[str, ...], ends: tuple[np.ndarray, np.ndarray], unit: str | None
) -> StreamRows:
    """Return the rows of a table or relation, in the order of their units."""
    schema = _reader(table).schema
    for name in columns:
        kind = schema.field(name).type
        if not any(is_kind(kind) for is_kind in _COUNTABLE):
            raise TypeError(f"X: column {name!r} holds {kind}, and a model learns from numbers")
    return StreamRows(table if unit is None else _by_unit(table, unit), columns, unit is not None, *ends)


def names_of(table: Any) -> tuple[str, ...]:
    """Return the names of a stream's columns."""
    if isinstance(table, pa.RecordBatchReader):
        raise TypeError("X: a reader can be read once, and a fit takes several passes; give a table or a relation")
    listed = is_spark(table) or hasattr(table, "order")
    return tuple(table.columns) if listed else tuple(_reader(table).schema.names)


def _reader(table: Any) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_stream(table)


def _by_unit(table: Any, unit: str) -> Any:
    """Return the table in the order of its units, with a number for each: who is one unit is decided once."""
    if hasattr(table, "order"):  # a DuckDB relation: the engine sorts, on disk if it must, and knows which are equal
        name = '"' + unit.replace('"', '""') + '"'
        numbered = f'*, dense_rank() OVER (ORDER BY {name}) AS "{_UNIT}"'
        return table.filter(f"{name} IS NOT NULL").project(numbered).order(f'"{_UNIT}"')
    held = pa.table(table)
    units = held.column(unit).combine_chunks()
    if pa.types.is_dictionary(units.type):
        units = units.cast(units.type.value_type)
    if pa.types.is_nested(units.type):
        raise TypeError(f"unit: column {unit!r} holds {units.type}; name one of numbers, texts or times")
    if pa.types.is_floating(units.type):
        units = pc.if_else(pc.is_nan(units), None, pc.add(units, 0.0))  # -0.0 is 0.0, and NaN is nobody
    numbers = units.dictionary_encode().indices.cast(pa.int64())
    return held.append_column(_UNIT, numbers).sort_by(_UNIT)
