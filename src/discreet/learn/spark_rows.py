"""Rows to learn from in a table on Spark: they stay there, and its workers sum them."""

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from discreet.engines.spark_columns import ticked
from discreet.engines.spark_sums import SparkRows
from discreet.kernel.summing import Batch, Part
from discreet.learn.bounds import Ends
from discreet.learn.streams import stream_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "decimal")
_NESTED = ("array", "map", "struct", "variant")


class SparkTable:
    """Rows of a frame of Spark, of which those with a missing number or unit are left out; kept there until the end."""

    def __init__(self, frame: "DataFrame", columns: tuple[str, ...], ends: Ends, unit: str | None) -> None:
        self._table, self._columns, self._unit = frame, columns, unit
        self.low, self.high = ends
        self.grouped = unit is not None
        self._rows = SparkRows(_complete(frame, columns, unit), units=int(self.grouped), numbers=len(columns))
        self._rows.keep()
        weakref.finalize(self, self._rows.let_go).atexit = False

    def summed(self, part: Part) -> np.ndarray:
        """Return the sum of a part over all rows."""
        return self._rows.sums(part, [*zip(self.low, self.high, strict=True)])

    def batches(self, size: int) -> Iterator[Batch]:
        """Give the rows themselves, all of which come here, for the few methods that look at more than sums."""
        table = self._table.toArrow()
        return stream_rows(table, self._columns, (self.low, self.high), self._unit).batches(size)


def _complete(frame: "DataFrame", columns: tuple[str, ...], unit: str | None) -> "DataFrame":
    """Return the unit and the numbers of the rows that lack none of them."""
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    for name in columns:
        if not kinds[name].startswith(_NUMBERS):
            raise TypeError(f"X: column {name!r} holds {kinds[name]}, and a model learns from numbers")
    names = [f"x{place}" for place in range(len(columns))]
    made = [f"CAST({ticked(column)} AS DOUBLE) AS {name}" for column, name in zip(columns, names, strict=True)]
    held = [f"abs({name}) < CAST('Infinity' AS DOUBLE)" for name in names]  # nor is NaN
    if unit is not None:
        if kinds[unit].startswith(_NESTED):
            raise TypeError(f"unit: column {unit!r} holds {kinds[unit]}; name one of numbers, texts or times")
        real = kinds[unit] in {"float", "double"}  # -0.0 is 0.0, and NaN is nobody
        made.insert(0, f"{ticked(unit)}{' + 0.0D' if real else ''} AS u")
        held.append("u IS NOT NULL AND NOT isnan(u)" if real else "u IS NOT NULL")
    return frame.selectExpr(*made).where(" AND ".join(held))
