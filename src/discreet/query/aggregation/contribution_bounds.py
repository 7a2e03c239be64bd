"""Contribution bounds: from the query, else from the policy; and the notes that state them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from math import prod

from sqlglot import exp

from discreet.answer.text import count_phrase, enumerate_words
from discreet.engines.column_usage import columns_of
from discreet.estimate.contribution_histogram import (
    AutomaticBounds,
    ChosenBounds,
    PossibleContribution,
    effective_bounds,
    limited_sums,
    squared_radius,
)
from discreet.estimate.estimators import VarianceStatistic
from discreet.estimate.pair_statistics import PairStatistic
from discreet.estimate.planned_release import NoisySum, PlannedRelease
from discreet.kernel.ball import Norm
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Call, Column, Expr, Type, Value
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import (
    Derive,
    JoinOnUnit,
    JoinPublic,
    NumberRows,
    PerUnit,
    Relation,
    Scan,
    SemiJoinOnUnit,
    Union,
    Where,
)
from discreet.kernel.totals import Count, CountDistinct, HistogramTree, SelectionWeight, Sum
from discreet.policy.declarations import AUTO, Bound, declared_bound
from discreet.policy.guarantee import unit_phrase
from discreet.policy.validators import format_number
from discreet.query.aggregation.additive_aggregates import Aggregate, BasicFunction, PairAggregate, SelectedAggregate
from discreet.query.aggregation.group_keys import MAX_SELECTION_GROUPS, GroupedSelect, RowGrouping, has_null_group
from discreet.query.aggregation.quantile_aggregates import ValueAggregate
from discreet.query.expressions.public_domains import domain_of
from discreet.query.relations.bound_sources import BindContext, ColumnInfo, PrivateSource
from discreet.query.relations.ownership import is_constant_per_unit, never_null, stays_in_range
from discreet.query.syntax.syntax_tree import refuse


def bounds_notes(
    question: Question,
    labels: Mapping[SelectedAggregate, str],
    rows: PrivateSource,
    context: BindContext,
    automatic: AutomaticBounds | None = None,
) -> tuple[str, ...]:
    """State how much one unit contributes at most, and how values are clamped."""
    if automatic and not automatic.chosen:
        contribution = [_PENDING_NOTE]
    else:
        chosen = [] if automatic is None else [_DECLARED_NOTE if automatic.uses_declared else _CHOSEN_NOTE]
        contribution = [*_contribution_notes(question, context, automatic), *chosen]
    return (*contribution, *_clamping_notes(labels, rows))


def left_out_note(question: Question, rows: PrivateSource) -> str:
    """State which keys form no group, from the query and the policy alone: whether there are such rows is private."""
    columns, conditions = rows.columns_by_name(), []
    domains = question.groups.domains if isinstance(question.groups, PublicGroups) else None
    for index, (_, expr) in enumerate(question.by):
        null_is_shown = None in domains[index] if domains else has_null_group(expr, columns)
        names = [name for name in columns_of(expr) if name in columns]
        ways = ["NULL"] if not (null_is_shown or never_null(expr, columns)) else []
        infos = [columns[name] for name in names]
        if domains and _may_be_undeclared(expr, infos, domains[index]):
            has_range = all(info.bound.low is not None and info.declared_values is None for info in infos)
            ways.append("outside its range" if has_range else "not declared")
        if ways:
            subject = ", ".join(sorted(columns[name].name for name in names))
            conditions.append(
                f"{subject if isinstance(expr, Column) else f'the key from {subject}'} is {' or '.join(ways)}"
            )
    return f"Rows are left out where {', or '.join(conditions)}." if conditions else ""


def _may_be_undeclared(expr: Expr, columns: Sequence[ColumnInfo], domain: Sequence[Value]) -> bool:
    """Return whether a key may have a value outside its domain: columns may, whatever the policy declares."""
    if all(column.in_range for column in columns):
        return False
    unrestricted = domain_of(expr, {})  # a boolean, a CASE of constants or a month has the same values in any case
    return unrestricted is None or not set(unrestricted) - {None} <= set(domain)


_PENDING_NOTE = (
    "The contribution bounds will be chosen privately, from a histogram of contributions that is released first for a "
    "part of the cost."
)
_CHOSEN_NOTE = "These contribution bounds were chosen automatically, from a private histogram of contributions."
_DECLARED_NOTE = (
    "The private histogram of contributions was too noisy to choose from, so the contribution bounds are those that "
    "the policy declares."
)


def with_limited_sums(release: PlannedRelease, context: BindContext) -> PlannedRelease:
    """Return a release whose sums have the largest terms that were chosen for them, and a note that states them."""
    question, automatic = release.question, release.automatic
    chosen = context.chosen_bounds.get(automatic.key) if automatic else None
    if chosen is None or not chosen.sums:
        return release
    totals, notes = list(question.totals), []
    for index, size in zip(limited_sums(question, automatic), chosen.sums, strict=True):
        total = question.totals[index]
        assert isinstance(total, Sum)
        total = totals[index] = replace(total, max_term=size)
        labels = [
            measure.label
            for measure in release.measures
            if isinstance(measure.estimator, NoisySum) and measure.estimator.total == index
        ]
        limit = _size_phrase(question, total)
        notes.append(f"Each {unit_phrase(context.policy)} contributes to {enumerate_words(labels)} {limit}.")
    try:
        limited = replace(question, totals=tuple(totals))
    except ValueError as error:
        raise Refused(f"SELECT: the query cannot be computed exactly: {error}") from None
    return replace(release, question=limited, bounds_notes=(*notes, *release.bounds_notes))


def _size_phrase(question: Question, total: Sum) -> str:
    """State the radius of a sum's ball, in the units of its values."""
    groups, norm = effective_bounds(question).groups, question.bounds.norm
    radius = float((total.max_term or 0) * total.grid.step) * (groups if norm is Norm.L1 else groups**0.5)
    if question.max_groups_per_unit == 1:
        return f"at most {radius:,.4g}"
    return f"an {norm.value} norm of at most {radius:,.4g} over all groups"


