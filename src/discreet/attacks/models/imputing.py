"""The best guess at a missing value without the attacked model: what the rest of the row says."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.models.secrets import Secretive

_FOLDS = 3


@dataclass(frozen=True)
class Imputer:
    """A forest and a line that learned the missing value from the rest of other people's rows, and are averaged.

    `unseen` is what they say of these people themselves where they did not learn from them: people × values.
    """

    models: tuple[Any, ...]
    unseen: np.ndarray

    def likely(self, people: Secretive) -> np.ndarray:
        """Return how likely each value is for each person: people × values."""
        return _said(self.models, _rest(people), people.values)


def learn_imputer(known: Secretive, seed: int) -> Imputer:
    """Learn to impute from people of whom everything is known.

    >>> from discreet.attacks.models.secrets import patients
    >>> some = patients(0, people=200)
    >>> learn_imputer(some, seed=0).likely(some).shape
    (200, 5)
    """
    rest, secret = _rest(known), known.secret.astype(np.int64)
    fold = np.empty(len(secret), int)
    fold[np.argsort(secret, kind="stable")] = np.arange(len(secret)) % _FOLDS  # a value that two have is never left out
    unseen = np.empty((len(secret), known.values))
    for left in range(_FOLDS):
        out = fold == left
        unseen[out] = _said(_fitted(rest[~out], secret[~out], seed), rest[out], known.values)
    return Imputer(_fitted(rest, secret, seed), unseen)


def check_known(known: Secretive) -> None:
    """Stop if nothing can be learned about the secret, as nearly everybody has the same value."""
    counts = np.sort(np.bincount(known.secret.astype(int), minlength=2))
    if counts[-2] < _FOLDS:
        raise ValueError(
            f"data: nearly everybody has the same value in column {known.column}; choose a column in which the second "
            f"most frequent value is that of {2 * _FOLDS} people or many more"
        )


def _fitted(rest: np.ndarray, secret: np.ndarray, seed: int) -> tuple[Any, ...]:
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - an extra
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415

    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=50)
    line = make_pipeline(encoder, LogisticRegression(C=0.3, max_iter=500))
    forest = RandomForestClassifier(60, min_samples_leaf=5, random_state=seed)
    return forest.fit(rest, secret), line.fit(rest, secret)


def _said(models: tuple[Any, ...], rest: np.ndarray, values: int) -> np.ndarray:
    every = np.full((len(rest), values), 1e-3)  # no value is impossible
    for model in models:
        every[:, model.classes_] += model.predict_proba(rest)
    return np.asarray(every / every.sum(axis=1, keepdims=True))


def _rest(secretive: Secretive) -> np.ndarray:
    return np.column_stack([np.delete(secretive.people.X, secretive.column, axis=1), secretive.people.y])
