"""Losses add exactly, convert tightly and never too low; a budget stops where it says."""

import dataclasses
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize
from scipy.special import log_ndtr, ndtr

from discreet import privacy
from discreet.kernel import loss as loss_module
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss, zcdp_rho
from discreet.privacy.conversion import conversion_delta, zcdp_epsilon
from tests.privacy.zcdp_reference import best_bound, real

amounts = st.fractions(0, 10, max_denominator=1000)
small = st.fractions(0, Fraction(1, 2), max_denominator=10**9)
CENT = Loss(0.01)


@pytest.mark.long
@given(amounts)
def test_pure_loss_implies_half_its_square_in_rho(epsilon):
    assert Loss(epsilon) == Loss(epsilon, epsilon**2 / 2)
    assert Loss(epsilon, epsilon**2 + 1).rho == epsilon**2 / 2
    assert Loss(epsilon, epsilon**2 / 8).rho == epsilon**2 / 8
    assert Loss(None, 3).rho == 3


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_no_pure_release_has_more_than_half_its_square(epsilon):
    """Randomized response is the worst of all releases with this epsilon."""
    with mpmath.workdps(30):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        for order in (mpmath.mpf("1.0001"), mpmath.mpf("1.5"), 2, 10, 1000):
            total = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
            assert mpmath.log(total) / (order - 1) <= order * real(Loss(epsilon).rho)


@pytest.mark.long
@given(amounts, amounts, small, amounts, amounts, small)
def test_losses_add_as_exact_fractions(e1, r1, d1, e2, r2, d2):  # noqa: PLR0917
    one, two = Loss(e1, r1, d1), Loss(e2, r2, d2)
    total = one + two
    assert (total.epsilon, total.rho, total.delta) == (e1 + e2, one.rho + two.rho, d1 + d2)
    assert total == two + one
    assert one + ZERO_LOSS == one
    without = Loss(None, r1) + two
    assert (without.epsilon, without.rho) == (None, r1 + two.rho)


def test_a_hundred_tenths_are_ten_and_delta_ends_at_one():
    assert sum([Loss(0.1)] * 100, ZERO_LOSS) == Loss(10, Fraction(1, 2))
    assert (Loss(1, None, "0.6") + Loss(1, None, "0.7")).delta == 1


@pytest.mark.parametrize("order", ["1.001", "3", "40", "1e6"])
def test_floats_only_suggest_an_order(order, monkeypatch):
    """Any order gives a valid bound; a bad one gives a worse bound."""
    monkeypatch.setattr(loss_module, "best_order", lambda delta, objective: Fraction(order))
    delta = Fraction(1, 10**6)
    with mpmath.workdps(40):
        uncached = loss_module.zcdp_rho.__wrapped__
        if order != "1.001":
            assert best_bound(uncached(Fraction(20), delta), delta) <= 20
        else:  # this order alone gives nothing below 10,000
            with pytest.raises(ValueError, match="delta"):
                uncached(Fraction(20), delta)


@pytest.mark.parametrize("epsilon", ["1e-12", "1e-14", "1e-15", "1e-16", "1e-20"])
@pytest.mark.parametrize("delta", ["1e-9", "1e-16", "1e-20", "1e-30"])
def test_a_positive_cost_is_never_free(epsilon, delta):
    try:
        assert zcdp_rho(Fraction(epsilon), Fraction(delta)) > 0
    except ValueError as error:
        assert "no rho" in str(error)  # noqa: PT017 - to refuse is all right, to give away is not


@pytest.mark.parametrize("delta", ["1e-300", "1e-320", "1e-400", "1e-900"])
def test_very_small_deltas_convert(delta):
    rho = zcdp_rho(Fraction(1), Fraction(delta))
    with mpmath.workdps(1000):
        assert best_bound(rho, Fraction(delta)) <= 1 + mpmath.mpf(10) ** -25
        assert rho > 0


def answered(budget, price, most=2000):
    """Return how many questions fit, each asked after the answer to the one before."""
    spent, count = ZERO_LOSS, 0
    while budget.covers(spent + price) and count < most:
        spent, count = spent + price, count + 1
    return count


