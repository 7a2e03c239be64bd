"""A refined release has the finer noise and makes the coarser one worthless: by enumeration, by words, by chance."""

import importlib.util
import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import stats

from discreet import privacy
from discreet.kernel import refinement as module
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.noise import keystream, sampler
from discreet.kernel.noise.inverse_transform import InverseTransformSampler
from discreet.kernel.numbers import exp_bounds
from discreet.kernel.refinement import refine

_spec = importlib.util.spec_from_file_location("evidence", Path(__file__).parents[1] / "broken" / "evidence.py")
evidence = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(evidence)

SURELY = 1e-13  # chi-square is itself an approximation: all p-values together still fail right code less than 1e-9
INT64 = np.iinfo(np.int64)
PAIRS = [("1", "1/2"), ("2", "1/2"), ("1/2", "1/5"), ("1", "2/3")]
pairs = pytest.mark.parametrize(("wide", "narrow"), PAIRS)


# The law, from its definition: f2(m)·P[Z = n - m]/f1(n).


def ratio(scale):
    scale = Fraction(scale)
    return mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)


def laplace(q, k):
    return (1 - q) / (1 + q) * q ** abs(k)


def chance_of_nothing(q1, q2):
    return q2 / q1 * ((1 - q1) / (1 - q2)) ** 2


def rest(q1, q2, z, p0=None):
    p0 = chance_of_nothing(q1, q2) if p0 is None else p0
    return (p0 if z == 0 else 0) + (1 - p0) * laplace(q1, z)


def conditional(q1, q2, n, m):
    return laplace(q2, m) * rest(q1, q2, n - m) / laplace(q1, n)


def convolved(p, q, k):
    """Return sum over m of p^|m|·q^|k-m| for k >= 0, by its three geometric series."""
    middle = (k + 1) * q**k if p == q else (q ** (k + 1) - p ** (k + 1)) / (q - p)
    return p * q * (q**k + p**k) / (1 - p * q) + middle


def test_wide_noise_is_narrow_noise_plus_an_independent_remainder():
    # As exact fractions, for any two ratios; convolved() itself against a sum that is cut far out.
    near = sum(Fraction(1, 3) ** abs(m) * Fraction(1, 2) ** abs(4 - m) for m in range(-60, 60))
    assert 0 < convolved(Fraction(1, 3), Fraction(1, 2), 4) - near < Fraction(1, 2**100)
    for q1, q2 in itertools.permutations([Fraction(1, 100), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)], 2):
        p0 = chance_of_nothing(q1, q2)
        assert (0 < p0 < 1) is (q2 < q1)
        factor = laplace(q2, 0) * laplace(q1, 0)
        for k in range(12):
            assert p0 * laplace(q2, k) + (1 - p0) * factor * convolved(q2, q1, k) == laplace(q1, k)


# The code itself: `refine` is run on every combination of draws, with the probabilities of those draws.

BITS = 200


class Listed:
    """Stands for a sampler or a coin: it hands out what is listed."""

    def __init__(self, values):
        self.values = values

    def draw(self, *arguments):
        assert arguments[-1] == len(self.values)
        return self.values


def fixed(weights):
    return [int(weight * 2**BITS) for weight in weights]


def coded_law(monkeypatch, wide, narrow, n, reach):
    """Return {m: probability} from all draws within reach, and the probability of those beyond."""
    asked = []
    ends = np.arange(-reach, reach + 1)
    climbs, jumps, coins = (grid.reshape(-1) for grid in np.meshgrid(ends, ends, [0, 1], indexing="ij"))

    def sampler_of(numerator, denominator):
        asked.append(mpmath.exp(-mpmath.mpf(denominator) / numerator))
        return Listed([climbs, jumps][len(asked) - 1])

    scales = Fraction(wide), Fraction(narrow)
    with monkeypatch.context() as patch:
        patch.setattr(module.noise, "laplace_sampler", sampler_of)
        patch.setattr(module, "InverseTransformSampler", lambda coin: Listed(coins) if coin.args == scales else None)
        exact = np.full(len(coins), 17)
        got = refine(exact + n, exact, Laplace(wide), Laplace(narrow)) - exact
    stays = module._zero_jump_boundaries(*scales, BITS).floors[0]
    of_coin = [stays, 2**BITS - stays]
    of_climb, of_jump = (fixed(laplace(q, int(k)) for k in ends) for q in asked)
    law = Counter()
    weights = itertools.product(of_climb, of_jump, of_coin)
    for m, (climb, jump, coin) in zip(got.tolist(), weights, strict=True):
        law[m] += climb * jump * coin
    beyond = sum(2 * q ** (reach + 1) / (1 + q) for q in asked) + mpmath.mpf(2) ** (20 - BITS)
    return {m: mpmath.mpf(weight) / 2 ** (3 * BITS) for m, weight in law.items()}, beyond


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(80):
        yield


