"""Quantiles by the exponential mechanism: the exact distribution of the sampler, and its loss on small databases."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.kernel import release, selection
from discreet.kernel.expr import Column, Type
from discreet.kernel.grid import Grid
from discreet.kernel.histogram_tree import CellCounts
from discreet.kernel.mechanism import Laplace, Sensitivity
from discreet.kernel.question import ContributionBounds, PublicGroups, Question
from discreet.kernel.relation import Scan, UnitKey
from discreet.kernel.release import ReleaseRequest
from discreet.kernel.selection import QuantileSelection, RankTarget, margin_widths, select_candidate
from discreet.kernel.totals import Count, HistogramTree
from tests.reference.engine import ReferenceEngine

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def exponents(starts, boundaries, wanted, unit):
    """Return for each candidate the exact exponent of its weight, by running the sampler along every path."""
    path, seen = [], []

    def choose_by_weight(counts, enclose, _):
        assert min(counts) >= 0
        ring = path[0] if path else 0
        low, high = enclose(128)[ring]
        seen[:] = [counts, ring, low, high]
        return ring

    def bernoulli_exp(_, exponent):
        assert exponent >= 0
        seen.append(exponent)
        return True

    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "choose_by_weight", choose_by_weight)
        patch.setattr(selection, "bernoulli_exp", bernoulli_exp)
        patch.setattr(selection, "uniform_integer", lambda _, bound: path[1] if path[1] < bound else -1)
        path[:] = [0, 0]
        select_candidate(starts, boundaries, wanted, unit, None)
        for ring, count in enumerate(seen[0]):
            for index in range(count):
                path[:] = [ring, index]
                chosen = select_candidate(starts, boundaries, wanted, unit, None)
                gap = Fraction(max(1, int(unit / 2))) / unit * ring
                assert seen[2] <= math.exp(-gap) * 2**128 * (1 + 1e-12)
                assert seen[3] >= math.exp(-gap) * 2**128 * (1 - 1e-12)
                assert chosen not in found
                found[chosen] = gap + seen[4]
    assert sorted(found) == list(range(starts[-1] + 1))
    return found


def distances(intervals, wanted):
    """Return the distance of a rank from each interval."""
    return {index: max(0, low - wanted, wanted - high) for index, (low, high) in enumerate(intervals)}


def of_counts(counts):
    """Return the starts and boundaries of dense cell counts, as QuantileSelection describes them."""
    cells = np.flatnonzero(counts)
    starts = np.concatenate([[0], cells, [len(counts) - 1]]).astype(np.int64)
    return starts, np.concatenate([[0], np.cumsum(np.array(counts)[cells])]).astype(np.int64)


def check_distribution(counts, level, scale):
    """Compare every path of the sampler, in fractions: each candidate once, with the exponent of its distance."""
    num, den = level.numerator, level.denominator
    total, upto = sum(counts), list(itertools.accumulate(counts))
    unit = scale * max(num, den - num)
    starts, boundaries = of_counts(counts)
    ranks = [-math.inf, *upto[:-1], math.inf]
    wanted = Fraction(num * total, den)
    expected = distances(list(itertools.pairwise(ranks)), wanted)
    got = exponents(starts, boundaries, (num * total, den), unit)
    assert got == {cell: den * distance / unit for cell, distance in expected.items()}
    cell, offset, last = len(counts) // 2, 1 + total // 3, len(counts) - 1
    widths = margin_widths(len(counts))
    slack = []
    for width in widths:
        sides = [wanted - sum(counts[: cell - width])] if cell - width > 0 else []
        sides += [sum(counts[: cell + width + 1]) - wanted] if cell + width < last else []
        slack.append(min(sides, default=max(level, 1 - level) * total))
    assert slack == sorted(slack)
    expected = distances(list(itertools.pairwise([-math.inf, *slack, math.inf])), offset)
    target = RankTarget(level, offset)
    edges = selection.margin_boundaries(starts, boundaries, target, cell, widths)
    got = exponents(np.arange(len(widths) + 1), edges, (den * offset, 1), unit)
    assert got == {index: den * distance / unit for index, distance in expected.items()}


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=9),
    st.fractions(Fraction(1, 9), Fraction(8, 9), max_denominator=9),
    st.fractions(Fraction(1, 50), 40),
)
@settings(max_examples=60, deadline=None)
def test_selected_cells_and_widths_have_their_exact_distribution(counts, level, scale):
    check_distribution(counts, level, scale)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5, 2), Fraction(30)])
@pytest.mark.parametrize("level", [HALF, Fraction(2, 9), Fraction(8, 9)])
@pytest.mark.parametrize(
    "counts", [(2, 0, 0, 5, 1, 0, 4), (0, 0, 3), (9, 0, 0, 0, 0, 0, 0, 0, 1), (0, 0, 1, 4, 0, 2, 0, 0, 0)]
)
def test_the_distribution_of_given_counts_is_exact(counts, level, scale):
    check_distribution(counts, level, scale)


@pytest.mark.parametrize("counts", [(0, 300, 0, 500), (700, 0, 0, 1), (1, 900)])
def test_candidates_beyond_all_rings_have_their_exact_distribution_too(counts):
    """One that cannot be selected, and could be without some unit, would disclose that the unit is there."""
    check_distribution(counts, HALF, Fraction(2))


def test_far_candidates_are_selected_if_there_are_enough_of_them():
    """One cell is the median, and 2^62 others are 97 half ranks away, where the weight of each is exp(-97/3)."""
    others, unit = (1 << 62) - 1, Fraction(29_999, 10_000)
    assert others * math.exp(-97 / unit) > 30_000
    starts, boundaries = np.array([0, 5, others]), np.array([0, 97])
    drawn = [select_candidate(starts, boundaries, (97, 2), unit, selection.thread_keystream()) for _ in range(3)]
    assert set(drawn) != {5}


def test_a_candidate_that_is_not_accepted_is_drawn_again(monkeypatch):
    coins, rings = iter([False, False, True]), []
    starts, boundaries = of_counts([3, 0, 2])
    choose = selection.choose_by_weight
    monkeypatch.setattr(selection, "bernoulli_exp", lambda *_: next(coins))
    monkeypatch.setattr(selection, "choose_by_weight", lambda *args: rings.append(1) or choose(*args))
    select_candidate(starts, boundaries, (2, 1), Fraction(2), selection.thread_keystream())
    assert len(rings) == 3


class Words:
    """A source of known integers, the first bytes of each first."""

    def __init__(self, *words):
        self._left = b"".join(words)

    def bytes(self, count):
        out, self._left = self._left[:count], self._left[count:]
        assert len(out) == count
        return bytearray(out)


@pytest.mark.parametrize("bound", [1, 2, 5, 8, 127, 128, 200, 255])
def test_every_byte_gives_an_integer_or_is_drawn_again(bound):
    last = bytes([(bound - 1) << -bound.bit_length() % 8])
    drawn = Counter()
    for byte in range(256):
        words = Words(bytes([byte]), last)
        drawn[selection.uniform_integer(words, bound)] += 1
        assert len(words._left) == (byte >> -bound.bit_length() % 8 < bound)
    again = 256 - (bound << -bound.bit_length() % 8)
    assert drawn == Counter(dict.fromkeys(range(bound), 1 << -bound.bit_length() % 8)) + Counter({bound - 1: again})


def test_integers_of_more_than_a_byte_use_as_many_bits_as_the_bound():
    for word, expected in ((0, 0), (0x7F, 0), (0x80, 1), (299 << 7 | 5, 299)):
        assert selection.uniform_integer(Words(word.to_bytes(2)), 300) == expected
    assert selection.uniform_integer(Words((300 << 7).to_bytes(2), (511 << 7).to_bytes(2), bytes(2)), 300) == 0


@pytest.mark.parametrize("weights", ["1/3 1 2/7", "1 7 1/2"])
@pytest.mark.parametrize("loose", [0, 1, 3])
def test_choices_by_weight_have_the_exact_boundaries(loose, weights):
    """Words around the boundary of counts 2, 0 and 5, with enclosures that are exact, close or loose."""
    counts, weights = [2, 0, 5], [Fraction(each) for each in weights.split()]
    edge = counts[0] * weights[0] / sum(c * w for c, w in zip(counts, weights, strict=True))

    def enclose(bits):
        exact = [weight * 2**bits for weight in weights]
        return [(math.floor(each) - loose, math.ceil(each) + loose) for each in exact]

    for bits in (64, 128):
        floor = math.floor(edge * 2**bits)
        for away in (-40, 40):
            words = Words((floor + away).to_bytes(bits // 8))
            assert selection.choose_by_weight(counts, enclose, words) == (0 if away < 0 else 2)
            assert not words._left
    for word, index in ((0, 0), (2**64 - 50, 2)):
        assert selection.choose_by_weight(counts, enclose, Words(word.to_bytes(8))) == index


# The loss, on all small databases.


def law(mechanism, counts):
    """Return the probability of every cell and width, from the exponents of the sampler's own paths."""
    known, choice, chance = {}, (), 1.0

    def select(starts, boundaries, wanted, unit, _):
        nonlocal choice, chance
        key = (starts.tobytes(), tuple(boundaries.tolist()), wanted)
        if key not in known:
            weights = [math.exp(-x) for _, x in sorted(exponents(starts, boundaries, wanted, unit).items())]
            known[key] = [weight / math.fsum(weights) for weight in weights]
        (index, *choice) = choice
        chance *= known[key][index]
        return index

    cells = np.flatnonzero(counts)
    tally = CellCounts(np.zeros(len(cells), np.int64), cells.astype(np.int64), np.array(counts, np.int64)[cells])
    sizes = (len(counts), len(margin_widths(len(counts))) + 1)
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "select_candidate", select)
        for path in itertools.product(*map(range, sizes * len(mechanism.targets))):
            choice, chance = path, 1.0
            shown = mechanism.select(tally, len(counts), np.zeros(1, np.int64))
            found[tuple(shown.ravel().tolist())] = chance
    assert math.fsum(found.values()) == pytest.approx(1)
    return found


