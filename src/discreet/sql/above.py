"""The query above the release, as a tree: what it contains, and what it does not need."""

from collections.abc import Sequence

from sqlglot import exp

from discreet.sql.plan import Part
from discreet.sql.rows.walking import own_nodes


def inner_queries(select: exp.Select) -> list[exp.Query]:
    """Return the outermost queries inside the expressions of a SELECT: not its sources, nor those of WITH."""
    begin = select.args.get("from_")
    sources = [begin.this] if begin is not None else []
    sources += [join.this for join in select.args.get("joins") or ()]
    parts = [part for part in select.iter_expressions() if part is not begin and not isinstance(part, exp.With)]
    found = [node for part in parts for node in own_nodes(part) if isinstance(node, exp.Query)]
    return [node for node in found if not any(node is source for source in sources)]


def single_row(query: exp.Query, parts: Sequence[Part]) -> exp.Query:
    """Say of a release without groups that it has one row, so that it can stand for a number."""
    select = query.unnest()
    if not isinstance(select, exp.Select) or select.args.get("joins") or select.args.get("limit"):
        return query
    begin = select.args.get("from_")
    if begin is not None and begin.this.name in {part.name for part in parts if not part.keys}:
        select.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    return query


def drop_unused(query: exp.Query) -> None:
    """Leave out queries of WITH that nobody reads: what they ask for need not be paid for."""
    while True:
        read = {table.name.lower() for table in query.find_all(exp.Table)}
        idle = [each for each in query.find_all(exp.CTE) if each.alias.lower() not in read]
        if not idle:
            return
        for each in idle:
            clause = each.parent
            each.pop()
            if clause is not None and not clause.expressions:
                clause.pop()
