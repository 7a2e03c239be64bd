"""The audit of anything that can be run: which epsilon its outputs on two neighbouring data sets refute."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.audit.chances import generator
from discreet.audit.claims import claimed, level
from discreet.audit.counting import Share
from discreet.audit.events import Event, Suspicion, suspicions
from discreet.audit.failures import check_some_ran, failures
from discreet.audit.outcomes import Outcomes, Raised, Runs, run_both
from discreet.audit.ratios import least_epsilon, refutes
from discreet.audit.reading import read_both
from discreet.audit.result import AuditResult, Seen
from discreet.kernel.exact import Number, whole
from discreet.kernel.loss import Budget, Loss

_SHOWN = 20_000  # runs kept for the picture
_FIRST = 2 / 3  # of the error goes to the most promising event, so much of the rest to the next, and so on
_NEARLY = 0.98  # of the best proof is as good as the best, if its event is easier to read
_UNTOLD = "equally likely on both, as far as this can tell"

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
    `events` of your own, functions of one output (of a `Raised` if the run failed), are judged on all runs instead.

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
    ran = run_both(mechanism, (D, D2), runs, generator(random_state))
    if events is not None:
        result = _judged_by(events, ran, (epsilon, slack), error)
    else:
        pilot = pilot_of(runs)
        first, second = read_both(ran, pilot)
        chosen = suspicions((first.part(0, pilot), second.part(0, pilot)), runs - pilot, delta=slack)
        result = judged(chosen, (first.part(pilot), second.part(pilot)), (epsilon, slack), error, runs=runs)
    if not result.epsilon_low:
        check_some_ran(ran)
    return replace(result, notes=tuple(("errors", said) for said in failures(ran)))


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
    hard = [each.event.hard for each in chosen]
    best, low = _best(pairs, errors(len(pairs), error), claim, hard)
    winner = chosen[best]
    return AuditResult(
        epsilon_low=low,
        claim=claim[0],
        runs=runs,
        delta=claim[1],
        confidence=1 - error,
        event=f"{winner.event}{winner.event.examples(fresh[not winner.forwards].part(0, _SHOWN))}",
        direction=_direction(forwards=winner.forwards) if low else _UNTOLD,
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
    pairs: list[tuple[Share, Share]], allowed: list[float], claim: tuple[Fraction | None, float], hard: list[int]
) -> tuple[int, float]:
    """Return which event proves most, and how much: a later one is worked out only if it comes near those before.

    An event that proves nearly as much, and the same about the claim, is taken if it is easier to read.
    """
    promised, delta = claim
    lows: list[float] = []
    for (seen, other), error in zip(pairs, allowed, strict=True):
        least = _NEARLY * max(lows, default=0.0)
        is_near = seen.value - delta > math.exp(least) * other.value and refutes(
            seen, other, least, delta=delta, error=error
        )
        lows.append(least_epsilon(seen, other, delta=delta, error=error) if is_near else 0.0)
    most = max(lows)
    needed = max(
        _NEARLY * most, math.nextafter(promised, math.inf) if promised is not None and most > promised else 0.0
    )
    best = min(
        (place for place, low in enumerate(lows) if low >= needed), key=lambda place: (hard[place], -lows[place])
    )
    low = lows[best]
    if promised is not None and low > promised:
        # That what refutes an epsilon refutes every smaller one is tested, not proved: the verdict does not rest on it.
        at = math.nextafter(float(promised), math.inf)
        if not refutes(*pairs[best], at, delta=delta, error=allowed[best]):
            low = float(promised)
    return best, low


def _judged_by(
    events: Mapping[str, Predicate], ran: Runs, claim: tuple[Fraction | None, float], error: float
) -> AuditResult:
    if not isinstance(events, Mapping) or not all(callable(happens) for happens in events.values()):
        raise TypeError(
            "events must be a dict of names with functions of one output, such as {'positive': is_positive}"
        )
    if not events:
        raise ValueError("events must not be empty: give at least one name with a function, or leave them out")
    runs = len(ran.here)
    names, pairs, counts = [], [], []
    for name, happens in events.items():
        here, there = (Share.of([_happened(name, happens, *run) for run in enumerate(side, 1)]) for side in ran.sides())
        not_here, not_there = (Share(runs - share.hits, runs) for share in (here, there))
        pairs += [(here, there), (there, here), (not_here, not_there), (not_there, not_here)]
        counts += [(here, there)] * 2 + [(not_here, not_there)] * 2
        names += [name] * 2 + [f"not: {name}"] * 2
    best, low = _best(pairs, [error / len(pairs)] * len(pairs), claim, [0] * len(pairs))
    return AuditResult(
        epsilon_low=low,
        claim=claim[0],
        runs=runs,
        delta=claim[1],
        confidence=1 - error,
        event=names[best],
        direction=_direction(forwards=best % 2 == 0) if low else _UNTOLD,
        counts=counts[best],
        details={"events judged": len(events)},
    )


def _happened(name: str, happens: Predicate, run: int, output: Any) -> bool:
    try:
        return bool(happens(output))
    except Exception as error:
        where = f"run {run}, which gave {output!r:.60}. It must tell True or False of every output"
        if isinstance(output, Raised):
            where = (
                f"run {run} raised {output.kind}; your event was given a `Raised`. Let it say what it says of an error"
            )
        raise ValueError(f"events: {name!r} failed ({type(error).__name__}: {error}): {where}.") from error


def _share(hits: np.ndarray) -> Share:
    return Share(int(np.count_nonzero(hits)), len(hits))


def _direction(*, forwards: bool) -> str:
    return "likelier on D than on D2" if forwards else "likelier on D2 than on D"


def _seen(event: Event, fresh: tuple[Outcomes, Outcomes]) -> Seen:
    shown = [seen.part(0, _SHOWN) for seen in fresh]
    here, there = (
        event.feature.everywhere(np.asarray(event.feature.score(seen), float), seen, otherwise=np.nan) for seen in shown
    )
    relation = "yes" if event.is_yes_or_no else event.relation
    return Seen(event.feature.name, here, there, relation, float(event.bound))
