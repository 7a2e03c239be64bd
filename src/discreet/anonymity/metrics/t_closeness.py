"""l-diversity and t-closeness: the sensitive values of each class, and their distance from those of the table.

The distance is the earth mover's (Li, Li and Venkatasubramanian 2007): the least work to turn one distribution into
the other. The ground distance of two values depends on the column and is at most 1:

    ordered         numbers and dates: the number of steps between them among the sorted values, over the maximum
    equal           all other columns: 1
    hierarchical    with a hierarchy: the height of their lowest common ancestor over the height of the tree
"""

from collections.abc import Callable, Sequence

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn
from discreet.anonymity.encoding.equivalence_classes import ContingencyTable


def distance_measure(
    column: EncodedColumn, levels: Sequence[np.ndarray] | None
) -> tuple[str, Callable[[ContingencyTable], np.ndarray], bool]:
    """Return a column's ground distance, its distances of classes, and whether merged classes are never farther.

    With nulls the ordered distance is not a metric: the union of two close classes can be less close.
    """
    if levels is not None:
        return "hierarchical", lambda cells: hierarchical_distances(cells, levels), True
    if column.is_ordered:
        null_code = column.null_code
        return "ordered", lambda cells: ordered_distances(cells, null_code), null_code is None
    return "equal", equal_distances, True


def equal_distances(cells: ContingencyTable) -> np.ndarray:
    """Return the distance of each class from the table if all values are at distance 1 from each other.

    >>> from discreet.anonymity.encoding.equivalence_classes import contingency_table, group_equal_rows
    >>> classes = group_equal_rows([np.array([0, 0, 1, 1])])
    >>> equal_distances(contingency_table(classes, np.array([0, 0, 0, 1]))).tolist()
    [0.25, 0.25]
    """
    # The total surplus equals the total deficit, and only values that occur in the class can have a surplus.
    surplus = np.maximum(_class_shares(cells) - cells.totals[cells.values] / cells.row_count, 0)
    return np.asarray(np.add.reduceat(surplus, cells.starts))


def ordered_distances(cells: ContingencyTable, null_code: int | None = None) -> np.ndarray:
    """Return the distance of each class from the table if consecutive values are equally far apart.

    Null (the last value) has distance 1 from all others, whose remaining mass is moved in proportion. This is an upper
    bound on the earth mover's distance, so the distance is never understated.

    >>> from discreet.anonymity.encoding.equivalence_classes import contingency_table, group_equal_rows
    >>> classes = group_equal_rows([np.array([0, 1, 1])])
    >>> ordered_distances(contingency_table(classes, np.array([0, 1, 2]))).round(4).tolist()
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

    `levels` has the node of every value on each level, from the one above the leaves to the root.

    >>> from discreet.anonymity.encoding.equivalence_classes import contingency_table, group_equal_rows
    >>> cells = contingency_table(group_equal_rows([np.array([0, 1, 1])]), np.array([0, 1, 2]))
    >>> hierarchical_distances(cells, [np.array([0, 0, 1]), np.array([0, 0, 0])]).round(4).tolist()
    [0.5, 0.25]
    """
    distance = np.zeros(len(cells.sizes))
    nodes = np.arange(len(cells.totals))
    for height, parent_nodes in enumerate(levels, 1):
        # At each node, mass moves from children with a surplus to children with a deficit. A node without rows of the
        # class only has children with a deficit.
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
    """Return the sorted pairs of class and node that have rows, and the class's share there minus the table's."""
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
    """Return the mean absolute difference of the cumulative distributions of each class and the table.

    The last value, where both are 1, is left out. A class's distribution is constant between two of its values, and the
    table's, which grows, is first below and then above that constant; prefix sums give both parts without a loop.
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
    flat = prefix_sums[cells.values[cells.starts]] / cells.row_count  # the class's distribution is 0 up to here
    distances = (np.add.reduceat(work, cells.starts) + flat) / (value_count - 1)
    return np.asarray(np.maximum(distances, 0))


def distinct_counts(cells: ContingencyTable) -> np.ndarray:
    """Return the number of distinct values in each class.

    >>> from discreet.anonymity.encoding.equivalence_classes import contingency_table, group_equal_rows
    >>> classes = group_equal_rows([np.array([0, 0, 0, 1, 1, 1])])
    >>> cells = contingency_table(classes, np.array([0, 0, 1, 0, 1, 2]))
    >>> distinct_counts(cells).tolist(), entropies(cells).round(3).tolist(), recursive_ratios(cells, 2).tolist()
    ([2, 3], [0.637, 1.099], [2.0, 0.5])
    """
    return np.diff(np.append(cells.starts, len(cells.counts)))


def entropies(cells: ContingencyTable) -> np.ndarray:
    """Return the entropy of each class, in nats; its exponential is the l of entropy l-diversity."""
    weighted_logs = np.add.reduceat(cells.counts * np.log(cells.counts), cells.starts)
    return np.asarray(np.maximum(np.log(cells.sizes) - weighted_logs / cells.sizes, 0))


def recursive_ratios(cells: ContingencyTable, min_values: int) -> np.ndarray:
    """Return the ratio r₁/(r_l + r_(l+1) + ...) of each class, with its counts in descending order.

    Recursive (c, l)-diversity (Machanavajjhala et al. 2007) requires a ratio below c. The ratio is infinite for a class
    with fewer than `min_values` distinct values.
    """
    top = int(cells.counts.max())
    counts = top - np.sort(cells.classes * (top + 1) + top - cells.counts) % (top + 1)
    sums = np.concatenate([[0], np.cumsum(counts)])
    ends = np.append(cells.starts[1:], len(counts))
    rest = sums[ends] - sums[np.minimum(cells.starts + min_values - 1, ends)]
    return np.where(rest > 0, counts[cells.starts] / np.maximum(rest, 1), np.inf)


def largest_shares(cells: ContingencyTable) -> np.ndarray:
    """Return the share of the most frequent value in each class: the alpha of (alpha, k)-anonymity."""
    return np.asarray(np.maximum.reduceat(cells.counts, cells.starts) / cells.sizes)


def relative_gains(cells: ContingencyTable) -> np.ndarray:
    """Return (q - p)/p for each pair of class and value: the relative gain of the share in the class over the table."""
    return np.asarray(cells.counts / cells.sizes[cells.classes] * (cells.row_count / cells.totals[cells.values]) - 1)
