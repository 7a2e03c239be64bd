"""Recode a table by Mondrian (local recoding) or by full-domain generalisation; the released values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.anonymity.encoding.encoded_table import EncodedColumn, EncodedTable, cast_whole_floats
from discreet.anonymity.encoding.equivalence_classes import (
    ContingencyTable,
    EquivalenceClasses,
    group_equal_rows,
    weighted_contingency_table,
)
from discreet.anonymity.generalisation.dimensions import Dimension, HierarchicalScale, NominalScale, build_dimension
from discreet.anonymity.generalisation.full_domain import find_best_levels
from discreet.anonymity.generalisation.mondrian import partition
from discreet.anonymity.generalisation.privacy_criteria import PrivacyCriteria, satisfies_criteria
from discreet.anonymity.hierarchies.hierarchy import ANY_VALUE
from discreet.anonymity.hierarchies.label_coverage import format_values
from discreet.anonymity.hierarchies.label_syntax import format_range, format_set_member
from discreet.anonymity.hierarchies.taxonomy_tree import TaxonomyTree, build_tree, check_hierarchies
from discreet.anonymity.metrics.attribute_risk import measure_attribute_risk
from discreet.anonymity.metrics.linkage_risk import LinkageRisk
from discreet.anonymity.metrics.risk import describe_open_attacks
from discreet.arguments import ArgumentError, ArgumentTypeError, require

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


TreesByColumn = Mapping[str, TaxonomyTree]


@dataclass(frozen=True, eq=False)
class Recoding:
    """The generalised columns, the rows that are kept (None if all are), and their equivalence classes.

    `loss_by_column` is the sum over these rows of each column's certainty penalty, as in `InformationLoss`. Full-domain
    generalisation also has `levels`, the level of every column, and `optimality`, how they were found.
    """

    recoded_columns: Mapping[str, pa.Array]
    kept_rows: np.ndarray | None
    classes: EquivalenceClasses
    loss_by_column: Mapping[str, float]
    levels: Mapping[str, int] | None = None
    optimality: str = ""


def build_trees(encoded: EncodedTable, hierarchies: Mapping[str, Any] | None) -> dict[str, TaxonomyTree]:
    """Apply each hierarchy to its column."""
    columns = {column.name: column for column in (*encoded.quasi, *encoded.sensitive)}
    return {name: build_tree(columns[name], each) for name, each in check_hierarchies(hierarchies, encoded).items()}


@dataclass(frozen=True, eq=False)
class _DistinctRows:
    """The rows of a table that differ in a quasi-identifier or in a sensitive column that has a criterion."""

    classes: EquivalenceClasses
    first_rows: np.ndarray
    criteria: PrivacyCriteria


def _distinct_rows(encoded: EncodedTable, criteria: PrivacyCriteria) -> _DistinctRows:
    classes = group_equal_rows(
        [*(column.codes for column in encoded.quasi), *(criterion.codes for criterion in criteria.sensitive_criteria)]
    )
    first_rows = classes.first_rows
    restricted = tuple(replace(check, codes=check.codes[first_rows]) for check in criteria.sensitive_criteria)
    return _DistinctRows(classes, first_rows, replace(criteria, sensitive_criteria=restricted))


def recode_by_mondrian(encoded: EncodedTable, criteria: PrivacyCriteria, trees: TreesByColumn) -> Recoding:
    """Partition the table into classes, each with its own ranges, sets and labels."""
    distinct = _distinct_rows(encoded, criteria)
    single_class = EquivalenceClasses(np.zeros_like(distinct.first_rows), np.array([encoded.source.row_count]))
    require(
        satisfies_criteria(
            distinct.criteria, single_class, np.arange(len(distinct.first_rows)), distinct.classes.sizes
        ).all(),
        "the whole table as a single class does not reach it. Use a smaller l, or a larger c.",
        "l",
    )
    dimensions = [build_dimension(column, trees.get(column.name)) for column in encoded.quasi]
    dimensions = [replace(dimension, codes=dimension.codes[distinct.first_rows]) for dimension in dimensions]
    distinct_classes = partition(dimensions, distinct.criteria, distinct.classes.sizes)
    classes = EquivalenceClasses(distinct_classes.ids[distinct.classes.ids], distinct_classes.sizes)
    generalised = {
        column.name: generalise_column(column, dimension, distinct_classes)
        for column, dimension in zip(encoded.quasi, dimensions, strict=True)
    }
    recoded_columns = {
        name: expand_to_rows(values.texts, classes.ids) for name, values in generalised.items() if values is not None
    }
    loss_by_column = {
        name: 0.0 if values is None else float(distinct_classes.sizes @ values.losses)
        for name, values in generalised.items()
    }
    return Recoding(
        {**_normalised_columns(encoded, np.arange(encoded.source.row_count)), **recoded_columns},
        None,
        classes,
        loss_by_column,
    )


def recode_by_full_domain(
    encoded: EncodedTable, criteria: PrivacyCriteria, trees: TreesByColumn, suppress: Any
) -> Recoding:
    """Choose one level for each column, and suppress the rows of classes that violate a criterion."""
    distinct, max_suppressed = (
        _distinct_rows(encoded, criteria),
        max_suppressed_rows(suppress, encoded.source.row_count),
    )
    column_trees = [trees.get(column.name) or build_tree(column) for column in encoded.quasi]
    codes = [column.codes[distinct.first_rows] for column in encoded.quasi]
    best = find_best_levels(codes, column_trees, distinct.criteria, distinct.classes.sizes, max_suppressed)
    if best is None:
        allowed = f"at most {max_suppressed} of {encoded.source.row_count} rows suppressed"
        hint = "Use a smaller k or l, a larger t, or a larger suppress."
        raise ArgumentError("suppress", f"no combination of levels satisfies the criteria with {allowed}. {hint}")
    remaining_rows = np.flatnonzero(best.is_kept[distinct.classes.ids])
    columns = list(zip(encoded.quasi, column_trees, best.levels, strict=True))
    level_codes = [tree.codes[level][column.codes[remaining_rows]] for column, tree, level in columns]
    recoded_columns = {
        column.name: expand_to_rows(pa.array(tree.labels[level], pa.string()), codes)
        for (column, tree, level), codes in zip(columns, level_codes, strict=True)
        if level
    }
    levels = {column.name: level for column, _, level in columns}
    loss_by_column = {
        column.name: float(tree.losses[level][column.codes[remaining_rows]].sum()) for column, tree, level in columns
    }
    kept_rows = None if len(remaining_rows) == encoded.source.row_count else remaining_rows
    return Recoding(
        {**_normalised_columns(encoded, remaining_rows), **recoded_columns},
        kept_rows,
        group_equal_rows(level_codes),
        loss_by_column,
        levels,
        best.optimality,
    )


def _normalised_columns(encoded: EncodedTable, rows: np.ndarray) -> dict[str, pa.Array]:
    """Return columns in which equal values have one representation: NaN and null, -0.0 and 0.0, 1 and 1.0 are equal."""
    normalised = {}
    for column in encoded.quasi:
        if column.name in encoded.source.object_columns:
            normalised[column.name] = column.values.take(pa.array(column.codes[rows]))
        elif pa.types.is_floating(column.values.type):
            raw = encoded.source.column(column.name)
            if _has_mixed_representations(raw):
                normalised_values = column.values.take(pa.array(column.codes[rows]))
                normalised[column.name] = (
                    normalised_values.cast(raw.type) if pa.types.is_floating(raw.type) else normalised_values
                )
    return normalised


def _has_mixed_representations(reals: pa.ChunkedArray) -> bool:
    numbers = reals.drop_null().to_numpy()
    signs = np.signbit(numbers[numbers == 0])
    return bool((reals.null_count and np.isnan(numbers).any()) or (signs.any() and not signs.all()))


def max_suppressed_rows(suppress: Any, rows: int) -> int:
    """Return how many rows may be suppressed, given the share of them.

    >>> max_suppressed_rows(0.29, 100), max_suppressed_rows(Fraction(1, 3), 10)
    (29, 3)
    """
    if isinstance(suppress, bool) or not isinstance(suppress, Real) or not math.isfinite(suppress):
        raise ArgumentTypeError(
            "suppress", f"must be a share of the rows, for example 0.02, not {str(suppress)[:60]!r}."
        )
    share = Fraction(suppress) if isinstance(suppress, Rational) else Fraction(str(float(suppress)))
    require(0 <= share < 1, f"must be at least 0 and below 1 (0.02 is 2 %), not {suppress}.", "suppress")
    return math.floor(share * rows)


def describe_attacks_on_recoding(encoded: EncodedTable, recoding: Recoding, trees: TreesByColumn) -> str:
    """Return a sentence that names the attacks that the release does not protect against."""
    sizes = np.bincount(recoding.classes.sizes)
    prosecutor = LinkageRisk({int(size): int(size * sizes[size]) for size in np.flatnonzero(sizes)})
    attribute_risks = [
        measure_attribute_risk(
            column if recoding.kept_rows is None else replace(column, codes=column.codes[recoding.kept_rows]),
            recoding.classes,
            list(trees[column.name].codes[1:]) if column.name in trees else None,
        )
        for column in encoded.sensitive
    ]
    return describe_open_attacks(prosecutor, None, attribute_risks, encoded.other_columns)
