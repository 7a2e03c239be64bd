"""Pictures of reconstruction: the share of bits that are rebuilt against the error of the answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.attacks.aggregates.solving import expected_share
from discreet.attacks.result import AttackResult, percent
from discreet.figures import BLUE, GREY, INK, ORANGE, RED, entitle, explain, panels, plain_numbers, style

_LEAST, _MOST = 0.05, 8.0
_ERROR = "error of a share, in units of 1/sqrt(n)"


def draw_noise(axes: Any, *, shape: tuple[int, int], spread: float, share: float, chance: float) -> None:
    """Draw the share of bits that least squares rebuilds by the error of the answers, and where this run lies."""
    questions, people = shape
    here = max(spread / np.sqrt(people), _LEAST)
    if questions > people:
        _draw_theory(axes, shape, max(_MOST, 1.5 * here), chance)
    axes.plot([here], [share], "o", color=RED, ms=6, label="this run")
    _finish(axes, max(chance, 1 - chance), "guessing")


def noise_figure(blurred: Sequence[AttackResult], programmed: Sequence[AttackResult], private: Any) -> Any:
    """Draw runs of `reconstruct` with growing noise, of both solvers, and runs against the curator.

    `private` are results by their labels. In these units the number of people does not matter, only that all runs have
    as many questions for each.
    """
    figure, (axes,) = panels(height=3.4)
    details = blurred[0].details
    with style():
        _draw_theory(axes, (details["questions"], details["people"]), 1.5 * max(map(_error, private.values())))
        for results, mark, colour, label in (
            (blurred, "o", RED, "least squares"),
            (programmed, "x", ORANGE, "linear programme"),
            (list(private.values()), "D", BLUE, "the curator"),
        ):
            errors, shares = [_error(each) for each in results], [each.success for each in results]
            axes.plot(errors, shares, mark, color=colour, ms=5, label=label)
        for name, result in private.items():
            above = result.success >= 1 / 2  # labels stay off the line of a coin
            look = {"ha": "left", "va": "bottom"} if above else {"ha": "center", "va": "top"}
            apart = (6, 5) if above else (0, -6)
            axes.annotate(name, (_error(result), result.success), apart, textcoords="offset points", fontsize=8, **look)
        _finish(axes, 1 / 2, "a coin")
        explain(figure, [axes])
        worst, best = max(blurred, key=lambda each: each.success), max(private.values(), key=_error)
        entitle(
            figure,
            f"{details['questions'] // details['people']} random subset sums per person: nearly exact answers rebuild "
            f"{percent(worst.success)} of the bits, the curator's noisiest {percent(best.success)}",
        )
    return figure


def _error(result: AttackResult) -> float:
    return max(float(result.details[_ERROR]), _LEAST)


def _draw_theory(axes: Any, shape: tuple[int, int], most: float, chance: float = 1 / 2) -> None:
    questions, people = shape
    errors = np.geomspace(_LEAST, most, 160)
    theory = [expected_share(people, questions, error * np.sqrt(people), chance) for error in errors]
    axes.plot(errors, theory, color=GREY, lw=1.2, label="least squares, in theory")


def _finish(axes: Any, guessing: float, label: str) -> None:
    axes.axhline(guessing, color=INK, ls=":", lw=1, label=label)
    axes.set(xscale="log", ylim=(0.4, 1.04), xlabel=_ERROR, ylabel="share of the bits rebuilt")
    plain_numbers(axes.xaxis)
