# ruff: noqa: S608 - this module generates SQL from its own templates
"""Translate a resolved query over released tables to DuckDB, with generated names and tracked row numbers.

A SELECT without grouping keeps the row numbers of its sources in hidden columns, so that margins can be assigned after
WHERE, ORDER BY and LIMIT, and ties are ordered deterministically.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from discreet.postprocess.allow_list import RULES
from discreet.postprocess.clauses import order_terms, order_values, row_limits, sort_direction, window_expr
from discreet.postprocess.environment import Env
from discreet.postprocess.from_tables import PlannedFrom, PlannedRelation, Rows, TablesByKey, plan_from, rows_where
from discreet.postprocess.group_by import RowGroups
from discreet.postprocess.sql_expression import (
    ConstantOrigin,
    MixedOrigin,
    Origin,
    SqlExpr,
    SqlType,
    columns_read,
    mixed_expr,
    untracked_origin,
)
from discreet.postprocess.type_conversion import coerce_together, null_unless_finite
from discreet.query.syntax.resolved_query import (
    ResolvedQuery,
    ResolvedSelect,
    ResolvedSetOperation,
    WithQuery,
    inner_queries,
    reference_of,
)
from discreet.query.syntax.syntax_tree import NestedQuery, first_aggregate, first_window, refuse

_MAX_TABLES = 100


@dataclass(frozen=True)
class QueryContext:
    """The tables and queries that a query can name, and the enclosing expression.

    With `draws`, the tables have the rows of several draws of the noise, and the query is computed for each draw.
    """

    tables: TablesByKey
    outer: Env | None = None
    outermost: bool = False
    draws: bool = False


class NotRepeatable(Exception):  # noqa: N818 - an outcome
    """The query cannot be computed for several draws at once."""


def check_table_count(query: ResolvedQuery) -> None:
    """Refuse a query that reads too many tables; DuckDB may inline WITH wherever it is used."""
    if _tables_read(query, {}) > _MAX_TABLES:
        cause = f"the query reads more than {_MAX_TABLES} tables, counting each use of a WITH query"
        raise refuse(query.node, "FROM", cause, "Use fewer tables")


def _tables_read(query: ResolvedQuery, counts: Mapping[str, int]) -> int:
    for each in query.with_queries:
        counts = {**counts, each.ref: max(1, _tables_read(each.query, counts))}
    own = query.sources if isinstance(query, ResolvedSelect) else ()
    read = sum(counts.get(item.source.ref, 1) if isinstance(item.source, WithQuery) else 1 for item in own)
    return read + sum(_tables_read(each, counts) for each in inner_queries(replace(query, with_queries=())))


def plan_query(query: ResolvedQuery, context: QueryContext) -> PlannedRelation:
    """Plan a SELECT or a set operation."""
    texts, tables = [], dict(context.tables)
    for each in query.with_queries:
        tables[each.ref] = plan_query(each.query, QueryContext(tables, draws=context.draws))
        texts.append(f"{each.ref} AS MATERIALIZED ({tables[each.ref].sql})")
    context = replace(context, tables=tables)
    relation = (
        _plan_select(query, context) if isinstance(query, ResolvedSelect) else _plan_set_operation(query, context)
    )
    return replace(relation, sql=f"WITH {', '.join(texts)} {relation.sql}") if texts else relation


def _environment(begin: PlannedFrom, context: QueryContext) -> Env:
    def column(node: exp.Column, _: Env) -> SqlExpr:
        own = begin.column(reference_of(node))
        if own is not None:
            return own
        assert context.outer is not None  # names are resolved, so it belongs to a query around this one
        outer_expr = context.outer.translate(node)
        return replace(outer_expr, origin=_without_row(outer_expr.origin))

    return Env("SELECT", RULES, column, partial(_plan_subquery, tables=context.tables), draw=begin.draw)


def _plan_subquery(node: exp.Expr, env: Env, tables: TablesByKey) -> SqlExpr:
    """Plan a subquery in an expression: EXISTS (…), IN (…), or a scalar."""
    context = QueryContext(tables, env, draws=env.draw is not None)
    nested = node.args["query"] if isinstance(node, exp.In) else node.this if isinstance(node, exp.Exists) else node
    assert isinstance(nested, NestedQuery)
    planned, ref = plan_query(nested.query, context), f"{nested.query.ref}q"
    begin = f"FROM ({planned.sql}) AS {ref}" + (f" WHERE {ref}.d = {env.draw}" if env.draw else "")
    if isinstance(node, exp.Exists):
        return SqlExpr(
            f"EXISTS (SELECT 1 {begin})", SqlType.BOOLEAN, MixedOrigin(planned.selected_by, depends_on_rows=True)
        )
    if len(planned.fields) != 1:
        raise env.refuse(node, f"the subquery must return one column, not {len(planned.fields)}", "Select one")
    (field,) = planned.fields
    origin = untracked_origin([field.origin])
    column = replace(field, sql=f"{ref}.c0", origin=replace(origin, reads=origin.reads | planned.selected_by))
    if isinstance(node, exp.In):
        (one, other), _ = coerce_together([env.translate(node.this), column], node, env.clause)
        return mixed_expr(f"({one.sql} IN (SELECT {other.sql} {begin}))", SqlType.BOOLEAN, one, other)
    if not planned.is_single_row:
        cause = "the subquery may return more than one row"
        raise env.refuse(node, cause, "Aggregate it without GROUP BY, or add LIMIT 1")
    return mixed_expr(f"(SELECT {column.sql} {begin})", column.kind, column, width=column.width)


def _plan_select(select: ResolvedSelect, context: QueryContext) -> PlannedRelation:
    inner = partial(plan_query, context=QueryContext(context.tables, draws=context.draws))
    begin = plan_from(select, context.tables, inner, partial(_environment, context=context), draws=context.draws)
    plan_rows, env = _plan_rows(select, begin, _environment(begin, context))
    env = replace(env, window=window_expr)
    values = [null_unless_finite(env.translate(item.node)) for item in select.items]
    order_exprs = order_values(select.order, values, env, distinct=select.distinct)
    last = _conditions(select.qualify, "QUALIFY", env)
    written = [select.qualify, *(item.node for item in select.items)]
    if select.qualify is not None and not any(node is not None and first_window(node) for node in written):
        raise refuse(select.qualify, "QUALIFY", "QUALIFY needs a window function", "Use HAVING.")
    rows = plan_rows()
    order = order_terms(select.order, order_exprs) or rows.order
    hidden = [] if select.distinct else rows.row_numbers
    columns = [f"{value.sql} AS c{index}" for index, value in enumerate(values)]
    identity = _as_texts([value.sql for value in values]) if select.distinct else rows.identity
    columns += [f"{sql} AS h{place}" for place, sql in enumerate(hidden)]
    columns += [f"{sql} AS i{place}" for place, sql in enumerate(identity)]
    columns += [f"{rows.draw} AS d"] if rows.draw else []
    word = "SELECT DISTINCT" if select.distinct else "SELECT"
    sql = f"{word} {', '.join(columns)}{rows.sql}" + "".join(f" QUALIFY {condition.sql}" for condition in last)
    origins = [_without_row(value.origin) if select.distinct else value.origin for value in values]
    fields = tuple(
        SqlExpr(f"c{place}", value.kind, origin, value.width)
        for place, (value, origin) in enumerate(zip(values, origins, strict=True))
    )
    slots = () if select.distinct else rows.slots
    selected_by = rows.selected_by | columns_read(condition.origin for condition in last)
    if select.limit is not None:
        selected_by |= columns_read(value.origin for value in order_exprs)
    relation = PlannedRelation(
        sql,
        fields,
        slots,
        is_single_row=rows.is_single_row,
        selected_by=selected_by,
        identity=len(identity),
        keeps_rows=rows.keeps_rows and not (select.distinct or last or order or row_limits(select)),
    )
    return _order_and_limit(relation, select, order, hidden, context)


def _as_texts(sqls: Sequence[str]) -> list[str]:
    """Return values as texts, to identify a row by them."""
    return [f"CAST({sql} AS VARCHAR)" for sql in sqls]


def _plan_rows(select: ResolvedSelect, begin: PlannedFrom, env: Env) -> tuple[Callable[[], Rows], Env]:
    """Return the environment of clauses over rows or groups, and what plans these once the clauses are translated."""
    rows = rows_where(begin, _conditions(select.where, select.where_clause, env))
    has_aggregate = any(first_aggregate(node) is not None for node in select.grouped_expressions)
    if select.group is None and select.having is None and not has_aggregate:
        return lambda: rows, env
    keys: tuple[SqlExpr, ...] = ()
    if select.group is not None:
        if select.group.has_sets:
            cause = "ROLLUP, CUBE and GROUPING SETS are not supported on aggregated results"
            hint = "Write one SELECT per grouping set, and combine them"
            raise refuse(select.group.node, "GROUP BY", cause, hint)
        keys = tuple(map(replace(env, clause="GROUP BY").translate, select.group.sets[0]))
    groups = RowGroups(f"{select.ref}g", keys, begin, rows, env)
    return partial(groups.groups_where, _conditions(select.having, "HAVING", groups.env)), groups.env


def _plan_set_operation(query: ResolvedSetOperation, context: QueryContext) -> PlannedRelation:
    """Plan UNION, INTERSECT and EXCEPT."""
    sides = [plan_query(each, replace(context, outermost=False)) for each in (query.left, query.right)]
    refs = [f"{query.ref}a", f"{query.ref}b"]
    columns, fields = [], []
    for index, pair in enumerate(zip(*(side.fields for side in sides), strict=True)):
        operands = [
            replace(each, sql=f"{ref}.c{index}", origin=_without_row(each.origin))
            for ref, each in zip(refs, pair, strict=True)
        ]
        values, kind = coerce_together(operands, query.node, "SELECT")
        columns.append(values)
        origin = untracked_origin(each.origin for each in pair)
        fields.append(SqlExpr(f"c{index}", kind, origin, max(each.width for each in pair)))
    is_union_all = isinstance(query.node, exp.Union) and not query.node.args.get("distinct")
    identities = _union_identities(sides, refs) if is_union_all else ([], [])
    texts = []
    for side, ref in enumerate(refs):
        selected = [f"{values[side].sql} AS c{place}" for place, values in enumerate(columns)]
        selected += [f"{sql} AS i{place}" for place, sql in enumerate(identities[side])]
        selected += [f"{ref}.d AS d"] if context.draws else []
        texts.append(f"SELECT {', '.join(selected)} FROM ({sides[side].sql}) AS {ref}")
    word = f"{query.node.key.upper()}{'' if query.node.args.get('distinct') else ' ALL'}"
    own = [] if is_union_all else _as_texts([f"{query.ref}.c{place}" for place in range(len(fields))])
    listed = ", ".join(["*", *(f"{sql} AS i{place}" for place, sql in enumerate(own))])
    selected_by = sides[0].selected_by | sides[1].selected_by
    if query.limit is not None:
        selected_by |= columns_read(fields[term.index or 0].origin for term in query.order)
    relation = PlannedRelation(
        f"SELECT {listed} FROM ({texts[0]} {word} {texts[1]}) AS {query.ref}",
        tuple(fields),
        selected_by=selected_by,
        identity=len(own or identities[0]),
    )
    order = [f"{(term.index or 0) + 1} {sort_direction(term.node)}" for term in query.order]
    return _order_and_limit(relation, query, order, [], context)


def _union_identities(sides: Sequence[PlannedRelation], refs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the SQL of what identifies the rows of each side of UNION ALL: the side, and then the row in it."""
    left, right = (
        _as_texts([f"{ref}.h{index}" for index in range(len(side.slots))])
        + [f"{ref}.i{index}" for index in range(side.identity)]
        for side, ref in zip(sides, refs, strict=True)
    )
    nothing = "CAST(NULL AS VARCHAR)"
    return ["'a'", *left, *[nothing] * len(right)], ["'b'", *[nothing] * len(left), *right]


