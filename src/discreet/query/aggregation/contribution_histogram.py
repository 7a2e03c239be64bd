"""Build contribution histograms: questions that count units by the norm of their contribution to another release."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache
from math import log

from discreet.estimate.contribution_histogram import (
    HALF_OCTAVE,
    OCTAVE,
    ContributionHistogram,
    HistogramTarget,
    Measured,
    PossibleContribution,
    as_measured,
    bucket_ends,
    effective_bounds,
    limited_sums,
    merge_targets,
    norm_of,
    octave_ends,
    squared_radius,
    start_of_buckets,
)
from discreet.estimate.planned_release import PlannedRelease
from discreet.kernel.ball import Norm
from discreet.kernel.errors import Refused
from discreet.kernel.expr import AggregateFunction, Call, Column, Constant, Expr, Type, UnitAggregate, Value
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import MAX_SUM, PerUnit, Relation, Where
from discreet.kernel.totals import Count, CountUnits, Sum, max_abs_contribution
from discreet.policy.entries import BudgetEntry
from discreet.query.canonical_form import canonical_release
from discreet.query.column_pruning import prune_columns
from discreet.query.relations.predicates import conjunction

_MAX_LISTED = 4_000  # values of a key in a condition
_MAX_SQUARED_NORM = 1 << 62
_MAX_SQUARABLE = 1 << 31  # a number of rows whose square fits in 64 bits
_MAX_SUM = 1 << 42  # the largest term of a sum in the kernel, in steps
_SIZE, _NORM = "size", "f0"  # as the canonical form calls the last, so that expressions of it need no change


def with_histograms(releases: tuple[PlannedRelease, ...], budget: BudgetEntry) -> tuple[PlannedRelease, ...]:
    """Return the releases, and the contribution histograms that serve them, each once."""
    by_question: dict[Question, list[PlannedRelease]] = {}
    for release in releases:
        for histogram in _histograms_of(release, budget):
            by_question.setdefault(histogram.question, []).append(histogram)
    used = {release.name.lower() for release in releases}
    names = (name for number in range(len(used) + len(by_question)) if (name := f"h{number}") not in used)
    shared = [
        replace(equal[0], name=name, histogram=merge_targets([each.histogram for each in equal if each.histogram]))
        for name, equal in zip(names, by_question.values(), strict=False)
    ]
    return (*releases, *shared)


def _histograms_of(release: PlannedRelease, budget: BudgetEntry) -> Iterator[PlannedRelease]:
    """Yield the histograms of a release: those that its bounds are chosen from, or the one that reports on clipping."""
    if release.automatic:
        for measured in _automatic_choices(release):
            histogram = _histogram_release(release, measured, budget.bounds_share)
            if histogram is None:
                raise Refused(
                    "GROUP BY: a key has too many declared values for automatic contribution bounds. "
                    "Declare groups and rows."
                )
            yield histogram
    elif budget.bounds_report and (reported := _reported_contribution(release)):
        histogram = _histogram_release(release, reported, budget.bounds_report)
        if histogram is not None:
            yield histogram


def _automatic_choices(release: PlannedRelease) -> Iterator[Measured]:
    """Yield what automatic bounds are chosen from; the number of groups if units are counted in several groups.

    Sums with a ball of their own have a histogram each, and need none of rows unless groups are selected.
    """
    question, automatic = release.question, release.automatic
    assert automatic is not None
    counts_units = any(isinstance(total, CountUnits) for total in question.totals) and release.possible.groups != 1
    if of_groups := automatic.groups and counts_units:
        yield CountUnits()
    limited = limited_sums(question, automatic)
    only_limited = bool(limited) and not any(isinstance(total, Count) for total in question.totals)
    needs_rows = _counted_rows(question) and (not only_limited or isinstance(question.groups, SelectedGroups))
    if needs_rows and (automatic.rows or not of_groups):
        yield _counted(question)
    for index in limited:
        total = question.totals[index]
        assert isinstance(total, Sum)
        yield _without_limit(total)


def _reported_contribution(release: PlannedRelease) -> Measured | None:
    """Return what a report on clipping measures; None if no unit can be clipped, or nothing is counted or summed.

    Quantiles depend little on the weight of single units.
    """
    question = release.question
    if not question.needs_clipping:
        return None
    if _counted_rows(question):
        exceeds = _max_squared_norm(release, Count()) > squared_radius(effective_bounds(question))
        return _counted(question) if exceeds else None
    counts_units = any(isinstance(total, CountUnits) for total in question.totals)
    return CountUnits() if counts_units and question.needs_l0_clipping and release.possible.groups != 1 else None


def _counted_rows(question: Question) -> bool:
    return any(isinstance(total, Count | Sum) for total in question.totals)


def _max_squared_norm(release: PlannedRelease, measured: Measured) -> int:
    """Return the largest square of the norm of a unit's contribution."""
    if isinstance(measured, Sum):
        return min(_MAX_SUM, release.question.relation.shape.max_rows * max_abs_contribution(measured)) ** 2
    question, possible = release.question, release.possible
    shape = question.relation.shape
    most = min(shape.max_rows, shape.max_rows_per_unit or shape.max_rows)
    groups = min(filter(None, (possible.groups, question.max_groups_per_unit)), default=None)
    if isinstance(measured, CountUnits):
        return PossibleContribution(groups or most, 1).squared_norm(question.bounds.norm, most)
    return PossibleContribution(groups, possible.rows).squared_norm(question.bounds.norm, most)


