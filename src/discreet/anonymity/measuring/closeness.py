"""t-closeness: how far the sensitive values of each class are from those of the whole table.

The distance is the earth mover's (Li, Li and Venkatasubramanian 2007): the least work to turn one distribution into
the other, where moving everything from one end to the other is 1. How far apart two values are depends on the column:

    ordered         numbers and dates: the share of the steps between them when all values are sorted
    equal           everything else: 1
    hierarchical    with a hierarchy: the height of their lowest common ancestor, as a share of the tree's
"""

from collections.abc import Sequence

import numpy as np

from discreet.anonymity.coding.cells import Cells


def equal_distances(cells: Cells) -> np.ndarray:
    """Return the distance of each class from the table if all values are 1 apart.

    >>> from discreet.anonymity.coding.cells import cells_of
    >>> from discreet.anonymity.coding.classes import classes_of
    >>> equal_distances(cells_of(classes_of([np.array([0, 0, 1, 1])]), np.array([0, 0, 0, 1]))).tolist()
    [0.25, 0.25]
    """
    # What is too much here is what is missing elsewhere; and only values that occur can be too many.
    too_many = np.maximum(_shares(cells) - cells.totals[cells.values] / cells.rows, 0)
    return np.asarray(np.add.reduceat(too_many, cells.starts))


def ordered_distances(cells: Cells, null: int | None = None) -> np.ndarray:
    """Return the distance of each class from the table if the values are equal steps apart.

    Null (the last value) has no place among them. It is 1 apart from everything, and the others move in proportion:
    perhaps not the least work, so the distance is never understated.

    >>> from discreet.anonymity.coding.cells import cells_of
    >>> from discreet.anonymity.coding.classes import classes_of
    >>> ordered_distances(cells_of(classes_of([np.array([0, 1, 1])]), np.array([0, 1, 2]))).round(4).tolist()
    [0.5, 0.25]
    """
    if null is None:
        return _along_a_line(cells)
    here = cells.values == null
    nulls = np.zeros(len(cells.sizes), np.int64)
    nulls[cells.classes[here]] = cells.counts[here]
    mine, everywhere = nulls / cells.sizes, cells.totals[null] / cells.rows
    distance: np.ndarray = np.abs(mine - everywhere)
    some = nulls < cells.sizes
    if some.any():
        shared = np.minimum(1 - mine[some], 1 - everywhere)
        distance[some] += shared * _along_a_line(_without_nulls(cells, ~here, nulls))
    return distance


def hierarchical_distances(cells: Cells, levels: Sequence[np.ndarray]) -> np.ndarray:
    """Return the distance of each class from the table if the values are the leaves of a tree.

    Each level, from the one above the leaves up to the root, gives every value's node there.

    >>> from discreet.anonymity.coding.cells import cells_of
    >>> from discreet.anonymity.coding.classes import classes_of
    >>> cells = cells_of(classes_of([np.array([0, 1, 1])]), np.array([0, 1, 2]))
    >>> hierarchical_distances(cells, [np.array([0, 0, 1]), np.array([0, 0, 0])]).round(4).tolist()
    [0.5, 0.25]
    """
    distance = np.zeros(len(cells.sizes))
    nodes = np.arange(len(cells.totals))
    for height, above in enumerate(levels, 1):
        # At each node, what some of its children have too much moves to those that have too little. A node that a
        # class does not reach has children of the second kind only.
        lower, upper = _surplus(cells, nodes), _surplus(cells, above)
        parent = np.zeros(int(nodes.max()) + 1, np.int64)
        parent[nodes] = above
        width = int(above.max()) + 1
        place = np.searchsorted(upper[0] * width + upper[1], lower[0] * width + parent[lower[1]])
        too_much = np.bincount(place, np.maximum(lower[2], 0))
        moved = np.maximum(np.minimum(too_much, too_much - upper[2]), 0)
        distance += np.bincount(upper[0], height / len(levels) * moved)
        nodes = above
    return distance


def _shares(cells: Cells) -> np.ndarray:
    return np.asarray(cells.counts / cells.sizes[cells.classes])


def _surplus(cells: Cells, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return classes and the nodes that they reach, sorted, and by how much the class has more there than the table."""
    width = int(nodes.max()) + 1
    keys, place = np.unique(cells.classes * width + nodes[cells.values], return_inverse=True)
    rows, reached = np.divmod(keys, width)
    everywhere = np.bincount(nodes, cells.totals) / cells.rows
    return rows, reached, np.bincount(place, _shares(cells)) - everywhere[reached]


def _without_nulls(cells: Cells, kept: np.ndarray, nulls: np.ndarray) -> Cells:
    sizes = cells.sizes - nulls
    some = sizes > 0
    classes = (np.cumsum(some) - 1)[cells.classes[kept]]
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    return Cells(classes, cells.values[kept], cells.counts[kept], starts, sizes[some], cells.totals[:-1])


def _along_a_line(cells: Cells) -> np.ndarray:
    """Return the mean distance of two cumulative distributions over all values but the last, where both are 1.

    A class's own is a staircase with a step at each value that it has. On a step it is a constant, and the table's,
    which grows, is first below and then above it; both parts are sums that prefix sums give at once.
    """
    many = len(cells.totals)
    if many == 1:
        return np.zeros(len(cells.sizes))
    table = np.cumsum(cells.totals)
    sums = np.concatenate([[0], np.cumsum(table)])
    size = cells.sizes[cells.classes]
    before = np.cumsum(cells.counts)
    reached = before - np.concatenate([[0], before])[cells.starts][cells.classes]
    begin = cells.values
    end = np.append(cells.values[1:], many)
    end[np.append(cells.starts[1:], len(end)) - 1] = many
    turn = np.clip(np.searchsorted(table, reached * cells.rows // size, side="right"), begin, end)
    level = reached / size * (2 * turn - begin - end)
    work = level - (2 * sums[turn] - sums[begin] - sums[end]) / cells.rows
    flat = sums[cells.values[cells.starts]] / cells.rows  # before a class's first value its own is 0
    distances = (np.add.reduceat(work, cells.starts) + flat) / (many - 1)
    return np.asarray(np.maximum(distances, 0))
