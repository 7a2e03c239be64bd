"""The door: pay, read, add noise, store, show. Nothing that was read leaves in another way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Protocol

import numpy as np

from discreet.kernel.errors import FAILED, LOG, Failed
from discreet.kernel.event import OWNER, Event, Receipt, combine_mechanisms
from discreet.kernel.expr import Type, Value
from discreet.kernel.fingerprint import fingerprints_of
from discreet.kernel.histogram_tree import CellCounts, NodeCounts, TreeWalk, walk_noisy_tree
from discreet.kernel.ledger.protocol import Ledger
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.noisy_totals import GroupKey, NoisyTotals, read_totals, write_totals
from discreet.kernel.numbers import check_type
from discreet.kernel.partition_selection import Threshold
from discreet.kernel.question import (
    ClippedUnits,
    Count,
    CountUnits,
    HistogramTree,
    PublicGroups,
    Question,
    SelectedGroups,
    Sum,
    Total,
)
from discreet.kernel.refinement import EarlierDraw, recall_values, refine
from discreet.kernel.relation import PublicTable, Scan, tables_of

__all__ = [
    "FAILED",
    "Catalog",
    "EngineTotals",
    "GroupKey",
    "NoisyTotals",
    "ReleaseRequest",
    "ReleaseResult",
    "TotalsEngine",
    "read_totals",
    "release_totals",
]
__all__ += ["REFINABLE", "partition_threshold", "write_totals"]

Noise = Laplace | Gaussian
REFINABLE = (Count, CountUnits, Sum, ClippedUnits)  # integers with independent noise, to which a second draw can add
StoredValues = Mapping[int, np.ndarray]  # the stored numbers of totals that are made finer, by their places


@dataclass(frozen=True)
class EngineTotals:
    """What an engine returns: a key for each group that it found, and an integer for each total of it.

    A total of cells has zeros there, and its cells in `cell_counts`, at its place; their groups are places in `keys`.
    """

    keys: list[GroupKey]
    values: np.ndarray  # int64, groups × totals
    cell_counts: Mapping[int, CellCounts] = field(default_factory=dict)


class TotalsEngine(Protocol):
    """Where the data are."""

    def totals(self, question: Question) -> EngineTotals:
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
        Seal: cb8e9e0febe8
        """
        for table in tables_of(check_type(Question, question, "question").relation):
            if isinstance(table, Scan):
                fits = self.private.get(table.table) == table
            else:
                declared = self.public.get(table.table, {})
                fits = all(declared.get(column.name) is column.type for _, column in table.columns)
                fits = fits and table.table in self.public and isinstance(table, PublicTable)
            if not fits:
                raise ValueError(f"question: table {table.table!r} is not as the owner declared it")


