"""The DuckDB engine: every table is a view of its declared columns, and no other file can be read."""

import glob
import itertools
import os
import threading
import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa

from discreet.engines.column_usage import ColumnUsage
from discreet.engines.duckdb.data_files import list_literal, open_path, text_literal
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.duckdb.frames import open_frame, open_parquet
from discreet.engines.duckdb.spill import make_spill_folder
from discreet.engines.interface import Tuning
from discreet.engines.locked_folder import LockedFolder
from discreet.engines.public_tables import select_fanout, select_rows, select_values
from discreet.engines.row_selects import select_rows_by_unit
from discreet.engines.sql_totals import compute_totals
from discreet.engines.stored_groups import StoredGroups, groups_units
from discreet.engines.table_source import (
    ColumnTypes,
    EngineError,
    FileStamp,
    OpenedSource,
    SourceChanged,
    SourcePart,
    TableSource,
    Unavailable,
    column_types,
    declared_select,
    match_columns,
    source_error,
)
from discreet.engines.totals_cache import TotalsCache
from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Type
from discreet.kernel.question import Question
from discreet.kernel.relation import PerUnit, Relation
from discreet.kernel.release import EngineTotals
from discreet.kernel.sqlgen.counts_and_sums import select_groups
from discreet.kernel.sqlgen.dialect import quote_name


@dataclass(frozen=True)
class DuckDBSourceTable:
    """A table's column types, the files that each question scans, and those that the engine keeps open."""

    types: ColumnTypes
    scanned_files: tuple[FileStamp, ...]
    attached_files: tuple[FileStamp, ...]


def create_table(connection: duckdb.DuckDBPyConnection, name: str, source: TableSource, zone: str) -> DuckDBSourceTable:
    """Create the view, or the copy, of exactly the declared columns in the declared types."""
    opened = _open_source(connection, name, source)
    types = column_types(name, source.columns, opened.parts)
    try:
        parts = [readable for part in opened.parts for readable in _readable_parts(connection, name, types, part)]
        select_sql = " UNION ALL ".join(
            declared_select(match_columns(name, types, part), part.from_sql, zone) for part in parts
        )
        frames = [part.frame_name for part in parts if part.frame_name]
        connection.execute(f"CREATE {'TABLE' if frames else 'VIEW'} {quote_name(name)} AS {select_sql}")
        for frame in frames:
            connection.unregister(frame)
    except PolicyError:
        raise
    except Exception:  # noqa: BLE001 - from the engine or Arrow; its message may quote values of the file
        raise source_error(name, "its source cannot be read completely. Check that it is not truncated.") from None
    return DuckDBSourceTable(types, () if frames else opened.scanned_files, opened.attached_files)


def _open_source(connection: duckdb.DuckDBPyConnection, name: str, source: TableSource) -> OpenedSource:
    if isinstance(source.location, str | os.PathLike):
        return open_path(connection, name, os.fsdecode(source.location))
    return OpenedSource((open_frame(connection, name, source.location, source.columns),))


def _readable_parts(
    connection: duckdb.DuckDBPyConnection, name: str, types: ColumnTypes, part: SourcePart
) -> list[SourcePart]:
    """Return the part itself or, if DuckDB might fail on one of its columns, its files as read by Arrow."""
    columns = [column for column, _ in match_columns(name, types, part).values()]
    if all(column.readable for column in columns):
        return [part]
    return [open_parquet(connection, path, [column.name for column in columns]) for path in part.paths]


_DISABLED_FEATURES = {
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}


_DEFAULT_TUNING = Tuning()
_MAX_STORED = 4  # tables of groups, each of which may have as many rows as the data
_ARRAY_BITS = "perfect_ht_threshold"  # the name of the setting
_DEFAULT_ARRAY_BITS, _MAX_ARRAY_BITS = 12, 20
_ARRAY_BYTES, _STATE_BYTES = 1 << 28, 32  # of all arrays of a SELECT, and of one total in one place


