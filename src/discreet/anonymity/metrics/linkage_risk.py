"""Linkage risk: how many people of a population match each released row, and which rows are unique.

A box is a combination of released values, each of which covers some original values; a point is a person of the
population. Boxes and points are stored in two tries with one column per level, and pairs of nodes are matched level by
level. Common prefixes are compared only once, and few boxes of a release overlap, so the number of intermediate pairs
is only slightly larger than the number of matches.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn
from discreet.anonymity.encoding.equivalence_classes import EquivalenceClasses, group_equal_rows
from discreet.anonymity.hierarchies.label_coverage import LabelCoverage

_MAX_PAIRS = 2_000_000
_Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class _TrieLevel:
    """The nodes of one column, by the sorted keys parent·width + code; the node of each row; first rows and sizes."""

    keys: np.ndarray
    width: int
    ids: np.ndarray
    first_rows: np.ndarray
    sizes: np.ndarray


def count_points_in_boxes(
    boxes: Sequence[np.ndarray], coverages: Sequence[LabelCoverage], points: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of points in each box, and the index of one of them (-1 if there is none).

    >>> from discreet.anonymity.hierarchies.label_coverage import build_coverage
    >>> boxes, points = [np.array([0, 1])], [np.array([0, 2, 0, 1])]
    >>> counts, example_point = count_points_in_boxes(boxes, [build_coverage([[0, 1], [1]], 3)], points)
    >>> counts.tolist(), example_point.tolist()
    ([3, 1], [3, 3])
    """
    joint_classes, candidate_points, overlapping = _join_disjoint_columns(boxes, coverages, points)
    box_levels = _build_trie([joint_classes[: len(boxes[0])], *(boxes[column] for column in overlapping)])
    point_levels = _build_trie(
        [joint_classes[len(boxes[0]) :], *(points[column][candidate_points] for column in overlapping)]
    )
    counts, example_point = np.zeros(len(box_levels[-1].keys), np.int64), np.full(len(box_levels[-1].keys), -1)
    _, box_nodes, point_nodes = np.intersect1d(
        box_levels[0].keys, point_levels[0].keys, assume_unique=True, return_indices=True
    )
    overlapping_coverages = [coverages[column] for column in overlapping]
    for matched_boxes, matched_points in _match_levels(
        (box_nodes, point_nodes), box_levels[1:], point_levels[1:], overlapping_coverages
    ):
        np.add.at(counts, matched_boxes, point_levels[-1].sizes[matched_points])
        example_point[matched_boxes] = candidate_points[point_levels[-1].first_rows[matched_points]]
    return counts[box_levels[-1].ids], example_point[box_levels[-1].ids]


