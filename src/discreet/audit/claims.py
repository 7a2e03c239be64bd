"""What was promised: an epsilon, perhaps with a delta."""

from fractions import Fraction
from typing import Any

from discreet.kernel.exact import Number, not_negative, share
from discreet.kernel.loss import Budget, Loss


def claimed(claim: Any, delta: Number = 0) -> tuple[Fraction | None, float]:
    """Return the epsilon and the delta of a claim: of a number, or of a loss or a budget, which may bring a delta.

    >>> claimed(Loss("1/10")), claimed(Budget(1, "1e-6"))
    ((Fraction(1, 10), 0.0), (Fraction(1, 1), 1e-06))
    """
    slack = not_negative(delta, "delta")
    if slack >= 1:
        raise ValueError(f"delta must be below 1, not {delta}: with a delta of 1 everything is private")
    if claim is None:
        return None, float(slack)
    if isinstance(claim, Budget):
        slack = slack or claim.delta
        if slack != claim.delta:
            raise ValueError(f"delta: the budget has its own, {float(claim.delta):g}; leave delta out")
        return claim.epsilon, float(slack)
    if isinstance(claim, Loss):
        slack = slack or claim.delta
        return claim.to_epsilon(slack), float(slack)
    return not_negative(claim, "claim"), float(slack)


def level(confidence: Any) -> float:
    """Return a confidence as a float.

    >>> level(0.95)
    0.95
    """
    return float(share(confidence, "confidence"))