def _contribution_notes(question: Question, context: BindContext, automatic: AutomaticBounds | None) -> list[str]:
    unit = unit_phrase(context.policy)
    if not question.needs_clipping:
        return []
    notes, most, kinds = [], question.max_rows_per_group, {type(total) for total in question.totals}
    if limited_sums(question, automatic):
        kinds -= {Sum}  # stated by with_limited_sums
    summed, capped = kinds & {Count, Sum}, question.bounds.cap_rows
    one_group = question.max_groups_per_unit == 1
    if (summed and capped) or HistogramTree in kinds:
        notes.append(f"Each {unit} contributes at most {count_phrase(most, 'row')}{'' if one_group else ' per group'}.")
    elif summed and one_group:
        notes.append(f"Each {unit} contributes at most {count_phrase(most, 'row')}.")
    if summed and not one_group and (question.needs_l0_clipping or not capped):
        notes.append(f"Each {unit}'s rows per group are clipped together: {_norm_phrase(question)}.")
    if CountDistinct in kinds:
        values = count_phrase(most, "distinct value")
        notes.append(f"Each {unit} contributes at most {values} per group, chosen by a hash.")
    if question.needs_l0_clipping and kinds - {Count, Sum, SelectionWeight}:
        groups = count_phrase(question.bounds.groups, "group")
        notes.append(f"Each {unit} contributes to at most {groups}; contributions to more groups are clipped.")
    return notes


def _norm_phrase(question: Question) -> str:
    """State the radius of the ball in words."""
    bounds = effective_bounds(question)
    if bounds.norm is Norm.L1:
        worth = bounds.rows * bounds.groups
        rows = "1 row's" if worth == 1 else f"{worth:,} rows'"
        return f"at most {rows} worth over all groups (l1 norm)"
    rows, groups = count_phrase(bounds.rows, "row"), count_phrase(bounds.groups, "group")
    example = f"{rows} in {'' if bounds.groups == 1 else 'each of '}{groups}"
    return f"an l2 norm of at most {squared_radius(bounds) ** 0.5:,.4g} over all groups, such as {example}"


