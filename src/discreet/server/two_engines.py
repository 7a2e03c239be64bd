"""How a service's curator reads: stored answers at any time, private data in one thread, one question at a time.

Which parts of a curator several threads may use at once:

ledger      every access is a transaction under the session's lock, and its chain changes within it
plans       the cache of plans is a dict whose values never change; at worst a query is planned twice
explain,    plan and look up the ledger; of the engine they need names and types, which are fixed, and rows of public
stored      tables, which come from an engine of their own: the lock of the other one is held while a question runs, so
            that waiting for it would delay what is free, and would tell how long the question takes
ask, fit,   read private data, count failures and hold locks on equal queries: in the thread of executions only
publish
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from discreet.curator.open import open_engine
from discreet.engines.column_usage import ColumnUsage
from discreet.engines.interface import Engine, PreparedReader, Tuning
from discreet.kernel.expr import Type
from discreet.kernel.question import Question
from discreet.kernel.relation import Relation
from discreet.kernel.release import EngineTotals
from discreet.kernel.sqlgen.dialect import Dialect
from discreet.policy import Policy


class TwoEngines:
    """An engine for private data, and another one for the rows of public tables, so that neither waits for the other.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {
    ...         "visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}},
    ...         "wards": {"source": "w.csv", "public": True},
    ...     },
    ... })
    >>> tables = {"visits": pa.table({"who": [1, 2]}), "wards": pa.table({"ward": ["A", "B"]})}
    >>> engine = TwoEngines(open_engine(policy, tables, Tuning()), open_public(policy, tables, Tuning()))
    >>> engine.values("wards", "ward")
    ['A', 'B']
    >>> engine.close()
    """

    def __init__(self, private: Engine, public: Engine | None) -> None:
        self._private, self._public = private, public or private

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of the engine."""
        return self._private.dialect

    @property
    def seconds(self) -> float:
        """The time limit of one question."""
        return self._private.seconds

    def prepare(self, usage: ColumnUsage) -> AbstractContextManager[PreparedReader]:
        """Check, before a charge, that these columns can be read, and return a reader of them."""
        return self._private.prepare(usage)

    def totals(self, question: Question) -> EngineTotals:
        """Prepare and compute the exact totals of a question."""
        return self._private.totals(question)

    def location(self, table: str) -> str:
        """Return where a table's rows are."""
        return self._private.location(table)

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns with their kernel types."""
        return self._private.columns(table)

    def values(self, table: str, column: str) -> list[Any]:
        """Return the distinct values of a column of a PUBLIC table."""
        return self._public.values(table, column)

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return the largest number of rows of a PUBLIC table that are equal in these columns."""
        return self._public.fanout(table, columns)

    def rows(self, table: str, columns: tuple[str, ...], limit: int) -> pa.Table:
        """Return these columns of a PUBLIC table."""
        return self._public.rows(table, columns, limit)

    def batches(
        self, relation: Relation, columns: tuple[str, ...], size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield batches of rows for the kernel's sums."""
        return self._private.batches(relation, columns, size)

    def close(self) -> None:
        """Close both engines."""
        self._private.close()
        self._public.close()


def open_public(policy: Policy, data: Mapping[str, Any], tuning: Tuning) -> Engine | None:
    """Open an engine with the public tables of a policy only; None if it has none."""
    public = {name: table for name, table in policy.tables.items() if table.public}
    if not public:
        return None
    frames = {name: frame for name, frame in data.items() if name in public}
    return open_engine(replace(policy, tables=MappingProxyType(public)), frames, tuning)
