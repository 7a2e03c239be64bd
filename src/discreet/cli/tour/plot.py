"""Plots of the tour as SVG files. matplotlib is imported only when one is drawn."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet import plotting
from discreet.cli.tour.differencing_game import GuessingResult, TradeoffPoint, tradeoff_point
from discreet.cli.tour.recorder import Recorder
from discreet.plotting import BLUE, INK, ORANGE, RED, add_legend, format_plain_numbers, save_figure, set_title, style

WITHOUT_COLOUR, WITH_COLOUR = BLUE, ORANGE
_NO_MATPLOTLIB = "No picture: drawing needs matplotlib (pip install 'discreet[pictures]')."
__all__ = [
    "INK",
    "WITHOUT_COLOUR",
    "WITH_COLOUR",
    "draw_counts",
    "draw_names",
    "draw_picture",
    "draw_tradeoff",
    "panels",
    "save_figure",
]


def draw_picture(recorder: Recorder, draw: Callable[[], Path], caption: str) -> None:
    """Draw a picture and add it; without matplotlib, add a note instead."""
    try:
        path = draw()
    except ImportError:
        recorder.add_paragraph(_NO_MATPLOTLIB)
        return
    recorder.add_picture(path, caption)


def draw_counts(folder: Path) -> Path:
    """Draw the distribution of a noisy count with and without you, for Laplace and for uniform noise."""
    return save_figure(counts_figure(), folder / "neighbours.svg")


def counts_figure() -> Any:
    """Return the figure of both distributions of a count."""
    figure, (left, right) = panels(2)
    epsilon, truth = 0.5, 731
    mechanism = dc.laplace_for(dc.Sensitivity(groups=1, size=1), epsilon)
    outputs = np.arange(truth - 9, truth + 11)
    with style():
        for count, colour, label in ((truth, WITHOUT_COLOUR, "without you"), (truth + 1, WITH_COLOUR, "with you")):
            left.step(
                outputs,
                [dc.privacy.pmf(mechanism, int(k) - count) for k in outputs],
                where="mid",
                color=colour,
                label=label,
            )
            probabilities = dc.privacy.uniform_pmf(count - 5, count + 5)
            shares = [float(probabilities.get(int(k), 0)) for k in outputs]
            right.step(outputs, shares, where="mid", color=colour, label=label)
        left.set_title(f"Laplace noise: ratio at most e^{epsilon} = {math.exp(epsilon):.2f}")
        right.set_title("Uniform noise: ratio infinite at the ends")
        for edge in (truth - 5, truth + 6):
            only = "possible in one database only" if edge > truth else None
            right.axvspan(edge - 0.5, edge + 0.5, color=RED, alpha=0.25, lw=0, label=only)
        for axes in (left, right):
            axes.set_xlabel("noisy count")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_ylim(bottom=0)
        left.set_ylabel("probability")
        add_legend(figure, [right])
        set_title(figure, "Laplace noise hides whether you are in the data; uniform noise can reveal it")
    return figure


def draw_names(folder: Path, truth: np.ndarray, noisy: np.ndarray, margin: int) -> Path:
    """Draw a private histogram of names: true and released counts, and all errors beside the margin."""
    return save_figure(names_figure(truth, noisy, margin), folder / "names.svg")


def names_figure(truth: np.ndarray, noisy: np.ndarray, margin: int) -> Any:
    """Return the figure of a private histogram."""
    figure, (left, right) = panels(2)
    rank, errors = np.arange(1, truth.size + 1), noisy - truth
    ranks_shown = np.unique(np.geomspace(1, truth.size, 60).astype(int)) - 1
    positive = ranks_shown[noisy[ranks_shown] > 0]  # the axis is logarithmic; a noisy count may be negative
    with style():
        left.plot(rank[ranks_shown], truth[ranks_shown], color=WITHOUT_COLOUR, lw=1, label="true count")
        left.plot(rank[positive], noisy[positive], ".", color=WITH_COLOUR, label="released at epsilon 1")
        left.set(xscale="log", yscale="log", xlabel="rank of the name", ylabel="people", ylim=(0.5, None))
        right.axhspan(
            -margin, margin, color=WITH_COLOUR, alpha=0.25, lw=0, label=f"± {margin}: simultaneous 95 % margin"
        )
        right.plot(rank, errors, ".", ms=1.5, color=WITHOUT_COLOUR, rasterized=True, label="error of a name")
        right.set(xlabel="rank of the name", ylabel="released - true", ylim=(-1.6 * margin, 1.6 * margin))
        format_plain_numbers(left.xaxis, left.yaxis, right.xaxis)
        add_legend(figure, [left, right])
        within_margin = int((np.abs(errors) <= margin).sum())
        set_title(figure, f"{within_margin:,} of {truth.size:,} released counts are within ± {margin} of the truth")
    return figure


def draw_tradeoff(folder: Path, points: Sequence[TradeoffPoint], results: Sequence[GuessingResult]) -> Path:
    """Draw the margin of a count and the success of attacks against epsilon."""
    return save_figure(tradeoff_figure(points, results), folder / "tradeoff.svg")


def tradeoff_figure(points: Sequence[TradeoffPoint], results: Sequence[GuessingResult]) -> Any:
    """Return the figure of accuracy and of privacy against epsilon."""
    figure, (left, right) = panels(2)
    epsilons, upper_bounds = [point.epsilon for point in points], [100 * point.upper_bound for point in points]
    shares = np.array([result.share for result in results])
    errors = 196 * np.sqrt(shares * (1 - shares) / [result.plays for result in results])
    with style():
        left.plot(epsilons, [point.margin for point in points], color=INK)
        left.set(yscale="log", ylabel="95 % margin of a count")
        left.set_title("Accuracy")
        right.fill_between(epsilons, 50, upper_bounds, color=WITH_COLOUR, alpha=0.15, lw=0)
        right.plot(epsilons, upper_bounds, color=WITH_COLOUR, label="upper bound for every attack")
        right.plot(
            epsilons,
            [100 * point.differencing for point in points],
            color=WITHOUT_COLOUR,
            label="differencing, in theory",
        )
        marker_style: dict[str, Any] = {
            "color": WITHOUT_COLOUR,
            "label": f"differencing, simulated {results[0].plays:,} times",
        }
        right.errorbar([float(result.epsilon) for result in results], 100 * shares, errors, fmt="o", **marker_style)
        right.axhline(50, color=INK, lw=0.8, ls="--", label="random guess")
        right.set(ylabel="correct guesses, % (95 % interval)", ylim=(40, 102))
        right.set_title("Privacy")
        for axes in (left, right):
            axes.set(xscale="log", xlabel="epsilon")
            format_plain_numbers(axes.xaxis)
        format_plain_numbers(left.yaxis)
        add_legend(figure, [right], columns=2)
        one = tradeoff_point(1.0)
        bound = f"no attack is right more than {100 * one.upper_bound:.0f} % of the time"
        set_title(figure, f"At epsilon 1, a count has a margin of ± {one.margin}, and {bound}")
    return figure


def panels(number: int, lines: int = 1) -> Any:
    """Return a figure with `number` axes side by side in each of `lines` rows, and its axes."""
    figure, axes = plotting.panels(number, lines)
    return figure, axes[0] if number * lines == 1 else np.squeeze(np.array(axes).reshape(lines, number))
