"""The classes of a classifier: declared by the caller, or selected privately by noisy counts."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from discreet.learn.fit_inputs import TargetColumn
from discreet.learn.fit_session import FitSession
from discreet.learn.row_sources import is_stream

MAX_LABELS = 256  # without declared classes, the labels 0 to 255 are counted
_FALSE_LABEL_PROBABILITY = 1e-3  # probability that any absent label is selected as a class


@dataclass(frozen=True)
class ClassLabels:
    """The target column, the code of each class in it (None until classes are selected) and the class names."""

    target: TargetColumn
    codes: np.ndarray | None
    names: np.ndarray

    @property
    def selection_shares(self) -> tuple[str, ...]:
        """Budget share for selecting the classes, relative to 1 for the rest: a tenth of the total, or none."""
        return () if self.codes is not None else ("1/9",)

    def resolve_classes(self, session: FitSession) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes and names of the classes, selected by noisy counts if they were not declared."""
        if self.codes is not None:
            return self.codes, self.names
        threshold = _selection_threshold(session)
        counts = session.histogram(_label_cell, (), cells=MAX_LABELS)
        selected = np.flatnonzero(counts > threshold)
        if len(selected) < 2:
            session.stop(
                f"classes: the noisy counts show {len(selected)} class{'' if len(selected) == 1 else 'es'} among the "
                f"labels 0 to {MAX_LABELS - 1}, but a classifier needs at least 2. "
                f"At this epsilon a label needs a count of about {math.ceil(threshold)} to be selected. "
                "Declare the labels, such as classes=[0, 1]; then no budget is spent on selecting them."
            )
        return selected.astype(np.float64), selected.astype(self.names.dtype)


def read_class_labels(X: Any, y: Any, classes: Any) -> ClassLabels:
    """Return the class labels in y; a label outside the declared classes gets the code -1."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if is_stream(X):
        return class_labels_of_column(y, classes)
    labels = column_or_1d(y, warn=True)
    if classes is None:
        if labels.dtype.kind not in "iubf" or (labels.dtype.kind == "f" and (labels != np.floor(labels)).any()):
            raise ValueError(
                "classes: declare the labels, such as classes=['no', 'yes']. Unknown label type: without declared "
                "classes only integer labels are counted, because text or continuous labels could identify one person."
            )
        return ClassLabels(TargetColumn(labels.astype(np.float64), -1, MAX_LABELS), None, np.empty(0, labels.dtype))
    names = _check_class_names(classes)
    return ClassLabels(
        TargetColumn(_codes_of_labels(labels, names), -1, len(names)), np.arange(len(names), dtype=np.float64), names
    )


def class_labels_of_column(column: Any, classes: Any) -> ClassLabels:
    """Return the class labels of a numeric column that has not been read yet."""
    if classes is None:
        return ClassLabels(TargetColumn(column, -1, MAX_LABELS), None, np.empty(0, np.int64))
    names = _check_class_names(classes)
    if names.dtype.kind not in "iubf":
        raise ValueError("classes: the labels of a column must be numbers; convert text labels to numbers in the query")
    codes = names.astype(np.float64)
    return ClassLabels(TargetColumn(column, codes.min() - 1, codes.max() + 1), codes, names)


def _check_class_names(classes: Any) -> np.ndarray:
    names = np.unique(np.asarray(classes))
    if np.ndim(classes) != 1 or len(names) < 2 or len(names) != np.size(classes):
        raise ValueError("classes must list at least two distinct labels, such as classes=['no', 'yes']")
    return names


def _codes_of_labels(labels: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Return the index of each label in `names`, or -1."""
    if (labels.dtype.kind in "iubf") != (names.dtype.kind in "iubf"):
        raise ValueError("classes and y must both be numbers or both be strings")
    if labels.dtype.kind == "O":
        code_of = {name: code for code, name in enumerate(names.tolist())}
        return np.array([code_of.get(label, -1) for label in labels.tolist()], dtype=np.float64)
    nearest = np.minimum(np.searchsorted(names, labels), len(names) - 1)
    return np.where(names[nearest] == labels, nearest, -1).astype(np.float64)


def _selection_threshold(session: FitSession) -> float:
    """Return the count that no absent label exceeds, except with probability _FALSE_LABEL_PROBABILITY overall."""
    if session.is_gaussian:
        return session.scale() * math.sqrt(2 * math.log(MAX_LABELS / _FALSE_LABEL_PROBABILITY))
    return session.scale() * math.log(MAX_LABELS / (2 * _FALSE_LABEL_PROBABILITY))


def _label_cell(rows: np.ndarray, _: tuple[Any, ...]) -> np.ndarray:
    label = rows[:, -1]
    return np.where(label == np.floor(label), label, -1).astype(np.int64)
