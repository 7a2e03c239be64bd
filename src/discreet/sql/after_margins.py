# ruff: noqa: S608 - to write SQL is what this module is for; every part of it is our own
"""The margin of what is computed row by row from noisy numbers: noise is drawn again, and again computed from.

A redraw takes the released numbers for the true ones. Where a result moves by at most m in 95 of 100 redraws, m is the
margin; a redraw without a result counts as one that moved infinitely far.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from discreet.sql.after_sandbox import compute, stored

DRAW, ROW = "draw", "row"  # columns that a redraw adds: which draw it is, and which row of the released table
Redraw = Callable[[int], Mapping[str, pa.Table]]
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

_SHARE = 0.95
_FEWEST, _MOST = 200, 4_000
_STACKED = 400_000  # rows of one stack of redraws
_MOST_ROWS = 50_000  # a larger table would take seconds: its computed columns have no margin


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
    count = draws(rows)
    furthest: dict[str, list[Floats]] = {}
    keep = count - quantile_place(count) + 1
    for stack in _stacks(count, rows, redraw):
        for name, texts in expressions.items():
            moved = _moved(texts, stack[name], columns[name], released[name])
            before = furthest.get(name)
            both = moved if before is None else [np.concatenate(pair) for pair in zip(before, moved, strict=True)]
            furthest[name] = [_largest(each, keep) for each in both]
    return {name: [each.min(axis=0) for each in found] for name, found in furthest.items()}


def draws(rows: int) -> int:
    """Return how many redraws a table of so many rows gets."""
    return min(_MOST, max(_FEWEST, _STACKED // max(rows, 1)))


def quantile_place(count: int) -> int:
    """Return which of so many sorted deviations is not passed by one more draw, in at least 95 of 100 cases."""
    return min(count, math.ceil(_SHARE * (count + 1)))


def _stacks(count: int, rows: int, redraw: Redraw) -> Iterator[Mapping[str, pa.Table]]:
    at_once = max(1, _STACKED // max(rows, 1))
    for start in range(0, count, at_once):
        yield redraw(min(at_once, count - start))


def _evaluated(texts: Sequence[str], table: pa.Table, columns: Sequence[str], *more: str) -> list[Floats]:
    """Compute expressions for every row; NULL is NaN."""
    numbers = {name: table.column(name) for name in more}
    listed = [*(f"CAST({text} AS DOUBLE)" for text in texts), *(f'CAST("{name}" AS DOUBLE)' for name in more)]
    named = ", ".join(f"{text} AS c{place}" for place, text in enumerate(listed))
    found = compute(f"SELECT {named} FROM t0", {"t0": stored(table, columns, numbers)})
    return [column.to_numpy().astype(np.float64) for column in found.columns]


def _moved(texts: Sequence[str], stack: pa.Table, columns: Sequence[str], released: Sequence[Floats]) -> list[Floats]:
    """Return how far each draw (first axis) moved the result of each row (second axis)."""
    *values, draw, row = _evaluated(texts, stack, columns, DRAW, ROW)
    shape = (int(draw.max(initial=-1)) + 1, len(released[0]))
    if len(draw) != shape[0] * shape[1]:
        raise ValueError("redraw must give every row of the table once for each draw")
    place = draw.astype(np.int64), row.astype(np.int64)
    found = []
    for value, before in zip(values, released, strict=True):
        drawn = np.full(shape, np.nan)
        drawn[place] = value
        far = np.abs(drawn - before)
        found.append(np.where(np.isnan(far), math.inf, far))
    return found


def _largest(values: Floats, count: int) -> Floats:
    """Return the largest numbers of each column."""
    return values if len(values) <= count else np.partition(values, len(values) - count, axis=0)[-count:]
