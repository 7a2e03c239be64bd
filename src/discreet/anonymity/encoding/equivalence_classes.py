"""Equivalence classes of rows, and how often each value occurs in each class."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

_MAX_KEY = 1 << 62  # keys of classes stay below it, in 64 bits with a sign


@dataclass(frozen=True, eq=False)
class EquivalenceClasses:
    """The class of each row, 0, 1, ... in the order of their first rows, and how many rows each class has."""

    ids: np.ndarray
    sizes: np.ndarray

    @property
    def first_rows(self) -> np.ndarray:
        """The first row of each class."""
        first = np.empty(len(self.sizes), np.int64)
        first[self.ids[::-1]] = np.arange(len(self.ids) - 1, -1, -1)
        return first


def group_equal_rows(codes: Sequence[np.ndarray]) -> EquivalenceClasses:
    """Put rows together that have the same codes in all columns.

    >>> encoded = group_equal_rows([np.array([0, 1, 0, 0]), np.array([2, 0, 2, 1])])
    >>> encoded.ids.tolist(), encoded.sizes.tolist(), encoded.first_rows.tolist()
    ([0, 1, 0, 2], [2, 1, 1], [0, 1, 3])
    """
    if not codes:
        raise ValueError("codes: give at least one column.")
    key, width = np.asarray(codes[0], np.int64), _count_codes(codes[0])
    for column in codes[1:]:
        column_width = _count_codes(column)
        if width * column_width > _MAX_KEY:  # count anew from 0, which needs no more numbers than there are rows
            key, sizes = _rank_keys(key)
            width = len(sizes)
        key = key * column_width + column
        width *= column_width
    return EquivalenceClasses(*_rank_keys(key))


def _count_codes(codes: np.ndarray) -> int:
    return int(codes.max(initial=-1)) + 1


def _rank_keys(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the different keys each is, in the order of their first places, and how often each occurs."""
    # Hashing, several times as fast as sorting.
    encoded = pa.array(key).dictionary_encode()
    ids = np.asarray(encoded.indices).astype(np.int64)
    return ids, np.bincount(ids, minlength=len(encoded.dictionary))


@dataclass(frozen=True, eq=False)
class ContingencyTable:
    """The pairs of a class and a value that occur, sorted by class and then by value, and how often each does.

    `starts` are the places where the classes begin; `sizes` the rows of each class; `totals` those of each value.
    """

    classes: np.ndarray
    values: np.ndarray
    counts: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    totals: np.ndarray

    @property
    def row_count(self) -> int:
        """The rows of the table."""
        return int(self.sizes.sum())


def contingency_table(classes: EquivalenceClasses, codes: np.ndarray) -> ContingencyTable:
    """Count a column's values in each class.

    >>> found = contingency_table(EquivalenceClasses(np.array([0, 0, 0, 1]), np.array([3, 1])), np.array([2, 0, 2, 2]))
    >>> found.classes.tolist(), found.values.tolist(), found.counts.tolist(), found.starts.tolist()
    ([0, 0, 1], [0, 2, 2], [1, 2, 1], [0, 2])
    """
    width = int(codes.max()) + 1
    keys, counts = np.unique(classes.ids * width + codes, return_counts=True)
    class_ids, values = np.divmod(keys, width)
    starts = np.flatnonzero(np.diff(class_ids, prepend=-1))
    return ContingencyTable(class_ids, values, counts, starts, classes.sizes, np.bincount(codes, minlength=width))


_MAX_COUNTERS_PER_ROW = (
    4  # counters for each row, up to which counting all pairs is faster than sorting those that occur
)


def weighted_contingency_table(
    classes: EquivalenceClasses, codes: np.ndarray, totals: np.ndarray, weights: np.ndarray
) -> ContingencyTable:
    """Count the codes of each class; `totals` tells how often each occurs in the table.

    A row of the given codes stands for as many of the table as its weight; so the sizes of the classes count.

    >>> classes = EquivalenceClasses(np.array([0, 0, 1]), np.array([5, 1]))
    >>> occurring_keys = weighted_contingency_table(classes, np.array([2, 0, 2]), np.array([1, 0, 5]), weights=np.array([4, 1, 1]))
    >>> occurring_keys.classes.tolist(), occurring_keys.values.tolist(), occurring_keys.counts.tolist(), occurring_keys.starts.tolist()
    ([0, 0, 1], [0, 2, 2], [1, 4, 1], [0, 2])
    """
    width, class_count = len(totals), len(classes.sizes)
    keys = classes.ids * width + codes
    if class_count * width <= _MAX_COUNTERS_PER_ROW * len(keys):
        counts = np.bincount(keys, weights, class_count * width)  # in floats, exact as far as anybody has rows
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
    """Return for each row the flag of the pair of its group and its code, which must be one of the cells.

    >>> cells = ContingencyTable(np.array([0, 0, 1]), np.array([0, 2, 2]), *[np.ones(3, int)] * 2, np.array([2, 1]), np.ones(3))
    >>> lookup_flags(cells, np.array([True, False, True]), np.array([1, 0, 0]), np.array([2, 2, 0])).tolist()
    [True, False, True]
    """
    width = len(cells.totals)
    cell_keys, row_keys = cells.classes * width + cells.values, groups * width + codes
    if len(cells.sizes) * width <= _MAX_COUNTERS_PER_ROW * len(groups):
        table = np.zeros(len(cells.sizes) * width, bool)
        table[cell_keys] = flags
        return np.asarray(table[row_keys])
    return np.asarray(flags[np.searchsorted(cell_keys, row_keys)])
