"""Compare a policy with its sources: missing columns, incompatible types, values of CSV files that do not convert."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb

from discreet.curator.open import engine_sources, postgres_url
from discreet.engines.duckdb import casts
from discreet.engines.duckdb.data_files import open_path
from discreet.engines.postgres import casts as postgres_columns
from discreet.engines.postgres.engine import HIDDEN_ROWS_MESSAGE, catalog_snapshot
from discreet.engines.postgres.role import excess_privileges, read_only_role_sql
from discreet.engines.postgres.session import PostgresQuerySession, Snapshot
from discreet.engines.postgres.tables import look_up_fitting_table
from discreet.engines.spark import casts as spark_columns
from discreet.engines.spark.connection import server_name
from discreet.engines.spark.tables import SparkSourceTable as SparkTable
from discreet.engines.spark.tables import check_sources
from discreet.engines.table_source import (
    EngineError,
    SourceColumn,
    SourcePart,
    TableSource,
    column_types,
    match_columns,
    source_error,
)
from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Type
from discreet.kernel.sqlgen.dialect import quote_name
from discreet.policy import DeclaredTable, Hazard, Policy
from discreet.policy.catalog import kernel_type
from discreet.policy.drafting.sketch import CatalogSketch, ColumnSketch, TableSketch
from discreet.policy.file_hazards import csv_value_hazard, local_files, stored_type_hazard
from discreet.policy.hazard_rules import make_hazard
from discreet.policy.validators import parse_location

_CSV_ROWS_READ = 100_000


@dataclass(frozen=True)
class SchemaFindings:
    """Errors that would make queries fail, and hazards such as columns stored as another type."""

    problems: tuple[str, ...]
    hazards: tuple[Hazard, ...]


def check_source_schemas(policy: Policy) -> SchemaFindings:
    """Compare a policy with the schemas of its sources; for DuckDB, only of files on this machine."""
    checkers = {"duckdb": _check_files, "postgresql": _check_postgres, "spark": _check_spark}
    findings = dict.fromkeys(checkers[policy.data.engine](policy))
    return SchemaFindings(  # without duplicates: a column may be missing from two files
        tuple(finding for finding in findings if isinstance(finding, str)),
        tuple(finding for finding in findings if isinstance(finding, Hazard)),
    )


def _check_files(policy: Policy) -> list[str | Hazard]:
    with duckdb.connect(":memory:") as connection:
        return [
            finding
            for name, source in policy.sources().items()
            if local_files(source)
            for finding in _check_table(connection, policy.tables[name], source)
        ]


def _check_table(connection: duckdb.DuckDBPyConnection, table: DeclaredTable, source: str) -> Iterator[str | Hazard]:
    types = {column.name: kernel_type(column.type) for column in table.columns.values()}
    try:
        parts = open_path(connection, table.name, source).parts
        column_types(table.name, types, parts)
    except PolicyError as error:
        yield str(error)
        return
    for part in parts:
        yield from _check_part(connection, table, part)


def _check_part(
    connection: duckdb.DuckDBPyConnection, table: DeclaredTable, part: SourcePart
) -> Iterator[str | Hazard]:
    """Check the declared columns of some of a table's files: by their types, or CSV files by their first rows."""
    matches: dict[str, tuple[SourceColumn, Type]] = {}
    for column in table.columns.values():
        try:
            match = match_columns(table.name, {column.name: kernel_type(column.type)}, part)
        except PolicyError as error:
            yield str(error)
            continue
        matches |= match
        natural_type = casts.default_type(match[column.name][0].native_type)
        if (
            part.typed
            and natural_type
            and (type_hazard := stored_type_hazard(table.name, column.name, natural_type.name.lower(), column.type))
        ):
            yield type_hazard
    if not part.typed and matches:
        yield from _check_csv_values(connection, table, part, matches)


def _check_csv_values(
    connection: duckdb.DuckDBPyConnection,
    table: DeclaredTable,
    part: SourcePart,
    matches: Mapping[str, tuple[SourceColumn, Type]],
) -> Iterator[str | Hazard]:
    """Compare the number of values in the first rows with that of values that convert."""
    first_rows = f"(SELECT * FROM {part.from_sql} LIMIT {_CSV_ROWS_READ})"  # noqa: S608 - of quoted names
    texts = {f"text {name}": (column.sql, column.native_type, Type.TEXT) for name, (column, _) in matches.items()}
    converted = {name: (column.sql, column.native_type, kind) for name, (column, kind) in matches.items()}
    counts = ", ".join(f"COUNT({quote_name(f'text {name}')}), COUNT({quote_name(name)})" for name in matches)
    try:
        row = connection.execute(
            f"SELECT COUNT(*), {counts} FROM ({casts.cast_select(first_rows, texts | converted, 'UTC')})"  # noqa: S608 - of quoted names
        ).fetchone()
    except duckdb.Error:
        yield str(source_error(table.name, "the source cannot be read. Check that the files are complete and valid."))
        return
    rows, *pairs = row or ()
    for name, values, kept in zip(matches, pairs[::2], pairs[1::2], strict=True):
        if hazard := csv_value_hazard(table, table.columns[name], (rows, values, kept)):
            yield hazard


