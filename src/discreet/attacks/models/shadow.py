"""Who was in a model's data, told by a model that learned it from models of the attacker's own."""

from typing import Any, Literal
from warnings import catch_warnings, simplefilter

import numpy as np

from discreet.attacks.defences import DefenceChoice, parse_defence, promised_delta
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
from discreet.attacks.models.target_models import EasyFix, ModelSpec, PrivateKind, TargetKind
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
    """Tell members of a model's data from equal strangers with an oracle that was trained on shadow models.

    `data` is a `LabelledData` record of people. Coins choose members for each of so many `targets` from one half of them;
    the other half is whom the attacker knows. Of these people the attacker makes `shadow_models`, models of the same kind,
    and trains the `kind` to tell from a model's confidences who was in its data (Shokri et al. 2017).

    Against "nothing" the service tells all confidences of an exact model, the `target`; against "easy" it tells what
    `fix` leaves of them (the label only, one digit, or the highest one); behind "curator" is a logistic regression
    that is private at epsilon and `delta` (1e-5 unless given). A function of yours gets the `LabelledData` members and
    returns a fitted model with `predict_proba` and `classes_`.

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
    parsed_defence = parse_defence(defence, epsilon)
    private_kind: PrivateKind = "pairs" if target == "pairs" else "logistic"
    spec = ModelSpec(parsed_defence, target, fix, private_kind, promised_delta(parsed_defence, delta, "1e-5"))
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
    """Return how strongly the oracle takes each person for a member of each model, from what the models told."""
    return np.array([attack_model.predict_proba(attack_features(each, y))[:, 1] for each in target_confidences])


def train_attack_model(kind: AttackModelKind, shadow_models: TrainedModels, people: LabelledData, seed: int) -> Any:
    """Train an oracle of membership on models of which the attacker knows who was in their data."""
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
        simplefilter("ignore", ConvergenceWarning)  # a little unsettled is good enough for an attacker
        return make_pipeline(StandardScaler(), classifier).fit(training_features, shadow_models.is_member.ravel())


def attack_features(confidences: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return what an oracle sees of each person: confidence in their own class, all in order of size, and the class.

    >>> attack_features(np.array([[0.2, 0.8]]), np.array([0])).tolist()
    [[0.2, 0.8, 0.2, 1.0, 0.0]]
    """
    return np.column_stack(
        [own_confidence(confidences, y), np.sort(confidences, axis=1)[:, ::-1], np.eye(confidences.shape[1])[y]]
    )


ATTACK = Attack(
    run=shadow,
    docs_page="models",
    summary="Tells who was in a model's data with a network that learned it from models of the attacker's own.",
    without_defence="all confidences of an overfitted random forest",
    with_easy_fix="the predicted label only",
    with_curator='a private logistic regression; an exact one leaks as well: target="logistic"',
    built_in_data="2,000 generated customers of ten kinds, with 60 products bought or not",
    data_files=("location30_mia.parquet",),
    load=read_locations,
)
