"""The question as the ledger keeps it: what was asked, of which state of the data, in which limits, for what."""

import json

from discreet.kernel.errors import Failed, Refused
from discreet.kernel.event import State, canonical
from discreet.kernel.ledger import UNKNOWN, Ledger
from discreet.pricing.owing import Due
from discreet.sql.plan import Plan


def said_of(plan: Plan, version: str, price: object) -> dict[str, object]:
    """Return what was asked."""
    limits = [[part.question.limit.groups, part.question.limit.rows] for part in plan.parts]
    return {"sql": plan.text, "version": version, "limits": limits, "price": price}


def text_of(said: dict[str, object], owed: Due) -> str:
    """Write what was asked, and what each total gets of the charge."""
    return canonical(said | owed.record)


def with_key(ledger: Ledger, by: str, key: str, said: dict[str, object]) -> str | None:
    """Return the receipt of what an analyst asked with a key before; None if the key is new."""
    event = ledger.with_key(by, key)
    if event is None:
        return None
    try:
        before = json.loads(event.question)
        same = canonical({name: before[name] for name in said}) == canonical(said)
    except (ValueError, KeyError, TypeError):
        same = False  # another program's words
    if not same:
        raise Refused("key: it was used for another question before. Use another key.")
    if event.state is not State.RELEASED:
        raise Failed(UNKNOWN)
    return event.id
