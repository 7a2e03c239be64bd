"""Privacy loss, composition and budgets, in exact fractions."""

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
        Seal: f4d5dc82970d
        """
        if not isinstance(other, Loss):
            return NotImplemented
        both_pure = self.epsilon is not None and other.epsilon is not None
        epsilon = self.epsilon + other.epsilon if both_pure else None  # type: ignore[operator]
        return Loss.of_bounds(epsilon, self.rho + other.rho, min(Fraction(1), self.delta + other.delta))

    def __radd__(self, other: int) -> "Loss":
        """Support sum(), which begins with 0."""
        return self if other == 0 else NotImplemented

    def for_group(self, size: int) -> "Loss":
        """Return the loss for a group of `size` units (group privacy).

        Claim: k units lose at most k·epsilon and delta·(e^(k·eps)-1)/(e^eps-1); without a delta also k²·rho.
        Proof: change one unit at a time, through k-1 intermediate databases; pure and approximate: Dwork and Roth 2014,
            Theorem 2.2 with the geometric sum of e^(i·epsilon), i < k; zCDP: Bun and Steinke 2016, Proposition 1.9,
            which is for a delta of 0. With a delta, rho is what the group's (epsilon, delta) implies: epsilon²/2.
        Needs: with a delta, also a pure epsilon (else refused: no such bound is known for rho alone).
        Checked by: test_a_group_of_k_costs_k_epsilon_and_k_squared_rho
        Seal: 70b9ad3237d1
        """
        k = as_integer(size, "size", minimum=1)
        if k == 1:
            return self
        epsilon = None if self.epsilon is None else k * self.epsilon
        if not self.delta:
            return Loss(epsilon, k * k * self.rho)  # Loss takes the minimum of k²·rho and epsilon²/2
        if self.epsilon is None or epsilon is None:
            raise ValueError("size: no group bound is known for a loss with a delta but no epsilon")
        if epsilon > 1000:  # e^1000 is out of reach, and 1 is a valid delta
            return Loss(epsilon, None, 1)
        return Loss(epsilon, None, min(Fraction(1), round_up(self.delta * _geometric_sum_up(self.epsilon, k), 60)))

    def for_substitution(self) -> "Loss":
        """Return the loss for the substitution of one unit: a removal and an addition.

        >>> Loss("1/10").for_substitution().epsilon
        Fraction(1, 5)
        """
        return self.for_group(2)

    def to_epsilon(self, delta: Number) -> Fraction:
        """Return an epsilon, rounded up, for which the release is (epsilon, delta)-DP.

        Claim: the release is (to_epsilon(delta), delta)-DP.
        Proof: either the pure epsilon with the loss's own delta, or the conversion of rho with the remaining delta: a
            delta1-approximate rho-zCDP release that is (epsilon, delta2)-DP by its rho is
            (epsilon, delta1 + delta2)-DP.
        Needs: zcdp_epsilon.
        Checked by: test_conversion_is_tight_and_never_below_the_truth
        Seal: 746341d713d4
        """
        allowed = as_nonnegative(delta, "delta")
        if allowed < self.delta:
            raise ValueError(f"delta must be at least that of the loss, {float(self.delta):.3g}, not {delta}")
        candidates = [] if self.epsilon is None else [self.epsilon]
        if allowed > self.delta:
            candidates.append(zcdp_epsilon(self.rho, allowed - self.delta))
        if not candidates:
            raise ValueError("delta must be above that of the loss: rho alone gives an epsilon only with a delta")
        return min(candidates)

    def includes(self, other: Self) -> bool:
        """Return whether every bound of this loss is at least that of another.

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
    """A privacy budget: pure if delta is 0; else accounted in rho, with a fixed split of delta.

    `discover` is the share of delta for releases that have a delta themselves (partition selection).

    >>> Budget(1).covers(Loss("1/100").for_group(100)), Budget(1).covers(Loss("1.01"))
    (True, False)
    """

    epsilon: Fraction
    delta: Fraction
    discover: Fraction
    rho: Fraction | None = field(repr=False)

    def __init__(self, epsilon: Number, delta: Number = 0, *, discover: Number = 0) -> None:
        """Create a budget and fix its limits: epsilon, rho, and delta for partition selection."""
        pure = as_positive(epsilon, "epsilon")
        if pure > _MAX_EPSILON:
            raise ValueError(f"epsilon must be at most {_MAX_EPSILON}")
        slack = as_nonnegative(delta, "delta")
        part = as_fraction(discover, "discover")
        if slack >= 1:
            raise ValueError(f"delta must be below 1, not {delta}")
        if not 0 <= part < 1:
            raise ValueError(f"discover must be at least 0 and below 1, not {discover}")
        if part and not slack:
            raise ValueError("discover requires a budget with a delta")
        object.__setattr__(self, "epsilon", pure)
        object.__setattr__(self, "delta", slack)
        object.__setattr__(self, "discover", slack * part)
        object.__setattr__(self, "rho", zcdp_rho(pure, slack - slack * part) if slack else None)

    @property
    def conversion_delta(self) -> Fraction:
        """The part of delta that converts rho to epsilon."""
        return self.delta - self.discover

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
        """Return the cost of a requested epsilon: pure in a pure budget, else the corresponding rho.

        >>> Budget(1).cost_of("1/10")
        Loss(epsilon=1/10, rho=1/200)
        """
        requested = as_positive(epsilon, "epsilon")
        return Loss(None, zcdp_rho(requested, self.conversion_delta)) if self.delta else Loss(requested)


