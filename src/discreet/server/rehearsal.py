"""A curator on dummy data that follows from the policy alone: the columns of an answer, and practice for nothing."""

from dataclasses import replace
from fractions import Fraction
from threading import Lock

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from discreet.answer.model import Answer
from discreet.curator.curator import Curator
from discreet.curator.open import open_curator
from discreet.curator.query_releases import QueryReleases
from discreet.estimate.planned_release import PlannedRelease, QueryPlan
from discreet.kernel.errors import Refused
from discreet.kernel.loss import ZERO_LOSS
from discreet.kernel.question import PublicGroups
from discreet.policy import Policy
from discreet.policy.dummy_data.dummy_tables import dummy
from discreet.pricing.allocation import CostMissing
from discreet.server.requests import QueryRequest

DUMMY_NOTE = "These numbers come from dummy data, made from the policy alone. They mean nothing; nothing was charged."
_ROWS = 1000  # of each table of dummy data
_EPSILON = Fraction(10**5)  # the budget of a rehearsal, which protects nobody
_COST = Fraction(1)  # of a query that states none
_MAX_SHAPES = 512
_MAX_TOTALS = 100_000  # of a rehearsal, groups times aggregates, so that others do not wait for it
_MAX_STORED = 2_000_000  # totals in the ledger of a rehearsal, which is in memory: about 50 MB
_TOTALS_PER_CHARGE = 100  # as much memory as a charge takes
_SHAPE_VALUES = 8  # of each key, which are enough for the columns of an answer


class Rehearsal:
    """Answers queries on dummy data with a budget that does not matter; nothing is read but the policy.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "row", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> rehearsal = Rehearsal(policy)
    >>> rehearsal.shape("SELECT COUNT(*) AS n FROM visits", "owner").names
    ['n', 'n_margin']
    >>> rehearsal.close()
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._curator: Curator | None = None
        self._lock, self._stored = Lock(), 0
        self._shapes: dict[tuple[str, str], pa.Schema] = {}

    def ask(self, request: QueryRequest, by: str) -> Answer:
        """Answer a query on dummy data, whatever it costs; the numbers mean nothing, and the answer says so."""
        with self._lock:
            curator = self._open_with_budget(by)
            totals = self._count_stored(curator.releases, request, by)
            if totals > _MAX_TOTALS:
                raise Refused(
                    f"rehearse: the query has {totals:,} totals (groups x aggregates); a rehearsal has at most "
                    f"{_MAX_TOTALS:,}. Rehearse it with fewer groups or aggregates."
                )
            answer = _ask(curator, request, by)
        cost, notes = replace(answer.cost, share=None), (DUMMY_NOTE, *answer.notes)
        return replace(answer, cost=cost, notes=notes, paid=ZERO_LOSS, remaining=None, receipt=None)

    def shape(self, sql: str, by: str) -> pa.Schema:
        """Return the columns of the answer to a query, with those of its margins."""
        if (sql, by) not in self._shapes:
            schema = self._ask_for_shape(QueryRequest(sql), by).with_margins().schema.remove_metadata()
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
            self._shapes[sql, by] = schema
        return self._shapes[sql, by]

    def close(self) -> None:
        """Close the curator on dummy data."""
        with self._lock:
            if self._curator:
                self._curator.close()
                self._curator = None

    def _ask_for_shape(self, request: QueryRequest, by: str) -> Answer:
        """Answer a query on dummy data; one with many groups for a few of them, which has the same columns."""
        with self._lock:
            curator = self._open_with_budget(by)
            releases = curator.releases
            if self._count_stored(releases, request, by) > _MAX_TOTALS:
                curator.releases = QueryReleases(releases.policy, releases.engine, releases.ledger, _plan_few_groups)
            try:
                return _ask(curator, request, by)
            finally:
                curator.releases = releases

    def _count_stored(self, releases: QueryReleases, request: QueryRequest, by: str) -> int:
        """Return the number of totals of a query, and add it to what the ledger stores, unless it is too large."""
        totals = _count_totals(releases.plan_query(request.sql, by, request.groups, request.rows))
        self._stored += _TOTALS_PER_CHARGE + (totals if totals <= _MAX_TOTALS else 0)
        return totals

    def _open_with_budget(self, by: str) -> Curator:
        curator = self._open()
        is_full = self._stored > _MAX_STORED or curator.budget(by).remaining.epsilon < 1000
        return self._open_again() if is_full else curator

    def _open(self) -> Curator:
        self._curator = self._curator or self._open_again()
        return self._curator

    def _open_again(self) -> Curator:
        if self._curator:
            self._curator.close()
        policy, self._stored = rehearsal_policy(self._policy), 0
        self._curator = open_curator(policy, data=dummy(policy, _ROWS))
        return self._curator


def _plan_few_groups(plan: QueryPlan) -> QueryPlan:
    """Leave out all but a few values of each key."""
    return replace(plan, releases=tuple(map(_with_few_groups, plan.releases)))


def _with_few_groups(release: PlannedRelease) -> PlannedRelease:
    groups = release.question.groups
    if release.histogram or not isinstance(groups, PublicGroups):  # the buckets of a histogram have a meaning
        return release
    few = PublicGroups(tuple(domain[:_SHAPE_VALUES] for domain in groups.domains))
    return replace(release, question=replace(release.question, groups=few))


def _count_totals(plan: QueryPlan) -> int:
    """Return the number of totals in public groups; those in groups from the data are few, like its rows."""
    questions = (release.question for release in plan.releases)
    return sum(
        question.groups.key_count * len(question.totals)
        for question in questions
        if isinstance(question.groups, PublicGroups)
    )


def _ask(curator: Curator, request: QueryRequest, by: str) -> Answer:
    """Answer a query, whatever it costs."""
    try:
        return curator.ask(request.sql, **request.arguments(by))
    except CostMissing:
        return curator.ask(request.sql, **replace(request, epsilon=_COST).arguments(by))


def rehearsal_policy(policy: Policy) -> Policy:
    """Return the policy for dummy data: in memory, with a large budget of the same kind for everybody."""
    memory = {"ledger": ":memory:", "engine": "duckdb", "connection": None, "population": None}
    budget = policy.budget_entry
    analysts = {
        name: entry.model_copy(update={"epsilon": _EPSILON, "delta": None}) for name, entry in budget.analysts.items()
    }
    large = budget.model_copy(update={"epsilon": _EPSILON, "analysts": analysts, "dataset": None, "failures": 10**9})
    return replace(policy, data=policy.data.model_copy(update=memory), budget_entry=large)