@pytest.mark.long(but=["1/2-1/5", "2-1/2"])
@pairs
def test_all_pairs_of_draws_give_the_conditional_distribution(wide, narrow, monkeypatch):
    q1, q2 = ratio(wide), ratio(narrow)
    for n in (-7, -2, -1, 0, 1, 2, 5, 11):
        law, beyond = coded_law(monkeypatch, wide, narrow, n, reach=60)
        assert beyond < 1e-12
        for m in range(-30, 45):
            assert abs(law[m] - conditional(q1, q2, n, m)) <= beyond, (n, m)


@pytest.mark.long
def test_the_coded_distribution_gives_the_refined_noise_and_an_independent_remainder(monkeypatch):
    q1, q2 = ratio("1/3"), ratio("1/5")
    marginal = Counter()
    for n in range(-16, 17):
        law, beyond = coded_law(monkeypatch, "1/3", "1/5", n, reach=20)
        for m in range(-10, 11):
            joint = laplace(q1, n) * law[m]
            assert abs(joint - laplace(q2, m) * rest(q1, q2, n - m)) <= beyond
            marginal[m] += joint
    for m, weight in marginal.items():
        assert abs(weight - laplace(q2, m)) < 33 * beyond + q1**16 < 1e-15


NINES = "0." + "9" * 60
EXTREME = [("1e100", "1e99"), ("1e100", "1e-100"), ("1e100", "1e50"), ("1e-99", "1e-100"), ("1", NINES)]
MODERATE = [("10", "4"), ("1000", "999"), ("1e6", "1"), ("1/50", "1/60"), ("1e60", NINES + "e60")]


@pytest.mark.parametrize(("wide", "narrow"), [*PAIRS, *MODERATE, *EXTREME])
def test_the_refinement_draw_has_its_exact_boundary(wide, narrow):
    # (r - s)/(1 - r·s) is also sinh(1/wide)/sinh(1/narrow).
    with mpmath.workdps(1000):
        b, c = (mpmath.mpf(x.denominator) / x.numerator for x in (Fraction(wide), Fraction(narrow)))
        stays = mpmath.sinh(b) / mpmath.sinh(c)
        for bits in (16, 64, 128, 512):
            floor = int(mpmath.floor(stays * 2**bits))
            assert module._zero_jump_boundaries(Fraction(wide), Fraction(narrow), bits).floors == [floor]


@pytest.mark.parametrize("loose", [0, 1, 2])
def test_the_refinement_draw_narrows_enclosures_until_decided(loose, monkeypatch):
    right = {pair: module._zero_jump_boundaries(*map(Fraction, pair), 16) for pair in [*PAIRS, *MODERATE]}
    asked = []

    def loose_bounds(x, bits):
        low, high = exp_bounds(x, bits)
        asked.append(bits)
        if (len(asked) - 1) % 3 != loose:
            return low, high
        return low - 2**70, high + 2**70  # sixty-four times a unit of the result, with the first guard bits

    monkeypatch.setattr(module, "exp_bounds", loose_bounds)
    for pair, boundaries in right.items():
        assert module._zero_jump_boundaries(*map(Fraction, pair), 16) == boundaries
    assert set(asked) >= {16 + 64, 16 + 128}


# Chosen words, through the real tables.


class Words:
    """A source of known bytes that remembers what it gave."""

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)
        self.given = []

    def bytes(self, count):
        self.given.append(bytearray(self._rng.bytes(count)))
        return bytearray(self.given[-1])


def reference(given, cdf, symbols):
    """Return what these words mean: the first symbol with U < F(symbol), from the words that were really used."""
    floors = [int(mpmath.floor(cdf(s) * 2**64)) for s in symbols[:-1]]
    open_ = {floor >> 48 for floor in floors}
    cells = np.frombuffer(given.pop(0), np.uint16).tolist()
    more = iter(np.frombuffer(given.pop(0), np.uint64).tolist() if open_ & set(cells) else [])
    found = []
    for cell in cells:
        word = cell << 48 | (next(more) >> 16 if cell in open_ else 0)
        assert word not in floors or cell not in open_
        found.append(symbols[sum(floor <= word for floor in floors)])
    return found


