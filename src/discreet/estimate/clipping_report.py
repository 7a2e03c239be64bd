"""The clipping report of an answer: by how much clipping makes its numbers too low, from contribution histograms.

For the total of a count over all groups, a histogram gives a lower bound and an estimate of what clipping removed.
Neither holds for a single group or for another aggregate: a group gets a share of the estimate in proportion to its
released count, and other numbers are only marked as possibly biased.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from discreet.answer.bias import POSSIBLE_BIAS, Bias
from discreet.answer.text import count_phrase, enumerate_words, round_down, round_up
from discreet.estimate.clipped_release import ClippedRelease, MeasuredClipping, can_be_clipped
from discreet.estimate.contribution_buckets import ContributionBuckets, clipped_rows
from discreet.estimate.contribution_histogram import AutomaticBounds, effective_bounds, limited_sums
from discreet.estimate.intervals import additive
from discreet.estimate.planned_release import (
    Frequencies,
    Mean,
    Measure,
    NoisyCount,
    NoisySum,
    PairMeasure,
    PlannedRelease,
    Quantile,
    QueryPlan,
    Variance,
    column_origins,
    noisy_sources,
)
from discreet.kernel.ball import Norm
from discreet.kernel.question import Question
from discreet.kernel.relation import (
    Derive,
    JoinPublic,
    NumberRows,
    PerUnit,
    Relation,
    Scan,
    SemiJoinOnUnit,
    Union,
    Where,
)
from discreet.kernel.totals import Count, CountDistinct, CountUnits, Sum
from discreet.policy import Policy
from discreet.policy.guarantee import pluralise, protected_noun, unit_phrase
from discreet.postprocess import PostprocessResult

if TYPE_CHECKING:
    from discreet.pricing import CombinedRelease


_PRECEDENCE = (CountUnits, Sum, Count)


@dataclass(frozen=True, eq=False)
class ClippingReport:
    """The bias of each number that clipping may make too low, a line of text, and notes on what it means."""

    bias: dict[str, list[Bias | None]]
    sentences: tuple[str, ...]
    notes: tuple[str, ...]


def clipping_report(
    plan: QueryPlan,
    tables: Sequence["CombinedRelease"],
    policy: Policy,
    released: Mapping[str, pa.Table],
    result: PostprocessResult,
) -> ClippingReport:
    """Return the clipping bias of an answer.

    `tables` has the draws of each release, `released` its table with sorted rows, `result` the answer's own table.
    """
    releases = _clipped_releases(plan, tables, policy, released)
    bias = dict(_biased_columns(plan, releases, result))
    sources = {name: noisy_sources(plan, column_origins(plan)[name]) for name in bias}
    shown = {part.name for parts in sources.values() for part, _ in parts}
    reported = [clipped for name, clipped in releases.items() if name in shown]
    words = ReportWords(
        pluralise(protected_noun(policy)),
        ratios=any(len(parts) > 1 for parts in sources.values()),
        reason="" if policy.budget_entry.bounds_report else " (bounds_report = 0)",
    )
    sentences = [clipping_sentence(clipped, words) for clipped in _without_repetitions(reported)]
    sentences += [automatic_bounds_sentence(part, unit_phrase(policy), words.units) for part in plan.answering]
    return ClippingReport(bias, tuple(dict.fromkeys(filter(None, sentences))), tuple(clipping_notes(reported, words)))


def _without_repetitions(reported: Sequence["ClippedRelease"]) -> list["ClippedRelease"]:
    """Return the releases to report on: of those that only bound how many units were clipped, the largest bound."""
    largest = max(filter(_bounds_units_only, reported), key=_hidden_units, default=None)
    return [clipped for clipped in reported if clipped is largest or not _bounds_units_only(clipped)]


def _bounds_units_only(clipped: "ClippedRelease") -> bool:
    """Return whether nothing is known of the bias but how many units may be above the bounds."""
    removed = clipped.removed
    return removed is not None and clipped.measured is not None and removed.low < 1 and removed.high is None


def _clipped_releases(
    plan: QueryPlan, tables: Sequence["CombinedRelease"], policy: Policy, released: Mapping[str, pa.Table]
) -> dict[str, ClippedRelease]:
    """Return the releases whose contributions may be clipped, by name, each with its histogram."""
    measured = dict(_measured_clipping(plan, tables))
    clipped = {}
    for part, table in zip(plan.releases, tables, strict=True):
        most = contribution_max(part.question.relation, policy)
        if can_be_clipped(part, most):
            piece = max(table.pieces, key=lambda each: len(each.noisy.keys))
            clipped[part.name] = ClippedRelease(part, released[part.name], piece.noises, measured.get(part.name), most)
    return clipped


def _measured_clipping(plan: QueryPlan, tables: Sequence["CombinedRelease"]) -> Iterator[tuple[str, MeasuredClipping]]:
    """Yield the clipping of each release that has a histogram, by name; the last one counts, by precedence."""
    measured = sorted(
        (
            (part.histogram, table.pieces[0])
            for part, table in zip(plan.releases, tables, strict=True)
            if part.histogram
        ),
        key=lambda pair: _PRECEDENCE.index(type(pair[0].measured)),
    )
    for histogram, piece in measured:
        buckets = ContributionBuckets(histogram.lows, piece.noisy.values[:, 0], additive(piece.noises[0]))
        for target in histogram.targets:
            if target.radius is not None:
                yield target.release, MeasuredClipping(buckets, target.radius, histogram.measured)


def _biased_columns(
    plan: QueryPlan, releases: Mapping[str, ClippedRelease], result: PostprocessResult
) -> Iterator[tuple[str, list[Bias | None]]]:
    for name, origin in column_origins(plan).items():
        sources = [
            (releases[part.name], measure)
            for part, measure in noisy_sources(plan, origin)
            if part.name in releases and releases[part.name].may_bias(measure)
        ]
        if not sources:
            continue
        is_null = result.table.column(name).is_null().to_pylist()
        column: list[Bias | None] = [POSSIBLE_BIAS] * len(is_null)
        if name in result.source_rows:
            ((clipped, measure),) = sources
            released = clipped.bias_of(measure)
            column = [released[row] if row >= 0 else None for row in result.source_rows[name]]
        yield name, [None if missing else bias for missing, bias in zip(is_null, column, strict=True)]


def contribution_max(relation: Relation, policy: Policy) -> int | None:
    """Return the largest number of rows of one unit, by the owner's statements; None if they do not say."""
    most = _declared_rows(relation, policy)
    limit = relation.shape.max_rows_per_unit
    return most if most is None or limit is None else min(most, limit)


