"""How much a release has lost of the table it was made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.anonymity.coding.classes import Classes
from discreet.anonymity.coding.columns import Column
from discreet.anonymity.labels.covers import Cover
from discreet.anonymity.labels.reading import read_cover, texts_of
from discreet.anonymity.labels.tree import Tree


@dataclass(frozen=True)
class InformationLoss:
    """What generalisation and suppression took away.

    ncp               the normalised certainty penalty: the mean over rows and columns of how much of the column's
                      width a released value covers, 0 for an original value; 1 for every suppressed row
    columns           the same for each column
    discernibility    the sum of the squared sizes of the classes, and for each suppressed row the size of the table
    average_class     the mean size of a class, as a multiple of the smallest
    suppressed        the rows that are missing

    The width is (max - min)/(range of the column) of the original values covered if they are numbers or dates, the
    share of the hierarchy's leaves if there is a hierarchy, and else the share of the column's different values.

    >>> import pyarrow as pa
    >>> from discreet.anonymity import measure
    >>> before, after = pa.table({"age": [21, 29, 37]}), pa.table({"age": ["21-29", "21-29"]})
    >>> loss = measure(after, "age", original=before).loss
    >>> round(loss.ncp, 3), loss.suppressed, loss.discernibility
    (0.667, 1, 7)
    """

    ncp: float
    columns: Mapping[str, float]
    discernibility: int
    average_class: float
    suppressed: int


def information_loss(
    released: Sequence[Column], original: Sequence[Column], trees: Mapping[str, Tree], classes: Classes
) -> InformationLoss:
    """Compare the quasi-identifying columns of a release with the original ones."""
    rows, before = len(classes.ids), len(original[0].codes)
    if rows > before:
        words = "Give the table from which the release was made."
        raise ValueError(f"original: it has {before} rows, fewer than the {rows} of the release. {words}")
    lost = {
        mine.name: float(penalties(mine, theirs, trees.get(mine.name))[mine.codes].sum())
        for mine, theirs in zip(released, original, strict=True)
    }
    return summed_up(lost, before, classes)


def summed_up(lost: Mapping[str, float], before: int, classes: Classes) -> InformationLoss:
    """Add what all released rows lost in each column to the rows that are missing of those that were there before.

    >>> summed_up({"age": 1.5}, 4, Classes(np.array([0, 0, 0]), np.array([3]))).ncp
    0.625
    """
    rows = len(classes.ids)
    gone = before - rows
    totals = {name: total + gone for name, total in lost.items()}
    return InformationLoss(
        ncp=round(sum(totals.values()) / len(totals) / before, 12),
        columns={name: round(total / before, 12) for name, total in totals.items()},
        discernibility=int((classes.sizes**2).sum()) + gone * before,
        average_class=rows / len(classes.sizes) / int(classes.sizes.min()),
        suppressed=gone,
    )


def penalties(released: Column, original: Column, tree: Tree | None = None) -> np.ndarray:
    """Return the share of the column's width that each released value covers.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.coding.columns import encode
    >>> shown, ages = encode(pa.table({"age": ["20-29", "40"]}), "age"), encode(pa.table({"age": [21, 28, 40]}), "age")
    >>> penalties(shown, ages).round(3).tolist()
    [0.368, 0.0]
    """
    cover = read_cover(released, original, None if tree is None else labels_of(tree, original))
    counts = cover.counts()
    if not counts.all():
        row = int(np.flatnonzero(counts[released.codes] == 0)[0])
        words = "Give the table from which the release was made, and the hierarchies that were used."
        raise ValueError(f"original: column {released.name[:60]!r} has no value that row {row} may have had. {words}")
    if tree is not None:
        return _in_tree(released, tree)
    places = original.positions[: original.null] if original.ordered else np.empty(0)
    if len(places) > 1 and np.isfinite(places[[0, -1]]).all():
        return _on_a_line(cover, places)
    return np.where(counts == 1, 0, counts / cover.many)


def labels_of(tree: Tree, column: Column) -> dict[str, Sequence[int]]:
    """Return the codes of the values below each label; where a label is used twice, or is a value too, of them all."""
    codes = {text: code for code, text in enumerate(texts_of(column.values)) if text is not None}
    below: dict[str, set[int]] = {}
    for labels, values in zip(tree.labels[1:], tree.codes[1:], strict=True):
        for value, label in enumerate(values.tolist()):
            name = labels[label]
            if name is not None:
                below.setdefault(name, {codes[name]} if name in codes else set()).add(value)
    return {label: sorted(values) for label, values in below.items()}


def _in_tree(released: Column, tree: Tree) -> np.ndarray:
    found: dict[str | None, float] = {}
    for labels, values, losses in zip(tree.labels, tree.codes, tree.losses, strict=True):
        for label, loss in zip(values.tolist(), losses.tolist(), strict=True):
            name = labels[label]
            found[name] = max(found.get(name, 0.0), loss)
    return np.array([found.get(label, 0.0) for label in texts_of(released.values)])


def _on_a_line(cover: Cover, places: np.ndarray) -> np.ndarray:
    last = len(places) - 1
    places = places / np.abs(places[[0, -1]]).max()  # of reals near the largest there is, the width would be none
    width = places[np.clip(cover.high - 1, 0, last)] - places[np.clip(cover.low, 0, last)]
    mixed = (cover.high > len(places)) & (cover.high - cover.low > 1)  # null among others: it may be anything
    return np.where(mixed, 1.0, width / (places[-1] - places[0]))
