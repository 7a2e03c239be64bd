"""Which SELECT is the release: below it are private rows, above it only noisy numbers.

Every query is understood from the inside out, and is one of three things: private rows (each owned by one unit), rows
of a public table, or a query over what was released. The first aggregate over private rows that does not keep them
apart by unit turns the one into the other.
"""

from collections.abc import Sequence
from functools import partial

from sqlglot import exp

from discreet.sql.above import drop_unused, inner_queries, single_row
from discreet.sql.asked.groups import Grouped, keys_of
from discreet.sql.asked.releases import release
from discreet.sql.places import quoted, refuse
from discreet.sql.rows.combine import combined
from discreet.sql.rows.conditions import conjuncts
from discreet.sql.rows.joins import Item, join_all
from discreet.sql.rows.outputs import Output, outputs
from discreet.sql.rows.perunit import is_per_unit, per_unit
from discreet.sql.rows.projection import check_rows, project
from discreet.sql.rows.publics import public_select
from discreet.sql.rows.scope import PublicRows, Released, Rows, Source, View, knows, same_name
from discreet.sql.rows.semi import Inner, where
from discreet.sql.rows.sources import Names, called, source
from discreet.sql.rows.walking import first_aggregate, own_nodes
from discreet.sql.world import World

_BELOW = ("expressions", "from_", "joins", "where", "group", "having")
_RESULT = ("order", "limit", "offset", "distinct", "qualify", "windows", "with_")
_MIXED = "private rows and released numbers cannot stand in one FROM"


def separate(query: exp.Expr, world: World) -> exp.Query:
    """Return the query over released tables that a query is; what it needs of private rows is in world.releases."""
    found = understand(query, {}, world)
    if isinstance(found, Released):
        drop_unused(found.query)
        return found.query
    if isinstance(found, PublicRows):
        cause = "only public tables are read, so there is nothing to protect and nothing to pay for"
        raise refuse(query, "FROM", cause, "Read the public table where it lies.")
    raise _single(query)


def _single(query: exp.Expr) -> Exception:
    cause = "this would show rows of single people"
    return refuse(query, "SELECT", cause, "Aggregate them: COUNT(*), SUM(…), AVG(…), with GROUP BY if you like.")


def _shown(select: exp.Select, listed: Sequence[Output], rows: Rows) -> Exception:
    """Return why rows are not shown; an unknown name among them is the better reason."""
    if listed:
        project(listed, rows)
    return _single(select)


def understand(query: exp.Expr, names: Names, world: World) -> Source:
    """Return what a query gives."""
    match query:
        case exp.Subquery() if isinstance(query.this, exp.Query):
            return _wrapped(query, names, world)
        case exp.SetOperation():
            names = _with(query, names, world)
            return combined(query, partial(understand, names=names, world=world))
        case exp.Select():
            return _select(query, _with(query, names, world), world)
    raise refuse(query, "SELECT", "only SELECT is understood here", "Write SELECT … FROM a table of the policy.")


def _wrapped(query: exp.Subquery, names: Names, world: World) -> Source:
    names = _with(query, names, world)
    found = understand(query.this, names, world)
    if isinstance(found, Released):
        query.set("this", found.query)
        return Released(query)
    check_rows(query)
    return found


def _with(query: exp.Query, names: Names, world: World) -> Names:
    """Understand the queries of WITH in turn; only those over released numbers stay in the text."""
    clause = query.args.get("with_")
    if clause is None:
        return names
    if clause.recursive:
        raise refuse(clause, "WITH", "recursive queries are not supported", "Write the steps out.")
    known, kept = dict(names), []
    for each in clause.expressions:
        alias = each.args["alias"]
        found = understand(each.this, known, world)
        known.pop(alias.this.name, None)  # so that the inner one comes last
        known[alias.this.name] = called(found, alias, each)
        if isinstance(found, Released):
            each.set("this", found.query)
            kept.append(each)
    query.set("with_", exp.With(expressions=kept) if kept else None)
    return known


def _items(select: exp.Select, names: Names, world: World) -> list[tuple[Source, exp.Expr, exp.Join | None]]:
    """Return the sources of FROM and JOIN; those over released numbers are changed in the text."""
    found: list[tuple[Source, exp.Expr, exp.Join | None]] = []
    begin = select.args.get("from_")
    places = [(begin.this, None)] if begin is not None else []
    for node, join in [*places, *((join.this, join) for join in select.args.get("joins") or ())]:
        given = source(node, names, world, partial(understand, names=names, world=world))
        if isinstance(given, Released) and isinstance(node, exp.Subquery):
            node.set("this", given.query)
        found.append((given, node, join))
    return found


