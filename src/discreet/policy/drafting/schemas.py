"""Schemas of Parquet, CSV and DuckDB files and of PostgreSQL tables. No row is read.

Only the footer of a Parquet file, the header line of a CSV file and the catalog of a DuckDB file are read. Statistics
in a footer (minimum, maximum, counts) are ignored, because they are computed from the data.
"""

import csv
import glob
import os
import re
from collections.abc import Iterator, Sequence
from gzip import GzipFile
from io import RawIOBase
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.arrow_columns import type_name
from discreet.kernel.errors import PolicyError
from discreet.policy.drafting.sketch import ColumnSketch, TableSketch
from discreet.policy.problems import did_you_mean, shorten
from discreet.policy.validators import parse_location
from discreet.postgres.server import COLUMNS_QUERY, SCHEMES, TYPE_FAMILIES, connect, driver, server_description

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
_SEPARATOR_NAMES = {";": "a semicolon", "\t": "a tab", "|": "a vertical bar", ",": "a comma"}
_PARQUET_SUFFIXES = (".parquet", ".pq")
_DUCKDB_SUFFIXES = (".duckdb", ".ddb", ".db")
_MAX_HEADER_BYTES = 1_000_000
_WILDCARD = re.compile(r"[*?\[]")
_NUMBER_OR_DATE = re.compile(
    r"[+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]{1,4}[-/.][0-9]{1,2}[-/.].*"
)
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")  # a column may be named after one
_DUCKDB_TYPES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), "integer"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), "integer"),
    **dict.fromkeys(("DOUBLE", "FLOAT"), "real"),
    "DECIMAL": "decimal",
    "BOOLEAN": "boolean",
    **dict.fromkeys(("VARCHAR", "ENUM", "UUID"), "text"),
    "DATE": "date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "timestamp"),
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"), "timestamp"),
}


def read_schemas(location: str) -> list[TableSketch]:
    """Read the schemas of a file, a pattern of files, "file.duckdb" (all of its tables) or "file.duckdb/table"."""
    path = Path(location)
    if location.startswith("sc://"):
        raise PolicyError(
            f"{location}: a Spark catalog can only be read by the command line, as its first source: "
            f"discreet init {location}"
        )
    if path.suffix.lower() in _DUCKDB_SUFFIXES and path.is_file():
        return list(_duckdb_tables(path, None))
    if path.parent.suffix.lower() in _DUCKDB_SUFFIXES and path.parent.is_file():
        return list(_duckdb_tables(path.parent, path.name))
    files = [location] if path.exists() else sorted(glob.glob(location, recursive=True))  # noqa: PTH207 - may be absolute
    if not files:
        raise PolicyError(f"{location}: the file does not exist. Give the path of a Parquet, CSV or DuckDB file.")
    columns = _file_columns(Path(files[0]))
    notes = (f"columns of {Path(files[0]).name}, the first of {len(files)} files",) if len(files) > 1 else ()
    return [TableSketch(_table_name(location), location, columns, notes=notes)]


def _file_columns(file: Path) -> tuple[ColumnSketch, ...]:
    suffix = next((end for end in (*_PARQUET_SUFFIXES, *_DELIMITERS) if file.name.lower().endswith(end)), None)
    if suffix is None or not file.is_file():
        raise PolicyError(f"{file}: not a supported file. Use .parquet, .csv, .tsv, .csv.gz, .tsv.gz or .duckdb.")
    try:
        if suffix in _PARQUET_SUFFIXES:
            return tuple(_arrow_column(field) for field in pq.read_schema(file))
        names = _csv_header(file, _DELIMITERS[suffix])
        return tuple(ColumnSketch(name, "text", guessed=True, nullable=True) for name in names)
    except PolicyError:
        raise
    except (OSError, EOFError, ValueError, csv.Error):  # Arrow's are ValueErrors and may quote the file
        raise PolicyError(f"{file}: cannot be read as {suffix[1:]}. Check that the file is complete.") from None


def _arrow_column(field: pa.Field) -> ColumnSketch:
    kind = "text" if pa.types.is_null(field.type) else type_name(field.type)
    return ColumnSketch(field.name, kind, str(field.type), nullable=field.nullable)


