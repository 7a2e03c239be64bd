"""Queries of a publication: planned and costed first, charged together with others, and released afterwards."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from discreet import pricing
from discreet.answer.model import Answer, Explanation
from discreet.curator import answer_builder
from discreet.curator.fit import ColumnBounds, PrivateRows, check_summable, open_rows
from discreet.curator.query_releases import QueryReleases
from discreet.engines.column_usage import usage_of_questions
from discreet.engines.unsupported import check_supported
from discreet.estimate.planned_release import QueryPlan
from discreet.kernel import release
from discreet.kernel.errors import Refused
from discreet.kernel.event import OWNER, Event, Receipt
from discreet.kernel.loss import Loss
from discreet.kernel.relation import Relation
from discreet.pricing import AccuracyTarget, CostRequest, ReleasePlan
from discreet.query import passes

Charge = tuple[Loss, Event, str | None]  # as Ledger.charge_together takes it


@dataclass(frozen=True, eq=False)
class PreparedQuery:
    """A query of a publication: its plan, and the noise that it needs."""

    plan: QueryPlan
    target: AccuracyTarget
    release_plan: ReleasePlan


def plan_query(releases: QueryReleases, sql: str) -> QueryPlan:
    """Return the plan of a query of the owner's, without a cost; no private data is read."""
    return releases.plan_query(sql, OWNER, None, None)


def totals_planner(releases: QueryReleases) -> Callable[[str], QueryPlan]:
    """Return a function that plans queries of the owner's as parts of a family, which needs none of their histograms.

    Whether the engine supports them is checked when the rows of the family are opened, or when one is prepared alone.
    """
    plan = passes.totals_planner(releases.policy, releases.engine)

    def plan_totals(sql: str) -> QueryPlan:
        releases.check_request(sql, OWNER)
        return plan(sql)

    return plan_totals


def prepare(releases: QueryReleases, sql: str, request: CostRequest) -> PreparedQuery:
    """Plan a query of a publication, which charges its parts together before any data is read."""
    plan = plan_query(releases, sql)
    if plan.pending:
        raise Refused(
            'groups, rows: a publication needs declared contribution bounds, and those of this query are "auto". '
            "Declare them in the policy or in OPTIONS; discreet advise proposes values."
        )
    cost = pricing.read_cost_request(plan, request, OWNER, releases.policy)
    target, release_plan = releases.plan_release(plan, cost)
    return PreparedQuery(plan, target, release_plan)


def explain_prepared(releases: QueryReleases, query: PreparedQuery) -> Explanation:
    """Return the cost and the expected margins of a prepared query. This is free."""
    return answer_builder.build_explanation(
        query.plan, query.release_plan, releases.budget_of(OWNER), releases.engine.dialect, ""
    )


def charge_of(releases: QueryReleases, query: PreparedQuery, record: str, key: str | None) -> Charge | None:
    """Return the charge of a prepared query; None if its answer is in the ledger already."""
    asks, version = query.release_plan.asks, pricing.data_version(releases.policy)
    if not asks:
        return None
    with releases.engine.prepare(usage_of_questions(request.question for request in asks)):
        pass  # refuses unreadable tables before anything is charged
    fingerprints = tuple(release.request_fingerprints(each, version) for each in asks)
    event = release.release_event(asks, fingerprints, record, OWNER)
    return query.release_plan.marginal_cost, event, key


def answer_prepared(releases: QueryReleases, query: PreparedQuery, record: str, receipt: Receipt | None) -> Answer:
    """Answer a prepared query, which was charged under this receipt, or is answered from the ledger without one."""
    plan, release_plan = query.plan, query.release_plan
    if receipt is None:
        return releases.build_answer(plan, release_plan, query.target.histories, OWNER)
    with releases.circuit_breaker.guard():
        history = releases.charge_and_release(plan, query.target, release_plan, record, OWNER, None, receipt)
    return releases.build_answer(plan, release_plan, history, OWNER)


def answer_released(releases: QueryReleases, query: PreparedQuery, receipt: str) -> Answer:
    """Return the stored answer of a prepared query."""
    history = releases.release_history(query.plan.releases, until=receipt)
    return releases.build_answer(query.plan, ReleasePlan(), history, OWNER)


@contextmanager
def private_rows(
    releases: QueryReleases, relation: Relation, columns: tuple[str, ...], bounds: ColumnBounds, question: str
) -> Iterator[PrivateRows]:
    """Open the rows of a relation for the kernel's sums, within the circuit breaker; nothing else may read them."""
    releases.catalog.check(relation)
    check_supported(relation, releases.engine.dialect)
    check_summable(relation)
    request = (columns, bounds, releases.ledger, OWNER, question, releases.policy.data.protects)
    with releases.circuit_breaker.guard(), open_rows(request, relation, columns, releases.engine) as rows:
        yield rows
