"""Likelihood ratios of noisy totals with and without the planted unit, and changes of the exact totals.

The audit plays an attacker who knows everything except whether the unit is in the data: both exact answers, and the
distribution of the noise.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.partition_selection import PartitionSelection
from discreet.kernel.question import GroupKey, Question, SelectedGroups
from discreet.kernel.release import EngineTotals, NoisyTotals, ReleaseRequest
from discreet.kernel.selection import QuantileSelection, RankTarget, margin_boundaries, margin_widths
from discreet.kernel.totals import HistogramTree

_CERTAIN_LOG_RATIO = 1000.0  # log-likelihood ratio of a group that only the planted unit has


@dataclass(frozen=True)
class TotalShift:
    """Change of one total by the unit over all groups, and the sensitivity, in l1 and in squared l2."""

    l1: float
    l2_squared: float
    allowed_l1: int
    allowed_l2_squared: int

    @property
    def share_of_sensitivity(self) -> float:
        """Share of the sensitivity that was used; above 1 the noise is too small."""
        return max(self.l1 / self.allowed_l1, math.sqrt(self.l2_squared / self.allowed_l2_squared))


@dataclass(frozen=True)
class _Change:
    """One exact number that the unit changed: its position, its value without the unit, and the shift."""

    request_index: int
    total_index: int
    key: GroupKey
    cell: tuple[int, int] | None  # in a tree: level and index
    value_without: int
    shift: int


class SelectionLikelihood:
    """The log-likelihood of selected quantiles, given the counts of all cells of a group."""

    def __init__(self, selection: QuantileSelection, counts: np.ndarray) -> None:
        cells, self._selection = np.flatnonzero(counts), selection
        self.weight, self._widths = int(counts.sum()), margin_widths(len(counts))
        self._starts = np.concatenate([[0], cells, [len(counts) - 1]])
        self._upto = np.concatenate([[0], np.cumsum(counts[cells])])
        self._cells = [
            self._log_probabilities(
                target.level.denominator * np.cumsum(counts)[:-1].astype(float),
                target.level.numerator * float(self.weight),
                target,
            )
            for target in selection.targets
        ]

    def log_likelihood(self, shown: np.ndarray) -> float:
        """Return the log-probability of cells and widths (targets × 2)."""
        likelihood = 0.0
        for target, cells, (cell, width) in zip(self._selection.targets, self._cells, shown.tolist(), strict=True):
            edges = margin_boundaries(self._starts, self._upto, target, cell, self._widths).astype(float)
            widths = self._log_probabilities(edges, float(target.level.denominator * target.offset), target)
            likelihood += cells[cell] + widths[[*self._widths, self._widths[-1] + 1].index(width)]
        return likelihood

    def _log_probabilities(self, edges: np.ndarray, wanted: float, target: RankTarget) -> np.ndarray:
        begins, ends = np.concatenate([[-np.inf], edges]), np.concatenate([edges, [np.inf]])
        distances = np.maximum(0, np.maximum(begins - wanted, wanted - ends))
        weights = -distances / (float(self._selection.scale) * target.factor)
        log_probabilities: np.ndarray = weights - np.logaddexp.reduce(weights)
        return log_probabilities


@dataclass(frozen=True, eq=False)
class _SelectionChange:
    """The cells of one group that quantiles are selected from, without the unit and with it."""

    request_index: int
    total_index: int
    key: GroupKey
    position: int  # among the selections of its request
    selection: QuantileSelection
    without_unit: SelectionLikelihood
    with_unit: SelectionLikelihood

    @property
    def shift(self) -> int:
        return self.with_unit.weight - self.without_unit.weight

    def selected(self, parts: tuple[NoisyTotals, ...]) -> np.ndarray | None:
        """Return the selected cells and widths (targets × 2); None if the group was not released."""
        noisy = parts[self.request_index]
        if self.key not in noisy.keys:
            return None
        group: np.ndarray = noisy.quantiles[self.position][noisy.keys.index(self.key)]
        return group

    def log_likelihood_ratio(self, parts: tuple[NoisyTotals, ...]) -> float:
        """Return the log-likelihood ratio of the selected cells and widths, with and without the unit."""
        shown = self.selected(parts)
        if shown is None:
            return 0.0
        return self.with_unit.log_likelihood(shown) - self.without_unit.log_likelihood(shown)


@dataclass(frozen=True)
class LikelihoodTest:
    """Test statistics for releases of one query; created by `compare_totals`."""

    requests: tuple[ReleaseRequest, ...]
    changes: tuple[_Change, ...]
    selections: tuple[_SelectionChange, ...]
    unique_groups: frozenset[tuple[int, GroupKey]]  # groups that exist only with the unit

    def total_shifts(self) -> list[TotalShift]:
        """Return the change of each total by the unit."""
        shifts = []
        all_changes: list[_Change | _SelectionChange] = [*self.changes, *self.selections]
        for request_index, request in enumerate(self.requests):
            for total_index, total in enumerate(request.question.totals):
                changed = [
                    change.shift
                    for change in all_changes
                    if (change.request_index, change.total_index) == (request_index, total_index)
                ]
                allowed = request.question.sensitivity_of(total)
                l1, l2 = float(sum(map(abs, changed))), float(sum(shift * shift for shift in changed))
                shifts.append(TotalShift(l1, l2, allowed.l1, allowed.l2_squared))
        return shifts

    def loss_used(self, cost: Loss) -> float:
        """Return the loss that this placement of the unit causes, in the parameter of the cost: epsilon or rho."""
        additive = sum(
            _privacy_loss(_noise_of(self.requests[change.request_index], change), change.shift)
            for change in self.changes
        )
        selected = [change.selection.loss(Sensitivity(1, max(1, abs(change.shift)))) for change in self.selections]
        return additive + sum(float((cost.epsilon is not None and loss.epsilon) or loss.rho) for loss in selected)

    def test_statistics(self, runs: Iterable[tuple[NoisyTotals, ...]]) -> np.ndarray:
        """Return three statistics for each run that may reveal the unit.

        The log-likelihood ratio, if the noise is as claimed; the number that the unit changes most; and its difference
        from the same number of another group, which is revealing if groups share their noise. If the unit changes
        only quantiles, the first of them takes the place of the number.
        """
        largest_change = max(self.changes, key=self._signal_to_noise, default=None)
        statistics = []
        for parts in runs:
            log_ratio = (
                sum(self._log_likelihood_ratio(change, parts) for change in self.changes)
                + sum(change.log_likelihood_ratio(parts) for change in self.selections)
                + _CERTAIN_LOG_RATIO * self.shows_unique_group(parts)
            )
            statistics.append(
                (
                    log_ratio,
                    *(
                        self._selected_statistics(parts)
                        if largest_change is None
                        else self._difference_statistics(largest_change, parts)
                    ),
                )
            )
        return np.array(statistics, float)

    def _selected_statistics(self, parts: tuple[NoisyTotals, ...]) -> tuple[int, int]:
        """Return the first selected cell that the unit can move, and its margin."""
        shown = self.selections[0].selected(parts) if self.selections else None
        return (0, 0) if shown is None else (int(shown[0, 0]), int(shown[0, 1]))

    def _difference_statistics(self, change: _Change, parts: tuple[NoisyTotals, ...]) -> tuple[int, int]:
        """Return a released number minus its exact value without the unit, and minus that number of another group."""
        value = _released_value(change, parts, self.requests[change.request_index])
        if value is None:
            return 0, 0
        noisy = parts[change.request_index]
        changed_keys = {
            other_change.key
            for other_change in self.changes
            if (other_change.request_index, other_change.total_index) == (change.request_index, change.total_index)
        }
        row = next((row for row, key in enumerate(noisy.keys) if key not in changed_keys), None)
        other = value if row is None or change.cell is not None else int(noisy.values[row, change.total_index])
        return value - change.value_without, value - other

    def shows_unique_group(self, parts: tuple[NoisyTotals, ...]) -> bool:
        """Return whether a release contains a group that only the planted unit has."""
        return bool(self.unique_groups) and any(
            (request_index, key) in self.unique_groups
            for request_index, noisy in enumerate(parts)
            for key in noisy.keys
        )

    def _signal_to_noise(self, change: _Change) -> float:
        return abs(change.shift) / float(_noise_of(self.requests[change.request_index], change).scale)

    def _log_likelihood_ratio(self, change: _Change, parts: tuple[NoisyTotals, ...]) -> float:
        """Return the log-likelihood ratio of one number, with and without the unit."""
        request = self.requests[change.request_index]
        value = _released_value(change, parts, request)
        if value is None:
            return 0.0
        noise, deviation, shift = (
            _noise_of(request, change),
            float(value - change.value_without),
            float(change.shift),
        )
        if isinstance(noise, Laplace):
            return (abs(deviation) - abs(deviation - shift)) / float(noise.scale)
        return (2 * deviation * shift - shift * shift) / (2 * float(noise.scale) ** 2)


def _noise_of(request: ReleaseRequest, change: _Change) -> Laplace | Gaussian:
    noise = request.noises[change.total_index]
    if isinstance(noise, PartitionSelection):
        return noise.rounds[-1].noise
    assert isinstance(noise, Laplace | Gaussian)  # an audit asks everything afresh
    return noise


def compare_totals(
    requests: tuple[ReleaseRequest, ...], present: Sequence[EngineTotals], absent: Sequence[EngineTotals]
) -> LikelihoodTest:
    """Compare the exact totals of a query with and without the unit."""
    changes: list[_Change] = []
    selections: list[_SelectionChange] = []
    unique_groups: set[tuple[int, GroupKey]] = set()
    for request_index, (request, with_unit, without) in enumerate(zip(requests, present, absent, strict=True)):
        changes += _changed_totals(request_index, request.question, with_unit, without)
        for total_index, total in enumerate(request.question.totals):
            selection = request.noises[total_index]
            if isinstance(selection, QuantileSelection):
                selections += _changed_selections(request_index, total_index, request, with_unit, without)
            elif isinstance(total, HistogramTree):
                changes += _changed_tree_nodes(request_index, total_index, total, with_unit, without)
        if isinstance(request.question.groups, SelectedGroups):
            unique_groups |= {(request_index, key) for key in set(with_unit.keys) - set(without.keys)}
    return LikelihoodTest(requests, tuple(changes), tuple(selections), frozenset(unique_groups))


def _changed_selections(
    request_index: int, total_index: int, request: ReleaseRequest, present: EngineTotals, absent: EngineTotals
) -> list[_SelectionChange]:
    total, selection = request.question.totals[total_index], request.noises[total_index]
    assert isinstance(total, HistogramTree)
    assert isinstance(selection, QuantileSelection)
    position = sum(isinstance(noise, QuantileSelection) for noise in request.noises[:total_index])
    before, after = (_dense_counts(totals, total_index, total.cell_count) for totals in (absent, present))
    nothing = np.zeros(total.cell_count, np.int64)
    changes = []
    for key in sorted({*before, *after}, key=str):
        counts = before.get(key, nothing), after.get(key, nothing)
        if not np.array_equal(*counts):
            sides = (SelectionLikelihood(selection, each) for each in counts)
            changes.append(_SelectionChange(request_index, total_index, key, position, selection, *sides))
    return changes


def _dense_counts(totals: EngineTotals, total_index: int, cell_count: int) -> dict[GroupKey, np.ndarray]:
    counts: dict[GroupKey, np.ndarray] = {}
    for key, cell, weight in _leaf_counts(totals, total_index):
        counts.setdefault(key, np.zeros(cell_count, np.int64))[cell] += weight
    return counts


def _privacy_loss(noise: Laplace | Gaussian, shift: int) -> float:
    ratio = abs(shift) / float(noise.scale)
    return ratio if isinstance(noise, Laplace) else ratio * ratio / 2


def _changed_totals(
    request_index: int, question: Question, present: EngineTotals, absent: EngineTotals
) -> list[_Change]:
    before, after = (dict(zip(totals.keys, totals.values.tolist(), strict=True)) for totals in (absent, present))
    keys = sorted({*before, *after}, key=str)
    changes = []
    for total_index, total in enumerate(question.totals):
        if isinstance(total, HistogramTree):
            continue
        pairs = [(key, [rows[key][total_index] if key in rows else 0 for rows in (before, after)]) for key in keys]
        changes += [_Change(request_index, total_index, key, None, a, b - a) for key, (a, b) in pairs if a != b]
    return changes


def _changed_tree_nodes(
    request_index: int, total_index: int, total: HistogramTree, present: EngineTotals, absent: EngineTotals
) -> list[_Change]:
    sides = [_leaf_counts(totals, total_index) for totals in (absent, present)]
    changes = []
    for level in range(total.depth):
        width = total.branching ** (total.depth - level - 1)
        before, after = (_sum_to_level(side, width) for side in sides)
        for key, cell in sorted({*before, *after}, key=str):
            a, b = before.get((key, cell), 0), after.get((key, cell), 0)
            if a != b:
                changes.append(_Change(request_index, total_index, key, (level, cell), a, b - a))
    return changes


def _leaf_counts(totals: EngineTotals, total_index: int) -> list[tuple[GroupKey, int, int]]:
    tally = totals.cell_counts.get(total_index)
    if tally is None:
        return []
    columns = (tally.groups.tolist(), tally.cells.tolist(), tally.weights.tolist())
    return [(totals.keys[group], cell, weight) for group, cell, weight in zip(*columns, strict=True)]


def _sum_to_level(cells: list[tuple[GroupKey, int, int]], width: int) -> dict[tuple[GroupKey, int], int]:
    sums: dict[tuple[GroupKey, int], int] = {}
    for key, cell, weight in cells:
        sums[key, cell // width] = sums.get((key, cell // width), 0) + weight
    return sums


def _released_value(change: _Change, parts: tuple[NoisyTotals, ...], request: ReleaseRequest) -> int | None:
    """Return a released number; the last threshold if the group was not released; None if nothing was released."""
    noisy, total = parts[change.request_index], request.question.totals[change.total_index]
    try:
        row = noisy.keys.index(change.key)
    except ValueError:
        noise = request.noises[change.total_index]
        return noise.rounds[-1].cut if isinstance(noise, PartitionSelection) else None
    if change.cell is None or not isinstance(total, HistogramTree):
        return int(noisy.values[row, change.total_index])
    trees = [
        index for index, other_total in enumerate(request.question.totals) if isinstance(other_total, HistogramTree)
    ]
    level, cell = change.cell
    node_counts = noisy.trees[trees.index(change.total_index)]
    if level >= len(node_counts):
        return None
    walkers = np.flatnonzero(node_counts[level].nodes[row] == cell // total.branching)
    return int(node_counts[level].counts[row, walkers[0], cell % total.branching]) if len(walkers) else None
