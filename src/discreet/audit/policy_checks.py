"""What can be checked of questions without statistics: the shape of answers, prices, and that errors tell nothing."""

from collections.abc import Iterator, Sequence

from discreet.answer import Answer
from discreet.audit.policy_errors import risky
from discreet.audit.policy_questions import Asked
from discreet.audit.policy_result import Check
from discreet.audit.policy_worlds import Pair, Prepared, anew, charged
from discreet.curator import Curator
from discreet.kernel.errors import DiscreetError, Failed
from discreet.kernel.loss import NOTHING
from discreet.kernel.question import Public
from discreet.policy import Policy
from discreet.pricing import Offer

_RISKY = ("one row, highest values", "beyond every bound", "not a number", "missing values", "alone in the data")
_SHOWN = 3  # names of a long list
_ANSWERED, _REFUSED, _FAILED = "answered", "refused", "failed"

Outcome = Answer | DiscreetError


def question_checks(asked: Sequence[tuple[Prepared, Pair]], price: Offer) -> Iterator[Check]:
    """Check answers as analysts get them, with the planted unit and without."""
    differ, dearer, unlike = [], [], []
    for question, pair in asked:
        name = question.asked.name
        with anew(pair.present) as curator, anew(pair.absent) as other:
            here, there = (ask(each, question.asked, price) for each in (curator, other))
            if _shape(here, question) != _shape(there, question) or isinstance(here, Failed):
                differ.append(name)
            if not isinstance(here, Answer):
                continue
            event, expected = curator.ledger.events()[-1], charged(pair.present, question)
            if (event.loss, event.mechanism, event.sensitivity) != (
                expected.loss,
                expected.mechanism,
                expected.sensitivity,
            ):
                unlike.append(name)
            again = ask(curator, question.asked, price)
            if not isinstance(again, Answer) or again.paid != NOTHING or again.table != here.table:
                dearer.append(name)
    count = f"{len(asked)} questions"
    yield told("With the unit and without, answers have the same columns, declared groups and price", differ, count)
    yield told("What the curator charges and draws is what was audited", unlike, count)
    yield told("An answer that was given is given again, for nothing", dearer, count)


def error_check(policy: Policy, pairs: Sequence[Pair], price: Offer) -> Check:
    """Check that no expression fails for some values of the planted unit, and not without it."""
    listed = risky(policy)
    chosen = [pair for pair in pairs if pair.place.name in _RISKY]
    known: dict[tuple[int, str], str] = {}

    def outcome(curator: Curator, asked: Asked) -> str:
        place = id(curator), asked.sql
        if place not in known:
            with anew(curator) as fresh:
                known[place] = _word(ask(fresh, asked, price))
        return known[place]

    bad = []
    for asked in listed:
        for pair in chosen:
            words = {outcome(pair.present, asked), outcome(pair.absent, asked)}
            if len(words) > 1 or _FAILED in words:
                bad.append(f"{asked.sql} ({pair.place.name})")
    answered = sum(word == _ANSWERED for word in known.values())
    seen = f"{len(listed)} expressions such as 1 / (x - high), {len(chosen)} places of the unit, {answered} answers"
    return told("Whether a question fails does not depend on the unit", bad, seen)


def ask(curator: Curator, asked: Asked, price: Offer) -> Outcome:
    """Ask as an analyst would; a refusal and a failure are outcomes, too."""
    try:
        return curator.ask(asked.sql, epsilon=price.epsilon, rho=price.rho, groups=asked.groups, rows=asked.rows)
    except DiscreetError as error:
        return error


def told(name: str, bad: Sequence[str], seen: str) -> Check:
    """Return a check that holds unless something bad was found."""
    more = f" and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
    return Check(name, not bad, "; ".join(bad[:_SHOWN]) + more if bad else seen)


def _word(outcome: Outcome) -> str:
    if isinstance(outcome, Answer):
        return _ANSWERED
    return _FAILED if isinstance(outcome, Failed) else _REFUSED


def _shape(outcome: Outcome, question: Prepared) -> tuple[object, ...]:
    """Return what of an answer must not depend on anybody: columns, price, and the groups if they are declared."""
    if not isinstance(outcome, Answer):
        return type(outcome).__name__, str(outcome)
    declared = all(isinstance(ask.question.groups, Public) for ask in question.asks)
    keys = [name for name in outcome.table.column_names if name not in outcome.margins]
    groups = [tuple(row.values()) for row in outcome.table.select(keys).to_pylist()] if declared else []
    return tuple(outcome.table.column_names), tuple(map(str, outcome.table.schema.types)), outcome.paid, tuple(groups)