def _check_postgres(policy: Policy) -> list[str | Hazard]:
    """Check the catalog of the database; a failed connection is one more problem."""
    try:
        session = PostgresQuerySession(postgres_url(policy), {"timezone": policy.data.timezone})
    except PolicyError as error:
        return [str(error)]
    try:
        with catalog_snapshot(session, policy.data.timezone) as snapshot:
            return list(_check_database(policy, snapshot, session.search_schemas))
    except (PolicyError, EngineError) as error:
        return [str(error)]
    finally:
        session.close()


def _check_database(policy: Policy, snapshot: Snapshot, schemas: list[str]) -> Iterator[str | Hazard]:
    tables = []
    for table in policy.tables.values():
        for column in table.columns.values() or [None]:
            types = {column.name: kernel_type(column.type)} if column else {}
            try:
                stored_table = look_up_fitting_table(snapshot, table.name, TableSource(table.source, types), schemas)
            except PolicyError as error:
                yield str(error)
                continue
            tables.append(stored_table)
            if stored_table.rows_hidden:
                yield make_hazard("D027", table.name, hidden=HIDDEN_ROWS_MESSAGE.format(stored_table.qualified_name))
            natural_type = postgres_columns.default_type(stored_table.native_types[column.name]) if column else None
            if (
                column
                and natural_type
                and (type_hazard := stored_type_hazard(table.name, column.name, natural_type.name.lower(), column.type))
            ):
                yield type_hazard
    distinct_tables = list({table.oid: table for table in tables}.values())
    if excess := excess_privileges(snapshot, distinct_tables):
        yield make_hazard("D026", section="[data]", can="; ".join(excess), sql=read_only_role_sql(distinct_tables))


def _check_spark(policy: Policy) -> list[str | Hazard]:
    """Check the catalog of the server and the schemas of its files; a failed connection is one more problem."""
    from discreet.engines.spark.engine import inspect_sources  # noqa: PLC0415 - an extra

    sources = engine_sources(policy, policy.sources())
    tables: dict[str, SparkTable | PolicyError] = {}
    for name, source in sources.items():
        try:
            check_sources({name: source})
        except PolicyError as error:
            tables[name] = error
    try:
        check_sources(sources if not tables else {})
        rest = {name: source for name, source in sources.items() if name not in tables}
        tables |= inspect_sources(rest, policy.data.connection, policy.data.timezone)
    except (PolicyError, EngineError) as error:
        return [*map(str, tables.values()), str(error)]
    return [finding for name in sources for finding in _check_spark_table(policy.tables[name], tables[name])]


def _check_spark_table(table: DeclaredTable, spark_table: SparkTable | PolicyError) -> Iterator[str | Hazard]:
    if isinstance(spark_table, PolicyError):
        yield str(spark_table)
        return
    yield from map(str, spark_table.misfits.values())
    natural_types = {name.lower(): spark_columns.default_type(native) for name, native in spark_table.stored_columns}
    for column in table.columns.values():
        kind = natural_types.get(column.name.lower())
        if column.name in spark_table.misfits or kind is None:
            continue
        if type_hazard := stored_type_hazard(table.name, column.name, kind.name.lower(), column.type):
            yield type_hazard


def spark_catalog(url: str, table_names: Sequence[str]) -> CatalogSketch:
    """Read the schemas of the named tables on a Spark server, or of its whole catalog; no row is read.

    A name may also be a path that the server reads, such as s3://bucket/visits/.
    """
    from discreet.engines.spark.engine import list_schemas  # noqa: PLC0415 - an extra

    try:
        parse_location(url, "the URL")
    except ValueError as error:
        raise PolicyError(str(error)) from None
    tables = tuple(
        TableSketch(
            _table_name(location),
            location,
            tuple(
                ColumnSketch(name, spark_columns.policy_type(native), native, nullable=True)  # as all columns of Spark
                for name, native in columns
            ),
        )
        for location, columns in list_schemas(url, table_names).items()
    )
    if not tables:
        raise PolicyError(
            f"{server_name(url)}: the catalog has no tables. Name a table, or Parquet files that the server reads."
        )
    return CatalogSketch("spark", url, tables)


def _table_name(location: str) -> str:
    """Name a table after the last part of its location, without quotes and patterns.

    >>> _table_name("lake.clinic.`visits 2026`"), _table_name("s3://bucket/visits/*.parquet")
    ('visits 2026', 'visits')
    """
    if "/" not in location:
        return location.replace("`", "").rpartition(".")[2]
    parts = [part for part in location.split("/") if part and "*" not in part]
    return parts[-1].partition(".")[0] or "data"
