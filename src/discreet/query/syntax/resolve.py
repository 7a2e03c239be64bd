"""Resolve the names of a query: every column, alias, position, * and WITH query, the same for private rows, public
tables and released tables.

    SELECT *, t.a AS b FROM t ORDER BY b    →    SELECT s0.a, s0.a AS b FROM t AS s0 ORDER BY 2
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.query.syntax.names import distinct_names, folded_name, matching, output_name, same_name
from discreet.query.syntax.resolved_query import (
    FromItem,
    GroupBy,
    Join,
    OrderTerm,
    ResolvedQuery,
    ResolvedSelect,
    ResolvedSetOperation,
    ResolvedTable,
    SelectItem,
    ValuesSource,
    WithQuery,
    all_sources,
    columns_in,
    rewrite,
)
from discreet.query.syntax.scope import Scope
from discreet.query.syntax.syntax_tree import (
    MAX_COLUMNS,
    SET_NODES,
    NestedQuery,
    first_aggregate,
    first_window,
    grouping_sets,
    line_number,
    nodes_without_subqueries,
    quote_name,
    refuse,
    sql_of,
    surplus_arguments,
)

FindTable = Callable[[exp.Table], ResolvedTable]  # refuses tables that do not exist
WithQueries = Mapping[str, WithQuery]  # by folded name, inner ones last
_CLAUSES = "with_ expressions distinct from_ joins where group having qualify windows order limit offset"
_SET_CLAUSES = "with_ this expression distinct order limit offset"
_CLAUSE_NAMES = {
    "locks": "FOR UPDATE",
    "sample": "TABLESAMPLE",
    "rollup": "WITH ROLLUP",
    "cube": "WITH CUBE",
    "totals": "WITH TOTALS",
}
_CLAUSE_HINTS = {
    **dict.fromkeys(("rollup", "cube", "totals"), "Write GROUP BY ROLLUP (…), CUBE (…) or GROUPING SETS (…)."),
    "locks": "Leave it out.",
    "sample": "Leave it out: sampling would only reduce accuracy.",
}
_MAX_VALUES = 10_000


def resolve_query(query: exp.Expr, find_table: FindTable) -> ResolvedQuery:
    """Resolve the names of a query.

    >>> from sqlglot import parse_one
    >>> table = ResolvedTable("t", ("a", "b"))
    >>> resolved = resolve_query(parse_one("SELECT *, a + 1 AS c FROM t ORDER BY c", read="postgres"), lambda _: table)
    >>> resolved.names, resolved.order[0].index
    (('a', 'b', 'c'), 2)
    """
    refs = {id(node): f"s{number}" for number, node in enumerate(query.find_all(exp.Table, exp.Query, exp.Values))}
    return _Resolver(find_table, refs).query(query, {}, None)


@dataclass(frozen=True)
class _Expressions:
    """How the expressions of one SELECT are resolved: its scope, its windows, and what aliases stand for."""

    resolver: "_Resolver"
    scope: Scope
    ctes: WithQueries
    windows: Mapping[str, exp.Expr]

    def resolve(self, node: exp.Expr, clause: str, aliases: Sequence[SelectItem] = ()) -> exp.Expr:
        """Return an expression with its names resolved; `aliases` may be used where FROM has no such column."""

        def replacement(part: exp.Expr) -> exp.Expr | None:
            if isinstance(part, exp.Query):
                return self._nested(part)
            if isinstance(part, exp.Window) and part.args.get("alias") is not None:
                return self.resolve(self._with_named_window(part, clause), clause, aliases)
            if not isinstance(part, exp.Column):
                return None
            if isinstance(part.this, exp.Star):
                cause = f"{part.table}.* is not a value"
                raise refuse(part, clause, cause, "Name a column.")
            named = _alias_of(part, aliases) if not self.scope.candidates(part) else None
            if named is not None:
                return exp.paren(named.node.copy())
            return self.scope.find(part, clause, [item.name for item in aliases if item.is_named])

        resolved = rewrite(node, replacement)
        if not any("line" in part.meta for part in resolved.walk()):
            resolved.meta["line"] = line_number(node)
        return resolved

    def _nested(self, node: exp.Query) -> exp.Expr:
        query = self.resolver.query(node, self.ctes, self.scope)
        nested = NestedQuery(query=query)
        nested.meta.update(line=line_number(node), original_sql=lambda: sql_of(node))
        return nested

    def _with_named_window(self, window: exp.Window, clause: str) -> exp.Expr:
        """Return a window function with the clauses of the window that it names."""
        name = window.args["alias"].name.lower()
        if name not in self.windows:
            raise refuse(window, clause, f"window {quote_name(name)} does not exist", "Name it with WINDOW … AS (…).")
        inherited = {key: self.windows[name].args.get(key) for key in ("partition_by", "order", "spec")}
        own = {key: value for key, value in window.args.items() if value and key not in ("alias", "over")}
        merged = exp.Window(**{**inherited, **own})
        merged.meta.update(window.meta)
        return merged


@dataclass(frozen=True)
class _Resolver:
    find_table: FindTable
    refs: Mapping[int, str]  # a unique name for each source and query, by its node

    def query(self, node: exp.Expr, ctes: WithQueries, outer: Scope | None) -> ResolvedQuery:
        """Resolve a SELECT or a set operation."""
        match node:
            case exp.Subquery() if isinstance(node.this, exp.Query):
                _check_arguments(node, "this with_ alias", "SELECT")
                own, ctes = self._with(node, ctes)
                return _add_with(own, self.query(node.this, ctes, outer))
            case exp.Select():
                _check_arguments(node, _CLAUSES, "SELECT")
                own, ctes = self._with(node, ctes)
                return _add_with(own, self._select(node, ctes, outer))
            case exp.SetOperation():
                _check_arguments(node, _SET_CLAUSES, type(node).__name__.upper())
                own, ctes = self._with(node, ctes)
                return _add_with(own, self._set_operation(node, ctes, outer))
        raise refuse(node, "SELECT", "only SELECT is supported here", "Write SELECT … FROM a table of the policy.")

    def _with(self, node: exp.Expr, ctes: WithQueries) -> tuple[tuple[WithQuery, ...], WithQueries]:
        clause = node.args.get("with_")
        if clause is None:
            return (), ctes
        if clause.recursive:
            raise refuse(
                clause, "WITH", "recursive queries are not supported", "Write each step as a query of its own."
            )
        own, visible = [], dict(ctes)
        for cte in clause.expressions:
            query, alias = self.query(cte.this, visible, None), cte.args["alias"]
            columns = _renamed(query.names, alias, cte)
            name = folded_name(alias.this)
            visible.pop(name, None)  # so that the new one comes last
            visible[name] = WithQuery(f"{self.refs[id(cte.this)]}w", alias.this.name, query, columns)
            own.append(visible[name])
        return tuple(own), visible

    def _select(self, node: exp.Select, ctes: WithQueries, outer: Scope | None) -> ResolvedSelect:
        if not node.expressions:
            raise refuse(node, "SELECT", "the SELECT list is empty", "Add an aggregate such as COUNT(*).")
        if node.args.get("distinct") and node.args["distinct"].args.get("on"):
            hint = "Use GROUP BY, or QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1."
            raise refuse(node.args["distinct"], "SELECT", "DISTINCT ON is not supported", hint)
        windows = {window.this.name.lower(): window for window in node.args.get("windows") or ()}
        scope = self._from(node, ctes, outer)
        expressions = _Expressions(self, scope, ctes, windows)
        where = _argument(node, "where")
        if where is not None:
            _check_aliases(where, "WHERE", node, scope)
            where = expressions.resolve(where, "WHERE")
        items = _select_list(node, expressions)
        having, qualify = (
            None
            if (condition := _argument(node, name)) is None
            else expressions.resolve(condition, name.upper(), items)
            for name in ("having", "qualify")
        )
        group = node.args.get("group")
        return ResolvedSelect(
            self.refs[id(node)],
            node,
            items,
            scope.items,
            where,
            None if group is None else _group_by(group, items, expressions),
            having,
            qualify,
            tuple(_order_term(term, items, expressions) for term in _order_nodes(node)),
            node.args.get("limit"),
            node.args.get("offset"),
            distinct=node.args.get("distinct") is not None,
        )

    def _set_operation(self, node: exp.SetOperation, ctes: WithQueries, outer: Scope | None) -> ResolvedSetOperation:
        left, right = (self.query(side, ctes, outer) for side in (node.this, node.expression))
        if len(left.names) != len(right.names):
            cause = f"the two sides have different numbers of columns, {len(left.names)} and {len(right.names)}"
            raise refuse(node, type(node).__name__.upper(), cause, "Select the same columns on both sides.")
        order = tuple(_result_column(term, left.names) for term in _order_nodes(node))
        limit, offset = node.args.get("limit"), node.args.get("offset")
        return ResolvedSetOperation(self.refs[id(node)], node, left, right, order, limit, offset)

    def _from(self, select: exp.Select, ctes: WithQueries, outer: Scope | None) -> Scope:
        """Return the scope of FROM; conditions of joins see the sources so far."""
        scope, begin = Scope(outer=outer), select.args.get("from_")
        if begin is None:
            return scope
        _check_arguments(begin, "this", "FROM")
        scope = scope.join(self._source(begin.this, ctes, scope))
        for node in select.args.get("joins") or ():
            join, item = Join(_join_side(node), None, node), self._source(node.this, ctes, scope)
            if node.args.get("using"):
                scope = scope.join_using(item, join, _using_names(node))
                continue
            wider, on = scope.join(item), node.args.get("on")
            on = None if on is None else _Expressions(self, wider, ctes, {}).resolve(on, "ON")
            scope = scope.join(replace(item, join=replace(join, on=on)))
        return scope

    def _source(self, node: exp.Expr, ctes: WithQueries, scope: Scope) -> FromItem:
        """Resolve one source of FROM."""
        alias, ref = node.args.get("alias"), self.refs.get(id(node), "")
        source: ResolvedTable | ValuesSource | WithQuery | ResolvedQuery
        name: str | None = None
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                _check_arguments(node, "this alias db catalog", "FROM")
                cte = None if node.db else _with_query(node.this, ctes)
                source = self.find_table(node) if cte is None else cte
                name, columns = node.this.name, source.columns
            case exp.Subquery() if isinstance(node.this, exp.Query):
                source, name = self.query(node, ctes, None), None
                columns = source.names
            case exp.Values():
                _check_arguments(node, "expressions alias", "FROM")
                source, name = self._values(node, ctes), None
                columns = source.columns
            case exp.Lateral():
                raise refuse(node, "FROM", "LATERAL is not supported", "Write a JOIN.")
            case exp.Subquery():
                cause = "joins in parentheses are not supported"
                raise refuse(node, "FROM", cause, "Write the joins one after another.")
            case _:
                cause = "functions and lists are not supported in FROM"
                raise refuse(node, "FROM", cause, "Name a table of the policy.")
        if alias is not None and alias.this is not None:
            name = alias.this.name
        if name is not None and any(
            item.alias is not None and item.alias.lower() == name.lower() for item in scope.items
        ):
            cause = f"table name {quote_name(name)} specified more than once"
            raise refuse(node, "FROM", cause, "Give one of them another alias.")
        return FromItem(ref, name, source, _renamed(columns, alias, node), node)

    def _values(self, node: exp.Values, ctes: WithQueries) -> ValuesSource:
        rows = [expression.expressions for expression in node.expressions if isinstance(expression, exp.Tuple)]
        if len(rows) != len(node.expressions) or len({len(row) for row in rows}) != 1 or len(rows) > _MAX_VALUES:
            cause = "the VALUES lists differ in length, or there are too many"
            raise refuse(node, "VALUES", cause, "Write (…), (…) of equal length.")
        expressions = _Expressions(self, Scope(), ctes, {})
        resolved = tuple(tuple(expressions.resolve(each, "VALUES") for each in row) for row in rows)
        return ValuesSource(resolved, tuple(f"column{place + 1}" for place in range(len(rows[0]))))


def _with_query(identifier: exp.Expr, ctes: WithQueries) -> WithQuery | None:
    """Return the WITH query that a name means: the one with exactly this name, else the last that it may mean."""
    matches = [cte for cte in ctes.values() if same_name(identifier, cte.alias)]
    return ctes.get(folded_name(identifier), matches[-1] if matches else None)


def _argument(node: exp.Expr, name: str) -> exp.Expr | None:
    """Return the condition of a clause."""
    clause = node.args.get(name)
    return None if clause is None else clause.this


def _check_arguments(node: exp.Expr, allowed: str, clause: str) -> None:
    """Refuse clauses that are not supported."""
    if surplus := surplus_arguments(node, allowed):
        given = node.args[surplus[0]]
        feature = _CLAUSE_NAMES.get(surplus[0], surplus[0].strip("_").upper())
        cause = f"{given.upper() if isinstance(given, str) else feature} is not supported"
        raise refuse(node, clause, cause, _CLAUSE_HINTS.get(surplus[0], "Leave it out."))


def _add_with(own: Sequence[WithQuery], query: ResolvedQuery) -> ResolvedQuery:
    """Return a query with those of the WITH queries that it reads, so that the others cost nothing."""
    kept: list[WithQuery] = []
    read = {item.source.ref for item in all_sources(query) if isinstance(item.source, WithQuery)}
    for each in reversed(own):
        if each.ref in read:
            kept.insert(0, each)
            read |= {item.source.ref for item in all_sources(each.query) if isinstance(item.source, WithQuery)}
    return replace(query, with_queries=(*kept, *query.with_queries)) if kept else query


def _renamed(columns: Sequence[str], alias: exp.TableAlias | None, node: exp.Expr) -> tuple[str, ...]:
    """Return the columns of a source, with the names that AS t(a, b) gives to the first of them."""
    names = [each.name for each in (alias.args.get("columns") or ())] if alias is not None else []
    if len(names) > len(columns):
        cause = f"the table has {len(columns)} columns, but {len(names)} names were given"
        raise refuse(node, "FROM", cause, "Give as many names, or fewer.")
    return (*names, *columns[len(names) :])


def _join_side(join: exp.Join) -> str:
    """Return LEFT, RIGHT, FULL, or nothing for an inner join."""
    side, kind, method = (str(word or "").upper() for word in (join.side, join.kind, join.method))
    if method or kind in ("SEMI", "ANTI") or side not in ("", "LEFT", "RIGHT", "FULL"):
        name = " ".join(word for word in (method, side, kind) if word)
        raise refuse(
            join.this, "JOIN", f"{name} JOIN is not supported", "Write JOIN … ON or USING with the conditions."
        )
    _check_arguments(join, "this side kind on using", "JOIN")
    if (side or kind in ("INNER", "OUTER")) and not (join.args.get("on") or join.args.get("using")):
        raise refuse(join.this, "JOIN", f"{side or kind} JOIN needs a condition", "Add ON or USING.")
    return side


def _using_names(join: exp.Join) -> tuple[exp.Identifier, ...]:
    names = tuple(each if isinstance(each, exp.Identifier) else each.this for each in join.args.get("using") or ())
    if not all(isinstance(name, exp.Identifier) for name in names):
        raise refuse(join.this, "USING", "USING takes column names", "Write USING (a, b), or ON a.x = b.y.")
    return names


def _check_aliases(part: exp.Expr, clause: str, select: exp.Select, scope: Scope) -> None:
    """Refuse aliases of the SELECT list where they are not visible, with a hint."""
    aliases = [each.args["alias"] for each in select.expressions if isinstance(each, exp.Alias)]
    for node in nodes_without_subqueries(part):
        if not isinstance(node, exp.Column) or node.table or isinstance(node.this, exp.Star) or scope.candidates(node):
            continue
        if any(same_name(node.this, alias.name) for alias in aliases) and not (
            scope.outer and scope.outer.candidates(node)
        ):
            place = "the same list" if clause == "SELECT" else clause
            cause = f"column {quote_name(node.name)} does not exist: names of the SELECT list cannot be used in {place}"
            raise refuse(node, clause, cause, "Repeat the expression, or put the SELECT into a subquery.")


def _select_list(select: exp.Select, expressions: _Expressions) -> tuple[SelectItem, ...]:
    """Return the SELECT list with * expanded; names that the query did not write are distinct."""
    scope, limit = expressions.scope, _max_columns(expressions.scope)
    items: list[SelectItem] = []
    for node in select.expressions:
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            if not scope.items:
                raise refuse(node, "SELECT", "* needs a table in FROM", "Add FROM and a table of the policy.")
            columns = scope.expand_star(node)[: limit + 1]
            items += [SelectItem(column.name, column.value) for column in columns]
        else:
            inner = node.this if isinstance(node, exp.Alias) else node
            _check_aliases(inner, "SELECT", select, scope)
            named = isinstance(node, exp.Alias)
            items.append(SelectItem(output_name(node), expressions.resolve(inner, "SELECT"), is_named=named))
        if len(items) > limit:
            raise refuse(select, "SELECT", f"at most {limit:,} columns are supported", "Split the query.")
    written = [item.is_named or isinstance(item.node, exp.Column) for item in items]
    names = distinct_names(list(zip((item.name for item in items), written, strict=True)))
    return tuple(
        item if own else replace(item, name=name) for item, own, name in zip(items, written, names, strict=True)
    )


def _max_columns(scope: Scope) -> int:
    """Return how many columns a SELECT list may have: all those of wide tables, or of the widest subquery.

    Or else WITH queries that read another one twice would double the columns of * each time.
    """
    tables = sum(len(item.columns) for item in scope.items if isinstance(item.source, ResolvedTable))
    return max([MAX_COLUMNS, tables, *(len(item.columns) for item in scope.items)])


def _alias_of(column: exp.Column, items: Sequence[SelectItem]) -> SelectItem | None:
    """Return the item of the SELECT list whose alias a name means."""
    if column.table:
        return None
    named = [item for item in items if item.is_named and same_name(column.this, item.name)]
    return named[0] if len(named) == 1 else None


def _position(node: exp.Expr, count: int, clause: str) -> int | None:
    """Return the index of a position in the SELECT list; None if it is not a number."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    index = int(node.name) if node.name.isdecimal() and len(node.name) < 10 else 0
    if not 1 <= index <= count:
        hint = f"The SELECT list has {count} column{'' if count == 1 else 's'}."
        raise refuse(node, clause, f"{clause} position {node.name[:20]} is not in the SELECT list", hint)
    return index - 1


