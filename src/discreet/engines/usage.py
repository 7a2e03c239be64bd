"""Which columns of which tables a question depends on: what has to be there before it is charged."""

from collections.abc import Iterable, Mapping

from discreet.kernel.expr import Expr, columns_of
from discreet.kernel.question import Question
from discreet.kernel.relation import (
    Derive,
    JoinOwn,
    JoinPublic,
    Own,
    PerUnit,
    PublicTable,
    Relation,
    Scan,
    SemiOwn,
    Through,
    Union,
    Where,
)

Usage = Mapping[str, frozenset[str]]  # columns by table, under the names of the policy


def usage_of(questions: Iterable[Question]) -> Usage:
    """Return the columns that questions read, those of their privacy units included.

    >>> from discreet.kernel.expr import Column, Type
    >>> from discreet.kernel.question import Count, Limit, Public
    >>> user, age = Column("user", Type.INTEGER), Column("age", Type.INTEGER)
    >>> visits = Scan("visits", (user, age), Own((user,)), most=10**9)
    >>> usage_of([Question(visits, (), Public(()), Limit(groups=1, rows=20), (Count(),))])
    {'visits': frozenset({'user'})}
    """
    found: dict[str, set[str]] = {}
    for question in questions:
        exprs = [expr for _, expr in question.by] + [total.expr for total in question.totals]
        _collect(question.relation, _names(*exprs), found)
    return {table: frozenset(columns) for table, columns in found.items()}


def usage_of_rows(relation: Relation, columns: Iterable[str]) -> Usage:
    """Return the columns that some columns of a relation depend on."""
    found: dict[str, set[str]] = {}
    _collect(relation, set(columns), found)
    return {table: frozenset(names) for table, names in found.items()}


def _names(*exprs: Expr | None) -> set[str]:
    return {name for expr in exprs if expr is not None for name in columns_of(expr)}


def _collect(relation: Relation, needed: set[str], found: dict[str, set[str]]) -> None:
    """Add what a relation reads if only the `needed` ones of its columns matter."""
    match relation:
        case Scan():
            found.setdefault(relation.table, set()).update(needed & relation.shape.schema.keys())
            _collect_owner(relation, found)
        case Where(source, condition):
            _collect(source, needed | _names(condition), found)
        case Derive(source, columns):
            _collect(source, _names(*(expr for name, expr in columns if name in needed)), found)
        case PerUnit(source, keys, values):
            folded = (each.expr for name, each in values if name in needed)
            _collect(source, _names(*(expr for _, expr in keys), *folded), found)
        case JoinPublic(source, table, equal, also):
            _collect(source, needed | _names(also) | {ours for ours, _ in equal}, found)
            _collect_public(table, found)
        case JoinOwn(left, right, also, _, most):
            for side in (left, right):
                cut = side.shape.copies is None or side.shape.copies > most  # all columns decide which rows are kept
                _collect(side, set(side.shape.schema) if cut else needed | _names(also), found)
        case SemiOwn(source, other):
            _collect(source, needed, found)
            _collect(other, set(), found)
        case Union(left, right):
            _collect(left, needed, found)
            _collect(right, needed, found)


def _collect_owner(scan: Scan, found: dict[str, set[str]]) -> None:
    match scan.owner:
        case Own(unit):
            found[scan.table] |= _names(*unit)
        case Through(on, parent, key):
            found[scan.table].add(on)
            found.setdefault(parent.table, set()).add(key)
            _collect_owner(parent, found)


def _collect_public(table: PublicTable, found: dict[str, set[str]]) -> None:
    """Add all columns of a public table: their order decides which rows a join keeps."""
    found.setdefault(table.table, set()).update(column.name for _, column in table.columns)
