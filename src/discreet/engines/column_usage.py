"""Find the columns that a query reads, which must be available before it is charged."""

from collections.abc import Iterable, Mapping

from discreet.kernel.expr import Call, Column, Expr, Type
from discreet.kernel.question import Question
from discreet.kernel.relation import (
    Derive,
    JoinOnUnit,
    JoinPublic,
    NumberRows,
    ParentUnit,
    PerUnit,
    PublicTable,
    Relation,
    Scan,
    SemiJoinOnUnit,
    Union,
    UnitKey,
    Where,
)

ColumnUsage = Mapping[str, frozenset[str]]  # column names by table name, both as in the policy


def usage_of_questions(questions: Iterable[Question]) -> ColumnUsage:
    """Return the columns that questions read, including those of their privacy units.

    >>> from discreet.kernel.expr import Column, Type
    >>> from discreet.kernel.question import ContributionBounds, PublicGroups
    >>> from discreet.kernel.totals import Count
    >>> user, age = Column("user", Type.INTEGER), Column("age", Type.INTEGER)
    >>> visits = Scan("visits", (user, age), UnitKey((user,)), max_rows=10**9)
    >>> bounds = ContributionBounds(groups=1, rows=20)
    >>> usage_of_questions([Question(visits, (), PublicGroups(()), bounds, (Count(),))])
    {'visits': frozenset({'user'})}
    """
    columns_by_table: dict[str, set[str]] = {}
    for question in questions:
        exprs = [expr for _, expr in question.by] + [total.expr for total in question.totals]
        _collect(question.relation, column_names(*exprs), columns_by_table)
    return {table: frozenset(columns) for table, columns in columns_by_table.items()}


def usage_of_relation(relation: Relation, columns: Iterable[str]) -> ColumnUsage:
    """Return the source columns that the given columns of a relation depend on."""
    columns_by_table: dict[str, set[str]] = {}
    _collect(relation, set(columns), columns_by_table)
    return {table: frozenset(names) for table, names in columns_by_table.items()}


def columns_of(expr: Expr) -> dict[str, Type]:
    """Return the columns that an expression reads."""
    if isinstance(expr, Column):
        return {expr.name: expr.type}
    columns: dict[str, Type] = {}
    for arg in expr.args if isinstance(expr, Call) else ():
        columns |= columns_of(arg)
    return columns


def column_names(*exprs: Expr | None) -> set[str]:
    """Return the names of the columns of some expressions."""
    return {name for expr in exprs if expr is not None for name in columns_of(expr)}


def _collect(  # noqa: C901 - one case per node
    relation: Relation, needed: set[str], columns_by_table: dict[str, set[str]]
) -> None:
    """Add the columns that a relation reads to produce its `needed` columns."""
    match relation:
        case Scan():
            columns_by_table.setdefault(relation.table, set()).update(needed & relation.shape.schema.keys())
            _collect_unit_columns(relation, columns_by_table)
        case Where(source, condition):
            _collect(source, needed | column_names(condition), columns_by_table)
        case Derive(source, columns):
            _collect(source, column_names(*(expr for name, expr in columns if name in needed)), columns_by_table)
        case PerUnit(source, keys, values):
            aggregated = (aggregate.expr for name, aggregate in values if name in needed)
            _collect(source, column_names(*(expr for _, expr in keys), *aggregated), columns_by_table)
        case NumberRows(source):  # ordered by all columns
            _collect(source, set(source.shape.schema), columns_by_table)
        case JoinPublic(source, table, equal, also):
            _collect(source, needed | column_names(also) | {ours for ours, _ in equal}, columns_by_table)
            _collect_public(table, columns_by_table)
        case JoinOnUnit(left, right, also, _, most):
            for side in (left, right):
                # Truncation orders rows by all columns.
                truncated = side.shape.max_rows_per_unit is None or side.shape.max_rows_per_unit > most
                _collect(side, set(side.shape.schema) if truncated else needed | column_names(also), columns_by_table)
        case SemiJoinOnUnit(source, other):
            _collect(source, needed, columns_by_table)
            _collect(other, set(), columns_by_table)
        case Union(left, right):
            _collect(left, needed, columns_by_table)
            _collect(right, needed, columns_by_table)


def _collect_unit_columns(scan: Scan, columns_by_table: dict[str, set[str]]) -> None:
    match scan.owner:
        case UnitKey(unit):
            columns_by_table[scan.table] |= column_names(*unit)
        case ParentUnit(on, parent, key):
            columns_by_table[scan.table].add(on)
            columns_by_table.setdefault(parent.table, set()).add(key)
            _collect_unit_columns(parent, columns_by_table)


def _collect_public(table: PublicTable, columns_by_table: dict[str, set[str]]) -> None:
    """Add all columns of a public table, because a join orders its rows by all of them."""
    columns_by_table.setdefault(table.table, set()).update(column.name for _, column in table.columns)
