"""Equivalence classes: the rows that are equal in some columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

_MOST = 1 << 62  # keys of classes stay below it, in 64 bits with a sign


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of each row, 0, 1, ... in the order of their first rows, and how many rows each class has."""

    ids: np.ndarray
    sizes: np.ndarray

    @property
    def firsts(self) -> np.ndarray:
        """The first row of each class."""
        first = np.empty(len(self.sizes), np.int64)
        first[self.ids[::-1]] = np.arange(len(self.ids) - 1, -1, -1)
        return first


def classes_of(codes: Sequence[np.ndarray]) -> Classes:
    """Put rows together that have the same codes in all columns.

    >>> found = classes_of([np.array([0, 1, 0, 0]), np.array([2, 0, 2, 1])])
    >>> found.ids.tolist(), found.sizes.tolist(), found.firsts.tolist()
    ([0, 1, 0, 2], [2, 1, 1], [0, 1, 3])
    """
    if not codes:
        raise ValueError("codes: give at least one column.")
    key, width = np.asarray(codes[0], np.int64), _width(codes[0])
    for each in codes[1:]:
        more = _width(each)
        if width * more > _MOST:  # count anew from 0, which needs no more numbers than there are rows
            key, sizes = _ranked(key)
            width = len(sizes)
        key = key * more + each
        width *= more
    return Classes(*_ranked(key))


def _width(codes: np.ndarray) -> int:
    return int(codes.max(initial=-1)) + 1


def _ranked(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the different keys each is, in the order of their first places, and how often each occurs."""
    # Hashing, several times as fast as sorting.
    found = pa.array(key).dictionary_encode()
    ids = np.asarray(found.indices).astype(np.int64)
    return ids, np.bincount(ids, minlength=len(found.dictionary))
