"""Which columns single people out: the rows that are alone, for every few of the quasi-identifying columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from discreet.anonymity.coding.classes import classes_of
from discreet.anonymity.coding.columns import Column

_MOST_SUBSETS = 1000
_MOST_KEYS = 1 << 62


@dataclass(frozen=True)
class Alone:
    """Some columns, and the rows that no other row equals in them.

    >>> print(Alone(("age", "zip"), 3, 12))
    25.0 % alone by age, zip
    """

    columns: tuple[str, ...]
    rows: int
    of: int

    @property
    def share(self) -> float:
        """The rows that are alone, of all rows."""
        return self.rows / self.of

    def __str__(self) -> str:
        return f"{self.share:.1%} alone by {', '.join(self.columns)}".replace("%", " %")


def alone(columns: Sequence[Column], largest: int | None = None) -> tuple[Alone, ...]:
    """Count the rows that are alone by each subset of the columns, of at most `largest` of them; small ones first.

    Without it there are at most a thousand subsets: all of nine columns, or those of up to three of eighteen.
    """
    most = largest_subset(len(columns)) if largest is None else largest
    start = np.zeros(len(columns[0].codes), np.int64)
    return tuple(sorted(_walk(columns, most, (), start, 1), key=lambda each: len(each.columns)))


def largest_subset(columns: int) -> int:
    """Return how many columns at a time can be tried.

    >>> [largest_subset(columns) for columns in (1, 8, 9, 12, 18, 100)]
    [1, 8, 9, 4, 3, 1]
    """
    total = 0
    for size in range(1, columns + 1):
        total += comb(columns, size)
        if total > _MOST_SUBSETS:
            return max(1, size - 1)
    return columns


def _walk(
    columns: Sequence[Column], most: int, chosen: tuple[str, ...], key: np.ndarray, width: int
) -> Iterator[Alone]:
    """Try what is chosen with each of the columns, and go on from there with those behind it."""
    for place, column in enumerate(columns):
        more, names = len(column.values), (*chosen, column.name)
        if width * more > _MOST_KEYS:
            found = classes_of([key])
            key, width = found.ids, len(found.sizes)
        joined = key * more + column.codes
        yield Alone(names, _lonely(joined, width * more), len(joined))
        if len(names) < most:
            yield from _walk(columns[place + 1 :], most, names, joined, width * more)


def _lonely(key: np.ndarray, width: int) -> int:
    """Return how many keys occur once."""
    if width <= 4 * len(key):
        return int(np.count_nonzero(np.bincount(key) == 1))
    ordered = np.sort(key)
    edges = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return int(np.count_nonzero(edges[1:] & edges[:-1]))
