"""A SELECT over groups: its keys and aggregates are replaced by the columns that will hold them."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.sql.asked.groups import Grouped
from discreet.sql.places import quoted, refuse, written
from discreet.sql.rows.scope import knows, same_name, stored, value_of
from discreet.sql.rows.walking import first_query, is_aggregate, window_parts
from discreet.sql.values.declared import NotDeclared


@dataclass(frozen=True)
class Rewriting:
    """What replaces what: `key` gives the column of a key, `measure` that of an aggregate, `inner` reads a query."""

    read: Grouped
    key: Callable[[int], str]
    measure: Callable[[exp.Expr], str]
    inner: Callable[[exp.Query], exp.Query]
    column: Callable[[str], exp.Column]

    def shown(self, node: exp.Expr, clause: str) -> exp.Expr:
        """Return an expression over the columns of the groups."""
        found = self._replaced(node, clause)
        if found is None:
            found = node.copy()  # once: parts are replaced inside the copy
            self._replace_parts(found, clause)
        return found

    def _replace_parts(self, node: exp.Expr, clause: str) -> None:
        for child in list(node.iter_expressions()):
            found = self._replaced(child, clause)
            if found is None:
                self._replace_parts(child, clause)
            else:
                child.replace(found)

    def _replaced(self, node: exp.Expr, clause: str) -> exp.Expr | None:
        """Return what a whole expression stands for; None if only its parts do."""
        if isinstance(node, exp.Query):
            return self.inner(node)
        if isinstance(node, exp.Window):
            return self._window(node, clause)
        if is_aggregate(node):
            return self._placed(self.measure(node), node)
        if (place := self._place(node, clause)) is not None:
            return self._placed(self.key(place), node)
        if isinstance(node, exp.Star):
            raise refuse(node, clause, "* cannot stand beside aggregates", "List the columns that are grouped by.")
        if isinstance(node, exp.Column):
            return self._stranger(node, clause)
        return None

    def aliased(self, node: exp.Expr) -> exp.Expr:
        """Replace aliases of the SELECT list where no column of FROM has the name."""

        def meant(each: exp.Expr) -> exp.Expr:
            if isinstance(each, exp.Column) and not each.table and not knows(self.read.rows.views, each):
                named = [
                    output.node for output in self.read.listed if output.given and same_name(each.this, output.name)
                ]
                return exp.paren(named[0].copy()) if len(named) == 1 else each
            return each

        return node.copy().transform(meant)

    def _window(self, window: exp.Window, clause: str) -> exp.Expr:
        """Keep the function of a window, which works on groups, and rewrite what it is applied to."""
        copy = window.copy()
        for child in window_parts(copy):
            if not isinstance(child, exp.Star):
                child.replace(self.shown(child, clause))
        return copy

    def _place(self, node: exp.Expr, clause: str) -> int | None:
        """Return the place of the key that an expression is; what cannot be read on single rows is none."""
        if first_query(node) is not None or next(node.find_all(exp.Column), None) is None:
            return None
        if any(is_aggregate(each) or isinstance(each, exp.Window) for each in node.walk()):
            return None
        if not all(knows(self.read.rows.views, column) for column in node.find_all(exp.Column)):
            return None
        try:
            found = value_of(node, stored(self.read.rows.views, clause), clause).expr
        except NotDeclared:  # also HAVING and ORDER BY compare keys with what they can be
            raise
        except Refused:
            return None
        return next((place for place, key in enumerate(self.read.keys) if key.bound.expr == found), None)

    def _placed(self, name: str, origin: exp.Expr) -> exp.Column:
        """Return a column that stands where the original stood, with its place and its words for a refusal."""
        column = self.column(name)
        first = next((each.meta for each in origin.walk() if "line" in each.meta), {})
        column.this.meta.update(first)
        column.meta["said"] = lambda: written(origin)  # only a refusal needs it
        return column

    def _stranger(self, node: exp.Column, clause: str) -> exp.Expr:
        stored(self.read.rows.views, clause)(node)  # an unknown name is told as such
        name = node.this.name if isinstance(node.this, exp.Star) else quoted(node.this.name)
        cause = f"{name or '*'} is neither grouped by nor inside an aggregate"
        raise refuse(node, clause, cause, "Add it to GROUP BY, or aggregate it.")
