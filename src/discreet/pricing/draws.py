"""Earlier draws of the totals of a question, as the ledger has them: its topics find them, whoever asked first."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.earlier import Drawn, drawn_in
from discreet.kernel.errors import Refused
from discreet.kernel.event import Event
from discreet.kernel.ledger import Ledger
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import Discover, Touched
from discreet.kernel.release import REFINABLE, Noisy, Released
from discreet.kernel.stored import parse_parts, read_part, read_table
from discreet.kernel.topic import digest, topics_of
from discreet.sql.intervals import Noise
from discreet.sql.plan import Part
from discreet.sql.price import Kind

_ZERO = Fraction(0)
_OTHER = "key: it was used before, under a policy that gave this question another meaning. Use another key."


@dataclass(frozen=True, eq=False)
class Draw:
    """One stored release of a part: noisy numbers of some of its totals, by their places, and what each cost.

    `order` is its place in time among all draws that were found.
    """

    order: int
    receipt: str
    noisy: Noisy  # a column for each total that is asked for now, zeros where this draw has none
    noises: Mapping[int, Noise]
    paid: Mapping[int, Fraction]  # an epsilon, in all; or the rho of this draw
    cut: int | None = None
    delta: Fraction = _ZERO


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of one part with one kind of noise: its draws, oldest first.

    `newest` has, for a total with Laplace noise, the receipt of the one draw that may still be made finer.
    """

    part: Part
    kind: Kind
    topics: tuple[str, ...]
    draws: tuple[Draw, ...]
    newest: Mapping[int, str | None]

    @property
    def mixes(self) -> bool:
        """Whether totals can be taken from different draws: not if a tree of cells or the like is among them."""
        return all(isinstance(total, REFINABLE) for total in self.part.question.totals)

    @property
    def report(self) -> int | None:
        """The place of the total that tells how many units the limits touched: it is not worth a charge by itself."""
        totals = enumerate(self.part.question.totals)
        return next((place for place, total in totals if isinstance(total, Touched)), None)

    @property
    def discovers(self) -> bool:
        """Whether the groups are discovered, by each draw anew."""
        return isinstance(self.part.question.groups, Discover)

    @property
    def shares(self) -> bool:
        """Whether a draw of a total serves every part that has it."""
        return self.mixes and not self.discovers

    def having(self, place: int) -> list[Draw]:
        """Return the draws of one total that can be used."""
        return [draw for draw in self.draws if place in draw.noises]

    def best(self, place: int) -> Draw | None:
        """Return the most exact draw of one total."""
        return min(self.having(place), key=lambda draw: draw.noises[place].scale, default=None)

    def used(self, place: int) -> list[Draw]:
        """Return the draws of one total that its number is made of: the most exact one, or all together."""
        best = self.best(place)
        return [best] if best is not None and self.kind is Laplace else self.having(place)

    @property
    def complete(self) -> bool:
        """Whether every total has a draw, but for the report."""
        return bool(self.draws) and all(self.having(at) for at in range(len(self.topics)) if at != self.report)

    def paid(self, place: int) -> Fraction:
        """Return what was paid for a total: the largest epsilon, or all rho together."""
        found = [draw.paid[place] for draw in self.having(place)]
        return max(found, default=_ZERO) if self.kind is Laplace else sum(found, _ZERO)


def recall(  # noqa: PLR0913 - the last two are for what is special
    parts: Sequence[Part],
    ledger: Ledger,
    version: str,
    kind: Kind,
    *,
    until: str | None = None,
    fresh: Released | None = None,
) -> tuple[Known, ...]:
    """Return what the ledger has of the parts of a question; `until` is the last receipt that counts.

    What was just released, `fresh`, need not be read again.
    """
    named = [topics_of(part.question, version) for part in parts]
    found = ledger.answers({topic for topics in named for topic in topics})
    at_hand = {} if fresh is None else {fresh.receipt.id: list(fresh.parts)}
    stored = [(event, at_hand.get(event.id) or parse_parts(answer)) for event, answer in found if answer is not None]
    if until is not None:
        receipts = [event.id for event, _ in stored]
        stored = stored[: receipts.index(until) + 1] if until in receipts else []
    known = []
    for part, topics in zip(parts, named, strict=True):
        draws = _draws(part, topics, stored, kind)
        pure = {place for draw in draws for place in draw.noises} if kind is Laplace else set()
        known.append(Known(part, kind, topics, draws, {place: ledger.newest(topics[place]) for place in pure}))
    if until is not None and not all(each.complete for each in known):
        raise Refused(_OTHER)
    return tuple(known)


