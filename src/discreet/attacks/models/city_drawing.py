"""The map of one play: what was released, where the lone people are, and which of them were located."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.attacks.drawing import GREY, HARM, INK, SAFE, panels
from discreet.attacks.models.city import City
from discreet.attacks.models.mixtures import Seen
from discreet.attacks.result import AttackResult

LOCATED = "located"  # what a result's details say of those who are in
_CROWD = "#b8bdc6"
_SHOWN = 400  # people of the crowd: more make the picture large, and not clearer


def draw_map(axes: Any, *, known: City, seen: Seen, inside: np.ndarray, located: np.ndarray) -> None:
    """Draw the crowd, the released components as circles of one spread, and the lone people of one play."""
    from matplotlib.patches import Ellipse  # noqa: PLC0415 - an extra

    some = known.crowd[:: 1 + len(known.crowd) // _SHOWN]
    axes.scatter(*some.T, s=2, color=_CROWD, lw=0, label="the crowd")
    for mean, covariance in zip(seen.means, seen.covariances, strict=True):
        sizes, turns = np.linalg.eigh(covariance)
        angle = float(np.degrees(np.arctan2(turns[1, 1], turns[0, 1])))
        widths = 2 * np.sqrt(np.maximum(sizes[::-1], 0))
        axes.add_patch(Ellipse(mean, *widths, angle=angle, fill=False, ec=SAFE, lw=0.8, alpha=0.7))
    axes.scatter(*seen.means.T, marker="+", s=22, color=SAFE, lw=0.9, label="released means")
    safe, hit = inside & ~located, inside & located
    axes.scatter(*known.loners[~inside].T, s=22, fc="none", ec=GREY, lw=0.8, label="lone, not in the data")
    axes.scatter(*known.loners[safe].T, s=22, color=INK, lw=0, label="lone, in the data")
    axes.scatter(*known.loners[hit].T, s=34, fc="none", ec=HARM, lw=1.6, label="lone, located")
    axes.set(xlim=(0, known.side), ylim=(0, known.side), aspect="equal", xlabel="km", ylabel="km")
    axes.legend(frameon=False, fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)


def maps(results: Sequence[AttackResult]) -> Any:
    """Draw the maps of several results side by side, each with its share of located people."""
    figure, axes = panels(len(results))
    figure.set_size_inches(3.1 * len(results), 4)
    for place, result in zip(axes, results, strict=True):
        if result.draw is None:
            raise ValueError(f"{result.attack} has no map")
        result.draw(place)
        place.get_legend().remove()
        place.set_ylabel("")
        shown = f"{result.shield}; {result.details['people of the crowd']:,} people"
        place.set_title(f"{shown}\n{result.details[LOCATED]:.0%} located", fontsize=8, color=INK)
    marks, labels = axes[0].get_legend_handles_labels()
    figure.legend(marks, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8)
    return figure
