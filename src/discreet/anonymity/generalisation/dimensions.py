"""Quasi-identifiers as Mondrian dimensions, and the information loss of groups of rows.

OrderedScale        numbers and dates: the share of the column's range that the group covers; 1 if null is among them
HierarchicalScale   a column with a hierarchy: the share of all leaves under the lowest common label of the group
NominalScale        all other columns: the share of the column's values that the group has, 0 for a single value
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn
from discreet.anonymity.encoding.equivalence_classes import MAX_COUNTERS_PER_ROW
from discreet.anonymity.hierarchies.taxonomy_tree import TaxonomyTree

# Outside the interval from 0 to 1, and at least 1 away from everything else.
_MINUS_INFINITY_POSITION, _PLUS_INFINITY_POSITION, _NULL_POSITION = -1.0, 2.0, 4.0


@dataclass(frozen=True, eq=False)
class OrderedScale:
    """The position of each code in the interval from 0 to 1."""

    positions: np.ndarray

    def loss(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the loss of groups, from their smallest and largest codes."""
        return np.asarray(np.minimum(self.positions[high] - self.positions[low], 1))


@dataclass(frozen=True, eq=False)
class HierarchicalScale:
    """A tree whose leaves are sorted so that the codes under a label are contiguous."""

    tree: TaxonomyTree

    def lowest_common_level(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the lowest level on which a group has a single label, from its smallest and largest codes."""
        levels = np.full(len(low), self.tree.height)
        for level in range(self.tree.height - 1, -1, -1):
            codes = self.tree.codes[level]
            levels[codes[low] == codes[high]] = level
        return levels

    def loss(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the loss of groups, from their smallest and largest codes."""
        return np.asarray(self.tree.losses[self.lowest_common_level(low, high), low])


@dataclass(frozen=True, eq=False)
class NominalScale:
    """A column of `value_count` distinct values without an order."""

    value_count: int

    def loss(self, distinct: np.ndarray) -> np.ndarray:
        """Return the loss of groups, from the number of distinct values in each."""
        return np.where(distinct > 1, distinct / self.value_count, 0)


@dataclass(frozen=True, eq=False)
class Dimension:
    """A column's codes, the number of occurrences of each, and the scale that gives the loss of a group."""

    codes: np.ndarray
    totals: np.ndarray
    scale: OrderedScale | HierarchicalScale | NominalScale


def build_dimension(column: EncodedColumn, tree: TaxonomyTree | None) -> Dimension:
    """Return a column as a dimension, sorted by its hierarchy if it has one.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.encoding.encoded_table import encode_column
    >>> ages = build_dimension(encode_column(pa.table({"age": [20, 30, None, 60]}), "age"), None)
    >>> ages.scale.loss(np.array([0, 0, 1, 3]), np.array([0, 1, 3, 3])).tolist()
    [0.0, 0.25, 1.0, 0.0]
    """
    totals = np.bincount(column.codes, minlength=len(column.values))
    if tree is not None:
        order = np.lexsort(tree.codes)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        sorted_tree = TaxonomyTree(tree.labels, tree.codes[:, order], tree.losses[:, order])
        return Dimension(rank[column.codes], totals[order], HierarchicalScale(sorted_tree))
    if not column.is_ordered:
        return Dimension(column.codes, totals, NominalScale(len(totals)))
    return Dimension(column.codes, totals, OrderedScale(_scale_to_unit_interval(column.positions)))


def _scale_to_unit_interval(positions: np.ndarray) -> np.ndarray:
    """Scale finite positions to the interval from 0 to 1."""
    is_finite = np.isfinite(positions)
    largest = np.abs(positions[is_finite]).max(initial=0) or 1.0
    scaled = np.where(is_finite, positions / largest, 0)
    low, high = scaled[is_finite].min(initial=1), scaled[is_finite].max(initial=-1)
    unit_positions = np.where(is_finite, (scaled - low) / (high - low or 1), positions)
    return np.asarray(
        np.nan_to_num(
            unit_positions, nan=_NULL_POSITION, posinf=_PLUS_INFINITY_POSITION, neginf=_MINUS_INFINITY_POSITION
        )
    )


def total_losses(dimensions: Sequence[Dimension], codes: Sequence[np.ndarray], starts: np.ndarray) -> np.ndarray:
    """Return the loss of each group of rows over all dimensions; the groups begin at `starts`.

    >>> ages = Dimension(np.array([0, 1, 2, 2]), np.array([1, 1, 2]), OrderedScale(np.array([0, 0.25, 1])))
    >>> jobs = Dimension(np.array([0, 1, 2, 1]), np.array([1, 2, 1]), NominalScale(3))
    >>> total_losses([ages, jobs], [ages.codes, jobs.codes], np.array([0, 2])).tolist()
    [0.9166666666666666, 0.6666666666666666]
    """
    total = np.zeros(len(starts))
    for dimension, group_codes in zip(dimensions, codes, strict=True):
        if isinstance(dimension.scale, NominalScale):
            total += dimension.scale.loss(_count_distinct(group_codes, starts, len(dimension.totals)))
        else:
            low, high = np.minimum.reduceat(group_codes, starts), np.maximum.reduceat(group_codes, starts)
            total += dimension.scale.loss(low, high)
    return total


def _count_distinct(codes: np.ndarray, starts: np.ndarray, width: int) -> np.ndarray:
    """Return the number of distinct codes below `width` in each group."""
    pairs = np.repeat(np.arange(len(starts)) * width, np.diff(starts, append=len(codes))) + codes
    if len(starts) * width <= MAX_COUNTERS_PER_ROW * len(codes):
        occurs = np.zeros((len(starts), width), bool)
        occurs.reshape(-1)[pairs] = True
        return np.asarray(np.count_nonzero(occurs, axis=1))
    pairs.sort()  # every group keeps its rows
    return np.asarray(np.add.reduceat(np.diff(pairs, prepend=-1) > 0, starts, dtype=np.int64))
