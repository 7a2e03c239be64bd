"""Models that are asked by outsiders: the people whom they learn from, how they are fitted, and what they tell."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal
from warnings import catch_warnings, simplefilter

import numpy as np

from discreet.attacks.defences import CURATOR, EASY, OWN, Shield
from discreet.attacks.models.crossing import Crossed, crossing
from discreet.attacks.models.people import Labelled
from discreet.attacks.models.returned import classifier

Target = Literal["forest", "network", "logistic", "pairs"]
Private = Literal["logistic", "pairs"]
Fix = Literal["label", "rounded", "top"]
Service = Callable[[np.ndarray], np.ndarray]  # rows in, a confidence for every class out

TARGETS: tuple[Target, ...] = ("forest", "network", "logistic", "pairs")
_MILD = {"logistic": 100.0, "pairs": 30.0}  # C, where none is given: hardly any penalty
FIXES: tuple[Fix, ...] = ("label", "rounded", "top")


@dataclass(frozen=True)
class Making:
    """How an owner makes a model of people, and what of its answers outsiders are given.

    The private model is a logistic regression, of the columns ("logistic") or of pairs of values ("pairs").
    """

    shield: Shield
    target: Target = "forest"
    fix: Fix = "label"
    private: Private = "logistic"
    delta: Fraction = Fraction(0)  # what the defence promises beside its epsilon

    def __post_init__(self) -> None:
        for name, given, known in (("target", self.target, TARGETS), ("fix", self.fix, FIXES)):
            if given not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, not {given!r}")


def serve(making: Making, people: Labelled, seed: int) -> Service:
    """Fit a model to people, and return what an outsider can ask: rows in, a confidence for every class out."""
    model = classifier(_fitted(making, people, seed), people.classes)

    def answer(rows: np.ndarray) -> np.ndarray:
        told = np.zeros((len(rows), people.classes))  # a class that the model never met has no confidence
        told[:, model.classes_] = model.predict_proba(rows)
        return hide(told, making.fix) if making.shield.word == EASY else told

    return answer


def hide(confidences: np.ndarray, fix: Fix) -> np.ndarray:
    """Return what is left of confidences: the first class alone, one digit of each, or the highest one alone.

    >>> hide(np.array([[0.61, 0.39]]), "label").tolist(), hide(np.array([[0.61, 0.39]]), "rounded").tolist()
    ([[1.0, 0.0]], [[0.6, 0.4]])
    >>> hide(np.array([[0.61, 0.39]]), "top").tolist()
    [[0.61, 0.0]]
    """
    if fix == "rounded":
        return np.round(confidences, 1)
    first = np.arange(confidences.shape[1]) == confidences.argmax(axis=1)[:, None]
    return np.where(first, confidences if fix == "top" else 1.0, 0.0)


def _fitted(making: Making, people: Labelled, seed: int) -> Any:
    shield = making.shield
    if shield.word == OWN and shield.make is not None:
        return shield.make(people)
    if shield.word == CURATOR:
        return _fit_privately(making, people)
    return fit_exactly(making.target, people, seed)


def _fit_privately(making: Making, people: Labelled) -> Any:
    from discreet.learn import LogisticRegression  # noqa: PLC0415 - scikit-learn is an extra

    price, classes = making.shield.price, list(range(people.classes))
    if making.private == "pairs":
        pairs = crossing(people.bounds, people.X.shape[1])
        private = LogisticRegression(epsilon=price, delta=making.delta, bounds=(0, 1), classes=classes)
        return Crossed(pairs, private.fit(pairs.features(people.X), people.y))
    private = LogisticRegression(epsilon=price, delta=making.delta, bounds=people.bounds, classes=classes)
    return private.fit(people.X, people.y)


def fit_exactly(target: Target, people: Labelled, seed: int, strength: float | None = None) -> Any:
    """Fit a model that has no defence; `strength` is the depth of a forest, the penalty of a network, else C.

    >>> from discreet.attacks.models.people import purchases
    >>> fit_exactly("forest", purchases(0, people=100), seed=0).get_params()["max_depth"] is None
    True
    """
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - an extra
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415

    if target == "forest":
        depth = None if strength is None else int(strength)
        return RandomForestClassifier(50, max_depth=depth, random_state=seed).fit(people.X, people.y)
    if target == "network":
        penalty = 1e-4 if strength is None else strength
        model: Any = MLPClassifier((64,), alpha=penalty, max_iter=60, learning_rate_init=0.01, random_state=seed)
    else:
        model = LogisticRegression(C=_MILD[target] if strength is None else strength, max_iter=200)
    pairs = crossing(people.bounds, people.X.shape[1]) if target == "pairs" else None
    with catch_warnings():
        simplefilter("ignore", ConvergenceWarning)  # a model that has not settled leaks as well
        if pairs is not None:
            return Crossed(pairs, model.fit(pairs.features(people.X), people.y))
        return model.fit(people.X, people.y)
