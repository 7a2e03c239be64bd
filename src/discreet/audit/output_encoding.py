"""Encode outputs of any type, each independently, so that an event means the same on both data sets."""

import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from discreet.audit.runs import ErrorOutcome, Outcomes, Runs

_NUMBER_TYPES = Real, Decimal, np.bool_
_INT64_LIMIT = 1 << 63  # exclusive upper limit of int64

NumberRow = tuple[Any, ...]


@dataclass(frozen=True)
class NumberFormat:
    """Number of values kept per run, as exact integers or doubles; of other outputs only the kind is kept."""

    width: int
    integral: bool


def encode_runs(runs: Runs, pilot: int) -> tuple[Outcomes, Outcomes]:
    """Encode outputs as outcomes, in a number format that depends only on the first `pilot` runs on both data sets.

    If other runs influenced the format, they would help to choose events that they then test. A separate format for
    each data set, or a type that a single NaN changes for all runs, would make equal outputs look different.
    """
    sides = runs.on_both()
    if all(isinstance(side, np.ndarray) and side.dtype.kind in "biuf" for side in sides):
        tables = [_as_matrix(side) for side in sides]
        number_format = _format_of_matrices([table[:pilot] for table in tables])
        first, second = (
            _encode_matrix(table, number_format, _number_noun(table.shape[1], is_scalar=side.ndim == 1))
            for side, table in zip(sides, tables, strict=True)
        )
        return first, second
    lists = [list(side) if runs.one_by_one else [_normalise_number(value) for value in side] for side in sides]
    rows = [[_numbers_of(output) for output in side] for side in lists]
    number_format = _format_of_rows([row for side in rows for row in side[:pilot] if row is not None])
    first, second = (
        _encode_list(side, number_rows, number_format) for side, number_rows in zip(lists, rows, strict=True)
    )
    return first, second


def _as_matrix(side: np.ndarray) -> np.ndarray:
    """Return one row of integers or doubles for each run."""
    matrix = side.reshape(len(side), math.prod(side.shape[1:]))
    return matrix.astype(np.float64, copy=False) if matrix.dtype.kind == "f" else matrix


def _format_of_matrices(matrices: list[np.ndarray]) -> NumberFormat:
    width = matrices[0].shape[1]
    return NumberFormat(width, all(_are_integral(matrix).all() for matrix in matrices if matrix.shape[1] == width))


def _format_of_rows(rows: list[NumberRow]) -> NumberFormat:
    """Return the most frequent number of values per run, and whether all of them are integers."""
    if not rows:
        return NumberFormat(0, integral=False)
    width = Counter(map(len, rows)).most_common(1)[0][0]
    return NumberFormat(width, all(_exact_integer(x) is not None for row in rows if len(row) == width for x in row))


def _encode_matrix(matrix: np.ndarray, number_format: NumberFormat, noun: str) -> Outcomes:
    names = noun, f"{noun}, infinite", f"{noun}, NaN"
    kinds = np.zeros(len(matrix), np.int8)
    if matrix.dtype.kind == "f":
        kinds[np.isinf(matrix).any(axis=1)] = 1
        kinds[np.isnan(matrix).any(axis=1)] = 2
    if matrix.shape[1] != number_format.width:
        has_numbers = np.zeros(len(matrix), bool)
        return Outcomes(kinds, names, has_numbers, np.empty((0, number_format.width), _dtype(number_format)), None)
    has_numbers = _are_integral(matrix) if number_format.integral else np.ones(len(matrix), bool)
    selected = matrix if has_numbers.all() else matrix[has_numbers]
    return Outcomes(kinds, names, has_numbers, selected.astype(_dtype(number_format), copy=False), None)


def _encode_list(outputs: list[Any], rows: list[NumberRow | None], number_format: NumberFormat) -> Outcomes:
    names = [_kind_name(output, row) for output, row in zip(outputs, rows, strict=True)]
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    rows_or_none = [_fit_row(row, number_format) for row in rows]
    number_rows = [row for row in rows_or_none if row is not None]
    return Outcomes(
        kinds=np.array([codes[name] for name in names], np.int32),
        kind_names=tuple(codes),
        has_numbers=np.array([row is not None for row in rows_or_none], bool),
        numbers=np.array(number_rows, _dtype(number_format)).reshape(len(number_rows), number_format.width),
        tokens=[_hashable_token(output, row) for output, row in zip(outputs, rows, strict=True)],
    )


