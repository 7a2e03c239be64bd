"""Membership inference by the likelihood ratio of a model's confidence, with and without the person in its data."""

from typing import Literal

import numpy as np

from discreet.attacks.defences import DefenceChoice
from discreet.attacks.models.difficulty import fit_levels, membership_log_odds, stabilise_variance, sum_confidences
from discreet.attacks.models.labelled_data import LabelledData, read_locations, simulate_purchases
from discreet.attacks.models.membership_inference import (
    MembershipGame,
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
    rng = random_generator(random_state)
    people = simulate_purchases(int(rng.integers(2**31)), people=2000) if data is None else data
    check_game(people, targets, shadows)
    spec = model_spec(defence, epsilon, target, fix, delta)
    candidates, others = (people.subset(places) for places in _candidates_and_others(people, shadowing, rng))
    target_models = train_models(spec, candidates, draw_members(len(candidates), targets, rng), rng)
    shadow_models = train_models(spec, others, draw_members(len(others), shadows, rng), rng)
    target_confidences = target_models.confidences(candidates.X)
    shadow_confidences, is_member = (
        own_confidence(shadow_models.confidences(others.X), others.y),
        shadow_models.is_member,
    )
    if shadowing == "offline":  # candidates come first; no shadow model was trained on them
        shadow_confidences = np.hstack(
            [own_confidence(shadow_models.confidences(candidates.X), candidates.y), shadow_confidences]
        )
        is_member = np.hstack([np.zeros((shadows, len(candidates)), bool), is_member])
    scores = membership_odds(shadow_confidences, is_member, own_confidence(target_confidences, candidates.y))
    details = {"people in each game": len(candidates), "models attacked": targets, "shadow models": shadows}
    return membership_result(
        "likelihood_ratio",
        spec,
        MembershipGame(candidates, target_models.is_member, target_confidences),
        scores,
        details,
    )


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
    return np.array(
        [
            membership_log_odds(levels, member_sums, non_member_sums, stabilise_variance(confidences))
            for confidences in target_confidences
        ]
    )


def _candidates_and_others(
    people: LabelledData, shadowing: Shadowing, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    if shadowing == "online":
        return np.arange(len(people)), np.arange(len(people))
    if shadowing == "offline":
        return split_in_halves(people, rng)
    raise ValueError(f'shadowing must be "online" or "offline", not {shadowing!r}')


ATTACK = Attack(
    run=likelihood_ratio,
    docs_page="models",
    summary="Infers membership in training data by comparing confidences with shadow models trained with and without "
    "the person.",
    without_defence="all confidences of a logistic regression with hardly any penalty",
    with_easy_fix="its confidences rounded to one digit",
    with_curator="all confidences of a private logistic regression",
    comparison={"target": "logistic"},
    built_in_data="2,000 simulated customers of ten types, with 60 products bought or not",
    data_files=("location30_mia.parquet",),
    load=read_locations,
)
