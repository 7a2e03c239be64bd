"""Rows from Spark for estimators: the SELECT, its batches, and the numbering of units."""

from collections.abc import Generator
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.engines.row_selects import select_complete_rows
from discreet.kernel.relation import Relation
from discreet.kernel.sqlgen.dialect import Dialect
from discreet.kernel.sqlgen.relation_sql import comma_list, unit_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RowOrder(Enum):
    """Whether rows of one unit must be contiguous."""

    ANY = "any"
    BY_UNIT = "by unit"


def complete_rows_sql(
    relation: Relation, columns: tuple[str, ...], dialect: Dialect, order: RowOrder = RowOrder.ANY
) -> str:
    """Return a SELECT of the unit's key and these columns, for the rows without NULL in them.

    >>> from discreet.engines.spark.dialect import SPARK
    >>> from discreet.kernel.expr import Column, Type
    >>> from discreet.kernel.relation import Scan, UnitKey
    >>> who = Column("who", Type.TEXT)
    >>> scan = Scan("t", (who, Column("n", Type.INTEGER)), UnitKey((who,)), max_rows=9)
    >>> complete_rows_sql(scan, ("n",), SPARK, RowOrder.BY_UNIT).partition("WHERE `n`")[2]
    ' IS NOT NULL ORDER BY `.u0`'
    """
    units = unit_columns(relation)
    ordered = f" ORDER BY {comma_list(units)}" if units and order is RowOrder.BY_UNIT else ""
    return dialect.finish_select(select_complete_rows(relation, columns, dialect) + ordered)


def stream_batches(frame: "DataFrame", size: int) -> Generator[pa.Table]:
    """Yield the rows of a frame in order, `size` at a time, without keeping more of them in memory."""
    connect_frame: Any = frame
    client, plan = connect_frame.sparkSession.client, connect_frame._plan  # noqa: SLF001 - the public API yields Python rows
    pending: list[pa.Table] = []
    for received in client.to_table_as_iterator(plan.to_proto(client), plan.observations):
        if not isinstance(received, pa.Table):
            continue  # the schema
        pending.append(received)
        if sum(table.num_rows for table in pending) >= size:
            merged = pa.concat_tables(pending)
            yield from (merged.slice(start, size) for start in range(0, merged.num_rows - size + 1, size))
            pending = [merged.slice(merged.num_rows - merged.num_rows % size)]
    if any(table.num_rows for table in pending):
        yield pa.concat_tables(pending)


class UnitNumbering:
    """Numbers units from 0 in the order of their contiguous rows; without a key, each row is a unit.

    >>> numbering = UnitNumbering()
    >>> numbering.number_rows(pa.table({"who": ["a", "a", "b"]}), 3).tolist()
    [0, 0, 1]
    >>> numbering.number_rows(pa.table({"who": ["b", "c"]}), 2).tolist()
    [1, 2]
    """

    def __init__(self) -> None:
        self._last_key: pa.Table | None = None
        self._next = 0

    def number_rows(self, keys: pa.Table, count: int) -> np.ndarray:
        """Return the number of each row's unit; `keys` are the unit keys of the next `count` rows."""
        if not keys.num_columns:
            self._next += count
            return np.arange(self._next - count, self._next)
        consecutive_keys = pa.concat_tables([self._last_key, keys]) if self._last_key is not None else keys
        begins = np.zeros(max(consecutive_keys.num_rows - 1, 0), bool)
        for column in consecutive_keys.columns:
            values = column.combine_chunks()
            begins |= pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
        if self._last_key is None:
            begins = np.concatenate([[True], begins]) if count else begins
        self._last_key = keys.slice(count - 1) if count else self._last_key
        numbers = self._next + np.cumsum(begins) - 1
        self._next = int(numbers[-1]) + 1 if count else self._next
        return numbers
