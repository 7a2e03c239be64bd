"""What overfitting gives away: how well members are told from strangers, against how much better they are predicted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.attacks.models.labelled_data import LabelledData, simulate_purchases
from discreet.attacks.models.likelihood_ratio import likelihood_ratio
from discreet.attacks.models.membership_inference import ACCURACY_ON_MEMBERS, ACCURACY_ON_NON_MEMBERS
from discreet.attacks.models.target_models import TARGET_KINDS, TargetKind, fit_non_private
from discreet.attacks.progress import track
from discreet.attacks.result import AttackResult
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_fraction, as_positive

PRIVATE = "private"
# The depths of forests, the penalties of networks and the strengths C of lines, from tame to wild.
STRENGTHS: Mapping[TargetKind, tuple[float, ...]] = {
    "forest": (2, 4, 6, 8, 30),
    "network": (30, 10, 3, 1, 0.0001),
    "logistic": (0.001, 0.01, 0.1, 1, 100),
}


@dataclass(frozen=True)
class OverfittingPoint:
    """One kind of model: how often it is right about members and strangers, and how well an attack tells them apart.

    `strength` is the depth, penalty or C of an exact model, or the epsilon of a private one.
    """

    kind: str
    strength: float
    member_accuracy: float
    non_member_accuracy: float
    auc: float

    @property
    def gap(self) -> float:
        """How much more often the model is right about people whom it learned from."""
        return self.member_accuracy - self.non_member_accuracy


@dataclass(frozen=True)
class OverfittingStudy:
    """Models from tame to wild, what they learned of everybody, and what they learned of their members alone."""

    points: tuple[OverfittingPoint, ...]

    @property
    def correlation(self) -> float:
        """How closely the attack's success follows the gap."""
        return float(np.corrcoef([point.gap for point in self.points], [point.auc for point in self.points])[0, 1])

    def __str__(self) -> str:
        head = f"{'model':10}{'strength':>10}{'members':>9}{'strangers':>11}{'gap':>7}{'AUC':>7}"
        lines = (
            f"{each.kind:10}{each.strength:>10g}{each.member_accuracy:9.2f}{each.non_member_accuracy:11.2f}{each.gap:7.2f}{each.auc:7.2f}"
            for each in self.points
        )
        return "\n".join([head, *lines])

    def figure(self) -> Any:
        """Draw the attack's success against the gap on the left, and against accuracy for strangers on the right."""
        from discreet.plotting import BLUE, GREY, INK, MARKERS, ORANGE, RED, add_legend, panels, set_title, style  # noqa: PLC0415

        figure, (left, right) = panels(2, sharey=True)
        colours = {"forest": RED, "network": ORANGE, "logistic": INK, PRIVATE: BLUE}
        kinds = dict.fromkeys(point.kind for point in self.points)
        with style():
            for kind, marker in zip(kinds, MARKERS, strict=False):
                points_of_kind = [point for point in self.points if point.kind == kind]
                line_style = {"color": colours[kind], "lw": 0.8, "marker": marker}
                line_style["label"] = "logistic, private" if kind == PRIVATE else kind
                for axes, xs in (
                    (left, [each.gap for each in points_of_kind]),
                    (right, [each.non_member_accuracy for each in points_of_kind]),
                ):
                    axes.plot(xs, [point.auc for point in points_of_kind], **line_style)
            for axes in (left, right):
                axes.axhline(0.5, color=GREY, ls=":", lw=1, label="guessing")
            left.set(ylabel="membership attack (AUC)", ylim=(0.45, 1.02))
            left.set(xlabel="gap: accuracy on members\nminus accuracy on non-members")
            right.set(xlabel="accuracy on non-members:\nwhat the model is for")
            add_legend(figure, [left], columns=5)
            set_title(
                figure,
                f"The more a model overfits, the better an attack recognises its members: correlation "
                f"{self.correlation:.2f} over {len(self.points)} models",
            )
        return figure


def overfitting(  # noqa: PLR0913 - each is a setting of the game
    data: LabelledData | None = None,
    *,
    strengths: Mapping[TargetKind, Sequence[float]] = STRENGTHS,
    epsilons: Sequence[Number] = (1, 3, 10),
    random_state: int | None = None,
    shadows: int = 4,
    targets: int = 2,
) -> OverfittingStudy:
    """Attack models from tame to wild, and private ones, with `likelihood_ratio`.

    >>> seen = overfitting(strengths={"forest": (2, 30)}, epsilons=[], random_state=0)
    >>> tame, wild = seen.points
    >>> wild.gap > tame.gap and wild.auc > tame.auc + 0.2
    True
    """
    people = simulate_purchases(random_state) if data is None else data
    kinds = [(kind, _checked_strength(kind, each)) for kind, chosen in strengths.items() for each in chosen]
    run_attack = partial(likelihood_ratio, people, random_state=random_state, shadows=shadows, targets=targets)
    points = []
    for kind, strength in track(kinds, "models from tame to wild"):
        seeds = random_generator(random_state)
        result = run_attack(defence=_model_fitter(kind, strength, seeds))
        points.append(_overfitting_point(kind, strength, result))
    for epsilon in epsilons:
        result = run_attack(defence="curator", epsilon=as_fraction(epsilon, "epsilons"))
        points.append(_overfitting_point(PRIVATE, float(as_fraction(epsilon, "epsilons")), result))
    return OverfittingStudy(tuple(points))


def _checked_strength(kind: str, strength: Any) -> float:
    if kind not in TARGET_KINDS:
        raise ValueError(f"strengths: {kind!r} is none of {', '.join(TARGET_KINDS)}")
    return float(as_positive(strength, f"strengths of {kind}"))


def _model_fitter(kind: TargetKind, strength: float, seeds: np.random.Generator) -> Any:
    return lambda members: fit_non_private(kind, members, int(seeds.integers(2**31)), strength)


def _overfitting_point(kind: str, strength: float, result: AttackResult) -> OverfittingPoint:
    return OverfittingPoint(
        kind, strength, result.details[ACCURACY_ON_MEMBERS], result.details[ACCURACY_ON_NON_MEMBERS], result.success
    )
