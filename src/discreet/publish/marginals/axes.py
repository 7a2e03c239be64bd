"""Axes with levels, and the tables over them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from discreet.kernel.errors import require
from discreet.kernel.numbers import store_integer

Table = tuple[tuple[int, int], ...]
"""The axes of a table by index, in ascending order, each with its level; () is the grand total."""


@dataclass(frozen=True)
class Axis:
    """A column with the codes 0 to size − 1 (level 0), and for each coarser level the code of every finest code.

    The level after the coarsest one, `total`, is a single node: tables without the axis are at that level of it.

    >>> day = Axis("day", 5, parents=((0, 0, 0, 1, 1),))  # three days of January, two of February
    >>> day.sizes, day.total
    ((5, 2, 1), 2)
    """

    name: str
    size: int
    parents: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        """Check that every level uses all of its codes and is a coarsening of the one before."""
        store_integer(self, "size")
        for level, codes in enumerate(self.parents, 1):
            where = f"parents of axis {self.name!r}, level {level}"
            require(len(codes) == self.size, f"{where}: give one code for each of the {self.size} finest codes")
            require(sorted(set(codes)) == list(range(max(codes) + 1)), f"{where}: use each code from 0 on")
        for level in range(1, self.total):
            pairs = set(zip(self._codes[level - 1].tolist(), self._codes[level].tolist(), strict=True))
            one_parent = len(pairs) == self.sizes[level - 1]
            require(one_parent, f"parents of axis {self.name!r}: level {level} splits a node of level {level - 1}")

    @cached_property
    def total(self) -> int:
        """The level at which all codes are one node."""
        return len(self.parents) + 1

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes of every level, up to the total."""
        return tuple(int(codes.max()) + 1 for codes in self._codes)

    @cached_property
    def is_balanced(self) -> bool:
        """Whether all nodes of a level have equally many nodes below them, at every level."""
        return all(np.ptp(np.bincount(codes)) == 0 for codes in self._codes)

    @cached_property
    def ancestors(self) -> Mapping[tuple[int, int], np.ndarray]:
        """For a level and a level that is not finer: the node of the second that each node of the first is part of."""
        links: dict[tuple[int, int], np.ndarray] = {}
        for fine, codes in enumerate(self._codes):
            first = np.unique(codes, return_index=True)[1]
            links |= {(fine, coarse): self._codes[coarse][first] for coarse in range(fine, self.total + 1)}
        return links

    def counts(self, fine: int, coarse: int) -> np.ndarray:
        """Return how many nodes of a level are part of each node of a coarser one (read-only)."""
        return self._counts[fine, coarse]

    def at_ancestors(self, values: np.ndarray, dimension: int, fine: int, coarse: int) -> np.ndarray:
        """Return the values of a level at each node of a finer one."""
        return values if fine == coarse else values.take(self.ancestors[fine, coarse], dimension)

    def sum_up(self, values: np.ndarray, dimension: int, fine: int, coarse: int) -> np.ndarray:
        """Return sums of the values of one level, for the nodes of another."""
        if fine == coarse:
            return values
        if coarse == self.total:
            return np.asarray(values.sum(dimension, keepdims=True))
        order, starts = self._blocks[fine, coarse]
        return np.add.reduceat(values.take(order, dimension), starts, dimension)

    @cached_property
    def _codes(self) -> tuple[np.ndarray, ...]:
        return (np.arange(self.size), *map(np.array, self.parents), np.zeros(self.size, np.int64))

    @cached_property
    def _counts(self) -> Mapping[tuple[int, int], np.ndarray]:
        return {levels: np.bincount(nodes) for levels, nodes in self.ancestors.items()}

    @cached_property
    def _blocks(self) -> Mapping[tuple[int, int], tuple[np.ndarray, np.ndarray]]:
        """For two levels: the nodes of the first, in the order of the second, and where each node of that begins."""
        return {
            levels: (np.argsort(nodes, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(nodes))[:-1]]))
            for levels, nodes in self.ancestors.items()
        }


def check_table(axes: Sequence[Axis], table: Table) -> Table:
    """Return a table after checking that its axes and levels exist and that the axes ascend."""
    indices = [index for index, _ in table]
    require(indices == sorted(set(indices)), f"table {table}: axes must ascend")
    for index, level in table:
        require(0 <= index < len(axes), f"table {table}: there is no axis {index}")
        require(0 <= level < axes[index].total, f"table {table}: axis {axes[index].name!r} has no level {level}")
    return table


def table_shape(axes: Sequence[Axis], table: Table) -> tuple[int, ...]:
    """Return the number of nodes of each axis of a table, at its level.

    >>> table_shape([Axis("sex", 2), Axis("day", 5, parents=((0, 0, 0, 1, 1),))], ((0, 0), (1, 1)))
    (2, 2)
    """
    return tuple(axes[index].sizes[level] for index, level in table)


def coarsenings(axes: Sequence[Axis], table: Table) -> tuple[Table, ...]:
    """Return all tables that follow from a table by summing: itself first, the grand total last.

    >>> coarsenings([Axis("sex", 2), Axis("age", 9)], ((0, 0), (1, 0)))
    (((0, 0), (1, 0)), ((0, 0),), ((1, 0),), ())
    """
    choices = [[(index, coarse) for coarse in range(level, axes[index].total)] + [None] for index, level in table]
    return tuple(tuple(part for part in parts if part is not None) for parts in product(*choices))


def sum_table(axes: Sequence[Axis], values: np.ndarray, fine: Table, coarse: Table) -> np.ndarray:
    """Return a coarser table as sums of the cells of a finer one."""
    levels = dict(coarse)
    for dimension, (index, level) in enumerate(fine):
        values = axes[index].sum_up(values, dimension, level, levels.get(index, axes[index].total))
    return values.reshape(table_shape(axes, coarse))


def align(values: np.ndarray, table: Table, target: Table) -> np.ndarray:
    """Return the values of a table with a dimension for every axis of a finer one, of size 1 if the table lacks it."""
    sizes = dict(zip((index for index, _ in table), values.shape, strict=True))
    return values.reshape([sizes.get(index, 1) for index, _ in target])


def repeat_table(axes: Sequence[Axis], values: np.ndarray, coarse: Table, fine: Table) -> np.ndarray:
    """Return the value of the cell that each cell of a finer table is part of, with size 1 along other axes."""
    levels, values = dict(coarse), align(values, coarse, fine)
    for dimension, (index, level) in enumerate(fine):
        if index in levels:
            values = axes[index].at_ancestors(values, dimension, level, levels[index])
    return values
