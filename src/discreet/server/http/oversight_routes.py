"""Oversight: the ledger, approvals and metrics."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from discreet.server.http.answer_bodies import approval_values, event_values, exact_numbers, json_response
from discreet.server.http.question_routes import person_of, service_of

router = APIRouter(tags=["oversight"])


@router.get("/ledger")
def ledger(
    request: Request,
    after: Annotated[int, Query(ge=0, le=1 << 53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Return charges without their answers, oldest first, and the owner's acts; for auditors and owners."""
    history = service_of(request).ledger_history(person_of(request))
    page = history.events[after : after + limit]
    return json_response(
        {
            "charges": [event_values(event) for event in page],
            "next": after + len(page) if after + len(page) < len(history.events) else None,
            "acts": [{"time": act.time, **act.details} for act in history.recorded_acts],
            "spent": exact_numbers(history.spent),
            "last_row": history.last_row,
            "last_hash": history.last_hash,
        }
    )


@router.get("/approvals")
def approvals(request: Request) -> Response:
    """Return what waits for approval: everything for the owner, their own requests for an analyst."""
    waiting = service_of(request).waiting_approvals(person_of(request))
    return json_response({"approvals": [approval_values(each) for each in waiting]})


@router.post("/approvals/{identifier}/approve")
def approve(request: Request, identifier: str) -> Response:
    """Approve a question or plan, which its analyst may then ask for once; for the owner."""
    service_of(request).approve(person_of(request), identifier)
    return json_response({"approved": identifier})


@router.post("/approvals/{identifier}/reject")
def reject(request: Request, identifier: str) -> Response:
    """Reject a question or plan; for the owner."""
    service_of(request).reject(person_of(request), identifier)
    return json_response({"rejected": identifier})
