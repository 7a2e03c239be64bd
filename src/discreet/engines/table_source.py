"""Where a table's rows come from, and whether its declared columns exist and fit; only schemas are read."""

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
    "the data cannot be reached at the moment. Nothing was charged. Ask again later; the log has the reason."
)
_CHANGED_MESSAGE = "a file of the data was changed or removed. Nothing was charged. The owner must open the data again."
_LOG = logging.getLogger("discreet")


class CastRules(Protocol):
    """How an engine reads its types as the kernel's: which is next to one, and whether it can ever be another."""

    def default_type(self, native_type: str) -> Type | None:
        """Return the kernel's type for a column that the owner did not describe; None if there is none."""

    def can_cast(self, native_type: str, kind: Type) -> bool:
        """Whether any value of an engine's type can be one of the kernel's."""


class EngineError(DiscreetError):
    """A question that the engine could not answer; the text is for the owner's log only: it may depend on the data."""


class SourceChanged(EngineError):  # noqa: N818 - as the errors of the kernel are called
    """A file that is not the one that was opened: its columns were checked, and an answer is of one state."""


class Unavailable(EngineError, Refused):  # noqa: N818 - as the errors of the kernel are called
    """The data cannot be read at the moment, which was found out before a charge and without a look at private rows.

    The text is safe to show; `reason`, for the owner's log, names the server and what went wrong.
    """

    def __init__(self, error: EngineError, message: str = UNAVAILABLE_MESSAGE) -> None:
        super().__init__(_CHANGED_MESSAGE if isinstance(error, SourceChanged) else message)
        self.reason = str(error)
        _LOG.error("not charged: %s", error)


@dataclass(frozen=True)
class TableSource:
    """Where rows are, and the columns that are declared; none means all that are there, for public tables only.

    A place is a path, a pattern of paths, "file.duckdb/table", or a table of pandas, polars or Arrow. Such a table is
    copied when the engine is opened: later changes to it do not matter.
    """

    location: object
    columns: ColumnTypes = field(default_factory=dict)


@dataclass(frozen=True)
class SourceColumn:
    """A column of a source: its name there, how SQL names it, DuckDB's type, and whether the engine can scan it."""

    name: str
    sql: str
    native_type: str
    readable: bool = True


@dataclass(frozen=True)
class SourcePart:
    """Some of a table's rows, all with the same columns; `from_sql` is what stands after FROM.

    `paths` are the files, if of Parquet; `frame_name` is the name of what was registered and must be copied; what is not
    `typed`, a CSV file, has texts only.
    """

    from_sql: str
    columns: tuple[SourceColumn, ...]
    paths: tuple[str, ...] = ()
    frame_name: str = ""
    typed: bool = True


@dataclass(frozen=True)
class FileStamp:
    """A file as it was when it was opened."""

    path: str
    state: tuple[int, int, int, int]

    @classmethod
    def of_file(cls, path: str) -> "FileStamp":
        """Look at a file; OSError if it is not there."""
        status = os.stat(path)  # noqa: PTH116 - paths are texts here, as DuckDB has them
        return cls(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))

    @property
    def is_current(self) -> bool:
        """Whether the file is still there, and the same."""
        try:
            return FileStamp.of_file(self.path) == self
        except OSError:
            return False


@dataclass(frozen=True)
class OpenedSource:
    """A source that was found: its parts, the files that each question reads, and those that the engine holds open."""

    parts: tuple[SourcePart, ...]
    scanned_files: tuple[FileStamp, ...] = ()
    attached_files: tuple[FileStamp, ...] = ()


def source_error(table: str, message: str, column: str | None = None) -> PolicyError:
    """Return the error for a source that does not fit its policy: the place, the cause and the fix."""
    return PolicyError(f"table {table}{'' if column is None else f', column {column}'}: {message}")


def column_types(
    table: str, declared: ColumnTypes, parts: Sequence[SourcePart], cast_rules: CastRules = casts
) -> ColumnTypes:
    """Return the declared columns, or, if there are none, those of the source that have a type of the kernel."""
    if declared:
        return declared
    default_types = [
        {column.name: cast_rules.default_type(column.native_type) for column in part.columns} for part in parts
    ]
    if any(types != default_types[0] for types in default_types):
        raise source_error(
            table, "its files do not have the same columns and types. Declare its columns in the policy."
        )
    types = {name: kind for name, kind in default_types[0].items() if kind is not None}
    if not types:
        raise source_error(table, "it has no column of a type that questions can use. Store numbers, texts or dates.")
    return types


def match_columns(
    table: str, declared: ColumnTypes, part: SourcePart, cast_rules: CastRules = casts
) -> dict[str, tuple[SourceColumn, Type]]:
    """Find each declared column, by its name in any case, and check that its type can fit."""
    matches = {name: (_find_column(table, name, part.columns), kind) for name, kind in declared.items()}
    for name, (column, kind) in matches.items():
        if not cast_rules.can_cast(column.native_type, kind):
            raise source_error(table, _misfit_message(column.native_type, kind, cast_rules), name)
    return matches


def declared_select(declared: Mapping[str, tuple[SourceColumn, Type]], from_sql: str, zone: str) -> str:
    """Write the SELECT that shows exactly the declared columns in the declared types."""
    columns = {name: (column.sql, column.native_type, kind) for name, (column, kind) in declared.items()}
    return casts.cast_select(from_sql, columns, zone)


def _find_column(table: str, name: str, columns: Sequence[SourceColumn]) -> SourceColumn:
    """Find one column; two that differ by case only are one to SQL, and nobody could say which was meant."""
    candidates = [column for column in columns if column.name.lower() == name.lower()]
    if len(candidates) > 1:
        raise source_error(
            table, "the source has several columns of this name, in any case. Rename all but one there.", name
        )
    if not candidates:
        close_matches = difflib.get_close_matches(name, [column.name for column in columns], n=1)
        hint = (
            f'The source has "{close_matches[0]}".'
            if close_matches
            else "Correct its name, or take it out of the policy."
        )
        raise source_error(table, f"the source has no such column. {hint}", name)
    return candidates[0]


def _misfit_message(native_type: str, kind: Type, cast_rules: CastRules) -> str:
    stored, natural = (
        native_type.partition("(")[0],
        cast_rules.default_type(native_type),
    )  # what is in brackets may be values
    if natural is None:
        return f"it is stored as {stored}, which questions cannot use. Store numbers, texts, dates or times there."
    declared, suggested = (one.name.lower() for one in (kind, natural))
    return f'it is stored as {stored}, which is never of type {declared}. Declare type = "{suggested}", or store it otherwise.'
