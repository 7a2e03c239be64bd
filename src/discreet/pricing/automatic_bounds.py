"""Automatic contribution bounds: chosen from released contribution histograms, and kept once a question is answered.

Every choice is a function of released numbers, the query, the policy and the ledger, so it needs no budget of its own.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from statistics import NormalDist

from discreet.estimate.contribution_buckets import ContributionBuckets, RadiusChoice, RadiusGoal, choose_radius
from discreet.estimate.contribution_histogram import (
    ChosenBounds,
    Contribution,
    Measured,
    bounds_for_radius,
    contribution_to,
    limited_sums,
    squared_radius,
)
from discreet.estimate.estimators import CONFIDENCE
from discreet.estimate.intervals import additive
from discreet.estimate.planned_release import (
    NoisyCount,
    NoisySum,
    PlannedRelease,
    QueryPlan,
    column_origins,
    noisy_sources,
)
from discreet.kernel.ball import Norm
from discreet.kernel.errors import Refused
from discreet.kernel.event import Event
from discreet.kernel.fingerprint import fingerprints_of, rows_digest
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import PublicGroups, SelectedGroups
from discreet.kernel.totals import Count, CountUnits, SelectionWeight, Sum, Total, max_abs_contribution
from discreet.policy import Policy
from discreet.pricing.allocation import NoiseType, allocate_cost
from discreet.pricing.combined_release import combine_draws
from discreet.pricing.cost_request import data_version, noise_type_for
from discreet.pricing.release_history import ReleaseHistory
from discreet.pricing.stored_totals import stored_draws
from discreet.query.aggregation.contribution_bounds import selection_limit

HistoryLookup = Callable[[tuple[PlannedRelease, ...]], tuple[ReleaseHistory, ...]]
Replan = Callable[..., QueryPlan]  # with the chosen bounds, or without
_SELECTION_POWER = 2  # with partition selection, an l2 radius is that of about 2^2 groups, so that several count
_SLACK = 1 - 1e-9  # a radius on the ladder is a float
_SERVED_TOTALS = {Contribution.ROWS: (Count, Sum), Contribution.GROUPS: (CountUnits,)}
_NO_MARGIN = (
    "margin: the contribution bounds are chosen automatically, from a histogram that is not released yet, so the cost "
    "of this margin is not known. Give epsilon for the first answer, or declare groups and rows."
)


def choose_bounds(
    plan: QueryPlan, request: Loss | dict[str, Fraction], policy: Policy, ledger: Ledger, look_up: HistoryLookup
) -> dict[str, ChosenBounds] | None:
    """Return the automatic bounds of a plan, by AutomaticBounds.key; None if a histogram has to be released first.

    A question that was answered with automatic bounds keeps them, so that asking it again is free.
    """
    chosen = {}
    for release in plan.pending:
        assert release.automatic is not None
        choice = _Choice(plan, release, request, policy, look_up)
        bounds = _kept_bounds(plan, release, policy, ledger) or choice.bounds()
        bounds = bounds and _with_sums(choice, bounds, ledger)
        if bounds is None:
            if isinstance(request, dict):
                raise Refused(_NO_MARGIN)
            return None
        chosen[release.automatic.key] = bounds
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


def missing_histograms(plan: QueryPlan, look_up: HistoryLookup) -> tuple[PlannedRelease, ...]:
    """Return the histograms that automatic bounds are chosen from and that are not released yet."""
    pending = {release.name for release in plan.pending}
    needed = tuple(
        release
        for release in plan.releases
        if release.histogram and any(target.release in pending for target in release.histogram.targets)
    )
    return tuple(history.release for history in look_up(needed) if not history.draws)


def buckets_of(history: ReleaseHistory) -> ContributionBuckets:
    """Return a released histogram."""
    assert history.release.histogram is not None
    (piece,) = combine_draws(history).pieces
    return ContributionBuckets(history.release.histogram.lows, piece.noisy.values[:, 0], additive(piece.noises[0]))


def _histograms_of(plan: QueryPlan, release: PlannedRelease) -> dict[Measured, PlannedRelease]:
    return {
        each.histogram.measured: each
        for each in plan.releases
        if each.histogram and any(target.release == release.name for target in each.histogram.targets)
    }


def _histograms_by_contribution(plan: QueryPlan, release: PlannedRelease) -> dict[Contribution, PlannedRelease]:
    """Return the histograms that groups and rows are chosen from."""
    histograms = _histograms_of(plan, release).items()
    return {contribution_to(measured): each for measured, each in histograms if not isinstance(measured, Sum)}


def _bounds_at(release: PlannedRelease, radii: Mapping[Contribution, float], *, blind: bool = False) -> ChosenBounds:
    """Return the bounds of a release for the radii that its histograms give."""
    question, automatic, possible = release.question, release.automatic, release.possible
    assert automatic is not None
    norm, bounds = question.bounds.norm, question.bounds
    groups = None if automatic.groups else bounds.groups
    rows = None if automatic.rows else bounds.rows
    if Contribution.GROUPS in radii:
        groups, _ = bounds_for_radius(radii[Contribution.GROUPS], norm, rows=1)
        groups = min(groups, possible.groups or groups)
    if Contribution.ROWS in radii:
        radius = radii[Contribution.ROWS]
        if groups is None and rows is None and isinstance(question.groups, SelectedGroups) and not bounds.cap_rows:
            groups = _selection_groups(radius, norm)
        groups, rows = bounds_for_radius(radius, norm, groups=groups, rows=rows)
    groups, rows = groups or 1, rows or 1
    return ChosenBounds(min(groups, possible.groups or groups), min(rows, possible.rows or rows), blind)


def _selection_groups(radius: float, norm: Norm) -> int | None:
    """Return a number of groups whose square root divides an l2 radius; None if the radius is too small."""
    groups, rows = bounds_for_radius(radius, norm)
    return groups << _SELECTION_POWER if norm is Norm.L2 and rows > 1 else None


def _kept_bounds(plan: QueryPlan, release: PlannedRelease, policy: Policy, ledger: Ledger) -> ChosenBounds | None:
    """Return the automatic bounds with which totals of this question were released first; None if none were.

    Each of its histograms must have served one of these totals, so that none of the bounds is that of another question.
    """
    version, histograms = data_version(policy), _histograms_by_contribution(plan, release)
    if not histograms:
        return None
    listed = isinstance(release.question.groups, PublicGroups)  # then the groups do not depend on the bounds
    rows = rows_digest(release.question, version) if listed else None
    candidates = {
        fingerprint: (bounds, total)
        for bounds in _candidate_bounds(release, histograms)
        for fingerprint, total in zip(
            _fingerprints_at(release, bounds, version, rows), release.question.totals, strict=False
        )
    }
    served: dict[tuple[int, int], set[Contribution]] = {}
    for event, answer in ledger.answers(candidates):
        for draw in stored_draws(event) if answer is not None else ():
            bounds, total = candidates.get(draw.fingerprint, (None, None))
            recorded = _recorded_bounds(event, draw.part)
            if bounds is None or recorded is None or (recorded.groups, recorded.rows) != (bounds.groups, bounds.rows):
                continue
            contributions = served.setdefault((bounds.groups, bounds.rows), set())
            contributions |= {each for each, kinds in _SERVED_TOTALS.items() if isinstance(total, kinds)}
            if contributions >= set(histograms):
                return replace(recorded, sums=())
    return None


def _candidate_bounds(
    release: PlannedRelease, histograms: Mapping[Contribution, PlannedRelease]
) -> Iterator[ChosenBounds]:
    """Yield all bounds that may be chosen for a release."""
    if release.automatic and release.automatic.declared:
        yield release.automatic.declared
    ladders = [[(kind, low) for low in each.histogram.lows] for kind, each in histograms.items() if each.histogram]
    yield from dict.fromkeys(_bounds_at(release, dict(radii)) for radii in product(*ladders))


def _fingerprints_at(
    release: PlannedRelease,
    bounds: ChosenBounds,
    version: str,
    rows: str | None = None,
    totals: tuple[Total, ...] | None = None,
) -> tuple[str, ...]:
    """Return the fingerprints of a question's totals with other bounds; none if sums could exceed 64 bits."""
    question = release.question
    try:
        limited = replace(question.bounds, groups=bounds.groups, rows=bounds.rows)
        groups = question.groups
        if isinstance(groups, SelectedGroups) and groups.max_groups > 1:
            groups = replace(groups, max_groups=selection_limit(bounds.groups))
        question = replace(question, bounds=limited, groups=groups, totals=totals or question.totals)
        return fingerprints_of(question, version, rows)
    except ValueError:
        return ()


