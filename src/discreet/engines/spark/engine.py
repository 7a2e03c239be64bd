"""The Spark engine, over Spark Connect: the data stays on the cluster, which computes the totals.

`TableSource.location` is a table or view of the catalog, or Parquet on storage that Spark reads; see
`engines.spark.tables`. The expressions of a view are the owner's responsibility: if one of them raises an error for
some rows, questions fail; it should return NULL instead.

Snapshots: files are those that existed when the engine was opened, and a question fails if the size or time of one of
them differs afterwards. A table of the catalog may change between the SELECTs of a question; within one SELECT, its
format determines the isolation. Each total is bounded in its own SELECT, so privacy does not depend on this.
"""

import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from discreet.engines.column_usage import ColumnUsage, usage_of_questions, usage_of_relation
from discreet.engines.engine_base import EngineBase
from discreet.engines.interface import Tuning
from discreet.engines.server_session import close_when_idle
from discreet.engines.spark.connection import server_name, server_url
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
from discreet.engines.table_source import MISFIT_ADVICE, EngineError, TableSource, Unavailable
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

_OPEN_TIMEOUT = 120.0  # seconds to read schemas
_DEFAULT_TUNING = Tuning()


class Spark(EngineBase):
    """The Spark engine; it answers one question at a time, in its own session.

    Without a `url`, the server is that of SPARK_REMOTE. Of `tuning`, only seconds and totals_cache apply, the latter if
    all tables are in files; how much of the cluster is used is up to the server.

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
        server = server_url(url)
        self._server = server_name(server)
        self._session = SparkConnectSession(server, self._views.create)
        self._finalizer = weakref.finalize(self, self._session.close)
        try:
            with self._session.use(max(tuning.seconds, _OPEN_TIMEOUT)):
                pass  # creates the views
        except BaseException:
            self._finalizer()
            raise
        for message in self._views.misfit_messages():
            warnings.warn(f"{message} {MISFIT_ADVICE}", stacklevel=2)
        tables = self._views.tables
        views = {name: table.view for name, table in tables.items()}
        self.dialect: Dialect = replace(SPARK, table_source=views.__getitem__)
        self._totals_cache = TotalsCache(tuning.totals_cache if all(table.in_files for table in tables.values()) else 0)

    @property
    def seconds(self) -> float:
        """The time limit of one question."""
        return self.tuning.seconds

    @contextmanager
    def prepare(self, usage: ColumnUsage) -> Iterator["SparkReader"]:
        """Connect, and compare the catalog and the files with the declared columns; see Engine.prepare.

        No other question is answered until the end of the context. Spark has no locks: if the data changes afterwards,
        a charged question fails.
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
        """Compute the exact totals of a question with the kernel's SQL."""
        with self.prepare(usage_of_questions([question])) as reader:
            return reader.totals(question)

    @contextmanager
    def selecting(self, usage: ColumnUsage) -> Iterator[Callable[[str], pa.Table]]:
        """Yield a function that runs a SELECT."""
        with self.prepare(usage), self.question_session(usage) as spark:
            yield lambda sql: _run_select(spark, sql)

    @contextmanager
    def question_session(self, usage: ColumnUsage) -> Iterator["SparkSession"]:
        """Yield the session for one question, within the context of `prepare`; EngineError if the data changed."""
        with self._session.use(self.seconds) as spark:
            self._views.check_columns(usage)  # the session may be new, with views of the current tables
            yield spark
            self._views.check_files(spark)

    def read_totals(self, question: Question, usage: ColumnUsage) -> EngineTotals:
        """Compute totals within the context of `prepare`."""
        with self.question_session(usage) as spark:
            return self._totals_cache.totals(
                question, lambda missing: compute_totals(missing, lambda sql: _run_select(spark, sql), self.dialect)
            )

    def batches(
        self, relation: Relation, columns: tuple[str, ...], size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield batches of the rows without NULL in these columns: their values, and the index of each row's unit.

        Rows of one unit are contiguous. Spark sorts all rows and sends them through its driver; `cached_rows` computes
        sums on the cluster instead. No other question is answered before the last batch has been read.
        """
        sql = complete_rows_sql(relation, columns, self.dialect, RowOrder.BY_UNIT)
        keys = list(range(len(relation.shape.unit or ())))
        numbering, usage = UnitNumbering(), usage_of_relation(relation, columns)
        with self.prepare(usage), ExitStack() as stack:
            with self._session.use(self.seconds) as spark:
                self._views.check_columns(usage)
                batches = stack.enter_context(closing(stream_batches(spark.sql(sql), size)))
            while True:
                with self._session.use(self.seconds) as spark:  # the time limit excludes the time between batches
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
        """Cache the rows without NULL in these columns on Spark and return a function that sums a part over them.

        The rows of a unit are in one partition. Refused if the workers cannot compute the sums. A failed question of
        any analyst ends the session and its cache; the rows are then cached again.
        """
        cached = _CachedRows(lambda spark: self._complete_rows(spark, relation, columns))
        usage = usage_of_relation(relation, columns)

        def sums(part: PartialSum, bounds: ColumnBounds) -> np.ndarray:
            with self._question_lock, self.question_session(usage) as spark:
                return cached.rows_in(spark).sums(part, bounds)

        with self.prepare(usage):  # before a charge; no row is read, because Spark fills the cache with the first sum
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

    def location(self, table: str) -> str:
        """Return the server and the name or the path of a table."""
        return f"{self._server}, {self._views.tables[table].location}"

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns with their kernel types."""
        return dict(self._views.tables[table].types)

    def close(self) -> None:
        """Cancel a running question and release all resources; closing twice does nothing."""
        if self._finalizer.alive and self._session.is_own_process:
            self._session.stop_accepting()
            close_when_idle(self._session, self._question_lock, self._finalizer)

    def _complete_rows(self, spark: "SparkSession", relation: Relation, columns: tuple[str, ...]) -> SparkRows:
        units = len(relation.shape.unit or ())
        frame = spark.sql(complete_rows_sql(relation, columns, self.dialect))
        return SparkRows(frame, units=units, numbers=len(columns))


class SparkReader:
    """Reads tables that were found to be available."""

    def __init__(self, engine: Spark, usage: ColumnUsage) -> None:
        self._engine, self._usage = engine, usage

    def totals(self, question: Question) -> EngineTotals:
        """Compute the exact totals of a question."""
        return self._engine.read_totals(question, self._usage)


class _CachedRows:
    """The rows of one fit, cached in the current session."""

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
    """Run a SELECT; as a subquery, nothing else is valid."""
    return spark.sql(f"SELECT * FROM ({sql}) AS q").toArrow()  # noqa: S608 - the kernel's own


def inspect_sources(
    sources: Mapping[str, TableSource], url: str | None, timezone: str
) -> dict[str, SparkSourceTable | PolicyError]:
    """Return the table of each source, or the error if it cannot be read; only schemas are read."""
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
    """Return the columns of these tables and files, or of all tables in the catalog; no row is read."""
    schemas: dict[str, SparkSchema] = {}
    _with_brief_session(url, lambda spark: schemas.update(read_schemas(spark, locations)))
    return schemas


def _with_brief_session(url: str | None, inspect: Callable[["SparkSession"], None]) -> None:
    """Open a session, call `inspect`, and close the session."""
    session = SparkConnectSession(server_url(url), inspect)
    try:
        with session.use(_OPEN_TIMEOUT):
            pass  # opening the session calls `inspect`
    finally:
        session.close()
