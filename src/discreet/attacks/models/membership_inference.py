"""The membership inference game: draw members at random, train models, and turn scores into a result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.models.labelled_data import LabelledData, rarity_within_class
from discreet.attacks.models.target_models import ModelSpec, QueryService, serve_model
from discreet.attacks.progress import track
from discreet.attacks.result import (
    ACCURACY_ON_MEMBERS,
    ACCURACY_ON_NON_MEMBERS,
    MODEL,
    AttackResult,
    ExposureByRarity,
    exposure_by_rarity,
)
from discreet.attacks.scores import ScoreEvidence
from discreet.kernel.numbers import as_integer

MIN_PEOPLE = 80  # fewer people do not give models worth attacking


@dataclass(frozen=True)
class TrainedModels:
    """Trained models: `is_member` is who is in the training data of each, `services` answer queries."""

    is_member: np.ndarray  # models × people
    services: Sequence[QueryService]

    def confidences(self, rows: np.ndarray) -> np.ndarray:
        """Return the confidences of all models, models × rows × classes."""
        return np.array([service(rows) for service in self.services])

    def last(self) -> "TrainedModels":
        """Return the last model."""
        return TrainedModels(self.is_member[-1:], self.services[-1:])

    def all_but_last(self) -> "TrainedModels":
        """Return all models but the last."""
        return TrainedModels(self.is_member[:-1], self.services[:-1])


def draw_members(people: int, models: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the members of each model independently with probability 1/2, models × people.

    With independent draws, membership is the addition or removal of one row, which is what epsilon covers. Halves of a
    fixed size would substitute a row, which allows up to twice the epsilon.
    """
    return rng.random((models, people)) < 0.5


def train_models(
    spec: ModelSpec, people: LabelledData, is_member: np.ndarray, rng: np.random.Generator
) -> TrainedModels:
    """Train one model on the members of each row of `is_member`."""
    seeds = rng.integers(2**31, size=len(is_member))
    jobs = list(zip(is_member, seeds.tolist(), strict=True))
    return TrainedModels(
        is_member, [serve_model(spec, people.subset(chosen), seed) for chosen, seed in track(jobs, "models")]
    )


def check_game(people: LabelledData, targets: int, shadows: int, min_people: int = MIN_PEOPLE) -> None:
    """Raise if there are too few people, models under attack, or shadow models."""
    as_integer(targets, "targets", 1)
    as_integer(shadows, "shadows", 2)
    if not isinstance(people, LabelledData):
        raise TypeError(f"data must be LabelledData(X, y), not {type(people).__name__}")
    if len(people) < min_people:
        raise ValueError(f"data must have at least {min_people} people, not {len(people)}")
    if (people.y == people.y[0]).all():
        raise ValueError("data must have at least two classes")


def split_in_halves(people: LabelledData, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of candidates for membership, and of as many others whom the attacker knows."""
    order = rng.permutation(len(people))
    half = len(people) // 2
    return np.sort(order[:half]), np.sort(order[half : 2 * half])


def own_confidence(confidences: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the confidence in each row's own class; the last two axes of `confidences` are rows × classes.

    >>> own_confidence(np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([1, 0])).tolist()
    [0.8, 0.5]
    """
    return np.asarray(confidences[..., np.arange(len(y)), y])


_FALSE_POSITIVE_RATE = 0.01  # at which a member counts as found in the exposure by rarity


@dataclass(frozen=True)
class MembershipGame:
    """The candidates, the members of each model under attack, and the models' confidences."""

    people: LabelledData
    is_member: np.ndarray  # models × people
    confidences: np.ndarray  # models × people × classes


def membership_result(
    name: str, spec: ModelSpec, game: MembershipGame, scores: np.ndarray, details: Mapping[str, Any]
) -> AttackResult:
    """Return the result of membership scores, models × people."""
    is_member = game.is_member
    evidence = ScoreEvidence(scores[is_member], scores[~is_member])
    curve = evidence.curve
    all_details = {
        "TPR at 1 % FPR": curve.tpr_at(0.01),
        "TPR at 0.1 % FPR": curve.tpr_at(0.001),
        MODEL: spec.model_name,
        **accuracies(game),
        **details,
    }
    return AttackResult(
        attack=name,
        against=spec.defence,
        metric="of member/non-member pairs ranked correctly (AUC)",
        evidence=evidence,
        details=all_details,
        exposure=_member_exposure(game.people, is_member, scores),
        delta=float(spec.delta),
    )


def accuracies(game: MembershipGame) -> dict[str, float]:
    """Return the accuracy of the models on members and on non-members."""
    is_right = game.confidences.argmax(axis=2) == game.people.y
    return {
        ACCURACY_ON_MEMBERS: float(is_right[game.is_member].mean()),
        ACCURACY_ON_NON_MEMBERS: float(is_right[~game.is_member].mean()),
    }


def _member_exposure(people: LabelledData, is_member: np.ndarray, scores: np.ndarray) -> ExposureByRarity:
    """Return which members are found at a false positive rate of 1 %, by rarity."""
    non_member_scores = np.sort(scores[~is_member])
    threshold = non_member_scores[non_member_scores.size - 1 - int(_FALSE_POSITIVE_RATE * non_member_scores.size)]
    rarity = np.broadcast_to(rarity_within_class(people), is_member.shape)[is_member]
    labels = [f"person {person} in model {model}" for model, person in zip(*np.nonzero(is_member), strict=True)]
    return exposure_by_rarity(
        rarity, scores[is_member] > threshold, labels=labels, rarity_label="distance from their class"
    )
