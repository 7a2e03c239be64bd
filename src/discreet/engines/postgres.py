"""PostgreSQL: the data stay in their database, which adds up; only bounded totals come back.

Source.place is the name of a table or view there, such as visits or clinic.visits. Questions run as transactions that
can only read, each on one state of the data. A view's own expressions are the owner's: one that fails for some rows
makes questions fail, and should give NULL instead.
"""

import threading
import time
import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from discreet.engines.dialects.postgres import POSTGRES
from discreet.engines.gathering import totals_of
from discreet.engines.postgres_catalog import Stored, find_table
from discreet.engines.postgres_errors import WRONG_SETTING, Stopped
from discreet.engines.postgres_role import powers, reader_sql
from discreet.engines.postgres_session import Session, Snapshot
from discreet.engines.sources import Source
from discreet.engines.tuning import Tuning
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
            self._tables = _found(self._session, sources, timezone)
        except BaseException:
            self._end()
            raise
        places = {name: stored.rows for name, stored in self._tables.items()}
        self.dialect: Dialect = replace(POSTGRES, source=places.__getitem__)

    def totals(self, question: Question) -> Totals:
        """Compute the exact totals of a question, all from one state of the data."""
        with self._asked() as snapshot:
            return totals_of(question, snapshot.table, self.dialect)

    def query(self, sql: str) -> pa.Table:
        """Run one SELECT that the kernel has written; EngineError if it fails or takes too long."""
        with self._asked() as snapshot:
            return snapshot.table(sql)

    def batches(
        self, relation: Relation, columns: tuple[str, ...], size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give the rows of a relation that lack none of these numbers: the numbers, and the place of each row's unit.

        Rows of one unit follow each other. No other question is answered until the last batch was taken.
        """
        with self._asked() as snapshot:
            for batch in snapshot.batches(rows_in_turn(relation, columns, self.dialect), size):
                yield batch[:, 1:], batch[:, 0].astype(np.int64)

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns, as questions see them."""
        return dict(self._tables[table].types)

    def values(self, table: str, column: str) -> list[Any]:
        """Return the values of a column of a PUBLIC table, in order, without NULL."""
        (name,) = self._known(table, (column,))
        rows = f"SELECT DISTINCT {name} AS v FROM {self.dialect.source(table)} AS t WHERE {name} IS NOT NULL"  # noqa: S608
        found: list[Any] = self.query(f"{rows} ORDER BY v").column("v").to_pylist()
        return found

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return how many rows of a PUBLIC table share their values of these columns at most; NULL equals nothing."""
        names = self._known(table, columns)
        present = " AND ".join(f"{name} IS NOT NULL" for name in names) or "TRUE"
        rows = f"SELECT COUNT(*) AS n FROM {self.dialect.source(table)} AS t WHERE {present}"  # noqa: S608
        grouped = f"{rows} GROUP BY {', '.join(names)}" if names else rows
        found = self.query(f"SELECT COALESCE(MAX(n), 0) AS n FROM ({grouped}) AS g")  # noqa: S608 - names in quotes
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

    @contextmanager
    def _asked(self) -> Iterator[Snapshot]:
        self._session.check()
        locked = list(dict.fromkeys(stored.place for stored in self._tables.values() if stored.lockable))
        with self._asking, self._session.snapshot(self.seconds, locked) as snapshot:
            for name, stored in self._tables.items():
                stored.check(snapshot, name)
            yield snapshot

    def _known(self, table: str, columns: tuple[str, ...]) -> list[str]:
        missing = [column for column in columns if column not in self._tables[table].types]
        if missing:
            raise KeyError(f"table {table} has no column {missing[0]}")
        return [quoted(column) for column in columns]


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
    """Find all tables, and warn of what the role can do that it should not, and cannot that it should."""
    with looking(session, timezone) as snapshot:
        found = {name: find_table(snapshot, name, source, session.schemas) for name, source in sources.items()}
        for name, stored in found.items():
            stored.check(snapshot, name)
        can = powers(snapshot, list(found.values()))
    if can:
        advice = f"Questions only read, but use a role that can do no more: {reader_sql(list(found.values()))}"
        warnings.warn(f"PostgreSQL: the role can do more than read. It can {'; '.join(can)}. {advice}", stacklevel=3)
    for name, stored in found.items():
        if stored.filtered:
            warnings.warn(f"table {name}: {HIDDEN.format(stored.place)}", stacklevel=3)
    return found


def _check_server(snapshot: Snapshot) -> None:
    sql = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')"
    ((version, encoding),) = snapshot.rows(sql)
    if version < _OLDEST * 10_000:
        raise PolicyError(f"PostgreSQL: version {version // 10_000} is too old. Use {_OLDEST} or newer.")
    if encoding != "UTF8":
        raise PolicyError(
            f"PostgreSQL: the database has the encoding {encoding}. Use one with UTF8: others lack texts."
        )
