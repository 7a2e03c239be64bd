"""Rewrite a SELECT over groups: keys and aggregates become columns of the grouped table."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from discreet.estimate.planned_release import grouping_column
from discreet.kernel.errors import Refused
from discreet.query.aggregation.group_keys import GroupedSelect
from discreet.query.expressions.declared_values import UndeclaredValue
from discreet.query.relations.scope import bind_value, has_column, same_name, stored_lookup
from discreet.query.syntax.source_position import quote_name, refuse, sql_of
from discreet.query.syntax.syntax_tree import first_subquery, is_aggregate, window_operands


@dataclass(frozen=True)
class GroupRewriter:
    """Replaces keys by `key_column`, aggregates by `measure_column`, and resolves subqueries by `resolve_query`."""

    grouped: GroupedSelect
    key_column: Callable[[int], str]
    measure_column: Callable[[exp.Expr], str]
    resolve_query: Callable[[exp.Query], exp.Query]
    make_column: Callable[[str], exp.Column]

    def rewrite(self, node: exp.Expr, clause: str) -> exp.Expr:
        """Return an expression over the columns of the grouped table."""
        rewritten = self._replacement(node, clause)
        if rewritten is None:
            rewritten = node.copy()  # only here: parts are replaced inside the copy
            self._replace_parts(rewritten, clause)
        return rewritten

    def _replace_parts(self, node: exp.Expr, clause: str) -> None:
        for child in list(node.iter_expressions()):
            replacement = self._replacement(child, clause)
            if replacement is None:
                self._replace_parts(child, clause)
            else:
                child.replace(replacement)

    def _replacement(self, node: exp.Expr, clause: str) -> exp.Expr | None:
        """Return the replacement of a whole expression; None if only its parts are replaced."""
        if isinstance(node, exp.Query):
            return self.resolve_query(node)
        if isinstance(node, exp.Window):
            return self._rewrite_window(node, clause)
        if is_aggregate(node):
            grouping = isinstance(node, exp.Grouping)
            return (
                self._grouping(node, clause) if grouping else self._positioned_column(self.measure_column(node), node)
            )
        if (index := self._key_index(node, clause)) is not None:
            return self._positioned_column(self.key_column(index), node)
        if isinstance(node, exp.Star):
            raise refuse(node, clause, "* cannot be combined with aggregates", "List the columns of GROUP BY instead.")
        if isinstance(node, exp.Column):
            return self._refuse_ungrouped(node, clause)
        return None

    def _grouping(self, node: exp.Expr, clause: str) -> exp.Expr:
        """Return GROUPING(a, b): a bit for each key, 1 in subtotals over it."""
        places = [self._key_index(argument, clause) for argument in node.expressions]
        if None in places or not places:
            cause = "the arguments of GROUPING must be expressions of GROUP BY"
            raise refuse(node, clause, cause, "Name keys, such as GROUPING(city).")
        if not self.grouped.grouping_sets:
            return exp.Literal.number(0)
        bits: list[exp.Expr] = [
            exp.Mul(
                this=exp.Literal.number(1 << power),
                expression=self._positioned_column(grouping_column(self.key_column(place or 0)), node),
            )
            for power, place in enumerate(reversed(places))
        ]
        return exp.paren(reduce(lambda one, other: exp.Add(this=one, expression=other), bits))

    def expand_aliases(self, node: exp.Expr) -> exp.Expr:
        """Replace aliases of the SELECT list, unless a column of FROM has the same name."""

        def expand(each: exp.Expr) -> exp.Expr:
            if isinstance(each, exp.Column) and not each.table and not has_column(self.grouped.rows.views, each):
                named = [
                    output.node
                    for output in self.grouped.items
                    if output.is_named and same_name(each.this, output.name)
                ]
                return exp.paren(named[0].copy()) if len(named) == 1 else each
            return each

        return node.copy().transform(expand)

    def _rewrite_window(self, window: exp.Window, clause: str) -> exp.Expr:
        """Rewrite the operands of a window function, which itself is computed over groups."""
        copy = window.copy()
        for child in window_operands(copy):
            if not isinstance(child, exp.Star):
                child.replace(self.rewrite(child, clause))
        return copy

    def _key_index(self, node: exp.Expr, clause: str) -> int | None:
        """Return the index of the key that equals an expression; None if there is none."""
        if first_subquery(node) is not None or next(node.find_all(exp.Column), None) is None:
            return None
        if any(is_aggregate(part) or isinstance(part, exp.Window) for part in node.walk()):
            return None
        if not all(has_column(self.grouped.rows.views, column) for column in node.find_all(exp.Column)):
            return None
        try:
            expr = bind_value(node, stored_lookup(self.grouped.rows.views, clause), clause).expr
        except UndeclaredValue:  # HAVING and ORDER BY check declared values too
            raise
        except Refused:
            return None
        return next((index for index, key in enumerate(self.grouped.keys) if key.bound.expr == expr), None)

    def _positioned_column(self, name: str, origin: exp.Expr) -> exp.Column:
        """Return a column with the source position and the SQL of the expression that it replaces."""
        column = self.make_column(name)
        first = next((part.meta for part in origin.walk() if "line" in part.meta), {})
        column.this.meta.update(first)
        column.meta["original_sql"] = lambda: sql_of(origin)  # computed only for a refusal
        return column

    def _refuse_ungrouped(self, node: exp.Column, clause: str) -> exp.Expr:
        stored_lookup(self.grouped.rows.views, clause)(node)  # refuses unknown names
        name = node.this.name if isinstance(node.this, exp.Star) else quote_name(node.this.name)
        cause = f"column {name or '*'} must appear in GROUP BY or be used in an aggregate function"
        raise refuse(node, clause, cause, "Add it to GROUP BY, or aggregate it.")
