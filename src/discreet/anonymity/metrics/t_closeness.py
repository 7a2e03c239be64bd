"""t-closeness: how far the sensitive values of each class are from those of the whole table.

The distance is the earth mover's (Li, Li and Venkatasubramanian 2007): the least work to turn one distribution into
the other, where moving everything from one end to the other is 1. How far apart two values are depends on the column:

    ordered         numbers and dates: the share of the steps between them when all values are sorted
    equal           everything else: 1
    hierarchical    with a hierarchy: the height of their lowest common ancestor, as a share of the tree's
"""

from collections.abc import Sequence

import numpy as np

from discreet.anonymity.encoding.equivalence_classes import ContingencyTable


def equal_distances(cells: ContingencyTable) -> np.ndarray:
    """Return the distance of each class from the table if all values are 1 apart.

    >>> from discreet.anonymity.encoding.equivalence_classes import cells_of
    >>> from discreet.anonymity.encoding.equivalence_classes import classes_of
    >>> equal_distances(cells_of(classes_of([np.array([0, 0, 1, 1])]), np.array([0, 0, 0, 1]))).tolist()
    [0.25, 0.25]
    """
    # What is too much here is what is missing elsewhere; and only values that occur can be too many.
    surplus = np.maximum(_class_shares(cells) - cells.totals[cells.values] / cells.row_count, 0)
    return np.asarray(np.add.reduceat(surplus, cells.starts))


def ordered_distances(cells: ContingencyTable, null_code: int | None = None) -> np.ndarray:
    """Return the distance of each class from the table if the values are equal steps apart.

    Null (the last value) has no place among them. It is 1 apart from everything, and the others move in proportion:
    perhaps not the least work, so the distance is never understated.

    >>> from discreet.anonymity.encoding.equivalence_classes import cells_of
    >>> from discreet.anonymity.encoding.equivalence_classes import classes_of
    >>> ordered_distances(cells_of(classes_of([np.array([0, 1, 1])]), np.array([0, 1, 2]))).round(4).tolist()
    [0.5, 0.25]
    """
    if null_code is None:
        return _ordered_emd(cells)
    is_null = cells.values == null_code
    null_counts = np.zeros(len(cells.sizes), np.int64)
    null_counts[cells.classes[is_null]] = cells.counts[is_null]
    class_null_share, table_null_share = null_counts / cells.sizes, cells.totals[null_code] / cells.row_count
    distance: np.ndarray = np.abs(class_null_share - table_null_share)
    has_values = null_counts < cells.sizes
    if has_values.any():
        common_mass = np.minimum(1 - class_null_share[has_values], 1 - table_null_share)
        distance[has_values] += common_mass * _ordered_emd(_without_nulls(cells, ~is_null, null_counts))
    return distance


def hierarchical_distances(cells: ContingencyTable, levels: Sequence[np.ndarray]) -> np.ndarray:
    """Return the distance of each class from the table if the values are the leaves of a tree.

    Each level, from the one above the leaves up to the root, gives every value's node there.

    >>> from discreet.anonymity.encoding.equivalence_classes import cells_of
    >>> from discreet.anonymity.encoding.equivalence_classes import classes_of
    >>> cells = cells_of(classes_of([np.array([0, 1, 1])]), np.array([0, 1, 2]))
    >>> hierarchical_distances(cells, [np.array([0, 0, 1]), np.array([0, 0, 0])]).round(4).tolist()
    [0.5, 0.25]
    """
    distance = np.zeros(len(cells.sizes))
    nodes = np.arange(len(cells.totals))
    for height, parent_nodes in enumerate(levels, 1):
        # At each node, what some of its children have too much moves to those that have too little. A node that a
        # class does not reach has children of the second kind only.
        lower, upper = _node_surplus(cells, nodes), _node_surplus(cells, parent_nodes)
        parent = np.zeros(int(nodes.max()) + 1, np.int64)
        parent[nodes] = parent_nodes
        width = int(parent_nodes.max()) + 1
        parent_index = np.searchsorted(upper[0] * width + upper[1], lower[0] * width + parent[lower[1]])
        child_surplus = np.bincount(parent_index, np.maximum(lower[2], 0))
        moved_mass = np.maximum(np.minimum(child_surplus, child_surplus - upper[2]), 0)
        distance += np.bincount(upper[0], height / len(levels) * moved_mass)
        nodes = parent_nodes
    return distance


def _class_shares(cells: ContingencyTable) -> np.ndarray:
    return np.asarray(cells.counts / cells.sizes[cells.classes])


def _node_surplus(cells: ContingencyTable, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return classes and the nodes that they reach, sorted, and by how much the class has more there than the table."""
    width = int(nodes.max()) + 1
    keys, node_index = np.unique(cells.classes * width + nodes[cells.values], return_inverse=True)
    class_ids, reached = np.divmod(keys, width)
    table_shares = np.bincount(nodes, cells.totals) / cells.row_count
    return class_ids, reached, np.bincount(node_index, _class_shares(cells)) - table_shares[reached]


def _without_nulls(cells: ContingencyTable, is_kept: np.ndarray, null_counts: np.ndarray) -> ContingencyTable:
    sizes = cells.sizes - null_counts
    has_values = sizes > 0
    classes = (np.cumsum(has_values) - 1)[cells.classes[is_kept]]
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    return ContingencyTable(
        classes, cells.values[is_kept], cells.counts[is_kept], starts, sizes[has_values], cells.totals[:-1]
    )


def _ordered_emd(cells: ContingencyTable) -> np.ndarray:
    """Return the mean distance of two cumulative distributions over all values but the last, where both are 1.

    A class's own is a staircase with a step at each value that it has. On a step it is a constant, and the table's,
    which grows, is first below and then above it; both parts are sums that prefix sums give at once.
    """
    value_count = len(cells.totals)
    if value_count == 1:
        return np.zeros(len(cells.sizes))
    table_cumulative = np.cumsum(cells.totals)
    prefix_sums = np.concatenate([[0], np.cumsum(table_cumulative)])
    size = cells.sizes[cells.classes]
    before = np.cumsum(cells.counts)
    class_cumulative = before - np.concatenate([[0], before])[cells.starts][cells.classes]
    begin = cells.values
    end = np.append(cells.values[1:], value_count)
    end[np.append(cells.starts[1:], len(end)) - 1] = value_count
    crossing = np.clip(
        np.searchsorted(table_cumulative, class_cumulative * cells.row_count // size, side="right"), begin, end
    )
    level = class_cumulative / size * (2 * crossing - begin - end)
    work = level - (2 * prefix_sums[crossing] - prefix_sums[begin] - prefix_sums[end]) / cells.row_count
    flat = prefix_sums[cells.values[cells.starts]] / cells.row_count  # before a class's first value its own is 0
    distances = (np.add.reduceat(work, cells.starts) + flat) / (value_count - 1)
    return np.asarray(np.maximum(distances, 0))
