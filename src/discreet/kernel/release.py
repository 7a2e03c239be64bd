"""The door: pay, read, add noise, store, show. Nothing that was read leaves in another way."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from itertools import product
from typing import Any, Protocol

import numpy as np

from discreet.kernel.errors import Failed, LedgerError
from discreet.kernel.event import OWNER, Event, Receipt, canonical
from discreet.kernel.exact import typed
from discreet.kernel.expr import Type, Value
from discreet.kernel.ledger.interface import LONGEST_ANSWER, Ledger
from discreet.kernel.loss import NOTHING, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import Discover, Public, Question
from discreet.kernel.relation import PublicTable, Scan, tables_of
from discreet.kernel.threshold import Threshold

FAILED = "the question was charged and could not be answered; the owner's log has the reason. Asking again costs again."
_LOG = logging.getLogger("discreet")
_LOG.addHandler(logging.NullHandler())  # else Python prints on stderr what is for the owner's eyes only
Key = tuple[Value, ...]


@dataclass(frozen=True)
class Totals:
    """What an engine returns: a key for each group that it found, and an integer for each total of it."""

    keys: list[Key]
    values: np.ndarray  # int64, groups × totals


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
    """A question with the noise for each of its totals; `cut` is the threshold for groups that are discovered."""

    question: Question
    noises: tuple[Laplace | Gaussian, ...]
    cut: int | None = None

    def __post_init__(self) -> None:
        typed(Question, self.question, "question")
        if len(self.noises) != len(self.question.totals):
            raise ValueError("noises must be one for each total")
        if not all(isinstance(noise, Laplace | Gaussian) for noise in self.noises):
            raise TypeError("noises must be Laplace or Gaussian mechanisms")
        if isinstance(self.question.groups, Discover) is not (self.cut is not None):
            raise ValueError("cut is for groups that are discovered, and they need one")

    @property
    def threshold(self) -> Threshold | None:
        """What decides whether a discovered group is shown."""
        return None if self.cut is None else threshold_of(self.question, self.noises[0], self.cut)

    def loss(self) -> Loss:
        """Return what the release costs.

        Claim: the losses of all totals together, and the delta of the threshold.
        Proof: each total is a vector of integers with the sensitivity that the question proves, and gets independent
            noise; their losses add. A group is shown by its noisy number of units alone.
        Needs: Question.sensitivity_of, Laplace.loss, Gaussian.loss, Threshold.loss, Loss.__add__.
        Checked by: test_the_law_of_an_answer_on_neighbours_stays_within_its_loss
        Seal: f1f038b3521d
        """
        pairs = zip(self.question.totals, self.noises, strict=True)
        spent = sum((noise.loss(self.question.sensitivity_of(total)) for total, noise in pairs), NOTHING)
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
class Noisy:
    """The released totals of one question: groups in the order of their keys, and the noisy integers."""

    keys: list[Key]
    values: np.ndarray


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
    by: str = OWNER,
    key: str | None = None,
) -> Released:
    """Pay for questions, read their totals, add noise, store the result, and only then return it.

    Claim: what is returned, or raised, depends on private data only through noise whose loss is at most `price`, which
        was charged before anything was read and is never given back. A stored result is returned as it was stored.
    Proof: the order of the lines. Tables, owners and the price are checked before the charge, against public facts.
        After it, any failure raises one fixed text; what is stored is noisy, and is stored before it is returned.
    Needs: Ask.loss, Catalog.check, Ledger.charge, Ledger.settle, perturb; that `engine` computes what render says.
    Checked by: test_the_law_of_an_answer_on_neighbours_stays_within_its_loss,
        test_nothing_is_read_before_it_is_paid_for, test_a_failure_after_the_charge_says_nothing_and_costs_the_price,
        test_a_price_below_the_loss_is_refused
    Seal: 0d3b9f0cfa12
    """
    for each in typed(tuple, asks, "asks"):
        catalog.check(typed(Ask, each, "asks").question)
    _check_price(sum((each.loss() for each in asks), NOTHING), price)
    receipt = ledger.charge(price, _event(asks, question, by), key)
    if receipt.answer is not None:
        return Released(read_parts(receipt.answer, asks), receipt)
    found = _read(asks, engine, receipt)
    if found is None:  # raised out here, where no other error is on record beside it
        raise Failed(FAILED)
    parts, stored = found
    ledger.settle(receipt, stored)
    return Released(parts, receipt)


def _read(asks: tuple[Ask, ...], engine: Engine, receipt: Receipt) -> tuple[tuple[Noisy, ...], bytes] | None:
    """Read the totals, add their noise and write them; None if anything went wrong: what may depend on the data."""
    try:
        parts = tuple(_noisy(each, engine.totals(each.question)) for each in asks)
        stored = write_parts(parts)
        if len(stored) > LONGEST_ANSWER:
            raise ValueError("the answer is too long to be stored")  # noqa: TRY301 - it ends like every other failure
        return parts, stored  # noqa: TRY300
    except Exception:  # noqa: BLE001 - as the docstring says
        _LOG.exception("question %s failed after it was charged", receipt.id)
        return None


def _check_price(loss: Loss, price: Loss) -> None:
    dear = price.epsilon is not None and (loss.epsilon is None or loss.epsilon > price.epsilon)
    if dear or loss.rho > price.rho or loss.delta > price.delta:
        raise ValueError("price: the noise costs more than that")


def _event(asks: tuple[Ask, ...], question: str, by: str) -> Event:
    parts = [
        (str(each.threshold) if each.threshold and not place else str(noise), str(each.question.sensitivity_of(total)))
        for each in asks
        for place, (total, noise) in enumerate(zip(each.question.totals, each.noises, strict=True))
    ]
    if len(parts) == 1:
        return Event(mechanism=parts[0][0], sensitivity=parts[0][1], question=question, by=by)
    mechanism = canonical({"name": "several", "parts": [json.loads(text) for text, _ in parts]})
    sensitivity = canonical([json.loads(text) for _, text in parts])
    return Event(mechanism=mechanism, sensitivity=sensitivity, question=question, by=by)


def _noisy(asked: Ask, found: Totals) -> Noisy:
    """Add noise to every total of every group that is listed; of those that are not, keep what passes the threshold."""
    keys, values = _listed(asked.question, found)
    noisy = np.empty_like(values)
    for place, noise in enumerate(asked.noises):
        noisy[:, place] = noise.perturb(np.ascontiguousarray(values[:, place]))
    threshold = asked.threshold
    if threshold is None:
        return Noisy(keys, noisy)
    shown = np.flatnonzero(threshold.passes(noisy[:, 0])).tolist()
    shown.sort(
        key=lambda place: [(part is None, part) for part in keys[place]]
    )  # the engine's order may tell something
    return Noisy([keys[place] for place in shown], noisy[shown])


def _listed(question: Question, found: Totals) -> tuple[list[Key], np.ndarray]:
    """Return every listed key with its totals, zero where the data has none; or the keys that were found."""
    values, shape = found.values, (len(found.keys), len(question.totals))
    if type(values) is not np.ndarray or values.dtype != np.int64 or values.shape != shape:
        raise TypeError(f"totals must be int64 of shape {shape}, not {values.dtype} of shape {values.shape}")
    if not isinstance(question.groups, Public):
        return found.keys, values
    places = {key: place for place, key in enumerate(product(*question.groups.domains))}
    full = np.zeros((len(places), len(question.totals)), np.int64)
    full[[places[key] for key in found.keys]] = values
    return list(places), full


def write_parts(parts: tuple[Noisy, ...]) -> bytes:
    """Write released totals in the one way that equal ones share."""
    data = [
        {"keys": [[_plain(part) for part in key] for key in noisy.keys], "values": noisy.values.tolist()}
        for noisy in parts
    ]
    return canonical(data).encode()


def read_parts(stored: bytes, asks: tuple[Ask, ...]) -> tuple[Noisy, ...]:
    """Read what write_parts wrote."""
    try:
        data = json.loads(stored)
        return tuple(_read_part(part, each.question) for part, each in zip(data, asks, strict=True))
    except (ValueError, KeyError, TypeError):
        raise LedgerError("a stored answer is of another format than this version reads") from None


def _read_part(part: Mapping[str, list[list[int]]], question: Question) -> Noisy:
    readers = [_READERS.get(expr.type) for _, expr in question.by]
    keys = [
        tuple(read(text) if read and text is not None else text for read, text in zip(readers, key, strict=True))
        for key in part["keys"]
    ]
    return Noisy(keys, np.array(part["values"], np.int64).reshape(len(keys), len(question.totals)))


_READERS: dict[Type, Callable[[Any], Value]] = {
    Type.DATE: date.fromisoformat,
    Type.TIMESTAMP: datetime.fromisoformat,
    Type.REAL: float,
}


def _plain(value: Value) -> int | float | str | bool | None:
    return value.isoformat() if isinstance(value, date) else value
