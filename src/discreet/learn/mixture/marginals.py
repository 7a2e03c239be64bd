"""Noisy marginal tables of pairs of columns, from which a mixture is initialised.

First a table of each column finds the window that contains nearly all values; then a table of each pair covers the
windows only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np

PublicValues = tuple[Any, ...]
Marginals = tuple[tuple[int, ...], ...]
_WINDOW_CELLS = 128  # cells of the one-column tables
_MIN_SIDE, _MAX_CELLS = 8, 1 << 14  # minimum cells per side, and maximum cells in all tables
_TAIL_SHARE = 0.003  # share of a column's values outside the window at each end
_WINDOW_MARGIN = 0.08  # added at each end, relative to the window's length
_ALL_PAIRS_UP_TO = 16  # with more columns, each is paired with the next ones only
_NEXT_COLUMNS = 5


class NoisySession(Protocol):
    """The part of a FitSession that mixtures use."""

    @property
    def is_gaussian(self) -> bool:
        """Whether the next release has Gaussian noise, with vectors clipped in l2."""

    def sd(self, radius: Any = ...) -> float:
        """Return the noise standard deviation of the next release."""

    def histograms(self, rule: Any, public: PublicValues, *, tables: int, cells: int) -> np.ndarray:
        """Return the next noisy tables."""

    def sum(self, rule: Any, public: PublicValues, *, size: int, radius: Any) -> np.ndarray:
        """Return the next noisy sum."""


class Windows(NamedTuple):
    """The part of the unit cube that contains nearly all rows: its start and length in each column."""

    begin: np.ndarray
    length: np.ndarray


@dataclass(frozen=True)
class MarginalTables:
    """Noisy counts, marginals × cells; the windows are mapped to the cube [-1/2, 1/2]."""

    counts: np.ndarray
    sd: float
    side: int  # cells along each column of a marginal
    marginals: Marginals
    n_columns: int

    @property
    def cell_centres(self) -> np.ndarray:
        """The centre of each cell: (r, cells), for marginals of r columns."""
        line = (np.arange(self.side) + 0.5) / self.side - 0.5
        return np.array(np.meshgrid(*[line] * len(self.marginals[0]), indexing="ij")).reshape(
            len(self.marginals[0]), -1
        )

    @property
    def cell_variance(self) -> float:
        """The variance that binning adds to each column."""
        return 1 / (12 * self.side**2)

    @property
    def total(self) -> float:
        """Noisy number of units inside the windows, at least 1."""
        return max(float(self.counts.sum(axis=1).mean()), 1.0)

    def coarsen(self, side: int) -> "MarginalTables":
        """Return the tables with cells merged to `side` cells per column."""
        if side >= self.side:
            return self
        r, factor = len(self.marginals[0]), self.side // side
        merged = self.counts.reshape(len(self.marginals), *[side, factor] * r).sum(axis=tuple(range(2, 2 * r + 1, 2)))
        return replace(self, counts=merged.reshape(len(self.marginals), -1), sd=self.sd * factor ** (r / 2), side=side)


def marginals_of_columns(n_columns: int) -> Marginals:
    """Return all pairs of columns, or only pairs of nearby columns if there are many; for one column, the column.

    >>> marginals_of_columns(3)
    ((0, 1), (0, 2), (1, 2))
    """
    if n_columns == 1:
        return ((0,),)
    if n_columns <= _ALL_PAIRS_UP_TO:
        return tuple(combinations(range(n_columns), 2))
    pairs = {
        tuple(sorted((i, (i + step) % n_columns))) for i in range(n_columns) for step in range(1, _NEXT_COLUMNS + 1)
    }
    return tuple(sorted(pairs))


def draw_marginal_tables(session: NoisySession, low: np.ndarray, high: np.ndarray) -> tuple[MarginalTables, Windows]:
    """Return the marginal tables and their windows, from two releases."""
    n_columns, marginals = len(low), marginals_of_columns(len(low))
    sd = session.sd() * _tables_radius(session, n_columns)
    counts = session.histograms(column_cells, (low, high - low, _WINDOW_CELLS), tables=n_columns, cells=_WINDOW_CELLS)
    windows = _find_windows(counts, sd)
    begin, length = low + windows.begin * (high - low), windows.length * (high - low)
    total, sd = float(counts.sum(axis=1).mean()), session.sd() * _tables_radius(session, len(marginals))
    side = cells_per_side(marginals, total, sd)
    cells = side ** len(marginals[0])
    counts = session.histograms(marginal_cells, (begin, length, side, marginals), tables=len(marginals), cells=cells)
    return MarginalTables(counts, sd, side, marginals, n_columns), windows


def cells_per_side(marginals: Marginals, total: float, sd: float) -> int:
    """Return the number of cells per side for which the mean count per cell is at least the noise.

    >>> [cells_per_side(marginals_of_columns(d), total=1e5, sd=sd) for d, sd in ((2, 10), (10, 50))]
    [64, 16]
    """
    side, r = _MIN_SIDE, len(marginals[0])
    while (2 * side) ** r * len(marginals) <= _MAX_CELLS and total >= sd * (2 * side) ** r:
        side *= 2
    return side


def _tables_radius(session: NoisySession, n_tables: int) -> float:
    """Return the norm of a unit's contribution to this many tables: 1 in each."""
    return float(n_tables**0.5 if session.is_gaussian else n_tables)