def _recorded_bounds(event: Event, part: int) -> ChosenBounds | None:
    """Return the automatic bounds of one part of an event; None if its bounds were declared."""
    try:
        groups, rows, blind, *_ = json.loads(event.question)["automatic"][part]
        return ChosenBounds(int(groups), int(rows), bool(blind))
    except (ValueError, KeyError, IndexError, TypeError):
        return None


@dataclass(frozen=True)
class _Choice:
    """Chooses the bounds of one release for a request, from its histograms."""

    plan: QueryPlan
    release: PlannedRelease
    request: Loss | dict[str, Fraction]
    policy: Policy
    look_up: HistoryLookup

    def bounds(self) -> ChosenBounds | None:
        """Return groups and rows; None if a histogram is not released. Blindly, they are those of the policy."""
        choices = {
            contribution: self.radius(histogram, self._served(contribution))
            for contribution, histogram in _histograms_by_contribution(self.plan, self.release).items()
        }
        radii = {contribution: choice.radius for contribution, choice in choices.items() if choice}
        if len(radii) < len(choices):
            return None
        blind = any(choice.blind for choice in choices.values() if choice)
        assert self.release.automatic is not None
        return (self.release.automatic.declared if blind else None) or _bounds_at(self.release, radii, blind=blind)

    def _served(self, contribution: Contribution) -> list[int]:
        """Return the totals that are clipped to the radius of a contribution."""
        question, kinds = self.release.question, _SERVED_TOTALS[contribution]
        served = [index for index, total in enumerate(question.totals) if isinstance(total, kinds)]
        limited = limited_sums(question, self.release.automatic)
        return [index for index in served if index not in limited] or served

    def radius(self, histogram: PlannedRelease, served: Sequence[int]) -> RadiusChoice | None:
        """Choose the radius of some totals; None if the histogram is not released."""
        (history,) = self.look_up((histogram,))
        if not history.draws:
            return None
        question = self.release.question
        goal = RadiusGoal.MEANS if question.bounds.cap_rows else RadiusGoal.MARGINS
        cells = question.groups.key_count if isinstance(question.groups, PublicGroups) else 1
        buckets = buckets_of(history)
        if (deviation := self._requested_deviation(served)) is not None:
            return _radius_for_deviation(buckets, deviation, cells, goal)
        cost = self.request if isinstance(self.request, Loss) else _cost_of_first_request(history, self.policy)
        return choose_radius(buckets, self._noise_ratio(served, cost), cells, goal)

    def _noise_ratio(self, served: Sequence[int], cost: Loss) -> float:
        """Return the standard deviation of the noise of a total, divided by the radius."""
        amounts = allocate_cost(self.plan.releases, cost)[self.plan.releases.index(self.release)]
        amount = max(float(amounts[index]) for index in served)
        return math.sqrt(2) / amount if cost.epsilon is not None else 1 / math.sqrt(2 * amount)

    def _requested_deviation(self, served: Sequence[int]) -> float | None:
        """Return the standard deviation of noise, in rows or steps, for the smallest margin requested for a total."""
        deviations, question = [], self.release.question
        limited = limited_sums(question, self.release.automatic)
        for name, margin in self.request.items() if isinstance(self.request, dict) else ():
            for part, measure in noisy_sources(self.plan, column_origins(self.plan)[name]):
                estimator = measure.estimator
                if part is not self.release or not isinstance(estimator, NoisyCount | NoisySum):
                    continue
                if (index := estimator.total) in served:
                    total = question.totals[index]
                    step = total.grid.step if isinstance(total, Sum) else Fraction(1)
                    unit = step if index in limited else step * max_abs_contribution(total)
                    deviations.append(float(margin / unit) / _margin_in_deviations(noise_type_for(self.policy)))
        return min(deviations, default=None)