def _select(select: exp.Select, names: Names, world: World) -> Source:
    _check_clauses(select)
    found = _items(select, names, world)
    released = [node for given, node, _ in found if isinstance(given, Released)]
    if len(released) == len(found):
        return _above(select, names, world)
    if released and not any(isinstance(given, Rows) for given, _, _ in found):
        cause = "a public table cannot be read beside released numbers yet"
        raise refuse(released[0], "FROM", cause, "Join it below the aggregate, and group by what you need of it.")
    if released:
        way_out = "Ask for the released numbers first, then write them as constants; or aggregate both, then join."
        raise refuse(released[0], "FROM", _MIXED, way_out)
    items = [Item(given, node, join) for given, node, join in found if not isinstance(given, Released)]
    if all(isinstance(item.source, PublicRows) for item in items):
        return public_select(select, items)
    return _private(select, items, names, world)


def _check_clauses(select: exp.Select) -> None:
    if not select.expressions:
        raise refuse(select, "SELECT", "the SELECT list is empty", "Write what you ask for, such as COUNT(*).")
    surplus = [name for name, given in select.args.items() if given and name not in (*_BELOW, *_RESULT)]
    if surplus:
        words = "FOR UPDATE" if "locks" in surplus else surplus[0].strip("_").upper()
        raise refuse(select, "SELECT", f"{words} is not supported", "Leave it out.")


def _private(select: exp.Select, items: list[Item], names: Names, world: World) -> Source:
    def private_items(inner: exp.Select) -> list[Item]:
        found = _items(inner, names, world)
        for given, node, _ in found:
            if isinstance(given, Released):
                raise refuse(node, "FROM", _MIXED, "Ask for the released numbers first, then write them as constants.")
        return [Item(given, node, join) for given, node, join in found if not isinstance(given, Released)]

    inner = Inner(lambda query: understand(query, names, world), private_items)
    conditions = conjuncts(select.args["where"].this if select.args.get("where") else None)
    _check_aliases(select, conditions, [view for item in items for view in item.views])
    rows, rest = join_all(items, conditions, world)
    rows = where(rows, rest, world, inner)
    listed = outputs(select, rows.views)
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        way_out = "Use GROUP BY; per unit, with MIN or MAX."
        raise refuse(distinct, "SELECT", "DISTINCT ON chooses rows by their order", way_out)
    aggregated = any(first_aggregate(node) is not None for node in _after_rows(select))
    grouped = select.args.get("group") is not None
    if not grouped and not aggregated and distinct is None:
        if select.parent is None:
            raise _shown(select, listed, rows)
        check_rows(select)
        if select.args.get("having"):
            raise refuse(select.args["having"], "HAVING", "HAVING needs an aggregate", "Use WHERE.")
        return project(listed, rows)
    keys = keys_of(select, listed, rows) if grouped or not aggregated else []
    read = Grouped(select, listed, keys, rows)
    if is_per_unit(keys, rows):
        if select.parent is None:
            cause = "each group would be a single unit, and a group of one is never released"
            hint = "Group by something that many share, or count units with COUNT(DISTINCT …)."
            raise refuse(keys[0].node, "GROUP BY" if grouped else "SELECT DISTINCT", cause, hint)
        return per_unit(read)
    return release(read, world, partial(_released, names=names, world=world))


def _check_aliases(select: exp.Select, conditions: list[exp.Expr], views: list[View]) -> None:
    """Refuse a name of the SELECT list in WHERE, which comes before it."""
    given = {each.args["alias"] for each in select.expressions if isinstance(each, exp.Alias)}
    for node in (each for condition in conditions for each in own_nodes(condition)):
        if not isinstance(node, exp.Column) or node.table or knows(views, node):
            continue
        if any(same_name(node.this, alias.name) for alias in given):
            cause = f"{quoted(node.name)} is a name of the SELECT list, which is read after WHERE"
            raise refuse(node, "WHERE", cause, "Write the expression again, or put the SELECT into a subquery.")


def _after_rows(select: exp.Select) -> list[exp.Expr]:
    """Return the clauses that may hold aggregates."""
    parts = [*select.expressions]
    parts += [select.args[name] for name in ("having", "order", "qualify") if select.args.get(name) is not None]
    return parts


def _released(query: exp.Query, names: Names, world: World) -> exp.Query:
    """Return a query that stands among released numbers."""
    found = understand(query, names, world)
    if isinstance(found, Released):
        return single_row(found.query, world.releases.parts)
    if isinstance(found, PublicRows):
        cause = "a public table cannot be read beside released numbers yet"
        raise refuse(query, "SELECT", cause, "Join it below the aggregate, or read it where it lies.")
    cause = "rows of single people cannot stand beside released numbers"
    raise refuse(query, "SELECT", cause, "Aggregate them in the inner query.")


def _above(select: exp.Select, names: Names, world: World) -> Released:
    """Understand a query over released tables: the queries inside its expressions must be such too."""
    inner = inner_queries(select)
    if not select.args.get("from_") and not inner:
        cause = "no table is read, so there is nothing to protect"
        raise refuse(select, "SELECT", cause, "Write SELECT … FROM a table of the policy.")
    for node in inner:
        node.replace(_released(node, names, world))
    return Released(select)
