"""Choose the range of a column from noisy counts of its values by cell."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from discreet.advise.value_cells import NULL_CELL, ValueCells, ValueScale, fine_cells, round_step
from discreet.answer.model import Answer

_LOSS = 0.0025  # share of the values that may be outside, at each end
_NEIGHBOUR = 2.0  # deviations of noise of an occupied cell beside others
_FALSE_ALARM = 0.005  # probability that a cell which is far from all others, and empty, counts as occupied
_ONE_SIDED = 1.7  # deviations of a sum of noise that are exceeded with probability 5 %, at most
_MAX_UNCERTAINTY = 0.05  # two deviations of noise above this share of all values: the histogram cannot tell
UNITS_PER_DEVIATION = 2 / _MAX_UNCERTAINTY  # units that a histogram needs, for a deviation of 1
_ROUGH = 0.005  # above this share a spare cell is added at each end, and the ends are not refined
_NARROW = 0.25  # share of the fine cells up to which values within one coarse cell are close together
_NEAR_ZERO = Fraction(1, 4)  # a low end up to this share of the high end becomes 0
_BINS = 20
_FEWEST_IN_BIN, _CLEAR = 0.01, 3.0  # share of the values in a bin of growing width, and deviations of noise
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
        """A count that all empty cells together exceed with probability 0.5 % at most."""
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
    scale: ValueScale
    total: float
    cells: int  # whose counts the total adds up
    rough: bool
    beyond_grid: bool


def coarse_range(counts: ValueCounts) -> CoarseRange | None:
    """Return the coarse cells at the ends of the values; None if the histogram cannot tell.

    >>> from discreet.advise.value_cells import coarse_cells
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
    rough, cells = 2 * counts.deviation > _ROUGH * total, last + 1 - first
    first += int(np.searchsorted(np.cumsum(seen), _LOSS * total, side="right"))
    last -= int(np.searchsorted(np.cumsum(seen[::-1]), _LOSS * total, side="right"))
    edges = counts.cells.edges
    beyond = first == 0 or last == len(edges)
    if rough and first < last and counts.cells.scale is ValueScale.VALUE:
        zero = edges.index(Fraction(0)) + 1  # values from 0 on: no spare cell of negative numbers
        first, last = (first if first == zero else first - 1), last + 1
    first, last = (min(max(1, cell), len(edges) - 1) for cell in (first, last))
    return CoarseRange(
        (edges[first - 1], edges[first]),
        (edges[last - 1], edges[last]),
        counts.cells.scale,
        total,
        cells,
        rough,
        beyond,
    )


@dataclass(frozen=True)
class ChosenRange:
    """A range with round ends, the share of values outside it, estimated and at most (95 %), and bins.

    Bins are equal, of the given width, or grow. The ends of times are months since the year 0; the high one is the
    first month after the range.
    """

    low: Fraction
    high: Fraction
    outside: float
    outside_at_most: float
    missing: float
    bins: tuple[Fraction, ...]
    bin_width: Fraction

    @property
    def has_equal_bins(self) -> bool:
        """Whether all bins have the width `bin_width`."""
        return all(end - start == self.bin_width for start, end in pairwise(self.bins))


def refined_cells(coarse: CoarseRange, *, whole: bool) -> ValueCells:
    """Return the cells by which the ends of a coarse range are refined."""
    return fine_cells(coarse.low, coarse.high, coarse.scale, whole=whole)


def chosen_range(coarse: CoarseRange, first: ValueCounts, fine: ValueCounts, *, whole: bool) -> ChosenRange:
    """Choose the range from the fine counts of the cells at the ends of a coarse range."""
    edges, evidence = fine.cells.edges, _Outside(fine.counts, fine.deviation, fine.is_laplace, coarse)
    below, above = _cells_to_cut(coarse, fine, evidence)
    low, high = edges[below], edges[len(edges) - 1 - above]
    numbers = fine.cells.scale is ValueScale.VALUE
    low, high = _rounded_outwards(low, high, whole=whole) if numbers else (low, high)
    estimate, deviation = evidence.estimate(below, above)
    return ChosenRange(
        low,
        high,
        *_shares(estimate, deviation, coarse.total),
        _missing_share(first, coarse.total),
        suggested_bins(low, high, first, whole=whole) if numbers else (),
        round_step(low, high, _BINS, whole=whole),
    )


