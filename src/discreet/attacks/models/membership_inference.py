"""The membership inference game: coins choose members, models are trained, scores become a result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.models.labelled_data import LabelledData, rarity_within_class
from discreet.attacks.models.target_models import ModelSpec, QueryService, serve_model
from discreet.attacks.progress import track
from discreet.attacks.result import AttackResult, ExposureByRarity, exposure_by_rarity
from discreet.attacks.scores import ScoreEvidence
from discreet.kernel.numbers import as_integer

MIN_PEOPLE = 80  # people; of fewer there are no models worth attacking


@dataclass(frozen=True)
class TrainedModels:
    """Models that were made of people: `is_member` says who is in each of them, and `services` what outsiders ask."""

    is_member: np.ndarray  # models × people
    services: Sequence[QueryService]

    def confidences(self, rows: np.ndarray) -> np.ndarray:
        """Return every model's confidence in every class for rows: models × rows × classes."""
        return np.array([service(rows) for service in self.services])

    def last(self) -> "TrainedModels":
        """Return the last of the models."""
        return TrainedModels(self.is_member[-1:], self.services[-1:])

    def all_but_last(self) -> "TrainedModels":
        """Return all models but the last."""
        return TrainedModels(self.is_member[:-1], self.services[:-1])


def draw_members(people: int, models: int, rng: np.random.Generator) -> np.ndarray:
    """Return who is in each model: a fair coin for each person and model, models × people.

    Coins that are flipped one by one make a person's being in or out the removal of one row, which is what epsilon is
    promised for. Halves of a fixed size would replace a row, which may show twice the epsilon.
    """
    return rng.random((models, people)) < 0.5


def train_models(
    spec: ModelSpec, people: LabelledData, is_member: np.ndarray, rng: np.random.Generator
) -> TrainedModels:
    """Make a model of the people of each row of `is_member`."""
    seeds = rng.integers(2**31, size=len(is_member))
    jobs = list(zip(is_member, seeds.tolist(), strict=True))
    return TrainedModels(
        is_member, [serve_model(spec, people.subset(chosen), seed) for chosen, seed in track(jobs, "models")]
    )


def check_game(people: LabelledData, targets: int, shadows: int, min_people: int = MIN_PEOPLE) -> None:
    """Stop if there are too few people, models to attack, or models to learn from."""
    as_integer(targets, "targets", 1)
    as_integer(shadows, "shadows", 2)
    if not isinstance(people, LabelledData):
        raise TypeError(f"data must be a Labelled record of X and y, not {type(people).__name__}")
    if len(people) < min_people:
        raise ValueError(
            f"data: {len(people)} people are too few for models worth attacking; give at least {min_people}"
        )
    if (people.y == people.y[0]).all():
        raise ValueError("data: everybody is of one class; a model needs two or more to tell apart")


def split_in_halves(people: LabelledData, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of people who may be in the attacked models, and of as many others whom the attacker knows."""
    order = rng.permutation(len(people))
    half = len(people) // 2
    return np.sort(order[:half]), np.sort(order[half : 2 * half])


def own_confidence(confidences: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the confidence in each row's own class; the last two axes of what was told are rows × classes.

    >>> own_confidence(np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([1, 0])).tolist()
    [0.8, 0.5]
    """
    return np.asarray(confidences[..., np.arange(len(y)), y])


ACCURACY_ON_MEMBERS, ACCURACY_ON_NON_MEMBERS = "the models are right about members", "and about strangers"
_FALSE_POSITIVE_RATE = 0.01  # the share of strangers that may be taken for members where a person counts as hit


@dataclass(frozen=True)
class MembershipGame:
    """The people who may be in the attacked models, who is in which, and what the models told of all of them."""

    people: LabelledData
    is_member: np.ndarray  # models × people
    confidences: np.ndarray  # models × people × classes


def membership_result(
    name: str, spec: ModelSpec, game: MembershipGame, scores: np.ndarray, details: Mapping[str, Any]
) -> AttackResult:
    """Compare scores with who was in each model, both models × people."""
    is_member = game.is_member
    evidence = ScoreEvidence(scores[is_member], scores[~is_member])
    curve = evidence.curve
    all_details = {
        "members found at 1% of strangers": curve.tpr_at(0.01),
        "members found at 0.1% of strangers": curve.tpr_at(0.001),
        **accuracies(game),
        **details,
    }
    return AttackResult(
        attack=name,
        against=spec.defence,
        metric="of pairs of a member and a stranger were ranked right (AUC)",
        evidence=evidence,
        details=all_details,
        exposure=_member_exposure(game.people, is_member, scores),
        delta=float(spec.delta),
    )


def accuracies(game: MembershipGame) -> dict[str, float]:
    """Return how often models are right about people whom they learned from, and about others."""
    is_right = game.confidences.argmax(axis=2) == game.people.y
    return {
        ACCURACY_ON_MEMBERS: float(is_right[game.is_member].mean()),
        ACCURACY_ON_NON_MEMBERS: float(is_right[~game.is_member].mean()),
    }


def _member_exposure(people: LabelledData, is_member: np.ndarray, scores: np.ndarray) -> ExposureByRarity:
    """Tell which members stand out from all but one in a hundred strangers."""
    non_member_scores = np.sort(scores[~is_member])
    threshold = non_member_scores[non_member_scores.size - 1 - int(_FALSE_POSITIVE_RATE * non_member_scores.size)]
    rarity = np.broadcast_to(rarity_within_class(people), is_member.shape)[is_member]
    labels = [f"person {place} in model {model}" for model, place in zip(*np.nonzero(is_member), strict=True)]
    return exposure_by_rarity(
        rarity, scores[is_member] > threshold, labels=labels, rarity_label="distance from their class"
    )
