"""Quasi-identifying columns as Mondrian sees them: what a group of rows loses in each.

Line     numbers and dates: the share of the column's range that the group covers; 1 if it mixes null with others
Branch   a column with a hierarchy: the share of all leaves that lie under the label of the whole group
Bag      all others: the share of the column's values that the group has, 0 if it is one
"""

from dataclasses import dataclass

import numpy as np

from discreet.anonymity.coding.columns import Column
from discreet.anonymity.labels.tree import Tree

_BELOW, _ABOVE, _NULL = -1.0, 2.0, 4.0  # beside the line from 0 to 1, each 1 or more from everything else


@dataclass(frozen=True, eq=False)
class Line:
    """The place of each code on a line from 0 to 1."""

    at: np.ndarray

    def loss(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return what groups lose, from their smallest and largest codes."""
        return np.asarray(np.minimum(self.at[high] - self.at[low], 1))


@dataclass(frozen=True, eq=False)
class Branch:
    """A tree whose leaves are in such an order that everything under a label is a run of codes."""

    tree: Tree

    def level(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the lowest level on which a whole group has one label, from its smallest and largest codes."""
        found = np.full(len(low), self.tree.height)
        for level in range(self.tree.height - 1, -1, -1):
            codes = self.tree.codes[level]
            found[codes[low] == codes[high]] = level
        return found

    def loss(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return what groups lose."""
        return np.asarray(self.tree.losses[self.level(low, high), low])


@dataclass(frozen=True, eq=False)
class Bag:
    """A column of so many different values, in no order."""

    width: int

    def loss(self, distinct: np.ndarray) -> np.ndarray:
        """Return what groups lose, from the number of different values in each."""
        return np.where(distinct > 1, distinct / self.width, 0)


@dataclass(frozen=True, eq=False)
class Axis:
    """A column's codes, how often each occurs, and what groups of them lose."""

    codes: np.ndarray
    totals: np.ndarray
    shape: Line | Branch | Bag


def axis_of(column: Column, tree: Tree | None) -> Axis:
    """Make a column ready to be cut, by its hierarchy if there is one.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.coding.columns import encode
    >>> ages = axis_of(encode(pa.table({"age": [20, 30, None, 60]}), "age"), None)
    >>> ages.shape.loss(np.array([0, 0, 1, 3]), np.array([0, 1, 3, 3])).tolist()
    [0.0, 0.25, 1.0, 0.0]
    """
    totals = np.bincount(column.codes, minlength=len(column.values))
    if tree is not None:
        order = np.lexsort(tree.codes)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        sorted_tree = Tree(tree.labels, tree.codes[:, order], tree.losses[:, order])
        return Axis(rank[column.codes], totals[order], Branch(sorted_tree))
    if not column.ordered:
        return Axis(column.codes, totals, Bag(len(totals)))
    return Axis(column.codes, totals, Line(_on_a_line(column.positions)))


def _on_a_line(places: np.ndarray) -> np.ndarray:
    """Shift and shrink finite places to lie between 0 and 1."""
    is_finite = np.isfinite(places)
    largest = np.abs(places[is_finite]).max(initial=0) or 1.0
    scaled = np.where(is_finite, places / largest, 0)
    low, high = scaled[is_finite].min(initial=1), scaled[is_finite].max(initial=-1)
    at = np.where(is_finite, (scaled - low) / (high - low or 1), places)
    return np.asarray(np.nan_to_num(at, nan=_NULL, posinf=_ABOVE, neginf=_BELOW))
