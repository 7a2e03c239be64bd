"""Resolve a query from the inside out, and find its releases.

Each query is one of three things: private rows (each owned by one unit), rows of a public table, or a query over
released tables. The innermost aggregate over private rows that is not per unit is the release.
"""

from collections.abc import Sequence
from functools import partial

from sqlglot import exp

from discreet.estimate.planned_release import PlannedRelease
from discreet.query.aggregation.build_release import build_release
from discreet.query.aggregation.group_keys import GroupedSelect, bind_group_keys, bind_grouping_sets
from discreet.query.bind_context import BindContext
from discreet.query.relations.from_clause import CteSources, FromItem, alias_source, bind_source, join_sources
from discreet.query.relations.per_unit import group_by_unit, is_per_unit
from discreet.query.relations.predicates import conjuncts
from discreet.query.relations.projection import check_row_clauses, project, select_public
from discreet.query.relations.row_numbers import limit_row_numbers, project_numbered
from discreet.query.relations.scope import (
    BoundSource,
    PrivateSource,
    PublicSource,
    ReleasedSource,
    View,
    has_column,
    same_name,
)
from discreet.query.relations.select_list import SelectItem, select_items
from discreet.query.relations.semi_join import SubqueryResolver, apply_where
from discreet.query.relations.set_operations import combine_sources
from discreet.query.syntax.source_position import quote_name, refuse
from discreet.query.syntax.syntax_tree import first_aggregate, nodes_without_subqueries


def expression_subqueries(select: exp.Select) -> list[exp.Query]:
    """Return the outermost subqueries in the expressions of a SELECT, excluding FROM and WITH."""
    begin = select.args.get("from_")
    sources = [begin.this] if begin is not None else []
    sources += [join.this for join in select.args.get("joins") or ()]
    clauses = [
        clause for clause in select.iter_expressions() if clause is not begin and not isinstance(clause, exp.With)
    ]
    queries = [node for part in clauses for node in nodes_without_subqueries(part) if isinstance(node, exp.Query)]
    return [node for node in queries if not any(node is source for source in sources)]


def limit_to_one_row(query: exp.Query, releases: Sequence[PlannedRelease]) -> exp.Query:
    """Add LIMIT 1 to a query over a release without groups, so that it can be used as a scalar subquery."""
    select = query.unnest()
    if not isinstance(select, exp.Select) or select.args.get("joins") or select.args.get("limit"):
        return query
    begin = select.args.get("from_")
    if begin is not None and begin.this.name in {release.name for release in releases if not release.keys}:
        select.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    return query


def drop_unused_ctes(query: exp.Query) -> None:
    """Drop WITH queries that are not used, so that they cost nothing."""
    while True:
        names_read = {table.name.lower() for table in query.find_all(exp.Table)}
        unused = [cte for cte in query.find_all(exp.CTE) if cte.alias.lower() not in names_read]
        if not unused:
            return
        for each in unused:
            clause = each.parent
            each.pop()
            if clause is not None and not clause.expressions:
                clause.pop()


_INNER_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having")
_OUTER_CLAUSES = ("order", "limit", "offset", "distinct", "qualify", "windows", "with_")
_MIXED_FROM = "private rows cannot be joined with aggregated results"


def split_at_releases(query: exp.Expr, context: BindContext) -> exp.Query:
    """Return the query over released tables; the releases are added to `context.releases`."""
    source = resolve_query(query, {}, context)
    if isinstance(source, ReleasedSource):
        drop_unused_ctes(source.query)
        return source.query
    if isinstance(source, PublicSource):
        cause = "this query reads only public tables"
        raise refuse(query, "FROM", cause, "Leave out the private tables, and it is free.")
    raise _single_rows_refusal(query)


def _single_rows_refusal(query: exp.Expr) -> Exception:
    cause = "this query would return individual rows"
    return refuse(query, "SELECT", cause, "Aggregate them with COUNT(*), SUM(…) or AVG(…), and GROUP BY if needed.")


def _row_query_refusal(select: exp.Select, items: Sequence[SelectItem], rows: PrivateSource) -> Exception:
    """Return the refusal of a query for rows; an unknown name is refused first."""
    if items:
        project(items, rows)
    return _single_rows_refusal(select)


def resolve_query(query: exp.Expr, ctes: CteSources, context: BindContext) -> BoundSource:
    """Resolve a query to private rows, public rows, or a query over released tables."""
    match query:
        case exp.Subquery() if isinstance(query.this, exp.Query):
            return _resolve_parenthesised(query, ctes, context)
        case exp.SetOperation():
            ctes = _resolve_with(query, ctes, context)
            return combine_sources(query, partial(resolve_query, ctes=ctes, context=context))
        case exp.Select():
            return _resolve_select(query, _resolve_with(query, ctes, context), context)
    raise refuse(query, "SELECT", "only SELECT is supported here", "Write SELECT … FROM a table of the policy.")


