"""The models under attack: how they are trained, with which defence, and what a query returns."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args
from warnings import catch_warnings, simplefilter

import numpy as np

import discreet as dc
from discreet.attacks.attack import CURATOR, OWN, DefenceRelease, Game, choice, releases_in_order, whole
from discreet.attacks.data.labelled_data import LabelledData
from discreet.attacks.models.adapters import EasyFix, checked_classifier, fit_on_pairs, reduce_confidences

TargetKind = Literal["forest", "network", "logistic", "pairs", "boosting"]
QueryService = Callable[[np.ndarray], np.ndarray]  # rows -> confidences, rows × classes

MODEL_NAMES: dict[TargetKind, str] = {
    "forest": "random forest",
    "network": "neural network",
    "logistic": "logistic regression",
    "pairs": "logistic regression on pairs of values",
    "boosting": "additive model by boosting",
}
_PRIVATE_KINDS: tuple[TargetKind, ...] = ("logistic", "pairs", "boosting")
_WEAK_REGULARISATION = {"logistic": 100.0, "pairs": 30.0}  # default C: hardly any penalty
_BOOSTING_ROUNDS = 300  # enough to memorise
DELTA = "1e-5"  # the curator's, unless another one is given
MODEL_SETTINGS = {  # of all attacks on models; a model without a private counterpart has the substitute for one
    "target": choice(MODEL_NAMES),
    "fix": choice(get_args(EasyFix)),
    "substitute": choice(_PRIVATE_KINDS),
    "shadows": whole(2),
    "targets": whole(1),
}


def model_releases(descriptions: Sequence[str]) -> dict[str, DefenceRelease]:
    """Return what attacks on models face: a service that answers queries with the confidences of a trained model."""
    makers: tuple[Callable[..., QueryService], ...] = (
        lambda game, people, seed: _serve(fit_non_private(game.settings.target, people, seed), people),
        _serve_reduced,
        lambda game, people, _: _serve(_fit_privately(game, people), people),
    )
    return releases_in_order(descriptions, makers)


def user_service(game: Game, people: LabelledData, _: int) -> QueryService:
    """Return a service of the model that the user's defence trains."""
    return _serve(game.ask_user(people), people)


def model_name(game: Game) -> str:
    """Return the name of the model under attack."""
    if game.defence.kind == OWN:
        return "the defence's own"
    is_private = game.defence.kind == CURATOR
    return f"private {MODEL_NAMES[_private_kind(game)]}" if is_private else MODEL_NAMES[game.settings.target]


def _private_kind(game: Game) -> TargetKind:
    kind: TargetKind = game.settings.target
    return kind if kind in _PRIVATE_KINDS else game.settings.substitute


def _serve(fitted: Any, people: LabelledData) -> QueryService:
    model = checked_classifier(fitted, people.classes)

    def answer(rows: np.ndarray) -> np.ndarray:
        confidences = np.zeros((len(rows), people.classes))  # 0 for classes that are not in the training data
        confidences[:, model.classes_] = model.predict_proba(rows)
        return confidences

    return answer


def _serve_reduced(game: Game, people: LabelledData, seed: int) -> QueryService:
    service = _serve(fit_non_private(game.settings.target, people, seed), people)
    return lambda rows: reduce_confidences(service(rows), game.settings.fix)


def _fit_privately(game: Game, people: LabelledData) -> Any:
    kind = _private_kind(game)
    if kind == "boosting":
        _check_two_classes(people)
        boosting = dc.learn.ExplainableBoostingClassifier(
            epsilon=game.epsilon, delta=game.delta, bounds=people.bounds, classes=[0, 1]
        )
        return boosting.fit(people.X, people.y)
    is_on_pairs = kind == "pairs"
    bounds, classes = (0, 1) if is_on_pairs else people.bounds, list(range(people.classes))
    model = dc.learn.LogisticRegression(epsilon=game.epsilon, delta=game.delta, bounds=bounds, classes=classes)
    return fit_on_pairs(model, people.X, people.y, people.bounds) if is_on_pairs else model.fit(people.X, people.y)


def _check_two_classes(people: LabelledData) -> None:
    if people.classes != 2:
        raise ValueError(f'data has {people.classes} classes, and target="boosting" needs two')


def fit_non_private(target: TargetKind, people: LabelledData, seed: int, strength: float | None = None) -> Any:
    """Fit a non-private model; `strength` is the depth of a forest, the penalty of a network, C, or boosting rounds.

    >>> from discreet.attacks.data.labelled_data import simulate_purchases
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
    if target == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415

        _check_two_classes(people)
        rounds = _BOOSTING_ROUNDS if strength is None else int(strength)
        settings = {"interaction_cst": "no_interactions", "early_stopping": False, "min_samples_leaf": 5}
        with threadpool_limits(1):
            return HistGradientBoostingClassifier(max_iter=rounds, random_state=seed, **settings).fit(
                people.X, people.y
            )
    if target == "network":
        penalty = 1e-4 if strength is None else strength
        model: Any = MLPClassifier((64,), alpha=penalty, max_iter=60, learning_rate_init=0.01, random_state=seed)
    else:
        model = LogisticRegression(C=_WEAK_REGULARISATION[target] if strength is None else strength, max_iter=200)
    with catch_warnings(), threadpool_limits(1, "blas"):  # the matrices are too small for threads
        simplefilter("ignore", ConvergenceWarning)  # a model that has not converged leaks as well
        is_on_pairs = target == "pairs"
        return fit_on_pairs(model, people.X, people.y, people.bounds) if is_on_pairs else model.fit(people.X, people.y)
