"""Exact audits: the epsilon of known distributions, or of a small algorithm by enumeration."""

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

from discreet.audit.arguments import parse_claim
from discreet.audit.result import AuditResult
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.numbers import Number, as_integer
from discreet.privacy import hockey_stick, max_divergence
from discreet.privacy.mechanism_output import MechanismOutput

_MAX_PATHS = 2_000_000


def exact(p: Any, q: Any, claim: Number | Loss | Budget | None = None, *, delta: Number = 0) -> AuditResult:
    """Return the epsilon of two known distributions: dicts {outcome: probability}, or two `privacy.output`s.

    Both directions count. A pmf that sums to less than 1 is used unchanged. `distribution_of` enumerates the pmf of a
    small algorithm.

    >>> import discreet as dc
    >>> here, there = (dc.privacy.output(dc.Laplace(10), value) for value in (0, 1))
    >>> exact(here, there, claim="1/10").holds, exact(here, there, claim="0.0999").holds
    (True, False)
    """
    epsilon, claimed_delta = parse_claim(claim, delta)
    for distribution in (p, q):
        if not isinstance(distribution, Mapping | MechanismOutput):
            raise TypeError(
                f"p and q must be dicts {{outcome: probability}} or values of privacy.output, not {distribution!r:.40}"
            )
    epsilons = [_exact_epsilon(one, other, claimed_delta) for one, other in ((p, q), (q, p))]
    likelier_on_d = epsilons[0] >= epsilons[1]
    low = max(epsilons)
    event, details = (
        _worst_outcome(p, q, likelier_on_d=likelier_on_d) if not claimed_delta else ("a set of outcomes", {})
    )
    if epsilon is not None:
        details["delta at the claim"] = max(float(hockey_stick(a, b, epsilon)) for a, b in ((p, q), (q, p)))
    return AuditResult(
        epsilon_low=float(epsilon) if epsilon is not None and _equals_claim(low, epsilon) else float(low),
        claim=epsilon,
        runs=0,
        delta=claimed_delta,
        confidence=1.0,
        event=event,
        direction=_direction(low, likelier_on_d=likelier_on_d),
        details=details,
    )


def _direction(low: float | Fraction, *, likelier_on_d: bool) -> str:
    if not low:
        return "equally likely on both"
    return "likelier on D than on D2" if likelier_on_d else "likelier on D2 than on D"


def _equals_claim(low: float | Fraction, claim: Fraction) -> bool:
    """Return whether an exact epsilon equals the claim, or a float does up to rounding error."""
    if isinstance(low, Fraction):
        return low == claim
    return abs(low - float(claim)) <= 1e-12 * max(1.0, float(claim))


def _exact_epsilon(p: Any, q: Any, delta: float) -> float | Fraction:
    """Return the smallest epsilon with p <= e^epsilon·q + delta."""
    pure = max_divergence(p, q)
    if not delta or pure <= 0:
        return max(pure, Fraction(0))
    if float(hockey_stick(p, q, 0)) <= delta:
        return Fraction(0)
    low, high = 0.0, min(float(pure), 1.0)
    while high < pure and float(hockey_stick(p, q, high)) > delta:
        low, high = high, 2 * high
        if high > 1e4:
            return math.inf
    while high - low > 1e-12 * max(1.0, high):
        middle = (low + high) / 2
        low, high = (middle, high) if float(hockey_stick(p, q, middle)) > delta else (low, middle)
    return min(pure, high)


def _worst_outcome(p: Any, q: Any, *, likelier_on_d: bool) -> tuple[str, dict[str, Any]]:
    if isinstance(p, MechanismOutput):
        return "an output in the tail", {}
    one, other = (p, q) if likelier_on_d else (q, p)

    def ratio(outcome: Hashable) -> float:
        return float(one[outcome]) / float(other[outcome]) if other.get(outcome) else math.inf

    worst = max((outcome for outcome in one if one[outcome]), key=ratio)
    probabilities = {"probability on D": float(p.get(worst, 0)), "probability on D2": float(q.get(worst, 0))}
    return f"the output is {worst!r:.60}", probabilities


def distribution_of(algorithm: Callable[[Any, Callable[[int], int]], Hashable], data: Any) -> dict[Hashable, Fraction]:
    """Return the exact output distribution of a small randomised algorithm, by enumerating all its random draws.

    `algorithm(data, below)` draws a uniform integer from 0 to n - 1 by `below(n)`, and must terminate whatever it
    draws. An exception is an outcome.

    >>> def survey(bit, below):
    ...     return bit if below(2) else below(2)
    >>> distribution_of(survey, 1)
    {0: Fraction(1, 4), 1: Fraction(3, 4)}
    """
    if not callable(algorithm):
        raise TypeError(f"algorithm must be a function of the data and of `below`, not {type(algorithm).__name__}")
    distribution: dict[Hashable, Fraction] = {}
    path: list[tuple[int, int]] = []  # draws: value and number of possible values
    for _ in range(_MAX_PATHS):
        outcome, path = _run_path(algorithm, data, path)
        probability = Fraction(1, math.prod(size for _, size in path))
        distribution[outcome] = distribution.get(outcome, Fraction(0)) + probability
        while path and path[-1][0] == path[-1][1] - 1:
            path.pop()
        if not path:
            return distribution
        path[-1] = path[-1][0] + 1, path[-1][1]
    raise ValueError(f"algorithm: more than {_MAX_PATHS:,} sequences of draws; reduce their number or their ranges")


def _run_path(
    algorithm: Callable[[Any, Callable[[int], int]], Hashable], data: Any, path: list[tuple[int, int]]
) -> tuple[Hashable, list[tuple[int, int]]]:
    """Run once with these draws, then zeros; return the outcome and all draws."""
    draws: list[tuple[int, int]] = []

    def below(n: int) -> int:
        size = as_integer(n, "n", minimum=1)
        value = path[len(draws)][0] if len(draws) < len(path) else 0
        draws.append((value, size))
        if len(draws) > 10_000:
            raise _TooManyDrawsError
        return value

    try:
        outcome = algorithm(data, below)
    except _TooManyDrawsError:
        raise ValueError("algorithm: more than 10,000 draws in one run; it must terminate") from None
    except Exception as error:  # noqa: BLE001 - an exception is an outcome like any other
        outcome = f"raised {type(error).__name__}: {error}"
    return outcome, draws


class _TooManyDrawsError(BaseException):
    """Derived from BaseException, so that an algorithm's `except Exception` does not catch it."""
