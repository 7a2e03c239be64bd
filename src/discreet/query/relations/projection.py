"""A SELECT without aggregates, over private rows or one public table."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from discreet.kernel.expr import Column, Expr
from discreet.kernel.relation import Derive, PublicTable
from discreet.query.aggregation.group_keys import has_null_group, key_domain
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.relations.bound_sources import (
    ColumnInfo,
    PrivateSource,
    PublicSource,
    View,
    bind_value,
    find_column,
    stored_lookup,
    unused_name,
)
from discreet.query.relations.ownership import (
    is_constant_per_unit,
    is_unique,
    never_null,
    parent_keys_of,
    stays_in_range,
    unit_key_index,
)
from discreet.query.relations.predicates import bind_condition, conjunction, conjuncts, narrow_ranges
from discreet.query.syntax.resolved_query import ResolvedQuery, ResolvedSelect, SelectItem
from discreet.query.syntax.source_position import build_or_refuse, refuse
from discreet.query.syntax.syntax_tree import WINDOW_HINT, check_row_wise, first_aggregate

_REFUSED_CLAUSES = {
    "order": ("ORDER BY", "private rows cannot be ordered", "Put ORDER BY after the aggregate."),
    "limit": (
        "LIMIT",
        "LIMIT is not allowed on private rows",
        "Put it after the aggregate, or filter with WHERE.",
    ),
    "offset": ("OFFSET", "OFFSET is not allowed on private rows", "Put it after the aggregate."),
    "qualify": ("QUALIFY", "window functions are not allowed on private rows", WINDOW_HINT),
    "windows": ("WINDOW", "window functions are not allowed on private rows", WINDOW_HINT),
}


def check_row_clauses(query: ResolvedQuery, allowed: Sequence[str] = ()) -> None:
    """Refuse clauses that select or order private rows, except those that are allowed."""
    for name, (clause, cause, hint) in _REFUSED_CLAUSES.items():
        if (given := query.node.args.get(name)) and name not in allowed:
            raise refuse(given[0] if isinstance(given, list) else given, clause, cause, hint)


def project(items: Sequence[SelectItem], rows: PrivateSource) -> PrivateSource:
    """Return the rows with the columns of a SELECT list."""
    bounds = [_bind_item(output, rows) for output in items]
    columns = [(output.name, bound) for output, bound in zip(items, bounds, strict=True)]
    return derive_columns(columns, rows, items[0].node)


def derive_columns(columns: Sequence[tuple[str, BoundExpr]], rows: PrivateSource, node: exp.Expr) -> PrivateSource:
    """Return the rows with these columns; a Derive node is added only if some are computed."""
    infos = rows.columns_by_name()
    if all(isinstance(bound.expr, Column) for _, bound in columns):
        view = tuple(
            replace(infos[bound.expr.name], name=name) for name, bound in columns if isinstance(bound.expr, Column)
        )
        return PrivateSource(rows.relation, (View(None, None, view),))
    names: list[str] = []
    for name, _ in columns:
        names.append(unused_name(name, names))
    named: list[tuple[str, Expr]] = [
        (inner_name, bound.expr) for inner_name, (_, bound) in zip(names, columns, strict=True)
    ]
    view = tuple(
        _derived_info(name, inside, bound, infos) for inside, (name, bound) in zip(names, columns, strict=True)
    )
    relation = build_or_refuse(lambda: Derive(rows.relation, tuple(named)), node, "SELECT")
    return PrivateSource(relation, (View(None, None, view),))


def _bind_item(output: SelectItem, rows: PrivateSource) -> BoundExpr:
    check_row_wise(output.node, "SELECT")
    return bind_value(output.node, stored_lookup(rows.views, "SELECT"), "SELECT")


def _derived_info(name: str, inner_name: str, bound: BoundExpr, columns: dict[str, ColumnInfo]) -> ColumnInfo:
    if isinstance(bound.expr, Column):
        return replace(columns[bound.expr.name], name=name).with_column_name(inner_name)
    return computed_info(name, inner_name, bound, columns)


def computed_info(name: str, inner_name: str, bound: BoundExpr, columns: dict[str, ColumnInfo]) -> ColumnInfo:
    """Return a column of the relation that holds an expression, with what follows from the expression's columns."""
    expr = bound.expr
    column_bound = replace(
        bound, expr=Column(inner_name, bound.type), domain=None, unit_key_index=unit_key_index(expr, columns)
    )
    return ColumnInfo(
        name,
        column_bound,
        values=lambda: key_domain(expr, columns),
        null_is_group=has_null_group(expr, columns),
        parent_keys=parent_keys_of(expr, columns),
        never_null=never_null(expr, columns),
        in_range=stays_in_range(expr, columns),
        constant_per_unit=is_constant_per_unit(expr, columns),
        unique=is_unique(expr, columns),
    )


_PUBLIC_CLAUSES = ("expressions", "from_", "where", "with_")


def select_public(select: ResolvedSelect, public: PublicSource) -> PublicSource:
    """Bind a SELECT without aggregates over a public table."""
    surplus = [name for name, given in select.node.args.items() if given and name not in _PUBLIC_CLAUSES]
    if surplus or any(first_aggregate(item.node) is not None for item in select.items):
        cause = "this query reads only public tables, where only columns and WHERE are supported"
        raise refuse(
            select.node,
            "SELECT",
            cause,
            "Query it alone, which is free, or join it with a private table.",
        )
    columns = []
    for each in select.items:
        bare = each.node.unnest()
        if not isinstance(bare, exp.Column):
            hint = "Compute it in the outer query, where the tables are joined."
            raise refuse(each.node, "SELECT", "a subquery on a public table can only select columns", hint)
        columns.append(replace(find_column((public.view,), bare, "SELECT"), name=each.name))
    conditions = conjuncts(select.where)
    predicate = conjunction([bind_condition(node, (public.view,), "WHERE") for node in conditions])
    earlier = public.table.condition
    predicate = conjunction([each for each in (earlier, predicate) if each is not None])
    table = PublicTable(public.table.table, public.table.columns, predicate)
    view = View(None, None, tuple(columns))
    return PublicSource(table, view if predicate is None else narrow_ranges((view,), predicate)[0])
