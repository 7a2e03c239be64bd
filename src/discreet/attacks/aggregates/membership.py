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

_DEFAULT_DELTA = "1e-6"  # for the curator
_FALSE_POSITIVE_RATE = 0.05  # at which a member counts as found in the exposure by rarity


def membership(  # noqa: PLR0913 - all but the first by name only
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
    """Infer membership in a study from the means that it publishes of many attributes.

    `data` is a `Panel` of people, simulated genomes by default; each of 2 · `pool` candidates is a member by a fair
    coin. The study publishes non-private means ("nothing"), means rounded to whole percentages ("easy"), or private
    means ("curator": Gaussian noise at `delta`, 1e-6 by default; Laplace noise for 0). A function as defence gets the
    members' rows and returns one mean from 0 to 1 per attribute, NaN to withhold it; `epsilon` and `delta` are then its
    claim. The attacker knows the target's attributes, a reference sample, and the means.

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
        metric="of member/non-member pairs ranked correctly (AUC)",
        evidence=evidence,
        details=_details(evidence, samples, published, panel) | {"statistic": statistic, "published by": publisher},
        exposure=_member_exposure(evidence, samples, panel.max_value),
        delta=float(exact_delta),
    )


def _checked_panel(data: Any, rng: np.random.Generator) -> Panel:
    if data is None:
        return simulate_genomes(random_state=int(rng.integers(2**32)))
    if not isinstance(data, Panel):
        raise TypeError(f"data must be a Panel, such as Panel(values, max_value=2), not {type(data).__name__}")
    return data


def _publish_means(
    defence: Defence, samples: Sequence[StudySample], sizes: tuple[int, int], delta: Fraction
) -> tuple[list[np.ndarray], str]:
    """Return the means that each study publishes, and a description of their source."""
    max_value, pool = sizes
    if defence.kind == CURATOR:
        return published_means.private_means(samples, max_value, pool, defence.curator_epsilon, delta)
    if defence.kind == OWN and defence.user_function is not None:
        return [
            published_means.user_means(defence.user_function, play.members, max_value) for play in samples
        ], "the user's function"
    publish = published_means.rounded_means if defence.kind == EASY else published_means.exact_means
    return [publish(play.members, max_value) for play in samples], "the study itself"


def score_samples(
    samples: Sequence[StudySample], published: Sequence[np.ndarray], sizes: tuple[int, int], statistic: Statistic
) -> ScoreEvidence:
    """Return the scores of members and non-members in all studies; `sizes` is (max_value, pool)."""
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
        "TPR at 1 % FPR": curve.tpr_at(0.01),
        "TPR at 0.1 % FPR": curve.tpr_at(0.001),
        "error of a published mean": float(np.sqrt(np.mean(published_errors**2))) if published_errors.size else None,
        "attributes published": int(np.mean([np.isfinite(means).sum() for means in published])),
        "people per study, approximately": round(float(np.mean([len(play.members) for play in samples]))),
        "studies": len(samples),
    }


def _member_exposure(evidence: ScoreEvidence, samples: Sequence[StudySample], max_value: int) -> ExposureByRarity:
    """Return which members are found at a false positive rate of 5 %, by the rarity of their values."""
    threshold = np.quantile(evidence.non_members, 1 - _FALSE_POSITIVE_RATE, method="higher")
    rarity = np.concatenate([rarity_of_values(play.members, play.reference, max_value) for play in samples])
    labels = [
        f"study {study} member {row}" for study, play in enumerate(samples, 1) for row in range(len(play.members))
    ]
    return exposure_by_rarity(rarity, evidence.members > threshold, labels=labels, rarity_label="rare values")


ATTACK = Attack(
    run=membership,
    docs_page="membership",
    summary="Infers who took part in a study from the means that it publishes.",
    without_defence="non-private means (allele frequencies)",
    with_easy_fix="means rounded to whole percentages",
    with_curator="private totals of all attributes, which cost epsilon together",
    built_in_data="500 simulated genomes with 1,000 loci; 12 studies of about 100 people",
    data_files=(GENOTYPES_FILE, SAMPLES_FILE),
    load=load,
)


_SIZE_COLOURS = (RED, ORANGE, BLUE)


def simulate_answers(people: int, questions: int, *, random_state: int | None = None) -> Panel:
    """Simulate yes/no answers to survey questions, each with a rate of yes between 0.2 and 0.8.

    >>> simulate_answers(4, 3, random_state=0).values.shape
    (4, 3)
    """
    rng, shape = (
        random_generator(random_state),
        (as_integer(people, "people", 1), as_integer(questions, "questions", 1)),
    )
    return Panel(rng.random(shape) < rng.uniform(0.2, 0.8, questions))


def membership_power(d: int, n: int, *, noise: float = 0.0, plays: int = 10, random_state: int | None = None) -> float:
    """Return the AUC of membership inference in a group of n people from d means with this standard deviation of noise.

    Noise is in units of sqrt(d)/n.

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
    """Draw the AUC against d without noise, and against the noise in units of sqrt(d)/n, for each n."""
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
        left.set(xscale="log", xlabel="published means (d); dotted: d = n", ylabel="membership inference (AUC)")
        left.set_title("no noise")
        right.set(xscale="log", xlabel="noise, in units of sqrt(d)/n")
        right.set_title(f"d = {largest_d:,}")
        for axes in (left, right):
            axes.axhline(0.5, color=GREY, ls=":", lw=1.2, label="guessing")
            axes.set_ylim(0.42, 1.03)
            format_plain_numbers(axes.xaxis)
        add_legend(figure, [left])
        set_title(figure, "More means than people disclose membership; noise above sqrt(d)/n hides it")
    return figure
