"""How a release was made: what made its columns coarser."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from discreet.anonymity.measuring.risk import Risk


class Released(Protocol):
    """What an attempt to anonymise tells."""

    @property
    def method(self) -> str:
        """How values were made coarser."""

    @property
    def levels(self) -> Mapping[str, int] | None:
        """The level of each column's hierarchy, if all rows have the same."""

    @property
    def found(self) -> str:
        """Whether these levels are the best there are."""

    @property
    def hierarchies(self) -> Mapping[str, str]:
        """The name of the hierarchy of each column that has one."""

    @property
    def suppressed(self) -> int:
        """The rows that were left out."""

    @property
    def before(self) -> Risk:
        """What was measured of the original."""

    @property
    def after(self) -> Risk:
        """What was measured of the release."""

    @property
    def not_protected(self) -> str:
        """The attacks that are left open."""


def how(result: Released) -> Iterator[str]:
    """Say how many rows are released, on which levels, and by which hierarchies."""
    yield f"{result.after.rows:,} of {result.before.rows:,} rows are released, {result.suppressed:,} are left out."
    levels = ", ".join(f"{name} {level}" for name, level in (result.levels or {}).items())
    if levels:
        yield f"Levels of the hierarchies: {levels} ({result.found})."
    yield from trees(result)


def trees(result: Released) -> Iterator[str]:
    """Say which columns have a hierarchy, and what that means for the others."""
    has_levels = result.levels is not None
    listed = ", ".join(f"{name} ({tree})" for name, tree in result.hierarchies.items())
    if listed:
        bound = "" if has_levels else "; other labels than these they cannot get, and ranges or sets might lose less"
        yield f"Made coarser by a hierarchy: {listed}{bound}."
    without = [name for name in result.before.quasi if name not in result.hierarchies]
    if has_levels and without:
        yield f"No hierarchy for {', '.join(without)}: each is either kept or '*'."
