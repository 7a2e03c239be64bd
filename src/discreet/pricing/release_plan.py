"""Release plans: which totals need fresh noise, and the marginal cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from discreet.estimate.intervals import ReleaseNoise
from discreet.estimate.planned_release import PlannedRelease
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.mechanism import Laplace
from discreet.kernel.partition_selection import PartitionSelection
from discreet.kernel.refinement import Refinement
from discreet.kernel.release import ReleaseRequest
from discreet.kernel.totals import Sum
from discreet.pricing.allocation import Allocation, ask_for, noise_for
from discreet.pricing.combined_release import combined_noise
from discreet.pricing.release_history import PastRelease, ReleaseHistory, estimators_digest
from discreet.pricing.stored_totals import Cuts

_INT64_ENDS = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_NOT_COMBINABLE = (
    "An earlier, less accurate answer exists, but quantiles and most frequent values cannot be refined: "
    "the full cost is charged."
)
_UNDECLARED_VERSION = (
    "An earlier, less accurate answer exists, but it cannot be refined, because the policy does not declare `version`: "
    "the full cost is charged."
)
_NOT_REFINABLE = "An earlier, less accurate answer exists, but it cannot be refined further: the full cost is charged."


@dataclass(frozen=True)
class FreshDraws:
    """The fresh draws of one release: the amount for each total, by index, and the draws that they refine."""

    amounts: dict[int, Fraction] = field(default_factory=dict)
    refined: dict[int, PastRelease] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """The draws to make and their cost; without requests there is nothing to draw.

    `total_cost` includes earlier draws; `noises` and `thresholds` are those of each release afterwards; `record` is the
    allocation as recorded in the ledger.
    """

    asks: tuple[ReleaseRequest, ...] = ()
    marginal_cost: Loss = ZERO_LOSS
    total_cost: Loss = ZERO_LOSS
    noises: tuple[tuple[ReleaseNoise, ...], ...] = ()
    thresholds: tuple[tuple[Cuts, ...], ...] = ()
    record: dict[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def plan_release(histories: Sequence[ReleaseHistory], allocation: Allocation, delta: Fraction) -> ReleasePlan:
    """Return the draws needed to reach the allocation; `delta` is per release with partition selection."""
    shared = _shared_allocation(histories, allocation)
    fresh = _without_lone_histograms(histories, list(map(_fresh_draws, histories, shared)))
    noises = tuple(map(_resulting_noises, histories, fresh, shared))
    fresh = _without_duplicates(histories, fresh)
    asks = {
        release_index: _build_ask(histories[release_index], new, delta)
        for release_index, new in enumerate(fresh)
        if new.amounts
    }
    thresholds = [
        [*(draw.thresholds for draw in history.draws), *([_cuts_of(asks[number])] if number in asks else [])]
        for number, history in enumerate(histories)
    ]
    amounts_record = [
        [str(fresh[number].amounts.get(at, 0)) for at in range(len(ask.noises))] for number, ask in asks.items()
    ]
    estimators_record = [
        "" if histories[number].combinable else estimators_digest(histories[number].release) for number in asks
    ]
    automatic_record = [_chosen_bounds(histories[number].release) for number in asks]
    new_delta = delta * sum(bool(_cuts_of(ask)) for ask in asks.values())
    return ReleasePlan(
        tuple(asks.values()),
        _marginal_cost(histories, fresh, new_delta),
        _total_cost(histories, fresh, new_delta),
        noises,
        tuple(tuple(cuts for cuts in dict.fromkeys(each) if cuts) for each in thresholds),
        {"paid": [*amounts_record], "recipes": [*estimators_record]}
        | ({"automatic": automatic_record} if any(automatic_record) else {}),
        tuple(dict.fromkeys(note for each, new in zip(histories, fresh, strict=True) for note in _notes(each, new))),
    )


def _chosen_bounds(release: PlannedRelease) -> object:
    """Return the record of automatic contribution bounds; None if they were declared."""
    bounds, automatic = release.question.bounds, release.automatic
    if automatic is None:
        return None
    sums = [total.max_term for total in release.question.totals if isinstance(total, Sum) and total.max_term]
    return [bounds.groups, bounds.rows, automatic.blind, *([sums] if sums else [])]


def _cuts_of(request: ReleaseRequest) -> Cuts:
    """Return the thresholds of a request, one for each round of partition selection."""
    selection = request.noises[0]
    return tuple(each.cut for each in selection.rounds) if isinstance(selection, PartitionSelection) else ()


def reusable_cost(history: ReleaseHistory, index: int) -> Fraction:
    """Return the part of a total's earlier cost that counts towards refining it."""
    if not history.combinable:
        return Fraction(0)
    return (
        history.cost_of(index) if history.noise_type is not Laplace or _refinable_draw(history, index) else Fraction(0)
    )


