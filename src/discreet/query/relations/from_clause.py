"""FROM, JOIN and WHERE: the sources of a SELECT and their joins, conditions, and semi-joins by IN and EXISTS."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.kernel.expr import Call, Constant, Expr
from discreet.kernel.relation import JoinKind, SemiJoinKind, SemiJoinOnUnit, Where
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.relations.bound_sources import (
    BindContext,
    BoundSource,
    ColumnInfo,
    PrivateSource,
    PublicSource,
    View,
    bind_stored,
    reads_only,
)
from discreet.query.relations.ownership import unit_key_index, unit_key_names
from discreet.query.relations.predicates import conjuncts, filter_rows, narrow_ranges
from discreet.query.relations.unit_join import JoinSpec, join_equalities, join_source
from discreet.query.syntax.resolved_query import FromItem, ResolvedQuery, ResolvedSelect
from discreet.query.syntax.syntax_tree import NestedQuery, build_or_refuse, refuse

BoundCtes = Mapping[str, BoundSource]  # WITH queries by their unique names


def name_source(source: BoundSource, item: FromItem) -> BoundSource:
    """Return a source with the name and the column names that FROM gives it."""
    match source:
        case PrivateSource(relation):
            return PrivateSource(relation, (_named_view(source.columns, item),))
        case PublicSource(table, view):
            return PublicSource(table, _named_view(view.columns, item))
    return source


def _named_view(columns: Sequence[ColumnInfo], item: FromItem) -> View:
    infos = tuple(replace(info, name=name) for info, name in zip(columns, item.columns, strict=True))
    return View(item.ref, item.alias, infos)


@dataclass(frozen=True)
class BoundItem:
    """A source of FROM with its rows."""

    source: PrivateSource | PublicSource
    origin: FromItem

    @property
    def views(self) -> tuple[View, ...]:
        """The named columns of the source."""
        return self.source.views if isinstance(self.source, PrivateSource) else (self.source.view,)

    @property
    def side(self) -> str:
        """Whose rows are kept without a match: LEFT, RIGHT, FULL, or nothing."""
        return "" if self.origin.join is None else self.origin.join.side


@dataclass(frozen=True)
class _JoinState:
    """The joins so far; public tables wait for the first private rows, and conditions for a join that can use them."""

    rows: PrivateSource | None
    pending_public: tuple[BoundItem, ...]
    on: tuple[exp.Expr, ...]
    where: tuple[exp.Expr, ...]


def join_sources(
    items: Sequence[BoundItem], where: Sequence[exp.Expr], context: BindContext
) -> tuple[PrivateSource, list[exp.Expr]]:
    """Join the sources in order, and return the conditions of WHERE that no join has used."""
    for item in items:
        if item.side == "FULL":
            cause = "FULL JOIN would keep rows that belong to no privacy unit"
            raise refuse(item.origin.node, "JOIN", cause, "Use LEFT JOIN with the private table on the left, or JOIN.")
    # With a RIGHT JOIN, applying a WHERE condition in an earlier join would change its meaning.
    where_last = any(item.side == "RIGHT" for item in items)
    comma_joins = [each.origin for each in items if each.origin.join is not None and each.origin.join.is_comma]
    if where_last and comma_joins:
        cause = "mixing a comma and a RIGHT JOIN in one FROM is ambiguous"
        raise refuse(comma_joins[0].node, "FROM", cause, "Write CROSS JOIN or JOIN … ON instead of the comma.")
    state = _JoinState(None, (), (), () if where_last else tuple(where))
    for item in items:
        state = _join_next(state, item, context)
    assert state.rows is not None
    rows = filter_rows(state.rows, state.on, "JOIN")
    return rows, list(where if where_last else state.where)


def _join_next(state: _JoinState, item: BoundItem, context: BindContext) -> _JoinState:
    on = tuple(conjuncts(item.origin.join.on)) if item.origin.join is not None else ()
    if item.side == "LEFT":
        if state.rows is None:
            raise _public_rows_refusal(item, "on the left")
        spec = JoinSpec(JoinKind.LEFT, context, item.origin.node)
        return replace(state, rows=join_source(state.rows, item.source, on, spec)[0])
    if item.side == "RIGHT":
        return _right_join(state, item, on, context)
    state = replace(state, on=state.on + on)
    if state.rows is None and isinstance(item.source, PublicSource):
        return replace(state, pending_public=(*state.pending_public, item))
    new_items: tuple[BoundItem, ...] = (item,)
    if state.rows is None:
        assert isinstance(item.source, PrivateSource)
        new_items, state = state.pending_public, replace(state, rows=item.source, pending_public=())
    for public_item in new_items:
        state = _inner_join_next(state, public_item, context)
    return state


def _right_join(state: _JoinState, item: BoundItem, on: tuple[exp.Expr, ...], context: BindContext) -> _JoinState:
    """Bind a RIGHT JOIN that keeps private rows, as a LEFT JOIN with the sides swapped."""
    if not isinstance(item.source, PrivateSource):
        raise _public_rows_refusal(item, "on the right")
    if state.rows is not None:
        other: PrivateSource | PublicSource = filter_rows(state.rows, state.on, "JOIN")
    elif len(state.pending_public) == 1:
        other = state.pending_public[0].source
    else:
        cause = "a RIGHT JOIN after several public tables is not supported"
        raise refuse(
            item.origin.node, "JOIN", cause, "Start FROM with the private table, and LEFT JOIN the others to it."
        )
    spec = JoinSpec(JoinKind.LEFT, context, item.origin.node)
    return _JoinState(join_source(item.source, other, on, spec)[0], (), (), state.where)


def _public_rows_refusal(item: BoundItem, where: str) -> Exception:
    cause = f"this outer join would keep rows of the public table {where}, which belong to no privacy unit"
    return refuse(item.origin.node, "JOIN", cause, "Write private LEFT JOIN public, or JOIN.")


def _inner_join_next(state: _JoinState, item: BoundItem, context: BindContext) -> _JoinState:
    """Join on the usable equalities; other conditions filter the result."""
    assert state.rows is not None
    spec = JoinSpec(JoinKind.INNER, context, item.origin.node)
    joined, used = join_source(state.rows, item.source, (*state.on, *state.where), spec)

    def unused(nodes: tuple[exp.Expr, ...]) -> tuple[exp.Expr, ...]:
        return tuple(node for node in nodes if not any(node is each for each in used))

    return replace(state, rows=joined, on=unused(state.on), where=unused(state.where))


_MAX_PUBLIC_VALUES = 1000
_JOIN_HINT = "Write it as a JOIN, or as unit IN (SELECT unit FROM …)."


@dataclass(frozen=True)
class SubqueryBinder:
    """Binds the subqueries of a condition: as a whole, or the sources of its FROM."""

    bind_query: Callable[[ResolvedQuery], BoundSource]
    bind_from: Callable[[ResolvedSelect], list[BoundItem]]


def apply_where(
    rows: PrivateSource, nodes: Sequence[exp.Expr], context: BindContext, binder: SubqueryBinder
) -> PrivateSource:
    """Return the rows that satisfy all conditions."""
    plain = []
    for node in nodes:
        bare, has = node.unnest(), SemiJoinKind.SEMI
        while isinstance(bare, exp.Not):
            bare, has = bare.this.unnest(), SemiJoinKind.ANTI if has is SemiJoinKind.SEMI else SemiJoinKind.SEMI
        if isinstance(bare, exp.In) and bare.args.get("query") is not None:
            rows = _in_subquery(rows, bare, has, binder)
        elif isinstance(bare, exp.Exists) and isinstance(bare.this, NestedQuery):
            rows = _exists_subquery(rows, bare, has, context, binder)
        else:
            plain.append(node)
    return filter_rows(rows, plain, "WHERE")


def _in_subquery(rows: PrivateSource, node: exp.In, has: SemiJoinKind, binder: SubqueryBinder) -> PrivateSource:
    """Bind unit IN (SELECT unit …)."""
    left = node.this.unnest()
    nodes = left.expressions if isinstance(left, exp.Tuple) else [left]
    ours = [bind_stored(each, rows.views, "WHERE") for each in nodes]
    source = binder.bind_query(node.args["query"].query)
    if isinstance(source, PublicSource):
        return _in_public_column(rows, node, has, ours, source)
    if not isinstance(source, PrivateSource):
        cause = "private rows cannot be combined with the result of a subquery"
        raise refuse(node, "WHERE", cause, "Run the inner query first, then write its values as constants.")
    theirs = [info.bound for info in source.columns]
    if len(ours) != len(theirs):
        raise refuse(
            node,
            "WHERE",
            "the two sides of IN have different numbers of columns",
            "Select as many columns as are compared.",
        )
    return _semi_join(node, list(zip(ours, theirs, strict=True)), rows, source, has)


def _in_public_column(
    rows: PrivateSource, node: exp.In, has: SemiJoinKind, ours: list[BoundExpr], source: PublicSource
) -> PrivateSource:
    """Bind x IN (SELECT y FROM a public table), with the public values as constants."""
    values = (
        source.view.columns[0].values() if len(source.view.columns) == 1 and source.table.condition is None else None
    )
    if len(ours) != 1 or values is None or not 0 < len(values) <= _MAX_PUBLIC_VALUES:
        raise refuse(
            node, "WHERE", "IN needs a whole column of a public table, with at most 1,000 values", "Write it as a JOIN."
        )
    if ours[0].type is not source.view.columns[0].bound.type:
        raise refuse(node, "WHERE", "the two sides of IN have different types", "Convert one of them with CAST.")
    constants = tuple(Constant(value, ours[0].type) for value in values)
    condition: Expr = Call("one_of", (ours[0].expr, *constants))
    predicate = condition if has is SemiJoinKind.SEMI else Call("not", (condition,))
    return PrivateSource(
        build_or_refuse(lambda: Where(rows.relation, predicate), node, "WHERE"), narrow_ranges(rows.views, predicate)
    )


def _exists_subquery(
    rows: PrivateSource, node: exp.Exists, has: SemiJoinKind, context: BindContext, binder: SubqueryBinder
) -> PrivateSource:
    """Bind EXISTS (SELECT … WHERE inner.unit = outer.unit AND conditions on the inner query)."""
    select = node.this.query
    if not isinstance(select, ResolvedSelect):
        raise refuse(node, "EXISTS", "EXISTS needs a single SELECT", _JOIN_HINT)
    clauses = (select.group, select.having, select.limit, select.offset, select.qualify)
    if any(clause is not None for clause in clauses) or select.order or select.with_queries:
        raise refuse(node, "EXISTS", "EXISTS supports only FROM and WHERE", _JOIN_HINT)
    items = binder.bind_from(select)
    if not any(isinstance(item.source, PrivateSource) for item in items):
        raise refuse(node, "EXISTS", "EXISTS over a public table is not supported", "Write it as a JOIN.")
    views = [view for item in items for view in item.views]
    conditions = conjuncts(select.where)
    inner_conditions = [condition for condition in conditions if reads_only(condition, views)]
    outer_conditions = [condition for condition in conditions if not reads_only(condition, views)]
    other, unused = join_sources(items, inner_conditions, context)
    other = apply_where(other, unused, context, binder)
    pairs = join_equalities(outer_conditions, rows.views, other.views)
    if len(pairs) != len(outer_conditions):
        left = next(condition for condition in outer_conditions if not any(condition is pair.node for pair in pairs))
        cause = "EXISTS can refer to the outer query only by equality on the privacy unit"
        raise refuse(left, "EXISTS", cause, "JOIN on the unit with this condition, and GROUP BY the unit.")
    return _semi_join(node, [(pair.left, pair.right) for pair in pairs], rows, other, has)


def _semi_join(
    node: exp.Expr,
    pairs: Sequence[tuple[BoundExpr, BoundExpr]],
    rows: PrivateSource,
    other: PrivateSource,
    has: SemiJoinKind,
) -> PrivateSource:
    """Return the semi-join on these pairs; Refused unless they are just the parts of the unit's key on both sides."""
    ours, theirs = rows.columns_by_name(), other.columns_by_name()
    indices = [(unit_key_index(left.expr, ours), unit_key_index(right.expr, theirs)) for left, right in pairs]
    key_indices = {left if left == right else None for left, right in indices}
    unit = rows.relation.shape.unit
    if unit is None:
        cause = "each row is its own privacy unit, so rows cannot be compared with other private rows"
        raise refuse(node, "WHERE", cause, "Query one private table at a time.")
    if key_indices != set(range(len(unit))):
        names = ", ".join(unit_key_names(rows)) or "the unit's columns, by joining the parent table first"
        cause = "private rows can be compared with other private rows only on the whole privacy unit"
        raise refuse(
            node, "WHERE", cause, f"Compare {names} with the same columns of the inner query, or write a JOIN."
        )
    relation = build_or_refuse(lambda: SemiJoinOnUnit(rows.relation, other.relation, has), node, "WHERE")
    return PrivateSource(relation, rows.views)
