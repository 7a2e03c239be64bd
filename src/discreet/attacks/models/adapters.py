"""Models as the attacker sees them: functions from rows to predictions, whatever object was fitted."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from discreet.attacks.validation import column_bounds, finite_array, require

EasyFix = Literal["label", "rounded", "top"]

_MAX_SEPARATE_VALUES = 16  # integer columns with at most this many values get one bin per value
_BIN_COUNT = 5  # equal-width bins of all other columns
_MAX_FEATURES = 4000  # more would take minutes
_BATCH_SIZE = 2000


@dataclass(frozen=True)
class Classifier:
    """The attacker's view of a classifier: its classes, and a function from rows to confidences, rows × classes."""

    classes_: Any
    predict_proba: Callable[[np.ndarray], Any]


@dataclass(frozen=True)
class Predictor:
    """The attacker's view of a regression model: a function from rows to one number each."""

    predict: Callable[[np.ndarray], Any]


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


def pair_encoder(bounds: Any, columns: int) -> PairEncoder:
    """Return the encoder for rows within these bounds."""
    low, high = column_bounds(bounds, columns)
    is_integer = (low == np.rint(low)) & (high == np.rint(high)) & (high - low < _MAX_SEPARATE_VALUES)
    bin_counts = tuple(np.where(is_integer, high - low + 1, _BIN_COUNT).astype(int).tolist())
    size = sum(bin_counts) + sum(one * two for one, two in combinations(bin_counts, 2))
    require(
        size <= _MAX_FEATURES,
        f"data: pairs of values give {size:,} features, more than the maximum of {_MAX_FEATURES:,}: leave columns "
        'out, or use target="logistic"',
    )
    return PairEncoder(low, high, bin_counts)


def fit_on_pairs(model: Any, X: np.ndarray, y: np.ndarray, bounds: Any) -> Classifier:
    """Fit a model to encoded pairs of values; the classifier takes plain rows."""
    encoder = pair_encoder(bounds, X.shape[1])
    model.fit(encoder.encode(X), y)

    def predict_proba(rows: np.ndarray) -> np.ndarray:
        parts = np.array_split(rows, max(1, -(-len(rows) // _BATCH_SIZE)))
        return np.concatenate([model.predict_proba(encoder.encode(part)) for part in parts])

    return Classifier(model.classes_, predict_proba)


def reduce_confidences(confidences: np.ndarray, fix: EasyFix) -> np.ndarray:
    """Return the confidences after an easy fix: only the label, one digit of each, or only the highest.

    >>> confidences = np.array([[0.61, 0.39]])
    >>> reduce_confidences(confidences, "label").tolist(), reduce_confidences(confidences, "rounded").tolist()
    ([[1.0, 0.0]], [[0.6, 0.4]])
    >>> reduce_confidences(confidences, "top").tolist()
    [[0.61, 0.0]]
    """
    if fix == "rounded":
        return np.round(confidences, 1)
    first = np.arange(confidences.shape[1]) == confidences.argmax(axis=1)[:, None]
    return np.where(first, confidences if fix == "top" else 1.0, 0.0)


def checked_classifier(model: Any, classes: int) -> Classifier:
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
    require(
        are_integers and labels.min() >= 0 and labels.max() < classes,
        f"classes_ of the defence's model must be integers from 0 to {classes - 1}: fit it to the members' classes "
        "as they are given",
    )
    shown = "predict_proba of the defence's model"
    return Classifier(labels.astype(int), lambda X: finite_array(model.predict_proba(X), (len(X), len(labels)), shown))


def checked_predictor(model: Any) -> Predictor:
    """Return a fitted regression model, or raise.

    >>> checked_predictor(None)
    Traceback (most recent call last):
        ...
    TypeError: the defence must return a fitted model with a method predict, not NoneType
    """
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise TypeError(f"the defence must return a fitted model with a method predict, not {_type_name(model)}")
    return Predictor(lambda X: finite_array(model.predict(X), (len(X),), "predict of the defence's model"))


def _type_name(model: Any) -> str:
    return f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
