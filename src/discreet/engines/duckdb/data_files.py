"""Tables in Parquet, CSV and DuckDB files.

A CSV file is in UTF-8 and has a header, commas (.csv) or tabs (.tsv) between fields, and `"` as the quote. Every column
is text; an empty field without quotes is NULL. Rows with too few fields, rows with invalid UTF-8 in a field that is
read, rows of more than 2 MB, and fields beyond those of the header are left out. A single thread reads each file:
several threads have to guess where a row begins, and a line break within quotes could turn part of one person's text
into a row of another person.
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
    """Open a table that is stored in files."""
    path = Path(os.path.abspath(location))  # noqa: PTH100 - Path.absolute keeps "..", which DuckDB does not
    if path.parent.is_file() or path.parent.suffix.lower() in _DATABASE_SUFFIXES:
        return _open_database_table(connection, table, path.parent, path.name)
    paths = _expand_paths(table, location, path)
    suffixes = {_suffix(path) for path in paths}
    if len(suffixes) != 1 or None in suffixes:
        raise source_error(
            table,
            f'source "{location}": unsupported format. Use {_SUPPORTED_FORMATS}, with one format per table.',
        )
    try:
        stamps = tuple(map(FileStamp.of_file, paths))
        parts = tuple(_csv_parts(table, paths) if suffixes <= set(_DELIMITERS) else _parquet_parts(connection, paths))
    except (duckdb.Error, OSError, EOFError, UnicodeError, csv.Error):
        # The engine's own message is left out: it may quote values of the file.
        raise source_error(
            table, f'source "{location}" cannot be read. Check that the files are complete and valid.'
        ) from None
    return OpenedSource(parts, scanned_files=stamps)


def text_literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def list_literal(texts: Iterable[str]) -> str:
    """Return a list of texts as an SQL literal."""
    return "[" + ", ".join(map(text_literal, texts)) + "]"


def _escaped_paths(paths: Iterable[str]) -> str:
    """Return a list of paths for DuckDB, which would take *, ? and [ in a name for a glob pattern."""
    return list_literal(map(glob.escape, paths))


def _suffix(path: str) -> str | None:
    return next((suffix for suffix in (*_PARQUET_SUFFIXES, *_DELIMITERS) if path.lower().endswith(suffix)), None)


def _expand_paths(table: str, location: str, path: Path) -> list[str]:
    """Expand a glob pattern here, so that the engine can be restricted to exactly these files."""
    if path.is_dir():
        raise source_error(table, f'source "{location}" is a folder. Name its files, for example "{location}/*.csv".')
    candidates = [str(path)] if path.exists() else sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - an absolute pattern
    paths = [candidate for candidate in candidates if Path(candidate).is_file()]
    if not paths:
        raise source_error(table, f'source "{location}": no such file. Correct the path, or put the file there.')
    if not all(os.access(file_path, os.R_OK) for file_path in paths):
        raise source_error(
            table, f'source "{location}": permission denied. Give this process permission to read the files.'
        )
    return paths


def _parquet_parts(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> Iterator[SourcePart]:
    """Group files by their schemas: DuckDB would cast files with another schema to the first file's types."""
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
    """Return a file's columns, without the fields nested in them."""
    columns, index = [], 1  # after the root
    while index < len(schema_rows):
        name, _, native, logical, converted = schema_rows[index]
        # DuckDB converts milliseconds to microseconds while it reads, and fails if one is too large.
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
        column_types_option = ", ".join(f"'c{index}': 'VARCHAR'" for index in range(len(names)))
        compression = "gzip" if suffix.endswith(".gz") else "none"
        options = (
            f"columns={{{column_types_option}}}, delim={text_literal(_DELIMITERS[suffix])}, "
            f"compression='{compression}', {_CSV_OPTIONS}"
        )
        csv_columns = tuple(SourceColumn(name, f"c{index}", "VARCHAR") for index, name in enumerate(names))
        yield SourcePart(f"read_csv({_escaped_paths(group)}, {options})", csv_columns, typed=False)


def _csv_header(table: str, path: str, delimiter: str) -> tuple[str, ...]:
    """Read only the first line of a CSV file."""
    with _open_text(path) as file:
        names = next(csv.reader(file, delimiter=delimiter), [])
    "".join(names).encode()  # UnicodeError if it is not UTF-8
    if not names:
        raise source_error(
            table, f'source: the file "{Path(path).name}" has no header. Add a first line with the column names.'
        )
    return tuple(names)


def _open_text(path: str) -> IO[str]:
    """Open a file so that invalid UTF-8 after the header does not matter."""
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")
    return Path(path).open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _open_database_table(connection: duckdb.DuckDBPyConnection, table: str, file: Path, name: str) -> OpenedSource:
    if not file.is_file():
        raise source_error(table, f'source: no such file "{file}". Correct the path, or put the file there.')
    stamp = FileStamp.of_file(str(file))
    try:
        alias = _attach_database(connection, file)
    except duckdb.Error:
        message = f'source: cannot open "{file}" as a DuckDB file. Check its format, and that no process writes to it.'
        raise source_error(table, message) from None
    table_names = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ?", [alias]
    ).fetchall()
    qualified_name = name if "." in name and ("main", name) not in table_names else f"main.{name}"
    schema_and_table = next((pair for pair in table_names if ".".join(pair).lower() == qualified_name.lower()), None)
    if schema_and_table is None:
        raise source_error(
            table, f'source: table {name} does not exist in "{file}", or is a view. Name a table, or create one.'
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
    """Attach a DuckDB file for reading, unless it is attached, and return its alias."""
    databases = connection.execute("SELECT path, database_name FROM duckdb_databases()").fetchall()
    for path, name in databases:
        if path and file.samefile(path):
            return str(name)
    alias = f".file{len(databases)}"  # names of tables do not start with a dot
    connection.execute(f"ATTACH {text_literal(str(file))} AS {quote_name(alias)} (READ_ONLY)")
    return alias
