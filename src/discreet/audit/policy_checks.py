"""What can be checked of questions without statistics: the shape of answers, prices, and that errors tell nothing."""

from collections.abc import Iterator, Sequence

from discreet.answer import Answer
from discreet.audit.policy_questions import Asked
from discreet.audit.policy_result import Check
from discreet.audit.policy_worlds import Pair, Prepared, anew, charged, exact, prepared
from discreet.curator import Curator
from discreet.engines.sources import EngineError
from discreet.kernel.errors import Refused
from discreet.kernel.loss import NOTHING
from discreet.kernel.question import Public
from discreet.pricing import Offer

_SHOWN = 3  # names of a long list
_SAME = "With the unit and without, answers have the same columns, declared groups and price"
_AUDITED = "What the curator charges and draws is what was audited"
_REPEATED = "An answer that was given is given again, for nothing"
_COMPARED = (_SAME, _AUDITED, _REPEATED)
_ANSWERED, _REFUSED, _FAILED = "answered", "refused", "failed"

Outcome = Answer | Exception


def question_checks(asked: Sequence[tuple[Prepared, Sequence[Pair]]], price: Offer) -> Iterator[Check]:
    """Check answers as analysts get them, with the planted unit and without."""
    seen = [(question.asked.name, _compared(question, pair, price)) for question, pairs in asked for pair in pairs]
    count = f"{len(asked)} questions"
    for name in _COMPARED:
        yield told(name, list(dict.fromkeys(asked for asked, broken in seen if name in broken)), count)


def _compared(question: Prepared, pair: Pair, price: Offer) -> set[str]:
    """Return what does not hold of the answers to one question."""
    broken = set()
    with anew(pair.present) as curator, anew(pair.absent) as other:
        here, there = (ask(each, question.asked, price) for each in (curator, other))
        if _shape(here, question) != _shape(there, question):
            broken.add(_SAME)
        if not isinstance(here, Answer):
            return broken | {_AUDITED}
        paid, audited = curator.ledger.events()[-1], charged(pair.present, question)
        if any(getattr(paid, name) != getattr(audited, name) for name in ("loss", "mechanism", "sensitivity")):
            broken.add(_AUDITED)
        again = ask(curator, question.asked, price)
        if not isinstance(again, Answer) or again.paid != NOTHING or again.table != here.table:
            broken.add(_REPEATED)
    return broken


def error_check(listed: Sequence[Asked], pairs: Sequence[Pair], price: Offer) -> Check:
    """Check that no expression fails for some values of the planted unit, and not without it."""
    bad, answered = [], 0
    worst = next((pair for pair in pairs if pair.place.values == "above"), pairs[0])
    curators = {id(side): (pair, side) for pair in pairs for side in (pair.absent, pair.present)}
    for asked in listed:
        with anew(worst.present) as here, anew(worst.absent) as there:
            words = {_word(ask(each, asked, price)) for each in (here, there)}
        if len(words) > 1 or _FAILED in words:
            bad.append(f"{asked.sql} ({worst.place.name})")
        elif words == {_ANSWERED}:
            answered += 1
            question = prepared(worst.present, asked, price)
            bad += [f"{asked.sql} ({pair.place.name})" for pair, side in curators.values() if _fails(side, question)]
    seen = f"{len(listed)} expressions such as 1 / (x - high), {len(pairs)} places of the unit, {answered} answered"
    return told("Whether a question fails does not depend on the unit", bad, seen)


def _fails(curator: Curator, question: Prepared) -> bool:
    try:
        exact(curator, question)
    except EngineError:
        return True
    return False


def ask(curator: Curator, asked: Asked, price: Offer) -> Outcome:
    """Ask as an analyst would; a refusal and a failure are outcomes, too, and so is any other error."""
    try:
        return curator.ask(asked.sql, epsilon=price.epsilon, rho=price.rho, groups=asked.groups, rows=asked.rows)
    except Exception as error:  # noqa: BLE001 - what comes out of a broken curator is what an audit wants to see
        return error


def told(name: str, bad: Sequence[str], seen: str) -> Check:
    """Return a check that holds unless something bad was found."""
    more = f" and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
    return Check(name, not bad, "; ".join(bad[:_SHOWN]) + more if bad else seen)


def _word(outcome: Outcome) -> str:
    if isinstance(outcome, Answer):
        return _ANSWERED
    return _REFUSED if isinstance(outcome, Refused) else _FAILED


def _shape(outcome: Outcome, question: Prepared) -> tuple[object, ...]:
    """Return what of an answer must not depend on anybody: columns, price, and the groups if they are declared."""
    if not isinstance(outcome, Answer):
        return type(outcome).__name__, str(outcome)
    declared = all(isinstance(ask.question.groups, Public) for ask in question.asks)
    keys = [name for name in outcome.table.column_names if name not in outcome.margins]
    groups = [tuple(row.values()) for row in outcome.table.select(keys).to_pylist()] if declared else []
    return tuple(outcome.table.column_names), tuple(map(str, outcome.table.schema.types)), outcome.paid, tuple(groups)
