"""The PostgreSQL engine: the data stays in its database, which computes the totals.

`TableSource.location` is the name of a table or view, such as visits or clinic.visits. Questions run in read-only
transactions, each on one snapshot. The expressions of a view are the owner's responsibility: if one of them raises an
error for some rows, questions fail; it should return NULL instead.
"""

import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa

from discreet.engines.column_usage import ColumnUsage, usage_of_questions, usage_of_relation
from discreet.engines.engine_base import EngineBase
from discreet.engines.interface import Tuning
from discreet.engines.postgres.dialect import POSTGRES
from discreet.engines.postgres.errors import (
    INVALID_PARAMETER_VALUE,
    MISSING_OR_FORBIDDEN,
    PostgresServerError,
    refuse_if_locked,
)
from discreet.engines.postgres.role import excess_privileges, read_only_role_sql
from discreet.engines.postgres.session import PostgresQuerySession, Snapshot
from discreet.engines.postgres.tables import PostgresSourceTable, look_up_table, parse_table_name, placeholder_table
from discreet.engines.row_selects import select_rows_by_unit
from discreet.engines.server_session import close_when_idle
from discreet.engines.sql_totals import compute_totals
from discreet.engines.table_source import MISFIT_ADVICE, EngineError, TableSource, Unavailable
from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Type
from discreet.kernel.question import Question
from discreet.kernel.relation import Relation
from discreet.kernel.release import EngineTotals
from discreet.kernel.sqlgen.dialect import Dialect
from discreet.postgres.server import server_description

_OPEN_TIMEOUT = 30.0  # seconds to read the catalog
_MIN_VERSION = 13
HIDDEN_ROWS_MESSAGE = "row-level security hides rows of {} from this role, so answers cover visible rows only"
_MAX_ATTEMPTS = 3  # to look up tables that are being replaced
_DEFAULT_TUNING = Tuning()


