"""Discovered groups: what shows a lone unit has the probability that is paid for."""

import itertools
import json
import math
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.kernel import partition_selection
from discreet.kernel.expr import MAX_TEXT_LENGTH, Column, Type
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.partition_selection import PartitionSelection, Threshold
from discreet.kernel.question import ContributionBounds, Question, SelectedGroups
from discreet.kernel.relation import Scan, UnitKey
from discreet.kernel.totals import SelectionWeight

NOISES = [Laplace(1), Laplace("5/2"), Gaussian(1), Gaussian("7/2")]


@lru_cache
def weights_of(noise, reach, digits):
    """Return the weights of {k, k+1, …}, and of everything."""
    with mpmath.workdps(digits):
        scale = real(noise.scale)
        weights = [mpmath.exp(-((j / scale) ** 2) / 2) for j in range(reach)]
        return list(itertools.accumulate(reversed(weights)))[::-1], 2 * mpmath.fsum(weights) - 1


def tail(noise, k):
    """Return P[noise >= k], summed independently."""
    if k <= 0:
        return 1 - tail(noise, 1 - k)
    if isinstance(noise, Laplace):
        q = mpmath.exp(-1 / real(noise.scale))
        return q**k / (1 + q)
    tails, everything = weights_of(noise, 200 + int(20 * noise.scale), mpmath.mp.dps + 10)
    return tails[k] / everything