def laplace_cdf(q):
    return lambda k: q**-k / (1 + q) if k < 0 else 1 - q ** (k + 1) / (1 + q)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("wide", "narrow"), [("1", "1/2"), ("2", "1"), ("4/3", "1")])
def test_words_are_inverted_by_the_exact_distribution(wide, narrow, seed, monkeypatch):
    source, count = Words(seed), 4000
    monkeypatch.setattr(sampler, "thread_keystream", lambda: source)
    monkeypatch.setattr(module, "thread_keystream", lambda: source)
    exact = np.random.default_rng(9).integers(-50, 50, count)
    noise = np.random.default_rng(8).integers(-6, 7, count)
    got = refine(exact + noise, exact, Laplace(wide), Laplace(narrow)) - exact
    q1, q2 = ratio(wide), ratio(narrow)
    symbols, given = range(-200, 201), source.given
    drawn = reference(given, laplace_cdf(q2 / q1), symbols)
    jumps = reference(given, laplace_cdf(q1 * q2), symbols)
    r, s = q2 / q1, q1 * q2
    coins = reference(given, lambda _: (r - s) / (1 - r * s), [0, 1])
    assert not given
    for n, m, x, jump, coin in zip(noise.tolist(), got.tolist(), drawn, jumps, coins, strict=False):
        sign, climb, size = (-1 if n < 0 else 1), (x if x >= 0 else -1 - x), jump * coin
        expected = size if size < 0 else climb if climb < abs(n) else abs(n) + size
        assert m == sign * expected


class Script:
    """A source that says what it was told to say."""

    def __init__(self, *parts):
        self.left = list(parts)

    def bytes(self, count):
        out = self.left.pop(0)
        assert len(out) == count
        return bytearray(out)


def coin_of(before, after):
    return InverseTransformSampler(partial(module._zero_jump_boundaries, before, after))


def test_a_tied_word_of_the_refinement_draw_is_continued():
    before, after = Fraction(10), Fraction(4)
    edge = module._zero_jump_boundaries(before, after, 128).floors[0]
    for away, shown in ((-1, 0), (1, 1)):
        word = edge + away
        assert word >> 64 == edge >> 64
        cell, middle = np.array([word >> 112], np.uint16), np.array([(word >> 64) % 2**48 << 16], np.uint64)
        script = Script(cell.tobytes(), middle.tobytes(), (word % 2**64).to_bytes(8))
        assert coin_of(before, after).draw(script, 1).tolist() == [shown]
        assert not script.left


def test_every_first_word_of_the_refinement_draw_is_decided_correctly():
    before, after = Fraction(2), Fraction(1)
    edge = module._zero_jump_boundaries(before, after, 64).floors[0]
    middle = np.array([(edge % 2**48 - 1) << 16], np.uint64)
    script = Script(np.arange(2**16, dtype=np.uint16).tobytes(), middle.tobytes())
    shown = coin_of(before, after).draw(script, 2**16)
    assert shown.tolist() == [0] * ((edge >> 48) + 1) + [1] * (2**16 - (edge >> 48) - 1)


# Chance.


def law_of(wide, narrow, n, p0=None):
    """Return the conditional law in floats on all m that matter."""
    q1, q2 = math.exp(-1 / wide), math.exp(-1 / narrow)
    reach = range(-40 * math.ceil(narrow), abs(n) + 40 * math.ceil(narrow))
    law = {m: laplace(q2, m) * rest(q1, q2, abs(n) - m, p0) for m in reach}
    total = math.fsum(law.values())
    return {(m if n >= 0 else -m): weight / total for m, weight in law.items()}


def p_value(drawn, law, least=25):
    """Return the p-value of chi-square with everything rare in one cell."""
    count, seen = len(drawn), Counter(np.asarray(drawn).tolist())
    cells = [m for m, weight in law.items() if count * weight >= least]
    observed = [seen[m] for m in cells]
    expected = [count * law[m] for m in cells]
    others = count - math.fsum(expected)
    if others > 1:
        observed.append(count - sum(observed))
        expected.append(others)
    observed, expected = np.array(observed), np.array(expected)
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(observed) - 1)


def drawn_at(wide, narrow, n, count=200_000):
    exact = np.full(count, 1000)
    return refine(exact + n, exact, Laplace(wide), Laplace(narrow)) - exact


