"""Tables in files: Parquet, CSV, and tables of a DuckDB file.

CSV has a header, commas (.csv) or tabs (.tsv) between fields, `"` around those that need it, and is written in UTF-8.
Every column is text; an empty field without quotes is NULL. Left out are rows with too few fields, rows with broken
bytes in a field that is read, rows of more than 2 MB, and fields beyond the header's. One thread reads a file: several
have to guess where a row begins, and a line break between quotes would turn part of one person's text into a row of
another person.
"""

import csv
import glob
import gzip
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO

import duckdb

from discreet.engines.sources import Found, Opened, Part, Stamp, problem
from discreet.kernel.dialect import quoted

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
_PARQUET = (".parquet", ".pq")
_DATABASES = (".duckdb", ".ddb", ".db")
_KNOWN = "files that end in .parquet, .csv, .tsv, .csv.gz or .tsv.gz, or file.duckdb/table"
_CSV = (
    "auto_detect=false, header=true, quote='\"', escape='\"', nullstr='', allow_quoted_nulls=false, "
    "strict_mode=false, ignore_errors=true, parallel=false, hive_partitioning=false"
)


def open_path(connection: duckdb.DuckDBPyConnection, table: str, place: str) -> Opened:
    """Find a table that lies in files."""
    path = Path(os.path.abspath(place))  # noqa: PTH100 - Path.absolute keeps "..", which DuckDB does not
    if path.parent.is_file() or path.parent.suffix.lower() in _DATABASES:
        return _database(connection, table, path.parent, path.name)
    paths = _expanded(table, place, path)
    ends = {_ending(path) for path in paths}
    if len(ends) != 1 or None in ends:
        raise problem(table, f'source "{place}" cannot be read. Use {_KNOWN}, of one format for all files of a table.')
    try:
        stamps = tuple(map(Stamp.of, paths))
        parts = tuple(_csv(table, paths) if ends <= set(_DELIMITERS) else _parquet(connection, paths))
    except (duckdb.Error, OSError, EOFError, UnicodeError, csv.Error):
        # The engine's own words are left out: they may quote what is in the file.
        raise problem(
            table, f'source "{place}" cannot be read in its format. Check that the files are whole.'
        ) from None
    return Opened(parts, read=stamps)


def in_quotes(text: str) -> str:
    """Write a text as a constant of SQL."""
    return "'" + text.replace("'", "''") + "'"


def listed(paths: Iterable[str]) -> str:
    """Write a list of texts as a constant of SQL."""
    return "[" + ", ".join(map(in_quotes, paths)) + "]"


def _pattern(paths: Iterable[str]) -> str:
    """Write paths for DuckDB, which takes *, ? and [ in a name for a pattern."""
    return listed(map(glob.escape, paths))


def _ending(path: str) -> str | None:
    return next((end for end in (*_PARQUET, *_DELIMITERS) if path.lower().endswith(end)), None)


def _expanded(table: str, place: str, path: Path) -> list[str]:
    """Expand a pattern here, so that the engine can be told exactly which files it may read."""
    if path.is_dir():
        raise problem(
            table, f'source "{place}" is a folder. Say which of its files are meant, such as "{place}/*.csv".'
        )
    found = [str(path)] if path.exists() else sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - a whole path
    paths = [each for each in found if Path(each).is_file()]
    if not paths:
        raise problem(table, f'source "{place}": there is no such file. Correct the path, or bring the file there.')
    if not all(os.access(each, os.R_OK) for each in paths):
        raise problem(table, f'source "{place}" may not be read by this process. Give it permission.')
    return paths


