"""A source becomes a view; one that can be read only once becomes a copy."""

import os
from dataclasses import dataclass

import duckdb

from discreet.engines.files import open_path
from discreet.engines.frames import open_frame, open_parquet
from discreet.engines.sources import Opened, Part, Source, Stamp, Types, matched, problem, select, types_of
from discreet.kernel.dialect import quoted
from discreet.kernel.errors import PolicyError


@dataclass(frozen=True)
class Made:
    """A table as questions see it, the files that each question reads, and those that the engine holds open."""

    types: Types
    read: tuple[Stamp, ...]
    held: tuple[Stamp, ...]


def make_table(connection: duckdb.DuckDBPyConnection, name: str, source: Source, zone: str) -> Made:
    """Make the view, or the copy, that shows exactly the declared columns in the declared types."""
    opened = _open(connection, name, source)
    types = types_of(name, source.columns, opened.parts)
    try:
        parts = [each for part in opened.parts for each in _readable(connection, name, types, part)]
        rows = " UNION ALL ".join(select(matched(name, types, part), part.rows, zone) for part in parts)
        frames = [part.frame for part in parts if part.frame]
        connection.execute(f"CREATE {'TABLE' if frames else 'VIEW'} {quoted(name)} AS {rows}")
        for frame in frames:
            connection.unregister(frame)
    except PolicyError:
        raise
    except Exception:  # noqa: BLE001 - of the engine or of Arrow; its words may quote what is in the file
        raise problem(name, "its source cannot be read to the end. Check that it is whole.") from None
    return Made(types, () if frames else opened.read, opened.held)


def _open(connection: duckdb.DuckDBPyConnection, name: str, source: Source) -> Opened:
    if isinstance(source.place, str | os.PathLike):
        return open_path(connection, name, os.fsdecode(source.place))
    return Opened((open_frame(connection, name, source.place, source.columns),))


def _readable(connection: duckdb.DuckDBPyConnection, name: str, types: Types, part: Part) -> list[Part]:
    """Return a part as it is, or, if DuckDB might stop at one of its columns, its files as Arrow reads them."""
    columns = [column for column, _ in matched(name, types, part).values()]
    if all(column.scanned for column in columns):
        return [part]
    return [open_parquet(connection, path, [column.name for column in columns]) for path in part.paths]
