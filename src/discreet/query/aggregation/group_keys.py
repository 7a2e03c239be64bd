"""GROUP BY keys, and whether groups are declared or need partition selection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from sqlglot import exp

from discreet.engines.column_usage import columns_of
from discreet.kernel.expr import Call, Constant, Expr, NamedExprs, Type, Value
from discreet.kernel.question import PublicGroups, SelectedGroups
from discreet.kernel.relation import Where
from discreet.policy.problems import shorten
from discreet.query.bind_context import BindContext
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.public_domains import domain_of
from discreet.query.relations.ownership import is_unique, is_unit_or_null, never_null, unit_key_names
from discreet.query.relations.predicates import conjunction
from discreet.query.relations.scope import ColumnInfo, PrivateSource, bind_value, has_column, same_name, stored_lookup
from discreet.query.relations.select_list import SelectItem
from discreet.query.syntax.source_position import build_or_refuse, refuse, sql_of
from discreet.query.syntax.syntax_tree import WINDOW_HINT, first_aggregate, first_subquery, first_window

_SET_NODES = (exp.Rollup, exp.Cube, exp.GroupingSets)
_MAX_GROUPING_SETS = 64
_MAX_DECLARED_KEYS = 1_000_000
_ROUNDING_OPS = ("floor", "ceil", "round", "sign")
MAX_SELECTION_GROUPS = 1024  # of a unit that counts in partition selection


@dataclass(frozen=True)
class GroupKey:
    """One expression of GROUP BY."""

    node: exp.Expr
    bound: BoundExpr


@dataclass(frozen=True)
class GroupedSelect:
    """A SELECT that groups private rows, taken apart."""

    select: exp.Select
    items: Sequence[SelectItem]
    keys: Sequence[GroupKey]
    rows: PrivateSource
    grouping_sets: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class RowGrouping:
    """Rows and their grouping."""

    rows: PrivateSource
    by: NamedExprs
    groups: PublicGroups | SelectedGroups


def bind_group_keys(select: exp.Select, items: Sequence[SelectItem], rows: PrivateSource) -> list[GroupKey]:
    """Return the keys of GROUP BY, or of SELECT DISTINCT, which groups by the whole SELECT list."""
    group = select.args.get("group")
    if group is None:
        nodes = [output.node for output in items]
        return _distinct_keys([_bind_key(node, rows, "SELECT DISTINCT") for node in nodes])
    if group.args.get("all"):
        nodes = [output.node for output in items if first_aggregate(output.node) is None]
        nodes = [node for node in nodes if next(node.find_all(exp.Column), None) is not None]
    else:
        nodes = [_resolve_term(part, items, rows) for terms in _grouping_sets(group) for part in terms]
    return _distinct_keys([_bind_key(node, rows, "GROUP BY") for node in nodes])


def bind_grouping_sets(
    select: exp.Select, items: Sequence[SelectItem], rows: PrivateSource, keys: Sequence[GroupKey]
) -> tuple[tuple[int, ...], ...]:
    """Return the grouping sets, as indices of keys; none if all keys are the only one."""
    group = select.args.get("group")
    if group is None or not any(isinstance(node, _SET_NODES) for node in group.walk()):
        return ()
    places = {key.bound.expr: place for place, key in enumerate(keys)}
    bound_sets = (
        [_bind_key(_resolve_term(part, items, rows), rows, "GROUP BY").bound.expr for part in terms]
        for terms in _grouping_sets(group)
    )
    sets = tuple(tuple(sorted({places[expr] for expr in exprs if expr in places})) for exprs in bound_sets)
    return () if sets == (tuple(range(len(keys))),) else sets


def _grouping_sets(group: exp.Expr) -> list[list[exp.Expr]]:
    """Return the terms of each grouping set; a plain GROUP BY is one set."""
    sets: list[list[exp.Expr]] = [[]]
    for element in group.expressions:
        wider = _element_sets(element)
        if len(sets) * len(wider) > _MAX_GROUPING_SETS:
            raise _too_many_sets(group)
        sets = [[*one, *other] for one in sets for other in wider]
    return sets


def _element_sets(node: exp.Expr) -> list[list[exp.Expr]]:
    if not isinstance(node, _SET_NODES):
        return [_flat_terms(node)]
    if isinstance(node, exp.GroupingSets):
        return [terms for element in node.expressions for terms in _element_sets(element)]
    parts = [_flat_terms(element) for element in node.expressions]
    if len(parts) > _MAX_GROUPING_SETS or (isinstance(node, exp.Cube) and 2 ** len(parts) > _MAX_GROUPING_SETS):
        raise _too_many_sets(node)
    if isinstance(node, exp.Rollup):
        chosen = [parts[:length] for length in range(len(parts), -1, -1)]
    else:
        chosen = [list(some) for length in range(len(parts), -1, -1) for some in combinations(parts, length)]
    return [[term for part in some for term in part] for some in chosen]


def _too_many_sets(node: exp.Expr) -> Exception:
    cause = f"at most {_MAX_GROUPING_SETS} grouping sets are supported"
    return refuse(node, "GROUP BY", cause, "List those that you need with GROUPING SETS.")


def _flat_terms(node: exp.Expr) -> list[exp.Expr]:
    bare = node.unnest()
    return (
        [part for expression in bare.expressions for part in _flat_terms(expression)]
        if isinstance(bare, exp.Tuple)
        else [bare]
    )


def _resolve_term(node: exp.Expr, items: Sequence[SelectItem], rows: PrivateSource) -> exp.Expr:
    """Resolve a position or an alias; a column of FROM takes precedence over an alias with its name."""
    if isinstance(node, exp.Literal) and not node.is_string:
        index = int(node.name) if node.name.isdecimal() and len(node.name) < 10 else 0
        if not 1 <= index <= len(items):
            hint = f"The SELECT list has {len(items)} column{'' if len(items) == 1 else 's'}."
            raise refuse(node, "GROUP BY", f"GROUP BY position {node.name[:20]} is not in the SELECT list", hint)
        return items[index - 1].node
    if isinstance(node, exp.Column) and not node.table and not has_column(rows.views, node):
        named = [output.node for output in items if output.is_named and same_name(node.this, output.name)]
        if len(named) == 1:
            return named[0]
    return node


def _bind_key(node: exp.Expr, rows: PrivateSource, clause: str) -> GroupKey:
    if (inner := first_aggregate(node)) is not None:
        raise refuse(
            inner, clause, "aggregate functions are not allowed in GROUP BY", "Aggregate per unit in a subquery first."
        )
    if (inner := first_window(node)) is not None:
        cause = "window functions are not allowed on private rows"
        raise refuse(inner, clause, cause, WINDOW_HINT)
    if (inner := first_subquery(node)) is not None:
        raise refuse(
            inner, clause, "groups cannot depend on a subquery", "Run it first, then write its result as a constant."
        )
    return GroupKey(node, bind_value(node, stored_lookup(rows.views, clause), clause))


def _distinct_keys(keys: list[GroupKey]) -> list[GroupKey]:
    """Drop duplicate keys and constants."""
    by_expr: dict[Expr, GroupKey] = {}
    for key in keys:
        if not isinstance(key.bound.expr, Constant):
            by_expr.setdefault(key.bound.expr, key)
    return list(by_expr.values())


def group_rows(rows: PrivateSource, keys: Sequence[GroupKey], context: BindContext) -> RowGrouping:
    """List the groups if all keys have public domains; otherwise use partition selection, if the budget allows it."""
    columns = rows.columns_by_name()
    by = tuple((f"k{index}", key.bound.expr) for index, key in enumerate(keys))
    for key in keys:
        _check_releasable(key, rows)
    domains = [key_domain(key.bound.expr, columns) for key in keys]
    for key, domain in zip(keys, domains, strict=True):
        if key.bound.type is Type.REAL and domain is None and getattr(key.bound.expr, "op", None) not in _ROUNDING_OPS:
            hint = "Use FLOOR(…), ROUND(…) or CASE to form groups."
            raise refuse(key.node, "GROUP BY", "cannot group by double precision values", hint)
    declared = [domain for domain in domains if domain is not None]
    size = prod(len(domain) for domain in declared)
    if len(declared) == len(keys) and size <= _MAX_DECLARED_KEYS:
        return RowGrouping(rows, by, PublicGroups(tuple(declared)))
    _check_selection(keys, domains, size, rows, context)
    without_null_group = [key.bound.expr for key in keys if not has_null_group(key.bound.expr, columns)]
    not_null = conjunction(
        [Call("not", (Call("is_null", (expr,)),)) for expr in without_null_group if not never_null(expr, columns)]
    )
    kept_rows = (
        rows
        if not_null is None
        else PrivateSource(
            build_or_refuse(lambda: Where(rows.relation, not_null), keys[0].node, "GROUP BY"), rows.views
        )
    )
    return RowGrouping(kept_rows, by, SelectedGroups(MAX_SELECTION_GROUPS))


def _check_releasable(key: GroupKey, rows: PrivateSource) -> None:
    if is_unique(key.bound.expr, rows.columns_by_name()):
        cause = f"each value of {shorten(sql_of(key.node))} is unique, and groups of a single unit are never released"
        raise refuse(
            key.node, "GROUP BY", cause, "Group by a column whose values many units share, or use COUNT(DISTINCT …)."
        )
    if not is_unit_or_null(key.bound.expr, rows.columns_by_name()):
        return
    unit = unit_key_names(rows)
    if len(unit) > 1:
        cause = (
            "the privacy unit is a person within a time window, so rows of several windows cannot be grouped together"
        )
        raise refuse(key.node, "GROUP BY", cause, f"Group by {', '.join(unit)}.")
    cause = "grouping by the privacy unit's own column would disclose who is in the data"
    hint = (
        "Group by a column whose values many units share, or group by the unit in a subquery and aggregate its result."
    )
    raise refuse(key.node, "GROUP BY", cause, hint)


def _check_selection(
    keys: Sequence[GroupKey],
    domains: Sequence[tuple[Value, ...] | None],
    size: int,
    rows: PrivateSource,
    context: BindContext,
) -> None:
    if context.policy.budget.discover:
        return
    undeclared = [key for key, domain in zip(keys, domains, strict=True) if domain is None]
    if not undeclared:
        cause = f"the keys have {size:,} combinations; at most {_MAX_DECLARED_KEYS:,} can be listed"
        hint = (
            "Group by fewer or coarser keys, or ask the owner for a budget with a delta, "
            "which allows partition selection."
        )
        raise refuse(keys[0].node, "GROUP BY", cause, hint)
    columns = rows.columns_by_name()
    names = sorted({shorten(columns[name].name) for key in undeclared for name in columns_of(key.bound.expr)})
    cause = f"the groups of {', '.join(names)} are not declared, and partition selection needs a budget with a delta"
    hint = (
        "Declare the column's values in the policy (in, between or references), or give the budget a delta before "
        "anything is charged to it."
    )
    raise refuse(undeclared[0].node, "GROUP BY", cause, hint)


def key_domain(expr: Expr, columns: Mapping[str, ColumnInfo]) -> tuple[Value, ...] | None:
    """Return all possible values of a key, including None if NULL forms a group."""
    bounds = {name: _with_listed_values(columns[name]) for name in columns_of(expr) if name in columns}
    domain = domain_of(expr, bounds)
    null_not_listed = any(columns[name].null_is_group and bound.domain is None for name, bound in bounds.items())
    if domain is not None and None not in domain and null_not_listed and not never_null(expr, columns):
        return (*domain, None)
    return domain or None


def _with_listed_values(info: ColumnInfo) -> BoundExpr:
    """Return a column with its domain; a range is listed only if NULL must be added to it."""
    values = info.values()
    if values is None and info.null_is_group:
        values = domain_of(info.column, {info.column.name: info.bound})
    if values is None:
        return info.bound
    return replace(info.bound, domain=(*values, None) if info.null_is_group and None not in values else values)


def has_null_group(expr: Expr, columns: Mapping[str, ColumnInfo]) -> bool:
    """Return whether NULL forms a group, which the policy declares for a column of the key."""
    return any(columns[name].null_is_group for name in columns_of(expr) if name in columns)
