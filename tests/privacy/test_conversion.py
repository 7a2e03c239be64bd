"""Losses convert tightly and never too low, to an epsilon and to groups of units."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss, zcdp_rho
from discreet.privacy.conversion import conversion_delta, exp_up, zcdp_epsilon
from tests.privacy.zcdp_reference import best_bound, gaussian_delta, real

amounts = st.fractions(0, 10, max_denominator=1000)


CENT = Loss(0.01)


@pytest.mark.long
@given(amounts, amounts, st.integers(1, 12))
@settings(deadline=None)
def test_a_group_of_k_costs_k_epsilon_and_k_squared_rho(epsilon, rho, k):
    loss = privacy.for_group(Loss(epsilon, rho), k)
    assert loss.epsilon == k * epsilon
    assert loss.rho == min(k * k * rho, (k * epsilon) ** 2 / 2)
    assert loss.delta == 0
    assert privacy.for_group(Loss(None, rho), k) == Loss(None, k * k * rho)


@pytest.mark.long
@given(st.fractions(0, 4, max_denominator=100), st.fractions(0, Fraction(1, 1000)), st.integers(1, 12))
@settings(deadline=None)
def test_the_delta_of_a_group_is_never_below_its_formula(epsilon, delta, k):
    got = privacy.for_group(Loss(epsilon, None, delta), k)
    with mpmath.workdps(80):
        e, d = real(epsilon), real(delta)
        exact = d * k if not epsilon else d * mpmath.expm1(k * e) / mpmath.expm1(e)
        assert real(got.delta) >= min(1, exact) * (1 - mpmath.mpf(10) ** -60)
        assert real(got.delta) <= min(1, exact) * (1 + mpmath.mpf(10) ** -30) + mpmath.mpf(10) ** -39
    if k == 1:
        assert got == Loss(epsilon, None, delta)


@pytest.mark.long
@given(st.fractions(0, 2, max_denominator=20), st.integers(2, 5))
@settings(deadline=None)
def test_a_group_with_a_delta_has_the_rho_of_its_epsilon_only(epsilon, k):
    """The k² of zCDP is proved without a delta; with one, what is known is the (epsilon, delta) of the group."""
    loss = privacy.for_group(Loss(epsilon, epsilon**2 / 8, "1e-9"), k)
    assert loss.rho == (k * epsilon) ** 2 / 2
    one = Loss(epsilon, epsilon**2 / 8, "1e-9")
    assert privacy.for_group(one, 1) == one


def test_the_group_bound_of_a_delta_is_attained():
    """The law that loses delta outright and epsilon otherwise, passed on k times: both sides of the sum meet."""
    epsilon, delta, k = math.log(2), 1e-3, 4
    probability = 0.0
    for _ in range(k):
        probability = math.exp(epsilon) * probability + delta
    assert float(privacy.for_group(Loss(Fraction(epsilon), None, delta), k).delta) == pytest.approx(
        probability, rel=1e-12
    )


def test_a_group_without_a_known_bound_is_refused():
    loss = Loss(None, 1, "1e-9")
    assert privacy.for_group(loss, 1) == loss
    with pytest.raises(ValueError, match="size"):
        privacy.for_group(loss, 2)


def test_replacing_one_unit_costs_twice_the_epsilon():
    assert privacy.for_substitution(Loss("1/10")).epsilon == Fraction(1, 5)
    assert privacy.for_substitution(Loss("1/10")).rho == 4 * Loss("1/10").rho
    assert privacy.for_substitution(Loss(None, 1)).rho == 4


def test_large_groups_are_computed_quickly():
    assert privacy.for_group(Loss(1000, None, "1e-9"), 200).delta == 1


PAIRS = [(r, d) for r in ("1e-8", "1/5000", "1/100", "1/2", "3", "50") for d in ("1e-2", "1e-9", "1e-30")]


@pytest.mark.parametrize(("rho", "delta"), PAIRS)
def test_conversion_is_tight_and_never_below_the_truth(rho, delta):
    rho, delta = Fraction(rho), Fraction(delta)
    epsilon = zcdp_epsilon(rho, delta)
    assert privacy.to_epsilon(Loss(None, rho), delta) == epsilon
    with mpmath.workdps(40):
        best = best_bound(rho, delta)
        assert best * (1 - mpmath.mpf(10) ** -20) <= real(epsilon) <= best * (1 + mpmath.mpf(10) ** -9) + 2e-12
        if epsilon:
            assert gaussian_delta(real(rho), real(epsilon)) <= real(delta)
            # rounded up by less than 1e-12, which the way back sees
            assert abs(zcdp_rho(epsilon, delta) / rho - 1) < Fraction(1, 10**4 if rho < Fraction(1, 10**6) else 10**8)


@pytest.mark.long
@given(st.fractions(Fraction(1, 1000), 20, max_denominator=10**4), st.integers(1, 40))
@settings(max_examples=30, deadline=None)
def test_conversion_there_and_back_is_the_identity(epsilon, digits):
    delta = Fraction(1, 10**digits)
    rho = zcdp_rho(epsilon, delta)
    assert epsilon - Fraction(1, 10**9) * (1 + epsilon) <= zcdp_epsilon(rho, delta) <= epsilon + Fraction(1, 10**11)
    with mpmath.workdps(60):
        assert gaussian_delta(real(rho), real(epsilon)) <= real(delta)
        assert best_bound(rho, delta) <= real(epsilon) * (1 + mpmath.mpf(10) ** -25)


def test_conversion_uses_the_tighter_formula():
    assert privacy.to_epsilon(Loss(1), 0) == 1
    assert privacy.to_epsilon(Loss(1), "1e-9") == 1  # its rho of 1/2 would cost more
    many = sum([CENT] * 299, ZERO_LOSS)
    assert Fraction(99, 100) < privacy.to_epsilon(many, "1e-9") <= 1 < many.epsilon
    assert privacy.to_epsilon(Loss(None, 0), "1e-9") == 0
    own = Loss(1, "1/100", "1e-9")
    assert privacy.to_epsilon(own, "1e-9") == 1  # nothing is left for the rho
    assert privacy.to_epsilon(own, "2e-9") == min(Fraction(1), zcdp_epsilon(Fraction(1, 100), Fraction(1, 10**9)))
    with pytest.raises(ValueError, match="delta must be at least"):
        privacy.to_epsilon(own, "1e-10")
    for nothing_left, delta in ((Loss(None, 1, "1e-9"), "1e-9"), (Loss(None, 1), 0)):
        with pytest.raises(ValueError, match="delta must be above"):
            privacy.to_epsilon(nothing_left, delta)


def test_a_group_with_an_enormous_epsilon_has_a_delta_of_one():
    group = privacy.for_group(Loss(300, delta="1e-9"), 4)
    assert (group.epsilon, group.rho, group.delta) == (1200, 1200**2 / 2, 1)


def test_no_rho_is_no_epsilon_at_the_smallest_delta():
    assert zcdp_epsilon(Fraction(0), Fraction(1, 10**30)) == 0


def test_a_very_small_delta_of_a_group_is_rounded_up():
    delta = Fraction(1, 3 * 10**30)
    assert 2 * delta <= privacy.for_group(Loss(0, delta=delta), 2).delta < 2 * delta + Fraction(2, 10**60)


def test_exponentials_are_rounded_up():
    near_zero = [sign * Fraction(1, 10**k) for k in range(1, 30) for sign in (-1, 1)]
    numbers = [Fraction(n, d) * Fraction(10) ** k for n in (1, 3, 777) for d in (1, 7, 1000) for k in range(-1, 3)]
    with mpmath.workprec(800):
        for x in [*numbers, *(-x for x in numbers), Fraction(0), Fraction(700), *near_zero]:
            if abs(x) < 2000:
                over = real(exp_up(x)) / mpmath.exp(real(x))
                assert 1 <= over < 1 + mpmath.mpf(2) ** -100 * mpmath.exp(max(0, -real(x))), x


@pytest.mark.parametrize("order", ["1.001", "3", "40", "1e6"])
def test_floats_only_suggest_the_order_of_a_conversion(order, monkeypatch):
    monkeypatch.setattr("discreet.privacy.conversion.best_order", lambda delta, objective: Fraction(order))
    rho, delta = Fraction(1, 50), Fraction(1, 10**6)
    with mpmath.workdps(40):
        assert real(zcdp_epsilon(rho, delta)) >= best_bound(rho, delta)


@pytest.mark.parametrize(
    "bad", [-1, math.nan, math.inf, -math.inf, True, "one", "", "1/0", [1], np.True_, "1e9999", 1j]
)
def test_bad_numbers_are_refused_by_name(bad):
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        privacy.cost_of(Budget(1), bad)
    with pytest.raises((ValueError, TypeError), match="delta"):
        privacy.to_epsilon(Loss(1), bad)


def test_other_invalid_arguments_are_refused():
    for make, name in (
        (lambda: privacy.cost_of(Budget(1), 0), "epsilon"),
        (lambda: privacy.for_group(Loss(1), 0), "size"),
        (lambda: privacy.for_group(Loss(1), 1.5), "size"),
        (lambda: privacy.for_group(Loss(1), True), "size"),  # noqa: FBT003
    ):
        with pytest.raises((ValueError, TypeError), match=name):
            make()


def test_the_cost_of_an_epsilon_is_pure_or_the_rho_that_the_budget_converts():
    assert privacy.cost_of(Budget(1), "1/10") == Loss("1/10")
    budget = Budget(1, "1e-6", discover="1/4")
    assert privacy.cost_of(budget, "1/10") == Loss(None, zcdp_rho(Fraction(1, 10), conversion_delta(budget)))
