"""Linking released rows to people: how many in a population each row may be, and whom if there is only one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet.anonymity.coding.classes import Classes
from discreet.anonymity.labels.covers import Cover
from discreet.anonymity.measuring.meeting import meetings


@dataclass(frozen=True)
class Linkage:
    """How surely rows can be linked to people: `rows` says of how many rows each could be so many people.

    `found` are pairs of positions, of each row that could be one person only, and of that person in the population.

    >>> linkage = Linkage({1: 2, 4: 8})
    >>> linkage.highest, linkage.mean, linkage.single, linkage.above(0.2)
    (1.0, 0.4, 2, 1.0)
    """

    rows: Mapping[int, int]
    found: np.ndarray | None = field(repr=False, compare=False, default=None)

    @property
    def count(self) -> int:
        """All rows."""
        return sum(self.rows.values())

    @property
    def highest(self) -> float:
        """The risk of the row that is easiest to link: one over the people it could be; 0 if nobody matches any row."""
        return max((1 / people for people in self.rows if people), default=0.0)

    @property
    def mean(self) -> float:
        """The mean risk over the rows: the share that an attacker who links them all can expect to get right."""
        return sum(rows / people for people, rows in self.rows.items() if people) / self.count

    @property
    def single(self) -> int:
        """The rows that could be one person only."""
        return self.rows.get(1, 0)

    @property
    def unmatched(self) -> int:
        """The rows that could be nobody: those people are not in the population."""
        return self.rows.get(0, 0)

    def above(self, risk: float) -> float:
        """Return the share of the rows whose risk is above this."""
        return sum(rows for people, rows in self.rows.items() if people and 1 / people > risk) / self.count


def linked(
    classes: Classes, released: Sequence[np.ndarray], covers: Sequence[Cover], people: Sequence[np.ndarray]
) -> Linkage:
    """Link a release to a population: the codes of both, column by column, and what each released value covers."""
    first = classes.firsts
    counts, person = meetings([codes[first] for codes in released], covers, people)
    rows = np.bincount(counts, classes.sizes).astype(np.int64)
    one = np.flatnonzero(counts[classes.ids] == 1)
    found = np.stack([one, person[classes.ids[one]]], axis=1)
    return Linkage({int(many): int(rows[many]) for many in np.flatnonzero(rows)}, found)
