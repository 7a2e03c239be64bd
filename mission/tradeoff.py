"""The rows on what privacy costs and buys: the trade-off, a habit under three units, and privacy beside sampling."""

import functools
import math
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

import discreet as dc
from discreet.cli.tour.town import Town, build
from discreet.cli.tour.tradeoff import ONE, counts, play, point
from mission.rows import row

PLAYS = 400
EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(3))
ATTRIBUTES = 400
SURVEYS = 40_000


@row("B8", "The utility-privacy trade-off, as a picture")
def b8():
    margins, played = _played()
    said = []
    for each, margin in zip(played, margins, strict=True):
        ceiling = point(float(each.epsilon)).ceiling
        said.append(
            f"epsilon {each.epsilon}: count ± {margin:.0f}, attack right in {each.share:.1%} (ceiling {ceiling:.1%})"
        )
    return f"{'; '.join(said)}; {PLAYS} plays each: [picture](pictures/tradeoff.svg)"


@functools.cache
def _played():
    """Ask for margins, and play the game of differencing."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        town = Town(Path(folder))
        with town.under("4") as curator:
            sql = counts(town.governor())[0]
            margins = [curator.explain(sql, epsilon=epsilon).columns[0].margin for epsilon in EPSILONS]
        return margins, [play(town, epsilon, PLAYS) for epsilon in EPSILONS]


@row("D7", "Privacy error 1/(epsilon·n) beside sampling error 1/sqrt(n) and the attack regime sqrt(d)/n, as a picture")
def d7():
    said = [f"{epsilon}: n ≥ {crossing(epsilon):,}" for epsilon in ("1", "1/10", "1/100")]
    rng = np.random.default_rng()
    n = crossing("1/10")
    sampling = rng.binomial(n, 0.5, SURVEYS) / n - 0.5
    noise = dc.laplace_for(ONE, "1/10").perturb(np.zeros(SURVEYS, np.int64)) / n
    within = [f"{np.quantile(np.abs(errors), 0.95):.1%}" for errors in (sampling, noise)]
    guesses = [f"{members_found(part, rng):.0%}" for part in (0.1, 1, 10)]
    return (
        f"privacy costs less than sampling, by epsilon: {', '.join(said)} (in {SURVEYS:,} surveys of {n:,}: "
        f"sampling ± {within[0]}, noise ± {within[1]}, at 95 %); who is a member is guessed from {ATTRIBUTES} answers "
        f"with errors of 0.1, 1, 10 times sqrt(d)/n: {', '.join(guesses)} right: [picture](pictures/sampling.svg)"
    )


def sampling_margin(n):
    """How far a share in a sample of n strays from one half, at 95 %."""
    return 1.96 * 0.5 / math.sqrt(n)


def crossing(epsilon):
    """Return the n from which the noise of a private share has a smaller margin than the sample itself."""
    margin = dc.laplace_for(ONE, epsilon).margin(0.95)
    return math.ceil((margin / (1.96 * 0.5)) ** 2)


def members_found(part, rng, n=100, games=2000):
    """Return how often members of a group of n are told from others by its d answers with errors of part·sqrt(d)/n."""
    d = ATTRIBUTES
    chances = np.full(d, 0.5)
    right = 0
    for _ in range(games // 50):
        group = rng.random((n, d)) < chances
        answers = group.mean(axis=0) + rng.normal(0, part * math.sqrt(d) / n, d)
        others = rng.random((25, d)) < chances
        scores = (np.concatenate([group[:25], others]) - chances) @ (answers - chances)
        # What a member adds to the score on average is d·p(1-p)/n; the guess is at half of it.
        guessed = scores >= d * 0.25 / n / 2
        right += int((guessed == np.repeat([True, False], 25)).sum())
    return right / (games // 50 * 50)