def noise_at_cost(history: ReleaseHistory, index: int, amount: Fraction) -> ReleaseNoise:
    """Return the noise of a total once its total cost is `amount`."""
    cost = history.cost_of(index) if history.combinable else Fraction(0)
    drawn = [draw.noises[index] for draw in history.draws_of(index)] if cost else []
    if history.noise_type is Laplace:
        best = history.best_draw(index)
        return (
            best.noises[index]
            if best and amount <= cost
            else noise_for(history.release, index, amount, history.noise_type)
        )
    new = [noise_for(history.release, index, amount - cost, history.noise_type)] if amount > cost else []
    return combined_noise([*drawn, *new])


def _shared_allocation(histories: Sequence[ReleaseHistory], allocation: Allocation) -> Allocation:
    """Return the allocation with the largest amount for totals that several releases share, which are drawn once."""
    largest: dict[str, Fraction] = {}
    for history, amounts in zip(histories, allocation, strict=True):
        for fingerprint, amount in zip(history.fingerprints, amounts, strict=True) if history.shareable else ():
            largest[fingerprint] = max(amount, largest.get(fingerprint, amount))
    return tuple(
        tuple(largest[fingerprint] for fingerprint in each.fingerprints) if each.shareable else amounts
        for each, amounts in zip(histories, allocation, strict=True)
    )


def _without_duplicates(histories: Sequence[ReleaseHistory], fresh: Sequence[FreshDraws]) -> list[FreshDraws]:
    """Drop draws that an earlier release of the query makes already."""
    seen: set[str] = set()
    deduplicated = []
    for history, new in zip(histories, fresh, strict=True):
        if not history.shareable:
            deduplicated.append(new)
            continue
        amounts = {index: amount for index, amount in new.amounts.items() if history.fingerprints[index] not in seen}
        seen |= {history.fingerprints[place] for place in amounts}
        deduplicated.append(
            FreshDraws(amounts, {place: before for place, before in new.refined.items() if place in amounts})
        )
    return deduplicated


def _without_lone_histograms(histories: Sequence[ReleaseHistory], fresh: Sequence[FreshDraws]) -> list[FreshDraws]:
    """Drop the draws of contribution histograms whose releases are part of the query and not drawn themselves."""
    drawn = {history.release.name: bool(new.amounts) for history, new in zip(histories, fresh, strict=True)}

    def is_alone(history: ReleaseHistory) -> bool:
        targets = history.release.histogram.targets if history.release.histogram else ()
        served = [drawn[target.release] for target in targets if target.release in drawn]
        return bool(served) and not any(served)

    return [FreshDraws() if is_alone(history) else new for history, new in zip(histories, fresh, strict=True)]


def _fresh_draws(history: ReleaseHistory, amounts: tuple[Fraction, ...]) -> FreshDraws:
    all_amounts = dict(enumerate(amounts))
    if not history.combinable:
        reusable = any(
            all(draw.costs[index] >= amount for index, amount in all_amounts.items()) for draw in history.draws
        )
        return FreshDraws() if reusable else FreshDraws(all_amounts)
    missing = {place: amount for place, amount in all_amounts.items() if amount > history.cost_of(place)}
    if history.noise_type is Laplace:
        refined = {place: finer for place in missing if (finer := _refinable_draw(history, place))}
        return FreshDraws(missing, {} if history.selects_partitions else refined)
    if history.selects_partitions and missing and len(missing) < len(all_amounts):
        return FreshDraws(all_amounts)  # a draw with partition selection has all totals
    return FreshDraws({place: amount - history.cost_of(place) for place, amount in missing.items()})


def _refinable_draw(history: ReleaseHistory, index: int) -> PastRelease | None:
    """Return the draw of a total that can be refined: the most accurate one, if it is the newest and not truncated.

    Two draws of one receipt cannot be distinguished, and one of them may belong to a release that shares nothing.
    """
    best = history.best_draw(index)
    if best is None or not history.source or best.noisy.source != history.source:
        return None  # the data may have changed
    if history.selects_partitions or best.receipt != history.latest_receipts.get(index):
        return None
    if sum(draw.receipt == best.receipt for draw in history.draws_of(index)) > 1:
        return None
    saturated = np.isin(best.noisy.values[:, index], _INT64_ENDS).any()
    return best if isinstance(best.noises[index], Laplace) and not saturated else None


