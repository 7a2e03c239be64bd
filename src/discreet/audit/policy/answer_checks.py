"""Deterministic checks of answers: shape, cost, cached answers, and errors that depend on nobody."""

from collections.abc import Iterator, Sequence

from discreet.answer.model import Answer
from discreet.audit.policy.curator_pairs import (
    CuratorPair,
    PreparedQuery,
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

_MAX_SHOWN = 3  # names of a long list
_SAME_SHAPE = "With the unit and without, answers have the same columns, declared groups and price"
_SAME_RELEASE = "What the curator charges and draws is what was audited"
_CACHED_ANSWER = "An answer that was given is given again, for nothing"
_ANSWER_CLAIMS = (_SAME_SHAPE, _SAME_RELEASE, _CACHED_ANSWER)
_ANSWERED, _REFUSED, _FAILED = "answered", "refused", "failed"

AskOutcome = Answer | Exception


def answer_checks(
    queries: Sequence[tuple[PreparedQuery, Sequence[CuratorPair]]], cost: CostRequest
) -> Iterator[CheckResult]:
    """Check answers as analysts get them, with the planted unit and without."""
    results = [
        (prepared.query.name, _violated_claims(prepared, pair, cost)) for prepared, pairs in queries for pair in pairs
    ]
    count = f"{len(queries)} questions"
    for name in _ANSWER_CLAIMS:
        yield check_result(
            name, list(dict.fromkeys(query_name for query_name, broken in results if name in broken)), count
        )


def _violated_claims(prepared: PreparedQuery, pair: CuratorPair, cost: CostRequest) -> set[str]:
    """Return what does not hold of the answers to one question."""
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
    """Check that no expression fails for some values of the planted unit, and not without it."""
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
        f"{len(queries)} expressions such as 1 / (x - high), {len(pairs)} places of the unit, {answered} answered"
    )
    return check_result("Whether a question fails does not depend on the unit", violations, coverage)


def _fails(curator: Curator, prepared: PreparedQuery) -> bool:
    try:
        exact_totals(curator, prepared)
    except EngineError:
        return True
    return False


def ask_curator(curator: Curator, query: AuditQuery, cost: CostRequest) -> AskOutcome:
    """Ask as an analyst would; a refusal and a failure are outcomes, too, and so is any other error."""
    try:
        return curator.ask(query.sql, epsilon=cost.epsilon, rho=cost.rho, groups=query.groups, rows=query.rows)
    except Exception as error:  # noqa: BLE001 - what comes out of a broken curator is what an audit wants to see
        return error


def check_result(name: str, violations: Sequence[str], coverage: str) -> CheckResult:
    """Return a check that holds unless something bad was found."""
    more = f" and {len(violations) - _MAX_SHOWN} more" if len(violations) > _MAX_SHOWN else ""
    return CheckResult(name, not violations, "; ".join(violations[:_MAX_SHOWN]) + more if violations else coverage)


def _outcome_name(outcome: AskOutcome) -> str:
    if isinstance(outcome, Answer):
        return _ANSWERED
    return _REFUSED if isinstance(outcome, Refused) else _FAILED


def _public_shape(outcome: AskOutcome, prepared: PreparedQuery) -> tuple[object, ...]:
    """Return what of an answer must not depend on anybody: columns, price, and the groups if they are declared."""
    if not isinstance(outcome, Answer):
        return type(outcome).__name__, str(outcome)
    are_declared = all(isinstance(request.question.groups, PublicGroups) for request in prepared.requests)
    keys = [name for name in outcome.table.column_names if name not in outcome.margins]
    groups = [tuple(row.values()) for row in outcome.table.select(keys).to_pylist()] if are_declared else []
    return tuple(outcome.table.column_names), tuple(map(str, outcome.table.schema.types)), outcome.paid, tuple(groups)
