"""The schemas of files: what their columns are called and how they are stored. No row is read.

Of a Parquet file the footer is read, of a CSV file the header line and not one byte more, of a DuckDB file its
catalog. Statistics that a footer may hold (least, greatest and number of values) are not looked at: they are data.
"""

import csv
import glob
import os
import re
from collections.abc import Iterator
from gzip import GzipFile
from io import RawIOBase
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.kernel.errors import PolicyError
from discreet.policy.drafting.sketch import ColumnSketch, TableSketch

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
_SEPARATORS = {";": "a semicolon", "\t": "a tab", "|": "a bar", ",": "a comma"}
_PARQUET = (".parquet", ".pq")
_DATABASES = (".duckdb", ".ddb", ".db")
_LONGEST_HEADER = 1_000_000  # bytes
_WILD = re.compile(r"[*?\[]")
_FIGURE = re.compile(r"[+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]{1,4}[-/.][0-9]{1,2}[-/.].*")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")  # a column may be called after one
_NATIVE = {
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


def read_schemas(place: str) -> list[TableSketch]:
    """Read what is known of a path, a pattern, "file.duckdb" (all of its tables) or "file.duckdb/table"."""
    path = Path(place)
    if place.startswith("sc://"):
        raise PolicyError(f"{place}: Spark's catalog is read by the command: discreet init {place}, before all files.")
    if path.suffix.lower() in _DATABASES and path.is_file():
        return list(_database(path, None))
    if path.parent.suffix.lower() in _DATABASES and path.parent.is_file():
        return list(_database(path.parent, path.name))
    files = [place] if path.exists() else sorted(glob.glob(place, recursive=True))  # noqa: PTH207 - may be absolute
    if not files:
        raise PolicyError(f"{place}: there is no such file. Give the path of a Parquet, CSV or DuckDB file.")
    columns = _columns(Path(files[0]))
    notes = (f"columns of {Path(files[0]).name}, the first of {len(files)} files",) if len(files) > 1 else ()
    return [TableSketch(_table_name(place), place, columns, notes=notes)]


def _columns(file: Path) -> tuple[ColumnSketch, ...]:
    end = next((end for end in (*_PARQUET, *_DELIMITERS) if file.name.lower().endswith(end)), None)
    if end is None or not file.is_file():
        raise PolicyError(
            f"{file}: not a file that can be read. Use .parquet, .csv, .tsv, .csv.gz, .tsv.gz or .duckdb."
        )
    try:
        if end in _PARQUET:
            return tuple(_arrow_column(field) for field in pq.read_schema(file))
        return tuple(ColumnSketch(name, "text", guessed=True) for name in _header(file, _DELIMITERS[end]))
    except PolicyError:
        raise
    except (OSError, EOFError, ValueError, csv.Error):  # Arrow's errors are ValueErrors; their words may quote the file
        raise PolicyError(f"{file}: cannot be read as {end[1:]}. Check that the file is whole.") from None


def _arrow_column(field: pa.Field) -> ColumnSketch:
    return ColumnSketch(field.name, _arrow_type(field.type), str(field.type))


def _arrow_type(kind: pa.DataType) -> str | None:
    if pa.types.is_dictionary(kind):
        return _arrow_type(kind.value_type)
    tests = (
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_integer, "integer"),
        (pa.types.is_floating, "real"),
        (pa.types.is_decimal, "decimal"),
        (pa.types.is_date, "date"),
        (pa.types.is_timestamp, "timestamp"),
        (pa.types.is_string, "text"),
        (pa.types.is_large_string, "text"),
        (pa.types.is_null, "text"),
    )
    return next((name for test, name in tests if test(kind)), None)


def _header(file: Path, delimiter: str) -> list[str]:
    """Return the names in the first line; a file without a header is refused, for its first line is a person."""
    packed = file.name.lower().endswith(".gz")
    with GzipFile(file) if packed else file.open("rb", buffering=0) as stream:
        text = _first_line(stream).decode("utf-8-sig")
    names = next(csv.reader([text], delimiter=delimiter), [])
    _check_separator(file, names, delimiter)
    if len(names) > 1 and not names[0].strip() and all(map(_is_name, names[1:])):
        raise PolicyError(
            f"{file}: column 1 has no name. pandas writes its index there: write the file anew with "
            "to_csv(…, index=False), or name the column."
        )
    if not names or not all(map(_is_name, names)):
        raise PolicyError(
            f"{file}: the first line does not look like names of columns, and data must not get into a policy. "
            "Add a header line to the file, or write the policy by hand."
        )
    return names


