"""How often an outsider can be right: what a privacy loss means for somebody who decides whether to take part.

A coin decides between two data sets. An outsider who knows everything else, and sees everything that is released, says
which it was. Without the release they are right in half of all cases.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

from discreet.kernel.loss import Budget, Loss
from discreet.privacy import posterior_bound, to_epsilon
from discreet.privacy.conversion import zcdp_epsilon

_HALF = Fraction(1, 2)
_OTHER_DELTAS = tuple(Fraction(1, 10**digits) for digits in (5, 6, 7, 9, 12))
_TRIED_DELTAS = tuple(Fraction(1, 2**bits) for bits in range(2, 41))  # for the best bound from rho
_MAX_EXPONENT = 700.0
_CASES = (100, 1000, 10_000, 1_000_000)

EpsilonDelta = tuple[Fraction, Fraction]


def guess_participation(pairs: list[EpsilonDelta]) -> float:
    """Return the most that the share of right guesses can be, of whether one unit is in the data.

    Each pair is an epsilon with its delta for which the release is differentially private.

    >>> round(guess_participation([(Fraction(1), Fraction(0))]), 4)
    0.7311
    """
    return min((_with_delta(epsilon, delta) for epsilon, delta in pairs), default=1.0)


def guess_fact(pairs: list[EpsilonDelta]) -> float:
    """Return the most that the share of right guesses can be, of a yes-or-no fact in the rows of one unit.

    Changing the fact removes one unit and adds another. So (epsilon, delta) becomes (2·epsilon, (1 + e^epsilon)·delta);
    also, the advantage over guessing is at most twice that of guessing participation.

    >>> round(guess_fact([(Fraction(1), Fraction(0))]), 4)
    0.8808
    """
    twice = [
        _with_delta(2 * epsilon, float(delta) * (1 + math.exp(min(float(epsilon), _MAX_EXPONENT))))
        for epsilon, delta in pairs
    ]
    return min(1.0, *twice, 2 * guess_participation(pairs) - 0.5)


def _with_delta(epsilon: Fraction, delta: Fraction | float) -> float:
    """Return (e^epsilon + delta)/(1 + e^epsilon), the best test between two equally likely distributions."""
    sure = posterior_bound(_HALF, epsilon)
    return min(1.0, sure + float(delta) * (1 - sure))


def loss_pairs(loss: Loss) -> list[EpsilonDelta]:
    """Return epsilons with deltas for which a release of this loss is private, with many deltas if it has a rho.

    >>> loss_pairs(Loss("1/10"))[0]
    (Fraction(1, 10), Fraction(0, 1))
    """
    pure = [] if loss.epsilon is None else [(loss.epsilon, loss.delta)]
    converted = [
        (zcdp_epsilon(loss.rho, delta), delta + loss.delta) for delta in _TRIED_DELTAS if delta + loss.delta < 1
    ]
    return pure + converted


def budget_pair(budget: Budget) -> EpsilonDelta:
    """Return the guarantee of a budget, whatever is asked: its epsilon and its delta."""
    return budget.epsilon, budget.delta


def odds_text(share: float) -> str:
    """Write an upper bound of a share as cases, rounded up.

    >>> odds_text(0.7311), odds_text(0.9982), odds_text(1.0)
    ('74 of 100 cases', '999 of 1,000 cases', 'all cases')
    """
    for cases in _CASES:
        right = math.ceil(round(share * cases, 6))
        if right < cases:
            return f"{right:,} of {cases:,} cases"
    return "all cases"


def epsilons_of_loss(loss: Loss, delta: Fraction) -> list[EpsilonDelta]:
    """Return the epsilon of a loss at several deltas, among them that of the budget, the largest delta first.

    >>> [float(delta) for _, delta in epsilons_of_loss(Loss(None, "1/100"), Fraction(1, 10**8))][:3]
    [1e-05, 1e-06, 1e-07]
    """
    return [(to_epsilon(loss, each), each) for each in _sorted_deltas(delta) if each > loss.delta]


def epsilons_of_budget(budget: Budget) -> list[EpsilonDelta]:
    """Return the epsilon that a budget guarantees at several deltas.

    With a larger delta than its own, it stays at its epsilon: charges without a delta may use all of that.
    """
    if budget.rho is None:
        return epsilons_of_loss(Loss(budget.epsilon), Fraction(0))
    return list(_budget_epsilons(budget, budget.rho))


def _budget_epsilons(budget: Budget, rho: Fraction) -> Iterator[EpsilonDelta]:
    for delta in _sorted_deltas(budget.delta):
        if delta == budget.delta:
            yield budget.epsilon, delta
        elif delta > budget.discover:
            yield max(budget.epsilon, zcdp_epsilon(rho, delta - budget.discover)), delta


def _sorted_deltas(delta: Fraction) -> list[Fraction]:
    return sorted({*_OTHER_DELTAS, *([delta] if delta else [])}, reverse=True)
