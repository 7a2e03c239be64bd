"""Refuse what an engine cannot compute like the reference, or at all, before anything is charged."""

from collections.abc import Iterator

from discreet.engines.size_limit import parts_of
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Call, Column, Constant, Expr
from discreet.kernel.question import PublicGroups, Question
from discreet.kernel.relation import Relation
from discreet.kernel.sqlgen.dialect import Dialect


def check_supported(question_or_relation: Question | Relation, dialect: Dialect) -> None:
    """Refuse what the engine cannot compute, or would compute differently from the reference."""
    if reason := unsupported_reason(question_or_relation, dialect):
        raise Refused(reason)


def unsupported_reason(question_or_relation: Question | Relation, dialect: Dialect) -> str:
    """Return the reason why an engine does not support a question or relation, or "" if it does."""
    try:
        dialect.check_size(question_or_relation, dialect)  # also bounds the work below, and checks patterns
    except ValueError as error:
        return str(error)
    for call in _calls_of(question_or_relation):
        if reason := dialect.unsupported_reason(call):
            return reason
    if isinstance(question_or_relation, Question) and isinstance(question_or_relation.groups, PublicGroups):
        longest_domain = max(map(len, question_or_relation.groups.domains), default=0)
        if dialect.max_listed is not None and longest_domain > dialect.max_listed:
            return (
                f"GROUP BY: a column has {longest_domain:,} listed keys, but this engine supports at most "
                f"{dialect.max_listed:,}. Group more coarsely, or use partition selection."
            )
    return ""


def _calls_of(node: Question | Relation | Expr) -> Iterator[Call]:
    if isinstance(node, Call):
        yield node
    for part in node.args if isinstance(node, Call) else parts_of(node):
        if not isinstance(part, Column | Constant):
            yield from _calls_of(part)
