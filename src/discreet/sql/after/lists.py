"""The SELECT list and what refers to it: what * stands for, and what GROUP BY and ORDER BY mean."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.sql.after.aggregates import own_aggregates
from discreet.sql.after.casts import finite
from discreet.sql.after.clauses import check_arguments, ordering, ordinal, terms_of
from discreet.sql.after.env import Env
from discreet.sql.after.groups import Plain
from discreet.sql.after.names import name_of
from discreet.sql.after.scope import Field, Scope, same
from discreet.sql.after.values import Constant, Value
from discreet.sql.counts import MOST_COLUMNS
from discreet.sql.places import quoted, refuse


@dataclass(frozen=True)
class Item:
    """One entry of a SELECT list: an expression, or a column that * stands for."""

    name: str
    node: exp.Expr | None
    column: Value | None = None


def items_of(node: exp.Select, scope: Scope) -> list[Item]:
    """Return the SELECT list, with what * stands for."""
    found: list[Item] = []
    for each in node.expressions:
        star = each if isinstance(each, exp.Star) else each.this if isinstance(each, exp.Column) else None
        if isinstance(star, exp.Star):
            check_arguments(star, "", "SELECT")
            found += [Item(named.name, None, named.value) for named in scope.star(each, "SELECT")]
        else:
            found.append(Item(name_of(each), each.this if isinstance(each, exp.Alias) else each))
    if not 0 < len(found) <= MOST_COLUMNS:
        raise refuse(node, "SELECT", f"there are {len(found)} columns", f"Select between 1 and {MOST_COLUMNS}")
    return found


def keys_of(group: exp.Expr | None, items: Sequence[Item], rows: Plain) -> list[Value]:
    """Return what is grouped by: columns, expressions, places or aliases of the SELECT list, or ALL."""
    if group is None:
        return []
    check_arguments(group, "expressions all", "GROUP BY")
    env = replace(rows.env, clause="GROUP BY")
    if group.args.get("all"):
        chosen = [item for item in items if item.node is None or not own_aggregates(item.node)]
        return [_read(item, env) for item in chosen]
    return [_key(each, items, rows.scope, env) for each in group.expressions]


def _key(node: exp.Expr, items: Sequence[Item], scope: Scope, env: Env) -> Value:
    place = ordinal(node, len(items), "GROUP BY")
    if place is not None:
        return _read(items[place], env)
    if isinstance(node, exp.Column) and node.args.get("table") is None and not scope.find(node):
        named = [item for item in items if same(node.this, item.name)]
        if len(named) == 1:
            return _read(named[0], env)
    return env.value(node)


def _read(item: Item, env: Env) -> Value:
    return item.column if item.column is not None else env.value(item.node)


def order_of(node: exp.Expr, items: Sequence[Item], values: Sequence[Value], env: Env, *, distinct: bool) -> list[str]:
    """Return the terms of ORDER BY: names and places of the SELECT list first, then what can be computed."""
    found, texts = [], [value.sql for value in values]
    env = replace(env, clause="ORDER BY")
    for each in terms_of(node):
        term = each.this
        place = ordinal(term, len(items), "ORDER BY")
        if place is None and isinstance(term, exp.Column) and term.args.get("table") is None:
            named = [at for at, item in enumerate(items) if same(term.this, item.name)]
            if len({texts[at] for at in named}) > 1:
                raise env.refuse(term, f"{quoted(term.name)} is ambiguous", "Write the place of the column instead")
            place = named[0] if named else None
        if place is None:
            value = finite(env.value(term))
            if isinstance(value.origin, Constant) or (distinct and value.sql not in texts):
                way_out = "With DISTINCT, order by what is selected" if distinct else "Order by a column"
                raise env.refuse(term, "this cannot be ordered by", way_out)
            found.append(f"{value.sql} {ordering(each)}")
        else:
            found.append(f"{place + 1} {ordering(each)}")
    return found


def place_of(node: exp.Expr, fields: Sequence[Field]) -> str:
    """Return the place of the column that ORDER BY means after UNION, INTERSECT or EXCEPT."""
    place = ordinal(node, len(fields), "ORDER BY")
    if place is None and isinstance(node, exp.Column) and node.args.get("table") is None:
        place = next((at for at, field in enumerate(fields) if same(node.this, field.name)), None)
    if place is None:
        raise refuse(
            node, "ORDER BY", "after UNION only names and places of columns can be ordered by", "Write ORDER BY 1"
        )
    return str(place + 1)