def weight(size, groups, k):
    return math.isqrt(size**2 * groups // k) if k > groups else size


def shown(noise, cut, groups, size, k):
    return 1 - (1 - tail(noise, cut - weight(size, groups, k))) ** k


def real(x):
    return mpmath.mpf(x.numerator) / x.denominator


CASES = [(1, 1, 1), (2, 1, 2), (3, 4, 3), (2, 4, 9), (1, 6, 30), (5, 20, 40)]


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize(("groups", "size", "most"), CASES)
def test_threshold_delta_is_the_probability_that_a_lone_unit_is_shown(noise, groups, size, most):
    for cut in (1, size, size + 5, size + 20):
        with mpmath.workdps(60):
            exact = max(shown(noise, cut, groups, size, k) for k in range(1, most + 1))
            delta = real(Threshold(noise, cut, groups, size, most).loss().delta)
            assert exact * (1 - mpmath.mpf(10) ** -45) <= delta
            if cut > size:  # else a lone unit is shown with a probability of at least one half, and delta is 1
                assert delta <= exact * (1 + mpmath.mpf(10) ** -30) + mpmath.mpf(10) ** -39
            else:
                assert delta == 1


@pytest.mark.parametrize("noise", NOISES[:3], ids=str)
def test_the_probability_agrees_with_enumeration_of_the_noise(noise):
    """Two groups of one unit alone: every pair of noises is looked at."""
    cut, reach = 4, 60
    law = {z: privacy.pmf(noise, z) for z in range(-reach, reach + 1)}
    hidden = math.fsum(
        p * q for (y, p), (z, q) in itertools.product(law.items(), repeat=2) if 1 + y < cut and 1 + z < cut
    )
    assert float(Threshold(noise, cut, groups=2).loss().delta) == pytest.approx(1 - hidden, rel=1e-9)


@pytest.mark.long
@given(st.integers(1, 6), st.integers(1, 64), st.integers(0, 60), st.integers(1, 80), st.integers(1, 12), st.booleans())
@settings(max_examples=40, deadline=None)
def test_clipped_units_cost_no_more_than_the_worst_k(groups, size, more, cut, scale, normal):  # noqa: PLR0917
    noise = (Gaussian if normal else Laplace)(Fraction(scale, 2))
    delta = float(Threshold(noise, cut, groups, size, groups + more).loss().delta)
    with mpmath.workdps(80):
        each = [float(shown(noise, cut, groups, size, k)) for k in range(1, groups + more + 1)]
    assert max(each) <= delta * (1 + 1e-12)
    assert delta <= (max(each) * (1 + 1e-12) + 1e-30 if cut > size else 1)


def test_the_worst_k_may_be_the_smallest_or_the_largest():
    def worst(noise, cut, groups, size, most):
        chances = {k: shown(noise, cut, groups, size, k) for k in range(1, most + 1)}
        return max(chances, key=chances.get)

    assert worst(Laplace(1), 30, 2, 10, 40) == 2
    assert worst(Laplace(50), 30, 2, 10, 40) == 40


def law_of_group(noise, units, cut, reach):
    """Return the law of what is seen of one group: its noisy weight, or nothing."""
    if units is None:  # nobody is in it: it does not exist
        return {None: 1.0}
    law = {}
    for z in range(-reach, reach + 1):
        seen = units + z if units + z >= cut else None
        law[seen] = law.get(seen, 0.0) + privacy.pmf(noise, z)
    return law


def stick(ours, theirs, epsilon):
    """Return the hockey-stick divergence of two products of laws, every outcome listed."""
    total = 0.0
    factor = math.exp(epsilon)
    for outcome in itertools.product(*ours):
        p = math.prod(law[seen] for law, seen in zip(ours, outcome, strict=True))
        q = math.prod(law.get(seen, 0.0) for law, seen in zip(theirs, outcome, strict=True))
        total += max(0.0, p - factor * q)
    return total


@pytest.mark.long
@pytest.mark.parametrize(
    ("noise", "reach"), [(Laplace(1), 32), (Laplace("2/3"), 20), (Gaussian(1), 10), (Gaussian("5/2"), 22)], ids=str
)
@pytest.mark.parametrize(("groups", "size", "most", "cut"), [(1, 1, 1, 4), (2, 1, 2, 4), (2, 4, 3, 7), (1, 4, 3, 5)])
def test_two_neighbouring_histograms_are_as_close_as_claimed(noise, reach, groups, size, most, cut):  # noqa: PLR0917
    """A unit in k groups, of which some are its own and others shared: with it and without it, all outcomes listed."""
    loss = Threshold(noise, cut, groups, size, most).loss()
    delta = loss.delta
    epsilon = loss.epsilon
    if epsilon is None:
        delta = 2 * loss.delta
        epsilon = privacy.to_epsilon(loss, delta)
    tight = 0.0
    for k in range(1, most + 1):
        w = weight(size, groups, k)
        for alone in range(k + 1):
            others = [3, 0, 1][: k - alone]  # what the others weigh; a group may be theirs and weigh nothing
            laws = [
                [law_of_group(noise, units, cut, reach) for units in row]
                for row in ([w] * alone + [o + w for o in others], [None] * alone + others)
            ]
            for one, other in (laws, laws[::-1]):
                found = stick(one, other, float(epsilon))
                assert found <= float(delta) * (1 + 1e-9) + 1e-12, (k, alone)
                tight = max(tight, found / float(delta))
    if loss.epsilon is not None:
        assert tight > 0.99  # nobody could claim less


def test_blocks_cover_all_numbers_of_groups():
    for groups, most in ((1, 1), (3, 5000), (4000, 20_000), (5000, 5000), (5000, 5001), (1, 10**6)):
        blocks = partition_selection._blocks(groups, most)
        assert blocks[0][0] == groups
        assert blocks[-1][1] == most
        assert all(a[1] + 1 == b[0] for a, b in itertools.pairwise(blocks))
        assert all(first <= last <= first + first // 16 for first, last in blocks)
    assert len(partition_selection._blocks(1, 10**6)) < 6000
    assert partition_selection._blocks(3, 100) == [(k, k) for k in range(3, 101)]  # up to 100, delta is exact


@pytest.mark.parametrize(
    ("size", "scale", "cut"), [(1 << 20, 1 << 20, 12 << 20), (1, 2, 40), (1 << 20, 1 << 24, 400 << 20)]
)
def test_beyond_100_groups_delta_is_an_upper_bound(size, scale, cut):
    groups, most = 5, 20_000
    delta = float(Threshold(Laplace(scale), cut, groups, size, most).loss().delta)
    q = math.exp(-1 / scale)
    k = np.arange(1, most + 1)
    weights = np.array([weight(size, groups, int(each)) for each in k])
    chances = -np.expm1(k * np.log1p(-(q ** (cut - weights.astype(float))) / (1 + q)))
    assert chances.max() <= delta * (1 + 1e-9)
    assert delta <= chances.max() * 1.01


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_loss_is_that_of_the_noise_and_a_delta(noise):
    loss = Threshold(noise, cut=9, groups=3, size=2, most=8).loss()
    plain = noise.loss(Sensitivity.of_norms(l1=9, l2_squared=12))  # 2·sqrt(3·8) = 9.8 in l1
    assert (loss.epsilon, loss.rho) == (plain.epsilon, plain.rho)
    assert loss.delta > 0
    assert Threshold(noise, cut=1, groups=3, size=100).loss().delta <= 1


def test_no_k_moves_the_weights_by_more_than_is_charged():
    for groups, size, most in [*CASES, (1, 1 << 20, 40), (2, 1 << 20, 9)]:
        sensitivity = Threshold(Laplace(1), 1, groups, size, most).sensitivity
        for k in range(1, most + 1):
            assert k * weight(size, groups, k) <= sensitivity.l1
            assert k * weight(size, groups, k) ** 2 <= sensitivity.l2_squared


def test_a_group_at_the_threshold_passes_and_one_below_does_not():
    passed = Threshold(Laplace(1), cut=5, groups=1).passes(np.array([4, 5, 6, -100]))
    assert passed.tolist() == [False, True, True, False]


@pytest.mark.parametrize("name", ["cut", "groups", "size"])
@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2", None, math.nan])
def test_bad_numbers_are_refused_by_name(name, bad):
    with pytest.raises((ValueError, TypeError), match=name):
        Threshold(**{"noise": Laplace(1), "cut": 5, "groups": 1, "size": 1, name: bad})


@pytest.mark.parametrize("most", [1600, 3000, 4480, 9000])
def test_no_block_that_is_left_out_is_the_worst(most):
    wide = Threshold(Laplace(1), cut=40, groups=1600, most=most)
    assert partition_selection.worst_block(wide)[0] == max(
        map(wide.block_delta, partition_selection._blocks(1600, most))
    )


@pytest.mark.parametrize("noise", [None, 1, Sensitivity(1, 1)])
def test_noise_that_is_not_additive_is_refused(noise):
    with pytest.raises(TypeError, match="noise"):
        Threshold(noise, cut=5, groups=1)


def test_other_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="most"):
        Threshold(Laplace(1), cut=5, groups=3, most=2)


def test_it_is_written_as_canonical_json():
    data = json.loads(str(Threshold(Gaussian("1/2"), cut=7, groups=2, size=3, most=4)))
    assert json.loads(data.pop("noise")) == {"name": "gaussian", "scale": "1/2"}
    assert data == {"name": "threshold", "cut": "7", "groups": "2", "size": "3", "most": "4"}


# Rounds.

USER, PLACE, TOWN = Column("user", Type.INTEGER), Column("place", Type.TEXT), Column("town", Type.TEXT)
QUESTION = Question(
    Scan("visits", (USER, PLACE, TOWN), UnitKey((USER,)), max_rows=1000),
    (("place", PLACE), ("town", TOWN)),
    SelectedGroups(7),
    ContributionBounds(1, 1),
    (SelectionWeight(),),
)


def selected(rounds, monkeypatch, cut=1):
    """Return the questions that are read, and what is shown, without noise; rounds are keys and their weights."""
    monkeypatch.setattr(Laplace, "perturb", lambda self, values: values.copy())
    asked, left = [], iter(rounds)

    def read(question):
        asked.append(question)
        keys, weights = zip(*next(left), strict=True)
        return list(keys), np.array(weights, np.int64)

    shown = PartitionSelection(tuple(Threshold(Laplace(1), cut, groups=1) for _ in rounds)).select(QUESTION, read)
    return asked, list(shown.items())


def test_keys_that_sql_can_list_are_left_out_of_the_next_round(monkeypatch):
    longest = "x" * MAX_TEXT_LENGTH
    keys = [("b", None), (None, "a"), ("a", "é\0"), (longest, "b"), (longest + "x", "a"), ("a", "b")]
    (first, second), shown = selected([[(key, 3) for key in keys], [(("c", "c"), 1)]], monkeypatch)
    listed = [("a", "b"), ("b", None), (longest, "b"), (None, "a")]  # ascending, NULL last
    assert first == QUESTION
    assert (second.groups, second.totals) == (SelectedGroups(7, tuple(listed)), (SelectionWeight(),))
    assert [key for key, _ in shown] == sorted([*keys, ("c", "c")], key=lambda key: [(x is None, x or "") for x in key])


def test_a_weight_of_one_is_a_candidate_and_none_is_not(monkeypatch):
    drawn = []
    monkeypatch.setattr(Threshold, "passes", lambda self, noisy: drawn.append(noisy.tolist()) or noisy >= 2)
    _, shown = selected([[(("a", "a"), 0), (("b", "b"), 1), (("c", "c"), 2)]], monkeypatch)
    assert drawn == [[1, 2]]
    assert shown == [(("c", "c"), 2)]


def test_a_key_that_is_shown_twice_keeps_its_first_weight(monkeypatch):
    _, shown = selected([[(("a\0", "a"), 5)], [(("a\0", "a"), 9), (("b", "b"), 2)]], monkeypatch)
    assert shown == [(("a\0", "a"), 5), (("b", "b"), 2)]


def test_rounds_lose_what_all_their_noises_and_deltas_lose():
    rounds = Threshold(Laplace(2), 30, groups=1, size=2), Threshold(Laplace(1), 20, groups=1, size=2)
    moved = Sensitivity(1, 2)
    assert PartitionSelection(rounds).loss(moved) == Loss(3, "5/2", sum(each.loss().delta for each in rounds))