def neighbours(cells, rows, weight):
    """Return databases of up to `rows` rows in each cell, each with a unit added to one or two cells."""
    for counts in itertools.product(range(rows + 1), repeat=cells):
        for first in range(cells):
            for second in range(first, cells):
                added = list(counts)
                added[first] += weight - weight // 2
                added[second] += weight // 2
                yield counts, tuple(added)


def worst_loss(mechanism, pairs, order):
    """Return the largest log-ratio, and the largest Rényi divergence of an order divided by that order."""
    laws, largest, rho = {}, 0.0, 0.0
    for pair in pairs:
        laws |= {counts: law(mechanism, counts) for counts in pair if counts not in laws}
        one, other = (laws[counts] for counts in pair)
        largest = max(largest, *(abs(math.log(one[shown] / other[shown])) for shown in one))
        for p, q in ((one, other), (other, one)):
            moment = math.fsum(p[shown] ** order * q[shown] ** (1 - order) for shown in p)
            rho = max(rho, math.log(moment) / (order - 1) / order)
    return largest, rho


CASES = [
    (QuantileSelection(scale, (RankTarget(level, offset),)), weight)
    for scale, level, offset, weight in (
        (Fraction(1), HALF, 2, 1),
        (Fraction(4), HALF, 1, 1),
        (Fraction(3), QUARTER, 1, 2),
        (Fraction(1, 2), Fraction(2, 3), 3, 1),
    )
]


