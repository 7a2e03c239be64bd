# ruff: noqa: S608 - to write SQL is what this module is for; every part of it is our own
"""Margins of derived columns by simulation: noise is redrawn and the results recomputed.

A redraw takes the released numbers for the true ones. Where a result moves by at most m in 95 of 100 redraws, m is the
margin; a redraw without a result counts as one that moved infinitely far.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from discreet.postprocess.sandbox import compute, sandbox_table

DRAW, ROW = "draw", "row"  # columns that a redraw adds: which draw it is, and which row of the released table
Redraw = Callable[[int], Mapping[str, pa.Table]]
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

_COVERAGE = 0.95
_MIN_DRAWS, _MAX_DRAWS = 200, 4_000  # redraws
_MAX_STACKED_ROWS = 400_000  # rows that are computed at once
_MAX_ROWS = 20_000  # a larger table would take seconds and much memory: its computed columns have no margin


def simulate_margins(
    expressions: Mapping[str, Sequence[str]],
    columns: Mapping[str, Sequence[str]],
    tables: Mapping[str, pa.Table],
    redraw: Redraw,
) -> dict[str, list[Floats]]:
    """Return how far expressions over the columns of each table move: one number for each row."""
    released = {name: _evaluate(texts, tables[name], columns[name]) for name, texts in expressions.items()}
    rows = sum(tables[name].num_rows for name in expressions)
    if rows > _MAX_ROWS:
        return {name: [np.full(len(each), math.inf) for each in values] for name, values in released.items()}
    stack = redraw(draw_count(rows))
    return {
        name: _deviation_quantiles(texts, stack[name], columns[name], released[name])
        for name, texts in expressions.items()
    }


def draw_count(rows: int) -> int:
    """Return how many redraws a table of so many rows gets."""
    return min(_MAX_DRAWS, max(_MIN_DRAWS, _MAX_STACKED_ROWS // max(rows, 1)))


def quantile_rank(count: int) -> int:
    """Return which of so many sorted deviations one more draw stays within, in at least 95 of 100 cases."""
    return min(count, math.ceil(_COVERAGE * (count + 1)))


def _evaluate(texts: Sequence[str], table: pa.Table, columns: Sequence[str], *more: str) -> list[Floats]:
    """Compute expressions for every row, and return further columns beside them; NULL is NaN."""
    selected = [*(f"CAST({text} AS DOUBLE)" for text in texts), *(f'CAST("{name}" AS DOUBLE)' for name in more)]
    sql = f"SELECT {', '.join(f'{text} AS c{index}' for index, text in enumerate(selected))} FROM t0"
    batches = [table.slice(start, _MAX_STACKED_ROWS) for start in range(0, max(table.num_rows, 1), _MAX_STACKED_ROWS)]
    result = pa.concat_tables(
        compute(sql, {"t0": sandbox_table(batch, columns, {name: batch.column(name) for name in more})})
        for batch in batches
    )
    return [column.to_numpy().astype(np.float64) for column in result.columns]


def _deviation_quantiles(
    texts: Sequence[str], stack: pa.Table, columns: Sequence[str], released: Sequence[Floats]
) -> list[Floats]:
    """Return what the result of each row moves by in 95 of 100 draws."""
    *values, draw, row = _evaluate(texts, stack, columns, DRAW, ROW)
    count, rows = int(draw.max(initial=-1)) + 1, len(released[0])
    if len(draw) != count * rows:
        raise ValueError("redraw must return every row of the table once per draw")
    if count == 0:
        return [np.full(rows, math.inf) for _ in texts]
    cells = draw.astype(np.int64), row.astype(np.int64)
    kth = quantile_rank(count) - 1
    quantiles = []
    for value, before in zip(values, released, strict=True):
        drawn = np.full((count, rows), np.nan)
        drawn[cells] = value
        deviations = np.abs(drawn - before)
        deviations[np.isnan(deviations)] = math.inf
        quantiles.append(np.partition(deviations, kth, axis=0)[kth])
    return quantiles
