"""Quantiles by the exponential mechanism: a cell for each quantile and a width around it, sampled exactly.

The rank of a quantile is level·n in a group of weight n. A cell covers the ranks from the weight before it to the
weight up to it, and its distance is that of these ranks from the wanted one. The width of the margin is chosen in the
same way, by the number of ranks between the quantile and the nearer end of the margin, which should be `offset`.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from operator import mul

import numpy as np

from discreet.kernel.event import canonical_json
from discreet.kernel.histogram_tree import CellCounts
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Sensitivity
from discreet.kernel.noise.keystream import RandomSource, random_integer, thread_keystream
from discreet.kernel.noise.sampler import bernoulli_exp
from discreet.kernel.numbers import Number, as_integer, as_positive, check_type, exp_bounds

_RINGS = 96  # of candidates at similar distances, each half a scale wide


def uniform_integer(source: RandomSource, bound: int) -> int:
    """Return a uniform integer from 0 to bound - 1.

    Claim: each has probability 1/bound, exactly.
    Proof: a uniform number of enough bits, drawn again until it is below bound.
    Needs: Keystream.bytes.
    Checked by: test_integers_below_a_count_are_uniform
    """
    bits = bound.bit_length()
    while (drawn := random_integer(source, bits + -bits % 8) >> -bits % 8) >= bound:
        pass
    return drawn


def choose_by_weight(
    counts: Sequence[int], enclose: Callable[[int], Sequence[tuple[int, int]]], source: RandomSource
) -> int:
    """Return an index; `enclose(bits)` gives for each a low and a high integer around its weight times 2^bits.

    Claim: index i has probability c_i·w_i/sum(c_j·w_j) for counts c and weights w, exactly.
    Proof: with a uniform U, i is the first with U·(c_0·w_0 + … + c_n·w_n) < c_0·w_0 + … + c_i·w_i. Weights and U are
        enclosed between integers; an index is returned only if the enclosures leave no other; otherwise both are
        extended to twice the bits, with the bits of U kept.
    Needs: Keystream.bytes; `enclose` encloses positive weights, the more closely the more bits.
    Checked by: test_selections_have_the_exact_distribution, test_undecided_selections_are_continued
    """
    bits, prefix = 64, random_integer(source, 64)
    while True:
        lows, highs = (list(accumulate(map(mul, counts, ends))) for ends in zip(*enclose(bits), strict=True))
        # U is in [prefix, prefix + 1)·2^-bits, and the sum of the weights in [lows[-1], highs[-1]]·2^-bits.
        lower = prefix * lows[-1] >> bits  # U·sum >= lower
        upper = -(-(prefix + 1) * highs[-1] >> bits)  # U·sum < upper
        index = bisect_right(highs, lower)  # every earlier sum is surely at most U·sum; lower < highs[-1]
        if upper <= lows[index]:
            return index
        prefix, bits = prefix << bits | random_integer(source, bits), 2 * bits


@dataclass(frozen=True)
class RankTarget:
    """The quantile of a level strictly between 0 and 1, and the ranks, in weights, that its margin should span."""

    level: Fraction
    offset: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", as_integer(self.offset, "offset"))
        if not 0 < check_type(Fraction, self.level, "level") < 1:
            raise ValueError(f"level must be strictly between 0 and 1, not {self.level}")

    @property
    def factor(self) -> int:
        """The most that a weight of 1 moves a distance; distances are in units of 1/denominator of a rank."""
        return max(self.level.numerator, self.level.denominator - self.level.numerator)


@dataclass(frozen=True)
class QuantileSelection:
    """Selects the cells of quantiles, and the widths of their margins, by the exponential mechanism.

    A candidate at distance d has a probability proportional to exp(-d/(scale·factor)).

    >>> QuantileSelection(40, (RankTarget(Fraction(1, 2), offset=150),)).loss(Sensitivity(groups=1, size=1))
    Loss(epsilon=1/10, rho=1/1600)
    """

    scale: Fraction
    targets: tuple[RankTarget, ...]

    def __init__(self, scale: Number, targets: tuple[RankTarget, ...]) -> None:
        object.__setattr__(self, "scale", as_positive(scale, "scale"))
        object.__setattr__(self, "targets", tuple(check_type(RankTarget, each, "targets") for each in targets))

    def loss(self, sensitivity: Sensitivity) -> Loss:
        """Return the loss of a selection; the sensitivity is that of the weights of the groups.

        Claim: with two selections for each of k targets, epsilon = 4·k·l1/scale and rho = k·l2²/scale².
        Proof: let a unit have the weight w in a group. With it, the weight up to any cell grows by at most w and n by
            w, so num·n - den·(weight up to a cell) moves by at most factor·w: down by (den-num)·w if the unit is in
            these cells, up by num·w if not. The distance of a cell is such a term of one of its ends, or zero. The
            boundaries of widths are such terms, minima of them, or factor·n; less den·offset, which is public, they are
            the distances of widths. So each distance moves by at most factor·w, and the log-ratios of the candidates'
            probabilities are in one interval of length r = 2·w/scale. This bounded range is r-DP (McSherry and Talwar
            2007) and has rho r²/8 (Cesar and Rogers 2021, Lemma 3.2, after Dong et al. 2020). Groups are independent;
            over them, w adds up to at most l1, and w² to l2². The width is chosen given the released cell: epsilon and
            rho of all 2·k selections add up.
        Needs: QuantileSelection.select, margin_boundaries, select_candidate, Sensitivity, Loss.__add__; the sensitivity
            bounds the norms of a unit's weights by group (Question.sensitivity_of for one level of a histogram tree).
        Checked by: test_quantiles_of_all_small_databases_stay_within_their_loss,
            test_the_loss_of_a_quantile_is_attained, test_broken_quantile_selections_exceed_their_loss
        """
        norms, count = check_type(Sensitivity, sensitivity, "sensitivity"), len(self.targets)
        return Loss(4 * count * norms.l1 / self.scale, count * norms.l2_squared / (self.scale * self.scale))

    def select(self, cell_counts: CellCounts, cell_count: int, groups: np.ndarray) -> np.ndarray:
        """Return groups × targets × 2: a cell and the width of its margin in cells; `cell_count` if none is known.

        Claim: each cell has a probability proportional to exp(-d/(scale·factor)) for the distance d of level·n from
            the ranks that the cell covers; given it, a width has one for the distance of `offset` from the ranks
            between the last narrower margin and this one. All are independent across groups and targets.
        Proof: `cells` and `upto` of a group describe the boundaries between cells as select_candidate expects them.
        Needs: select_candidate, margin_boundaries; the cells of `cell_counts` are below cell_count.
        Checked by: test_selected_cells_and_widths_have_their_exact_distribution
        """
        codes = cell_counts.groups * cell_count + cell_counts.cells
        order, source = np.argsort(codes), thread_keystream()
        codes, cumulative = codes[order], np.concatenate([[0], np.cumsum(cell_counts.weights[order])])
        starts, stops = (np.searchsorted(codes, (groups + end) * cell_count).tolist() for end in (0, 1))
        selected = np.empty((len(groups), len(self.targets), 2), np.int64)
        for row, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            cells = np.concatenate([[0], codes[start:stop] - groups[row] * cell_count, [cell_count - 1]])
            upto = cumulative[start : stop + 1] - cumulative[start]
            selected[row] = [self._select_one(cells, upto, target, source) for target in self.targets]
        return selected

    def _select_one(
        self, cells: np.ndarray, upto: np.ndarray, target: RankTarget, source: RandomSource
    ) -> tuple[int, int]:
        unit, level, widths = self.scale * target.factor, target.level, margin_widths(int(cells[-1]) + 1)
        cell = select_candidate(cells, upto, (level.numerator * int(upto[-1]), level.denominator), unit, source)
        ranks, wanted = margin_boundaries(cells, upto, target, cell, widths), (level.denominator * target.offset, 1)
        index = select_candidate(np.arange(len(widths) + 1), ranks, wanted, unit, source)
        return cell, (*widths, widths[-1] + 1)[index]

    def __str__(self) -> str:
        targets = [[str(target.level), str(target.offset)] for target in self.targets]
        return canonical_json({"name": "quantiles", "scale": str(self.scale), "targets": targets})


@lru_cache(maxsize=64)
def margin_widths(cell_count: int) -> tuple[int, ...]:
    """Return the widths of margins: from 0, in steps of at least an eighth, to the width that covers every cell.

    >>> margin_widths(22)
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 17, 20, 21)
    """
    widths = [0]
    while widths[-1] < cell_count - 1:
        widths.append(min(cell_count - 1, widths[-1] + max(1, -(-widths[-1] // 8))))
    return tuple(widths)


def margin_boundaries(
    cells: np.ndarray, upto: np.ndarray, target: RankTarget, cell: int, widths: tuple[int, ...]
) -> np.ndarray:
    """Return for each width the ranks, in 1/denominator, from the quantile to the nearer end of the margin.

    An end at or beyond the first or last cell is no limit; if both are, factor·n stands for the size of the group.
    """
    total, numerator, denominator = int(upto[-1]), target.level.numerator, target.level.denominator
    lows, highs = cell - np.array(widths), cell + np.array(widths)
    below, above = (upto[np.searchsorted(cells[1:-1], ends)].tolist() for ends in (lows, highs + 1))
    sides = [
        ([numerator * total - denominator * before] if low > 0 else [])
        + ([denominator * up - numerator * total] if high < cells[-1] else [])
        for low, high, before, up in zip(lows.tolist(), highs.tolist(), below, above, strict=True)
    ]
    return np.array([min(each, default=target.factor * total) for each in sides], object)


def select_candidate(
    starts: np.ndarray, boundaries: np.ndarray, wanted: tuple[int, int], unit: Fraction, source: RandomSource
) -> int:
    """Return a candidate from 0 to starts[-1]; `wanted` is a fraction, and distances are in units of 1/denominator.

    Boundaries do not decrease. All candidates from starts[k] + 1 to starts[k + 1] begin at boundaries[k], and those
    from starts[k] to starts[k + 1] - 1 end there; the first begins at -∞, and the last ends at ∞.

    Claim: a candidate has a probability proportional to exp(-d/unit), where d is the distance of `wanted` from its
        beginning and end, zero between them; exactly.
    Proof: candidates with d < (j+1)·width are contiguous, because boundaries do not decrease: from the first that ends
        above wanted - (j+1)·width to the last that begins below wanted + (j+1)·width, compared as integers. Ring j has
        those of them with d >= j·width, and the last ring all others. A ring is chosen by its count times
        exp(-j·width/unit), a candidate uniformly in it, and it is accepted with probability exp(-(d - j·width)/unit):
        a product proportional to exp(-d/unit).
    Needs: choose_by_weight, uniform_integer, bernoulli_exp, exp_bounds.
    Checked by: test_selected_cells_and_widths_have_their_exact_distribution,
        test_the_distribution_of_given_counts_is_exact, test_every_candidate_is_selected_with_its_probability
    """
    (target, denominator), width, last = wanted, max(1, int(unit / 2)), int(starts[-1])
    reaches = range(width, (_RINGS + 1) * width, width)
    low, high = int(boundaries[0]) - 1, int(boundaries[-1]) + 1
    ends_from = [min(max((target - reach) // denominator + 1, low), high) for reach in reaches]
    begins_to = [min(max((target + reach - 1) // denominator, low), high) for reach in reaches]
    firsts = [*starts[np.searchsorted(boundaries, ends_from)].tolist(), 0]
    lasts = [*starts[np.searchsorted(boundaries, begins_to, side="right")].tolist(), last]
    sizes = [0, *(end - first + 1 for first, end in zip(firsts, lasts, strict=True))]
    counts = [size - inner for inner, size in pairwise(sizes)]
    while True:
        ring = choose_by_weight(counts, partial(_ring_weights, width / unit), source)
        chosen: int = firsts[ring] + uniform_integer(source, counts[ring])
        chosen += sizes[ring] * (chosen >= firsts[ring - 1])  # skip the inner rings; of the first ring, sizes[0] = 0
        begin, end = map(int, boundaries[np.searchsorted(starts[1:-1], [chosen, chosen + 1])])
        beyond = (denominator * begin - target) * (chosen > 0), (target - denominator * end) * (chosen < last)
        if bernoulli_exp(source, (max(0, *beyond) - ring * width) / unit):
            return chosen


@lru_cache(maxsize=64)
def _ring_weights(gap: Fraction, bits: int) -> Sequence[tuple[int, int]]:
    return [exp_bounds(ring * gap, bits) for ring in range(_RINGS + 1)]
