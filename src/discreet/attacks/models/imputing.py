"""The best guess at a missing value without the attacked model: what the rest of the row says."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.models.secrets import Secretive


@dataclass(frozen=True)
class Imputer:
    """A model of the missing value that was learned from the rest of other people's rows.

    `unseen` is what it says of these people themselves where it did not learn from them: people × values.
    """

    model: Any
    unseen: np.ndarray

    def likely(self, people: Secretive) -> np.ndarray:
        """Return how likely each value is for each person: people × values."""
        return _filled(self.model.predict_proba(_rest(people)), self.model.classes_, people.values)


def learn_imputer(known: Secretive, seed: int) -> Imputer:
    """Learn to impute from people of whom everything is known.

    >>> from discreet.attacks.models.secrets import patients
    >>> some = patients(0, people=200)
    >>> learn_imputer(some, seed=0).likely(some).shape
    (200, 5)
    """
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - an extra

    model = RandomForestClassifier(100, min_samples_leaf=10, oob_score=True, random_state=seed)
    model.fit(_rest(known), known.secret.astype(np.int64))
    return Imputer(model, _filled(model.oob_decision_function_, model.classes_, known.values))


def _filled(likely: np.ndarray, classes: np.ndarray, values: int) -> np.ndarray:
    every = np.full((len(likely), values), 1e-3)  # no value is impossible
    every[:, classes] += likely
    return np.asarray(every / every.sum(axis=1, keepdims=True))


def _rest(secretive: Secretive) -> np.ndarray:
    return np.column_stack([np.delete(secretive.people.X, secretive.column, axis=1), secretive.people.y])
