"""The pictures that the tour draws too, and that of privacy beside sampling."""

import math
from typing import Any

import numpy as np

import discreet as dc
from discreet.cli.tour import kernel
from discreet.cli.tour.pictures import counts_figure, names_figure, tradeoff_figure
from discreet.cli.tour.tradeoff import ONE, Played, curve
from discreet.figures import BLUE, INK, ORANGE, RED, entitle, explain, panels, plain_numbers, style
from mission.tradeoff import ATTRIBUTES, PLAYS, crossing, played, sampling_margin


def names() -> tuple[np.ndarray, np.ndarray, int]:
    """Count names, privately and not; with the margin that holds for all of them at once."""
    truth, noise = kernel.names(), dc.laplace_for(ONE, 1)
    return truth, noise.perturb(truth), noise.margin(0.95, count=truth.size)


def tradeoff() -> tuple[Any, Any]:
    """Compute what every epsilon buys, and how often differencing was right at some."""
    return curve(), [Played(epsilon, each.hits, PLAYS) for epsilon, each in played().items()]


def sampling_figure(epsilon: str = "1/10", d: int = ATTRIBUTES) -> Any:
    """Draw the errors of sampling and of privacy, and the error below which attacks work, against n."""
    figure, (axes,) = panels()
    n, margin, meets = np.geomspace(10, 1e6, 60), dc.laplace_for(ONE, epsilon).margin(0.95), crossing(epsilon)
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
        plain_numbers(axes.xaxis, axes.yaxis)
        explain(figure, [axes], columns=2)
        entitle(figure, f"From {meets:,} people on, privacy at epsilon {epsilon} costs less than sampling does anyway")
    return figure


PICTURES = {
    "neighbours": (lambda: None, lambda _: counts_figure()),
    "names": (names, lambda found: names_figure(*found)),
    "tradeoff": (tradeoff, lambda found: tradeoff_figure(*found)),
    "sampling": (lambda: None, lambda _: sampling_figure()),
}
