"""Rewrite the expressions of a SELECT over groups: keys and aggregates become columns of the grouped table."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.query.aggregation.group_keys import GroupedSelect
from discreet.query.expressions.declared_values import UndeclaredValue
from discreet.query.relations.bound_sources import bind_value, reads_only, stored_lookup
from discreet.query.syntax.resolved_query import NestedQuery, columns_in, rewrite, rewrite_parts
from discreet.query.syntax.source_position import quote_name, refuse
from discreet.query.syntax.syntax_tree import first_subquery, is_aggregate, window_call


@dataclass(frozen=True)
class GroupRewriter:
    """Replaces keys, aggregates and bits of GROUPING by columns, and binds subqueries."""

    grouped: GroupedSelect
    key_column: Callable[[int, exp.Expr], exp.Column]
    aggregate_column: Callable[[exp.Expr], exp.Column]
    grouping_column: Callable[[int, exp.Expr], exp.Column]
    bind_subquery: Callable[[NestedQuery], exp.Expr]

    def rewrite(self, node: exp.Expr, clause: str) -> exp.Expr:
        """Return an expression over the columns of the grouped table."""
        return rewrite(node, lambda part: self._replacement(part, clause))

    def _replacement(self, node: exp.Expr, clause: str) -> exp.Expr | None:
        """Return the replacement of a whole expression; None if only its parts are replaced."""
        if isinstance(node, NestedQuery):
            return self.bind_subquery(node)
        if isinstance(node, exp.Window):
            return self._rewrite_window(node, clause)
        if isinstance(node, exp.Grouping):
            return self._grouping(node, clause)
        if is_aggregate(node):
            return self.aggregate_column(node)
        if (index := self._key_index(node, clause)) is not None:
            return self.key_column(index, node)
        if isinstance(node, exp.Star):
            raise refuse(node, clause, "* cannot be combined with aggregates", "List the columns of GROUP BY instead.")
        if isinstance(node, exp.Column):
            raise self._ungrouped_refusal(node, clause)
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
            exp.Mul(this=exp.Literal.number(1 << power), expression=self.grouping_column(place or 0, node))
            for power, place in enumerate(reversed(places))
        ]
        return exp.paren(reduce(lambda one, other: exp.Add(this=one, expression=other), bits))

    def _rewrite_window(self, window: exp.Window, clause: str) -> exp.Expr:
        """Rewrite the operands of a window function, which itself is computed over groups."""
        call = window_call(window)

        def replacement(part: exp.Expr) -> exp.Expr | None:
            kept = isinstance(part, exp.Star) or any(part is each for each in call)
            return rewrite_parts(part, replacement) if kept else self._replacement(part, clause)

        return rewrite_parts(window, replacement)

    def _key_index(self, node: exp.Expr, clause: str) -> int | None:
        """Return the index of the key that equals an expression; None if there is none."""
        rows = self.grouped.rows
        if first_subquery(node) is not None or not columns_in(node) or not reads_only(node, rows.views):
            return None
        if any(is_aggregate(part) or isinstance(part, exp.Window) for part in node.walk()):
            return None
        try:
            expr = bind_value(node, stored_lookup(rows.views, clause), clause).expr
        except UndeclaredValue:  # HAVING and ORDER BY check declared values too
            raise
        except Refused:
            return None
        return next((index for index, key in enumerate(self.grouped.keys) if key.bound.expr == expr), None)

    def _ungrouped_refusal(self, node: exp.Column, clause: str) -> Exception:
        name = "*" if isinstance(node.this, exp.Star) else quote_name(node.this.name)
        cause = f"column {name} must appear in GROUP BY or be used in an aggregate function"
        return refuse(node, clause, cause, "Add it to GROUP BY, or aggregate it.")
