"""What a release costs, how costs add, and when a budget is used up. Exact fractions throughout."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Self

from discreet.kernel.numbers import (
    Number,
    as_fraction,
    as_integer,
    as_nonnegative,
    as_positive,
    check_type,
    exp_up,
    log_down,
    log_up,
    round_down,
    round_up,
)

_ZERO = Fraction(0)
_MAX_EPSILON = 10**6  # an epsilon beyond it promises nothing, and is surely a mistake


@dataclass(frozen=True, init=False)
class Loss:
    """Bounds on what one release tells about one unit: pure epsilon (if there is one), zCDP rho, and delta.

    >>> Loss("1/100") + Loss("1/100")
    Loss(epsilon=1/50, rho=1/10000)
    """

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number | None, rho: Number | None = None, delta: Number = 0) -> None:
        """Read the bounds; without a rho it is epsilon²/2, what every epsilon-DP release satisfies.

        Claim: pure epsilon implies rho = epsilon²/2.
        Proof: Bun and Steinke 2016, Proposition 1.4.
        Needs: nothing.
        Checked by: test_pure_loss_implies_half_its_square_in_rho
        Seal: 0991b4839549
        """
        pure = None if epsilon is None else as_nonnegative(epsilon, "epsilon")
        bounds = [as_nonnegative(rho, "rho")] if rho is not None else []
        if pure is not None:
            bounds.append(pure * pure / 2)
        if not bounds:
            raise ValueError("rho is missing: a loss needs an epsilon, a rho or both")
        slack = as_nonnegative(delta, "delta")
        if slack > 1:
            raise ValueError(f"delta must be at most 1, not {delta}")
        object.__setattr__(self, "epsilon", pure)
        object.__setattr__(self, "rho", min(bounds))
        object.__setattr__(self, "delta", slack)

    @classmethod
    def of_bounds(cls, epsilon: Fraction | None, rho: Fraction, delta: Fraction = _ZERO) -> "Loss":
        """Return a loss with these bounds as they are, also a rho above epsilon²/2: what is added to another has such.

        >>> Loss.of_bounds(Fraction(1, 10), Fraction(1, 2)).rho
        Fraction(1, 2)
        """
        loss = cls(epsilon, rho, delta)
        object.__setattr__(loss, "rho", as_nonnegative(rho, "rho"))
        return loss

    def __add__(self, other: Self) -> "Loss":
        """Add two losses, also when the second release was chosen after seeing the first.

        Claim: the sum bounds the pair of releases.
        Proof: epsilon and delta add by basic composition, rho by Bun and Steinke 2016, Lemma 1.7 (delta-
            approximate: Lemma 8.2). Adaptive totals are valid because rho and epsilon act as privacy filters
            (Rogers et al. 2016, Feldman and Zrnic 2021). A delta above 1 says nothing and is kept at 1.
        Needs: nothing.
        Checked by: test_losses_add_as_exact_fractions
        Seal: f4d5dc82970d
        """
        if not isinstance(other, Loss):
            return NotImplemented
        both_pure = self.epsilon is not None and other.epsilon is not None
        epsilon = self.epsilon + other.epsilon if both_pure else None  # type: ignore[operator]
        return Loss.of_bounds(epsilon, self.rho + other.rho, min(Fraction(1), self.delta + other.delta))

    def __radd__(self, other: int) -> "Loss":
        """Let sum() begin with its 0."""
        return self if other == 0 else NotImplemented

    def for_group(self, size: int) -> "Loss":
        """Return the loss for a group of `size` units together.

        Claim: k units lose at most k·epsilon and delta·(e^(k·eps)-1)/(e^eps-1); without a delta also k²·rho.
        Proof: pass through k-1 databases in between; pure and approximate: Dwork and Roth 2014, Theorem 2.2
            with the geometric sum of e^(i·epsilon), i < k; zCDP: Bun and Steinke 2016, Proposition 1.9, which is
            for a delta of 0. With a delta, rho is what the group's (epsilon, delta) implies: epsilon²/2.
        Needs: with a delta, a pure epsilon beside it (else refused: no such bound is known for rho alone).
        Checked by: test_a_group_of_k_costs_k_epsilon_and_k_squared_rho
        Seal: f233e20f8269
        """
        k = as_integer(size, "size", minimum=1)
        if k == 1:
            return self
        epsilon = None if self.epsilon is None else k * self.epsilon
        if not self.delta:
            return Loss(epsilon, k * k * self.rho)  # Loss itself takes the smaller of k²·rho and epsilon²/2
        if self.epsilon is None or epsilon is None:
            raise ValueError("size: a loss with a delta and no epsilon has no bound for a group")
        if epsilon > 1000:  # e^1000: nobody needs this bound, and 1 is one
            return Loss(epsilon, None, 1)
        return Loss(epsilon, None, min(Fraction(1), round_up(self.delta * _geometric_sum_up(self.epsilon, k), 60)))

    def for_substitution(self) -> "Loss":
        """Return the loss when one unit is replaced by another: a removal and an addition.

        >>> Loss("1/10").for_substitution().epsilon
        Fraction(1, 5)
        """
        return self.for_group(2)

    def to_epsilon(self, delta: Number) -> Fraction:
        """Return an epsilon, rounded up, for which the release is (epsilon, delta)-DP.

        Claim: the release is (to_epsilon(delta), delta)-DP.
        Proof: either the pure epsilon with the loss's own delta, or the conversion of rho at what delta is
            left: a delta1-approximate rho-zCDP release that is (epsilon, delta2) by its rho is
            (epsilon, delta1 + delta2).
        Needs: zcdp_epsilon.
        Checked by: test_conversion_is_tight_and_never_below_the_truth
        Seal: 51147e2c401d
        """
        allowed = as_nonnegative(delta, "delta")
        if allowed < self.delta:
            raise ValueError(f"delta must be at least the loss's own {float(self.delta):.3g}, not {delta}")
        candidates = [] if self.epsilon is None else [self.epsilon]
        if allowed > self.delta:
            candidates.append(zcdp_epsilon(self.rho, allowed - self.delta))
        if not candidates:
            raise ValueError("delta must be above the loss's own: a rho alone gives no epsilon without one")
        return min(candidates)

    def includes(self, other: Self) -> bool:
        """Tell whether no bound of this loss is below one of another.

        >>> Loss("1/10").includes(Loss("1/20")), Loss("1/10").includes(Loss(None, "1/1000"))
        (True, False)
        """
        exceeds_epsilon = self.epsilon is not None and (other.epsilon is None or other.epsilon > self.epsilon)
        return not exceeds_epsilon and other.rho <= self.rho and other.delta <= self.delta

    def __repr__(self) -> str:
        parts = [] if self.epsilon is None else [f"epsilon={self.epsilon}"]
        parts.append(f"rho={self.rho}")
        if self.delta:
            parts.append(f"delta={self.delta}")
        return f"Loss({', '.join(parts)})"


ZERO_LOSS = Loss(0)


@dataclass(frozen=True, init=False)
class Budget:
    """How much may be lost in all. Pure if delta is 0; else kept in rho, with delta split once and for ever.

    `discover` is the share of delta set apart for events that carry a delta of their own.

    >>> Budget(1).covers(Loss("1/100").for_group(100)), Budget(1).covers(Loss("1.01"))
    (True, False)
    """

    epsilon: Fraction
    delta: Fraction
    discover: Fraction
    rho: Fraction | None = field(repr=False)

    def __init__(self, epsilon: Number, delta: Number = 0, *, discover: Number = 0) -> None:
        """Read the budget and fix its three limits: epsilon, rho and delta for events."""
        pure = as_positive(epsilon, "epsilon")
        if pure > _MAX_EPSILON:
            raise ValueError(f"epsilon must be at most {_MAX_EPSILON}")
        slack = as_nonnegative(delta, "delta")
        part = as_fraction(discover, "discover")
        if slack >= 1:
            raise ValueError(f"delta must be below 1, not {delta}")
        if not 0 <= part < 1:
            raise ValueError(f"discover must be a share from 0 up to, not including, 1, not {discover}")
        if part and not slack:
            raise ValueError("discover needs a budget with a delta")
        object.__setattr__(self, "epsilon", pure)
        object.__setattr__(self, "delta", slack)
        object.__setattr__(self, "discover", slack * part)
        object.__setattr__(self, "rho", zcdp_rho(pure, slack - slack * part) if slack else None)

    @property
    def conversion_delta(self) -> Fraction:
        """The part of delta at which rho is converted to epsilon."""
        return self.delta - self.discover

    def covers(self, spent: Loss) -> bool:
        """Tell whether a total loss is within the budget.

        Claim: an analyst who may go on as long as covers(total) holds gets an (epsilon, delta)-DP transcript,
            however later questions and prices depend on earlier answers.
        Proof: sum(rho) <= R and sum(delta) <= discover are two privacy filters with fixed limits, so such a
            transcript is (epsilon, discover + conversion). A transcript of pure events with
            sum(epsilon) <= epsilon has no outcome with a loss above epsilon, so it adds nothing to the
            hockey-stick divergence of those that end within R: the two ways may be mixed. Nothing moves
            between discover and conversion: a split chosen after the answers would add up failures of both.
        Needs: Loss.__add__, zcdp_rho.
        Checked by: test_the_split_of_delta_never_moves, test_exactly_299_adaptive_counts_fit
        Seal: 82752127633d
        """
        check_type(Loss, spent, "spent")
        if spent.epsilon is not None and not spent.delta and spent.epsilon <= self.epsilon:
            return True
        return self.rho is not None and spent.rho <= self.rho and spent.delta <= self.discover

    def __repr__(self) -> str:
        parts = [f"epsilon={self.epsilon}"]
        if self.delta:
            parts.append(f"delta={self.delta}")
        if self.discover:
            parts.append(f"discover={self.discover / self.delta}")
        return f"Budget({', '.join(parts)})"

    def cost_of(self, epsilon: Number) -> Loss:
        """Return what an asked epsilon means here: pure in a pure budget, else its rho.

        >>> Budget(1).cost_of("1/10")
        Loss(epsilon=1/10, rho=1/200)
        """
        requested = as_positive(epsilon, "epsilon")
        return Loss(None, zcdp_rho(requested, self.conversion_delta)) if self.delta else Loss(requested)


def _geometric_sum_up(epsilon: Fraction, k: int) -> Fraction:
    """Return 1 + e^epsilon + … + e^((k-1)·epsilon), rounded up: the closed form, or k times the last term."""
    step = 1 / exp_up(-epsilon) - 1
    bounds = [k * exp_up((k - 1) * epsilon)]
    if step > 0:
        bounds.append((exp_up(k * epsilon) - 1) / step)
    return min(bounds)


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the least epsilon, rounded up, for which rho-zCDP implies (epsilon, delta)-DP.

    Claim: rho-zCDP implies (zcdp_epsilon(rho, delta), delta)-DP.
    Proof: Canonne, Kamath and Steinke 2020, Proposition 12: for every order a > 1, epsilon =
        a·rho + (ln(1/delta) - ln(a))/(a-1) + ln(1-1/a) suffices. Floats only choose a; its value is
        computed in fractions and rounded up. No epsilon below 0 is claimed.
    Needs: log_bounds.
    Checked by: test_conversion_is_tight_and_never_below_the_truth
    Seal: 8b6ae9bc2b41
    """
    if not rho:
        return _ZERO
    log_delta = float(log_up(delta))  # of the fraction: as a float, a very small delta would be 0
    order = _best_order(lambda a: float(rho) * a + _order_cost(a, log_delta))
    return max(_ZERO, round_up(order * rho + _order_cost_up(order, delta)))


