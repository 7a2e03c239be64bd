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

from discreet.engines.table_source import FileStamp, OpenedSource, SourceColumn, SourcePart, source_error
from discreet.kernel.sqlgen.dialect import quote_name

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
_PARQUET_SUFFIXES = (".parquet", ".pq")
_DATABASE_SUFFIXES = (".duckdb", ".ddb", ".db")
_SUPPORTED_FORMATS = "files that end in .parquet, .csv, .tsv, .csv.gz or .tsv.gz, or file.duckdb/table"
_CSV_OPTIONS = (
    "auto_detect=false, header=true, quote='\"', escape='\"', nullstr='', allow_quoted_nulls=false, "
    "strict_mode=false, ignore_errors=true, parallel=false, hive_partitioning=false"
)


def open_path(connection: duckdb.DuckDBPyConnection, table: str, location: str) -> OpenedSource:
    """Find a table that lies in files."""
    path = Path(os.path.abspath(location))  # noqa: PTH100 - Path.absolute keeps "..", which DuckDB does not
    if path.parent.is_file() or path.parent.suffix.lower() in _DATABASE_SUFFIXES:
        return _open_database_table(connection, table, path.parent, path.name)
    paths = _expand_paths(table, location, path)
    suffixes = {_suffix(path) for path in paths}
    if len(suffixes) != 1 or None in suffixes:
        raise source_error(
            table,
            f'source "{location}" cannot be read. Use {_SUPPORTED_FORMATS}, of one format for all files of a table.',
        )
    try:
        stamps = tuple(map(FileStamp.of_file, paths))
        parts = tuple(_csv_parts(table, paths) if suffixes <= set(_DELIMITERS) else _parquet_parts(connection, paths))
    except (duckdb.Error, OSError, EOFError, UnicodeError, csv.Error):
        # The engine's own words are left out: they may quote what is in the file.
        raise source_error(
            table, f'source "{location}" cannot be read in its format. Check that the files are whole.'
        ) from None
    return OpenedSource(parts, scanned_files=stamps)


def text_literal(text: str) -> str:
    """Write a text as a constant of SQL."""
    return "'" + text.replace("'", "''") + "'"


def list_literal(texts: Iterable[str]) -> str:
    """Write a list of texts as a constant of SQL."""
    return "[" + ", ".join(map(text_literal, texts)) + "]"


def _escaped_paths(paths: Iterable[str]) -> str:
    """Write paths for DuckDB, which takes *, ? and [ in a name for a pattern."""
    return list_literal(map(glob.escape, paths))


def _suffix(path: str) -> str | None:
    return next((suffix for suffix in (*_PARQUET_SUFFIXES, *_DELIMITERS) if path.lower().endswith(suffix)), None)


def _expand_paths(table: str, location: str, path: Path) -> list[str]:
    """Expand a pattern here, so that the engine can be told exactly which files it may read."""
    if path.is_dir():
        raise source_error(
            table, f'source "{location}" is a folder. Say which of its files are meant, such as "{location}/*.csv".'
        )
    candidates = [str(path)] if path.exists() else sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - a whole path
    paths = [each for each in candidates if Path(each).is_file()]
    if not paths:
        raise source_error(
            table, f'source "{location}": there is no such file. Correct the path, or bring the file there.'
        )
    if not all(os.access(each, os.R_OK) for each in paths):
        raise source_error(table, f'source "{location}" may not be read by this process. Give it permission.')
    return paths


