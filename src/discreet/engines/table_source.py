"""Sources of tables, and whether their columns match the declared ones; only schemas are read."""

import difflib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from discreet.engines.duckdb import casts
from discreet.kernel.errors import DiscreetError, PolicyError, Refused
from discreet.kernel.expr import Type

ColumnTypes = Mapping[str, Type]
UNAVAILABLE_MESSAGE = (
    "the data is not available at the moment. Nothing was charged. Try again later; the log has the reason."
)
MISFIT_ADVICE = "Queries that use it are refused until it is corrected."
_CHANGED_MESSAGE = "a data file was changed or removed. Nothing was charged. The owner must reopen the data."
_LOG = logging.getLogger("discreet")


class CastRules(Protocol):
    """How an engine's native types map to the kernel's types."""

    def default_type(self, native_type: str) -> Type | None:
        """Return the kernel type of an undeclared column; None if there is none."""

    def can_cast(self, native_type: str, kind: Type) -> bool:
        """Whether some value of a native type can be cast to a kernel type."""


class EngineError(DiscreetError):
    """The engine failed. The text may depend on the data, so it is for the owner's log only."""


class SourceChanged(EngineError):  # noqa: N818 - named like the kernel's errors
    """A data file is not the one that was opened, whose columns were checked."""


class Unavailable(EngineError, Refused):  # noqa: N818 - named like the kernel's errors
    """The data cannot be read at the moment, as determined before a charge and without reading private rows.

    The text is safe to show; `reason`, for the owner's log, names the server and the cause.
    """

    def __init__(self, error: EngineError, message: str = UNAVAILABLE_MESSAGE) -> None:
        super().__init__(_CHANGED_MESSAGE if isinstance(error, SourceChanged) else message)
        self.reason = str(error)
        _LOG.error("not charged: %s", error)


@dataclass(frozen=True)
class TableSource:
    """The location of a table's rows, and its declared columns; without any, a public table has all of its columns.

    A location is a path, a glob pattern, "file.duckdb/table", or a pandas, polars or Arrow table. A table object is
    copied when the engine is opened, so later changes to it have no effect.
    """

    location: object
    columns: ColumnTypes = field(default_factory=dict)


@dataclass(frozen=True)
class SourceColumn:
    """A column of a source: its name, its SQL expression, its native type, and whether the engine can scan it."""

    name: str
    sql: str
    native_type: str
    readable: bool = True


@dataclass(frozen=True)
class SourcePart:
    """Some of a table's rows, all with the same columns; `from_sql` follows FROM.

    `paths` are the Parquet files, if any; `frame_name` is the registered frame that must be copied; CSV files are not
    `typed`: all of their columns are text.
    """

    from_sql: str
    columns: tuple[SourceColumn, ...]
    paths: tuple[str, ...] = ()
    frame_name: str = ""
    typed: bool = True


@dataclass(frozen=True)
class FileStamp:
    """The identity, size and modification time of a file when it was opened."""

    path: str
    state: tuple[int, int, int, int]

    @classmethod
    def of_file(cls, path: str) -> "FileStamp":
        """Return the stamp of a file; OSError if it does not exist."""
        status = os.stat(path)  # noqa: PTH116 - paths are strings here, as in DuckDB
        return cls(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))

    @property
    def is_current(self) -> bool:
        """Whether the file still exists unchanged."""
        try:
            return FileStamp.of_file(self.path) == self
        except OSError:
            return False


@dataclass(frozen=True)
class OpenedSource:
    """An opened source: its parts, the files that each question scans, and those that the engine keeps open."""

    parts: tuple[SourcePart, ...]
    scanned_files: tuple[FileStamp, ...] = ()
    attached_files: tuple[FileStamp, ...] = ()


def source_error(table: str, message: str, column: str | None = None) -> PolicyError:
    """Return the error for a source that does not match its policy."""
    return PolicyError(f"table {table}{'' if column is None else f', column {column}'}: {message}")


def column_types(
    table: str, declared: ColumnTypes, parts: Sequence[SourcePart], cast_rules: CastRules = casts
) -> ColumnTypes:
    """Return the declared columns or, if there are none, the columns of the source that have a kernel type."""
    if declared:
        return declared
    default_types = [
        {column.name: cast_rules.default_type(column.native_type) for column in part.columns} for part in parts
    ]
    if any(types != default_types[0] for types in default_types):
        raise source_error(table, "its files differ in columns or types. Declare the columns in the policy.")
    types = {name: kind for name, kind in default_types[0].items() if kind is not None}
    if not types:
        raise source_error(table, "it has no column of a supported type. Store numbers, texts or dates.")
    return types


def match_columns(
    table: str, declared: ColumnTypes, part: SourcePart, cast_rules: CastRules = casts
) -> dict[str, tuple[SourceColumn, Type]]:
    """Find each declared column by its case-insensitive name, and check that its type can be cast."""
    matches = {name: (_find_column(table, name, part.columns), kind) for name, kind in declared.items()}
    for name, (column, kind) in matches.items():
        if not cast_rules.can_cast(column.native_type, kind):
            raise source_error(table, _misfit_message(column.native_type, kind, cast_rules), name)
    return matches


def declared_select(declared: Mapping[str, tuple[SourceColumn, Type]], from_sql: str, zone: str) -> str:
    """Return the SELECT of exactly the declared columns in the declared types."""
    columns = {name: (column.sql, column.native_type, kind) for name, (column, kind) in declared.items()}
    return casts.cast_select(from_sql, columns, zone)


def _find_column(table: str, name: str, columns: Sequence[SourceColumn]) -> SourceColumn:
    """Return the only column of this case-insensitive name; two would be ambiguous in SQL."""
    candidates = [column for column in columns if column.name.lower() == name.lower()]
    if len(candidates) > 1:
        raise source_error(
            table, "the source has several columns of this name that differ only in case. Rename all but one.", name
        )
    if not candidates:
        close_matches = difflib.get_close_matches(name, [column.name for column in columns], n=1)
        hint = (
            f'The source has "{close_matches[0]}".'
            if close_matches
            else "Correct its name, or remove it from the policy."
        )
        raise source_error(table, f"it does not exist in the source. {hint}", name)
    return candidates[0]


def _misfit_message(native_type: str, kind: Type, cast_rules: CastRules) -> str:
    stored = native_type.partition("(")[0]  # in parentheses there may be values, such as the labels of an ENUM
    natural = cast_rules.default_type(native_type)
    if natural is None:
        return f"it is stored as {stored}, which is not supported. Store numbers, texts, dates or times."
    declared, suggested = (one.name.lower() for one in (kind, natural))
    return f'cannot cast {stored} to {declared}. Declare type = "{suggested}", or change the stored type.'