class DuckDB:
    """The DuckDB engine; it answers one question at a time, with all threads.

    >>> with DuckDB({"t": TableSource(pa.table({"x": [1, 2, None]}), {"x": Type.INTEGER})}) as engine:
    ...     engine.query("SELECT COUNT(x) AS n FROM t").to_pydict()
    {'n': [2]}
    """

    dialect = DUCKDB

    def __init__(
        self, sources: Mapping[str, TableSource], *, timezone: str = "UTC", tuning: Tuning = _DEFAULT_TUNING
    ) -> None:
        _check_names(sources)
        self.tuning, self.seconds = tuning, tuning.seconds
        self._connection_lock = threading.Lock()  # held while a SELECT runs
        self._question_lock = threading.Lock()  # held while a question is answered
        self._totals_cache = TotalsCache(tuning.totals_cache)
        self._release_lock = threading.Lock()  # held while a release begins or ends
        self._release_count = 0
        self._stored_groups: list[StoredGroups] = []
        self._table_numbers = itertools.count()
        self._array_bits = _DEFAULT_ARRAY_BITS
        self._pid = os.getpid()
        folder = make_spill_folder(tuning.folder)
        self._connection = duckdb.connect(":memory:", config={**_DISABLED_FEATURES, "temp_directory": folder.path})
        self._finalizer = weakref.finalize(self, _clean_up, self._connection, folder, self._pid)
        try:
            _apply_tuning(self._connection, timezone, tuning)
            tables = {name: create_table(self._connection, name, source, timezone) for name, source in sources.items()}
            (self._threads,) = self._connection.execute("SELECT current_setting('threads')").fetchall()[0]
            _lock_down(
                self._connection, [stamp.path for table in tables.values() for stamp in table.scanned_files], tuning
            )
        except BaseException:
            self._finalizer()
            raise
        self._locations = {
            name: str(source.location) if isinstance(source.location, str | os.PathLike) else "frame"
            for name, source in sources.items()
        }
        self._column_types = {name: dict(table.types) for name, table in tables.items()}
        self._file_stamps = {name: (*table.scanned_files, *table.attached_files) for name, table in tables.items()}

    @contextmanager
    def prepare(self, usage: ColumnUsage) -> Iterator[Self]:  # noqa: ARG002 - all files are checked, as for each SELECT
        """Check, before a charge, that the files are those that were opened; see Engine.prepare."""
        self._check_process()
        try:
            self._check_files()
        except EngineError as error:
            raise Unavailable(error) from None
        with self._keeping_groups():
            yield self

    def totals(self, question: Question) -> EngineTotals:
        """Compute the exact totals of a question with the kernel's SQL."""
        with self._keeping_groups(), self._question_lock:
            self._check_open()
            return self._totals_cache.totals(question, self._compute)

    def _compute(self, question: Question) -> EngineTotals:
        """Compute totals; what later questions of the same release have in common with this one is stored."""
        if groups_units(question) and not self._find_groups(question):
            DUCKDB.check_size(question, DUCKDB)
            if len(self._stored_groups) >= _MAX_STORED:
                self._drop_groups(1)
            name = f".groups {next(self._table_numbers)}"  # no table of a policy begins with a dot
            select, begin = select_groups(question, DUCKDB), f"CREATE TEMP TABLE {quote_name(name)} AS "
            self._set_array_bits(_DEFAULT_ARRAY_BITS)
            (rows,) = self._query(select, self._file_stamps, begin)["rows"].to_pylist()
            places = _ARRAY_BYTES // (_STATE_BYTES * self._threads * len(question.totals))
            self._set_array_bits(min(rows.bit_length(), places.bit_length() - 1, _MAX_ARRAY_BITS))
            self._stored_groups.append(StoredGroups(name, question))
        return compute_totals(question, self.query, replace(DUCKDB, stored_groups=self._find_groups))

    def _find_groups(self, node: Question | PerUnit) -> str:
        return next(filter(None, (stored.find(node, DUCKDB) for stored in self._stored_groups)), "")

    def _set_array_bits(self, bits: int) -> None:
        """Let DuckDB group by integers in arrays of up to 2^bits places, which are faster than a hash table if dense.

        Nothing but speed depends on it. Where there are few rows, large arrays would take longer than the rows.
        """
        bits = max(bits, _DEFAULT_ARRAY_BITS)
        with self._connection_lock:
            if bits != self._array_bits and self._finalizer.alive and os.getpid() == self._pid:
                self._connection.execute(f"SET {_ARRAY_BITS} = {bits}")
                self._array_bits = bits

    @contextmanager
    def _keeping_groups(self) -> Iterator[None]:
        """Keep stored groups until the last release that may read them has ended."""
        with self._release_lock:
            self._release_count += 1
        try:
            yield
        finally:
            with self._release_lock:
                self._release_count -= 1
                if not self._release_count and self._stored_groups:
                    self._drop_groups(len(self._stored_groups))
                    self._set_array_bits(_DEFAULT_ARRAY_BITS)

    def _drop_groups(self, count: int) -> None:
        """Remove the oldest stored groups; if the engine was closed, they are gone."""
        with self._connection_lock:
            for stored in self._stored_groups[:count]:
                if self._finalizer.alive and os.getpid() == self._pid:
                    self._connection.execute(f"DROP TABLE IF EXISTS {quote_name(stored.table)}")
            del self._stored_groups[:count]

    def query(self, sql: str) -> pa.Table:
        """Run one SELECT of the kernel; EngineError if it fails, exceeds the time limit or runs out of memory."""
        return self._query(sql, self._file_stamps)

    def _query(self, sql: str, stamps: Mapping[str, tuple[FileStamp, ...]], begin: str = "") -> pa.Table:
        """Run one SELECT, or a statement that begins with `begin` and continues with a SELECT."""
        with self._connection_lock:
            self._check_process()
            self._check_files(stamps)
            try:
                rows = self._run(sql, begin)
            except EngineError:
                raise
            except Exception as error:  # from DuckDB or Arrow, or from Python while it decodes their messages
                raise EngineError(f"the engine failed: {error}") from error
            self._check_files(stamps)
        return rows

    def batches(
        self, relation: Relation, columns: tuple[str, ...], size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield batches of the rows without NULL in these columns: their values, and the index of each row's unit.

        Rows of one unit are contiguous. No other question is answered before the last batch has been read.
        """
        sql = select_rows_by_unit(relation, columns, DUCKDB)
        with self._keeping_groups(), self._question_lock, self._connection_lock:
            self._check_open()
            try:
                for batch in self._connection.sql(sql).to_arrow_reader(size):
                    unit_numbers, *numbers = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
                    yield np.stack([column.astype(np.float64) for column in numbers], axis=1), unit_numbers
            except duckdb.Error as error:
                raise EngineError(f"the engine failed: {error}") from error
            self._check_files()

    def location(self, table: str) -> str:
        """Return the path of a table's rows, or "frame"."""
        return self._locations[table]

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns with their kernel types."""
        return dict(self._column_types[table])

    def values(self, table: str, column: str) -> list[Any]:
        """Return the distinct values of a column of a PUBLIC table, sorted, without NULL."""
        name = quote_name(self._require_column(table, column))
        sql = select_values(quote_name(table), name)
        distinct: list[Any] = self.query(f"{sql} ORDER BY v").column("v").to_pylist()
        return distinct

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return the largest number of rows of a PUBLIC table that are equal in these columns; NULL equals nothing."""
        names = [quote_name(self._require_column(table, column)) for column in columns]
        return int(self.query(select_fanout(quote_name(table), names)).column("n")[0].as_py())

    def rows(self, table: str, columns: tuple[str, ...], limit: int) -> pa.Table:
        """Return these columns of a PUBLIC table, at most `limit` rows; files of other tables are not looked at."""
        names = [quote_name(self._require_column(table, column)) for column in columns]
        return self._query(select_rows(quote_name(table), names, limit), {table: self._file_stamps[table]})

    def close(self) -> None:
        """Cancel a running question and release all resources; closing twice does nothing."""
        if not self._finalizer.alive or os.getpid() != self._pid:
            return
        while not self._connection_lock.acquire(timeout=0.05):
            self._connection.interrupt()  # repeated, because an interrupt before the SELECT begins is lost
        try:
            self._finalizer()
        finally:
            self._connection_lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        self._check_process()
        self._check_files()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise EngineError("the engine was opened in another process. Open one engine per process.")
        if not self._finalizer.alive:
            raise EngineError("the engine is closed. Open a new one.")

    def _run(self, sql: str, begin: str) -> pa.Table:
        statements = self._connection.extract_statements(sql)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise EngineError("the engine accepts only a single SELECT statement.")
        if begin:
            return pa.table({"rows": [self._connection.execute(begin + sql).fetchall()[0][0]]})
        with warnings.catch_warnings():  # the copy of a million rows takes no time; another parse and bind would
            warnings.filterwarnings("ignore", "Arrow output on a DB-API result")
            return self._connection.execute(statements[0]).to_arrow_table()

    def _check_files(self, stamps_by_table: Mapping[str, tuple[FileStamp, ...]] | None = None) -> None:
        """Fail if a file is not the one that was opened, whose columns were checked: answers use one snapshot."""
        for table, stamps in (self._file_stamps if stamps_by_table is None else stamps_by_table).items():
            changed = next((stamp.path for stamp in stamps if not stamp.is_current), None)
            if changed is not None:
                raise SourceChanged(f"table {table}: {changed} was changed or removed. Reopen the engine.")

    def _require_column(self, table: str, column: str) -> str:
        if column not in self._column_types[table]:
            raise KeyError(f"column {column} of table {table} does not exist")
        return column


def _check_names(sources: Mapping[str, TableSource]) -> None:
    """Refuse names that differ only in case, which are the same to DuckDB."""
    for table, source in sources.items():
        if table.startswith(".") or sum(table.lower() == other.lower() for other in sources) > 1:
            raise source_error(
                table, "its name starts with a dot, or differs from another table's only in case. Rename it."
            )
        for column in source.columns:
            if sum(column.lower() == other.lower() for other in source.columns) > 1:
                raise source_error(table, "its name differs from another column's only in case. Rename it.", column)


def _apply_tuning(connection: duckdb.DuckDBPyConnection, timezone: str, tuning: Tuning) -> None:
    try:
        connection.execute(f"SET TimeZone = {text_literal(timezone)}")
    except duckdb.Error:
        message = f'timezone "{timezone}" is unknown to DuckDB. Use a name such as "Europe/Berlin".'
        raise PolicyError(message) from None
    try:
        connection.execute(f"SET memory_limit = {text_literal(tuning.memory)}")
    except duckdb.Error:
        raise ValueError(f"memory must be a share or a size, such as '50%' or '4GB', not {tuning.memory!r}") from None
    try:
        connection.execute(f"SET max_temp_directory_size = {text_literal(tuning.disk)}")
    except duckdb.Error:
        raise ValueError(f"disk must be a size, such as '20GB', not {tuning.disk!r}") from None
    if tuning.threads is not None:
        connection.execute(f"SET threads = {tuning.threads:d}")
    connection.execute("SET preserve_insertion_order = false")  # saves memory
    connection.execute("SET enable_progress_bar = false")
    # A filter within a scan is decided by the minimum and maximum of a column, in DuckDB 2.0 wrongly where the column
    # has NULL: with NULLIF('A', p) IN ('A'), one row would decide whether all others are counted.
    connection.execute("SET disabled_optimizers = 'filter_pushdown'")


def _lock_down(connection: duckdb.DuckDBPyConnection, paths: list[str], tuning: Tuning) -> None:
    """Restrict the engine to its own files, irrevocably."""
    # Never allow a directory: DuckDB could write to it. A path is checked as it is and as a glob pattern of itself.
    allowed = list_literal(sorted({*paths, *map(glob.escape, paths)}))
    connection.execute(f"SET allowed_paths = {allowed}")
    connection.execute(f"SET max_execution_time = {round(tuning.seconds * 1000)}")
    connection.execute("SET enable_external_access = false")
    connection.execute(f"SET allowed_configs = ['{_ARRAY_BITS}']")
    connection.execute("SET lock_configuration = true")


def _clean_up(connection: duckdb.DuckDBPyConnection, folder: LockedFolder, pid: int) -> None:
    if os.getpid() != pid:
        return  # in a forked child: the parent still needs both
    connection.close()
    folder.remove()
