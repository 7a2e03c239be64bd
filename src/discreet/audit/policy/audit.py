"""Audit a policy: run all kinds of queries on neighbouring databases and test every claim."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan
from typing import Any

import numpy as np

from discreet import privacy
from discreet.audit.black_box import measure
from discreet.audit.hypothesis_tests import clopper_pearson, rho_lower_bound
from discreet.audit.policy.answer_checks import answer_checks, check_result, error_check, format_query_count
from discreet.audit.policy.curator_pairs import (
    CuratorPair,
    PairQuery,
    cost_request,
    exact_totals,
    open_curator_pairs,
    prepare_query,
    repeat_release,
)
from discreet.audit.policy.ledger_checks import ledger_checks
from discreet.audit.policy.likelihood import LikelihoodTest, compare_totals
from discreet.audit.policy.query_suite import AuditQuery, audit_queries, error_prone_queries
from discreet.audit.policy.result import CheckResult, Finding, PolicyAudit, RefusedQuery, parse_arguments
from discreet.audit.result import AuditResult
from discreet.audit.runs import Batch
from discreet.curator.curator import Curator
from discreet.engines.table_source import EngineError
from discreet.kernel.errors import Failed, PolicyError, Refused
from discreet.kernel.loss import Loss
from discreet.kernel.numbers import Number
from discreet.policy import Policy
from discreet.pricing import CostRequest

_CONVERSION_DELTA = Fraction(1, 4)  # converts rho to epsilon; a large delta detects halved noise best

ProgressTracker = Callable[[Sequence[Any], str], Iterable[Any]]


@dataclass(frozen=True)
class _WorstCase:
    """A query with the pair of databases whose exact answers differ most, and the test for this pair."""

    prepared: PairQuery
    pair: CuratorPair
    test: LikelihoodTest
    share_of_sensitivity: float  # the largest over all placements
    unique_group_case: tuple[CuratorPair, LikelihoodTest] | None  # a pair in which only the unit has some group
    failing_placements: tuple[str, ...]  # placements on which the engine raised an error


def _no_progress(items: Sequence[Any], _: str) -> Iterable[Any]:
    return items


def audit_policy(  # noqa: PLR0913 - public interface
    policy: Policy,
    *,
    runs: int = 2000,
    epsilon: Number = 1,
    confidence: float = 0.95,
    only: Sequence[str] = (),
    random_state: int = 0,
    track: ProgressTracker = _no_progress,
) -> PolicyAudit:
    """Try to refute the guarantees of a policy, on dummy data with one unit planted where it is easiest to detect.

    The owner's data and ledger are never opened. Each query is asked `runs` times on both neighbouring databases,
    at cost `epsilon` (in a budget with a delta: the rho that it implies). The probability that a sound curator fails
    the audit is at most 1 - `confidence`. `only` selects the queries whose names contain one of these strings.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> result = audit_policy(policy, runs=300, confidence=1 - 1e-9, only=["COUNT(*)"])
    >>> result.holds, [finding.name for finding in result.findings]
    (True, ['visits: COUNT(*)'])
    """
    runs, exact_epsilon, confidence_level = parse_arguments(runs, epsilon, confidence)
    error, cost = 1 - confidence_level, cost_request(policy, exact_epsilon)
    queries = _select_queries(audit_queries(policy), only)
    with open_curator_pairs(policy, random_state=random_state) as pairs:
        prepared_queries, refused = _prepare_queries(queries, pairs[0].present, cost)
        worst_cases = [
            _find_worst_case(prepared, pairs)
            for prepared in track(prepared_queries, "searching for the worst placement")
        ]
        error_share = error / max(1, len(worst_cases) + sum(case.unique_group_case is not None for case in worst_cases))
        findings = [
            finding
            for worst_case in track(worst_cases, "running queries")
            for finding in _measure_worst_case(worst_case, runs, error_share, random_state)
        ]
        alone_pairs = [pair for pair in pairs if pair.placement.alone]
        steps: Sequence[Callable[[], Iterable[CheckResult]]] = (
            lambda: _sensitivity_checks(worst_cases, len(pairs)),
            lambda: answer_checks([(case.prepared, [case.pair, *alone_pairs]) for case in worst_cases], cost),
            lambda: [
                error_check(
                    error_prone_queries(policy, {prepared.query.table for prepared in prepared_queries}), pairs, cost
                )
            ],
            lambda: ledger_checks(policy, prepared_queries, cost, random_state=random_state),
        )
        checks = [check for step in track(steps, "checking") for check in step()]
    return PolicyAudit(
        policy=policy.data.name,
        protects=policy.data.protects,
        runs=runs,
        confidence=confidence_level,
        findings=tuple(findings),
        checks=tuple(checks),
        refused_queries=tuple(refused),
    )


def _select_queries(queries: list[AuditQuery], only: Sequence[str]) -> list[AuditQuery]:
    selected = [query for query in queries if not only or any(word.lower() in query.name.lower() for word in only)]
    if not selected:
        names = ", ".join(query.name for query in queries)
        raise PolicyError(f"only: no audit has {' or '.join(map(repr, only))} in its name. Available: {names}.")
    return selected


def _prepare_queries(
    queries: list[AuditQuery], curator: Curator, cost: CostRequest
) -> tuple[list[PairQuery], list[RefusedQuery]]:
    prepared, refused = [], []
    for query in queries:
        try:
            prepared.append(prepare_query(curator, query, cost))
        except Refused as refusal:
            refused.append(RefusedQuery(query.name, str(refusal)))
    if not prepared:
        raise PolicyError(f"only: the policy allows none of these queries. {refused[0].name}: {refused[0].reason}")
    return prepared, refused


def _find_worst_case(prepared: PairQuery, pairs: list[CuratorPair]) -> _WorstCase:
    """Find the placement of the unit that changes the exact answer most, relative to the noise."""
    cases, failing = [], []
    for pair in pairs:
        try:
            here, there = (exact_totals(curator, prepared) for curator in (pair.present, pair.absent))
        except EngineError:
            failing.append(pair.placement.name)
        else:
            cases.append((pair, compare_totals(prepared.requests, here, there)))
    if not cases:
        raise PolicyError(
            f"{prepared.query.name}: the engine fails on all dummy data. Try the query on data from `discreet dummy`."
        )
    # A tree releases only the branches with most values; alone, the unit appears on all levels.
    has_trees = any(request.walks for request in prepared.requests)
    pair, worst_test = max(
        cases, key=lambda case: (round(case[1].loss_used(prepared.cost), 9), has_trees and case[0].placement.alone)
    )
    largest_share = max(shift.share_of_sensitivity for _, test in cases for shift in test.total_shifts())
    unique_group_case = max(
        (case for case in cases if case[1].unique_groups), key=lambda case: len(case[1].unique_groups), default=None
    )
    return _WorstCase(prepared, pair, worst_test, largest_share, unique_group_case, tuple(failing))


def _measure_worst_case(worst_case: _WorstCase, runs: int, error: float, random_state: int) -> Iterator[Finding]:
    yield _measure_answers(worst_case, runs, error, random_state)
    if worst_case.unique_group_case is not None:
        yield _measure_unique_group(worst_case.prepared, *worst_case.unique_group_case, runs, error)


def _measure_answers(worst_case: _WorstCase, runs: int, error: float, random_state: int) -> Finding:
    """Return the lower bound that the answers to a query prove: on epsilon, or on rho if that is the cost."""
    prepared, cost = worst_case.prepared, worst_case.prepared.cost
    is_pure = cost.epsilon is not None
    delta = Fraction(0) if is_pure else _CONVERSION_DELTA
    result = measure(
        Batch(lambda curator, count: _test_statistics(curator, worst_case, count)),
        worst_case.pair.present,
        worst_case.pair.absent,
        privacy.to_epsilon(cost, delta),
        runs,
        delta=delta,
        confidence=1 - (error if is_pure else error / 2),  # the other half is for rho
        random_state=random_state,
    )
    rho = 0.0 if is_pure else _rho_of_event(result, cost, error / 2)
    in_rho = not is_pure and (result.holds or rho > cost.rho)
    return Finding(
        name=prepared.query.name,
        sql=prepared.query.sql,
        placement=worst_case.pair.placement.name,
        parameter="rho" if in_rho else "epsilon",
        claim=float(cost.rho if in_rho else result.claim or 0),
        delta=0.0 if in_rho else result.delta,
        lower_bound=rho if in_rho else result.epsilon_low,
        cost_used=worst_case.test.loss_used(cost) / float(cost.rho if cost.epsilon is None else cost.epsilon),
        event=f"{result.event}, {result.direction}",
    )


def _rho_of_event(result: AuditResult, cost: Loss, error: float) -> float:
    """Return the lower bound on rho from the distinguishing event, corrected for having tested several events."""
    if result.counts is None:
        return 0.0
    events = int(result.details["events judged"])
    return rho_lower_bound(*result.counts, delta=float(cost.delta), error=error / events)


def _test_statistics(curator: Curator, worst_case: _WorstCase, runs: int) -> np.ndarray:
    try:
        return worst_case.test.test_statistics(repeat_release(curator, worst_case.prepared, runs))
    except Failed:  # a failure is an outcome as well
        return np.full((runs, 3), nan)


def _measure_unique_group(
    prepared: PairQuery, pair: CuratorPair, test: LikelihoodTest, runs: int, error: float
) -> Finding:
    """Count how often a group that only the planted unit has is released; without the unit it never is."""
    hits = sum(test.shows_unique_group(parts) for parts in repeat_release(pair.present, prepared, runs))
    return Finding(
        name=f"{prepared.query.name}: group of a single unit",
        sql=prepared.query.sql,
        placement=pair.placement.name,
        parameter="delta",
        claim=float(prepared.cost.delta),
        delta=0.0,
        lower_bound=float(clopper_pearson(hits, runs, error)[0]),
        cost_used=0.0,
        event=f"a group that only the unit has was released in {hits:,} of {runs:,} runs",
    )


def _sensitivity_checks(worst_cases: list[_WorstCase], placement_count: int) -> Iterator[CheckResult]:
    exceeding = [
        f"{case.prepared.query.name} ({case.share_of_sensitivity:.3g} times)"
        for case in worst_cases
        if case.share_of_sensitivity > 1
    ]
    largest_share = max(case.share_of_sensitivity for case in worst_cases)
    coverage = f"{format_query_count(len(worst_cases))}, {placement_count} placements of the unit"
    coverage_and_use = f"{coverage}; at most {100 * largest_share:.0f} % of the sensitivity"
    yield check_result("No unit changes a total by more than its sensitivity", exceeding, coverage_and_use)
    failing = [
        f"{case.prepared.query.name} ({', '.join(case.failing_placements)})"
        for case in worst_cases
        if case.failing_placements
    ]
    yield check_result("No unit makes a query fail", failing, coverage)
