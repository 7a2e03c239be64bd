"""FROM and JOIN: the sources of a SELECT, and their joins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.kernel.relation import JoinKind
from discreet.query.bind_context import BindContext
from discreet.query.relations.bound_sources import BoundSource, ColumnInfo, PrivateSource, PublicSource, View
from discreet.query.relations.predicates import conjuncts, filter_rows
from discreet.query.relations.unit_join import JoinSpec, join_source
from discreet.query.syntax.resolved_query import FromItem
from discreet.query.syntax.source_position import refuse

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
