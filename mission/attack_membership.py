"""The rows on membership: who is in a study, told from the means that it publishes."""

import functools
import os
from pathlib import Path

import numpy as np

from discreet import attacks
from discreet.attacks.aggregates.genomes import GENOTYPES, load
from discreet.attacks.aggregates.means import answers, power
from mission.rows import NeedsDataError, row

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
PLACES = (500, 2000, 10_000)
SEEDS = range(2)


@row("A6", "Membership inference from aggregates: who is in a study, told from the means that it publishes")
def a6():
    made = attacks.compare("membership", epsilons=["1/10", 1, 10], random_state=0)
    nothing, easy, *private = made.results
    found = nothing.details["members found at 0.1 % of strangers"]
    held = ", ".join(f"{each.epsilon}: {each.success:.2f} (allowed {each.ceiling:.2f})" for each in private)
    return (
        f"made-up genomes of 1,000 places, about 100 people in a study: exact frequencies AUC {nothing.success:.3f} "
        f"({found:.0%} found at 0.1 % of strangers, epsilon at least {nothing.implied.low:.1f}), in whole percents "
        f"{easy.success:.3f}; the curator by epsilon {held}: [picture](pictures/attack-membership.svg)"
    )


@row("B2", "Membership of a genome in a study's allele frequencies: 1000 Genomes, pools of about 100 Europeans")
def b2():
    exact, homer = listed(), listed(statistic="homer")
    return (
        f"AUC with {' / '.join(f'{places:,}' for places in PLACES)} SNPs: likelihood ratio {exact}, Homer's score "
        f"{homer}; in whole percents {listed(defence='easy')}; private frequencies at epsilon 1 "
        f"{listed(defence='curator', epsilon=1)}"
    )


@functools.cache
def europeans():
    if not (DATA / GENOTYPES).exists():
        raise NeedsDataError(f"{GENOTYPES} in DISCREET_DATA")
    return load(DATA)


def listed(**settings):
    """Return the mean AUC for each number of places."""
    said = []
    for places in PLACES:
        reached = [
            attacks.membership(europeans(), attributes=places, random_state=seed, **settings).success for seed in SEEDS
        ]
        said.append(f"{np.mean(reached):.2f}")
    return " / ".join(said)


@row("D1", "Membership attack on d noisy means of n people: its power falls where noise passes sqrt(d)/n")
def d1():
    said = []
    for d, n in ((400, 100), (2000, 100), (2000, 400)):
        reached = [power(d, n, noise=noise, plays=20, random_state=1) for noise in (0, 0.1, 1, 10)]
        said.append(f"d = {d:,}, n = {n}: {' / '.join(f'{each:.2f}' for each in reached)}")
    private = attacks.membership(answers(500, 2000, random_state=0), defence="curator", epsilon=1, random_state=0)
    noise = private.details["error of a published mean"] / (2000**0.5 / 100)
    return (
        f"AUC with noise of 0 / 0.1 / 1 / 10 times sqrt(d)/n: {'; '.join(said)}; the curator's noise at epsilon 1 is "
        f"{noise:.1f} times sqrt(d)/n, AUC {private.success:.2f}: [picture](pictures/attack-membership-means.svg)"
    )
