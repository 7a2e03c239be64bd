"""Adapters around fitted models: classifiers on pairs of values, and validation of models that users return."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from discreet.attacks.validation import column_bounds, finite_array

_MAX_SEPARATE_VALUES = 16  # integer columns with at most this many values get one bin per value
_BIN_COUNT = 5  # equal-width bins of all other columns
_MAX_FEATURES = 4000  # more would take minutes
_BATCH_SIZE = 2000


@dataclass(frozen=True)
class PairEncoder:
    """A one-hot encoding of all values and of all pairs of values of two columns.

    It depends only on the bounds of the columns, which are known without the data.

    >>> pair_encoder(((0, 0), (1, 2)), columns=2).encode(np.array([[1.0, 0.0]])).astype(int).tolist()
    [[0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0]]
    """

    low: np.ndarray
    high: np.ndarray
    bin_counts: tuple[int, ...]

    def encode(self, rows: np.ndarray) -> np.ndarray:
        """Return the encoded rows."""
        bins = self._bins(rows)
        columns = [bins[:, index] for index in range(len(self.bin_counts))]
        pairs = list(combinations(range(len(self.bin_counts)), 2))
        columns += [bins[:, one] * self.bin_counts[two] + bins[:, two] for one, two in pairs]
        sizes = [*self.bin_counts, *(self.bin_counts[one] * self.bin_counts[two] for one, two in pairs)]
        offsets = np.cumsum([0, *sizes])
        encoded = np.zeros((len(rows), offsets[-1]))
        encoded[np.arange(len(rows))[:, None], np.column_stack(columns) + offsets[:-1]] = 1
        return encoded

    def _bins(self, rows: np.ndarray) -> np.ndarray:
        """Return the bin of each number."""
        bin_counts, above = np.array(self.bin_counts), rows - self.low
        has_bin_per_value = self.high - self.low == bin_counts - 1
        nearest = np.where(has_bin_per_value, np.rint(above), np.floor(above / (self.high - self.low) * bin_counts))
        return np.asarray(np.clip(nearest, 0, bin_counts - 1).astype(int))


@dataclass(frozen=True)
class PairClassifier:
    """A classifier that was trained on encoded pairs of values and takes plain rows."""

    encoder: PairEncoder
    model: Any

    @property
    def classes_(self) -> Any:
        """The classes."""
        return self.model.classes_

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return confidences, rows × classes."""
        parts = np.array_split(X, max(1, -(-len(X) // _BATCH_SIZE)))
        return np.concatenate([self.model.predict_proba(self.encoder.encode(part)) for part in parts])


def pair_encoder(bounds: Any, columns: int) -> PairEncoder:
    """Return the encoder for rows within these bounds."""
    low, high = column_bounds(bounds, columns)
    is_integer = (low == np.rint(low)) & (high == np.rint(high)) & (high - low < _MAX_SEPARATE_VALUES)
    bin_counts = tuple(np.where(is_integer, high - low + 1, _BIN_COUNT).astype(int).tolist())
    size = sum(bin_counts) + sum(one * two for one, two in combinations(bin_counts, 2))
    if size > _MAX_FEATURES:
        raise ValueError(
            f"data: pairs of values give {size:,} features, more than the maximum of {_MAX_FEATURES:,}: leave columns "
            'out, or use target="logistic"'
        )
    return PairEncoder(low, high, bin_counts)


@dataclass(frozen=True)
class CheckedClassifier:
    """A classifier with validated integer classes, whose confidences are validated."""

    model: Any
    classes_: np.ndarray

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return confidences, rows × classes."""
        confidences = self.model.predict_proba(X)
        return finite_array(confidences, (len(X), len(self.classes_)), "predict_proba of the defence's model")


@dataclass(frozen=True)
class CheckedPredictor:
    """A model whose predictions are validated."""

    model: Any

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return one number per row."""
        return finite_array(self.model.predict(X), (len(X),), "predict of the defence's model")


def checked_classifier(model: Any, classes: int) -> CheckedClassifier:
    """Return a fitted classifier with at most this many classes, or raise.

    >>> checked_classifier([], classes=2)
    Traceback (most recent call last):
        ...
    TypeError: the defence must return a fitted classifier with predict_proba and classes_, as in scikit-learn, not list
    """
    if isinstance(model, type) or not callable(getattr(model, "predict_proba", None)) or not hasattr(model, "classes_"):
        raise TypeError(
            "the defence must return a fitted classifier with predict_proba and classes_, as in scikit-learn, not "
            f"{_type_name(model)}"
        )
    labels = np.asarray(model.classes_)
    are_integers = labels.ndim == 1 and labels.dtype.kind in "iu" and labels.size == np.unique(labels).size > 0
    if not are_integers or labels.min() < 0 or labels.max() >= classes:
        raise ValueError(
            f"classes_ of the defence's model must be integers from 0 to {classes - 1}: fit it to the members' classes "
            "as they are given"
        )
    return CheckedClassifier(model, labels.astype(int))


def checked_predictor(model: Any) -> CheckedPredictor:
    """Return a fitted regression model, or raise.

    >>> checked_predictor(None)
    Traceback (most recent call last):
        ...
    TypeError: the defence must return a fitted model with a method predict, not NoneType
    """
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise TypeError(f"the defence must return a fitted model with a method predict, not {_type_name(model)}")
    return CheckedPredictor(model)


def _type_name(model: Any) -> str:
    return f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
