"""The search for a class's image by questions to a classifier: imagine, ask, keep the best, imagine near them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discreet.attacks.models.images import Imagination

_FIRST, _LATER, _ROUNDS = 1600, 300, 10
_KEPT = 40
_STEP = 0.7  # of how far the best ones lie apart
_LEAST = 1e-9  # confidences below are no confidence
QUESTIONS = _FIRST + _ROUNDS * _LATER


class Classifier(Protocol):
    """What an outsider sees of a classifier: its classes, and how sure it is of each of them for any image."""

    @property
    def classes_(self) -> Any:
        """The classes that it has seen."""
        ...

    def predict_proba(self, X: np.ndarray) -> Any:
        """Return a row of confidences for each image."""
        ...


@dataclass(frozen=True)
class LabelOnly:
    """A classifier that tells the likeliest class, and nothing else."""

    model: Classifier

    @property
    def classes_(self) -> Any:
        """The classes."""
        return self.model.classes_

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return certainty for the likeliest class."""
        sure = np.asarray(self.model.predict_proba(X))
        return np.asarray(np.eye(sure.shape[1])[sure.argmax(axis=1)])


def confidences(model: Classifier, labels: Sequence[int], images: np.ndarray) -> np.ndarray:
    """Return how sure a classifier is of each label, for each image; of a class that it does not have, never."""
    told = np.asarray(model.predict_proba(images), float)
    classes = np.asarray(model.classes_)
    return np.column_stack([told[:, classes == label].sum(axis=1) for label in labels])


def recover(
    model: Classifier, labels: Sequence[int], dream: Imagination, rng: np.random.Generator, caution: float
) -> np.ndarray:
    """Return an image for each label: one that the classifier is sure of and, as `caution` weighs it, a usual one."""
    every, own = np.arange(len(labels))[:, np.newaxis], np.arange(len(labels))
    first = dream.places(_FIRST, rng)
    values = _values(model, labels, dream, caution, first).T
    best = np.argsort(-values, axis=1, kind="stable")[:, :_KEPT]
    places, worth = first[best], values[every, best]
    for _ in range(_ROUNDS):
        near = places[every, rng.integers(_KEPT, size=(len(labels), _LATER))]
        fresh = near + rng.normal(size=near.shape) * _STEP * places.std(axis=1, keepdims=True)
        found = _values(model, labels, dream, caution, fresh.reshape(-1, fresh.shape[-1]))
        found = found.reshape(len(labels), _LATER, -1)[own, :, own]
        places, worth = np.concatenate([places, fresh], axis=1), np.concatenate([worth, found], axis=1)
        best = np.argsort(-worth, axis=1, kind="stable")[:, :_KEPT]
        places, worth = places[every, best], worth[every, best]
    return dream.pictures(places.mean(axis=1))


def _values(
    model: Classifier, labels: Sequence[int], dream: Imagination, caution: float, places: np.ndarray
) -> np.ndarray:
    seen = np.log(np.maximum(confidences(model, labels, dream.pictures(places)), _LEAST))
    usual = 0.0 if caution == 0 else caution * dream.likelihood(places)[:, np.newaxis]
    return np.asarray(seen + usual)
