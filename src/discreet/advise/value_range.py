"""Choose the range of a column from noisy counts of its values by cell."""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from discreet.advise.value_cells import NULL_CELL, ValueCells, coarse_cells, fine_cells, round_step
from discreet.answer.model import Answer

_LOSS = 0.0025  # share of the values that may be outside, at each end
_NEIGHBOUR = 2.0  # deviations of noise of an occupied cell beside others
_FALSE_ALARM = 0.05  # probability that a cell which is far from all others, and empty, counts as occupied
_ONE_SIDED = 1.7  # deviations of a sum of noise that are exceeded with probability 5 %, at most
_MAX_UNCERTAINTY = 0.05  # two deviations of noise above this share of all values: the histogram cannot tell
UNITS_PER_DEVIATION = 2 / _MAX_UNCERTAINTY  # units that a histogram needs, for a deviation of 1
_ROUGH = 0.005  # above this share the ends are left as wide as a coarse cell
_NEAR_ZERO = Fraction(1, 4)  # a low end up to this share of the high end becomes 0
_BINS = 20
_SKEWED = 0.5  # share of the values in the first of equal bins from which bins of growing width are better


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Noisy counts of values by cell; each unit counts about once, spread over the cells of its values."""

    cells: ValueCells
    counts: np.ndarray
    missing: float  # values that are NULL
    deviation: float  # of the noise of each count
    is_laplace: bool

    @property
    def threshold(self) -> float:
        """A count that all empty cells together exceed with probability 5 % at most."""
        tail = _FALSE_ALARM / len(self.counts)
        if self.is_laplace:
            return self.deviation / math.sqrt(2) * math.log(1 / (2 * tail))
        return self.deviation * NormalDist().inv_cdf(1 - tail)

    def occupied(self) -> tuple[int, int] | None:
        """Return the first and the last cell that is visibly occupied; None if none is."""
        seeds = np.flatnonzero(self.counts > self.threshold)
        if not len(seeds):
            return None
        visible = self.counts > _NEIGHBOUR * self.deviation
        return _extended(visible, int(seeds[0]), -1), _extended(visible, int(seeds[-1]), 1)


def read_counts(answer: Answer, cells: ValueCells, *, is_laplace: bool) -> ValueCounts:
    """Return the counts of an answer to `cells.count_sql`."""
    counts = np.zeros(len(cells.edges) + 1)
    missing = 0.0
    for cell, count in zip(answer.table["cell"].to_pylist(), answer.table["n"].to_pylist(), strict=True):
        if cell == NULL_CELL:
            missing = float(count)
        else:
            counts[cell] = count
    margin = answer.margins["n"][0] or 0.0
    deviation = margin * math.sqrt(2) / math.log(20) if is_laplace else margin / NormalDist().inv_cdf(0.975)
    return ValueCounts(cells, counts, missing, deviation, is_laplace)


def _extended(visible: np.ndarray, place: int, step: int) -> int:
    """Return the last visible cell in one direction before two invisible ones in a row."""
    end = place
    while 0 <= place < len(visible) and abs(place - end) < 3:
        end = place if visible[place] else end
        place += step
    return end


@dataclass(frozen=True)
class CoarseRange:
    """The coarse cells at both ends of the values, and how many values there seem to be.

    A `rough` range was chosen from a histogram with much noise, and has a spare cell at each end.
    """

    low: tuple[Fraction, Fraction]
    high: tuple[Fraction, Fraction]
    total: float
    rough: bool
    beyond_grid: bool


def coarse_range(counts: ValueCounts) -> CoarseRange | None:
    """Return the coarse cells at the ends of the values; None if the histogram cannot tell.

    >>> cells = coarse_cells("integer")
    >>> values = np.bincount([cells.edges.index(10) + 1] * 700 + [cells.edges.index(20) + 1] * 300, minlength=110)
    >>> found = coarse_range(ValueCounts(cells, values, 0, 2.0, is_laplace=False))
    >>> int(found.low[0]), int(found.high[1]), found.total
    (10, 50, 1000.0)
    """
    found = counts.occupied()
    if found is None:
        return None
    first, last = found
    seen = np.maximum(counts.counts[first : last + 1], 0)
    total = float(counts.counts[first : last + 1].sum())
    if total <= 0 or 2 * counts.deviation > _MAX_UNCERTAINTY * total:
        return None
    rough = 2 * counts.deviation > _ROUGH * total
    first += int(np.searchsorted(np.cumsum(seen), _LOSS * total, side="right"))
    last -= int(np.searchsorted(np.cumsum(seen[::-1]), _LOSS * total, side="right"))
    edges = counts.cells.edges
    beyond = first == 0 or last == len(edges)
    if rough and not counts.cells.years:
        zero = edges.index(Fraction(0)) + 1  # values from 0 on: no spare cell of negative numbers
        first, last = (first if first == zero else first - 1), last + 1
    first, last = max(1, first), min(len(edges) - 1, last)
    return CoarseRange((edges[first - 1], edges[first]), (edges[last - 1], edges[last]), total, rough, beyond)


@dataclass(frozen=True)
class ChosenRange:
    """A range with round ends; the values outside it, estimated and at most (95 %), as shares of all; and bins."""

    low: Fraction
    high: Fraction
    outside: float
    outside_at_most: float
    missing: float
    bins: tuple[Fraction, ...]


def refined_cells(coarse: CoarseRange, *, whole: bool) -> ValueCells:
    """Return the cells by which the ends of a coarse range are refined."""
    return fine_cells(coarse.low, coarse.high, whole=whole)


def chosen_range(coarse: CoarseRange, first: ValueCounts, fine: ValueCounts, *, whole: bool) -> ChosenRange:
    """Choose the range from the fine counts of the cells at the ends of a coarse range."""
    edges, counts = fine.cells.edges, fine.counts
    total = max(float(counts.sum()), coarse.total / 2, 1.0)
    below = 0 if coarse.rough else _cut(counts, fine.deviation, total, _cells_in(edges, coarse.low))
    above = 0 if coarse.rough else _cut(counts[::-1], fine.deviation, total, _cells_in(edges, coarse.high))
    if below + above > len(edges) - 2:
        below = above = 0
    low, high = edges[below], edges[len(edges) - 1 - above]
    outside = np.concatenate([counts[: below + 1], counts[len(counts) - 1 - above :]])
    estimate, spare = float(outside.sum()), _ONE_SIDED * fine.deviation * math.sqrt(len(outside))
    low, high = _rounded_outwards(low, high, whole=whole)
    return ChosenRange(
        low,
        high,
        min(1.0, max(0.0, estimate / total)),
        min(1.0, max(0.0, estimate + spare) / total),
        min(1.0, max(0.0, first.missing / (total + max(0.0, first.missing)))),
        suggested_bins(low, high, first, whole=whole),
    )


def year_range(coarse: CoarseRange, counts: ValueCounts) -> ChosenRange:
    """Return the range of whole years; nothing is refined."""
    low, high = coarse.low[0], coarse.high[0]
    edges = counts.cells.edges
    outside = np.concatenate([counts.counts[: edges.index(low) + 1], counts.counts[edges.index(high) + 2 :]])
    near = np.maximum(outside, 0)[np.maximum(outside, 0) > _NEIGHBOUR * counts.deviation]
    spare = _ONE_SIDED * counts.deviation * math.sqrt(len(outside))
    total = coarse.total
    return ChosenRange(
        low,
        high,
        min(1.0, float(near.sum()) / total),
        min(1.0, max(0.0, float(outside.sum()) + spare) / total),
        min(1.0, max(0.0, counts.missing) / (total + max(0.0, counts.missing))),
        (),
    )


def _cells_in(edges: tuple[Fraction, ...], cell: tuple[Fraction, Fraction]) -> int:
    """Return the number of fine cells within a coarse one."""
    return edges.index(cell[1]) - edges.index(cell[0])


def _cut(counts: np.ndarray, deviation: float, total: float, most: int) -> int:
    """Return how many of the outer cells hold at most the permitted share of the values, with their noise."""
    cut = 0
    for cells in range(1, most + 1):
        if counts[: cells + 1].sum() + deviation * math.sqrt(cells + 1) > _LOSS * total:
            break
        cut = cells
    return cut


def _rounded_outwards(low: Fraction, high: Fraction, *, whole: bool) -> tuple[Fraction, Fraction]:
    low = Fraction(0) if 0 < low <= _NEAR_ZERO * high else low
    high = Fraction(0) if _NEAR_ZERO * low <= high < 0 else high
    step = round_step(low, high, _BINS, whole=whole)
    return low // step * step, -(-high // step) * step


def suggested_bins(low: Fraction, high: Fraction, first: ValueCounts, *, whole: bool) -> tuple[Fraction, ...]:
    """Return the ends of about 10 to 20 bins: equal ones, or of growing width if most values were in the first."""
    step = round_step(low, high, _BINS, whole=whole)
    equal = tuple(low + step * number for number in range(int((high - low) / step) + 1))
    edges, counts = first.cells.edges, np.maximum(first.counts, 0)
    in_first = float(sum(counts[place + 1] for place, edge in enumerate(edges[:-1]) if low <= edge < equal[1]))
    if low < 0 or in_first < _SKEWED * float(counts.sum()):
        return equal
    inner = [edge for edge in edges if low < edge < high]
    return (low, *inner[-_BINS + 2 :], high)
