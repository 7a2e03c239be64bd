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

from discreet.engines.dialects.postgres import POSTGRES
from discreet.engines.gathering import totals_of
from discreet.engines.postgres_catalog import Stored, find_columns, missing_table, parse_place
from discreet.engines.postgres_errors import GONE, LOCKED, WRONG_SETTING, Stopped
from discreet.engines.postgres_role import powers, reader_sql
from discreet.engines.postgres_session import Session, Snapshot
from discreet.engines.sources import AWAY, EngineError, Source, Unavailable
from discreet.engines.tuning import Tuning
from discreet.engines.usage import Usage, usage_of, usage_of_rows
from discreet.kernel.dialect import Dialect, quoted
from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Type
from discreet.kernel.question import Question
from discreet.kernel.relation import Relation
from discreet.kernel.release import Totals
from discreet.kernel.writing import rows_in_turn

_OPENING = 30.0  # seconds for looking at the tables
_PATIENCE = 2.0  # seconds until a question that was told to stop is cut off
_OLDEST = 13
HIDDEN = "row-level security hides rows of {} from this role, so answers are about those that it sees"
_LOCKED = "another session locks a table, as a migration does. Nothing was charged. Ask again later."
_ATTEMPTS = 3  # to find tables that somebody replaces at this moment
_USUAL = Tuning()


