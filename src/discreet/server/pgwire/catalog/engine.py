"""A locked DuckDB in memory that holds the catalog of one set of tables, and nothing else."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from discreet.kernel.errors import Refused
from discreet.server.pgwire.catalog.content import CatalogSource, catalog_rows, relation_numbers
from discreet.server.pgwire.catalog.functions import MACROS
from discreet.server.pgwire.catalog.relations import arrow_schema, create_statements, relations

_LOG = logging.getLogger("discreet")
_SETTINGS: Mapping[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
    "memory_limit": "128MB",
    "threads": "1",
    "error_on_division_by_zero": "false",
    "max_execution_time": "2000",  # milliseconds
}
_LOCK = "SET lock_configuration = true"
_MAX_ROWS = 100_000
_MAX_BYTES = 16 * 2**20  # a number takes 20 times as much memory once it is written as text
_BATCH = 10_000
_TEXTS = ("constraint_texts", "type_texts")
_FAILED = "the query on the catalog cannot be answered. Simplify it."


@dataclass(frozen=True)
class CatalogResult:
    """The rows of a query on the catalog; names of columns may occur more than once."""

    names: tuple[str, ...]
    table: pa.Table


class CatalogEngine:
    """Answers queries on the catalog that were translated; several threads may ask at once.

    >>> source = CatalogSource("visits", (), pa.table({"table_name": pa.array([], "string")}), pa.table({"x": []}))
    >>> engine = CatalogEngine(source)
    >>> engine.run('SELECT "nspname" FROM "pg_namespace" ORDER BY 1 DESC LIMIT 1').table.to_pylist()
    [{'c0': 'public'}]
    >>> engine.close()
    """

    def __init__(self, source: CatalogSource) -> None:
        self.numbers = relation_numbers(source)
        self._database = duckdb.connect(":memory:", config=dict(_SETTINGS))
        self._database.execute(create_statements() + MACROS)
        for name, rows in catalog_rows(source).items():
            self._insert(name, rows)
        self._database.execute(_LOCK)

    def _insert(self, name: str, rows: Sequence[Mapping[str, object]]) -> None:
        if not rows:
            return
        schema = arrow_schema(name) if name in relations() else None
        self._database.register("rows", pa.Table.from_pylist(list(rows), schema))
        self._database.execute(f'INSERT INTO "{name}" BY NAME SELECT * FROM rows')  # noqa: S608 - a name of ours
        self._database.unregister("rows")

    def run(self, sql: str) -> CatalogResult:
        """Run a translated query, within limits on rows, memory and time; Refused if it fails."""
        return self._run(sql, lambda relation: relation)

    def shape(self, sql: str) -> CatalogResult:
        """Return the columns of a translated query, without its rows."""
        return self._run(sql, lambda relation: relation.limit(0))

    def _run(self, sql: str, change: Callable[[duckdb.DuckDBPyRelation], duckdb.DuckDBPyRelation]) -> CatalogResult:
        session = self._database.cursor()
        try:
            result = change(session.sql(sql))
            return CatalogResult(tuple(result.columns), _read_limited(result.to_arrow_reader(_BATCH)))
        except (duckdb.Error, pa.ArrowException):
            _LOG.info("a query on the catalog failed", exc_info=True)
        finally:
            session.close()
        raise Refused(_FAILED)

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def _read_limited(reader: pa.RecordBatchReader) -> pa.Table:
    names, batches = [f"c{place}" for place in range(len(reader.schema))], []
    rows = size = 0
    for batch in reader:
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if size > _MAX_BYTES:
            raise Refused("the result of the query on the catalog is too large. Aggregate less, or add LIMIT.")
        if rows > _MAX_ROWS:
            raise Refused(f"the query on the catalog returns more than {_MAX_ROWS:,} rows. Add LIMIT.")
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema).rename_columns(names)
