"""What all engines have in common: the queries on public tables, and that `with` closes an engine."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from discreet.engines.column_usage import ColumnUsage
from discreet.kernel.expr import Type
from discreet.kernel.sqlgen.dialect import Dialect, quote_name

_NO_TABLES: ColumnUsage = {}


class EngineBase(ABC):
    """Answers the queries on public tables, alike for all engines."""

    dialect: Dialect

    @abstractmethod
    def selecting(self, usage: ColumnUsage) -> AbstractContextManager[Callable[[str], pa.Table]]:
        """Prepare to read these columns, and return a function that runs a SELECT of the kernel."""

    @abstractmethod
    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns with their kernel types."""

    @abstractmethod
    def close(self) -> None:
        """Cancel a running question and release all resources; closing twice does nothing."""

    def query(self, sql: str, usage: ColumnUsage = _NO_TABLES) -> pa.Table:
        """Run one SELECT of the kernel; EngineError if it fails or exceeds a limit."""
        with self.selecting(usage) as select:
            return select(sql)

    def values(self, table: str, column: str) -> list[Any]:
        """Return the distinct values of a column of a PUBLIC table, sorted, without NULL."""
        return sorted(self._select(table, (column,), _values_sql).column("v").to_pylist())

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return the largest number of rows of a PUBLIC table that are equal in these columns; NULL equals nothing."""
        return int(self._select(table, columns, _fanout_sql).column("n")[0].as_py())

    def rows(self, table: str, columns: tuple[str, ...], limit: int) -> pa.Table:
        """Return these columns of a PUBLIC table, at most `limit` rows; files of other tables are not looked at."""
        return self._select(table, columns, lambda source, names: _rows_sql(source, names, limit))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _select(self, table: str, columns: tuple[str, ...], write: Callable[[str, Sequence[str]], str]) -> pa.Table:
        """Run the SELECT that `write` returns for what follows FROM and the quoted columns."""
        missing = set(columns) - set(self.columns(table))
        if missing:
            raise KeyError(f"column {min(missing)} of table {table} does not exist")
        with self.selecting({table: frozenset(columns)}) as select:  # before its name is looked up, which may change
            sql = write(f"{self.dialect.table_source(table)} AS t", [quote_name(column) for column in columns])
            return select(self.dialect.finish_select(sql))


def _values_sql(source: str, names: Sequence[str]) -> str:
    """Select the distinct values v of a column, without NULL.

    >>> _values_sql("wards", ['"ward"'])
    'SELECT DISTINCT "ward" AS v FROM wards WHERE "ward" IS NOT NULL'
    """
    (name,) = names
    return f"SELECT DISTINCT {name} AS v FROM {source} WHERE {name} IS NOT NULL"  # noqa: S608 - quoted names


def _fanout_sql(source: str, names: Sequence[str]) -> str:
    """Select the largest number n of rows that are equal in these columns; NULL equals nothing."""
    present = " AND ".join(f"{name} IS NOT NULL" for name in names) or "TRUE"
    rows = f"SELECT COUNT(*) AS n FROM {source} WHERE {present}"  # noqa: S608 - quoted names
    grouped = f"{rows} GROUP BY {', '.join(names)}" if names else rows
    return f"SELECT COALESCE(MAX(n), 0) AS n FROM ({grouped}) AS g"  # noqa: S608 - quoted names


def _rows_sql(source: str, names: Sequence[str], limit: int) -> str:
    """Select columns of at most `limit` rows."""
    return f"SELECT {', '.join(names)} FROM {source} LIMIT {limit:d}"  # noqa: S608 - quoted names
