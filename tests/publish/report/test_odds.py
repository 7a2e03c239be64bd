"""The odds are upper bounds of what the best outsider achieves, and exact where they can be."""

import math
from fractions import Fraction

import pytest

from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.privacy import hockey_stick, output
from discreet.publish.report.odds import (
    epsilons_of_budget,
    epsilons_of_loss,
    guess_fact,
    guess_participation,
    loss_pairs,
    odds_text,
)

ONE = Sensitivity(1, 1)


def best_guess(mechanism, first, second):
    """Return the share of right guesses of the best test between two outputs: a half, and half of their distance."""
    return 0.5 + hockey_stick(output(mechanism, first), output(mechanism, second), 0) / 2


@pytest.mark.parametrize("mechanism", [Laplace(1), Laplace(10), Gaussian(1), Gaussian(5), Gaussian(30)], ids=str)
def test_no_outsider_does_better_than_the_odds(mechanism):
    pairs = loss_pairs(mechanism.loss(ONE))
    assert best_guess(mechanism, 0, 1) <= guess_participation(pairs) + 1e-12
    assert best_guess(mechanism, -1, 1) <= guess_fact(pairs) + 1e-12


@pytest.mark.parametrize("mechanism", [Gaussian(1), Gaussian(5), Gaussian(30)], ids=str)
def test_the_odds_from_rho_are_not_far_from_the_best_outsider(mechanism):
    advantage = guess_participation(loss_pairs(mechanism.loss(ONE))) - 0.5
    assert advantage <= 2.2 * (best_guess(mechanism, 0, 1) - 0.5)


def test_randomised_response_attains_the_odds_of_a_pure_epsilon():
    truth = math.e / (1 + math.e)  # the best outsider believes the report
    assert guess_participation([(Fraction(1), Fraction(0))]) == pytest.approx(truth, abs=1e-12)


def test_delta_counts_in_full():
    sure, delta = guess_participation([(Fraction(1), Fraction(0))]), Fraction(1, 10)
    # With probability delta the release is the truth; otherwise it is randomised response.
    assert guess_participation([(Fraction(1), delta)]) == pytest.approx(0.9 * sure + 0.1, abs=1e-12)


def test_odds_are_rounded_up_and_never_certain_unless_they_are():
    assert odds_text(0.5) == "50 of 100 cases"
    assert odds_text(0.7300001) == "74 of 100 cases"
    assert odds_text(0.9911) == "992 of 1,000 cases"
    assert odds_text(0.999999999) == "all cases"


def test_a_guarantee_that_allows_everything_is_not_given_odds():
    assert odds_text(guess_participation([])) == "all cases"
    assert guess_fact([(Fraction(800), Fraction(0))]) == 1


def test_a_loss_has_a_smaller_epsilon_at_a_larger_delta():
    pairs = epsilons_of_loss(Loss(None, "1/100", "1e-8"), Fraction(1, 10**6))
    assert [float(delta) for _, delta in pairs] == [1e-5, 1e-6, 1e-7]  # above that of the loss itself
    assert sorted(pairs) == pairs


def test_the_epsilon_of_a_budget_never_falls_below_what_pure_charges_may_use():
    budget = Budget(2, "1e-9", discover="1/2")
    pairs = epsilons_of_budget(budget)
    assert (Fraction(2), Fraction(1, 10**9)) in pairs
    assert min(epsilon for epsilon, _ in pairs) == 2
    smaller = Budget(2, "1e-7", discover="1/1000000")
    ((epsilon, _),) = [pair for pair in epsilons_of_budget(smaller) if pair[1] == Fraction(1, 10**9)]
    assert epsilon > 2


def test_a_pure_budget_has_an_epsilon_at_every_delta():
    assert all(epsilon <= 1 for epsilon, _ in epsilons_of_budget(Budget(1)))
