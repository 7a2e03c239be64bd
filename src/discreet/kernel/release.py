"""Release noisy totals: charge, read, add noise, store, return. Totals leave the kernel in no other way."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import product
from typing import Protocol

import numpy as np

from discreet.kernel.errors import require, run_charged
from discreet.kernel.event import OWNER, Event, Receipt, canonical_json, combine_mechanisms
from discreet.kernel.expr import Type
from discreet.kernel.fingerprint import fingerprints_of
from discreet.kernel.histogram_tree import CellCounts, NodeCounts, TreeWalk, walk_noisy_tree
from discreet.kernel.ledger.ledger import Ledger
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.numbers import check_type
from discreet.kernel.partition_selection import KeyWeights, PartitionSelection, partition_threshold
from discreet.kernel.question import GroupKey, PublicGroups, Question
from discreet.kernel.refinement import Refinement, recall_values, refine
from discreet.kernel.relation import PublicTable, Relation, Scan
from discreet.kernel.selection import QuantileSelection
from discreet.kernel.totals import Count, CountUnits, HistogramTree, SelectionWeight, Sum, Total

Mechanism = Laplace | Gaussian | Refinement | PartitionSelection | QuantileSelection
REFINABLE = (Count, CountUnits, Sum, SelectionWeight)  # one integer per group with independent noise
# The mechanisms that a total may have; None if it is not released.
_ALLOWED_MECHANISMS = {
    **dict.fromkeys(REFINABLE, Laplace | Gaussian | Refinement | None),
    HistogramTree: Laplace | Gaussian | QuantileSelection,
    SelectionWeight: PartitionSelection,
}


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
    """The tables that the owner declared.

    `source` identifies where their rows are; it is "" unless the owner declared that the rows under one `version` never
    change, and then no draw can be refined.
    """

    private: Mapping[str, Scan]
    public: Mapping[str, Mapping[str, Type]]
    source: str = ""

    def check(self, relation: Relation) -> None:
        """Raise ValueError unless every table, its columns and its owner are as declared.

        Claim: the privacy units of a relation are those that the owner declared.
        Proof: a Scan, with its owner and its parents, equals the declared one; a public table has public columns only.
            `shape.tables` has them all: every node takes over those of its sources, and adds its own.
        Needs: Shape, Scan, Where, Derive, PublicTable, JoinPublic, JoinOnUnit, SemiJoinOnUnit, PerUnit, NumberRows,
            Union.
        Checked by: test_a_hostile_reader_cannot_choose_who_is_protected, test_every_table_of_a_relation_is_found
        """
        for table in relation.shape.tables:
            declared = self.public.get(table.table, {})
            if not (
                self.private.get(table.table) == table
                if isinstance(table, Scan)
                else table.table in self.public
                and isinstance(table, PublicTable)
                and all(declared.get(column.name) is column.type for _, column in table.columns)
            ):
                raise ValueError(f"table {table.table!r} differs from the owner's declaration")


@dataclass(frozen=True)
class ReleaseRequest:
    """A question with the mechanism for each of its totals; None for a total that is not released.

    That of a selection weight is a PartitionSelection. A total can be refined or left out if its noise is independent
    of others.
    """

    question: Question
    noises: tuple[Mechanism | None, ...]
    walks: tuple[TreeWalk, ...] = ()  # one per histogram tree with noise; a walk sees only noisy counts

    def __post_init__(self) -> None:
        totals = check_type(Question, self.question, "question").totals
        if len(self.noises) != len(totals) or not any(self.noises):
            raise ValueError("noises must contain one mechanism per total, and not only None")
        allowed = [_ALLOWED_MECHANISMS.get(type(total), Laplace | Gaussian) for total in totals]
        if not all(map(isinstance, self.noises, allowed)):
            raise TypeError(
                "noises must be Laplace or Gaussian mechanisms, or others that the type of the total allows"
            )
        selections = sum(isinstance(noise, QuantileSelection) for noise in self.noises)
        if len(self.walks) + selections != sum(isinstance(total, HistogramTree) for total in totals):
            raise ValueError("walks must contain one walk per histogram tree with noise")
        if isinstance(self.noises[0], PartitionSelection):
            if any(isinstance(noise, Refinement) for noise in self.noises):
                raise ValueError("noises: partition selection needs fresh noise")
            rounds = check_type(tuple, self.noises[0].rounds, "rounds")
            if any(each != partition_threshold(self.question, each.noise, each.cut) for each in rounds):
                raise ValueError("noises: a threshold differs from the weights of this question")

    @property
    def draws(self) -> dict[int, tuple[Total, Mechanism]]:
        """The totals to release, by index, each with its mechanism."""
        return {
            index: (total, noise)
            for index, (total, noise) in enumerate(zip(self.question.totals, self.noises, strict=True))
            if noise is not None
        }

    def loss(self) -> Loss:
        """Return the loss of the release.

        Claim: it is the sum of the losses of all totals; that of partition selection has a delta.
        Proof: each total is a vector of integers with the sensitivity that the question proves, and gets independent
            noise (_add_noise); their losses add up. Which groups are shown depends on their noisy selection weights
            alone (PartitionSelection.select), and what is shown of a hidden group is nothing. Of a histogram tree a
            part is seen, or selected cells: its sensitivity bounds a unit's weights by group. A total without a
            mechanism is not released. A refined total costs what is added.
        Needs: _add_noise, partition_threshold, Question.sensitivity_of, Laplace.loss, Gaussian.loss,
            PartitionSelection.loss, PartitionSelection.select, QuantileSelection.loss, QuantileSelection.select,
            Loss.__add__, Laplace.perturb, Gaussian.perturb, walk_noisy_tree, refine, Refinement.loss.
        Checked by: test_the_distribution_of_an_answer_on_neighbours_stays_within_its_loss,
            test_the_distribution_of_a_tree_on_neighbours_stays_within_its_loss,
            test_the_distribution_of_selected_quantiles_on_neighbours_stays_within_its_loss
        """
        losses = (noise.loss(self.question.sensitivity_of(total)) for total, noise in self.draws.values())
        return sum(losses, start=ZERO_LOSS)


@dataclass(frozen=True)
class NoisyTotals:
    """The released totals of one question: noisy integers, with the groups in the order of their keys."""

    keys: list[GroupKey]
    values: np.ndarray
    trees: tuple[tuple[NodeCounts, ...], ...] = ()  # for each histogram tree with noise, the node counts by level
    quantiles: tuple[np.ndarray, ...] = ()  # for each selection, groups × quantiles × (cell, width of its margin)
    source: str = ""  # Catalog.source when they were drawn


@dataclass(frozen=True)
class ReleaseResult:
    """The noisy totals of every question and the receipt; if the receipt has a stored answer, only that."""

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
    prepaid: Receipt | None = None,
) -> ReleaseResult:
    """Charge the requests, read their totals, add noise, store the result, and only then return it.

    With a `version`, the owner's name for the state of the data, the result can be reused for the same totals. A
    `prepaid` receipt is that of the same cost and release_event, charged together with others.

    Claim: what is returned or raised depends on private data only through mechanisms whose loss is at most `cost`,
        which is charged before anything is read and is never refunded. A stored result is returned as it was stored.
    Proof: the order of the lines. Tables, owners and the cost are checked before the charge, against public facts.
        After it, any failure, including one of the ledger, raises the same fixed message; the stored result is noisy,
        and it is stored before it is returned.
        Fresh noise is independent of everything before, so the losses of fresh draws add up whatever happened to the
        data in between. A refined total has the fingerprint and the source of the earlier draw, so it is the same
        total, and the charge is refused unless that draw is still the latest: no draw is refined twice, not even within
        one query (release_event). A receipt that is redeemed twice has one answer, which is stored before it is
        returned.
    Needs: ReleaseRequest, ReleaseRequest.loss, Loss.includes, Catalog.check, Ledger.charge, Ledger.redeem,
        Ledger.settle, run_charged, _add_noise, write_totals, recall_values, fingerprints_of, release_event; `engine`
        computes the totals of the question, the same ones as long as `version` and a `source` other than "" are the
        same, and was prepared before the charge without reading private rows (engines.interface.Engine.prepare).
    Checked by: test_the_distribution_of_an_answer_on_neighbours_stays_within_its_loss,
        test_nothing_is_read_before_the_charge, test_a_failure_after_the_charge_discloses_nothing_and_stays_charged,
        test_a_ledger_that_dies_before_the_answer_is_stored_fails_like_every_failure,
        test_a_charge_below_the_loss_is_refused, test_one_question_does_not_refine_a_draw_twice,
        test_a_more_accurate_repeat_stays_within_its_charge_if_the_data_changed
    """
    for request in check_type(tuple, requests, "requests"):
        catalog.check(check_type(ReleaseRequest, request, "requests").question.relation)
    if not cost.includes(sum((each.loss() for each in requests), ZERO_LOSS)):
        raise ValueError("cost must be at least the loss of the noise")
    fingerprints = tuple(request_fingerprints(each, version) for each in requests)
    stored = [
        {
            index: recall_values(names[index], noise, ledger, catalog.source)
            for index, (_, noise) in each.draws.items()
            if isinstance(noise, Refinement)
        }
        for each, names in zip(requests, fingerprints, strict=True)
    ]
    event = release_event(requests, fingerprints, question, by)
    receipt = ledger.redeem(prepaid, cost, event) if prepaid else ledger.charge(cost, event, key)
    if receipt.answer is not None:
        return ReleaseResult((), receipt)

    def read_and_settle() -> tuple[NoisyTotals, ...]:
        parts = tuple(
            replace(_add_noise(each, engine, values), source=catalog.source)
            for each, values in zip(requests, stored, strict=True)
        )
        ledger.settle(receipt, write_totals(parts))
        return parts

    return ReleaseResult(run_charged(f"query {receipt.id}", read_and_settle), receipt)


def request_fingerprints(request: ReleaseRequest, version: str) -> tuple[str, ...]:
    """Return the fingerprints of the released totals; "" for totals that are not released or cannot be reused."""
    names = fingerprints_of(request.question, version) if version else ("",) * len(request.noises)
    return tuple(name if index in request.draws else "" for index, name in enumerate(names))


def release_event(
    requests: tuple[ReleaseRequest, ...], fingerprints: tuple[tuple[str, ...], ...], question: str, by: str
) -> Event:
    """Return the record of a release: each mechanism with its sensitivity, and the draws that are refined."""
    parts = [
        (str(noise), str(request.question.sensitivity_of(total)))
        for request in requests
        for total, noise in request.draws.values()
    ]
    follows = tuple(
        (names[index], noise.receipt)
        for request, names in zip(requests, fingerprints, strict=True)
        for index, (_, noise) in request.draws.items()
        if isinstance(noise, Refinement)
    )
    require(len(set(follows)) == len(follows), "noises: a draw can be refined only once")
    mechanisms, sensitivities = combine_mechanisms(parts)
    return Event(
        mechanism=mechanisms,
        sensitivity=sensitivities,
        question=question,
        by=by,
        fingerprints=fingerprints if any(map(any, fingerprints)) else (),
        follows=follows,
    )


def write_totals(parts: tuple[NoisyTotals, ...]) -> bytes:
    """Return released totals as canonical JSON."""
    data = [
        {
            "keys": [[part.isoformat() if isinstance(part, date) else part for part in key] for key in noisy.keys],
            "quantiles": [cells.tolist() for cells in noisy.quantiles],
            "source": noisy.source,
            "trees": [[[level.nodes.tolist(), level.counts.tolist()] for level in levels] for levels in noisy.trees],
            "values": noisy.values.tolist(),
        }
        for noisy in parts
    ]
    return canonical_json(data).encode()


def _add_noise(request: ReleaseRequest, engine: TotalsEngine, stored: Mapping[int, np.ndarray]) -> NoisyTotals:
    """Read the totals and add noise to each; of selected groups, to those that are shown."""
    engine_totals = engine.totals(request.question)
    keys, values, found_rows = _complete_groups(request.question, engine_totals)
    noisy = np.zeros_like(values)
    if isinstance(request.noises[0], PartitionSelection):

        def read_weights(question: Question) -> KeyWeights:
            totals = engine_totals if question is request.question else engine.totals(question)
            return totals.keys, totals.values[:, 0]

        shown = request.noises[0].select(request.question, read_weights)
        row_by_key = {key: row for row, key in enumerate(keys)}
        rows = [row_by_key[key] for key in shown]
        keys, values, found_rows, noisy = list(shown), values[rows], found_rows[rows], noisy[rows]
        noisy[:, 0] = list(shown.values())
    for index, (total, noise) in request.draws.items():
        column = np.ascontiguousarray(values[:, index])
        if isinstance(noise, Refinement):
            noisy[:, index] = refine(stored[index], column, noise.before, noise.after)
        elif isinstance(noise, Laplace | Gaussian) and not isinstance(total, HistogramTree):
            noisy[:, index] = noise.perturb(column)
    trees = [
        (engine_totals.cell_counts[index], total, noise)
        for index, (total, noise) in request.draws.items()
        if isinstance(total, HistogramTree) and isinstance(noise, Laplace | Gaussian)
    ]
    walked = tuple(walk_noisy_tree(*tree, found_rows, walk) for tree, walk in zip(trees, request.walks, strict=True))
    selected = tuple(
        noise.select(engine_totals.cell_counts[index], total.cell_count, found_rows)
        for index, (total, noise) in request.draws.items()
        if isinstance(total, HistogramTree) and isinstance(noise, QuantileSelection)
    )
    return NoisyTotals(keys, noisy, walked, selected)


def _complete_groups(question: Question, engine_totals: EngineTotals) -> tuple[list[GroupKey], np.ndarray, np.ndarray]:
    """Return the keys, their totals, and for each key its row in the engine's result.

    Public groups are completed: keys that the engine did not return have zero totals, and a row one past the end.
    """
    values, shape = engine_totals.values, (len(engine_totals.keys), len(question.totals))
    if type(values) is not np.ndarray or values.dtype != np.int64 or values.shape != shape:
        raise TypeError(f"totals must be int64 of shape {shape}, not {values.dtype} of shape {values.shape}")
    if not isinstance(question.groups, PublicGroups):
        return engine_totals.keys, values, np.arange(len(values))
    key_rows = {key: row for row, key in enumerate(product(*question.groups.domains))}
    found_rows = np.full(len(key_rows), len(values))
    found_rows[[key_rows[key] for key in engine_totals.keys]] = np.arange(len(values))
    return list(key_rows), np.concatenate([values, np.zeros_like(values, shape=(1, shape[1]))])[found_rows], found_rows
