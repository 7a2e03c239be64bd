"""Questions and their answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, HTTPException, Request, Response

from discreet.answer.model import Answer
from discreet.answer.text import short_number
from discreet.kernel.errors import Failed
from discreet.server.errors import RateLimited
from discreet.server.pages.answer_view import AnswerView
from discreet.server.pages.budget_words import BudgetView, budget_text, odds_of_budget
from discreet.server.pages.charges import question_again
from discreet.server.pages.downloads import answer_file
from discreet.server.pages.examples import example_questions
from discreet.server.pages.forecasts import NOT_ANSWERED, Forecast, fields_of, forecast_of, read_question, refusal_of
from discreet.server.pages.forms import read_form
from discreet.server.pages.guards import PageRoute, session_of
from discreet.server.pages.rendering import Pages, redirect
from discreet.server.pages.schema import completion_words, described_tables
from discreet.server.pages.sessions import PageSession
from discreet.server.pages.snippets import snippets
from discreet.server.people.person import Role
from discreet.server.requests import QueryRequest

_FRAGMENT = "x-fragment"  # a header by which our script asks for a part of the page
_SPENDS = ("epsilon", "margin")
_SMALL_EPSILON = "0.1"  # to begin with; the reader sees what it costs before asking
_GONE = "this answer is not kept any more. Ask again: the same question is answered from the ledger, for nothing."


@dataclass(frozen=True)
class AskedQuestion:
    """A question of this session with its answer."""

    request: QueryRequest
    answer: Answer
    time: datetime


def ask_routes(pages: Pages) -> APIRouter:
    """Return the routes of questions and their answers."""
    router = APIRouter(include_in_schema=False, route_class=PageRoute)
    Asking = Annotated[PageSession, Depends(session_of(pages, Role.ANALYST, Role.OWNER))]  # noqa: N806 - a type

    @router.get("/ask")
    async def show(request: Request, session: Asking, again: str = "") -> Response:
        return await pages.service.run_light(session.person, lambda: _begin(pages, request, session, again))

    @router.post("/ask/forecast")
    async def forecast(request: Request, session: Asking) -> Response:
        return await _show_forecast(pages, request, session)

    @router.post("/ask")
    async def ask(request: Request, session: Asking) -> Response:
        return await _ask(pages, request, session)

    @router.get("/ask/{name}")
    def show_answer(request: Request, session: Asking, name: str) -> Response:
        asked = _kept(session, name)
        return redirect("/ask") if asked is None else _answer_page(pages, request, session, name, asked)

    @router.get("/ask/{name}/{file}")
    def download(session: Asking, name: str, file: str) -> Response:
        asked = _kept(session, name)
        if asked is None:
            raise HTTPException(404, _GONE)
        return answer_file(asked.answer, file)

    return router


def _begin(pages: Pages, request: Request, session: PageSession, again: str) -> Response:
    """Show the form, with a question that this person was charged for if its charge is named."""
    service, person = pages.service, session.person
    mine = (each for each in service.charges(person) if each.id == again and each.by == person.by) if again else ()
    fields = next((question_again(event, service.policy.budget) for event in mine), {})
    return _ask_page(pages, request, session, fields, forecast=forecast_of(service, person, fields) if fields else None)


async def _show_forecast(pages: Pages, request: Request, session: PageSession) -> Response:
    """Return the forecast of a question, or of the correction that was chosen: a part of the page for our script."""
    fields = dict(await read_form(request, session.form_token))
    fields["sql"] = fields.get("use") or fields.get("sql", "")
    forecast, service, person = None, pages.service, session.person
    if fields["sql"].strip():
        forecast = await service.run_light(person, lambda: forecast_of(service, person, fields))
    if _FRAGMENT in request.headers:
        return pages.render(request, "_forecast.html", session, forecast=forecast, view=None, examples=())
    return _ask_page(pages, request, session, fields, forecast=forecast)


async def _ask(pages: Pages, request: Request, session: PageSession) -> Response:
    """Answer a question and show it on a page of its own, which can be loaded again; or say why not."""
    fields, service = await read_form(request, session.form_token), pages.service
    try:
        question = read_question(fields)
        answer = await service.ask(session.person, question)
    except RateLimited:
        raise
    except Failed as failure:
        return _ask_page(pages, request, session, fields, status=500, failure=str(failure))
    except NOT_ANSWERED as error:
        message = str(error)
    else:
        return redirect(f"/ask/{session.keep(AskedQuestion(question, answer, datetime.now(UTC)))}#answer")
    refusal = await service.run_light(session.person, lambda: refusal_of(service, session.person, fields, message))
    return _ask_page(pages, request, session, fields, status=422, forecast=Forecast(refusal, was_asked=True))


def _kept(session: PageSession, name: str) -> AskedQuestion | None:
    asked = session.kept.get(name)
    return asked if isinstance(asked, AskedQuestion) else None


def _answer_page(pages: Pages, request: Request, session: PageSession, name: str, asked: AskedQuestion) -> Response:
    service, address = pages.service, str(request.base_url).rstrip("/")
    pg_port = urlsplit(service.addresses["pg"]).port if "pg" in service.addresses else None
    return _ask_page(
        pages,
        request,
        session,
        fields_of(asked.request),
        name=name,
        view=AnswerView.of_answer(asked.answer),
        snippets=snippets(asked.request, address, pg_port, session.person.name, service.policy.data.name),
    )


def _ask_page(
    pages: Pages,
    request: Request,
    session: PageSession,
    fields: Mapping[str, str],
    *,
    status: int = 200,
    **context: Any,
) -> Response:
    service, person = pages.service, session.person
    tables = described_tables(service.tables(person))
    history = [(name, asked) for name, asked in reversed(session.kept.items()) if isinstance(asked, AskedQuestion)]
    values = {
        "sql": fields.get("sql", ""),
        "spend": fields.get("spend") if fields.get("spend") in _SPENDS else "epsilon",
        "amount": fields.get("amount", _usual_cost(pages, session)),
        "purpose": fields.get("purpose", ""),
    }
    rest: dict[str, Any] = {"forecast": None, "failure": "", "name": "", "view": None, "snippets": ()}
    return pages.render(
        request,
        "ask.html",
        session,
        status=status,
        fields=values,
        tables=tables,
        words=completion_words(tables),
        examples=example_questions(service.tables(person)),
        needs_purpose=bool(service.policy.server.purpose),
        budget=BudgetView.of_status(service.budget(person)),
        data_budget=budget_text(service.policy.budget),
        data_odds=odds_of_budget(service.policy.budget),
        history=history,
        waiting=service.waiting_approvals(person) if person.role is Role.ANALYST else (),
        **{**rest, **context},
    )


def _usual_cost(pages: Pages, session: PageSession) -> str:
    """Return the epsilon that the policy gives an analyst for a question, or a small one."""
    analyst = pages.service.policy.budget_entry.analysts.get(session.person.by)
    return short_number(analyst.each) if analyst and analyst.each else _SMALL_EPSILON
