"""Each table as a sum of components, one for each of its coarsenings, that are estimated apart.

On one axis, the component of a level is how far each node is from its share of its parent; that of the total is the
total itself. Components of tables are products of these. If all nodes of a level have equally many cells, the
components of a noisy table are independent of one another. Otherwise they are not quite, and shares follow the noise:
they are in proportion to the number of cells of the coarsest measured level below a node.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.publish.marginals.axes import Axis, Table, align


@dataclass(frozen=True, eq=False)
class AxisComponents:
    """The components of an axis; `shares[m]` has the share of each node of level m in its parent of level m + 1."""

    axis: Axis
    shares: tuple[np.ndarray, ...]

    def residual(self, values: np.ndarray, dimension: int, level: int) -> np.ndarray:
        """Return the component of a level, from values of that level."""
        if level == self.axis.total:
            return values
        parents = self.axis.sum_up(values, dimension, level, level + 1)
        result: np.ndarray = values - self.spread(parents, dimension, level + 1, level)
        return result

    def spread(self, values: np.ndarray, dimension: int, coarse: int, fine: int) -> np.ndarray:
        """Return the share of each node of a level in the values of a coarser one."""
        if fine == coarse:
            return values
        shares = _along(self.weights[coarse, fine], values.ndim, dimension)
        result: np.ndarray = self.axis.at_ancestors(values, dimension, fine, coarse) * shares
        return result

    @cached_property
    def weights(self) -> dict[tuple[int, int], np.ndarray]:
        """For a level and a finer one: the share of each node of the second in its ancestor at the first."""
        weights = {}
        for fine in range(self.axis.total):
            product = np.ones(self.axis.sizes[fine])
            weights[fine, fine] = product
            for level in range(fine, self.axis.total):
                product = product * self.shares[level][self.axis.ancestors[fine, level]]
                weights[level + 1, fine] = product
        weights[self.axis.total, self.axis.total] = np.ones(1)
        return weights

    def covariance(self, sums: np.ndarray, dimension: int, levels: tuple[int, int], shown: int) -> np.ndarray:
        """Return the covariance of what the components of two levels add to each node of the level `shown`.

        `sums` has the covariance of values of these levels for each node of the finer one; at the other level, the
        value of its ancestor is meant, and others are independent. A component gives a node a share of its ancestor's
        value, less what is expected from the parent of that.
        """
        axis, (first, second) = self.axis, levels
        result: np.ndarray = np.zeros(1)
        for level, sign in self._minus_parent(first, shown):
            for other, other_sign in self._minus_parent(second, shown):
                finer = min(level, other)
                summed = axis.sum_up(sums, dimension, min(levels), finer)
                signs = _along(sign * other_sign, sums.ndim, dimension)
                result = result + signs * axis.at_ancestors(summed, dimension, shown, finer)
        result *= _along(self.weights[first, shown] * self.weights[second, shown], sums.ndim, dimension)
        return result

    @cached_property
    def equal_variances(self) -> dict[tuple[int, int], float]:
        """What `covariance` returns for a level and a shown one of a balanced axis, where it is that of all nodes."""
        return {
            (level, shown): float(self.covariance(np.ones(size), 0, (level, level), shown)[0])
            for level, size in enumerate(self.axis.sizes)
            for shown in range(min(level + 1, self.axis.total))
        }

    def _minus_parent(self, level: int, shown: int) -> list[tuple[int, np.ndarray]]:
        ones = np.ones(self.axis.sizes[shown])
        if level == self.axis.total:
            return [(level, ones)]
        return [(level, ones), (level + 1, -self.shares[level][self.axis.ancestors[shown, level]])]


def decompose(axis: Axis, measured: Iterable[int]) -> AxisComponents:
    """Return the components of an axis, of which some levels are measured."""
    levels = sorted(measured)
    shares = []
    for level in range(axis.total):
        base = max((each for each in levels if each <= level), default=0)
        parent = axis.counts(base, level + 1)[axis.ancestors[level, level + 1]]
        shares.append(axis.counts(base, level) / parent)
    return AxisComponents(axis, tuple(shares))


def residual(components: Sequence[AxisComponents], values: np.ndarray, table: Table) -> np.ndarray:
    """Return the component of a table, from its values."""
    for dimension, (index, level) in enumerate(table):
        values = components[index].residual(values, dimension, level)
    return values


def spread(components: Sequence[AxisComponents], values: np.ndarray, coarse: Table, fine: Table) -> np.ndarray:
    """Return what a component adds to the cells of a finer table."""
    levels = dict(coarse)
    values = align(values, coarse, fine)
    for dimension, (index, level) in enumerate(fine):
        part = components[index]
        values = part.spread(values, dimension, levels.get(index, part.axis.total), level)
    return values


def _along(values: np.ndarray, dimensions: int, dimension: int) -> np.ndarray:
    """Return a vector with as many dimensions as an array, along one of them."""
    return values.reshape([-1 if each == dimension else 1 for each in range(dimensions)])
