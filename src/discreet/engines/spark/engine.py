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

from discreet.engines.column_usage import ColumnUsage, usage_of_questions, usage_of_relation
from discreet.engines.interface import Tuning
from discreet.engines.spark.casts import backtick_quote
from discreet.engines.spark.connection import server_url
from discreet.engines.spark.dialect import SPARK
from discreet.engines.spark.row_batches import RowOrder, UnitNumbering, complete_rows_sql, stream_batches
from discreet.engines.spark.session import SparkConnectSession, run_briefly
from discreet.engines.spark.tables import (
    SparkSchema,
    SparkSourceTable,
    SparkViews,
    check_sources,
    check_zone,
    create_view,
    read_schemas,
)
from discreet.engines.spark.vector_sums import ColumnBounds, SparkRows
from discreet.engines.sql_totals import compute_totals
from discreet.engines.table_source import EngineError, TableSource, Unavailable
from discreet.engines.totals_cache import TotalsCache
from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Type
from discreet.kernel.model_release import PartialSum
from discreet.kernel.question import Question
from discreet.kernel.relation import Relation
from discreet.kernel.release import EngineTotals
from discreet.kernel.sqlgen.dialect import Dialect

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_OPEN_TIMEOUT = 120.0  # seconds for looking at the tables, at least when they are opened
_STOP_TIMEOUT = 2.0  # seconds until a question that was told to stop is cut off
_NO_TABLES: ColumnUsage = {}
_DEFAULT_TUNING = Tuning()


