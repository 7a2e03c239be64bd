"""A table of the policy: where its rows are, who owns them, and which columns there are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from discreet.policy.columns import Declared
from discreet.policy.units import Public, Unit

Named = TypeVar("Named")


@dataclass(frozen=True)
class Table:
    """A table; `groups` and `rows` are what a question gets that names no limits of its own.

    Columns that are not listed do not exist, except in a public table that lists none: it has all of its source's.
    """

    name: str
    source: str
    unit: Unit | Public
    groups: int | None
    rows: int | None
    rows_max: int
    columns: Mapping[str, Declared]

    @property
    def public(self) -> bool:
        """Whether the table protects nobody."""
        return isinstance(self.unit, Public)

    def column(self, name: str) -> Declared | None:
        """Find a column by its name in any case."""
        return find(self.columns, name)


def spelled(names: Iterable[str], name: str) -> str | None:
    """Return the name as it was declared: names are unique, and found, in any case."""
    folded = name.lower()
    return next((known for known in names if known.lower() == folded), None)


def find(named: Mapping[str, Named], name: str) -> Named | None:
    """Find what has this name in any case."""
    known = spelled(named, name)
    return None if known is None else named[known]
