"""Membership inference by an attack model that is trained on shadow models (Shokri et al. 2017)."""

from typing import Any, Literal
from warnings import catch_warnings, simplefilter

import numpy as np

from discreet.attacks.defences import DefenceChoice
from discreet.attacks.models.labelled_data import LabelledData, read_locations, simulate_purchases
from discreet.attacks.models.membership_inference import (
    MembershipGame,
    TrainedModels,
    check_game,
    draw_members,
    membership_result,
    own_confidence,
    split_in_halves,
    train_models,
)
from discreet.attacks.models.target_models import EasyFix, TargetKind, model_spec
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number

AttackModelKind = Literal["network", "forest", "logistic"]
ATTACK_MODEL_KINDS: tuple[AttackModelKind, ...] = ("network", "forest", "logistic")


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
    if attacker not in ATTACK_MODEL_KINDS:
        raise ValueError(f"attacker must be one of {', '.join(ATTACK_MODEL_KINDS)}, not {attacker!r}")
    rng = random_generator(random_state)
    people = simulate_purchases(int(rng.integers(2**31)), people=2000) if data is None else data
    check_game(people, targets, shadows)
    spec = model_spec(defence, epsilon, target, fix, delta)
    candidates, others = (people.subset(half) for half in split_in_halves(people, rng))
    target_models = train_models(spec, candidates, draw_members(len(candidates), targets, rng), rng)
    shadow_models = train_models(spec, others, draw_members(len(others), shadows, rng), rng)
    attack_model = train_attack_model(attacker, shadow_models, others, int(rng.integers(2**31)))
    target_confidences = target_models.confidences(candidates.X)
    scores = attack_scores(attack_model, target_confidences, candidates.y)
    details = {"people in each game": len(candidates), "models attacked": targets, "shadow models": shadows}
    return membership_result(
        "shadow", spec, MembershipGame(candidates, target_models.is_member, target_confidences), scores, details
    )


def attack_scores(attack_model: Any, target_confidences: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the membership scores of the attack model, targets × people."""
    return np.array([attack_model.predict_proba(attack_features(each, y))[:, 1] for each in target_confidences])


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
    run=shadow,
    docs_page="models",
    summary="Infers membership in training data with a network that was trained on shadow models.",
    without_defence="all confidences of a logistic regression with hardly any penalty",
    with_easy_fix="only the label that it predicts",
    with_curator="all confidences of a private logistic regression",
    comparison={"target": "logistic"},
    built_in_data="2,000 simulated customers of ten types, with 60 products bought or not",
    data_files=("location30_mia.parquet",),
    load=read_locations,
)
