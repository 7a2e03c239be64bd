import math
from fractions import Fraction

import numpy as np
import pytest
from readable import flaws

import discreet as dc
from discreet import attacks
from discreet.attacks.data.numeric_data import TwoSets
from discreet.attacks.queries.threshold_game import guess_by_threshold

SURE = 1 - 1e-9


def test_the_non_private_mean_always_discloses_membership():
    result = attacks.threshold_game(random_state=0)
    assert (result.success, result.baseline, result.ceiling) == (1.0, 0.5, None)
    assert result.implied.estimate == math.inf
    assert result.details["threshold T"] == 0.005


@pytest.mark.long
def test_the_games_of_the_report_have_its_numbers():
    # Noise of width 1/(3n), which is epsilon 3, and 3/n, which is 1/3.
    for epsilon, zeros, one, ratio in (("3", 0.112, 0.888, 2.07), ("1/3", 0.423, 0.577, 0.31)):
        told = attacks.threshold_game(defence="curator", epsilon=epsilon, random_state=0).details
        names = ("above T without the person", "above T with the person")
        assert [round(told[f"{name}, in theory"], 3) for name in names] == [zeros, one]
        assert round(told["log-ratio at T, a lower bound on epsilon"], 2) == ratio
        for name in names:  # 1,000 plays of each: six and a half standard deviations
            assert abs(told[f"{name}, observed"] - told[f"{name}, in theory"]) < 0.11
        exact = dc.privacy.threshold_game(1 / (100 * Fraction(epsilon)))
        assert abs(exact.false_positive_rate - told[f"{names[0]}, in theory"]) < 1e-5


def test_a_little_noise_still_discloses_membership_in_most_plays():
    result = attacks.threshold_game(defence="easy", random_state=0)
    assert 0.86 < result.success < 0.91
    assert 1.7 < result.implied.low < 2.07 < result.implied.high < 2.4


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["1/10", 1, 3])
def test_the_curator_stays_within_its_claim(epsilon):
    result = attacks.threshold_game(defence="curator", epsilon=epsilon, random_state=0)
    assert result.success <= result.ceiling + 0.07
    assert result.evidence.implied(confidence=SURE).low <= result.epsilon


def test_too_little_noise_is_caught():
    rng = np.random.default_rng(0)
    result = attacks.threshold_game(
        defence=lambda values: values.mean() + rng.laplace(0, 1 / 100), epsilon="1/10", random_state=0
    )
    assert result.defence == "own"
    assert result.evidence.implied(confidence=SURE).low > 0.1


def test_the_same_random_state_plays_the_same_game():
    one, other = (attacks.threshold_game(defence="easy", random_state=5) for _ in range(2))
    assert one.evidence == other.evidence
    assert one.details == other.details


def test_other_sets_can_be_played():
    sets = TwoSets([0.2, 0.4], [0.2, 0.9])
    assert attacks.threshold_game(sets, random_state=0, plays=50).success == 1.0
    assert round(sets.threshold, 3) == 0.425


def test_the_guess_compares_the_release_with_the_threshold():
    assert guess_by_threshold(np.array([-1.0, 0.005, 1.0]), 0.005).tolist() == [False, False, True]


def test_sets_that_differ_in_more_than_one_element_are_refused():
    with pytest.raises(ValueError, match="differ in exactly one element"):
        TwoSets([0, 0, 0], [1, 1, 0])
    with pytest.raises(ValueError, match="differ in exactly one element"):
        TwoSets([0, 0], [0, 0, 1])


def test_numbers_out_of_range_and_swapped_sets_are_refused():
    with pytest.raises(ValueError, match="without must be a non-empty list of numbers"):
        TwoSets([0, 2], [0, 1])
    for rubbish in (["a"], [[0], [0, 1]], None, "text", [0, None]):
        with pytest.raises(ValueError, match="without must be"):
            TwoSets(rubbish, [0, 1])
    with pytest.raises(ValueError, match="swap them"):
        TwoSets([1, 0], [0, 0])


def test_data_of_another_kind_and_a_defence_without_a_number_are_refused():
    with pytest.raises(TypeError, match="data must be TwoSets"):
        attacks.threshold_game([0, 1])
    for rubbish in (None, "much", [1.0], np.zeros((2, 2)), math.nan, math.inf, int):
        with pytest.raises((TypeError, ValueError), match="the defence must return a number"):
            attacks.threshold_game(defence=lambda values, answer=rubbish: answer)
    with pytest.raises(ValueError, match="random_state must be None or a non-negative integer"):
        attacks.threshold_game(random_state=-1)


def test_an_epsilon_whose_tail_underflows_is_computed_by_logarithms():
    result = attacks.threshold_game(defence="curator", epsilon=10**6, random_state=0, plays=10)
    assert result.success == 1
    assert abs(result.details["log-ratio at T, a lower bound on epsilon"] - 500_000) < 1


@pytest.mark.long
def test_the_plot_shows_both_distributions_and_the_threshold():
    pytest.importorskip("matplotlib")
    for result in (attacks.threshold_game(random_state=0), attacks.threshold_game(defence="easy", random_state=0)):
        figure = result.figure()
        axes = figure.axes[0]
        assert axes.get_lines()[-1].get_xdata() == [0.005, 0.005]
        assert "threshold 0.005" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(axes.get_lines()) == 3
    assert flaws(figure) == []
