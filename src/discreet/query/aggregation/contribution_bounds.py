"""Contribution bounds: from the query, else from the policy; and the notes that state them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from sqlglot import exp

from discreet.engines.column_usage import columns_of
from discreet.kernel.expr import Call, Column, Expr, Type
from discreet.kernel.question import ClippedUnits, ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import (
    Derive,
    JoinOnUnit,
    JoinPublic,
    PerUnit,
    Relation,
    Scan,
    SemiJoinOnUnit,
    Union,
    Where,
)
from discreet.kernel.totals import Count, CountDistinct, CountUnits, SelectionWeight, Sum
from discreet.policy import PersonInWindow, RowUnit
from discreet.policy.validators import format_number
from discreet.query.aggregation.additive_aggregates import Aggregate, BasicFunction
from discreet.query.aggregation.group_keys import MAX_SELECTION_GROUPS, RowGrouping, has_null_group
from discreet.query.aggregation.quantile_aggregates import ValueAggregate
from discreet.query.bind_context import BindContext
from discreet.query.relations.ownership import is_constant_per_unit, never_null, stays_in_range
from discreet.query.relations.scope import ColumnInfo, PrivateSource
from discreet.query.syntax.source_position import refuse


def bounds_notes(
    question: Question, labels: Mapping[Aggregate | ValueAggregate, str], rows: PrivateSource, context: BindContext
) -> tuple[str, ...]:
    """State which rows are left out, how much one unit contributes at most, and how values are clamped."""
    return (*_left_out_notes(question, rows), *_contribution_notes(question, context), *_clamping_notes(labels, rows))


def _left_out_notes(question: Question, rows: PrivateSource) -> list[str]:
    """State which keys form no group, from the query and the policy alone: whether there are such rows is private."""
    columns, conditions = rows.columns_by_name(), []
    domains = question.groups.domains if isinstance(question.groups, PublicGroups) else None
    for index, (_, expr) in enumerate(question.by):
        null_is_shown = None in domains[index] if domains else has_null_group(expr, columns)
        names = [name for name in columns_of(expr) if name in columns]
        ways = ["NULL"] if not (null_is_shown or never_null(expr, columns)) else []
        ways += ["not declared"] if domains and _may_be_undeclared(expr, [columns[name] for name in names]) else []
        if ways:
            subject = ", ".join(sorted(columns[name].name for name in names))
            conditions.append(
                f"{subject if isinstance(expr, Column) else f'the key from {subject}'} is {' or '.join(ways)}"
            )
    return [f"Rows are left out where {', or '.join(conditions)}."] if conditions else []


def _may_be_undeclared(expr: Expr, columns: Sequence[ColumnInfo]) -> bool:
    """Return whether a key from declared columns may have another value; a boolean and a CASE of ranges may not."""
    if isinstance(expr, Column):
        return expr.type is not Type.BOOLEAN and not all(column.in_range for column in columns)
    return any(column.declared_values is not None for column in columns)


def _contribution_notes(question: Question, context: BindContext) -> list[str]:
    unit = unit_phrase(context)
    if not question.needs_clipping:
        return []
    notes = []
    if any(not isinstance(total, CountUnits | CountDistinct | SelectionWeight) for total in question.totals):
        notes.append(f"Each {unit} contributes at most {_rows_phrase(question.max_rows_per_group)} per group.")
    if any(isinstance(total, CountDistinct) for total in question.totals):
        most = question.max_rows_per_group
        values = "1 distinct value" if most == 1 else f"{most:,} distinct values"
        notes.append(f"Each {unit} contributes at most {values} per group, chosen by a hash.")
    if question.needs_l0_clipping:
        groups = question.bounds.groups
        most_groups = "1 group" if groups == 1 else f"{groups:,} groups"
        notes.append(f"Each {unit} contributes to at most {most_groups}; contributions to more groups are clipped.")
    return notes


def unit_phrase(context: BindContext) -> str:
    """Return the policy's noun for the privacy unit, such as "patient" or "patient's week"."""
    match context.policy.unit:
        case PersonInWindow(_, window, _):
            return f"{context.policy.data.protects}'s {window.value}"
        case RowUnit():
            return "row"
    return context.policy.data.protects


