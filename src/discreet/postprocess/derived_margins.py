# ruff: noqa: S608 - this module generates SQL from its own templates
"""Margins of derived columns, from noise by simulation: redraw the noise and recompute the results.

A redraw treats the released values as the true ones. The margin is the deviation that 95 % of the redraws do not
exceed; a redraw with a NULL result counts as an infinite deviation. Margins from sampling are propagated instead,
because the correlation of sampling errors is unknown.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from discreet.postprocess.sandbox import compute, sandbox_table

DRAW, ROW = "draw", "row"  # columns that a redraw adds: the number of the draw, and the row of the released table
Redraw = Callable[[int], Mapping[str, pa.Table]]
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

_COVERAGE = 0.95
_MIN_DRAWS, _MAX_DRAWS = 200, 4_000  # redraws
_MAX_STACKED_ROWS = 400_000  # rows per batch
_MAX_ROWS = 20_000  # larger tables would take seconds and much memory, so their derived columns have no margin


def simulate_margins(
    expressions: Mapping[str, Sequence[str]],
    columns: Mapping[str, Sequence[str]],
    tables: Mapping[str, pa.Table],
    redraw: Redraw,
) -> dict[str, list[Floats]]:
    """Return the simulated margins of expressions over each table, one per row."""
    released = {name: _evaluate(texts, tables[name], columns[name]) for name, texts in expressions.items()}
    rows = sum(tables[name].num_rows for name in expressions)
    if rows > _MAX_ROWS:
        return {name: [np.full(len(value), math.inf) for value in values] for name, values in released.items()}
    stack = redraw(draw_count(rows))
    return {
        name: _deviation_quantiles(texts, stack[name], columns[name], released[name])
        for name, texts in expressions.items()
    }


def propagate_margins(text: str, columns: Sequence[str], table: pa.Table, margins: Mapping[str, np.ndarray]) -> Floats:
    """Return how far an expression moves, row by row, if each of its columns moves by its margin; NaN if unknown.

    The effects of the columns are added up, which bounds the result to first order whatever their correlation.
    """
    (before,) = _evaluate([text], table, columns)
    effects: Floats = np.zeros(len(before))
    for name, widths in margins.items():
        moved = [_evaluate([text], _move_column(table, name, sign * widths), columns)[0] for sign in (1, -1)]
        effects += np.maximum(*(np.abs(each - before) for each in moved))
    return effects


def _move_column(table: pa.Table, name: str, by: np.ndarray) -> pa.Table:
    """Return the table with numbers added to a column, and NULL where they are NaN."""
    index, kind = table.schema.get_field_index(name), table.schema.field(name).type
    known = np.isfinite(by) & table.column(name).is_valid().to_numpy()
    values = np.where(known, np.nan_to_num(table.column(name).to_numpy().astype(np.float64)) + by, 0.0)
    values = np.rint(values).astype(np.int64) if pa.types.is_integer(kind) else values
    return table.set_column(index, name, pa.array(values, kind, mask=~known))


def draw_count(rows: int) -> int:
    """Return the number of redraws for a table of this size."""
    return min(_MAX_DRAWS, max(_MIN_DRAWS, _MAX_STACKED_ROWS // max(rows, 1)))


def quantile_rank(count: int) -> int:
    """Return the rank among `count` sorted deviations that bounds a further draw with probability at least 0.95."""
    return min(count, math.ceil(_COVERAGE * (count + 1)))


def _evaluate(texts: Sequence[str], table: pa.Table, columns: Sequence[str], *more: str) -> list[Floats]:
    """Evaluate expressions on every row, and return them with further columns; NULL becomes NaN."""
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
    """Return the 95 % quantile of the deviations of each row."""
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