def test_exactly_299_adaptive_counts_fit():
    assert answered(Budget(1, 1e-9), CENT) == 299
    assert answered(Budget(1, 1e-9, discover=0.5), CENT) == 288
    assert answered(Budget(1), CENT) == 100
    assert answered(Budget(1), Loss("1/101")) == 101
    tenth = Budget(1, 1e-9)
    assert answered(tenth, privacy.cost_of(tenth, 0.1)) == 84
    assert answered(tenth, privacy.cost_of(tenth, 1)) == 1
    assert answered(Budget("0.3"), Loss(0.1)) == 3


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-9), (4, 1e-6), ("1/10", "1e-12")])
def test_what_the_budget_covers_is_private_and_one_more_is_not_covered(epsilon, delta):
    budget = Budget(epsilon, delta)
    assert zcdp_epsilon(budget.rho, conversion_delta(budget)) <= budget.epsilon + Fraction(1, 10**11)
    with mpmath.workdps(40):
        assert best_bound(budget.rho, conversion_delta(budget)) <= real(budget.epsilon)
        assert best_bound(budget.rho * Fraction(1_000_001, 1_000_000), conversion_delta(budget)) > real(budget.epsilon)


def test_a_budget_keeps_its_three_limits_apart():
    budget = Budget(1, "1e-6", discover="1/4")
    assert (budget.delta, budget.discover, conversion_delta(budget)) == (
        Fraction(1, 10**6),
        Fraction(1, 4 * 10**6),
        Fraction(3, 4 * 10**6),
    )
    assert budget.rho == zcdp_rho(Fraction(1), conversion_delta(budget))
    assert budget.covers(Loss(None, budget.rho, budget.discover))
    assert not budget.covers(Loss(None, budget.rho + Fraction(1, 10**20)))
    assert not budget.covers(Loss(None, 0, budget.discover + Fraction(1, 10**20)))
    assert budget.covers(Loss(1))  # all pure, within epsilon, though its rho is above
    assert Loss(1).rho > budget.rho
    assert not budget.covers(Loss(1, None, "1e-12"))
    assert not budget.covers(Loss("1.001"))


def test_a_pure_budget_takes_nothing_but_pure_losses():
    assert Budget(1).rho is None
    assert conversion_delta(Budget(1)) == 0
    assert not Budget(1).covers(Loss(None, "1e-30"))
    assert not Budget(1).covers(Loss("1/10", None, "1e-30"))


def test_budgets_and_losses_are_immutable():
    for thing, field in ((Budget(1, "1e-9"), "rho"), (Budget(1), "epsilon"), (Loss(1), "delta"), (Loss(1), "rho")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, field, Fraction(10))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Budget(1, "1e-9").discover = Fraction(1)


class Analyst:
    """Asks a Gaussian question of rho0; then either another one, or spends all the delta that the filter lets go.

    Whichever it is depends on the first answer. If that already tells much, more of the same may push the loss over
    epsilon; if it does not, the rest of delta is used on an event that tells all with this probability.
    """

    def __init__(self, epsilon, rho0, turn):
        self.epsilon, self.rho0, self.turn = epsilon, rho0, turn

    def failure(self, rho1, delta_high, delta_low):
        """Return the hockey-stick divergence at epsilon of the whole game.

        Above the turn: rho1 more, and an event of delta_high. Below: an event of delta_low. The loss of a Gaussian
        release of rho is normal with mean rho and variance 2·rho.
        """
        root0, root1 = math.sqrt(2 * self.rho0), math.sqrt(2 * rho1)

        def tells(loss):
            left = self.epsilon - loss
            # what comes before the event; and of the rest, the event tells all
            stick = ndtr(root1 / 2 - left / root1) - math.exp(left + log_ndtr(-root1 / 2 - left / root1))
            density = math.exp(-(((loss - self.rho0) / root0) ** 2) / 2) / (root0 * math.sqrt(2 * math.pi))
            return density * (delta_high + (1 - delta_high) * stick)

        top = self.rho0 + 12 * root0
        above = integrate.quad(tells, self.turn, top, limit=200, epsabs=1e-14)[0]
        below = float(ndtr((self.turn - self.rho0) / root0))
        return above + below * delta_low


