"""The membership inference game: draw members at random, train models, and turn scores into an outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.attack import AttackResult, Game
from discreet.attacks.data.labelled_data import LabelledData, rarity_within_class
from discreet.attacks.models.target_models import QueryService, model_name
from discreet.attacks.result import ACCURACY_ON_MEMBERS, ACCURACY_ON_NON_MEMBERS, MODEL
from discreet.attacks.scores import ScoreEvidence
from discreet.attacks.validation import require
from discreet.progress import track

MIN_PEOPLE = 80  # fewer people do not give models worth attacking


@dataclass(frozen=True)
class TrainedModels:
    """Trained models: `is_member` is who is in the training data of each, `services` answer queries."""

    is_member: np.ndarray  # models × people
    services: Sequence[QueryService]

    def confidences(self, rows: np.ndarray) -> np.ndarray:
        """Return the confidences of all models, models × rows × classes."""
        return np.array([service(rows) for service in self.services])

    def __getitem__(self, chosen: slice) -> "TrainedModels":
        """Return some of the models."""
        return TrainedModels(self.is_member[chosen], self.services[chosen])


def draw_members(people: int, models: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the members of each model independently with probability 1/2, models × people.

    With independent draws, membership is the addition or removal of one row, which is what epsilon covers. Halves of a
    fixed size would substitute a row, which allows up to twice the epsilon.
    """
    return rng.random((models, people)) < 0.5


def train_models(game: Game, people: LabelledData, count: int) -> TrainedModels:
    """Train models on random members; each is what the defence releases."""
    is_member = draw_members(len(people), count, game.rng)
    jobs = list(zip(is_member, game.rng.integers(2**31, size=count).tolist(), strict=True))
    return TrainedModels(
        is_member, [game.release(people.subset(chosen), seed) for chosen, seed in track(jobs, "models")]
    )


def check_people(people: LabelledData) -> None:
    """Raise if there are too few people or classes."""
    require(len(people) >= MIN_PEOPLE, f"data must have at least {MIN_PEOPLE} people, not {len(people)}")
    require(not (people.y == people.y[0]).all(), "data must have at least two classes")


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


def membership_result(
    game: Game, people: LabelledData, models: TrainedModels, confidences: np.ndarray, scores: np.ndarray
) -> AttackResult:
    """Return what membership scores of these people show, models × people."""
    is_member = models.is_member
    evidence = ScoreEvidence(scores[is_member], scores[~is_member])
    non_member_scores = np.sort(evidence.non_members)
    threshold = non_member_scores[non_member_scores.size - 1 - int(_FALSE_POSITIVE_RATE * non_member_scores.size)]
    return game.result(
        "of member/non-member pairs ranked correctly (AUC)",
        evidence,
        {
            "TPR at 1 % FPR": evidence.curve.tpr_at(0.01),
            "TPR at 0.1 % FPR": evidence.curve.tpr_at(0.001),
            MODEL: model_name(game),
            **accuracies(people, is_member, confidences),
            "people in each game": len(people),
            "models attacked": game.settings.targets,
            "shadow models": game.settings.shadows,
        },
        hit=evidence.members > threshold,
        rarity=np.broadcast_to(rarity_within_class(people), is_member.shape)[is_member],
        rarity_label="distance from their class",
        labels=member_labels(is_member),
    )


def member_labels(is_member: np.ndarray) -> list[str]:
    """Return the label of each member of each model, models × people."""
    return [f"person {person} in model {model}" for model, person in zip(*np.nonzero(is_member), strict=True)]


def accuracies(people: LabelledData, is_member: np.ndarray, confidences: np.ndarray) -> Mapping[str, Any]:
    """Return the accuracy of the models on members and on non-members."""
    is_right = confidences.argmax(axis=2) == people.y
    return {
        ACCURACY_ON_MEMBERS: float(is_right[is_member].mean()),
        ACCURACY_ON_NON_MEMBERS: float(is_right[~is_member].mean()),
    }
