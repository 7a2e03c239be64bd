"""l-diversity and related measures of each class, from a contingency table."""

import numpy as np

from discreet.anonymity.encoding.equivalence_classes import ContingencyTable


def distinct_counts(cells: ContingencyTable) -> np.ndarray:
    """Return how many different values each class has.

    >>> from discreet.anonymity.encoding.equivalence_classes import cells_of
    >>> from discreet.anonymity.encoding.equivalence_classes import classes_of
    >>> cells = cells_of(classes_of([np.array([0, 0, 0, 1, 1, 1])]), np.array([0, 0, 1, 0, 1, 2]))
    >>> distinct_counts(cells).tolist(), entropies(cells).round(3).tolist(), recursive_ratios(cells, 2).tolist()
    ([2, 3], [0.637, 1.099], [2.0, 0.5])
    """
    return np.diff(np.append(cells.starts, len(cells.counts)))


def entropies(cells: ContingencyTable) -> np.ndarray:
    """Return the entropy of each class, in nats; its exponential is the l of entropy l-diversity."""
    weighted_logs = np.add.reduceat(cells.counts * np.log(cells.counts), cells.starts)
    return np.asarray(np.maximum(np.log(cells.sizes) - weighted_logs / cells.sizes, 0))


def recursive_ratios(cells: ContingencyTable, min_values: int) -> np.ndarray:
    """Return the ratio r₁/(r_l + r_(l+1) + ...) of each class, its counts sorted from the largest.

    Recursive (c, l)-diversity (Machanavajjhala et al. 2007) asks that c be above it. It is infinite for a class of
    fewer than `min_values` values.
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
    """Return (q - p)/p of each pair that occurs: by how much a value is likelier in the class than in the table."""
    return np.asarray(cells.counts / cells.sizes[cells.classes] * (cells.row_count / cells.totals[cells.values]) - 1)
