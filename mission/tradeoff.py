"""The rows on accuracy and privacy: the trade-off for a count, and privacy noise compared with sampling error."""

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


@row("B8", "The utility-privacy trade-off, as a picture", uses="the tour draws the picture")
def b8():
    shown = (
        f"epsilon {float(epsilon):g}: count ± {each.margin:.0f}, attack correct in {each.right}, in theory "
        f"{each.theory:.1%}"
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
    """Margin of a count at an epsilon, and success of differencing two counts."""

    margin: float
    hits: int
    right: Rate
    theory: float


@functools.cache
def played():
    """Return margins, and guess the illness of every governor from two counts at a total cost of epsilon."""
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
    """Return the success probability of differencing two noisy counts: (1 + Pr[both noises are equal]) / 2.

    The curator draws noise on a fine grid and rounds counts, which is close to rounded Laplace noise.
    """
    rise = math.exp(float(epsilon) / 4)  # each count gets half of epsilon; half a step to the next integer
    zero, step = 1 - 1 / rise, math.exp(-float(epsilon) / 2)
    one = (rise - 1 / rise) * step / 2
    return (1 + zero**2 + 2 * one**2 / (1 - step**2)) / 2


@row("D7", "Privacy error 1/(epsilon·n), sampling error 1/sqrt(n) and the attack regime sqrt(d)/n, as a picture")
def d7():
    crossings = {epsilon: crossing(epsilon) for epsilon in ("1", "0.1", "0.01")}
    n = crossings["0.1"]
    sampling = np.random.default_rng().binomial(n, 0.5, SURVEYS) / n - 0.5
    noise = dc.laplace_for(ONE, "0.1").perturb(np.zeros(SURVEYS, np.int64)) / n
    errors = [float(np.quantile(np.abs(each), 0.95)) for each in (sampling, noise)]
    found = {part: rate_of(power(ATTRIBUTES, 100, part, plays=10)) for part in (0, 0.1, 1, 10)}
    return record(
        "privacy noise is smaller than sampling error from, by epsilon: {shown} (in {surveys:,} surveys of {n:,} "
        "people: sampling ± {sampling:.1%}, noise ± {noise:.1%}, at 95 %); membership AUC from {attributes} means with "
        "errors of 0, 0.1, 1, 10 times sqrt(d)/n: {ranked}: [picture](pictures/sampling.svg)",
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
    """Return the 95 % sampling error of a share of one half in a sample of n."""
    return 1.96 * 0.5 / math.sqrt(n)


def crossing(epsilon):
    """Return the n from which privacy noise has a smaller margin than sampling."""
    margin = dc.privacy.margin(dc.laplace_for(ONE, epsilon), 0.95)
    return math.ceil((margin / (1.96 * 0.5)) ** 2)
