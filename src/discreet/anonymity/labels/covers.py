"""Which original values each released value may have been."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Cover:
    """For each released value the codes of the original values that it covers: a run low, ..., high - 1.

    Where they are no run, it is the shortest one that holds them, and `within` has the pairs that count, as sorted
    numbers released·many + original.
    """

    many: int
    low: np.ndarray
    high: np.ndarray
    scattered: np.ndarray
    within: np.ndarray

    def holds(self, released: np.ndarray, original: np.ndarray) -> np.ndarray:
        """Tell for pairs of codes whether the released value covers the original one."""
        inside = (self.low[released] <= original) & (original < self.high[released])
        doubtful = np.flatnonzero(inside & self.scattered[released])
        pairs = released[doubtful].astype(np.int64) * self.many + original[doubtful]
        inside[doubtful] = np.isin(pairs, self.within)
        return np.asarray(inside)

    def counts(self) -> np.ndarray:
        """Return how many original values each released value covers."""
        counts = np.where(self.scattered, 0, self.high - self.low)
        np.add.at(counts, self.within // self.many, 1)
        return counts

    def owners(self) -> np.ndarray | None:
        """Return the released value that covers each original one, -1 for none; None if some have several."""
        runs = np.flatnonzero(~self.scattered)
        length = self.high[runs] - self.low[runs]
        if length.sum() + len(self.within) > self.many:
            return None
        steps = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        places = np.concatenate([np.repeat(self.low[runs], length) + steps, self.within % self.many])
        owner = np.full(self.many, -1)
        owner[places] = np.concatenate([np.repeat(runs, length), self.within // self.many])
        return owner if np.count_nonzero(owner >= 0) == len(places) else None


def cover_of(found: Sequence[Sequence[int]], many: int) -> Cover:
    """Make a cover of the sorted codes that each released value stands for, of so `many` original values.

    >>> cover = cover_of([[0, 1], [3], [0, 3], []], 4)
    >>> cover.holds(np.array([0, 2, 2]), np.array([1, 1, 3])).tolist(), cover.counts().tolist()
    ([True, False, True], [2, 1, 2, 0])
    >>> cover.owners() is None, cover_of([[0, 1], [3]], 4).owners().tolist()
    (True, [0, 0, -1, 1])
    """
    low = np.array([codes[0] if len(codes) else 0 for codes in found], np.int64)
    high = np.array([codes[-1] + 1 if len(codes) else 0 for codes in found], np.int64)
    scattered = high - low != np.array([len(codes) for codes in found], np.int64)
    pairs = [np.asarray(found[place], np.int64) + place * many for place in np.flatnonzero(scattered).tolist()]
    return Cover(many, low, high, scattered, np.concatenate(pairs) if pairs else np.empty(0, np.int64))
