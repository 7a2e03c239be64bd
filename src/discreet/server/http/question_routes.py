"""Questions: tables, explain, ask, rehearse, budget."""

import asyncio
from typing import Annotated, Any, cast

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from discreet.policy.column_domains import ColumnType, DeclaredColumn, NoDomain
from discreet.policy.declarations import DeclaredTable
from discreet.server.http.answer_bodies import (
    ARROW,
    CSV,
    AnswerBodies,
    budget_values,
    json_response,
    table_values,
)
from discreet.server.http.request_bodies import QuestionBody
from discreet.server.people import Person
from discreet.server.service import Service

_MANY_ROWS = 1000  # of an answer, whose encoding would keep the event loop busy
router = APIRouter(tags=["questions"])
IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)]
_ANSWER = {
    "columns": [
        {"name": "ward", "type": "string"},
        {"name": "n", "type": "int64"},
        {"name": "n_margin", "type": "double"},
    ],
    "rows": [{"ward": "A", "n": 1731, "n_margin": 30.0}],
    "data": "private",
    "cost": {"epsilon": 0.1, "rho": 0.005, "delta": 0.0},
    "remaining": 3.9,
    "receipt": "5e1f",
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"example": _ANSWER}, ARROW: {}, CSV: {}}, "description": "The answer."}
}


def service_of(request: Request) -> Service:
    """Return the service of an application."""
    service: Service = request.app.state.service
    return service


def person_of(request: Request) -> Person:
    """Return the person that the gate has found."""
    person: Person = request.state.person
    return person


@router.get("/me")
def me(request: Request) -> Response:
    """Return whose token this is."""
    person = person_of(request)
    return json_response({"name": person.name, "role": person.role.value, "until": person.until})


@router.get("/tables")
def tables(request: Request) -> Response:
    """Return the tables that this person may query, with the declarations of their columns."""
    service = service_of(request)
    data, found = service.policy.data, service.tables(person_of(request))
    values = [table_values(table, _columns_of(service, table), data.protects) for table in found]
    return json_response({"dataset": data.name, "tables": values})


def _columns_of(service: Service, table: DeclaredTable) -> list[DeclaredColumn]:
    """Return the declared columns; those of a public table that declares none follow from its schema."""
    if table.columns:
        return list(table.columns.values())
    types = service.curator.releases.catalog.public[table.name].items()
    return [DeclaredColumn(name, cast("ColumnType", kind.name.lower()), NoDomain(), null=True) for name, kind in types]


@router.post("/explain")
async def explain(request: Request, body: QuestionBody) -> Response:
    """Return the cost of a query and the margins to expect. This is free and reads no private data."""
    service, person, question = service_of(request), person_of(request), body.to_request(None)
    return json_response((await service.run_light(person, lambda: service.explain(person, question))).to_dict())


@router.post("/ask", responses=_ANSWERS)
async def ask(
    request: Request, body: QuestionBody, accept: Annotated[str, Header()] = "", idempotency_key: IdempotencyKey = None
) -> Response:
    """Answer a query with its margins of error, and charge it; the same question again is free."""
    bodies: AnswerBodies = request.app.state.bodies
    answer = await service_of(request).ask(person_of(request), body.to_request(idempotency_key))
    if len(answer) > _MANY_ROWS:
        return await asyncio.to_thread(bodies.response, answer, accept)
    return bodies.response(answer, accept)


@router.post("/rehearse", responses=_ANSWERS)
async def rehearse(request: Request, body: QuestionBody, accept: Annotated[str, Header()] = "") -> Response:
    """Answer a query on dummy data: the columns are right, the numbers mean nothing, and nothing is charged.

    The answer says so: `data` is "dummy", as a field or, in CSV, as one more column.
    """
    service, person, question = service_of(request), person_of(request), body.to_request(None)
    bodies: AnswerBodies = request.app.state.bodies
    return await service.run_rehearsal(
        person, lambda: bodies.response(service.rehearse(person, question), accept, "dummy")
    )


@router.get("/budget")
def budget(request: Request, by: str | None = None) -> Response:
    """Return the budget of this person; auditors and owners may name an analyst."""
    return json_response(budget_values(service_of(request).budget(person_of(request), by)))
