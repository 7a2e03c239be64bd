"""Information loss of a release: certainty penalty, discernibility, suppression."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn
from discreet.anonymity.encoding.equivalence_classes import EquivalenceClasses
from discreet.anonymity.hierarchies.label_coverage import LabelCoverage, format_values, parse_coverage
from discreet.anonymity.hierarchies.taxonomy_tree import TaxonomyTree
from discreet.arguments import ArgumentError


@dataclass(frozen=True)
class InformationLoss:
    """Information lost by generalisation and suppression.

    ncp               normalised certainty penalty: the share of the column's domain that a released value covers,
                      averaged over rows and columns; 0 for an original value, 1 for a suppressed row
    columns           the same for each column
    discernibility    the sum of the squared class sizes, plus the size of the table for each suppressed row
    average_class     the mean class size, as a multiple of the smallest
    suppressed        the number of suppressed rows

    The share covered is (max - min)/(range of the column) for numbers and dates, the share of the hierarchy's leaves
    if there is a hierarchy, and otherwise the share of the column's distinct values.

    >>> import pyarrow as pa
    >>> from discreet.anonymity import measure
    >>> original, release = pa.table({"age": [21, 29, 37]}), pa.table({"age": ["21-29", "21-29"]})
    >>> loss = measure(release, "age", original=original).loss
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
    """Return the information loss of a release, from its quasi-identifying columns and the original ones."""
    rows, original_rows = len(classes.ids), len(original[0].codes)
    if rows > original_rows:
        hint = "Pass the table that the release was made from."
        raise ArgumentError("original", f"it has fewer rows ({original_rows}) than the release ({rows}). {hint}")
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
    """Return the information loss, from the summed penalties of the released rows and the number of original rows.

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
    """Return the share of the column's domain that each released value covers.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.encoding.encoded_table import encode_column
    >>> released = encode_column(pa.table({"age": ["20-29", "40"]}), "age")
    >>> original = encode_column(pa.table({"age": [21, 28, 40]}), "age")
    >>> certainty_penalties(released, original).round(3).tolist()
    [0.368, 0.0]
    """
    coverage = parse_coverage(released, original, None if tree is None else codes_by_label(tree, original))
    counts = coverage.covered_counts()
    if not counts.all():
        row = int(np.flatnonzero(counts[released.codes] == 0)[0])
        reason = f"column {released.name[:60]!r} has no value that row {row} of the release can stand for"
        hint = "Pass the table that the release was made from, and the hierarchies that were used."
        raise ArgumentError("original", f"{reason}. {hint}")
    if tree is not None:
        return _tree_penalties(released, tree)
    positions = original.positions[: original.null_code] if original.is_ordered else np.empty(0)
    if len(positions) > 1 and np.isfinite(positions[[0, -1]]).all():
        return _range_penalties(coverage, positions)
    return np.where(counts == 1, 0, counts / coverage.original_count)


def codes_by_label(tree: TaxonomyTree, column: EncodedColumn) -> dict[str, Sequence[int]]:
    """Return the codes of all values below each label, on any level; a label that is also a value includes itself."""
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
    positions = positions / np.abs(positions[[0, -1]]).max()  # the difference of two very large floats would overflow
    width = positions[np.clip(coverage.high - 1, 0, last)] - positions[np.clip(coverage.low, 0, last)]
    is_mixed_with_null = (coverage.high > len(positions)) & (coverage.high - coverage.low > 1)
    return np.where(is_mixed_with_null, 1.0, width / (positions[-1] - positions[0]))
