"""The audit of anything that can be run: which epsilon its outputs on two neighbouring data sets refute."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.audit.claims import claimed, level
from discreet.audit.counting import Share
from discreet.audit.events import Event, Suspicion, suspicions
from discreet.audit.outcomes import Outcomes, run_both
from discreet.audit.ratios import least_epsilon, refutes
from discreet.audit.result import AuditResult, Seen
from discreet.kernel.exact import Number, whole
from discreet.kernel.loss import Budget, Loss

_SHOWN = 20_000  # runs kept for the picture
_FIRST = 2 / 3  # of the error goes to the most promising event, so much of the rest to the next, and so on

Claim = Number | Loss | Budget
Predicate = Callable[[Any], bool]


def measure(  # noqa: PLR0913 - the contract of an audit: what, on what, which claim, and how sure
    mechanism: Any,
    D: Any,  # noqa: N803 - as in every textbook
    D2: Any,  # noqa: N803
    claim: Claim,
    runs: int,
    *,
    delta: Number = 0,
    confidence: float = 0.95,
    events: Mapping[str, Predicate] | None = None,
    random_state: int | None = None,
) -> AuditResult:
    """Run a mechanism so often on each of two neighbouring data sets, and return the least epsilon that it can have.

    `mechanism` is a function from data to an output (a number, several numbers, a text, anything hashable; an error
    is an outcome, too), a `Batch`, or an object with `perturb`, whose data are integers. `claim` is an epsilon, a
    `Loss` or a `Budget`. Events are found on pilot runs, which are a part of `runs`, and judged on all others;
    `events` of your own, functions of one output, are judged on all runs instead.

    >>> import discreet as dc
    >>> honest = measure(dc.Laplace(1), 0, 1, claim=1, runs=20_000, confidence=1 - 1e-9)
    >>> honest.holds, 0.7 < honest.epsilon_low
    (True, True)
    >>> half = measure(dc.Laplace("1/2"), 0, 1, claim=1, runs=20_000, confidence=1 - 1e-9)
    >>> half.holds, half.epsilon_low > 1.5
    (False, True)
    """
    epsilon, slack = claimed(claim, delta)
    error = 1 - level(confidence)
    runs = whole(runs, "runs", 20)
    first, second, raw = run_both(mechanism, (D, D2), runs, np.random.default_rng(random_state))
    if events is not None:
        return _judged_by(events, raw, (epsilon, slack), error)
    pilot = pilot_of(runs)
    chosen = suspicions((first.part(0, pilot), second.part(0, pilot)), runs - pilot, delta=slack)
    fresh = first.part(pilot), second.part(pilot)
    return judged(chosen, fresh, (epsilon, slack), error, runs=runs)


def pilot_of(runs: int) -> int:
    """Return how many of the runs are for finding events: a tenth of many, a quarter of few.

    >>> pilot_of(100), pilot_of(1_000_000)
    (25, 100000)
    """
    return min(max(runs // 10, 20_000), runs // 4)


def judged(
    chosen: list[Suspicion],
    fresh: tuple[Outcomes, Outcomes],
    claim: tuple[Fraction | None, float],
    error: float,
    *,
    runs: int,
) -> AuditResult:
    """Return what fresh runs prove by events that were chosen before."""
    if not chosen:
        return _nothing_seen(fresh, claim, error, runs)
    shares = [(_share(each.event.hits(fresh[0])), _share(each.event.hits(fresh[1]))) for each in chosen]
    pairs = [pair if each.forwards else pair[::-1] for each, pair in zip(chosen, shares, strict=True)]
    best, low = _best(pairs, errors(len(pairs), error), claim)
    winner = chosen[best]
    return AuditResult(
        epsilon_low=low,
        claim=claim[0],
        runs=runs,
        delta=claim[1],
        confidence=1 - error,
        event=str(winner.event),
        direction=_direction(forwards=winner.forwards),
        counts=shares[best],
        details={
            "pilot runs": runs - len(fresh[0]),
            "events judged": len(chosen),
            **{f"event {i}": str(each.event) for i, each in enumerate(chosen, 1)},
        },
        seen=_seen(winner.event, fresh),
    )


def _nothing_seen(
    fresh: tuple[Outcomes, Outcomes], claim: tuple[Fraction | None, float], error: float, runs: int
) -> AuditResult:
    """Return that no outcome came twice: there is nothing to count."""
    details = {"pilot runs": runs - len(fresh[0]), "events judged": 0}
    return AuditResult(0.0, claim[0], runs, claim[1], 1 - error, "none", "not seen", details=details)


def errors(count: int, error: float) -> list[float]:
    """Return how the chance of a false alarm is shared by events in order of promise: their sum is below `error`.

    >>> [round(each, 4) for each in errors(3, 0.05)]
    [0.0333, 0.0111, 0.0037]
    """
    return [error * _FIRST * (1 - _FIRST) ** i for i in range(count)]


def _best(
    pairs: list[tuple[Share, Share]], allowed: list[float], claim: tuple[Fraction | None, float]
) -> tuple[int, float]:
    """Return which event proves most, and how much: a later one is worked out only if it beats those before."""
    promised, delta = claim
    best, low = 0, 0.0
    for i, ((seen, other), error) in enumerate(zip(pairs, allowed, strict=True)):
        is_more = seen.value - delta > math.exp(low) * other.value
        if is_more and refutes(seen, other, low, delta=delta, error=error):
            found = least_epsilon(seen, other, delta=delta, error=error)
            best, low = (i, found) if found > low else (best, low)
    if promised is not None and low > promised:
        # That what refutes an epsilon refutes every smaller one is tested, not proved: the verdict does not rest on it.
        at = math.nextafter(float(promised), math.inf)
        if not refutes(*pairs[best], at, delta=delta, error=allowed[best]):
            low = float(promised)
    return best, low


def _judged_by(
    events: Mapping[str, Predicate], raw: Any, claim: tuple[Fraction | None, float], error: float
) -> AuditResult:
    if not events:
        raise ValueError("events must not be empty: give at least one name with a function, or leave them out")
    runs = len(raw[0])
    names, pairs, counts = [], [], []
    for name, happens in events.items():
        here, there = (Share(sum(bool(happens(output)) for output in side), runs) for side in raw)
        not_here, not_there = (Share(runs - share.hits, runs) for share in (here, there))
        pairs += [(here, there), (there, here), (not_here, not_there), (not_there, not_here)]
        counts += [(here, there)] * 2 + [(not_here, not_there)] * 2
        names += [name] * 2 + [f"not: {name}"] * 2
    best, low = _best(pairs, [error / len(pairs)] * len(pairs), claim)
    return AuditResult(
        epsilon_low=low,
        claim=claim[0],
        runs=runs,
        delta=claim[1],
        confidence=1 - error,
        event=names[best],
        direction=_direction(forwards=best % 2 == 0),
        counts=counts[best],
        details={"events judged": len(events)},
    )


def _share(hits: np.ndarray) -> Share:
    return Share(int(np.count_nonzero(hits)), len(hits))


def _direction(*, forwards: bool) -> str:
    return "likelier on D than on D2" if forwards else "likelier on D2 than on D"


def _seen(event: Event, fresh: tuple[Outcomes, Outcomes]) -> Seen:
    here, there = (np.asarray(event.feature.score(seen.part(0, _SHOWN)), float) for seen in fresh)
    return Seen(event.feature.name, here, there, event.relation, float(event.bound))