def _clamping_notes(labels_by_aggregate: Mapping[SelectedAggregate, str], rows: PrivateSource) -> list[str]:
    """State how values are clamped and rounded, unless they cannot lie outside the range."""
    columns, labels_by_range = rows.columns_by_name(), dict[str, list[str]]()
    operands = [
        (operand, label)
        for aggregate, label in labels_by_aggregate.items()
        for operand in ((aggregate.y, aggregate.x) if isinstance(aggregate, PairAggregate) else (aggregate,))
    ]
    for aggregate, label in operands:
        if (
            aggregate.scale is None
            or aggregate.expr is None
            or (stays_in_range(aggregate.expr, columns) and not _contains_clip(aggregate.expr))
        ):
            continue
        labels_by_range.setdefault(_range_phrase(aggregate), []).append(label)
    return [
        f"In {enumerate_words(labels)}, values are clamped to the range {how}."
        for how, labels in labels_by_range.items()
    ]


def _range_phrase(aggregate: Aggregate | ValueAggregate) -> str:
    """State the range of an aggregate's values, and how they are rounded: dates to days, if at all."""
    scale, expr = aggregate.scale, aggregate.expr
    assert scale is not None
    assert expr is not None
    if isinstance(aggregate, ValueAggregate) and aggregate.origin is not None:
        first, last = (aggregate.origin + timedelta(days=int(end)) for end in (scale.low, scale.high))
        return f"from {first} to {last}"
    rounded = (
        "" if expr.type is Type.INTEGER and scale.step == 1 else f" and rounded to steps of {format_number(scale.step)}"
    )
    return f"from {format_number(scale.low)} to {format_number(scale.high)}{rounded}"


def _contains_clip(expr: Expr) -> bool:
    return isinstance(expr, Call) and (expr.op == "clip" or any(map(_contains_clip, expr.args)))


_BOUND_HINT = (
    "Pass groups and rows, write OPTIONS(max_groups_contributed=…, max_rows_contributed=…), or ask the owner to "
    "declare groups and rows for the table."
)
_MEANS_AND_VARIANCES = (BasicFunction.AVG, *VarianceStatistic, *PairStatistic)


def possible_contribution(grouping: RowGrouping, aggregates: Sequence[SelectedAggregate]) -> PossibleContribution:
    """Return how much a unit can contribute before clipping."""
    only_units = bool(aggregates) and all(aggregate.function is BasicFunction.COUNT_UNITS for aggregate in aggregates)
    rows = 1 if only_units else _max_rows_per_key(grouping.rows.relation, _key_columns(grouping))
    return PossibleContribution(_max_groups(grouping), rows)


def contribution_bounds_for(
    grouping: RowGrouping,
    aggregates: Sequence[SelectedAggregate],
    possible: PossibleContribution,
    context: BindContext,
    select: GroupedSelect,
) -> tuple[ContributionBounds, AutomaticBounds | None]:
    """Return the contribution bounds of a question, and which of them are chosen automatically.

    Bounds that are not chosen yet are 1 here. They are for counts, sums, means and variances; else Refused.
    """
    relation = grouping.rows.relation
    max_rows_per_unit = relation.shape.max_rows_per_unit
    norm = Norm.L1 if context.policy.budget.rho is None else Norm.L2
    # A mean needs the same weight above and below. In a single group the cap of a count is its ball, so that a mean can
    # use the count of an earlier query; but automatic bounds of counts and of means differ.
    has_mean = divides_sum_by_count(select) or any(
        aggregate.function in _MEANS_AND_VARIANCES for aggregate in aggregates
    )
    has_count = not aggregates or any(aggregate.function is BasicFunction.COUNT for aggregate in aggregates)
    if relation.shape.unit is None or max_rows_per_unit == 1:
        return ContributionBounds(1, 1, norm), None
    requested, most_rows = context.requested_bounds, possible.rows or max_rows_per_unit
    groups: Bound = requested.groups or _policy_bound(relation, "groups", context) or max_rows_per_unit or AUTO
    rows: Bound = requested.rows or _policy_bound(relation, "rows", context) or most_rows or AUTO
    groups, rows = 1 if possible.groups == 1 else groups, 1 if possible.rows == 1 else rows
    automatic = None
    cap_rows = has_mean or (possible.groups == 1 and has_count and rows != AUTO)
    if AUTO in (groups, rows):
        _check_automatic(aggregates, context, select.select.node)
        key = sha256(repr((relation, grouping.by, grouping.groups, tuple(aggregates))).encode()).hexdigest()
        declared = _declared_instead(groups, rows, relation, context, possible)
        automatic = AutomaticBounds(key, groups == AUTO, rows == AUTO, declared)
        if (chosen := context.chosen_bounds.get(key)) is not None:
            groups, rows = chosen.groups, chosen.rows
            automatic = replace(automatic, chosen=True, blind=chosen.blind)
    bounds = possible.within(declared_bound(groups) or 1, declared_bound(rows) or 1)
    return ContributionBounds(*bounds, norm, cap_rows), automatic


