"""The owner's page: the policy in plain sentences, people, incidents, approvals, and an audit."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response

from discreet.kernel.errors import LedgerError, PolicyError, Refused
from discreet.policy.guarantee import explain
from discreet.policy.hazards import hazards
from discreet.publish.report.ledger_events import ReportedEvent, reported_event
from discreet.server.pages.audits import AuditRunner
from discreet.server.pages.forms import read_form
from discreet.server.pages.guards import PageRoute, session_of
from discreet.server.pages.rendering import Pages, redirect
from discreet.server.pages.sessions import PageSession
from discreet.server.people.person import Role
from discreet.server.service import Service


@dataclass(frozen=True)
class Incidents:
    """What keeps the data from being served, or soon will: charges without an answer, a ledger that is not trusted."""

    problem: str
    unanswered: tuple[ReportedEvent, ...]

    @classmethod
    def of_service(cls, service: Service) -> "Incidents":
        """Look at the ledger and at the failures since the last acknowledgement."""
        try:
            unanswered = tuple(map(reported_event, service.ledger.unsettled_events()))
            service.curator.releases.circuit_breaker.check()
            service.ledger.latest_receipt("")  # which compares the end of the ledger with its checkpoint
        except (Refused, LedgerError) as problem:
            return cls(str(problem), _unanswered(service))
        return cls("", unanswered)


def _unanswered(service: Service) -> tuple[ReportedEvent, ...]:
    try:
        return tuple(map(reported_event, service.ledger.unsettled_events()))
    except LedgerError:
        return ()


def owner_routes(pages: Pages) -> APIRouter:
    """Return the routes of the owner."""
    router = APIRouter(include_in_schema=False, route_class=PageRoute)
    Deciding = Annotated[PageSession, Depends(session_of(pages, Role.OWNER))]  # noqa: N806 - a type
    audits = AuditRunner(pages.service.policy)

    @router.get("/owner")
    def show(request: Request, session: Deciding) -> Response:
        return _owner_page(pages, request, session)

    @router.post("/owner/{act}")
    async def act(request: Request, session: Deciding, act: str) -> Response:
        fields = await read_form(request, session.form_token)
        if act == "audit":
            audits.start()
            return redirect("/owner/audit")
        return await _act(pages, request, session, act, fields)

    @router.get("/owner/audit")
    def show_audit(request: Request, session: Deciding) -> Response:
        return pages.render(request, "audit.html", session, audits=audits)

    return router


async def _act(pages: Pages, request: Request, session: PageSession, act: str, fields: Mapping[str, str]) -> Response:
    """Do what a form of the owner's page asks for, and show the page again with what came of it."""
    service, person = pages.service, session.person
    try:
        match act:
            case "add":
                return await _issue_token(pages, request, session, fields)
            case "revoke":
                await service.run_act(person, lambda: service.people.revoke(service.ledger, fields.get("name", "")))
            case "approve":
                await service.run_act(person, lambda: service.approve(person, fields.get("id", "")))
            case "reject":
                await service.run_act(person, lambda: service.reject(person, fields.get("id", "")))
            case "acknowledge":
                await service.run_act(person, service.ledger.acknowledge)
            case _:
                raise HTTPException(404, "there is no such act.")
    except (PolicyError, Refused) as error:
        return _owner_page(pages, request, session, status=422, problem=str(error))
    return redirect("/owner")


async def _issue_token(pages: Pages, request: Request, session: PageSession, fields: Mapping[str, str]) -> Response:
    """Issue a token and show it, this once: the page is not kept, and loading it again would send the form again."""
    service, name = pages.service, fields.get("name", "").strip()
    try:
        role = Role(fields.get("role", ""))
        until = date.fromisoformat(fields["until"]) if fields.get("until") else None
    except ValueError:
        raise PolicyError("role or last day: choose a role, and write the day as 2027-01-31.") from None
    issued = await service.run_act(session.person, lambda: service.people.add(service.ledger, name, role, until))
    return _owner_page(pages, request, session, issued=issued)


def _owner_page(pages: Pages, request: Request, session: PageSession, *, status: int = 200, **context: Any) -> Response:
    service = pages.service
    defaults: dict[str, Any] = {"problem": "", "issued": None}
    return pages.render(
        request,
        "owner.html",
        session,
        status=status,
        sentences=explain(service.policy),
        hazards=hazards(service.policy),
        people=service.people.everybody(),
        analysts=tuple(service.policy.budget_entry.analysts),
        roles=tuple(Role),
        incidents=Incidents.of_service(service),
        approvals=service.waiting_approvals(session.person),
        **{**defaults, **context},
    )
