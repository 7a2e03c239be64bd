"""Noisy tables of every pair of columns: what the private start of a mixture is fitted to.

First each column's own table shows where its values lie; then each pair's table covers that window alone. One table of
one or two columns is a *view*: it shows a mixture's marginal law there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np

Public = tuple[Any, ...]
Views = tuple[tuple[int, ...], ...]
_FINE = 128  # cells of the first tables
_FEWEST, _MOST_CELLS = 8, 1 << 14  # cells along a column, and in all tables together
_TAIL = 0.003  # the share of a column's values that a window may leave out at each end
_MARGIN = 0.08  # of a window's length, added at each end
_ALL_PAIRS_UP_TO = 16  # columns; with more, each is paired with its next neighbours only
_NEIGHBOURS = 5


class Draws(Protocol):
    """What is asked of a session: the next noisy tables or sum, and how noisy they will be."""

    @property
    def is_gaussian(self) -> bool:
        """Whether the next noise is Gaussian, and vectors are kept in an l2 ball."""

    def sd(self, radius: Any = ...) -> float:
        """Return the standard deviation of the next noise."""

    def histograms(self, rule: Any, public: Public, *, tables: int, cells: int) -> np.ndarray:
        """Return the next noisy tables."""

    def sum(self, rule: Any, public: Public, *, size: int, radius: Any) -> np.ndarray:
        """Return the next noisy sum."""


class Windows(NamedTuple):
    """The part of the unit cube that holds nearly all rows: where it begins and how long it is in each column."""

    begin: np.ndarray
    length: np.ndarray


@dataclass(frozen=True)
class Tables:
    """Noisy counts, views × cells, within windows that are mapped onto the cube from -1/2 to 1/2."""

    counts: np.ndarray
    sd: float
    side: int  # cells along each column of a view
    views: Views
    columns: int

    @property
    def places(self) -> np.ndarray:
        """The middle of every cell: (r, cells), for views of r columns."""
        line = (np.arange(self.side) + 0.5) / self.side - 0.5
        return np.array(np.meshgrid(*[line] * len(self.views[0]), indexing="ij")).reshape(len(self.views[0]), -1)

    @property
    def blur(self) -> float:
        """How much variance is added to every column by knowing the cells only."""
        return 1 / (12 * self.side**2)

    @property
    def total(self) -> float:
        """How many units are inside of the windows, about."""
        return max(float(self.counts.sum(axis=1).mean()), 1.0)

    def coarser(self, side: int) -> "Tables":
        """Return the same with fewer cells, each the sum of several."""
        if side >= self.side:
            return self
        r, factor = len(self.views[0]), self.side // side
        split = self.counts.reshape(len(self.views), *[side, factor] * r).sum(axis=tuple(range(2, 2 * r + 1, 2)))
        return replace(self, counts=split.reshape(len(self.views), -1), sd=self.sd * factor ** (r / 2), side=side)


def views_of(columns: int) -> Views:
    """Return all pairs of columns, or the next neighbours if there are too many pairs; of a single column, itself.

    >>> views_of(3)
    ((0, 1), (0, 2), (1, 2))
    """
    if columns == 1:
        return ((0,),)
    if columns <= _ALL_PAIRS_UP_TO:
        return tuple(combinations(range(columns), 2))
    near = {tuple(sorted((i, (i + step) % columns))) for i in range(columns) for step in range(1, _NEIGHBOURS + 1)}
    return tuple(sorted(near))


def draw_tables(session: Draws, low: np.ndarray, high: np.ndarray) -> tuple[Tables, Windows]:
    """Return the tables of all views; it takes two draws of the session."""
    columns, views = len(low), views_of(len(low))
    sd = session.sd() * _spread(session, columns)
    counts = session.histograms(column_cells, (low, high - low, _FINE), tables=columns, cells=_FINE)
    windows = _windows(counts, sd)
    begin, length = low + windows.begin * (high - low), windows.length * (high - low)
    total, sd = float(counts.sum(axis=1).mean()), session.sd() * _spread(session, len(views))
    side = side_for(views, total, sd)
    cells = side ** len(views[0])
    counts = session.histograms(view_cells, (begin, length, side, views), tables=len(views), cells=cells)
    return Tables(counts, sd, side, views, columns), windows


def side_for(views: Views, total: float, sd: float) -> int:
    """Return how many cells along a column: as many as hold, on average, as many units as there is noise.

    >>> side_for(views_of(2), total=1e5, sd=10), side_for(views_of(10), total=1e5, sd=50)
    (64, 16)
    """
    side, r = _FEWEST, len(views[0])
    while (2 * side) ** r * len(views) <= _MOST_CELLS and total >= sd * (2 * side) ** r:
        side *= 2
    return side


def _spread(session: Draws, tables: int) -> float:
    """Return the radius of so many counts that one unit moves by 1."""
    return float(tables**0.5 if session.is_gaussian else tables)


def column_cells(rows: np.ndarray, public: Public) -> np.ndarray:
    """Return the cell of each row in each column's own table: (n, d)."""
    begin, length, side = public
    return _cells(rows, begin, length, side).clip(0, side - 1).T


def view_cells(rows: np.ndarray, public: Public) -> np.ndarray:
    """Return the cell of each row in each view's table, (n, views); -1 outside of the windows."""
    begin, length, side, views = public
    cells = _cells(rows, begin, length, side)
    inside = (cells >= 0) & (cells < side)
    out = np.empty((len(views), len(rows)), np.int64)
    for place, view in enumerate(views):
        found = reduce(lambda outer, inner: outer * side + inner, [cells[column] for column in view])
        seen = reduce(np.logical_and, [inside[column] for column in view])
        out[place] = np.where(seen, found, -1)
    return out.T


def _cells(rows: np.ndarray, begin: np.ndarray, length: np.ndarray, side: int) -> np.ndarray:
    found = np.empty((len(begin), len(rows)), np.int64)
    for j, cells in enumerate(found):
        cells[:] = np.floor((rows[:, j] - begin[j]) * (side / length[j]))
    return found


def _windows(counts: np.ndarray, sd: float) -> Windows:
    """Return the windows that leave out no more at each end than a small share, or what noise alone could be.

    Where even all rows together hardly stand out of the noise, a window is the whole range.
    """
    total = max(float(counts.sum(axis=1).mean()), 1.0)
    slack = np.maximum(_TAIL * total, 2 * sd * np.sqrt(np.arange(1, _FINE + 1)))
    ends = [(_first(np.cumsum(line) > slack), _first(np.cumsum(line[::-1]) > slack)) for line in counts]
    begin, end = (np.array(side) / _FINE for side in zip(*ends, strict=True))
    end = 1 - end
    found = (end - begin >= 2 / _FINE) & (total > 2 * slack[-1])
    begin, end = np.where(found, begin, 0.0), np.where(found, end, 1.0)
    margin = _MARGIN * (end - begin) + 1 / _FINE
    begin, end = np.maximum(begin - margin, 0), np.minimum(end + margin, 1)
    return Windows(begin, end - begin)


def _first(flags: Sequence[bool] | np.ndarray) -> int:
    """Return where the first flag is up; without any, 0."""
    return int(np.argmax(flags))
