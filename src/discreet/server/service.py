"""The service: one curator for many people, behind every interface."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from os import PathLike
from typing import Any, Self, TypeVar

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from discreet.answer.model import Answer, Explanation
from discreet.answer.text import short_number
from discreet.curator.curator import Curator
from discreet.curator.open import open_engine_and_ledger, tuning_from_policy
from discreet.kernel.errors import DiscreetError, Failed, PolicyError, Refused
from discreet.kernel.event import Event
from discreet.policy import Policy
from discreet.policy.declarations import DeclaredTable
from discreet.pricing.allocation import largest_epsilon
from discreet.pricing.remaining_budget import BudgetStatus
from discreet.publish.dry_run import PublicationForecast, forecast
from discreet.publish.ledger_history import LedgerHistory
from discreet.publish.plan import PublicationPlan
from discreet.publish.publication import Release
from discreet.server.answer_cache import AnswerCache, LedgerState
from discreet.server.approvals import Approval, Approvals
from discreet.server.errors import NotAllowed
from discreet.server.event_log import log_event
from discreet.server.executions import Executions
from discreet.server.fair_threads import FairThreads
from discreet.server.metrics import Metrics
from discreet.server.people.failure_limit import MinuteLimit
from discreet.server.people.person import Person, Role
from discreet.server.people.registry import People
from discreet.server.people.token_secrets import ScramVerifier
from discreet.server.publications import Publications
from discreet.server.rehearsal import Rehearsal
from discreet.server.release_clock import ReleaseClock, TimedLedger, TimeSource, served_tuning
from discreet.server.requests import QueryRequest
from discreet.server.two_engines import TwoEngines, open_public

_LIGHT_THREADS = 4  # for what reads no private data
_FREE_THREADS = 2  # fewer than queries that may run in the sandbox
_ASKING = frozenset({Role.ANALYST, Role.OWNER})
_READING = frozenset({Role.AUDITOR, Role.OWNER})
_DECIDING = frozenset({Role.OWNER})
T = TypeVar("T")


class Service:
    """Answers the questions of people within their roles and limits, and lets answers leave when they may.

    >>> import asyncio
    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits", "ledger": ":memory:"},
    ...     "budget": {"epsilon": 1, "analysts": {"ana": {"epsilon": 1}}},
    ...     "server": {"tick": 0},
    ...     "tables": {"visits": {"source": "v", "unit": "row", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> with Service.open(policy, data={"visits": pa.table({"who": [1, 2, 3]})}) as service:
    ...     token = service.people.add(service.ledger, "ana", Role.ANALYST).token
    ...     ana = service.person_for_token(token, "127.0.0.1")
    ...     answer = asyncio.run(service.ask(ana, QueryRequest("SELECT COUNT(*) AS n FROM visits", epsilon="1/4")))
    ...     answer.paid.epsilon, service.budget(ana).remaining.epsilon
    (Fraction(1, 4), Fraction(3, 4))
    """

    def __init__(self, curator: Curator, ledger: TimedLedger, clock: ReleaseClock) -> None:
        policy = curator.policy
        self.policy, self.curator, self.clock, self.ledger = policy, curator, clock, ledger
        self.people, self.approvals, self.rehearsal = People(policy), Approvals(policy), Rehearsal(policy)
        self.executions, self._answers = Executions(clock, ledger), AnswerCache(ledger)
        self.publications = Publications(policy, ledger.release_times)  # whoever has a token may download them
        self.metrics = Metrics(clock, self.executions)
        self.addresses: dict[str, str] = {}  # where this service listens, by interface
        self._requests = MinuteLimit("requests", policy.server.requests_per_minute)
        self._light, self._rehearsals = FairThreads("light", _LIGHT_THREADS), FairThreads("rehearsal")
        # A long computation on published tables keeps neither questions with a cost nor the owner waiting.
        self._free, self._acts = FairThreads("free", _FREE_THREADS), FairThreads("owner")

    @classmethod
    def open(
        cls,
        policy: str | PathLike[str] | Policy,
        *,
        data: Mapping[str, Any] | None = None,
        source: TimeSource | None = None,
    ) -> Self:
        """Open the data and the ledger of a policy; `data` supplies frames that replace the sources of tables."""
        declared = policy if isinstance(policy, Policy) else Policy.load(policy)
        clock = ReleaseClock.of_policy(declared, source)
        tuning, frames = served_tuning(tuning_from_policy(declared), clock), data or {}
        public = open_public(declared, frames, tuning)
        engine, opened = open_engine_and_ledger(declared, frames, tuning)
        ledger = TimedLedger(opened, clock)
        return cls(Curator(declared, TwoEngines(engine, public), ledger), ledger, clock)

    def person_for_token(self, token: str, address: str) -> Person:
        """Return whose token this is; AccessDenied or RateLimited otherwise."""
        return self.people.person_for_token(token, address)

    def scram_verifier(self, name: str) -> ScramVerifier:
        """Return the verifier of a name for SCRAM; a stable decoy for unknown names."""
        return self.people.scram_verifier(name)

    def tables(self, person: Person) -> tuple[DeclaredTable, ...]:
        """Return the tables that a person may query; an auditor sees all declarations, which are no secret."""
        return tuple(self.policy.tables.values()) if person.role is Role.AUDITOR else self.policy.tables_for(person.by)

    def explain(self, person: Person, request: QueryRequest) -> Explanation:
        """Return the cost and the expected margins of a query. This is free and reads no private data."""
        self._admit(person, _ASKING, "ask")
        return self._explain(person, request)

    def shape(self, person: Person, sql: str) -> pa.Schema:
        """Return the columns of the answer to a query, with those of its margins, from dummy data and for nothing."""
        self._admit(person, _ASKING, "ask")
        return self.rehearsal.shape(sql, person.by)

    def rehearse(self, person: Person, request: QueryRequest) -> Answer:
        """Answer a query on dummy data that follows from the policy alone; its numbers mean nothing."""
        self._admit(person, _ASKING, "ask")
        with _refusing_bad_arguments():
            return self.rehearsal.ask(request, person.by)

    def budget(self, person: Person, by: str | None = None) -> BudgetStatus:
        """Return a person's own budget; auditors and owners may name an analyst, and see the total otherwise."""
        if person.role is not Role.ANALYST:
            return self.curator.budget(by)
        if by not in {None, person.name}:
            raise NotAllowed("budget: analysts see their own budget only.")
        return self.curator.budget(person.by)

    def charges(self, person: Person) -> tuple[Event, ...]:
        """Return the charges that a person may see, oldest first, without answers: analysts see their own."""
        self.count_request(person)
        events = self.ledger.history().events
        return tuple(event for event in events if person.role is not Role.ANALYST or event.by == person.by)

    def ledger_history(self, person: Person) -> LedgerHistory:
        """Return the ledger's terms, charges and acts of the owner, without answers; for auditors and owners."""
        self._admit(person, _READING, "read the ledger")
        return self.ledger.history()

    async def ask(self, person: Person, request: QueryRequest) -> Answer:
        """Answer a query as soon as its answer may leave: a stored one at once, another one after its turn.

        An equal question whose answer is stored, but has not left yet, waits for its turn, and leaves with the first.

        A refusal is immediate. If this is cancelled, a query that has begun is charged, and its answer is stored.
        """
        with self._recorded("ask", person, sql=request.sql, purpose=request.purpose, key=request.key):
            return await self._ask_and_wait(person, request)

    @contextmanager
    def _recorded(self, event: str, person: Person, **fields: object) -> Iterator[None]:
        """Count how a request ends, and log it for the owner."""
        outcome = "cancelled"
        try:
            yield
            outcome = "answered"
        except DiscreetError as error:
            outcome = "failed" if isinstance(error, Failed) else "refused" if isinstance(error, Refused) else "denied"
            raise
        finally:
            self.metrics.count(outcome)
            log_event(event, outcome=outcome, by=person.name, **fields)

    async def _ask_and_wait(self, person: Person, request: QueryRequest) -> Answer:
        self._admit(person, _ASKING, "ask")
        self._check_purpose(request.purpose, "State in a few words what the answer is for.")
        asked, was_executed = self.clock.source.now(), False
        try:
            answer, state = await self.run_light(person, lambda: self._answers.find(person.by, request))
            if answer is None:
                # Without a cost it may be computed from published tables, which can take as long as the sandbox allows.
                threads = self._free if request.states_no_cost else self._light
                answer = await threads.run(person.name, lambda: self._stored_answer(person, request, state))
            if answer is not None and not self.clock.is_strict:
                return answer
            if answer is None:
                was_executed = True
                answer = await self._execute(person, request, asked)
        except Failed:
            await self._wait_to_leave(asked, was_executed=was_executed)
            raise
        name = answer.receipt.id if answer.receipt and was_executed else ""
        await self._wait_to_leave(self.ledger.release_times.first_asked(name, asked), was_executed=was_executed)
        return answer

    async def publish(self, person: Person, plan: str) -> Release:
        """Publish a plan, given as text, beside the ledger; the owner must approve a plan of an analyst first."""
        with self._recorded("publish", person, plan=plan):
            self._admit(person, _ASKING, "publish")
            asked = self.clock.source.now()
            await self.run_light(person, lambda: self._approval_of_plan(person, plan))
            release = await self.executions.run(person.name, lambda: self._publish(person, plan), asked)
            first_asked = self.ledger.release_times.first_asked(release.folder.name, asked)
            await self._wait_to_leave(first_asked, was_executed=True)
            return release

    def _publish(self, person: Person, plan: str) -> Release:
        try:
            with self._used(self._approval_of_plan(person, plan)):
                return self.publications.publish(self.curator, PublicationPlan.parse(plan))
        finally:
            if self.ledger.turn:
                self.ledger.turn.is_open = True  # a part may have failed after the last one that was stored

    def _approval_of_plan(self, person: Person, text: str) -> Approval | None:
        """Return the owner's approval of an analyst's plan; refuse a plan without it, or one that cannot be read."""
        heading = self._readable_plan(person, text).release
        self._check_purpose(heading.purpose, 'State it in the plan: purpose = "…" in [release].')
        if person.role is Role.OWNER:
            return None
        amount = short_number(heading.epsilon or heading.rho or 0)
        cost = f"{'rho' if heading.epsilon is None else 'epsilon'} {amount} of the owner's budget"
        return self.approvals.require(person.by, text, {"kind": "plan"}, cost=cost, purpose=heading.purpose or "")

    def forecast(self, person: Person, plan: str) -> PublicationForecast:
        """Return the cost and the margins of a plan, given as text. This is free and reads no private data."""
        self._admit(person, _ASKING, "plan a publication")
        return forecast(self.curator, self._readable_plan(person, plan))

    def _readable_plan(self, person: Person, text: str) -> PublicationPlan:
        """Return a plan; refuse an analyst's that reads tables which are not granted to them, as if there were none."""
        plan = PublicationPlan.parse(text)
        for planned in plan.tables.values():
            self.curator.releases.plan_query(planned.sql, person.by, None, None)
        granted = {table.name for table in self.policy.tables_for(person.by)}
        for name, rows in plan.synthetic.items():
            if (table := self.policy.table(rows.table)) is None or table.name not in granted:
                raise Refused(
                    f"synthetic.{name}: table {rows.table!r} does not exist. Available: {', '.join(granted)}."
                )
        return plan

    def waiting_approvals(self, person: Person) -> tuple[Approval, ...]:
        """Return what waits for approval: everything for the owner, their own requests for an analyst."""
        waiting = self.approvals.waiting()
        return waiting if person.role is Role.OWNER else tuple(each for each in waiting if each.by == person.by)

    def approve(self, person: Person, identifier: str) -> None:
        """Approve a question or plan as the owner, once."""
        self._admit(person, _DECIDING, "approve")
        self.approvals.approve(self.ledger, identifier)

    def reject(self, person: Person, identifier: str) -> None:
        """Reject a question or plan as the owner."""
        self._admit(person, _DECIDING, "reject")
        self.approvals.reject(self.ledger, identifier)

    async def run_light(self, person: Person, work: Callable[[], T]) -> T:
        """Run what reads no private data in a thread, in this person's turn, beside an execution."""
        return await self._light.run(person.name, work)

    async def run_act(self, person: Person, work: Callable[[], T]) -> T:
        """Run what the owner decides in a thread of its own."""
        return await self._acts.run(person.name, work)

    async def run_rehearsal(self, person: Person, work: Callable[[], T]) -> T:
        """Run what the dummy data answers, one request at a time, in this person's turn."""
        return await self._rehearsals.run(person.name, work)

    def count_request(self, person: Person) -> None:
        """Count a request; refuse it if this person sent too many within a minute."""
        self._requests.check(person.name)
        self._requests.add(person.name)

    async def finish(self) -> None:
        """Wait until every question that has begun, or waits for its turn, is answered and recorded."""
        await self.executions.finish()

    def close(self) -> None:
        """Close everything, after the question that is being answered."""
        self.executions.close()
        for threads in (self._light, self._free, self._acts, self._rehearsals):
            threads.close()
        self.rehearsal.close()
        self.curator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _admit(self, person: Person, roles: frozenset[Role], what: str) -> None:
        """Refuse people whose role does not include the request, and those who asked too often."""
        if person.role not in roles:
            raise NotAllowed(f"role: {person.role.value}s cannot {what}.")
        self.count_request(person)

    def _check_purpose(self, purpose: str | None, hint: str) -> None:
        if self.policy.server.purpose and not (purpose or "").strip():
            raise Refused(f"purpose: the policy requires one. {hint}")

    def _stored_answer(self, person: Person, request: QueryRequest, state: LedgerState) -> Answer | None:
        with _refusing_bad_arguments():
            found = self.curator.stored_answer(request.sql, key=request.key, **request.arguments(person.by))
        if found is not None:
            self._answers.add(person.by, request, found, state)
        return found

    def _explain(self, person: Person, request: QueryRequest) -> Explanation:
        with _refusing_bad_arguments():
            return self.curator.explain(request.sql, **request.arguments(person.by))

    async def _execute(self, person: Person, request: QueryRequest, asked: float) -> Answer:
        await self.run_light(person, lambda: self._approval_of(person, request))  # a refusal waits for no turn
        return await self.executions.run(person.name, lambda: self._ask(person, request), asked)

    def _ask(self, person: Person, request: QueryRequest) -> Answer:
        with self._used(self._approval_of(person, request)):  # others may have used it while this one waited
            return self.curator.ask(
                request.sql, key=request.key, purpose=request.purpose, **request.arguments(person.by)
            )

    def _used(self, approval: Approval | None) -> AbstractContextManager[None]:
        return nullcontext() if approval is None else self.approvals.used(approval)

    def _approval_of(self, person: Person, request: QueryRequest) -> Approval | None:
        """Return the owner's approval if the policy requires one at this cost; refuse without it."""
        threshold = self.policy.server.approval_above
        if threshold is None or person.role is Role.OWNER:
            return None
        paid = self._explain(person, request).paid
        epsilon = largest_epsilon(self.policy.budget, paid) if paid else threshold
        if epsilon <= threshold:
            return None
        asked = {name: str(value) for name, value in request.arguments(person.by).items() if value is not None}
        cost = f"epsilon {short_number(epsilon)}"
        return self.approvals.require(person.by, request.sql, asked, cost=cost, purpose=request.purpose or "")

    async def _wait_to_leave(self, asked: float, *, was_executed: bool) -> None:
        """Wait for the tick or, in strict mode, for the limit; executions have waited for theirs already."""
        if not (was_executed and self.clock.is_strict):
            await self.clock.wait_for_release(asked)


@contextmanager
def _refusing_bad_arguments() -> Iterator[None]:
    """Turn errors about arguments, which are checked before anything is charged, into refusals."""
    try:
        yield
    except PolicyError:
        raise
    except (TypeError, ValueError) as error:
        raise Refused(f"{error}.") from None