def _geometric_sum_up(epsilon: Fraction, k: int) -> Fraction:
    """Return an upper bound of 1 + e^epsilon + … + e^((k-1)·epsilon)."""
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
    log_delta = float(log_up(delta))  # of the fraction, because a very small delta is 0 as a float
    order = _best_order(lambda a: float(rho) * a + _order_cost(a, log_delta))
    return max(_ZERO, round_up(order * rho + _order_cost_up(order, delta)))


@lru_cache(maxsize=4096)
def zcdp_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho, rounded down, that implies (epsilon, delta)-DP.

    Claim: zcdp_rho(epsilon, delta)-zCDP implies (epsilon, delta)-DP.
    Proof: solve the bound of zcdp_epsilon for rho at one order a, chosen by floats, and round down.
    Needs: log_bounds.
    Checked by: test_conversion_is_tight_and_never_below_the_truth
    Seal: c9b4cf87998a
    """
    log_delta = float(log_up(delta))
    order = _best_order(lambda a: -(float(epsilon) - _order_cost(a, log_delta)) / a)
    rho = (epsilon - _order_cost_up(order, delta)) / order
    if rho <= 0:
        raise ValueError(f"delta is too small: no rho gives epsilon {float(epsilon):.3g} at delta {float(delta):.3g}")
    zeros = max(0, len(str(rho.denominator)) - len(str(rho.numerator)))
    return round_down(rho, 30 + zeros)  # thirty significant digits


def _order_cost(order: float, log_delta: float) -> float:
    return (-log_delta - math.log(order)) / (order - 1) + math.log1p(-1 / order)


def _order_cost_up(order: Fraction, delta: Fraction) -> Fraction:
    # delta·a may be above 1: then the logarithm is negative, and it is still rounded up.
    return log_up(1 / (delta * order)) / (order - 1) - log_down(order / (order - 1))


def _best_order(cost: Callable[[float], float]) -> Fraction:
    """Return the order a > 1 that minimises cost(a), by golden-section search on ln(a-1)."""
    low, high = -16.0, 36.0
    ratio = (math.sqrt(5) - 1) / 2
    while high - low > 1e-7:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if cost(1 + math.exp(left)) < cost(1 + math.exp(right)):
            high = right
        else:
            low = left
    return 1 + Fraction(math.exp((low + high) / 2))