SMALL = [(2, 1, 1), (2, 1, -2), (1, 0.5, 0), (1, 0.5, -3), (5, 0.5, 4)]
LARGER = [(10, 4, 0), (10, 4, 3), (10, 4, -12), (10, 4, 60), (30, 25, 7), (100, 12, -90), (100, 99, 5)]


@pytest.mark.parametrize(("wide", "narrow", "n"), [*SMALL, *LARGER])
def test_real_refinements_follow_the_conditional_distribution(wide, narrow, n):
    drawn = drawn_at(wide, narrow, n)
    assert p_value(drawn, law_of(wide, narrow, n)) > SURELY
    assert p_value(drawn, law_of(wide, narrow * 0.9, n)) < SURELY
    assert p_value(drawn, law_of(wide * 2, narrow, n)) < SURELY
    assert n == 0 or p_value(drawn, law_of(wide, narrow, -n)) < SURELY


@pytest.mark.parametrize(("wide", "narrow", "n"), [(10, 4, 0), (10, 4, 3), (2, 1, 1), (1, 0.5, -3), (10, 4, -8)])
def test_broken_refinements_are_detected(wide, narrow, n, monkeypatch):
    right = law_of(wide, narrow, n)
    q1, q2 = math.exp(-1 / wide), math.exp(-1 / narrow)
    drawn = drawn_at(wide, narrow, n)
    for wrong in (q2 / q1, q2 / q1 * (1 - q1) / (1 - q2), ((1 - q1) / (1 - q2)) ** 2, 0):
        assert p_value(drawn, law_of(wide, narrow, n, p0=wrong)) < SURELY
    fresh = Laplace(narrow).perturb(np.zeros(200_000, np.int64))
    assert p_value(fresh, right) < SURELY

    class Always:
        def draw(self, source, count):
            return np.ones(count, np.int64)

    with monkeypatch.context() as patch:
        patch.setattr(module, "InverseTransformSampler", lambda coin: Always())
        assert p_value(drawn_at(wide, narrow, n), right) < SURELY
    met = module._combine_draws
    with monkeypatch.context() as patch:  # the exact and the noisy value taken for each other
        patch.setattr(module, "_combine_draws", lambda noisy, exact, climbs, jumps: met(exact, noisy, climbs, jumps))
        assert n == 0 or p_value(drawn_at(wide, narrow, n), right) < SURELY


def in_bins(values, scale, bins=24):
    u = np.exp(-np.abs(values) / scale)
    return np.searchsorted(np.linspace(-1, 1, bins + 1)[1:-1], np.sign(values) * (1 - u))


def dependence(rows, columns):
    """Return the p-value of two classifications being independent."""
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1)
    return stats.chi2_contingency(table[table.sum(1) > 0][:, table.sum(0) > 200]).pvalue


@pytest.mark.long(but=["2-1"])
@pytest.mark.parametrize(("wide", "narrow"), [(10, 4), (2, 1), (1000, 300), (10**6, 10**5), (10**9, 9 * 10**8)])
def test_real_pairs_have_the_refined_noise_and_an_independent_remainder(wide, narrow):
    exact = np.random.default_rng(1).integers(-(10**12), 10**12, 400_000)
    noisy = Laplace(wide).perturb(exact)
    finer = refine(noisy, exact, Laplace(wide), Laplace(narrow))
    again = Laplace(narrow).perturb(exact)
    whose = np.repeat([0, 1], len(exact))
    for drawn, right in ((finer, True), (noisy, False)):
        noises = np.concatenate([drawn - exact, again - exact])
        assert (dependence(whose, in_bins(noises, narrow)) > SURELY) == right
    nothing = chance_of_nothing(math.exp(-1 / wide), math.exp(-1 / narrow))
    nothing += (1 - nothing) * privacy.pmf(Laplace(wide), 0)
    for drawn, right in ((finer, True), (again, False)):  # with fresh noise the difference tells of it
        difference = noisy - drawn
        part = np.digitize(difference, [-wide, 0, 1, wide])
        assert (dependence(part, in_bins(drawn - exact, narrow)) > SURELY) == right
        assert dependence(part, (exact > 0).astype(int)) > SURELY
        equal = np.count_nonzero(difference == 0)
        assert (stats.binomtest(equal, len(exact), nothing).pvalue > SURELY) == right


