"""FROM and JOIN: tables of the policy, WITH queries, subqueries, and their joins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from sqlglot import exp

from discreet.policy import DeclaredTable
from discreet.query.bind_context import BindContext
from discreet.query.relations.predicates import conjuncts, filter_rows
from discreet.query.relations.scope import (
    BoundSource,
    ColumnInfo,
    PrivateSource,
    PublicSource,
    ReleasedSource,
    View,
    find_column,
    name_hint,
    same_name,
)
from discreet.query.relations.unit_join import inner_join, left_join
from discreet.query.syntax.source_position import quote_name, refuse
from discreet.query.table_sources import private_source, public_source

CteSources = dict[str, BoundSource]  # by name, inner ones last
_SOURCE_ARGUMENTS = {"this", "alias"}
_FUNCTION_SOURCE = "functions and lists are not supported in FROM"


def bind_source(
    node: exp.Expr, ctes: CteSources, context: BindContext, resolve: Callable[[exp.Query], BoundSource]
) -> BoundSource:
    """Bind one item of FROM."""
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        return _bind_table(node, ctes, context)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
        _check_arguments(node, _SOURCE_ARGUMENTS)
        return alias_source(resolve(node.this), node.args.get("alias"), node)
    if isinstance(node, exp.Lateral):
        raise refuse(node, "FROM", "LATERAL is not supported", "Write a JOIN.")
    if isinstance(node, exp.Subquery):
        raise refuse(node, "FROM", "joins in parentheses are not supported", "Write the joins one after another.")
    raise refuse(node, "FROM", _FUNCTION_SOURCE, "Name a table of the policy.")


def _bind_table(node: exp.Table, ctes: CteSources, context: BindContext) -> BoundSource:
    identifier = node.this
    cte = next((ctes[name] for name in reversed(ctes) if same_name(identifier, name)), None)
    _check_arguments(node, _SOURCE_ARGUMENTS)
    if cte is not None:
        alias = node.args.get("alias") or exp.TableAlias(this=identifier.copy())
        return alias_source(cte, alias, node)
    table = policy_table(node, context)
    alias = node.args.get("alias")
    name = alias.this.name if alias is not None and alias.this is not None else table.name
    make_source = public_source if table.public else private_source
    source = make_source(context.policy, context.public_tables, table, name)
    return alias_source(source, alias, node) if alias is not None and alias.args.get("columns") else source


def policy_table(node: exp.Table, context: BindContext) -> DeclaredTable:
    """Return the table of this name that the analyst may query."""
    tables = {table.name: table for table in context.visible_tables}
    table_found = next((table for name, table in tables.items() if same_name(node.this, name)), None)
    if table_found is None:
        raise refuse(
            node, "FROM", f"table {quote_name(node.this.name)} does not exist", name_hint(node.this.name, list(tables))
        )
    return table_found


def _check_arguments(node: exp.Expr, allowed: set[str]) -> None:
    surplus = [name for name, given in node.args.items() if given and name not in allowed]
    if "sample" in surplus:
        raise refuse(node, "FROM", "TABLESAMPLE is not supported", "Leave it out: sampling would only reduce accuracy.")
    if {"db", "catalog"} & set(surplus):
        raise refuse(node, "FROM", "schema names are not supported", "Write the table's name alone.")
    if surplus:
        feature = surplus[0].strip("_").upper()
        raise refuse(node, "FROM", f"{feature} is not supported in FROM", "Leave it out.")


def alias_source(source: BoundSource, alias: exp.TableAlias | None, node: exp.Expr) -> BoundSource:
    """Return a source with the alias and column names of the query."""
    if isinstance(source, ReleasedSource):
        return source
    name = alias.this.name if alias is not None and alias.this is not None else None
    columns = source.columns if isinstance(source, PrivateSource) else source.view.columns
    column_names = [each.name for each in (alias.args.get("columns") or ())] if alias is not None else []
    if len(column_names) > len(columns):
        raise refuse(
            node,
            "FROM",
            f"the table has {len(columns)} columns, but {len(column_names)} names were given",
            "Give as many names, or fewer.",
        )
    view = View(name, _rename_infos(columns, column_names))
    return (
        PrivateSource(source.relation, (view,))
        if isinstance(source, PrivateSource)
        else PublicSource(source.table, view)
    )


def _rename_infos(columns: tuple[ColumnInfo, ...], column_names: list[str]) -> tuple[ColumnInfo, ...]:
    names = [*column_names, *(info.name for info in columns[len(column_names) :])]
    return tuple(replace(known, name=name) for known, name in zip(columns, names, strict=True))


class JoinKind(Enum):
    """Which rows a join keeps: matches only, or all rows of one side."""

    INNER = ""
    LEFT = "LEFT"
    RIGHT = "RIGHT"


@dataclass(frozen=True)
class FromItem:
    """A source of FROM, and its JOIN (None for the first)."""

    source: PrivateSource | PublicSource
    node: exp.Expr
    join: exp.Join | None = None

    @property
    def views(self) -> tuple[View, ...]:
        """The named columns of the source."""
        return self.source.views if isinstance(self.source, PrivateSource) else (self.source.view,)

    @property
    def kind(self) -> JoinKind:
        """The kind of its join."""
        return JoinKind(self.join.side) if self.join else JoinKind.INNER


@dataclass(frozen=True)
class _JoinState:
    """The joins so far; public tables wait for the first private rows, and conditions for a join that can use them."""

    rows: PrivateSource | None
    pending_public: tuple[FromItem, ...]
    on: tuple[exp.Expr, ...]
    where: tuple[exp.Expr, ...]


def join_sources(
    items: Sequence[FromItem], where: Sequence[exp.Expr], context: BindContext
) -> tuple[PrivateSource, list[exp.Expr]]:
    """Join the sources in order, and return the conditions of WHERE that no join has used."""
    for item in items:
        _check_join(item)
    # With a RIGHT JOIN, applying a WHERE condition in an earlier join would change its meaning.
    where_last = any(item.kind is JoinKind.RIGHT for item in items)
    comma_joins = [item for item in items if item.join is not None and not _is_explicit_join(item.join)]
    if where_last and comma_joins:
        cause = "mixing a comma and a RIGHT JOIN in one FROM is ambiguous"
        raise refuse(comma_joins[0].node, "FROM", cause, "Write CROSS JOIN or JOIN … ON instead of the comma.")
    state = _JoinState(None, (), (), () if where_last else tuple(where))
    for item in items:
        state = _join_next(state, item, context)
    assert state.rows is not None
    rows = filter_rows(state.rows, state.on, "JOIN")
    return rows, list(where if where_last else state.where)


def _is_explicit_join(join: exp.Join) -> bool:
    """Return whether a join is written as JOIN rather than as a comma."""
    return bool(join.kind or join.side or join.method or join.args.get("on") or join.args.get("using"))


def _check_join(item: FromItem) -> None:
    join = item.join
    if join is None:
        return
    if join.method or join.kind in ("SEMI", "ANTI") or join.args.get("match_condition"):
        kind = join.method or join.kind or "this"
        raise refuse(
            item.node, "JOIN", f"{kind} JOIN is not supported", "Write JOIN … ON or USING with the conditions."
        )
    if join.side == "FULL":
        cause = "FULL JOIN would keep rows that belong to no privacy unit"
        raise refuse(item.node, "JOIN", cause, "Use LEFT JOIN with the private table on the left, or JOIN.")
    if item.kind is not JoinKind.INNER and not (join.args.get("on") or join.args.get("using")):
        raise refuse(item.node, "JOIN", f"{join.side} JOIN needs a condition", "Add ON or USING.")


def _join_next(state: _JoinState, item: FromItem, context: BindContext) -> _JoinState:
    item, state, on = _join_conditions(state, item)
    if item.kind is JoinKind.LEFT:
        if state.rows is None:
            raise _public_rows_refusal(item, "on the left")
        return replace(state, rows=left_join(state.rows, item.source, on, context, item.node))
    if item.kind is JoinKind.RIGHT:
        return _right_join(state, item, on, context)
    state = replace(state, on=state.on + on)
    if state.rows is None and isinstance(item.source, PublicSource):
        return replace(state, pending_public=(*state.pending_public, item))
    new_items: tuple[FromItem, ...] = (item,)
    if state.rows is None:
        assert isinstance(item.source, PrivateSource)
        new_items, state = state.pending_public, replace(state, rows=item.source, pending_public=())
    for public_item in new_items:
        state = _inner_join_next(state, public_item, context)
    return state


def _join_conditions(state: _JoinState, item: FromItem) -> tuple[FromItem, _JoinState, tuple[exp.Expr, ...]]:
    """Return the conditions of a join; USING hides the columns of one side from unqualified names."""
    join = item.join
    if join is None:
        return item, state, ()
    using = [each if isinstance(each, exp.Identifier) else each.this for each in join.args.get("using") or ()]
    if not all(isinstance(name, exp.Identifier) for name in using):
        raise refuse(item.node, "USING", "USING takes column names", "Write USING (a, b), or ON a.x = b.y.")
    if not using:
        return item, state, tuple(conjuncts(join.args.get("on")))
    before = [
        *(state.rows.views if state.rows else ()),
        *(view for each in state.pending_public for view in each.views),
    ]
    on = tuple(exp.EQ(this=_using_column(name, before), expression=_using_column(name, item.views)) for name in using)
    hidden = frozenset(name.name.lower() for name in using)
    if item.kind is JoinKind.RIGHT and state.rows is not None:
        views = tuple(replace(view, using_columns=view.using_columns | hidden) for view in state.rows.views)
        return item, replace(state, rows=PrivateSource(state.rows.relation, views)), on
    return replace(item, source=_hide_using_columns(item.source, hidden)), state, on


def _using_column(name: exp.Identifier, views: Sequence[View]) -> exp.Column:
    """Return a USING column, qualified with its source."""
    bare = exp.Column(this=name.copy())
    info = find_column(views, bare, "USING")
    alias = next(view.alias for view in views if any(info is column for column in view.columns))
    if alias is None:
        raise refuse(name, "USING", "a subquery without an alias cannot be joined with USING", "Give it an alias.")
    return exp.Column(this=exp.to_identifier(info.name, quoted=True), table=exp.to_identifier(alias, quoted=True))


def _hide_using_columns(source: PrivateSource | PublicSource, hidden: frozenset[str]) -> PrivateSource | PublicSource:
    if isinstance(source, PublicSource):
        return replace(source, view=replace(source.view, using_columns=source.view.using_columns | hidden))
    return replace(
        source, views=tuple(replace(view, using_columns=view.using_columns | hidden) for view in source.views)
    )


def _right_join(state: _JoinState, item: FromItem, on: tuple[exp.Expr, ...], context: BindContext) -> _JoinState:
    """Bind a RIGHT JOIN that keeps private rows, as a LEFT JOIN with the sides swapped."""
    if not isinstance(item.source, PrivateSource):
        raise _public_rows_refusal(item, "on the right")
    if state.rows is not None:
        before = filter_rows(state.rows, state.on, "JOIN")
        other: PrivateSource | PublicSource = before
    elif len(state.pending_public) == 1:
        other = state.pending_public[0].source
    else:
        cause = "a RIGHT JOIN after several public tables is not supported"
        raise refuse(item.node, "JOIN", cause, "Start FROM with the private table, and LEFT JOIN the others to it.")
    return _JoinState(left_join(item.source, other, on, context, item.node), (), (), state.where)


def _public_rows_refusal(item: FromItem, where: str) -> Exception:
    cause = f"this outer join would keep rows of the public table {where}, which belong to no privacy unit"
    return refuse(item.node, "JOIN", cause, "Write private LEFT JOIN public, or JOIN.")


def _inner_join_next(state: _JoinState, item: FromItem, context: BindContext) -> _JoinState:
    """Join on the usable equalities; other conditions filter the result."""
    assert state.rows is not None
    joined, used = inner_join(state.rows, item.source, (*state.on, *state.where), context, item.node)

    def unused(nodes: tuple[exp.Expr, ...]) -> tuple[exp.Expr, ...]:
        return tuple(node for node in nodes if not any(node is each for each in used))

    return replace(state, rows=joined, on=unused(state.on), where=unused(state.where))
