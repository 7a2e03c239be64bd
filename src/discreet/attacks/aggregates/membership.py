"""Membership inference from the means that a study publishes, and the power of the test."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.attacks.aggregates import published_means
from discreet.attacks.aggregates.membership_statistics import AttackerKnowledge, Statistic, membership_scores
from discreet.attacks.aggregates.panel import (
    GENOTYPES_FILE,
    SAMPLES_FILE,
    Panel,
    StudySample,
    draw_study_samples,
    load,
    rarity_of_values,
    sample_attributes,
    simulate_genomes,
)
from discreet.attacks.defences import CURATOR, EASY, OWN, Defence, DefenceChoice, parse_defence, promised_delta
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult, ExposureByRarity, exposure_by_rarity
from discreet.attacks.scores import ScoreEvidence
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_integer, as_nonnegative
from discreet.plotting import (
    BLUE,
    GREY,
    INK,
    MARKERS,
    ORANGE,
    RED,
    add_legend,
    format_plain_numbers,
    panels,
    set_title,
    style,
)

_DEFAULT_DELTA = "1e-6"  # the curator's, unless another is wished
_FALSE_POSITIVE_RATE = 0.05  # the strangers whom the attacker may take for members where people are named


def membership(  # noqa: PLR0913 - each has a name and a default
    data: Panel | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    statistic: Statistic = "likelihood ratio",
    pool: int = 100,
    attributes: int | None = None,
    plays: int = 12,
    delta: Number | None = None,
) -> AttackResult:
    """Tell members of a study from equal strangers, by the means that it publishes of many attributes.

    `data` is a Panel of people, made-up genomes unless given; each of 2·`pool` of them is in the study by a coin. It
    publishes exact means ("nothing"), means in whole percents ("easy"), private means ("curator", Gaussian noise for
    this `delta`, 1e-6 unless given, Laplace noise for 0), or what a function of yours makes of the members' rows: one
    mean from 0 to 1 for each attribute, NaN for none; `epsilon` and `delta` are then what it promises. The attacker
    knows the genome of the person, those of other people, and the means.

    >>> membership(random_state=0).success > 0.95
    True
    >>> result = membership(random_state=0, attributes=50, statistic="inner product")
    >>> 0.55 < result.success < 0.8
    True
    """
    parsed_defence = parse_defence(defence, epsilon)
    exact_delta = promised_delta(parsed_defence, delta, _DEFAULT_DELTA)
    rng = random_generator(random_state)
    panel = sample_attributes(_checked_panel(data, rng), attributes, rng)
    samples = draw_study_samples(panel, pool, plays, rng)
    published, publisher = _publish_means(parsed_defence, samples, (panel.max_value, pool), exact_delta)
    evidence = score_samples(samples, published, (panel.max_value, pool), statistic)
    return AttackResult(
        attack="membership",
        against=parsed_defence,
        metric="of pairs of a member and a stranger were ranked right",
        evidence=evidence,
        details=_details(evidence, samples, published, panel) | {"statistic": statistic, "published by": publisher},
        exposure=_member_exposure(evidence, samples, panel.max_value),
        delta=float(exact_delta),
    )


def _checked_panel(data: Any, rng: np.random.Generator) -> Panel:
    if data is None:
        return simulate_genomes(random_state=int(rng.integers(2**32)))
    if not isinstance(data, Panel):
        raise TypeError(f"data must be a Panel of people, such as Panel(values, most=2), not {type(data).__name__}")
    return data


def _publish_means(
    defence: Defence, samples: Sequence[StudySample], sizes: tuple[int, int], delta: Fraction
) -> tuple[list[np.ndarray], str]:
    """Return what each study publishes, and how it came about."""
    max_value, pool = sizes
    if defence.kind == CURATOR:
        return published_means.private_means(samples, max_value, pool, defence.curator_epsilon, delta)
    if defence.kind == OWN and defence.user_function is not None:
        return [
            published_means.user_means(defence.user_function, play.members, max_value) for play in samples
        ], "a function of yours"
    publish = published_means.rounded_means if defence.kind == EASY else published_means.exact_means
    return [publish(play.members, max_value) for play in samples], "the study itself"


def score_samples(
    samples: Sequence[StudySample], published: Sequence[np.ndarray], sizes: tuple[int, int], statistic: Statistic
) -> ScoreEvidence:
    """Return the scores of all studies' members and strangers, by what was published; `sizes` are most and pool."""
    max_value, pool = sizes
    members, non_members = [], []
    for play, means in zip(samples, published, strict=True):
        knowledge = AttackerKnowledge(means, play.reference, max_value, pool)
        members.append(membership_scores(play.members, knowledge, statistic))
        non_members.append(membership_scores(play.non_members, knowledge, statistic))
    return ScoreEvidence(np.concatenate(members), np.concatenate(non_members))