def test_a_chain_of_refinements_ends_with_the_smallest_noise():
    exact, scales = np.zeros(200_000, np.int64), [20, 10, 3, 1]
    shown = Laplace(20).perturb(exact)
    for wide, narrow in itertools.pairwise(scales):
        shown = refine(shown, exact, Laplace(wide), Laplace(narrow))
    q = math.exp(-1)
    assert p_value(shown, {m: laplace(q, m) for m in range(-40, 41)}) > SURELY


# What it costs.

EPSILONS = Fraction(1, 2), Fraction(5, 4)
WIDE, NARROW = (Laplace(1 / epsilon) for epsilon in EPSILONS)
GRID = range(-12, 14)


def joint(exact):
    """Return the law of (shown, refined) on a grid."""
    q1, q2 = math.exp(-EPSILONS[0]), math.exp(-EPSILONS[1])
    return {
        (x, y): laplace(q1, x - exact) * float(conditional(q1, q2, x - exact, y - exact)) for x in GRID for y in GRID
    }


def test_the_pair_loses_what_the_refined_release_alone_loses():
    assert evidence.max_divergence(joint(0), joint(1)) == pytest.approx(1.25, rel=1e-9)
    fresh = [
        {(x, y): privacy.pmf(WIDE, x - exact) * privacy.pmf(NARROW, y - exact) for x in GRID for y in GRID}
        for exact in (0, 1)
    ]
    assert evidence.max_divergence(*fresh) == pytest.approx(1.75, rel=1e-9)


def test_a_release_in_between_may_decide_whether_to_refine():
    def transcripts(exact):
        law = {}
        for (x, y), weight in joint(exact).items():
            truth = 0.6 if (exact + x) % 2 else 0.4  # what is asked in between depends on what was shown
            law[x, 1, y] = weight * truth
            law[x, 0, None] = privacy.pmf(WIDE, x - exact) * (1 - truth)
        return law

    one, other = transcripts(0), transcripts(1)
    between = math.log(1.5)
    for (x, asked, y), weight in one.items():
        paid = between + (1.25 if asked else 0.5)
        assert abs(math.log(weight / other[x, asked, y])) <= paid * (1 + 1e-9)


def test_two_refinements_of_one_release_would_lose_more_than_was_charged():
    def triples(exact):
        pair = joint(exact)
        return {
            (x, y, z): pair[x, y] * pair[x, z] / privacy.pmf(WIDE, x - exact) for x in GRID for y in GRID for z in GRID
        }

    paid = 0.5 + 2 * (1.25 - 0.5)
    lost = evidence.max_divergence(triples(0), triples(1))
    assert lost == pytest.approx(2 * 1.25 + 0.5)
    assert lost > paid


def test_the_difference_of_rho_would_be_too_little():
    # Refine where the first release told little, else buy Gaussian noise for the difference of the rhos.
    for small, large in ((0.1, 0.2), (0.1, 0.5), (0.3, 1), (0.5, 1)):
        q1, q2 = math.exp(-small), math.exp(-large)
        difference = (large**2 - small**2) / 2
        lucky = laplace(q1, 1) / (1 - q1)  # with 0 as the exact value, at least 1 was shown
        given = [[float(conditional(q1, q2, 1 - exact, m - exact)) for m in range(-400, 401)] for exact in (0, 1)]
        refined = math.fsum(p * math.log(p / q) for p, q in zip(*given, strict=True) if p > 1e-300)
        first = small * (1 - 2 * lucky)
        assert first <= small**2 / 2
        assert first + lucky * refined + (1 - lucky) * difference > 1.004 * large**2 / 2
        ratios = [math.log(p / q) for p, q in zip(*given, strict=True) if p > 1e-300]
        assert max(ratios) - min(ratios) == pytest.approx(2 * large)  # hence at most rho(after) by itself
        assert Loss(Fraction(large) - Fraction(small)).rho < difference  # and what Loss makes of epsilon is less still


# Edges.


@pytest.mark.parametrize(("wide", "narrow"), [(4, 4), (4, 5), ("1", "1.0"), ("1e100", "0." + "9" * 120 + "e100")])
def test_refinement_only_removes_noise(wide, narrow):
    values = np.zeros(3, np.int64)
    with pytest.raises(ValueError, match="after must have a smaller scale"):
        refine(values, values, Laplace(wide), Laplace(narrow))


ZEROS = np.zeros(3, np.int64)


