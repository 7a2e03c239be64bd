"""Uniqueness: the share of rows that are unique by each combination of quasi-identifiers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn
from discreet.anonymity.encoding.equivalence_classes import group_equal_rows

_MAX_COMBINATIONS = 1000
_MAX_KEY = 1 << 62


@dataclass(frozen=True)
class UniqueCombination:
    """A combination of columns, and the number of rows that no other row equals in them.

    >>> print(UniqueCombination(("age", "zip"), 3, 12))
    25.0 % unique by age, zip
    """

    columns: tuple[str, ...]
    unique_rows: int
    total_rows: int

    @property
    def share(self) -> float:
        """The share of rows that are unique."""
        return self.unique_rows / self.total_rows

    def __str__(self) -> str:
        return f"{self.share:.1%} unique by {', '.join(self.columns)}".replace("%", " %")


def count_unique_rows(columns: Sequence[EncodedColumn], largest: int | None = None) -> tuple[UniqueCombination, ...]:
    """Count the unique rows by each combination of at most `largest` columns, the smallest combinations first.

    By default, `largest` is chosen so that there are at most 1,000 combinations.
    """
    max_columns = max_combination_size(len(columns)) if largest is None else largest
    key = np.zeros(len(columns[0].codes), np.int64)
    return tuple(
        sorted(_extend_combination(columns, max_columns, (), key, 1), key=lambda combination: len(combination.columns))
    )


def max_combination_size(columns: int) -> int:
    """Return the largest number of columns with at most 1,000 combinations up to that size, at least 1.

    >>> [max_combination_size(columns) for columns in (1, 8, 9, 12, 18, 100)]
    [1, 8, 9, 4, 3, 1]
    """
    total = 0
    for size in range(1, columns + 1):
        total += comb(columns, size)
        if total > _MAX_COMBINATIONS:
            return max(1, size - 1)
    return columns


def _extend_combination(
    columns: Sequence[EncodedColumn], max_columns: int, combination: tuple[str, ...], key: np.ndarray, width: int
) -> Iterator[UniqueCombination]:
    """Extend a combination by each of the columns, and recursively by the columns after it."""
    for index, column in enumerate(columns):
        column_width, names = len(column.values), (*combination, column.name)
        if width * column_width > _MAX_KEY:
            classes = group_equal_rows([key])
            key, width = classes.ids, len(classes.sizes)
        extended_key = key * column_width + column.codes
        yield UniqueCombination(names, _count_singletons(extended_key, width * column_width), len(extended_key))
        if len(names) < max_columns:
            yield from _extend_combination(columns[index + 1 :], max_columns, names, extended_key, width * column_width)


def _count_singletons(key: np.ndarray, width: int) -> int:
    """Return the number of keys that occur exactly once."""
    if width <= 4 * len(key):
        return int(np.count_nonzero(np.bincount(key) == 1))
    ordered = np.sort(key)
    edges = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return int(np.count_nonzero(edges[1:] & edges[:-1]))