@dataclass(frozen=True)
class ReleaseRequest:
    """A question with the noise for each of its totals; `known` are the places of those that are not asked for.

    `threshold` is the threshold for groups that are discovered; `earlier` the stored draws of totals that are made finer.
    """

    question: Question
    noises: tuple[Noise, ...]
    threshold: int | None = None
    walks: tuple[TreeWalk, ...] = ()  # one for each total of cells, which sees noisy weights alone
    earlier: tuple[EarlierDraw | None, ...] = ()
    cached: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        check_type(Question, self.question, "question")
        if len(self.walks) != sum(isinstance(total, HistogramTree) for total in self.question.totals):
            raise ValueError("walks must be one for each total of cells")
        if len(self.noises) != len(self.question.totals):
            raise ValueError("noises must be one for each total")
        if not all(isinstance(noise, Laplace | Gaussian) for noise in self.noises):
            raise TypeError("noises must be Laplace or Gaussian mechanisms")
        if isinstance(self.question.groups, SelectedGroups) is not (self.threshold is not None):
            raise ValueError("cut is for groups that are discovered, and they need one")
        self._check_cached()

    def _check_cached(self) -> None:
        object.__setattr__(self, "cached", frozenset(self.cached))
        if not self.cached < set(range(len(self.noises))) or len(self.earlier) not in (0, len(self.noises)):
            raise ValueError("known must be some of the places, and earlier one for each total or none at all")
        if self.threshold is not None and (0 in self.cached or any(self.earlier)):
            raise ValueError("groups that are discovered are discovered by new noise")
        if not all(isinstance(self.question.totals[index], REFINABLE) for index in self.cached):
            raise ValueError("only what has a number for each group can be left out")
        for total, noise, before in self.draws.values():
            fits = isinstance(before, EarlierDraw) and isinstance(noise, Laplace) and isinstance(total, REFINABLE)
            if before is not None and not fits:
                raise TypeError("what is made finer are counts and sums with Laplace noise")

    @property
    def draws(self) -> dict[int, tuple[Total, Noise, EarlierDraw | None]]:
        """What is asked for, by its place: the total, its noise, and what it makes finer."""
        earlier = self.earlier or (None,) * len(self.noises)
        totals = enumerate(zip(self.question.totals, self.noises, earlier, strict=True))
        return {index: draw for index, draw in totals if index not in self.cached}

    @property
    def partition_selection(self) -> Threshold | None:
        """What decides whether a discovered group is shown."""
        return None if self.threshold is None else partition_threshold(self.question, self.noises[0], self.threshold)

    def loss(self) -> Loss:
        """Return what the release costs.

        Claim: the losses of all totals together, and the delta of the threshold.
        Proof: each total is a vector of integers with the sensitivity that the question proves, and gets independent
            noise; their losses add. A group is shown by its noisy number of units alone. The number of units that the
            limit touched is one number, with one noise, wherever it is shown. Of a tree of cells only a part is seen.
            A total that is known is not shown at all. One that is made finer costs what that adds.
        Needs: Question.sensitivity_of, Laplace.loss, Gaussian.loss, Threshold.loss, Loss.__add__, reveal,
            EarlierDraw.loss.
        Checked by: test_the_law_of_an_answer_on_neighbours_stays_within_its_loss,
            test_the_law_of_a_tree_on_neighbours_stays_within_its_loss
        Seal: 3a5eaee25ded
        """
        spent = ZERO_LOSS
        for total, noise, before in self.draws.values():
            sensitivity = self.question.sensitivity_of(total)
            spent += (
                before.loss(noise, sensitivity) if before and isinstance(noise, Laplace) else noise.loss(sensitivity)
            )
        selection = self.partition_selection
        return spent if selection is None else spent + Loss(0, 0, selection.loss().delta)


def partition_threshold(question: Question, noise: Laplace | Gaussian, threshold: int) -> Threshold:
    """Return the threshold for a question's groups: how many a unit alone can have, and its weight in them.

    Claim: a unit in k groups moves the number of units in each by at most size·min(1, groups/k), and k is at most
        `max_groups` wherever it has a say.
    Proof: bounded: the weights of render; a unit in more than Discover.most groups counts for nothing in the first
        total, and a key is looked at only if that total is above zero. Unbounded: its `max_rows_per_unit` rows are in at most so
        many groups, each with at most so many of them.
    Needs: render, Threshold.loss.
    Checked by: test_a_key_that_one_unit_owns_is_shown_with_probability_at_most_delta
    Seal: a3ff6728f85c
    """
    assert isinstance(question.groups, SelectedGroups)
    if not question.needs_clipping:
        max_rows_per_unit = question.relation.shape.max_rows_per_unit or 1
        return Threshold(noise, threshold, groups=max_rows_per_unit, size=max_rows_per_unit)
    max_groups = max(question.groups.max_groups, question.l0_bound) if question.needs_l0_clipping else question.l0_bound
    size = 1 << question.fraction_bits(question.totals[0])
    return Threshold(noise, threshold, groups=question.l0_bound, size=size, most=max_groups)


@dataclass(frozen=True)
class ReleaseResult:
    """What was paid for: the noisy totals of every question, and the receipt."""

    parts: tuple[NoisyTotals, ...]
    receipt: Receipt


