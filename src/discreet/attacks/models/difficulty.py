"""The likelihood of a model's confidence for members and non-members, by level of difficulty.

Confidence discloses little about people who are easy to predict without being in the data. Each person is therefore
assigned to levels of difficulty; a level has a mean and a variance of the confidences of models with the person and of
models without. The levels are fitted to all people at once by expectation-maximisation, so few models suffice.
"""

from dataclasses import dataclass

import numpy as np

_EM_ITERATIONS = 30
_MIN_DEVIATION = 0.01  # lower bound of standard deviations, on the scale of `stabilise_variance`
_PRIOR_OBSERVATIONS = 5.0  # the weight of the common variance in each level's variance, in observations


@dataclass(frozen=True)
class LevelParameters:
    """The mean and variance of confidences at every level, for members or for non-members."""

    mean: np.ndarray
    variance: np.ndarray

    def log_likelihood(self, sums: "ConfidenceSums") -> np.ndarray:
        """Return the log-likelihood of each person's confidences at every level, people × levels."""
        count, total, squares = (part[:, None] for part in (sums.count, sums.total, sums.squares))
        squared_errors = squares - 2 * total * self.mean + count * self.mean**2
        return np.asarray(-0.5 * (squared_errors / self.variance + count * np.log(self.variance)))


@dataclass(frozen=True)
class ConfidenceSums:
    """The number of confidences of each person, their sum, and their sum of squares."""

    count: np.ndarray
    total: np.ndarray
    squares: np.ndarray


@dataclass(frozen=True)
class DifficultyLevels:
    """Levels of difficulty: their shares, and the confidences of members and non-members at each."""

    share: np.ndarray
    members: LevelParameters
    non_members: LevelParameters


def stabilise_variance(confidence: np.ndarray) -> np.ndarray:
    """Return the variance-stabilising arcsine transform of confidences.

    >>> stabilise_variance(np.array([0.0, 0.5, 1.0])).round(2).tolist()
    [0.0, 0.79, 1.57]
    """
    return np.asarray(np.arcsin(np.sqrt(np.clip(confidence, 0, 1))))


def sum_confidences(scores: np.ndarray, is_chosen: np.ndarray) -> ConfidenceSums:
    """Sum the scores selected by `is_chosen` for each person; both are models × people."""
    chosen = np.where(is_chosen, scores, 0.0)
    return ConfidenceSums(is_chosen.sum(axis=0).astype(float), chosen.sum(axis=0), (chosen**2).sum(axis=0))


def fit_levels(scores: np.ndarray, is_member: np.ndarray, level_count: int = 24) -> DifficultyLevels:
    """Fit levels of difficulty to scores and memberships, both models × people."""
    member_sums, non_member_sums = sum_confidences(scores, is_member), sum_confidences(scores, ~is_member)
    weights = _initial_weights(member_sums, non_member_sums, min(level_count, scores.shape[1]))
    levels = _maximisation_step(weights, member_sums, non_member_sums)
    for _ in range(_EM_ITERATIONS):
        levels = _maximisation_step(
            _expectation_step(levels, member_sums, non_member_sums), member_sums, non_member_sums
        )
    return levels


def membership_log_odds(
    levels: DifficultyLevels, member_sums: ConfidenceSums, non_member_sums: ConfidenceSums, scores: np.ndarray
) -> np.ndarray:
    """Return the log-odds that each person was in the training data of a model with these scores.

    `member_sums` and `non_member_sums` are the confidences of shadow models with and without the same people.
    """
    weights = _expectation_step(levels, member_sums, non_member_sums)
    return np.asarray(_log_density(levels.members, weights, scores) - _log_density(levels.non_members, weights, scores))


def _initial_weights(member_sums: ConfidenceSums, non_member_sums: ConfidenceSums, level_count: int) -> np.ndarray:
    """Assign people to levels of equal size by their mean score, corrected for the average gain of members."""
    totals = member_sums.total - _member_gain(member_sums, non_member_sums) * member_sums.count + non_member_sums.total
    mean = totals / np.maximum(member_sums.count + non_member_sums.count, 1)
    levels = np.argsort(np.argsort(mean, kind="stable"), kind="stable") * level_count // mean.size
    return np.asarray(np.eye(level_count)[levels])


def _maximisation_step(
    weights: np.ndarray, member_sums: ConfidenceSums, non_member_sums: ConfidenceSums
) -> DifficultyLevels:
    overall_mean = np.full(weights.shape[1], non_member_sums.total.sum() / max(non_member_sums.count.sum(), 1.0))
    non_members = _fit_level_parameters(weights, non_member_sums, overall_mean)
    members = _fit_level_parameters(weights, member_sums, non_members.mean + _member_gain(member_sums, non_member_sums))
    return DifficultyLevels(weights.mean(axis=0), members, non_members)


def _member_gain(member_sums: ConfidenceSums, non_member_sums: ConfidenceSums) -> float:
    """Return how much higher the scores of members are, on average."""
    return float(
        member_sums.total.sum() / max(member_sums.count.sum(), 1.0)
        - non_member_sums.total.sum() / max(non_member_sums.count.sum(), 1.0)
    )


def _fit_level_parameters(weights: np.ndarray, sums: ConfidenceSums, expected: np.ndarray) -> LevelParameters:
    """Fit mean and variance per level; a level without observations gets the expected mean and the common variance."""
    number = weights.T @ sums.count
    mean = (weights.T @ sums.total + expected) / (number + 1)
    squared_errors = weights.T @ sums.squares - 2 * mean * (weights.T @ sums.total) + number * mean**2
    spread = np.maximum(squared_errors, 0.0)
    common = spread.sum() / max(number.sum(), 1.0)
    return LevelParameters(
        mean, (spread + _PRIOR_OBSERVATIONS * common) / (number + _PRIOR_OBSERVATIONS) + _MIN_DEVIATION**2
    )


def _expectation_step(
    levels: DifficultyLevels, member_sums: ConfidenceSums, non_member_sums: ConfidenceSums
) -> np.ndarray:
    """Return the posterior of the levels for each person, people × levels."""
    log_posterior = (
        np.log(levels.share + 1e-12)
        + levels.members.log_likelihood(member_sums)
        + levels.non_members.log_likelihood(non_member_sums)
    )
    return np.asarray(np.exp(log_posterior - np.logaddexp.reduce(log_posterior, axis=1, keepdims=True)))


def _log_density(level: LevelParameters, weights: np.ndarray, scores: np.ndarray) -> np.ndarray:
    log_terms = np.log(weights + 1e-300) - 0.5 * (
        (scores[:, None] - level.mean) ** 2 / level.variance + np.log(level.variance)
    )
    return np.asarray(np.logaddexp.reduce(log_terms, axis=1))
