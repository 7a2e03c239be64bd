"""Draw the pictures of local privacy: `make pictures`. Everybody in them is made up.

coins.svg: the survey of two coins: what is said for what is true, and the share that is told for so many people.
salaries.svg: the margin of a mean salary against the number of people, for every way to perturb a number at home.
local.svg: surveys at home beside a curator's histogram, against epsilon and against the number of people.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from discreet import local
from discreet.cli.tour.pictures import INK, WITH, WITHOUT, panels, saved
from discreet.local.pictures import compare, curator_error, survey_error
from discreet.local.schemes.binary import Duchi
from discreet.local.schemes.hadamard import Hadamard
from discreet.local.schemes.hybrid import Hybrid
from discreet.local.schemes.noisy import NoisyMean
from discreet.local.schemes.piecewise import Piecewise

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SHARE = 0.2  # of people who have what is asked about
CROWDS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
HIGHEST = 200_000  # the upper bound of a salary
MEANS = {
    "NoisyMean": (NoisyMean, "#7f7f7f", "-"),
    "Duchi": (Duchi, WITHOUT, "-"),
    "Piecewise": (Piecewise, WITH, "-"),
    "Hybrid": (Hybrid, INK, "--"),
}
SIZE = 128
EPSILONS = (0.1, 0.25, 0.5, 1, 2, 4, 6)


def draw_coins(folder: Path, crowds: Sequence[int] = CROWDS) -> Path:
    """Draw the survey of two coins: on the left who says yes, on the right what is made of it."""
    coin = local.RandomizedResponse("1/2")
    figure, (left, right) = panels(2)
    shares, people = np.linspace(0, 1, 11), 2_000
    said = [coin.perturb(np.arange(people) < share * people).mean() for share in shares]
    left.plot(shares, 1 / 4 + shares / 2, color=WITHOUT, label="expected: 1/4 + p/2")
    left.plot(shares, said, "o", color=WITH, ms=4, label=f"{people:,} people said")
    left.plot(shares, shares, color=INK, lw=0.8, ls=":", label="without coins")
    left.set(xlabel="share who have the property (p)", ylabel="share who say yes", ylim=(0, 1))
    left.set_title("a yes proves nothing", fontsize=10)
    found = [coin.estimate(coin.perturb(np.arange(n) < SHARE * n)) for n in crowds]
    margins = np.array([margin for _, margin in found])
    right.fill_between(crowds, SHARE - margins, SHARE + margins, color=WITHOUT, alpha=0.15, lw=0)
    right.errorbar(
        crowds, [share for share, _ in found], margins, fmt="o", color=WITHOUT, ms=4, capsize=2, label="told"
    )
    right.axhline(SHARE, color=INK, lw=0.8, ls="--", label="true")
    right.set(xscale="log", xlabel="people", ylabel="estimated share ± 95 %", ylim=(SHARE - 0.32, SHARE + 0.32))
    right.xaxis.set_major_formatter("{x:,.0f}")
    right.set_title("but a crowd tells its share", fontsize=10)
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8)
    return saved(figure, folder / "coins.svg")


def salaries(people: int) -> np.ndarray:
    """Return made-up salaries: most between 20,000 and 100,000."""
    return np.random.default_rng(people).gamma(4, 15_000, people).clip(0, HIGHEST)


def draw_salaries(folder: Path, crowds: Sequence[int] = CROWDS, epsilons: Sequence[float] = EPSILONS) -> Path:
    """Draw margins of a mean salary, against the number of people with errors as dots, and against epsilon."""
    figure, (left, right) = panels(2)
    some = crowds[len(crowds) // 2]
    for name, (make, colour, style) in MEANS.items():
        found = [_surveyed(make(0, HIGHEST, 1), people) for people in crowds]
        left.plot(crowds, [margin for margin, _ in found], style, color=colour, label=name)
        left.plot(crowds, [error for _, error in found], ".", color=colour, ms=4)
        priced = [_surveyed(make(0, HIGHEST, epsilon), some)[0] for epsilon in epsilons]
        right.plot(epsilons, priced, style, color=colour, label=name)
        print(f"  {name:10} ± {found[-1][0]:,.0f} of {crowds[-1]:,} at epsilon 1", flush=True)
    left.set(xscale="log", xlabel="people", ylabel="margin of the mean salary, at 95 %", ylim=(5, HIGHEST))
    left.set_title("epsilon 1: margins (lines), errors (dots)", fontsize=10)
    left.xaxis.set_major_formatter("{x:,.0f}")
    right.set(xscale="log", xlabel="price (epsilon)")
    right.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    right.set_xticks([], minor=True)
    right.set_title(f"{some:,} people", fontsize=10)
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.set(yscale="log")
        axes.yaxis.set_major_formatter("{x:,.0f}")
    return saved(figure, folder / "salaries.svg")


def _surveyed(survey: local.Oracle, people: int) -> tuple[float, float]:
    """Ask so many people; return the margin and the error."""
    paid = salaries(people)
    mean, margin = survey.estimate(survey.perturb(paid))
    return float(margin), abs(float(mean - paid.mean()))


def answers(people: int) -> np.ndarray:
    """Return made-up places: a few values are frequent, most are rare."""
    shares = 1 / np.arange(1, SIZE + 1)
    return np.random.default_rng(SIZE).choice(SIZE, people, p=shares / shares.sum())


def draw_trust(
    folder: Path, people: int = 1_000_000, crowds: Sequence[int] = CROWDS, epsilons: Sequence[float] = EPSILONS
) -> Path:
    """Draw the error of a share at home and at a curator's, against epsilon and against the number of people."""
    figure, (left, right) = panels(2)
    compare(answers(people), SIZE, epsilons, axes=left)
    times = [max(5, min(100, 1_000_000 // n)) for n in crowds]
    home = [survey_error(Hadamard(SIZE, 1), answers(n), times=often) for n, often in zip(crowds, times, strict=True)]
    central = [curator_error(n, 1) for n in crowds]
    right.plot(crowds, home, ".-", color="#c0392b", label="Hadamard: falls as 1/sqrt(n)")
    right.plot(crowds, central, ".-", color=WITH, lw=2, label="a curator: falls as 1/n")
    right.fill_between(crowds, central, home, color=INK, alpha=0.06, lw=0)
    apart, middle = home[-1] / central[-1], np.sqrt(home[-1] * central[-1])
    right.annotate(f"{apart:,.0f} times", (crowds[-1], middle), ha="right")
    right.set(xscale="log", yscale="log", xlabel="people (n)")
    right.xaxis.set_major_formatter("{x:,.0f}")
    right.set_title(f"epsilon 1, {SIZE} values", fontsize=10)
    right.legend(frameon=False, fontsize=8)
    print(f"  at epsilon 1 and {crowds[-1]:,} people: {home[-1]:.2g} at home, {central[-1]:.2g} at a curator's")
    return saved(figure, folder / "local.svg")


def main() -> int:
    """Measure, print and draw."""
    for draw in (draw_coins, draw_salaries, draw_trust):
        print(f"drew docs/pictures/{draw(FOLDER).name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
