"""Choices have the law that they claim, and lose what they claim."""

import importlib.util
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.kernel.mechanism import Sensitivity
from discreet.privacy.selection import Exponential, PermuteAndFlip

_spec = importlib.util.spec_from_file_location("evidence", Path(__file__).parents[1] / "broken" / "evidence.py")
evidence = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(evidence)

ALARM = 1e-10
BOTH = [Exponential, PermuteAndFlip]
EXAMPLES = [
    [0],
    [3, 3],
    [0, 1, 2],
    [5, -2, 5, 0],
    [Fraction(1, 3), Fraction(2, 7), 0, Fraction(-9, 5), 1],
    [0, 500, 499],
    [1, *[0] * 30],
]
utilities_ = st.lists(st.fractions(-20, 20, max_denominator=12), min_size=1, max_size=7)
scales_ = st.fractions(Fraction(1, 4), 20, max_denominator=9)


class Script:
    """A source that says what it was told to say, then the filling for a while, and then something else."""

    def __init__(self, text=b"", filling=b"\0"):
        self._left, self.asked = text + filling * 40, 0

    def bytes(self, count):
        self.asked += count
        out, self._left = self._left[:count], self._left[count:]
        return bytearray(out + b"\x5a" * (count - len(out)))


def exact(values, scale):
    """Return the probabilities of Exponential, computed independently."""
    weights = [mpmath.exp(mpmath.mpf(v.numerator) / v.denominator) for v in (Fraction(v) / scale for v in values)]
    return [w / mpmath.fsum(weights) for w in weights]


def edges(values, scale, bits):
    """Return floor of each inner boundary of the distribution function, times 2^bits."""
    with mpmath.workdps(400):
        sums = list(itertools.accumulate(exact(values, scale)))[:-1]
        return [int(mpmath.floor(s * 2**bits)) for s in sums]


