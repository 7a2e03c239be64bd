"""The pictures of the local model, with simulated people.

coins: randomised response with two coins: shares of yes, and estimates by the number of people.
salaries: the margin of a mean salary against the number of people and epsilon, for each mechanism.
local: the error of a share in the local model beside that of a curator, against epsilon and the number of people.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet import local
from discreet.local.error_comparison import compare, curator_error, survey_error
from discreet.local.frequency_oracles.hadamard_response import Hadamard
from discreet.local.mean_estimation.duchi import Duchi
from discreet.local.mean_estimation.hybrid import Hybrid
from discreet.local.mean_estimation.noisy_mean import NoisyMean
from discreet.local.mean_estimation.piecewise import Piecewise
from discreet.plotting import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    RED,
    add_legend,
    format_plain_numbers,
    panels,
    set_epsilon_ticks,
    set_title,
    style,
)

SHARE = 0.2  # of people with the property in question
ASKED = 2_000  # people for each share
CROWDS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
HIGHEST = 200_000  # the upper bound of a salary
MEANS = {
    "NoisyMean": (NoisyMean, GREY, "-"),
    "Duchi": (Duchi, BLUE, "-"),
    "Piecewise": (Piecewise, ORANGE, "-"),
    "Hybrid": (Hybrid, INK, "--"),
}
SIZE = 128
EPSILONS = (0.1, 0.25, 0.5, 1, 2, 4, 6)
Found = tuple[float, float]  # a mean or a share, or its error, and its margin


def coins(crowds: Sequence[int] = CROWDS) -> tuple[list[float], dict[int, Found]]:
    """Return the shares of yes for eleven true shares, and estimates by the number of people."""
    coin = local.RandomizedResponse("1/2")
    said = [float(coin.perturb(np.arange(ASKED) < share * ASKED).mean()) for share in np.linspace(0, 1, 11)]
    return said, {n: tuple(coin.estimate(coin.perturb(np.arange(n) < SHARE * n))) for n in crowds}


def coins_figure(said: Sequence[float], found: Mapping[int, Found]) -> Any:
    """Draw the shares of yes (left) and the estimates (right)."""
    figure, (left, right) = panels(2)
    shares, crowds = np.linspace(0, 1, len(said)), list(found)
    estimates, margins = np.array(list(found.values())).T
    with style():
        left.plot(shares, 1 / 4 + shares / 2, color=BLUE, label="expected: 1/4 + p/2")
        left.plot(shares, said, "o", color=ORANGE, label=f"{ASKED:,} people")
        left.plot(shares, shares, color=INK, lw=0.8, ls=":", label="without coins")
        left.set(xlabel="true share (p)", ylabel="share of yes", ylim=(0, 1))
        left.set_title("A single yes proves nothing")
        right.fill_between(crowds, SHARE - margins, SHARE + margins, color=BLUE, alpha=0.15, lw=0)
        right.errorbar(crowds, estimates, margins, fmt="o", color=BLUE, label="estimate (95 % margin)")
        right.axhline(SHARE, color=INK, lw=0.8, ls="--", label="true share")
        right.set(xscale="log", xlabel="people", ylabel="estimated share", ylim=(SHARE - 0.32, SHARE + 0.32))
        right.set_title("The share can be estimated")
        format_plain_numbers(right.xaxis)
        add_legend(figure, [left, right], columns=3)
        set_title(
            figure,
            f"Two coins hide each answer; {crowds[-1]:,} answers give the share to within ± "
            f"{100 * margins[-1]:.1g} percentage points",
        )
    return figure


def salaries(people: int) -> np.ndarray:
    """Return simulated salaries: most between 20,000 and 100,000."""
    return np.random.default_rng(people).gamma(4, 15_000, people).clip(0, HIGHEST)


def margins_of_salaries(
    crowds: Sequence[int] = CROWDS, epsilons: Sequence[float] = EPSILONS
) -> dict[str, tuple[dict[int, Found], dict[float, float]]]:
    """Return for each mechanism margin and error by the number of people, and the margin by epsilon."""
    some = crowds[len(crowds) // 2]
    return {
        name: (
            {people: _surveyed(make(0, HIGHEST, 1), people) for people in crowds},
            {epsilon: _surveyed(make(0, HIGHEST, epsilon), some)[0] for epsilon in epsilons},
        )
        for name, (make, _, _) in MEANS.items()
    }


def salaries_figure(found: Mapping[str, tuple[Mapping[int, Found], Mapping[float, float]]]) -> Any:
    """Draw margins of a mean salary, against the number of people with errors as dots, and against epsilon."""
    figure, (left, right) = panels(2)
    with style():
        for name, (by_people, by_epsilon) in found.items():
            _, colour, line = MEANS[name]
            margins, errors = np.array(list(by_people.values())).T
            left.plot(list(by_people), margins, line, color=colour, label=name)
            left.plot(list(by_people), errors, ".", color=colour)
            right.plot(list(by_epsilon), list(by_epsilon.values()), line, color=colour, label=name)
        crowds, epsilons = list(by_people), list(by_epsilon)
        left.set(xscale="log", xlabel="people", ylabel="95 % margin of the mean salary", ylim=(5, HIGHEST))
        left.set_title("epsilon 1: margins (lines), errors (dots)")
        set_epsilon_ticks(right, epsilons)
        right.set_title(f"{crowds[len(crowds) // 2]:,} people: margins")
        for axes in (left, right):
            axes.set(yscale="log")
            format_plain_numbers(axes.yaxis)
        format_plain_numbers(left.xaxis)
        add_legend(figure, [left])
        last = {name: by_epsilon[epsilons[-1]] for name, (_, by_epsilon) in found.items()}
        best = min(last, key=last.__getitem__)
        set_title(
            figure,
            f"Mean salary in the local model: at epsilon {epsilons[-1]:g} the margin of {best}, the best mechanism, is "
            f"{last['NoisyMean'] / last[best]:.1f} times smaller than that of NoisyMean",
        )
    return figure


def _surveyed(survey: local.Oracle, people: int) -> tuple[float, float]:
    """Survey this many people; return the margin and the error."""
    paid = salaries(people)
    mean, margin = survey.estimate(survey.perturb(paid))
    return float(margin), abs(float(mean - paid.mean()))


def answers(people: int) -> np.ndarray:
    """Return simulated values: a few are frequent, most are rare."""
    shares = 1 / np.arange(1, SIZE + 1)
    return np.random.default_rng(SIZE).choice(SIZE, people, p=shares / shares.sum())


def errors_by_people(crowds: Sequence[int] = CROWDS) -> tuple[dict[int, float], dict[int, float]]:
    """Return the error of a share at epsilon 1, in the local model and with a curator, by the number of people."""
    times = {n: max(5, min(100, 1_000_000 // n)) for n in crowds}
    home = {n: survey_error(Hadamard(SIZE, 1), answers(n), times=often) for n, often in times.items()}
    return home, {n: curator_error(n, 1) for n in crowds}


def trust_figure(
    home: Mapping[int, float],
    central: Mapping[int, float],
    people: int = 1_000_000,
    epsilons: Sequence[float] = EPSILONS,
) -> Any:
    """Draw the error of a share in the local model and with a curator, against epsilon and the number of people."""
    figure, (left, right) = panels(2)
    compare(answers(people), SIZE, epsilons, axes=left)
    crowds, most = list(home), max(home)
    with style():
        right.plot(crowds, list(home.values()), "D-", ms=3.5, color=RED, lw=1.2, label="Hadamard")
        right.plot(crowds, list(central.values()), ".-", color=INK, lw=2, label="a curator")
        right.fill_between(crowds, list(central.values()), list(home.values()), color=INK, alpha=0.06, lw=0)
        right.set(xscale="log", yscale="log", xlabel="people (n)")
        right.set_title(f"epsilon 1, {SIZE} values")
        middle = np.sqrt(home[crowds[0]] * home[most])
        right.annotate("1/sqrt(n)", (crowds[len(crowds) // 2], 2.2 * middle), ha="left", fontsize=8)
        right.annotate("1/n", (crowds[len(crowds) // 2], central[crowds[len(crowds) // 2]] / 4), ha="right", fontsize=8)
        format_plain_numbers(right.xaxis, right.yaxis)
        add_legend(figure, [left], columns=5)
        set_title(
            figure,
            f"With {most:,} people at epsilon 1, the error of a share is {home[most] / central[most]:,.0f} times "
            "larger in the local model than with a curator",
        )
    return figure


PICTURES = {
    "coins": (coins, lambda found: coins_figure(*found)),
    "salaries": (margins_of_salaries, salaries_figure),
    "local": (errors_by_people, lambda found: trust_figure(*found)),
}
