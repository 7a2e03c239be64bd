"""The lecture's membership test: d means of n people, with noise, and where its power ends."""

import math
from collections.abc import Sequence
from typing import Any

from discreet.attacks.aggregates import frequencies
from discreet.attacks.aggregates.membership import scored
from discreet.attacks.aggregates.panel import Panel, plays_of
from discreet.attacks.checking import generator
from discreet.figures import BLUE, GREY, INK, MARKS, ORANGE, RED, entitle, explain, panels, plain_numbers, style
from discreet.kernel.exact import not_negative, whole

_SHADES = (RED, ORANGE, BLUE)


def answers(people: int, questions: int, *, random_state: int | None = None) -> Panel:
    """Draw people who answer yes or no to so many questions, each with a share of yes between 1/5 and 4/5.

    >>> answers(4, 3, random_state=0).values.shape
    (4, 3)
    """
    rng, shape = generator(random_state), (whole(people, "people", 1), whole(questions, "questions", 1))
    return Panel(rng.random(shape) < rng.uniform(0.2, 0.8, questions))


def power(d: int, n: int, *, noise: float = 0.0, plays: int = 10, random_state: int | None = None) -> float:
    """Return how well members of a group of n are told from others by d means with noise of this standard deviation.

    It is the area under the curve: 1/2 for guessing. Noise is counted in units of sqrt(d)/n.

    >>> power(1000, 50, random_state=0) > 0.98
    True
    >>> abs(power(1000, 50, noise=20, random_state=0) - 0.5) < 0.1
    True
    """
    rng, width = generator(random_state), float(not_negative(noise, "noise")) * math.sqrt(whole(d, "d", 1)) / n
    panel = answers(5 * whole(n, "n", 10), d, random_state=int(rng.integers(2**32)))
    drawn = plays_of(panel, n, plays, generator(int(rng.integers(2**32))))
    noisy = [frequencies.exact(play.members, panel.most) + rng.normal(0, width, d) for play in drawn]
    return scored(drawn, noisy, (panel.most, n), "inner product").success


def power_figure(
    *,
    d: Sequence[int] = (10, 30, 100, 300, 1000, 3000),
    n: Sequence[int] = (20, 60, 200),
    noise: Sequence[float] = (0.03, 0.1, 0.3, 1, 3, 10),
    random_state: int | None = None,
) -> Any:
    """Draw the power against d for each n without noise, and against the noise in units of sqrt(d)/n."""
    figure, (left, right) = panels(2)
    most = max(d)
    with style():
        for size, shade, mark in zip(n, _SHADES, MARKS, strict=False):
            seen = [power(each, size, random_state=random_state) for each in d]
            left.plot(d, seen, f"{mark}-", color=shade, label=f"n = {size}")
            left.axvline(size, color=shade, ls=":", lw=1)
            noisy = [power(most, size, noise=each, random_state=random_state) for each in noise]
            right.plot(noise, noisy, f"{mark}-", color=shade, label=f"n = {size}")
        right.axvline(1, color=INK, ls="--", lw=1)
        left.set(xscale="log", xlabel="means published (d); dotted: d = n", ylabel="pairs ranked right (AUC)")
        left.set_title("no noise")
        right.set(xscale="log", xlabel="noise, in units of sqrt(d)/n")
        right.set_title(f"d = {most:,}")
        for axes in (left, right):
            axes.axhline(0.5, color=GREY, ls=":", lw=1.2, label="guessing")
            axes.set_ylim(0.42, 1.03)
            plain_numbers(axes.xaxis)
        explain(figure, [left])
        entitle(figure, "Membership is exposed by more means than people, and hidden by noise above sqrt(d)/n")
    return figure