def _group_by(group: exp.Expr, items: Sequence[SelectItem], expressions: _Expressions) -> GroupBy:
    """Resolve GROUP BY: expressions, positions and aliases, ALL, or grouping sets."""
    _check_arguments(group, "expressions all", "GROUP BY")
    if not group.expressions and not group.args.get("all"):
        raise refuse(group, "GROUP BY", "GROUP BY has no expression", "Name the columns to group by.")
    if group.args.get("all"):
        return GroupBy(group, (tuple(item.node for item in items if _may_be_key(item.node)),))

    def term(node: exp.Expr) -> exp.Expr:
        index = _position(node, len(items), "GROUP BY")
        return expressions.resolve(node, "GROUP BY", items).unnest() if index is None else items[index].node

    has_sets = any(isinstance(node, SET_NODES) for node in group.expressions)
    return GroupBy(group, tuple(tuple(map(term, terms)) for terms in grouping_sets(group)), has_sets)


def _may_be_key(node: exp.Expr) -> bool:
    """Return whether GROUP BY ALL groups by an expression: it reads columns, but is no aggregate or window function."""
    return bool(columns_in(node)) and first_aggregate(node) is None and first_window(node) is None


def _order_nodes(node: exp.Expr) -> list[exp.Expr]:
    order = node.args.get("order")
    if order is None:
        return []
    _check_arguments(order, "expressions", "ORDER BY")
    for term in order.expressions:
        _check_arguments(term, "this desc nulls_first", "ORDER BY")
    return list(order.expressions)


