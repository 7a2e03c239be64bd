"""The exact covariances of the tables that least squares returns, known before anything is measured."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import chain, product

import numpy as np

from discreet.kernel.errors import require
from discreet.publish.marginals.axes import (
    Axis,
    Table,
    align,
    check_table,
    coarsenings,
    repeat_table,
    table_shape,
)
from discreet.publish.marginals.components import AxisComponents, decompose
from discreet.publish.marginals.noise_margins import Noise, margin_factor


@dataclass(frozen=True, eq=False)
class Covariances:
    """Variances of all tables that follow from measured ones, each with independent noise of a known variance.

    A component of the estimate is a mean of those of the measured tables, each cell weighted in inverse proportion to
    its variance before parents are subtracted. That is optimal if every axis is balanced, and nearly so otherwise; the
    covariances are exact in any case.
    """

    axes: tuple[Axis, ...]
    measured: Mapping[Table, float]
    noise: Noise = Noise.GAUSSIAN
    _variances: dict[Table, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the tables and their variances."""
        for table, variance in self.measured.items():
            require(variance > 0, f"table {check_table(self.axes, table)}: the variance must be above 0")

    def variance(self, table: Table) -> np.ndarray:
        """Return the variance of every cell of a table (read-only)."""
        self.check(table)
        if table not in self._variances:
            self._variances[table] = self._cell_variances(table)
        return np.broadcast_to(self._variances[table], table_shape(self.axes, table))

    def margin(self, table: Table, level: float = 0.95) -> np.ndarray:
        """Return the margin of error of every cell of a table, which holds with chance `level`."""
        return np.asarray(margin_factor(self.noise, level) * np.sqrt(self.variance(table)))

    def covers(self, table: Table) -> bool:
        """Return whether a table follows from a measured one, or differs from it only by levels of the same nodes."""
        parts = coarsenings(self.axes, check_table(self.axes, table))
        return all(part in self._followers or self._is_zero(part) for part in parts)

    def check(self, table: Table) -> Table:
        """Return a table after checking that it follows from a measured one."""
        require(self.covers(table), f"table {table} does not follow from a measured one")
        return table

    @cached_property
    def components(self) -> tuple[AxisComponents, ...]:
        """The components of every axis."""
        levels: dict[int, set[int]] = defaultdict(set)
        for index, level in (part for table in self.measured for part in table):
            levels[index].add(level)
        return tuple(decompose(axis, levels[index]) for index, axis in enumerate(self.axes))

    @cached_property
    def _followers(self) -> frozenset[Table]:
        return frozenset(part for table in self.measured for part in coarsenings(self.axes, table))

    @cached_property
    def shares_of(self) -> Mapping[Table, Mapping[Table, np.ndarray]]:
        """For each component, the share of every measured table in each cell, with size 1 along balanced axes."""
        precisions: dict[Table, dict[Table, np.ndarray]] = defaultdict(dict)
        for table, variance in self.measured.items():
            for part in coarsenings(self.axes, table):
                precisions[part][table] = 1 / (variance * self._block_sizes(table, part))
        totals = {part: sum(of_tables.values()) for part, of_tables in precisions.items()}
        return {
            part: {table: precision / totals[part] for table, precision in of_tables.items()}
            for part, of_tables in precisions.items()
        }

    @cached_property
    def _unbalanced(self) -> frozenset[int]:
        return frozenset(index for index, axis in enumerate(self.axes) if not axis.is_balanced)

    def _block_sizes(self, table: Table, part: Table) -> np.ndarray:
        """Return how many cells of a table make up each cell of a coarser one, with size 1 along balanced axes."""
        levels, equal = dict(part), 1.0
        varying: list[np.ndarray] = []
        for index, level in table:
            coarse = levels.get(index, self.axes[index].total)
            counts = self.axes[index].counts(level, coarse)
            if index in levels and index in self._unbalanced:
                varying.append(align(counts, ((index, coarse),), part))
            else:
                equal *= float(counts[0])
        return reduce(np.multiply, varying, np.full([1] * len(part), equal))

    @cached_property
    def _covariances(self) -> Mapping[tuple[Table, Table], np.ndarray]:
        """The covariance of two components before parents are subtracted, for each cell of their common refinement.

        It has size 1 along balanced axes. Components that differ on these are independent.
        """
        sums: dict[tuple[Table, Table], np.ndarray] = {}
        for table, variance in self.measured.items():
            related = defaultdict(list)
            for part in coarsenings(self.axes, table):
                related[tuple(each for each in part if each[0] not in self._unbalanced)].append(part)
            for part, other in chain.from_iterable(product(parts, parts) for parts in related.values()):
                common = _finer(part, other)
                first = repeat_table(self.axes, self.shares_of[part][table], part, common)
                second = repeat_table(self.axes, self.shares_of[other][table], other, common)
                covariance = variance * self._block_sizes(table, common) * first * second
                sums[part, other] = sums.get((part, other), 0) + covariance
        return sums

    def _covariances_among(self, parts: Collection[Table]) -> Iterator[tuple[Table, Table, np.ndarray]]:
        """Yield the pairs of components that are not independent, with their covariances."""
        for part, other in product(parts, parts):
            if (part, other) in self._covariances:
                yield part, other, self._covariances[part, other]

    def _cell_variances(self, table: Table) -> np.ndarray:
        """Return the variances of a table's cells, with size 1 along axes on which they are equal."""
        result = np.zeros([1] * len(table))
        for part, other, covariance in self._covariances_among(coarsenings(self.axes, table)):
            first, second = dict(part), dict(other)
            values = align(covariance, _finer(part, other), table)
            for dimension, (index, shown) in enumerate(table):
                of_axis, total = self.components[index], self.axes[index].total
                levels = first.get(index, total), second.get(index, total)
                if index in self._unbalanced:
                    values = of_axis.covariance(values, dimension, levels, shown)
                else:  # both components have the same level
                    values = values * of_axis.equal_variances[levels[0], shown]
            result = result + values
        return result

    def _is_zero(self, part: Table) -> bool:
        """Return whether a component has no residuals, because each node of a level is all of its parent."""
        sizes = [self.axes[index].sizes[level : level + 2] for index, level in part]
        return any(own == above for own, above in sizes)


def _finer(part: Table, other: Table) -> Table:
    """Return the coarsest table from which two tables follow."""
    levels = dict(other)
    levels |= {index: min(level, levels.get(index, level)) for index, level in part}
    return tuple(sorted(levels.items()))


def forecast(
    axes: Sequence[Axis], scales: Mapping[Table, float], variance: float, noise: Noise = Noise.GAUSSIAN
) -> Covariances:
    """Return the covariances of a release before it is made: table T has noise of `variance` / scale² in each cell.

    >>> axes = [Axis("sex", 2), Axis("age", 9)]
    >>> release = forecast(axes, {((0, 0), (1, 0)): 0.8, ((0, 0),): 0.6}, variance=9.0)
    >>> release.variance(((0, 0),)).round(2).tolist(), release.margin(()).round(1).tolist()
    ([20.88, 20.88], 12.7)
    """
    measured = {table: variance / scale**2 for table, scale in scales.items() if scale > 0}
    return Covariances(tuple(axes), measured, noise)
