"""Noisy tables: what is known of the data, and the number of rows that follows from it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet.publish.synthesis.junction_tree import Columns


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Noisy counts of all cells of a table, and the variance of the noise in each."""

    counts: np.ndarray
    variance: float

    def average(self, other: "NoisyTable") -> "NoisyTable":
        """Return the mean of two measurements of one table, weighted by their precision."""
        share = other.variance / (self.variance + other.variance)
        return NoisyTable(share * self.counts + (1 - share) * other.counts, share * self.variance)


def estimated_total(tables: Mapping[Columns, NoisyTable]) -> float:
    """Return the number of rows, at least one: the mean of all tables' sums, weighted by their precision."""
    sums = np.array([table.counts.sum() for table in tables.values()])
    precisions = np.array([1 / (table.variance * table.counts.size) for table in tables.values()])
    return max(1.0, float(sums @ precisions / precisions.sum()))