def _check_separator(file: Path, names: list[str], delimiter: str) -> None:
    """Refuse a header that is one name with other separators in it; it is not quoted, for it may be somebody's row."""
    other = next((sign for sign in _SEPARATORS if len(names) == 1 and sign in names[0]), None)
    if other is None:
        return
    ending = next((end for end, sign in _DELIMITERS.items() if sign == other), None)
    way = f"Let its name end in {ending}, or convert it" if ending else "Convert it"
    raise PolicyError(
        f"{file}: the separator is {_SEPARATORS[other]}, not {_SEPARATORS[delimiter]}. Only files in UTF-8 with commas "
        f"(.csv) or tabs (.tsv) are read. {way}, such as with pandas: "
        f'read_csv("{file.name}", sep={other!r}).to_csv("{file.name.partition(".")[0]}_commas.csv", index=False).'
    )


def _is_name(name: str) -> bool:
    return bool(name.strip()) and not _looks_like_data(name)


def _first_line(stream: RawIOBase | GzipFile) -> bytes:
    """Read up to the first line break outside quotes, byte by byte: the next byte may be somebody's."""
    line = bytearray()
    quoted = False
    while len(line) < _LONGEST_HEADER and (byte := stream.read(1)):
        if byte in b"\r\n" and not quoted:
            return bytes(line)
        quoted ^= byte == b'"'
        line += byte
    if len(line) == _LONGEST_HEADER:
        raise ValueError("the first line is too long")
    return bytes(line)


def _looks_like_data(name: str) -> bool:
    plain = name.strip()
    return "@" in plain or bool(_FIGURE.fullmatch(plain) and not _YEAR.fullmatch(plain))


def _database(file: Path, wanted: str | None) -> Iterator[TableSketch]:
    try:
        connection = duckdb.connect(str(file), read_only=True, config={"enable_external_access": "false"})
    except duckdb.Error:
        raise PolicyError(
            f"{file}: cannot be opened as a DuckDB file. Check that it is one, and that nobody writes to it."
        ) from None
    with connection:
        rows = connection.execute(
            "SELECT c.schema_name, c.table_name, c.column_name, c.is_generated, c.data_type FROM duckdb_columns() c "
            "SEMI JOIN duckdb_tables() t USING (database_oid, schema_oid, table_oid) "
            "WHERE c.database_name = current_database() ORDER BY c.schema_name, c.table_name, c.column_index"
        ).fetchall()
        alone = connection.execute(
            "SELECT schema_name, table_name, constraint_column_names[1] FROM duckdb_constraints() "
            "WHERE database_name = current_database() AND constraint_type IN ('PRIMARY KEY', 'UNIQUE') "
            "AND len(constraint_column_names) = 1"
        ).fetchall()
    unique = set(alone)
    tables: dict[str, list[ColumnSketch]] = {}
    for schema, table, column, formula, native in rows:
        name = table if schema == "main" else f"{schema}.{table}"
        kind = None if formula or native.endswith("]") else _NATIVE.get(native.partition("(")[0])
        # What stands in brackets may be values: an ENUM lists them.
        stored, different = native.partition("(")[0].lower(), (schema, table, column) in unique
        tables.setdefault(name, []).append(ColumnSketch(column, kind, stored, unique=different))
    if wanted is not None:
        tables = {name: columns for name, columns in tables.items() if name.lower() == wanted.lower()}
    if not tables:
        raise PolicyError(f"{file}: there is no such table in it, or it is a view. Name a table.")
    for name, columns in tables.items():
        yield TableSketch(name.replace(".", "_"), f"{file}{os.sep}{name}", tuple(columns))


def _table_name(place: str) -> str:
    """Call a table after its file, or, if that is a pattern, after what is fixed in it or its folder."""
    name = Path(place).name.partition(".")[0]
    if _WILD.search(name):
        name = _WILD.split(name)[0].rstrip("-_ ") or Path(place).parent.name
        name = _WILD.split(name)[0]
    return name[:40] or "data"
