"""Sources on Spark: tables and views of its catalog, and Parquet on storage that the server reads.

    visits, lake.clinic.visits                             a table or a view, by its name in Spark
    /data/visits/*.parquet, s3://bucket/visits/, hdfs://…  files, a glob pattern, or a folder, as seen by the server

Each becomes a session-local view of exactly the declared columns. Of files, only the schemas are read, and the set of
files is fixed then. Folders named like year=2026 are text columns; a source is refused if Spark would replace a stored
column by such a folder's name, or leave out files next to such folders.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from discreet.engines.column_usage import ColumnUsage
from discreet.engines.spark import casts
from discreet.engines.spark.casts import backtick_quote
from discreet.engines.spark.connection import is_connection_lost
from discreet.engines.table_source import (
    ColumnTypes,
    EngineError,
    SourceChanged,
    SourceColumn,
    SourcePart,
    TableSource,
    column_types,
    match_columns,
    source_error,
)
from discreet.kernel.errors import PolicyError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

_FILE_LOCATION = re.compile(r"/|\.(parquet|pq)$", re.IGNORECASE)
_UNSUPPORTED_FILES = re.compile(r"\.(csv|tsv|txt|json|jsonl|orc|avro|xml|xlsx|duckdb|db)(\.\w+)?/?$", re.IGNORECASE)
_ZONE_NAME = re.compile(r"[A-Za-z0-9_+/-]+")
_ERROR_MESSAGES = {  # by Spark's error condition; its own messages may quote values of a file
    "PATH_NOT_FOUND": 'source "{location}": no such file on the storage that Spark reads. Correct the path.',
    "TABLE_OR_VIEW_NOT_FOUND": 'table "{location}" does not exist in Spark. Correct its name, with its schema.',
    "PARSE_SYNTAX_ERROR": 'source "{location}" is not a name. Write schema.table, with backticks if needed.',
    "COLUMN_ALREADY_EXISTS": "the source has columns whose names differ only in case. Rename one of them.",
    "CANNOT_MERGE": "its files store a column with different types. Rewrite them with one type.",
    "PARQUET_TYPE_ILLEGAL": "a column has a type that Spark does not support. Store it with another type.",
    "EXCEEDS_MAX_PRECISION": "a column has more than 38 digits, which Spark does not support. Store it with fewer.",
    "UNSUPPORTED_TIME_TYPE": "a column has times of day, which Spark does not support. Store texts or numbers.",
    "UNABLE_TO_INFER_SCHEMA": 'there is no Parquet file directly in "{location}". Name the files by a glob pattern.',
    "CONFLICTING_PARTITION_COLUMN_NAMES": "its folders are named after different columns. Name them alike.",
    "PERMISSION_DENIED": 'permission denied for "{location}". Give Spark permission to read it.',
}
_QUOTED_PATH = re.compile(r"\s*parquet\s*\.\s*`(.*)`\s*", re.IGNORECASE)
_RECURSIVE = {"recursiveFileLookup": "true"}  # ignores partition folders
_TABLE_CHANGED = "a table changed after the query was charged"
_FILE_CHANGED = "a data file was changed, added or removed. Reopen the engine."
SparkSchema = tuple[tuple[str, str], ...]  # column names and Spark's types
_TYPE_CODES = {"bigint": "i", "double": "r", "boolean": "b", "string": "t", "date": "d", "timestamp_ntz": "s"}


@dataclass(frozen=True)
class SparkSourceTable:
    """A source that Spark has: the name of its view, its location, and its columns in kernel types.

    `stored_columns` are its own columns with Spark's types; `misfits` are the declared columns that are missing or not
    as declared, each with its error: they read as NULL, and questions that use them are refused.

    >>> SparkSourceTable("t0", "s3://bucket/visits/", {}).in_files
    True
    >>> SparkSourceTable("t1", "lake.clinic.visits", {}).in_files
    False
    """

    view: str
    location: str
    types: ColumnTypes
    stored_columns: SparkSchema = ()
    misfits: Mapping[str, PolicyError] = field(default_factory=dict)

    @property
    def in_files(self) -> bool:
        """Whether the location is a path, not a table of the catalog."""
        return _FILE_LOCATION.search(self.location) is not None


def check_sources(sources: Mapping[str, TableSource]) -> None:
    """Check sources without a server: names that differ only in case, and unsupported locations.

    >>> check_sources({"visits": TableSource("lake.clinic.visits")})
    """
    for table, source in sources.items():
        if sum(table.lower() == other.lower() for other in sources) > 1:
            raise source_error(table, "its name differs from another table's only in case. Rename it.")
        for column in source.columns:
            if sum(column.lower() == other.lower() for other in source.columns) > 1:
                raise source_error(table, "its name differs from another column's only in case. Rename it.", column)
        if not isinstance(source.location, str | os.PathLike):
            raise source_error(table, 'frames are not supported on Spark. Use engine = "duckdb" for frames.')
        if refused := _QUOTED_PATH.fullmatch(os.fsdecode(source.location)):
            raise source_error(table, f'source: write only the path, "{refused[1]}".')
        if refused := _UNSUPPORTED_FILES.search(os.fsdecode(source.location)):
            raise source_error(
                table,
                f"{refused[0].rstrip('/')} files are not supported on Spark: types would be inferred, and a line break "
                "within a text could turn it into another person's row. Use Parquet or a table.",
            )


class SparkViews:
    """The views of a data set in its current session, and a fingerprint of its files when they were first opened."""

    def __init__(self, sources: Mapping[str, TableSource], zone: str) -> None:
        self._sources, self._zone, self._file_state = dict(sources), zone, ""
        self.tables: dict[str, SparkSourceTable] = {}

    def create(self, spark: "SparkSession") -> None:
        """Create the views; PolicyError if a file does not match its declaration or has changed."""
        check_zone(spark, self._zone)
        tables = {name: self._create_or_placeholder(spark, name) for name in self._sources}
        state = _file_fingerprint(spark, tables.values())
        if self.tables and state != self._file_state:
            raise PolicyError(_FILE_CHANGED)
        self.tables, self._file_state = tables, state
        self._sources = {name: TableSource(self._sources[name].location, table.types) for name, table in tables.items()}

    def refresh(self, spark: "SparkSession", usage: ColumnUsage) -> None:
        """Check these tables again, and all files; PolicyError if a used column is not as declared.

        Only names, types, sizes and times are read, and no row.
        """
        for name, columns in usage.items():
            if not self.tables[name].in_files:  # a session view keeps the definition that the table had then
                self.tables[name] = self._create_or_placeholder(spark, name)
            table = self.tables[name]
            for column in sorted(table.misfits.keys() & columns if table.stored_columns else table.misfits):
                raise table.misfits[column]
        self.check_files(spark)

    def misfit_messages(self) -> list[str]:
        """Return the messages of all misfits."""
        return list(dict.fromkeys(str(error) for table in self.tables.values() for error in table.misfits.values()))

    def check_columns(self, usage: ColumnUsage) -> None:
        """Raise EngineError if a used column is no longer as declared: it would read as NULL."""
        if any(self.tables[name].misfits.keys() & columns for name, columns in usage.items()):
            raise EngineError(_TABLE_CHANGED)

    def _create_or_placeholder(self, spark: "SparkSession", name: str) -> SparkSourceTable:
        """Create a view; if a table of the catalog is missing, only the questions that use it are refused."""
        source, view = self._sources[name], f"t{list(self._sources).index(name)}"
        try:
            return create_view(spark, name, view, source, self._zone)
        except PolicyError as error:
            table = SparkSourceTable(
                view, _location(source), source.columns, misfits=dict.fromkeys(source.columns, error)
            )
            if table.in_files or not source.columns:
                raise
            return table

    def check_files(self, spark: "SparkSession") -> None:
        """Fail if a file is not the one that was opened, whose columns were checked: answers use one snapshot."""
        if _file_fingerprint(spark, self.tables.values()) != self._file_state:
            raise SourceChanged(_FILE_CHANGED)


def _file_fingerprint(spark: "SparkSession", tables: Iterable[SparkSourceTable]) -> str:
    """Return a hash of the paths, sizes and modification times of all files."""
    listings = [
        _file_listing(spark, table.location, _RECURSIVE).select("path", "length", "modificationTime")
        for table in tables
        if table.in_files
    ]
    if not listings:
        return ""
    files = reduce(lambda one, other: one.unionAll(other), listings).toArrow().sort_by("path")
    return hashlib.sha256(str(files.to_pydict()).encode()).hexdigest()


def read_schemas(spark: "SparkSession", locations: Sequence[str]) -> dict[str, SparkSchema]:
    """Return the columns, with Spark's types, of these tables and files, or else of all tables in the catalog.

    A table that cannot be read is left out, unless it was named.
    """
    if locations:
        return {location: _stored_columns(spark, location, location) for location in locations}
    schemas = {}
    for database in spark.catalog.listDatabases():
        for table in spark.catalog.listTables(backtick_quote(database.name)):
            if not table.isTemporary:
                location = f"{_quote_if_needed(database.name)}.{_quote_if_needed(table.name)}"
                with suppress(PolicyError):
                    schemas[location] = _stored_columns(spark, location, location)
    return schemas


def _quote_if_needed(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else backtick_quote(name)


def _location(source: TableSource) -> str:
    return os.fsdecode(source.location) if isinstance(source.location, str | os.PathLike) else ""


def _stored_columns(spark: "SparkSession", table: str, location: str) -> SparkSchema:
    """Return the current columns of a source, with Spark's types."""
    try:
        return tuple(_columns_with_types(_data_frame(spark, location, {})))
    except Exception as error:
        if is_connection_lost(error):
            raise
        raise _unreadable_source(table, location, error) from None


