"""PostgreSQL: the data stay in their database, which adds up; only bounded totals come back.

Source.place is the name of a table or view there, such as visits or clinic.visits. Questions run as transactions that
can only read, each on one state of the data. A view's own expressions are the owner's: one that fails for some rows
makes questions fail, and should give NULL instead.
"""

import threading
import time
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from discreet.engines.column_usage import ColumnUsage, usage_of_questions, usage_of_relation
from discreet.engines.interface import Tuning
from discreet.engines.postgres.dialect import POSTGRES
from discreet.engines.postgres.errors import (
    INVALID_PARAMETER_VALUE,
    LOCK_NOT_AVAILABLE,
    MISSING_OR_FORBIDDEN,
    PostgresServerError,
)
from discreet.engines.postgres.role import excess_privileges, read_only_role_sql
from discreet.engines.postgres.session import PostgresQuerySession, Snapshot
from discreet.engines.postgres.tables import PostgresSourceTable, look_up_table, parse_table_name, placeholder_table
from discreet.engines.sql_totals import compute_totals
from discreet.engines.table_source import UNAVAILABLE_MESSAGE, EngineError, TableSource, Unavailable
from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Type
from discreet.kernel.question import Question
from discreet.kernel.relation import Relation
from discreet.kernel.release import EngineTotals
from discreet.kernel.sqlgen.dialect import Dialect, quote_name
from discreet.kernel.sqlgen.relation_sql import select_rows_by_unit

_OPEN_TIMEOUT = 30.0  # seconds for looking at the tables
_STOP_TIMEOUT = 2.0  # seconds until a question that was told to stop is cut off
_MIN_VERSION = 13
HIDDEN_ROWS_MESSAGE = "row-level security hides rows of {} from this role, so answers are about those that it sees"
_LOCKED_MESSAGE = "another session locks a table, as a migration does. Nothing was charged. Ask again later."
_MAX_ATTEMPTS = 3  # to find tables that somebody replaces at this moment
_DEFAULT_TUNING = Tuning()


class Postgres:
    """Tables of a database by the names that questions use; one question is answered at a time.

    Of `tuning`, seconds and threads count; memory and disk are the server's own matter. Nothing is remembered from one
    question to the next, since a database changes.

    >>> table_source = TableSource("clinic.visits", {"patient": Type.INTEGER})
    >>> with Postgres({"visits": table_source}, url="postgresql://reader@db.example/clinic") as engine:  # doctest: +SKIP
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
        """Connect, lock these tables, take a state of the data and compare the catalog with what is declared.

        As `Engine.prepare` says, before a charge and without a look at any row. Locks, ACCESS SHARE alone, and the
        state are held until the end of the context; of columns, only those that are used have to fit.
        """
        self._session.check_usable()
        with self._question_lock, ExitStack() as stack:
            try:
                snapshot = self._lock_and_check(stack, usage)
            except EngineError as error:
                locked = isinstance(error, PostgresServerError) and error.sqlstate == LOCK_NOT_AVAILABLE
                raise Unavailable(error, _LOCKED_MESSAGE if locked else UNAVAILABLE_MESSAGE) from None
            yield PostgresReader(snapshot, self.dialect, self.seconds)

    def totals(self, question: Question) -> EngineTotals:
        """Compute the exact totals of a question, all from one state of the data."""
        with self.prepare(usage_of_questions([question])) as reader:
            return reader.totals(question)

    def query(self, sql: str) -> pa.Table:
        """Run one SELECT that the kernel has written; EngineError if it fails or takes too long."""
        with self.prepare({}) as reader:
            return reader.run_select(sql)

    def batches(
        self, relation: Relation, columns: tuple[str, ...], size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give the rows of a relation that lack none of these numbers: the numbers, and the place of each row's unit.

        Rows of one unit follow each other. No other question is answered until the last batch was taken.
        """
        with self.prepare(usage_of_relation(relation, columns)) as reader:
            for batch in reader.batches(select_rows_by_unit(relation, columns, self.dialect), size):
                yield batch[:, 1:], batch[:, 0].astype(np.int64)

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns, as questions see them."""
        return dict(self._sources[table].columns)

    def values(self, table: str, column: str) -> list[Any]:
        """Return the values of a column of a PUBLIC table, in order, without NULL."""
        (name,) = self._quoted_columns(table, (column,))
        with self.prepare({table: frozenset({column})}) as reader:
            rows = f"SELECT DISTINCT {name} AS v FROM {self.dialect.table_source(table)} AS t WHERE {name} IS NOT NULL"  # noqa: S608
            distinct: list[Any] = reader.run_select(f"{rows} ORDER BY v").column("v").to_pylist()
        return distinct

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return how many rows of a PUBLIC table share their values of these columns at most; NULL equals nothing."""
        names = self._quoted_columns(table, columns)
        present = " AND ".join(f"{name} IS NOT NULL" for name in names) or "TRUE"
        with self.prepare({table: frozenset(columns)}) as reader:
            rows = f"SELECT COUNT(*) AS n FROM {self.dialect.table_source(table)} AS t WHERE {present}"  # noqa: S608
            grouped = f"{rows} GROUP BY {', '.join(names)}" if names else rows
            largest = reader.run_select(f"SELECT COALESCE(MAX(n), 0) AS n FROM ({grouped}) AS g")  # noqa: S608 - quoted names
        return int(largest.column("n")[0].as_py())

    def close(self) -> None:
        """Stop a question that is running, and give everything back; closing twice does nothing."""
        if not self._finalizer.alive or not self._session.is_own_process:
            return
        self._session.stop_accepting()
        start = time.monotonic()
        while not (acquired := self._question_lock.acquire(timeout=0.05)):
            waited = time.monotonic() - start
            if waited > 2 * _STOP_TIMEOUT:
                break  # nobody reads on: rows of which not all were taken
            (self._session.cancel if waited < _STOP_TIMEOUT else self._session.disconnect)()
        self._finalizer()
        if acquired:
            self._question_lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock_and_check(self, stack: ExitStack, usage: ColumnUsage) -> Snapshot:
        """Return a state that is newer than the locks on the tables; PolicyError if a used column does not fit."""
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
        raise EngineError("tables were changed again and again while the question began")

    def _look_up_again(self, usage: ColumnUsage) -> None:
        """Look at tables that could not be locked; PolicyError if one is not there any more."""
        with self._session.locked_snapshot(self.seconds) as snapshot, snapshot.preparing():
            self._tables.update({name: self._current_table(snapshot, name, reuse=False) for name in usage})

    def _current_table(self, snapshot: Snapshot, name: str, *, reuse: bool = True) -> PostgresSourceTable:
        """Return a table as it is now: what is known of it, if that still fits."""
        table = self._tables[name]
        if reuse and not table.misfits and table.still_matches(snapshot):
            return table
        table = look_up_table(snapshot, name, self._sources[name], self._session.search_schemas)
        if not table.still_matches(snapshot):
            raise EngineError(f"table {name}: its columns were changed while the question began")
        return table

    def _quoted_columns(self, table: str, columns: tuple[str, ...]) -> list[str]:
        missing = [column for column in columns if column not in self._sources[table].columns]
        if missing:
            raise KeyError(f"table {table} has no column {missing[0]}")
        return [quote_name(column) for column in columns]


