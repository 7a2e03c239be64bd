"""Membership inference by an attack model that is trained on shadow models (Shokri et al. 2017)."""

from typing import Any, Literal, get_args
from warnings import catch_warnings, simplefilter

import numpy as np

from discreet.attacks.attack import Attack, AttackResult, DefenceChoice, Game, Number, choice
from discreet.attacks.data.labelled_data import LABELLED, LabelledData
from discreet.attacks.models.adapters import EasyFix
from discreet.attacks.models.membership_inference import (
    TrainedModels,
    check_people,
    membership_result,
    own_confidence,
    split_in_halves,
    train_models,
)
from discreet.attacks.models.target_models import (
    DELTA,
    MODEL_SETTINGS,
    TargetKind,
    model_releases,
    user_service,
)

AttackModelKind = Literal["network", "forest", "logistic"]


def shadow(  # noqa: PLR0913 - each is a setting of the game
    data: LabelledData | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    attacker: AttackModelKind = "network",
    target: TargetKind = "forest",
    fix: EasyFix = "label",
    delta: Number | None = None,
    shadows: int = 4,
    targets: int = 3,
) -> AttackResult:
    """Infer membership in a model's training data with an attack model that is trained on shadow models.

    `data` is `LabelledData`. The members of each of the `targets` models are drawn at random from one half of the
    people; the attacker knows the other half, trains `shadows` models of the same kind on it, and trains the `attacker`
    model to infer membership from a model's confidences (Shokri et al. 2017).

    The model under attack returns all confidences of a non-private model of kind `target` ("nothing"), what `fix`
    leaves of them ("easy": only the label, rounded to one digit, or only the highest), or those of a private model at
    epsilon and `delta` ("curator"; delta is 1e-5 by default): of the same kind, or a logistic regression if there is no
    private model of that kind. A function as defence gets the members as
    `LabelledData` and returns a fitted model with `predict_proba` and `classes_`.

    >>> from discreet import attacks
    >>> result = attacks.shadow(random_state=0)
    >>> result.success > 0.85, result.baseline
    (True, 0.5)
    """
    return ATTACK.run(
        data,
        defence,
        epsilon,
        random_state,
        attacker=attacker,
        target=target,
        fix=fix,
        substitute="logistic",
        delta=delta,
        shadows=shadows,
        targets=targets,
    )


def _play(game: Game) -> AttackResult:
    check_people(game.data)
    candidates, others = (game.data.subset(half) for half in split_in_halves(game.data, game.rng))
    target_models = train_models(game, candidates, game.settings.targets)
    shadow_models = train_models(game, others, game.settings.shadows)
    attack_model = train_attack_model(game.settings.attacker, shadow_models, others, int(game.rng.integers(2**31)))
    confidences = target_models.confidences(candidates.X)
    features = (attack_features(each, candidates.y) for each in confidences)
    scores = np.array([attack_model.predict_proba(each)[:, 1] for each in features])
    return membership_result(game, candidates, target_models, confidences, scores)


def train_attack_model(kind: AttackModelKind, shadow_models: TrainedModels, people: LabelledData, seed: int) -> Any:
    """Train the attack model on shadow models, whose members the attacker knows."""
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - an extra
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    classifier = {
        "network": MLPClassifier((32,), alpha=1e-3, max_iter=40, learning_rate_init=0.01, random_state=seed),
        "forest": RandomForestClassifier(100, min_samples_leaf=20, random_state=seed),
        "logistic": LogisticRegression(max_iter=200),
    }[kind]
    training_features = np.concatenate(
        [attack_features(each, people.y) for each in shadow_models.confidences(people.X)]
    )
    with catch_warnings():
        simplefilter("ignore", ConvergenceWarning)  # full convergence is not needed
        return make_pipeline(StandardScaler(), classifier).fit(training_features, shadow_models.is_member.ravel())


def attack_features(confidences: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the features of the attack model: confidence in the true class, all confidences sorted, and the class.

    >>> attack_features(np.array([[0.2, 0.8]]), np.array([0])).tolist()
    [[0.2, 0.8, 0.2, 1.0, 0.0]]
    """
    return np.column_stack(
        [own_confidence(confidences, y), np.sort(confidences, axis=1)[:, ::-1], np.eye(confidences.shape[1])[y]]
    )


ATTACK = Attack(
    function=shadow,
    docs_page="models",
    summary="Infers membership in training data with a network that was trained on shadow models.",
    data=LABELLED,
    releases=model_releases(
        (
            "all confidences of a logistic regression with hardly any penalty",
            "only the label that it predicts",
            "all confidences of a private logistic regression",
        )
    ),
    own=user_service,
    play=_play,
    settings={"attacker": choice(get_args(AttackModelKind)), **MODEL_SETTINGS},
    default_delta=DELTA,
    comparison={"target": "logistic"},
)
