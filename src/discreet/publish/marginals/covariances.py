"""The exact covariances of the tables that least squares returns, known before anything is measured."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
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

_Levels = tuple[int, ...]


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
    _known: dict[Table, np.ndarray] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Check the tables and their variances."""
        for table, variance in self.measured.items():
            require(variance > 0, f"table {check_table(self.axes, table)}: the variance must be above 0")

    def variance(self, table: Table) -> np.ndarray:
        """Return the variance of every cell of a table (read-only)."""
        self.check(table)
        if table not in self._known:
            self._known[table] = self._cell_variances(table)
        return np.broadcast_to(self._known[table], table_shape(self.axes, table))

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
        for part, values in parts.items():
            for other in self._related(part):
                if other in parts:
                    for levels, covariance in self._terms[part, other].items():
                        common = self._measured_part(part, levels)
                        first = repeat_table(self.axes, values, part, common)
                        second = repeat_table(self.axes, parts[other], other, common)
                        shape = table_shape(self.axes, common)
                        total += covariance * float(np.broadcast_to(first * second, shape).sum())
        return max(total, 0.0)

    def covers(self, table: Table) -> bool:
        """Return whether a table follows from a measured one, or differs from it only by levels of the same nodes."""
        parts = coarsenings(self.axes, check_table(self.axes, table))
        return all(part in self.shares_of or self._is_zero(part) for part in parts)

    def _is_zero(self, part: Table) -> bool:
        """Return whether a component has no residuals, because each node of a level is all of its parent."""
        sizes = [self.axes[index].sizes[level : level + 2] for index, level in part]
        return any(own == above for own, above in sizes)

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
        return {
            part: {table: precision / sum(of_tables.values()) for table, precision in of_tables.items()}
            for part, of_tables in precisions.items()
        }

    @cached_property
    def _unbalanced(self) -> tuple[int, ...]:
        return tuple(index for index, axis in enumerate(self.axes) if not axis.is_balanced)

    @cached_property
    def _terms(self) -> Mapping[tuple[Table, Table], Mapping[_Levels, float]]:
        """The covariance of two components, in parts: by the levels at which the unbalanced axes are measured.

        On balanced axes components are independent, and those of different tables have proportional covariances.
        """
        terms: dict[tuple[Table, Table], dict[_Levels, float]] = defaultdict(lambda: defaultdict(float))
        for part, shares in self.shares_of.items():
            for table, share in shares.items():
                levels = self._unbalanced_levels(table)
                common = self._measured_part(part, levels)
                variance = self.measured[table] * block_size(self.axes, table, common)
                for other in self._related(part):
                    if table in self.shares_of.get(other, {}):
                        terms[part, other][levels] += variance * share * self.shares_of[other][table]
        return terms

    def _cell_variances(self, table: Table) -> np.ndarray:
        """Return the variances of a table's cells, with size 1 along axes on which they are equal."""
        result = np.zeros([self.axes[i].sizes[level] if i in self._unbalanced else 1 for i, level in table])
        parts = coarsenings(self.axes, table)
        for part in parts:
            for other in set(parts).intersection(self._related(part)):
                for levels, covariance in self._terms.get((part, other), {}).items():
                    result = result + covariance * self._cell_covariances(part, other, levels, table)
        return result

    def _cell_covariances(self, part: Table, other: Table, levels: _Levels, table: Table) -> np.ndarray:
        measured, first, second, shown = dict(self._measured_part(part, levels)), dict(part), dict(other), dict(table)
        result = np.ones([1] * len(table))
        for index in sorted({*shown, *self._unbalanced}):
            of_axis, total = self.components[index], self.axes[index].total
            at = [each.get(index, total) for each in (measured, first, second, shown)]
            values = of_axis.covariance(at[0], at[1], at[2], at[3])
            if index not in shown:
                result = result * values[0]
            elif index in self._unbalanced:
                result = result * align(values, ((index, shown[index]),), table)
            else:
                result = result * values[0]
        return result

    def _related(self, part: Table) -> list[Table]:
        """Return the components that may be correlated with one: those that differ only on unbalanced axes."""
        fixed = [each for each in part if each[0] not in self._unbalanced]
        choices = [[None, *((i, level) for level in range(self.axes[i].total))] for i in self._unbalanced]
        return [tuple(sorted(fixed + [each for each in chosen if each is not None])) for chosen in product(*choices)]

    def _unbalanced_levels(self, table: Table) -> _Levels:
        levels = dict(table)
        return tuple(levels.get(index, self.axes[index].total) for index in self._unbalanced)

    def _measured_part(self, part: Table, levels: _Levels) -> Table:
        """Return a component's levels of balanced axes, with the given ones of unbalanced axes."""
        unbalanced = dict(zip(self._unbalanced, levels, strict=True))
        parts = {**dict(part), **unbalanced}
        return tuple(sorted((index, level) for index, level in parts.items() if level < self.axes[index].total))


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
