"""Attribute-disclosure risk of a sensitive column: l-diversity, t-closeness and related measures."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn
from discreet.anonymity.encoding.equivalence_classes import ContingencyTable, EquivalenceClasses, contingency_table


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


_DIGITS = 12  # hides rounding errors that depend on the order of summation


@dataclass(frozen=True)
class AttributeRisk:
    """Attribute-disclosure risk of one sensitive column; `values` is its number of distinct values in the table.

    l               the smallest number of distinct values in a class
    entropy_l       the exponential of the smallest entropy of a class, at most l
    recursive       (c, l): the table is recursive (c', l)-diverse exactly for the c' above c
    alpha           the largest share of one value in a class, the attacker's highest confidence
    beta            the largest relative gain (q - p)/p of a value's share q in a class over its share p in the table
    enhanced_beta   the same if no value gains more than -ln p, otherwise infinite
    delta           the largest |ln(q/p)| of a value that occurs in a class
    t               the largest earth mover's distance of a class from the table, with the ground distance `distance`
    homogeneous     the number of classes with a single value; `exposed_rows` are the positions of their rows

    >>> import pyarrow as pa
    >>> from discreet.anonymity import measure
    >>> table = pa.table({"age": [30, 30, 40, 40], "ill": ["flu", "flu", "flu", "no"]})
    >>> ill = measure(table, "age", "ill").attribute_risk("ill")
    >>> ill.l, ill.t, ill.alpha, ill.homogeneous, ill.exposed_rows.tolist()
    (1, 0.25, 1.0, 1, [0, 1])
    """

    column: str
    values: int
    l: int  # noqa: E741 - the name in the literature
    entropy_l: float
    recursive: tuple[float, int]
    alpha: float
    beta: float
    enhanced_beta: float
    delta: float
    t: float
    distance: str
    homogeneous: int
    exposed_rows: np.ndarray = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the measures for JSON; infinite values become None, and exposed rows are counted, not listed."""
        names = ("values", "l", "entropy_l", "alpha", "beta", "enhanced_beta", "delta", "t", "distance", "homogeneous")
        c, min_l = self.recursive
        return {
            **{name: _none_if_infinite(getattr(self, name)) for name in names},
            "recursive": [_none_if_infinite(c), min_l],
            "exposed": len(self.exposed_rows),
        }


def _none_if_infinite(value: Any) -> Any:
    return None if value == math.inf else value


def measure_attribute_risk(
    column: EncodedColumn, classes: EquivalenceClasses, levels: Sequence[np.ndarray] | None = None
) -> AttributeRisk:
    """Measure a sensitive column; `levels` are the levels of its hierarchy, if it has one."""
    cells = contingency_table(classes, column.codes)
    distinct = distinct_counts(cells)
    min_distinct = int(distinct.min())
    gains = relative_gains(cells)
    share = cells.totals[cells.values] / cells.row_count
    beta = _round(gains.max())
    distance, distances, _ = distance_measure(column, levels)
    return AttributeRisk(
        column=column.name,
        values=len(column.values),
        l=min_distinct,
        entropy_l=_round(np.exp(entropies(cells).min())),
        recursive=(_round(recursive_ratios(cells, min_distinct).max()), min_distinct),
        alpha=_round(largest_shares(cells).max()),
        beta=beta,
        enhanced_beta=beta if (gains <= -np.log(share) + 10.0**-_DIGITS).all() else math.inf,
        delta=_round(np.abs(np.log1p(gains)).max()),
        t=_round(distances(cells).max()),
        distance=distance,
        homogeneous=int(np.count_nonzero(distinct == 1)),
        exposed_rows=np.flatnonzero((distinct == 1)[classes.ids]),
    )


def _round(number: float) -> float:
    return round(float(number), _DIGITS)
