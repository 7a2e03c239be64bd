"""Whether the sources of a policy have its columns, in types that fit: found out from their schemas alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb

from discreet.engines import casts
from discreet.engines.files import open_path
from discreet.engines.sources import Part, matched, types_of
from discreet.kernel.errors import PolicyError
from discreet.policy import Hazard, Policy, Table
from discreet.policy.columns import Declared
from discreet.policy.places import local_files
from discreet.policy.stored import stored_hazard
from discreet.sql import kernel_type


@dataclass(frozen=True)
class Seen:
    """What a question would stumble over, and what to ask about columns that are stored as another type."""

    problems: tuple[str, ...]
    hazards: tuple[Hazard, ...]


def look_at_sources(policy: Policy) -> Seen:
    """Compare a policy with the schemas of its sources; those that are not on this machine are left alone."""
    if policy.data.engine != "duckdb":
        return Seen((), ())
    with duckdb.connect(":memory:") as connection:
        found = [
            finding
            for name, place in policy.sources().items()
            if local_files(place)
            for finding in _of_table(connection, policy.tables[name], place)
        ]
    each = dict.fromkeys(found)  # a column that lacks in two files is told once
    return Seen(
        tuple(finding for finding in each if isinstance(finding, str)),
        tuple(finding for finding in each if isinstance(finding, Hazard)),
    )


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
    if part.typed and stored and (hazard := stored_hazard(table, column.name, stored.name.lower(), column.type)):
        yield hazard
