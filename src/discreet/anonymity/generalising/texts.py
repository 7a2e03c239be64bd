"""The text of each released value: a range, a set, or a hierarchy's label."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.anonymity.coding.cells import Cells
from discreet.anonymity.coding.classes import Classes
from discreet.anonymity.coding.columns import Column
from discreet.anonymity.coding.tallies import tally
from discreet.anonymity.generalising.axes import Axis, Bag, Branch
from discreet.anonymity.labels.hierarchy import ANYTHING
from discreet.anonymity.labels.ranges import span
from discreet.anonymity.labels.reading import texts_of
from discreet.anonymity.labels.sets import member_of_set
from discreet.anonymity.labels.wholes import as_wholes

_LONGEST_SET = 100  # a set of more values is as good as anything


@dataclass(frozen=True, eq=False)
class Labels:
    """What stands in a column for the rows of each class, and the share of the column's width that is lost by it."""

    texts: pa.Array
    losses: np.ndarray


def labels_of(column: Column, axis: Axis, classes: Classes) -> Labels | None:
    """Return what stands in a column for the rows of each class; None if every class has one value only.

    A class of several values gets the smallest range that holds them ("20-29", or "[0.5, 1.5]" for reals that are not
    all whole), or their set ("{A, B}"), or the lowest label of the hierarchy above them. "*" stands for all values of
    a column, for null mixed with numbers, and for a set too long to read.

    >>> from discreet.anonymity.generalising.axes import axis_of
    >>> from discreet.anonymity.coding.columns import encode
    >>> ages = encode(pa.table({"age": [23, 41, 29, 35, 41]}), "age")
    >>> pairs = Classes(np.array([0, 1, 0, 0, 1]), np.array([3, 2]))
    >>> found = labels_of(ages, axis_of(ages, None), pairs)
    >>> found.texts.to_pylist(), found.losses.round(2).tolist()
    (['23-35', '41'], [0.67, 0.0])
    """
    cells = tally(classes, axis.codes, axis.totals, np.ones_like(axis.codes))
    if len(cells.values) == len(cells.sizes):
        return None
    shape = axis.shape
    if isinstance(shape, Bag):
        many = np.diff(np.append(cells.starts, len(cells.values)))
        return Labels(_sets(column, cells), np.where(many > _LONGEST_SET, 1, shape.loss(many)))
    low = cells.values[cells.starts]
    high = cells.values[np.append(cells.starts[1:], len(cells.values)) - 1]
    texts = _common(shape, low, high) if isinstance(shape, Branch) else _ranges(column, low, high)
    return Labels(texts, shape.loss(low, high))


def spread(labels: pa.Array, codes: np.ndarray) -> pa.Array:
    """Give each row its label, in an array whose texts may be more than two gigabytes."""
    lengths = pc.fill_null(pc.binary_length(labels), 0).to_numpy(zero_copy_only=False)
    size = int(np.bincount(codes, minlength=len(labels)) @ lengths.astype(np.int64))
    return (labels if size < 2**31 else labels.cast(pa.large_string())).take(pa.array(codes))


def _ranges(column: Column, low: np.ndarray, high: np.ndarray) -> pa.Array:
    kind = as_wholes(column.values).type
    is_real = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    used, place = np.unique(np.concatenate([low, high]), return_inverse=True)
    texts = texts_of(column.values.take(pa.array(used)))
    null = None if column.null is None else np.searchsorted(used, column.null)

    def label(first: int, last: int) -> str | None:
        if first == last:
            return texts[first]
        if last == null:
            return ANYTHING
        ends = str(texts[first]), str(texts[last])
        return f"[{ends[0]}, {ends[1]}]" if is_real else span(*ends)

    ends = zip(place[: len(low)].tolist(), place[len(low) :].tolist(), strict=True)
    return pa.array([label(*pair) for pair in ends], pa.string())


def _sets(column: Column, cells: Cells) -> pa.Array:
    texts = pa.array(texts_of(column.values), pa.string())
    bounds = np.append(cells.starts, len(cells.values))
    members = pa.array([member_of_set(text) for text in texts.to_pylist()], pa.string())
    lists = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), members.take(pa.array(cells.values)))
    written = pc.binary_join_element_wise("{", pc.binary_join(lists, ", "), "}", "")
    many = np.diff(bounds)
    is_anything = (many == len(texts)) | (many > _LONGEST_SET)
    alone = texts.take(pa.array(cells.values[cells.starts]))
    return pc.if_else(pa.array(many == 1), alone, pc.if_else(pa.array(is_anything), ANYTHING, written))


def _common(branch: Branch, low: np.ndarray, high: np.ndarray) -> pa.Array:
    tree = branch.tree
    level = branch.level(low, high)
    offsets = np.cumsum([0, *(len(labels) for labels in tree.labels)])
    every = pa.array([label for labels in tree.labels for label in labels], pa.string())
    return every.take(pa.array(offsets[level] + tree.codes[level, low]))
