"""Privacy loss, composition and budgets, in exact fractions."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Self

from discreet.kernel.errors import require
from discreet.kernel.numbers import Number, as_nonnegative, as_positive, check_type, log_down, log_up, round_down

_ZERO = Fraction(0)
_MAX_EPSILON = 10**6  # a larger epsilon gives no protection and is surely a mistake


@dataclass(frozen=True, init=False)
class Loss:
    """Bounds on the privacy loss of a release: pure epsilon (if there is one), zCDP rho, and delta.

    >>> Loss("1/100") + Loss("1/100")
    Loss(epsilon=1/50, rho=1/10000)
    """

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number | None, rho: Number | None = None, delta: Number = 0) -> None:
        """Create a loss; the default of rho is epsilon²/2, which every epsilon-DP release satisfies.

        Claim: pure epsilon implies rho = epsilon²/2.
        Proof: Bun and Steinke 2016, Proposition 1.4.
        Needs: nothing.
        Checked by: test_pure_loss_implies_half_its_square_in_rho
        """
        pure = None if epsilon is None else as_nonnegative(epsilon, "epsilon")
        bounds = [as_nonnegative(rho, "rho")] if rho is not None else []
        bounds += [pure * pure / 2] if pure is not None else []
        require(bool(bounds), "rho is missing: a loss needs an epsilon, a rho or both")
        slack = as_nonnegative(delta, "delta")
        require(slack <= 1, f"delta must be at most 1, not {delta}")
        object.__setattr__(self, "epsilon", pure)
        object.__setattr__(self, "rho", min(bounds))
        object.__setattr__(self, "delta", slack)

    @classmethod
    def of_bounds(cls, epsilon: Fraction | None, rho: Fraction, delta: Fraction = _ZERO) -> "Loss":
        """Return a loss with exactly these bounds, even if rho is above epsilon²/2, as in a difference of two losses.

        >>> Loss.of_bounds(Fraction(1, 10), Fraction(1, 2)).rho
        Fraction(1, 2)
        """
        loss = cls(epsilon, rho, delta)
        object.__setattr__(loss, "rho", as_nonnegative(rho, "rho"))
        return loss

    def __add__(self, other: Self) -> "Loss":
        """Return the loss of two releases, even if the second was chosen after seeing the first.

        Claim: the sum bounds the pair of releases.
        Proof: epsilon and delta add by basic composition, rho by Bun and Steinke 2016, Lemma 1.7 (delta-
            approximate: Lemma 8.2). Adaptive totals are valid because rho and epsilon act as privacy filters
            (Rogers et al. 2016, Feldman and Zrnic 2021). A delta above 1 means nothing and is limited to 1.
        Needs: nothing.
        Checked by: test_losses_add_as_exact_fractions
        """
        if not isinstance(other, Loss):
            return NotImplemented
        both_pure = self.epsilon is not None and other.epsilon is not None
        epsilon = self.epsilon + other.epsilon if both_pure else None  # type: ignore[operator]
        return Loss.of_bounds(epsilon, self.rho + other.rho, min(Fraction(1), self.delta + other.delta))

    def __radd__(self, other: int) -> "Loss":
        """Support sum(), which begins with 0."""
        return self if other == 0 else NotImplemented

    def includes(self, other: Self) -> bool:
        """Return whether every bound of this loss is at least that of another.

        >>> Loss("1/10").includes(Loss("1/20")), Loss("1/10").includes(Loss(None, "1/1000"))
        (True, False)
        """
        exceeds_epsilon = self.epsilon is not None and (other.epsilon is None or other.epsilon > self.epsilon)
        return not exceeds_epsilon and other.rho <= self.rho and other.delta <= self.delta

    def __repr__(self) -> str:
        return _named_values("Loss", epsilon=self.epsilon, rho=self.rho, delta=self.delta or None)


ZERO_LOSS = Loss(0)


@dataclass(frozen=True, init=False)
class Budget:
    """A privacy budget: pure if delta is 0; else accounted in rho, with a fixed split of delta.

    `discover` is the share of delta for releases that have a delta themselves (partition selection).

    >>> Budget(1).covers(Loss("1/100") + Loss("99/100")), Budget(1).covers(Loss("1.01"))
    (True, False)
    """

    epsilon: Fraction
    delta: Fraction
    discover: Fraction
    rho: Fraction | None = field(repr=False)

    def __init__(self, epsilon: Number, delta: Number = 0, *, discover: Number = 0) -> None:
        """Create a budget and fix its limits: epsilon, rho, and delta for partition selection."""
        pure, slack = as_positive(epsilon, "epsilon"), as_nonnegative(delta, "delta")
        part = as_nonnegative(discover, "discover")
        require(pure <= _MAX_EPSILON, f"epsilon must be at most {_MAX_EPSILON}")
        require(slack < 1, f"delta must be below 1, not {delta}")
        require(part < 1, f"discover must be below 1, not {discover}")
        require(not part or slack > 0, "discover requires a budget with a delta")
        object.__setattr__(self, "epsilon", pure)
        object.__setattr__(self, "delta", slack)
        object.__setattr__(self, "discover", slack * part)
        object.__setattr__(self, "rho", zcdp_rho(pure, slack - slack * part) if slack else None)

    def covers(self, spent: Loss) -> bool:
        """Return whether a total loss is within the budget.

        Claim: an analyst who may continue as long as covers(total) holds gets an (epsilon, delta)-DP transcript,
            however later queries and costs depend on earlier answers.
        Proof: sum(rho) <= R and sum(delta) <= discover are two privacy filters with fixed limits, so such a transcript
            is (epsilon, discover + conversion)-DP. A transcript of pure events with sum(epsilon) <= epsilon has no
            outcome with a loss above epsilon, so it adds nothing to the hockey-stick divergence of those that end
            within R: the two criteria may be combined. Nothing moves between discover and conversion: a split chosen
            after the answers would add up the failure probabilities of both.
        Needs: Loss.__add__, zcdp_rho.
        Checked by: test_the_split_of_delta_never_changes, test_exactly_299_adaptive_counts_fit
        """
        check_type(Loss, spent, "spent")
        if spent.epsilon is not None and not spent.delta and spent.epsilon <= self.epsilon:
            return True
        return self.rho is not None and spent.rho <= self.rho and spent.delta <= self.discover

    def __repr__(self) -> str:
        discover = self.discover / self.delta if self.discover else None
        return _named_values("Budget", epsilon=self.epsilon, delta=self.delta or None, discover=discover)


def _named_values(name: str, **values: Fraction | None) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in values.items() if value is not None)})"


@lru_cache(maxsize=4096)
def zcdp_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho, rounded down, that implies (epsilon, delta)-DP.

    Claim: zcdp_rho(epsilon, delta)-zCDP implies (epsilon, delta)-DP.
    Proof: epsilon = a·rho + order_cost_up(a, delta), solved for rho at one order a, chosen by floats, and rounded down.
    Needs: order_cost_up, best_order, round_down.
    Checked by: test_conversion_is_tight_and_never_below_the_truth
    """
    order = best_order(delta, lambda a, cost: (cost - float(epsilon)) / a)
    rho = (epsilon - order_cost_up(order, delta)) / order
    require(rho > 0, f"delta is too small: no rho gives epsilon {float(epsilon):.3g} at delta {float(delta):.3g}")
    zeros = max(0, len(str(rho.denominator)) - len(str(rho.numerator)))
    return round_down(rho, 30 + zeros)  # thirty significant digits


