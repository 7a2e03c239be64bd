# ruff: noqa: S608 - to write SQL is what this module is for; every part of it is our own
"""The margin of what is computed row by row from noisy numbers: noise is drawn again, and again computed from.

A redraw takes the released numbers for the true ones. Where a result moves by at most m in 95 of 100 redraws, m is the
margin; a redraw without a result counts as one that moved infinitely far.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from discreet.sql.after.sandbox import compute, stored

DRAW, ROW = "draw", "row"  # columns that a redraw adds: which draw it is, and which row of the released table
Redraw = Callable[[int], Mapping[str, pa.Table]]
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

_SHARE = 0.95
_FEWEST, _MOST = 200, 4_000  # redraws
_STACKED = 400_000  # rows that are computed at once
_MOST_ROWS = 20_000  # a larger table would take seconds and much memory: its computed columns have no margin


def spread(
    expressions: Mapping[str, Sequence[str]],
    columns: Mapping[str, Sequence[str]],
    tables: Mapping[str, pa.Table],
    redraw: Redraw,
) -> dict[str, list[Floats]]:
    """Return how far expressions over the columns of each table move: one number for each row."""
    released = {name: _evaluated(texts, tables[name], columns[name]) for name, texts in expressions.items()}
    rows = sum(tables[name].num_rows for name in expressions)
    if rows > _MOST_ROWS:
        return {name: [np.full(len(each), math.inf) for each in values] for name, values in released.items()}
    stack = redraw(draws(rows))
    return {name: _moved(texts, stack[name], columns[name], released[name]) for name, texts in expressions.items()}


def draws(rows: int) -> int:
    """Return how many redraws a table of so many rows gets."""
    return min(_MOST, max(_FEWEST, _STACKED // max(rows, 1)))


def quantile_place(count: int) -> int:
    """Return which of so many sorted deviations one more draw stays within, in at least 95 of 100 cases."""
    return min(count, math.ceil(_SHARE * (count + 1)))


def _evaluated(texts: Sequence[str], table: pa.Table, columns: Sequence[str], *more: str) -> list[Floats]:
    """Compute expressions for every row, and return further columns beside them; NULL is NaN."""
    listed = [*(f"CAST({text} AS DOUBLE)" for text in texts), *(f'CAST("{name}" AS DOUBLE)' for name in more)]
    sql = f"SELECT {', '.join(f'{text} AS c{place}' for place, text in enumerate(listed))} FROM t0"
    parts = [table.slice(start, _STACKED) for start in range(0, max(table.num_rows, 1), _STACKED)]
    found = pa.concat_tables(
        compute(sql, {"t0": stored(part, columns, {name: part.column(name) for name in more})}) for part in parts
    )
    return [column.to_numpy().astype(np.float64) for column in found.columns]


def _moved(texts: Sequence[str], stack: pa.Table, columns: Sequence[str], released: Sequence[Floats]) -> list[Floats]:
    """Return what the result of each row moves by in 95 of 100 draws."""
    *values, draw, row = _evaluated(texts, stack, columns, DRAW, ROW)
    count, rows = int(draw.max(initial=-1)) + 1, len(released[0])
    if len(draw) != count * rows:
        raise ValueError("redraw must give every row of the table once for each draw")
    if count == 0:
        return [np.full(rows, math.inf) for _ in texts]
    place = draw.astype(np.int64), row.astype(np.int64)
    kth = quantile_place(count) - 1
    found = []
    for value, before in zip(values, released, strict=True):
        drawn = np.full((count, rows), np.nan)
        drawn[place] = value
        far = np.abs(drawn - before)
        far[np.isnan(far)] = math.inf
        found.append(np.partition(far, kth, axis=0)[kth])
    return found