@lru_cache(maxsize=4096)
def zcdp_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho, rounded down, that implies (epsilon, delta)-DP.

    Claim: zcdp_rho(epsilon, delta)-zCDP implies (epsilon, delta)-DP.
    Proof: solve the bound of zcdp_epsilon for rho at one order a, chosen by floats, and round down.
    Needs: log_bounds.
    Checked by: test_conversion_is_tight_and_never_below_the_truth
    Seal: 97845752ea45
    """
    log_delta = float(log_up(delta))
    order = _best_order(lambda a: -(float(epsilon) - _order_cost(a, log_delta)) / a)
    rho = (epsilon - _order_cost_up(order, delta)) / order
    if rho <= 0:
        raise ValueError(f"delta: no rho gives epsilon {float(epsilon):.3g} at delta {float(delta):.3g}")
    zeros = max(0, len(str(rho.denominator)) - len(str(rho.numerator)))
    return round_down(rho, 30 + zeros)  # thirty digits also of a very small one


def _order_cost(order: float, log_delta: float) -> float:
    return (-log_delta - math.log(order)) / (order - 1) + math.log1p(-1 / order)


def _order_cost_up(order: Fraction, delta: Fraction) -> Fraction:
    # delta·a may be above 1: then the logarithm is negative, and rounding it up is still rounding up.
    return log_up(1 / (delta * order)) / (order - 1) - log_down(order / (order - 1))


def _best_order(cost: Callable[[float], float]) -> Fraction:
    """Return the order a > 1 that makes cost(a) least: golden sections on ln(a-1)."""
    low, high = -16.0, 36.0
    ratio = (math.sqrt(5) - 1) / 2
    while high - low > 1e-7:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if cost(1 + math.exp(left)) < cost(1 + math.exp(right)):
            high = right
        else:
            low = left
    return 1 + Fraction(math.exp((low + high) / 2))