def _order_and_limit(
    relation: PlannedRelation, query: ResolvedQuery, order: Sequence[str], hidden: Sequence[str], context: QueryContext
) -> PlannedRelation:
    """Add ORDER BY where it matters: in the outermost query, before LIMIT, or if an outer query depends on it.

    Over several draws, the outermost query has all rows, in any order.
    """
    limits, sql, outermost = row_limits(query), relation.sql, context.outermost
    single = relation.is_single_row or limits.get("LIMIT", 2) <= 1
    if context.draws:
        if limits and not outermost:
            raise NotRepeatable
        return replace(relation, is_single_row=single)
    terms = [*order, *hidden] if outermost or limits or order else []
    sql += f" ORDER BY {', '.join(terms)}" if terms else ""
    sql += "".join(f" {word} {count}" for word, count in limits.items())
    if order and not outermost:
        sql = f"SELECT *, row_number() OVER () AS w FROM ({sql}) AS {query.ref}o"
    return replace(relation, sql=sql, is_single_row=single, is_ordered=bool(order) and not outermost)


def _conditions(node: exp.Expr | None, clause: str, env: Env) -> tuple[SqlExpr, ...]:
    return () if node is None else (replace(env, clause=clause).condition(node),)


def _without_row(origin: Origin) -> Origin:
    """Return the origin of a value whose row is no longer tracked."""
    return origin if isinstance(origin, ConstantOrigin) else untracked_origin([origin])
