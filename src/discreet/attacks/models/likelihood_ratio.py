"""Membership inference by the likelihood ratio of a model's confidence, with and without the person in its data."""

from typing import Literal, get_args

import numpy as np

from discreet.attacks.attack import Attack, AttackResult, DefenceChoice, Game, Number, choice
from discreet.attacks.data.labelled_data import LABELLED, LabelledData
from discreet.attacks.models.adapters import EasyFix
from discreet.attacks.models.difficulty import fit_levels, membership_log_odds, stabilise_variance, sum_confidences
from discreet.attacks.models.membership_inference import (
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

Shadowing = Literal["online", "offline"]


def likelihood_ratio(  # noqa: PLR0913 - each is a setting of the game
    data: LabelledData | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    target: TargetKind = "forest",
    fix: EasyFix = "rounded",
    delta: Number | None = None,
    shadows: int = 8,
    targets: int = 3,
    shadowing: Shadowing = "online",
) -> AttackResult:
    """Infer membership in a model's training data from its confidence in each person's own class.

    `data` is `LabelledData`; the members of each of the `targets` models under attack are drawn independently with
    probability 1/2. The attacker knows everybody's row and trains `shadows` models of the same kind: "online" on the
    same people, each of whom is in about half of the shadow models, or "offline" on other people only. The
    distributions of confidences for members and non-members are fitted for levels of difficulty (after Carlini et al.
    2022).

    The model under attack returns all confidences of a non-private model of kind `target` ("nothing"), what `fix`
    leaves of them ("easy": rounded to one digit, only the highest, or only the label), or those of a private model at
    epsilon and `delta` ("curator"; delta is 1e-5 by default): of the same kind, or a logistic regression if there is no
    private model of that kind. A function as defence gets the members as
    `LabelledData` and returns a fitted model with `predict_proba` and `classes_`.

    >>> from discreet import attacks
    >>> result = attacks.likelihood_ratio(random_state=0)
    >>> result.success > 0.95, result.baseline
    (True, 0.5)
    """
    return ATTACK.run(
        data,
        defence,
        epsilon,
        random_state,
        target=target,
        fix=fix,
        substitute="logistic",
        delta=delta,
        shadows=shadows,
        targets=targets,
        shadowing=shadowing,
    )


def _play(game: Game) -> AttackResult:
    people, is_online = game.data, game.settings.shadowing == "online"
    check_people(people)
    halves = [np.arange(len(people))] * 2 if is_online else split_in_halves(people, game.rng)
    candidates, others = (people.subset(half) for half in halves)
    target_models = train_models(game, candidates, game.settings.targets)
    shadow_models = train_models(game, others, game.settings.shadows)
    target_confidences, is_member = target_models.confidences(candidates.X), shadow_models.is_member
    shadow_confidences = own_confidence(shadow_models.confidences(others.X), others.y)
    if not is_online:  # candidates come first; no shadow model was trained on them
        of_candidates = own_confidence(shadow_models.confidences(candidates.X), candidates.y)
        shadow_confidences = np.hstack([of_candidates, shadow_confidences])
        is_member = np.hstack([np.zeros_like(of_candidates, bool), is_member])
    scores = membership_odds(shadow_confidences, is_member, own_confidence(target_confidences, candidates.y))
    return membership_result(game, candidates, target_models, target_confidences, scores)


def membership_odds(
    shadow_confidences: np.ndarray, is_member: np.ndarray, target_confidences: np.ndarray
) -> np.ndarray:
    """Return the log-odds of membership, targets × people, from the confidences of the models under attack.

    `shadow_confidences` and `is_member` describe the shadow models, models × people; people who are not attacked come
    last.
    """
    scores, candidate_count = stabilise_variance(shadow_confidences), target_confidences.shape[1]
    levels = fit_levels(scores, is_member)
    member_sums, non_member_sums = (
        sum_confidences(scores[:, :candidate_count], which[:, :candidate_count]) for which in (is_member, ~is_member)
    )
    target_scores = map(stabilise_variance, target_confidences)
    return np.array([membership_log_odds(levels, member_sums, non_member_sums, each) for each in target_scores])


ATTACK = Attack(
    function=likelihood_ratio,
    docs_page="models",
    summary="Infers membership in training data by comparing confidences with shadow models trained with and without "
    "the person.",
    data=LABELLED,
    releases=model_releases(
        (
            "all confidences of a logistic regression with hardly any penalty",
            "its confidences rounded to one digit",
            "all confidences of a private logistic regression",
        )
    ),
    own=user_service,
    play=_play,
    settings={"shadowing": choice(get_args(Shadowing)), **MODEL_SETTINGS},
    default_delta=DELTA,
    comparison={"target": "logistic"},
)
