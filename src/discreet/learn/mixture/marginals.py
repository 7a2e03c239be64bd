"""Noisy marginal tables of pairs of columns, from which a mixture is initialised.

Their cells are narrow where there are many units. First a table of each column with equal cells shows where that is,
then a second one with cells refined there, and finally the tables of pairs.
"""

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations
from typing import Any, Protocol

import numpy as np

PublicValues = tuple[Any, ...]
Marginals = tuple[tuple[int, ...], ...]
_COLUMN_CELLS = 128  # cells of the one-column tables
_MIN_SIDE, _MAX_CELLS = 8, 1 << 14  # minimum cells per side, and maximum cells in all tables
_SIGNIFICANT = 4.0  # noise variances of a difference that are shrunk to 0
_NOISE_TO_COUNT = 4.0  # noise deviation of a cell, relative to the mean count per cell, that is accepted
_MAX_GROWTH = 0.5  # of a cell's width, per distance from a narrower cell
_SPREAD = 0.05  # share of a cell's units that are taken to be in each of its neighbours
MIN_VARIANCE = 1e-12  # of a component, in squared declared ranges
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


@dataclass(frozen=True)
class MarginalTables:
    """Noisy counts, marginals × cells; `edges` are the cell edges of each column in the unit cube."""

    counts: np.ndarray
    sd: float
    edges: np.ndarray  # (columns, side + 1)
    marginals: Marginals

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.edges)

    @property
    def side(self) -> int:
        """The number of cells along each column of a marginal."""
        return int(self.edges.shape[1]) - 1

    @cached_property
    def marginal_edges(self) -> np.ndarray:
        """The edges of each marginal, (marginals, r, side + 1); the outer cells contain all that lies beyond."""
        unbounded = self.edges.copy()
        unbounded[:, 0], unbounded[:, -1] = -np.inf, np.inf
        return np.asarray(unbounded[np.array(self.marginals)])

    @cached_property
    def shifted_counts(self) -> np.ndarray:
        """Counts plus the noise variance, at least 0."""
        return np.maximum(self.counts + self.sd**2, 0)

    @property
    def total(self) -> float:
        """Noisy number of units, at least 1."""
        return max(float(self.counts.sum(axis=1).mean()), 1.0)

    def cell_variances(self, means: np.ndarray) -> np.ndarray:
        """Return the variance within the cell of each coordinate of the means (…, d); a table shows no smaller one."""
        columns = [np.searchsorted(edges[1:-1], means[..., j], side="right") for j, edges in enumerate(self.edges)]
        widths = [np.diff(edges)[cells] for edges, cells in zip(self.edges, columns, strict=True)]
        return np.stack(widths, axis=-1) ** 2 / 12

    def coarsen(self, side: int) -> "MarginalTables":
        """Return the tables with cells merged to `side` cells per column."""
        if side >= self.side:
            return self
        r, factor = len(self.marginals[0]), self.side // side
        merged = self.counts.reshape(len(self.marginals), *[side, factor] * r).sum(axis=tuple(range(2, 2 * r + 1, 2)))
        counts, sd = merged.reshape(len(self.marginals), -1), self.sd * factor ** (r / 2)
        return replace(self, counts=counts, sd=sd, edges=self.edges[:, ::factor])


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


def draw_marginal_tables(session: NoisySession, low: np.ndarray, high: np.ndarray) -> MarginalTables:
    """Return the marginal tables, from three releases."""
    columns = tuple((column,) for column in range(len(low)))
    edges = np.tile(np.linspace(0, 1, _COLUMN_CELLS + 1), (len(low), 1))
    tables = _draw_tables(session, edges, columns, low, high)
    tables = _draw_tables(session, refine_edges(tables, _COLUMN_CELLS), columns, low, high)
    marginals = marginals_of_columns(len(low))
    side = cells_per_side(marginals, tables.total, session.sd() * _tables_radius(session, len(marginals)))
    return _draw_tables(session, refine_edges(tables, side), marginals, low, high)


def _draw_tables(
    session: NoisySession, edges: np.ndarray, marginals: Marginals, low: np.ndarray, high: np.ndarray
) -> MarginalTables:
    """Return the next noisy tables of these marginals."""
    sd = session.sd() * _tables_radius(session, len(marginals))
    cells = (edges.shape[1] - 1) ** len(marginals[0])
    in_data_units = low[:, np.newaxis] + edges * (high - low)[:, np.newaxis]
    counts = session.histograms(marginal_cells, (in_data_units, marginals), tables=len(marginals), cells=cells)
    return MarginalTables(counts, sd, edges, marginals)


