"""GROUP BY: what it groups by, and whether the groups are listed by the policy or have to be discovered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from sqlglot import exp

from discreet.kernel.expr import Call, Constant, Expr, Type, Value, columns_of
from discreet.kernel.question import Discover, Public
from discreet.kernel.relation import Named, Where
from discreet.policy.problems import brief
from discreet.sql.building import built
from discreet.sql.places import refuse, written
from discreet.sql.rows.conditions import every
from discreet.sql.rows.outputs import Output
from discreet.sql.rows.owners import is_person_or_null, is_unique, never_null, unit_names
from discreet.sql.rows.scope import Known, Rows, knows, same_name, stored, value_of
from discreet.sql.rows.walking import first_aggregate, first_query, first_window
from discreet.sql.values.bound import Bound
from discreet.sql.values.domains import domain_of
from discreet.sql.world import World

_MOST_KEYS = 1_000_000
_ROUNDED = ("floor", "ceil", "round", "sign")
_MOST_DISCOVERED = 1024  # groups of one unit that may have a say in which are shown


@dataclass(frozen=True)
class Key:
    """One expression of GROUP BY."""

    node: exp.Expr
    bound: Bound


@dataclass(frozen=True)
class Grouped:
    """A SELECT that groups private rows, in the parts that were read of it."""

    select: exp.Select
    listed: Sequence[Output]
    keys: Sequence[Key]
    rows: Rows


@dataclass(frozen=True)
class Grouping:
    """Rows and how they are grouped."""

    rows: Rows
    by: Named
    groups: Public | Discover


def keys_of(select: exp.Select, shown: Sequence[Output], rows: Rows) -> list[Key]:
    """Return what a SELECT groups by: its GROUP BY, or with DISTINCT alone the whole SELECT list."""
    group = select.args.get("group")
    if group is None:
        nodes = [output.node for output in shown]
        return _distinct([_key(node, rows, "SELECT DISTINCT") for node in nodes])
    several = next((each for each in group.walk() if isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets)), None)
    if several is not None:
        way_out = "Write one SELECT for each set of groups, with UNION ALL between them."
        raise refuse(group, "GROUP BY", "ROLLUP, CUBE and GROUPING SETS are not supported", way_out)
    if group.args.get("all"):
        nodes = [output.node for output in shown if first_aggregate(output.node) is None]
        nodes = [node for node in nodes if next(node.find_all(exp.Column), None) is not None]
    else:
        nodes = [_meant(part, shown, rows) for each in group.expressions for part in _parts(each)]
    return _distinct([_key(node, rows, "GROUP BY") for node in nodes])


def _parts(node: exp.Expr) -> list[exp.Expr]:
    bare = node.unnest()
    return [part for each in bare.expressions for part in _parts(each)] if isinstance(bare, exp.Tuple) else [bare]


def _meant(node: exp.Expr, shown: Sequence[Output], rows: Rows) -> exp.Expr:
    """Return what an ordinal or an alias stands for; a column of FROM comes before an alias of its name."""
    if isinstance(node, exp.Literal) and not node.is_string:
        place = int(node.name) if node.name.isdecimal() and len(node.name) < 10 else 0
        if not 1 <= place <= len(shown):
            way_out = f"The SELECT list has {len(shown)} columns."
            raise refuse(node, "GROUP BY", f"there is no column {node.name[:20]} in the SELECT list", way_out)
        return shown[place - 1].node
    if isinstance(node, exp.Column) and not node.table and not knows(rows.views, node):
        named = [output.node for output in shown if output.given and same_name(node.this, output.name)]
        if len(named) == 1:
            return named[0]
    return node


def _key(node: exp.Expr, rows: Rows, clause: str) -> Key:
    if (found := first_aggregate(node)) is not None:
        raise refuse(found, clause, "an aggregate cannot be grouped by", "Aggregate in a subquery per unit first.")
    if (found := first_window(node)) is not None:
        cause = "a window function mixes rows of different people"
        raise refuse(found, clause, cause, "Aggregate first; window functions work on the result.")
    if (found := first_query(node)) is not None:
        raise refuse(
            found, clause, "groups cannot depend on the result of a query", "Ask it first, then write the value."
        )
    return Key(node, value_of(node, stored(rows.views, clause), clause))


def _distinct(keys: list[Key]) -> list[Key]:
    """Keep the first of equal expressions, and no constants: they make no groups."""
    found: dict[Expr, Key] = {}
    for key in keys:
        if not isinstance(key.bound.expr, Constant):
            found.setdefault(key.bound.expr, key)
    return list(found.values())


def grouping(rows: Rows, keys: Sequence[Key], world: World) -> Grouping:
    """Decide how groups are found: listed if all keys have a public domain, else discovered if the budget allows."""
    known = rows.by_column()
    by = tuple((f"k{place}", key.bound.expr) for place, key in enumerate(keys))
    for key in keys:
        _check_shown(key, rows)
    domains = [domain_in(key.bound.expr, known) for key in keys]
    for key, domain in zip(keys, domains, strict=True):
        if key.bound.type is Type.REAL and domain is None and getattr(key.bound.expr, "op", None) not in _ROUNDED:
            way_out = "Use FLOOR(…), ROUND(…) or CASE to make groups."
            raise refuse(key.node, "GROUP BY", "real numbers make no groups: hardly two are equal", way_out)
    listed = [domain for domain in domains if domain is not None]
    size = prod(len(domain) for domain in listed)
    if len(listed) == len(keys) and size <= _MOST_KEYS:
        return Grouping(rows, by, Public(tuple(listed)))
    _check_discovery(keys, domains, size, rows, world)
    open_ended = [key.bound.expr for key in keys if not any_null(key.bound.expr, known)]
    held = every([Call("not", (Call("is_null", (expr,)),)) for expr in open_ended if not never_null(expr, known)])
    found = (
        rows if held is None else Rows(built(lambda: Where(rows.relation, held), keys[0].node, "GROUP BY"), rows.views)
    )
    return Grouping(found, by, Discover(_MOST_DISCOVERED))


def _check_shown(key: Key, rows: Rows) -> None:
    if is_unique(key.bound.expr, rows.by_column()):
        cause = f"each value of {brief(written(key.node))} is unique, and a group of one is never released"
        raise refuse(
            key.node, "GROUP BY", cause, "Group by something that many share, or count with COUNT(DISTINCT …)."
        )
    if not is_person_or_null(key.bound.expr, rows.by_column()):
        return
    unit = unit_names(rows)
    if len(unit) > 1:
        cause = "this gathers a person's rows over many windows of time, of which each is protected on its own"
        raise refuse(key.node, "GROUP BY", cause, f"Group by {', '.join(unit)}.")
    cause = "the unit's own column would be shown, and with it who is in the data"
    way_out = "Group by something that many share; group by the unit in a subquery, and aggregate its result."
    raise refuse(key.node, "GROUP BY", cause, way_out)


def _check_discovery(
    keys: Sequence[Key], domains: Sequence[tuple[Value, ...] | None], size: int, rows: Rows, world: World
) -> None:
    if world.policy.budget.discover:
        return
    opened = [key for key, domain in zip(keys, domains, strict=True) if domain is None]
    if not opened:
        cause = f"these keys have {size:,} combinations, more than {_MOST_KEYS:,} can be listed"
        way_out = (
            "Group by fewer or coarser keys, or ask the owner for a budget with a delta: groups can then be discovered."
        )
        raise refuse(keys[0].node, "GROUP BY", cause, way_out)
    known = rows.by_column()
    names = sorted({brief(known[name].name) for key in opened for name in columns_of(key.bound.expr)})
    cause = f"the groups of {', '.join(names)} are not public, and to discover them the budget needs a delta"
    way_out = (
        "Declare the column's values in the policy (in, between or references), or give the budget a delta, before "
        "anything is charged."
    )
    raise refuse(opened[0].node, "GROUP BY", cause, way_out)


def domain_in(expr: Expr, known: Mapping[str, Known]) -> tuple[Value, ...] | None:
    """Return every value that a key can have, with None if missing ones are a group."""
    bounds = {name: _listed(known[name]) for name in columns_of(expr) if name in known}
    found = domain_of(expr, bounds)
    unlisted = any(known[name].null and bound.domain is None for name, bound in bounds.items())
    if found is not None and None not in found and unlisted and not never_null(expr, known):
        return (*found, None)
    return found or None


def _listed(known: Known) -> Bound:
    """Return a column with its values; those of a range are listed only where missing ones must be among them."""
    values = known.values()
    if values is None and known.null:
        values = domain_of(known.column, {known.column.name: known.bound})
    if values is None:
        return known.bound
    return replace(known.bound, domain=(*values, None) if known.null and None not in values else values)


def any_null(expr: Expr, known: Mapping[str, Known]) -> bool:
    """Tell whether missing values of a key are a group: the policy says so of a column in it."""
    return any(known[name].null for name in columns_of(expr) if name in known)
