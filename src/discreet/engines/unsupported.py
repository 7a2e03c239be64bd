"""Refuse operations that an engine cannot compute like the reference, before anything is charged."""

from collections.abc import Iterator

from discreet.kernel.errors import Refused
from discreet.kernel.expr import Call, Expr
from discreet.kernel.question import PublicGroups, Question
from discreet.kernel.relation import (
    Derive,
    JoinOnUnit,
    JoinPublic,
    ParentUnit,
    PerUnit,
    Relation,
    Scan,
    SemiJoinOnUnit,
    Union,
    UnitKey,
    Where,
)
from discreet.kernel.sqlgen.dialect import Dialect


def check_supported(question_or_relation: Question | Relation, dialect: Dialect) -> None:
    """Refuse what the engine cannot compute, or would compute differently from the reference."""
    if reason := unsupported_reason(question_or_relation, dialect):
        raise Refused(reason)


def unsupported_reason(question_or_relation: Question | Relation, dialect: Dialect) -> str:
    """Return the reason why an engine does not support a question or relation, or "" if it does."""
    for expr in (
        _question_exprs(question_or_relation)
        if isinstance(question_or_relation, Question)
        else _relation_exprs(question_or_relation)
    ):
        if reason := _unsupported_expr(expr, dialect):
            return reason
    if isinstance(question_or_relation, Question) and isinstance(question_or_relation.groups, PublicGroups):
        longest_domain = max(map(len, question_or_relation.groups.domains), default=0)
        if dialect.max_listed is not None and longest_domain > dialect.max_listed:
            return (
                f"GROUP BY: a column has {longest_domain:,} listed keys, but this engine supports at most "
                f"{dialect.max_listed:,}. Group more coarsely, or use partition selection."
            )
    return ""


def _unsupported_expr(expr: Expr, dialect: Dialect) -> str:
    if not isinstance(expr, Call):
        return ""
    return dialect.unsupported_reason(expr) or next(
        (reason for arg in expr.args if (reason := _unsupported_expr(arg, dialect))), ""
    )


def _question_exprs(question: Question) -> Iterator[Expr]:
    yield from _relation_exprs(question.relation)
    yield from (expr for _, expr in question.by)
    yield from (total.expr for total in question.totals if total.expr is not None)


def _relation_exprs(relation: Relation) -> Iterator[Expr]:
    match relation:
        case Scan():
            yield from _unit_exprs(relation)
        case Where(source, condition):
            yield condition
            yield from _relation_exprs(source)
        case Derive(source, columns):
            yield from (expr for _, expr in columns)
            yield from _relation_exprs(source)
        case JoinPublic(source, table, _, also):
            yield from (expr for expr in (also, table.condition) if expr is not None)
            yield from _relation_exprs(source)
        case JoinOnUnit(left, right, also):
            yield from (expr for expr in (also,) if expr is not None)
            yield from (*_relation_exprs(left), *_relation_exprs(right))
        case SemiJoinOnUnit(left, right) | Union(left, right):
            yield from (*_relation_exprs(left), *_relation_exprs(right))
        case PerUnit(source, keys, values):
            yield from (expr for _, expr in keys)
            yield from (aggregate.expr for _, aggregate in values if aggregate.expr is not None)
            yield from _relation_exprs(source)


def _unit_exprs(scan: Scan) -> Iterator[Expr]:
    match scan.owner:
        case UnitKey(unit):
            yield from unit
        case ParentUnit(_, parent, _):
            yield from _unit_exprs(parent)
