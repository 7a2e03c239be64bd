"""Validate the arguments that audits share: claim, delta, confidence and random state."""

from fractions import Fraction
from typing import Any

import numpy as np

from discreet import privacy
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.numbers import Number, as_integer, as_nonnegative
from discreet.privacy.probability import as_probability


def parse_claim(claim: Any, delta: Number = 0) -> tuple[Fraction | None, float]:
    """Return epsilon and delta of a claim: a number, or a loss or budget, which may have its own delta.

    >>> parse_claim(Loss("1/10")), parse_claim(Budget(1, "1e-6"))
    ((Fraction(1, 10), 0.0), (Fraction(1, 1), 1e-06))
    """
    claimed_delta = as_nonnegative(delta, "delta")
    if claimed_delta >= 1:
        raise ValueError(f"delta must be below 1, not {delta}: every mechanism is private with a delta of 1")
    if claim is None:
        return None, float(claimed_delta)
    if isinstance(claim, Budget):
        claimed_delta = claimed_delta or claim.delta
        if claimed_delta != claim.delta:
            raise ValueError(f"delta: the budget already has delta {float(claim.delta):g}; leave delta out")
        return claim.epsilon, float(claimed_delta)
    if isinstance(claim, Loss):
        claimed_delta = claimed_delta or claim.delta
        return privacy.to_epsilon(claim, claimed_delta), float(claimed_delta)
    return as_nonnegative(claim, "claim"), float(claimed_delta)


def parse_confidence(confidence: Any) -> float:
    """Return a confidence level as a float.

    >>> parse_confidence(0.95)
    0.95
    """
    return float(as_probability(confidence, "confidence"))


def random_generator(random_state: int | None) -> np.random.Generator:
    """Return the random generator of an audit: seeded by an integer, or unpredictable for None.

    >>> int(random_generator(1).integers(10))
    4
    """
    return np.random.default_rng(None if random_state is None else as_integer(random_state, "random_state", 0))
