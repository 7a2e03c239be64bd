"""Mondrian (LeFevre, DeWitt and Ramakrishnan 2006): split the table recursively while both halves meet the criteria.

All partitions of a round are split at once, so that a table needs about twenty passes over numpy arrays and no loop
over its partitions. The splits of a partition along the few dimensions with the largest gain are compared, and the one
with the smallest loss over all dimensions is chosen. Rows with equal quasi-identifiers stay together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.anonymity.encoding.equivalence_classes import EquivalenceClasses, weighted_contingency_table
from discreet.anonymity.generalisation.dimensions import Dimension, total_losses
from discreet.anonymity.generalisation.privacy_criteria import PrivacyCriteria, satisfies_criteria
from discreet.anonymity.generalisation.splits import IntervalSplit, SubsetSplit, best_splits

_MAX_TRIED_DIMENSIONS = 3  # for each partition; more improve the result only slightly


@dataclass(frozen=True, eq=False)
class _Partitions:
    """Rows sorted by partition, with their codes along each dimension, and the loss of each partition.

    The length of a partition counts the distinct rows, its size (in `classes`) the rows of the table.
    """

    rows: np.ndarray
    weights: np.ndarray
    codes: tuple[np.ndarray, ...]
    lengths: np.ndarray
    classes: EquivalenceClasses
    losses: np.ndarray


@dataclass(frozen=True, eq=False)
class _Halves:
    """All left halves of some partitions, followed by all right halves: row indices, lengths and sizes."""

    row_indices: np.ndarray
    lengths: np.ndarray
    sizes: np.ndarray


@dataclass(frozen=True, eq=False)
class _SplitChoice:
    """The gain of splitting each partition (0: not split), the losses of all halves, and the rows that go right."""

    gain: np.ndarray
    losses: np.ndarray
    is_right: np.ndarray


def partition(dimensions: Sequence[Dimension], criteria: PrivacyCriteria, weights: np.ndarray) -> EquivalenceClasses:
    """Partition the rows into classes that satisfy the criteria; the table as a whole must satisfy them.

    Each row represents `weights` equal rows.

    >>> from discreet.anonymity.generalisation.dimensions import OrderedScale
    >>> scale = OrderedScale(np.array([0, 0.1, 0.9, 1]))
    >>> ages = Dimension(np.array([0, 3, 1, 2]), np.array([2, 1, 1, 1]), scale)
    >>> classes = partition([ages], PrivacyCriteria(2), weights=np.array([2, 1, 1, 1]))
    >>> classes.ids.tolist(), classes.sizes.tolist()
    ([0, 1, 0, 1], [3, 2])
    """
    parts = _single_partition(dimensions, weights)
    ids, sizes = np.empty_like(parts.rows), []
    next_id = 0
    while len(parts.rows):
        choice = _choose_splits(parts, dimensions, criteria)
        halves = _split_in_halves(parts, choice.is_right)
        # A half of fewer than 2k rows cannot be split again, and one without loss need not be.
        is_final = np.tile(choice.gain == 0, 2) | (halves.sizes < 2 * criteria.k) | (choice.losses == 0)
        is_done = np.repeat(is_final, halves.lengths)
        final_halves = np.flatnonzero(is_final & (halves.sizes > 0))
        new_ids = np.arange(next_id, next_id + len(final_halves))
        ids[parts.rows[halves.row_indices[is_done]]] = np.repeat(new_ids, halves.lengths[final_halves])
        sizes.append(halves.sizes[final_halves])
        next_id += len(final_halves)
        parts = _divisible_partitions(parts, halves, choice, ~is_final)
    return EquivalenceClasses(ids, np.concatenate(sizes))


def _single_partition(dimensions: Sequence[Dimension], weights: np.ndarray) -> _Partitions:
    rows = np.arange(len(weights))
    codes = tuple(dimension.codes for dimension in dimensions)
    single_class = EquivalenceClasses(np.zeros_like(rows), np.array([weights.sum()]))
    losses = total_losses(dimensions, codes, np.array([0]))
    return _Partitions(rows, weights, codes, np.array([len(rows)]), single_class, losses)


def _divisible_partitions(
    parts: _Partitions, halves: _Halves, choice: _SplitChoice, is_divisible: np.ndarray
) -> _Partitions:
    """Return the halves that can be split again as partitions."""
    row_indices = halves.row_indices[np.repeat(is_divisible, halves.lengths)]
    lengths = halves.lengths[is_divisible]
    return _Partitions(
        rows=parts.rows[row_indices],
        weights=parts.weights[row_indices],
        codes=tuple(codes[row_indices] for codes in parts.codes),
        lengths=lengths,
        classes=EquivalenceClasses(np.repeat(np.arange(len(lengths)), lengths), halves.sizes[is_divisible]),
        losses=choice.losses[is_divisible],
    )


def _choose_splits(parts: _Partitions, dimensions: Sequence[Dimension], criteria: PrivacyCriteria) -> _SplitChoice:
    """Choose for every partition the best of the first few splits, or else the first that meets the criteria."""
    splits = [
        best_splits(
            dimension.scale,
            weighted_contingency_table(parts.classes, codes, dimension.totals, parts.weights),
            criteria.k,
        )
        for dimension, codes in zip(dimensions, parts.codes, strict=True)
    ]
    gains = np.stack([split.gain for split in splits])
    order = np.argsort(-gains, axis=0, kind="stable")
    part_count = len(parts.lengths)
    best = _SplitChoice(np.zeros(part_count), np.zeros(2 * part_count), np.zeros(len(parts.rows), bool))
    for turn, axis in enumerate(order):
        is_tried = (gains[axis, np.arange(part_count)] > 0) & ((best.gain == 0) | (turn < _MAX_TRIED_DIMENSIONS))
        if not is_tried.any():
            break
        evaluated = _evaluate_splits(
            parts, _assign_sides(parts, splits, np.where(is_tried, axis, -1)), is_tried, dimensions, criteria
        )
        is_better = evaluated.gain > best.gain
        best = _SplitChoice(
            np.where(is_better, evaluated.gain, best.gain),
            np.where(np.tile(is_better, 2), evaluated.losses, best.losses),
            np.where(is_better[parts.classes.ids], evaluated.is_right, best.is_right),
        )
    return best


def _evaluate_splits(
    parts: _Partitions,
    is_right: np.ndarray,
    is_tried: np.ndarray,
    dimensions: Sequence[Dimension],
    criteria: PrivacyCriteria,
) -> _SplitChoice:
    """Return the gain of splitting some partitions over all dimensions; 0 if a half violates a criterion."""
    halves = _split_in_halves(parts, is_right)
    is_tried_half = np.tile(is_tried, 2)
    row_indices = halves.row_indices if is_tried.all() else halves.row_indices[np.repeat(is_tried_half, halves.lengths)]
    lengths, sizes = halves.lengths[is_tried_half], halves.sizes[is_tried_half]
    half_codes = [codes[row_indices] for codes in parts.codes]
    half_losses = total_losses(dimensions, half_codes, np.cumsum(lengths) - lengths)
    gain_of_tried = parts.classes.sizes[is_tried] * parts.losses[is_tried] - (sizes * half_losses).reshape(2, -1).sum(
        axis=0
    )
    if criteria.sensitive_criteria:
        half_classes = EquivalenceClasses(np.repeat(np.arange(len(sizes)), lengths), sizes)
        is_satisfied = satisfies_criteria(criteria, half_classes, parts.rows[row_indices], parts.weights[row_indices])
        gain_of_tried[~is_satisfied.reshape(2, -1).all(axis=0)] = 0
    gain, losses = np.zeros(len(is_tried)), np.zeros(len(is_tried_half))
    gain[is_tried], losses[is_tried_half] = gain_of_tried, half_losses
    return _SplitChoice(gain, losses, is_right)


def _assign_sides(parts: _Partitions, splits: Sequence[IntervalSplit | SubsetSplit], axis: np.ndarray) -> np.ndarray:
    """Return which rows go right if each partition is split along its axis; with axis -1, all rows stay left."""
    is_right = np.zeros(len(parts.rows), bool)
    axis_of_row = axis.astype(np.int16)[parts.classes.ids]
    for number, (split, codes) in enumerate(zip(splits, parts.codes, strict=True)):
        row_indices = np.flatnonzero(axis_of_row == number)
        if len(row_indices):
            is_right[row_indices] = split.goes_right(parts.classes.ids[row_indices], codes[row_indices])
    return is_right


def _split_in_halves(parts: _Partitions, is_right: np.ndarray) -> _Halves:
    starts = np.cumsum(parts.lengths) - parts.lengths
    right_lengths = np.add.reduceat(is_right, starts, dtype=np.int64)
    right_sizes = np.add.reduceat(np.where(is_right, parts.weights, 0), starts)
    return _Halves(
        np.concatenate([np.flatnonzero(~is_right), np.flatnonzero(is_right)]),
        np.concatenate([parts.lengths - right_lengths, right_lengths]),
        np.concatenate([parts.classes.sizes - right_sizes, right_sizes]),
    )
