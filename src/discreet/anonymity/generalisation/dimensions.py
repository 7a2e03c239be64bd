"""Quasi-identifiers as Mondrian dimensions, and the information loss of groups of rows.

OrderedScale        numbers and dates: the share of the column's range that the group covers; 1 if null is among them
HierarchicalScale   a column with a hierarchy: the share of all leaves under the lowest common label of the group
NominalScale        all other columns: the share of the column's values that the group has, 0 for a single value
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn
from discreet.anonymity.encoding.equivalence_classes import EquivalenceClasses, weighted_contingency_table
from discreet.anonymity.hierarchies.taxonomy_tree import TaxonomyTree
from discreet.anonymity.metrics.attribute_risk import distinct_counts

# Outside the interval from 0 to 1, and at least 1 away from everything else.
_MINUS_INFINITY_POSITION, _PLUS_INFINITY_POSITION, _NULL_POSITION = -1.0, 2.0, 4.0


@dataclass(frozen=True, eq=False)
class OrderedScale:
    """The position of each code in the interval from 0 to 1."""

    positions: np.ndarray

    def loss(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the loss of groups, from their smallest and largest codes."""
        return np.asarray(np.minimum(self.positions[high] - self.positions[low], 1))


@dataclass(frozen=True, eq=False)
class HierarchicalScale:
    """A tree whose leaves are sorted so that the codes under a label are contiguous."""

    tree: TaxonomyTree

    def lowest_common_level(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the lowest level on which a group has a single label, from its smallest and largest codes."""
        levels = np.full(len(low), self.tree.height)
        for level in range(self.tree.height - 1, -1, -1):
            codes = self.tree.codes[level]
            levels[codes[low] == codes[high]] = level
        return levels

    def loss(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the loss of groups, from their smallest and largest codes."""
        return np.asarray(self.tree.losses[self.lowest_common_level(low, high), low])


@dataclass(frozen=True, eq=False)
class NominalScale:
    """A column of `value_count` distinct values without an order."""

    value_count: int

    def loss(self, distinct: np.ndarray) -> np.ndarray:
        """Return the loss of groups, from the number of distinct values in each."""
        return np.where(distinct > 1, distinct / self.value_count, 0)


@dataclass(frozen=True, eq=False)
class Dimension:
    """A column's codes, the number of occurrences of each, and the scale that gives the loss of a group."""

    codes: np.ndarray
    totals: np.ndarray
    scale: OrderedScale | HierarchicalScale | NominalScale


def build_dimension(column: EncodedColumn, tree: TaxonomyTree | None) -> Dimension:
    """Return a column as a dimension, sorted by its hierarchy if it has one.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.encoding.encoded_table import encode_column
    >>> ages = build_dimension(encode_column(pa.table({"age": [20, 30, None, 60]}), "age"), None)
    >>> ages.scale.loss(np.array([0, 0, 1, 3]), np.array([0, 1, 3, 3])).tolist()
    [0.0, 0.25, 1.0, 0.0]
    """
    totals = np.bincount(column.codes, minlength=len(column.values))
    if tree is not None:
        order = np.lexsort(tree.codes)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        sorted_tree = TaxonomyTree(tree.labels, tree.codes[:, order], tree.losses[:, order])
        return Dimension(rank[column.codes], totals[order], HierarchicalScale(sorted_tree))
    if not column.is_ordered:
        return Dimension(column.codes, totals, NominalScale(len(totals)))
    return Dimension(column.codes, totals, OrderedScale(_scale_to_unit_interval(column.positions)))


def _scale_to_unit_interval(positions: np.ndarray) -> np.ndarray:
    """Scale finite positions to the interval from 0 to 1."""
    is_finite = np.isfinite(positions)
    largest = np.abs(positions[is_finite]).max(initial=0) or 1.0
    scaled = np.where(is_finite, positions / largest, 0)
    low, high = scaled[is_finite].min(initial=1), scaled[is_finite].max(initial=-1)
    unit_positions = np.where(is_finite, (scaled - low) / (high - low or 1), positions)
    return np.asarray(
        np.nan_to_num(
            unit_positions, nan=_NULL_POSITION, posinf=_PLUS_INFINITY_POSITION, neginf=_MINUS_INFINITY_POSITION
        )
    )


_WORD_BITS = 64
_MAX_WORDS = 16


@dataclass(frozen=True, eq=False)
class _BitField:
    """The bits of a nominal column's values, as words with a mask for each."""

    scale: NominalScale
    masks: tuple[tuple[int, np.uint64], ...]


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows as codes along each dimension, and as bit sets of the values of nominal columns.

    A bitwise or over a group gives the values that occur in it. A column with too many values has no bit set, and its
    distinct values are counted instead.
    """

    dimensions: tuple[Dimension, ...]
    codes: tuple[np.ndarray, ...]
    bitset_words: tuple[np.ndarray, ...]
    bit_fields: tuple[_BitField | None, ...]

    def take(self, row_indices: np.ndarray) -> "EncodedRows":
        """Return the rows at these indices, in this order."""
        codes, words = (tuple(array[row_indices] for array in arrays) for arrays in (self.codes, self.bitset_words))
        return replace(self, codes=codes, bitset_words=words)

    def losses(self, row_indices: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return the loss of each group; the groups of `row_indices` begin at `starts`."""
        total = np.zeros(len(starts))
        sets = [np.bitwise_or.reduceat(word[row_indices], starts) for word in self.bitset_words]
        for dimension, codes, bit_field in zip(self.dimensions, self.codes, self.bit_fields, strict=True):
            if bit_field is not None:
                counts = [np.bitwise_count(sets[word] & mask) for word, mask in bit_field.masks]
                total += bit_field.scale.loss(np.sum(counts, axis=0))
            elif isinstance(dimension.scale, NominalScale):
                total += dimension.scale.loss(_count_distinct(codes[row_indices], starts, dimension.totals))
            else:
                group_codes = codes[row_indices]
                total += dimension.scale.loss(
                    np.minimum.reduceat(group_codes, starts), np.maximum.reduceat(group_codes, starts)
                )
        return total


def _count_distinct(codes: np.ndarray, starts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    sizes = np.diff(np.append(starts, len(codes)))
    classes = EquivalenceClasses(np.repeat(np.arange(len(sizes)), sizes), sizes)
    return distinct_counts(weighted_contingency_table(classes, codes, totals, np.ones_like(classes.ids)))


def encode_rows(dimensions: Sequence[Dimension]) -> EncodedRows:
    """Encode all rows of some dimensions.

    >>> ages = Dimension(np.array([0, 1, 2, 2]), np.array([1, 1, 2]), OrderedScale(np.array([0, 0.25, 1])))
    >>> jobs = Dimension(np.array([0, 1, 2, 1]), np.array([1, 2, 1]), NominalScale(3))
    >>> encode_rows([ages, jobs]).losses(np.arange(4), np.array([0, 2])).tolist()
    [0.9166666666666666, 0.6666666666666666]
    """
    words: list[np.ndarray] = []
    bit_fields: list[_BitField | None] = []
    bits_used = 0
    for dimension in dimensions:
        if (
            not isinstance(dimension.scale, NominalScale)
            or bits_used + dimension.scale.value_count > _WORD_BITS * _MAX_WORDS
        ):
            bit_fields.append(None)
            continue
        end = bits_used + dimension.scale.value_count
        words += [np.zeros(len(dimension.codes), np.uint64)] * (-(-end // _WORD_BITS) - len(words))
        masks = []
        for word in range(bits_used // _WORD_BITS, len(words)):
            words[word] = words[word] | _code_bits(dimension.codes, bits_used - word * _WORD_BITS)
            masks.append((word, _word_mask(bits_used - word * _WORD_BITS, end - word * _WORD_BITS)))
        bit_fields.append(_BitField(dimension.scale, tuple(masks)))
        bits_used = end
    codes = tuple(dimension.codes for dimension in dimensions)
    return EncodedRows(tuple(dimensions), codes, tuple(words), tuple(bit_fields))


def _code_bits(codes: np.ndarray, shift: int) -> np.ndarray:
    bit = codes.astype(np.int64) + shift
    is_in_word = (bit >= 0) & (bit < _WORD_BITS)
    return np.where(is_in_word, np.uint64(1) << np.where(is_in_word, bit, 0).astype(np.uint64), np.uint64(0))


def _word_mask(low: int, high: int) -> np.uint64:
    return np.uint64((1 << min(high, _WORD_BITS)) - (1 << max(low, 0)))
