"""Forecasts: what a question would cost and how accurate its answer would be, or why it is refused and what helps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from discreet.answer.text import cost_forecast_sentences, error_forecast_sentences
from discreet.kernel.errors import Refused
from discreet.kernel.loss import ZERO_LOSS
from discreet.server.errors import RateLimited
from discreet.server.pages.budget_words import more_text, odds_of, questions_left
from discreet.server.pages.corrections import Correction, corrections, find_place
from discreet.server.people.person import Person
from discreet.server.requests import QueryRequest
from discreet.server.service import Service

NOT_ANSWERED = (Refused, ValueError, TypeError)  # refusals, and amounts that are no numbers


@dataclass(frozen=True)
class Refusal:
    """A refusal, the query around the place that it points to, and what to write instead."""

    message: str
    before: str
    marked: str
    after: str
    corrections: tuple[Correction, ...]


@dataclass(frozen=True)
class Forecast:
    """What a question would cost and how accurate its answer would be, in words; or its refusal."""

    refusal: Refusal | None = None
    cost: tuple[str, ...] = ()
    margins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    more: str = ""
    odds: str = ""
    was_asked: bool = False


def read_question(fields: Mapping[str, str]) -> QueryRequest:
    """Return the question of a form; a comma in the amount is a decimal point.

    >>> read_question({"sql": "SELECT 1", "spend": "margin", "amount": "0,5"}).margin
    '0.5'
    """
    amount = fields.get("amount", "").strip().replace(",", ".") or None
    spend = fields.get("spend", "epsilon")
    return QueryRequest(
        fields.get("sql", ""),
        epsilon=amount if spend == "epsilon" else None,
        margin=amount if spend == "margin" else None,
        purpose=fields.get("purpose") or None,
    )


def fields_of(question: QueryRequest) -> dict[str, str]:
    """Return the fields of a form with a question.

    >>> fields_of(QueryRequest("SELECT 1", epsilon="1/10"))["amount"]
    '1/10'
    """
    spend = "margin" if question.margin is not None else "epsilon"
    amount = question.margin if spend == "margin" else question.epsilon
    return {"sql": question.sql, "spend": spend, "amount": str(amount or ""), "purpose": question.purpose or ""}


def forecast_of(service: Service, person: Person, fields: Mapping[str, str]) -> Forecast:
    """Explain a question, which is free and reads no private data."""
    try:
        explanation = service.explain(person, read_question(fields))
    except RateLimited:
        raise
    except NOT_ANSWERED as error:
        return Forecast(refusal_of(service, person, fields, str(error)))
    paid = explanation.paid or ZERO_LOSS
    return Forecast(
        cost=tuple(cost_forecast_sentences(explanation)),
        margins=tuple(error_forecast_sentences(explanation)),
        notes=tuple(filter(None, (explanation.groups, *explanation.bounds, *explanation.notes))),
        more=more_text(questions_left(service.budget(person), paid)) if paid != ZERO_LOSS else "",
        odds=odds_of(paid) if paid != ZERO_LOSS else "",
    )


def refusal_of(service: Service, person: Person, fields: Mapping[str, str], message: str) -> Refusal:
    """Return a refusal with the place that it points to, and queries that would be answered instead."""
    sql = fields.get("sql", "")
    start, end = find_place(sql, message) or (len(sql), len(sql))
    offered = corrections(sql, message, _acceptance(service, person, fields))
    return Refusal(message, sql[:start], sql[start:end], sql[end:], tuple(offered))


def _acceptance(service: Service, person: Person, fields: Mapping[str, str]) -> Callable[[str], bool]:
    """Return a test of queries: whether they would be answered, at the same cost."""

    def is_accepted(sql: str) -> bool:
        try:
            service.explain(person, read_question({**fields, "sql": sql}))
        except (*NOT_ANSWERED, RateLimited):
            return False
        return True

    return is_accepted