def _csv_header(file: Path, delimiter: str) -> list[str]:
    """Return the names in the first line; refuse a file without a header, whose first line would be data."""
    is_compressed = file.name.lower().endswith(".gz")
    with GzipFile(file) if is_compressed else file.open("rb", buffering=0) as stream:
        text = _first_line(stream).decode("utf-8-sig")
    names = next(csv.reader([text], delimiter=delimiter), [])
    _check_separator(file, names, delimiter)
    if len(names) > 1 and not names[0].strip() and all(map(_is_name, names[1:])):
        raise PolicyError(
            f"{file}: column 1 has no name. It may be a pandas index: write the file with to_csv(…, index=False), or "
            "name the column."
        )
    if not names or not all(map(_is_name, names)):
        raise PolicyError(
            f"{file}: the first line does not look like a header, and a policy must not contain data. Add a header "
            "line to the file, or write the policy by hand."
        )
    return names


def _check_separator(file: Path, names: list[str], delimiter: str) -> None:
    """Refuse a header of one name that contains another separator, without quoting it: it may be data."""
    other = next((separator for separator in _SEPARATOR_NAMES if len(names) == 1 and separator in names[0]), None)
    if other is None:
        return
    suffix = next((end for end, sign in _DELIMITERS.items() if sign == other), None)
    decimal = ', decimal=","' if other == ";" else ""
    hint = f"Rename the file to end in {suffix}, or convert it" if suffix else "Convert it"
    raise PolicyError(
        f"{file}: the separator is {_SEPARATOR_NAMES[other]}, not {_SEPARATOR_NAMES[delimiter]}. Supported are UTF-8 "
        f"files with commas (.csv) or tabs (.tsv). {hint}, for example with pandas: "
        f'read_csv("{file.name}", sep={other!r}{decimal}).to_csv("{file.name.partition(".")[0]}_commas.csv", '
        "index=False)."
    )


def _is_name(name: str) -> bool:
    return bool(name.strip()) and not _looks_like_data(name)


def _first_line(stream: RawIOBase | GzipFile) -> bytes:
    """Read up to the first line break outside quotes, byte by byte: the next byte may be data."""
    line = bytearray()
    quoted = False
    while len(line) < _MAX_HEADER_BYTES and (byte := stream.read(1)):
        if byte in b"\r\n" and not quoted:
            return bytes(line)
        quoted ^= byte == b'"'
        line += byte
    if len(line) == _MAX_HEADER_BYTES:
        raise ValueError("the first line is too long")
    return bytes(line)


def _looks_like_data(name: str) -> bool:
    stripped = name.strip()
    return "@" in stripped or bool(_NUMBER_OR_DATE.fullmatch(stripped) and not _YEAR.fullmatch(stripped))


def _duckdb_tables(file: Path, table_name: str | None) -> Iterator[TableSketch]:
    try:
        connection = duckdb.connect(str(file), read_only=True, config={"enable_external_access": "false"})
    except duckdb.Error:
        raise PolicyError(
            f"{file}: cannot be opened as a DuckDB file. Check that it is one, and that no other process writes to it."
        ) from None
    with connection:
        rows = connection.execute(
            "SELECT c.schema_name, c.table_name, c.column_name, c.is_generated, c.data_type, c.is_nullable "
            "FROM duckdb_columns() c SEMI JOIN duckdb_tables() t USING (database_oid, schema_oid, table_oid) "
            "WHERE c.database_name = current_database() ORDER BY c.schema_name, c.table_name, c.column_index"
        ).fetchall()
        unique_rows = connection.execute(
            "SELECT schema_name, table_name, constraint_column_names[1] FROM duckdb_constraints() "
            "WHERE database_name = current_database() AND constraint_type IN ('PRIMARY KEY', 'UNIQUE') "
            "AND len(constraint_column_names) = 1"
        ).fetchall()
    unique = set(unique_rows)
    tables: dict[str, list[ColumnSketch]] = {}
    for schema, table, column, is_generated, native, nullable in rows:
        name = table if schema == "main" else f"{schema}.{table}"
        kind = None if is_generated or native.endswith("]") else _DUCKDB_TYPES.get(native.partition("(")[0])
        # The part in parentheses may contain values: an ENUM lists them.
        stored, is_unique = native.partition("(")[0].lower(), (schema, table, column) in unique
        tables.setdefault(name, []).append(ColumnSketch(column, kind, stored, unique=is_unique, nullable=nullable))
    if table_name is not None:
        tables = {name: columns for name, columns in tables.items() if name.lower() == table_name.lower()}
    if not tables:
        raise PolicyError(f"{file}: the table does not exist, or is a view. Name a table.")
    for name, columns in tables.items():
        yield TableSketch(name.replace(".", "_"), f"{file}{os.sep}{name}", tuple(columns))


