"""The divergences, compared with brute force over every set of outcomes."""

import math
from fractions import Fraction
from itertools import chain, combinations, pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from discreet import privacy
from discreet.kernel.mechanism import Laplace

COINS = {"yes": Fraction(3, 4), "no": Fraction(1, 4)}
NO_COINS = {"yes": Fraction(1, 4), "no": Fraction(3, 4)}


def sets(outcomes):
    listed = list(outcomes)
    return chain.from_iterable(combinations(listed, size) for size in range(1, len(listed) + 1))


def over(pmf, chosen):
    return sum((pmf.get(outcome, Fraction(0)) for outcome in chosen), Fraction(0))


@st.composite
def pmfs(draw, least=0, size=4):
    weights = draw(st.lists(st.integers(least, 12), min_size=size, max_size=size))
    assume(sum(weights))
    return {k: Fraction(weight, sum(weights)) for k, weight in enumerate(weights)}


@given(pmfs(), pmfs())
def test_max_divergence_is_the_worst_log_ratio_of_all_sets(p, q):
    worst = -math.inf
    for chosen in sets(p):
        above, below = over(p, chosen), over(q, chosen)
        if above:
            worst = max(worst, math.log(above / below) if below else math.inf)
    assert privacy.max_divergence(p, q) == pytest.approx(worst, abs=1e-14)


@pytest.mark.long
@given(pmfs(), pmfs(), st.fractions(0, 3, max_denominator=20))
def test_hockey_stick_is_the_worst_excess_of_all_sets(p, q, epsilon):
    worst = max(over(p, chosen) - math.exp(epsilon) * over(q, chosen) for chosen in sets(p))
    assert privacy.hockey_stick(p, q, epsilon) == pytest.approx(max(0, worst), abs=1e-13)


@given(pmfs(), pmfs())
def test_at_the_max_divergence_no_delta_is_left(p, q):
    epsilon = privacy.max_divergence(p, q)
    assume(math.isfinite(epsilon))
    assert privacy.hockey_stick(p, q, max(0.0, epsilon)) == 0
    if epsilon > 0.01:
        assert privacy.hockey_stick(p, q, 0.99 * epsilon) > 0


@pytest.mark.long
@given(pmfs(), pmfs(least=1), st.lists(st.floats(1, 40), min_size=2, max_size=2))
def test_renyi_grows_with_its_order_from_kullback_leibler_to_the_worst_case(p, q, orders):
    low, high = sorted(orders)
    ends = privacy.renyi(p, q, 1), privacy.renyi(p, q, math.inf)
    between = privacy.renyi(p, q, low), privacy.renyi(p, q, high)
    ladder = [ends[0], *between, ends[1]]
    for lower, upper in pairwise(ladder):
        assert lower <= upper + 1e-12
    assert privacy.renyi(p, q, 1 + 1e-9) == pytest.approx(ends[0], abs=1e-7)
    # The worst outcome alone: D_a >= (ln(p) + (a-1)·worst)/(a-1).
    assert privacy.renyi(p, q, 1e6) == pytest.approx(ends[1], abs=1e-5)


@given(pmfs(), pmfs(least=1), st.integers(2, 6))
def test_renyi_of_an_integer_order_is_its_formula(p, q, order):
    total = sum(p[k] ** order / q[k] ** (order - 1) for k in p)
    assert privacy.renyi(p, q, order) == pytest.approx(math.log(total) / (order - 1), abs=1e-13)


@pytest.mark.long
@given(
    pmfs(),
    pmfs(least=1),
    st.lists(pmfs(size=3), min_size=4, max_size=4),
    st.fractions(0, 2, max_denominator=9),
    st.floats(1, 9),
)
def test_post_processing_never_increases_a_divergence(p, q, channel, epsilon, alpha):
    def processed(pmf):
        return {out: sum(pmf[k] * channel[k][out] for k in pmf) for out in range(3)}

    for measure in (
        privacy.max_divergence,
        lambda a, b: privacy.hockey_stick(a, b, epsilon),
        lambda a, b: privacy.renyi(a, b, alpha),
    ):
        assert measure(processed(p), processed(q)) <= measure(p, q) + 1e-12


def together(p, q):
    return {(a, b): p[a] * q[b] for a in p for b in q}


