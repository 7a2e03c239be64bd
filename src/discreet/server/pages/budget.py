"""The budget: what is left, for whom, and the charges that the ledger records."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from discreet.kernel.loss import ZERO_LOSS
from discreet.server.pages.ask import AskedQuestion
from discreet.server.pages.budget_words import BudgetView, more_text, questions_left
from discreet.server.pages.charges import charge_rows, timeline
from discreet.server.pages.forms import read_form
from discreet.server.pages.guards import PageRoute, session_of
from discreet.server.pages.rendering import Pages
from discreet.server.pages.sessions import PageSession
from discreet.server.people.person import Role
from discreet.server.service import Service

_SHOWN_EVENTS = 200


@dataclass(frozen=True)
class AnalystRow:
    """An analyst's limit and what is left of it."""

    name: str
    view: BudgetView


def budget_routes(pages: Pages) -> APIRouter:
    """Return the routes of the budget."""
    router = APIRouter(include_in_schema=False, route_class=PageRoute)
    Anybody = Annotated[PageSession, Depends(session_of(pages))]  # noqa: N806 - a type
    Reading = Annotated[PageSession, Depends(session_of(pages, Role.AUDITOR, Role.OWNER))]  # noqa: N806 - a type

    @router.get("/budget")
    async def show(request: Request, session: Anybody) -> Response:
        return await pages.service.run_light(session.person, lambda: _budget_page(pages, request, session))

    @router.post("/budget/verify")
    async def verify(request: Request, session: Reading) -> Response:
        await read_form(request, session.form_token)
        service, person = pages.service, session.person
        await service.run_light(person, service.ledger.verify)
        return await service.run_light(person, lambda: _budget_page(pages, request, session, verified=True))

    return router


def _budget_page(pages: Pages, request: Request, session: PageSession, *, verified: bool = False) -> Response:
    service, person = pages.service, session.person
    status, events = service.budget(person), service.charges(person)
    last_cost = next(
        (each.answer.loss for each in reversed(session.kept.values()) if isinstance(each, AskedQuestion)), ZERO_LOSS
    )
    return pages.render(
        request,
        "budget.html",
        session,
        budget=BudgetView.of_status(status),
        more=more_text(questions_left(status, last_cost)) if last_cost != ZERO_LOSS else "",
        analysts=() if person.role is Role.ANALYST else analyst_rows(service),
        timeline=timeline(events, status.total),
        rows=charge_rows(events[-_SHOWN_EVENTS:], status.total),
        hidden=max(0, len(events) - _SHOWN_EVENTS),
        verified=service.ledger_history(person) if verified else None,
    )


def analyst_rows(service: Service) -> tuple[AnalystRow, ...]:
    """Return the limit of every analyst of the policy, and what is left of it."""
    return tuple(
        AnalystRow(name, BudgetView.of_status(service.curator.budget(name)))
        for name in service.policy.budget_entry.analysts
    )
