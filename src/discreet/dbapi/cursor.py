"""Cursors, which run one query after another and return the rows of the answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from discreet.answer.model import Answer
from discreet.dbapi.errors import InterfaceError, NotSupportedError, Warning  # noqa: A004 - PEP 249's name
from discreet.dbapi.types import type_code

if TYPE_CHECKING:
    from discreet.dbapi.connection import Connection

Description = tuple[str, str, None, None, None, None, None]
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Result:
    """A table to fetch, the answer that it belongs to, if any, and what else the user asked to be told."""

    table: pa.Table
    answer: Answer | None = None
    messages: tuple[str, ...] = ()


class Cursor:
    """A cursor, created by `Connection.cursor`; `answer` is the last answer, with margins, noise, cost and receipt."""

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.arraysize = 1
        self._closed = False
        self._result: Result | None = None
        self._rows: Iterator[Row] = iter(())

    @property
    def description(self) -> tuple[Description, ...] | None:
        """The name and type of each column; None if there is nothing to fetch."""
        if self._result is None:
            return None
        schema = self._result.table.schema
        return tuple((field.name, type_code(field.type), None, None, None, None, None) for field in schema)

    @property
    def rowcount(self) -> int:
        """The number of rows of the result; -1 if there is none."""
        return -1 if self._result is None else int(self._result.table.num_rows)

    @property
    def answer(self) -> Answer | None:
        """The last answer; None after SET, RESET, SHOW or EXPLAIN."""
        return None if self._result is None else self._result.answer

    @property
    def messages(self) -> list[tuple[type[Warning], str]]:
        """The details of the last answer, after SET details = on; an extension of PEP 249."""
        return [(Warning, text) for text in (self._result.messages if self._result else ())]

    def execute(self, operation: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Self:
        """Run a query, which is charged; or SET, RESET or SHOW the cost; or EXPLAIN, which is free."""
        self._check_open()
        self._result, self._rows = None, iter(())
        self._result = self.connection.execute_statement(operation, parameters)
        if self._result is not None:
            columns = [column.to_pylist() for column in self._result.table.columns]
            self._rows = zip(*columns, strict=True)
        return self

    def executemany(self, operation: str, parameters: Sequence[Any]) -> None:
        """Raise NotSupportedError: each query has its own cost and answer."""
        del operation, parameters
        raise NotSupportedError("executemany is not supported: each query has its own cost. Call execute for each.")

    def fetchone(self) -> Row | None:
        """Return the next row; None after the last."""
        return next(self, None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next `size` rows, by default `arraysize`."""
        self._check_result()
        wanted = self.arraysize if size is None else size
        return list(islice(self._rows, max(0, wanted)))

    def fetchall(self) -> list[Row]:
        """Return all remaining rows."""
        self._check_result()
        return list(self._rows)

    def close(self) -> None:
        """Close the cursor and release its result."""
        self._closed, self._result, self._rows = True, None, iter(())

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 allows."""

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        self._check_result()
        return next(self._rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed or self.connection.closed:
            raise InterfaceError("the cursor or its connection is closed. Open a new one.")

    def _check_result(self) -> None:
        self._check_open()
        if self._result is None:
            raise InterfaceError("there is no result to fetch. Run a query with execute first.")