def _histogram_release(release: PlannedRelease, measured: Measured, share: Fraction) -> PlannedRelease | None:
    """Return the histogram of one release; None if its keys cannot be listed in a condition."""
    question = release.question
    norm, bounds = question.bounds.norm, _bounds_of(question, measured)
    relation = _rows_in_groups(question, measured.expr if isinstance(measured, Count) else None)
    if relation is None:
        return None
    # The kernel cannot compute larger bounds, and squares of larger norms do not fit.
    limit = _MAX_SQUARED_NORM
    if not isinstance(measured, Sum):
        limit = min(limit, (MAX_SUM // question.relation.shape.max_rows) ** 2)
    top = min(limit, _max_squared_norm(release, measured))
    ends = octave_ends(norm, top) if release.automatic else bucket_ends(norm, squared_radius(bounds), top)
    key = _bucket_number(ends, norm, OCTAVE if release.automatic else HALF_OCTAVE)
    groups = PublicGroups((tuple(range(len(ends))),))
    units = _with_norm(relation, question, measured)
    counted = Question(units, (("bucket", key),), groups, ContributionBounds(1, 1), (Count(),))
    chosen = release.automatic is None or release.automatic.chosen
    histogram = ContributionHistogram(
        measured,
        tuple(norm_of(end, norm) for end in ends),
        share,
        (HistogramTarget(release.name, squared_radius(bounds) ** 0.5 if chosen else None),),
    )
    return canonical_release(PlannedRelease("", prune_columns(counted), ("bucket",), (), (), (), histogram=histogram))


def _counted(question: Question) -> Count:
    """Return the count of rows that a histogram is about.

    All rows are counted where the bias is not computed from the histogram, so that more queries share it.
    """
    exprs = {total.expr for total in question.totals if isinstance(total, Count)}
    return Count(exprs.pop()) if len(exprs) == 1 and not question.bounds.cap_rows else Count()


def _bounds_of(question: Question, measured: Measured) -> ContributionBounds:
    """Return the bounds whose squared_radius is that of the measured total: in rows, groups or steps."""
    bounds = effective_bounds(question)
    if isinstance(measured, CountUnits):
        return replace(bounds, rows=1)
    limits = [
        total.max_term for total in question.totals if isinstance(total, Sum) and _without_limit(total) == measured
    ]
    return replace(bounds, rows=limits[0] or 1) if limits else bounds


def _without_limit(total: Sum) -> Sum:
    return replace(total, max_term=None)


def _rows_in_groups(question: Question, expr: Expr | None) -> Relation | None:
    """Return the rows that a question counts; None if its keys cannot be listed in a condition."""
    conditions: list[Expr] = [] if expr is None else [Call("not", (Call("is_null", (expr,)),))]
    if isinstance(question.groups, PublicGroups):
        for (_, key), domain in zip(question.by, question.groups.domains, strict=True):
            condition = _is_listed(key, domain)
            if condition is None:
                return None
            conditions.append(condition)
    condition = conjunction(conditions)
    return question.relation if condition is None else Where(question.relation, condition)


def _is_listed(key: Expr, domain: tuple[Value, ...]) -> Expr | None:
    """Return the condition that a key is in its domain; None if that would be too long."""
    values = [value for value in domain if value is not None]
    listed: list[Expr] = []
    if values and (ends := _contiguous_range(values)):
        low, high = (Constant(end, key.type) for end in ends)
        listed = [Call("and", (Call("at_most", (low, key)), Call("at_most", (key, high))))]
    elif values:
        if len(values) > _MAX_LISTED:
            return None
        listed = [Call("one_of", (key, *(Constant(value, key.type) for value in values)))]
    listed += [Call("is_null", (key,))] if None in domain else []
    return listed[0] if len(listed) == 1 else Call("or", tuple(listed))


def _contiguous_range(values: Sequence[Value]) -> tuple[Value, Value] | None:
    """Return the ends of a long list of consecutive integers or days; None for any other list."""
    kinds = {type(value) for value in values}
    if len(values) < 3 or kinds not in ({int}, {date}):
        return None
    low, high = min(values), max(values)  # type: ignore[type-var]
    steps = (high - low) // timedelta(days=1) if kinds == {date} else high - low  # type: ignore[operator]
    return (low, high) if steps == len(values) - 1 else None


def _with_norm(relation: Relation, question: Question, measured: Measured) -> Relation:
    """Return one row for each unit, with its l1 norm or the square of its l2 norm."""
    rows, is_l1 = UnitAggregate(AggregateFunction.ROWS), question.bounds.norm is Norm.L1
    if isinstance(measured, CountUnits):  # the square of sqrt(k) is k
        return PerUnit(PerUnit(relation, question.by, ()), (), ((_NORM, rows),))
    if isinstance(measured, Count) and is_l1:
        return PerUnit(relation, (), ((_NORM, rows),))
    size: Expr = Column(_SIZE, Type.INTEGER)
    term = rows
    if isinstance(measured, Sum):
        term = UnitAggregate(AggregateFunction.GRID_SUM, measured.expr, measured.grid)
        size = Call("coalesce", (Call("abs", (size,)), Constant(0, Type.INTEGER)))
    by_group = PerUnit(relation, question.by, ((_SIZE, term),))
    return PerUnit(by_group, (), ((_NORM, UnitAggregate(AggregateFunction.SUM, size if is_l1 else _square(size))),))


def _square(number: Expr) -> Expr:
    """Return the square of a number of rows or steps; above 2^31, that of 2^31."""
    least = Call("least", (number, Constant(_MAX_SQUARABLE - 1, Type.INTEGER)))
    return Call("multiply", (least, least))


_SLACK = 1 - 2.0**-44  # so that a norm at the lower end of a bucket is in it, whatever the last bit of a logarithm


@lru_cache(maxsize=64)
def _bucket_number(ends: tuple[int, ...], norm: Norm, factor: int) -> Expr:
    """Return the number of a norm's bucket: NULL below the first, the last one if the norm does not fit in 64 bits.

    The squares of the lower ends grow by a factor, apart from rounding, so the number is a logarithm. A CASE with a
    branch for each bucket would take longer to plan than most queries take to run.
    """
    value, last = Column(_NORM, Type.INTEGER), Constant(len(ends) - 1, Type.INTEGER)
    first = start_of_buckets(ends, norm, factor)
    ratio = Call("divide", (Call("to_real", (value,)), Constant(as_measured(first, norm) * _SLACK, Type.REAL)))
    logarithm = Call("divide", (Call("ln", (ratio,)), Constant(log(as_measured(factor, norm)), Type.REAL)))
    number = Call("least", (Call("to_integer", (Call("floor", (logarithm,)),)), last))  # ignores NULL
    below = Call("less", (value, Constant(ends[0], Type.INTEGER)))
    return Call("case", (below, Constant(None, Type.INTEGER), number))
