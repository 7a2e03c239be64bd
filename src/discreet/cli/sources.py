"""Whether the sources of a policy have its columns, in types that fit: found out from their schemas alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb

from discreet.engines import casts, postgres_columns, spark_columns
from discreet.engines.files import open_path
from discreet.engines.postgres import HIDDEN, looking
from discreet.engines.postgres_catalog import find_table
from discreet.engines.postgres_role import powers, reader_sql
from discreet.engines.postgres_session import Session, Snapshot
from discreet.engines.sources import EngineError, Part, Source, matched, types_of
from discreet.engines.spark_connecting import shown
from discreet.engines.spark_tables import Table as SparkTable
from discreet.engines.spark_tables import check_sources
from discreet.kernel.errors import PolicyError
from discreet.opening import server_of, sources_of
from discreet.policy import Hazard, Policy, Table
from discreet.policy.columns import Declared
from discreet.policy.drafting.sketch import Catalog, ColumnSketch, TableSketch
from discreet.policy.places import local_files
from discreet.policy.rules import hazard
from discreet.policy.stored import stored_hazard
from discreet.policy.values import place
from discreet.sql import kernel_type


@dataclass(frozen=True)
class Seen:
    """What a question would stumble over, and what to ask about columns that are stored as another type."""

    problems: tuple[str, ...]
    hazards: tuple[Hazard, ...]


def look_at_sources(policy: Policy) -> Seen:
    """Compare a policy with the schemas of its sources; of DuckDB's, with those of files on this machine."""
    looks = {"duckdb": _in_files, "postgresql": _in_postgres, "spark": _in_spark}
    found = dict.fromkeys(looks[policy.data.engine](policy))
    return Seen(  # each once: a column may lack in two files
        tuple(finding for finding in found if isinstance(finding, str)),
        tuple(finding for finding in found if isinstance(finding, Hazard)),
    )


def _in_files(policy: Policy) -> list[str | Hazard]:
    with duckdb.connect(":memory:") as connection:
        return [
            finding
            for name, place in policy.sources().items()
            if local_files(place)
            for finding in _of_table(connection, policy.tables[name], place)
        ]


def _of_table(connection: duckdb.DuckDBPyConnection, table: Table, place: str) -> Iterator[str | Hazard]:
    types = {column.name: kernel_type(column.type) for column in table.columns.values()}
    try:
        parts = open_path(connection, table.name, place).parts
        types_of(table.name, types, parts)
    except PolicyError as error:
        yield str(error)
        return
    for part in parts:
        for column in table.columns.values():
            yield from _of_column(table.name, column, part)


def _of_column(table: str, column: Declared, part: Part) -> Iterator[str | Hazard]:
    try:
        found, _ = matched(table, {column.name: kernel_type(column.type)}, part)[column.name]
    except PolicyError as error:
        yield str(error)
        return
    stored = casts.natural(found.native)
    if part.typed and stored and (found_hazard := stored_hazard(table, column.name, stored.name.lower(), column.type)):
        yield found_hazard


def _in_postgres(policy: Policy) -> list[str | Hazard]:
    """Look at the catalog of the database; that it cannot be reached is a problem like others."""
    try:
        session = Session(server_of(policy), {"timezone": policy.data.timezone})
    except PolicyError as error:
        return [str(error)]
    try:
        with looking(session, policy.data.timezone) as snapshot:
            return list(_of_database(policy, snapshot, session.schemas))
    except (PolicyError, EngineError) as error:
        return [str(error)]
    finally:
        session.close()


def _of_database(policy: Policy, snapshot: Snapshot, schemas: list[str]) -> Iterator[str | Hazard]:
    tables = []
    for table in policy.tables.values():
        for column in table.columns.values() or [None]:
            types = {column.name: kernel_type(column.type)} if column else {}
            try:
                found = find_table(snapshot, table.name, Source(table.source, types), schemas)
            except PolicyError as error:
                yield str(error)
                continue
            tables.append(found)
            if found.filtered:
                yield hazard("D027", table.name, hidden=HIDDEN.format(found.place))
            stored = postgres_columns.natural(found.native[column.name]) if column else None
            if column and stored and (lost := stored_hazard(table.name, column.name, stored.name.lower(), column.type)):
                yield lost
    different = list({table.number: table for table in tables}.values())
    if can := powers(snapshot, different):
        yield hazard("D026", section="[data]", can="; ".join(can), sql=reader_sql(different))


def _in_spark(policy: Policy) -> list[str | Hazard]:
    """Look at the catalog of the server, and at the schemas of files there; that it does not answer is a problem."""
    from discreet.engines.spark import look_at  # noqa: PLC0415 - an extra

    sources = sources_of(policy, policy.sources())
    found: dict[str, SparkTable | PolicyError] = {}
    for name, source in sources.items():
        try:
            check_sources({name: source})
        except PolicyError as error:
            found[name] = error
    try:
        check_sources(sources if not found else {})
        rest = {name: source for name, source in sources.items() if name not in found}
        found |= look_at(rest, policy.data.connection, policy.data.timezone)
    except (PolicyError, EngineError) as error:
        return [*map(str, found.values()), str(error)]
    return [finding for name in sources for finding in _of_spark(policy.tables[name], found[name])]


def _of_spark(table: Table, seen: SparkTable | PolicyError) -> Iterator[str | Hazard]:
    if isinstance(seen, PolicyError):
        yield str(seen)
        return
    yield from map(str, seen.misfits.values())
    stored = {name.lower(): spark_columns.natural(native) for name, native in seen.stored}
    for column in table.columns.values():
        kind = stored.get(column.name.lower())
        if column.name in seen.misfits or kind is None:
            continue
        if found := stored_hazard(table.name, column.name, kind.name.lower(), column.type):
            yield found


def spark_catalog(url: str, wanted: Sequence[str]) -> Catalog:
    """Read the schemas of tables on a Spark server, of all in its catalog or of those that are named; no row is read.

    Files that it reads can be named too: s3://bucket/visits/.
    """
    from discreet.engines.spark import list_schemas  # noqa: PLC0415 - an extra

    try:
        place(url, "the URL")
    except ValueError as error:
        raise PolicyError(str(error)) from None
    tables = tuple(
        TableSketch(
            _table_name(where),
            where,
            tuple(ColumnSketch(name, spark_columns.declared(native), native) for name, native in columns),
        )
        for where, columns in list_schemas(url, wanted).items()
    )
    if not tables:
        raise PolicyError(f"{shown(url)}: its catalog has no table. Name one, or Parquet files that it reads.")
    return Catalog("spark", url, tables)


def _table_name(where: str) -> str:
    """Call a table after the last part of its place, without what SQL and patterns need.

    >>> _table_name("lake.clinic.`visits 2026`"), _table_name("s3://bucket/visits/*.parquet")
    ('visits 2026', 'visits')
    """
    if "/" not in where:
        return where.replace("`", "").rpartition(".")[2]
    parts = [part for part in where.split("/") if part and "*" not in part]
    return parts[-1].partition(".")[0] or "data"
