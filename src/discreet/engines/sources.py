"""What a table's rows come from, and whether its declared columns are there and fit. Only schemas are looked at."""

import difflib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from discreet.engines import casts
from discreet.kernel.errors import DiscreetError, PolicyError, Refused
from discreet.kernel.expr import Type

Types = Mapping[str, Type]
AWAY = "the data cannot be reached at the moment. Nothing was charged. Ask again later; the log has the reason."
_CHANGED = "a file of the data was changed or removed. Nothing was charged. The owner must open the data again."
_LOG = logging.getLogger("discreet")


class Casting(Protocol):
    """How an engine reads its types as the kernel's: which is next to one, and whether it can ever be another."""

    def natural(self, native: str) -> Type | None:
        """Return the kernel's type for a column that the owner did not describe; None if there is none."""

    def fits(self, native: str, kind: Type) -> bool:
        """Whether any value of an engine's type can be one of the kernel's."""


class EngineError(DiscreetError):
    """A question that the engine could not answer; the text is for the owner's log only: it may depend on the data."""


class SourceChanged(EngineError):  # noqa: N818 - as the errors of the kernel are called
    """A file that is not the one that was opened: its columns were checked, and an answer is of one state."""


class Unavailable(EngineError, Refused):  # noqa: N818 - as the errors of the kernel are called
    """The data cannot be read at the moment, which was found out before a charge and without a look at private rows.

    The text is safe to show; `reason`, for the owner's log, names the server and what went wrong.
    """

    def __init__(self, error: EngineError, words: str = AWAY) -> None:
        super().__init__(_CHANGED if isinstance(error, SourceChanged) else words)
        self.reason = str(error)
        _LOG.error("not charged: %s", error)


@dataclass(frozen=True)
class Source:
    """Where rows are, and the columns that are declared; none means all that are there, for public tables only.

    A place is a path, a pattern of paths, "file.duckdb/table", or a table of pandas, polars or Arrow. Such a table is
    copied when the engine is opened: later changes to it do not matter.
    """

    place: object
    columns: Types = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A column of a source: its name there, how SQL names it, DuckDB's type, and whether the engine can scan it."""

    name: str
    text: str
    native: str
    scanned: bool = True


@dataclass(frozen=True)
class Part:
    """Some of a table's rows, all with the same columns; `rows` is what stands after FROM.

    `paths` are the files, if of Parquet; `frame` is the name of what was registered and must be copied; what is not
    `typed`, a CSV file, has texts only.
    """

    rows: str
    columns: tuple[Found, ...]
    paths: tuple[str, ...] = ()
    frame: str = ""
    typed: bool = True


@dataclass(frozen=True)
class Stamp:
    """A file as it was when it was opened."""

    path: str
    state: tuple[int, int, int, int]

    @classmethod
    def of(cls, path: str) -> "Stamp":
        """Look at a file; OSError if it is not there."""
        found = os.stat(path)  # noqa: PTH116 - paths are texts here, as DuckDB has them
        return cls(path, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))

    @property
    def current(self) -> bool:
        """Whether the file is still there, and the same."""
        try:
            return Stamp.of(self.path) == self
        except OSError:
            return False


@dataclass(frozen=True)
class Opened:
    """A source that was found: its parts, the files that each question reads, and those that the engine holds open."""

    parts: tuple[Part, ...]
    read: tuple[Stamp, ...] = ()
    held: tuple[Stamp, ...] = ()


def problem(table: str, words: str, column: str | None = None) -> PolicyError:
    """Return the error for a source that does not fit its policy: the place, the cause and the fix."""
    return PolicyError(f"table {table}{'' if column is None else f', column {column}'}: {words}")


def types_of(table: str, declared: Types, parts: Sequence[Part], casting: Casting = casts) -> Types:
    """Return the declared columns, or, if there are none, those of the source that have a type of the kernel."""
    if declared:
        return declared
    known = [{column.name: casting.natural(column.native) for column in part.columns} for part in parts]
    if any(types != known[0] for types in known):
        raise problem(table, "its files do not have the same columns and types. Declare its columns in the policy.")
    types = {name: kind for name, kind in known[0].items() if kind is not None}
    if not types:
        raise problem(table, "it has no column of a type that questions can use. Store numbers, texts or dates.")
    return types


def matched(table: str, declared: Types, part: Part, casting: Casting = casts) -> dict[str, tuple[Found, Type]]:
    """Find each declared column, by its name in any case, and check that its type can fit."""
    found = {name: (_column(table, name, part.columns), kind) for name, kind in declared.items()}
    for name, (column, kind) in found.items():
        if not casting.fits(column.native, kind):
            raise problem(table, _misfit(column.native, kind, casting), name)
    return found


def select(declared: Mapping[str, tuple[Found, Type]], rows: str, zone: str) -> str:
    """Write the SELECT that shows exactly the declared columns in the declared types."""
    columns = {name: (column.text, column.native, kind) for name, (column, kind) in declared.items()}
    return casts.select(rows, columns, zone)


def _column(table: str, name: str, columns: Sequence[Found]) -> Found:
    """Find one column; two that differ by case only are one to SQL, and nobody could say which was meant."""
    found = [column for column in columns if column.name.lower() == name.lower()]
    if len(found) > 1:
        raise problem(
            table, "the source has several columns of this name, in any case. Rename all but one there.", name
        )
    if not found:
        near = difflib.get_close_matches(name, [column.name for column in columns], n=1)
        hint = f'The source has "{near[0]}".' if near else "Correct its name, or take it out of the policy."
        raise problem(table, f"the source has no such column. {hint}", name)
    return found[0]


def _misfit(native: str, kind: Type, casting: Casting) -> str:
    stored, natural = native.partition("(")[0], casting.natural(native)  # what is in brackets may be values
    if natural is None:
        return f"it is stored as {stored}, which questions cannot use. Store numbers, texts, dates or times there."
    wanted, better = (one.name.lower() for one in (kind, natural))
    return (
        f'it is stored as {stored}, which is never of type {wanted}. Declare type = "{better}", or store it otherwise.'
    )
