"""Pictures as SVG files. matplotlib is loaded only when one is drawn."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.cli.tour.recorder import Recorder
from discreet.cli.tour.tradeoff import Played, Point

WITHOUT, WITH, INK = "#3b6ea8", "#d9822b", "#333333"
_NONE = "No picture: drawing needs matplotlib, which comes with the extra `pictures`."
_SIZE = (9, 3.4)


def add(recorder: Recorder, draw: Callable[[], Path], caption: str) -> None:
    """Draw a picture and show it; without matplotlib say so."""
    try:
        path = draw()
    except ModuleNotFoundError:
        recorder.say(_NONE)
        return
    recorder.picture(path, caption)


def draw_counts(folder: Path) -> Path:
    """Draw the distribution of a noisy count with and without you, for Laplace and for uniform noise."""
    figure, (left, right) = panels(2)
    epsilon, truth = 0.5, 731
    mechanism = dc.laplace_for(dc.Sensitivity(groups=1, size=1), epsilon)
    outputs = np.arange(truth - 9, truth + 11)
    for count, colour, label in ((truth, WITHOUT, "without you"), (truth + 1, WITH, "with you")):
        left.step(outputs, [mechanism.pmf(int(k) - count) for k in outputs], where="mid", color=colour, label=label)
        chances = dc.privacy.uniform_pmf(count - 5, count + 5)
        right.step(outputs, [float(chances.get(int(k), 0)) for k in outputs], where="mid", color=colour, label=label)
    left.set_title(f"Laplace noise: ratio at most e^{epsilon} = {math.exp(epsilon):.2f}", fontsize=10)
    right.set_title("Uniform noise: the ends reveal who is in the data", fontsize=10)
    for edge in (truth - 5, truth + 6):
        right.axvspan(edge - 0.5, edge + 0.5, color="#c0392b", alpha=0.18, lw=0)
    for axes in (left, right):
        axes.set_xlabel("noisy count")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=8)
    left.set_ylabel("probability")
    return saved(figure, folder / "neighbours.svg")


def draw_names(folder: Path, truth: np.ndarray, noisy: np.ndarray, margin: int) -> Path:
    """Draw a private histogram of names: true and released counts, and all errors beside the margin."""
    figure, (left, right) = panels(2)
    rank = np.arange(1, truth.size + 1)
    shown = np.unique(np.geomspace(1, truth.size, 60).astype(int)) - 1
    left.plot(rank[shown], truth[shown], color=WITHOUT, lw=1, label="true count")
    seen = shown[noisy[shown] > 0]  # the axis is logarithmic; a noisy count may be negative
    left.plot(rank[seen], noisy[seen], ".", ms=4, color=WITH, label="released at epsilon 1")
    left.set(xscale="log", yscale="log", xlabel="rank of the name", ylabel="people", ylim=(0.5, None))
    right.axhspan(-margin, margin, color=WITH, alpha=0.18, lw=0, label=f"± {margin}: simultaneous 95 % margin")
    right.plot(rank, noisy - truth, ".", ms=1.5, color=WITHOUT, rasterized=True)
    right.set(xlabel="rank of the name", ylabel="error (released - true)", ylim=(-1.6 * margin, 1.6 * margin))
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8, loc="upper right")
    return saved(figure, folder / "names.svg")


def draw_tradeoff(folder: Path, points: Sequence[Point], played: Sequence[Played]) -> Path:
    """Draw the margin of a count and the success of attacks against epsilon."""
    figure, (left, right) = panels(2)
    epsilons = [point.epsilon for point in points]
    left.plot(epsilons, [point.margin for point in points], color=WITHOUT)
    left.set(yscale="log", ylabel="95 % margin of a count")
    left.set_title("Accuracy: margin of error", fontsize=10)
    ceilings = [100 * point.ceiling for point in points]
    right.fill_between(epsilons, 50, ceilings, color=WITH, alpha=0.12, lw=0)
    right.plot(epsilons, ceilings, color=WITH, label="upper bound for every attack")
    theory = [100 * point.differencing for point in points]
    right.plot(epsilons, theory, color=WITHOUT, label="differencing, in theory")
    shares = np.array([each.share for each in played])
    errors = 196 * np.sqrt(shares * (1 - shares) / [each.plays for each in played])
    style = {"color": WITHOUT, "ms": 4, "capsize": 2, "label": f"differencing, simulated {played[0].plays} times"}
    right.errorbar([float(each.epsilon) for each in played], 100 * shares, errors, fmt="o", **style)
    right.axhline(50, color=INK, lw=0.8, ls="--", label="random guess")
    right.set(ylabel="correct guesses, %", ylim=(40, 102))
    right.set_title("Privacy: success of attacks", fontsize=10)
    right.legend(frameon=False, fontsize=8, loc="upper left")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="epsilon")
        axes.xaxis.set_major_formatter("{x:g}")
    left.yaxis.set_major_formatter("{x:g}")
    return saved(figure, folder / "tradeoff.svg")


def panels(number: int, lines: int = 1) -> Any:
    """Return a figure with so many drawings side by side, in so many lines, and these."""
    return _matplotlib().subplots(lines, number, figsize=(_SIZE[0], _SIZE[1] * lines))


def saved(figure: Any, path: Path, *, below: float = 0) -> Path:
    """Write a figure as SVG, with this share of its height left free below the axes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout(rect=(0, below, 1, 1))
    figure.savefig(path, dpi=110, metadata={"Date": None})
    _matplotlib().close(figure)
    return path


def _matplotlib() -> Any:
    import matplotlib as mpl  # noqa: PLC0415 - half a second, and an extra

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "discreet", "svg.fonttype": "none", "axes.spines.top": False})
    mpl.rcParams.update({"axes.spines.right": False, "font.size": 9})
    mpl.rcParams.update({"text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK})
    mpl.rcParams.update({"xtick.color": INK, "ytick.color": INK})
    import matplotlib.pyplot as plt  # noqa: PLC0415

    return plt