class Postgres(EngineBase):
    """The PostgreSQL engine; it answers one question at a time.

    Of `tuning`, only seconds and threads apply; memory and disk are up to the server. Totals are not cached, since a
    database changes.

    >>> source = TableSource("clinic.visits", {"patient": Type.INTEGER})
    >>> with Postgres({"visits": source}, url="postgresql://reader@db.example/clinic") as engine:  # doctest: +SKIP
    ...     engine.columns("visits")
    {'patient': <Type.INTEGER: 'i'>}
    """

    def __init__(
        self, sources: Mapping[str, TableSource], *, url: str, timezone: str = "UTC", tuning: Tuning = _DEFAULT_TUNING
    ) -> None:
        self.tuning, self.seconds = tuning, tuning.seconds
        self._question_lock = threading.Lock()  # held while a question is answered
        settings = {"timezone": timezone}
        if tuning.threads is not None:
            settings["max_parallel_workers_per_gather"] = str(min(tuning.threads - 1, 1024))
        self._server = server_description(url)
        self._session = PostgresQuerySession(url, settings)
        self._finalizer = weakref.finalize(self, self._session.close)
        try:
            tables = _find_tables(self._session, sources, timezone)
        except BaseException:
            self._finalizer()
            raise
        self._tables = tables
        self._sources = {name: TableSource(source.location, tables[name].types) for name, source in sources.items()}
        self.dialect: Dialect = replace(POSTGRES, table_source=lambda name: tables[name].from_sql)

    @contextmanager
    def prepare(self, usage: ColumnUsage) -> Iterator["PostgresReader"]:
        """Connect, lock these tables, take a snapshot and compare the catalog with the declared columns.

        As in `Engine.prepare`, this happens before a charge and without reading a row. The locks (ACCESS SHARE) and the
        snapshot are held until the end of the context. Only columns that are used must match their declarations.
        """
        self._session.check_usable()
        with self._question_lock, ExitStack() as stack:
            try:
                with refuse_if_locked(usage):
                    snapshot = self._lock_and_check(stack, usage)
            except Unavailable:
                raise
            except EngineError as error:
                raise Unavailable(error) from None
            yield PostgresReader(snapshot, self.dialect, self.seconds)

    def totals(self, question: Question) -> EngineTotals:
        """Compute the exact totals of a question, all from one snapshot of the data."""
        with self.prepare(usage_of_questions([question])) as reader:
            return reader.totals(question)

    @contextmanager
    def selecting(self, usage: ColumnUsage) -> Iterator[Callable[[str], pa.Table]]:
        """Yield a function that runs a SELECT on one snapshot."""
        with self.prepare(usage) as reader:
            yield reader.run_select

    def batches(
        self, relation: Relation, columns: tuple[str, ...], size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield batches of the rows without NULL in these columns: their values, and the index of each row's unit.

        Rows of one unit are contiguous. No other question is answered before the last batch has been read.
        """
        with self.prepare(usage_of_relation(relation, columns)) as reader:
            for batch in reader.batches(select_rows_by_unit(relation, columns, self.dialect), size):
                yield batch[:, 1:], batch[:, 0].astype(np.int64)

    def location(self, table: str) -> str:
        """Return the server, the database and the name of a table."""
        return f"{self._server}, table {self._tables[table].qualified_name}"

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns with their kernel types."""
        return dict(self._sources[table].columns)

    def close(self) -> None:
        """Cancel a running question and release all resources; closing twice does nothing."""
        if self._finalizer.alive and self._session.is_own_process:
            self._session.stop_accepting()
            close_when_idle(self._session, self._question_lock, self._finalizer)

    def _lock_and_check(self, stack: ExitStack, usage: ColumnUsage) -> Snapshot:
        """Return a snapshot taken after the tables were locked; PolicyError if a used column does not match."""
        for _ in range(_MAX_ATTEMPTS):
            with ExitStack() as attempt:
                locked = {self._tables[name].qualified_name for name in usage if self._tables[name].lockable}
                try:
                    snapshot = attempt.enter_context(self._session.locked_snapshot(self.seconds, sorted(locked)))
                except PostgresServerError as error:
                    if error.sqlstate not in MISSING_OR_FORBIDDEN:
                        raise
                    self._look_up_again(usage)
                    continue
                with snapshot.preparing():
                    self._tables.update({name: self._current_table(snapshot, name) for name in usage})
                    if {self._tables[name].qualified_name for name in usage if self._tables[name].lockable} != locked:
                        continue
                    for name, columns in usage.items():
                        self._tables[name].check_usable(snapshot, name, columns)
                stack.enter_context(attempt.pop_all())
                return snapshot
        raise EngineError("tables changed repeatedly while the question was being prepared")

    def _look_up_again(self, usage: ColumnUsage) -> None:
        """Look up tables that could not be locked; PolicyError if one no longer exists."""
        with self._session.locked_snapshot(self.seconds) as snapshot, snapshot.preparing():
            self._tables.update({name: self._current_table(snapshot, name, reuse=False) for name in usage})

    def _current_table(self, snapshot: Snapshot, name: str, *, reuse: bool = True) -> PostgresSourceTable:
        """Return the current definition of a table: the known one if it still matches, else a new one."""
        table = self._tables[name]
        if reuse and not table.misfits and table.still_matches(snapshot):
            return table
        table = look_up_table(snapshot, name, self._sources[name], self._session.search_schemas)
        if not table.still_matches(snapshot):
            raise EngineError(f"table {name}: its columns changed while the question was being prepared")
        return table


class PostgresReader:
    """Reads tables that were found to be available, from one snapshot."""

    def __init__(self, snapshot: Snapshot, dialect: Dialect, seconds: float) -> None:
        self._snapshot, self._dialect, self._seconds = snapshot, dialect, seconds

    def totals(self, question: Question) -> EngineTotals:
        """Compute the exact totals of a question."""
        with self._snapshot.reading(self._seconds):
            return compute_totals(question, self._snapshot.run_select, self._dialect)

    def run_select(self, sql: str) -> pa.Table:
        """Run one SELECT."""
        with self._snapshot.reading(self._seconds):
            return self._snapshot.run_select(sql)

    def batches(self, sql: str, size: int) -> Iterator[np.ndarray]:
        """Yield the values of a SELECT in batches of `size` rows."""
        with self._snapshot.reading(self._seconds):
            yield from self._snapshot.batches(sql, size)


@contextmanager
def catalog_snapshot(session: PostgresQuerySession, timezone: str) -> Iterator[Snapshot]:
    """Open a snapshot to read the catalog; PolicyError if the server or its database is not supported."""
    try:
        with session.snapshot(_OPEN_TIMEOUT) as snapshot:
            _check_server(snapshot)
            yield snapshot
    except PostgresServerError as error:
        if error.sqlstate == INVALID_PARAMETER_VALUE:
            message = f'timezone "{timezone}" is unknown to PostgreSQL. Use a name such as "Europe/Berlin".'
            raise PolicyError(message) from None
        raise


def _find_tables(
    session: PostgresQuerySession, sources: Mapping[str, TableSource], timezone: str
) -> dict[str, PostgresSourceTable]:
    """Look up all tables; warn of columns that do not match, excess privileges of the role, and hidden rows."""
    for name, source in sources.items():
        parse_table_name(name, source.location)
    with catalog_snapshot(session, timezone) as snapshot:
        tables = {
            name: _find_or_placeholder(snapshot, name, source, session.search_schemas)
            for name, source in sources.items()
        }
        existing = [table for table in tables.values() if table.exists]
        privileges = excess_privileges(snapshot, existing)
    if privileges:
        advice = f"Use a read-only role instead: {read_only_role_sql(existing)}"
        warnings.warn(
            f"PostgreSQL: the role has more privileges than reading. It can {'; '.join(privileges)}. {advice}",
            stacklevel=3,
        )
    for name, stored in tables.items():
        if stored.rows_hidden:
            warnings.warn(f"table {name}: {HIDDEN_ROWS_MESSAGE.format(stored.qualified_name)}", stacklevel=3)
        for message in dict.fromkeys(map(str, stored.misfits.values())):
            warnings.warn(f"{message} {MISFIT_ADVICE}", stacklevel=3)
    return tables


def _find_or_placeholder(
    snapshot: Snapshot, name: str, source: TableSource, schemas: Sequence[str]
) -> PostgresSourceTable:
    """Look up a table; if it is missing but its columns are declared, only the questions that use it are refused."""
    try:
        return look_up_table(snapshot, name, source, schemas)
    except PolicyError as error:
        if not source.columns:
            raise
        return placeholder_table(name, source, error)


def _check_server(snapshot: Snapshot) -> None:
    sql = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')"
    ((version, encoding),) = snapshot.catalog_rows(sql)
    if version < _MIN_VERSION * 10_000:
        raise PolicyError(
            f"PostgreSQL: version {version // 10_000} is not supported. Use version {_MIN_VERSION} or newer."
        )
    if encoding != "UTF8":
        raise PolicyError(
            f"PostgreSQL: the encoding {encoding} of the database is not supported. Use a database with UTF8."
        )
