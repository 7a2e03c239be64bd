"""The SELECT list: what * stands for, and what columns are called."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.sql.after.names import name_of
from discreet.sql.counts import MOST_COLUMNS
from discreet.sql.places import quoted, refuse
from discreet.sql.rows.scope import View, same_name


@dataclass(frozen=True)
class Output:
    """One column of a SELECT list; `given` tells whether the query named it."""

    name: str
    node: exp.Expr
    given: bool = False


def outputs(select: exp.Select, views: Sequence[View]) -> list[Output]:
    """Return the columns of a SELECT list, each with a name of its own, as PostgreSQL calls them.

    >>> import sqlglot
    >>> [each.name for each in outputs(sqlglot.parse_one("SELECT COUNT(*), COUNT(x), x + 1, x AS y"), ())]
    ['count', 'count_1', '?column?', 'y']
    """
    plain: list[Output] = []
    most = max(MOST_COLUMNS, sum(len(view.columns) for view in views))  # SELECT * of a wide table is fine
    for node in select.expressions:
        plain += _expanded(node, views)
        if len(plain) > most:
            raise refuse(select, "SELECT", f"at most {most:,} columns are supported", "Split the query.")
    found: dict[int, Output] = {}
    used: set[str] = set()
    numbers: dict[str, int] = {}
    for place in sorted(range(len(plain)), key=lambda place: not plain[place].given):  # names that were given stay
        name, number = plain[place].name, numbers.get(plain[place].name.lower(), 0)
        while name.lower() in used:
            number += 1
            name = f"{plain[place].name}_{number}"
        numbers[plain[place].name.lower()] = number
        used.add(name.lower())
        found[place] = replace(plain[place], name=name)
    return [found[place] for place in range(len(plain))]


def _expanded(node: exp.Expr, views: Sequence[View]) -> list[Output]:
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return _star(node, views)
    if isinstance(node, exp.Alias):
        return [Output(name_of(node), node.this, given=True)]
    return [Output(name_of(node), node)]


def _star(node: exp.Expr, views: Sequence[View]) -> list[Output]:
    star = node if isinstance(node, exp.Star) else node.this
    if any(star.args.values()):
        raise refuse(node, "SELECT", "* with EXCEPT, REPLACE or RENAME is not supported", "List the columns.")
    table = node.args.get("table")
    if table is not None:
        views = [view for view in views if view.alias is not None and same_name(table, view.alias)]
        if not views:
            raise refuse(
                node, "SELECT", f"there is no source {quoted(table.name)} here", "Use the names or aliases of FROM."
            )
    return [
        Output(known.name, _column(known.name, view.alias))
        for view in views
        for known in view.columns
        if table is not None or known.name.lower() not in view.merged
    ]


def _column(name: str, alias: str | None) -> exp.Column:
    table = None if alias is None else exp.to_identifier(alias, quoted=True)
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=table)
