"""GROUP BY keys, whether groups are declared or need partition selection, and expressions over groups.

In these, keys and aggregates become columns of the grouped table.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

from sqlglot import exp

from discreet.engines.column_usage import columns_of
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Call, Constant, Expr, NamedExprs, Type, Value
from discreet.kernel.question import PublicGroups, SelectedGroups
from discreet.kernel.relation import Where
from discreet.policy.problems import shorten
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.functions import unknown_function_refusal
from discreet.query.expressions.operands import UndeclaredValue
from discreet.query.expressions.public_domains import domain_of
from discreet.query.relations.bound_sources import BindContext, ColumnInfo, PrivateSource, bind_stored, reads_only
from discreet.query.relations.ownership import is_unique, is_unit_or_null, never_null, unit_key_names
from discreet.query.relations.predicates import conjunction
from discreet.query.syntax.operations import is_unknown_function
from discreet.query.syntax.resolved_query import ResolvedSelect, columns_in, rewrite, rewrite_parts
from discreet.query.syntax.syntax_tree import (
    NestedQuery,
    build_or_refuse,
    check_row_wise,
    first_subquery,
    is_aggregate,
    quote_name,
    refuse,
    sql_of,
    window_call,
)

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
    """A SELECT that groups private rows."""

    select: ResolvedSelect
    keys: Sequence[GroupKey]
    rows: PrivateSource
    grouping_sets: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class RowGrouping:
    """Rows and their grouping."""

    rows: PrivateSource
    by: NamedExprs
    groups: PublicGroups | SelectedGroups


def bind_group_keys(select: ResolvedSelect, rows: PrivateSource) -> list[GroupKey]:
    """Return the keys of GROUP BY, or of SELECT DISTINCT, which groups by the whole SELECT list."""
    if select.group is None:
        return _distinct_keys([_bind_key(item.node, rows, "SELECT DISTINCT") for item in select.items])
    return _distinct_keys([_bind_key(term, rows, "GROUP BY") for terms in select.group.sets for term in terms])


def bind_grouping_sets(
    select: ResolvedSelect, rows: PrivateSource, keys: Sequence[GroupKey]
) -> tuple[tuple[int, ...], ...]:
    """Return the grouping sets, as indices of keys; none if all keys are the only one."""
    if select.group is None or not select.group.has_sets:
        return ()
    places = {key.bound.expr: place for place, key in enumerate(keys)}
    bound_sets = ([_bind_key(term, rows, "GROUP BY").bound.expr for term in terms] for terms in select.group.sets)
    sets = tuple(tuple(sorted({places[expr] for expr in exprs if expr in places})) for exprs in bound_sets)
    return () if sets == (tuple(range(len(keys))),) else sets


def _bind_key(node: exp.Expr, rows: PrivateSource, clause: str) -> GroupKey:
    aggregates = "aggregate functions are not allowed in GROUP BY", "Aggregate per unit in a subquery first."
    subqueries = "groups cannot depend on a subquery", "Run it first, then write its result as a constant."
    check_row_wise(node, clause, aggregates, subqueries)
    return GroupKey(node, bind_stored(node, rows.views, clause))


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
        if isinstance(node, exp.Star | exp.Column):
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
            expr = bind_stored(node, rows.views, clause).expr
        except UndeclaredValue:  # HAVING and ORDER BY check declared values too
            raise
        except Refused:
            return None
        return next((index for index, key in enumerate(self.grouped.keys) if key.bound.expr == expr), None)

    def _ungrouped_refusal(self, node: exp.Star | exp.Column, clause: str) -> Exception:
        if (unknown := next(filter(is_unknown_function, _ancestors(node)), None)) is not None:
            return unknown_function_refusal(unknown, clause)
        if isinstance(node, exp.Star):
            return refuse(node, clause, "* cannot be combined with aggregates", "List the columns of GROUP BY instead.")
        name = "*" if isinstance(node.this, exp.Star) else quote_name(node.this.name)
        cause = f"column {name} must appear in GROUP BY or be used in an aggregate function"
        return refuse(node, clause, cause, "Add it to GROUP BY, or aggregate it.")


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    while (parent := node.parent) is not None:
        yield parent
        node = parent
