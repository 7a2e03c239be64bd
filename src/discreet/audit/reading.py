"""How outputs become outcomes: each by itself, so that an event means the same on every run and on both data sets."""

import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from discreet.audit.outcomes import Outcomes, Raised, Runs

_NUMBERS = Real, Decimal, np.bool_
_TOP = 1 << 63  # what an int64 is below

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Frame:
    """Which numbers are kept: so many from each run, exact integers or doubles. Others are told by what they are."""

    width: int
    whole: bool


def read_both(runs: Runs, pilot: int) -> tuple[Outcomes, Outcomes]:
    """Return outputs as outcomes. The first `pilot` runs on either data set, and no others, decide how they are read.

    A frame that other runs had a say in would let those runs choose events which they then judge; and one for each
    data set, or a type that a single NaN changes for all, would make equal outputs look different.
    """
    sides = runs.sides()
    if all(isinstance(side, np.ndarray) and side.dtype.kind in "biuf" for side in sides):
        tables = [_table(side) for side in sides]
        frame = _frame_of_tables([table[:pilot] for table in tables])
        first, second = (
            _from_table(table, frame, _noun(table.shape[1], is_scalar=side.ndim == 1))
            for side, table in zip(sides, tables, strict=True)
        )
        return first, second
    lists = [list(side) if runs.alone else [_untyped(each) for each in side] for side in sides]
    rows = [[_row(output) for output in side] for side in lists]
    frame = _frame_of_rows([row for side in rows for row in side[:pilot] if row is not None])
    first, second = (_from_list(side, own, frame) for side, own in zip(lists, rows, strict=True))
    return first, second


def _table(side: np.ndarray) -> np.ndarray:
    """Return one row for each run, of integers or of doubles."""
    table = side.reshape(len(side), math.prod(side.shape[1:]))
    return table.astype(np.float64, copy=False) if table.dtype.kind == "f" else table


def _frame_of_tables(tables: list[np.ndarray]) -> Frame:
    width = tables[0].shape[1]
    return Frame(width, all(_are_whole(table).all() for table in tables if table.shape[1] == width))


def _frame_of_rows(rows: list[Row]) -> Frame:
    """Return how many numbers most runs have, and whether all of them are integers."""
    if not rows:
        return Frame(0, whole=False)
    width = Counter(map(len, rows)).most_common(1)[0][0]
    return Frame(width, all(_whole(x) is not None for row in rows if len(row) == width for x in row))


def _from_table(table: np.ndarray, frame: Frame, noun: str) -> Outcomes:
    names = noun, f"{noun}, infinite", f"{noun}, NaN"
    kinds = np.zeros(len(table), np.int8)
    if table.dtype.kind == "f":
        kinds[np.isinf(table).any(axis=1)] = 1
        kinds[np.isnan(table).any(axis=1)] = 2
    if table.shape[1] != frame.width:
        has = np.zeros(len(table), bool)
        return Outcomes(kinds, names, has, np.empty((0, frame.width), _dtype(frame)), None)
    has = _are_whole(table) if frame.whole else np.ones(len(table), bool)
    kept = table if has.all() else table[has]
    return Outcomes(kinds, names, has, kept.astype(_dtype(frame), copy=False), None)


def _from_list(outputs: list[Any], rows: list[Row | None], frame: Frame) -> Outcomes:
    names = [_kind(output, row) for output, row in zip(outputs, rows, strict=True)]
    known = {name: place for place, name in enumerate(dict.fromkeys(names))}
    fitted = [_fitted(row, frame) for row in rows]
    kept = [row for row in fitted if row is not None]
    return Outcomes(
        kinds=np.array([known[name] for name in names], np.int32),
        names=tuple(known),
        has=np.array([row is not None for row in fitted], bool),
        numbers=np.array(kept, _dtype(frame)).reshape(len(kept), frame.width),
        tokens=[_token(output, row) for output, row in zip(outputs, rows, strict=True)],
    )


def _dtype(frame: Frame) -> type:
    return np.int64 if frame.whole else np.float64


def _fitted(row: Row | None, frame: Frame) -> Row | None:
    """Return the numbers of a run as the frame has them, or None if they do not fit into it."""
    if row is None or len(row) != frame.width:
        return None
    kept = tuple((_whole if frame.whole else _float)(x) for x in row)
    return None if None in kept else kept


def _are_whole(table: np.ndarray) -> np.ndarray:
    """Tell for each row what `_whole` tells for each number."""
    if table.dtype.kind in "bi":
        return np.ones(len(table), bool)
    if table.dtype.kind == "u":
        return np.asarray((table < _TOP).all(axis=1))
    is_minus_zero = (table == 0) & np.signbit(table)
    return np.asarray(((table == np.rint(table)) & (table >= -_TOP) & (table < _TOP) & ~is_minus_zero).all(axis=1))


def _whole(value: Any) -> int | None:
    """Return the integer that a number is, whatever its type; None if it is none, or too large, or minus zero."""
    if not isinstance(value, int | np.integer | np.bool_):
        rounded = _float(value)
        if not math.isfinite(rounded) or value != int(value) or (rounded == 0 and math.copysign(1, rounded) < 0):
            return None
    number = int(value)
    return number if -_TOP <= number < _TOP else None


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a decimal's signaling NaN
        return math.nan


def _untyped(output: Any) -> Any:
    """Return an integer for a number that is one."""
    whole = _whole(output) if isinstance(output, _NUMBERS) else None
    return output if whole is None else whole


def _row(output: Any) -> Row | None:
    """Return an output's numbers, or None if it has other things than numbers."""
    if isinstance(output, _NUMBERS):
        return (output,)
    if isinstance(output, np.ndarray) and output.dtype.kind in "biuf":
        return tuple(output.ravel().tolist())
    if isinstance(output, list | tuple) and output and all(isinstance(x, _NUMBERS) for x in output):
        return tuple(output)
    return None


def _kind(output: Any, row: Row | None) -> str:
    if isinstance(output, Raised):
        return f"raised {output.kind}"
    if row is None:
        return "nothing" if output is None else type(output).__name__
    if isinstance(output, bool | np.bool_):
        return "a truth value"
    if isinstance(output, int | np.integer):
        return "an integer"
    is_scalar = isinstance(output, _NUMBERS)
    noun = "a float" if isinstance(output, float | np.floating) else _noun(len(row), is_scalar=is_scalar)
    doubles = [_float(x) for x in row]
    if any(map(math.isnan, doubles)):
        return f"{noun}, NaN"
    return f"{noun}, infinite" if any(map(math.isinf, doubles)) else noun


def _noun(width: int, *, is_scalar: bool) -> str:
    return "a number" if is_scalar else f"{width} numbers"


def _token(output: Any, row: Row | None) -> Hashable:
    """Return what stands for the output as a whole: equal for equal ones, NaN and arrays included."""
    if row is not None:
        values = tuple("NaN" if math.isnan(_float(x)) else x.item() if isinstance(x, np.generic) else x for x in row)
        return values[0] if isinstance(output, _NUMBERS) else values
    try:
        hash(output)
        is_odd = bool(output != output)  # noqa: PLR0124 - what is not equal to itself is never found again
    except (TypeError, ValueError):  # no hash, or no truth value
        return repr(output)
    plain: Hashable = output.item() if isinstance(output, np.generic) else output  # np.str_('a') is 'a'
    return repr(output) if is_odd else plain
