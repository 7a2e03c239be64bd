"""Column pruning: drop the columns that a question does not need."""

from collections.abc import Iterable
from dataclasses import replace

from discreet.engines.column_usage import column_names
from discreet.kernel.expr import Column, Expr
from discreet.kernel.question import Question
from discreet.kernel.relation import (
    Derive,
    JoinOnUnit,
    JoinPublic,
    NumberRows,
    PerUnit,
    PublicTable,
    Relation,
    Scan,
    SemiJoinOnUnit,
    Union,
    Where,
)


def prune_columns(question: Question) -> Question:
    """Return the same question over the columns that it needs."""
    exprs = [expr for _, expr in question.by] + [total.expr for total in question.totals]
    relation = _prune_relation(question.relation, column_names(*exprs))
    return Question(relation, question.by, question.groups, question.bounds, question.totals)


def _prune_relation(relation: Relation, needed: set[str], wide: bool = True) -> Relation:
    """Drop columns that are not needed; if it may stay `wide`, no node is added only to drop columns."""
    match relation:
        case Where(source, condition):
            return Where(_prune_relation(source, needed | column_names(condition), wide), condition)
        case Derive():
            return _prune_derive(relation, needed, wide)
        case PerUnit(source, keys, values):
            folded = [value for value in values if value[0] in needed]
            reads = column_names(*(expr for _, expr in keys), *(each.expr for _, each in folded))
            return PerUnit(_prune_relation(source, reads), keys, tuple(folded))
        case NumberRows(source):  # its order names all columns
            return replace(relation, source=_exact_columns(source, source.shape.schema))
        case Scan():
            return relation
    return _prune_join(relation, needed, wide)


def _prune_join(relation: JoinPublic | JoinOnUnit | SemiJoinOnUnit | Union, needed: set[str], wide: bool) -> Relation:
    match relation:
        case JoinPublic(source, table, equal, also, keep, fanout):
            needed = needed | column_names(also)
            ours = _prune_relation(source, needed | {name for name, _ in equal}, wide=False)
            theirs = _prune_public(table, needed | {name for _, name in equal})
            return JoinPublic(ours, theirs, equal, also, keep, fanout)
        case JoinOnUnit(left, right, also, keep, most):
            needed = needed | column_names(also)
            return JoinOnUnit(_exact_columns(left, needed), _exact_columns(right, needed), also, keep, most)
        case SemiJoinOnUnit(source, other, has):
            return SemiJoinOnUnit(_prune_relation(source, needed, wide), _prune_relation(other, set()), has)
        case Union(left, right):
            return Union(_exact_columns(left, needed), _exact_columns(right, needed))


def _prune_derive(relation: Derive, needed: set[str], wide: bool) -> Relation:
    source, columns = relation.source, _needed_columns(relation.columns, needed)
    if wide and all(isinstance(expr, Column) and expr.name == name for name, expr in columns):
        return _prune_relation(source, {name for name, _ in columns})
    if isinstance(source, Derive) and all(isinstance(expr, Column) for _, expr in columns):
        computed = dict(source.columns)  # merge the projection into the Derive below it
        merged = tuple((name, computed[expr.name]) for name, expr in columns if isinstance(expr, Column))
        return _prune_derive(Derive(source.source, merged), needed, wide)
    return Derive(_prune_relation(source, column_names(*(expr for _, expr in columns))), tuple(columns))


def _exact_columns(relation: Relation, needed: Iterable[str]) -> Relation:
    """Return a relation with exactly the needed columns, or its first column if none is needed."""
    wanted = set(needed)
    pruned = _prune_relation(relation, wanted, wide=False)
    schema = pruned.shape.schema
    columns = _needed_columns(tuple((name, Column(name, kind)) for name, kind in schema.items()), wanted)
    return pruned if len(columns) == len(schema) else Derive(pruned, tuple(columns))


def _needed_columns(columns: tuple[tuple[str, Expr], ...], needed: set[str]) -> list[tuple[str, Expr]]:
    return [column for column in columns if column[0] in needed] or list(columns[:1])


def _prune_public(table: PublicTable, needed: set[str]) -> PublicTable:
    wanted = needed | column_names(table.condition)
    columns = tuple(column for column in table.columns if column[0] in wanted)
    return PublicTable(table.table, columns or table.columns[:1], table.condition)
