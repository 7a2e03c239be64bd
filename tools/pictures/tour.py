"""The pictures that the tour draws too, and that of privacy beside sampling."""

import math
from typing import Any

import numpy as np

import discreet as dc
from discreet.cli.tour import chapter_kernel
from discreet.cli.tour.differencing_game import COUNT_SENSITIVITY, GuessingResult, tradeoff_curve
from discreet.cli.tour.plot import counts_figure, names_figure, tradeoff_figure
from discreet.plotting import BLUE, INK, ORANGE, RED, add_legend, format_plain_numbers, panels, set_title, style
from mission.tradeoff import ATTRIBUTES, PLAYS, crossing, played, sampling_margin


def names() -> tuple[np.ndarray, np.ndarray, int]:
    """Count names, privately and not; with the margin that holds for all of them at once."""
    truth, noise = chapter_kernel.name_counts(), dc.laplace_for(COUNT_SENSITIVITY, 1)
    return truth, noise.perturb(truth), noise.margin(0.95, count=truth.size)


def tradeoff() -> tuple[Any, Any]:
    """Compute what every epsilon buys, and how often differencing was right at some."""
    return tradeoff_curve(), [GuessingResult(epsilon, each.hits, PLAYS) for epsilon, each in played().items()]


def sampling_figure(epsilon: str = "1/10", d: int = ATTRIBUTES) -> Any:
    """Draw the errors of sampling and of privacy, and the error below which attacks work, against n."""
    figure, (axes,) = panels()
    n, margin, meets = (
        np.geomspace(10, 1e6, 60),
        dc.laplace_for(COUNT_SENSITIVITY, epsilon).margin(0.95),
        crossing(epsilon),
    )
    with style():
        axes.plot(n, [sampling_margin(each) for each in n], color=BLUE, label="sampling: 1/sqrt(n)")
        axes.plot(n, margin / n, color=ORANGE, label=f"privacy: 1/(epsilon·n), epsilon {epsilon}")
        axes.fill_between(n, 1e-6, math.sqrt(d) / n, color=RED, alpha=0.12, lw=0)
        label = f"sqrt(d)/n: {d} answers with smaller errors reveal members"
        axes.plot(n, math.sqrt(d) / n, color=RED, lw=1, ls="--", label=label)
        axes.plot([meets], [sampling_margin(meets)], "o", color=INK)
        apart = {"textcoords": "offset points", "fontsize": 8}
        axes.annotate(f"n = {meets:,}", (meets, sampling_margin(meets)), (8, 6), **apart)
        axes.set(xscale="log", yscale="log", xlabel="people (n)", ylabel="error of a share, at 95 %", ylim=(1e-5, 10))
        format_plain_numbers(axes.xaxis, axes.yaxis)
        add_legend(figure, [axes], columns=2)
        set_title(
            figure, f"From {meets:,} people on, privacy at epsilon {epsilon} costs less than sampling does anyway"
        )
    return figure


PICTURES = {
    "neighbours": (lambda: None, lambda _: counts_figure()),
    "names": (names, lambda found: names_figure(*found)),
    "tradeoff": (tradeoff, lambda found: tradeoff_figure(*found)),
    "sampling": (lambda: None, lambda _: sampling_figure()),
}