def create_view(spark: "SparkSession", table: str, view: str, source: TableSource, zone: str) -> SparkSourceTable:
    """Create the view of a source; PolicyError if it cannot be read. Columns that do not match are in `misfits`."""
    location = _location(source)
    columns = _stored_columns(spark, table, location)
    if not columns:
        raise _unreadable_source(table, location, FileNotFoundError("PATH_NOT_FOUND"))
    if _FILE_LOCATION.search(location):
        _check_folders(spark, table, location)
    source_columns = tuple(SourceColumn(name, f"c{at}", native) for at, (name, native) in enumerate(columns))
    types = column_types(table, source.columns, [SourcePart("", source_columns)], casts)
    matches, misfits = _match_or_null(table, types, SourcePart("", source_columns))
    selected = {name: (matches[name].sql, matches[name].native_type, kind) for name, kind in types.items()}
    converted, in_range = casts.cast_columns(selected, zone)
    frame = _data_frame(spark, location, {})
    view_frame = frame.toDF(*(column.sql for column in source_columns)).selectExpr(*converted).selectExpr(*in_range)
    if [_TYPE_CODES.get(field.dataType.simpleString()) for field in view_frame.schema] != [
        kind.value for kind in types.values()
    ]:
        raise source_error(table, "Spark casts a column to an unexpected type. Use another version of Spark.")
    view_frame.createOrReplaceTempView(view)
    return SparkSourceTable(view, location, types, columns, misfits)


