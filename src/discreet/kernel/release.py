"""The door: pay, read, add noise, store, show. Nothing that was read leaves in another way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Protocol

import numpy as np

from discreet.kernel.earlier import Earlier, recall
from discreet.kernel.errors import FAILED, LOG, Failed
from discreet.kernel.event import OWNER, Event, Receipt, several
from discreet.kernel.exact import typed
from discreet.kernel.expr import Type, Value
from discreet.kernel.ledger.interface import Ledger
from discreet.kernel.loss import NOTHING, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import Cells, Count, Discover, Public, Question, Sum, Total, Touched, Units
from discreet.kernel.refine import refine
from discreet.kernel.relation import PublicTable, Scan, tables_of
from discreet.kernel.stored import Key, Noisy, read_parts, write_parts
from discreet.kernel.threshold import Threshold
from discreet.kernel.topic import topics_of
from discreet.kernel.tree import Look, Tally, Walk, reveal

__all__ = ["FAILED", "Ask", "Catalog", "Engine", "Key", "Noisy", "Released", "Totals", "ask", "read_parts"]
__all__ += ["REFINABLE", "threshold_of", "write_parts"]

Noise = Laplace | Gaussian
REFINABLE = (Count, Units, Sum, Touched)  # integers with independent noise, to which a second draw can add
Before = Mapping[int, np.ndarray]  # the stored numbers of totals that are made finer, by their places


@dataclass(frozen=True)
class Totals:
    """What an engine returns: a key for each group that it found, and an integer for each total of it.

    A total of cells has zeros there, and its cells in `tallies`, at its place; their groups are places in `keys`.
    """

    keys: list[Key]
    values: np.ndarray  # int64, groups × totals
    tallies: Mapping[int, Tally] = field(default_factory=dict)


class Engine(Protocol):
    """Where the data are."""

    def totals(self, question: Question) -> Totals:
        """Compute the exact totals of a question."""


@dataclass(frozen=True)
class Catalog:
    """The tables as the owner declared them; a question about others is no question."""

    private: Mapping[str, Scan]
    public: Mapping[str, Mapping[str, Type]]

    def check(self, question: Question) -> None:
        """Stop unless every table, its columns and its owner are exactly those that were declared.

        Claim: the units of a question are those that the owner named.
        Proof: a Scan, with its owner and its parents, equals the registered one; a public table reads public columns.
        Needs: tables_of.
        Checked by: test_a_hostile_reader_cannot_choose_who_is_protected
        Seal: 5eb9983af66e
        """
        for table in tables_of(typed(Question, question, "question").relation):
            if isinstance(table, Scan):
                fits = self.private.get(table.table) == table
            else:
                known = self.public.get(table.table, {})
                fits = all(known.get(column.name) is column.type for _, column in table.columns)
                fits = fits and table.table in self.public and isinstance(table, PublicTable)
            if not fits:
                raise ValueError(f"question: table {table.table!r} is not as the owner declared it")


@dataclass(frozen=True)
class Ask:
    """A question with the noise for each of its totals; `known` are the places of those that are not asked for.

    `cut` is the threshold for groups that are discovered; `earlier` the stored draws of totals that are made finer.
    """

    question: Question
    noises: tuple[Noise, ...]
    cut: int | None = None
    walks: tuple[Walk, ...] = ()  # one for each total of cells, which sees noisy weights alone
    earlier: tuple[Earlier | None, ...] = ()
    known: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        typed(Question, self.question, "question")
        if len(self.walks) != sum(isinstance(total, Cells) for total in self.question.totals):
            raise ValueError("walks must be one for each total of cells")
        if len(self.noises) != len(self.question.totals):
            raise ValueError("noises must be one for each total")
        if not all(isinstance(noise, Laplace | Gaussian) for noise in self.noises):
            raise TypeError("noises must be Laplace or Gaussian mechanisms")
        if isinstance(self.question.groups, Discover) is not (self.cut is not None):
            raise ValueError("cut is for groups that are discovered, and they need one")
        self._check_known()

    def _check_known(self) -> None:
        object.__setattr__(self, "known", frozenset(self.known))
        if not self.known < set(range(len(self.noises))) or len(self.earlier) not in (0, len(self.noises)):
            raise ValueError("known must be some of the places, and earlier one for each total or none at all")
        if self.cut is not None and (0 in self.known or any(self.earlier)):
            raise ValueError("groups that are discovered are discovered by new noise")
        if not all(isinstance(self.question.totals[place], REFINABLE) for place in self.known):
            raise ValueError("only what has a number for each group can be left out")
        for total, noise, before in self.drawn.values():
            fits = isinstance(before, Earlier) and isinstance(noise, Laplace) and isinstance(total, REFINABLE)
            if before is not None and not fits:
                raise TypeError("what is made finer are counts and sums with Laplace noise")

    @property
    def drawn(self) -> dict[int, tuple[Total, Noise, Earlier | None]]:
        """What is asked for, by its place: the total, its noise, and what it makes finer."""
        earlier = self.earlier or (None,) * len(self.noises)
        every = enumerate(zip(self.question.totals, self.noises, earlier, strict=True))
        return {place: each for place, each in every if place not in self.known}

    @property
    def threshold(self) -> Threshold | None:
        """What decides whether a discovered group is shown."""
        return None if self.cut is None else threshold_of(self.question, self.noises[0], self.cut)

    def loss(self) -> Loss:
        """Return what the release costs.

        Claim: the losses of all totals together, and the delta of the threshold.
        Proof: each total is a vector of integers with the sensitivity that the question proves, and gets independent
            noise; their losses add. A group is shown by its noisy number of units alone. The number of units that the
            limit touched is one number, with one noise, wherever it is shown. Of a tree of cells only a part is seen.
            A total that is known is not shown at all. One that is made finer costs what that adds.
        Needs: Question.sensitivity_of, Laplace.loss, Gaussian.loss, Threshold.loss, Loss.__add__, reveal,
            Earlier.loss.
        Checked by: test_the_law_of_an_answer_on_neighbours_stays_within_its_loss,
            test_the_law_of_a_tree_on_neighbours_stays_within_its_loss
        Seal: c2de7fff3525
        """
        spent = NOTHING
        for total, noise, before in self.drawn.values():
            moved = self.question.sensitivity_of(total)
            spent += before.loss(noise, moved) if before and isinstance(noise, Laplace) else noise.loss(moved)
        threshold = self.threshold
        return spent if threshold is None else spent + Loss(0, 0, threshold.loss().delta)


def threshold_of(question: Question, noise: Laplace | Gaussian, cut: int) -> Threshold:
    """Return the threshold for a question's groups: how many a unit alone can have, and its weight in them.

    Claim: a unit in k groups moves the number of units in each by at most size·min(1, groups/k), and k is at most
        `most` wherever it has a say.
    Proof: bounded: the weights of render; a unit in more than Discover.most groups counts for nothing in the first
        total, and a key is looked at only if that total is above zero. Unbounded: its `copies` rows are in at most so
        many groups, each with at most so many of them.
    Needs: render, Threshold.loss.
    Checked by: test_a_key_that_one_unit_owns_is_shown_with_probability_at_most_delta
    Seal: 0d58b0c02f14
    """
    assert isinstance(question.groups, Discover)
    if not question.bounded:
        copies = question.relation.shape.copies or 1
        return Threshold(noise, cut, groups=copies, size=copies)
    most = max(question.groups.most, question.spread) if question.scaled else question.spread
    size = 1 << question.bits(question.totals[0])
    return Threshold(noise, cut, groups=question.spread, size=size, most=most)


@dataclass(frozen=True)
class Released:
    """What was paid for: the noisy totals of every question, and the receipt."""

    parts: tuple[Noisy, ...]
    receipt: Receipt


def ask(  # noqa: PLR0913 - each of them is needed, and named
    asks: tuple[Ask, ...],
    *,
    price: Loss,
    catalog: Catalog,
    engine: Engine,
    ledger: Ledger,
    question: str,
    version: str = "",
    by: str = OWNER,
    key: str | None = None,
) -> Released:
    """Pay for questions, read their totals, add noise, store the result, and only then return it.

    With a `version`, the owner's name for the state of the data, it can be found again by what was asked.

    Claim: what is returned, or raised, depends on private data only through noise whose loss is at most `price`, which
        was charged before anything was read and is never given back. A stored result is returned as it was stored.
    Proof: the order of the lines. Tables, owners and the price are checked before the charge, against public facts.
        After it, any failure raises one fixed text, also that of the ledger; what is stored is noisy, and is stored
        before it is returned.
        What is made finer has the topic of the earlier draw, so it is the same total, and the charge is refused
        unless that draw is still the newest: nothing is made finer twice, also not within one question.
    Needs: Ask.loss, Catalog.check, Ledger.charge, Ledger.settle, perturb, refine, recall, topics_of; that `engine`
        computes what render says, and the same as long as `version` is the same, and that it was made ready before
        the charge without a look at private rows (engines.interface.Engine.prepare).
    Checked by: test_the_law_of_an_answer_on_neighbours_stays_within_its_loss,
        test_nothing_is_read_before_it_is_paid_for, test_a_failure_after_the_charge_says_nothing_and_costs_the_price,
        test_a_ledger_that_dies_before_the_answer_is_stored_fails_like_every_failure,
        test_a_price_below_the_loss_is_refused, test_one_question_does_not_make_a_draw_finer_twice
    Seal: 57ef79ad1326
    """
    for each in typed(tuple, asks, "asks"):
        catalog.check(typed(Ask, each, "asks").question)
    if not price.includes(sum((each.loss() for each in asks), NOTHING)):
        raise ValueError("price: the noise costs more than that")
    topics = tuple(_topics(each, version) for each in asks)
    before = [_earlier(each, names, ledger) for each, names in zip(asks, topics, strict=True)]
    receipt = ledger.charge(price, _event(asks, topics, question, by), key)
    if receipt.answer is not None:
        return Released(read_parts(receipt.answer, [each.question for each in asks]), receipt)
    parts = _read(asks, before, engine, ledger, receipt)
    if parts is None:  # raised out here, where no other error is on record beside it
        raise Failed(FAILED)
    return Released(parts, receipt)


def _topics(asked: Ask, version: str) -> tuple[str, ...]:
    """Return the topics of what is asked for, if it is to be found again."""
    names = topics_of(asked.question, version) if version else ("",) * len(asked.noises)
    return tuple("" if place in asked.known else name for place, name in enumerate(names))


def _earlier(asked: Ask, topics: tuple[str, ...], ledger: Ledger) -> Before:
    """Return the stored numbers of the totals that are made finer."""
    return {place: recall(topics[place], before, ledger) for place, (_, _, before) in asked.drawn.items() if before}


def _read(
    asks: tuple[Ask, ...], before: list[Before], engine: Engine, ledger: Ledger, receipt: Receipt
) -> tuple[Noisy, ...] | None:
    """Read the totals, add their noise and store them; None if anything went wrong: what may depend on the data."""
    try:
        found = [engine.totals(each.question) for each in asks]
        parts = tuple(map(_noisy, asks, found, before))
        ledger.settle(receipt, write_parts(parts))
        return parts  # noqa: TRY300
    except Exception:  # noqa: BLE001 - as the docstring says
        LOG.exception("question %s failed after it was charged", receipt.id)
        return None


def _event(asks: tuple[Ask, ...], topics: tuple[tuple[str, ...], ...], question: str, by: str) -> Event:
    parts = [
        (_mechanism(each, place), str(each.question.sensitivity_of(total)))
        for each in asks
        for place, (total, _, _) in each.drawn.items()
    ]
    follows = [
        (names[place], before.receipt)
        for each, names in zip(asks, topics, strict=True)
        for place, (_, _, before) in each.drawn.items()
        if before
    ]
    if len(set(follows)) != len(follows):
        raise ValueError("earlier: one draw can be made finer once")
    mechanism, sensitivity = several(parts)
    return Event(
        mechanism=mechanism,
        sensitivity=sensitivity,
        question=question,
        by=by,
        topics=topics if any(map(any, topics)) else (),
        follows=tuple(follows),
    )


def _mechanism(asked: Ask, place: int) -> str:
    _, noise, before = asked.drawn[place]
    if before is not None and isinstance(noise, Laplace):
        return before.mechanism(noise)
    return str(asked.threshold if asked.threshold and not place else noise)


def _noisy(asked: Ask, found: Totals, before: Before | None = None) -> Noisy:
    """Add noise to every total of every group that is listed; of those that are not, keep what passes the threshold."""
    keys, values, places = _listed(asked.question, found)
    noisy = np.zeros_like(values)
    for place, (total, noise, earlier) in asked.drawn.items():
        column = np.ascontiguousarray(values[:, place])
        if isinstance(total, Cells):
            continue
        if isinstance(total, Touched):  # one number, with one noise, in every row
            column = column[:1] if len(column) else np.zeros(1, np.int64)
        if earlier and isinstance(noise, Laplace):
            noisy[:, place] = refine((before or {})[place][: len(column)], column, earlier.noise, noise)
        else:
            noisy[:, place] = noise.perturb(column)
    threshold = asked.threshold
    if threshold is not None:
        shown = np.flatnonzero(threshold.passes(noisy[:, 0])).tolist()
        listed = {place: keys[place] for place in shown}
        # The engine's order may tell something.
        shown.sort(key=listed.__getitem__ if not any(None in key for key in listed.values()) else _null_last(listed))
        keys, noisy, places = [listed[place] for place in shown], noisy[shown], places[shown]
    return Noisy(keys, noisy, _trees(asked, found, places))


def _null_last(keys: Mapping[int, Key]) -> Callable[[int], list[tuple[bool, Value]]]:
    return lambda place: [(part is None, part) for part in keys[place]]


def _trees(asked: Ask, found: Totals, groups: np.ndarray) -> tuple[tuple[Look, ...], ...]:
    """Return what the walks see of the cells of the groups that are shown."""
    totals = [(place, total) for place, total in enumerate(asked.question.totals) if isinstance(total, Cells)]
    return tuple(
        reveal(found.tallies[place], total, asked.noises[place], groups, walk)
        for (place, total), walk in zip(totals, asked.walks, strict=True)
    )


def _listed(question: Question, found: Totals) -> tuple[list[Key], np.ndarray, np.ndarray]:
    """Return every listed key with its totals, zero where the data has none, and its place among what was found.

    Of keys that are not listed, all that were found; where a listed one was not found, its place is one beyond.
    """
    values, shape = found.values, (len(found.keys), len(question.totals))
    if type(values) is not np.ndarray or values.dtype != np.int64 or values.shape != shape:
        raise TypeError(f"totals must be int64 of shape {shape}, not {values.dtype} of shape {values.shape}")
    if not isinstance(question.groups, Public):
        return found.keys, values, np.arange(len(found.keys))
    listed = {key: place for place, key in enumerate(product(*question.groups.domains))}
    rows = [listed[key] for key in found.keys]
    full = np.zeros((len(listed), len(question.totals)), np.int64)
    full[rows] = values
    places = np.full(len(listed), len(found.keys), np.int64)
    places[rows] = np.arange(len(found.keys))
    for place, total in enumerate(question.totals):
        if isinstance(total, Touched):
            full[:, place] = values[:, place].max(initial=0)
    return list(listed), full, places
