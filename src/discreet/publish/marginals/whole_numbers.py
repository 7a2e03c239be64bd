"""Whole numbers that add up: tables of one non-negative integer table that is close to noisy ones."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from discreet.kernel.errors import require
from discreet.publish.marginals.axes import Axis, Table, check_table, repeat_table, sum_table, table_shape
from discreet.publish.marginals.consistent_tables import Measurement, least_squares

_STEPS = 500
_FASTER = 1.5  # rate of descent after a step that helped; it is halved after one that did not
_ENOUGH = 1e-6  # relative improvement of a step below which the fit ends
_TINY = 1e-300


def whole_tables(
    axes: Sequence[Axis], measurements: Iterable[Measurement], wanted: Iterable[Table], *, max_cells: int = 2_000_000
) -> dict[Table, np.ndarray]:
    """Return the wanted tables in non-negative whole numbers, all of them sums of one table over all measured axes.

    They are biased: a cell whose true count is 0 can only be too high, and others make up for it. Use the unbiased
    tables for statistics. The table over all measured axes, at their finest measured levels, may have at most
    `max_cells` cells; beyond that ValueError is raised.

    >>> axes = [Axis("sex", 2), Axis("age", 3)]
    >>> joint = Measurement(((0, 0), (1, 0)), np.array([[10, -2, 30], [11, 19, 33]]), variance=4.0)
    >>> tables = whole_tables(axes, [joint], [((0, 0), (1, 0)), ((0, 0),), ()])
    >>> [tables[table].tolist() for table in tables]
    [[[10, 0, 29], [11, 18, 33]], [39, 62], 101]
    """
    measurements, wanted = list(measurements), [check_table(axes, table) for table in wanted]
    finest: dict[int, int] = {}
    for index, level in (part for each in measurements for part in each.table):
        finest[index] = min(level, finest.get(index, level))
    joint = tuple(sorted(finest.items()))
    cells = math.prod(table_shape(axes, joint))
    require(cells <= max_cells, f"whole tables: all axes together have {cells:,.0f} cells, more than {max_cells:,}")
    consistent = least_squares(axes, measurements)
    for table in wanted:
        consistent.covariances.check(table)
    total = max(0, round(float(consistent.table(())[0])))
    fitted = _fit(axes, measurements, joint, total)
    whole = _round(axes, fitted, joint, wanted)
    return {table: sum_table(axes, whole, joint, table) for table in wanted}


def _fit(axes: Sequence[Axis], measurements: Sequence[Measurement], joint: Table, total: int) -> np.ndarray:
    """Return the non-negative table with a given total that minimises the weighted squared errors, by mirror descent.

    Where measurements leave it open, the table stays as uniform as they allow.
    """
    shape = table_shape(axes, joint)
    fitted = np.full(shape, total / np.prod(shape))

    def errors(table: np.ndarray) -> tuple[float, list[np.ndarray]]:
        residuals = [sum_table(axes, table, joint, each.table) - each.values for each in measurements]
        return sum(float((r**2).sum()) / m.variance for r, m in zip(residuals, measurements, strict=True)), residuals

    loss, residuals = errors(fitted)
    rate = 1.0 / max(1, total)
    for _ in range(_STEPS):
        gradient = np.zeros(shape)
        for error, each in zip(residuals, measurements, strict=True):
            gradient += repeat_table(axes, error / each.variance, each.table, joint)
        step = fitted * np.exp(rate * (gradient.min() - gradient))
        step *= total / max(step.sum(), _TINY)
        new_loss, new_residuals = errors(step)
        if new_loss >= loss:
            rate /= 2
            continue
        converged = loss - new_loss <= _ENOUGH * loss
        fitted, loss, residuals, rate = step, new_loss, new_residuals, rate * _FASTER
        if converged:
            break
    return fitted


def _round(axes: Sequence[Axis], fitted: np.ndarray, joint: Table, wanted: Sequence[Table]) -> np.ndarray:
    """Return whole numbers with the same total, close to the fitted table in all wanted tables.

    Cells are rounded one after the other, with the sum carried over. Then units move from cells of which the wanted
    tables have too many to cells of which they have too few: many at once while that helps, then fewer.
    """

    def deficits_of(whole: np.ndarray) -> tuple[float, np.ndarray]:
        deficits, squares = np.zeros(fitted.shape), 0.0
        for table in wanted:
            deficit = sum_table(axes, fitted - whole.reshape(fitted.shape), joint, table)
            squares += float((deficit**2).sum())
            deficits += repeat_table(axes, deficit, table, joint)
        return squares, deficits.ravel()

    whole = np.diff(np.rint(np.cumsum(fitted)), prepend=0).astype(np.int64)
    squares, deficits = deficits_of(whole)
    batch = max(1, whole.size // 4)
    while batch:
        occupied = np.flatnonzero(whole)
        batch = min(batch, occupied.size)
        moved = whole.copy()
        moved[occupied[_smallest(deficits[occupied], batch)]] -= 1
        moved[_smallest(-deficits, batch)] += 1
        new_squares, new_deficits = deficits_of(moved)
        if new_squares < squares:
            whole, squares, deficits = moved, new_squares, new_deficits
        else:
            batch //= 2
    result: np.ndarray = whole.reshape(fitted.shape)
    return result


def _smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return where the smallest values are."""
    return np.argpartition(values, count - 1)[:count] if count else np.zeros(0, np.int64)
