"""What hits and misses prove: intervals that cover, ceilings that the best attack reaches and none exceeds."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from discreet.attacks.evidence import BitEvidence, EventEvidence, GuessEvidence, ImpliedEpsilon
from discreet.attacks.scores import ScoreEvidence
from discreet.audit.hypothesis_tests import Proportion, clopper_pearson

CHANCES = st.floats(0.01, 0.99)
EPSILONS = st.floats(0.0, 6.0)


@given(st.integers(1, 200), CHANCES, st.sampled_from([0.9, 0.95, 0.999]))
@settings(max_examples=60)
def test_an_interval_misses_the_truth_no_more_often_than_stated(trials, chance, confidence):
    hits = np.arange(trials + 1)
    low, high = clopper_pearson(hits, trials, (1 - confidence) / 2)
    law = binom.pmf(hits, trials, chance)
    assert law[chance < low].sum() <= (1 - confidence) / 2 + 1e-12
    assert law[chance > high].sum() <= (1 - confidence) / 2 + 1e-12


def test_the_ends_of_an_interval_are_where_the_binomial_tail_is_the_error():
    low, high = clopper_pearson(np.array([0, 3, 10]), 10, 0.01)
    assert low[0] == 0
    assert high[2] == 1
    assert binom.sf(2, 10, low[1]) == pytest.approx(0.01)
    assert binom.cdf(3, 10, high[1]) == pytest.approx(0.01)


@pytest.mark.parametrize("hits", [-1, 11])
def test_more_hits_than_trials_are_refused(hits):
    with pytest.raises((ValueError, TypeError), match="hits"):
        Proportion(hits, 10)


@given(EPSILONS, st.integers(2, 8))
def test_randomized_response_among_many_values_reaches_the_ceiling_of_guesses(epsilon, values):
    truth = math.exp(epsilon) / (math.exp(epsilon) + values - 1)
    assert GuessEvidence(1, 2, prior=1 / values).ceiling(epsilon) == pytest.approx(truth)


@given(EPSILONS, st.floats(0, 0.3), st.floats(0.05, 0.5))
def test_the_epsilon_implied_by_a_ceiling_is_the_epsilon(epsilon, delta, prior):
    guesses = GuessEvidence(1, 2, prior=prior)
    ceiling = guesses.ceiling(epsilon, delta)
    if ceiling < 1 - 1e-9:
        assert guesses._epsilon_for(ceiling, delta) == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.long
@given(EPSILONS, st.floats(0, 0.2), st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=300)
def test_the_ceiling_is_where_probabilities_stop_being_private(epsilon, delta, inside, outside):
    pairs = ((inside, outside), (outside, inside), (40 - inside, 40 - outside), (40 - outside, 40 - inside))
    excess = max(p / 40 - math.exp(epsilon) * q / 40 - delta for p, q in pairs)
    ceiling = EventEvidence(Proportion(1, 2), Proportion(outside * 10**12, 40 * 10**12)).ceiling(epsilon, delta)
    if excess <= 0:
        assert inside / 40 <= ceiling + 1e-12
    if excess > 1e-3 and inside >= outside:
        assert inside / 40 > ceiling


def test_the_ceiling_can_be_attained():
    # Outcomes of a mechanism with epsilon ln 3: 1/4 and 3/4.
    strangers = Proportion(10**12, 4 * 10**12)
    assert EventEvidence(Proportion(1, 1), strangers).ceiling(math.log(3)) == pytest.approx(3 / 4, abs=1e-5)


def test_few_non_members_leave_slack_below_the_ceiling():
    assert EventEvidence(Proportion(1, 1), Proportion(25, 100)).ceiling(0) == pytest.approx(
        Proportion(25, 100).interval()[1]
    )


@pytest.mark.parametrize(("members", "strangers"), [(60, 60), (99, 100), (3, 5)])
def test_equal_shares_imply_nothing(members, strangers):
    implied = EventEvidence(Proportion(members, 100), Proportion(strangers, 100)).implied()
    assert implied.low == 0
    assert implied.high > 0


def test_the_interval_of_an_implied_epsilon_covers_it():
    epsilon, trials = 1.0, 120
    inside, outside = math.e / (1 + math.e), 1 / (1 + math.e)
    laws = [binom.pmf(np.arange(trials + 1), trials, chance) for chance in (inside, outside)]
    missed = 0.0
    for hits, others in itertools.product(range(0, trials + 1, 1), repeat=2):
        weight = laws[0][hits] * laws[1][others]
        if weight < 1e-7:
            continue
        implied = EventEvidence(Proportion(hits, trials), Proportion(others, trials)).implied()
        missed += weight * (not implied.low <= epsilon <= implied.high)
    assert missed <= 0.05


def test_evidence_counts_in_both_directions_and_by_its_contrary():
    rare = Proportion(0, 1000)
    for members, strangers in ((Proportion(500, 1000), rare), (rare, Proportion(500, 1000))):
        assert EventEvidence(members, strangers).implied().low > 4
        contrary = EventEvidence(*(Proportion(each.trials - each.hits, each.trials) for each in (members, strangers)))
        assert contrary.implied().low > 4


def test_delta_explains_rare_events():
    found = EventEvidence(Proportion(30, 10_000), Proportion(0, 10_000))
    assert found.implied().low > 0.1
    assert found.implied(delta=0.01).low == 0


@pytest.mark.long
def test_uninformative_scores_imply_nothing():
    rng = np.random.default_rng(7)
    low = [ScoreEvidence(rng.normal(size=400), rng.normal(size=400)).implied().low for _ in range(40)]
    assert sum(each > 0 for each in low) <= 6


def test_scores_of_a_private_mechanism_stay_below_its_epsilon():
    rng = np.random.default_rng(3)
    noise = rng.laplace(0, 1, (2, 20_000))  # sensitivity 1: epsilon 1
    scores = ScoreEvidence(noise[0] + 1, noise[1])
    assert 0.7 < scores.implied().low <= 1
    assert scores.success <= scores.ceiling(1)


def test_the_highest_area_is_that_of_randomized_response():
    yes = math.e / (1 + math.e)
    members, strangers = np.array([1.0] * 7311 + [0.0] * 2689), np.array([1.0] * 2689 + [0.0] * 7311)
    assert ScoreEvidence(members, strangers).success == pytest.approx(ScoreEvidence([0.0], [0.0]).ceiling(1), abs=1e-4)
    assert yes == pytest.approx(0.7311, abs=1e-4)
    assert ScoreEvidence([0.0], [0.0]).ceiling(0, delta=0) == pytest.approx(0.5)
    assert ScoreEvidence([0.0], [0.0]).ceiling(0, delta=0.1) == pytest.approx(1 - 0.9**2 / 2)


@pytest.mark.parametrize("bad", [[], [[1.0]], [math.nan]])
def test_scores_must_be_one_number_for_each(bad):
    with pytest.raises(ValueError, match="members must be a list of scores"):
        ScoreEvidence(np.array(bad), np.array([1.0]))


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1])
def test_a_prior_of_certainty_is_refused(prior):
    with pytest.raises(ValueError, match="prior"):
        GuessEvidence(1, 2, prior=prior)


def test_few_people_prove_little():
    assert ScoreEvidence([1.0, 2.0], [0.0, 0.0]).implied() == ImpliedEpsilon(0.0, 0.0, math.inf)
    assert GuessEvidence(3, 3).implied().low == 0


def test_the_interval_of_an_area_covers_it():
    rng = np.random.default_rng(11)
    truth = 0.760250  # of two normal laws one deviation apart
    inside = 0
    for _ in range(500):
        low, high = ScoreEvidence(rng.normal(1, 1, 60), rng.normal(0, 1, 60)).interval()
        inside += low <= truth <= high
    assert 0.92 <= inside / 500 <= 0.98


def test_a_huge_epsilon_allows_everything():
    for evidence in (
        GuessEvidence(1, 2),
        EventEvidence(Proportion(1, 2), Proportion(1, 2)),
        ScoreEvidence([1.0], [0.0]),
    ):
        assert evidence.ceiling(10_000.0) == pytest.approx(1)


@given(st.floats(0.0, 4.0), st.floats(0, 0.2), st.integers(20, 39))
@settings(max_examples=200)
def test_no_private_rule_guesses_bits_better_than_the_ceiling(epsilon, delta, tenths):
    prior, rise = tenths / 40, math.exp(epsilon)
    grid = np.linspace(0, 1, 101)
    a, b = np.meshgrid(grid, grid)  # right if set, right if not
    private = (a <= rise * (1 - b) + delta) & (b <= rise * (1 - a) + delta)
    best = (prior * a + (1 - prior) * b)[private].max()
    ceiling = BitEvidence(Proportion(1, 2), Proportion(1, 2), prior=prior).ceiling(epsilon, delta)
    assert best <= ceiling + 1e-9
    assert ceiling <= best + 0.02


def test_a_leak_is_detected_although_the_prior_alone_could_explain_the_success():
    bits = BitEvidence(Proportion(400, 460), Proportion(25, 52), prior=0.9)
    assert bits.success < bits.baseline
    assert bits.implied().low > 0.5