@pytest.mark.long
@pytest.mark.parametrize(("mechanism", "weight"), CASES)
def test_quantiles_of_all_small_databases_stay_within_their_loss(mechanism, weight):
    claimed = mechanism.loss(Sensitivity(1, weight))
    for order in (1.001, 2.0, 7.0):
        epsilon, rho = worst_loss(mechanism, neighbours(3, 2, weight), order)
        assert epsilon <= float(claimed.epsilon) * (1 + 1e-9)
        assert rho <= float(claimed.rho) * (1 + 1e-9)


def with_row(counts, cell):
    return tuple(counts), tuple(count + (index == cell) for index, count in enumerate(counts))


def test_the_loss_of_a_quantile_is_attained():
    """Epsilon where a rare candidate moves one way and the others the other way; rho where half of them do."""
    sharp = QuantileSelection(2, (RankTarget(HALF, 0),))
    epsilon, _ = worst_loss(sharp, [with_row([10, *[0] * 17, 11, 0], 0)], 2.0)
    assert epsilon >= 0.9 * sharp.loss(Sensitivity(1, 1)).epsilon
    wide = QuantileSelection(20, (RankTarget(HALF, 0),))
    _, rho = worst_loss(wide, [with_row([12, *[0] * 9, 5, *[0] * 7, 7, 1], 0)], 1.001)
    assert rho >= 0.8 * wide.loss(Sensitivity(1, 1)).rho


