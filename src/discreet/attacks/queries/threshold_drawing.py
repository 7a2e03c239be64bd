"""The picture of the threshold game: two laws, and the threshold between them."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.figures import BLUE, INK, ORANGE

if TYPE_CHECKING:
    from discreet.attacks.queries.threshold_game import TwoSets

_PARTS = 60


def draw_game(axes: Any, *, sets: "TwoSets", coins: np.ndarray, seen: np.ndarray, scale: Fraction | None) -> None:
    """Draw what was seen of both sets, the laws of the noise if they are known, and the threshold."""
    edges = _edges(sets, seen)
    both = ((~coins, sets.means[0], BLUE, "without the person"), (coins, sets.means[1], ORANGE, "with the person"))
    for played, mean, colour, label in both:
        axes.hist(seen[played], edges, density=True, color=colour, alpha=0.25, label=f"{label}, seen")
        if scale is not None:
            width = 1 / (sets.without.size * float(scale))
            fine = np.linspace(edges[0], edges[-1], 801)
            axes.plot(
                fine, np.exp(-np.abs(fine - mean) / width) / (2 * width), color=colour, label=f"{label}, in theory"
            )
    axes.axvline(sets.threshold, color=INK, ls="--", lw=1, label=f"threshold {sets.threshold:.3g}")
    axes.set(xlabel="released mean", ylabel="density", yticks=[], xlim=(edges[0], edges[-1]))


def _edges(sets: "TwoSets", seen: np.ndarray) -> np.ndarray:
    """Return the ends of the bars: the middle 99 of 100, symmetric around T, which is one of them."""
    far = np.quantile(np.abs(seen - sets.threshold), 0.99)
    reach = max(float(far), abs(sets.means[1] - sets.means[0]) * 1.5)
    return sets.threshold + np.linspace(-reach, reach, _PARTS + 1)