def order_cost_up(order: Fraction, delta: Fraction) -> Fraction:
    """Return (ln(1/delta) - ln(a))/(a-1) + ln(1-1/a) at the order a, rounded up.

    Claim: rho-zCDP implies (a·rho + order_cost_up(a, delta), delta)-DP, at every order a > 1.
    Proof: Canonne, Kamath and Steinke 2020, Proposition 12, with the first logarithm rounded up, also if delta·a is
        above 1 and it is negative, and the second, which is subtracted, rounded down.
    Needs: log_up, log_down.
    Checked by: test_what_an_order_adds_to_epsilon_is_rounded_up
    """
    return log_up(1 / (delta * order)) / (order - 1) - log_down(order / (order - 1))


def best_order(delta: Fraction, objective: Callable[[float, float], float]) -> Fraction:
    """Return about the order a > 1 that minimises objective(a, order_cost_up(a, delta)), in floats."""
    log_delta = float(log_up(delta))  # of the fraction, because a very small delta is 0 as a float

    def value_at(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return objective(order, (-log_delta - math.log(order)) / (order - 1) + math.log1p(-1 / order))

    low, high = -16.0, 36.0
    ratio = (math.sqrt(5) - 1) / 2  # golden-section search on ln(a-1)
    while high - low > 1e-7:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if value_at(left) < value_at(right) else (left, high)
    return 1 + Fraction(math.exp((low + high) / 2))