def test_the_split_of_delta_never_changes():
    epsilon, delta = Fraction(1), Fraction(1, 100)

    def moving(spent):
        """The tempting filter: any split will do, as long as there is one at the end."""
        return spent.delta < delta and zcdp_epsilon(spent.rho, delta - spent.delta) <= epsilon

    rho = zcdp_rho(epsilon, delta)
    rho0 = rho / 2
    least = Fraction(optimize.brentq(lambda d: float(zcdp_epsilon(rho0, Fraction(d))) - 1, 1e-12, 1e-2) * 1.001)
    endings = Loss(None, rho - Fraction(1, 10**9)), Loss(None, rho0, delta - least)
    assert all(moving(ending) for ending in endings)

    turns = np.linspace(0, 0.9, 46)
    games = [Analyst(1.0, float(rho0), turn) for turn in turns]
    rest = float(rho - rho0)
    worst = max(game.failure(rest, 0.0, float(delta - least)) for game in games)
    print(f"failure with a moving split: {worst:.5f}, allowed {float(delta)}")
    assert worst > 1.1 * float(delta)

    # Our budgets never let both endings happen, and what they let happen stays within delta.
    for share in (Fraction(n, 20) for n in range(20)):
        budget = Budget(epsilon, delta, discover=share)
        assert not all(budget.covers(ending) for ending in endings)
        for part in (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)):
            first = part * budget.rho
            high, low = Loss(None, budget.rho, budget.discover), Loss(None, first, budget.discover)
            assert budget.covers(high)
            assert budget.covers(low)
            for turn in turns[::5]:
                game = Analyst(1.0, float(first), turn)
                given_up = float(budget.discover)
                assert game.failure(float(budget.rho - first), given_up, given_up) <= float(delta)


def test_pure_and_other_transcripts_may_be_mixed():
    """After a first answer of rho0, go on either with rho up to the limit or purely up to epsilon: within delta."""
    budget = Budget(1, "1/100")
    # A first pure answer (three quarters against one quarter), then Gaussian on heads and pure on tails.
    first = Loss(Fraction("0.15"))
    heads = 1 / (1 + math.exp(-0.15))
    rest = float(budget.rho - first.rho)
    pure = Loss(Fraction("0.85"))
    assert budget.covers(first + Loss(None, budget.rho - first.rho))
    assert budget.covers(first + pure)
    assert (first + pure).rho > budget.rho
    root = math.sqrt(2 * rest)
    left = 1 - 0.15
    stick = heads * (ndtr(root / 2 - left / root) - math.exp(left) * ndtr(-root / 2 - left / root))
    assert 0 < stick <= 0.01


BAD = [-1, math.nan, math.inf, -math.inf, True, "one", "", "1/0", [1], np.True_]


@pytest.mark.parametrize("bad", [*BAD, "1e9999", 1j])
def test_bad_numbers_are_refused_by_name(bad):
    for name, make in {
        "epsilon": Loss,
        "rho": lambda x: Loss(1, x),
        "delta": lambda x: Loss(1, None, x),
    }.items():
        with pytest.raises((ValueError, TypeError), match=name):
            make(bad)
    for name, make in {
        "epsilon": Budget,
        "delta": lambda x: Budget(1, x),
        "discover": lambda x: Budget(1, "1e-9", discover=x),
    }.items():
        with pytest.raises((ValueError, TypeError), match=name):
            make(bad)


def test_other_invalid_arguments_are_refused():
    for make, name in (
        (lambda: Loss(None), "rho"),
        (lambda: Loss(1, 1, 2), "delta"),
        (lambda: Budget(0), "epsilon"),
        (lambda: Budget(None), "epsilon"),
        (lambda: Budget(1, 1), "delta"),
        (lambda: Budget(1, None), "delta"),
        (lambda: Budget(1, "1e-9", discover=1), "discover"),
        (lambda: Budget(1, 0, discover="1/2"), "discover"),
    ):
        with pytest.raises((ValueError, TypeError), match=name):
            make()


