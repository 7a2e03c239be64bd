"""The rows on membership: who is in a study, inferred from its published means."""

import math

import numpy as np

from discreet import attacks
from mission.data import real
from mission.rows import listed, rate_of, record, row, share_of

PLACES = (500, 2000, 10_000)
FOUND = "TPR at 0.1 % FPR"


@row("A6", "Membership inference from aggregates: who is in a study, inferred from its published means")
def a6():
    made = attacks.compare("membership", epsilons=["1/10", 1, 10], random_state=0)
    nothing, easy, *private = made.results
    rates = {result.epsilon: rate_of(result) for result in private}
    return record(
        "simulated genomes with 1,000 positions, about 100 people in a study, AUC: exact frequencies {exact} "
        "({found_shown} of members found at 0.1 % false positives, epsilon at least {implied:.1f}), rounded to whole "
        "percents {easy}; the curator {shown}: [picture](pictures/attack-membership.svg)",
        exact=rate_of(nothing),
        found=nothing.details[FOUND],
        found_shown=share_of(nothing.details[FOUND], nothing.evidence.members.size),
        implied=nothing.implied.low,
        easy=rate_of(easy),
        private=rates,
        shown=", ".join(f"at epsilon {float(epsilon):g} {each}" for epsilon, each in rates.items()),
    )


@row("B2", "Membership of a genome in a study's allele frequencies: 1000 Genomes, pools of about 100 Europeans")
def b2():
    ways = {
        "exact": {},
        "homer": {"statistic": "homer"},
        "easy": {"defence": "easy"},
        "private": {"defence": "curator", "epsilon": 1},
    }
    people = real("membership")
    rates = {
        way: [rate_of(attacks.membership(people, attributes=d, random_state=0, **settings)) for d in PLACES]
        for way, settings in ways.items()
    }
    return record(
        "AUC with {places} SNPs: likelihood ratio {exact}; Homer's score {homer}; rounded to whole percents {easy}; "
        "private frequencies at epsilon 1 {private}",
        places=listed(PLACES, ","),
        rates=rates,
        **{way: ", ".join(map(str, each)) for way, each in rates.items()},
    )


@row("D1", "Membership attack on d noisy means of n people: its power falls when the noise exceeds sqrt(d)/n")
def d1():
    parts, sizes = (0, 0.1, 1, 10), ((400, 100), (2000, 100), (2000, 400))
    rates = {size: [rate_of(power(*size, part)) for part in parts] for size in sizes}
    panel = answers(500, 2000, np.random.default_rng(0))
    private = attacks.membership(panel, defence="curator", epsilon=1, random_state=0)
    return record(
        "AUC with noise of {parts} times sqrt(d)/n on means clamped to 0 … 1: {shown}; the curator's noise at "
        "epsilon 1 is {noise:.1f} times sqrt(d)/n: {private}: [picture](pictures/attack-membership-means.svg)",
        parts=listed(parts),
        rates=rates,
        noise=private.details["error of a published mean"] / (math.sqrt(2000) / 100),
        private=rate_of(private),
        shown="; ".join(
            f"d = {d:,}, n = {n}: {', '.join(each.ends for each in found)}" for (d, n), found in rates.items()
        ),
    )


def answers(people, questions, rng):
    """Simulate yes-or-no answers to questions whose shares of yes are between 0.2 and 0.8."""
    return attacks.Panel(rng.random((people, questions)) < rng.uniform(0.2, 0.8, questions))


def power(d, n, part, plays=20):
    """Attack d means of n people with noise of part·sqrt(d)/n by the inner product."""
    rng = np.random.default_rng(1)
    width = part * math.sqrt(d) / n

    def noisy(rows):
        return np.clip(rows.mean(axis=0) + rng.normal(0, width, d), 0, 1)

    return attacks.membership(
        answers(5 * n, d, rng), defence=noisy, pool=n, plays=plays, statistic="inner product", random_state=1
    )
