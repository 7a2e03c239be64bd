"""Spark, through Spark Connect: the data stay on the cluster, which adds up; only bounded totals come back.

Source.place is a table or a view of its catalog, or Parquet on storage that it reads; `spark_tables` says how they are
written. A view's own expressions are the owner's: one that fails for some rows makes questions fail, and should give
NULL instead.

One state of the data: files are those that were there when the engine was opened, and a question fails if any of them
has another size or time after it. A table of the catalog may change between the SELECTs of a question; within one, it
is what the table's format promises. Each total is bounded in its own SELECT, so that no promise depends on this.
"""

import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from discreet.engines.dialects.spark import SPARK
from discreet.engines.gathering import totals_of
from discreet.engines.remembered import Remembered
from discreet.engines.sources import EngineError, Source, Unavailable
from discreet.engines.spark_columns import ticked
from discreet.engines.spark_connecting import place_of
from discreet.engines.spark_rows import Order, Places, in_batches, rows_lacking_none
from discreet.engines.spark_session import Session, briefly
from discreet.engines.spark_sums import Bounds, SparkRows
from discreet.engines.spark_tables import Schema, Table, Views, check_sources, check_zone, schemas_of, view_of
from discreet.engines.tuning import Tuning
from discreet.engines.usage import Usage, usage_of, usage_of_rows
from discreet.kernel.dialect import Dialect
from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Type
from discreet.kernel.question import Question
from discreet.kernel.relation import Relation
from discreet.kernel.release import Totals
from discreet.kernel.summing import Part

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_OPENING = 120.0  # seconds for looking at the tables, at least when they are opened
_PATIENCE = 2.0  # seconds until a question that was told to stop is cut off
_NO_TABLES: Usage = {}
_USUAL = Tuning()


