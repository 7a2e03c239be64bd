"""Sources of Spark: tables and views of its catalog, and Parquet on storage that the server reads.

    visits, lake.clinic.visits                             a table or a view, as Spark names it
    /data/visits/*.parquet, s3://bucket/visits/, hdfs://…  files, a pattern, or a folder, as the server sees them

Each becomes a view of exactly the declared columns, of the session alone. Of files, only the schemas are looked at, of
all of them; which files there are is fixed then. A folder's name such as year=2026 is a column of texts; where Spark
would put it in the place of a column, or leave files out because they lie beside such folders, the source is refused.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from discreet.engines import spark_columns
from discreet.engines.sources import EngineError, Found, Part, Source, SourceChanged, Types, matched, problem, types_of
from discreet.engines.spark_columns import ticked
from discreet.engines.spark_connecting import is_lost
from discreet.engines.usage import Usage
from discreet.kernel.errors import PolicyError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

_FILES = re.compile(r"/|\.(parquet|pq)$", re.IGNORECASE)
_OTHERS = re.compile(r"\.(csv|tsv|txt|json|jsonl|orc|avro|xml|xlsx|duckdb|db)(\.\w+)?/?$", re.IGNORECASE)
_ZONE = re.compile(r"[A-Za-z0-9_+/-]+")
_CAUSES = {  # what Spark says, and what we do: its own words may quote what is in a file
    "PATH_NOT_FOUND": 'there is no such file on the storage that Spark reads. Correct "{place}", or bring it there.',
    "TABLE_OR_VIEW_NOT_FOUND": 'Spark knows no table "{place}". Correct its name, with its schema, or make it there.',
    "PARSE_SYNTAX_ERROR": 'source "{place}" is no name. Write schema.table, with backticks around what is unusual.',
    "COLUMN_ALREADY_EXISTS": "the source has two columns of one name, in any case. Rename one of them there.",
    "CANNOT_MERGE": "its files store a column in different types. Write all of them with one type.",
    "PARQUET_TYPE_ILLEGAL": "a column is stored in a type that Spark does not read. Store it in another one.",
    "EXCEEDS_MAX_PRECISION": "a column has more than 38 digits, which Spark does not read. Store it with fewer.",
    "UNSUPPORTED_TIME_TYPE": "a column holds times of day, which Spark does not read. Store them as texts or numbers.",
    "UNABLE_TO_INFER_SCHEMA": 'there is no Parquet file directly in "{place}". Name the files, by a pattern.',
    "CONFLICTING_PARTITION_COLUMN_NAMES": "its folders are named by different columns. Name them alike.",
    "PERMISSION_DENIED": 'Spark may not read "{place}". Give it permission.',
}
_QUOTED = re.compile(r"\s*parquet\s*\.\s*`(.*)`\s*", re.IGNORECASE)
_ALL_FILES = {"recursiveFileLookup": "true"}  # folders' names mean nothing then
_CHANGED_TABLE = "a table was changed after the question was charged"
_CHANGED = "a file of the data was changed, added or removed. Open the engine again."
Schema = tuple[tuple[str, str], ...]  # columns, with Spark's types
_TYPES = {"bigint": "i", "double": "r", "boolean": "b", "string": "t", "date": "d", "timestamp_ntz": "s"}


@dataclass(frozen=True)
class Table:
    """A source that is found: its place, what questions see of it, and what the view is called.

    `stored` are its own columns, with Spark's types; `misfits` the declared columns that are not there, or not as
    declared, each with its error: they read as NULL, and no question that uses them is answered.

    >>> Table("t0", "s3://bucket/visits/", {}).in_files, Table("t1", "lake.clinic.visits", {}).in_files
    (True, False)
    """

    view: str
    place: str
    types: Types
    stored: Schema = ()
    misfits: Mapping[str, PolicyError] = field(default_factory=dict)

    @property
    def in_files(self) -> bool:
        """Whether its rows are in files, which could change."""
        return _FILES.search(self.place) is not None


def check_sources(sources: Mapping[str, Source]) -> None:
    """Check what needs no server: names that are one name to Spark, and places that it does not have.

    >>> check_sources({"visits": Source("lake.clinic.visits")})
    """
    for table, source in sources.items():
        if sum(table.lower() == other.lower() for other in sources) > 1:
            raise problem(table, "another table has this name, in any case. Rename it.")
        for column in source.columns:
            if sum(column.lower() == other.lower() for other in source.columns) > 1:
                raise problem(table, "another column has this name, in any case. Rename it.", column)
        if not isinstance(source.place, str | os.PathLike):
            raise problem(table, "Spark reads its own tables and Parquet. Give frames to the engine duckdb.")
        if found := _QUOTED.fullmatch(os.fsdecode(source.place)):
            raise problem(table, f'source: write the path itself, "{found[1]}".')
        if found := _OTHERS.search(os.fsdecode(source.place)):
            raise problem(
                table,
                f"files that end in {found[0].rstrip('/')} are not read by Spark here: types would be guessed, and a "
                "line break inside a text would begin another person's row. Write Parquet, or a table.",
            )


class Views:
    """The views of a data set in whichever session it has, and the state of its files when they were first made."""

    def __init__(self, sources: Mapping[str, Source], zone: str) -> None:
        self._sources, self._zone, self._state = dict(sources), zone, ""
        self.tables: dict[str, Table] = {}

    def make(self, spark: "SparkSession") -> None:
        """Make the views; PolicyError if a file does not fit, or is not what it was."""
        check_zone(spark, self._zone)
        made = {name: self._made(spark, name) for name in self._sources}
        state = _state(spark, made.values())
        if self.tables and state != self._state:
            raise PolicyError(_CHANGED)
        self.tables, self._state = made, state
        self._sources = {name: Source(self._sources[name].place, table.types) for name, table in made.items()}

    def refresh(self, spark: "SparkSession", usage: Usage) -> None:
        """Look at these tables again, and at all files; PolicyError if a used column is not as declared.

        Only names, types, sizes and times are looked at, and no row.
        """
        for name, columns in usage.items():
            if not self.tables[name].in_files:  # its view holds what the table, or a view behind it, was then
                self.tables[name] = self._made(spark, name)
            table = self.tables[name]
            for column in sorted(table.misfits.keys() & columns if table.stored else table.misfits):
                raise table.misfits[column]
        self.check(spark)

    def misfits(self) -> list[str]:
        """Say what does not fit."""
        return list(dict.fromkeys(str(error) for table in self.tables.values() for error in table.misfits.values()))

    def check_columns(self, usage: Usage) -> None:
        """Stop if a used column is not as declared any more: it would read as NULL."""
        if any(self.tables[name].misfits.keys() & columns for name, columns in usage.items()):
            raise EngineError(_CHANGED_TABLE)

    def _made(self, spark: "SparkSession", name: str) -> Table:
        """Make a view; a table of the catalog that is missing is left to the questions that need it."""
        source, view = self._sources[name], f"t{list(self._sources).index(name)}"
        try:
            return view_of(spark, name, view, source, self._zone)
        except PolicyError as error:
            table = Table(view, _place(source), source.columns, misfits=dict.fromkeys(source.columns, error))
            if table.in_files or not source.columns:
                raise
            return table

    def check(self, spark: "SparkSession") -> None:
        """Stop if a file is not the one that was opened: its columns were checked, and an answer is of one state."""
        if _state(spark, self.tables.values()) != self._state:
            raise SourceChanged(_CHANGED)


def _state(spark: "SparkSession", tables: Iterable[Table]) -> str:
    """Return a mark of all files as they are now: their paths, sizes and times; equal marks, equal files."""
    listed = [
        _listed(spark, table.place, _ALL_FILES).select("path", "length", "modificationTime")
        for table in tables
        if table.in_files
    ]
    if not listed:
        return ""
    found = reduce(lambda one, other: one.unionAll(other), listed).toArrow().sort_by("path")
    return hashlib.sha256(str(found.to_pydict()).encode()).hexdigest()


def schemas_of(spark: "SparkSession", wanted: Sequence[str]) -> dict[str, Schema]:
    """Return the columns, with Spark's types, of tables and files of these names; of all tables there are, if none.

    A table that cannot be read is left out, unless it was named.
    """
    if wanted:
        return {place: _stored(spark, place, place) for place in wanted}
    found = {}
    for database in spark.catalog.listDatabases():
        for table in spark.catalog.listTables(ticked(database.name)):
            if not table.isTemporary:
                place = f"{_as_needed(database.name)}.{_as_needed(table.name)}"
                with suppress(PolicyError):
                    found[place] = _stored(spark, place, place)
    return found


def _as_needed(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else ticked(name)


def _place(source: Source) -> str:
    return os.fsdecode(source.place) if isinstance(source.place, str | os.PathLike) else ""


def _stored(spark: "SparkSession", table: str, place: str) -> Schema:
    """Return the columns that a source has now, with Spark's types."""
    try:
        return tuple(_kinds(_frame(spark, place, {})))
    except Exception as error:
        if is_lost(error):
            raise
        raise _refused(table, place, error) from None


