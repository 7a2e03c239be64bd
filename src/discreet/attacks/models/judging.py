"""What scores of membership achieved, as a result: members against equal strangers, pooled over the attacked models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.models.people import Labelled, rarity
from discreet.attacks.models.targets import Making
from discreet.attacks.rarity import Exposure, exposure
from discreet.attacks.result import AttackResult
from discreet.attacks.scores import Scores

RIGHT_INSIDE, RIGHT_OUTSIDE = "the models are right about members", "and about strangers"
_FALSE = 0.01  # the share of strangers that may be taken for members where a person counts as hit


@dataclass(frozen=True)
class Game:
    """The people who may be in the attacked models, who is in which, and what the models told of all of them."""

    people: Labelled
    inside: np.ndarray  # models × people
    told: np.ndarray  # models × people × classes


def judge(name: str, making: Making, game: Game, scores: np.ndarray, details: Mapping[str, Any]) -> AttackResult:
    """Compare scores with who was in each model, both models × people."""
    inside = game.inside
    evidence = Scores(scores[inside], scores[~inside])
    curve = evidence.curve
    numbers = {
        "members found at 1% of strangers": curve.found_at(0.01),
        "members found at 0.1% of strangers": curve.found_at(0.001),
        **accuracies(game),
        **details,
    }
    return AttackResult(
        attack=name,
        shield=making.shield,
        metric="of pairs of a member and a stranger were ranked right (AUC)",
        evidence=evidence,
        details=numbers,
        exposure=_exposed(game.people, inside, scores),
        delta=float(making.delta),
    )


def accuracies(game: Game) -> dict[str, float]:
    """Return how often models are right about people whom they learned from, and about others."""
    right = game.told.argmax(axis=2) == game.people.y
    return {
        RIGHT_INSIDE: float(right[game.inside].mean()),
        RIGHT_OUTSIDE: float(right[~game.inside].mean()),
    }


def _exposed(people: Labelled, inside: np.ndarray, scores: np.ndarray) -> Exposure:
    """Tell which members stand out from all but one in a hundred strangers."""
    strangers = np.sort(scores[~inside])
    threshold = strangers[strangers.size - 1 - int(_FALSE * strangers.size)]
    far = np.broadcast_to(rarity(people), inside.shape)[inside]
    labels = [f"person {place} in model {model}" for model, place in zip(*np.nonzero(inside), strict=True)]
    return exposure(far, scores[inside] > threshold, labels=labels, by="distance from their class")