def _table_name(location: str) -> str:
    """Name a table after its file or, for a pattern, after the fixed part of the pattern or its folder."""
    name = Path(location).name.partition(".")[0]
    if _WILDCARD.search(name):
        name = _WILDCARD.split(name)[0].rstrip("-_ ") or Path(location).parent.name
        name = _WILDCARD.split(name)[0]
    return name[:40] or "data"


_POSTGRES_TYPES = {
    "narrow": "integer",
    "local": "timestamp",
    "instant": "timestamp",
}  # other families are named as in a policy
# Tables, views and other relations with rows that this role may read.
_POSTGRES_TABLES_SQL = """
    SELECT c.oid::bigint, quote_ident(n.nspname) || '.' || quote_ident(c.relname)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
    AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
    AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    ORDER BY n.nspname <> 'public', n.nspname, c.relname
"""

# Columns with a PRIMARY KEY or UNIQUE constraint, or a unique index, of their own.
_POSTGRES_UNIQUE_SQL = """
    SELECT i.indrelid::bigint, a.attname::text FROM pg_index AS i
    JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = ANY(%s::oid[]) AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1 AND i.indpred IS NULL
"""


_POSTGRES_NOT_NULL_SQL = """
    SELECT attrelid::bigint, attname::text FROM pg_attribute WHERE attrelid = ANY(%s::oid[]) AND attnotnull
"""


def is_postgres_url(location: str) -> bool:
    """Whether a location is a PostgreSQL URL.

    >>> is_postgres_url("postgresql://reader@db.example/clinic"), is_postgres_url("visits.csv")
    (True, False)
    """
    return location.startswith(SCHEMES)


def read_postgres_schemas(url: str, table_names: Sequence[str] = ()) -> list[TableSketch]:
    """Read the schemas of the tables in a database: of the named ones, or of all."""
    try:
        parse_location(url, "the URL")
    except ValueError as error:
        raise PolicyError(str(error)) from None
    names, columns, unique, not_null = _read_postgres_catalog(url)
    tables: dict[str, list[ColumnSketch]] = {name: [] for name in names.values()}
    for table, column, _, _, native in columns:
        family = TYPE_FAMILIES.get(native)
        kind = _POSTGRES_TYPES.get(family, family) if family else None
        key = (table, column)
        tables[names[table]].append(
            ColumnSketch(column, kind, native, unique=key in unique, nullable=key not in not_null)
        )
    selected = [_find_postgres_table(name, list(tables), url) for name in table_names] or [
        name for name, table_columns in tables.items() if table_columns
    ]
    if not selected:
        raise PolicyError(
            f"{server_description(url)}: this role cannot read any table. Grant it SELECT on the tables to use."
        )
    return [TableSketch(_policy_table_name(name), name, tuple(tables[name])) for name in selected]


def _read_postgres_catalog(
    url: str,
) -> tuple[dict[int, str], list[tuple[Any, ...]], set[tuple[int, str]], set[tuple[int, str]]]:
    """Return the names of tables by oid, all of their columns, those that are unique, and those that are NOT NULL."""
    with connect(url, default_transaction_read_only="on", search_path="pg_catalog") as connection:
        try:
            names = dict(connection.execute(_POSTGRES_TABLES_SQL).fetchall())
            columns = connection.execute(
                COLUMNS_QUERY.format(tables="attrelid = ANY(%s::oid[])"), [list(names)]
            ).fetchall()
            unique, not_null = (
                {(table, column) for table, column in connection.execute(sql, [list(names)]).fetchall()}
                for sql in (_POSTGRES_UNIQUE_SQL, _POSTGRES_NOT_NULL_SQL)
            )
        except driver().Error as error:
            message = f"cannot read the server's catalog (SQLSTATE {error.sqlstate}). See the server log."
            raise PolicyError(f"{server_description(url)}: {message}") from None
    return names, columns, unique, not_null


def _policy_table_name(qualified_name: str) -> str:
    """Return the table's name in the policy: without quotes, dots and the schema "public"."""
    return qualified_name.removeprefix("public.").replace('"', "").replace(".", "_")


def _find_postgres_table(name: str, table_names: list[str], url: str) -> str:
    qualified_name = name if "." in name else f"public.{name}"
    match = next(
        (
            candidate
            for candidate in table_names
            if qualified_name.lower() in (candidate.lower(), candidate.replace('"', "").lower())
        ),
        None,
    )
    if match is None:
        near = did_you_mean(name, [table_name.removeprefix("public.") for table_name in table_names])
        message = f'table "{shorten(name)}" does not exist, or this role may not read it{near}'
        raise PolicyError(f"{server_description(url)}: {message}")
    return match