def divides_sum_by_count(select: GroupedSelect) -> bool:
    """Return whether the SELECT list has a mean in the form of a sum divided by a count of rows."""
    return any(
        any(isinstance(each, exp.Sum) for each in _aggregates_in(division.this))
        and any(
            isinstance(each, exp.Count) and not isinstance(each.this, exp.Distinct)
            for each in _aggregates_in(division.expression)
        )
        for item in select.select.items
        for division in item.node.find_all(exp.Div)
    )


def _aggregates_in(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of an expression, but not those of window functions and subqueries."""
    return node.walk(prune=lambda part: isinstance(part, exp.Window | exp.Query))


def _declared_instead(
    groups: Bound, rows: Bound, relation: Relation, context: BindContext, possible: PossibleContribution
) -> ChosenBounds | None:
    """Return the bounds with the policy's numbers instead of "auto"; None if it does not have them."""
    most_groups = declared_bound(_policy_bound(relation, "groups", context) if groups == AUTO else groups)
    most_rows = declared_bound(_policy_bound(relation, "rows", context) if rows == AUTO else rows)
    if most_groups is None or most_rows is None:
        return None
    return ChosenBounds(*possible.within(most_groups, most_rows), blind=True)


def _check_automatic(aggregates: Sequence[SelectedAggregate], context: BindContext, node: exp.Expr) -> None:
    """Refuse automatic bounds where they cannot be chosen."""
    if not context.policy.budget_entry.bounds_share:
        cause = "automatic contribution bounds are switched off by the policy (bounds_share = 0)"
        raise refuse(node, "SELECT", cause, _BOUND_HINT)
    distinct = any(aggregate.function is BasicFunction.COUNT_DISTINCT for aggregate in aggregates)
    if distinct or any(isinstance(aggregate, ValueAggregate) for aggregate in aggregates):
        what = "COUNT(DISTINCT …) of values" if distinct else "quantiles, MIN, MAX and most frequent values"
        cause = f"contribution bounds cannot be chosen automatically for {what}"
        raise refuse(node, "SELECT", cause, _BOUND_HINT)


# A threshold has to allow for units with many keys of their own. Units far above the bound are few, and weigh little.
_SELECTION_GROUPS_PER_BOUND = 32


def limit_selection(grouping: RowGrouping, bounds: ContributionBounds) -> PublicGroups | SelectedGroups:
    """Return the groups; of those from the data, with the most groups of a unit that counts in partition selection."""
    if isinstance(grouping.groups, PublicGroups):
        return grouping.groups
    one_row = grouping.rows.relation.shape.max_rows_per_unit == 1
    one_group = one_row or _max_groups(grouping) == 1
    return replace(grouping.groups, max_groups=1 if one_group else selection_limit(bounds.groups))


def selection_limit(groups: int) -> int:
    """Return the maximum number of groups of a unit that counts in partition selection, given the bound on groups."""
    return max(groups, min(MAX_SELECTION_GROUPS, _SELECTION_GROUPS_PER_BOUND * groups))


def _policy_bound(relation: Relation, name: str, context: BindContext) -> Bound | None:
    """Return the largest bound that the policy declares for the private tables involved; "auto" if one says so."""
    declared = [getattr(context.policy.tables[table], name) for table in _private_tables(relation)]
    if AUTO in declared:
        return AUTO
    return max((bound for bound in declared if bound is not None), default=None)


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


def _max_rows_per_key(relation: Relation, keys: frozenset[str]) -> int | None:  # noqa: PLR0911 - one case per node
    """Return the maximum number of a unit's rows with equal keys; None if unbounded."""
    match relation:
        case PerUnit(_, columns):
            return 1 if {name for name, _ in columns} <= keys else None
        case Where(source) | SemiJoinOnUnit(source):
            return _max_rows_per_key(source, keys)
        case NumberRows(source, number, partition, _, last):
            if all(isinstance(expr, Column) and expr.name in keys for expr in partition):
                return 1 if number in keys else last
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
