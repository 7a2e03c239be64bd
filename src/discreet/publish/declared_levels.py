"""Hierarchies that a policy declares: each value of a column belongs to one value of another, as towns to regions."""

from collections.abc import Callable, Iterator, Mapping

from discreet.curator.curator import Curator
from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Column, Expr, Value
from discreet.kernel.relation import Derive, JoinPublic, NumberRows, Relation, Scan, SemiJoinOnUnit, Where
from discreet.kernel.sqlgen.dialect import quote_name
from discreet.policy.column_domains import DeclaredColumn, Keys, References
from discreet.policy.problems import shorten

DeclaredParents = Callable[[Expr, Expr], Mapping[Value, Value] | None]
"""For two expressions on the same rows: the value of the second for each value of the first; None if not declared."""


def declared_parents(curator: Curator, relation: Relation) -> DeclaredParents:
    """Return what the policy declares of the rows of a relation; nothing is read of private tables."""

    def parents(fine: Expr, coarse: Expr) -> Mapping[Value, Value] | None:
        own, other = _stored_column(relation, fine), _stored_column(relation, coarse)
        if own is None or other is None or own[0] != other[0]:
            return None
        column = curator.policy.tables[own[0]].columns.get(own[1])
        if column is None or column.within is None or column.within != other[1]:
            return None
        return _parents_of(curator, column, column.within)

    return parents


def _stored_column(relation: Relation, expr: Expr) -> tuple[str, str] | None:
    """Return the private table and the column whose stored values an expression has; None for any other."""
    if not isinstance(expr, Column):
        return None
    match relation:
        case Scan():
            return relation.table, expr.name
        case Derive():
            return _stored_column(relation.source, dict(relation.columns)[expr.name])
        case Where() | SemiJoinOnUnit() | NumberRows() | JoinPublic() if expr.name in relation.source.shape.schema:
            return _stored_column(relation.source, expr)
    return None


def _parents_of(curator: Curator, column: DeclaredColumn, coarser: str) -> dict[Value, Value]:
    """Return the value of a coarser column that each value of a column belongs to."""
    parent_of: dict[Value, Value] = {}
    for value, parent in _pairs(curator, column, coarser):
        if parent_of.setdefault(value, parent) != parent:
            message = f"column {column.name} is within {coarser}, but {shorten(str(value))} belongs to two values of it"
            raise PolicyError(f"within: {message} in the public table. Correct the table, or remove within.")
    return parent_of


def _pairs(curator: Curator, column: DeclaredColumn, coarser: str) -> Iterator[tuple[Value, Value]]:
    if isinstance(column.domain, Keys):
        yield from zip(column.domain.values, column.domain.within, strict=True)
    elif isinstance(column.domain, References):
        names = [quote_name(name) for name in (column.domain.column, coarser)]
        source = quote_name(column.domain.table)
        table = curator.ask(f"SELECT DISTINCT {', '.join(names)} FROM {source}").to_arrow()  # noqa: S608 - declared names
        yield from zip(*(each.to_pylist() for each in table.columns), strict=True)