class PostgresReader:
    """Tables that were found ready, in one state of the data that is kept."""

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
        """Give the numbers of a SELECT, so many rows at once."""
        with self._snapshot.reading(self._seconds):
            yield from self._snapshot.batches(sql, size)


@contextmanager
def catalog_snapshot(session: PostgresQuerySession, timezone: str) -> Iterator[Snapshot]:
    """Look at a database's own tables; PolicyError if it is none that questions can be asked of."""
    try:
        with session.snapshot(_OPEN_TIMEOUT) as snapshot:
            _check_server(snapshot)
            yield snapshot
    except PostgresServerError as error:
        if error.sqlstate == INVALID_PARAMETER_VALUE:
            message = f'timezone "{timezone}" is not known to PostgreSQL. Use a name such as "Europe/Berlin".'
            raise PolicyError(message) from None
        raise


def _find_tables(
    session: PostgresQuerySession, sources: Mapping[str, TableSource], timezone: str
) -> dict[str, PostgresSourceTable]:
    """Find all tables, and warn of what does not fit, of what the role can do that it should not, and cannot."""
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
        advice = f"Questions only read, but use a role that can do no more: {read_only_role_sql(existing)}"
        warnings.warn(
            f"PostgreSQL: the role can do more than read. It can {'; '.join(privileges)}. {advice}", stacklevel=3
        )
    for name, stored in tables.items():
        if stored.rows_hidden:
            warnings.warn(f"table {name}: {HIDDEN_ROWS_MESSAGE.format(stored.qualified_name)}", stacklevel=3)
        for message in dict.fromkeys(map(str, stored.misfits.values())):
            warnings.warn(f"{message} Until then, questions that use it are refused.", stacklevel=3)
    return tables


def _find_or_placeholder(
    snapshot: Snapshot, name: str, source: TableSource, schemas: Sequence[str]
) -> PostgresSourceTable:
    """Find a table; one that is missing is left to the questions that need it, if its columns are declared."""
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
        raise PolicyError(f"PostgreSQL: version {version // 10_000} is too old. Use {_MIN_VERSION} or newer.")
    if encoding != "UTF8":
        raise PolicyError(
            f"PostgreSQL: the database has the encoding {encoding}. Use one with UTF8: others lack texts."
        )
