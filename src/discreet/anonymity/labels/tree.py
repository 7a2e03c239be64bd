"""A hierarchy applied to a column: the label of every value on every level, and what it loses."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.anonymity.coding.columns import Column
from discreet.anonymity.labels.hierarchy import ANYTHING, Hierarchy
from discreet.anonymity.labels.reading import texts_of
from discreet.anonymity.labels.wholes import as_wholes

Path = tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class Tree:
    """The labels of a column, level by level: level 0 are its values, the last is one label for all.

    `codes[level][value]` tells which of `labels[level]` a value has there. `losses[level][value]` is the share of all
    leaves that lie under that label, and 0 where it is the only one.
    """

    labels: tuple[Path, ...]
    codes: np.ndarray
    losses: np.ndarray

    @property
    def height(self) -> int:
        """The number of the last level."""
        return len(self.labels) - 1


def tree_of(column: Column, hierarchy: Hierarchy | None = None) -> Tree:
    """Find the labels of a column's values; without a hierarchy each becomes * at once. Null is null up to the last.

    The leaves that losses count are all that the hierarchy lists; those of the column if it is a rule or there is none.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.coding.columns import encode
    >>> from discreet.anonymity.labels.hierarchy import intervals
    >>> tree = tree_of(encode(pa.table({"age": [28, 31, 37]}), "age"), intervals(20, 39, 10))
    >>> tree.labels[1], tree.codes[1].tolist(), tree.losses[1].round(2).tolist()
    (('20-29', '30-39'), [0, 1, 1], [0.0, 0.67, 0.67])
    """
    paths = [] if hierarchy is None else _paths(column, hierarchy)
    leaves = list(paths)
    if hierarchy is not None and hierarchy.leaves is not None:
        leaves = [path for leaf in hierarchy.leaves if (path := hierarchy.path(leaf)) is not None]
    if len({path[-1] for path in leaves}) != 1:  # of different labels, or none at all
        paths = [(*path, ANYTHING) for path in paths] or [(ANYTHING,)] * _filled(column)
        leaves = [(*path, ANYTHING) for path in leaves] or paths
    if column.null is not None:
        above: list[Path] = [(*[None] * (len(paths[0]) - 1), paths[0][-1])]
        paths, leaves = paths + above, leaves + above
    levels = [
        _level(mine, every) for mine, every in zip(zip(*paths, strict=True), zip(*leaves, strict=True), strict=True)
    ]
    return Tree(
        (tuple(texts_of(column.values)), *(labels for labels, _, _ in levels)),
        np.stack([np.arange(len(paths), dtype=np.int32), *(codes for _, codes, _ in levels)]),
        np.stack([np.zeros(len(paths)), *(losses for _, _, losses in levels)]),
    )


def _filled(column: Column) -> int:
    return len(column.values) - (column.null is not None)


def _paths(column: Column, hierarchy: Hierarchy) -> list[Path]:
    """Return the labels above each value except null."""
    values = as_wholes(column.values).to_pylist()[: _filled(column)]
    paths = [hierarchy.path(value) for value in values]
    lacking = [code for code, path in enumerate(paths) if path is None]
    if lacking:
        row = int(np.flatnonzero(np.isin(column.codes, lacking))[0])
        what = f"{len(lacking)} of the {len(values)} different values of {column.name[:60]!r}, the first in row {row}"
        raise ValueError(f"hierarchies: {hierarchy.name} has no place for {what}. Add them to it.")
    return [path for path in paths if path is not None]


def _level(mine: Sequence[str | None], leaves: Sequence[str | None]) -> tuple[Path, np.ndarray, np.ndarray]:
    """Return the labels of a level, which of them each value has, and the share of the leaves under it."""
    labels = tuple(dict.fromkeys(mine))
    place = {label: code for code, label in enumerate(labels)}
    counts = np.zeros(len(labels))
    for leaf in leaves:
        if leaf in place:
            counts[place[leaf]] += 1
    codes = np.array([place[label] for label in mine], np.int32)
    return labels, codes, np.where(counts == 1, 0, counts / len(leaves))[codes]
