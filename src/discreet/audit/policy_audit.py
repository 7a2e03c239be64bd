"""The audit of a policy: every kind of question that it allows, on neighbouring data, through the real curator."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan
from typing import Any

import numpy as np

from discreet.audit.counting import limits
from discreet.audit.measuring import measure
from discreet.audit.outcomes import Batch
from discreet.audit.policy_account import account_checks
from discreet.audit.policy_checks import error_check, question_checks, told
from discreet.audit.policy_errors import risky
from discreet.audit.policy_evidence import Evidence, evidence
from discreet.audit.policy_questions import Asked, questions
from discreet.audit.policy_result import Check, Finding, PolicyAudit, Unasked, read_numbers
from discreet.audit.policy_rho import least_rho
from discreet.audit.policy_worlds import Pair, Prepared, exact, offer, opened, prepared, released
from discreet.audit.result import AuditResult
from discreet.curator import Curator
from discreet.engines.sources import EngineError
from discreet.kernel.errors import Failed, PolicyError, Refused
from discreet.kernel.exact import Number
from discreet.kernel.loss import Loss
from discreet.policy import Policy
from discreet.pricing import Offer

_DELTA = Fraction(1, 4)  # where a rho becomes an epsilon: half the noise is seen best at a large delta

Track = Callable[[Sequence[Any], str], Iterable[Any]]


@dataclass(frozen=True)
class _Suspect:
    """A question with the pair of data sets whose exact answers differ most, and how they do."""

    question: Prepared
    pair: Pair
    found: Evidence
    moved: float  # the largest share of an allowed move, over all places
    owner: tuple[Pair, Evidence] | None  # where the unit has groups of its own, if it can
    failing: tuple[str, ...]  # the places of the unit at which the engine gave up


def _in_silence(items: Sequence[Any], _: str) -> Iterable[Any]:
    return items


def audit_policy(  # noqa: PLR0913 - what, how often, at which price, how sure, which of it
    policy: Policy,
    *,
    runs: int = 2000,
    epsilon: Number = 1,
    confidence: float = 0.95,
    only: Sequence[str] = (),
    random_state: int = 0,
    track: Track = _in_silence,
) -> PolicyAudit:
    """Try to refute what a policy promises, on made-up data with one unit planted where it shows most.

    The owner's data and ledger are never opened. Each question is asked `runs` times on either data set, for the price
    `epsilon` (with a delta: the rho that it implies). The chance that a sound curator is accused, of anything, is at
    most 1 - `confidence`. `only` keeps the questions whose names contain one of these words.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> found = audit_policy(policy, runs=300, confidence=1 - 1e-9, only=["COUNT(*)"])
    >>> found.holds, [finding.name for finding in found.findings]
    (True, ['visits: COUNT(*)'])
    """
    runs, each, sure = read_numbers(runs, epsilon, confidence)
    error, price = 1 - sure, offer(policy, each)
    chosen = _chosen(questions(policy), only)
    with opened(policy, random_state=random_state) as pairs:
        asked, unasked = _understood(chosen, pairs[0].present, price)
        suspects = [_suspect(question, pairs) for question in track(asked, "looking for the worst place")]
        share = error / max(1, len(suspects) + sum(each.owner is not None for each in suspects))
        findings = [
            finding
            for suspect in track(suspects, "asking")
            for finding in _measured(suspect, runs, share, random_state)
        ]
        alone = [pair for pair in pairs if pair.place.alone]
        steps: Sequence[Callable[[], Iterable[Check]]] = (
            lambda: _moves(suspects, len(pairs)),
            lambda: question_checks([(each.question, [each.pair, *alone]) for each in suspects], price),
            lambda: [error_check(risky(policy, {question.asked.table for question in asked}), pairs, price)],
            lambda: account_checks(policy, asked, price, random_state=random_state),
        )
        checks = [check for step in track(steps, "checking") for check in step()]
    return PolicyAudit(
        policy=policy.data.name,
        protects=policy.data.protects,
        runs=runs,
        confidence=sure,
        findings=tuple(findings),
        checks=tuple(checks),
        unasked=tuple(unasked),
    )


def _chosen(every: list[Asked], only: Sequence[str]) -> list[Asked]:
    chosen = [asked for asked in every if not only or any(word.lower() in asked.name.lower() for word in only)]
    if not chosen:
        names = ", ".join(asked.name for asked in every)
        raise PolicyError(f"only: no audit has {' or '.join(map(repr, only))} in its name. There are: {names}.")
    return chosen


def _understood(chosen: list[Asked], curator: Curator, price: Offer) -> tuple[list[Prepared], list[Unasked]]:
    asked, unasked = [], []
    for each in chosen:
        try:
            asked.append(prepared(curator, each, price))
        except Refused as refusal:
            unasked.append(Unasked(each.name, str(refusal)))
    if not asked:
        raise PolicyError(f"only: the policy allows none of these questions. {unasked[0].name}: {unasked[0].reason}")
    return asked, unasked


def _suspect(question: Prepared, pairs: list[Pair]) -> _Suspect:
    """Find where the planted unit moves the exact answer most, in units of the noise."""
    found, failing = [], []
    for pair in pairs:
        try:
            here, there = (exact(curator, question) for curator in (pair.present, pair.absent))
        except EngineError:
            failing.append(pair.place.name)
        else:
            found.append((pair, evidence(question.asks, here, there)))
    if not found:
        raise PolicyError(f"{question.asked.name}: the engine fails on all made-up data. Ask it of `discreet dummy`.")
    # Of a tree only that part is seen where most values are: alone, the unit is seen on all levels.
    trees = any(ask.walks for ask in question.asks)
    pair, worst = max(found, key=lambda each: (round(each[1].used(), 9), trees and each[0].place.alone))
    moved = max(move.share for _, each in found for move in each.moves())
    owner = max((each for each in found if each[1].own), key=lambda each: len(each[1].own), default=None)
    return _Suspect(question, pair, worst, moved, owner, tuple(failing))


def _measured(suspect: _Suspect, runs: int, error: float, random_state: int) -> Iterator[Finding]:
    yield _refuted(suspect, runs, error, random_state)
    if suspect.owner is not None:
        yield _discovered(suspect.question, *suspect.owner, runs, error)


def _refuted(suspect: _Suspect, runs: int, error: float, random_state: int) -> Finding:
    """Measure what the answers to a question prove: an epsilon or, of a price in rho, that too."""
    question, price = suspect.question, suspect.question.price
    pure = price.epsilon is not None
    delta = Fraction(0) if pure else _DELTA
    result = measure(
        Batch(lambda curator, count: _judged(curator, suspect, count)),
        suspect.pair.present,
        suspect.pair.absent,
        price.to_epsilon(delta),
        runs,
        delta=delta,
        confidence=1 - (error if pure else error / 2),  # the other half is for rho
        random_state=random_state,
    )
    rho = 0.0 if pure else _least_rho(result, price, error / 2)
    in_rho = not pure and (result.holds or rho > price.rho)
    return Finding(
        name=question.asked.name,
        sql=question.asked.sql,
        place=suspect.pair.place.name,
        measures="rho" if in_rho else "epsilon",
        claim=float(price.rho if in_rho else result.claim or 0),
        delta=0.0 if in_rho else result.delta,
        low=rho if in_rho else result.epsilon_low,
        used=suspect.found.used() / float(price.rho if price.epsilon is None else price.epsilon),
        event=f"{result.event}, {result.direction}",
    )


def _least_rho(result: AuditResult, price: Loss, error: float) -> float:
    """Return what the telling event proves of rho; it was the best of several, each of which could be wrong."""
    if result.counts is None:
        return 0.0
    events = int(result.details["events judged"])
    return least_rho(*result.counts, delta=float(price.delta), error=error / events)


def _judged(curator: Curator, suspect: _Suspect, runs: int) -> np.ndarray:
    try:
        return suspect.found.judge(released(curator, suspect.question, runs))
    except Failed:  # whether a question fails must not depend on the unit either
        return np.full((runs, 3), nan)


def _discovered(question: Prepared, pair: Pair, found: Evidence, runs: int, error: float) -> Finding:
    """Count how often a group is shown that nobody has but the planted unit; without it that never happens."""
    hits = sum(found.owns(parts) for parts in released(pair.present, question, runs))
    return Finding(
        name=f"{question.asked.name}: a group of one's own",
        sql=question.asked.sql,
        place=pair.place.name,
        measures="delta",
        claim=float(question.price.delta),
        delta=0.0,
        low=float(limits(hits, runs, error)[0]),
        used=0.0,
        event=f"a group that only the unit has was shown in {hits:,} of {runs:,} runs",
    )


def _moves(suspects: list[_Suspect], places: int) -> Iterator[Check]:
    far = [f"{each.question.asked.name} ({each.moved:.3g} times)" for each in suspects if each.moved > 1]
    most = max(each.moved for each in suspects)
    seen = f"{len(suspects)} questions, {places} places of the unit"
    used = f"{seen}; at most {100 * most:.0f} % of what is allowed"
    yield told("No unit moves a total by more than its noise is made for", far, used)
    failing = [f"{each.question.asked.name} ({', '.join(each.failing)})" for each in suspects if each.failing]
    yield told("No unit makes a question fail", failing, seen)