def _declared_rows(relation: Relation, policy: Policy) -> int | None:
    match relation:
        case Scan(table):
            return policy.tables[table].contribution_max
        case Where(source) | Derive(source) | SemiJoinOnUnit(source) | PerUnit(source) | NumberRows(source):
            return _declared_rows(source, policy)
        case JoinPublic():
            most = _declared_rows(relation.source, policy)
            return most and most * relation.fanout
        case Union(left, right):
            first, second = _declared_rows(left, policy), _declared_rows(right, policy)
            return None if first is None or second is None else first + second
    return None


_DEVIATIONS = 2.0  # of the noise behind which units may be hidden
_BOUND_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)  # suggested bounds are these times a power of ten
_POWERS = 8
_WEIGHTED = {
    Mean: "averages",
    Variance: "variances",
    PairMeasure: "correlations and regressions",
    Quantile: "quantiles",
    Frequencies: "frequencies",
}

_ESTIMATE_NOTE = (
    "The lower bound of the clipping bias holds with 95 % confidence; the estimate is a best guess, not a bound."
)
_GROUPS_NOTE = (
    "The lower bound is for all groups together, not for a single one; the estimate of a group is in proportion to its "
    "count."
)
_RATIOS_NOTE = (
    "Counts and sums are clipped separately, which biases ratios of them. AVG(...), or a SUM divided by a COUNT in one "
    "SELECT list, is clipped alike above and below."
)
_HIDDEN_NOTE = "Below detection, a few {units} far above the bounds may be clipped unnoticed."


@dataclass(frozen=True)
class ReportWords:
    """What the report says of the query and the policy: the noun for units, and whether ratios are computed.

    `reason` is why clipping was not measured, if the policy says so.
    """

    units: str = "units"
    ratios: bool = False
    reason: str = ""


