"""Overfitting and membership inference: attack success against the gap between member and non-member accuracy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.attacks.data.labelled_data import LabelledData, simulate_purchases
from discreet.attacks.models.likelihood_ratio import likelihood_ratio
from discreet.attacks.models.target_models import MODEL_NAMES, TargetKind, fit_non_private
from discreet.attacks.result import ACCURACY_ON_MEMBERS, ACCURACY_ON_NON_MEMBERS, AttackResult
from discreet.attacks.validation import random_generator, require
from discreet.kernel.numbers import Number, as_fraction, as_positive
from discreet.progress import track

PRIVATE = "private"
# The depth of forests, the penalty of networks and C of logistic regressions, in order of increasing overfitting.
STRENGTHS: Mapping[TargetKind, tuple[float, ...]] = {
    "forest": (2, 4, 6, 8, 30),
    "network": (30, 10, 3, 1, 0.0001),
    "logistic": (0.001, 0.01, 0.1, 1, 100),
}


@dataclass(frozen=True)
class OverfittingPoint:
    """One model: its accuracy on members and non-members, and the AUC of membership inference.

    `strength` is the depth, penalty or C of a non-private model, or the epsilon of a private one.
    """

    kind: str
    strength: float
    member_accuracy: float
    non_member_accuracy: float
    auc: float

    @property
    def gap(self) -> float:
        """Accuracy on members minus accuracy on non-members."""
        return self.member_accuracy - self.non_member_accuracy


@dataclass(frozen=True)
class OverfittingStudy:
    """Models with increasing overfitting, their accuracy, and the success of membership inference."""

    points: tuple[OverfittingPoint, ...]

    @property
    def correlation(self) -> float:
        """The correlation between the gap and the AUC."""
        return float(np.corrcoef([point.gap for point in self.points], [point.auc for point in self.points])[0, 1])

    def __str__(self) -> str:
        head = f"{'model':10}{'strength':>10}{'members':>9}{'non-members':>13}{'gap':>7}{'AUC':>7}"
        lines = (
            f"{point.kind:10}{point.strength:>10g}{point.member_accuracy:9.2f}{point.non_member_accuracy:13.2f}"
            f"{point.gap:7.2f}{point.auc:7.2f}"
            for point in self.points
        )
        return "\n".join([head, *lines])

    def figure(self) -> Any:
        """Draw the AUC against the gap on the left, and against the accuracy on non-members on the right."""
        from discreet import plotting  # noqa: PLC0415 - matplotlib is an extra
        from discreet.plotting import BLUE, GREY, INK, MARKERS, ORANGE, RED  # noqa: PLC0415

        figure, (left, right) = plotting.panels(2, sharey=True)
        colours = {"forest": RED, "network": ORANGE, "logistic": INK, PRIVATE: BLUE}
        kinds = dict.fromkeys(point.kind for point in self.points)
        with plotting.style():
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
            right.set(xlabel="accuracy on non-members")
            plotting.add_legend(figure, [left], columns=5)
            plotting.set_title(
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
    """Attack models with increasing overfitting, and private models, with `likelihood_ratio`.

    >>> study = overfitting(strengths={"forest": (2, 30)}, epsilons=[], random_state=0)
    >>> shallow, deep = study.points
    >>> deep.gap > shallow.gap and deep.auc > shallow.auc + 0.2
    True
    """
    people = simulate_purchases(random_state) if data is None else data
    kinds = [(kind, _checked_strength(kind, each)) for kind, chosen in strengths.items() for each in chosen]
    run_attack = partial(likelihood_ratio, people, random_state=random_state, shadows=shadows, targets=targets)
    points = []
    for kind, strength in track(kinds, "models"):
        seeds = random_generator(random_state)
        result = run_attack(defence=_model_fitter(kind, strength, seeds))
        points.append(_overfitting_point(kind, strength, result))
    for epsilon in epsilons:
        result = run_attack(defence="curator", epsilon=as_fraction(epsilon, "epsilons"))
        points.append(_overfitting_point(PRIVATE, float(as_fraction(epsilon, "epsilons")), result))
    return OverfittingStudy(tuple(points))


def _checked_strength(kind: str, strength: Any) -> float:
    require(kind in MODEL_NAMES, f"strengths: {kind!r} is not one of {', '.join(MODEL_NAMES)}")
    return float(as_positive(strength, f"strengths of {kind}"))


def _model_fitter(kind: TargetKind, strength: float, seeds: np.random.Generator) -> Any:
    return lambda members: fit_non_private(kind, members, int(seeds.integers(2**31)), strength)


def _overfitting_point(kind: str, strength: float, result: AttackResult) -> OverfittingPoint:
    return OverfittingPoint(
        kind, strength, result.details[ACCURACY_ON_MEMBERS], result.details[ACCURACY_ON_NON_MEMBERS], result.success
    )
