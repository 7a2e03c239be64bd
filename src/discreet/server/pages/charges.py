"""Charges as pages show them: all of them to auditors and the owner, their own to analysts, who can ask again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.answer.text import short_number
from discreet.kernel.event import Event, EventState
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.pricing.allocation import largest_epsilon
from discreet.publish.report.ledger_events import reported_event
from discreet.server.pages.budget_words import share_spent

_ZOOMED_BELOW = 0.3  # of the budget
_CHART_WIDTH, _CHART_HEIGHT = 1000, 200


@dataclass(frozen=True)
class ChargeRow:
    """A charge as the page shows it; `id` names it, if it is a question that can be asked again."""

    time: str
    by: str
    question: str
    cost: str
    share: float  # of the budget, in percent
    state: str
    id: str


@dataclass(frozen=True)
class Timeline:
    """The spent share of the budget after each charge, as the points of a line from left to right."""

    points: str
    top: float  # of the chart, in percent of the budget
    charges: int
    first: str
    last: str


def charge_rows(events: Sequence[Event], budget: Budget) -> tuple[ChargeRow, ...]:
    """Return charges, newest first."""
    return tuple(_charge_row(event, budget) for event in reversed(events))


def _charge_row(event: Event, budget: Budget) -> ChargeRow:
    reported, record = reported_event(event), _record(event)
    purpose = reported.purpose or record.get("stated_purpose", "")
    return ChargeRow(
        _minute(event),
        event.by,
        " ".join(reported.query.split()) + (f" ({purpose})" if purpose else ""),
        reported.cost,
        round(float(100 * share_spent(budget, event.loss or ZERO_LOSS)), 3),
        "answered" if event.state is EventState.RELEASED else "no answer",
        event.id if "sql" in record and "publication" not in record else "",
    )


def question_again(event: Event, budget: Budget) -> dict[str, str]:
    """Return the fields of a form that asks a charged question again; its answer is in the ledger, so it is free.

    >>> record = '{"sql": "SELECT COUNT(*) AS n FROM visits", "price": "1/10", "stated_purpose": "planning"}'
    >>> question_again(Event(mechanism="{}", sensitivity="{}", question=record), Budget(1))
    {'sql': 'SELECT COUNT(*) AS n FROM visits', 'spend': 'epsilon', 'amount': '0.1', 'purpose': 'planning'}
    """
    record = _record(event)
    fields = {"sql": str(record.get("sql", "")), "spend": "epsilon", "amount": ""}
    match record.get("price"):
        case str(amount) if budget.rho is None:
            fields["amount"] = short_number(Fraction(amount))
        case str(amount):
            fields["amount"] = short_number(largest_epsilon(budget, Loss(None, amount)))
        case dict(margins) if len(set(margins.values())) == 1:
            fields |= {"spend": "margin", "amount": short_number(Fraction(next(iter(margins.values()))))}
    return fields | {"purpose": str(record.get("stated_purpose", ""))}


def _record(event: Event) -> dict[str, Any]:
    """Return what the ledger has about a question or a part of a publication."""
    try:
        record = json.loads(event.question)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _minute(event: Event) -> str:
    """Return when it was charged, to the minute: seconds would say how long others' questions took."""
    return event.time[:16].replace("T", " ")


def timeline(events: Sequence[Event], budget: Budget) -> Timeline | None:
    """Return the line of what was spent, one step for each charge; while little is spent, the chart shows that part."""
    if not events:
        return None
    spent, shares = ZERO_LOSS, []
    for event in events:
        spent += event.loss or ZERO_LOSS
        shares.append(float(share_spent(budget, spent)))
    top = 1.0 if shares[-1] > _ZOOMED_BELOW else max(shares[-1] * 1.5, 1e-6)
    width, before, points = _CHART_WIDTH / len(shares), 0.0, [(0.0, 0.0)]
    for number, share in enumerate(shares):
        points += [((number + 0.5) * width, before), ((number + 0.5) * width, share)]
        before = share
    points.append((_CHART_WIDTH, before))
    line = " ".join(f"{x:.1f},{_CHART_HEIGHT * (1 - y / top):.2f}" for x, y in points)
    return Timeline(line, round(100 * top, 2), len(shares), _minute(events[0]), _minute(events[-1]))
