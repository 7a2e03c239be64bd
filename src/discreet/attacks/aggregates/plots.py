"""Figures of reconstruction: accuracy against the error of the answers."""

from typing import Any

import numpy as np

from discreet.attacks.aggregates.linear_reconstruction import expected_accuracy
from discreet.plotting import GREY, INK, RED, format_plain_numbers

MIN_ERROR, _MAX_ERROR = 0.05, 8.0
ERROR_KEY = "error of a share, in units of 1/sqrt(n)"


def draw_accuracy_by_error(
    axes: Any, *, shape: tuple[int, int], answer_error: float, accuracy: float, bit_rate: float
) -> None:
    """Draw the accuracy of least squares against the error of the answers, and mark this run."""
    questions, people = shape
    here = max(answer_error / np.sqrt(people), MIN_ERROR)
    if questions > people:
        draw_theory(axes, shape, max(_MAX_ERROR, 1.5 * here), bit_rate)
    axes.plot([here], [accuracy], "o", color=RED, ms=6, label="this run")
    finish_axes(axes, max(bit_rate, 1 - bit_rate), "guessing")


def draw_theory(axes: Any, shape: tuple[int, int], max_error: float, bit_rate: float = 1 / 2) -> None:
    """Draw the theoretical accuracy of least squares up to this error."""
    questions, people = shape
    errors = np.geomspace(MIN_ERROR, max_error, 160)
    theory = [expected_accuracy(people, questions, error * np.sqrt(people), bit_rate) for error in errors]
    axes.plot(errors, theory, color=GREY, lw=1.2, label="least squares, in theory")


def finish_axes(axes: Any, guessing: float, label: str) -> None:
    """Label the axes, and draw the line of guessing."""
    axes.axhline(guessing, color=INK, ls=":", lw=1, label=label)
    axes.set(xscale="log", ylim=(0.4, 1.04), xlabel=ERROR_KEY, ylabel="share of bits reconstructed")
    format_plain_numbers(axes.xaxis)
