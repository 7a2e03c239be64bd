"""Declared tables and their privacy units.

private table ── ColumnUnit         all rows of one person
              ── WindowUnit         one person's rows of one day, week or month
              ── ParentTableUnit    the unit of a row in another table
              ── RowUnit            a single row
public table  ── NoUnit
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Literal, TypeVar

from discreet.policy.column_domains import DeclaredColumn


class Window(StrEnum):
    """A calendar window in the policy's time zone; a week begins on Monday."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True)
class ColumnUnit:
    """Each value of this column is a unit."""

    name: str


@dataclass(frozen=True)
class WindowUnit:
    """Each value of the column `name` within one window of the column `time` is a unit."""

    name: str
    time: str
    window: Window


@dataclass(frozen=True)
class ParentTableUnit:
    """Each row belongs to the unit of the parent row whose `key` equals this row's `on`."""

    table: str
    on: str
    key: str


@dataclass(frozen=True)
class RowUnit:
    """Each row is a unit."""


@dataclass(frozen=True)
class NoUnit:
    """The table is public."""


RootUnit = ColumnUnit | WindowUnit | RowUnit
UnitDeclaration = RootUnit | ParentTableUnit


@dataclass(frozen=True)
class PersonUnit:
    """The common unit of all private tables: a person, identified by a key of this type."""

    type: str


@dataclass(frozen=True)
class PersonInWindow:
    """The common unit of all private tables: one person in one window of this time zone."""

    type: str
    window: Window
    timezone: str


PrivacyUnit = PersonUnit | PersonInWindow | RowUnit


@dataclass(frozen=True)
class SimpleRandomSample:
    """The units in the data are a simple random sample, if both sizes are given: of `size` out of `population_size`.

    >>> str(SimpleRandomSample(1_000, 90_000).expansion), float(SimpleRandomSample(1_000, 4_000).unsampled_share)
    ('90', 0.75)
    """

    size: int | None = None
    population_size: int | None = None

    @property
    def expansion(self) -> Fraction:
        """How many units of the population each sampled one stands for; 1 if that is not declared."""
        return Fraction(self.population_size, self.size) if self.size and self.population_size else Fraction(1)

    @property
    def unsampled_share(self) -> Fraction:
        """The share of the population outside the sample (finite-population correction); 1 if not declared."""
        return 1 - 1 / self.expansion if self.size else Fraction(1)


Named = TypeVar("Named")
AUTO: Literal["auto"] = "auto"
Bound = int | Literal["auto"]  # a contribution bound, or that it is chosen automatically


def declared_bound(bound: Bound | None) -> int | None:
    """Return a contribution bound if it is a number, else None."""
    return None if bound == AUTO else bound


@dataclass(frozen=True)
class DeclaredTable:
    """A table; `groups` and `rows` are the default contribution bounds of a query, chosen privately if "auto" or None.

    `contribution_max` is the owner's statement that no unit has more rows. It is not enforced: it only bounds the
    clipping bias that answers report.

    Queries can use only the listed columns; a public table that lists none has all columns of its source.
    """

    name: str
    source: str
    unit: UnitDeclaration | NoUnit
    groups: Bound | None
    rows: Bound | None
    rows_max: int
    columns: Mapping[str, DeclaredColumn]
    sample: SimpleRandomSample | None = None
    contribution_max: int | None = None

    @property
    def public(self) -> bool:
        """Whether the table is public."""
        return isinstance(self.unit, NoUnit)

    @property
    def unit_column(self) -> str | None:
        """The column that identifies the unit, if there is one."""
        return self.unit.name if isinstance(self.unit, ColumnUnit | WindowUnit) else None

    def column(self, name: str) -> DeclaredColumn | None:
        """Find a column by its name, ignoring case."""
        return find_by_name(self.columns, name)


def privacy_unit(
    unit: UnitDeclaration | NoUnit | None, columns: Mapping[str, DeclaredColumn | None], timezone: str
) -> PrivacyUnit | None:
    """Return the privacy unit that a table declares; None if it is inherited, absent or invalid."""
    match unit:
        case RowUnit():
            return RowUnit()
        case ColumnUnit(name) if column := columns[name]:
            return PersonUnit(column.type)
        case WindowUnit(name, _, window) if column := columns[name]:
            return PersonInWindow(column.type, window, timezone)
    return None


def declared_name(names: Iterable[str], name: str) -> str | None:
    """Return the declared spelling of a name, ignoring case; None if it is not declared."""
    folded = name.lower()
    return next((declared for declared in names if declared.lower() == folded), None)


def find_by_name(named: Mapping[str, Named], name: str) -> Named | None:
    """Return the value of a name, ignoring case; None if it is not declared."""
    declared = declared_name(named, name)
    return None if declared is None else named[declared]
