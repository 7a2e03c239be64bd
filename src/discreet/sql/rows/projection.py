"""A SELECT without aggregates over private rows: other columns, computed row by row."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from discreet.kernel.expr import Column, Expr
from discreet.kernel.relation import Derive
from discreet.sql.asked.groups import any_null, domain_in
from discreet.sql.building import built
from discreet.sql.places import refuse
from discreet.sql.rows.naming import fresh
from discreet.sql.rows.outputs import Output
from discreet.sql.rows.owners import is_settled, is_unique, links_of, never_null, part_of, stays_inside
from discreet.sql.rows.scope import Known, Rows, View, stored, value_of
from discreet.sql.rows.walking import first_query, first_window
from discreet.sql.values.bound import Bound

_BELOW = {
    "order": ("ORDER BY", "the order of private rows means nothing", "Put it after the aggregate."),
    "limit": (
        "LIMIT",
        "a choice of some private rows mixes people",
        "Put it after the aggregate, or filter with WHERE.",
    ),
    "offset": ("OFFSET", "a choice of some private rows mixes people", "Put it after the aggregate."),
    "qualify": ("QUALIFY", "window functions mix rows of different people", "Aggregate first."),
    "windows": ("WINDOW", "window functions mix rows of different people", "Aggregate first."),
}


def check_rows(select: exp.Query) -> None:
    """Refuse what would choose or order private rows."""
    for name, (clause, cause, way_out) in _BELOW.items():
        if found := select.args.get(name):
            raise refuse(found[0] if isinstance(found, list) else found, clause, cause, way_out)


def project(listed: Sequence[Output], rows: Rows) -> Rows:
    """Return rows with the columns of a SELECT list."""
    bounds = [_bound(output, rows) for output in listed]
    columns = [(output.name, bound) for output, bound in zip(listed, bounds, strict=True)]
    return derived(columns, rows, listed[0].node)


def derived(columns: Sequence[tuple[str, Bound]], rows: Rows, place: exp.Expr) -> Rows:
    """Return rows with other columns, and what is known of each; plain columns need no computation."""
    known = rows.by_column()
    if all(isinstance(bound.expr, Column) for _, bound in columns):
        view = tuple(
            replace(known[bound.expr.name], name=name) for name, bound in columns if isinstance(bound.expr, Column)
        )
        return Rows(rows.relation, (View(None, view),))
    names: list[str] = []
    for name, _ in columns:
        names.append(fresh(name, names))
    named: list[tuple[str, Expr]] = [(inside, bound.expr) for inside, (_, bound) in zip(names, columns, strict=True)]
    view = tuple(_known(name, inside, bound, known) for inside, (name, bound) in zip(names, columns, strict=True))
    relation = built(lambda: Derive(rows.relation, tuple(named)), place, "SELECT")
    return Rows(relation, (View(None, view),))


def _bound(output: Output, rows: Rows) -> Bound:
    if (found := first_window(output.node)) is not None:
        cause = "a window function mixes rows of different people"
        raise refuse(found, "SELECT", cause, "Aggregate first; window functions work on the result.")
    if (found := first_query(output.node)) is not None:
        cause = "a private row cannot be compared with the result of a query"
        raise refuse(found, "SELECT", cause, "Ask the inner query first, then write the number.")
    return value_of(output.node, stored(rows.views, "SELECT"), "SELECT")


def _known(name: str, inside: str, bound: Bound, known: dict[str, Known]) -> Known:
    column = Column(inside, bound.type)
    expr = bound.expr
    if isinstance(expr, Column):
        return replace(known[expr.name], name=name).moved(inside)
    fact = replace(bound, expr=column, domain=None, unit=part_of(expr, known))
    return Known(
        name,
        fact,
        values=lambda: domain_in(expr, known),
        null=any_null(expr, known),
        links=links_of(expr, known),
        sure=never_null(expr, known),
        inside=stays_inside(expr, known),
        settled=is_settled(expr, known),
        unique=is_unique(expr, known),
    )