def check_boundaries(values, scale, bits):
    mechanism, read = Exponential(scale), [Fraction(v) for v in values]
    top = 1 << bits
    boundaries = edges(values, Fraction(scale), bits)
    near = {b + away for b in boundaries for away in (-3, -2, -1, 1, 2, 3)} | {0, 1, top // 3, top - 2, top - 5}
    for word in sorted(near - set(boundaries)):
        if 0 <= word < top - 1:
            index = sum(b < word for b in boundaries)
            for filling in (b"\0", b"\xff"):  # whatever comes after these bits, the choice is the same
                assert mechanism._choose(read, Script(word.to_bytes(bits // 8), filling)) == index, (word, boundaries)


@pytest.mark.long(only=["values6"])
@pytest.mark.parametrize("values", EXAMPLES)
def test_selections_have_the_exact_distribution(values):
    for scale in ("1", "1/2", "7/3"):
        check_boundaries(values, scale, 64)
        check_boundaries(values, scale, 128)  # the same with the first word equal to the boundary's


@pytest.mark.long
@given(utilities_, scales_, st.integers(0, 2**64 - 2))
@settings(max_examples=150, deadline=None)
def test_any_word_gives_the_index_of_its_interval(values, scale, word):
    boundaries = edges(values, scale, 64)
    if word not in boundaries:
        chosen = Exponential(scale)._choose(values, Script(word.to_bytes(8), b"\xff"))
        assert chosen == sum(b < word for b in boundaries)


@pytest.mark.parametrize("values", [e for e in EXAMPLES if len(e) > 1])
def test_undecided_selections_are_continued(values):
    read, mechanism = [Fraction(v) for v in values], Exponential(1)
    for i, (edge, longer) in enumerate(zip(edges(values, 1, 64), edges(values, 1, 256), strict=True)):
        assert longer >> 192 == edge
        if 0 < edge < 2**64 - 1 and edges(values, 1, 64).count(edge) == 1:
            for away, index in ((-40, i), (40, i + 1)):  # the second, longer word decides
                script = Script((longer + away).to_bytes(32))
                assert mechanism._choose(read, script) == index
                assert script.asked == 32
    middle = Script((2**62 + 12345).to_bytes(8))
    mechanism._choose([Fraction(0), Fraction(0)], middle)
    assert middle.asked == 8


def test_the_largest_word_terminates_too():
    script = Script(b"\xff" * 8, b"\0")
    assert Exponential(1)._choose([Fraction(0)], script) == 0
    assert script.asked == 16
    assert Exponential(1)._choose([Fraction(0), Fraction(1)], Script(b"\xff" * 40, b"\0")) == 1


def flips(values, scale):
    """Return the probabilities of PermuteAndFlip by its definition, over all orders."""
    with mpmath.workdps(30):
        best = max(values)
        heads = [mpmath.exp(-mpmath.mpf((best - v).numerator) / (best - v).denominator / scale) for v in values]
        found = [mpmath.mpf(0)] * len(values)
        for order in itertools.permutations(range(len(values))):
            reached = mpmath.mpf(1) / math.factorial(len(values))
            for i in order:
                found[i] += reached * heads[i]
                reached *= 1 - heads[i]
        return [float(p) for p in found]


@pytest.mark.parametrize("values", [[0], [2, 2], [0, 1], [0, 1, 2], [1, 1, 0], [3, 0, 3, 1], [0, 1, 0, 2]])
def test_permute_and_flip_has_its_distribution_when_every_draw_is_enumerated(values):
    values = [Fraction(v) for v in values]
    best, n = max(values), len(values)
    coins = [v for v in values if v != best]
    dice = [range(size) for size in range(n, 1, -1)]
    law = [0.0] * n
    for thrown in itertools.product(*dice):
        bytes_ = bytes(v << (8 - size.bit_length()) for v, size in zip(thrown, range(n, 1, -1), strict=True))
        for shown in itertools.product((True, False), repeat=len(coins)):
            tossed = iter(shown)  # the best are tossed too, and always show heads
            words = b"".join(bytes(8) if v == best or next(tossed) else b"\xff" * 8 for v in values)
            chances = [math.exp(-float(best - v)) for v in coins]
            weight = math.prod(c if heads else 1 - c for c, heads in zip(chances, shown, strict=True))
            script = Script(bytes_ + words)
            law[PermuteAndFlip(1)._choose(values, script)] += weight / math.factorial(n)
            assert script.asked == len(bytes_ + words)
    assert law == pytest.approx(flips(values, 1), rel=1e-12)
    assert law == pytest.approx(privacy.probabilities(PermuteAndFlip(1), values), rel=1e-12)


@pytest.mark.long
@given(st.lists(st.fractions(-5, 5, max_denominator=6), min_size=1, max_size=6), scales_)
@settings(max_examples=60, deadline=None)
def test_probabilities_are_those_of_the_definition(values, scale):
    assert privacy.probabilities(PermuteAndFlip(scale), values) == pytest.approx(flips(values, float(scale)), rel=1e-9)
    law = privacy.probabilities(Exponential(scale), values)
    assert law == pytest.approx([float(p) for p in exact(values, scale)], rel=1e-12)
    assert math.fsum(law) == pytest.approx(1, rel=1e-14)


@pytest.mark.long
@pytest.mark.parametrize("kind", BOTH)
def test_real_selections_follow_their_probabilities(kind):
    values = [0, 1, 2, 3, 3]
    chosen = [kind(1).choose(values) for _ in range(8000)]
    assert evidence.chi_square_of_choices(chosen, privacy.probabilities(kind(1), values)) > ALARM
    for wrong in (0.8, 1.25):
        assert evidence.chi_square_of_choices(chosen, privacy.probabilities(kind(wrong), values)) < ALARM


def neighbours():
    """Return utilities, and the same moved by at most 1 each."""
    moves = st.lists(st.fractions(-1, 1, max_denominator=4), min_size=6, max_size=6)
    values = st.lists(st.fractions(-6, 6, max_denominator=5), min_size=1, max_size=6)
    return st.tuples(values, moves).map(lambda both: (both[0], [v + m for v, m in zip(both[0], both[1], strict=False)]))


@pytest.mark.long
@pytest.mark.parametrize("kind", BOTH)
@given(pair=neighbours(), scale=scales_)
@settings(max_examples=120, deadline=None)
def test_a_selection_loses_at_most_its_epsilon(kind, pair, scale):
    laws = [dict(enumerate(privacy.probabilities(kind(scale), values))) for values in pair]
    assert evidence.max_divergence(*laws) <= float(kind(scale).loss(1).epsilon) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("kind", BOTH)
def test_the_epsilon_of_a_selection_is_nearly_attained(kind):
    # One candidate rises and all others fall; they are many, or better, so the sum falls nearly as far.
    before, after = [0, *[12] * 3], [1, *[11] * 3]
    laws = [dict(enumerate(privacy.probabilities(kind(1), values))) for values in (before, after)]
    assert kind(1).loss(1).epsilon == 2
    assert 1.999 < evidence.max_divergence(*laws) <= 2


@pytest.mark.long
@given(neighbours(), scales_)
@settings(max_examples=120, deadline=None)
def test_bounded_range_gives_an_eighth_of_the_square(pair, scale):
    loss = Exponential(scale).loss(1)
    assert loss.rho == loss.epsilon**2 / 8
    with mpmath.workdps(40):
        p, q = (exact(values, scale) for values in pair)
        for order in (mpmath.mpf("1.001"), mpmath.mpf("1.5"), 2, 3, 8, 50):
            total = mpmath.fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))
            bound = order * mpmath.mpf(loss.rho.numerator) / loss.rho.denominator
            assert mpmath.log(total) / (order - 1) <= bound * (1 + mpmath.mpf(10) ** -30)


def test_an_eighth_of_the_square_is_nearly_attained():
    loss = Exponential(20).loss(1)
    p, q = (privacy.probabilities(Exponential(20), values) for values in ([1, 0], [0, 1]))
    relative_entropy = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    assert loss.epsilon == Fraction(1, 10)
    assert 0.999 < relative_entropy / float(loss.rho) <= 1


def test_permute_and_flip_claims_no_more_than_its_epsilon_implies():
    loss = PermuteAndFlip(20).loss(1)
    assert (loss.epsilon, loss.rho, loss.delta) == (Fraction(1, 10), Fraction(1, 200), 0)


def test_a_sensitivity_may_be_a_number_or_of_totals():
    assert Exponential(8).loss(Sensitivity(groups=2, size=3)).epsilon == Fraction(3, 2)
    assert Exponential("6.04").loss("3.02").epsilon == 1
    assert PermuteAndFlip(8).loss(Sensitivity(groups=2, size=3)).epsilon == Fraction(3, 2)


BIDS = [Fraction(1)] * 3 + [Fraction("3.01")]
PRICES = [Fraction(p) for p in ("1.00", "3.00", "3.01", "3.02")]


def revenues(bids):
    return [price * sum(bid >= price for bid in bids) for price in PRICES]


def test_the_auction_has_the_prices_of_the_book():
    assert revenues(BIDS) == [4, 3, Fraction("3.01"), 0]
    auction = Exponential(scale=2 * Fraction("3.02") / 1)
    assert auction.loss("3.02").epsilon == 1
    law = privacy.probabilities(auction, revenues(BIDS))
    print("auction", [round(p, 4) for p in law])
    assert [round(p, 3) for p in law] == [0.311, 0.264, 0.264, 0.161]


def test_one_bidder_changes_no_revenue_by_more_than_the_highest_price():
    for i in range(len(BIDS)):
        left = revenues(BIDS[:i] + BIDS[i + 1 :])
        assert max(abs(a - b) for a, b in zip(revenues(BIDS), left, strict=True)) <= Fraction("3.02")


def test_with_more_bidders_the_revenue_nears_the_best():
    auction, shares = Exponential("6.04"), []
    for copies in (1, 10, 100, 1000):
        values = revenues(BIDS * copies)
        expected = sum(p * float(v) for p, v in zip(privacy.probabilities(auction, values), values, strict=True))
        shares.append(expected / float(max(values)))
    print("share of the best revenue", [round(s, 4) for s in shares])
    assert shares == sorted(shares)
    assert shares[0] < 0.75
    assert shares[-1] > 0.999


def test_classifiers_are_chosen_by_their_accuracy():
    n, epsilon = 200, Fraction(1, 5)
    accuracies = [Fraction(x, n) for x in (120, 131, 140, 90)]
    chooser = Exponential(scale=2 / epsilon)
    assert chooser.loss(1).epsilon == epsilon  # one person's row changes n·accuracy by at most 1
    law = privacy.probabilities(chooser, [n * a for a in accuracies])
    weights = [math.exp(float(epsilon * n * a / 2)) for a in accuracies]
    assert law == pytest.approx([w / math.fsum(weights) for w in weights], rel=1e-12)


@pytest.mark.long
@given(st.lists(st.integers(-10, 10), min_size=1, max_size=8), scales_)
@settings(max_examples=80, deadline=None)
def test_permute_and_flip_has_no_more_regret(values, scale):
    best = max(values)
    regrets = [
        math.fsum(p * (best - v) for p, v in zip(privacy.probabilities(kind(scale), values), values, strict=True))
        for kind in BOTH
    ]
    assert regrets[1] <= regrets[0] + 1e-9


@pytest.mark.parametrize("kind", BOTH)
def test_many_candidates_work(kind):
    values = np.arange(3000)
    assert 2900 < kind(1).choose(values) < 3000
    assert kind(1).choose([0, 10**6]) == 1
    assert kind("1e-9").choose([1, 0, 1 - 2.0**-20]) == 0


@pytest.mark.parametrize("kind", BOTH)
def test_probabilities_of_many_candidates_are_quick_and_right(kind):
    law = privacy.probabilities(kind(10), range(400))
    assert math.fsum(law) == pytest.approx(1, rel=1e-9)
    assert law == sorted(law)


@pytest.mark.parametrize("kind", BOTH)
def test_utilities_far_apart_have_probabilities_too(kind):
    assert privacy.probabilities(kind(1), [1e308, -1e308]) == [1, 0]
    assert kind(1).choose([1e308, -1e308]) == 0


@pytest.mark.parametrize("kind", BOTH)
def test_floats_are_read_at_their_exact_value(kind):
    tenth = Fraction(0.1)
    assert tenth != Fraction(1, 10)
    exactly, decimal = ([Fraction(0), x * 2**60] for x in (tenth, Fraction(1, 10)))
    mechanism = kind(1)
    assert privacy.probabilities(mechanism, [0, 0.1 * 2**60]) == privacy.probabilities(mechanism, exactly)
    gap = float(exactly[1] - decimal[1])
    assert gap > 3  # so the two readings would differ
    assert privacy.probabilities(mechanism, [float(exactly[1]), decimal[1]])[0] > 0.9
    assert privacy.probabilities(mechanism, np.float32([0.1, 0])) == privacy.probabilities(
        mechanism, [Fraction(float(np.float32(0.1))), 0]
    )


def test_texts_and_numpy_numbers_are_read():
    one = privacy.probabilities(Exponential(1), ["0.5", "1/3"])
    assert one == privacy.probabilities(Exponential(1), [Fraction(1, 2), Fraction(1, 3)])
    assert privacy.probabilities(Exponential(1), np.array([1, 2])) == privacy.probabilities(Exponential(1), [1, 2])


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "bad",
    [
        [],
        [math.nan],
        [0, math.inf],
        [1, -math.inf],
        [True, 1],
        ["many"],
        [None],
        [1 + 2j],
        np.array([]),
        np.array([True]),
    ],
)
@pytest.mark.parametrize("verb", [lambda mechanism, bad: mechanism.choose(bad), privacy.probabilities])
def test_bad_utilities_are_refused_by_name(kind, verb, bad):
    with pytest.raises((ValueError, TypeError), match="utilities"):
        verb(kind(1), bad)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "x", None])
def test_bad_scales_and_sensitivities_are_refused_by_name(kind, bad):
    with pytest.raises((ValueError, TypeError), match="scale"):
        kind(bad)
    with pytest.raises((ValueError, TypeError), match="sensitivity"):
        kind(1).loss(bad)


def test_selections_are_written_as_canonical_json():
    assert json.loads(str(Exponential("1/3"))) == {"name": "exponential", "scale": "1/3"}
    assert json.loads(str(PermuteAndFlip(2))) == {"name": "permute-and-flip", "scale": "2"}
    assert Exponential(json.loads(str(Exponential(0.1)))["scale"]) == Exponential(0.1)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("utilities", [[1, True], ["secret"], [None], [1j], 5, {"secret": 1}, "secret", [float("nan")]])
def test_wrong_utilities_are_refused_without_being_shown(kind, utilities):
    with pytest.raises((TypeError, ValueError), match="utilities") as caught:
        kind(1).choose(utilities)
    assert "secret" not in str(caught.value)
    assert "True" not in str(caught.value)
