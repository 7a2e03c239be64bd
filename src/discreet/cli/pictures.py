"""Pictures as SVG files. matplotlib is loaded only when one is drawn."""

import math
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc

_WITHOUT, _WITH, _INK = "#3b6ea8", "#d9822b", "#333333"


def draw_counts(folder: Path) -> Path:
    """Draw what an outsider can see of a count with you and without you: Laplace noise beside uniform noise."""
    plot = _matplotlib()
    figure, (left, right) = plot.subplots(1, 2, figsize=(9, 3.4), sharey=False)
    epsilon, truth = 0.5, 731
    mechanism = dc.laplace_for(dc.Sensitivity(groups=1, size=1), epsilon)
    outputs = np.arange(truth - 9, truth + 11)
    for count, colour, label in ((truth, _WITHOUT, "without you"), (truth + 1, _WITH, "with you")):
        left.step(outputs, [mechanism.pmf(int(k) - count) for k in outputs], where="mid", color=colour, label=label)
        chances = dc.privacy.uniform_pmf(count - 5, count + 5)
        right.step(outputs, [float(chances.get(int(k), 0)) for k in outputs], where="mid", color=colour, label=label)
    left.set_title(f"Laplace noise: ratio never above e^{epsilon} = {math.exp(epsilon):.2f}", fontsize=10)
    right.set_title("uniform noise: the ends give you away", fontsize=10)
    for edge in (truth - 5, truth + 6):
        right.axvspan(edge - 0.5, edge + 0.5, color="#c0392b", alpha=0.18, lw=0)
    for axes in (left, right):
        axes.set_xlabel("answer to a count")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=8)
    left.set_ylabel("probability")
    return _saved(figure, folder, "neighbours.svg")


def draw_names(folder: Path, truth: np.ndarray, noisy: np.ndarray, margin: int) -> Path:
    """Draw a private histogram of names: true and released counts, and every error within the margin."""
    plot = _matplotlib()
    figure, (left, right) = plot.subplots(1, 2, figsize=(9, 3.4))
    rank = np.arange(1, truth.size + 1)
    shown = np.unique(np.geomspace(1, truth.size, 60).astype(int)) - 1
    left.plot(rank[shown], truth[shown], color=_WITHOUT, lw=1, label="truth")
    seen = shown[noisy[shown] > 0]  # the axis is logarithmic; a noisy count may be negative
    left.plot(rank[seen], noisy[seen], ".", ms=4, color=_WITH, label="released at epsilon 1")
    left.set(xscale="log", yscale="log", xlabel="rank of the name", ylabel="people", ylim=(0.5, None))
    right.axhspan(-margin, margin, color=_WITH, alpha=0.18, lw=0, label=f"± {margin}: all of them inside, at 95 %")
    right.plot(rank, noisy - truth, ".", ms=1.5, color=_INK, rasterized=True)
    right.set(xlabel="rank of the name", ylabel="released - truth", ylim=(-1.6 * margin, 1.6 * margin))
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8, loc="upper right")
    return _saved(figure, folder, "names.svg")


def _matplotlib() -> Any:
    import matplotlib as mpl  # noqa: PLC0415 - half a second, and an extra

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "discreet", "svg.fonttype": "none", "axes.spines.top": False})
    mpl.rcParams.update({"axes.spines.right": False, "font.size": 9})
    import matplotlib.pyplot as plt  # noqa: PLC0415

    return plt


def _saved(figure: Any, folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    figure.tight_layout()
    figure.savefig(path, dpi=150, metadata={"Date": None})
    _matplotlib().close(figure)
    return path
