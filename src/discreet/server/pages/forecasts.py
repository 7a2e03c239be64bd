"""Forecasts: what a question would cost and how accurate its answer would be, or why it is refused and what helps."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from discreet.answer.text import cost_forecast_sentences, error_forecast_sentences, round_up, short_number
from discreet.kernel.errors import Refused
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.pricing.remaining_budget import BudgetStatus
from discreet.server.errors import RateLimited
from discreet.server.pages.budget_words import more_text, odds_of, questions_left, share_spent
from discreet.server.pages.corrections import Correction, corrections, find_place
from discreet.server.people.person import Person
from discreet.server.requests import QueryRequest
from discreet.server.service import Service

_BY_SIZE = re.compile(
    r"± ([\d.,e+]+)(?: to ([\d.,e+]+))? divided by the number of values in the group, if that is large"
)
_GROUP_SIZES = (1_000, 10_000)
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
    headline: str = ""
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
    paid, status = explanation.paid or ZERO_LOSS, service.budget(person)
    exact = error_forecast_sentences(explanation)
    return Forecast(
        headline=_headline(status, paid),
        cost=tuple(cost_forecast_sentences(explanation)),
        margins=tuple(margin_words(sentence.partition("; ")[0]) for sentence in exact),
        notes=tuple(filter(None, (*exact, explanation.groups, *explanation.bounds, *explanation.notes))),
        more=more_text(questions_left(status, paid)) if paid != ZERO_LOSS else "",
        odds=odds_of(paid) if paid != ZERO_LOSS else "",
    )


def _headline(status: BudgetStatus, paid: Loss) -> str:
    if paid == ZERO_LOSS:
        return "Costs nothing."
    return f"Costs {short_number(100 * share_spent(status.total, paid), digits=2)} % of your budget."


def margin_words(sentence: str) -> str:
    """Return the forecast of a margin; one that depends on the size of a group is given for two sizes.

    >>> margin_words("mean: ± 9,000,000 to 17,000,000 divided by the number of values in the group, if that is large")
    'mean: at most ± 17,000 in a group of 1,000 values, ± 1,700 in one of 10,000'
    """

    def for_sizes(found: re.Match[str]) -> str:
        largest = float((found[2] or found[1]).replace(",", ""))
        small, large = (round_up(largest / size) for size in _GROUP_SIZES)
        return f"at most ± {small} in a group of {_GROUP_SIZES[0]:,} values, ± {large} in one of {_GROUP_SIZES[1]:,}"

    return _BY_SIZE.sub(for_sizes, sentence)


def refusal_of(service: Service, person: Person, fields: Mapping[str, str], message: str) -> Refusal:
    """Return a refusal with the place that it points to, and queries that would be answered instead."""
    sql = fields.get("sql", "")
    start, end = find_place(sql, message) or (len(sql), len(sql))
    offered = corrections(sql, message, _refusals(service, person, fields))
    return Refusal(message, sql[:start], sql[start:end], sql[end:], tuple(offered))


def _refusals(service: Service, person: Person, fields: Mapping[str, str]) -> Callable[[str], str | None]:
    """Return a test of queries: why they would be refused at the same cost, or None."""

    def refusal(sql: str) -> str | None:
        try:
            service.explain(person, read_question({**fields, "sql": sql}))
        except (*NOT_ANSWERED, RateLimited) as error:
            return str(error)
        return None

    return refusal