def view_of(spark: "SparkSession", table: str, view: str, source: Source, zone: str) -> Table:
    """Make the view of a source; PolicyError if it cannot be read. Columns that do not fit are among its misfits."""
    place = _place(source)
    columns = _stored(spark, table, place)
    if not columns:
        raise _refused(table, place, FileNotFoundError("PATH_NOT_FOUND"))
    if _FILES.search(place):
        _check_folders(spark, table, place)
    found = tuple(Found(name, f"c{at}", native) for at, (name, native) in enumerate(columns))
    types = types_of(table, source.columns, [Part("", found)], spark_columns)
    known, misfits = _fitting(table, types, Part("", found))
    shown = {name: (known[name].text, known[name].native, kind) for name, kind in types.items()}
    converted, kept = spark_columns.shown(shown, zone)
    frame = _frame(spark, place, {})
    seen = frame.toDF(*(column.text for column in found)).selectExpr(*converted).selectExpr(*kept)
    if [_TYPES.get(each.dataType.simpleString()) for each in seen.schema] != [kind.value for kind in types.values()]:
        raise problem(table, "Spark shows a column in another type than it should. Use another version of Spark.")
    seen.createOrReplaceTempView(view)
    return Table(view, place, types, columns, misfits)


def _fitting(table: str, types: Types, part: Part) -> tuple[dict[str, Found], dict[str, PolicyError]]:
    """Find each column; in the place of one that does not fit stands NULL, and the reason is told."""
    found, misfits = dict[str, Found](), dict[str, PolicyError]()
    for column, kind in types.items():
        try:
            found[column], _ = matched(table, {column: kind}, part, spark_columns)[column]
        except PolicyError as error:
            found[column], misfits[column] = Found(column, "NULL", "void"), error
    return found, misfits