class Postgres:
    """Tables of a database by the names that questions use; one question is answered at a time.

    Of `tuning`, seconds and threads count; memory and disk are the server's own matter. Nothing is remembered from one
    question to the next, since a database changes.

    >>> source = Source("clinic.visits", {"patient": Type.INTEGER})
    >>> with Postgres({"visits": source}, url="postgresql://reader@db.example/clinic") as engine:  # doctest: +SKIP
    ...     engine.columns("visits")
    {'patient': <Type.INTEGER: 'i'>}
    """

    def __init__(
        self, sources: Mapping[str, Source], *, url: str, timezone: str = "UTC", tuning: Tuning = _USUAL
    ) -> None:
        self.tuning, self.seconds = tuning, tuning.seconds
        self._asking = threading.Lock()  # held while a question is answered
        settings = {"timezone": timezone}
        if tuning.threads is not None:
            settings["max_parallel_workers_per_gather"] = str(min(tuning.threads - 1, 1024))
        self._session = Session(url, settings)
        self._end = weakref.finalize(self, self._session.close)
        try:
            found = _found(self._session, sources, timezone)
        except BaseException:
            self._end()
            raise
        self._tables = found
        self._sources = {name: Source(source.place, found[name].types) for name, source in sources.items()}
        self.dialect: Dialect = replace(POSTGRES, source=lambda name: found[name].rows)

    @contextmanager
    def prepare(self, usage: Usage) -> Iterator["PostgresReader"]:
        """Connect, lock these tables, take a state of the data and compare the catalog with what is declared.

        As `Engine.prepare` says, before a charge and without a look at any row. Locks, ACCESS SHARE alone, and the
        state are held until the end of the context; of columns, only those that are used have to fit.
        """
        self._session.check()
        with self._asking, ExitStack() as stack:
            try:
                snapshot = self._lock_and_check(stack, usage)
            except EngineError as error:
                locked = isinstance(error, Stopped) and error.state == LOCKED
                raise Unavailable(error, _LOCKED if locked else AWAY) from None
            yield PostgresReader(snapshot, self.dialect, self.seconds)

    def totals(self, question: Question) -> Totals:
        """Compute the exact totals of a question, all from one state of the data."""
        with self.prepare(usage_of([question])) as reader:
            return reader.totals(question)

    def query(self, sql: str) -> pa.Table:
        """Run one SELECT that the kernel has written; EngineError if it fails or takes too long."""
        with self.prepare({}) as reader:
            return reader.table(sql)

    def batches(
        self, relation: Relation, columns: tuple[str, ...], size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give the rows of a relation that lack none of these numbers: the numbers, and the place of each row's unit.

        Rows of one unit follow each other. No other question is answered until the last batch was taken.
        """
        with self.prepare(usage_of_rows(relation, columns)) as reader:
            for batch in reader.batches(rows_in_turn(relation, columns, self.dialect), size):
                yield batch[:, 1:], batch[:, 0].astype(np.int64)

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns, as questions see them."""
        return dict(self._sources[table].columns)

    def values(self, table: str, column: str) -> list[Any]:
        """Return the values of a column of a PUBLIC table, in order, without NULL."""
        (name,) = self._known(table, (column,))
        with self.prepare({table: frozenset({column})}) as reader:
            rows = f"SELECT DISTINCT {name} AS v FROM {self.dialect.source(table)} AS t WHERE {name} IS NOT NULL"  # noqa: S608
            found: list[Any] = reader.table(f"{rows} ORDER BY v").column("v").to_pylist()
        return found

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return how many rows of a PUBLIC table share their values of these columns at most; NULL equals nothing."""
        names = self._known(table, columns)
        present = " AND ".join(f"{name} IS NOT NULL" for name in names) or "TRUE"
        with self.prepare({table: frozenset(columns)}) as reader:
            rows = f"SELECT COUNT(*) AS n FROM {self.dialect.source(table)} AS t WHERE {present}"  # noqa: S608
            grouped = f"{rows} GROUP BY {', '.join(names)}" if names else rows
            found = reader.table(f"SELECT COALESCE(MAX(n), 0) AS n FROM ({grouped}) AS g")  # noqa: S608 - quoted names
        return int(found.column("n")[0].as_py())

    def close(self) -> None:
        """Stop a question that is running, and give everything back; closing twice does nothing."""
        if not self._end.alive or not self._session.ours:
            return
        self._session.end()
        start = time.monotonic()
        while not (alone := self._asking.acquire(timeout=0.05)):
            waited = time.monotonic() - start
            if waited > 2 * _PATIENCE:
                break  # nobody reads on: rows of which not all were taken
            (self._session.stop if waited < _PATIENCE else self._session.cut)()
        self._end()
        if alone:
            self._asking.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock_and_check(self, stack: ExitStack, usage: Usage) -> Snapshot:
        """Return a state that is newer than the locks on the tables; PolicyError if a used column does not fit."""
        for _ in range(_ATTEMPTS):
            with ExitStack() as trial:
                locked = {self._tables[name].place for name in usage if self._tables[name].lockable}
                try:
                    snapshot = trial.enter_context(self._session.state(self.seconds, sorted(locked)))
                except Stopped as error:
                    if error.state not in GONE:
                        raise
                    self._find_again(usage)
                    continue
                with snapshot.preparing():
                    self._tables.update({name: self._newest(snapshot, name) for name in usage})
                    if {self._tables[name].place for name in usage if self._tables[name].lockable} != locked:
                        continue
                    for name, columns in usage.items():
                        self._tables[name].check(snapshot, name, columns)
                stack.enter_context(trial.pop_all())
                return snapshot
        raise EngineError("tables were changed again and again while the question began")

    def _find_again(self, usage: Usage) -> None:
        """Look at tables that could not be locked; PolicyError if one is not there any more."""
        with self._session.state(self.seconds) as snapshot, snapshot.preparing():
            self._tables.update({name: self._newest(snapshot, name, known=False) for name in usage})

    def _newest(self, snapshot: Snapshot, name: str, *, known: bool = True) -> Stored:
        """Return a table as it is now: what is known of it, if that still fits."""
        found = self._tables[name]
        if known and not found.misfits and found.fits(snapshot):
            return found
        found = find_columns(snapshot, name, self._sources[name], self._session.schemas)
        if not found.fits(snapshot):
            raise EngineError(f"table {name}: its columns were changed while the question began")
        return found

    def _known(self, table: str, columns: tuple[str, ...]) -> list[str]:
        missing = [column for column in columns if column not in self._sources[table].columns]
        if missing:
            raise KeyError(f"table {table} has no column {missing[0]}")
        return [quoted(column) for column in columns]


class PostgresReader:
    """Tables that were found ready, in one state of the data that is kept."""

    def __init__(self, snapshot: Snapshot, dialect: Dialect, seconds: float) -> None:
        self._snapshot, self._dialect, self._seconds = snapshot, dialect, seconds

    def totals(self, question: Question) -> Totals:
        """Compute the exact totals of a question."""
        with self._snapshot.reading(self._seconds):
            return totals_of(question, self._snapshot.table, self._dialect)

    def table(self, sql: str) -> pa.Table:
        """Run one SELECT."""
        with self._snapshot.reading(self._seconds):
            return self._snapshot.table(sql)

    def batches(self, sql: str, size: int) -> Iterator[np.ndarray]:
        """Give the numbers of a SELECT, so many rows at once."""
        with self._snapshot.reading(self._seconds):
            yield from self._snapshot.batches(sql, size)


@contextmanager
def looking(session: Session, timezone: str) -> Iterator[Snapshot]:
    """Look at a database's own tables; PolicyError if it is none that questions can be asked of."""
    try:
        with session.snapshot(_OPENING) as snapshot:
            _check_server(snapshot)
            yield snapshot
    except Stopped as error:
        if error.state == WRONG_SETTING:
            words = f'timezone "{timezone}" is not known to PostgreSQL. Use a name such as "Europe/Berlin".'
            raise PolicyError(words) from None
        raise


def _found(session: Session, sources: Mapping[str, Source], timezone: str) -> dict[str, Stored]:
    """Find all tables, and warn of what does not fit, of what the role can do that it should not, and cannot."""
    for name, source in sources.items():
        parse_place(name, source.place)
    with looking(session, timezone) as snapshot:
        found = {name: _find(snapshot, name, source, session.schemas) for name, source in sources.items()}
        present = [stored for stored in found.values() if stored.exists]
        can = powers(snapshot, present)
    if can:
        advice = f"Questions only read, but use a role that can do no more: {reader_sql(present)}"
        warnings.warn(f"PostgreSQL: the role can do more than read. It can {'; '.join(can)}. {advice}", stacklevel=3)
    for name, stored in found.items():
        if stored.filtered:
            warnings.warn(f"table {name}: {HIDDEN.format(stored.place)}", stacklevel=3)
        for words in dict.fromkeys(map(str, stored.misfits.values())):
            warnings.warn(f"{words} Until then, questions that use it are refused.", stacklevel=3)
    return found


def _find(snapshot: Snapshot, name: str, source: Source, schemas: Sequence[str]) -> Stored:
    """Find a table; one that is missing is left to the questions that need it, if its columns are declared."""
    try:
        return find_columns(snapshot, name, source, schemas)
    except PolicyError as error:
        if not source.columns:
            raise
        return missing_table(name, source, error)


def _check_server(snapshot: Snapshot) -> None:
    sql = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')"
    ((version, encoding),) = snapshot.rows(sql)
    if version < _OLDEST * 10_000:
        raise PolicyError(f"PostgreSQL: version {version // 10_000} is too old. Use {_OLDEST} or newer.")
    if encoding != "UTF8":
        raise PolicyError(
            f"PostgreSQL: the database has the encoding {encoding}. Use one with UTF8: others lack texts."
        )