def _details(
    evidence: ScoreEvidence, samples: Sequence[StudySample], published: Sequence[np.ndarray], panel: Panel
) -> dict[str, Any]:
    curve = evidence.curve
    errors = np.concatenate(
        [
            means - published_means.exact_means(play.members, panel.max_value)
            for play, means in zip(samples, published, strict=True)
        ]
    )
    published_errors = errors[~np.isnan(errors)]
    return {
        "members found at 1 % of strangers": curve.tpr_at(0.01),
        "members found at 0.1 % of strangers": curve.tpr_at(0.001),
        "error of a published mean": float(np.sqrt(np.mean(published_errors**2))) if published_errors.size else None,
        "attributes published": int(np.mean([np.isfinite(means).sum() for means in published])),
        "people in a study, about": round(float(np.mean([len(play.members) for play in samples]))),
        "studies": len(samples),
    }


def _member_exposure(evidence: ScoreEvidence, samples: Sequence[StudySample], max_value: int) -> ExposureByRarity:
    """Return who is found while few strangers are taken for members, by how rare their values are."""
    threshold = np.quantile(evidence.non_members, 1 - _FALSE_POSITIVE_RATE, method="higher")
    rarity = np.concatenate([rarity_of_values(play.members, play.reference, max_value) for play in samples])
    labels = [f"study {at} member {place}" for at, play in enumerate(samples, 1) for place in range(len(play.members))]
    return exposure_by_rarity(
        rarity, evidence.members > threshold, labels=labels, rarity_label="rarity of their values"
    )


ATTACK = Attack(
    run=membership,
    docs_page="membership",
    summary="Tells whose data are in a study, from nothing but the means that it publishes.",
    without_defence="exact means (allele frequencies)",
    with_easy_fix="the means in whole percents",
    with_curator="private totals of every attribute, all of them together for epsilon",
    built_in_data="500 made-up genomes of 1,000 places; 12 studies of about 100 people",
    data_files=(GENOTYPES_FILE, SAMPLES_FILE),
    load=load,
)


_SIZE_COLOURS = (RED, ORANGE, BLUE)


def simulate_answers(people: int, questions: int, *, random_state: int | None = None) -> Panel:
    """Draw people who answer yes or no to so many questions, each with a share of yes between 1/5 and 4/5.

    >>> simulate_answers(4, 3, random_state=0).values.shape
    (4, 3)
    """
    rng, shape = (
        random_generator(random_state),
        (as_integer(people, "people", 1), as_integer(questions, "questions", 1)),
    )
    return Panel(rng.random(shape) < rng.uniform(0.2, 0.8, questions))


def membership_power(d: int, n: int, *, noise: float = 0.0, plays: int = 10, random_state: int | None = None) -> float:
    """Return how well members of a group of n are told from others by d means with noise of this standard deviation.

    It is the area under the curve: 1/2 for guessing. Noise is counted in units of sqrt(d)/n.

    >>> membership_power(1000, 50, random_state=0) > 0.98
    True
    >>> abs(membership_power(1000, 50, noise=20, random_state=0) - 0.5) < 0.1
    True
    """
    rng, deviation = (
        random_generator(random_state),
        float(as_nonnegative(noise, "noise")) * math.sqrt(as_integer(d, "d", 1)) / n,
    )
    panel = simulate_answers(5 * as_integer(n, "n", 10), d, random_state=int(rng.integers(2**32)))
    samples = draw_study_samples(panel, n, plays, random_generator(int(rng.integers(2**32))))
    noisy = [
        published_means.exact_means(play.members, panel.max_value) + rng.normal(0, deviation, d) for play in samples
    ]
    return score_samples(samples, noisy, (panel.max_value, n), "inner product").success


def membership_power_figure(
    *,
    d: Sequence[int] = (10, 30, 100, 300, 1000, 3000),
    n: Sequence[int] = (20, 60, 200),
    noise: Sequence[float] = (0.03, 0.1, 0.3, 1, 3, 10),
    random_state: int | None = None,
) -> Any:
    """Draw the power against d for each n without noise, and against the noise in units of sqrt(d)/n."""
    figure, (left, right) = panels(2)
    largest_d = max(d)
    with style():
        for size, colour, marker in zip(n, _SIZE_COLOURS, MARKERS, strict=False):
            powers = [membership_power(each, size, random_state=random_state) for each in d]
            left.plot(d, powers, f"{marker}-", color=colour, label=f"n = {size}")
            left.axvline(size, color=colour, ls=":", lw=1)
            noisy_powers = [membership_power(largest_d, size, noise=each, random_state=random_state) for each in noise]
            right.plot(noise, noisy_powers, f"{marker}-", color=colour, label=f"n = {size}")
        right.axvline(1, color=INK, ls="--", lw=1)
        left.set(xscale="log", xlabel="means published (d); dotted: d = n", ylabel="pairs ranked right (AUC)")
        left.set_title("no noise")
        right.set(xscale="log", xlabel="noise, in units of sqrt(d)/n")
        right.set_title(f"d = {largest_d:,}")
        for axes in (left, right):
            axes.axhline(0.5, color=GREY, ls=":", lw=1.2, label="guessing")
            axes.set_ylim(0.42, 1.03)
            format_plain_numbers(axes.xaxis)
        add_legend(figure, [left])
        set_title(figure, "Membership is exposed by more means than people, and hidden by noise above sqrt(d)/n")
    return figure