def _dtype(number_format: NumberFormat) -> type:
    return np.int64 if number_format.integral else np.float64


def _fit_row(row: NumberRow | None, number_format: NumberFormat) -> NumberRow | None:
    """Return the numbers of a run in this format, or None if they do not fit."""
    if row is None or len(row) != number_format.width:
        return None
    converted = tuple((_exact_integer if number_format.integral else _to_float)(x) for x in row)
    return None if None in converted else converted


def _are_integral(matrix: np.ndarray) -> np.ndarray:
    """Return for each row whether `_exact_integer` accepts all its numbers."""
    if matrix.dtype.kind in "bi":
        return np.ones(len(matrix), bool)
    if matrix.dtype.kind == "u":
        return np.asarray((matrix < _INT64_LIMIT).all(axis=1))
    is_minus_zero = (matrix == 0) & np.signbit(matrix)
    return np.asarray(
        ((matrix == np.rint(matrix)) & (matrix >= -_INT64_LIMIT) & (matrix < _INT64_LIMIT) & ~is_minus_zero).all(axis=1)
    )


def _exact_integer(value: Any) -> int | None:
    """Return the integer equal to a number of any type; None if there is none, it is too large, or minus zero."""
    if not isinstance(value, int | np.integer | np.bool_):
        rounded = _to_float(value)
        if not math.isfinite(rounded) or value != int(value) or (rounded == 0 and math.copysign(1, rounded) < 0):
            return None
    number = int(value)
    return number if -_INT64_LIMIT <= number < _INT64_LIMIT else None


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a decimal's signaling NaN
        return math.nan


def _normalise_number(output: Any) -> Any:
    """Return numbers that are integers as int, and anything else unchanged."""
    integer = _exact_integer(output) if isinstance(output, _NUMBER_TYPES) else None
    return output if integer is None else integer


def _numbers_of(output: Any) -> NumberRow | None:
    """Return the numbers of an output, or None if it contains anything else."""
    if isinstance(output, _NUMBER_TYPES):
        return (output,)
    if isinstance(output, np.ndarray) and output.dtype.kind in "biuf":
        return tuple(output.ravel().tolist())
    if isinstance(output, list | tuple) and output and all(isinstance(x, _NUMBER_TYPES) for x in output):
        return tuple(output)
    return None


def _kind_name(output: Any, row: NumberRow | None) -> str:
    if isinstance(output, ErrorOutcome):
        return f"raised {output.kind}"
    if row is None:
        return "nothing" if output is None else type(output).__name__
    if isinstance(output, bool | np.bool_):
        return "a boolean"
    if isinstance(output, int | np.integer):
        return "an integer"
    is_scalar = isinstance(output, _NUMBER_TYPES)
    noun = "a float" if isinstance(output, float | np.floating) else _number_noun(len(row), is_scalar=is_scalar)
    doubles = [_to_float(x) for x in row]
    if any(map(math.isnan, doubles)):
        return f"{noun}, NaN"
    return f"{noun}, infinite" if any(map(math.isinf, doubles)) else noun


def _number_noun(width: int, *, is_scalar: bool) -> str:
    return "a number" if is_scalar else f"{width} numbers"


def _hashable_token(output: Any, row: NumberRow | None) -> Hashable:
    """Return a hashable value for the whole output: equal for equal outputs, including NaN and arrays."""
    if row is not None:
        values = tuple("NaN" if math.isnan(_to_float(x)) else x.item() if isinstance(x, np.generic) else x for x in row)
        return values[0] if isinstance(output, _NUMBER_TYPES) else values
    try:
        hash(output)
        differs_from_itself = bool(output != output)  # noqa: PLR0124 - a value that differs from itself, such as NaN, is useless as a key
    except (TypeError, ValueError):  # no hash, or no truth value
        return repr(output)
    scalar: Hashable = output.item() if isinstance(output, np.generic) else output  # np.str_('a') is 'a'
    return repr(output) if differs_from_itself else scalar
