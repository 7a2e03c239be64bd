"""measure: disclosure risk and information loss of a table, and the share of a domain that released values cover."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn, encode_columns, encode_table
from discreet.anonymity.encoding.equivalence_classes import EquivalenceClasses, group_equal_rows
from discreet.anonymity.encoding.table_adapters import adapt_table, resolve_column_names
from discreet.anonymity.hierarchies.hierarchy import Hierarchy
from discreet.anonymity.hierarchies.label_coverage import LabelCoverage, format_values, parse_coverage
from discreet.anonymity.hierarchies.taxonomy_tree import TaxonomyTree, build_tree, check_hierarchies
from discreet.anonymity.metrics.attribute_risk import AttributeRisk, measure_attribute_risk
from discreet.anonymity.metrics.linkage_risk import LinkageRisk, link_to_population
from discreet.anonymity.metrics.risk import InformationLoss, Risk
from discreet.arguments import ArgumentError


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


Hierarchies = Mapping[str, Hierarchy]


def measure(  # noqa: PLR0913 - the last three are keyword-only
    table: Any,
    quasi: Any,
    sensitive: Any = None,
    *,
    original: Any = None,
    population: Any = None,
    hierarchies: Hierarchies | None = None,
) -> Risk:
    """Measure the disclosure risk of a table against an attacker who knows people's `quasi` columns.

    If `original`, the table that a release was made from, is given, the information loss is measured too. `population`
    is an attacker's list of people with the same quasi-identifying columns; they match a row by value, range or label.

    >>> import pyarrow as pa
    >>> risk = measure(pa.table({"age": ["3*", "3*", "4*", "4*"], "ill": ["flu", "flu", "flu", "no"]}), "age", "ill")
    >>> risk.k, risk.l, risk.attribute_risk("ill").exposed_rows.tolist()
    (2, 1, [0, 1])
    >>> print(risk)
    4 rows in 2 classes of 2 to 2 rows by age: 2-anonymous, 0 unique rows
    ill: l = 1, entropy l = 1, t = 0.25 (equal distance); homogeneous: 2 rows in 1 class
    prosecutor risk: at most 50 %, mean 50 %, above 20 % for 100 % of rows
    journalist and marketer risk: same as prosecutor risk (no population was given)
    Not protected against: homogeneity attack (2 rows in 1 class with a single value of 'ill'); intersection attack \
(several releases about the same people); linkage by anything else an attacker knows.
    """
    encoded = encode_table(table, quasi, sensitive)
    checked_hierarchies = check_hierarchies(hierarchies, encoded)
    classes = group_equal_rows([column.codes for column in encoded.quasi])
    sizes = np.bincount(classes.sizes)
    histogram = {int(size): int(sizes[size]) for size in np.flatnonzero(sizes)}
    prosecutor = LinkageRisk({size: size * count for size, count in histogram.items()})
    population_size, journalist = _population_linkage(encoded.quasi, classes, population, checked_hierarchies)
    return Risk(
        rows=encoded.source.row_count,
        classes=len(classes.sizes),
        k=int(classes.sizes.min()),
        unique=prosecutor.uniquely_linked_rows,
        sizes=histogram,
        quasi=tuple(column.name for column in encoded.quasi),
        other_columns=encoded.other_columns,
        sensitive=tuple(_attribute_risk(column, classes, checked_hierarchies) for column in encoded.sensitive),
        prosecutor=prosecutor,
        journalist=journalist or prosecutor,
        population=population_size,
        loss=_loss_against_original(encoded.quasi, classes, original, checked_hierarchies),
        equivalence_classes=classes,
        quasi_columns=encoded.quasi,
    )


def _attribute_risk(column: EncodedColumn, classes: EquivalenceClasses, hierarchies: Hierarchies) -> AttributeRisk:
    if column.name not in hierarchies:
        return measure_attribute_risk(column, classes)
    return measure_attribute_risk(column, classes, list(build_tree(column, hierarchies[column.name]).codes[1:]))


def _encode_other_table(
    columns: tuple[EncodedColumn, ...], table: Any, argument: str, hierarchies: Hierarchies
) -> tuple[tuple[EncodedColumn, ...], dict[str, TaxonomyTree]]:
    """Encode the same columns of another table, and apply the hierarchies to them."""
    source = adapt_table(table, argument)
    encoded = encode_columns(
        source, resolve_column_names([column.name for column in columns], argument, source), argument
    )
    return encoded, {
        other_column.name: build_tree(other_column, hierarchies[other_column.name])
        for other_column in encoded
        if other_column.name in hierarchies
    }


def _population_linkage(
    columns: tuple[EncodedColumn, ...], classes: EquivalenceClasses, population: Any, hierarchies: Hierarchies
) -> tuple[int | None, LinkageRisk | None]:
    if population is None:
        return None, None
    population_columns, trees = _encode_other_table(columns, population, "population", hierarchies)
    coverages = [
        parse_coverage(
            released_column,
            population_column,
            codes_by_label(trees[released_column.name], population_column) if released_column.name in trees else None,
        )
        for released_column, population_column in zip(columns, population_columns, strict=True)
    ]
    codes = [column.codes for column in columns]
    return len(population_columns[0].codes), link_to_population(
        classes, codes, coverages, [column.codes for column in population_columns]
    )


def _loss_against_original(
    columns: tuple[EncodedColumn, ...], classes: EquivalenceClasses, original: Any, hierarchies: Hierarchies
) -> InformationLoss | None:
    if original is None:
        return None
    original_columns, trees = _encode_other_table(columns, original, "original", hierarchies)
    return information_loss(columns, original_columns, trees, classes)
