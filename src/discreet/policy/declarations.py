"""What a policy declares: the privacy unit of each table, and the tables themselves.

private table ── Column             all rows of one person
              ── ColumnInWindow     one person's rows of one day, week or month
              ── Through            the owner of a row in another table
              ── Row                one row, whoever it belongs to
public table  ── Public
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from discreet.policy.column_domains import DeclaredColumn


class Window(StrEnum):
    """A calendar window in the policy's time zone; a week begins on Monday."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True)
class ColumnUnit:
    """Everybody is one value of this column."""

    name: str


@dataclass(frozen=True)
class WindowUnit:
    """Everybody's window is a unit of its own: one value of the column in one window of the time."""

    name: str
    time: str
    window: Window


@dataclass(frozen=True)
class ParentTableUnit:
    """A row belongs to the owner of the parent row whose `key` equals this row's `on`."""

    table: str
    on: str
    key: str


@dataclass(frozen=True)
class RowUnit:
    """Every row is a unit of its own."""


@dataclass(frozen=True)
class NoUnit:
    """The table protects nobody."""


RootUnit = ColumnUnit | WindowUnit | RowUnit
UnitDeclaration = RootUnit | ParentTableUnit


@dataclass(frozen=True)
class Person:
    """What all private tables share: a person, known by a key of this type, with everything they own."""

    type: str


@dataclass(frozen=True)
class PersonInWindow:
    """What all private tables share: one window of a person's life, on the clock of this time zone."""

    type: str
    window: Window
    timezone: str


PrivacyUnit = Person | PersonInWindow | RowUnit


Named = TypeVar("Named")


@dataclass(frozen=True)
class DeclaredTable:
    """A table; `groups` and `rows` are what a question gets that names no limits of its own.

    Columns that are not listed do not exist, except in a public table that lists none: it has all of its source's.
    """

    name: str
    source: str
    unit: UnitDeclaration | NoUnit
    groups: int | None
    rows: int | None
    rows_max: int
    columns: Mapping[str, DeclaredColumn]

    @property
    def public(self) -> bool:
        """Whether the table protects nobody."""
        return isinstance(self.unit, NoUnit)

    def column(self, name: str) -> DeclaredColumn | None:
        """Find a column by its name in any case."""
        return find_by_name(self.columns, name)


def declared_name(names: Iterable[str], name: str) -> str | None:
    """Return the name as it was declared: names are unique, and found, in any case."""
    folded = name.lower()
    return next((declared for declared in names if declared.lower() == folded), None)


def find_by_name(named: Mapping[str, Named], name: str) -> Named | None:
    """Find what has this name in any case."""
    declared = declared_name(named, name)
    return None if declared is None else named[declared]