def _frame(spark: "SparkSession", place: str, options: Mapping[str, str]) -> "DataFrame":
    if _FILES.search(place):
        return spark.read.options(mergeSchema="true", **options).parquet(place)
    return spark.table(place)


def _listed(spark: "SparkSession", place: str, options: Mapping[str, str]) -> "DataFrame":
    """Return one row for each file, without what is in it, and with a column for each folder's name that counts."""
    return spark.read.format("binaryFile").options(**options).load(place)


def _check_folders(spark: "SparkSession", table: str, place: str) -> None:
    """Refuse files that Spark would leave out, and folders' names that it would put in the place of a column."""
    seen, files = (_listed(spark, place, options) for options in ({}, _ALL_FILES))
    left_out = set(_paths(files)) - set(_paths(seen))
    if left_out:
        raise problem(
            table,
            f'Spark leaves out "{min(left_out)}", which lies beside folders named by values, or in one that is not. '
            "Bring all files to one level, or name them by a pattern.",
        )
    named = {name.lower() for name, _ in set(_kinds(seen)) - set(_kinds(files))}
    stored = {name.lower() for name in _frame(spark, place, _ALL_FILES).columns} if named else set()
    for name in sorted(named & stored):
        raise problem(
            table,
            f"folders have its name ({name}=…), and Spark would put that in the place of what their files hold. Rename "
            "the folders or the column, or name the files by a pattern.",
            name,
        )


def _kinds(frame: "DataFrame") -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in frame.schema]


def _paths(files: "DataFrame") -> list[str]:
    return [str(path) for path in files.select("path").toArrow().column(0).to_pylist()]


def _refused(table: str, place: str, error: Exception) -> PolicyError:
    cause = next((words for name, words in _CAUSES.items() if name in str(error)), None)
    found: Any = getattr(error, "getMessageParameters", dict)()
    what = (found or {}).get("path") or f'source "{place}"'
    words = cause or f"{what} cannot be read. Check that it is whole, and that Spark may read it."
    return problem(table, words.replace("{place}", place))


def check_zone(spark: "SparkSession", zone: str) -> None:
    """Stop unless Spark knows the time zone."""
    words = f'timezone "{zone}" is not known to Spark. Use a name such as "Europe/Berlin".'
    if not _ZONE.fullmatch(zone):
        raise PolicyError(words)
    try:
        spark.sql(f"SELECT CONVERT_TIMEZONE('UTC', '{zone}', TIMESTAMP_NTZ '2000-01-01 00:00:00')").toArrow()
    except Exception as error:
        if "TIMEZONE" in str(error).upper():
            raise PolicyError(words) from None
        raise
