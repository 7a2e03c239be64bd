"""The sandbox: an in-memory DuckDB without file access, settings or extensions, limited in time and memory."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa

_SETTINGS: Mapping[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
    "memory_limit": "512MB",
    "threads": "1",  # a second thread is slower on small tables, and makes the order of ties vary
    "error_on_division_by_zero": "false",
    "ieee_floating_point_ops": "true",
    "max_execution_time": "10000",  # milliseconds
    "lock_configuration": "true",
}
_MAX_ROWS = 1_000_000
_MAX_BYTES = 256 * 2**20
_BATCH = 100_000
_MAX_CONCURRENT = 4  # queries; each may use all of its instance's memory

ERRORS = (duckdb.Error, pa.ArrowException, OSError)  # possible failures of a computation


class ResultTooLarge(Exception):  # noqa: N818 - an outcome
    """The result exceeds the limit on rows."""


class _Pool:
    """Idle DuckDB instances; each query gets its own instance and a new session."""

    def __init__(self) -> None:
        self._idle: list[duckdb.DuckDBPyConnection] = []
        self._left_behind: list[duckdb.DuckDBPyConnection] = []
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(_MAX_CONCURRENT)

    @contextmanager
    def session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a session with its own tables; an instance is discarded after a failure."""
        with self._turns:
            instance = self._take_instance()
            session = instance.cursor()
            try:
                yield session
            except BaseException:
                session.close()
                instance.close()
                raise
            session.close()
            with self._lock:
                self._idle.append(instance)

    def reset_after_fork(self) -> None:
        """Drop all instances in a forked process: their threads do not exist there, and closing them is not safe."""
        self._left_behind, self._idle = [*self._left_behind, *self._idle], []
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(_MAX_CONCURRENT)

    def _take_instance(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return duckdb.connect(":memory:", config=dict(_SETTINGS))


_POOL = _Pool()
os.register_at_fork(after_in_child=_POOL.reset_after_fork)


def compute(sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Run one SELECT over tables, within limits on rows, memory and time.

    >>> compute("SELECT c0 // 2 AS c0 FROM t0", {"t0": pa.table({"c0": [7]})}).to_pylist()
    [{'c0': 3}]
    """
    with _POOL.session() as session:
        for name, table in tables.items():
            session.register(name, table)
        return _read_limited(session.sql(sql).to_arrow_reader(_BATCH))


def _read_limited(reader: pa.RecordBatchReader) -> pa.Table:
    rows = size = 0
    batches = []
    for batch in reader:
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows > _MAX_ROWS or size > _MAX_BYTES:
            raise ResultTooLarge
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)


def sandbox_table(table: pa.Table, columns: Sequence[str], numbers: Mapping[str, pa.Array]) -> pa.Table:
    """Return a table as the SQL expects it: columns c0, c1 … of basic types, then the row numbers."""
    data = {f"c{index}": _plain_column(table.column(name)) for index, name in enumerate(columns)}
    return pa.table({**data, **numbers})


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    for check, plain in _PLAIN_TYPES:
        if check(kind):
            return column if column.type == plain else column.cast(plain)
    return column


_PLAIN_TYPES: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (pa.types.is_integer, pa.int64()),
    (pa.types.is_floating, pa.float64()),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), pa.string()),
    (pa.types.is_date, pa.date32()),
    (pa.types.is_timestamp, pa.timestamp("us")),
)