@pytest.mark.long
def test_every_candidate_is_selected_with_its_probability():
    counts, mechanism = (2, 0, 0, 5, 1, 0, 4), QuantileSelection(3, (RankTarget(Fraction(1, 3), 2),))
    cells = np.flatnonzero(counts)
    tally = CellCounts(np.zeros(len(cells), np.int64), cells, np.array(counts)[cells])
    shown = Counter(map(tuple, mechanism.select(tally, 7, np.zeros(6000, np.int64))[:, 0].tolist()))
    expected = {pair: 6000 * chance for pair, chance in law(mechanism, counts).items()}
    likely = {pair: number for pair, number in expected.items() if number >= 5}
    rest = 6000 - sum(likely.values())
    observed = [*(shown[pair] for pair in likely), 6000 - sum(shown[pair] for pair in likely)]
    assert stats.chisquare(observed, [*likely.values(), rest]).pvalue > 1e-10


def offset_from_the_exact_size(self, cells, upto, target, source):
    return QuantileSelection._select_one(self, cells, upto, RankTarget(target.level, 2 * int(upto[-1])), source)


class WithoutTheMargin(QuantileSelection):
    def loss(self, sensitivity):
        whole = super().loss(sensitivity)
        return type(whole)(whole.epsilon / 2, whole.rho / 2)


class OfTheExactSize(QuantileSelection):
    _select_one = offset_from_the_exact_size


class OfTheSmallerSide(RankTarget):
    @property
    def factor(self):
        return min(self.level.numerator, self.level.denominator - self.level.numerator)


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (WithoutTheMargin(2, (RankTarget(HALF, 0),)), with_row([10, *[0] * 17, 11, 0], 0)),
        (OfTheExactSize(2, (RankTarget(HALF, 0),)), with_row([2, 1, *[0] * 12], 2)),
        (QuantileSelection(2, (OfTheSmallerSide(QUARTER, 0),)), with_row([2, 4, *[0] * 8, 4, 4], 0)),
    ],
    ids=["margins are not charged", "offset from the exact size", "factor of the smaller side"],
)
def test_broken_quantile_selections_exceed_their_loss(mechanism, pair):
    epsilon, _ = worst_loss(mechanism, [pair], 2.0)
    assert epsilon > mechanism.loss(Sensitivity(1, 1)).epsilon * Fraction(11, 10)


# In a release.

