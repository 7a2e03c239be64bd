"""The budget: what is left, for whom, and every charge that the ledger records."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from discreet.kernel.event import Event, EventState
from discreet.kernel.loss import ZERO_LOSS, Budget
from discreet.publish.ledger_history import LedgerHistory
from discreet.publish.report.ledger_events import reported_event
from discreet.server.pages.ask import AskedQuestion
from discreet.server.pages.budget_words import BudgetView, more_text, questions_left, share_spent
from discreet.server.pages.forms import read_form
from discreet.server.pages.guards import PageRoute, session_of
from discreet.server.pages.rendering import Pages
from discreet.server.pages.sessions import PageSession
from discreet.server.people.person import Role
from discreet.server.service import Service

_SHOWN_EVENTS = 200
_ZOOMED_BELOW = 0.3  # of the budget
_CHART_WIDTH, _CHART_HEIGHT = 1000, 200


@dataclass(frozen=True)
class ChargeRow:
    """A charge as the page shows it."""

    time: str
    by: str
    question: str
    cost: str
    share: float  # of the total budget, in percent
    state: str


@dataclass(frozen=True)
class AnalystRow:
    """An analyst's limit and what is left of it."""

    name: str
    view: BudgetView


@dataclass(frozen=True)
class Timeline:
    """The spent share of the budget after each charge, as the points of a line from left to right."""

    points: str
    top: float  # of the chart, in percent of the budget
    charges: int
    first: str
    last: str


def budget_routes(pages: Pages) -> APIRouter:
    """Return the routes of the budget."""
    router = APIRouter(include_in_schema=False, route_class=PageRoute)
    Anybody = Annotated[PageSession, Depends(session_of(pages))]  # noqa: N806 - a type
    Reading = Annotated[PageSession, Depends(session_of(pages, Role.AUDITOR, Role.OWNER))]  # noqa: N806 - a type

    @router.get("/budget")
    def show(request: Request, session: Anybody) -> Response:
        return _budget_page(pages, request, session)

    @router.post("/budget/verify")
    async def verify(request: Request, session: Reading) -> Response:
        await read_form(request, session.form_token)
        await pages.service.run_light(session.person, pages.service.ledger.verify)
        return _budget_page(pages, request, session, verified=True)

    return router


def _budget_page(pages: Pages, request: Request, session: PageSession, *, verified: bool = False) -> Response:
    service, person = pages.service, session.person
    status, history = service.budget(person), None
    if person.role is not Role.ANALYST:
        history = service.ledger_history(person)
    last_cost = next(
        (each.answer.loss for each in reversed(session.kept.values()) if isinstance(each, AskedQuestion)), ZERO_LOSS
    )
    return pages.render(
        request,
        "budget.html",
        session,
        budget=BudgetView.of_status(status),
        more=more_text(questions_left(status, last_cost)) if last_cost != ZERO_LOSS else "",
        analysts=analyst_rows(service) if history else (),
        timeline=timeline(history) if history else None,
        rows=charge_rows(history) if history else (),
        hidden=max(0, len(history.events) - _SHOWN_EVENTS) if history else 0,
        history=history,
        verified=verified,
    )


def analyst_rows(service: Service) -> tuple[AnalystRow, ...]:
    """Return the limit of every analyst of the policy, and what is left of it."""
    return tuple(
        AnalystRow(name, BudgetView.of_status(service.curator.budget(name)))
        for name in service.policy.budget_entry.analysts
    )


def charge_rows(history: LedgerHistory) -> tuple[ChargeRow, ...]:
    """Return the newest charges, newest first."""
    return tuple(_charge_row(event, history.terms.budget) for event in reversed(history.events[-_SHOWN_EVENTS:]))


def _charge_row(event: Event, budget: Budget) -> ChargeRow:
    reported = reported_event(event)
    purpose = f" ({reported.purpose})" if reported.purpose else ""
    return ChargeRow(
        event.time[:19].replace("T", " "),
        event.by,
        " ".join(reported.query.split()) + purpose,
        reported.cost,
        round(float(100 * share_spent(budget, event.loss or ZERO_LOSS)), 3),
        "answered" if event.state is EventState.RELEASED else "no answer",
    )


def timeline(history: LedgerHistory) -> Timeline | None:
    """Return the line of what was spent, one step for each charge; while little is spent, the chart shows that part."""
    if not history.events:
        return None
    spent, shares = ZERO_LOSS, []
    for event in history.events:
        spent += event.loss or ZERO_LOSS
        shares.append(float(share_spent(history.terms.budget, spent)))
    top = 1.0 if shares[-1] > _ZOOMED_BELOW else max(shares[-1] * 1.5, 1e-6)
    width, before, points = _CHART_WIDTH / len(shares), 0.0, [(0.0, 0.0)]
    for number, share in enumerate(shares):
        points += [((number + 0.5) * width, before), ((number + 0.5) * width, share)]
        before = share
    points.append((_CHART_WIDTH, before))
    line = " ".join(f"{x:.1f},{_CHART_HEIGHT * (1 - y / top):.2f}" for x, y in points)
    first, last = (history.events[place].time[:16].replace("T", " ") for place in (0, -1))
    return Timeline(line, round(100 * top, 2), len(shares), first, last)
