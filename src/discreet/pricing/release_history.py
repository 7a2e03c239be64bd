"""Earlier noisy totals of the same questions, found in the ledger by their fingerprints."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.estimate.intervals import ReleaseNoise
from discreet.estimate.planned_release import PlannedRelease
from discreet.kernel.errors import Refused
from discreet.kernel.event import Event
from discreet.kernel.fingerprint import digest, fingerprints_of
from discreet.kernel.ledger import Ledger
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import Question, SelectedGroups
from discreet.kernel.release import REFINABLE, NoisyTotals, ReleaseResult
from discreet.kernel.selection import QuantileSelection
from discreet.pricing.allocation import NoiseType
from discreet.pricing.stored_totals import (
    Cuts,
    StoredDraw,
    parse_totals,
    read_keys_and_values,
    read_question_totals,
    stored_draws,
)

_ZERO = Fraction(0)
_OTHER_MEANING = "key: this key was used under a policy that gave the query a different meaning. Use another key."


@dataclass(frozen=True, eq=False)
class PastRelease:
    """One stored draw of a release: the noisy values of some of its totals, by index, and their costs.

    `order` is its chronological position among all draws.
    """

    order: int
    receipt: str
    noisy: NoisyTotals  # one column per total of the current query, zeros where this draw has none
    noises: Mapping[int, ReleaseNoise]
    costs: Mapping[int, Fraction]  # the total epsilon, or the rho of this draw
    thresholds: Cuts = ()
    delta: Fraction = _ZERO


@dataclass(frozen=True, eq=False)
class ReleaseHistory:
    """The earlier draws of one release with one type of noise, oldest first.

    `latest_receipts` has the receipt of the only draw that can still be refined, for each total with Laplace noise, and
    `source` is the present Catalog.source.
    """

    release: PlannedRelease
    noise_type: NoiseType
    fingerprints: tuple[str, ...]
    draws: tuple[PastRelease, ...]
    latest_receipts: Mapping[int, str | None]
    source: str = ""

    @property
    def combinable(self) -> bool:
        """Whether totals of different draws can be combined, which histogram trees do not allow."""
        return all(isinstance(total, REFINABLE) for total in self.release.question.totals)

    @property
    def selects_partitions(self) -> bool:
        """Whether groups come from partition selection, separately in each draw."""
        return isinstance(self.release.question.groups, SelectedGroups)

    @property
    def shareable(self) -> bool:
        """Whether a draw of a total can be used by every release with that total."""
        return self.combinable and not self.selects_partitions

    def draws_of(self, index: int) -> list[PastRelease]:
        """Return the usable draws of one total."""
        return [draw for draw in self.draws if index in draw.noises]

    def best_draw(self, index: int) -> PastRelease | None:
        """Return the most accurate draw of one total."""
        return min(self.draws_of(index), key=lambda draw: draw.noises[index].scale, default=None)

    def draws_used(self, index: int) -> list[PastRelease]:
        """Return the draws that one total is computed from: the most accurate one, or all of them."""
        best = self.best_draw(index)
        return [best] if best is not None and self.noise_type is Laplace else self.draws_of(index)

    @property
    def is_complete(self) -> bool:
        """Whether every total has a draw."""
        return all(self.draws_of(at) for at in range(len(self.fingerprints)))

    def cost_of(self, index: int) -> Fraction:
        """Return the cost of a total so far: the largest epsilon, or the sum of all rho."""
        costs = [draw.costs[index] for draw in self.draws_of(index)]
        return max(costs, default=_ZERO) if self.noise_type is Laplace else sum(costs, _ZERO)


@lru_cache(maxsize=128)
def known_fingerprints(question: Question, version: str) -> tuple[str, ...]:
    """Return the fingerprints of a question; a query needs them several times, and its repeats again."""
    return fingerprints_of(question, version)


def look_up_histories(  # noqa: PLR0913 - the last three are optional
    releases: Sequence[PlannedRelease],
    ledger: Ledger,
    version: str,
    noise_type: NoiseType,
    *,
    source: str = "",
    until: str | None = None,
    just_released: ReleaseResult | None = None,
) -> tuple[ReleaseHistory, ...]:
    """Return the earlier draws of each release from the ledger, up to the receipt `until`.

    `just_released` is used directly, instead of reading it back, unless it is itself a stored answer.
    """
    fingerprints_by_release = [known_fingerprints(release.question, version) for release in releases]
    answers = ledger.answers({fingerprint for fingerprints in fingerprints_by_release for fingerprint in fingerprints})
    at_hand = {just_released.receipt.id: list(just_released.parts)} if just_released else {}
    stored = [(event, at_hand.get(event.id) or parse_totals(answer)) for event, answer in answers if answer is not None]
    if until is not None:
        receipts = [event.id for event, _ in stored]
        stored = stored[: receipts.index(until) + 1] if until in receipts else []
    histories = []
    for release, fingerprints in zip(releases, fingerprints_by_release, strict=True):
        draws = _stored_draws(release, fingerprints, stored, noise_type)
        pure = {index for draw in draws for index in draw.noises} if noise_type is Laplace else set()
        histories.append(
            ReleaseHistory(
                release,
                noise_type,
                fingerprints,
                draws,
                {place: ledger.latest_receipt(fingerprints[place]) for place in pure},
                source,
            )
        )
    if until is not None and not all(history.is_complete for history in histories if not history.release.histogram):
        raise Refused(_OTHER_MEANING)
    return tuple(histories)


def estimators_digest(release: PlannedRelease) -> str:
    """Return a digest of the estimators, which determine the walks in histogram trees."""
    return digest(tuple(sorted({digest(measure.estimator) for measure in release.measures})))


def _stored_draws(
    release: PlannedRelease,
    fingerprints: tuple[str, ...],
    stored: Sequence[tuple[Event, list[Any]]],
    noise_type: NoiseType,
) -> tuple[PastRelease, ...]:
    """Return the usable draws; with partition selection, those that have all totals."""
    combinable = all(isinstance(total, REFINABLE) for total in release.question.totals)
    needs_all = not combinable or isinstance(release.question.groups, SelectedGroups)
    needed = set(range(len(release.question.totals))) if needs_all else set()
    draws = []
    for order, (event, written_parts) in enumerate(stored):
        for part_index, written in enumerate(written_parts):
            drawn = {
                fingerprints.index(draw.fingerprint): draw
                for draw in stored_draws(event)
                if draw.part == part_index
                and draw.fingerprint in fingerprints
                and isinstance(draw.noise, (noise_type, QuantileSelection))
            }
            same = event.fingerprints[part_index] == fingerprints and _recorded(
                event, "recipes", part_index
            ) == estimators_digest(release)
            if drawn and (combinable or same) and needed <= set(drawn):
                noisy = (_read_totals if combinable else _read_whole)(written, release, drawn)
                draws.append(_stored_draw(order, event, release, noisy, drawn))
    return tuple(draws)


def _read_totals(written: Any, release: PlannedRelease, drawn: Mapping[int, StoredDraw]) -> NoisyTotals:
    """Return the stored totals that the current query needs."""
    at_hand = isinstance(written, NoisyTotals)
    keys, values = (written.keys, written.values) if at_hand else read_keys_and_values(written, release.question)
    columns = np.zeros((len(keys), len(release.question.totals)), np.int64)
    for index, draw in drawn.items() if keys else ():
        columns[:, index] = values[:, draw.position]
    return NoisyTotals(keys, columns, source=written.source if at_hand else written["source"])


def _read_whole(written: Any, release: PlannedRelease, drawn: Mapping[int, StoredDraw]) -> NoisyTotals:
    if isinstance(written, NoisyTotals):
        return written
    selections = {index: draw.noise for index, draw in drawn.items() if isinstance(draw.noise, QuantileSelection)}
    return read_question_totals(written, release.question, selections)


def _stored_draw(
    order: int, event: Event, release: PlannedRelease, noisy: NoisyTotals, drawn: Mapping[int, StoredDraw]
) -> PastRelease:
    thresholds = next((draw.thresholds for draw in drawn.values() if draw.thresholds), ())
    return PastRelease(
        order,
        event.id,
        noisy,
        {index: draw.noise for index, draw in drawn.items()},
        {place: _cost_of_total(event, release, place, draw) for place, draw in drawn.items()},
        thresholds,
        _delta_share(event) if thresholds else _ZERO,
    )


def _cost_of_total(event: Event, release: PlannedRelease, index: int, draw: StoredDraw) -> Fraction:
    """Return the cost of a total; for a rho, the requested one from the record, because its scale was rounded up."""
    recorded = _recorded(event, "paid", draw.part)
    in_rho = isinstance(draw.noise, Gaussian) or (event.loss is not None and event.loss.epsilon is None)
    if isinstance(recorded, list) and in_rho:
        return Fraction(recorded[draw.position])
    loss = draw.noise.loss(release.question.sensitivity_of(release.question.totals[index]))
    return loss.rho if in_rho or loss.epsilon is None else loss.epsilon


def _delta_share(event: Event) -> Fraction:
    """Return the delta of one release; releases with partition selection share it evenly."""
    sharing = sum(bool(draw.thresholds) for draw in stored_draws(event))
    return event.loss.delta / sharing if event.loss else _ZERO


def _recorded(event: Event, name: str, part_index: int) -> object:
    """Return a field of one release from the record of an event."""
    try:
        return json.loads(event.question)[name][part_index]
    except (ValueError, KeyError, IndexError, TypeError):
        return None  # not written by this program
