"""Conditions: what AND holds together, and which rows a condition keeps."""

from collections.abc import Sequence

from sqlglot import exp

from discreet.kernel.expr import Call, Constant, Expr, Type
from discreet.kernel.relation import Where
from discreet.sql.building import built
from discreet.sql.places import refuse
from discreet.sql.rows.narrow import narrowed
from discreet.sql.rows.scope import Rows, View, stored, value_of
from discreet.sql.rows.walking import first_aggregate, first_query, first_window


def conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """Return the conditions that AND holds together.

    >>> import sqlglot
    >>> [each.sql() for each in conjuncts(sqlglot.parse_one("a AND (b AND c) AND (d OR e)"))]
    ['a', 'b', 'c', '(d OR e)']
    """
    if node is None:
        return []
    bare = node.unnest()
    if isinstance(bare, exp.And):
        return [*conjuncts(bare.this), *conjuncts(bare.expression)]
    return [node]


def every(conditions: Sequence[Expr]) -> Expr | None:
    """Return the condition that all hold; None if there are none."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else None
    return Call("and", tuple(conditions))


def condition(node: exp.Expr, views: Sequence[View], clause: str) -> Expr:
    """Read a condition on single rows."""
    if (found := first_query(node)) is not None:
        way_out = "Ask the inner query first, then write the number. IN and EXISTS on the unit stand alone, beside AND."
        raise refuse(found, clause, "a private row cannot be compared with the result of a query", way_out)
    if (found := first_aggregate(node)) is not None:
        raise refuse(
            found, clause, "an aggregate cannot decide about single rows", "Use HAVING, or a subquery per unit."
        )
    if (found := first_window(node)) is not None:
        way_out = "Aggregate first; window functions work on the result."
        raise refuse(found, clause, "a window function mixes rows of different people", way_out)
    expr = value_of(node, stored(views, clause), clause).expr
    if isinstance(expr, Constant) and expr.value is None:
        return Constant(None, Type.BOOLEAN)
    if expr.type is not Type.BOOLEAN:
        raise refuse(node, clause, "a condition must be true or false", "Compare it with something.")
    return expr


def filtered(rows: Rows, nodes: Sequence[exp.Expr], clause: str) -> Rows:
    """Keep the rows for which all conditions are true."""
    if not nodes:
        return rows
    parts = [condition(node, rows.views, clause) for node in nodes]
    wanted = parts[0] if len(parts) == 1 else built(lambda: Call("and", tuple(parts)), nodes[0], clause)
    return Rows(built(lambda: Where(rows.relation, wanted), nodes[0], clause), narrowed(rows.views, wanted))
