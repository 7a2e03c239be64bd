"""FROM and JOIN: private rows with public tables on anything, with other private rows on the whole unit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from sqlglot import exp

from discreet.sql.places import refuse
from discreet.sql.rows.conditions import conjuncts, filtered
from discreet.sql.rows.meeting import meet_inner, meet_outer
from discreet.sql.rows.scope import PublicRows, Rows, View, find
from discreet.sql.world import World


class Kind(Enum):
    """Which rows a join keeps."""

    INNER = ""
    LEFT = "LEFT"
    RIGHT = "RIGHT"


@dataclass(frozen=True)
class Item:
    """A source of FROM, and the JOIN that brings it in; the first has none."""

    source: Rows | PublicRows
    node: exp.Expr
    join: exp.Join | None = None

    @property
    def views(self) -> tuple[View, ...]:
        """What the source adds to the names of the query."""
        return self.source.views if isinstance(self.source, Rows) else (self.source.view,)

    @property
    def kind(self) -> Kind:
        """Which rows its join keeps."""
        return Kind(self.join.side) if self.join else Kind.INNER


@dataclass(frozen=True)
class _State:
    """What is joined so far; public tables wait for the first private rows, conditions for the join that they fit."""

    rows: Rows | None
    waiting: tuple[Item, ...]
    on: tuple[exp.Expr, ...]
    where: tuple[exp.Expr, ...]


def join_all(items: Sequence[Item], where: Sequence[exp.Expr], world: World) -> tuple[Rows, list[exp.Expr]]:
    """Join the sources in turn, and return the conditions of WHERE that no join has used."""
    for item in items:
        _check_join(item)
    # Beside a RIGHT JOIN a condition of WHERE would mean something else inside an earlier join.
    apart = any(item.kind is Kind.RIGHT for item in items)
    commas = [item for item in items if item.join is not None and not _words(item.join)]
    if apart and commas:
        cause = "a comma and a RIGHT JOIN in one FROM mean different things to different people"
        raise refuse(commas[0].node, "FROM", cause, "Write CROSS JOIN or JOIN … ON instead of the comma.")
    state = _State(None, (), (), () if apart else tuple(where))
    for item in items:
        state = _step(state, item, world)
    assert state.rows is not None
    rows = filtered(state.rows, state.on, "JOIN")
    return rows, list(where if apart else state.where)


def _words(join: exp.Join) -> bool:
    """Tell whether a join is more than a comma."""
    return bool(join.kind or join.side or join.method or join.args.get("on") or join.args.get("using"))


def _check_join(item: Item) -> None:
    join = item.join
    if join is None:
        return
    if join.method or join.kind in ("SEMI", "ANTI") or join.args.get("match_condition"):
        words = join.method or join.kind or "such a"
        raise refuse(
            item.node, "JOIN", f"{words} JOIN is not supported", "Write JOIN … ON or USING with the conditions."
        )
    if join.side == "FULL":
        cause = "FULL JOIN keeps rows that nobody owns"
        raise refuse(item.node, "JOIN", cause, "Use LEFT JOIN with the private table on the left, or JOIN.")
    if item.kind is not Kind.INNER and not (join.args.get("on") or join.args.get("using")):
        raise refuse(item.node, "JOIN", f"{join.side} JOIN needs a condition", "Add ON or USING.")


def _step(state: _State, item: Item, world: World) -> _State:
    item, state, on = _conditions(state, item)
    if item.kind is Kind.LEFT:
        if state.rows is None:
            raise _keeps_public(item, "on the left")
        return replace(state, rows=meet_outer(state.rows, item.source, on, world, item.node))
    if item.kind is Kind.RIGHT:
        return _right(state, item, on, world)
    state = replace(state, on=state.on + on)
    if state.rows is None and isinstance(item.source, PublicRows):
        return replace(state, waiting=(*state.waiting, item))
    brought: tuple[Item, ...] = (item,)
    if state.rows is None:
        assert isinstance(item.source, Rows)
        brought, state = state.waiting, replace(state, rows=item.source, waiting=())
    for each in brought:
        state = _inner(state, each, world)
    return state


def _conditions(state: _State, item: Item) -> tuple[Item, _State, tuple[exp.Expr, ...]]:
    """Return the conditions of a join; with USING, the columns of one side are no longer seen by their bare names."""
    join = item.join
    if join is None:
        return item, state, ()
    using = [each if isinstance(each, exp.Identifier) else each.this for each in join.args.get("using") or ()]
    if not all(isinstance(name, exp.Identifier) for name in using):
        raise refuse(item.node, "USING", "USING takes the names of columns", "Write USING (a, b), or ON a.x = b.y.")
    if not using:
        return item, state, tuple(conjuncts(join.args.get("on")))
    before = [*(state.rows.views if state.rows else ()), *(view for each in state.waiting for view in each.views)]
    on = tuple(exp.EQ(this=_named(name, before), expression=_named(name, item.views)) for name in using)
    hidden = frozenset(name.name.lower() for name in using)
    if item.kind is Kind.RIGHT and state.rows is not None:
        views = tuple(replace(view, merged=view.merged | hidden) for view in state.rows.views)
        return item, replace(state, rows=Rows(state.rows.relation, views)), on
    return replace(item, source=_merged(item.source, hidden)), state, on


def _named(name: exp.Identifier, views: Sequence[View]) -> exp.Column:
    """Write a column of USING with its source."""
    bare = exp.Column(this=name.copy())
    known = find(views, bare, "USING")
    alias = next(view.alias for view in views if any(known is each for each in view.columns))
    if alias is None:
        raise refuse(name, "USING", "a source without a name cannot be joined by USING", "Give it an alias.")
    return exp.Column(this=exp.to_identifier(known.name, quoted=True), table=exp.to_identifier(alias, quoted=True))


def _merged(source: Rows | PublicRows, hidden: frozenset[str]) -> Rows | PublicRows:
    if isinstance(source, PublicRows):
        return replace(source, view=replace(source.view, merged=source.view.merged | hidden))
    return replace(source, views=tuple(replace(view, merged=view.merged | hidden) for view in source.views))


def _right(state: _State, item: Item, on: tuple[exp.Expr, ...], world: World) -> _State:
    """Read a RIGHT JOIN that keeps private rows: it is a LEFT JOIN from the other side."""
    if not isinstance(item.source, Rows):
        raise _keeps_public(item, "on the right")
    if state.rows is not None:
        before = filtered(state.rows, state.on, "JOIN")
        other: Rows | PublicRows = before
    elif len(state.waiting) == 1:
        other = state.waiting[0].source
    else:
        cause = "a RIGHT JOIN after several public tables is not supported"
        raise refuse(item.node, "JOIN", cause, "Begin FROM with the private table, and LEFT JOIN the others to it.")
    return _State(meet_outer(item.source, other, on, world, item.node), (), (), state.where)


def _keeps_public(item: Item, where: str) -> Exception:
    cause = f"this outer join keeps rows of the public table {where}, which nobody owns"
    return refuse(item.node, "JOIN", cause, "Keep the private side: private LEFT JOIN public, or use JOIN.")


def _inner(state: _State, item: Item, world: World) -> _State:
    """Join on the equalities that fit; every other condition is applied to the result."""
    assert state.rows is not None
    joined, used = meet_inner(state.rows, item.source, (*state.on, *state.where), world, item.node)

    def unused(nodes: tuple[exp.Expr, ...]) -> tuple[exp.Expr, ...]:
        return tuple(node for node in nodes if not any(node is each for each in used))

    return replace(state, rows=joined, on=unused(state.on), where=unused(state.where))