def _resolve_parenthesised(query: exp.Subquery, ctes: CteSources, context: BindContext) -> BoundSource:
    ctes = _resolve_with(query, ctes, context)
    source = resolve_query(query.this, ctes, context)
    if isinstance(source, ReleasedSource):
        query.set("this", source.query)
        return ReleasedSource(query)
    check_row_clauses(query)
    return source


def _resolve_with(query: exp.Query, ctes: CteSources, context: BindContext) -> CteSources:
    """Resolve the WITH queries in order; only those over released tables stay in the tree."""
    clause = query.args.get("with_")
    if clause is None:
        return ctes
    if clause.recursive:
        raise refuse(clause, "WITH", "recursive queries are not supported", "Write each step as a query of its own.")
    visible, released_ctes = dict(ctes), []
    for cte in clause.expressions:
        alias = cte.args["alias"]
        source = resolve_query(cte.this, visible, context)
        visible.pop(alias.this.name, None)  # so that the new one comes last
        visible[alias.this.name] = alias_source(source, alias, cte)
        if isinstance(source, ReleasedSource):
            cte.set("this", source.query)
            released_ctes.append(cte)
    query.set("with_", exp.With(expressions=released_ctes) if released_ctes else None)
    return visible


def _resolve_from(
    select: exp.Select, ctes: CteSources, context: BindContext
) -> list[tuple[BoundSource, exp.Expr, exp.Join | None]]:
    """Return the sources of FROM and JOIN; those over released tables are rewritten in the tree."""
    bound_items: list[tuple[BoundSource, exp.Expr, exp.Join | None]] = []
    begin = select.args.get("from_")
    first = [(begin.this, None)] if begin is not None else []
    for node, join in [*first, *((join.this, join) for join in select.args.get("joins") or ())]:
        source = bind_source(node, ctes, context, partial(resolve_query, ctes=ctes, context=context))
        if isinstance(source, ReleasedSource) and isinstance(node, exp.Subquery):
            node.set("this", source.query)
        bound_items.append((source, node, join))
    return bound_items


def _resolve_select(select: exp.Select, ctes: CteSources, context: BindContext) -> BoundSource:
    _check_clauses(select)
    bound_items = _resolve_from(select, ctes, context)
    released = [node for source, node, _ in bound_items if isinstance(source, ReleasedSource)]
    if len(released) == len(bound_items):
        return _resolve_outer_select(select, ctes, context)
    if released and not any(isinstance(given, PrivateSource) for given, _, _ in bound_items):
        cause = "joining a public table with aggregated results is not supported yet"
        raise refuse(
            released[0], "FROM", cause, "Join it before aggregating, and group by the columns that you need from it."
        )
    if released:
        hint = "Run the aggregate first, then write its results as constants; or aggregate both, then join."
        raise refuse(released[0], "FROM", _MIXED_FROM, hint)
    items = [FromItem(given, node, join) for given, node, join in bound_items if not isinstance(given, ReleasedSource)]
    if all(isinstance(item.source, PublicSource) for item in items):
        return select_public(select, items)
    return _resolve_private_select(select, items, ctes, context)


def _check_clauses(select: exp.Select) -> None:
    if not select.expressions:
        raise refuse(select, "SELECT", "the SELECT list is empty", "Add an aggregate such as COUNT(*).")
    surplus = [name for name, given in select.args.items() if given and name not in (*_INNER_CLAUSES, *_OUTER_CLAUSES)]
    if surplus:
        feature = "FOR UPDATE" if "locks" in surplus else surplus[0].strip("_").upper()
        raise refuse(select, "SELECT", f"{feature} is not supported", "Leave it out.")


