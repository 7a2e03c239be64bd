"""Membership inference from the means that a study publishes of many attributes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

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
from discreet.attacks.attack import (
    CURATOR,
    EASY,
    NOTHING,
    Attack,
    AttackResult,
    DefenceChoice,
    DefenceRelease,
    Game,
    choice,
    optional,
    whole,
)
from discreet.attacks.data.panel import PANEL, Panel, simulate_answers
from discreet.attacks.scores import ScoreEvidence
from discreet.attacks.validation import random_generator, require
from discreet.kernel.numbers import Number, as_integer, as_nonnegative

_STUDY = "the study itself"
_FALSE_POSITIVE_RATE = 0.05  # at which a member counts as found in the exposure by rarity
Statistic = Literal["likelihood ratio", "homer", "inner product"]
STATISTICS: tuple[str, ...] = get_args(Statistic)


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


def _play(game: Game) -> AttackResult:
    panel = sample_attributes(game.data, game.settings.attributes, game.rng)
    samples = draw_study_samples(panel, game.settings.pool, game.settings.plays, game.rng)
    published, publisher = game.release(samples)
    evidence = score_samples(samples, published, (panel.max_value, game.settings.pool), game.settings.statistic)
    threshold = np.quantile(evidence.non_members, 1 - _FALSE_POSITIVE_RATE, method="higher")
    details = _details(evidence, samples, published, panel)
    members = [(study, row) for study, play in enumerate(samples, 1) for row in range(len(play.members))]
    return game.result(
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


@dataclass(frozen=True)
class AttackerKnowledge:
    """The attacker's knowledge: the published means, a reference sample, and the approximate size of the study.

    Means are from 0 to 1, NaN if withheld; people are rows of integers from 0 to `max_value`.
    """

    published: np.ndarray
    reference: np.ndarray
    max_value: int
    pool: int


def membership_scores(people: np.ndarray, knowledge: AttackerKnowledge, statistic: str) -> np.ndarray:
    """Return a membership score for each person; higher means more likely in the study.

    >>> import numpy as np
    >>> reference = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 1], [1, 0, 0]])
    >>> knowledge = AttackerKnowledge(np.array([0.9, 0.9, 0.1]), reference, max_value=1, pool=10)
    >>> scores = membership_scores(np.array([[1, 1, 0], [0, 0, 1]]), knowledge, "inner product")
    >>> bool(scores[0] > scores[1])
    True
    """
    require(statistic in STATISTICS, f"statistic must be one of {', '.join(map(repr, STATISTICS))}, not {statistic!r}")
    is_published = ~np.isnan(knowledge.published)
    if not is_published.any():
        return np.zeros(len(people))
    counted = knowledge.reference[:, is_published].sum(axis=0, dtype=float)
    trials = knowledge.max_value * len(knowledge.reference)
    reference_means = (counted + 1) / (trials + 2)  # never 0 or 1: a value absent from the reference may still exist
    values = people[:, is_published] / knowledge.max_value
    sampling_variance = (
        reference_means
        * (1 - reference_means)
        / knowledge.max_value
        * (1 / knowledge.pool + 1 / len(knowledge.reference))
    )
    published, noise = correct_for_study_size(
        knowledge.published[is_published], reference_means, sampling_variance, knowledge.pool
    )
    if statistic == "homer":
        return _homer_statistic(values, published, reference_means, knowledge.max_value)
    if statistic == "inner product":
        return np.asarray((values - reference_means) @ (published - reference_means))
    return _likelihood_ratio(
        (values - reference_means) / knowledge.pool, published - reference_means, sampling_variance + noise
    )


def correct_for_study_size(
    published: np.ndarray, reference_means: np.ndarray, sampling_variance: np.ndarray, pool: int
) -> tuple[np.ndarray, float]:
    """Return the means corrected for the true size of the study, and an estimate of their noise variance.

    Private totals are divided by the planned size, so all means are off by one common factor. The attacker estimates it
    by comparison with the reference means, shrunk to 1 by the prior variance of the size. The noise variance is the
    variance of the means beyond that of a sample of this size.
    """
    weights = reference_means / (sampling_variance + _noise_variance(published, reference_means, sampling_variance))
    observed_factor, error = (
        float(weights @ published / (weights @ reference_means)),
        float(1 / (weights @ reference_means)),
    )
    prior_error = 1 / (2 * pool)
    factor = 1 + (observed_factor - 1) * prior_error / (prior_error + error)
    corrected = published / max(factor, 1 / 2)
    return corrected, _noise_variance(corrected, reference_means, sampling_variance)


def _noise_variance(published: np.ndarray, reference_means: np.ndarray, sampling_variance: np.ndarray) -> float:
    return max(0.0, float(np.mean((published - reference_means) ** 2 - sampling_variance)))


def _likelihood_ratio(shifts: np.ndarray, deviations: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the log-likelihood ratio of membership, with normally distributed means.

    A member shifts the means by `shifts`; without the member they deviate by chance with this variance.
    """
    return np.asarray(shifts @ (deviations / variance) - (shifts**2) @ (1 / variance) / 2)


def _homer_statistic(
    values: np.ndarray, published: np.ndarray, reference_means: np.ndarray, max_value: int
) -> np.ndarray:
    """Return how much closer people are to the published than to the reference means, less the same for non-members."""
    closer = np.abs(values - reference_means).sum(axis=1) - np.abs(values - published).sum(axis=1)
    return np.asarray(closer - _expected_homer_statistic(published, reference_means, max_value))


def _expected_homer_statistic(published: np.ndarray, reference_means: np.ndarray, max_value: int) -> float:
    from scipy.stats import binom  # noqa: PLC0415 - an extra

    total = 0.0
    for count in range(max_value + 1):
        probability = binom.pmf(count, max_value, reference_means)
        total += float(
            probability @ (np.abs(count / max_value - reference_means) - np.abs(count / max_value - published))
        )
    return total


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
