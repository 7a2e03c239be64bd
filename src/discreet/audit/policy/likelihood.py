"""Likelihood ratios of noisy totals with and without the planted unit, and changes of the exact totals.

The audit plays an attacker who knows everything except whether the unit is in the data: both exact answers, and the
distribution of the noise.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.partition_selection import PartitionSelection
from discreet.kernel.question import ClippedUnits, GroupKey, HistogramTree, Question, SelectedGroups
from discreet.kernel.release import EngineTotals, NoisyTotals, ReleaseRequest

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


@dataclass(frozen=True)
class LikelihoodTest:
    """Test statistics for releases of one query; created by `compare_totals`."""

    requests: tuple[ReleaseRequest, ...]
    changes: tuple[_Change, ...]
    unique_groups: frozenset[tuple[int, GroupKey]]  # groups that exist only with the unit

    def total_shifts(self) -> list[TotalShift]:
        """Return the change of each total by the unit."""
        shifts = []
        for request_index, request in enumerate(self.requests):
            for total_index, total in enumerate(request.question.totals):
                changed = [
                    change.shift
                    for change in self.changes
                    if (change.request_index, change.total_index) == (request_index, total_index)
                ]
                allowed = request.question.sensitivity_of(total)
                l1, l2 = float(sum(map(abs, changed))), float(sum(shift * shift for shift in changed))
                shifts.append(TotalShift(l1, l2, allowed.l1, allowed.l2_squared))
        return shifts

    def loss_used(self) -> float:
        """Return the loss that this placement of the unit causes: epsilon with Laplace noise, rho with Gaussian."""
        return sum(
            _privacy_loss(_noise_of(self.requests[change.request_index], change), change.shift)
            for change in self.changes
        )

    def test_statistics(self, runs: Iterable[tuple[NoisyTotals, ...]]) -> np.ndarray:
        """Return three statistics for each run that may reveal the unit.

        The log-likelihood ratio, if the noise is as claimed; the number that the unit changes most; and its difference
        from the same number of another group, which is revealing if groups share their noise.
        """
        largest_change = max(self.changes, key=self._signal_to_noise, default=None)
        statistics = []
        for parts in runs:
            log_ratio = sum(
                self._log_likelihood_ratio(change, parts) for change in self.changes
            ) + _CERTAIN_LOG_RATIO * self.shows_unique_group(parts)
            statistics.append(
                (log_ratio, *((0, 0) if largest_change is None else self._difference_statistics(largest_change, parts)))
            )
        return np.array(statistics, float)

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
    unique_groups: set[tuple[int, GroupKey]] = set()
    for request_index, (request, with_unit, without) in enumerate(zip(requests, present, absent, strict=True)):
        changes += _changed_totals(request_index, request.question, with_unit, without)
        for total_index, total in enumerate(request.question.totals):
            if isinstance(total, HistogramTree):
                changes += _changed_tree_nodes(request_index, total_index, total, with_unit, without)
        if isinstance(request.question.groups, SelectedGroups):
            unique_groups |= {(request_index, key) for key in set(with_unit.keys) - set(without.keys)}
    return LikelihoodTest(requests, tuple(changes), frozenset(unique_groups))


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
        # The number of clipped units is one number, repeated in every group.
        pairs = [(key, [rows[key][total_index] if key in rows else 0 for rows in (before, after)]) for key in keys]
        if isinstance(total, ClippedUnits):
            repeated_counts = [max((values[side] for _, values in pairs), default=0) for side in (0, 1)]
            pairs = [(key, repeated_counts) for key in keys[:1]]
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
    if isinstance(total, ClippedUnits):
        return int(noisy.values[0, change.total_index]) if len(noisy.values) else None
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
