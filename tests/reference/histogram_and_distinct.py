"""Histogram cells and distinct counts in plain Python."""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from hashlib import md5
from typing import Any

import numpy as np

from discreet.engines.reference.evaluate import evaluate, finite_or_null, sort_key
from discreet.kernel.ball import WEIGHT_BITS
from discreet.kernel.expr import Type, Value
from discreet.kernel.grid import Grid
from discreet.kernel.histogram_tree import CellCounts
from discreet.kernel.question import Question
from discreet.kernel.totals import CountDistinct, HistogramTree

RowsByGroup = Mapping[tuple[Value, ...], Mapping[tuple[Hashable, ...], list[dict[str, Value]]]]


def histogram_cells(
    question: Question, total: HistogramTree, groups: RowsByGroup, index_by_key: Mapping[tuple[Value, ...], int]
) -> CellCounts:
    """Return the weight of each cell in each group."""
    cells_by_unit = {
        key: {unit: cells for unit, rows in units.items() if (cells := _cell_indices(total, rows))}
        for key, units in groups.items()
    }
    groups_per_unit = defaultdict[Hashable, int](int)
    for units in cells_by_unit.values():
        for unit in units:
            groups_per_unit[unit] += 1
    weights = defaultdict[tuple[int, int], int](int)
    for key, units in cells_by_unit.items():
        for unit, cells in units.items():
            for cell in cells:
                if key in index_by_key:
                    weights[index_by_key[key], cell] += _row_weight(question, total, len(cells), groups_per_unit[unit])
    columns = np.array([(group, cell, weight) for (group, cell), weight in weights.items()], np.int64).reshape(-1, 3)
    return CellCounts(*(np.ascontiguousarray(columns[:, index]) for index in range(3)))


def _cell_indices(total: HistogramTree, rows: list[dict[str, Value]]) -> list[int]:
    """Return the cell indices of a unit's rows, without rows outside of all cells."""
    values: list[Any] = [value for row in rows if (value := finite_or_null(evaluate(total.expr, row))) is not None]
    if isinstance(total.domain, Grid):
        grid = total.domain
        return [grid.index(float(value)) - grid.offset - grid.first for value in values]
    return [total.domain.index(value) for value in values if value in total.domain]


def _row_weight(question: Question, total: HistogramTree, row_count: int, group_count: int) -> int:
    """Return the weight of one row of a unit that has `row_count` rows in the group and `group_count` groups."""
    if not question.needs_clipping:
        return 1
    full_weight = 1 << question.fraction_bits(total)
    weight = (
        question.max_rows_per_group * full_weight // row_count
        if row_count > question.max_rows_per_group
        else full_weight
    )
    if question.needs_l0_clipping and group_count > question.bounds.groups:
        weight = weight * ((question.bounds.groups << WEIGHT_BITS) // group_count) >> WEIGHT_BITS
    return weight


def count_distinct(question: Question, total: CountDistinct, groups: RowsByGroup) -> dict[tuple[Value, ...], int]:
    """Return the number of distinct values in each group, after contribution bounding."""
    pairs_by_unit = defaultdict[tuple[Hashable, ...], list[tuple[tuple[Value, ...], Value]]](list)
    for key, units in groups.items():
        for unit, rows in units.items():
            values = {value for row in rows if (value := finite_or_null(evaluate(total.expr, row))) is not None}
            pairs_by_unit[unit] += [(key, value) for value in values]
    distinct = defaultdict[tuple[Value, ...], set[Value]](set)
    for unit, pairs in pairs_by_unit.items():
        bounded = (
            _bounded_values(question, unit, pairs)
            if question.needs_clipping and len(pairs) > question.max_rows_per_group
            else pairs
        )
        for key, value in bounded:
            distinct[key].add(value)
    return {key: len(values) for key, values in distinct.items()}


def _bounded_values(
    question: Question, unit: tuple[Hashable, ...], pairs: list[tuple[tuple[Value, ...], Value]]
) -> list[tuple[tuple[Value, ...], Value]]:
    """Return at most `rows` values per group, chosen by hash, and of these at most `l0 * rows` in all."""
    kind = (question.relation.shape.unit or (Type.REAL,))[0]
    unit_text = "" if kind in (Type.REAL, Type.TIMESTAMP) else _as_text(unit[0])
    ranked = []
    for key in {key for key, _ in pairs}:
        hashed = sorted((_value_hash(unit_text, value), value) for pair_key, value in pairs if pair_key == key)
        key_order = [sort_key(part) for part in key]
        ranked += [(rank, digest, key_order, key, value) for rank, (digest, value) in enumerate(hashed)]
    within_row_bound = sorted(
        (entry for entry in ranked if entry[0] < question.max_rows_per_group), key=lambda entry: entry[:3]
    )
    return [(key, value) for *_, key, value in within_row_bound[: question.l0_bound * question.max_rows_per_group]]


def _value_hash(unit_text: str, value: Value) -> str:
    return md5(f"{unit_text}/{_as_text(value)}".encode(), usedforsecurity=False).hexdigest()


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
