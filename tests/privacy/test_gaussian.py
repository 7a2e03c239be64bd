"""The textbook and the analytic Gaussian mechanism, and the threshold game."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.kernel.mechanism import Gaussian
from discreet.privacy import analytic_gaussian_sigma, classic_gaussian_sigma, gaussian_delta, threshold_game


def exact_delta(ratio, epsilon):
    with mpmath.workdps(60):
        r, e = mpmath.mpf(ratio), mpmath.mpf(epsilon)

        def tail(x):
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        return float(tail(e * r - 1 / (2 * r)) - mpmath.exp(e) * tail(e * r + 1 / (2 * r)))


@settings(deadline=None)
@given(st.floats(0.02, 50), st.floats(0, 20))
def test_the_continuous_delta_is_accurate(sigma, epsilon):
    assert gaussian_delta(sigma, epsilon) == pytest.approx(exact_delta(sigma, epsilon), rel=1e-9, abs=1e-300)


def test_delta_depends_on_sigma_over_sensitivity():
    assert gaussian_delta(6, 1, sensitivity=3) == gaussian_delta(2, 1)
    assert gaussian_delta(1e-3, 0.5) == pytest.approx(1)


@pytest.mark.parametrize(("delta", "turn"), [(1e-2, 6.8), (1e-3, 7.5), (1e-6, 8.8), (1e-9, 9.6)])
def test_the_textbook_is_private_up_to_an_epsilon_and_not_beyond(delta, turn):
    for epsilon, private in ((0.5, True), (1, True), (turn - 0.2, True), (turn + 0.2, False), (10, False)):
        sigma = classic_gaussian_sigma(1, epsilon, delta)
        assert (gaussian_delta(sigma, epsilon) <= delta) is private, epsilon


def test_the_textbook_is_not_private_at_epsilon_10_on_integers_either():
    sigma = classic_gaussian_sigma(1000, 10, 1e-6)
    mechanism = Gaussian(sigma)
    laws = privacy.output(mechanism, 0), privacy.output(mechanism, 1000)
    assert privacy.hockey_stick(*laws, 10) > 1.5e-6


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 10])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-9])
def test_the_analytic_sigma_is_the_least(epsilon, delta):
    sigma = analytic_gaussian_sigma(1, epsilon, delta)
    assert gaussian_delta(sigma, epsilon) <= delta < gaussian_delta(sigma * (1 - 1e-9), epsilon)
    if epsilon <= 1:
        assert sigma < classic_gaussian_sigma(1, epsilon, delta)
    assert analytic_gaussian_sigma(7, epsilon, delta) == pytest.approx(7 * sigma)


def test_wrong_numbers_are_refused():
    for call in (classic_gaussian_sigma, analytic_gaussian_sigma):
        with pytest.raises(ValueError, match="delta"):
            call(1, 1, 0)
        with pytest.raises(ValueError, match="epsilon"):
            call(1, 0, 1e-6)
        with pytest.raises(ValueError, match="sensitivity"):
            call(0, 1, 1e-6)
    with pytest.raises(ValueError, match="sigma"):
        gaussian_delta(0, 1)
    with pytest.raises(ValueError, match="epsilon"):
        gaussian_delta(1, -1)


def test_without_noise_the_attacker_always_wins_the_threshold_game():
    game = threshold_game(0)
    assert (game.false_positive_rate, game.true_positive_rate, game.log_ratio, game.epsilon) == (
        0,
        1,
        math.inf,
        math.inf,
    )


@pytest.mark.parametrize(
    ("width", "zeros", "one", "ratio", "epsilon"),
    [(Fraction(1, 300), 0.112, 0.888, 2.07, 3), ("3/100", 0.423, 0.577, 0.31, Fraction(1, 3))],
)
def test_the_threshold_game_of_a_hundred_people(width, zeros, one, ratio, epsilon):
    game = threshold_game(width, threshold=0.005)
    assert game == threshold_game(width)
    assert (round(game.false_positive_rate, 3), round(game.true_positive_rate, 3), round(game.log_ratio, 2)) == (
        zeros,
        one,
        ratio,
    )
    assert game.false_positive_rate == pytest.approx(math.exp(-0.005 / float(Fraction(width))) / 2, abs=1e-5)
    assert game.epsilon == epsilon


@settings(max_examples=50, deadline=None)
@given(st.fractions("1/1000", 1, max_denominator=1000), st.fractions("-1/10", "1/10", max_denominator=1000))
def test_the_evidence_at_one_threshold_never_exceeds_epsilon(width, threshold):
    game = threshold_game(width, threshold=threshold)
    assert 0 <= game.log_ratio <= game.epsilon + 1e-9


def test_a_threshold_that_nobody_or_everybody_passes_proves_nothing():
    assert threshold_game(0, threshold=1).log_ratio == 0
    assert threshold_game(0, threshold=-1).log_ratio == 0
    assert threshold_game("1/1000", threshold=1).log_ratio == pytest.approx(10)  # also where both are 0 to a float
    assert threshold_game("1/1000", threshold=100).log_ratio == 0  # and where they are not even computed


def test_a_wrong_game_is_refused():
    with pytest.raises(ValueError, match="width"):
        threshold_game(-1)
    with pytest.raises(ValueError, match="n must be"):
        threshold_game(1, n=0)
