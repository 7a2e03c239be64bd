"""Statistics for membership inference from means: likelihood ratio, Homer's, inner product."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

Statistic = Literal["likelihood ratio", "homer", "inner product"]
STATISTICS: tuple[str, ...] = get_args(Statistic)


@dataclass(frozen=True)
class AttackerKnowledge:
    """All that an outsider has: the published means, the people of a reference, and how large the study is, roughly.

    Means are from 0 to 1, and NaN where nothing was published; people are rows of whole numbers from 0 to `max_value`.
    """

    published: np.ndarray
    reference: np.ndarray
    max_value: int
    pool: int


def membership_scores(people: np.ndarray, knowledge: AttackerKnowledge, statistic: str) -> np.ndarray:
    """Return a score for each of the people: the higher, the more likely they are in the study.

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
    reference_means = (counted + 1) / (trials + 2)  # never 0 or 1: what nobody of the reference has may still exist
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
    """Return the means corrected for the study's true size, and the variance of the noise that they seem to have.

    Whoever divides totals by the size that a study was planned for is wrong by one factor in all means. The attacker
    finds it by comparing with the usual means, as far as the noise lets one see it; before, it is 1, give or take what
    coins do. The noise is what the means stray more than a sample of this size would.
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
    """Return the logarithm of how much likelier the means are with somebody in, by the normal law of each mean.

    A member moves the means by `shifts`; without them the means stray by chance, with this variance.
    """
    return np.asarray(shifts @ (deviations / variance) - (shifts**2) @ (1 / variance) / 2)


def _homer_statistic(
    values: np.ndarray, published: np.ndarray, reference_means: np.ndarray, max_value: int
) -> np.ndarray:
    """Return how much closer people are to the published means than to the usual ones, less what strangers are."""
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
