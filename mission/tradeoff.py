"""The rows on what privacy costs and buys: the trade-off of a count, and privacy beside sampling."""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import discreet as dc
from mission.attack_membership import power
from mission.curator import ILL, OTHERS, column, governors, opened, town
from mission.rows import Rate, rate, rate_of, record, row

ONE = dc.Sensitivity(groups=1, size=1)
PLAYS = 4000
EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(3))
ATTRIBUTES = 400
SURVEYS = 40_000


@row("B8", "The utility-privacy trade-off, as a picture", uses="the picture is drawn by the tour")
def b8():
    shown = (
        f"epsilon {epsilon}: count ± {each.margin:.0f}, attack right in {each.right}, in theory {each.theory:.1%}"
        for epsilon, each in played().items()
    )
    return record(
        "{shown}; two counts, {plays:,} governors: [picture](pictures/tradeoff.svg)",
        played=played(),
        plays=PLAYS,
        shown="; ".join(shown),
    )


@dataclass(frozen=True)
class Difference:
    """What an epsilon buys: the margin of a count, and how often a difference of two counts is right."""

    margin: float
    hits: int
    right: Rate
    theory: float


@functools.cache
def played():
    """Ask for margins, and guess the illness of every governor from two counts that cost epsilon together."""
    people = town(PLAYS)
    ill, found = governors(people), {}
    for epsilon in EPSILONS:
        with opened(people, epsilon) as curator:
            margin = curator.explain(ILL, epsilon=epsilon).columns[0].margin
            counts = (column(curator.ask(sql, epsilon=epsilon / 2).frame, "n", PLAYS) for sql in (ILL, OTHERS))
            hits = int(((next(counts) - next(counts) >= 1) == ill).sum())
        ceiling = dc.privacy.posterior_bound(0.5, float(epsilon))
        found[epsilon] = Difference(margin, hits, rate(hits, PLAYS, ceiling), in_theory(epsilon))
    return found


def in_theory(epsilon):
    """Return how often the difference of two noisy counts is right: (1 + Pr[their noises are equal]) / 2.

    The curator draws noise on a fine grid and rounds counts: about Laplace noise, rounded.
    """
    rise = math.exp(float(epsilon) / 4)  # half the epsilon for each count, and half a step to the next integer
    zero, step = 1 - 1 / rise, math.exp(-float(epsilon) / 2)
    one = (rise - 1 / rise) * step / 2
    return (1 + zero**2 + 2 * one**2 / (1 - step**2)) / 2


@row("D7", "Privacy error 1/(epsilon·n) beside sampling error 1/sqrt(n) and the attack regime sqrt(d)/n, as a picture")
def d7():
    crossings = {epsilon: crossing(epsilon) for epsilon in ("1", "1/10", "1/100")}
    n = crossings["1/10"]
    sampling = np.random.default_rng().binomial(n, 0.5, SURVEYS) / n - 0.5
    noise = dc.laplace_for(ONE, "1/10").perturb(np.zeros(SURVEYS, np.int64)) / n
    errors = [float(np.quantile(np.abs(each), 0.95)) for each in (sampling, noise)]
    found = {part: rate_of(power(ATTRIBUTES, 100, part, plays=10)) for part in (0, 0.1, 1, 10)}
    return record(
        "privacy costs less than sampling, by epsilon: {shown} (in {surveys:,} surveys of {n:,}: sampling ± "
        "{sampling:.1%}, noise ± {noise:.1%}, at 95 %); pairs of a member and a non-member ranked right from "
        "{attributes} means with errors of 0, 0.1, 1, 10 times sqrt(d)/n: {ranked}: [picture](pictures/sampling.svg)",
        crossings=crossings,
        n=n,
        surveys=SURVEYS,
        sampling=errors[0],
        noise=errors[1],
        attributes=ATTRIBUTES,
        found=found,
        shown=", ".join(f"{epsilon}: n ≥ {least:,}" for epsilon, least in crossings.items()),
        ranked=", ".join(each.ends for each in found.values()),
    )


def sampling_margin(n):
    """How far a share in a sample of n strays from one half, at 95 %."""
    return 1.96 * 0.5 / math.sqrt(n)


def crossing(epsilon):
    """Return the n from which the noise of a private share has a smaller margin than the sample itself."""
    margin = dc.laplace_for(ONE, epsilon).margin(0.95)
    return math.ceil((margin / (1.96 * 0.5)) ** 2)