USER, X, PLACE = Column("user", Type.INTEGER), Column("x", Type.INTEGER), Column("place", Type.TEXT)
VISITS = Scan("visits", (USER, X, PLACE), UnitKey((USER,)), max_rows=10**6)
HISTOGRAM = HistogramTree(X, Grid(0, 3, 1), 4, 1)
MEDIAN = QuantileSelection(3, (RankTarget(HALF, 2),))


def question(groups, rows, totals=(HISTOGRAM,)):
    places = PublicGroups((("a", "b"),))
    return Question(VISITS, (("place", PLACE),), places, ContributionBounds(groups, rows), totals)


def law_of_release(asked, rows):
    """Return the probability of all that a release shows of two groups, each drawn independently."""
    seen = []

    def select(_, cell_counts, cell_count, groups):
        for group in groups:
            inside = cell_counts.groups == group
            counts = np.zeros(cell_count, np.int64)
            counts[cell_counts.cells[inside]] = cell_counts.weights[inside]
            seen.append(tuple(counts.tolist()))
        return np.zeros((len(groups), 1, 2), np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QuantileSelection, "select", select)
        release._add_noise(asked, ReferenceEngine({"visits": rows}), {})
    (mechanism,) = asked.noises
    return [law(mechanism, counts) for counts in seen]


@pytest.mark.parametrize(
    ("groups", "rows", "unit"),
    [(1, 1, [(0, "a")]), (2, 1, [(0, "a"), (3, "b")]), (1, 2, [(0, "a"), (0, "a")]), (1, 1, [(0, "a"), (3, "b")])],
    ids=["one row", "two groups", "two rows", "more groups than the bound"],
)
def test_the_distribution_of_selected_quantiles_on_neighbours_stays_within_its_loss(groups, rows, unit):
    asked = question(groups, rows)
    sensitivity = asked.sensitivity()
    unit_of_weight = 1 << asked.fraction_bits(HISTOGRAM)
    mechanism = QuantileSelection(2 * unit_of_weight, (RankTarget(HALF, unit_of_weight),))
    request = ReleaseRequest(asked, (mechanism,))
    others = [{"user": 2, "x": 1, "place": "a"}, {"user": 3, "x": 2, "place": "b"}]
    own = [{"user": 1, "x": x, "place": place} for x, place in unit]
    one, other = (law_of_release(request, others + more) for more in (own, []))
    worst = sum(
        max(abs(math.log(with_unit[shown] / without[shown])) for shown in with_unit)
        for with_unit, without in zip(one, other, strict=True)
    )
    assert request.loss() == mechanism.loss(sensitivity)
    assert 0.3 * float(request.loss().epsilon) < worst <= float(request.loss().epsilon) * (1 + 1e-9)


def test_the_loss_adds_up_over_groups_quantiles_and_margins():
    assert MEDIAN.loss(Sensitivity(1, 1)).epsilon == Fraction(4, 3)
    assert MEDIAN.loss(Sensitivity(1, 1)).rho == Fraction(1, 9)
    two = QuantileSelection(3, (RankTarget(HALF, 2), RankTarget(QUARTER, 2)))
    assert two.loss(Sensitivity(5, 2)).epsilon == 2 * 10 * MEDIAN.loss(Sensitivity(1, 1)).epsilon
    assert two.loss(Sensitivity(5, 2)).rho == 2 * 20 * MEDIAN.loss(Sensitivity(1, 1)).rho


def test_only_a_histogram_can_have_its_quantiles_selected():
    ReleaseRequest(question(1, 1), (MEDIAN,))
    with pytest.raises(TypeError, match="type"):
        ReleaseRequest(question(1, 1, (Count(),)), (MEDIAN,))
    with pytest.raises(ValueError, match="walks"):
        ReleaseRequest(question(1, 1), (MEDIAN,), walks=(lambda *_: None,))
    with pytest.raises(ValueError, match="walks"):
        ReleaseRequest(question(1, 1), (Laplace(1),))


