"""Adapters around fitted models: classifiers on pairs of values, and checks of models that users return."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from discreet.attacks.validation import column_bounds, finite_array

_MAX_SEPARATE_VALUES = 16  # whole numbers of a column that are told apart one by one
_BIN_COUNT = 5  # equal parts of the range of a column that has more
_MAX_FEATURES = 4000  # features: more take minutes
_BATCH_SIZE = 2000  # rows at a time


@dataclass(frozen=True)
class PairEncoder:
    """How rows are written as zeros and ones: one for each value, and one for each pair of values of two columns.

    Made of the columns' bounds alone, which are known without the data.

    >>> crossing(((0, 0), (1, 2)), columns=2).encode(np.array([[1.0, 0.0]])).astype(int).tolist()
    [[0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0]]
    """

    low: np.ndarray
    high: np.ndarray
    bin_counts: tuple[int, ...]

    def encode(self, rows: np.ndarray) -> np.ndarray:
        """Return the features of rows."""
        bins = self._bins(rows)
        columns = [bins[:, at] for at in range(len(self.bin_counts))]
        pairs = list(combinations(range(len(self.bin_counts)), 2))
        columns += [bins[:, one] * self.bin_counts[two] + bins[:, two] for one, two in pairs]
        sizes = [*self.bin_counts, *(self.bin_counts[one] * self.bin_counts[two] for one, two in pairs)]
        offsets = np.cumsum([0, *sizes])
        encoded = np.zeros((len(rows), offsets[-1]))
        encoded[np.arange(len(rows))[:, None], np.column_stack(columns) + offsets[:-1]] = 1
        return encoded

    def _bins(self, rows: np.ndarray) -> np.ndarray:
        """Return the part of its column that each number falls into."""
        bin_counts, above = np.array(self.bin_counts), rows - self.low
        has_bin_per_value = self.high - self.low == bin_counts - 1  # a part for each whole number
        nearest = np.where(has_bin_per_value, np.rint(above), np.floor(above / (self.high - self.low) * bin_counts))
        return np.asarray(np.clip(nearest, 0, bin_counts - 1).astype(int))


@dataclass(frozen=True)
class PairClassifier:
    """A classifier of pairs of values, asked by rows."""

    encoder: PairEncoder
    model: Any

    @property
    def classes_(self) -> Any:
        """The classes."""
        return self.model.classes_

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return a confidence for each row and class."""
        parts = np.array_split(X, max(1, -(-len(X) // _BATCH_SIZE)))
        return np.concatenate([self.model.predict_proba(self.encoder.encode(part)) for part in parts])


def pair_encoder(bounds: Any, columns: int) -> PairEncoder:
    """Return how rows within bounds are written."""
    low, high = column_bounds(bounds, columns)
    is_integer = (low == np.rint(low)) & (high == np.rint(high)) & (high - low < _MAX_SEPARATE_VALUES)
    bin_counts = tuple(np.where(is_integer, high - low + 1, _BIN_COUNT).astype(int).tolist())
    size = sum(bin_counts) + sum(one * two for one, two in combinations(bin_counts, 2))
    if size > _MAX_FEATURES:
        raise ValueError(
            f"data: pairs of values of these columns are {size:,} features, and {_MAX_FEATURES:,} are the most; leave columns "
            'out, or say target="logistic"'
        )
    return PairEncoder(low, high, bin_counts)


@dataclass(frozen=True)
class CheckedClassifier:
    """A classifier whose classes are whole numbers that were looked for, and whose answers are checked."""

    model: Any
    classes_: np.ndarray

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return a confidence for each row and class."""
        confidences = self.model.predict_proba(X)
        return finite_array(confidences, (len(X), len(self.classes_)), "defence: predict_proba of your model")


@dataclass(frozen=True)
class CheckedPredictor:
    """A model whose predictions are checked."""

    model: Any

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return a number for each row."""
        return finite_array(self.model.predict(X), (len(X),), "defence: predict of your model")


def checked_classifier(model: Any, classes: int) -> CheckedClassifier:
    """Return a fitted classifier of so many classes.

    >>> checked_classifier([], classes=2)
    Traceback (most recent call last):
        ...
    TypeError: defence: your function returned list; return a fitted model with predict_proba and classes_, as \
scikit-learn's classifiers have them
    """
    if isinstance(model, type) or not callable(getattr(model, "predict_proba", None)) or not hasattr(model, "classes_"):
        raise TypeError(
            f"defence: your function returned {_type_name(model)}; return a fitted model with predict_proba and "
            "classes_, as scikit-learn's classifiers have them"
        )
    labels = np.asarray(model.classes_)
    are_integers = labels.ndim == 1 and labels.dtype.kind in "iu" and labels.size == np.unique(labels).size > 0
    if not are_integers or labels.min() < 0 or labels.max() >= classes:
        raise ValueError(
            f"defence: classes_ of your model must be among the whole numbers from 0 to {classes - 1}; fit it to the "
            "members' classes as they are given"
        )
    return CheckedClassifier(model, labels.astype(int))


def checked_predictor(model: Any) -> CheckedPredictor:
    """Return a fitted model of numbers.

    >>> checked_predictor(None)
    Traceback (most recent call last):
        ...
    TypeError: defence must return a fitted model with a method predict, not NoneType
    """
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise TypeError(f"defence must return a fitted model with a method predict, not {_type_name(model)}")
    return CheckedPredictor(model)


def _type_name(model: Any) -> str:
    return f"the class {model.__name__} itself" if isinstance(model, type) else type(model).__name__