def refine_edges(tables: MarginalTables, side: int) -> np.ndarray:
    """Return edges of `side` cells per column, given tables of single columns.

    Half of the cells have equal counts, which resolves clusters of any scale. The density of the others is the cube
    root of that of the units, which resolves tails.
    """
    refined = np.empty((tables.n_columns, side + 1))
    for line, edges, out in zip(denoise(tables, np.ones_like(tables.counts)), tables.edges, refined, strict=True):
        units = np.convolve(np.where(line > tables.sd, line, 0), [_SPREAD, 1 - 2 * _SPREAD, _SPREAD], "same") + 1e-9
        widths = np.diff(edges)
        roots = np.cbrt(units / widths) * widths
        share = side * (units / units.sum() + roots / roots.sum()) / 2
        centres = (edges[1:] + edges[:-1]) / 2
        distances = np.abs(centres - centres[:, np.newaxis])
        narrow = np.min(widths / np.maximum(share, 1e-9) + _MAX_GROWTH * distances, axis=1)
        cumulative = np.concatenate([[0], np.cumsum(widths / narrow)])
        out[:] = np.interp(np.linspace(0, cumulative[-1], side + 1), cumulative, edges)
        out[0], out[-1] = 0, 1
    return refined


def denoise(tables: MarginalTables, expected: np.ndarray) -> np.ndarray:
    """Return nonnegative counts, equal to the expected ones (V, cells) but for differences that exceed the noise.

    From the total downwards, a block of cells is divided in proportion to the expected counts of its halves. What the
    difference of their noisy counts exceeds this by is shrunk by the James-Stein method, and added.
    """
    order = np.argsort(_nested_codes(tables.side, len(tables.marginals[0])))
    n_tables, n_cells = tables.counts.shape
    estimate = np.maximum(tables.counts.sum(axis=1, keepdims=True), 1.0)
    for level in range(1, n_cells.bit_length()):
        blocks = (n_tables, 2 ** (level - 1), 2, -1)
        first, second = np.moveaxis(tables.counts[:, order].reshape(blocks).sum(axis=3), 2, 0)
        half, other = np.moveaxis(expected[:, order].reshape(blocks).sum(axis=3) + 1e-12, 2, 0)
        proportional = estimate * (half - other) / (half + other)
        excess = first - second - proportional
        noise = _SIGNIFICANT * tables.sd**2 * n_cells / 2 ** (level - 1)
        shrunken = excess * np.maximum(1 - noise / np.maximum(excess**2, 1e-300), 0)
        difference = np.clip(proportional + shrunken, -estimate, estimate)
        estimate = np.stack([estimate + difference, estimate - difference], axis=-1).reshape(n_tables, -1) / 2
    return np.asarray(estimate[:, np.argsort(order)])


def _nested_codes(side: int, r: int) -> np.ndarray:
    """Return the interleaved bits of each cell's indices; in this order, nested blocks of cells are contiguous."""
    indices = np.indices((side,) * r).reshape(r, -1)
    bits = [
        ((index >> bit) & 1) << (r * bit + axis)
        for axis, index in enumerate(indices)
        for bit in range(side.bit_length())
    ]
    return np.asarray(reduce(np.add, bits))


def cells_per_side(marginals: Marginals, total: float, sd: float) -> int:
    """Return the number of cells per side for which the mean count per cell is at least a fraction of the noise.

    >>> [cells_per_side(marginals_of_columns(d), total=1e5, sd=sd) for d, sd in ((2, 10), (10, 50))]
    [128, 16]
    """
    side, r = _MIN_SIDE, len(marginals[0])
    while (2 * side) ** r * len(marginals) <= _MAX_CELLS and _NOISE_TO_COUNT * total >= sd * (2 * side) ** r:
        side *= 2
    return side


def _tables_radius(session: NoisySession, n_tables: int) -> float:
    """Return the norm of a unit's contribution to this many tables: 1 in each."""
    return float(n_tables**0.5 if session.is_gaussian else n_tables)


def marginal_cells(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return the cell of each row in each table, (n, marginals); values beyond the edges are in outer cells."""
    edges, marginals = public
    side = edges.shape[1] - 1
    cells = [np.searchsorted(inner, rows[:, j], side="right") for j, inner in enumerate(edges[:, 1:-1])]
    out = np.empty((len(marginals), len(rows)), np.int64)
    for index, marginal in enumerate(marginals):
        out[index] = reduce(lambda outer, inner: outer * side + inner, [cells[column] for column in marginal])
    return out.T
