"""The picture of members beside strangers: what an attack reaches with those in the data, and with those outside."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.attacks.drawing import GREY, HARM, INK
from discreet.attacks.evidence import Found

_WIDTH = 0.38


def draw_sides(axes: Any, *, sides: Mapping[str, Found], guessing: float) -> None:
    """Draw a bar for members and one for strangers for each defence, their intervals, and what guessing reaches."""
    places = np.arange(len(sides))
    for shift, side, colour in ((-_WIDTH / 2, "members", HARM), (_WIDTH / 2, "strangers", GREY)):
        shares = [getattr(found, side) for found in sides.values()]
        values = np.array([share.value for share in shares])
        ends = np.array([share.interval() for share in shares])
        axes.bar(places + shift, values, _WIDTH * 0.95, color=colour, label=side)
        axes.errorbar(places + shift, values, yerr=np.abs(ends.T - values), fmt="none", ecolor=INK, lw=0.8)
        for place, value in zip(places + shift, values, strict=True):
            axes.text(place, value + 0.02, f"{value:.2f}", ha="center", va="bottom", fontsize=6, color=INK)
    axes.axhline(guessing, color=INK, ls=":", lw=1, label="guessing")
    axes.set(ylim=(0, 1.1), ylabel="hit by the attack")
    axes.set_xticks(places, [name.replace(", epsilon", "\nepsilon") for name in sides], fontsize=7)
    axes.legend(frameon=False, fontsize=7, loc="upper right", ncols=3)
