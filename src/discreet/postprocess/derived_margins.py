# ruff: noqa: S608 - this module generates SQL from its own templates
"""Margins of derived columns, from noise by simulation: redraw the noise and recompute the results.

A redraw treats the released values as the true ones. The margin is the deviation that 95 % of the redraws do not
exceed; a redraw with a NULL result counts as an infinite deviation. Margins from sampling are propagated instead,
because the correlation of sampling errors is unknown.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.postprocess.from_tables import DRAWS
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


@dataclass(frozen=True)
class QueryOverDraws:
    """SQL that computes a result for several draws at once: the columns of interest, and the hidden columns that
    identify a row in every draw. Column d has the number of the draw.
    """

    sql: str
    columns: tuple[int, ...]
    hidden: tuple[str, ...]


def redrawn_margins(
    query: QueryOverDraws,
    columns: Mapping[str, Sequence[str]],
    tables: Mapping[str, pa.Table],
    result: pa.Table,
    redraw: Redraw,
) -> list[Floats]:
    """Return the simulated margins of columns of a result; a row that is missing in a draw deviates infinitely."""
    rows = max(sum(table.num_rows for table in tables.values()), result.num_rows)
    if rows > _MAX_ROWS:
        return [np.full(result.num_rows, math.inf) for _ in query.columns]
    count = draw_count(rows)
    stack = redraw(count)
    inputs = {
        f"t{index}": sandbox_table(stack[name], listed, {"h0": stack[name].column(ROW), "d": stack[name].column(DRAW)})
        for index, (name, listed) in enumerate(columns.items())
    }
    drawn = compute(query.sql, {**inputs, DRAWS: pa.table({"d": np.arange(count)})})
    places = pc.index_in(_row_keys(drawn, query.hidden), _row_keys(result, query.hidden)).fill_null(-1).to_numpy()
    known = places >= 0
    cells = drawn.column("d").to_numpy()[known].astype(np.int64), places[known]
    names = [f"c{index}" for index in query.columns]
    return [
        _quantiles_of(_as_floats(drawn.column(name))[known], _as_floats(result.column(name)), cells, count)
        for name in names
    ]


def _row_keys(table: pa.Table, hidden: Sequence[str]) -> pa.ChunkedArray | pa.Array:
    """Return one text for each row that identifies it."""
    texts = [pc.binary_replace_slice(table.column(name).cast(pa.string()), 0, 0, "+").fill_null("-") for name in hidden]
    return pc.binary_join_element_wise(*texts, "\0") if texts else pa.array([""] * table.num_rows)


def _as_floats(column: pa.ChunkedArray) -> Floats:
    values: Floats = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    return values


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
    return [_quantiles_of(value, before, cells, count) for value, before in zip(values, released, strict=True)]


def _quantiles_of(values: Floats, released: Floats, cells: tuple[np.ndarray, np.ndarray], count: int) -> Floats:
    """Return the 95 % quantile of the deviations of each row, given values by draw and row."""
    drawn = np.full((count, len(released)), np.nan)
    drawn[cells] = values
    deviations = np.abs(drawn - released)
    deviations[np.isnan(deviations)] = math.inf
    kth = quantile_rank(count) - 1
    quantiles: Floats = np.partition(deviations, kth, axis=0)[kth]
    return quantiles