def _with_sums(choice: _Choice, bounds: ChosenBounds, ledger: Ledger) -> ChosenBounds | None:
    """Return bounds with the largest terms of sums: kept ones, or from their histograms; None if one is missing."""
    release, histograms = choice.release, _histograms_of(choice.plan, choice.release)
    automatic, sums, blind = release.automatic, [], bounds.blind
    assert automatic is not None
    for index in limited_sums(release.question, automatic):
        total = release.question.totals[index]
        assert isinstance(total, Sum)
        histogram = histograms[total]
        kept = _kept_term(release, bounds, total, histogram, choice.policy, ledger)
        if kept is None:
            chosen = choice.radius(histogram, [index])
            if chosen is None:
                return None
            kept = _term_at(chosen.radius, bounds, release), chosen.blind
            if chosen.blind and automatic.declared:
                kept = _declared_term(total, automatic.declared, bounds, release), True
        sums.append(kept[0])
        blind |= kept[1]
    return replace(bounds, sums=tuple(sums), blind=blind)


def _term_at(radius: float, bounds: ChosenBounds, release: PlannedRelease) -> int:
    """Return the largest term of a sum whose ball has at least this radius, in steps."""
    groups = bounds.groups if release.question.bounds.norm is Norm.L1 else math.sqrt(bounds.groups)
    return max(1, math.ceil(radius / groups * _SLACK))


