"""The map of one play: what was released, where the lone people are, and which of them were located."""

from typing import Any

import numpy as np

from discreet.attacks.drawing import GREY, HARM, INK, SAFE
from discreet.attacks.models.city import City
from discreet.attacks.models.mixtures import Seen

_CROWD = "#d4d7dc"


def draw_map(axes: Any, *, known: City, seen: Seen, inside: np.ndarray, located: np.ndarray) -> None:
    """Draw the crowd, the released components as circles of one spread, and the lone people of one play."""
    from matplotlib.patches import Ellipse  # noqa: PLC0415 - an extra

    axes.scatter(*known.crowd.T, s=2, color=_CROWD, lw=0, label="the crowd")
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
    axes.legend(frameon=False, fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