def _build_ask(history: ReleaseHistory, new: FreshDraws, delta: Fraction) -> ReleaseRequest:
    indices = range(len(history.fingerprints))
    filler = max(new.amounts.values())  # for totals that are not drawn; their noise is not used
    noises = [
        noise_for(history.release, index, new.amounts.get(index, filler), history.noise_type) for index in indices
    ]
    refined = {index: _refinement(draw, index, noises[index]) for index, draw in new.refined.items()}
    not_released = dict.fromkeys(index for index in indices if index not in new.amounts)
    return ask_for(history.release, noises, delta, {**refined, **not_released})


def _refinement(draw: PastRelease, index: int, noise: ReleaseNoise) -> Refinement:
    before = draw.noises[index]
    assert isinstance(before, Laplace)
    assert isinstance(noise, Laplace)
    return Refinement(draw.receipt, before, noise)


def _resulting_noises(
    history: ReleaseHistory, new: FreshDraws, amounts: tuple[Fraction, ...]
) -> tuple[ReleaseNoise, ...]:
    """Return the noise of a release after the fresh draws."""
    indices = range(len(history.fingerprints))
    if not history.combinable:
        best = max(history.draws, key=lambda draw: (sum(draw.costs.values()), draw.order), default=None)
        if new.amounts or best is None:
            return tuple(noise_for(history.release, index, amounts[index], history.noise_type) for index in indices)
        return tuple(best.noises[place] for place in indices)
    if history.noise_type is Laplace:
        return tuple(noise_at_cost(history, place, max(amounts[place], history.cost_of(place))) for place in indices)
    noises = []
    for place in indices:
        drawn = [draw.noises[place] for draw in history.draws_of(place)]
        amount = new.amounts.get(place, Fraction(0) if drawn else amounts[place])
        drawn += [noise_for(history.release, place, amount, history.noise_type)] if amount else []
        noises.append(combined_noise(drawn))
    return tuple(noises)


def _marginal_cost(histories: Sequence[ReleaseHistory], fresh: Sequence[FreshDraws], delta: Fraction) -> Loss:
    """Return the cost of the fresh draws: the differences of the epsilons, or the sum of all rho."""
    after = sum((sum(new.amounts.values()) for new in fresh), Fraction(0))
    if not after:
        return ZERO_LOSS
    if histories[0].noise_type is not Laplace:
        return Loss(None, after, delta)
    before = sum(
        (history.cost_of(index) for history, new in zip(histories, fresh, strict=True) for index in new.refined),
        Fraction(0),
    )
    return Loss.of_bounds(after - before, Loss(after).rho, delta)


def _total_cost(histories: Sequence[ReleaseHistory], fresh: Sequence[FreshDraws], delta: Fraction) -> Loss:
    """Return the cost of all totals after the fresh draws, each counted once."""
    costs: dict[str, Fraction] = {}
    for history, new in zip(histories, fresh, strict=True):
        before = (
            _best_draw_costs(history)
            if not history.combinable
            else dict(enumerate(map(history.cost_of, range(len(history.fingerprints)))))
        )
        delta += sum((draw.delta for draw in history.draws if history.combinable), Fraction(0))
        for index, fingerprint in enumerate(history.fingerprints):
            more, had = new.amounts.get(index, Fraction(0)), before.get(index, Fraction(0))
            combined = max(more, had) if history.noise_type is Laplace or not history.combinable else more + had
            name = fingerprint if history.shareable else f"{fingerprint} {history.release.name}"
            costs[name] = max(combined, costs.get(name, combined))
    total = sum(costs.values(), Fraction(0))
    return Loss(total, None, delta) if histories[0].noise_type is Laplace else Loss(None, total, delta)


def _best_draw_costs(history: ReleaseHistory) -> dict[int, Fraction]:
    """Return the costs of the best draw of a release whose draws cannot be combined."""
    best = max(history.draws, key=lambda draw: (sum(draw.costs.values()), draw.order), default=None)
    return dict(best.costs) if best else {}


def _notes(history: ReleaseHistory, new: FreshDraws) -> list[str]:
    if not history.combinable:
        return [_NOT_COMBINABLE] if history.draws and new.amounts else []
    redrawn = {index for index in new.amounts if history.draws_of(index)}
    not_refinable = history.noise_type is Laplace and bool(redrawn - set(new.refined))
    return [_NOT_REFINABLE if history.source else _UNDECLARED_VERSION] if not_refinable else []
