"""Statistics for membership inference from means: likelihood ratio, Homer's, inner product."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

Statistic = Literal["likelihood ratio", "homer", "inner product"]
STATISTICS: tuple[str, ...] = get_args(Statistic)


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
    if statistic not in STATISTICS:
        raise ValueError(f"statistic must be one of {', '.join(map(repr, STATISTICS))}, not {statistic!r}")
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
