"""The tools of an agent: the promise, the tables, explain, ask, the budget, and rehearsals on dummy data."""

import asyncio
from typing import Any

from discreet.kernel.errors import DiscreetError, Refused
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.policy.guarantee import explain as guarantee_sentences
from discreet.server.agents.tool_results import (
    answer_result,
    budget_result,
    explanation_result,
    refusal_result,
    tables_result,
)
from discreet.server.errors import AccessDenied, NotAllowed, RateLimited
from discreet.server.http.answer_bodies import loss_numbers
from discreet.server.people.person import Person
from discreet.server.requests import QueryRequest
from discreet.server.service import Service

_TABLES = "SELECT table_name, is_private, privacy_unit FROM information_schema.tables"
_COLUMNS = (
    "SELECT table_name, column_name, data_type, is_nullable, minimum, maximum, declared_values, is_unit "
    "FROM information_schema.columns ORDER BY table_name, ordinal_position"
)


class AgentTools:
    """What an agent can do for one person. Results are dicts for JSON.

    `cap` limits what is spent through these tools, besides the limits of the ledger. Refusals are results too, with a
    hint, so that an agent can repair its query.
    """

    def __init__(self, service: Service, cap: Budget | None = None) -> None:
        self._service, self._cap = service, cap
        self._spent, self._one_at_a_time = ZERO_LOSS, asyncio.Lock()

    def promise(self) -> dict[str, Any]:
        """Return the privacy guarantee in sentences, and what it does not cover."""
        policy = self._service.policy
        return {"name": policy.data.name, "protects": policy.data.protects, "guarantee": guarantee_sentences(policy)}

    async def tables(self, person: Person) -> dict[str, Any]:
        """Return the tables that this person may query, from the policy."""
        try:
            tables, columns = [await self._service.ask(person, QueryRequest(sql)) for sql in (_TABLES, _COLUMNS)]
        except DiscreetError as error:
            return refusal_result(error)
        return tables_result(tables.table, columns.table)

    async def explain(self, person: Person, request: QueryRequest) -> dict[str, Any]:
        """Return the cost of a query and its expected margins, free of charge."""
        try:
            explanation = await self._service.run_light(person, lambda: self._service.explain(person, request))
            return explanation_result(explanation)
        except DiscreetError as error:
            return refusal_result(error)

    async def ask(self, person: Person, request: QueryRequest) -> dict[str, Any]:
        """Return the private answer to a query, which is charged, or the refusal."""
        try:
            if self._cap is None:
                return answer_result(await self._service.ask(person, request), data="private")
            async with self._one_at_a_time:
                return await self._ask_within_cap(person, request, self._cap)
        except DiscreetError as error:
            return refusal_result(error)

    async def budget(self, person: Person) -> dict[str, Any]:
        """Return this person's budget, and what is left of the cap."""
        try:
            result = budget_result(self._service.budget(person))
        except DiscreetError as error:
            return refusal_result(error)
        if self._cap is not None:
            result["cap_epsilon"] = float(self._cap.epsilon)
            numbers = loss_numbers(self._spent).items()
            result["spent_under_cap"] = {name: None if number is None else float(number) for name, number in numbers}
        return result

    async def rehearse(self, person: Person, request: QueryRequest) -> dict[str, Any]:
        """Return the answer on dummy data: nothing is charged, and the numbers mean nothing."""
        try:
            answer = await self._service.run_rehearsal(person, lambda: self._service.rehearse(person, request))
        except DiscreetError as error:
            return {**refusal_result(error), "charged": False, "data": "dummy"}
        return answer_result(answer, data="dummy")

    async def _ask_within_cap(self, person: Person, request: QueryRequest, cap: Budget) -> dict[str, Any]:
        """Ask if the cap covers the cost, which counts as spent until it is known that less was charged.

        A request that is cancelled is charged all the same if its query has begun: only a refusal gives the cost back.
        """
        planned = await self._service.run_light(person, lambda: self._planned_cost(person, request))
        if not cap.covers(self._spent + planned):
            raise Refused(
                f"epsilon: this query exceeds the cap of epsilon {float(cap.epsilon):g} on this connection. Allow a "
                "larger margin, give a smaller epsilon, or ask the owner to raise the cap."
            )
        spent_before = self._spent
        self._spent = spent_before + planned
        try:
            answer = await self._service.ask(person, request)
        except (Refused, AccessDenied, NotAllowed, RateLimited):
            self._spent = spent_before
            raise
        self._spent = spent_before + (answer.paid or ZERO_LOSS)
        return answer_result(answer, data="private")

    def _planned_cost(self, person: Person, request: QueryRequest) -> Loss:
        return self._service.explain(person, request).paid or ZERO_LOSS
