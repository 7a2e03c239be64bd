"""Whether the sources of a policy have its columns, in types that fit: found out from their schemas alone."""

from collections.abc import Iterator
from typing import Any

import duckdb

from discreet.engines.files import open_path
from discreet.engines.sources import Part, matched, types_of
from discreet.kernel.errors import PolicyError
from discreet.policy import Policy, Table
from discreet.policy.places import local_files
from discreet.sql import kernel_type


def source_problems(policy: Policy) -> list[str]:
    """Return what a question would stumble over; sources that are not on this machine are left alone."""
    if policy.data.engine != "duckdb":
        return []
    with duckdb.connect(":memory:") as connection:
        found = [
            problem
            for name, place in policy.sources().items()
            if local_files(place)
            for problem in _of_table(connection, policy.tables[name], place)
        ]
    return list(dict.fromkeys(found))  # a column that lacks in two files is told once


def _of_table(connection: duckdb.DuckDBPyConnection, table: Table, place: str) -> Iterator[str]:
    types = {column.name: kernel_type(column.type) for column in table.columns.values()}
    try:
        parts = open_path(connection, table.name, place).parts
        types_of(table.name, types, parts)
    except PolicyError as error:
        yield str(error)
        return
    for part in parts:
        yield from _of_part(table.name, types, part)


def _of_part(table: str, types: dict[str, Any], part: Part) -> Iterator[str]:
    for name, kind in types.items():
        try:
            matched(table, {name: kind}, part)
        except PolicyError as error:
            yield str(error)
