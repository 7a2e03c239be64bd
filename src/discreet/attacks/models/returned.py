"""Models that a function of the user's own returned: checked, and their answers as well."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.checking import numbers


@dataclass(frozen=True)
class Classifier:
    """A classifier whose classes are whole numbers that were looked for, and whose answers are checked."""

    model: Any
    classes_: np.ndarray

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return a confidence for each row and class."""
        told = self.model.predict_proba(X)
        return numbers(told, (len(X), len(self.classes_)), "defence: predict_proba of your model")


@dataclass(frozen=True)
class Predictor:
    """A model whose predictions are checked."""

    model: Any

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return a number for each row."""
        return numbers(self.model.predict(X), (len(X),), "defence: predict of your model")


def classifier(model: Any, classes: int) -> Classifier:
    """Return a fitted classifier of so many classes.

    >>> classifier([], classes=2)
    Traceback (most recent call last):
        ...
    TypeError: defence: your function returned list; return a fitted model with predict_proba and classes_, as \
scikit-learn's classifiers have them
    """
    if isinstance(model, type) or not callable(getattr(model, "predict_proba", None)) or not hasattr(model, "classes_"):
        raise TypeError(
            f"defence: your function returned {_kind(model)}; return a fitted model with predict_proba and "
            "classes_, as scikit-learn's classifiers have them"
        )
    known = np.asarray(model.classes_)
    whole = known.ndim == 1 and known.dtype.kind in "iu" and known.size == np.unique(known).size > 0
    if not whole or known.min() < 0 or known.max() >= classes:
        raise ValueError(
            f"defence: classes_ of your model must be among the whole numbers from 0 to {classes - 1}; fit it to the "
            "members' classes as they are given"
        )
    return Classifier(model, known.astype(int))


def predictor(model: Any) -> Predictor:
    """Return a fitted model of numbers.

    >>> predictor(None)
    Traceback (most recent call last):
        ...
    TypeError: defence must return a fitted model with a method predict, not NoneType
    """
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise TypeError(f"defence must return a fitted model with a method predict, not {_kind(model)}")
    return Predictor(model)


def _kind(model: Any) -> str:
    return f"the class {model.__name__} itself" if isinstance(model, type) else type(model).__name__
