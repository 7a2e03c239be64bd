"""The audit by a single run."""

import math
import time
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

import discreet as dc
from discreet import audit
from discreet.audit.canaries import p_value_bound


def survey(m, epsilon, seed):
    """Randomized response of one bit each, as scores: what everybody said."""
    rng = np.random.default_rng(seed)
    coins = rng.integers(0, 2, m).astype(bool)
    truth = rng.random(m) < 1 / (1 + math.exp(-epsilon))
    return np.where(truth, coins, ~coins) + 0.01 * rng.random(m), coins


def slow_chance(right, guesses, canaries, *, epsilon, delta):
    """The formula, word by word."""
    q = 1 / (1 + math.exp(-epsilon))
    law = [math.comb(guesses, k) * q**k * (1 - q) ** (guesses - k) for k in range(guesses + 1)]
    beta = math.fsum(law[right:])
    alpha = max((math.fsum(law[max(0, right - i) : right]) / i for i in range(1, canaries + 1)), default=0)
    return min(1, beta + 2 * canaries * delta * alpha)


@pytest.mark.parametrize(("right", "guesses", "canaries"), [(60, 100, 100), (30, 30, 200), (1, 10, 10), (9, 20, 50)])
def test_the_probability_is_that_of_the_formula(right, guesses, canaries):
    for epsilon, delta in product((0.0, 0.3, 2.0), (0.0, 1e-6, 1e-3, 0.05)):
        found = p_value_bound(right, guesses, canaries, epsilon=epsilon, delta=delta)
        assert found == pytest.approx(slow_chance(right, guesses, canaries, epsilon=epsilon, delta=delta), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_randomized_response_is_found_near_its_epsilon_and_not_above(epsilon):
    for seed in range(10):
        result = audit.one_run(*survey(20_000, epsilon, seed), delta=0, claim=epsilon, confidence=1 - 1e-9)
        assert result.holds
        assert result.epsilon_low > 0.85 * epsilon - 0.05


def test_too_little_noise_is_caught_by_one_run():
    assert not audit.one_run(*survey(5000, 2, 0), delta=1e-6, claim=1).holds


def test_the_delta_term_matters():
    scores, coins = survey(1000, 1, 0)
    without, with_it = (audit.one_run(scores, coins, delta=delta).epsilon_low for delta in (0, 1e-3))
    assert with_it < without - 0.03
    # A release that tells everything with probability delta is (0, delta)-private; rarely it looks like epsilon 5.
    everything = audit.one_run(coins.astype(float), coins, delta=0.06)
    assert everything.epsilon_low < 1 < audit.one_run(coins.astype(float), coins, delta=0).epsilon_low


def test_a_release_that_discloses_all_with_probability_delta_is_not_refuted():
    # With m canaries and a delta of its own for each, somebody who drops 2·m·delta·alpha calls this a leak too often.
    m, delta, alarms, dropped = 50, 0.02, 0, 0
    rng = np.random.default_rng(0)
    for _ in range(2000):
        coins = rng.integers(0, 2, m).astype(bool)
        told = rng.random() < m * delta  # one failure for all together, which group privacy allows
        scores = coins.astype(float) if told else rng.random(m)
        right = int(((scores > np.median(scores)) == coins).sum())
        dropped += p_value_bound(right, m, m, epsilon=0, delta=0) < 0.05
        alarms += p_value_bound(right, m, m, epsilon=0, delta=delta) < 0.05
    assert dropped > 1000
    assert alarms <= 150


def test_fewer_guesses_select_the_clearest_canaries():
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, 10_000).astype(bool)
    exposed = rng.random(10_000) < 0.02
    scores = np.where(exposed, np.where(coins, 10.0, -10.0), rng.normal(size=10_000))
    all_of_them, some = (audit.one_run(scores, coins, 0, guesses=number).epsilon_low for number in (None, 100))
    assert all_of_them < 0.2
    assert some > 3


def test_several_numbers_of_guesses_cost_confidence():
    scores, coins = survey(2000, 1, 3)
    one, several = (audit.one_run(scores, coins, 0, guesses=numbers) for numbers in (500, [500] * 7))
    assert several.epsilon_low < one.epsilon_low
    assert several.details["guess counts tried"] == 7


@pytest.mark.long
def test_false_alarms_of_several_numbers_are_still_as_rare_as_stated():
    alarms = 0
    for seed in range(400):
        scores, coins = survey(200, 0, seed)
        alarms += audit.one_run(scores, coins, 0, guesses=[20, 40, 60, 80, 100, 140, 200]).epsilon_low > 0
    assert alarms <= binom.ppf(1 - 1e-9, 400, 0.05)


