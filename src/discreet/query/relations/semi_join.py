"""WHERE: conditions on single rows, and semi-joins on the unit by IN and EXISTS."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from discreet.kernel.expr import Call, Constant, Expr
from discreet.kernel.relation import SemiJoinKind, SemiJoinOnUnit, Where
from discreet.query.bind_context import BindContext
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.relations.bound_sources import (
    BoundSource,
    PrivateSource,
    PublicSource,
    bind_value,
    reads_only,
    stored_lookup,
)
from discreet.query.relations.from_clause import BoundItem, join_sources
from discreet.query.relations.ownership import unit_key_index, unit_key_names
from discreet.query.relations.predicates import conjuncts, filter_rows, narrow_ranges
from discreet.query.relations.unit_join import join_equalities
from discreet.query.syntax.resolved_query import NestedQuery, ResolvedQuery, ResolvedSelect
from discreet.query.syntax.source_position import build_or_refuse, refuse

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
    ours = [bind_value(each, stored_lookup(rows.views, "WHERE"), "WHERE") for each in nodes]
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
    pairs = list(zip(ours, theirs, strict=True))
    _check_unit_equality(node, pairs, rows, source)
    return PrivateSource(
        build_or_refuse(lambda: SemiJoinOnUnit(rows.relation, source.relation, has), node, "WHERE"), rows.views
    )


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
    _check_unit_equality(node, [(pair.left, pair.right) for pair in pairs], rows, other)
    return PrivateSource(
        build_or_refuse(lambda: SemiJoinOnUnit(rows.relation, other.relation, has), node, "WHERE"), rows.views
    )


def _check_unit_equality(
    node: exp.Expr, pairs: Sequence[tuple[BoundExpr, BoundExpr]], rows: PrivateSource, other: PrivateSource
) -> None:
    """Refuse unless the pairs are exactly the parts of the unit's key on both sides."""
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
