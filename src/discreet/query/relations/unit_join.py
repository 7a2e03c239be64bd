"""Joins of private rows with a public table, or with other private rows on the privacy unit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt

from sqlglot import exp

from discreet.kernel.expr import Call, Column, Expr, Type
from discreet.kernel.relation import (
    Derive,
    JoinKind,
    JoinOnUnit,
    JoinPublic,
    Relation,
    Scan,
    SemiJoinOnUnit,
    Union,
)
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.relations.bound_sources import (
    BindContext,
    PrivateSource,
    PublicSource,
    View,
    bind_stored,
    private_without_clashes,
    public_without_clashes,
    reads_only,
    unused_name,
)
from discreet.query.relations.ownership import parent_keys_of, unit_key_index, unit_key_names
from discreet.query.relations.predicates import bind_condition, conjunction
from discreet.query.syntax.resolved_query import columns_in
from discreet.query.syntax.syntax_tree import build_or_refuse, first_subquery, refuse

_WIDENING = {(Type.INTEGER, Type.REAL): "to_real", (Type.DATE, Type.TIMESTAMP): "to_timestamp"}
Nodes = Sequence[exp.Expr]


@dataclass(frozen=True)
class JoinSpec:
    """The kind of a join, its context, and its place in the query."""

    keep: JoinKind
    context: BindContext
    node: exp.Expr


@dataclass(frozen=True)
class JoinEquality:
    """An equality between an expression of each side."""

    left: BoundExpr
    right: BoundExpr
    node: exp.Expr


def join_source(
    rows: PrivateSource, source: PrivateSource | PublicSource, nodes: Nodes, spec: JoinSpec
) -> tuple[PrivateSource, list[exp.Expr]]:
    """Return the join, and the conditions that it used: an inner join uses only equalities, a left join all."""
    taken = rows.relation.shape.schema
    if isinstance(source, PrivateSource):
        other = private_without_clashes(source, taken)
        pairs = join_equalities(nodes, rows.views, other.views)
        others = _other_conditions(nodes, pairs, (*rows.views, *other.views), spec)
        conditions = [*_conditions_beyond_unit(rows, other, pairs, spec.node), *others]
        return _join_private(rows, other, conditions, spec), [pair.node for pair in pairs]
    public = public_without_clashes(source, taken)
    pairs = [pair for pair in join_equalities(nodes, rows.views, (public.view,)) if _is_public_key(pair)]
    condition = conjunction(_other_conditions(nodes, pairs, (*rows.views, public.view), spec))
    return _join_public(rows, public, pairs, condition, spec), [pair.node for pair in pairs]


def _other_conditions(nodes: Nodes, pairs: Sequence[JoinEquality], views: Sequence[View], spec: JoinSpec) -> list[Expr]:
    """Return the conditions of a left join beyond the equalities; those of an inner join filter its result."""
    if spec.keep is JoinKind.INNER:
        return []
    return [bind_condition(node, views, "ON") for node in nodes if not any(node is pair.node for pair in pairs)]


def join_equalities(nodes: Nodes, ours: Sequence[View], theirs: Sequence[View]) -> list[JoinEquality]:
    """Return the conditions that are equalities between the two sides."""
    equalities = []
    for node in nodes:
        bare = node.unnest()
        if not isinstance(bare, exp.EQ) or first_subquery(bare) is not None:
            continue
        for left, right in ((bare.this, bare.expression), (bare.expression, bare.this)):
            if _reads_columns(left, ours) and _reads_columns(right, theirs):
                pair = (
                    bind_stored(left, ours, "ON"),
                    bind_stored(right, theirs, "ON"),
                )
                equalities.append(JoinEquality(*pair, node))
                break
    return equalities


def _reads_columns(node: exp.Expr, views: Sequence[View]) -> bool:
    """Return whether an expression reads columns, all of them from these views."""
    return bool(columns_in(node)) and reads_only(node, views)


def _is_public_key(pair: JoinEquality) -> bool:
    """Return whether an equality can be a join key: a column of the public table, and a value of the same type."""
    same = pair.left.type is pair.right.type or (pair.left.type, pair.right.type) in _WIDENING
    return same and isinstance(pair.right.expr, Column)


def _join_public(
    rows: PrivateSource, public: PublicSource, pairs: Sequence[JoinEquality], condition: Expr | None, spec: JoinSpec
) -> PrivateSource:
    names = {name: column.name for name, column in public.table.columns}
    theirs = [pair.right.expr.name for pair in pairs if isinstance(pair.right.expr, Column)]
    fanout = max(1, spec.context.public_tables.fanout(public.table.table, tuple(names[name] for name in theirs)))
    _check_fanout(rows.relation, fanout, spec, public)
    relation, ours = _with_key_columns(
        rows.relation, [_widen(pair.left.expr, pair.right.type) for pair in pairs], list(names)
    )
    equal = tuple(dict.fromkeys(zip(ours, theirs, strict=True)))
    joined = build_or_refuse(
        lambda: JoinPublic(relation, public.table, equal, condition, spec.keep, fanout), spec.node, "JOIN"
    )
    view = _nullable_view(public.view) if spec.keep is JoinKind.LEFT else public.view
    return PrivateSource(joined, (*rows.views, view))


def _widen(expr: Expr, kind: Type) -> Expr:
    return expr if expr.type is kind else Call(_WIDENING[expr.type, kind], (expr,))


def _with_key_columns(relation: Relation, keys: Sequence[Expr], taken: Sequence[str]) -> tuple[Relation, list[str]]:
    """Return the columns that hold the keys, derived if necessary."""
    schema = relation.shape.schema
    computed: dict[Expr, str] = {}
    for key in keys:
        if not isinstance(key, Column) and key not in computed:
            computed[key] = unused_name("joined", [*schema, *taken, *computed.values()])
    if computed:
        columns = tuple((name, Column(name, kind)) for name, kind in schema.items())
        relation = Derive(relation, (*columns, *((name, key) for key, name in computed.items())))
    return relation, [key.name if isinstance(key, Column) else computed[key] for key in keys]


def _nullable_view(view: View) -> View:
    """Return a view whose columns may be NULL, as the optional side of an outer join; NULL forms a group."""
    return replace(
        view,
        columns=tuple(
            replace(info, null_is_group=True, parent_keys=frozenset(), window=None, constant_per_unit=False)
            for info in view.columns
        ),
    )


def _join_private(
    rows: PrivateSource, other: PrivateSource, conditions: Sequence[Expr], spec: JoinSpec
) -> PrivateSource:
    limit = spec.context.max_join_fanout
    fanout = _fanout_of(rows.relation) * _fanout_of(other.relation)
    if fanout > limit:
        cause = f"public tables on both sides could turn one private row into {fanout:,} rows; the limit is {limit:,}"
        raise refuse(
            spec.node, "JOIN", cause, "Join public tables after the private ones, on columns that are unique there."
        )
    max_rows_per_side = isqrt(
        10 * limit
    )  # rows per unit on each side, so that its pairs are little more work than the bound
    joined = build_or_refuse(
        lambda: JoinOnUnit(rows.relation, other.relation, conjunction(conditions), spec.keep, max_rows_per_side),
        spec.node,
        "JOIN",
    )
    views = tuple(map(_nullable_view, other.views)) if spec.keep is JoinKind.LEFT else other.views
    return PrivateSource(joined, (*rows.views, *views))


def _conditions_beyond_unit(
    rows: PrivateSource, other: PrivateSource, pairs: Sequence[JoinEquality], node: exp.Expr
) -> list[Expr]:
    """Return the equalities beyond the unit's key; Refused unless all together imply the unit's key."""
    key_indices, shares_parent_key, conditions = set(), False, []
    ours, theirs = rows.columns_by_name(), other.columns_by_name()
    for pair in pairs:
        key_index = unit_key_index(pair.left.expr, ours)
        if key_index is not None and key_index == unit_key_index(pair.right.expr, theirs):
            key_indices.add(key_index)
            continue
        shares_parent_key = shares_parent_key or bool(
            parent_keys_of(pair.left.expr, ours) & parent_keys_of(pair.right.expr, theirs)
        )
        conditions.append(bind_condition(pair.node, (*rows.views, *other.views), "ON"))
    unit = rows.relation.shape.unit
    if unit is None or other.relation.shape.unit is None:
        cause = "each row is its own privacy unit, so private tables cannot be joined"
        raise refuse(node, "JOIN", cause, "Query one private table at a time.")
    if not shares_parent_key and key_indices != set(range(len(unit))):
        raise _unit_join_refusal(rows, other, node)
    return conditions


def _unit_join_refusal(rows: PrivateSource, other: PrivateSource, node: exp.Expr) -> Exception:
    sides = [unit_key_names(source) for source in (rows, other)]
    pairs = [f"{left} = {right}" for left, right in zip(*sides, strict=False)]
    hint = f"Add {' AND '.join(pairs)}." if pairs else "Join on the column that references the parent table."
    return refuse(node, "JOIN", "two private tables can be joined only by equality on the whole privacy unit", hint)


def _check_fanout(relation: Relation, fanout: int, spec: JoinSpec, public: PublicSource) -> None:
    total_fanout, limit = _fanout_of(relation) * fanout, spec.context.max_join_fanout
    if total_fanout > limit:
        name = public.table.table
        cause = f"joining {name} could turn one private row into {total_fanout:,} rows; the limit is {limit:,}"
        hint = "Join on a column that is unique there, or ask the owner to raise join_limit."
        raise refuse(spec.node, "JOIN", cause, hint)


def _fanout_of(relation: Relation) -> int:
    """Return the number of rows that one private row may have become through public tables."""
    match relation:
        case Scan():
            return 1
        case JoinOnUnit(left, right) | SemiJoinOnUnit(left, right):
            return _fanout_of(left) * _fanout_of(right)
        case Union(left, right):
            return _fanout_of(left) + _fanout_of(right)
    return _fanout_of(relation.source) * (relation.fanout if isinstance(relation, JoinPublic) else 1)
