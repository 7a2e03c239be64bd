"""Counting codes in many groups of rows at once."""

import numpy as np

from discreet.anonymity.coding.cells import Cells
from discreet.anonymity.coding.classes import Classes

_ROOM = 4  # counters for each row, up to which counting all pairs is faster than sorting those that occur


def tally(classes: Classes, codes: np.ndarray, totals: np.ndarray, weights: np.ndarray) -> Cells:
    """Count the codes of each class; `totals` tells how often each occurs in the table.

    A row of the given codes stands for as many of the table as its weight; so the sizes of the classes count.

    >>> classes = Classes(np.array([0, 0, 1]), np.array([5, 1]))
    >>> found = tally(classes, np.array([2, 0, 2]), np.array([1, 0, 5]), weights=np.array([4, 1, 1]))
    >>> found.classes.tolist(), found.values.tolist(), found.counts.tolist(), found.starts.tolist()
    ([0, 0, 1], [0, 2, 2], [1, 4, 1], [0, 2])
    """
    width, many = len(totals), len(classes.sizes)
    keys = classes.ids * width + codes
    if many * width <= _ROOM * len(keys):
        counts = np.bincount(keys, weights, many * width)  # in floats, exact as far as anybody has rows
        found = np.flatnonzero(counts)
        counts = counts[found].astype(np.int64)
    else:
        order = np.argsort(keys)
        keys = keys[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        found, counts = keys[first], np.add.reduceat(weights[order], first)
    groups = found // width
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return Cells(groups, found - groups * width, counts, starts, classes.sizes, totals)


def looked_up(cells: Cells, flags: np.ndarray, groups: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return for each row the flag of the pair of its group and its code, which must be one of the cells.

    >>> cells = Cells(np.array([0, 0, 1]), np.array([0, 2, 2]), *[np.ones(3, int)] * 2, np.array([2, 1]), np.ones(3))
    >>> looked_up(cells, np.array([True, False, True]), np.array([1, 0, 0]), np.array([2, 2, 0])).tolist()
    [True, False, True]
    """
    width = len(cells.totals)
    known, asked = cells.classes * width + cells.values, groups * width + codes
    if len(cells.sizes) * width <= _ROOM * len(groups):
        table = np.zeros(len(cells.sizes) * width, bool)
        table[known] = flags
        return np.asarray(table[asked])
    return np.asarray(flags[np.searchsorted(known, asked)])