def _rows_phrase(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _clamping_notes(labels_by_aggregate: Mapping[Aggregate | ValueAggregate, str], rows: PrivateSource) -> list[str]:
    """State how values are clamped and rounded, unless they cannot lie outside the range."""
    columns, labels_by_range = rows.columns_by_name(), dict[str, list[str]]()
    for aggregate, label in labels_by_aggregate.items():
        if (
            aggregate.scale is None
            or aggregate.expr is None
            or (stays_in_range(aggregate.expr, columns) and not _contains_clip(aggregate.expr))
        ):
            continue
        if isinstance(aggregate, ValueAggregate) and aggregate.origin is not None:
            continue
        low, high, step = (
            format_number(end) for end in (aggregate.scale.low, aggregate.scale.high, aggregate.scale.step)
        )
        rounded = (
            ""
            if aggregate.expr.type is Type.INTEGER and aggregate.scale.step == 1
            else f" and rounded to steps of {step}"
        )
        labels_by_range.setdefault(f"from {low} to {high}{rounded}", []).append(label)
    return [
        f"In {_join_words(labels)}, values are clamped to the range {how}." for how, labels in labels_by_range.items()
    ]


def _join_words(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _contains_clip(expr: Expr) -> bool:
    return isinstance(expr, Call) and (expr.op == "clip" or any(map(_contains_clip, expr.args)))


_BOUND_HINT = "Pass {0}=…, write OPTIONS({1}=…), or ask the owner to declare {0} for the table."


def contribution_bounds_for(
    grouping: RowGrouping, aggregates: Sequence[Aggregate | ValueAggregate], context: BindContext, node: exp.Expr
) -> ContributionBounds:
    """Return the contribution bounds of a question; Refused if a necessary bound is missing."""
    relation = grouping.rows.relation
    max_rows_per_unit = relation.shape.max_rows_per_unit
    if relation.shape.unit is None or max_rows_per_unit == 1:
        return ContributionBounds(1, 1)
    only_units = bool(aggregates) and all(aggregate.function is BasicFunction.COUNT_UNITS for aggregate in aggregates)
    possible_groups, possible_rows = (
        _max_groups(grouping),
        1 if only_units else _max_rows_per_key(relation, _key_columns(grouping)),
    )
    groups = (
        1
        if possible_groups == 1
        else context.requested_bounds.groups or _policy_bound(relation, "groups", context) or max_rows_per_unit
    )
    rows = (
        1
        if possible_rows == 1
        else context.requested_bounds.rows
        or _policy_bound(relation, "rows", context)
        or possible_rows
        or max_rows_per_unit
    )
    if groups is None:
        cause = f"there is no bound on the number of groups per {unit_phrase(context)}"
        raise refuse(node, "GROUP BY", cause, _BOUND_HINT.format("groups", "max_groups_contributed"))
    if rows is None:
        cause = f"there is no bound on the number of rows per {unit_phrase(context)}"
        raise refuse(node, "SELECT", cause, _BOUND_HINT.format("rows", "max_rows_contributed"))
    return ContributionBounds(min(groups, possible_groups or groups), min(rows, possible_rows or rows))


# A threshold has to allow for units with many keys of their own. Units far above the bound are few, and weigh little.
_SELECTION_GROUPS_PER_BOUND = 32


def limit_selection(grouping: RowGrouping, bounds: ContributionBounds) -> PublicGroups | SelectedGroups:
    """Return the groups; of those from the data, with the most groups of a unit that counts in partition selection."""
    if isinstance(grouping.groups, PublicGroups):
        return grouping.groups
    one_row = grouping.rows.relation.shape.max_rows_per_unit == 1
    most = max(bounds.groups, min(MAX_SELECTION_GROUPS, _SELECTION_GROUPS_PER_BOUND * bounds.groups))
    return replace(grouping.groups, max_groups=1 if one_row or _max_groups(grouping) == 1 else most)


def clipped_units_total(question: Question, grouping: RowGrouping) -> ClippedUnits | None:
    """Return the total that counts clipped units; None if no unit can be clipped, or nothing is summed.

    Quantiles depend little on the weight of single units, and counting clipped units would need a separate scan.
    """
    if not question.needs_clipping or not any(isinstance(total, Count | CountUnits | Sum) for total in question.totals):
        return None
    possible_rows = _max_rows_per_key(question.relation, _key_columns(grouping))
    rows = any(isinstance(total, Count | Sum) for total in question.totals) and (
        possible_rows is None or possible_rows > question.max_rows_per_group
    )
    return ClippedUnits(rows) if rows or question.needs_l0_clipping else None


def _policy_bound(relation: Relation, name: str, context: BindContext) -> int | None:
    """Return the largest bound that the policy declares for the private tables involved."""
    bounds = [getattr(context.policy.tables[table], name) for table in _private_tables(relation)]
    return max((limit for limit in bounds if limit is not None), default=None)


def _private_tables(relation: Relation) -> set[str]:
    match relation:
        case Scan(table):
            return {table}
        case JoinOnUnit(left, right) | Union(left, right):
            return _private_tables(left) | _private_tables(right)
    return _private_tables(relation.source)


def _max_groups(grouping: RowGrouping) -> int | None:
    """Return the maximum number of groups per unit, from the keys that vary within a unit; None if unbounded."""
    columns = grouping.rows.columns_by_name()
    varying = [index for index, (_, expr) in enumerate(grouping.by) if not is_constant_per_unit(expr, columns)]
    if isinstance(grouping.groups, PublicGroups):
        return prod(len(grouping.groups.domains[place]) for place in varying)
    return None if varying else 1


def _key_columns(grouping: RowGrouping) -> frozenset[str]:
    return frozenset(expr.name for _, expr in grouping.by if isinstance(expr, Column))


def _max_rows_per_key(relation: Relation, keys: frozenset[str]) -> int | None:
    """Return the maximum number of a unit's rows with equal keys; None if unbounded."""
    match relation:
        case PerUnit(_, columns):
            return 1 if {name for name, _ in columns} <= keys else None
        case Where(source) | SemiJoinOnUnit(source):
            return _max_rows_per_key(source, keys)
        case Derive(source, columns):
            plain = [expr.name for name, expr in columns if name in keys and isinstance(expr, Column)]
            return _max_rows_per_key(source, frozenset(plain))
        case JoinPublic(source, fanout=fanout):
            per_row = _max_rows_per_key(source, keys)
            return None if per_row is None else per_row * fanout
        case Union(left, right):
            sides = _max_rows_per_key(left, keys), _max_rows_per_key(right, keys)
            return None if None in sides else sum(filter(None, sides))
    return None
