"""A hierarchy applied to a column: the label of every value on every level, and its information loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn, EncodedTable, cast_whole_floats
from discreet.anonymity.hierarchies.hierarchy import ANY_VALUE, Hierarchy
from discreet.anonymity.hierarchies.label_coverage import format_values
from discreet.arguments import ArgumentError, ArgumentTypeError, require

LabelPath = tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class TaxonomyTree:
    """The labels of a column by level: level 0 has its values, the last level a single label for all of them.

    `codes[level][value]` is the index in `labels[level]` of the value's label. `losses[level][value]` is the share of
    all leaves under that label, or 0 if it has only one leaf.
    """

    labels: tuple[LabelPath, ...]
    codes: np.ndarray
    losses: np.ndarray

    @property
    def height(self) -> int:
        """The index of the last level."""
        return len(self.labels) - 1


def check_hierarchies(hierarchies: Mapping[str, Any] | None, encoded: EncodedTable) -> Mapping[str, Hierarchy]:
    """Return the hierarchies, each of a column that is used, or raise an error about them."""
    used = [column.name for column in (*encoded.quasi, *encoded.sensitive)]
    for name, hierarchy in (hierarchies or {}).items():
        hint = f"These columns are: {', '.join(used)[:200]}."
        problem = f"{str(name)[:60]!r} is neither quasi-identifying nor sensitive. {hint}"
        require(name in used, problem, "hierarchies")
        if not isinstance(hierarchy, Hierarchy):
            hint = "Create one with read_hierarchy, intervals or prefixes."
            problem = f"{name[:60]!r} must have a Hierarchy, not {type(hierarchy).__name__}. {hint}"
            raise ArgumentTypeError("hierarchies", problem)
    return hierarchies or {}


def build_tree(column: EncodedColumn, hierarchy: Hierarchy | None = None) -> TaxonomyTree:
    """Apply a hierarchy to a column; without one, level 1 is *. Null stays null below the last level.

    Losses are shares of the leaves that the hierarchy lists, or of the column's values if it is a rule or missing.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.encoding.encoded_table import encode_column
    >>> from discreet.anonymity.hierarchies.hierarchy import intervals
    >>> tree = build_tree(encode_column(pa.table({"age": [28, 31, 37]}), "age"), intervals(20, 39, 10))
    >>> tree.labels[1], tree.codes[1].tolist(), tree.losses[1].round(2).tolist()
    (('20-29', '30-39'), [0, 1, 1], [0.0, 0.67, 0.67])
    """
    paths = [] if hierarchy is None else _label_paths(column, hierarchy)
    leaves = list(paths)
    if hierarchy is not None and hierarchy.leaves is not None:
        leaves = [path for leaf in hierarchy.leaves if (path := hierarchy.path(leaf)) is not None]
    if len({path[-1] for path in leaves}) != 1:  # the last level must be a single label
        paths = [(*path, ANY_VALUE) for path in paths] or [(ANY_VALUE,)] * _count_non_null(column)
        leaves = [(*path, ANY_VALUE) for path in leaves] or paths
    if column.null_code is not None:
        null_path: list[LabelPath] = [(*[None] * (len(paths[0]) - 1), paths[0][-1])]
        paths, leaves = paths + null_path, leaves + null_path
    levels = [
        _index_level(column_labels, leaf_labels)
        for column_labels, leaf_labels in zip(zip(*paths, strict=True), zip(*leaves, strict=True), strict=True)
    ]
    return TaxonomyTree(
        (tuple(format_values(column.values)), *(labels for labels, _, _ in levels)),
        np.stack([np.arange(len(paths), dtype=np.int32), *(codes for _, codes, _ in levels)]),
        np.stack([np.zeros(len(paths)), *(losses for _, _, losses in levels)]),
    )


def _count_non_null(column: EncodedColumn) -> int:
    return len(column.values) - (column.null_code is not None)


def _label_paths(column: EncodedColumn, hierarchy: Hierarchy) -> list[LabelPath]:
    """Return the labels above each value except null."""
    values = cast_whole_floats(column.values).to_pylist()[: _count_non_null(column)]
    paths = [hierarchy.path(value) for value in values]
    missing = [code for code, path in enumerate(paths) if path is None]
    if missing:
        row = int(np.flatnonzero(np.isin(column.codes, missing))[0])
        missing_values = (
            f"{len(missing)} of the {len(values)} distinct values of {column.name[:60]!r}, the first in row {row}"
        )
        raise ArgumentError("hierarchies", f"{hierarchy.name} does not contain {missing_values}. Add them.")
    return [path for path in paths if path is not None]


def _index_level(
    value_labels: Sequence[str | None], leaf_labels: Sequence[str | None]
) -> tuple[LabelPath, np.ndarray, np.ndarray]:
    """Return the labels of a level, the index of each value's label, and the share of the leaves under it."""
    labels = tuple(dict.fromkeys(value_labels))
    code_of_label = {label: code for code, label in enumerate(labels)}
    counts = np.zeros(len(labels))
    for leaf in leaf_labels:
        if leaf in code_of_label:
            counts[code_of_label[leaf]] += 1
    codes = np.array([code_of_label[label] for label in value_labels], np.int32)
    return labels, codes, np.where(counts == 1, 0, counts / len(leaf_labels))[codes]