def _cells_to_cut(coarse: CoarseRange, fine: ValueCounts, evidence: "_Outside") -> tuple[int, int]:
    """Return how many fine cells to cut off at both ends."""
    edges = fine.cells.edges
    occupied = fine.occupied()
    if coarse.low == coarse.high and occupied and occupied[1] - occupied[0] < _NARROW * len(edges):
        narrow = max(0, occupied[0] - 2), max(0, len(edges) - 2 - occupied[1])  # one spare cell at each end
        if evidence.may_be_small(*narrow):
            return narrow
    if coarse.rough:
        return 0, 0
    per_cell = 12 if fine.cells.scale is ValueScale.MONTH else 1
    low_cells, high_cells = (
        edges.index(end * per_cell) - edges.index(start * per_cell) for start, end in (coarse.low, coarse.high)
    )
    above = max((cut for cut in range(high_cells) if evidence.is_small(0, cut)), default=0)
    spare = len(edges) - 2 - above  # one cell is left
    return max((cut for cut in range(low_cells) if cut <= spare and evidence.is_small(cut, 0)), default=0), above


@dataclass(frozen=True, eq=False)
class _Outside:
    """The number of values outside a range: counted there, or the total less what is counted inside."""

    counts: np.ndarray
    deviation: float
    is_laplace: bool
    coarse: CoarseRange

    def estimate(self, below: int, above: int) -> tuple[float, float]:
        """Return the values outside if cells are cut off at both ends, and its deviation: of two, the more accurate.

        What lies beyond the edges is always outside. In l2 a unit weighs more if it is in more cells, so that the total
        of the coarse cells is not that of the fine ones.
        """
        inside = self.counts[below + 1 : len(self.counts) - 1 - above]
        cells_outside, cells_inside = len(self.counts) - len(inside), len(inside) + self.coarse.cells
        if self.is_laplace and cells_inside < cells_outside:
            return self.coarse.total - float(inside.sum()), self.deviation * math.sqrt(cells_inside)
        return float(self.counts.sum() - inside.sum()), self.deviation * math.sqrt(cells_outside)

    def is_small(self, below: int, above: int) -> bool:
        """Return whether at most what is permitted seems to be outside, one deviation of noise included."""
        estimate, deviation = self.estimate(below, above)
        return estimate + deviation <= self._permitted(below, above)

    def may_be_small(self, below: int, above: int) -> bool:
        """Return whether more than the permitted share outside is unlikely."""
        estimate, deviation = self.estimate(below, above)
        return estimate - 2 * deviation <= self._permitted(below, above)

    def _permitted(self, below: int, above: int) -> float:
        return ((below > 0) + (above > 0)) * max(_LOSS * self.coarse.total, 2 * self.deviation)


def _shares(estimate: float, deviation: float, total: float) -> tuple[float, float]:
    """Return the share of values outside, estimated and at most with 95 % confidence."""
    high = max(0.0, estimate) + _ONE_SIDED * deviation
    return min(1.0, max(0.0, estimate) / total), min(1.0, high / total)


def _missing_share(counts: ValueCounts, total: float) -> float:
    missing = max(0.0, counts.missing)
    return missing / (total + missing)


def _rounded_outwards(low: Fraction, high: Fraction, *, whole: bool) -> tuple[Fraction, Fraction]:
    low = Fraction(0) if 0 < low <= _NEAR_ZERO * high else low
    high = Fraction(0) if _NEAR_ZERO * low <= high < 0 else high
    step = round_step(low, high, _BINS, whole=whole)
    return low // step * step, -(-high // step) * step


def suggested_bins(low: Fraction, high: Fraction, first: ValueCounts, *, whole: bool) -> tuple[Fraction, ...]:
    """Return the ends of about 10 to 20 bins: equal ones, or of growing width if most values were in the first.

    Bins of growing width are merged until each seems to have one percent of the values.
    """
    step = round_step(low, high, _BINS, whole=whole)
    equal = tuple(low + step * number for number in range(int((high - low) / step) + 1))
    edges, counts = first.cells.edges, np.where(first.counts > _NEIGHBOUR * first.deviation, first.counts, 0)
    total, lowest = float(counts.sum()), edges[0]
    cells = zip((lowest, *edges), (*edges, None), counts, strict=True)
    in_first = sum(count for start, end, count in cells if end is not None and low <= start and end <= equal[1])
    if low < 0 or in_first < _SKEWED * total:
        return equal
    bins, content = [low], 0.0
    least = max(_FEWEST_IN_BIN * total, _CLEAR * first.deviation)
    for start, end, count in zip(edges, edges[1:], counts[1:], strict=False):
        content += float(count) if start >= low else 0.0
        if low < end < high and content >= least:
            bins.append(end)
            content = 0.0
    return (*bins, high)
