"""Information loss of a release: certainty penalty, discernibility, suppression."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn
from discreet.anonymity.encoding.equivalence_classes import EquivalenceClasses
from discreet.anonymity.hierarchies.label_coverage import LabelCoverage, format_values, parse_coverage
from discreet.anonymity.hierarchies.taxonomy_tree import TaxonomyTree


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
    >>> original_rows, after = pa.table({"age": [21, 29, 37]}), pa.table({"age": ["21-29", "21-29"]})
    >>> loss = measure(after, "age", original=original_rows).loss
    >>> round(loss.ncp, 3), loss.suppressed, loss.discernibility
    (0.667, 1, 7)
    """

    ncp: float
    columns: Mapping[str, float]
    discernibility: int
    average_class: float
    suppressed: int


def information_loss(
    released: Sequence[EncodedColumn],
    original: Sequence[EncodedColumn],
    trees: Mapping[str, TaxonomyTree],
    classes: EquivalenceClasses,
) -> InformationLoss:
    """Compare the quasi-identifying columns of a release with the original ones."""
    rows, original_rows = len(classes.ids), len(original[0].codes)
    if rows > original_rows:
        hint = "Give the table from which the release was made."
        raise ValueError(f"original: it has {original_rows} rows, fewer than the {rows} of the release. {hint}")
    loss_by_column = {
        released_column.name: float(
            certainty_penalties(released_column, original_column, trees.get(released_column.name))[
                released_column.codes
            ].sum()
        )
        for released_column, original_column in zip(released, original, strict=True)
    }
    return summarise_loss(loss_by_column, original_rows, classes)


def summarise_loss(
    loss_by_column: Mapping[str, float], original_rows: int, classes: EquivalenceClasses
) -> InformationLoss:
    """Add what all released rows lost in each column to the rows that are missing of those that were there before.

    >>> summarise_loss({"age": 1.5}, 4, EquivalenceClasses(np.array([0, 0, 0]), np.array([3]))).ncp
    0.625
    """
    rows = len(classes.ids)
    suppressed = original_rows - rows
    totals = {name: total + suppressed for name, total in loss_by_column.items()}
    return InformationLoss(
        ncp=round(sum(totals.values()) / len(totals) / original_rows, 12),
        columns={name: round(total / original_rows, 12) for name, total in totals.items()},
        discernibility=int((classes.sizes**2).sum()) + suppressed * original_rows,
        average_class=rows / len(classes.sizes) / int(classes.sizes.min()),
        suppressed=suppressed,
    )


def certainty_penalties(
    released: EncodedColumn, original: EncodedColumn, tree: TaxonomyTree | None = None
) -> np.ndarray:
    """Return the share of the column's width that each released value covers.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.encoding.encoded_table import encode
    >>> shown, ages = encode(pa.table({"age": ["20-29", "40"]}), "age"), encode(pa.table({"age": [21, 28, 40]}), "age")
    >>> certainty_penalties(shown, ages).round(3).tolist()
    [0.368, 0.0]
    """
    coverage = parse_coverage(released, original, None if tree is None else codes_by_label(tree, original))
    counts = coverage.covered_counts()
    if not counts.all():
        row = int(np.flatnonzero(counts[released.codes] == 0)[0])
        hint = "Give the table from which the release was made, and the hierarchies that were used."
        raise ValueError(f"original: column {released.name[:60]!r} has no value that row {row} may have had. {hint}")
    if tree is not None:
        return _tree_penalties(released, tree)
    positions = original.positions[: original.null_code] if original.is_ordered else np.empty(0)
    if len(positions) > 1 and np.isfinite(positions[[0, -1]]).all():
        return _range_penalties(coverage, positions)
    return np.where(counts == 1, 0, counts / coverage.original_count)


def codes_by_label(tree: TaxonomyTree, column: EncodedColumn) -> dict[str, Sequence[int]]:
    """Return the codes of the values below each label; where a label is used twice, or is a value too, of them all."""
    codes = {text: code for code, text in enumerate(format_values(column.values)) if text is not None}
    codes_below: dict[str, set[int]] = {}
    for labels, values in zip(tree.labels[1:], tree.codes[1:], strict=True):
        for value, label in enumerate(values.tolist()):
            name = labels[label]
            if name is not None:
                codes_below.setdefault(name, {codes[name]} if name in codes else set()).add(value)
    return {label: sorted(values) for label, values in codes_below.items()}


def _tree_penalties(released: EncodedColumn, tree: TaxonomyTree) -> np.ndarray:
    loss_by_label: dict[str | None, float] = {}
    for labels, values, losses in zip(tree.labels, tree.codes, tree.losses, strict=True):
        for label, loss in zip(values.tolist(), losses.tolist(), strict=True):
            name = labels[label]
            loss_by_label[name] = max(loss_by_label.get(name, 0.0), loss)
    return np.array([loss_by_label.get(label, 0.0) for label in format_values(released.values)])


def _range_penalties(coverage: LabelCoverage, positions: np.ndarray) -> np.ndarray:
    last = len(positions) - 1
    positions = (
        positions / np.abs(positions[[0, -1]]).max()
    )  # of reals near the largest there is, the width would be none
    width = positions[np.clip(coverage.high - 1, 0, last)] - positions[np.clip(coverage.low, 0, last)]
    is_mixed_with_null = (coverage.high > len(positions)) & (
        coverage.high - coverage.low > 1
    )  # null among others: it may be anything
    return np.where(is_mixed_with_null, 1.0, width / (positions[-1] - positions[0]))
