"""Rows that estimators get from Spark: as a SELECT, as batches, and where one unit ends and the next begins."""

from collections.abc import Generator
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.kernel.dialect import Dialect, quoted
from discreet.kernel.expr import Type
from discreet.kernel.relation import Relation
from discreet.kernel.writing import every, listed, rows, unit_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Order(Enum):
    """Whether rows of one unit must follow each other."""

    ANY = "any"
    BY_UNIT = "by unit"


def rows_lacking_none(relation: Relation, columns: tuple[str, ...], dialect: Dialect, order: Order = Order.ANY) -> str:
    """Write the rows that lack none of these columns: the unit's key, then the columns.

    >>> from discreet.engines.dialects.spark import SPARK
    >>> from discreet.kernel.expr import Column
    >>> from discreet.kernel.relation import Own, Scan
    >>> scan = Scan("t", (Column("who", Type.TEXT), Column("n", Type.INTEGER)), Own((Column("who", Type.TEXT),)), 9)
    >>> rows_lacking_none(scan, ("n",), SPARK, Order.BY_UNIT).partition("WHERE `n`")[2]
    ' IS NOT NULL ORDER BY `.u0`'
    """
    units, names = unit_of(relation), [quoted(name) for name in columns]
    values = [
        f"{dialect.finite.format(value=name)} AS {name}" if relation.shape.schema[column] is Type.REAL else name
        for column, name in zip(columns, names, strict=True)
    ]
    held = f"SELECT {listed(units, values)} FROM ({rows(relation, dialect)}) AS s"  # noqa: S608 - the kernel's own
    present = every([f"{name} IS NOT NULL" for name in names])
    ordered = f" ORDER BY {listed(units)}" if units and order is Order.BY_UNIT else ""
    return dialect.finish(f"SELECT * FROM ({held}) AS s WHERE {present}{ordered}")  # noqa: S608


def in_batches(frame: "DataFrame", size: int) -> Generator[pa.Table]:
    """Give the rows of a frame in their order as they come, so many at once; no more of them are ever held here."""
    known: Any = frame
    client, plan = known.sparkSession.client, known._plan  # noqa: SLF001 - what is public gives objects, row by row
    held: list[pa.Table] = []
    for found in client.to_table_as_iterator(plan.to_proto(client), plan.observations):
        if not isinstance(found, pa.Table):
            continue  # the schema
        held.append(found)
        if sum(table.num_rows for table in held) >= size:
            whole = pa.concat_tables(held)
            yield from (whole.slice(start, size) for start in range(0, whole.num_rows - size + 1, size))
            held = [whole.slice(whole.num_rows - whole.num_rows % size)]
    if any(table.num_rows for table in held):
        yield pa.concat_tables(held)


class Places:
    """Numbers units from 0 in the order of their rows, which follow each other; without a key, each row is one.

    >>> places = Places()
    >>> places.of(pa.table({"who": ["a", "a", "b"]}), 3).tolist(), places.of(pa.table({"who": ["b", "c"]}), 2).tolist()
    ([0, 0, 1], [1, 2])
    """

    def __init__(self) -> None:
        self._before: pa.Table | None = None
        self._next = 0

    def of(self, keys: pa.Table, count: int) -> np.ndarray:
        """Return the place of each row's unit; `keys` are the next rows, of which there are so many."""
        if not keys.num_columns:
            self._next += count
            return np.arange(self._next - count, self._next)
        known = pa.concat_tables([self._before, keys]) if self._before is not None else keys
        begins = np.zeros(max(known.num_rows - 1, 0), bool)
        for column in known.columns:
            values = column.combine_chunks()
            begins |= pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
        if self._before is None:
            begins = np.concatenate([[True], begins]) if count else begins
        self._before = keys.slice(count - 1) if count else self._before
        places = self._next + np.cumsum(begins) - 1
        self._next = int(places[-1]) + 1 if count else self._next
        return places