def _parquet(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> Iterator[Part]:
    """Read the schemas, and gather files of equal ones: DuckDB would cast the others to the first one's types."""
    query = "SELECT file_name, name, num_children, duckdb_type, logical_type, converted_type FROM parquet_schema"
    lines = connection.execute(f"{query}({_pattern(paths)})").fetchall()
    schemas = {path: _top_level([line[1:] for line in group]) for path, group in groupby(lines, lambda line: line[0])}
    same: dict[tuple[Found, ...], list[str]] = {}
    for path in paths:
        same.setdefault(schemas[path], []).append(path)
    for columns, group in same.items():
        options = "hive_partitioning=false, union_by_name=false, utf8_validation='replace', can_have_nan=true"
        yield Part(f"read_parquet({_pattern(group)}, {options})", columns, tuple(group))


def _top_level(lines: Sequence[tuple[str, int | None, str, str | None, str | None]]) -> tuple[Found, ...]:
    """Return a file's columns, without the fields inside them."""
    found, place = [], 1  # after the root
    while place < len(lines):
        name, _, native, logical, converted = lines[place]
        # DuckDB makes microseconds of milliseconds while it reads, and stops at one that is too large.
        coarse = "MILLIS=MilliSeconds" in (logical or "") or converted == "TIMESTAMP_MILLIS"
        found.append(Found(name, quoted(name), native, scanned=not (coarse and native.startswith("TIMESTAMP"))))
        inside = 1
        while inside:
            inside += (lines[place][1] or 0) - 1
            place += 1
    return tuple(found)


def _csv(table: str, paths: Sequence[str]) -> Iterator[Part]:
    same: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for path in paths:
        end = _ending(path) or ""
        same.setdefault((end, _header(table, path, _DELIMITERS[end])), []).append(path)
    for (end, names), group in same.items():
        columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
        packed = "gzip" if end.endswith(".gz") else "none"
        options = f"columns={{{columns}}}, delim={in_quotes(_DELIMITERS[end])}, compression='{packed}', {_CSV}"
        found = tuple(Found(name, f"c{place}", "VARCHAR") for place, name in enumerate(names))
        yield Part(f"read_csv({_pattern(group)}, {options})", found, typed=False)


def _header(table: str, path: str, delimiter: str) -> tuple[str, ...]:
    """Read the first line of a CSV file, and nothing else of it."""
    with _text(path) as file:
        names = next(csv.reader(file, delimiter=delimiter), [])
    "".join(names).encode()  # UnicodeError if it is not UTF-8
    if not names:
        raise problem(table, f'source: the file "{Path(path).name}" has no header. Write the names of columns there.')
    return tuple(names)


def _text(path: str) -> IO[str]:
    """Open a file so that broken bytes behind the header do not matter."""
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")
    return Path(path).open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _database(connection: duckdb.DuckDBPyConnection, table: str, file: Path, name: str) -> Opened:
    if not file.is_file():
        raise problem(table, f'source: there is no file "{file}". Correct the path, or bring the file there.')
    held = Stamp.of(str(file))
    try:
        alias = _attached(connection, file)
    except duckdb.Error:
        words = (
            f'source: "{file}" cannot be opened as a DuckDB file. Check that it is one, and that nobody writes to it.'
        )
        raise problem(table, words) from None
    known = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ?", [alias]
    ).fetchall()
    whole = name if "." in name and ("main", name) not in known else f"main.{name}"
    found = next((pair for pair in known if ".".join(pair).lower() == whole.lower()), None)
    if found is None:
        raise problem(table, f'source: "{file}" has no table {name}, or it is a view. Name a table, or make one of it.')
    lines = connection.execute(
        "SELECT column_name, CASE WHEN is_generated THEN 'a formula' ELSE data_type END FROM duckdb_columns() "
        "WHERE database_name = ? AND schema_name = ? AND table_name = ? ORDER BY column_index",
        [alias, *found],
    ).fetchall()
    columns = tuple(Found(column, quoted(column), native) for column, native in lines)
    return Opened((Part(".".join(map(quoted, (alias, *found))), columns),), held=(held,))


def _attached(connection: duckdb.DuckDBPyConnection, file: Path) -> str:
    """Attach a DuckDB file for reading, unless it is, and return the name that it has here."""
    known = connection.execute("SELECT path, database_name FROM duckdb_databases()").fetchall()
    for path, name in known:
        if path and file.samefile(path):
            return str(name)
    alias = f".file{len(known)}"  # no table's name begins with a dot
    connection.execute(f"ATTACH {in_quotes(str(file))} AS {quoted(alias)} (READ_ONLY)")
    return alias
