"""Automatic contribution bounds: chosen from released contribution histograms.

A choice is a function of the first draw of each histogram, the question and the policy. So it needs no budget of its
own, and a question keeps its bounds however often, and at whatever cost, it is asked.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.estimate.contribution_buckets import ContributionBuckets, RadiusChoice, RadiusGoal, choose_radius
from discreet.estimate.contribution_histogram import ChosenBounds, Measured, bounds_for_radius, limited_sums
from discreet.estimate.intervals import additive
from discreet.estimate.planned_release import PlannedRelease, QueryPlan
from discreet.kernel.ball import Norm
from discreet.kernel.errors import Refused
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Laplace
from discreet.kernel.question import PublicGroups, Question, SelectedGroups
from discreet.kernel.totals import Count, CountUnits, Sum, max_abs_contribution
from discreet.pricing.combined_release import combine_draws, total_cost
from discreet.pricing.cost_request import AccuracyTarget, HistoryLookup
from discreet.pricing.release_history import ReleaseHistory
from discreet.pricing.release_plan import ReleasePlan, plan_release

Replan = Callable[..., QueryPlan]  # with the chosen bounds, or without
_SELECTION_POWER = 2  # with partition selection, an l2 radius is that of about 2^2 groups, so that several count
_SLACK = 1 - 1e-9  # a radius on the ladder is a float
_NO_MARGIN = (
    "margin: the contribution bounds are chosen automatically, from a histogram that is not released yet, so the cost "
    "of this margin is not known. Give epsilon for the first answer, or declare groups and rows."
)


@dataclass(frozen=True, eq=False)
class ContributionEvidence:
    """Released contribution histograms of a query whose bounds are automatic, by what they measure; and their cost.

    `paid` is what was charged now: less than `cost`, or nothing, if earlier histograms were reused.
    """

    release: PlannedRelease
    buckets: Mapping[Measured, ContributionBuckets]
    cost: Loss
    paid: Loss
    receipts: tuple[str, ...]

    @property
    def norm(self) -> Norm:
        """The norm in which contributions are clipped."""
        return self.release.question.bounds.norm

    @property
    def cells(self) -> int:
        """The number of groups of an answer, as far as it is declared."""
        return _cell_count(self.release.question)

    def noise_ratio(self, cost: Loss) -> float:
        """Return the deviation of the noise of a count at this cost, divided by the radius."""
        return math.sqrt(2) / float(cost.epsilon) if cost.epsilon is not None else 1 / math.sqrt(2 * float(cost.rho))

    def choose(self, cost: Loss, goal: RadiusGoal) -> ChosenBounds:
        """Return the contribution bounds for answers at this cost."""
        ratio = self.noise_ratio(cost)
        choices = {
            measured: choose_radius(buckets, ratio, self.cells, goal) for measured, buckets in self.buckets.items()
        }
        return bounds_for_choices(self.release, choices)


def contribution_evidence(
    release: PlannedRelease, histories: Sequence[ReleaseHistory], paid: Loss
) -> ContributionEvidence:
    """Return what the histograms of a release, all of them released, show of contributions."""
    draws = [combine_draws(history) for history in histories]
    buckets = {}
    for history, combined in zip(histories, draws, strict=True):
        histogram, (piece,) = history.release.histogram, combined.pieces
        assert histogram is not None
        noise = additive(piece.noises[0])
        buckets[histogram.measured] = ContributionBuckets(histogram.lows, piece.noisy.values[:, 0], noise)
    cost = total_cost(draws, histories[0].noise_type)
    return ContributionEvidence(release, buckets, cost, paid, tuple(combined.latest.receipt for combined in draws))


def choose_bounds(
    plan: QueryPlan, request: Loss | dict[str, Fraction], look_up: HistoryLookup
) -> dict[str, ChosenBounds] | None:
    """Return the automatic bounds of a plan, by AutomaticBounds.key; None if a histogram has to be released first."""
    chosen = {}
    for release in plan.pending:
        assert release.automatic is not None
        histories = look_up(_histograms_of(plan, {release.name}))
        if not all(history.draws for history in histories):
            if isinstance(request, dict):
                raise Refused(_NO_MARGIN)
            return None
        chosen[release.automatic.key] = bounds_for_choices(
            release, dict(_choose(each, release.question) for each in histories)
        )
    return chosen


def plan_with_bounds(replan: Replan, chosen: Mapping[str, ChosenBounds]) -> QueryPlan:
    """Plan a query with the chosen bounds, or with the largest smaller ones for which its sums fit in 64 bits."""
    while True:
        try:
            return replan(chosen)
        except Refused:
            smaller = {key: _halved(bounds) for key, bounds in chosen.items()}
            if smaller == chosen:
                raise
            chosen = smaller


def _halved(bounds: ChosenBounds) -> ChosenBounds:
    return replace(bounds, rows=max(1, bounds.rows // 2), sums=tuple(max(1, max_term // 2) for max_term in bounds.sums))


def query_histograms(plan: QueryPlan) -> tuple[PlannedRelease, ...]:
    """Return the histograms that the automatic bounds of a plan are chosen from, whether they are released or not."""
    return _histograms_of(plan, {release.name for release in plan.pending})


def missing_histograms(plan: QueryPlan, look_up: HistoryLookup) -> tuple[PlannedRelease, ...]:
    """Return the histograms that automatic bounds are chosen from and that are not released yet."""
    return tuple(history.release for history in look_up(query_histograms(plan)) if not history.draws)


def plan_evenly(histories: tuple[ReleaseHistory, ...], cost: Loss) -> tuple[AccuracyTarget, ReleasePlan]:
    """Plan histograms that share the whole of a cost, without the query that they serve."""
    amount = (cost.rho if cost.epsilon is None else cost.epsilon) / len(histories)
    target = AccuracyTarget(((amount,),) * len(histories), Fraction(0), histories)
    return target, plan_release(histories, target.allocation, target.delta)


def _histograms_of(plan: QueryPlan, names: set[str]) -> tuple[PlannedRelease, ...]:
    """Return the histograms that are about one of some releases."""
    return tuple(
        release
        for release in plan.releases
        if release.histogram and any(target.release in names for target in release.histogram.targets)
    )


def _choose(history: ReleaseHistory, question: Question) -> tuple[Measured, RadiusChoice]:
    """Choose the radius of the total that a histogram is about, for the noise that the rest of the cost buys."""
    histogram, draw = history.release.histogram, history.draws[0]
    assert histogram is not None
    buckets = ContributionBuckets(histogram.lows, draw.noisy.values[:, 0], additive(draw.noises[0]))
    odds = float(histogram.share / (1 - histogram.share))
    noise_ratio = buckets.deviation * (odds if history.noise_type is Laplace else math.sqrt(odds))
    goal = RadiusGoal.MEANS if question.bounds.cap_rows else RadiusGoal.MARGINS
    return histogram.measured, choose_radius(buckets, noise_ratio, _cell_count(question), goal)


def _cell_count(question: Question) -> int:
    return question.groups.key_count if isinstance(question.groups, PublicGroups) else 1


def bounds_for_choices(release: PlannedRelease, choices: Mapping[Measured, RadiusChoice]) -> ChosenBounds:
    """Return the bounds for the radii of a release; blindly, those of the policy, if it has them."""
    question, automatic, possible = release.question, release.automatic, release.possible
    assert automatic is not None
    blind = any(choice.blind for choice in choices.values())
    sums = [total for index in limited_sums(question, automatic) if isinstance(total := question.totals[index], Sum)]
    if blind and (declared := automatic.declared):
        return replace(declared, sums=tuple(declared.rows * max_abs_contribution(total) for total in sums))
    bounds, norm = question.bounds, question.bounds.norm
    groups = None if automatic.groups else bounds.groups
    rows = None if automatic.rows else bounds.rows
    radii = {type(measured): choice.radius for measured, choice in choices.items()}
    if CountUnits in radii:
        groups, _ = bounds_for_radius(radii[CountUnits], norm, rows=1)
        groups = min(groups, possible.groups or groups)
    if Count in radii:
        if groups is None and rows is None and isinstance(question.groups, SelectedGroups) and not bounds.cap_rows:
            groups = _selection_groups(radii[Count], norm)
        groups, rows = bounds_for_radius(radii[Count], norm, groups=groups, rows=rows)
    groups, rows = groups or 1, rows or 1
    groups, rows = min(groups, possible.groups or groups), min(rows, possible.rows or rows)
    weight = groups if norm is Norm.L1 else math.sqrt(groups)
    terms = (choices[replace(total, max_term=None)].radius / weight * _SLACK for total in sums)
    return ChosenBounds(groups, rows, blind, tuple(max(1, math.ceil(term)) for term in terms))


def _selection_groups(radius: float, norm: Norm) -> int | None:
    """Return a number of groups whose square root divides an l2 radius; None if the radius is too small."""
    groups, rows = bounds_for_radius(radius, norm)
    return groups << _SELECTION_POWER if norm is Norm.L2 and rows > 1 else None


def without_missing_histograms(
    plan: QueryPlan, histories: Sequence[ReleaseHistory]
) -> tuple[QueryPlan, tuple[ReleaseHistory, ...]]:
    """Return a plan and its histories without the histograms that were never released."""
    known = tuple(history for history in histories if history.draws or not history.release.histogram)
    return replace(plan, releases=tuple(history.release for history in known)), known
