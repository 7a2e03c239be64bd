"""Which points lie in which boxes: people, and the rows of a release that each may be.

A box has a released value in every column, and covers some original values there. Boxes are sorted into a tree by
their columns, one column a level, and so are the points; two nodes meet if what they have so far agrees. As equal
beginnings are looked at once, and the few boxes of a release that overlap do so in a few columns, there are little
more meetings on the way than in the end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.anonymity.coding.classes import classes_of
from discreet.anonymity.labels.covers import Cover

_AT_ONCE = 2_000_000
_Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class _Level:
    """The nodes of one column, sorted by parent·width + code, and the node, the first row and the size of each."""

    keys: np.ndarray
    width: int
    ids: np.ndarray
    first: np.ndarray
    sizes: np.ndarray


def meetings(
    boxes: Sequence[np.ndarray], covers: Sequence[Cover], points: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Count the points in each box, and name one of them, -1 if there is none.

    >>> from discreet.anonymity.labels.covers import cover_of
    >>> counts, one = meetings([np.array([0, 1])], [cover_of([[0, 1], [1]], 3)], [np.array([0, 2, 0, 1])])
    >>> counts.tolist(), one.tolist()
    ([3, 1], [3, 3])
    """
    start, here, overlapping = _met_at_once(boxes, covers, points)
    left = _levels([start[: len(boxes[0])], *(boxes[place] for place in overlapping)])
    right = _levels([start[len(boxes[0]) :], *(points[place][here] for place in overlapping)])
    counts, one = np.zeros(len(left[-1].keys), np.int64), np.full(len(left[-1].keys), -1)
    _, mine, theirs = np.intersect1d(left[0].keys, right[0].keys, assume_unique=True, return_indices=True)
    covered = [covers[place] for place in overlapping]
    for boxed, inside in _descend((mine, theirs), left[1:], right[1:], covered):
        np.add.at(counts, boxed, right[-1].sizes[inside])
        one[boxed] = here[right[-1].first[inside]]
    return counts[left[-1].ids], one[left[-1].ids]


def _met_at_once(
    boxes: Sequence[np.ndarray], covers: Sequence[Cover], points: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Take the columns together in which no released values overlap: there every point has one, and equal ones meet.

    Return the classes by these columns of all boxes and then of the points that may be in one, which points these
    are, and the other columns, those of few values first.
    """
    owners = {place: owner for place, cover in enumerate(covers) if (owner := cover.owners()) is not None}
    theirs = {place: owner[points[place]] for place, owner in owners.items()}
    here = np.arange(len(points[0]))
    for each in theirs.values():
        here = here[each[here] >= 0]
    both = [np.concatenate([boxes[place], each[here]]) for place, each in theirs.items()]
    start = classes_of(both).ids if both else np.zeros(len(boxes[0]) + len(here), np.int64)
    overlapping = [place for place in range(len(covers)) if place not in owners]
    return start, here, sorted(overlapping, key=lambda place: covers[place].many)


def _levels(columns: Sequence[np.ndarray]) -> list[_Level]:
    levels, parents = [], np.zeros(len(columns[0]), np.int64)
    for codes in columns:
        width = int(codes.max(initial=0)) + 1
        keys, first, parents, sizes = np.unique(
            parents * width + codes, return_index=True, return_inverse=True, return_counts=True
        )
        levels.append(_Level(keys, width, parents, first, sizes))
    return levels


def _descend(
    pairs: _Pairs, left: Sequence[_Level], right: Sequence[_Level], covers: Sequence[Cover]
) -> Iterator[_Pairs]:
    """Follow pairs of nodes that meet down to the last level, some at a time."""
    if not covers:
        yield pairs
        return
    cover = covers[0]
    for mine, theirs in _children(pairs, left[0]):
        label = left[0].keys[mine] % left[0].width
        low = np.searchsorted(right[0].keys, theirs * right[0].width + np.minimum(cover.low[label], right[0].width))
        high = np.searchsorted(right[0].keys, theirs * right[0].width + np.minimum(cover.high[label], right[0].width))
        for each, inside in _expanded(low, high):
            met = cover.holds(label[each], right[0].keys[inside] % right[0].width)
            yield from _descend((mine[each][met], inside[met]), left[1:], right[1:], covers[1:])


def _children(pairs: _Pairs, level: _Level) -> Iterator[_Pairs]:
    """Replace the first of each pair by its children."""
    low = np.searchsorted(level.keys, pairs[0] * level.width)
    high = np.searchsorted(level.keys, (pairs[0] + 1) * level.width)
    for each, child in _expanded(low, high):
        yield child, pairs[1][each]


def _expanded(low: np.ndarray, high: np.ndarray) -> Iterator[_Pairs]:
    """List low, ..., high - 1 for each pair of them, beside the pair's number; not too many at once."""
    ends = np.cumsum(high - low)
    begin = 0
    while begin < len(low):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _AT_ONCE, side="right")))
        length = high[begin:end] - low[begin:end]
        each = np.repeat(np.arange(begin, end), length)
        yield each, low[each] + np.arange(len(each)) - (ends[each] - (high - low)[each] - before)
        begin = end
