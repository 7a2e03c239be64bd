"""The charged comparison of a classifier with the most frequent class, which is often better under strong noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.fit_session import FitSession

CHECK_SHARE = 0.1  # budget share of the comparison, relative to 1 for the rest
_PRIOR_ADVANTAGE, _PRIOR_ADVANTAGE_SD = 0.1, 0.15  # share of the rows: most classifiers are better


@dataclass(frozen=True)
class QuadraticScores:
    """Scores of classes: a constant, plus slopes · row, less the sum of half precisions · (row - centre)².

    All but the constants are classes × features.
    """

    constants: np.ndarray
    slopes: np.ndarray
    centres: np.ndarray
    half_precisions: np.ndarray


def prefers_largest_class(
    session: FitSession, scores: QuadraticScores, label_codes: np.ndarray, counts: np.ndarray, priors: np.ndarray
) -> tuple[bool, float]:
    """Return whether always to predict the class of the largest prior, and the advantage of the scores over that.

    The advantage is a noisy share of the rows, from one release, and is shrunk towards its prior for the decision.
    """
    n_rows = float(counts.sum())
    public = (
        scores.constants,
        scores.slopes,
        scores.centres,
        scores.half_precisions,
        label_codes,
        int(np.argmax(priors)),
    )
    noise_variance = (session.sd() / n_rows) ** 2
    advantage = float(session.sum(_advantage, public, size=1, radius=1)[0]) / n_rows
    precision = 1 / np.array([noise_variance, _PRIOR_ADVANTAGE_SD**2])
    return bool(precision @ [advantage, _PRIOR_ADVANTAGE] < 0), advantage


def _advantage(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Return 1 for each row that only the scores classify correctly, and -1 where only the largest class does."""
    constants, slopes, centres, half_precisions, label_codes, largest = public
    best, predicted = np.full(len(rows), -np.inf), np.zeros(len(rows), np.int64)
    for k, constant in enumerate(constants):
        score = np.full(len(rows), constant)
        for j in range(slopes.shape[1]):  # one by one: the rounding of a product of matrices depends on other rows
            score += slopes[k, j] * rows[:, j] - half_precisions[k, j] * (rows[:, j] - centres[k, j]) ** 2
        predicted[score > best] = k
        best = np.maximum(best, score)
    label = rows[:, -1]
    right = (label_codes[predicted] == label).astype(np.float64)
    return np.asarray(right - (label_codes[largest] == label))[:, np.newaxis]
