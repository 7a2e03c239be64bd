"""The classes of a classifier: declared by the caller, or selected privately by noisy counts."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from discreet.learn.fit_inputs import TargetColumn
from discreet.learn.fit_session import FitSession
from discreet.learn.row_sources import is_stream

MAX_LABELS = 256  # whole numbers that are looked for, from zero
_FALSE_LABEL_PROBABILITY = 1e-3  # how likely any label that nobody has may be taken for a class


@dataclass(frozen=True)
class ClassLabels:
    """What rows hold for each class, or None as long as classes are to be found; `names` is what predictions say."""

    target: TargetColumn
    codes: np.ndarray | None
    names: np.ndarray

    @property
    def selection_shares(self) -> tuple[str, ...]:
        """The share of the price that finding classes takes, beside a rest of 1: a tenth of the whole, or nothing."""
        return () if self.codes is not None else ("1/9",)

    def resolve_classes(self, session: FitSession) -> tuple[np.ndarray, np.ndarray]:
        """Return the marks and the names of the classes; if they are to be found, of labels that are surely there."""
        if self.codes is not None:
            return self.codes, self.names
        threshold = _selection_threshold(session)
        counts = session.histogram(_label_cell, (), cells=MAX_LABELS)
        selected = np.flatnonzero(counts > threshold)
        if len(selected) < 2:
            session.stop(
                f"classes: {len(selected)} class or classes of the labels 0 to {MAX_LABELS - 1} can be seen in noisy counts, "
                f"which takes {math.ceil(threshold)} rows each, and two are needed. Name the labels, such as "
                "classes=[0, 1]: then nothing is spent on finding them."
            )
        return selected.astype(np.float64), selected.astype(self.names.dtype)


def read_class_labels(X: Any, y: Any, classes: Any) -> ClassLabels:
    """Read the labels of rows; those that are none of the classes become a number that no class has."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if is_stream(X):
        return class_labels_of_column(y, classes)
    labels = column_or_1d(y, warn=True)
    if classes is None:
        if labels.dtype.kind not in "iubf" or (labels.dtype.kind == "f" and (labels != np.floor(labels)).any()):
            raise ValueError(
                "classes: name the labels, such as classes=['no', 'yes']. Unknown label type: texts and continuous "
                "numbers that are found in data may be one person's; without a list, only whole numbers are counted."
            )
        return ClassLabels(TargetColumn(labels.astype(np.float64), -1, MAX_LABELS), None, np.empty(0, labels.dtype))
    names = _check_class_names(classes)
    return ClassLabels(
        TargetColumn(_codes_of_labels(labels, names), -1, len(names)), np.arange(len(names), dtype=np.float64), names
    )


def class_labels_of_column(column: Any, classes: Any) -> ClassLabels:
    """Read labels that are numbers of a column, which nobody has seen yet."""
    if classes is None:
        return ClassLabels(TargetColumn(column, -1, MAX_LABELS), None, np.empty(0, np.int64))
    names = _check_class_names(classes)
    if names.dtype.kind not in "iubf":
        raise ValueError("classes: labels of a column must be numbers; let the query turn texts into numbers")
    codes = names.astype(np.float64)
    return ClassLabels(TargetColumn(column, codes.min() - 1, codes.max() + 1), codes, names)


def _check_class_names(classes: Any) -> np.ndarray:
    names = np.unique(np.asarray(classes))
    if np.ndim(classes) != 1 or len(names) < 2 or len(names) != np.size(classes):
        raise ValueError("classes must name two or more different labels, such as classes=['no', 'yes']")
    return names


def _codes_of_labels(labels: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Return the place of every label among the names, or -1."""
    if (labels.dtype.kind in "iubf") != (names.dtype.kind in "iubf"):
        raise ValueError("classes and y must both be numbers, or both texts")
    if labels.dtype.kind == "O":
        code_of = {name: code for code, name in enumerate(names.tolist())}
        return np.array([code_of.get(label, -1) for label in labels.tolist()], dtype=np.float64)
    nearest = np.minimum(np.searchsorted(names, labels), len(names) - 1)
    return np.where(names[nearest] == labels, nearest, -1).astype(np.float64)


def _selection_threshold(session: FitSession) -> float:
    """Return a count that the noise of no empty label exceeds, but with a probability of _FALSE for all together."""
    if session.is_gaussian:
        return session.scale() * math.sqrt(2 * math.log(MAX_LABELS / _FALSE_LABEL_PROBABILITY))
    return session.scale() * math.log(MAX_LABELS / (2 * _FALSE_LABEL_PROBABILITY))


def _label_cell(rows: np.ndarray, _: tuple[Any, ...]) -> np.ndarray:
    label = rows[:, -1]
    return np.where(label == np.floor(label), label, -1).astype(np.int64)
