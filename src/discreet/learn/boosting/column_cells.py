"""Declared columns as cells: fine intervals of a number's bounds, or one cell per category.

Cell 0 of every column is for missing values and undeclared categories. Cells depend on declarations only; they are
merged into bins by released counts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.bounds import BoundArrays, parse_bounds

CELLS = 128  # intervals of a numeric column
_MAX_CODES = 4096  # integer codes between the smallest and the largest category
_EXAMPLE = "such as categories={'sex': ['female', 'male']}"
_BOUNDS_EXAMPLE = "such as bounds={'age': (0, 100)}, or (low, high) with one number or one per numeric column"
Categories = tuple[tuple[Any, ...] | None, ...]  # of each column; None for a numeric one


@dataclass(frozen=True)
class ColumnCells:
    """How each column's numbers become cells; `low` and `high` are those of the numbers, or of the category codes.

    `codes` are the integer codes of a column's categories, or None; `categories` are their names.
    """

    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    codes: tuple[np.ndarray | None, ...]
    categories: Categories

    @property
    def step(self) -> np.ndarray:
        """The width of each column's cells: 1 for categories."""
        numeric = np.array([codes is None for codes in self.codes])
        return np.where(numeric, (self.high - self.low) / CELLS, 1.0)

    @property
    def origin(self) -> np.ndarray:
        """The lower end of each column's cell 0; categories are in the middle of their cells."""
        return np.array(
            [
                low - step if codes is None else codes[0] - 1.5
                for low, step, codes in zip(self.low, self.step, self.codes, strict=True)
            ]
        )

    @property
    def sizes(self) -> np.ndarray:
        """The number of cells of each column; the last one of categories is for codes above theirs."""
        return np.array([CELLS + 1 if codes is None else int(codes[-1] - codes[0]) + 3 for codes in self.codes])

    @property
    def for_rules(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What a rule needs to compute cells: origin, cells per unit and last cell."""
        return self.origin, 1 / self.step, self.sizes - 1.0

    def source_bounds(self, *, with_missing: bool) -> BoundArrays:
        """Return the bounds of the rows to sum; with missing values, cell 0 is included."""
        low, high = self.low.copy(), self.high.copy()
        for j, codes in enumerate(self.codes):
            if codes is not None:
                low[j], high[j] = codes[0] - 1, codes[-1] + 1
            elif with_missing:
                low[j] = self.missing_values[j]
        return low, high

    @property
    def missing_values(self) -> np.ndarray:
        """The number that stands for a missing value or an undeclared category in each column."""
        return self.origin + self.step / 2


def cells_of(rows: np.ndarray, for_rules: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the cell of every number, columns × rows; rows may have further columns.

    >>> cells = ColumnCells(("x",), np.zeros(1), np.full(1, 128.0), (None,), (None,))
    >>> cells_of(np.array([[-9.0], [0], [5.5], [128]]), cells.for_rules).tolist()
    [[0, 1, 6, 128]]
    """
    origin, per_unit, last = for_rules
    cells = np.empty((len(origin), len(rows)), np.int64)
    for j in range(len(origin)):
        place = (rows[:, j] - origin[j]) * per_unit[j]
        np.clip(place, 0, last[j], out=place)
        cells[j] = place
    return cells


def declare_cells(
    names: Sequence[str], bounds: Any, categories: Any, public_bounds: BoundArrays | None = None, *, indexed: bool
) -> ColumnCells:
    """Return the cells of columns from declared bounds and categories.

    With `indexed`, categories are coded by their index; otherwise they must be integers, which are their own codes.
    `public_bounds` are used without declared ones.
    """
    listed = _categories_of_columns(names, categories)
    codes = tuple(
        None if each is None else _category_codes(each, name, indexed=indexed)
        for each, name in zip(listed, names, strict=True)
    )
    numeric = [j for j, each in enumerate(listed) if each is None]
    low, high = np.zeros(len(names)), np.ones(len(names))
    if numeric:
        low[numeric], high[numeric] = _numeric_bounds([names[j] for j in numeric], bounds, public_bounds, numeric)
    if not indexed:
        listed = tuple(None if values is None else tuple(sorted(values)) for values in listed)
    return ColumnCells(tuple(names), low, high, codes, listed)


def _numeric_bounds(
    names: list[str], bounds: Any, public_bounds: BoundArrays | None, numeric: list[int]
) -> BoundArrays:
    if bounds is None and public_bounds is not None:
        return public_bounds[0][numeric], public_bounds[1][numeric]
    if not isinstance(bounds, Mapping):
        return parse_bounds(bounds, len(names))
    if missing := [name for name in names if name not in bounds]:
        raise ValueError(
            f"bounds: column {missing[0]!r} has none, {_BOUNDS_EXAMPLE}. Columns with categories need no bounds."
        )
    pairs = [bounds[name] for name in names]
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise ValueError(f"bounds: each column needs a pair (low, high), {_BOUNDS_EXAMPLE}")
    return parse_bounds(tuple(zip(*pairs, strict=True)), len(names))


def _categories_of_columns(names: Sequence[str], categories: Any) -> Categories:
    """Return the declared categories of each column, sorted and distinct."""
    if categories is None:
        return (None,) * len(names)
    if not isinstance(categories, Mapping):
        raise TypeError(f"categories must be a dict from columns to lists of their values, {_EXAMPLE}")
    by_index = {names[key] if _is_index(key, len(names)) else key: values for key, values in categories.items()}
    if unknown := [key for key in by_index if key not in names]:
        raise ValueError(f"categories: column {unknown[0]!r} does not exist; the columns are {', '.join(names)}")
    return tuple(_distinct(by_index[name], name) if name in by_index else None for name in names)


def _is_index(key: Any, count: int) -> bool:
    return isinstance(key, int) and 0 <= key < count


def _distinct(values: Any, name: str) -> tuple[Any, ...]:
    listed = () if isinstance(values, str) else tuple(np.asarray(values, object).tolist())
    if not listed or len(set(listed)) < len(listed):
        raise ValueError(f"categories: list the distinct values of {name!r}, {_EXAMPLE}")
    return listed


def _category_codes(values: tuple[Any, ...], name: str, *, indexed: bool) -> np.ndarray:
    if indexed:
        return np.arange(len(values), dtype=np.float64)
    whole = all(isinstance(value, int | float) and float(value).is_integer() for value in values)
    if not whole or max(values) - min(values) >= _MAX_CODES:
        raise ValueError(
            f"categories: here the values of {name!r} must be integers with differences below {_MAX_CODES}; convert "
            "others with CASE in the query, or pass a frame"
        )
    return np.sort(np.asarray(values, np.float64))


def bins_of_categories(codes: np.ndarray) -> np.ndarray:
    """Return the bin of each cell of a categorical column: 0 for other values, else 1 + the category's position.

    >>> bins_of_categories(np.array([3.0, 5.0])).tolist()
    [0, 1, 0, 2, 0]
    """
    bins = np.zeros(int(codes[-1] - codes[0]) + 3, np.int64)
    bins[(codes - codes[0]).astype(np.int64) + 1] = 1 + np.arange(len(codes))
    return bins


def merge_cells(counts: np.ndarray, count_sd: float, max_bins: int) -> np.ndarray:
    """Return the bin of each cell of a numeric column, so that bins have nearly equal noisy counts above the noise.

    >>> merge_cells(np.array([0, 9.0, 1, 5, 5, 0]), 0.1, max_bins=2).tolist()
    [0, 1, 1, 2, 2, 2]
    """
    share = max(float(counts[1:].sum()), 1.0) / max_bins
    bins, current, total, merged = np.zeros(len(counts), np.int64), 1, 0.0, 0
    for cell in range(1, len(counts)):
        total, merged = total + counts[cell], merged + 1
        bins[cell] = current
        if total >= max(share, _MIN_DEVIATIONS * count_sd * math.sqrt(merged)):
            current, total, merged = current + 1, 0.0, 0
    if bins[-1] == current and current > 1 and total < share / 2:
        bins[bins == current] = current - 1  # what is left over
    return bins


_MIN_DEVIATIONS = 0.5  # a bin's noisy count is at least so many deviations of its noise: fine bins matter more
