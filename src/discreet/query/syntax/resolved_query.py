"""A query whose names are resolved: typed, immutable nodes for queries, around syntax trees for expressions.

In an expression, every column carries its `Reference` (see `reference_of`), and every subquery is a `NestedQuery`.
Expressions are never modified; `rewrite` returns a changed copy. WITH queries are listed where they are defined, and
sources that read them share the same `WithQuery`.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from discreet.query.syntax.syntax_tree import NestedQuery, sql_of

_REFERENCE = "reference"


@dataclass(frozen=True)
class Reference:
    """A column of a source of FROM: the unique name of the source in the query, and the column's place there."""

    source: str
    index: int


@dataclass(frozen=True)
class ResolvedTable:
    """A table, known to the caller by its `key`: one that the query names, or that takes the place of a release.

    `declared_texts` has the declared values of each text column that has some.
    """

    key: Hashable
    columns: tuple[str, ...]
    is_single_row: bool = False
    declared_texts: tuple[tuple[str, ...], ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class ValuesSource:
    """VALUES (…), (…)."""

    rows: tuple[tuple[exp.Expr, ...], ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class WithQuery:
    """A WITH query, with a name that is unique in the whole query."""

    ref: str
    alias: str
    query: "ResolvedQuery"
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Join:
    """How a source is joined to those before it; USING is written out as ON."""

    side: str  # "", LEFT, RIGHT or FULL
    on: exp.Expr | None
    node: exp.Join

    @property
    def is_comma(self) -> bool:
        """Whether it is written as a comma."""
        return not (self.side or self.node.kind or self.on)


@dataclass(frozen=True)
class FromItem:
    """A source of FROM: its unique name, its name in the query, its columns, and its join (None for the first)."""

    ref: str
    alias: str | None
    source: "ResolvedTable | ValuesSource | WithQuery | ResolvedSelect | ResolvedSetOperation"
    columns: tuple[str, ...]
    node: exp.Expr
    join: Join | None = None


@dataclass(frozen=True)
class SelectItem:
    """One column of a SELECT list; `is_named` if it has an alias."""

    name: str
    node: exp.Expr
    is_named: bool = False


@dataclass(frozen=True)
class GroupBy:
    """GROUP BY, with positions and aliases replaced: the terms of each grouping set; without such, there is one set."""

    node: exp.Expr
    sets: tuple[tuple[exp.Expr, ...], ...]
    has_sets: bool = False


@dataclass(frozen=True)
class OrderTerm:
    """A term of ORDER BY: a column of the result by its index, or an expression."""

    node: exp.Expr
    index: int | None = None
    expression: exp.Expr | None = None


@dataclass(frozen=True)
class ResolvedSelect:
    """A SELECT. LIMIT and OFFSET are as written; `where_clause` names the clause of `where`: WHERE or HAVING."""

    ref: str
    node: exp.Expr
    items: tuple[SelectItem, ...]
    sources: tuple[FromItem, ...] = ()
    where: exp.Expr | None = None
    group: GroupBy | None = None
    having: exp.Expr | None = None
    qualify: exp.Expr | None = None
    order: tuple[OrderTerm, ...] = ()
    limit: exp.Expr | None = None
    offset: exp.Expr | None = None
    distinct: bool = False
    with_queries: tuple[WithQuery, ...] = ()
    where_clause: str = "WHERE"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(item.name for item in self.items)

    @property
    def grouped_expressions(self) -> Iterator[exp.Expr]:
        """The expressions that are computed after GROUP BY, which may contain aggregates."""
        yield from (item.node for item in self.items)
        yield from (each for each in (self.having, self.qualify) if each is not None)
        yield from (term.expression for term in self.order if term.expression is not None)

    @property
    def expressions(self) -> Iterator[exp.Expr]:
        """All expressions."""
        yield from self.grouped_expressions
        yield from (item.join.on for item in self.sources if item.join and item.join.on is not None)
        yield from (self.where,) if self.where is not None else ()
        yield from (term for terms in (self.group.sets if self.group else ()) for term in terms)


@dataclass(frozen=True)
class ResolvedSetOperation:
    """UNION, INTERSECT or EXCEPT."""

    ref: str
    node: exp.SetOperation
    left: "ResolvedQuery"
    right: "ResolvedQuery"
    order: tuple[OrderTerm, ...] = ()
    limit: exp.Expr | None = None
    offset: exp.Expr | None = None
    with_queries: tuple[WithQuery, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns, which are those of the left side."""
        return self.left.names


ResolvedQuery = ResolvedSelect | ResolvedSetOperation


def reference_of(column: exp.Expr) -> Reference:
    """Return what a column of a resolved expression refers to."""
    reference: Reference = column.meta[_REFERENCE]
    return reference


def columns_in(node: exp.Expr) -> list[exp.Column]:
    """Return the columns of a resolved expression, without those of its subqueries."""
    return [column for column in node.find_all(exp.Column) if _REFERENCE in column.meta]


def refer(column: exp.Column, reference: Reference) -> exp.Column:
    """Return a copy of a column that refers to a source."""
    copy = column.copy()
    copy.meta[_REFERENCE] = reference
    return copy


def column_of(item: FromItem, index: int) -> exp.Column:
    """Return a column of a source, as a query would write it."""
    table = None if item.alias is None else exp.to_identifier(item.alias, quoted=True)
    name = exp.to_identifier(item.columns[index], quoted=True)
    return refer(exp.Column(this=name, table=table), Reference(item.ref, index))


def computed_column(name: str, reference: Reference, original: exp.Expr) -> exp.Column:
    """Return a column that replaces an expression, with the source position and the SQL of that expression."""
    column = refer(exp.column(name), reference)
    column.this.meta.update(next((part.meta for part in original.walk() if "line" in part.meta), {}))
    column.meta["original_sql"] = lambda: sql_of(original)  # computed only for a refusal
    return column


def rewrite(node: exp.Expr, replacement: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """Return a copy of an expression in which whole parts are replaced, where `replacement` returns something.

    >>> from sqlglot import parse_one
    >>> rewrite(parse_one("a + b * a"), lambda part: exp.column("c") if part == exp.column("a") else None).sql()
    'c + b * c'
    """
    replaced = replacement(node)
    return rewrite_parts(node, replacement) if replaced is None else replaced


def rewrite_parts(node: exp.Expr, replacement: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """Return a copy of an expression in which parts, but not the whole, are replaced."""

    def rewritten(value: Any) -> Any:
        if isinstance(value, list):
            return [rewritten(each) for each in value]
        return rewrite(value, replacement) if isinstance(value, exp.Expr) else value

    copy = type(node)(**{name: rewritten(value) for name, value in node.args.items()})
    copy.meta.update(node.meta)
    return copy


def map_nested(query: ResolvedQuery, change: Callable[[ResolvedQuery], ResolvedQuery]) -> ResolvedQuery:
    """Return a query with the subqueries of its own expressions changed."""
    if isinstance(query, ResolvedSetOperation):
        return query

    def replaced(node: exp.Expr) -> exp.Expr | None:
        return node.with_query(change(node.query)) if isinstance(node, NestedQuery) else None

    def of(node: exp.Expr) -> exp.Expr:
        return node if node.find(NestedQuery) is None else rewrite(node, replaced)

    def of_clause(node: exp.Expr | None) -> exp.Expr | None:
        return None if node is None else of(node)

    return replace(
        query,
        items=tuple(replace(item, node=of(item.node)) for item in query.items),
        sources=tuple(
            item if item.join is None else replace(item, join=replace(item.join, on=of_clause(item.join.on)))
            for item in query.sources
        ),
        where=of_clause(query.where),
        group=query.group
        and replace(query.group, sets=tuple(tuple(of(term) for term in terms) for terms in query.group.sets)),
        having=of_clause(query.having),
        qualify=of_clause(query.qualify),
        order=tuple(replace(term, expression=of_clause(term.expression)) for term in query.order),
    )


def inner_queries(query: ResolvedQuery) -> Iterator[ResolvedQuery]:
    """Yield the queries directly inside a query: WITH, both sides, FROM, and subqueries of expressions."""
    yield from (each.query for each in query.with_queries)
    if isinstance(query, ResolvedSetOperation):
        yield from (query.left, query.right)
        return
    yield from (item.source for item in query.sources if isinstance(item.source, ResolvedQuery))
    yield from (nested.query for node in query.expressions for nested in node.find_all(NestedQuery))


def all_sources(query: ResolvedQuery) -> Iterator[FromItem]:
    """Yield the sources of a query that are no queries themselves, at any depth, inner ones first."""
    for inner in inner_queries(query):
        yield from all_sources(inner)
    if isinstance(query, ResolvedSelect):
        yield from (item for item in query.sources if not isinstance(item.source, ResolvedQuery))
