"""Scopes: the columns that an expression can name, found as in PostgreSQL."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.policy.problems import shorten
from discreet.query.syntax.names import matching, name_hint, same_name
from discreet.query.syntax.resolved_query import FromItem, Join, Reference, ResolvedTable, column_of, refer
from discreet.query.syntax.syntax_tree import quote_name, refuse, sql_of


@dataclass(frozen=True)
class ScopeColumn:
    """A column that a query can name: its source (none for a column merged by USING), and what it refers to."""

    name: str
    merged: exp.Expr | None
    item: FromItem | None
    reference: Reference | None

    @property
    def value(self) -> exp.Expr:
        """The column as a query would write it."""
        if self.merged is not None:
            return self.merged
        assert self.item is not None
        assert self.reference is not None
        return column_of(self.item, self.reference.index)


@dataclass(frozen=True)
class Scope:
    """The sources of FROM so far, the columns that USING merged, and the scope around a subquery."""

    items: tuple[FromItem, ...] = ()
    merged: tuple[ScopeColumn, ...] = ()
    hidden: frozenset[Reference] = frozenset()
    outer: "Scope | None" = None

    @cached_property
    def columns(self) -> tuple[ScopeColumn, ...]:
        """The columns in the order of *: those of USING first."""
        return (*self.merged, *(each for each in self._own if each.reference not in self.hidden))

    @cached_property
    def _own(self) -> tuple[ScopeColumn, ...]:
        return tuple(
            ScopeColumn(name, None, item, Reference(item.ref, index))
            for item in self.items
            for index, name in enumerate(item.columns)
        )

    @cached_property
    def _by_name(self) -> dict[str, list[ScopeColumn]]:
        by_name: dict[str, list[ScopeColumn]] = {}
        for column in self.columns:
            by_name.setdefault(column.name.lower(), []).append(column)
        return by_name

    def candidates(self, node: exp.Column) -> list[ScopeColumn]:
        """Return the columns of this scope that a name can mean."""
        table = node.args.get("table")
        if table is None:
            return matching(node.this, self._by_name.get(node.name.lower(), []))
        aliases = {item.ref for item in self.items if item.alias is not None and same_name(table, item.alias)}
        return matching(node.this, [each for each in self._own if each.item and each.item.ref in aliases])

    def find(self, node: exp.Column, clause: str, aliases: Sequence[str] = ()) -> exp.Expr:
        """Return the column that a name means; unknown and ambiguous names are refused, with a hint to `aliases`."""
        if node.args.get("db") or node.args.get("catalog"):
            hint = "Write table.column, with the table's alias if it has one."
            raise refuse(node, clause, f"column reference {quote_name(node.name)} has too many parts", hint)
        scope: Scope | None = self
        while scope is not None:
            candidates = scope.candidates(node)
            if len(candidates) > 1:
                sources = [each.item for each in candidates if each.item is not None]
                qualified = dict.fromkeys(f"{item.alias}.{node.name}" for item in sources if item.alias)
                hint = f"Write {' or '.join(qualified)}." if qualified else "Give the columns different names."
                raise refuse(node, clause, f"column reference {quote_name(node.name)} is ambiguous", hint)
            if candidates:
                reference = candidates[0].reference
                return refer(node, reference) if reference is not None else candidates[0].value.copy()
            scope = scope.outer
        raise self._unknown(node, clause, aliases)

    def _unknown(self, node: exp.Column, clause: str, aliases: Sequence[str]) -> Refused:
        table = node.args.get("table")
        items = [item for item in self.items if table is None or (item.alias and same_name(table, item.alias))]
        if table is not None and not items:
            return _missing_source(table, node, clause)
        names = [*(aliases if table is None else ()), *(name for item in items for name in item.columns)]
        hint = name_hint(node.name, list(dict.fromkeys(names))) if items else "Add FROM and a table of the policy."
        if table is None and self._declares_text(node.name):
            hint += f" Text needs single quotes: {sql_of(exp.Literal.string(shorten(node.name)))}."
        return refuse(node, clause, f"column {quote_name(node.name)} does not exist", hint)

    def _declares_text(self, text: str) -> bool:
        """Return whether a text is a declared value of a column of a table that a column can name."""
        scope: Scope | None = self
        while scope is not None:
            tables = [item.source for item in scope.items if isinstance(item.source, ResolvedTable)]
            if any(text in texts for table in tables for texts in table.declared_texts):
                return True
            scope = scope.outer
        return False

    def expand_star(self, node: exp.Expr) -> list[ScopeColumn]:
        """Return the columns of * or source.*."""
        star = node if isinstance(node, exp.Star) else node.this
        if any(star.args.values()):
            raise refuse(node, "SELECT", "* with EXCEPT, REPLACE or RENAME is not supported", "List the columns.")
        table = node.args.get("table")
        if table is None:
            return list(self.columns)
        item = next((item for item in self.items if item.alias is not None and same_name(table, item.alias)), None)
        if item is None:
            raise _missing_source(table, node, "SELECT")
        return [each for each in self._own if each.item is item]

    def join(self, item: FromItem) -> "Scope":
        """Return the scope with one more source."""
        return replace(self, items=(*self.items, item))

    def join_using(self, item: FromItem, join: Join, names: Sequence[exp.Identifier]) -> "Scope":
        """Return the scope with one more source, whose columns of these names are merged with ours."""
        right = Scope((item,))
        pairs = [(_only(self, name), _only(right, name)) for name in names]
        tests: list[exp.Expr] = [exp.EQ(this=one.value.copy(), expression=other.value.copy()) for one, other in pairs]
        merged = [_merged(one, other, join.side) for one, other in pairs]
        hidden = {each.reference for pair in pairs for each in pair if each.reference is not None}
        kept = tuple(each for each in self.merged if not any(each is one for one, _ in pairs))
        item = replace(item, join=replace(join, on=reduce(lambda a, b: exp.And(this=a, expression=b), tests)))
        return Scope((*self.items, item), (*merged, *kept), self.hidden | hidden, self.outer)


def _only(scope: Scope, name: exp.Identifier) -> ScopeColumn:
    """Return the one column that USING can mean."""
    column, own = exp.Column(this=name.copy()), replace(scope, outer=None)
    own.find(column, "USING")  # refuses unknown and ambiguous names
    return own.candidates(column)[0]


def _merged(left: ScopeColumn, right: ScopeColumn, side: str) -> ScopeColumn:
    """Return a column merged by USING: that of the side whose rows are all kept."""
    if side == "FULL":
        return ScopeColumn(left.name, exp.Coalesce(this=left.value, expressions=[right.value]), None, None)
    kept = right if side == "RIGHT" else left
    return ScopeColumn(left.name, kept.value, None, kept.reference)


def _missing_source(table: exp.Expr, node: exp.Expr, clause: str) -> Refused:
    cause = f"missing FROM-clause entry for table {quote_name(table.name)}"
    return refuse(node, clause, cause, "Use the names or aliases of FROM.")
