"""Black-box audit: a lower bound on epsilon from outputs on two neighbouring data sets."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.audit.arguments import parse_claim, parse_confidence, random_generator
from discreet.audit.event_selection import CandidateEvent, DistinguishingEvent, candidate_events
from discreet.audit.hypothesis_tests import Proportion, epsilon_lower_bound, refutes_epsilon
from discreet.audit.output_encoding import encode_runs
from discreet.audit.result import AuditResult, FeatureSamples
from discreet.audit.runs import ErrorOutcome, Outcomes, Runs, check_any_succeeded, describe_errors, run_on_both
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.numbers import Number, as_integer

_PLOTTED_RUNS = 20_000  # runs kept for the plot
_FIRST_EVENT_SHARE = 2 / 3  # of the error probability goes to the best candidate, of the rest to the next, and so on
_NEARLY_BEST = 0.98  # a bound this close to the best one is preferred if its event is easier to read
_NO_DIFFERENCE = "equally likely on both, as far as this sample size shows"

Claim = Number | Loss | Budget
Predicate = Callable[[Any], bool]


def measure(  # noqa: PLR0913 - public interface
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
    """Run a mechanism `runs` times on each of two neighbouring data sets; return a lower bound on its epsilon.

    `mechanism` is a function from data to an output (a number, several numbers, a text, anything hashable; an exception
    is an outcome, too), a `Batch`, or an object with `perturb`, whose data are integers. `claim` is an epsilon, a
    `Loss` or a `Budget`. Events are selected on pilot runs, which are part of `runs`, and tested on the others. Your
    own `events`, functions of one output (an `ErrorOutcome` if the run failed), are tested on all runs instead.

    >>> import discreet as dc
    >>> honest = measure(dc.Laplace(1), 0, 1, claim=1, runs=20_000, confidence=1 - 1e-9)
    >>> honest.holds, 0.7 < honest.epsilon_low
    (True, True)
    >>> half = measure(dc.Laplace("1/2"), 0, 1, claim=1, runs=20_000, confidence=1 - 1e-9)
    >>> half.holds, half.epsilon_low > 1.5
    (False, True)
    """
    epsilon, claimed_delta = parse_claim(claim, delta)
    error = 1 - parse_confidence(confidence)
    runs = as_integer(runs, "runs", 20)
    outputs = run_on_both(mechanism, (D, D2), runs, random_generator(random_state))
    if events is not None:
        result = _evaluate_predicates(events, outputs, (epsilon, claimed_delta), error)
    else:
        pilot = pilot_size(runs)
        first, second = encode_runs(outputs, pilot)
        candidates = candidate_events(
            (first.subset(0, pilot), second.subset(0, pilot)), runs - pilot, delta=claimed_delta
        )
        result = evaluate_events(
            candidates, (first.subset(pilot), second.subset(pilot)), (epsilon, claimed_delta), error, runs=runs
        )
    if not result.epsilon_low:
        check_any_succeeded(outputs)
    return replace(result, notes=tuple(("errors", description) for description in describe_errors(outputs)))


def pilot_size(runs: int) -> int:
    """Return the number of pilot runs: a tenth of many runs, a quarter of few.

    >>> pilot_size(100), pilot_size(1_000_000)
    (25, 100000)
    """
    return min(max(runs // 10, 20_000), runs // 4)


def evaluate_events(
    candidates: list[CandidateEvent],
    fresh_outcomes: tuple[Outcomes, Outcomes],
    claim: tuple[Fraction | None, float],
    error: float,
    *,
    runs: int,
) -> AuditResult:
    """Return the lower bound from fresh runs for events that were selected before."""
    if not candidates:
        return _inconclusive_result(fresh_outcomes, claim, error, runs)
    proportions = [
        (
            _proportion(candidate.event.occurrences(fresh_outcomes[0])),
            _proportion(candidate.event.occurrences(fresh_outcomes[1])),
        )
        for candidate in candidates
    ]
    pairs = [
        pair if candidate.likelier_on_d else pair[::-1] for candidate, pair in zip(candidates, proportions, strict=True)
    ]
    difficulties = [candidate.event.difficulty for candidate in candidates]
    best, low = _best_bound(pairs, error_shares(len(pairs), error), claim, difficulties)
    winner = candidates[best]
    likelier_outcomes = fresh_outcomes[not winner.likelier_on_d]
    return AuditResult(
        epsilon_low=low,
        claim=claim[0],
        runs=runs,
        delta=claim[1],
        confidence=1 - error,
        event=f"{winner.event}{winner.event.examples(likelier_outcomes.subset(0, _PLOTTED_RUNS))}",
        direction=_direction(likelier_on_d=winner.likelier_on_d) if low else _NO_DIFFERENCE,
        counts=proportions[best],
        details={
            "pilot runs": runs - len(fresh_outcomes[0]),
            "events judged": len(candidates),
            **{f"event {i}": str(candidate.event) for i, candidate in enumerate(candidates, 1)},
        },
        plot_data=_plot_samples(winner.event, fresh_outcomes),
    )


def _inconclusive_result(
    fresh_outcomes: tuple[Outcomes, Outcomes], claim: tuple[Fraction | None, float], error: float, runs: int
) -> AuditResult:
    """Return the result when no output occurred twice, so that there is nothing to count."""
    details = {"pilot runs": runs - len(fresh_outcomes[0]), "events judged": 0}
    return AuditResult(0.0, claim[0], runs, claim[1], 1 - error, "none", "not observed", details=details)


def error_shares(count: int, error: float) -> list[float]:
    """Divide the error probability among candidate events, the best first; the sum is below `error`.

    >>> [round(share, 4) for share in error_shares(3, 0.05)]
    [0.0333, 0.0111, 0.0037]
    """
    return [error * _FIRST_EVENT_SHARE * (1 - _FIRST_EVENT_SHARE) ** i for i in range(count)]


def _best_bound(
    pairs: list[tuple[Proportion, Proportion]],
    event_errors: list[float],
    claim: tuple[Fraction | None, float],
    difficulties: list[int],
) -> tuple[int, float]:
    """Return the index of the event with the largest lower bound, and the bound.

    A nearly equal bound with the same verdict on the claim is preferred if its event is easier to read.
    """
    claimed_epsilon, delta = claim
    lower_bounds: list[float] = []
    for (numerator, denominator), error in zip(pairs, event_errors, strict=True):
        min_useful = _NEARLY_BEST * max(lower_bounds, default=0.0)
        is_useful = numerator.value - delta > math.exp(min_useful) * denominator.value and refutes_epsilon(
            numerator, denominator, min_useful, delta=delta, error=error
        )
        lower_bounds.append(epsilon_lower_bound(numerator, denominator, delta=delta, error=error) if is_useful else 0.0)
    largest = max(lower_bounds)
    needed = max(
        _NEARLY_BEST * largest,
        math.nextafter(claimed_epsilon, math.inf) if claimed_epsilon is not None and largest > claimed_epsilon else 0.0,
    )
    best = min(
        (index for index, low in enumerate(lower_bounds) if low >= needed),
        key=lambda place: (difficulties[place], -lower_bounds[place]),
    )
    low = lower_bounds[best]
    if claimed_epsilon is not None and low > claimed_epsilon:
        # The test is monotone in epsilon in all tests, but this is not proved; so the claim itself is tested as well.
        just_above_claim = math.nextafter(float(claimed_epsilon), math.inf)
        if not refutes_epsilon(*pairs[best], just_above_claim, delta=delta, error=event_errors[best]):
            low = float(claimed_epsilon)
    return best, low


def _evaluate_predicates(
    events: Mapping[str, Predicate], outputs: Runs, claim: tuple[Fraction | None, float], error: float
) -> AuditResult:
    if not isinstance(events, Mapping) or not all(callable(predicate) for predicate in events.values()):
        raise TypeError(
            "events must be a dict from names to functions of one output, such as {'positive': is_positive}"
        )
    if not events:
        raise ValueError("events must not be empty: give at least one, or leave the argument out")
    runs = len(outputs.on_d)
    names, pairs, counts = [], [], []
    for name, happens in events.items():
        here, there = (
            Proportion.from_outcomes([_apply_predicate(name, happens, *run) for run in enumerate(side, 1)])
            for side in outputs.on_both()
        )
        not_here, not_there = (Proportion(runs - proportion.hits, runs) for proportion in (here, there))
        pairs += [(here, there), (there, here), (not_here, not_there), (not_there, not_here)]
        counts += [(here, there)] * 2 + [(not_here, not_there)] * 2
        names += [name] * 2 + [f"not: {name}"] * 2
    best, low = _best_bound(pairs, [error / len(pairs)] * len(pairs), claim, [0] * len(pairs))
    return AuditResult(
        epsilon_low=low,
        claim=claim[0],
        runs=runs,
        delta=claim[1],
        confidence=1 - error,
        event=names[best],
        direction=_direction(likelier_on_d=best % 2 == 0) if low else _NO_DIFFERENCE,
        counts=counts[best],
        details={"events judged": len(events)},
    )


def _apply_predicate(name: str, predicate: Predicate, run: int, output: Any) -> bool:
    try:
        return bool(predicate(output))
    except Exception as error:
        where = f"run {run}, output {output!r:.60}. It must return True or False for every output"
        if isinstance(output, ErrorOutcome):
            where = f"run {run}, which raised {output.kind}. It must return True or False for an ErrorOutcome, too"
        raise ValueError(f"events: {name!r} failed ({type(error).__name__}: {error}) on {where}.") from error


def _proportion(hits: np.ndarray) -> Proportion:
    return Proportion(int(np.count_nonzero(hits)), len(hits))


def _direction(*, likelier_on_d: bool) -> str:
    return "likelier on D than on D2" if likelier_on_d else "likelier on D2 than on D"


def _plot_samples(event: DistinguishingEvent, fresh_outcomes: tuple[Outcomes, Outcomes]) -> FeatureSamples:
    plotted = [outcomes.subset(0, _PLOTTED_RUNS) for outcomes in fresh_outcomes]
    here, there = (
        event.feature.expand_to_runs(np.asarray(event.feature.score(seen), float), seen, fill=np.nan)
        for seen in plotted
    )
    relation = "yes" if event.is_binary else event.relation
    return FeatureSamples(event.feature.name, here, there, relation, float(event.bound))
