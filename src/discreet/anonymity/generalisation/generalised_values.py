"""The generalised value of each class and column: a range, a set, or a hierarchy's label."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.anonymity.encoding.encoded_table import EncodedColumn, cast_whole_floats
from discreet.anonymity.encoding.equivalence_classes import (
    ContingencyTable,
    EquivalenceClasses,
    weighted_contingency_table,
)
from discreet.anonymity.generalisation.dimensions import Dimension, HierarchicalScale, NominalScale
from discreet.anonymity.hierarchies.hierarchy import ANY_VALUE
from discreet.anonymity.hierarchies.label_coverage import format_values
from discreet.anonymity.hierarchies.label_syntax import format_range, format_set_member

_MAX_SET_SIZE = 100  # larger sets are replaced by *


@dataclass(frozen=True, eq=False)
class GeneralisedValues:
    """The released value of a column for each class, and its certainty penalty."""

    texts: pa.Array
    losses: np.ndarray


def generalise_column(
    column: EncodedColumn, dimension: Dimension, classes: EquivalenceClasses
) -> GeneralisedValues | None:
    """Return the released value of a column for each class, or None if every class has a single value.

    Several values are generalised to the smallest range ("20-29", or "[0.5, 1.5]" for floats that are not all
    integers), to their set ("{A, B}"), or to the lowest common label of the hierarchy. "*" replaces all values of a
    column, null mixed with numbers, and sets of more than 100 values.

    >>> from discreet.anonymity.encoding.encoded_table import encode_column
    >>> from discreet.anonymity.generalisation.dimensions import build_dimension
    >>> ages = encode_column(pa.table({"age": [23, 41, 29, 35, 41]}), "age")
    >>> classes = EquivalenceClasses(np.array([0, 1, 0, 0, 1]), np.array([3, 2]))
    >>> generalised = generalise_column(ages, build_dimension(ages, None), classes)
    >>> generalised.texts.to_pylist(), generalised.losses.round(2).tolist()
    (['23-35', '41'], [0.67, 0.0])
    """
    cells = weighted_contingency_table(classes, dimension.codes, dimension.totals, np.ones_like(dimension.codes))
    if len(cells.values) == len(cells.sizes):
        return None
    scale = dimension.scale
    if isinstance(scale, NominalScale):
        value_counts = np.diff(np.append(cells.starts, len(cells.values)))
        return GeneralisedValues(
            _set_labels(column, cells), np.where(value_counts > _MAX_SET_SIZE, 1, scale.loss(value_counts))
        )
    low = cells.values[cells.starts]
    high = cells.values[np.append(cells.starts[1:], len(cells.values)) - 1]
    texts = (
        _hierarchy_labels(scale, low, high)
        if isinstance(scale, HierarchicalScale)
        else _range_labels(column, low, high)
    )
    return GeneralisedValues(texts, scale.loss(low, high))


def expand_to_rows(labels: pa.Array, codes: np.ndarray) -> pa.Array:
    """Return the label of each row, as large_string if the text exceeds 2 GB."""
    lengths = pc.fill_null(pc.binary_length(labels), 0).to_numpy(zero_copy_only=False)
    size = int(np.bincount(codes, minlength=len(labels)) @ lengths.astype(np.int64))
    return (labels if size < 2**31 else labels.cast(pa.large_string())).take(pa.array(codes))


def _range_labels(column: EncodedColumn, low: np.ndarray, high: np.ndarray) -> pa.Array:
    kind = cast_whole_floats(column.values).type
    is_real = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    used_codes, text_index = np.unique(np.concatenate([low, high]), return_inverse=True)
    texts = format_values(column.values.take(pa.array(used_codes)))
    null_index = None if column.null_code is None else np.searchsorted(used_codes, column.null_code)

    def label(first: int, last: int) -> str | None:
        if first == last:
            return texts[first]
        if last == null_index:
            return ANY_VALUE
        ends = str(texts[first]), str(texts[last])
        return f"[{ends[0]}, {ends[1]}]" if is_real else format_range(*ends)

    ends = zip(text_index[: len(low)].tolist(), text_index[len(low) :].tolist(), strict=True)
    return pa.array([label(*pair) for pair in ends], pa.string())


def _set_labels(column: EncodedColumn, cells: ContingencyTable) -> pa.Array:
    texts = pa.array(format_values(column.values), pa.string())
    bounds = np.append(cells.starts, len(cells.values))
    members = pa.array([format_set_member(text) for text in texts.to_pylist()], pa.string())
    lists = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), members.take(pa.array(cells.values)))
    set_labels = pc.binary_join_element_wise("{", pc.binary_join(lists, ", "), "}", "")
    value_counts = np.diff(bounds)
    is_anything = (value_counts == len(texts)) | (value_counts > _MAX_SET_SIZE)
    single_values = texts.take(pa.array(cells.values[cells.starts]))
    return pc.if_else(
        pa.array(value_counts == 1), single_values, pc.if_else(pa.array(is_anything), ANY_VALUE, set_labels)
    )


def _hierarchy_labels(scale: HierarchicalScale, low: np.ndarray, high: np.ndarray) -> pa.Array:
    tree = scale.tree
    level = scale.lowest_common_level(low, high)
    offsets = np.cumsum([0, *(len(labels) for labels in tree.labels)])
    all_labels = pa.array([label for labels in tree.labels for label in labels], pa.string())
    return all_labels.take(pa.array(offsets[level] + tree.codes[level, low]))
