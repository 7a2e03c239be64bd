"""How often each sensitive value occurs in each class: what all the measures of diversity are computed from."""

from dataclasses import dataclass

import numpy as np

from discreet.anonymity.coding.classes import Classes


@dataclass(frozen=True, eq=False)
class Cells:
    """The pairs of a class and a value that occur, sorted by class and then by value, and how often each does.

    `starts` are the places where the classes begin; `sizes` the rows of each class; `totals` those of each value.
    """

    classes: np.ndarray
    values: np.ndarray
    counts: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    totals: np.ndarray

    @property
    def rows(self) -> int:
        """The rows of the table."""
        return int(self.sizes.sum())


def cells_of(classes: Classes, codes: np.ndarray) -> Cells:
    """Count a column's values in each class.

    >>> found = cells_of(Classes(np.array([0, 0, 0, 1]), np.array([3, 1])), np.array([2, 0, 2, 2]))
    >>> found.classes.tolist(), found.values.tolist(), found.counts.tolist(), found.starts.tolist()
    ([0, 0, 1], [0, 2, 2], [1, 2, 1], [0, 2])
    """
    width = int(codes.max()) + 1
    keys, counts = np.unique(classes.ids * width + codes, return_counts=True)
    rows, values = np.divmod(keys, width)
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    return Cells(rows, values, counts, starts, classes.sizes, np.bincount(codes, minlength=width))