def _match_or_null(
    table: str, types: ColumnTypes, part: SourcePart
) -> tuple[dict[str, SourceColumn], dict[str, PolicyError]]:
    """Match each column; one that does not match is replaced by NULL and returned with its error."""
    matches, misfits = dict[str, SourceColumn](), dict[str, PolicyError]()
    for column, kind in types.items():
        try:
            matches[column], _ = match_columns(table, {column: kind}, part, casts)[column]
        except PolicyError as error:
            matches[column], misfits[column] = SourceColumn(column, "NULL", "void"), error
    return matches, misfits


def _data_frame(spark: "SparkSession", location: str, options: Mapping[str, str]) -> "DataFrame":
    if _FILE_LOCATION.search(location):
        return spark.read.options(mergeSchema="true", **options).parquet(location)
    return spark.table(location)


def _file_listing(spark: "SparkSession", location: str, options: Mapping[str, str]) -> "DataFrame":
    """Return one row per file, without reading its contents, with a column for each partition folder."""
    return spark.read.format("binaryFile").options(**options).load(location)


def _check_folders(spark: "SparkSession", table: str, location: str) -> None:
    """Refuse files that Spark would leave out, and folder names that would replace a stored column."""
    files_seen, all_files = (_file_listing(spark, location, options) for options in ({}, _RECURSIVE))
    left_out = set(_paths(all_files)) - set(_paths(files_seen))
    if left_out:
        raise source_error(
            table,
            f'Spark leaves out "{min(left_out)}" because its folder does not follow the partitioning of the others. '
            "Move all files to one level, or name them by a glob pattern.",
        )
    partition_columns = {
        name.lower() for name, _ in set(_columns_with_types(files_seen)) - set(_columns_with_types(all_files))
    }
    stored_columns = (
        {name.lower() for name in _data_frame(spark, location, _RECURSIVE).columns} if partition_columns else set()
    )
    for name in sorted(partition_columns & stored_columns):
        raise source_error(
            table,
            f"folders have its name ({name}=…), which Spark would use instead of the values in the files. Rename the "
            "folders or the column, or name the files by a glob pattern.",
            name,
        )


def _columns_with_types(frame: "DataFrame") -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in frame.schema]


def _paths(files: "DataFrame") -> list[str]:
    return [str(path) for path in files.select("path").toArrow().column(0).to_pylist()]


def _unreadable_source(table: str, location: str, error: Exception) -> PolicyError:
    cause = next((message for name, message in _ERROR_MESSAGES.items() if name in str(error)), None)
    parameters: Any = getattr(error, "getMessageParameters", dict)()
    subject = (parameters or {}).get("path") or f'source "{location}"'
    message = cause or f"{subject} cannot be read. Check that it is complete, and that Spark has permission."
    return source_error(table, message.replace("{location}", location))


def check_zone(spark: "SparkSession", zone: str) -> None:
    """Raise PolicyError unless Spark knows the time zone."""
    message = f'timezone "{zone}" is unknown to Spark. Use a name such as "Europe/Berlin".'
    if not _ZONE_NAME.fullmatch(zone):
        raise PolicyError(message)
    try:
        spark.sql(f"SELECT CONVERT_TIMEZONE('UTC', '{zone}', TIMESTAMP_NTZ '2000-01-01 00:00:00')").toArrow()
    except Exception as error:
        if "TIMEZONE" in str(error).upper():
            raise PolicyError(message) from None
        raise
