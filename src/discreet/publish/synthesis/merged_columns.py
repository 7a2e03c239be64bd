"""Merged columns: beside each column with many values a coarser one, whose values are groups of the column's.

A table of merged columns has few cells, so little noise; where columns relate smoothly it says nearly as much. In a
model, each merged column is linked to its source.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from discreet.publish.synthesis.junction_tree import Columns, table_cells

_MOST_UNMERGED = 6  # values of a column that has no merged one
_IMPOSSIBLE = -1e3  # the logarithm of a factor: finite, but its exponential is 0


@dataclass(frozen=True, eq=False)
class MergedColumn:
    """Groups of the values of a column: `groups` has the group of each value of the column `source`."""

    source: int
    groups: np.ndarray

    @cached_property
    def members(self) -> np.ndarray:
        """Whether a value is in a group, as 0 or 1: a row for each value, a column for each group."""
        return np.equal.outer(self.groups, np.arange(self.groups.max() + 1)).astype(float)

    @property
    def link(self) -> np.ndarray:
        """The logarithm of a factor that makes each value belong to its group only."""
        return np.where(self.members, 0.0, _IMPOSSIBLE)


@dataclass(frozen=True, eq=False)
class ColumnSet:
    """The columns of the data, and after them merged ones."""

    data: tuple[int, ...]  # the number of values of each column
    merged: tuple[MergedColumn, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of every column."""
        return (*self.data, *(column.members.shape[1] for column in self.merged))

    def links_of(self, tables: Iterable[Columns]) -> dict[Columns, np.ndarray]:
        """Return the factors that link the merged columns of some tables to their sources."""
        used = {column - len(self.data) for table in tables for column in table}
        return {(self.merged[at].source, len(self.data) + at): self.merged[at].link for at in sorted(used) if at >= 0}

    def merge(self, values: np.ndarray, pair: Columns, table: Columns) -> np.ndarray:
        """Return the counts of a table of merged columns, from those of a pair of the data's columns."""
        sources = [self.merged[at - len(self.data)].source if at >= len(self.data) else at for at in table]
        result = values if sources == [*pair] else values.T
        for axis, column in enumerate(table):
            if column >= len(self.data):
                members = self.merged[column - len(self.data)].members
                result = np.moveaxis(np.tensordot(result, members, (axis, 0)), -1, axis)
        return np.asarray(result)


def merged_sources(sizes: Sequence[int]) -> list[int]:
    """Return the columns that get a merged one, in the order of these."""
    return [column for column, size in enumerate(sizes) if size > _MOST_UNMERGED]


def candidate_tables(sizes: Sequence[int], most_groups: int, most_cells: int) -> Mapping[Columns, list[Columns]]:
    """Return the tables that may be measured for each pair of columns that vary: of the columns, and of merged ones.

    >>> candidate_tables([9, 2, 1, 9], 4, most_cells=50)
    {(0, 1): [(0, 1), (1, 4)], (0, 3): [(4, 5)], (1, 3): [(1, 3), (1, 5)]}
    """
    sources = merged_sources(sizes)
    merged = {column: len(sizes) + at for at, column in enumerate(sources)}
    most = [*sizes, *(min(sizes[column], most_groups) for column in sources)]
    found: dict[Columns, list[Columns]] = {}
    for one, other in combinations([column for column, size in enumerate(sizes) if size > 1], 2):
        coarse = tuple(sorted((merged.get(one, one), merged.get(other, other))))
        tables = [each for each in dict.fromkeys([(one, other), coarse]) if table_cells(each, most) <= most_cells]
        if tables:
            found[one, other] = tables
    return found


def merge_values(counts: np.ndarray, share: float, *, ordered: bool) -> np.ndarray:
    """Return the group of each value: as many groups as there are with at least a share of the counts in each.

    Groups consist of neighbours, or of values that are about equally frequent if the values have no order.

    >>> merge_values(np.array([1, 1, 9, 1, 1, 1]), 1 / 7, ordered=True)
    array([0, 0, 1, 2, 2, 2])
    """
    weights = np.maximum(counts, 0.0)
    order = np.arange(len(weights)) if ordered else np.argsort(-weights, kind="stable")
    ends = np.concatenate([[0.0], np.cumsum(weights[order])])
    least = share * ends[-1]
    remaining, spans = [(0, len(weights))], []
    while remaining:
        first, last = remaining.pop()
        cuts = np.arange(first + 1, last)
        cuts = cuts[(ends[cuts] - ends[first] >= least) & (ends[last] - ends[cuts] >= least)]
        if len(cuts):
            cut = int(cuts[np.argmin(np.abs(2 * ends[cuts] - ends[first] - ends[last]))])
            remaining += [(cut, last), (first, cut)]
        else:
            spans.append(last - first)  # in ascending order
    groups = np.empty(len(weights), np.int64)
    groups[order] = np.repeat(np.arange(len(spans)), spans)
    return groups
