"""The SELECT list: expansion of *, and column names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.postprocess.name_resolution import output_name
from discreet.query.relations.scope import View, same_name
from discreet.query.syntax.source_position import quote_name, refuse
from discreet.query.syntax.syntax_tree import MAX_COLUMNS


@dataclass(frozen=True)
class SelectItem:
    """One column of a SELECT list; `is_named` if it has an alias."""

    name: str
    node: exp.Expr
    is_named: bool = False


def select_items(select: exp.Select, views: Sequence[View]) -> list[SelectItem]:
    """Return the columns of a SELECT list with distinct names, based on PostgreSQL's.

    >>> import sqlglot
    >>> [each.name for each in select_items(sqlglot.parse_one("SELECT COUNT(*), COUNT(x), x + 1, x AS y"), ())]
    ['count', 'count_1', '?column?', 'y']
    """
    items: list[SelectItem] = []
    limit = max(MAX_COLUMNS, sum(len(view.columns) for view in views))  # SELECT * of a wide table is allowed
    for node in select.expressions:
        items += _expand_item(node, views)
        if len(items) > limit:
            raise refuse(select, "SELECT", f"at most {limit:,} columns are supported", "Split the query.")
    named: dict[int, SelectItem] = {}
    used: set[str] = set()
    numbers: dict[str, int] = {}
    for index in sorted(range(len(items)), key=lambda place: not items[place].is_named):  # aliases keep their names
        name, number = items[index].name, numbers.get(items[index].name.lower(), 0)
        while name.lower() in used:
            number += 1
            name = f"{items[index].name}_{number}"
        numbers[items[index].name.lower()] = number
        used.add(name.lower())
        named[index] = replace(items[index], name=name)
    return [named[place] for place in range(len(items))]


def _expand_item(node: exp.Expr, views: Sequence[View]) -> list[SelectItem]:
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return _expand_star(node, views)
    if isinstance(node, exp.Alias):
        return [SelectItem(output_name(node), node.this, is_named=True)]
    return [SelectItem(output_name(node), node)]


def _expand_star(node: exp.Expr, views: Sequence[View]) -> list[SelectItem]:
    star = node if isinstance(node, exp.Star) else node.this
    if any(star.args.values()):
        raise refuse(node, "SELECT", "* with EXCEPT, REPLACE or RENAME is not supported", "List the columns.")
    table = node.args.get("table")
    if table is not None:
        views = [view for view in views if view.alias is not None and same_name(table, view.alias)]
        if not views:
            raise refuse(
                node,
                "SELECT",
                f"missing FROM-clause entry for table {quote_name(table.name)}",
                "Use the names or aliases of FROM.",
            )
    return [
        SelectItem(info.name, _column_node(info.name, view.alias))
        for view in views
        for info in view.columns
        if table is not None or info.name.lower() not in view.using_columns
    ]


def _column_node(name: str, alias: str | None) -> exp.Column:
    table = None if alias is None else exp.to_identifier(alias, quoted=True)
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=table)