def _join_disjoint_columns(
    boxes: Sequence[np.ndarray], coverages: Sequence[LabelCoverage], points: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Merge the columns whose released values do not overlap into one: there, a point matches at most one value.

    Return the classes by these columns of all boxes, followed by those of the candidate points; the candidate points;
    and the other columns, those with the fewest values first.
    """
    owners = {
        column: owner for column, coverage in enumerate(coverages) if (owner := coverage.covering_labels()) is not None
    }
    point_labels = {column: owner[points[column]] for column, owner in owners.items()}
    candidate_points = np.arange(len(points[0]))
    for labels in point_labels.values():
        candidate_points = candidate_points[labels[candidate_points] >= 0]
    joint_codes = [np.concatenate([boxes[column], labels[candidate_points]]) for column, labels in point_labels.items()]
    joint_classes = (
        group_equal_rows(joint_codes).ids if joint_codes else np.zeros(len(boxes[0]) + len(candidate_points), np.int64)
    )
    overlapping = [column for column in range(len(coverages)) if column not in owners]
    return joint_classes, candidate_points, sorted(overlapping, key=lambda column: coverages[column].original_count)


def _build_trie(columns: Sequence[np.ndarray]) -> list[_TrieLevel]:
    levels, parents = [], np.zeros(len(columns[0]), np.int64)
    for codes in columns:
        width = int(codes.max(initial=0)) + 1
        keys, first_rows, parents, sizes = np.unique(
            parents * width + codes, return_index=True, return_inverse=True, return_counts=True
        )
        levels.append(_TrieLevel(keys, width, parents, first_rows, sizes))
    return levels


def _match_levels(
    pairs: _Pairs,
    box_levels: Sequence[_TrieLevel],
    point_levels: Sequence[_TrieLevel],
    coverages: Sequence[LabelCoverage],
) -> Iterator[_Pairs]:
    """Yield the matching pairs of nodes on the last level, in batches."""
    if not coverages:
        yield pairs
        return
    coverage = coverages[0]
    for box_nodes, point_nodes in _replace_by_children(pairs, box_levels[0]):
        label = box_levels[0].keys[box_nodes] % box_levels[0].width
        low = np.searchsorted(
            point_levels[0].keys,
            point_nodes * point_levels[0].width + np.minimum(coverage.low[label], point_levels[0].width),
        )
        high = np.searchsorted(
            point_levels[0].keys,
            point_nodes * point_levels[0].width + np.minimum(coverage.high[label], point_levels[0].width),
        )
        for pair_indices, child_nodes in _expand_ranges(low, high):
            is_match = coverage.contains(label[pair_indices], point_levels[0].keys[child_nodes] % point_levels[0].width)
            yield from _match_levels(
                (box_nodes[pair_indices][is_match], child_nodes[is_match]),
                box_levels[1:],
                point_levels[1:],
                coverages[1:],
            )


def _replace_by_children(pairs: _Pairs, level: _TrieLevel) -> Iterator[_Pairs]:
    """Replace the first node of each pair by its children."""
    low = np.searchsorted(level.keys, pairs[0] * level.width)
    high = np.searchsorted(level.keys, (pairs[0] + 1) * level.width)
    for pair_indices, child in _expand_ranges(low, high):
        yield child, pairs[1][pair_indices]


def _expand_ranges(low: np.ndarray, high: np.ndarray) -> Iterator[_Pairs]:
    """Yield batches of (pair index, value) for every value from low to high - 1 of each pair."""
    ends = np.cumsum(high - low)
    begin = 0
    while begin < len(low):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _MAX_PAIRS, side="right")))
        length = high[begin:end] - low[begin:end]
        pair_indices = np.repeat(np.arange(begin, end), length)
        yield (
            pair_indices,
            low[pair_indices]
            + np.arange(len(pair_indices))
            - (ends[pair_indices] - (high - low)[pair_indices] - before),
        )
        begin = end


@dataclass(frozen=True)
class LinkageRisk:
    """Identity-disclosure risk: `rows_by_candidates` maps a number of matching people to the number of such rows.

    `unique_links` has a pair of positions for each row that matches one person only: the row, and the person in the
    population.

    >>> linkage = LinkageRisk({1: 2, 4: 8})
    >>> linkage.highest_risk, linkage.mean_risk, linkage.uniquely_linked_rows, linkage.share_above(0.2)
    (1.0, 0.4, 2, 1.0)
    """

    rows_by_candidates: Mapping[int, int]
    unique_links: np.ndarray | None = field(repr=False, compare=False, default=None)

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return sum(self.rows_by_candidates.values())

    @property
    def highest_risk(self) -> float:
        """The highest risk of a row: one over the number of matching people; 0 if no row matches anybody."""
        return max((1 / people for people in self.rows_by_candidates if people), default=0.0)

    @property
    def mean_risk(self) -> float:
        """The mean risk over all rows: the expected share of correct links if an attacker links every row."""
        return sum(rows / people for people, rows in self.rows_by_candidates.items() if people) / self.row_count

    @property
    def uniquely_linked_rows(self) -> int:
        """The number of rows that match exactly one person."""
        return self.rows_by_candidates.get(1, 0)

    @property
    def unmatched_rows(self) -> int:
        """The number of rows that match nobody in the population."""
        return self.rows_by_candidates.get(0, 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the risk for JSON.

        >>> LinkageRisk({1: 2, 4: 8}).to_dict()
        {'highest': 1.0, 'mean': 0.4, 'single': 2, 'unmatched': 0}
        """
        return {
            "highest": self.highest_risk,
            "mean": self.mean_risk,
            "single": self.uniquely_linked_rows,
            "unmatched": self.unmatched_rows,
        }

    def share_above(self, risk: float) -> float:
        """Return the share of rows whose risk is above a threshold."""
        return (
            sum(rows for people, rows in self.rows_by_candidates.items() if people and 1 / people > risk)
            / self.row_count
        )


def link_to_population(
    classes: EquivalenceClasses,
    released: Sequence[np.ndarray],
    coverages: Sequence[LabelCoverage],
    people: Sequence[np.ndarray],
) -> LinkageRisk:
    """Link a release to a population, from the codes of both by column and the coverage of the released values."""
    first_rows = classes.first_rows
    counts, person = count_points_in_boxes([codes[first_rows] for codes in released], coverages, people)
    rows = np.bincount(counts, classes.sizes).astype(np.int64)
    unique_rows = np.flatnonzero(counts[classes.ids] == 1)
    unique_links = np.stack([unique_rows, person[classes.ids[unique_rows]]], axis=1)
    return LinkageRisk({int(candidates): int(rows[candidates]) for candidates in np.flatnonzero(rows)}, unique_links)


_MAX_COMBINATIONS = 1000
_MAX_KEY = 1 << 62


@dataclass(frozen=True)
class UniqueCombination:
    """A combination of columns, and the number of rows that no other row equals in them.

    >>> print(UniqueCombination(("age", "zip"), 3, 12))
    25.0 % unique by age, zip
    """

    columns: tuple[str, ...]
    unique_rows: int
    total_rows: int

    @property
    def share(self) -> float:
        """The share of rows that are unique."""
        return self.unique_rows / self.total_rows

    def __str__(self) -> str:
        return f"{self.share:.1%} unique by {', '.join(self.columns)}".replace("%", " %")


def count_unique_rows(columns: Sequence[EncodedColumn], largest: int | None = None) -> tuple[UniqueCombination, ...]:
    """Count the unique rows by each combination of at most `largest` columns, the smallest combinations first.

    By default, `largest` is chosen so that there are at most 1,000 combinations.
    """
    max_columns = max_combination_size(len(columns)) if largest is None else largest
    key = np.zeros(len(columns[0].codes), np.int64)
    return tuple(
        sorted(_extend_combination(columns, max_columns, (), key, 1), key=lambda combination: len(combination.columns))
    )


def max_combination_size(columns: int) -> int:
    """Return the largest number of columns with at most 1,000 combinations up to that size, at least 1.

    >>> [max_combination_size(columns) for columns in (1, 8, 9, 12, 18, 100)]
    [1, 8, 9, 4, 3, 1]
    """
    total = 0
    for size in range(1, columns + 1):
        total += comb(columns, size)
        if total > _MAX_COMBINATIONS:
            return max(1, size - 1)
    return columns


def _extend_combination(
    columns: Sequence[EncodedColumn], max_columns: int, combination: tuple[str, ...], key: np.ndarray, width: int
) -> Iterator[UniqueCombination]:
    """Extend a combination by each of the columns, and recursively by the columns after it."""
    for index, column in enumerate(columns):
        column_width, names = len(column.values), (*combination, column.name)
        if width * column_width > _MAX_KEY:
            classes = group_equal_rows([key])
            key, width = classes.ids, len(classes.sizes)
        extended_key = key * column_width + column.codes
        yield UniqueCombination(names, _count_singletons(extended_key, width * column_width), len(extended_key))
        if len(names) < max_columns:
            yield from _extend_combination(columns[index + 1 :], max_columns, names, extended_key, width * column_width)


def _count_singletons(key: np.ndarray, width: int) -> int:
    """Return the number of keys that occur exactly once."""
    if width <= 4 * len(key):
        return int(np.count_nonzero(np.bincount(key) == 1))
    ordered = np.sort(key)
    edges = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return int(np.count_nonzero(edges[1:] & edges[:-1]))
