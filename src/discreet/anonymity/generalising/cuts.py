"""The best cut of every group of rows along one axis: the one that loses least."""

from dataclasses import dataclass

import numpy as np

from discreet.anonymity.coding.cells import Cells
from discreet.anonymity.coding.tallies import looked_up
from discreet.anonymity.generalising.axes import Bag, Branch, Line

_NONE = -1.0


@dataclass(frozen=True, eq=False)
class Run:
    """For each group what is gained, in rows times loss (below 0 if it cannot be cut), and the codes that stay left."""

    gain: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def goes_right(self, groups: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Tell for rows of some groups, with these codes, whether they go right."""
        return np.asarray((codes < self.low[groups]) | (codes > self.high[groups]))


@dataclass(frozen=True, eq=False)
class Subset:
    """The same, where those codes are no run: for each pair of a group and a code, whether it goes right."""

    gain: np.ndarray
    cells: Cells
    right: np.ndarray

    def goes_right(self, groups: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Tell for rows of some groups, with these codes, whether they go right."""
        return looked_up(self.cells, self.right, groups, codes)


def cut(shape: Line | Branch | Bag, cells: Cells, k: int) -> Run | Subset:
    """Cut every group into two of at least k rows each.

    >>> from discreet.anonymity.coding.classes import Classes
    >>> from discreet.anonymity.coding.tallies import tally
    >>> counts = np.array([2, 1, 3])
    >>> cells = tally(Classes(np.zeros(3, int), np.array([6])), np.arange(3), counts, weights=counts)
    >>> best = cut(Line(np.array([0, 0.2, 1])), cells, 2)
    >>> best.low.tolist(), best.high.tolist(), best.gain.round(2).tolist()
    ([0], [1], [5.4])
    """
    if isinstance(shape, Line):
        return _along_a_line(shape, cells, k)
    if isinstance(shape, Branch):
        return _off_a_branch(shape, cells, k)
    return _out_of_a_bag(shape, cells, k)


def _along_a_line(line: Line, cells: Cells, k: int) -> Run:
    """Try every place between two values."""
    ends = np.append(cells.starts[1:], len(cells.values)) - 1
    low, high = cells.values[cells.starts], cells.values[ends]
    following = np.append(cells.values[1:], 0)
    following[ends] = high
    left, right = _both_sides(cells.counts, cells)
    gain = _spread(cells.sizes * line.loss(low, high), cells)
    gain -= left * line.loss(_spread(low, cells), cells.values) + right * line.loss(following, _spread(high, cells))
    best, top = _best(np.where((left >= k) & (right >= k), gain, _NONE), cells.starts)
    return Run(best, low, cells.values[top])


def _out_of_a_bag(bag: Bag, cells: Cells, k: int) -> Subset:
    """Try the most frequent value, the two most frequent, and so on: for as many values none have more rows."""
    most = int(cells.counts.max())
    order = np.argsort(cells.classes * (most + 1) + most - cells.counts, kind="stable")
    left, right = _both_sides(cells.counts[order], cells)
    place = np.arange(len(order)) - _spread(cells.starts, cells)
    distinct = np.diff(np.append(cells.starts, len(order)))
    inside = place + 1
    gain = _spread(cells.sizes * bag.loss(distinct), cells)
    gain -= left * bag.loss(inside) + right * bag.loss(_spread(distinct, cells) - inside)
    best, top = _best(np.where((left >= k) & (right >= k), gain, _NONE), cells.starts)
    goes_right = np.empty(len(order), bool)
    goes_right[order] = np.arange(len(order)) > _spread(top, cells)
    return Subset(best, cells, goes_right)


def _off_a_branch(branch: Branch, cells: Cells, k: int) -> Run:
    """Try each label below that of the group against all other rows, whose label may then be lower, too."""
    first, *others = (_off_a_level(branch, codes, cells, k) for codes in branch.tree.codes[:-1])
    for other in others:
        is_better = other.gain > first.gain
        pairs = zip((first.gain, first.low, first.high), (other.gain, other.low, other.high), strict=True)
        first = Run(*(np.where(is_better, new, old) for old, new in pairs))
    return first


def _off_a_level(branch: Branch, codes: np.ndarray, cells: Cells, k: int) -> Run:
    begins = np.diff(codes[cells.values], prepend=-1) != 0
    begins[cells.starts] = True
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(begins)) - 1
    group = cells.classes[first]
    start, end = cells.starts[group], (np.append(cells.starts[1:], len(begins)) - 1)[group]
    inside = np.add.reduceat(cells.counts, first)
    outside = cells.sizes[group] - inside
    # Where the label is the last of its group, all others lie before it and may have a lower label together. Where
    # it is the first and they have, that label is tried itself, against this one.
    high = np.where(last == end, np.maximum(first - 1, start), end)
    gain = cells.sizes[group] * _lost(branch, cells, start, end)
    gain -= inside * _lost(branch, cells, first, last) + outside * _lost(branch, cells, start, high)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    best, top = _best(np.where((inside >= k) & (outside >= k), gain, _NONE), starts)
    return Run(best, cells.values[first[top]], cells.values[last[top]])


def _lost(branch: Branch, cells: Cells, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return what is lost from one place of the cells to another."""
    return branch.loss(cells.values[first], cells.values[last])


def _spread(each: np.ndarray, cells: Cells) -> np.ndarray:
    """Give every value of a group what belongs to the group."""
    return np.asarray(each[cells.classes])


def _both_sides(counts: np.ndarray, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    """Return how many rows have a group's values up to each, and how many have those behind it."""
    sums = np.cumsum(counts)
    left = sums - _spread(sums[cells.starts] - counts[cells.starts], cells)
    return left, _spread(cells.sizes, cells) - left


def _best(gain: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest gain of each group, and where it is; the first of equal ones."""
    best = np.maximum.reduceat(gain, starts)
    lengths = np.diff(np.append(starts, len(gain)))
    hits = np.flatnonzero(gain == np.repeat(best, lengths))
    return best, hits[np.searchsorted(hits, starts)]
