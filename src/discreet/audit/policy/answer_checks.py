"""Deterministic checks of answers: shape, cost, cached answers, and failures that do not depend on the data."""

from collections.abc import Iterator, Sequence

from discreet.answer.model import Answer
from discreet.audit.policy.curator_pairs import (
    CuratorPair,
    PairQuery,
    exact_totals,
    prepare_query,
    release_event,
    with_fresh_ledger,
)
from discreet.audit.policy.query_suite import AuditQuery
from discreet.audit.policy.result import CheckResult
from discreet.curator.curator import Curator
from discreet.engines.table_source import EngineError
from discreet.kernel.errors import Refused
from discreet.kernel.loss import ZERO_LOSS
from discreet.kernel.question import PublicGroups
from discreet.pricing import CostRequest

_MAX_SHOWN = 3  # violations in a message
_SAME_SHAPE = "Answers have the same columns, public groups and cost with and without the unit"
_SAME_RELEASE = "The curator charges and draws the noise that was audited"
_CACHED_ANSWER = "A repeated query returns the cached answer at no charge"
_ANSWER_CLAIMS = (_SAME_SHAPE, _SAME_RELEASE, _CACHED_ANSWER)
_ANSWERED, _REFUSED, _FAILED = "answered", "refused", "failed"

AskOutcome = Answer | Exception


def answer_checks(
    queries: Sequence[tuple[PairQuery, Sequence[CuratorPair]]], cost: CostRequest
) -> Iterator[CheckResult]:
    """Check the answers that analysts get, with and without the planted unit."""
    results = [
        (prepared.query.name, _violated_claims(prepared, pair, cost)) for prepared, pairs in queries for pair in pairs
    ]
    coverage = format_query_count(len(queries))
    for name in _ANSWER_CLAIMS:
        yield check_result(
            name, list(dict.fromkeys(query_name for query_name, violated in results if name in violated)), coverage
        )


def _violated_claims(prepared: PairQuery, pair: CuratorPair, cost: CostRequest) -> set[str]:
    """Return the claims that the answers to one query violate."""
    violations = set()
    with with_fresh_ledger(pair.present) as curator, with_fresh_ledger(pair.absent) as other:
        here, there = (ask_curator(side, prepared.query, cost) for side in (curator, other))
        if _public_shape(here, prepared) != _public_shape(there, prepared):
            violations.add(_SAME_SHAPE)
        if not isinstance(here, Answer):
            return violations | {_SAME_RELEASE}
        charged_event, audited_event = curator.ledger.events()[-1], release_event(pair.present, prepared)
        if any(
            getattr(charged_event, name) != getattr(audited_event, name)
            for name in ("loss", "mechanism", "sensitivity")
        ):
            violations.add(_SAME_RELEASE)
        repeated = ask_curator(curator, prepared.query, cost)
        if not isinstance(repeated, Answer) or repeated.paid != ZERO_LOSS or repeated.table != here.table:
            violations.add(_CACHED_ANSWER)
    return violations


def error_check(queries: Sequence[AuditQuery], pairs: Sequence[CuratorPair], cost: CostRequest) -> CheckResult:
    """Check that whether an expression fails does not depend on the values of the planted unit."""
    violations, answered = [], 0
    worst_pair = next((pair for pair in pairs if pair.placement.value_choice == "above"), pairs[0])
    curators = {id(side): (pair, side) for pair in pairs for side in (pair.absent, pair.present)}
    for query in queries:
        with with_fresh_ledger(worst_pair.present) as here, with_fresh_ledger(worst_pair.absent) as there:
            outcomes = {_outcome_name(ask_curator(curator, query, cost)) for curator in (here, there)}
        if len(outcomes) > 1 or _FAILED in outcomes:
            violations.append(f"{query.sql} ({worst_pair.placement.name})")
        elif outcomes == {_ANSWERED}:
            answered += 1
            prepared = prepare_query(worst_pair.present, query, cost)
            violations += [
                f"{query.sql} ({pair.placement.name})" for pair, side in curators.values() if _fails(side, prepared)
            ]
    coverage = (
        f"{len(queries)} expressions such as 1 / (x - high), {len(pairs)} placements of the unit, {answered} answered"
    )
    return check_result("Whether a query fails does not depend on the unit", violations, coverage)


def _fails(curator: Curator, prepared: PairQuery) -> bool:
    try:
        exact_totals(curator, prepared)
    except EngineError:
        return True
    return False


def ask_curator(curator: Curator, query: AuditQuery, cost: CostRequest) -> AskOutcome:
    """Ask as an analyst would, and return the answer or the exception."""
    try:
        return curator.ask(query.sql, epsilon=cost.epsilon, rho=cost.rho, groups=query.groups, rows=query.rows)
    except Exception as error:  # noqa: BLE001 - a broken curator may raise anything
        return error


def check_result(name: str, violations: Sequence[str], coverage: str) -> CheckResult:
    """Return the result of a check, which holds if there are no violations."""
    more = f" and {len(violations) - _MAX_SHOWN} more" if len(violations) > _MAX_SHOWN else ""
    return CheckResult(name, not violations, "; ".join(violations[:_MAX_SHOWN]) + more if violations else coverage)


def format_query_count(count: int) -> str:
    """Return the number of queries as text, such as "1 query"."""
    return "1 query" if count == 1 else f"{count} queries"


def _outcome_name(outcome: AskOutcome) -> str:
    if isinstance(outcome, Answer):
        return _ANSWERED
    return _REFUSED if isinstance(outcome, Refused) else _FAILED


def _public_shape(outcome: AskOutcome, prepared: PairQuery) -> tuple[object, ...]:
    """Return what must not depend on the data: columns, types, cost, and the groups if they are public."""
    if not isinstance(outcome, Answer):
        return type(outcome).__name__, str(outcome)
    are_public = all(isinstance(request.question.groups, PublicGroups) for request in prepared.requests)
    keys = [name for name in outcome.table.column_names if name not in outcome.margins]
    groups = [tuple(row.values()) for row in outcome.table.select(keys).to_pylist()] if are_public else []
    return tuple(outcome.table.column_names), tuple(map(str, outcome.table.schema.types)), outcome.paid, tuple(groups)
