"""The picture of members beside strangers: what an attack reaches with those in the data, and with those outside."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.attacks.evidence import Found
from discreet.figures import GREY, INK, RED, entitle, explain, panels, style

_WIDTH = 0.38


def draw_sides(axes: Any, *, sides: Mapping[str, Found], guessing: float) -> None:
    """Draw a bar for members and one for strangers for each defence, their intervals, and what guessing reaches."""
    places = np.arange(len(sides))
    for shift, side, colour, label in (
        (-_WIDTH / 2, "members", RED, "members"),
        (_WIDTH / 2, "strangers", GREY, "non-members"),
    ):
        shares = [getattr(found, side) for found in sides.values()]
        values = np.array([share.value for share in shares])
        ends = np.array([share.interval() for share in shares])
        axes.bar(places + shift, values, _WIDTH * 0.95, color=colour, label=label)
        axes.errorbar(places + shift, values, yerr=np.abs(ends.T - values), fmt="none", ecolor=INK, lw=0.8)
        for place, value in zip(places + shift, values, strict=True):
            axes.text(place, value + 0.02, f"{value:.2f}", ha="center", va="bottom", fontsize=7)
    axes.axhline(guessing, color=INK, ls=":", lw=1, label="guessing")
    axes.set(ylim=(0, 1.1), ylabel="share hit (95 % interval)")
    axes.set_xticks(places, [name.replace(", epsilon", "\nepsilon") for name in sides], fontsize=7)


def sides_figure(found: Mapping[str, Sequence[Any]]) -> Any:
    """Draw members beside non-members for several models, one panel for each by its title."""
    figure, axes = panels(len(found), sharey=True)
    with style():
        for each, (title, results) in zip(axes, found.items(), strict=True):
            sides = {str(result.shield): result.evidence for result in results}
            draw_sides(each, sides=sides, guessing=results[0].baseline)
            gaps = [side.members.value - side.strangers.value for side in sides.values()]
            each.set_title(f"{title}: gaps up to {100 * max(gaps):.0f} points")
        axes[0].set_ylabel("genotypes inferred (95 % interval)")
        for each in axes[1:]:
            each.set_ylabel("")
        explain(figure, axes[:1])
        entitle(figure, "A fact about everybody is inferred for non-members as well; only memorisation is a leak")
    return figure
