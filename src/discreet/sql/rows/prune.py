"""Leaves out the columns that a question does not need, so that the engine carries and sorts no others."""

from collections.abc import Iterable

from discreet.kernel.expr import Column, Expr, columns_of
from discreet.kernel.question import Question
from discreet.kernel.relation import (
    Derive,
    JoinOwn,
    JoinPublic,
    PerUnit,
    PublicTable,
    Relation,
    Scan,
    SemiOwn,
    Union,
    Where,
)


def pruned(question: Question) -> Question:
    """Return the same question about as few columns as it needs."""
    exprs = [expr for _, expr in question.by] + [total.expr for total in question.totals]
    relation = _prune(question.relation, _read(*exprs))
    return Question(relation, question.by, question.groups, question.limit, question.totals)


def _read(*exprs: Expr | None) -> set[str]:
    return {name for expr in exprs if expr is not None for name in columns_of(expr)}


def _prune(relation: Relation, needed: set[str], wide: bool = True) -> Relation:
    """Leave out columns that are not needed; where it may stay `wide`, nothing is done only to leave some out."""
    match relation:
        case Where(source, condition):
            return Where(_prune(source, needed | _read(condition), wide), condition)
        case Derive():
            return _derive(relation, needed, wide)
        case PerUnit(source, keys, values):
            folded = [each for each in values if each[0] in needed]
            reads = _read(*(expr for _, expr in keys), *(each.expr for _, each in folded))
            return PerUnit(_prune(source, reads), keys, tuple(folded))
        case Scan():
            return relation
    return _joined(relation, needed, wide)


def _joined(relation: JoinPublic | JoinOwn | SemiOwn | Union, needed: set[str], wide: bool) -> Relation:
    match relation:
        case JoinPublic(source, table, equal, also, keep, fanout):
            needed = needed | _read(also)
            ours = _prune(source, needed | {name for name, _ in equal}, wide=False)
            theirs = _public(table, needed | {name for _, name in equal})
            return JoinPublic(ours, theirs, equal, also, keep, fanout)
        case JoinOwn(left, right, also, keep, most):
            needed = needed | _read(also)
            return JoinOwn(_narrow(left, needed), _narrow(right, needed), also, keep, most)
        case SemiOwn(source, other, has):
            return SemiOwn(_prune(source, needed, wide), _prune(other, set()), has)
        case Union(left, right):
            return Union(_narrow(left, needed), _narrow(right, needed))


def _derive(relation: Derive, needed: set[str], wide: bool) -> Relation:
    source, kept = relation.source, _kept(relation.columns, needed)
    if wide and all(isinstance(expr, Column) and expr.name == name for name, expr in kept):
        return _prune(source, {name for name, _ in kept})
    if isinstance(source, Derive) and all(isinstance(expr, Column) for _, expr in kept):
        made = dict(source.columns)  # a choice of computed columns computes them itself
        again = tuple((name, made[expr.name]) for name, expr in kept if isinstance(expr, Column))
        return _derive(Derive(source.source, again), needed, wide)
    return Derive(_prune(source, _read(*(expr for _, expr in kept))), tuple(kept))


def _narrow(relation: Relation, needed: Iterable[str]) -> Relation:
    """Return a relation with exactly the needed columns; if none are, with its first."""
    wanted = set(needed)
    found = _prune(relation, wanted, wide=False)
    schema = found.shape.schema
    kept = _kept(tuple((name, Column(name, kind)) for name, kind in schema.items()), wanted)
    return found if len(kept) == len(schema) else Derive(found, tuple(kept))


def _kept(columns: tuple[tuple[str, Expr], ...], needed: set[str]) -> list[tuple[str, Expr]]:
    return [each for each in columns if each[0] in needed] or list(columns[:1])


def _public(table: PublicTable, needed: set[str]) -> PublicTable:
    wanted = needed | _read(table.condition)
    kept = tuple(each for each in table.columns if each[0] in wanted)
    return PublicTable(table.table, kept or table.columns[:1], table.condition)
