"""Unbiased tables that add up, from noisy tables: generalised least squares without a matrix inverse."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.kernel.errors import require
from discreet.publish.marginals.axes import Axis, Table, check_table, coarsenings, sum_table, table_shape
from discreet.publish.marginals.components import residual, spread
from discreet.publish.marginals.covariances import Covariances
from discreet.publish.marginals.noise_margins import Noise


@dataclass(frozen=True, eq=False)
class Measurement:
    """A table with independent noise of the same variance in every cell."""

    table: Table
    values: np.ndarray
    variance: float


@dataclass(frozen=True, eq=False)
class ConsistentTables:
    """Unbiased estimates of all tables that follow from the measured ones; they add up, and may be below zero."""

    covariances: Covariances
    parts: Mapping[Table, np.ndarray]

    def table(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of a table and the variance of each."""
        covariances = self.covariances
        values = np.zeros(table_shape(covariances.axes, covariances.check(table)))
        for part in filter(self.parts.__contains__, coarsenings(covariances.axes, table)):
            values += spread(covariances.components, self.parts[part], part, table)
        return values, covariances.variance(table)


def least_squares(
    axes: Sequence[Axis], measurements: Iterable[Measurement], noise: Noise = Noise.GAUSSIAN
) -> ConsistentTables:
    """Return the tables that fit all measurements best.

    If every axis is balanced, these are the estimates of generalised least squares, which have the least variance of
    all linear unbiased ones. Otherwise they are linear and unbiased, with a variance close to that.

    >>> axes = [Axis("sex", 2), Axis("age", 3)]
    >>> joint = Measurement(((0, 0), (1, 0)), np.array([[10, 20, 30], [11, 19, 33]]), variance=4.0)
    >>> sex = Measurement(((0, 0),), np.array([63, 60]), variance=2.0)
    >>> values, variance = least_squares(axes, [joint, sex]).table(((0, 0),))
    >>> values.round(2).tolist(), variance.round(2).tolist()
    ([62.57, 60.43], [1.71, 1.71])
    """
    noisy, measured = _combine(tuple(axes), measurements)
    covariances = Covariances(tuple(axes), measured, noise)
    parts: dict[Table, np.ndarray] = {}
    for part, shares in covariances.shares_of.items():
        total = np.zeros(table_shape(axes, part))
        for table, share in shares.items():
            total += share * sum_table(axes, noisy[table], table, part)
        parts[part] = residual(covariances.components, total, part)
    return ConsistentTables(covariances, parts)


def _combine(
    axes: tuple[Axis, ...], measurements: Iterable[Measurement]
) -> tuple[dict[Table, np.ndarray], dict[Table, float]]:
    """Return the values and variance of each table; one that was measured repeatedly has the weighted mean."""
    groups: dict[Table, list[Measurement]] = defaultdict(list)
    for each in measurements:
        require(each.variance > 0, f"table {each.table}: the variance must be above 0")
        shape = table_shape(axes, check_table(axes, each.table))
        require(np.shape(each.values) == shape, f"table {each.table}: values must have the shape {shape}")
        groups[each.table].append(each)
    variances = {table: 1 / sum(1 / each.variance for each in group) for table, group in groups.items()}
    values = {
        table: np.asarray(sum(each.values * (variances[table] / each.variance) for each in group), np.float64)
        for table, group in groups.items()
    }
    return values, variances
