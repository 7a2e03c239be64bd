"""The exact covariances of the tables that least squares returns, known before anything is measured."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from discreet.kernel.errors import require
from discreet.publish.marginals.axes import (
    Axis,
    Table,
    align,
    block_size,
    check_table,
    coarsenings,
    repeat_table,
    table_shape,
)
from discreet.publish.marginals.decomposition import AxisComponents, decompose, residual_adjoint, spread_adjoint
from discreet.publish.marginals.noise import Noise, margin_factor


@dataclass(frozen=True, eq=False)
class Covariances:
    """Variances of all tables that follow from measured ones, each with independent noise of a known variance.

    A component of the estimate is a mean of those of the measured tables, weighted in inverse proportion to their
    variances, or to what these would be on axes with blocks of average size. So least squares is optimal if every axis
    is balanced; the covariances are exact in any case.
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

    def variance_of(self, weights: Mapping[Table, np.ndarray]) -> float:
        """Return the variance of a weighted sum of cells, of one table or several."""
        parts: dict[Table, np.ndarray] = {}
        for table, values in weights.items():
            require(np.shape(values) == table_shape(self.axes, self.check(table)), f"table {table}: a weight per cell")
            for part in coarsenings(self.axes, table):
                parts[part] = parts.get(part, 0) + spread_adjoint(self.components, np.asarray(values), table, part)
        parts = {part: residual_adjoint(self.components, values, part) for part, values in parts.items()}
        total = 0.0
        for (part, other), levels, covariance in self._covariances_among(parts):
            measured = self._measured_at(part, levels)
            first = repeat_table(self.axes, parts[part], part, measured)
            second = repeat_table(self.axes, parts[other], other, measured)
            total += covariance * float(np.broadcast_to(first * second, table_shape(self.axes, measured)).sum())
        return max(total, 0.0)

    def covers(self, table: Table) -> bool:
        """Return whether a table follows from a measured one, or differs from it only by levels of the same nodes."""
        parts = coarsenings(self.axes, check_table(self.axes, table))
        return all(part in self.shares_of or self._is_zero(part) for part in parts)

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
    def shares_of(self) -> Mapping[Table, Mapping[Table, float]]:
        """For each component, the share of every measured table in its estimate."""
        precisions: dict[Table, dict[Table, float]] = defaultdict(dict)
        for table, variance in self.measured.items():
            for part in coarsenings(self.axes, table):
                precisions[part][table] = 1 / (variance * block_size(self.axes, table, part))
        totals = {part: sum(of_tables.values()) for part, of_tables in precisions.items()}
        return {
            part: {table: precision / totals[part] for table, precision in of_tables.items()}
            for part, of_tables in precisions.items()
        }

    @cached_property
    def _unbalanced(self) -> frozenset[int]:
        return frozenset(index for index, axis in enumerate(self.axes) if not axis.is_balanced)

    @cached_property
    def _covariances(self) -> Mapping[tuple[Table, Table], Mapping[Table, float]]:
        """The covariance of two components, as a sum over the levels at which unbalanced axes are measured.

        On balanced axes components are independent, and those of different tables have proportional covariances.
        """
        sums: dict[tuple[Table, Table], dict[Table, float]] = defaultdict(lambda: defaultdict(float))
        for table, variance in self.measured.items():
            levels = tuple(each for each in table if each[0] in self._unbalanced)
            related = defaultdict(list)
            for part in coarsenings(self.axes, table):
                related[self._measured_at(part, levels)].append(part)
            for measured, parts in related.items():
                noise = variance * block_size(self.axes, table, measured)
                for part, other in product(parts, parts):
                    shares = self.shares_of[part][table] * self.shares_of[other][table]
                    sums[part, other][levels] += noise * shares
        return sums

    def _covariances_among(self, parts: Collection[Table]) -> Iterator[tuple[tuple[Table, Table], Table, float]]:
        """Yield the summands of the covariances of some components, with the levels of unbalanced axes."""
        for part, other in product(parts, parts):
            for levels, covariance in self._covariances.get((part, other), {}).items():
                yield (part, other), levels, covariance

    def _measured_at(self, part: Table, levels: Table) -> Table:
        """Return the levels of a component on balanced axes, with the given ones of unbalanced axes."""
        return tuple(sorted([*(each for each in part if each[0] not in self._unbalanced), *levels]))

    def _cell_variances(self, table: Table) -> np.ndarray:
        """Return the variances of a table's cells, with size 1 along axes on which they are equal."""
        result = np.zeros([self.axes[i].sizes[level] if i in self._unbalanced else 1 for i, level in table])
        for (part, other), levels, covariance in self._covariances_among(coarsenings(self.axes, table)):
            result = result + covariance * self._cell_covariances(part, other, levels, table)
        return result

    def _cell_covariances(self, part: Table, other: Table, levels: Table, table: Table) -> np.ndarray:
        """Return the covariances of what two components add to a table's cells, per unit of variance."""
        at = [dict(each) for each in (self._measured_at(part, levels), part, other, table)]
        result = np.ones([1] * len(table))
        for index in {*at[-1], *self._unbalanced}:
            measured, first, second, shown = (each.get(index, self.axes[index].total) for each in at)
            values = self.components[index].covariance(measured, first, second, shown)
            if index in self._unbalanced and index in at[-1]:
                result = result * align(values, ((index, shown),), table)
            else:  # all values are equal
                result = result * values[0]
        return result

    def _is_zero(self, part: Table) -> bool:
        """Return whether a component has no residuals, because each node of a level is all of its parent."""
        sizes = [self.axes[index].sizes[level : level + 2] for index, level in part]
        return any(own == above for own, above in sizes)


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
