"""Membership inference from the means that a study publishes of many attributes."""

import math
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from discreet.attacks.aggregates.membership_statistics import AttackerKnowledge, Statistic, membership_scores
from discreet.attacks.aggregates.published_means import (
    StudySample,
    draw_study_samples,
    exact_means,
    publish_private_means,
    publish_user_means,
    rarity_of_values,
    rounded_means,
    sample_attributes,
)
from discreet.attacks.attack import Attack, AttackOutcome, DefenceRelease, Game, choice, optional, whole
from discreet.attacks.data.panel import PANEL, Panel, simulate_answers
from discreet.attacks.defences import CURATOR, EASY, NOTHING, DefenceChoice
from discreet.attacks.result import AttackResult
from discreet.attacks.scores import ScoreEvidence
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_integer, as_nonnegative

_STUDY = "the study itself"
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
    return ATTACK.run(
        data,
        defence,
        epsilon,
        random_state,
        statistic=statistic,
        pool=pool,
        attributes=attributes,
        plays=plays,
        delta=delta,
    )


def _play(game: Game) -> AttackOutcome:
    panel = sample_attributes(game.data, game.settings.attributes, game.rng)
    samples = draw_study_samples(panel, game.settings.pool, game.settings.plays, game.rng)
    published, publisher = game.release(samples)
    evidence = score_samples(samples, published, (panel.max_value, game.settings.pool), game.settings.statistic)
    threshold = np.quantile(evidence.non_members, 1 - _FALSE_POSITIVE_RATE, method="higher")
    details = _details(evidence, samples, published, panel)
    members = [(study, row) for study, play in enumerate(samples, 1) for row in range(len(play.members))]
    return AttackOutcome(
        "of member/non-member pairs ranked correctly (AUC)",
        evidence,
        {**details, "statistic": game.settings.statistic, "published by": publisher},
        hit=evidence.members > threshold,
        rarity=np.concatenate([rarity_of_values(play.members, play.reference, panel.max_value) for play in samples]),
        labels=[f"study {study} member {row}" for study, row in members],
    )


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
    curve, pairs = evidence.curve, zip(samples, published, strict=True)
    errors = np.concatenate([means - exact_means(play.members, panel.max_value) for play, means in pairs])
    published_errors = errors[~np.isnan(errors)]
    return {
        "TPR at 1 % FPR": curve.tpr_at(0.01),
        "TPR at 0.1 % FPR": curve.tpr_at(0.001),
        "error of a published mean": float(np.sqrt(np.mean(published_errors**2))) if published_errors.size else None,
        "attributes published": int(np.mean([np.isfinite(means).sum() for means in published])),
        "people per study, approximately": round(float(np.mean([len(play.members) for play in samples]))),
        "studies": len(samples),
    }


def membership_power(d: int, n: int, *, noise: float = 0.0, plays: int = 10, random_state: int | None = None) -> float:
    """Return the AUC of membership inference in a group of n people from d means with this standard deviation of noise.

    Noise is in units of sqrt(d)/n.

    >>> membership_power(1000, 50, random_state=0) > 0.98
    True
    >>> abs(membership_power(1000, 50, noise=20, random_state=0) - 0.5) < 0.1
    True
    """
    rng, level = random_generator(random_state), float(as_nonnegative(noise, "noise"))
    deviation = level * math.sqrt(as_integer(d, "d", 1)) / as_integer(n, "n", 10)
    panel = simulate_answers(5 * n, d, random_state=int(rng.integers(2**32)))
    samples = draw_study_samples(panel, n, plays, random_generator(int(rng.integers(2**32))))
    noisy = [exact_means(play.members, panel.max_value) + rng.normal(0, deviation, d) for play in samples]
    return score_samples(samples, noisy, (panel.max_value, n), "inner product").success


ATTACK = Attack(
    function=membership,
    docs_page="membership",
    summary="Infers who took part in a study from the means that it publishes.",
    data=PANEL,
    releases={
        NOTHING: DefenceRelease(
            "non-private means (allele frequencies)",
            lambda game, samples: ([exact_means(play.members, game.data.max_value) for play in samples], _STUDY),
        ),
        EASY: DefenceRelease(
            "means rounded to whole percentages",
            lambda game, samples: ([rounded_means(play.members, game.data.max_value) for play in samples], _STUDY),
        ),
        CURATOR: DefenceRelease("private totals of all attributes, which cost epsilon together", publish_private_means),
    },
    own=publish_user_means,
    play=_play,
    settings={
        "statistic": choice(get_args(Statistic)),
        "pool": whole(10),
        "attributes": optional(whole(1)),
        "plays": whole(1),
    },
    default_delta="1e-6",
)
