"""Pictures as SVG files. matplotlib is loaded only when one is drawn."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet import figures
from discreet.cli.tour.recorder import Recorder
from discreet.cli.tour.tradeoff import Played, Point, point
from discreet.figures import BLUE, INK, ORANGE, RED, entitle, explain, plain_numbers, style
from discreet.figures import save as saved

WITHOUT, WITH = BLUE, ORANGE
_NONE = "No picture: drawing needs matplotlib, which comes with the extra `pictures`."
__all__ = ["INK", "WITH", "WITHOUT", "add", "draw_counts", "draw_names", "draw_tradeoff", "panels", "saved"]


def add(recorder: Recorder, draw: Callable[[], Path], caption: str) -> None:
    """Draw a picture and show it; without matplotlib say so."""
    try:
        path = draw()
    except ImportError:
        recorder.say(_NONE)
        return
    recorder.picture(path, caption)


def draw_counts(folder: Path) -> Path:
    """Draw the distribution of a noisy count with and without you, for Laplace and for uniform noise."""
    return saved(counts_figure(), folder / "neighbours.svg")


def counts_figure() -> Any:
    """Return the figure of both distributions of a count."""
    figure, (left, right) = panels(2)
    epsilon, truth = 0.5, 731
    mechanism = dc.laplace_for(dc.Sensitivity(groups=1, size=1), epsilon)
    outputs = np.arange(truth - 9, truth + 11)
    with style():
        for count, colour, label in ((truth, WITHOUT, "without you"), (truth + 1, WITH, "with you")):
            left.step(outputs, [mechanism.pmf(int(k) - count) for k in outputs], where="mid", color=colour, label=label)
            chances = dc.privacy.uniform_pmf(count - 5, count + 5)
            shares = [float(chances.get(int(k), 0)) for k in outputs]
            right.step(outputs, shares, where="mid", color=colour, label=label)
        left.set_title(f"Laplace noise: ratio at most e^{epsilon} = {math.exp(epsilon):.2f}")
        right.set_title("Uniform noise: ratio infinite at the ends")
        for edge in (truth - 5, truth + 6):
            only = "happens with only one of them" if edge > truth else None
            right.axvspan(edge - 0.5, edge + 0.5, color=RED, alpha=0.25, lw=0, label=only)
        for axes in (left, right):
            axes.set_xlabel("noisy count")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_ylim(bottom=0)
        left.set_ylabel("probability")
        explain(figure, [right])
        entitle(figure, "A noisy count hardly changes with you in the data; with the wrong noise, its ends reveal you")
    return figure


def draw_names(folder: Path, truth: np.ndarray, noisy: np.ndarray, margin: int) -> Path:
    """Draw a private histogram of names: true and released counts, and all errors beside the margin."""
    return saved(names_figure(truth, noisy, margin), folder / "names.svg")


def names_figure(truth: np.ndarray, noisy: np.ndarray, margin: int) -> Any:
    """Return the figure of a private histogram."""
    figure, (left, right) = panels(2)
    rank, errors = np.arange(1, truth.size + 1), noisy - truth
    shown = np.unique(np.geomspace(1, truth.size, 60).astype(int)) - 1
    seen = shown[noisy[shown] > 0]  # the axis is logarithmic; a noisy count may be negative
    with style():
        left.plot(rank[shown], truth[shown], color=WITHOUT, lw=1, label="true count")
        left.plot(rank[seen], noisy[seen], ".", color=WITH, label="released at epsilon 1")
        left.set(xscale="log", yscale="log", xlabel="rank of the name", ylabel="people", ylim=(0.5, None))
        right.axhspan(-margin, margin, color=WITH, alpha=0.25, lw=0, label=f"± {margin}: simultaneous 95 % margin")
        right.plot(rank, errors, ".", ms=1.5, color=WITHOUT, rasterized=True, label="error of a name")
        right.set(xlabel="rank of the name", ylabel="released - true", ylim=(-1.6 * margin, 1.6 * margin))
        plain_numbers(left.xaxis, left.yaxis, right.xaxis)
        explain(figure, [left, right])
        inside = int((np.abs(errors) <= margin).sum())
        entitle(figure, f"{inside:,} of {truth.size:,} released counts are within ± {margin} of the truth")
    return figure


def draw_tradeoff(folder: Path, points: Sequence[Point], played: Sequence[Played]) -> Path:
    """Draw the margin of a count and the success of attacks against epsilon."""
    return saved(tradeoff_figure(points, played), folder / "tradeoff.svg")


def tradeoff_figure(points: Sequence[Point], played: Sequence[Played]) -> Any:
    """Return the figure of accuracy and of privacy against epsilon."""
    figure, (left, right) = panels(2)
    epsilons, ceilings = [point.epsilon for point in points], [100 * point.ceiling for point in points]
    shares = np.array([each.share for each in played])
    errors = 196 * np.sqrt(shares * (1 - shares) / [each.plays for each in played])
    with style():
        left.plot(epsilons, [point.margin for point in points], color=INK)
        left.set(yscale="log", ylabel="95 % margin of a count")
        left.set_title("Accuracy")
        right.fill_between(epsilons, 50, ceilings, color=WITH, alpha=0.15, lw=0)
        right.plot(epsilons, ceilings, color=WITH, label="upper bound for every attack")
        right.plot(
            epsilons, [100 * each.differencing for each in points], color=WITHOUT, label="differencing, in theory"
        )
        look: dict[str, Any] = {"color": WITHOUT, "label": f"differencing, simulated {played[0].plays:,} times"}
        right.errorbar([float(each.epsilon) for each in played], 100 * shares, errors, fmt="o", **look)
        right.axhline(50, color=INK, lw=0.8, ls="--", label="random guess")
        right.set(ylabel="correct guesses, % (95 % interval)", ylim=(40, 102))
        right.set_title("Privacy")
        for axes in (left, right):
            axes.set(xscale="log", xlabel="epsilon")
            plain_numbers(axes.xaxis)
        plain_numbers(left.yaxis)
        explain(figure, [right], columns=2)
        one = point(1.0)
        found = f"a count has a margin of ± {one.margin}, and no attack is right in more than {100 * one.ceiling:.0f} %"
        entitle(figure, f"At epsilon 1, {found}")
    return figure


def panels(number: int, lines: int = 1) -> Any:
    """Return a figure with so many axes side by side, in so many lines, and these."""
    figure, axes = figures.panels(number, lines)
    return figure, axes[0] if number * lines == 1 else np.squeeze(np.array(axes).reshape(lines, number))
