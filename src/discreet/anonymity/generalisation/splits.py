"""The split of every group of rows along one dimension with the smallest information loss."""

from dataclasses import dataclass

import numpy as np

from discreet.anonymity.encoding.equivalence_classes import ContingencyTable, lookup_flags
from discreet.anonymity.generalisation.dimensions import HierarchicalScale, NominalScale, OrderedScale

_NO_SPLIT = -1.0


@dataclass(frozen=True, eq=False)
class IntervalSplit:
    """The gain of splitting each group, in rows times loss (below 0: impossible); codes low to high go left."""

    gain: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def goes_right(self, groups: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return which rows go right, given their groups and codes."""
        return np.asarray((codes < self.low[groups]) | (codes > self.high[groups]))


@dataclass(frozen=True, eq=False)
class SubsetSplit:
    """A split whose left codes are not contiguous: for each cell of group and code, whether it goes right."""

    gain: np.ndarray
    cells: ContingencyTable
    is_right: np.ndarray

    def goes_right(self, groups: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return which rows go right, given their groups and codes."""
        return lookup_flags(self.cells, self.is_right, groups, codes)


def best_splits(
    scale: OrderedScale | HierarchicalScale | NominalScale, cells: ContingencyTable, k: int
) -> IntervalSplit | SubsetSplit:
    """Return the best split of every group into two of at least k rows each.

    >>> from discreet.anonymity.encoding.equivalence_classes import EquivalenceClasses, weighted_contingency_table
    >>> counts = np.array([2, 1, 3])
    >>> one_class = EquivalenceClasses(np.zeros(3, int), np.array([6]))
    >>> cells = weighted_contingency_table(one_class, np.arange(3), counts, weights=counts)
    >>> best = best_splits(OrderedScale(np.array([0, 0.2, 1])), cells, 2)
    >>> best.low.tolist(), best.high.tolist(), best.gain.round(2).tolist()
    ([0], [1], [5.4])
    """
    if isinstance(scale, OrderedScale):
        return _split_ordered(scale, cells, k)
    if isinstance(scale, HierarchicalScale):
        return _split_hierarchical(scale, cells, k)
    return _split_nominal(scale, cells, k)


def _split_ordered(scale: OrderedScale, cells: ContingencyTable, k: int) -> IntervalSplit:
    """Try a split between every two consecutive values."""
    ends = np.append(cells.starts[1:], len(cells.values)) - 1
    low, high = cells.values[cells.starts], cells.values[ends]
    following = np.append(cells.values[1:], 0)
    following[ends] = high
    left, right = _rows_on_both_sides(cells.counts, cells)
    gain = _per_cell(cells.sizes * scale.loss(low, high), cells)
    gain -= left * scale.loss(_per_cell(low, cells), cells.values) + right * scale.loss(
        following, _per_cell(high, cells)
    )
    best, top = _best_per_group(np.where((left >= k) & (right >= k), gain, _NO_SPLIT), cells.starts)
    return IntervalSplit(best, low, cells.values[top])


def _split_nominal(scale: NominalScale, cells: ContingencyTable, k: int) -> SubsetSplit:
    """Try the most frequent value, the two most frequent, and so on: no other set of that size has more rows."""
    max_count = int(cells.counts.max())
    order = np.argsort(cells.classes * (max_count + 1) + max_count - cells.counts, kind="stable")
    left, right = _rows_on_both_sides(cells.counts[order], cells)
    rank = np.arange(len(order)) - _per_cell(cells.starts, cells)
    distinct = np.diff(np.append(cells.starts, len(order)))
    inside = rank + 1
    gain = _per_cell(cells.sizes * scale.loss(distinct), cells)
    gain -= left * scale.loss(inside) + right * scale.loss(_per_cell(distinct, cells) - inside)
    best, top = _best_per_group(np.where((left >= k) & (right >= k), gain, _NO_SPLIT), cells.starts)
    goes_right = np.empty(len(order), bool)
    goes_right[order] = np.arange(len(order)) > _per_cell(top, cells)
    return SubsetSplit(best, cells, goes_right)


def _split_hierarchical(scale: HierarchicalScale, cells: ContingencyTable, k: int) -> IntervalSplit:
    """Try each label below the group's label against all other rows, whose common label may then be lower too."""
    best, *others = (_split_at_level(scale, codes, cells, k) for codes in scale.tree.codes[:-1])
    for other in others:
        is_better = other.gain > best.gain
        pairs = zip((best.gain, best.low, best.high), (other.gain, other.low, other.high), strict=True)
        best = IntervalSplit(*(np.where(is_better, new, old) for old, new in pairs))
    return best


def _split_at_level(scale: HierarchicalScale, codes: np.ndarray, cells: ContingencyTable, k: int) -> IntervalSplit:
    begins = np.diff(codes[cells.values], prepend=-1) != 0
    begins[cells.starts] = True
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(begins)) - 1
    group = cells.classes[first]
    start, end = cells.starts[group], (np.append(cells.starts[1:], len(begins)) - 1)[group]
    inside = np.add.reduceat(cells.counts, first)
    outside = cells.sizes[group] - inside
    # If the label is the last of its group, the rows before it may have a lower common label. If it is the first, the
    # lower common label of the others, if any, is tried as a label itself.
    high = np.where(last == end, np.maximum(first - 1, start), end)
    gain = cells.sizes[group] * _range_loss(scale, cells, start, end)
    gain -= inside * _range_loss(scale, cells, first, last) + outside * _range_loss(scale, cells, start, high)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    best, top = _best_per_group(np.where((inside >= k) & (outside >= k), gain, _NO_SPLIT), starts)
    return IntervalSplit(best, cells.values[first[top]], cells.values[last[top]])


def _range_loss(scale: HierarchicalScale, cells: ContingencyTable, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the loss of the values between two cells."""
    return scale.loss(cells.values[first], cells.values[last])


def _per_cell(per_group: np.ndarray, cells: ContingencyTable) -> np.ndarray:
    """Return for every cell the element of its group."""
    return np.asarray(per_group[cells.classes])


def _rows_on_both_sides(counts: np.ndarray, cells: ContingencyTable) -> tuple[np.ndarray, np.ndarray]:
    """Return for every cell the number of rows of its group up to it, and after it."""
    sums = np.cumsum(counts)
    left = sums - _per_cell(sums[cells.starts] - counts[cells.starts], cells)
    return left, _per_cell(cells.sizes, cells) - left


def _best_per_group(gain: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest gain of each group, and its first index."""
    best = np.maximum.reduceat(gain, starts)
    lengths = np.diff(np.append(starts, len(gain)))
    hits = np.flatnonzero(gain == np.repeat(best, lengths))
    return best, hits[np.searchsorted(hits, starts)]