def clipping_sentence(clipped: ClippedRelease, words: ReportWords) -> str:
    """State how much clipping removed, and what that does to the numbers; nothing if they are quantiles only."""
    removed, measured = clipped.removed, clipped.measured
    if not any(isinstance(total, Count | CountUnits | Sum) for total in clipped.release.question.totals):
        return ""
    if removed is None or measured is None:
        return f"Clipping was not measured{words.reason}: {_effects(clipped, words)}."
    noun = _measured_noun(clipped, measured, words)
    if removed.low < 1:
        if removed.high is not None:
            limit = f"fewer than about {round_up(removed.high)} {noun}"
            return f"{_subject(clipped, limit)} (below detection at this epsilon)."
        hidden = f"Fewer than about {round_up(_hidden_units(clipped))} {words.units} exceed the bounds"
        return f"{hidden}; what they lose is not in the margins."
    amount = _subject(clipped, f"at least {round_down(removed.low)} {noun}{_share_phrase(clipped, removed)}")
    return f"{amount}: {_effects(clipped, words)}{_suggestion(clipped, measured, removed)}."


def _measured_noun(clipped: ClippedRelease, measured: MeasuredClipping, words: ReportWords) -> str:
    """Return what was clipped: rows, units, or a part of a sum."""
    if isinstance(measured.counted, Sum):
        return f"of {clipped.count.label if clipped.count else 'the sums'}"
    return "rows" if isinstance(measured.counted, Count) else words.units


def automatic_bounds_sentence(release: PlannedRelease, unit: str, units: str) -> str:
    """Name the contribution bounds that were chosen automatically, or blindly; nothing if they are declared."""
    automatic = release.automatic
    if automatic is None or not automatic.chosen:
        return ""
    limit = _unclipped_contribution(release, automatic)
    if automatic.uses_declared:
        cause = f"Too few {units} to choose the bounds at this epsilon: those that the policy declares were used"
        return f"{cause}, so each counts in full {limit}."
    if automatic.blind:
        return f"Too few {units} to choose the bounds well at this epsilon: each counts in full {limit}."
    return f"Chosen automatically: each {unit} counts in full {limit}."


def _unclipped_contribution(release: PlannedRelease, automatic: AutomaticBounds) -> str:
    """Return the largest contribution that is not clipped, in words."""
    question, bounds = release.question, effective_bounds(release.question)
    own = limited_sums(question, automatic)
    together = bounds.groups if bounds.norm is Norm.L1 else 1
    amounts = [count_phrase(bounds.rows * together, "row")] if _counts_rows(question, own) else []
    for measure in release.measures:
        if isinstance(measure.estimator, NoisySum) and measure.estimator.total in own:
            total = question.totals[measure.estimator.total]
            assert isinstance(total, Sum)
            amounts.append(f"{float((total.max_term or 0) * together * total.grid.step):,.4g} of {measure.label}")
    groups = count_phrase(bounds.groups, "group")
    if not amounts:
        return f"in up to {groups}"
    limit = f"with up to {enumerate_words(amounts)}"
    if question.max_groups_per_unit == 1:
        return limit
    if bounds.norm is Norm.L1:
        return f"{limit} in all groups together"
    return f"{limit} in {'each of ' if bounds.groups > 1 else ''}{groups}"


def _counts_rows(question: Question, own: Sequence[int]) -> bool:
    """Return whether some total is bounded by a number of rows: all but numbers of units and sums with `own` bounds."""
    return any(isinstance(total, Count | Sum) and index not in own for index, total in enumerate(question.totals))


def clipping_notes(releases: Sequence[ClippedRelease], words: ReportWords) -> Iterator[str]:
    """Yield what the report means, and what it does not."""
    reports = [(clipped, removed) for clipped in releases if (removed := clipped.removed)]
    if reports:
        yield _ESTIMATE_NOTE
    if any(clipped.count and not clipped.has_one_group for clipped, _ in reports):
        yield _GROUPS_NOTE
    if any(removed.low < 1 and removed.high is None for _, removed in reports):
        yield _HIDDEN_NOTE.format(units=words.units)
    if nouns := list(dict.fromkeys(noun for clipped in releases for noun in _weighted_nouns(clipped, words))):
        named = enumerate_words(nouns)
        yield f"{words.units.capitalize()} with many rows count for less in {named}, because of clipping."
    if words.ratios and any(not clipped.release.question.bounds.cap_rows for clipped in releases):
        yield _RATIOS_NOTE


