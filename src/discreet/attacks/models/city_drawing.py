"""The map of one play: what was released, where the lone people are, and which of them were located."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.attacks.drawing import shield_words
from discreet.attacks.models.city import City
from discreet.attacks.models.mixtures import Seen
from discreet.attacks.result import AttackResult, percent
from discreet.figures import BLUE, GREY, INK, RED, entitle, explain, panels, style

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
        axes.add_patch(Ellipse(mean, *widths, angle=angle, fill=False, ec=BLUE, lw=0.8, alpha=0.7))
    axes.scatter(*seen.means.T, marker="+", s=22, color=BLUE, lw=0.9, label="released means")
    safe, hit = inside & ~located, inside & located
    axes.scatter(*known.loners[~inside].T, s=22, fc="none", ec=GREY, lw=0.8, label="lone, not in the data")
    axes.scatter(*known.loners[safe].T, s=22, color=INK, lw=0, label="lone, in the data")
    axes.scatter(*known.loners[hit].T, s=34, fc="none", ec=RED, lw=1.6, label="lone, located")
    ends = (-0.03 * known.side, 1.03 * known.side)
    axes.set(xlim=ends, ylim=ends, aspect="equal", xlabel="km", ylabel="km")


def maps(results: Sequence[AttackResult]) -> Any:
    """Draw the maps of several results side by side, each with its share of located people."""
    if any(result.draw is None for result in results):
        raise ValueError("results: only those of lone_cluster have a map")
    figure, axes = panels(min(len(results), 2), -(-len(results) // 2), height=3.4)
    with style():
        for each, result in zip(axes, results, strict=False):
            if result.draw is not None:
                result.draw(each)
            crowd, share = result.details["people of the crowd"], percent(result.details[LOCATED])
            each.set_title(f"{shield_words(result)}, {crowd:,} people:\n{share} located")
        for each in axes[len(results) :]:
            each.set_axis_off()
        explain(figure, axes[:1], columns=3)
        shares = [f"{percent(each.details[LOCATED])} with {shield_words(each)}" for each in (results[0], results[-1])]
        entitle(figure, f"Lone people located by the clusters that are released: {', '.join(shares)}")
    return figure
