"""Figures of reconstruction: accuracy against the error of the answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.attacks.aggregates.linear_reconstruction import expected_accuracy
from discreet.attacks.result import AttackResult, percent
from discreet.plotting import BLUE, GREY, INK, ORANGE, RED, add_legend, format_plain_numbers, panels, set_title, style

_MIN_ERROR, _MAX_ERROR = 0.05, 8.0
_ERROR_KEY = "error of a share, in units of 1/sqrt(n)"


def draw_accuracy_by_error(
    axes: Any, *, shape: tuple[int, int], answer_error: float, accuracy: float, bit_rate: float
) -> None:
    """Draw the accuracy of least squares against the error of the answers, and mark this run."""
    questions, people = shape
    here = max(answer_error / np.sqrt(people), _MIN_ERROR)
    if questions > people:
        _draw_theory(axes, shape, max(_MAX_ERROR, 1.5 * here), bit_rate)
    axes.plot([here], [accuracy], "o", color=RED, ms=6, label="this run")
    _finish_axes(axes, max(bit_rate, 1 - bit_rate), "guessing")


def accuracy_by_error_figure(
    by_least_squares: Sequence[AttackResult], by_linear_programme: Sequence[AttackResult], private: Any
) -> Any:
    """Draw runs of `reconstruct` with increasing noise, for both solvers, and runs against the curator.

    `private` maps labels to results. In these units the number of people does not matter, as long as all runs have the
    same number of queries per person.
    """
    figure, (axes,) = panels(height=3.4)
    details = by_least_squares[0].details
    with style():
        _draw_theory(axes, (details["questions"], details["people"]), 1.5 * max(map(_error_of, private.values())))
        for results, mark, colour, label in (
            (by_least_squares, "o", RED, "least squares"),
            (by_linear_programme, "x", ORANGE, "linear programme"),
            (list(private.values()), "D", BLUE, "the curator"),
        ):
            errors, shares = [_error_of(each) for each in results], [each.success for each in results]
            axes.plot(errors, shares, mark, color=colour, ms=5, label=label)
        for name, result in private.items():
            above = result.success >= 1 / 2  # keep labels off the guessing line
            alignment = {"ha": "left", "va": "bottom"} if above else {"ha": "center", "va": "top"}
            offset = (6, 5) if above else (0, -6)
            axes.annotate(
                name, (_error_of(result), result.success), offset, textcoords="offset points", fontsize=8, **alignment
            )
        _finish_axes(axes, 1 / 2, "guessing")
        add_legend(figure, [axes])
        worst, best = max(by_least_squares, key=lambda each: each.success), max(private.values(), key=_error_of)
        set_title(
            figure,
            f"{details['questions'] // details['people']} random subset sums per person: nearly exact answers "
            f"reconstruct {percent(worst.success)} of the bits, the curator's noisiest {percent(best.success)}",
        )
    return figure


def _error_of(result: AttackResult) -> float:
    return max(float(result.details[_ERROR_KEY]), _MIN_ERROR)


def _draw_theory(axes: Any, shape: tuple[int, int], max_error: float, bit_rate: float = 1 / 2) -> None:
    questions, people = shape
    errors = np.geomspace(_MIN_ERROR, max_error, 160)
    theory = [expected_accuracy(people, questions, error * np.sqrt(people), bit_rate) for error in errors]
    axes.plot(errors, theory, color=GREY, lw=1.2, label="least squares, in theory")


def _finish_axes(axes: Any, guessing: float, label: str) -> None:
    axes.axhline(guessing, color=INK, ls=":", lw=1, label=label)
    axes.set(xscale="log", ylim=(0.4, 1.04), xlabel=_ERROR_KEY, ylabel="share of bits reconstructed")
    format_plain_numbers(axes.xaxis)
