"""Pictures of reconstruction: the share of bits that are rebuilt against the error of the answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.attacks.aggregates.solving import expected_share
from discreet.attacks.drawing import FIX, GREY, HARM, INK, SAFE, panels
from discreet.attacks.result import AttackResult

_LEAST, _MOST = 0.05, 8.0
_ERROR = "error of a share, in units of 1/sqrt(n)"


def draw_noise(axes: Any, *, shape: tuple[int, int], spread: float, share: float, chance: float) -> None:
    """Draw the share of bits that least squares rebuilds by the error of the answers, and where this run lies."""
    questions, people = shape
    here = max(spread / np.sqrt(people), _LEAST)
    if questions > people:
        _draw_theory(axes, shape, max(_MOST, 1.5 * here), chance)
    axes.plot([here], [share], "o", color=HARM, ms=6, label="this run")
    _finish(axes, max(chance, 1 - chance), "guessing")


def noise_figure(blurred: Sequence[AttackResult], programmed: Sequence[AttackResult], private: Any) -> Any:
    """Draw runs of `reconstruct` with growing noise, of both solvers, and runs against the curator.

    `private` are results by their labels. In these units the number of people does not matter, only that all runs have
    as many questions for each.
    """
    figure, (axes,) = panels(1)
    details = blurred[0].details
    _draw_theory(axes, (details["questions"], details["people"]), 1.5 * max(map(_error, private.values())))
    for results, mark, colour, label in (
        (blurred, "o", HARM, "least squares"),
        (programmed, "x", FIX, "linear programme"),
    ):
        axes.plot(
            [_error(each) for each in results], [each.success for each in results], mark, color=colour, label=label
        )
    for place, (name, result) in enumerate(sorted(private.items(), key=lambda item: _error(item[1]))):
        here = (_error(result), result.success)
        axes.plot(*here, "D", color=SAFE, ms=5)
        apart, side = ((-2, -20), "right") if place % 2 else ((3, 6), "left")  # neighbours' labels lie apart
        axes.annotate(name, here, apart, textcoords="offset points", ha=side, fontsize=7)
    axes.plot([], [], "D", color=SAFE, ms=5, label="the curator")
    _finish(axes, 1 / 2, "a coin")
    per_person = details["questions"] // details["people"]
    figure.suptitle(f"reconstruct: {per_person} random subsets for each person", fontsize=10, color=INK)
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
    axes.legend(frameon=False, fontsize=7)
