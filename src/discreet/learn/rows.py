"""Rows to learn from, in memory: numbers within declared ranges, each row with its unit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Batch = tuple[np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class ArrayRows:
    """Rows of an array; `order` lists them unit by unit, and `places` has the unit of each in that order."""

    numbers: np.ndarray
    low: np.ndarray
    high: np.ndarray
    order: np.ndarray | None = None
    places: np.ndarray | None = None

    @property
    def grouped(self) -> bool:
        """Whether a unit may have several rows."""
        return self.places is not None

    def batches(self, size: int) -> Iterator[Batch]:
        """Give the rows, moved into their ranges."""
        for start in range(0, len(self.numbers), size):
            part = slice(start, start + size)
            rows = self.numbers[part if self.order is None else self.order[part]]
            yield np.clip(rows, self.low, self.high), None if self.places is None else self.places[part]


def array_rows(numbers: np.ndarray, ends: tuple[np.ndarray, np.ndarray], unit: Any = None) -> ArrayRows:
    """Return the rows of an array, of which those with an equal `unit` belong together.

    >>> rows = array_rows(np.array([[1.0], [2.0], [9.0]]), (np.zeros(1), np.ones(1) * 5), unit=["b", "a", "b"])
    >>> [(batch.ravel().tolist(), units.tolist()) for batch, units in rows.batches(10)]
    [([1.0, 5.0, 2.0], [0, 0, 1])]
    """
    if unit is None:
        return ArrayRows(np.asfortranarray(numbers), *ends)
    codes = _codes(unit, len(numbers))
    order = np.argsort(codes, kind="stable")
    return ArrayRows(np.asfortranarray(numbers), *ends, order, codes[order])


def _codes(unit: Any, rows: int) -> np.ndarray:
    """Return a number for each row, equal for equal units and different for others."""
    if isinstance(unit, np.ma.MaskedArray):
        raise TypeError("unit must be a plain array: what is under a mask would be somebody's")
    # Of a list, numpy would make one type, in which 1 and "1", or two long numbers, become the same.
    units = np.asarray(unit, object) if isinstance(unit, list | tuple) else np.asarray(unit)
    if units.ndim != 1 or len(units) != rows:
        raise ValueError(f"unit must name one unit for each of the {rows} rows, not have the shape {units.shape}")
    if units.dtype.kind in "fcmMO" and any(map(_is_missing, units)):
        raise ValueError("unit: some rows have none; leave those rows out, or give each its own unit")
    if units.dtype != object:
        return np.unique(units, return_inverse=True)[1].astype(np.int64)
    known: dict[Any, int] = {}  # by equality: 1, 1.0 and True are one unit, and must not become three
    try:
        return np.array([known.setdefault(each, len(known)) for each in units], np.int64)
    except TypeError:
        raise TypeError("unit must hold values that can be told apart, such as numbers or texts") from None


def _is_missing(unit: Any) -> bool:
    """Tell whether a unit is None, NaN, NaT or pandas' NA: only these are not equal to themselves."""
    try:
        return unit is None or bool(unit != unit)  # noqa: PLR0124
    except TypeError:
        return True
