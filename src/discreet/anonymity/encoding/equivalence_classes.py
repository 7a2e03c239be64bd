"""Equivalence classes of rows, and how often each value occurs in each class."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from discreet.arguments import require

_MAX_KEY = 1 << 62  # keys must fit in int64


@dataclass(frozen=True, eq=False)
class EquivalenceClasses:
    """The class of each row, numbered by first occurrence, and the size of each class."""

    ids: np.ndarray
    sizes: np.ndarray

    @property
    def first_rows(self) -> np.ndarray:
        """The first row of each class."""
        first = np.empty(len(self.sizes), np.int64)
        first[self.ids[::-1]] = np.arange(len(self.ids) - 1, -1, -1)
        return first


def group_equal_rows(codes: Sequence[np.ndarray]) -> EquivalenceClasses:
    """Group rows that have the same codes in all columns.

    >>> classes = group_equal_rows([np.array([0, 1, 0, 0]), np.array([2, 0, 2, 1])])
    >>> classes.ids.tolist(), classes.sizes.tolist(), classes.first_rows.tolist()
    ([0, 1, 0, 2], [2, 1, 1], [0, 1, 3])
    """
    require(codes, "pass at least one column.", "codes")
    key, width = np.asarray(codes[0], np.int64), _count_codes(codes[0])
    for column in codes[1:]:
        column_width = _count_codes(column)
        if width * column_width > _MAX_KEY:  # renumber the keys: there are at most as many as rows
            key, sizes = _rank_keys(key)
            width = len(sizes)
        key = key * column_width + column
        width *= column_width
    return EquivalenceClasses(*_rank_keys(key))


def _count_codes(codes: np.ndarray) -> int:
    return int(codes.max(initial=-1)) + 1


def _rank_keys(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rank of each key among the distinct keys, by first occurrence, and how often each occurs."""
    # Arrow hashes the keys, which is several times as fast as sorting them.
    encoded = pa.array(key).dictionary_encode()
    ids = np.asarray(encoded.indices).astype(np.int64)
    return ids, np.bincount(ids, minlength=len(encoded.dictionary))


@dataclass(frozen=True, eq=False)
class ContingencyTable:
    """The pairs of class and value that occur, sorted by class and then by value, and their counts.

    `starts` are the indices at which the classes begin, `sizes` the rows of each class, `totals` those of each value.
    """

    classes: np.ndarray
    values: np.ndarray
    counts: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    totals: np.ndarray

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return int(self.sizes.sum())


def contingency_table(classes: EquivalenceClasses, codes: np.ndarray) -> ContingencyTable:
    """Count a column's values in each class.

    >>> cells = contingency_table(EquivalenceClasses(np.array([0, 0, 0, 1]), np.array([3, 1])), np.array([2, 0, 2, 2]))
    >>> cells.classes.tolist(), cells.values.tolist(), cells.counts.tolist(), cells.starts.tolist()
    ([0, 0, 1], [0, 2, 2], [1, 2, 1], [0, 2])
    """
    return weighted_contingency_table(classes, codes, np.bincount(codes), np.ones(len(codes), np.int64))


MAX_COUNTERS_PER_ROW = 4  # up to this many, counting all pairs is faster than sorting those that occur


def weighted_contingency_table(
    classes: EquivalenceClasses, codes: np.ndarray, totals: np.ndarray, weights: np.ndarray
) -> ContingencyTable:
    """Count the codes of each class; each row represents `weights` equal rows of the table.

    The class sizes are in rows of the table, and `totals` has the number of occurrences of each code in it.

    >>> classes = EquivalenceClasses(np.array([0, 0, 1]), np.array([5, 1]))
    >>> codes, totals = np.array([2, 0, 2]), np.array([1, 0, 5])
    >>> cells = weighted_contingency_table(classes, codes, totals, weights=np.array([4, 1, 1]))
    >>> cells.classes.tolist(), cells.values.tolist(), cells.counts.tolist(), cells.starts.tolist()
    ([0, 0, 1], [0, 2, 2], [1, 4, 1], [0, 2])
    """
    width, class_count = len(totals), len(classes.sizes)
    keys = classes.ids * width + codes
    if class_count * width <= MAX_COUNTERS_PER_ROW * len(keys):
        counts = np.bincount(keys, weights, class_count * width)  # as floats, exact up to 2^53 rows
        occurring_keys = np.flatnonzero(counts)
        counts = counts[occurring_keys].astype(np.int64)
    else:
        order = np.argsort(keys)
        keys = keys[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        occurring_keys, counts = keys[first], np.add.reduceat(weights[order], first)
    class_ids = occurring_keys // width
    starts = np.flatnonzero(np.diff(class_ids, prepend=-1))
    return ContingencyTable(class_ids, occurring_keys - class_ids * width, counts, starts, classes.sizes, totals)


def lookup_flags(cells: ContingencyTable, flags: np.ndarray, groups: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return for each row the flag of the cell with its group and code, which must exist.

    >>> cells = contingency_table(EquivalenceClasses(np.array([0, 0, 1]), np.array([2, 1])), np.array([0, 2, 2]))
    >>> lookup_flags(cells, np.array([True, False, True]), np.array([1, 0, 0]), np.array([2, 2, 0])).tolist()
    [True, False, True]
    """
    width = len(cells.totals)
    cells_of_rows = np.searchsorted(cells.classes * width + cells.values, groups * width + codes)
    return np.asarray(flags[cells_of_rows])