def test_shapes_and_mechanisms_must_match():
    for shape in ((2,), (3, 1), (1, 3), ()):
        with pytest.raises(ValueError, match="same shape"):
            refine(ZEROS, np.zeros(shape, np.int64), Laplace(2), Laplace(1))
    for before, after, name in ((Gaussian(2), Laplace(1), "before"), (Laplace(2), Gaussian(1), "after")):
        with pytest.raises(TypeError, match=name):
            refine(ZEROS, ZEROS, before, after)


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (40,)])
def test_shapes_are_kept_and_inputs_left_alone(shape):
    exact, noisy = np.full(shape, 500), np.full(shape, 503)
    finer = refine(noisy, exact, Laplace(20), Laplace("1/100"))
    assert finer.shape == shape
    assert finer.dtype == np.int64
    assert (finer == 500).all()  # so little noise is none
    assert (noisy == 503).all()
    assert finer is not noisy


def test_entries_are_paired_with_their_own_values_in_any_layout():
    exact = np.arange(-3000, 3000) * 10**6
    noisy = exact + np.where(exact % 2, 5, -5)
    for step in (exact[::-1], exact[::2]):
        assert np.array_equal(refine(step + 9, step, Laplace(20), Laplace("1/100")), step)
    assert np.array_equal(refine(noisy, exact, Laplace(20), Laplace("1/100")), exact)


@pytest.mark.long
def test_few_entries_have_the_distribution_too():
    exact = np.full(5, -40)
    drawn = np.concatenate([refine(exact + 3, exact, Laplace(10), Laplace(4)) - exact for _ in range(8000)])
    assert p_value(drawn, law_of(10, 4, 3)) > SURELY
    assert p_value(drawn, law_of(10, 4, 0)) < SURELY


@pytest.mark.parametrize("n", [2**40, 2**62, -(2**62), 2**63 + 5, 2**64 - 2, -(2**64) + 2])
def test_a_shown_value_any_distance_away_neither_wraps_nor_hangs(n):
    exact, count = (INT64.min if n > 0 else INT64.max), 100_000
    if abs(n) < 2**63:
        exact //= 2
    values = np.full(count, exact)
    drawn = refine(np.full(count, exact + n), values, Laplace(10), Laplace(4))
    # Nothing arrives at the shown value: climbs and jumps away, of which the ends cut off some.
    q1, q2 = math.exp(-1 / 10), math.exp(-1 / 4)
    r, s = q2 / q1, q1 * q2
    factor = (1 - r) * (1 - s) / (1 - r * s)
    law = {m: factor * (s**-m if m < 0 else r**m) for m in range(-100, 300)}
    moved = [abs(x - exact) * (1 if (x > exact) is (n > 0) else -1) for x in drawn.tolist()]
    if exact in (INT64.min, INT64.max):
        law[0] = sum(law.pop(m) for m in range(-100, 0)) + law[0]
    assert p_value(moved, law) > SURELY


def test_refined_values_beyond_int64_are_clamped():
    for end, inwards in ((INT64.max, -1), (INT64.min, 1)):
        exact = np.full(2000, end)
        drawn = refine(exact + inwards, exact, Laplace(100), Laplace(50))
        assert np.count_nonzero(drawn == end) > 300
        assert (np.abs(drawn - (end + 5000 * inwards)) <= 5000).all()


@pytest.mark.parametrize(("wide", "narrow"), [("1e20", "1e19"), ("1e100", "1e99"), ("1e100", "1e-100"), ("1e90", 3)])
def test_enormous_scales_work(wide, narrow):
    exact = np.array([0, INT64.max, INT64.min, 5] * 20)
    noisy = np.array([INT64.max - 1, INT64.min + 1, 0, 5] * 20)
    drawn = refine(noisy, exact, Laplace(wide), Laplace(narrow))
    assert drawn.dtype == np.int64
    if Fraction(narrow) < 1:
        assert np.array_equal(drawn, exact)
    else:
        assert len(set(drawn.tolist())) > 2


def test_draws_of_python_integers_are_refined_like_any_other():
    noisy, exact = np.array([10, 10, -10, 10]), np.array([0, 0, 0, 0])
    climbs, jumps = np.array([3, 10**30, 4, 0], object), np.array([0, 10**30, 7, -(10**30)], object)
    assert module._combine_draws(noisy, exact, climbs, jumps).tolist() == [3, INT64.max, -4, INT64.min]


def test_refinements_come_from_the_keystream(monkeypatch):
    def refuses(self, count):
        raise OSError

    monkeypatch.setattr(keystream.Keystream, "bytes", refuses)
    with pytest.raises(OSError):
        refine(np.arange(100), np.arange(100), Laplace(4), Laplace(2))