def _declared_term(total: Sum, declared: ChosenBounds, bounds: ChosenBounds, release: PlannedRelease) -> int:
    """Return the largest term of a sum whose ball has the radius of the declared bounds."""
    limits = replace(release.question.bounds, groups=declared.groups, rows=declared.rows)
    return _term_at(math.sqrt(squared_radius(limits)) * max_abs_contribution(total), bounds, release)


def _kept_term(  # noqa: PLR0913, PLR0917 - a total, where it is from, and where it may be stored
    release: PlannedRelease,
    bounds: ChosenBounds,
    total: Sum,
    histogram: PlannedRelease,
    policy: Policy,
    ledger: Ledger,
) -> tuple[int, bool] | None:
    """Return the largest term with which a sum was released first, and whether it was chosen blindly; or None."""
    assert release.automatic is not None
    assert histogram.histogram is not None
    terms = [_term_at(low, bounds, release) for low in histogram.histogram.lows]
    if declared := release.automatic.declared:
        terms.append(_declared_term(total, declared, bounds, release))
    candidates = {}
    first: tuple[Total, ...] = tuple(each for each in release.question.totals[:1] if isinstance(each, SelectionWeight))
    for term in dict.fromkeys(terms):
        totals = (*first, replace(total, max_term=term))
        for fingerprint in _fingerprints_at(release, bounds, data_version(policy), totals=totals)[-1:]:
            candidates[fingerprint] = term
    for event, answer in ledger.answers(candidates):
        for draw in stored_draws(event) if answer is not None else ():
            if draw.fingerprint in candidates:
                recorded = _recorded_bounds(event, draw.part)
                return candidates[draw.fingerprint], recorded is not None and recorded.blind
    return None


def _radius_for_deviation(buckets: ContributionBuckets, deviation: float, cells: int, goal: RadiusGoal) -> RadiusChoice:
    """Return the least radius that would be chosen if noise had this standard deviation at that radius."""
    for low in buckets.lows:
        choice = choose_radius(buckets, deviation / low, cells, goal)
        if choice.radius <= low:
            return replace(choice, radius=low)
    return choose_radius(buckets, deviation / buckets.lows[-1], cells, goal)


def _cost_of_first_request(history: ReleaseHistory, policy: Policy) -> Loss:
    """Return the cost of the request for which a histogram was released, from its share of it."""
    cost = history.cost_of(0) / policy.budget_entry.bounds_share
    return Loss(cost) if history.noise_type is Laplace else Loss(None, cost)


def _margin_in_deviations(noise_type: NoiseType) -> float:
    """Return the 95 % margin of noise with a standard deviation of 1."""
    if noise_type is Gaussian:
        return NormalDist().inv_cdf(float(1 + CONFIDENCE) / 2)
    return -math.log(float(1 - CONFIDENCE)) / math.sqrt(2)


def without_missing_histograms(
    plan: QueryPlan, histories: Sequence[ReleaseHistory]
) -> tuple[QueryPlan, tuple[ReleaseHistory, ...]]:
    """Return a plan and its histories without the histograms that were never released."""
    known = tuple(history for history in histories if history.draws or not history.release.histogram)
    return replace(plan, releases=tuple(history.release for history in known)), known
