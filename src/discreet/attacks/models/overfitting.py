"""What overfitting gives away: how well members are told from strangers, against how much better they are predicted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.attacks.checking import generator
from discreet.attacks.models.judging import RIGHT_INSIDE, RIGHT_OUTSIDE
from discreet.attacks.models.likelihood_ratio import likelihood_ratio
from discreet.attacks.models.people import Labelled, purchases
from discreet.attacks.models.targets import TARGETS, Target, fit_exactly
from discreet.attacks.progress import track
from discreet.attacks.result import AttackResult
from discreet.kernel.exact import Number, fraction, positive

PRIVATE = "private"
# The depths of forests, the penalties of networks and the strengths C of lines, from tame to wild.
STRENGTHS: Mapping[Target, tuple[float, ...]] = {
    "forest": (2, 4, 6, 8, 30),
    "network": (30, 10, 3, 1, 0.0001),
    "logistic": (0.001, 0.01, 0.1, 1, 100),
}


@dataclass(frozen=True)
class Point:
    """One kind of model: how often it is right about members and strangers, and how well an attack tells them apart.

    `strength` is the depth, penalty or C of an exact model, or the epsilon of a private one.
    """

    kind: str
    strength: float
    members: float
    strangers: float
    auc: float

    @property
    def gap(self) -> float:
        """How much more often the model is right about people whom it learned from."""
        return self.members - self.strangers


@dataclass(frozen=True)
class Overfitting:
    """Models from tame to wild, what they learned of everybody, and what they learned of their members alone."""

    points: tuple[Point, ...]

    @property
    def correlation(self) -> float:
        """How closely the attack's success follows the gap."""
        return float(np.corrcoef([point.gap for point in self.points], [point.auc for point in self.points])[0, 1])

    def __str__(self) -> str:
        head = f"{'model':10}{'strength':>10}{'members':>9}{'strangers':>11}{'gap':>7}{'AUC':>7}"
        lines = (
            f"{each.kind:10}{each.strength:>10g}{each.members:9.2f}{each.strangers:11.2f}{each.gap:7.2f}{each.auc:7.2f}"
            for each in self.points
        )
        return "\n".join([head, *lines])

    def figure(self) -> Any:
        """Draw the attack's success against the gap on the left, and against accuracy for strangers on the right."""
        from discreet.figures import BLUE, GREY, INK, MARKS, ORANGE, RED, entitle, explain, panels, style  # noqa: PLC0415

        figure, (left, right) = panels(2, sharey=True)
        colours = {"forest": RED, "network": ORANGE, "logistic": INK, PRIVATE: BLUE}
        kinds = dict.fromkeys(point.kind for point in self.points)
        with style():
            for kind, mark in zip(kinds, MARKS, strict=False):
                chosen = [point for point in self.points if point.kind == kind]
                look = {"color": colours[kind], "lw": 0.8, "marker": mark}
                look["label"] = "logistic, private" if kind == PRIVATE else kind
                for axes, across in (
                    (left, [each.gap for each in chosen]),
                    (right, [each.strangers for each in chosen]),
                ):
                    axes.plot(across, [point.auc for point in chosen], **look)
            for axes in (left, right):
                axes.axhline(0.5, color=GREY, ls=":", lw=1, label="guessing")
            left.set(ylabel="membership attack (AUC)", ylim=(0.45, 1.02))
            left.set(xlabel="gap: accuracy on members\nminus accuracy on non-members")
            right.set(xlabel="accuracy on non-members:\nwhat the model is for")
            explain(figure, [left], columns=5)
            entitle(
                figure,
                f"The more a model overfits, the better an attack recognises its members: correlation "
                f"{self.correlation:.2f} over {len(self.points)} models",
            )
        return figure


def overfitting(  # noqa: PLR0913 - each is a setting of the game
    data: Labelled | None = None,
    *,
    strengths: Mapping[Target, Sequence[float]] = STRENGTHS,
    epsilons: Sequence[Number] = (1, 3, 10),
    random_state: int | None = None,
    shadows: int = 4,
    targets: int = 2,
) -> Overfitting:
    """Attack models from tame to wild, and private ones, with `likelihood_ratio`.

    >>> seen = overfitting(strengths={"forest": (2, 30)}, epsilons=[], random_state=0)
    >>> tame, wild = seen.points
    >>> wild.gap > tame.gap and wild.auc > tame.auc + 0.2
    True
    """
    people = purchases(random_state) if data is None else data
    kinds = [(kind, _strength(kind, each)) for kind, chosen in strengths.items() for each in chosen]
    attack = partial(likelihood_ratio, people, random_state=random_state, shadows=shadows, targets=targets)
    points = []
    for kind, strength in track(kinds, "models from tame to wild"):
        seeds = generator(random_state)
        result = attack(defence=_fitter(kind, strength, seeds))
        points.append(_point(kind, strength, result))
    for epsilon in epsilons:
        result = attack(defence="curator", epsilon=fraction(epsilon, "epsilons"))
        points.append(_point(PRIVATE, float(fraction(epsilon, "epsilons")), result))
    return Overfitting(tuple(points))


def _strength(kind: str, strength: Any) -> float:
    if kind not in TARGETS:
        raise ValueError(f"strengths: {kind!r} is none of {', '.join(TARGETS)}")
    return float(positive(strength, f"strengths of {kind}"))


def _fitter(kind: Target, strength: float, seeds: np.random.Generator) -> Any:
    return lambda members: fit_exactly(kind, members, int(seeds.integers(2**31)), strength)


def _point(kind: str, strength: float, result: AttackResult) -> Point:
    return Point(kind, strength, result.details[RIGHT_INSIDE], result.details[RIGHT_OUTSIDE], result.success)
