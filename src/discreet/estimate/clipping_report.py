"""The clipping report of an answer: by how much clipping makes its numbers too low, from contribution histograms.

For the total of a count over all groups, a histogram gives a lower bound and an estimate of what clipping removed.
Neither holds for a single group or for another aggregate: a group gets a share of the estimate in proportion to its
released count, and other numbers are only marked as possibly biased.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from discreet.answer.bias import POSSIBLE_BIAS, Bias
from discreet.estimate.clipped_release import ClippedRelease, MeasuredClipping, can_be_clipped
from discreet.estimate.clipping_text import ReportWords, clipping_notes, clipping_sentence
from discreet.estimate.contribution_buckets import ContributionBuckets
from discreet.estimate.intervals import additive
from discreet.estimate.planned_release import QueryPlan, column_origins, noisy_sources
from discreet.kernel.relation import Derive, JoinPublic, PerUnit, Relation, Scan, SemiJoinOnUnit, Union, Where
from discreet.kernel.totals import Count, CountUnits, Sum
from discreet.policy import Policy
from discreet.policy.guarantee import pluralise, protected_noun
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
    sentences = dict.fromkeys(clipping_sentence(clipped, words) for clipped in reported)
    return ClippingReport(bias, tuple(filter(None, sentences)), tuple(clipping_notes(reported, words)))


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
        case Where(source) | Derive(source) | SemiJoinOnUnit(source) | PerUnit(source):
            return _declared_rows(source, policy)
        case JoinPublic():
            most = _declared_rows(relation.source, policy)
            return most and most * relation.fanout
        case Union(left, right):
            first, second = _declared_rows(left, policy), _declared_rows(right, policy)
            return None if first is None or second is None else first + second
    return None