def recipes_of(part: Part) -> str:
    """Return a digest of what is made of the totals: a walk in a tree of cells depends on it."""
    return digest(tuple(sorted({digest(measure.recipe) for measure in part.measures})))


def _draws(
    part: Part, topics: tuple[str, ...], stored: Sequence[tuple[Event, list[Any]]], kind: Kind
) -> tuple[Draw, ...]:
    """Return the draws that can be used: of groups that are discovered, those that have all totals but the report."""
    mixes = all(isinstance(total, REFINABLE) for total in part.question.totals)
    whole = not mixes or isinstance(part.question.groups, Discover)
    needed = (
        {place for place, total in enumerate(part.question.totals) if not isinstance(total, Touched)}
        if whole
        else set()
    )
    draws = []
    for order, (event, written) in enumerate(stored):
        for number, each in enumerate(written):
            here = {
                topics.index(draw.topic): draw
                for draw in drawn_in(event)
                if draw.part == number and draw.topic in topics and isinstance(draw.noise, kind)
            }
            same = event.topics[number] == topics and _said(event, "recipes", number) == recipes_of(part)
            if here and (mixes or same) and needed <= set(here):
                noisy = _picked(each, part, here) if mixes else _whole(each, part)
                draws.append(_draw(order, event, part, noisy, here))
    return tuple(draws)


def _picked(written: Any, part: Part, here: Mapping[int, Drawn]) -> Noisy:
    """Read the totals of one stored part that are asked for now."""
    at_hand = isinstance(written, Noisy)
    keys, values = (written.keys, written.values) if at_hand else read_table(written, part.question)
    columns = np.zeros((len(keys), len(part.question.totals)), np.int64)
    for place, draw in here.items() if keys else ():
        columns[:, place] = values[:, draw.place]
    return Noisy(keys, columns)


def _whole(written: Any, part: Part) -> Noisy:
    return written if isinstance(written, Noisy) else read_part(written, part.question)


def _draw(order: int, event: Event, part: Part, noisy: Noisy, here: Mapping[int, Drawn]) -> Draw:
    cut = next((draw.cut for draw in here.values() if draw.cut is not None), None)
    return Draw(
        order,
        event.id,
        noisy,
        {place: draw.noise for place, draw in here.items()},
        {place: _paid(event, part, place, draw) for place, draw in here.items()},
        cut,
        _delta(event) if cut is not None else _ZERO,
    )


def _paid(event: Event, part: Part, place: int, draw: Drawn) -> Fraction:
    """Return what a total cost: of a rho, whose scale was rounded up, what was asked is on record."""
    said = _said(event, "paid", draw.part)
    if isinstance(said, list) and isinstance(draw.noise, Gaussian):
        return Fraction(said[draw.place])
    loss = draw.noise.loss(part.question.sensitivity_of(part.question.totals[place]))
    return loss.rho if loss.epsilon is None else loss.epsilon


def _delta(event: Event) -> Fraction:
    """Return the delta of one part: those that discover groups share it evenly."""
    sharing = sum(draw.cut is not None for draw in drawn_in(event))
    return event.loss.delta / sharing if event.loss else _ZERO


def _said(event: Event, name: str, number: int) -> object:
    """Return what the question's record says of one of its parts."""
    try:
        return json.loads(event.question)[name][number]
    except (ValueError, KeyError, IndexError, TypeError):
        return None  # another program's words
