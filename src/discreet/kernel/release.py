"""Release noisy totals: charge, read, add noise, store, return. Totals leave the kernel in no other way."""

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
REFINABLE = (
    Count,
    CountUnits,
    Sum,
    ClippedUnits,
)  # one integer per group with independent noise, so that it can be refined
StoredValues = Mapping[int, np.ndarray]  # stored values of the totals to refine, by index


@dataclass(frozen=True)
class EngineTotals:
    """The result of an engine: a key for each group found, and an integer for each of its totals.

    A histogram tree has zeros in `values` and its cells in `cell_counts`, by the index of the total; the groups of
    cells are indices into `keys`.
    """

    keys: list[GroupKey]
    values: np.ndarray  # int64, groups × totals
    cell_counts: Mapping[int, CellCounts] = field(default_factory=dict)


class TotalsEngine(Protocol):
    """An engine that computes totals."""

    def totals(self, question: Question) -> EngineTotals:
        """Compute the exact totals of a question."""


@dataclass(frozen=True)
class Catalog:
    """The tables that the owner declared."""

    private: Mapping[str, Scan]
    public: Mapping[str, Mapping[str, Type]]

    def check(self, question: Question) -> None:
        """Raise ValueError unless every table, its columns and its owner are as declared.

        Claim: the privacy units of a question are those that the owner declared.
        Proof: a Scan, with its owner and its parents, equals the declared one; a public table has public columns only.
        Needs: tables_of.
        Checked by: test_a_hostile_reader_cannot_choose_who_is_protected
        Seal: 593358ba2338
        """
        for table in tables_of(check_type(Question, question, "question").relation):
            if isinstance(table, Scan):
                fits = self.private.get(table.table) == table
            else:
                declared = self.public.get(table.table, {})
                fits = all(declared.get(column.name) is column.type for _, column in table.columns)
                fits = fits and table.table in self.public and isinstance(table, PublicTable)
            if not fits:
                raise ValueError(f"question: table {table.table!r} differs from the owner's declaration")


@dataclass(frozen=True)
class ReleaseRequest:
    """A question with the noise for each of its totals; the totals with an index in `cached` are not released.

    `threshold` is for partition selection; `earlier` lists the stored draws of totals to refine.
    """

    question: Question
    noises: tuple[Noise, ...]
    threshold: int | None = None
    walks: tuple[TreeWalk, ...] = ()  # one per histogram tree; a walk sees only noisy counts
    earlier: tuple[EarlierDraw | None, ...] = ()
    cached: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        check_type(Question, self.question, "question")
        if len(self.walks) != sum(isinstance(total, HistogramTree) for total in self.question.totals):
            raise ValueError("walks must contain one walk per histogram tree")
        if len(self.noises) != len(self.question.totals):
            raise ValueError("noises must contain one mechanism per total")
        if not all(isinstance(noise, Laplace | Gaussian) for noise in self.noises):
            raise TypeError("noises must be Laplace or Gaussian mechanisms")
        if isinstance(self.question.groups, SelectedGroups) is not (self.threshold is not None):
            raise ValueError("threshold must be given exactly if groups are selected")
        self._check_cached()

    def _check_cached(self) -> None:
        object.__setattr__(self, "cached", frozenset(self.cached))
        if not self.cached < set(range(len(self.noises))) or len(self.earlier) not in (0, len(self.noises)):
            raise ValueError(
                "cached must leave at least one total, and earlier must have one entry per total or be empty"
            )
        if self.threshold is not None and (0 in self.cached or any(self.earlier)):
            raise ValueError("cached and earlier: partition selection needs fresh noise")
        if not all(isinstance(self.question.totals[index], REFINABLE) for index in self.cached):
            raise ValueError("cached: only counts and sums can be cached")
        for total, noise, before in self.draws.values():
            fits = isinstance(before, EarlierDraw) and isinstance(noise, Laplace) and isinstance(total, REFINABLE)
            if before is not None and not fits:
                raise TypeError("earlier: only counts and sums with Laplace noise can be refined")

    @property
    def draws(self) -> dict[int, tuple[Total, Noise, EarlierDraw | None]]:
        """The totals to release, by index, each with its noise and the draw that it refines."""
        earlier = self.earlier or (None,) * len(self.noises)
        totals = enumerate(zip(self.question.totals, self.noises, earlier, strict=True))
        return {index: draw for index, draw in totals if index not in self.cached}

    @property
    def partition_selection(self) -> Threshold | None:
        """The threshold mechanism of selected groups, else None."""
        return None if self.threshold is None else partition_threshold(self.question, self.noises[0], self.threshold)

    def loss(self) -> Loss:
        """Return the loss of the release.

        Claim: it is the sum of the losses of all totals and the delta of the threshold.
        Proof: each total is a vector of integers with the sensitivity that the question proves, and gets independent
            noise; their losses add up. Whether a group is shown depends only on its noisy number of units. The number
            of clipped units is a single number with a single noise, wherever it is shown. Of a histogram tree only a
            part is seen. A cached total is not released. A refined total costs what the refinement adds.
        Needs: Question.sensitivity_of, Laplace.loss, Gaussian.loss, Threshold.loss, Loss.__add__, walk_noisy_tree,
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
    """Return the threshold mechanism for the groups of a question.

    Claim: a unit in k groups moves the number of units in each by at most size·min(1, groups/k), and k is at most
        `most` for every unit that counts.
    Proof: with clipping: the weights of select_counts_and_sums; a unit in more than SelectedGroups.max_groups groups
        counts 0 in the first total, and a key is considered only if that total is above zero. Without clipping: its
        `max_rows_per_unit` rows are in at most that many groups, each with at most that many of them.
    Needs: select_counts_and_sums, Threshold.loss.
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
    """The noisy totals of every question, and the receipt of the charge."""

    parts: tuple[NoisyTotals, ...]
    receipt: Receipt


