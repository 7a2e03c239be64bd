"""Who owns a row, as types: a person, a person's day, whoever owns the parent row, or nobody but the row itself.

private table ── Column             all rows of one person
              ── ColumnInWindow     one person's rows of one day, week or month
              ── Through            the owner of a row in another table
              ── Row                one row, whoever it belongs to
public table  ── Public
"""

from dataclasses import dataclass
from enum import StrEnum


class Window(StrEnum):
    """A calendar window in the policy's time zone; a week begins on Monday."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True)
class Column:
    """Everybody is one value of this column."""

    name: str


@dataclass(frozen=True)
class ColumnInWindow:
    """Everybody's window is a unit of its own: one value of the column in one window of the time."""

    name: str
    time: str
    window: Window


@dataclass(frozen=True)
class Through:
    """A row belongs to the owner of the parent row whose `key` equals this row's `on`."""

    table: str
    on: str
    key: str


@dataclass(frozen=True)
class Row:
    """Every row is a unit of its own."""


@dataclass(frozen=True)
class Public:
    """The table protects nobody."""


Root = Column | ColumnInWindow | Row
Unit = Root | Through


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


Protected = Person | PersonInWindow | Row
