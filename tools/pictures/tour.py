"""The pictures that the tour draws as well, and that of privacy noise and sampling error."""

import math
from typing import Any

import numpy as np

import discreet as dc
from discreet.cli.tour import chapter_kernel
from discreet.cli.tour.chapter_kernel import counts_figure, names_figure
from discreet.cli.tour.differencing_game import COUNT_SENSITIVITY, GuessingResult, tradeoff_curve, tradeoff_figure
from discreet.plotting import BLUE, INK, ORANGE, RED, add_legend, format_plain_numbers, panels, set_title, style
from mission.tradeoff import ATTRIBUTES, PLAYS, crossing, played, sampling_margin


def names() -> tuple[np.ndarray, np.ndarray, int]:
    """Return true and private counts of names, and their simultaneous margin."""
    truth, noise = chapter_kernel.name_counts(), dc.laplace_for(COUNT_SENSITIVITY, 1)
    return truth, noise.perturb(truth), dc.privacy.margin(noise, 0.95, count=truth.size)


def tradeoff() -> tuple[Any, Any]:
    """Return the trade-off curve, and the success of differencing at some epsilons."""
    return tradeoff_curve(), [GuessingResult(epsilon, each.hits, PLAYS) for epsilon, each in played().items()]


def sampling_figure(epsilon: str = "0.1", d: int = ATTRIBUTES) -> Any:
    """Draw sampling error, privacy noise, and the error below which attacks succeed, against n."""
    figure, (axes,) = panels()
    n, margin, meets = (
        np.geomspace(10, 1e6, 60),
        dc.privacy.margin(dc.laplace_for(COUNT_SENSITIVITY, epsilon), 0.95),
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
        axes.set(xscale="log", yscale="log", xlabel="people (n)", ylabel="95 % margin of a share", ylim=(1e-5, 10))
        format_plain_numbers(axes.xaxis, axes.yaxis)
        add_legend(figure, [axes], columns=2)
        set_title(
            figure, f"At epsilon {epsilon}, privacy noise is smaller than sampling error from {meets:,} people on"
        )
    return figure


PICTURES = {
    "neighbours": (lambda: None, lambda _: counts_figure()),
    "names": (names, lambda found: names_figure(*found)),
    "tradeoff": (tradeoff, lambda found: tradeoff_figure(*found)),
    "sampling": (lambda: None, lambda _: sampling_figure()),
}