def release_totals(  # noqa: PLR0913 - each of them is needed, and named
    requests: tuple[ReleaseRequest, ...],
    *,
    cost: Loss,
    catalog: Catalog,
    engine: TotalsEngine,
    ledger: Ledger,
    question: str,
    version: str = "",
    by: str = OWNER,
    key: str | None = None,
) -> ReleaseResult:
    """Pay for questions, read their totals, add noise, store the result, and only then return it.

    With a `version`, the owner's name for the state of the data, it can be found again by what was asked.

    Claim: what is returned, or raised, depends on private data only through noise whose loss is at most `cost`, which
        was charged before anything was read and is never given back. A stored result is returned as it was stored.
    Proof: the order of the lines. Tables, owners and the price are checked before the charge, against public facts.
        After it, any failure raises one fixed text, also that of the ledger; what is stored is noisy, and is stored
        before it is returned.
        What is made finer has the topic of the earlier draw, so it is the same total, and the charge is refused
        unless that draw is still the newest: nothing is made finer twice, also not within one question.
    Needs: Ask.loss, CatalogSketch.check, Ledger.charge, Ledger.settle, perturb, refine, recall, fingerprints_of; that `engine`
        computes what render says, and the same as long as `version` is the same, and that it was made ready before
        the charge without a look at private rows (engines.interface.Engine.prepare).
    Checked by: test_the_law_of_an_answer_on_neighbours_stays_within_its_loss,
        test_nothing_is_read_before_it_is_paid_for, test_a_failure_after_the_charge_says_nothing_and_costs_the_price,
        test_a_ledger_that_dies_before_the_answer_is_stored_fails_like_every_failure,
        test_a_price_below_the_loss_is_refused, test_one_question_does_not_make_a_draw_finer_twice
    Seal: 12bd2cc804a7
    """
    for request in check_type(tuple, requests, "asks"):
        catalog.check(check_type(ReleaseRequest, request, "asks").question)
    if not cost.includes(sum((each.loss() for each in requests), ZERO_LOSS)):
        raise ValueError("price: the noise costs more than that")
    fingerprints = tuple(_request_fingerprints(each, version) for each in requests)
    stored = [_recall_values(each, names, ledger) for each, names in zip(requests, fingerprints, strict=True)]
    receipt = ledger.charge(cost, _release_event(requests, fingerprints, question, by), key)
    if receipt.answer is not None:
        return ReleaseResult(read_totals(receipt.answer, [each.question for each in requests]), receipt)
    parts = _read_and_settle(requests, stored, engine, ledger, receipt)
    if parts is None:  # raised out here, where no other error is on record beside it
        raise Failed(FAILED)
    return ReleaseResult(parts, receipt)


def _request_fingerprints(request: ReleaseRequest, version: str) -> tuple[str, ...]:
    """Return the topics of what is asked for, if it is to be found again."""
    names = fingerprints_of(request.question, version) if version else ("",) * len(request.noises)
    return tuple("" if index in request.cached else name for index, name in enumerate(names))


def _recall_values(request: ReleaseRequest, fingerprints: tuple[str, ...], ledger: Ledger) -> StoredValues:
    """Return the stored numbers of the totals that are made finer."""
    return {
        index: recall_values(fingerprints[index], earlier, ledger)
        for index, (_, _, earlier) in request.draws.items()
        if earlier
    }


def _read_and_settle(
    requests: tuple[ReleaseRequest, ...],
    stored: list[StoredValues],
    engine: TotalsEngine,
    ledger: Ledger,
    receipt: Receipt,
) -> tuple[NoisyTotals, ...] | None:
    """Read the totals, add their noise and store them; None if anything went wrong: what may depend on the data."""
    try:
        engine_totals = [engine.totals(request.question) for request in requests]
        parts = tuple(map(_add_noise, requests, engine_totals, stored))
        ledger.settle(receipt, write_totals(parts))
        return parts  # noqa: TRY300
    except Exception:  # noqa: BLE001 - as the docstring says
        LOG.exception("question %s failed after it was charged", receipt.id)
        return None


def _release_event(
    requests: tuple[ReleaseRequest, ...], fingerprints: tuple[tuple[str, ...], ...], question: str, by: str
) -> Event:
    parts = [
        (_mechanism_record(request, index), str(request.question.sensitivity_of(total)))
        for request in requests
        for index, (total, _, _) in request.draws.items()
    ]
    follows = [
        (names[place], earlier.receipt)
        for each, names in zip(requests, fingerprints, strict=True)
        for place, (_, _, earlier) in each.draws.items()
        if earlier
    ]
    if len(set(follows)) != len(follows):
        raise ValueError("earlier: one draw can be made finer once")
    mechanism, sensitivity = combine_mechanisms(parts)
    return Event(
        mechanism=mechanism,
        sensitivity=sensitivity,
        question=question,
        by=by,
        fingerprints=fingerprints if any(map(any, fingerprints)) else (),
        follows=tuple(follows),
    )