def test_a_group_without_rows_has_no_margin():
    """At any scale: the widest margin is not wide enough for `offset` ranks that do not exist."""
    mechanism = QuantileSelection(3, (RankTarget(HALF, 60), RankTarget(QUARTER, 60)))
    nothing = CellCounts(*(np.zeros(0, np.int64) for _ in range(3)))
    shown = mechanism.select(nothing, 1000, np.arange(200))
    assert shown.shape == (200, 2, 2)
    assert (shown[:, :, 1] == 1000).mean() > 0.9
    assert len(set(shown[:, 0, 0].tolist())) > 100


def test_selected_quantiles_are_those_of_their_own_group():
    cells = np.array([7, 900, 3, 500], np.int64)
    tally = CellCounts(np.array([2, 0, 0, 1]), cells, np.array([10**6] * 4))
    shown = QuantileSelection(2, (RankTarget(Fraction(9, 10), 50),)).select(tally, 1000, np.array([2, 3, 0, 1]))
    assert shown[[0, 2, 3], 0].tolist() == [[7, 0], [900, 0], [500, 0]]


def test_each_group_is_selected_from_its_own_cells_and_weights(monkeypatch):
    counts = {0: (3, 0, 0, 5, 0), 1: (0, 1, 0, 0, 2), 2: (0, 0, 0, 0, 0), 3: (0, 0, 0, 0, 7), 4: (1, 1, 1, 1, 1)}
    entries = [(group, cell, weight) for group, row in counts.items() for cell, weight in enumerate(row) if weight]
    tally = CellCounts(*(np.array(each, np.int64) for each in zip(*entries[::-1], strict=True)))
    level, offset, asked = Fraction(2, 3), 4, []

    def select(starts, boundaries, wanted, unit, _):
        asked.append((starts.tolist(), boundaries.tolist(), wanted, unit))
        return 1 + len(asked) % 2  # a cell of 2, then the width with index 1

    monkeypatch.setattr(selection, "select_candidate", select)
    groups = np.array([3, 0, 4, 2, 1])
    shown = QuantileSelection(6, (RankTarget(level, offset),)).select(tally, 5, groups)
    assert shown.tolist() == [[[2, 1]]] * 5
    widths = margin_widths(5)
    for group, cells, margins in zip(groups.tolist(), asked[::2], asked[1::2], strict=True):
        starts, boundaries = of_counts(counts[group])
        assert cells == (starts.tolist(), boundaries.tolist(), (2 * sum(counts[group]), 3), Fraction(12))
        ranks = selection.margin_boundaries(starts, boundaries, RankTarget(level, offset), 2, widths)
        assert margins == (list(range(len(widths) + 1)), ranks.tolist(), (3 * offset, 1), Fraction(12))


@pytest.mark.parametrize("cells", [1, 2, 9, 10, 1000, 65_536])
def test_widths_grow_by_an_eighth_and_end_with_the_whole_grid(cells):
    widths = margin_widths(cells)
    assert (widths[0], widths[-1]) == (0, cells - 1)
    assert all(0 < after - before <= max(1, -(-before // 8)) for before, after in itertools.pairwise(widths))
    assert len(widths) < 100


def test_invalid_targets_are_refused():
    for level in (0, 1, -1, 2):
        with pytest.raises(ValueError, match="level"):
            RankTarget(Fraction(level), 1)
    for offset in (-1, 0.5, True):
        with pytest.raises((TypeError, ValueError), match="offset"):
            RankTarget(HALF, offset)
    with pytest.raises(ValueError, match="scale"):
        QuantileSelection(0, MEDIAN.targets)
    with pytest.raises(TypeError, match="level"):
        RankTarget(0.5, 1)
    with pytest.raises(TypeError, match="targets"):
        QuantileSelection(1, (HALF,))
    with pytest.raises(TypeError, match="sensitivity"):
        MEDIAN.loss(1)