def _subject(clipped: ClippedRelease, amount: str) -> str:
    """State what was removed from the count, or what is above the bounds if only other numbers are shown."""
    if not clipped.count:
        return f"{amount.capitalize()} are above the bounds"
    return f"Clipping removed {amount}{'' if clipped.has_one_group else ' over all groups'}"


def _share_phrase(clipped: ClippedRelease, removed: Bias) -> str:
    """Return the share of the count that was removed, at least, and how certain that is."""
    remaining, low = clipped.count_in_all_groups, removed.low * clipped.expansion
    share = f"{round_down(100 * low / (remaining + low))} %, " if remaining and remaining > 0 else ""
    return f" ({share}95 % confidence)"


def _effects(clipped: ClippedRelease, words: ReportWords) -> str:
    """Return what clipping does to the numbers of a release."""
    measures = [measure for measure in clipped.release.measures if clipped.may_bias(measure)]
    is_detected = clipped.removed is not None and clipped.removed.low >= 1
    counted = clipped.count and isinstance(clipped.count.estimator, NoisyCount)
    certain = _count_noun(clipped, clipped.count) if clipped.count and counted and is_detected else None
    counts = [_count_noun(clipped, measure) for measure in measures if isinstance(measure.estimator, NoisyCount)]
    parts = [f"{noun} {'are' if noun == certain else 'may be'} too low" for noun in dict.fromkeys(counts)]
    parts += ["sums may be biased"] if any(isinstance(measure.estimator, NoisySum) for measure in measures) else []
    weighted = _weighted_nouns(clipped, words)
    parts += [f"{words.units} with many rows count for less in {enumerate_words(weighted)}"] if weighted else []
    return enumerate_words(parts)


def _weighted_nouns(clipped: ClippedRelease, words: ReportWords) -> list[str]:
    """Return the numbers in which clipping changes the weight of a unit."""
    kinds = [type(measure.estimator) for measure in clipped.release.measures]
    return [noun for kind, noun in _WEIGHTED.items() if kind in kinds] + ["ratios"] * words.ratios


def _count_noun(clipped: ClippedRelease, measure: Measure) -> str:
    assert isinstance(measure.estimator, NoisyCount)
    total = clipped.release.question.totals[measure.estimator.total]
    return "distinct counts" if isinstance(total, CountUnits | CountDistinct) else "counts"


def _hidden_units(clipped: ClippedRelease) -> float:
    """Return about how many units can exceed the bounds: all above the radius, and two deviations of their noise."""
    measured = clipped.measured
    assert measured is not None
    ends = np.array([*measured.buckets.lows[1:], math.inf])  # the bucket with the radius counts as a whole
    above = measured.buckets.counts[ends > measured.radius]
    return max(0.0, float(above.sum())) + _DEVIATIONS * measured.buckets.deviation * math.sqrt(len(above))


def _suggestion(clipped: ClippedRelease, measured: MeasuredClipping, removed: Bias) -> str:
    """Return advice on the bounds, unless they are automatic or the bias is within the margin."""
    if clipped.release.automatic or _is_small(clipped, removed.estimate, 1.0):
        return ""
    bounds = clipped.release.question.bounds
    name, bound = ("rows", bounds.rows) if isinstance(measured.counted, Count) else ("groups", bounds.groups)
    for candidate in sorted({math.ceil(step * 10**power) for power in range(_POWERS) for step in _BOUND_STEPS}):
        factor = candidate / bound
        if name == "groups" and bounds.norm is Norm.L2:
            factor = math.sqrt(factor)  # the l2 norm of k groups
        if factor <= 1:
            continue
        excess = clipped_rows(measured.buckets, measured.radius * factor).estimate
        if _is_small(clipped, excess and excess * clipped.spread, factor):
            return f'; consider {name} = {candidate:,} or {name} = "auto"'
    return f'; consider {name} = "auto"'


def _is_small(clipped: ClippedRelease, removed: float | None, factor: float) -> bool:
    """Return whether the mean bias of a group is at most its margin, with a radius `factor` times as large."""
    margin = clipped.count_margin
    if margin is None or removed is None:
        return False
    return removed * clipped.expansion / clipped.cell_count <= margin * factor