@pytest.mark.long
def test_a_million_canaries_are_handled():
    scores, coins = survey(1_000_000, 1, 0)
    began = time.process_time()
    result = audit.one_run(scores, coins, delta=1e-9)
    assert 0.9 < result.epsilon_low < 1.01
    assert audit.one_run(coins.astype(float), coins, delta=1e-12).epsilon_low > 7
    assert time.process_time() - began < 10


def test_equal_scores_are_not_distinguished_by_their_order():
    coins = np.arange(1000) < 500
    assert audit.one_run(np.zeros(1000), coins, 0).epsilon_low < 0.3
    assert audit.one_run(np.zeros(1000), ~coins, 0).epsilon_low < 0.3


def test_everything_wrong_or_nothing_special_shows_nothing():
    coins = np.arange(100) % 2 == 0
    assert audit.one_run(~coins * 1.0, coins, 0).epsilon_low == 0
    assert audit.one_run(np.zeros(1), [True], 0).epsilon_low == 0


def test_a_claim_may_be_a_budget():
    scores, coins = survey(100, 1, 0)
    result = audit.one_run(scores, coins, 0, claim=dc.Budget(1, "1e-5"))
    assert (result.claim, result.delta) == (1, 1e-5)


def test_the_text_states_what_was_shown():
    scores, coins = survey(5000, 1, 0)
    with_claim = {claim: audit.one_run(scores, coins, 0, claim=claim).direction for claim in ("1/2", 2)}
    assert with_claim["1/2"] == "more than the claim allows"
    assert with_claim[2].endswith("not more than the claim allows")
    assert audit.one_run(scores, coins, 0).direction == "more than random guessing allows"
    useless = audit.one_run(np.random.default_rng(0).random(5000), coins, 0, claim=1)
    assert useless.direction == "not more than random guessing allows"
    assert not useless.notes


def test_reversed_scores_are_suspected():
    scores, coins = survey(2000, 1, 0)
    assert "reversed" in str(audit.one_run(-scores, coins, 0, claim=1))
    assert "reversed" not in str(audit.one_run(scores, coins, 0, claim=1))


@pytest.mark.parametrize("delta", [0, 1e-4])
def test_one_correct_guess_more_than_allowed_refutes(delta):
    scores, coins = survey(2000, 2, 0)
    seen = audit.one_run(scores, coins, delta, guesses=500, claim=1).plot_data
    assert set(seen.allowed) == {"by guessing", "at epsilon 1"}
    for epsilon, most in zip((0, 1), seen.allowed.values(), strict=True):
        assert p_value_bound(most, 500, 2000, epsilon=epsilon, delta=delta) >= 0.05
        assert p_value_bound(most + 1, 500, 2000, epsilon=epsilon, delta=delta) < 0.05


def test_the_picture_of_one_run_has_right_and_allowed_guesses():
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    scores, coins = survey(2000, 2, 0)
    left, _ = audit.one_run(scores, coins, 0, claim=1).figure().axes
    assert [label.get_text() for label in left.get_yticklabels()] == [
        "correct",
        "allowed\nby guessing",
        "allowed\nat epsilon 1",
    ]
    assert len(left.patches) == 3


@pytest.mark.parametrize(
    ("scores", "coins", "more", "message"),
    [
        ([], [], {}, "scores must have one number"),
        ([1.0, math.nan], [True, False], {}, "no NaN"),
        ([1.0, 2.0], [True], {}, "canaries must have one boolean"),
        ([1.0, 2.0], [1, 2], {}, "canaries must be True"),
        ([1.0, 2.0], [1, 0], {"guesses": 3}, "guesses must be between 1"),
        ([1.0, 2.0], [1, 0], {"guesses": 0}, "guesses must be at least 1"),
        ([1.0, 2.0], [1, 0], {"guesses": []}, "guesses must be between 1"),
        ([1.0, 2.0], [1, 0], {"confidence": 0}, "confidence must be"),
        ("high", [1, 0], {}, "scores must have one number"),
        ([[1.0, 2.0]], [[1, 0]], {}, "scores must have one number"),
        ([1.0, [2.0]], [1, 0], {}, "scores must have one number"),
        (None, [1, 0], {}, "scores must have one number"),
        ([1.0, 2.0], ["in", "out"], {}, "canaries must be True"),
        ([1.0, 2.0], None, {}, "canaries must have one boolean"),
        ([1.0, 2.0], [1, 0], {"guesses": "all"}, "guesses must be an integer"),
        ([1.0, 2.0], [1, 0], {"guesses": 1.5}, "guesses must be an integer"),
    ],
)
def test_bad_input_is_refused(scores, coins, more, message):
    with pytest.raises((TypeError, ValueError), match=message):
        audit.one_run(scores, coins, 0, **more)
