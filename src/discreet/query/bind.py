"""Bind a resolved query from the inside out, with its set operations, and find its releases.

Each query is one of three things: private rows (each owned by one unit), rows of a public table, or a query over
released tables. The innermost aggregate over private rows that is not per unit is a release; a SELECT over the
released table takes its place.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from discreet.kernel.expr import Call, Column, Expr, Type, Value
from discreet.kernel.relation import Derive, Union
from discreet.query.aggregation.build_release import build_release
from discreet.query.aggregation.group_keys import GroupedSelect, bind_group_keys, bind_grouping_sets
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.relations.bound_sources import (
    BindContext,
    BoundSource,
    ColumnInfo,
    PrivateSource,
    PublicSource,
    ReleasedSource,
    ValuesLookup,
    View,
    unused_name,
)
from discreet.query.relations.from_clause import (
    BoundCtes,
    BoundItem,
    SubqueryBinder,
    apply_where,
    join_sources,
    name_source,
)
from discreet.query.relations.per_unit import group_by_unit, is_per_unit
from discreet.query.relations.predicates import conjuncts
from discreet.query.relations.projection import check_row_clauses, limit_row_numbers, project_numbered, select_public
from discreet.query.syntax.resolved_query import (
    FromItem,
    ResolvedQuery,
    ResolvedSelect,
    ResolvedSetOperation,
    ResolvedTable,
    ValuesSource,
    WithQuery,
    map_nested,
)
from discreet.query.syntax.syntax_tree import NestedQuery, build_or_refuse, first_aggregate, refuse
from discreet.query.table_sources import table_source


def bind_released_query(query: ResolvedQuery, context: BindContext) -> ResolvedQuery:
    """Return the query over released tables, whose sources have the planned releases as keys."""
    if isinstance(query, ResolvedSelect):
        source = _bind_query(query, {}, context, outermost=True)
    else:
        source = bind_query(query, {}, context)
    if isinstance(source, ReleasedSource):
        return source.query
    if isinstance(source, PublicSource):
        cause = "this query reads only public tables"
        raise refuse(query.node, "FROM", cause, "Leave out the private tables, and it is free.")
    raise _single_rows_refusal(query.node)


def _single_rows_refusal(node: exp.Expr) -> Exception:
    cause = "this query would return individual rows"
    return refuse(node, "SELECT", cause, "Aggregate them with COUNT(*), SUM(…) or AVG(…), and GROUP BY if needed.")


def bind_query(query: ResolvedQuery, ctes: BoundCtes, context: BindContext) -> BoundSource:
    """Bind a query to private rows, public rows, or a query over released tables."""
    return _bind_query(query, ctes, context, outermost=False)


def _bind_query(query: ResolvedQuery, ctes: BoundCtes, context: BindContext, *, outermost: bool) -> BoundSource:
    released_ctes = []
    for each in query.with_queries:
        source = bind_query(each.query, ctes, context)
        ctes = {**ctes, each.ref: source}
        if isinstance(source, ReleasedSource):
            released_ctes.append(replace(each, query=source.query))
    query = replace(query, with_queries=tuple(released_ctes))
    if isinstance(query, ResolvedSetOperation):
        sides = (bind_query(side, ctes, context) for side in (query.left, query.right))
        return _combine_sources(query, *sides)
    return _bind_select(query, ctes, context, outermost=outermost)


def _bind_item(item: FromItem, ctes: BoundCtes, context: BindContext) -> BoundSource:
    """Bind one source of FROM."""
    match item.source:
        case WithQuery(ref):
            return name_source(ctes[ref], item)
        case ResolvedTable(str(name)):
            return name_source(_bind_table(name, item, context), item)
        case ResolvedSelect() | ResolvedSetOperation():
            return name_source(bind_query(item.source, ctes, context), item)
        case ValuesSource():
            cause = "functions and lists are not supported in FROM"
            raise refuse(item.node, "FROM", cause, "Name a table of the policy.")
    raise TypeError(f"unknown source type {type(item.source).__name__}")


def _bind_table(name: str, item: FromItem, context: BindContext) -> BoundSource:
    if name not in context.policy.tables:
        cause = "information_schema cannot be combined with private tables"
        raise refuse(item.node, "FROM", cause, "Query it alone, which is free.")
    if name not in context.tables:
        context.tables[name] = table_source(context.policy, context.public_tables, context.policy.tables[name])
    return context.tables[name]


def _bind_select(select: ResolvedSelect, ctes: BoundCtes, context: BindContext, *, outermost: bool) -> BoundSource:
    sources = [_bind_item(item, ctes, context) for item in select.sources]
    pairs = list(zip(sources, select.sources, strict=True))
    if all(isinstance(source, ReleasedSource) for source in sources):
        return _bind_outer_select(select, sources, ctes, context)
    items = _unreleased_items(pairs)
    if isinstance(items[0].source, PublicSource) and all(isinstance(item.source, PublicSource) for item in items):
        return select_public(select, items[0].source)
    return _bind_private_select(select, items, ctes, context, outermost=outermost)


def _unreleased_items(pairs: Sequence[tuple[BoundSource, FromItem]]) -> list[BoundItem]:
    """Return the sources of FROM over private rows and public tables, which cannot be joined with released tables."""
    released = [item for source, item in pairs if isinstance(source, ReleasedSource)]
    kinds = {type(source) for source, _ in pairs}
    if kinds == {ReleasedSource, PublicSource}:
        cause = "joining a public table with aggregated results is not supported yet"
        hint = "Join it before aggregating, and group by the columns that you need from it."
        raise refuse(released[0].node, "FROM", cause, hint)
    if released:
        cause = "private rows cannot be joined with aggregated results"
        hint = "Run the aggregate first, then write its results as constants; or aggregate both, then join."
        raise refuse(released[0].node, "FROM", cause, hint)
    return [BoundItem(source, item) for source, item in pairs if not isinstance(source, ReleasedSource)]


def _bind_private_select(
    select: ResolvedSelect, items: list[BoundItem], ctes: BoundCtes, context: BindContext, *, outermost: bool
) -> BoundSource:
    def bind_from(inner: ResolvedSelect) -> list[BoundItem]:
        return _unreleased_items([(_bind_item(item, ctes, context), item) for item in inner.sources])

    binder = SubqueryBinder(partial(bind_query, ctes=ctes, context=context), bind_from)
    rows, unused = join_sources(items, conjuncts(select.where), context)
    rows = limit_row_numbers(apply_where(rows, unused, context, binder))
    has_aggregate = any(first_aggregate(node) is not None for node in select.grouped_expressions)
    if select.group is None and not has_aggregate and not select.distinct:
        return _bind_rows(select, rows, outermost=outermost)
    keys = bind_group_keys(select, rows) if select.group is not None or not has_aggregate else []
    grouped = GroupedSelect(select, keys, rows, bind_grouping_sets(select, rows, keys))
    _check_grouping_sets(grouped, context)
    if is_per_unit(keys, rows):
        if outermost:
            cause = "each group would be a single privacy unit, and such groups are never released"
            hint = "Group by a column whose values many units share, or count units with COUNT(DISTINCT …)."
            raise refuse(keys[0].node, "GROUP BY" if select.group else "SELECT DISTINCT", cause, hint)
        return group_by_unit(grouped)
    return ReleasedSource(build_release(grouped, context, partial(_bind_nested, ctes=ctes, context=context)))


def _bind_rows(select: ResolvedSelect, rows: PrivateSource, *, outermost: bool) -> PrivateSource:
    """Bind a SELECT of private rows; the outermost one is refused."""
    if not outermost:
        check_row_clauses(select, allowed=("qualify", "windows"))
        if select.having is not None:
            raise refuse(select.having, "HAVING", "HAVING needs an aggregate", "Use WHERE.")
    projected = project_numbered(select, rows)
    if outermost:
        raise _single_rows_refusal(select.node)
    return projected


def _check_grouping_sets(grouped: GroupedSelect, context: BindContext) -> None:
    per_unit = is_per_unit(grouped.keys, grouped.rows)
    if grouped.grouping_sets and (per_unit or context.policy.sample):
        where = "for groups of one unit" if per_unit else "where the policy declares a sample"
        hint = "Write one SELECT per grouping set, and combine them with UNION ALL."
        group = grouped.select.node.args["group"]
        raise refuse(group, "GROUP BY", f"ROLLUP, CUBE and GROUPING SETS are not supported {where}", hint)


def _bind_nested(nested: NestedQuery, ctes: BoundCtes, context: BindContext) -> exp.Expr:
    """Bind a subquery of an expression, which must be over released tables."""
    return nested.with_query(_bind_released(nested.query, ctes, context))


def _bind_released(query: ResolvedQuery, ctes: BoundCtes, context: BindContext) -> ResolvedQuery:
    source = bind_query(query, ctes, context)
    if isinstance(source, ReleasedSource):
        return source.query
    if isinstance(source, PublicSource):
        cause = "joining a public table with aggregated results is not supported yet"
        raise refuse(query.node, "SELECT", cause, "Join it before aggregating, or query it alone, which is free.")
    cause = "individual rows cannot be combined with aggregated results"
    raise refuse(query.node, "SELECT", cause, "Aggregate them in the inner query.")


def _bind_outer_select(
    select: ResolvedSelect, sources: Sequence[BoundSource], ctes: BoundCtes, context: BindContext
) -> ReleasedSource:
    """Bind a query over released tables, whose subqueries must be over released tables too."""
    if not select.sources and not any(node.find(NestedQuery) for node in select.expressions):
        cause = "the query reads no table"
        raise refuse(select.node, "SELECT", cause, "Write SELECT … FROM a table of the policy.")
    items = tuple(
        replace(item, source=source.query)
        if isinstance(source, ReleasedSource) and not isinstance(item.source, WithQuery)
        else item
        for source, item in zip(sources, select.sources, strict=True)
    )
    outer = map_nested(replace(select, sources=items), partial(_bind_released, ctes=ctes, context=context))
    assert isinstance(outer, ResolvedSelect)
    return ReleasedSource(outer)


def _combine_sources(query: ResolvedSetOperation, left: BoundSource, right: BoundSource) -> BoundSource:
    """Bind UNION, INTERSECT or EXCEPT."""
    if isinstance(left, ReleasedSource) and isinstance(right, ReleasedSource):
        return ReleasedSource(replace(query, left=left.query, right=right.query))
    node, name = query.node, type(query.node).__name__.upper()
    if not (isinstance(left, PrivateSource) and isinstance(right, PrivateSource)):
        cause = f"{name} cannot combine private rows with other rows"
        raise refuse(node, name, cause, "Aggregate each side first, or use private tables on both sides.")
    if not isinstance(node, exp.Union) or node.args.get("distinct"):
        cause = f"{name} would compare rows of different privacy units"
        raise refuse(node, name, cause, "Use UNION ALL, or GROUP BY the unit.")
    check_row_clauses(query)
    return _union_all(node, left, right)


def _union_all(query: exp.Expr, left: PrivateSource, right: PrivateSource) -> PrivateSource:
    ours, theirs = left.columns, right.columns
    if left.relation.shape.unit is None or right.relation.shape.unit is None:
        cause = "each row is its own privacy unit, so private tables cannot be combined"
        raise refuse(query, "UNION", cause, "Query one private table at a time.")
    names: list[str] = []
    for info in ours:
        names.append(unused_name(info.name, names))
    kinds = [_common_type(query, a, b) for a, b in zip(ours, theirs, strict=True)]
    sides = [
        Derive(
            rows.relation,
            tuple((name, _as_type(known, kind)) for name, known, kind in zip(names, rows.columns, kinds, strict=True)),
        )
        for rows in (left, right)
    ]
    view = tuple(_union_info(name, kind, a, b) for name, kind, a, b in zip(names, kinds, ours, theirs, strict=True))
    return PrivateSource(build_or_refuse(lambda: Union(sides[0], sides[1]), query, "UNION"), (View(None, None, view),))


def _common_type(query: exp.Expr, ours: ColumnInfo, theirs: ColumnInfo) -> Type:
    kinds = {ours.column.type, theirs.column.type}
    if len(kinds) == 1:
        return ours.column.type
    if kinds == {Type.INTEGER, Type.REAL}:
        return Type.REAL
    cause = f"column {ours.name} has different types on the two sides"
    raise refuse(query, "UNION", cause, "Convert one of them with CAST.")


def _as_type(info: ColumnInfo, kind: Type) -> Expr:
    return info.column if info.column.type is kind else Call("to_real", (info.column,))


def _union_info(name: str, kind: Type, ours: ColumnInfo, theirs: ColumnInfo) -> ColumnInfo:
    """Return the facts that hold for a column on both sides."""
    a, b = ours.bound, theirs.bound
    bound = BoundExpr(
        Column(name, kind), unit_key_index=a.unit_key_index if a.unit_key_index == b.unit_key_index else None
    )
    if a.low is not None and b.low is not None and a.high is not None and b.high is not None:
        step = min(a.step, b.step) if a.step is not None and b.step is not None else None
        bound = replace(bound, low=min(a.low, b.low), high=max(a.high, b.high), step=step)
    window = ours.window if ours.window is theirs.window else None
    parent_keys = ours.parent_keys & theirs.parent_keys
    return ColumnInfo(
        ours.name,
        bound,
        _union_values(kind, ours, theirs),
        null_is_group=ours.null_is_group or theirs.null_is_group,
        parent_keys=parent_keys,
        window=window,
        never_null=ours.never_null and theirs.never_null,
        in_range=ours.in_range and theirs.in_range,
        constant_per_unit=bound.unit_key_index is not None,
        unique=ours.unique or theirs.unique,
    )


def _union_values(kind: Type, ours: ColumnInfo, theirs: ColumnInfo) -> ValuesLookup:
    def values() -> tuple[Value, ...] | None:
        a, b = ours.values(), theirs.values()
        if a is None or b is None:
            return None
        return tuple(dict.fromkeys(_as_real(value, kind) for value in (*a, *b)))

    return values


def _as_real(value: Value, kind: Type) -> Value:
    """Convert an integer to a real if the column is real."""
    return float(value) if kind is Type.REAL and isinstance(value, int) else value
