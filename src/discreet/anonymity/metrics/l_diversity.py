"""l-diversity and related measures of each equivalence class, from a contingency table."""

import numpy as np

from discreet.anonymity.encoding.equivalence_classes import ContingencyTable


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
