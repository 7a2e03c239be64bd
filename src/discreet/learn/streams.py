"""Rows to learn from, streamed: Arrow tables, DuckDB relations and whatever else gives Arrow batches, in passes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.learn.rows import Batch


@dataclass(frozen=True)
class StreamRows:
    """Rows of a table that is read anew in every pass; those with a missing number or unit are left out."""

    table: Any
    columns: tuple[str, ...]
    unit: str | None
    low: np.ndarray
    high: np.ndarray

    @property
    def grouped(self) -> bool:
        """Whether a unit may have several rows."""
        return self.unit is not None

    def batches(self, size: int) -> Iterator[Batch]:
        """Give the rows, moved into their ranges."""
        last, unit = -1, None
        for batch in _reader(self.table):
            held = batch.select([*self.columns, *([] if self.unit is None else [self.unit])]).drop_null()
            if self.unit is not None and pa.types.is_floating(held.schema.field(self.unit).type):
                held = held.filter(pc.is_finite(held.column(self.unit)))  # NaN equals nothing: it would be many units
            for start in range(0, held.num_rows, size):
                part = held.slice(start, size)
                numbers = [part.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False) for name in self.columns]
                rows = np.stack(numbers, axis=1)
                finite = np.isfinite(rows).all(axis=1)
                places = None
                if self.unit is not None:
                    places, last, unit = _places(part.column(self.unit), last, unit)
                    places = places[finite]
                yield np.clip(rows[finite], self.low, self.high), places


def _places(units: Any, last: int, unit: Any) -> tuple[np.ndarray, int, Any]:
    """Return the numbers of a batch's units, on from the last one, which may go on."""
    changed = pc.not_equal(units[1:], units[:-1]).to_numpy(zero_copy_only=False).astype(bool)
    first = units[0] != unit
    places = last + np.cumsum(np.concatenate([[first], changed]), dtype=np.int64)
    return places, int(places[-1]), units[-1]


def is_stream(table: Any) -> bool:
    """Tell whether rows can be streamed from an object: it gives Arrow batches, and is no pandas or polars frame."""
    return hasattr(table, "__arrow_c_stream__") and not hasattr(table, "to_numpy")


def stream_rows(
    table: Any, columns: tuple[str, ...], ends: tuple[np.ndarray, np.ndarray], unit: str | None
) -> StreamRows:
    """Return the rows of a table or relation, in the order of their units."""
    schema = _reader(table).schema
    for name in columns:
        kind = schema.field(name).type
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_decimal(kind)
        ):
            raise TypeError(f"X: column {name!r} holds {kind}, and a model learns from numbers")
    return StreamRows(table if unit is None else _sorted(table, unit), columns, unit, *ends)


def names_of(table: Any) -> tuple[str, ...]:
    """Return the names of a stream's columns."""
    if isinstance(table, pa.RecordBatchReader):
        raise TypeError("X: a reader can be read once, and a fit takes several passes; give a table or a relation")
    return tuple(table.columns) if hasattr(table, "order") else tuple(_reader(table).schema.names)


def _reader(table: Any) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_stream(table)


def _sorted(table: Any, unit: str) -> Any:
    if hasattr(table, "order"):  # a DuckDB relation: the engine sorts, on disk if it must
        return table.order('"' + unit.replace('"', '""') + '"')
    return pa.table(table).sort_by(unit)