def _parquet_parts(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> Iterator[SourcePart]:
    """Read the schemas, and gather files of equal ones: DuckDB would cast the others to the first one's types."""
    query = "SELECT file_name, name, num_children, duckdb_type, logical_type, converted_type FROM parquet_schema"
    schema_rows = connection.execute(f"{query}({_escaped_paths(paths)})").fetchall()
    schemas = {
        path: _top_level_columns([line[1:] for line in group])
        for path, group in groupby(schema_rows, lambda line: line[0])
    }
    paths_by_columns: dict[tuple[SourceColumn, ...], list[str]] = {}
    for path in paths:
        paths_by_columns.setdefault(schemas[path], []).append(path)
    for columns, group in paths_by_columns.items():
        options = "hive_partitioning=false, union_by_name=false, utf8_validation='replace', can_have_nan=true"
        yield SourcePart(f"read_parquet({_escaped_paths(group)}, {options})", columns, tuple(group))


def _top_level_columns(
    schema_rows: Sequence[tuple[str, int | None, str, str | None, str | None]],
) -> tuple[SourceColumn, ...]:
    """Return a file's columns, without the fields inside them."""
    columns, index = [], 1  # after the root
    while index < len(schema_rows):
        name, _, native, logical, converted = schema_rows[index]
        # DuckDB makes microseconds of milliseconds while it reads, and stops at one that is too large.
        in_milliseconds = "MILLIS=MilliSeconds" in (logical or "") or converted == "TIMESTAMP_MILLIS"
        columns.append(
            SourceColumn(
                name, quote_name(name), native, readable=not (in_milliseconds and native.startswith("TIMESTAMP"))
            )
        )
        fields_left = 1
        while fields_left:
            fields_left += (schema_rows[index][1] or 0) - 1
            index += 1
    return tuple(columns)


def _csv_parts(table: str, paths: Sequence[str]) -> Iterator[SourcePart]:
    paths_by_header: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for path in paths:
        suffix = _suffix(path) or ""
        paths_by_header.setdefault((suffix, _csv_header(table, path, _DELIMITERS[suffix])), []).append(path)
    for (suffix, names), group in paths_by_header.items():
        column_types_option = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
        compression = "gzip" if suffix.endswith(".gz") else "none"
        options = f"columns={{{column_types_option}}}, delim={text_literal(_DELIMITERS[suffix])}, compression='{compression}', {_CSV_OPTIONS}"
        csv_columns = tuple(SourceColumn(name, f"c{place}", "VARCHAR") for place, name in enumerate(names))
        yield SourcePart(f"read_csv({_escaped_paths(group)}, {options})", csv_columns, typed=False)


def _csv_header(table: str, path: str, delimiter: str) -> tuple[str, ...]:
    """Read the first line of a CSV file, and nothing else of it."""
    with _open_text(path) as file:
        names = next(csv.reader(file, delimiter=delimiter), [])
    "".join(names).encode()  # UnicodeError if it is not UTF-8
    if not names:
        raise source_error(
            table, f'source: the file "{Path(path).name}" has no header. Write the names of columns there.'
        )
    return tuple(names)


def _open_text(path: str) -> IO[str]:
    """Open a file so that broken bytes behind the header do not matter."""
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")
    return Path(path).open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _open_database_table(connection: duckdb.DuckDBPyConnection, table: str, file: Path, name: str) -> OpenedSource:
    if not file.is_file():
        raise source_error(table, f'source: there is no file "{file}". Correct the path, or bring the file there.')
    stamp = FileStamp.of_file(str(file))
    try:
        alias = _attach_database(connection, file)
    except duckdb.Error:
        message = (
            f'source: "{file}" cannot be opened as a DuckDB file. Check that it is one, and that nobody writes to it.'
        )
        raise source_error(table, message) from None
    table_names = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ?", [alias]
    ).fetchall()
    qualified_name = name if "." in name and ("main", name) not in table_names else f"main.{name}"
    schema_and_table = next((pair for pair in table_names if ".".join(pair).lower() == qualified_name.lower()), None)
    if schema_and_table is None:
        raise source_error(
            table, f'source: "{file}" has no table {name}, or it is a view. Name a table, or make one of it.'
        )
    column_rows = connection.execute(
        "SELECT column_name, CASE WHEN is_generated THEN 'a formula' ELSE data_type END FROM duckdb_columns() "
        "WHERE database_name = ? AND schema_name = ? AND table_name = ? ORDER BY column_index",
        [alias, *schema_and_table],
    ).fetchall()
    columns = tuple(SourceColumn(column, quote_name(column), native) for column, native in column_rows)
    return OpenedSource(
        (SourcePart(".".join(map(quote_name, (alias, *schema_and_table))), columns),), attached_files=(stamp,)
    )


def _attach_database(connection: duckdb.DuckDBPyConnection, file: Path) -> str:
    """Attach a DuckDB file for reading, unless it is, and return the name that it has here."""
    databases = connection.execute("SELECT path, database_name FROM duckdb_databases()").fetchall()
    for path, name in databases:
        if path and file.samefile(path):
            return str(name)
    alias = f".file{len(databases)}"  # no table's name begins with a dot
    connection.execute(f"ATTACH {text_literal(str(file))} AS {quote_name(alias)} (READ_ONLY)")
    return alias
