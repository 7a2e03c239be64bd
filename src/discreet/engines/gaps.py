"""What an engine cannot compute as the others do: told before anything is charged, by the question alone."""

from collections.abc import Iterator

from discreet.kernel.dialect import Dialect
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Call, Expr
from discreet.kernel.question import Public, Question
from discreet.kernel.relation import (
    Derive,
    JoinOwn,
    JoinPublic,
    Own,
    PerUnit,
    Relation,
    Scan,
    SemiOwn,
    Through,
    Union,
    Where,
)


def check_gaps(asked: Question | Relation, dialect: Dialect) -> None:
    """Refuse what the engine would compute otherwise than the reference, or not at all."""
    if found := gap_in(asked, dialect):
        raise Refused(found)


def gap_in(asked: Question | Relation, dialect: Dialect) -> str:
    """Return why an engine cannot answer a question, in words for its author; nothing if it can."""
    for expr in _of_question(asked) if isinstance(asked, Question) else _of_relation(asked):
        if found := _gap(expr, dialect):
            return found
    if isinstance(asked, Question) and isinstance(asked.groups, Public):
        longest = max(map(len, asked.groups.domains), default=0)
        if dialect.most_listed is not None and longest > dialect.most_listed:
            return (
                f"GROUP BY: {longest:,} listed keys in one column are more than the {dialect.most_listed:,} that this "
                "engine takes. Group more coarsely, or let groups be discovered."
            )
    return ""


def _gap(expr: Expr, dialect: Dialect) -> str:
    if not isinstance(expr, Call):
        return ""
    return dialect.gap(expr) or next((found for arg in expr.args if (found := _gap(arg, dialect))), "")


def _of_question(question: Question) -> Iterator[Expr]:
    yield from _of_relation(question.relation)
    yield from (expr for _, expr in question.by)
    yield from (total.expr for total in question.totals if total.expr is not None)


def _of_relation(relation: Relation) -> Iterator[Expr]:
    match relation:
        case Scan():
            yield from _of_scan(relation)
        case Where(source, condition):
            yield condition
            yield from _of_relation(source)
        case Derive(source, columns):
            yield from (expr for _, expr in columns)
            yield from _of_relation(source)
        case JoinPublic(source, table, _, also):
            yield from (expr for expr in (also, table.condition) if expr is not None)
            yield from _of_relation(source)
        case JoinOwn(left, right, also):
            yield from (expr for expr in (also,) if expr is not None)
            yield from (*_of_relation(left), *_of_relation(right))
        case SemiOwn(left, right) | Union(left, right):
            yield from (*_of_relation(left), *_of_relation(right))
        case PerUnit(source, keys, values):
            yield from (expr for _, expr in keys)
            yield from (folded.expr for _, folded in values if folded.expr is not None)
            yield from _of_relation(source)


def _of_scan(scan: Scan) -> Iterator[Expr]:
    match scan.owner:
        case Own(unit):
            yield from unit
        case Through(_, parent, _):
            yield from _of_scan(parent)
