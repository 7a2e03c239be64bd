"""What a privacy loss means in other terms: an epsilon at a delta, a group of units, a substitution."""

import math
from fractions import Fraction

from discreet.kernel.loss import Budget, Loss, best_order, order_cost_up, zcdp_rho
from discreet.kernel.numbers import Number, as_integer, as_nonnegative, as_positive, exp_bounds, round_up


def to_epsilon(loss: Loss, delta: Number) -> Fraction:
    """Return an epsilon, rounded up, for which a release of this loss is (epsilon, delta)-DP.

    Claim: the release is (to_epsilon(loss, delta), delta)-DP.
    Proof: either the pure epsilon with the loss's own delta, or the conversion of rho with the remaining delta: a
        delta1-approximate rho-zCDP release that is (epsilon, delta2)-DP by its rho is (epsilon, delta1 + delta2)-DP.
    Needs: zcdp_epsilon.
    Checked by: test_conversion_is_tight_and_never_below_the_truth

    >>> float(to_epsilon(Loss(None, "1/200"), delta="1e-6"))
    0.429941468837
    """
    allowed = as_nonnegative(delta, "delta")
    if allowed < loss.delta:
        raise ValueError(f"delta must be at least that of the loss, {float(loss.delta):.3g}, not {delta}")
    candidates = [] if loss.epsilon is None else [loss.epsilon]
    if allowed > loss.delta:
        candidates.append(zcdp_epsilon(loss.rho, allowed - loss.delta))
    if not candidates:
        raise ValueError("delta must be above that of the loss: rho alone gives an epsilon only with a delta")
    return min(candidates)


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the least epsilon, rounded up, for which rho-zCDP implies (epsilon, delta)-DP.

    Claim: rho-zCDP implies (zcdp_epsilon(rho, delta), delta)-DP.
    Proof: order_cost_up, at one order a, chosen by floats; the sum is rounded up. No epsilon below 0 is claimed.
    Needs: order_cost_up, best_order, round_up.
    Checked by: test_conversion_is_tight_and_never_below_the_truth
    """
    if not rho:
        return Fraction(0)
    order = best_order(delta, lambda a, cost: float(rho) * a + cost)
    return max(Fraction(0), round_up(order * rho + order_cost_up(order, delta)))


def conversion_delta(budget: Budget) -> Fraction:
    """Return the part of a budget's delta that converts rho to epsilon.

    >>> conversion_delta(Budget(1, "1e-6", discover="1/2"))
    Fraction(1, 2000000)
    """
    return budget.delta - budget.discover


def cost_of(budget: Budget, epsilon: Number) -> Loss:
    """Return the cost of a requested epsilon: pure in a pure budget, else the corresponding rho.

    >>> cost_of(Budget(1), "1/10")
    Loss(epsilon=1/10, rho=1/200)
    """
    requested = as_positive(epsilon, "epsilon")
    return Loss(None, zcdp_rho(requested, conversion_delta(budget))) if budget.delta else Loss(requested)


def for_group(loss: Loss, size: int) -> Loss:
    """Return the loss for a group of `size` units (group privacy).

    Claim: k units lose at most k·epsilon and delta·(e^(k·eps)-1)/(e^eps-1); without a delta also k²·rho.
    Proof: change one unit at a time, through k-1 intermediate databases; pure and approximate: Dwork and Roth 2014,
        Theorem 2.2 with the geometric sum of e^(i·epsilon), i < k; zCDP: Bun and Steinke 2016, Proposition 1.9,
        which is for a delta of 0. With a delta, rho is what the group's (epsilon, delta) implies: epsilon²/2. A loss
        with a delta and no pure epsilon is refused: no such bound is known for rho alone.
    Needs: Loss, exp_up, round_up.
    Checked by: test_a_group_of_k_costs_k_epsilon_and_k_squared_rho

    >>> for_group(Loss("1/100"), 100).epsilon
    Fraction(1, 1)
    """
    k = as_integer(size, "size", minimum=1)
    if k == 1:
        return loss
    epsilon = None if loss.epsilon is None else k * loss.epsilon
    if not loss.delta:
        return Loss(epsilon, k * k * loss.rho)  # Loss takes the minimum of k²·rho and epsilon²/2
    if loss.epsilon is None or epsilon is None:
        raise ValueError("size: no group bound is known for a loss with a delta but no epsilon")
    if epsilon > 1000:  # e^1000 is out of reach, and 1 is a valid delta
        return Loss(epsilon, None, 1)
    return Loss(epsilon, None, min(Fraction(1), round_up(loss.delta * _geometric_sum_up(loss.epsilon, k), 60)))


def for_substitution(loss: Loss) -> Loss:
    """Return the loss for the substitution of one unit: a removal and an addition.

    >>> for_substitution(Loss("1/10")).epsilon
    Fraction(1, 5)
    """
    return for_group(loss, 2)


def _geometric_sum_up(epsilon: Fraction, k: int) -> Fraction:
    """Return an upper bound of 1 + e^epsilon + … + e^((k-1)·epsilon)."""
    step = 1 / exp_up(-epsilon) - 1
    bounds = [k * exp_up((k - 1) * epsilon)]
    if step > 0:
        bounds.append((exp_up(k * epsilon) - 1) / step)
    return min(bounds)


def exp_up(x: Fraction) -> Fraction:
    """Return exp(x), rounded up, for x of either sign."""
    if x <= 0:
        return Fraction(exp_bounds(-x, 128)[1], 1 << 128)
    bits = 128 + 3 * math.ceil(x)  # e^x < 2^(1.5·x), so enough bits of e^-x remain for 128 bits of its inverse
    return Fraction(1 << bits, exp_bounds(x, bits)[0])