@pytest.mark.long
@given(pmfs(least=1), pmfs(least=1), pmfs(least=1), pmfs(least=1), st.floats(1, 9))
def test_divergences_of_independent_releases_add(p1, q1, p2, q2, alpha):
    for measure in (privacy.max_divergence, lambda a, b: privacy.renyi(a, b, alpha)):
        assert measure(together(p1, p2), together(q1, q2)) == pytest.approx(
            measure(p1, q1) + measure(p2, q2), abs=1e-12
        )


@pytest.mark.long
@given(st.tuples(pmfs(), pmfs()), st.tuples(pmfs(), pmfs()), *[st.fractions(0, 1, max_denominator=9)] * 2)
def test_epsilons_and_deltas_of_two_releases_add(first, second, e1, e2):
    (p1, q1), (p2, q2) = first, second
    both = privacy.hockey_stick(together(p1, p2), together(q1, q2), e1 + e2)
    assert both <= privacy.hockey_stick(p1, q1, e1) + privacy.hockey_stick(p2, q2, e2) + 1e-12


@pytest.mark.long
@given(pmfs(), pmfs(), st.fractions(0, 2, max_denominator=9))
def test_the_privacy_loss_distribution_determines_all_divergences(p, q, epsilon):
    losses = privacy.privacy_loss(p, q)
    assert sum(losses.values()) == 1
    assert max(losses) == privacy.max_divergence(p, q)
    delta = sum(chance * (1 - math.exp(epsilon - loss)) for loss, chance in losses.items() if loss > epsilon)
    assert privacy.hockey_stick(p, q, epsilon) == pytest.approx(float(delta), abs=1e-13)


def test_coin_flips_lose_ln_3():
    assert privacy.max_divergence(COINS, NO_COINS) == math.log(3)
    assert privacy.privacy_loss(COINS, NO_COINS) == {
        math.log(3): Fraction(3, 4),
        -math.log(3): Fraction(1, 4),
    }


def test_uniform_noise_is_not_private():
    noise = privacy.uniform_pmf(0, 5)
    assert noise == dict.fromkeys(range(6), Fraction(1, 6))
    moved = {k + 1: p for k, p in noise.items()}
    assert moved == privacy.uniform_pmf(1, 6)
    assert privacy.max_divergence(noise, moved) == privacy.max_divergence(moved, noise) == math.inf
    assert privacy.privacy_loss(noise, moved) == {0.0: Fraction(5, 6), math.inf: Fraction(1, 6)}
    assert privacy.hockey_stick(noise, moved, 100) == pytest.approx(1 / 6)
    assert privacy.renyi(noise, moved, 2) == privacy.renyi(noise, moved, 1) == math.inf


def test_divergences_are_directed():
    p, q = {0: 0.5, 1: 0.5}, {0: 1.0}
    assert privacy.max_divergence(p, q) == math.inf
    assert privacy.max_divergence(q, p) == pytest.approx(math.log(2))


def test_likelihood_ratios_of_points_and_sets():
    assert privacy.likelihood_ratio(COINS, NO_COINS, "yes") == 3
    assert privacy.likelihood_ratio(COINS, NO_COINS, {"yes", "no"}) == 1
    assert privacy.likelihood_ratio(COINS, {"no": 1}, "yes") == math.inf
    noise = privacy.uniform_pmf(0, 5)
    assert privacy.likelihood_ratio(noise, privacy.uniform_pmf(1, 6), range(3)) == Fraction(3, 2)
    assert privacy.likelihood_ratio(noise, privacy.uniform_pmf(1, 6), [0, 1, 1]) == 2  # a set: 1 counts once
    with pytest.raises(ValueError, match="outcomes"):
        privacy.likelihood_ratio(COINS, NO_COINS, "maybe")


