"""The classes of a classifier: named by the caller, as labels found in data tell of people; or counted privately."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from discreet.learn.inputs import Target
from discreet.learn.session import Session
from discreet.learn.streams import is_stream

LABELS = 256  # whole numbers that are looked for, from zero
_FALSE = 1e-3  # how likely any label that nobody has may be taken for a class


@dataclass(frozen=True)
class Labels:
    """What rows hold for each class, or None as long as classes are to be found; `names` is what predictions say."""

    target: Target
    marks: np.ndarray | None
    names: np.ndarray

    @property
    def shares(self) -> tuple[str, ...]:
        """The share of the price that finding classes takes, beside a rest of 1: a tenth of the whole, or nothing."""
        return () if self.marks is not None else ("1/9",)

    def found(self, session: Session) -> tuple[np.ndarray, np.ndarray]:
        """Return the marks and the names of the classes; if they are to be found, of labels that are surely there."""
        if self.marks is not None:
            return self.marks, self.names
        least = _surely_more(session)
        counts = session.histogram(_label, (), cells=LABELS)
        marks = np.flatnonzero(counts > least)
        if len(marks) < 2:
            session.stop(
                f"classes: {len(marks)} class or classes of the labels 0 to {LABELS - 1} can be seen in noisy counts, "
                f"which takes {math.ceil(least)} rows each, and two are needed. Name the labels, such as "
                "classes=[0, 1]: then nothing is spent on finding them."
            )
        return marks.astype(np.float64), marks.astype(self.names.dtype)


def labels_of(X: Any, y: Any, classes: Any) -> Labels:
    """Read the labels of rows; those that are none of the classes become a number that no class has."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if is_stream(X):
        return column_labels(y, classes)
    labels = column_or_1d(y, warn=True)
    if classes is None:
        if labels.dtype.kind not in "iubf" or (labels.dtype.kind == "f" and (labels != np.floor(labels)).any()):
            raise ValueError(
                "classes: name the labels, such as classes=['no', 'yes']. Unknown label type: texts and continuous "
                "numbers that are found in data may be one person's; without a list, only whole numbers are counted."
            )
        return Labels(Target(labels.astype(np.float64), -1, LABELS), None, np.empty(0, labels.dtype))
    names = _named(classes)
    return Labels(Target(_places(labels, names), -1, len(names)), np.arange(len(names), dtype=np.float64), names)


def column_labels(column: Any, classes: Any) -> Labels:
    """Read labels that are numbers of a column, which nobody has seen yet."""
    if classes is None:
        return Labels(Target(column, -1, LABELS), None, np.empty(0, np.int64))
    names = _named(classes)
    if names.dtype.kind not in "iubf":
        raise ValueError("classes: labels of a column must be numbers; let the query turn texts into numbers")
    marks = names.astype(np.float64)
    return Labels(Target(column, marks.min() - 1, marks.max() + 1), marks, names)


def _named(classes: Any) -> np.ndarray:
    names = np.unique(np.asarray(classes))
    if np.ndim(classes) != 1 or len(names) < 2 or len(names) != np.size(classes):
        raise ValueError("classes must name two or more different labels, such as classes=['no', 'yes']")
    return names


def _places(labels: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Return the place of every label among the names, or -1."""
    if (labels.dtype.kind in "iubf") != (names.dtype.kind in "iubf"):
        raise ValueError("classes and y must both be numbers, or both texts")
    if labels.dtype.kind == "O":
        places = {name: place for place, name in enumerate(names.tolist())}
        return np.array([places.get(label, -1) for label in labels.tolist()], dtype=np.float64)
    near = np.minimum(np.searchsorted(names, labels), len(names) - 1)
    return np.where(names[near] == labels, near, -1).astype(np.float64)


def _surely_more(session: Session) -> float:
    """Return a count that the noise of no empty label exceeds, but with a probability of _FALSE for all together."""
    if session.is_gaussian:
        return session.scale() * math.sqrt(2 * math.log(LABELS / _FALSE))
    return session.scale() * math.log(LABELS / (2 * _FALSE))


def _label(rows: np.ndarray, _: tuple[Any, ...]) -> np.ndarray:
    label = rows[:, -1]
    return np.where(label == np.floor(label), label, -1).astype(np.int64)