@pytest.mark.parametrize(
    "hundredth", [0.01, "0.01", "1/100", "1e-2", Fraction(1, 100), np.float64(0.01), np.float32(0.01)]
)
def test_a_hundredth_is_a_hundredth_however_it_is_written(hundredth):
    assert Loss(hundredth).epsilon == Fraction(1, 100)
    assert answered(Budget(1), Loss(hundredth)) == 100


def test_losses_print_what_they_are():
    assert repr(Loss("1/10")) == "Loss(epsilon=1/10, rho=1/200)"
    assert repr(Loss(None, 1, "1/8")) == "Loss(rho=1, delta=1/8)"
    assert hash(Loss(1)) == hash(Loss("1.0"))


def test_losses_can_be_summed_and_nothing_else_added():
    assert sum([Loss("1/10")] * 3) == Loss("3/10", "3/200")
    with pytest.raises(TypeError):
        Loss(1) + 1
    with pytest.raises(TypeError, match="spent must be of type Loss"):
        Budget(1).covers(1)


def test_budgets_are_written_shortly():
    assert repr(Budget(1)) == "Budget(epsilon=1)"
    assert repr(Budget(1, "1e-9", discover="1/2")) == "Budget(epsilon=1, delta=1/1000000000, discover=1/2)"


def test_nothing_but_the_zero_of_sum_is_added_to_a_loss():
    assert 0 + CENT == CENT
    with pytest.raises(TypeError):
        1 + CENT


ROOMY = Loss.of_bounds(Fraction(1), Fraction(1), Fraction(1, 10))


@pytest.mark.parametrize(
    ("loss", "within"),
    [
        (ROOMY, True),
        (ZERO_LOSS, True),
        (Loss.of_bounds(Fraction(2), Fraction(1), Fraction(1, 10)), False),
        (Loss.of_bounds(None, Fraction(1), Fraction(1, 10)), False),
        (Loss.of_bounds(Fraction(1), Fraction(2), Fraction(1, 10)), False),
        (Loss.of_bounds(Fraction(1), Fraction(1), Fraction(2, 10)), False),
    ],
    ids=["itself", "nothing", "more epsilon", "no epsilon", "more rho", "more delta"],
)
def test_a_loss_includes_those_without_any_larger_bound(loss, within):
    assert ROOMY.includes(loss) is within


def test_a_loss_without_an_epsilon_includes_one_with_any():
    assert Loss(None, 100).includes(Loss(10))
    assert not Loss(None, 1).includes(Loss(10))


def test_a_budget_has_a_largest_epsilon():
    assert Budget(10**6).epsilon == 10**6
    with pytest.raises(ValueError, match="epsilon"):
        Budget(10**6 + 1)


DELTAS = [Fraction(1, 10**n) for n in (2, 5, 6, 9, 12, 40)]


def cost_at(order, delta):
    """Return what zCDP's conversion adds to order·rho."""
    a = real(order)
    return (-mpmath.log(real(delta)) - mpmath.log(a)) / (a - 1) + mpmath.log(1 - 1 / a)


@pytest.mark.parametrize("order", [Fraction(1001, 1000), Fraction(2), Fraction(1000)])
def test_what_an_order_adds_to_epsilon_is_rounded_up(order):
    with mpmath.workdps(60):
        for delta in DELTAS:
            above = real(loss_module.order_cost_up(order, delta)) - cost_at(order, delta)
            assert 0 < above < mpmath.mpf(2) ** -88


def test_rho_at_an_order_is_rounded_down(monkeypatch):
    monkeypatch.setattr(loss_module, "best_order", lambda delta, objective: Fraction(7))
    with mpmath.workdps(80):
        for delta in DELTAS:
            exact = (20 - cost_at(Fraction(7), delta)) / 7
            below = exact - real(zcdp_rho.__wrapped__(Fraction(20), delta))
            assert 0 < below < mpmath.mpf(10) ** -28


def test_a_loss_of_bounds_has_no_delta_unless_one_is_given():
    assert Loss.of_bounds(Fraction(1), Fraction(1, 2)).delta == 0
    assert Loss.of_bounds(Fraction(1), Fraction(1, 2), Fraction(1, 9)).delta == Fraction(1, 9)