def _order_term(ordered: exp.Expr, items: Sequence[SelectItem], expressions: _Expressions) -> OrderTerm:
    """Resolve a term of ORDER BY; names and positions of the result take precedence over columns of FROM."""
    term = ordered.this.unnest()
    index = _position(term, len(items), "ORDER BY")
    if index is None and isinstance(term, exp.Column) and not term.table:
        named = matching(term.this, items)
        if len({item.node for item in named}) > 1:
            cause = f"column reference {quote_name(term.name)} is ambiguous"
            raise refuse(term, "ORDER BY", cause, "Write the column's position instead.")
        index = items.index(named[0]) if named else None
    if index is not None:
        return OrderTerm(ordered, index)
    return OrderTerm(ordered, expression=expressions.resolve(ordered.this, "ORDER BY", items))


def _result_column(ordered: exp.Expr, names: Sequence[str]) -> OrderTerm:
    """Resolve a term of ORDER BY after UNION, INTERSECT or EXCEPT."""
    term = ordered.this
    index = _position(term, len(names), "ORDER BY")
    if index is None and isinstance(term, exp.Column) and not term.table:
        index = next((at for at, name in enumerate(names) if same_name(term.this, name)), None)
    if index is None:
        cause = "after UNION, ORDER BY takes only column names and positions"
        raise refuse(ordered, "ORDER BY", cause, "Write ORDER BY 1.")
    return OrderTerm(ordered, index)