def column_cells(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return the cell of each row in each one-column table: (n, d)."""
    begin, length, side = public
    return _column_cells(rows, begin, length, side).clip(0, side - 1).T


def marginal_cells(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return the cell of each row in each marginal table, (n, marginals); -1 outside the windows."""
    begin, length, side, marginals = public
    cells = _column_cells(rows, begin, length, side)
    inside = (cells >= 0) & (cells < side)
    out = np.empty((len(marginals), len(rows)), np.int64)
    for index, marginal in enumerate(marginals):
        table_cell = reduce(lambda outer, inner: outer * side + inner, [cells[column] for column in marginal])
        in_window = reduce(np.logical_and, [inside[column] for column in marginal])
        out[index] = np.where(in_window, table_cell, -1)
    return out.T


def _column_cells(rows: np.ndarray, begin: np.ndarray, length: np.ndarray, side: int) -> np.ndarray:
    out = np.empty((len(begin), len(rows)), np.int64)
    for j, cells in enumerate(out):
        cells[:] = np.floor((rows[:, j] - begin[j]) * (side / length[j]))
    return out


def _find_windows(counts: np.ndarray, sd: float) -> Windows:
    """Return windows that leave out at each end at most a small share of the rows, or the noise level.

    If the total barely exceeds the noise, a window is the whole range.
    """
    total = max(float(counts.sum(axis=1).mean()), 1.0)
    slack = np.maximum(_TAIL_SHARE * total, 2 * sd * np.sqrt(np.arange(1, _WINDOW_CELLS + 1)))
    ends = [(_first_true(np.cumsum(line) > slack), _first_true(np.cumsum(line[::-1]) > slack)) for line in counts]
    begin, end = (np.array(side) / _WINDOW_CELLS for side in zip(*ends, strict=True))
    end = 1 - end
    significant = (end - begin >= 2 / _WINDOW_CELLS) & (total > 2 * slack[-1])
    begin, end = np.where(significant, begin, 0.0), np.where(significant, end, 1.0)
    margin = _WINDOW_MARGIN * (end - begin) + 1 / _WINDOW_CELLS
    begin, end = np.maximum(begin - margin, 0), np.minimum(end + margin, 1)
    return Windows(begin, end - begin)


def _first_true(flags: Sequence[bool] | np.ndarray) -> int:
    """Return the index of the first true flag, or 0."""
    return int(np.argmax(flags))
