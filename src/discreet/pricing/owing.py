"""What has to be drawn so that a question has what a price buys, and what that costs: the difference, or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from discreet.kernel.earlier import Earlier
from discreet.kernel.loss import NOTHING, Loss
from discreet.kernel.mechanism import Laplace
from discreet.kernel.release import Ask
from discreet.pricing.combining import combined_noise
from discreet.pricing.draws import Known, recipes_of
from discreet.sql.intervals import Noise
from discreet.sql.price import Amounts, ask_for, noise_for

_ENDS = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_ANEW = "It was asked before, less exactly; what was found in trees of cells, or by a choice of values, is asked anew."
_STUCK = "It was asked before, less exactly; that answer cannot be made finer any more, so it is asked anew."


@dataclass(frozen=True)
class Fresh:
    """What is drawn of one part: what each total gets, by its place, and the draw that it makes finer."""

    amounts: dict[int, Fraction] = field(default_factory=dict)
    earlier: dict[int, Earlier] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Due:
    """What has to be drawn and paid: nothing, if there are no questions.

    `price` is what all draws together cost, earlier ones too; `noises` and `cuts` are those that each part has then;
    `record` is what the ledger keeps of the prices.
    """

    asks: tuple[Ask, ...] = ()
    loss: Loss = NOTHING
    price: Loss = NOTHING
    noises: tuple[tuple[Noise, ...], ...] = ()
    cuts: tuple[tuple[int, ...], ...] = ()
    record: dict[str, list[object]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def due(known: Sequence[Known], wanted: Amounts, delta: Fraction) -> Due:
    """Return what is missing so that each total has as much as is wanted; `delta` is for each part that discovers."""
    agreed = _agreed(known, wanted)
    fresh = list(map(_fresh, known, agreed))
    noises = tuple(map(_noises, known, fresh, agreed))
    fresh = _once(known, fresh)
    asks = {number: _ask(known[number], new, delta) for number, new in enumerate(fresh) if new.amounts}
    cuts = [
        [*(draw.cut for draw in each.draws if draw.cut is not None), *([asks[number].cut] if number in asks else [])]
        for number, each in enumerate(known)
    ]
    paid = [[str(fresh[number].amounts.get(at, 0)) for at in range(len(ask.noises))] for number, ask in asks.items()]
    recipes = ["" if known[number].mixes else recipes_of(known[number].part) for number in asks]
    new_delta = delta * sum(ask.cut is not None for ask in asks.values())
    return Due(
        tuple(asks.values()),
        _loss(known, fresh, new_delta),
        _price(known, fresh, new_delta),
        noises,
        tuple(tuple(cut for cut in dict.fromkeys(each) if cut is not None) for each in cuts),
        {"paid": [*paid], "recipes": [*recipes]},
        tuple(dict.fromkeys(note for each, new in zip(known, fresh, strict=True) for note in _notes(each, new))),
    )


def credit(known: Known, place: int) -> Fraction:
    """Return what was paid for a total and need not be paid again to make it more exact."""
    if not known.mixes:
        return Fraction(0)
    return known.paid(place) if known.kind is not Laplace or _finer(known, place) else Fraction(0)


def noise_at(known: Known, place: int, amount: Fraction) -> Noise:
    """Return the noise that a total has once it got so much in all."""
    paid = known.paid(place) if known.mixes else Fraction(0)
    drawn = [draw.noises[place] for draw in known.having(place)] if paid else []
    if known.kind is Laplace:
        best = known.best(place)
        return best.noises[place] if best and amount <= paid else noise_for(known.part, place, amount, known.kind)
    new = [noise_for(known.part, place, amount - paid, known.kind)] if amount > paid else []
    return combined_noise([*drawn, *new])


def _agreed(known: Sequence[Known], wanted: Amounts) -> Amounts:
    """Return the amounts, for a total that several parts have the largest of them: it is drawn once for all."""
    most: dict[str, Fraction] = {}
    for each, amounts in zip(known, wanted, strict=True):
        for topic, amount in zip(each.topics, amounts, strict=True) if each.shares else ():
            most[topic] = max(amount, most.get(topic, amount))
    return tuple(
        tuple(most[topic] for topic in each.topics) if each.shares else amounts
        for each, amounts in zip(known, wanted, strict=True)
    )


def _once(known: Sequence[Known], fresh: Sequence[Fresh]) -> list[Fresh]:
    """Leave out of a part what an earlier one draws already."""
    seen: set[str] = set()
    found = []
    for each, new in zip(known, fresh, strict=True):
        if not each.shares:
            found.append(new)
            continue
        amounts = {place: amount for place, amount in new.amounts.items() if each.topics[place] not in seen}
        seen |= {each.topics[place] for place in amounts}
        found.append(Fresh(amounts, {place: before for place, before in new.earlier.items() if place in amounts}))
    return found


def _fresh(known: Known, wanted: tuple[Fraction, ...]) -> Fresh:
    every = dict(enumerate(wanted))
    if not known.mixes:
        kept = any(all(draw.paid[place] >= amount for place, amount in every.items()) for draw in known.draws)
        return Fresh() if kept else Fresh(every)
    missing = {place: amount for place, amount in every.items() if amount > known.paid(place)}
    if set(missing) <= {known.report}:
        return Fresh()
    if known.kind is Laplace:
        earlier = {place: finer for place in missing if (finer := _finer(known, place))}
        return Fresh(missing, {} if known.discovers else earlier)
    if known.discovers and missing and len(missing) < len(every):
        return Fresh(every)  # a draw that discovers groups has all totals
    return Fresh({place: amount - known.paid(place) for place, amount in missing.items()})


def _finer(known: Known, place: int) -> Earlier | None:
    """Return the draw of a total that can be made finer: the most exact one, if it is the newest, and not cut off.

    Two draws of one receipt cannot be told apart: the other part of a question may be one that shares nothing.
    """
    best = known.best(place)
    if best is None or known.discovers or best.receipt != known.newest.get(place):
        return None
    if sum(draw.receipt == best.receipt for draw in known.having(place)) > 1:
        return None
    noise = best.noises[place]
    cut_off = np.isin(best.noisy.values[:, place], _ENDS).any()
    return Earlier(best.receipt, noise) if isinstance(noise, Laplace) and not cut_off else None


def _ask(known: Known, new: Fresh, delta: Fraction) -> Ask:
    places = range(len(known.topics))
    filler = max(new.amounts.values())  # of totals that are not drawn: no noise of theirs is used
    noises = [noise_for(known.part, place, new.amounts.get(place, filler), known.kind) for place in places]
    earlier = tuple(new.earlier.get(place) for place in places) if new.earlier else ()
    return ask_for(known.part, noises, delta, earlier, [place for place in places if place not in new.amounts])


def _noises(known: Known, new: Fresh, wanted: tuple[Fraction, ...]) -> tuple[Noise, ...]:
    """Return the noises of a part once everything is drawn."""
    places = range(len(known.topics))
    if not known.mixes:
        kept = max(known.draws, key=lambda draw: (sum(draw.paid.values()), draw.order), default=None)
        if new.amounts or kept is None:
            return tuple(noise_for(known.part, place, wanted[place], known.kind) for place in places)
        return tuple(kept.noises[place] for place in places)
    if known.kind is Laplace:
        return tuple(noise_at(known, place, max(wanted[place], known.paid(place))) for place in places)
    found = []
    for place in places:
        drawn = [draw.noises[place] for draw in known.having(place)]
        amount = new.amounts.get(place, Fraction(0) if drawn else wanted[place])
        drawn += [noise_for(known.part, place, amount, known.kind)] if amount else []
        found.append(combined_noise(drawn))
    return tuple(found)


def _loss(known: Sequence[Known], fresh: Sequence[Fresh], delta: Fraction) -> Loss:
    """Return what the draws cost: in an epsilon the differences, in rho all of it."""
    after = sum((sum(new.amounts.values()) for new in fresh), Fraction(0))
    if not after:
        return NOTHING
    if known[0].kind is not Laplace:
        return Loss(None, after, delta)
    before = sum(
        (each.paid(place) for each, new in zip(known, fresh, strict=True) for place in new.earlier), Fraction(0)
    )
    return Loss.exactly(after - before, Loss(after).rho, delta)


def _price(known: Sequence[Known], fresh: Sequence[Fresh], delta: Fraction) -> Loss:
    """Return what all totals have cost together once everything is drawn, each counted once."""
    paid: dict[str, Fraction] = {}
    for each, new in zip(known, fresh, strict=True):
        before = _kept(each) if not each.mixes else dict(enumerate(map(each.paid, range(len(each.topics)))))
        delta += sum((draw.delta for draw in each.draws if each.mixes), Fraction(0))
        for place, topic in enumerate(each.topics):
            more, had = new.amounts.get(place, Fraction(0)), before.get(place, Fraction(0))
            whole = max(more, had) if each.kind is Laplace or not each.mixes else more + had
            name = topic if each.shares else f"{topic} {each.part.name}"
            paid[name] = max(whole, paid.get(name, whole))
    total = sum(paid.values(), Fraction(0))
    return Loss(total, None, delta) if known[0].kind is Laplace else Loss(None, total, delta)


def _kept(known: Known) -> dict[int, Fraction]:
    """Return what the best draw of a part that does not mix has cost."""
    best = max(known.draws, key=lambda draw: (sum(draw.paid.values()), draw.order), default=None)
    return dict(best.paid) if best else {}


def _notes(known: Known, new: Fresh) -> list[str]:
    if not known.mixes:
        return [_ANEW] if known.draws and new.amounts else []
    again = {place for place in new.amounts if known.having(place)}
    stuck = known.kind is Laplace and bool(again - set(new.earlier))
    return [_STUCK] if stuck else []