def release_totals(  # noqa: PLR0913 - keyword-only
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
    """Charge the requests, read their totals, add noise, store the result, and only then return it.

    With a `version`, the owner's name for the state of the data, the result can be reused for the same totals.

    Claim: what is returned or raised depends on private data only through noise whose loss is at most `cost`, which is
        charged before anything is read and is never refunded. A stored result is returned as it was stored.
    Proof: the order of the lines. Tables, owners and the cost are checked before the charge, against public facts.
        After it, any failure, including one of the ledger, raises the same fixed message; the stored result is noisy,
        and it is stored before it is returned.
        A refined total has the fingerprint of the earlier draw, so it is the same total, and the charge is refused
        unless that draw is still the latest: no draw is refined twice, not even within one query.
    Needs: ReleaseRequest.loss, Catalog.check, Ledger.charge, Ledger.settle, perturb, refine, recall_values,
        fingerprints_of; `engine` computes the totals of the question, the same ones as long as `version` is the same,
        and was prepared before the charge without reading private rows (engines.interface.Engine.prepare).
    Checked by: test_the_law_of_an_answer_on_neighbours_stays_within_its_loss,
        test_nothing_is_read_before_it_is_paid_for, test_a_failure_after_the_charge_says_nothing_and_costs_the_price,
        test_a_ledger_that_dies_before_the_answer_is_stored_fails_like_every_failure,
        test_a_price_below_the_loss_is_refused, test_one_question_does_not_make_a_draw_finer_twice
    Seal: c2e09ab41394
    """
    for request in check_type(tuple, requests, "requests"):
        catalog.check(check_type(ReleaseRequest, request, "requests").question)
    if not cost.includes(sum((each.loss() for each in requests), ZERO_LOSS)):
        raise ValueError("cost must be at least the loss of the noise")
    fingerprints = tuple(_request_fingerprints(each, version) for each in requests)
    stored = [_recall_values(each, names, ledger) for each, names in zip(requests, fingerprints, strict=True)]
    receipt = ledger.charge(cost, _release_event(requests, fingerprints, question, by), key)
    if receipt.answer is not None:
        return ReleaseResult(read_totals(receipt.answer, [each.question for each in requests]), receipt)
    parts = _read_and_settle(requests, stored, engine, ledger, receipt)
    if parts is None:  # raised here, so that no other exception is attached
        raise Failed(FAILED)
    return ReleaseResult(parts, receipt)


def _request_fingerprints(request: ReleaseRequest, version: str) -> tuple[str, ...]:
    """Return the fingerprints of the released totals; "" for totals that are cached or cannot be reused."""
    names = fingerprints_of(request.question, version) if version else ("",) * len(request.noises)
    return tuple("" if index in request.cached else name for index, name in enumerate(names))


def _recall_values(request: ReleaseRequest, fingerprints: tuple[str, ...], ledger: Ledger) -> StoredValues:
    """Return the stored values of the totals to refine."""
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
    """Read the totals, add noise and store them; None on any error, because its text may depend on the data."""
    try:
        engine_totals = [engine.totals(request.question) for request in requests]
        parts = tuple(map(_add_noise, requests, engine_totals, stored))
        ledger.settle(receipt, write_totals(parts))
        return parts  # noqa: TRY300
    except Exception:  # noqa: BLE001 - see the docstring
        LOG.exception("query %s failed after it was charged", receipt.id)
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
        raise ValueError("earlier: a draw can be refined only once")
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
    """Add noise to every total; of selected groups, keep those that pass the threshold."""
    keys, values, found_rows = _complete_groups(request.question, engine_totals)
    noisy = np.zeros_like(values)
    for index, (total, noise, earlier) in request.draws.items():
        column = np.ascontiguousarray(values[:, index])
        if isinstance(total, HistogramTree):
            continue
        if isinstance(total, ClippedUnits):  # a single number, repeated in every row
            column = column[:1] if len(column) else np.zeros(1, np.int64)
        if earlier and isinstance(noise, Laplace):
            noisy[:, index] = refine((stored or {})[index][: len(column)], column, earlier.noise, noise)
        else:
            noisy[:, index] = noise.perturb(column)
    selection = request.partition_selection
    if selection is not None:
        passing = np.flatnonzero(selection.passes(noisy[:, 0])).tolist()
        passing_keys = {place: keys[place] for place in passing}
        # The order of the engine may depend on the data.
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
    """Return the noisy node counts that the walks see, for the groups that are shown."""
    totals = [(index, total) for index, total in enumerate(request.question.totals) if isinstance(total, HistogramTree)]
    return tuple(
        walk_noisy_tree(engine_totals.cell_counts[place], total, request.noises[place], groups, walk)
        for (place, total), walk in zip(totals, request.walks, strict=True)
    )


def _complete_groups(question: Question, engine_totals: EngineTotals) -> tuple[list[GroupKey], np.ndarray, np.ndarray]:
    """Return the keys, their totals, and for each key its row in the engine's result.

    Public groups are completed: keys that the engine did not return have zero totals, and a row one past the end.
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