def _resolve_private_select(
    select: exp.Select, items: list[FromItem], ctes: CteSources, context: BindContext
) -> BoundSource:
    def private_items(inner: exp.Select) -> list[FromItem]:
        bound_items = _resolve_from(inner, ctes, context)
        for source, node, _ in bound_items:
            if isinstance(source, ReleasedSource):
                raise refuse(node, "FROM", _MIXED_FROM, "Run the aggregate first, then write its results as constants.")
        return [
            FromItem(given, node, join) for given, node, join in bound_items if not isinstance(given, ReleasedSource)
        ]

    inner = SubqueryResolver(lambda query: resolve_query(query, ctes, context), private_items)
    conditions = conjuncts(select.args["where"].this if select.args.get("where") else None)
    _check_where_aliases(select, conditions, [view for item in items for view in item.views])
    rows, unused = join_sources(items, conditions, context)
    rows = limit_row_numbers(apply_where(rows, unused, context, inner))
    select_list = select_items(select, rows.views)
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        distinct_hint = "Use GROUP BY, with MIN, MAX or ARG_MAX per unit, or ROW_NUMBER() OVER (PARTITION BY …) = 1."
        raise refuse(distinct, "SELECT", "DISTINCT ON is not supported on private rows", distinct_hint)
    has_aggregate = any(first_aggregate(node) is not None for node in _clauses_with_aggregates(select))
    has_group_by = select.args.get("group") is not None
    if not has_group_by and not has_aggregate and distinct is None:
        if select.parent is None:
            raise _row_query_refusal(select, select_list, rows)
        if select.args.get("having"):
            raise refuse(select.args["having"], "HAVING", "HAVING needs an aggregate", "Use WHERE.")
        return project_numbered(select, select_list, rows)
    keys = bind_group_keys(select, select_list, rows) if has_group_by or not has_aggregate else []
    grouping_sets = bind_grouping_sets(select, select_list, rows, keys)
    grouped_select = GroupedSelect(select, select_list, keys, rows, grouping_sets)
    _check_grouping_sets(grouped_select, context)
    if is_per_unit(keys, rows):
        if select.parent is None:
            cause = "each group would be a single privacy unit, and such groups are never released"
            hint = "Group by a column whose values many units share, or count units with COUNT(DISTINCT …)."
            raise refuse(keys[0].node, "GROUP BY" if has_group_by else "SELECT DISTINCT", cause, hint)
        return group_by_unit(grouped_select)
    return build_release(grouped_select, context, partial(_resolve_released, ctes=ctes, context=context))


def _check_grouping_sets(grouped: GroupedSelect, context: BindContext) -> None:
    per_unit = is_per_unit(grouped.keys, grouped.rows)
    if grouped.grouping_sets and (per_unit or context.policy.sample):
        where = "for groups of one unit" if per_unit else "where the policy declares a sample"
        hint = "Write one SELECT per grouping set, and combine them with UNION ALL."
        group = grouped.select.args["group"]
        raise refuse(group, "GROUP BY", f"ROLLUP, CUBE and GROUPING SETS are not supported {where}", hint)


def _check_where_aliases(select: exp.Select, conditions: list[exp.Expr], views: list[View]) -> None:
    """Refuse aliases of the SELECT list in WHERE, with a hint."""
    aliases = {expression.args["alias"] for expression in select.expressions if isinstance(expression, exp.Alias)}
    for node in (part for condition in conditions for part in nodes_without_subqueries(condition)):
        if not isinstance(node, exp.Column) or node.table or has_column(views, node):
            continue
        if any(same_name(node.this, alias.name) for alias in aliases):
            cause = f"column {quote_name(node.name)} does not exist: WHERE cannot use names of the SELECT list"
            raise refuse(node, "WHERE", cause, "Repeat the expression, or put the SELECT into a subquery.")


def _clauses_with_aggregates(select: exp.Select) -> list[exp.Expr]:
    """Return the clauses that may contain aggregates."""
    clauses = [*select.expressions]
    clauses += [select.args[name] for name in ("having", "order", "qualify") if select.args.get(name) is not None]
    return clauses


def _resolve_released(query: exp.Query, ctes: CteSources, context: BindContext) -> exp.Query:
    """Resolve a query that must be over released tables."""
    source = resolve_query(query, ctes, context)
    if isinstance(source, ReleasedSource):
        return limit_to_one_row(source.query, context.releases.planned)
    if isinstance(source, PublicSource):
        cause = "joining a public table with aggregated results is not supported yet"
        raise refuse(query, "SELECT", cause, "Join it before aggregating, or query it alone, which is free.")
    cause = "individual rows cannot be combined with aggregated results"
    raise refuse(query, "SELECT", cause, "Aggregate them in the inner query.")


def _resolve_outer_select(select: exp.Select, ctes: CteSources, context: BindContext) -> ReleasedSource:
    """Resolve a query over released tables, whose subqueries must be over released tables too."""
    subqueries = expression_subqueries(select)
    if not select.args.get("from_") and not subqueries:
        cause = "the query reads no table"
        raise refuse(select, "SELECT", cause, "Write SELECT … FROM a table of the policy.")
    for node in subqueries:
        node.replace(_resolve_released(node, ctes, context))
    return ReleasedSource(select)