class Spark:
    """Tables by the names that questions use; one question is answered at a time, in a session of its own.

    Without a `url`, SPARK_REMOTE says where the server is. Of `tuning`, seconds and remember count, the latter where
    all tables are in files; how much of the cluster is used is the server's own matter.

    >>> source = Source("lake.clinic.visits", {"patient": Type.INTEGER})
    >>> with Spark({"visits": source}, url="sc://lake.example:15002/;use_ssl=true") as engine:  # doctest: +SKIP
    ...     engine.columns("visits")
    {'patient': <Type.INTEGER: 'i'>}
    """

    def __init__(
        self, sources: Mapping[str, Source], *, url: str | None, timezone: str = "UTC", tuning: Tuning = _USUAL
    ) -> None:
        check_sources(sources)
        self.tuning = tuning
        self._asking = threading.Lock()  # held while a question is answered
        self._views = Views(sources, timezone)
        self._session = Session(place_of(url), self._views.make)
        self._end = weakref.finalize(self, self._session.close)
        try:
            with self._session.asked(max(tuning.seconds, _OPENING)):
                pass  # the views are made
        except BaseException:
            self._end()
            raise
        for words in self._views.misfits():
            warnings.warn(f"{words} Until then, questions that use it are refused.", stacklevel=2)
        tables = self._views.tables
        views = {name: table.view for name, table in tables.items()}
        self.dialect: Dialect = replace(SPARK, source=views.__getitem__)
        self._remembered = Remembered(tuning.remember if all(table.in_files for table in tables.values()) else 0)

    @property
    def seconds(self) -> float:
        """How long one question may take."""
        return self.tuning.seconds

    @contextmanager
    def prepare(self, usage: Usage) -> Iterator["SparkReader"]:
        """Connect, and compare the catalog and the files with what is declared, as Engine.prepare says.

        No other question is answered until the end of the context. Spark has no locks: what changes afterwards makes
        a question fail that was charged.
        """
        self._session.check()
        with self._asking:
            try:
                with self._session.asked(_OPENING) as spark:
                    self._views.refresh(spark, usage)
            except EngineError as error:
                raise Unavailable(error) from None
            yield SparkReader(self, usage)

    def totals(self, question: Question) -> Totals:
        """Compute the exact totals of a question, as the kernel writes it."""
        with self.prepare(usage_of([question])) as reader:
            return reader.totals(question)

    def query(self, sql: str, usage: Usage = _NO_TABLES) -> pa.Table:
        """Run one SELECT that the kernel has written; EngineError if it fails or takes too long."""
        with self.prepare(usage), self.reading(usage) as spark:
            return _table(spark, sql)

    @contextmanager
    def reading(self, usage: Usage) -> Iterator["SparkSession"]:
        """Give the session for one question, within the context of `prepare`; EngineError if anything changed."""
        with self._session.asked(self.seconds) as spark:
            self._views.check_columns(usage)  # the session may be a new one, with views of what there is now
            yield spark
            self._views.check(spark)

    def read_totals(self, question: Question, usage: Usage) -> Totals:
        """Compute totals within the context of `prepare`."""
        with self.reading(usage) as spark:
            return self._remembered.totals(
                question, lambda asked: totals_of(asked, lambda sql: _table(spark, sql), self.dialect)
            )

    def batches(
        self, relation: Relation, columns: tuple[str, ...], size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give the rows of a relation that lack none of these numbers: the numbers, and the place of each row's unit.

        Rows of one unit follow each other. Spark sorts all of them and sends them here, through its driver: `sums` is
        for what can be added up over there. No other question is answered until the last batch was taken.
        """
        sql = rows_lacking_none(relation, columns, self.dialect, Order.BY_UNIT)
        keys = list(range(len(relation.shape.unit or ())))
        places, usage = Places(), usage_of_rows(relation, columns)
        with self.prepare(usage), ExitStack() as stack:
            with self._session.asked(self.seconds) as spark:
                self._views.check_columns(usage)
                given = stack.enter_context(closing(in_batches(spark.sql(sql), size)))
            while True:
                with self._session.asked(self.seconds) as spark:  # the time between batches is not Spark's
                    batch = next(given, None)
                    if batch is None:
                        self._views.check(spark)
                        return
                numbers = [column.to_numpy().astype(np.float64) for column in batch.columns[len(keys) :]]
                yield np.stack(numbers, axis=1), places.of(batch.select(keys), batch.num_rows)

    @contextmanager
    def held(self, relation: Relation, columns: tuple[str, ...]) -> Iterator[Callable[[Part, Bounds], np.ndarray]]:
        """Keep rows at hand on Spark, and give what sums a part over them; Refused if it could not.

        They are the rows that lack none of these numbers, divided by whole units. A failed question, of anybody, takes
        the session with it, and what that kept: then they are kept anew.
        """
        kept = _Kept(lambda spark: self._rows(spark, relation, columns))
        usage = usage_of_rows(relation, columns)

        def sums(part: Part, bounds: Bounds) -> np.ndarray:
            with self._asking, self.reading(usage) as spark:
                return kept.rows(spark).sums(part, bounds)

        with self.prepare(usage):  # nothing is charged yet, and no row is read: what is kept is read when it is summed
            try:
                with self.reading(usage) as spark:
                    kept.rows(spark)
            except EngineError as error:
                raise Unavailable(error) from None
        try:
            yield sums
        finally:
            with self._asking:
                briefly(kept.let_go)

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns, as questions see them."""
        return dict(self._views.tables[table].types)

    def values(self, table: str, column: str) -> list[Any]:
        """Return the values of a column of a PUBLIC table, in order, without NULL."""
        (name,) = self._known(table, (column,))
        rows = f"SELECT DISTINCT {name} AS v FROM {self._views.tables[table].view} WHERE {name} IS NOT NULL"  # noqa: S608
        return sorted(self.query(rows, {table: frozenset({column})}).column("v").to_pylist())

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return how many rows of a PUBLIC table share their values of these columns at most; NULL equals nothing."""
        names = self._known(table, columns)
        present = " AND ".join(f"{name} IS NOT NULL" for name in names) or "TRUE"
        rows = f"SELECT COUNT(*) AS n FROM {self._views.tables[table].view} WHERE {present}"  # noqa: S608 - names in quotes
        grouped = f"{rows} GROUP BY {', '.join(names)}" if names else rows
        most = f"SELECT COALESCE(MAX(n), 0) AS n FROM ({grouped}) AS g"  # noqa: S608
        found = self.query(most, {table: frozenset(columns)})
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

    def _rows(self, spark: "SparkSession", relation: Relation, columns: tuple[str, ...]) -> SparkRows:
        units = len(relation.shape.unit or ())
        frame = spark.sql(rows_lacking_none(relation, columns, self.dialect))
        return SparkRows(frame, units=units, numbers=len(columns))

    def _known(self, table: str, columns: tuple[str, ...]) -> list[str]:
        missing = [column for column in columns if column not in self._views.tables[table].types]
        if missing:
            raise KeyError(f"table {table} has no column {missing[0]}")
        return [ticked(column) for column in columns]


class SparkReader:
    """Tables that were found ready."""

    def __init__(self, engine: Spark, usage: Usage) -> None:
        self._engine, self._usage = engine, usage

    def totals(self, question: Question) -> Totals:
        """Compute the exact totals of a question."""
        return self._engine.read_totals(question, self._usage)


class _Kept:
    """The rows of one fit, in whichever session there is."""

    def __init__(self, make: Callable[["SparkSession"], SparkRows]) -> None:
        self._make = make
        self._found: tuple[SparkSession, SparkRows] | None = None

    def rows(self, spark: "SparkSession") -> SparkRows:
        if self._found is None or self._found[0] is not spark:
            found = self._make(spark)
            found.keep()
            self._found = spark, found
        return self._found[1]

    def let_go(self) -> None:
        if self._found is not None:
            self._found[1].let_go()


def _table(spark: "SparkSession", sql: str) -> pa.Table:
    """Run a SELECT: nothing else could stand in brackets."""
    return spark.sql(f"SELECT * FROM ({sql}) AS q").toArrow()  # noqa: S608 - the kernel's own


def look_at(sources: Mapping[str, Source], url: str | None, timezone: str) -> dict[str, Table | PolicyError]:
    """Return what Spark has of each source, or why it cannot be read, from schemas alone."""
    found: dict[str, Table | PolicyError] = {}

    def look(spark: "SparkSession") -> None:
        check_zone(spark, timezone)
        for name, source in sources.items():
            try:
                found[name] = view_of(spark, name, "t", source, timezone)
            except PolicyError as error:
                found[name] = error

    _briefly_at(url, look)
    return found


def list_schemas(url: str, wanted: Sequence[str]) -> dict[str, Schema]:
    """Return the columns of tables and files of these names, or of all tables in the catalog; no row is read."""
    found: dict[str, Schema] = {}
    _briefly_at(url, lambda spark: found.update(schemas_of(spark, wanted)))
    return found


def _briefly_at(url: str | None, look: Callable[["SparkSession"], None]) -> None:
    """Connect, look at something, and leave."""
    session = Session(place_of(url), look)
    try:
        with session.asked(_OPENING):
            pass  # it was looked at when the session was made
    finally:
        session.close()