def test_a_truncated_distribution_is_measured_on_its_listed_outcomes():
    here = {k: privacy.pmf(Laplace(10), k) for k in range(-300, 301)}
    there = {k: privacy.pmf(Laplace(10), k - 1) for k in range(-300, 301)}
    assert sum(here.values()) < 1
    assert privacy.max_divergence(here, there) == pytest.approx(0.1, abs=1e-13)
    assert privacy.max_divergence(there, here) == pytest.approx(0.1, abs=1e-13)
    assert privacy.hockey_stick(here, there, 0.1) < 1e-14
    assert privacy.hockey_stick(here, there, 0.05) == pytest.approx(
        privacy.hockey_stick(privacy.output(Laplace(10), 0), privacy.output(Laplace(10), 1), 0.05), rel=1e-11
    )
    losses = privacy.privacy_loss(here, there)
    assert set(losses) == {0.1, -0.1}  # equal losses meet although their floats differ
    assert privacy.renyi(here, there, 2) == pytest.approx(
        privacy.renyi(privacy.output(Laplace(10), 0), privacy.output(Laplace(10), 1), 2), rel=1e-9
    )


def test_tiny_probabilities_do_not_overflow():
    p, q = {0: 1.0}, {0: 5e-324, 1: 1.0}
    assert privacy.max_divergence(p, q) == pytest.approx(744.44, abs=0.01)
    assert privacy.renyi(p, q, 100) == pytest.approx(744.44, abs=0.01)
    tiny = Fraction(1, 10**400)
    assert privacy.max_divergence({0: Fraction(1)}, {0: tiny, 1: 1 - tiny}) == pytest.approx(921.034, abs=0.001)


def test_numpy_probabilities_are_read():
    p = dict(enumerate(np.array([0.25, 0.75], dtype=np.float32)))
    assert privacy.max_divergence(p, {0: np.int64(1)}) == math.inf
    assert privacy.max_divergence({0: 1}, {0: 1}) == 0


def test_the_posterior_bound():
    assert privacy.posterior_bound(0.5, 0.1) == pytest.approx(0.52498, abs=5e-6)
    assert privacy.posterior_bound("1/100", 3) == pytest.approx(math.exp(3) / (99 + math.exp(3)))
    assert privacy.posterior_bound(0, 3) == 0
    assert privacy.posterior_bound(1, 3) == 1
    assert privacy.posterior_bound(0.01, math.inf) == privacy.posterior_bound(0.01, 10_000) == 1


@pytest.mark.long
@given(pmfs(), pmfs(), st.fractions("1/100", "99/100"))
def test_no_posterior_exceeds_its_bound(p, q, prior):
    epsilon = privacy.max_divergence(p, q)
    assume(math.isfinite(epsilon))
    bound = privacy.posterior_bound(prior, max(0.0, epsilon))
    for k in p:
        if p[k] or q[k]:
            assert prior * p[k] / (prior * p[k] + (1 - prior) * q[k]) <= bound + 1e-12


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {0: 0.0},
        {0: 1.1},
        {0: 1 + 1e-8},
        {0: 0.6, 1: 0.6},
        {0: -0.1, 1: 1.1},
        {0: math.nan},
        {0: math.inf},
        {0: Fraction(-1, 2)},
    ],
)
def test_what_is_not_a_pmf_is_refused(wrong):
    for call in (privacy.max_divergence, privacy.privacy_loss, lambda p, q: privacy.hockey_stick(p, q, 1)):
        with pytest.raises(ValueError, match=r"^p"):
            call(wrong, COINS)
        with pytest.raises(ValueError, match=r"^q"):
            call(COINS, wrong)


@pytest.mark.parametrize("wrong", [[0.5, 0.5], "p", {0: True}, {0: "1"}, {0: None}])
def test_a_value_that_is_not_a_dictionary_of_numbers_is_refused(wrong):
    with pytest.raises(TypeError, match=r"^p"):
        privacy.renyi(wrong, COINS, 2)


def test_wrong_numbers_are_refused():
    with pytest.raises(ValueError, match="alpha"):
        privacy.renyi(COINS, NO_COINS, 0.5)
    with pytest.raises(ValueError, match="alpha"):
        privacy.renyi(COINS, NO_COINS, math.nan)
    with pytest.raises(ValueError, match="epsilon"):
        privacy.hockey_stick(COINS, NO_COINS, -0.1)
    with pytest.raises(ValueError, match="high"):
        privacy.uniform_pmf(1, 0)
    with pytest.raises(TypeError, match="low"):
        privacy.uniform_pmf(0.5, 1)
    for prior in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="prior"):
            privacy.posterior_bound(prior, 1)
    with pytest.raises(ValueError, match="epsilon"):
        privacy.posterior_bound(0.5, -1)
