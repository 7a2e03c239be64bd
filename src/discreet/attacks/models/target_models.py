"""The models under attack: how they are trained, with which defence, and what a query returns."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal
from warnings import catch_warnings, simplefilter

import numpy as np

from discreet.attacks.defences import CURATOR, EASY, OWN, Defence, DefenceChoice, parse_defence, promised_delta
from discreet.attacks.models.adapters import PairClassifier, checked_classifier, pair_encoder
from discreet.attacks.models.labelled_data import LabelledData
from discreet.kernel.numbers import Number

TargetKind = Literal["forest", "network", "logistic", "pairs"]
PrivateKind = Literal["logistic", "pairs"]
EasyFix = Literal["label", "rounded", "top"]
QueryService = Callable[[np.ndarray], np.ndarray]  # rows -> confidences, rows × classes

MODEL_NAMES: dict[TargetKind, str] = {
    "forest": "random forest",
    "network": "neural network",
    "logistic": "logistic regression",
    "pairs": "logistic regression on pairs of values",
}
TARGET_KINDS = tuple(MODEL_NAMES)
PRIVATE_KINDS: tuple[PrivateKind, ...] = ("logistic", "pairs")
DELTA = "1e-5"  # the curator's, unless another one is given
_WEAK_REGULARISATION = {"logistic": 100.0, "pairs": 30.0}  # default C: hardly any penalty
EASY_FIXES: tuple[EasyFix, ...] = ("label", "rounded", "top")


@dataclass(frozen=True)
class ModelSpec:
    """How a model is trained, and what a query returns.

    The private model is of the kind of the target; for a forest or a network, which have no private counterpart, it is
    of the kind `substitute`.
    """

    defence: Defence
    target: TargetKind = "forest"
    fix: EasyFix = "label"
    substitute: PrivateKind = "logistic"
    delta: Fraction = Fraction(0)  # claimed together with epsilon

    def __post_init__(self) -> None:
        for name, value, choices in (("target", self.target, TARGET_KINDS), ("fix", self.fix, EASY_FIXES)):
            if value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")

    @property
    def private_kind(self) -> PrivateKind:
        """The kind of the private model."""
        return next((kind for kind in PRIVATE_KINDS if kind == self.target), self.substitute)

    @property
    def model_name(self) -> str:
        """The name of the model under attack."""
        if self.defence.kind == OWN:
            return "the defence's own"
        return f"private {MODEL_NAMES[self.private_kind]}" if self.defence.kind == CURATOR else MODEL_NAMES[self.target]


def model_spec(  # noqa: PLR0913, PLR0917 - the settings that all attacks on models share, in their order
    defence: DefenceChoice,
    epsilon: Number | None,
    target: TargetKind,
    fix: EasyFix,
    delta: Number | None,
    substitute: PrivateKind = "logistic",
) -> ModelSpec:
    """Validate the settings of an attack on models.

    >>> model_spec("curator", 1, "forest", "label", None).model_name
    'private logistic regression'
    >>> model_spec("nothing", None, "pairs", "label", None).model_name
    'logistic regression on pairs of values'
    """
    parsed = parse_defence(defence, epsilon)
    return ModelSpec(parsed, target, fix, substitute, promised_delta(parsed, delta, DELTA))


def serve_model(spec: ModelSpec, people: LabelledData, seed: int) -> QueryService:
    """Train a model and return the function that answers the attacker's queries."""
    model = checked_classifier(_fit_model(spec, people, seed), people.classes)

    def answer(rows: np.ndarray) -> np.ndarray:
        confidences = np.zeros((len(rows), people.classes))  # 0 for classes that are not in the training data
        confidences[:, model.classes_] = model.predict_proba(rows)
        return reduce_confidences(confidences, spec.fix) if spec.defence.kind == EASY else confidences

    return answer


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


def _fit_model(spec: ModelSpec, people: LabelledData, seed: int) -> Any:
    defence = spec.defence
    if defence.kind == OWN and defence.user_function is not None:
        return defence.user_function(people)
    if defence.kind == CURATOR:
        return _fit_privately(spec, people)
    return fit_non_private(spec.target, people, seed)


def _fit_privately(spec: ModelSpec, people: LabelledData) -> Any:
    from discreet.learn import LogisticRegression  # noqa: PLC0415 - scikit-learn is an extra

    epsilon, classes = spec.defence.curator_epsilon, list(range(people.classes))
    if spec.private_kind == "pairs":
        encoder = pair_encoder(people.bounds, people.X.shape[1])
        private = LogisticRegression(epsilon=epsilon, delta=spec.delta, bounds=(0, 1), classes=classes)
        return PairClassifier(encoder, private.fit(encoder.encode(people.X), people.y))
    private = LogisticRegression(epsilon=epsilon, delta=spec.delta, bounds=people.bounds, classes=classes)
    return private.fit(people.X, people.y)


def fit_non_private(target: TargetKind, people: LabelledData, seed: int, strength: float | None = None) -> Any:
    """Fit a non-private model; `strength` is the depth of a forest, the penalty of a network, or C.

    >>> from discreet.attacks.models.labelled_data import simulate_purchases
    >>> fit_non_private("forest", simulate_purchases(0, people=100), seed=0).get_params()["max_depth"] is None
    True
    """
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - an extra
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped] # noqa: PLC0415 - of scikit-learn

    if target == "forest":
        depth = None if strength is None else int(strength)
        return RandomForestClassifier(50, max_depth=depth, random_state=seed).fit(people.X, people.y)
    if target == "network":
        penalty = 1e-4 if strength is None else strength
        model: Any = MLPClassifier((64,), alpha=penalty, max_iter=60, learning_rate_init=0.01, random_state=seed)
    else:
        model = LogisticRegression(C=_WEAK_REGULARISATION[target] if strength is None else strength, max_iter=200)
    encoder = pair_encoder(people.bounds, people.X.shape[1]) if target == "pairs" else None
    with catch_warnings(), threadpool_limits(1, "blas"):  # the matrices are too small for threads
        simplefilter("ignore", ConvergenceWarning)  # a model that has not converged leaks as well
        if encoder is not None:
            return PairClassifier(encoder, model.fit(encoder.encode(people.X), people.y))
        return model.fit(people.X, people.y)
