"""Pairs of values as features: with them a logistic regression learns people by heart, and a private one does not."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from discreet.attacks.models.inputs import ends

_VALUES = 16  # whole numbers of a column that are told apart one by one
_PARTS = 5  # equal parts of the range of a column that has more
_MOST = 4000  # features: more take minutes
_BATCH = 2000  # rows at a time


@dataclass(frozen=True)
class Crossing:
    """How rows are written as zeros and ones: one for each value, and one for each pair of values of two columns.

    Made of the columns' bounds alone, which are known without the data.

    >>> crossing(((0, 0), (1, 2)), columns=2).features(np.array([[1.0, 0.0]])).astype(int).tolist()
    [[0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0]]
    """

    low: np.ndarray
    high: np.ndarray
    parts: tuple[int, ...]

    def features(self, rows: np.ndarray) -> np.ndarray:
        """Return the features of rows."""
        places = self._places(rows)
        ones = [places[:, at] for at in range(len(self.parts))]
        pairs = list(combinations(range(len(self.parts)), 2))
        ones += [places[:, one] * self.parts[two] + places[:, two] for one, two in pairs]
        sizes = [*self.parts, *(self.parts[one] * self.parts[two] for one, two in pairs)]
        begins = np.cumsum([0, *sizes])
        found = np.zeros((len(rows), begins[-1]))
        found[np.arange(len(rows))[:, None], np.column_stack(ones) + begins[:-1]] = 1
        return found

    def _places(self, rows: np.ndarray) -> np.ndarray:
        """Return the part of its column that each number falls into."""
        steps, above = np.array(self.parts), rows - self.low
        fine = self.high - self.low == steps - 1  # a part for each whole number
        nearest = np.where(fine, np.rint(above), np.floor(above / (self.high - self.low) * steps))
        return np.asarray(np.clip(nearest, 0, steps - 1).astype(int))


@dataclass(frozen=True)
class Crossed:
    """A classifier of pairs of values, asked by rows."""

    crossing: Crossing
    model: Any

    @property
    def classes_(self) -> Any:
        """The classes."""
        return self.model.classes_

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return a confidence for each row and class."""
        parts = np.array_split(X, max(1, -(-len(X) // _BATCH)))
        return np.concatenate([self.model.predict_proba(self.crossing.features(part)) for part in parts])


def crossing(bounds: Any, columns: int) -> Crossing:
    """Return how rows within bounds are written."""
    low, high = ends(bounds, columns)
    whole = (low == np.rint(low)) & (high == np.rint(high)) & (high - low < _VALUES)
    parts = tuple(np.where(whole, high - low + 1, _PARTS).astype(int).tolist())
    size = sum(parts) + sum(one * two for one, two in combinations(parts, 2))
    if size > _MOST:
        raise ValueError(
            f"data: pairs of values of these columns are {size:,} features, and {_MOST:,} are the most; leave columns "
            'out, or say target="logistic"'
        )
    return Crossing(low, high, parts)