class Spark:
    """Tables by the names that questions use; one question is answered at a time, in a session of its own.

    Without a `url`, SPARK_REMOTE says where the server is. Of `tuning`, seconds and remember count, the latter where
    all tables are in files; how much of the cluster is used is the server's own matter.

    >>> source = TableSource("lake.clinic.visits", {"patient": Type.INTEGER})
    >>> with Spark({"visits": source}, url="sc://lake.example:15002/;use_ssl=true") as engine:  # doctest: +SKIP
    ...     engine.columns("visits")
    {'patient': <Type.INTEGER: 'i'>}
    """

    def __init__(
        self,
        sources: Mapping[str, TableSource],
        *,
        url: str | None,
        timezone: str = "UTC",
        tuning: Tuning = _DEFAULT_TUNING,
    ) -> None:
        check_sources(sources)
        self.tuning = tuning
        self._question_lock = threading.Lock()  # held while a question is answered
        self._views = SparkViews(sources, timezone)
        self._session = SparkConnectSession(server_url(url), self._views.create)
        self._finalizer = weakref.finalize(self, self._session.close)
        try:
            with self._session.use(max(tuning.seconds, _OPEN_TIMEOUT)):
                pass  # the views are made
        except BaseException:
            self._finalizer()
            raise
        for message in self._views.misfit_messages():
            warnings.warn(f"{message} Until then, questions that use it are refused.", stacklevel=2)
        tables = self._views.tables
        views = {name: table.view for name, table in tables.items()}
        self.dialect: Dialect = replace(SPARK, table_source=views.__getitem__)
        self._totals_cache = TotalsCache(tuning.remember if all(table.in_files for table in tables.values()) else 0)

    @property
    def seconds(self) -> float:
        """How long one question may take."""
        return self.tuning.seconds

    @contextmanager
    def prepare(self, usage: ColumnUsage) -> Iterator["SparkReader"]:
        """Connect, and compare the catalog and the files with what is declared, as Engine.prepare says.

        No other question is answered until the end of the context. Spark has no locks: what changes afterwards makes
        a question fail that was charged.
        """
        self._session.check_usable()
        with self._question_lock:
            try:
                with self._session.use(_OPEN_TIMEOUT) as spark:
                    self._views.refresh(spark, usage)
            except EngineError as error:
                raise Unavailable(error) from None
            yield SparkReader(self, usage)

    def totals(self, question: Question) -> EngineTotals:
        """Compute the exact totals of a question, as the kernel writes it."""
        with self.prepare(usage_of_questions([question])) as reader:
            return reader.totals(question)

    def query(self, sql: str, usage: ColumnUsage = _NO_TABLES) -> pa.Table:
        """Run one SELECT that the kernel has written; EngineError if it fails or takes too long."""
        with self.prepare(usage), self.question_session(usage) as spark:
            return _run_select(spark, sql)

    @contextmanager
    def question_session(self, usage: ColumnUsage) -> Iterator["SparkSession"]:
        """Give the session for one question, within the context of `prepare`; EngineError if anything changed."""
        with self._session.use(self.seconds) as spark:
            self._views.check_columns(usage)  # the session may be a new one, with views of what there is now
            yield spark
            self._views.check_files(spark)

    def read_totals(self, question: Question, usage: ColumnUsage) -> EngineTotals:
        """Compute totals within the context of `prepare`."""
        with self.question_session(usage) as spark:
            return self._totals_cache.totals(
                question, lambda asked: compute_totals(asked, lambda sql: _run_select(spark, sql), self.dialect)
            )

    def batches(
        self, relation: Relation, columns: tuple[str, ...], size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give the rows of a relation that lack none of these numbers: the numbers, and the place of each row's unit.

        Rows of one unit follow each other. Spark sorts all of them and sends them here, through its driver: `sums` is
        for what can be added up over there. No other question is answered until the last batch was taken.
        """
        sql = complete_rows_sql(relation, columns, self.dialect, RowOrder.BY_UNIT)
        keys = list(range(len(relation.shape.unit or ())))
        numbering, usage = UnitNumbering(), usage_of_relation(relation, columns)
        with self.prepare(usage), ExitStack() as stack:
            with self._session.use(self.seconds) as spark:
                self._views.check_columns(usage)
                batches = stack.enter_context(closing(stream_batches(spark.sql(sql), size)))
            while True:
                with self._session.use(self.seconds) as spark:  # the time between batches is not Spark's
                    batch = next(batches, None)
                    if batch is None:
                        self._views.check_files(spark)
                        return
                numbers = [column.to_numpy().astype(np.float64) for column in batch.columns[len(keys) :]]
                yield np.stack(numbers, axis=1), numbering.number_rows(batch.select(keys), batch.num_rows)

    @contextmanager
    def cached_rows(
        self, relation: Relation, columns: tuple[str, ...]
    ) -> Iterator[Callable[[PartialSum, ColumnBounds], np.ndarray]]:
        """Keep rows at hand on Spark, and give what sums a part over them; Refused if it could not.

        They are the rows that lack none of these numbers, divided by whole units. A failed question, of anybody, takes
        the session with it, and what that kept: then they are kept anew.
        """
        cached = _CachedRows(lambda spark: self._complete_rows(spark, relation, columns))
        usage = usage_of_relation(relation, columns)

        def sums(part: PartialSum, bounds: ColumnBounds) -> np.ndarray:
            with self._question_lock, self.question_session(usage) as spark:
                return cached.rows_in(spark).sums(part, bounds)

        with self.prepare(usage):  # nothing is charged yet, and no row is read: what is kept is read when it is summed
            try:
                with self.question_session(usage) as spark:
                    cached.rows_in(spark)
            except EngineError as error:
                raise Unavailable(error) from None
        try:
            yield sums
        finally:
            with self._question_lock:
                run_briefly(cached.release)

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns, as questions see them."""
        return dict(self._views.tables[table].types)

    def values(self, table: str, column: str) -> list[Any]:
        """Return the values of a column of a PUBLIC table, in order, without NULL."""
        (name,) = self._quoted_columns(table, (column,))
        rows = f"SELECT DISTINCT {name} AS v FROM {self._views.tables[table].view} WHERE {name} IS NOT NULL"  # noqa: S608
        return sorted(self.query(rows, {table: frozenset({column})}).column("v").to_pylist())

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return how many rows of a PUBLIC table share their values of these columns at most; NULL equals nothing."""
        names = self._quoted_columns(table, columns)
        present = " AND ".join(f"{name} IS NOT NULL" for name in names) or "TRUE"
        rows = f"SELECT COUNT(*) AS n FROM {self._views.tables[table].view} WHERE {present}"  # noqa: S608 - names in quotes
        grouped = f"{rows} GROUP BY {', '.join(names)}" if names else rows
        largest_sql = f"SELECT COALESCE(MAX(n), 0) AS n FROM ({grouped}) AS g"  # noqa: S608
        largest = self.query(largest_sql, {table: frozenset(columns)})
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
            (self._session.interrupt if waited < _STOP_TIMEOUT else self._session.disconnect)()
        self._finalizer()
        if acquired:
            self._question_lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _complete_rows(self, spark: "SparkSession", relation: Relation, columns: tuple[str, ...]) -> SparkRows:
        units = len(relation.shape.unit or ())
        frame = spark.sql(complete_rows_sql(relation, columns, self.dialect))
        return SparkRows(frame, units=units, numbers=len(columns))

    def _quoted_columns(self, table: str, columns: tuple[str, ...]) -> list[str]:
        missing = [column for column in columns if column not in self._views.tables[table].types]
        if missing:
            raise KeyError(f"table {table} has no column {missing[0]}")
        return [backtick_quote(column) for column in columns]


class SparkReader:
    """Tables that were found ready."""

    def __init__(self, engine: Spark, usage: ColumnUsage) -> None:
        self._engine, self._usage = engine, usage

    def totals(self, question: Question) -> EngineTotals:
        """Compute the exact totals of a question."""
        return self._engine.read_totals(question, self._usage)


class _CachedRows:
    """The rows of one fit, in whichever session there is."""

    def __init__(self, make: Callable[["SparkSession"], SparkRows]) -> None:
        self._make = make
        self._cached: tuple[SparkSession, SparkRows] | None = None

    def rows_in(self, spark: "SparkSession") -> SparkRows:
        if self._cached is None or self._cached[0] is not spark:
            fresh = self._make(spark)
            fresh.persist()
            self._cached = spark, fresh
        return self._cached[1]

    def release(self) -> None:
        if self._cached is not None:
            self._cached[1].unpersist()


def _run_select(spark: "SparkSession", sql: str) -> pa.Table:
    """Run a SELECT: nothing else could stand in brackets."""
    return spark.sql(f"SELECT * FROM ({sql}) AS q").toArrow()  # noqa: S608 - the kernel's own


def inspect_sources(
    sources: Mapping[str, TableSource], url: str | None, timezone: str
) -> dict[str, SparkSourceTable | PolicyError]:
    """Return what Spark has of each source, or why it cannot be read, from schemas alone."""
    tables: dict[str, SparkSourceTable | PolicyError] = {}

    def inspect(spark: "SparkSession") -> None:
        check_zone(spark, timezone)
        for name, source in sources.items():
            try:
                tables[name] = create_view(spark, name, "t", source, timezone)
            except PolicyError as error:
                tables[name] = error

    _with_brief_session(url, inspect)
    return tables


def list_schemas(url: str, locations: Sequence[str]) -> dict[str, SparkSchema]:
    """Return the columns of tables and files of these names, or of all tables in the catalog; no row is read."""
    schemas: dict[str, SparkSchema] = {}
    _with_brief_session(url, lambda spark: schemas.update(read_schemas(spark, locations)))
    return schemas


def _with_brief_session(url: str | None, inspect: Callable[["SparkSession"], None]) -> None:
    """Connect, look at something, and leave."""
    session = SparkConnectSession(server_url(url), inspect)
    try:
        with session.use(_OPEN_TIMEOUT):
            pass  # it was looked at when the session was made
    finally:
        session.close()