def _mechanism_record(request: ReleaseRequest, index: int) -> str:
    _, noise, earlier = request.draws[index]
    if earlier is not None and isinstance(noise, Laplace):
        return earlier.mechanism_record(noise)
    return str(request.partition_selection if request.partition_selection and not index else noise)


def _add_noise(request: ReleaseRequest, engine_totals: EngineTotals, stored: StoredValues | None = None) -> NoisyTotals:
    """Add noise to every total of every group that is listed; of those that are not, keep what passes the threshold."""
    keys, values, found_rows = _complete_groups(request.question, engine_totals)
    noisy = np.zeros_like(values)
    for index, (total, noise, earlier) in request.draws.items():
        column = np.ascontiguousarray(values[:, index])
        if isinstance(total, HistogramTree):
            continue
        if isinstance(total, ClippedUnits):  # one number, with one noise, in every row
            column = column[:1] if len(column) else np.zeros(1, np.int64)
        if earlier and isinstance(noise, Laplace):
            noisy[:, index] = refine((stored or {})[index][: len(column)], column, earlier.noise, noise)
        else:
            noisy[:, index] = noise.perturb(column)
    selection = request.partition_selection
    if selection is not None:
        passing = np.flatnonzero(selection.passes(noisy[:, 0])).tolist()
        passing_keys = {place: keys[place] for place in passing}
        # The engine's order may tell something.
        passing.sort(
            key=passing_keys.__getitem__
            if not any(None in key for key in passing_keys.values())
            else _null_last(passing_keys)
        )
        keys, noisy, found_rows = [passing_keys[place] for place in passing], noisy[passing], found_rows[passing]
    return NoisyTotals(keys, noisy, _walk_trees(request, engine_totals, found_rows))


def _null_last(keys: Mapping[int, GroupKey]) -> Callable[[int], list[tuple[bool, Value]]]:
    return lambda index: [(part is None, part) for part in keys[index]]


def _walk_trees(
    request: ReleaseRequest, engine_totals: EngineTotals, groups: np.ndarray
) -> tuple[tuple[NodeCounts, ...], ...]:
    """Return what the walks see of the cells of the groups that are shown."""
    totals = [(index, total) for index, total in enumerate(request.question.totals) if isinstance(total, HistogramTree)]
    return tuple(
        walk_noisy_tree(engine_totals.cell_counts[place], total, request.noises[place], groups, walk)
        for (place, total), walk in zip(totals, request.walks, strict=True)
    )


def _complete_groups(question: Question, engine_totals: EngineTotals) -> tuple[list[GroupKey], np.ndarray, np.ndarray]:
    """Return every listed key with its totals, zero where the data has none, and its place among what was found.

    Of keys that are not listed, all that were found; where a listed one was not found, its place is one beyond.
    """
    values, shape = engine_totals.values, (len(engine_totals.keys), len(question.totals))
    if type(values) is not np.ndarray or values.dtype != np.int64 or values.shape != shape:
        raise TypeError(f"totals must be int64 of shape {shape}, not {values.dtype} of shape {values.shape}")
    if not isinstance(question.groups, PublicGroups):
        return engine_totals.keys, values, np.arange(len(engine_totals.keys))
    key_rows = {key: index for index, key in enumerate(product(*question.groups.domains))}
    rows = [key_rows[key] for key in engine_totals.keys]
    complete = np.zeros((len(key_rows), len(question.totals)), np.int64)
    complete[rows] = values
    found_rows = np.full(len(key_rows), len(engine_totals.keys), np.int64)
    found_rows[rows] = np.arange(len(engine_totals.keys))
    for place, total in enumerate(question.totals):
        if isinstance(total, ClippedUnits):
            complete[:, place] = values[:, place].max(initial=0)
    return list(key_rows), complete, found_rows
