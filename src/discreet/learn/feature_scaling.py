"""Private centres and scales of features, so that what is learned next needs a smaller radius."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.bounds import BoundArrays
from discreet.learn.fit_session import FitSession, PublicValues

MAX_DEVIATIONS = 4.0  # deviations: what is farther off counts as this far
NORM_CELLS = 16  # of a histogram of lengths
_SQUARE_WEIGHT = 0.5  # weight of a square beside the number itself
_COUNT_WEIGHT = 0.2  # weight of a row as such, of its usual length
_PRIOR_VARIANCE, _PRIOR_VARIANCE_ERROR = (
    0.2**2,
    0.03**2,
)  # a variance, of features within [-1, 1], and how sure that is: both squared
_MIN_RELATIVE_VARIANCE = 0.5**2  # of the features' usual variance: no feature is taken to have less


@dataclass(frozen=True)
class FeatureScaling:
    """The centre and the deviation of every feature, and the number of units with the deviation of its noise."""

    centre: np.ndarray
    scale: np.ndarray
    count: float
    count_sd: float

    def centred_at_zero(self) -> "FeatureScaling":
        """Return it with all centres at zero."""
        return FeatureScaling(np.zeros_like(self.centre), np.hypot(self.centre, self.scale), self.count, self.count_sd)


def learn_scaling(session: FitSession, bounds: BoundArrays) -> FeatureScaling:
    """Return where features lie, from two draws: how long rows are, and their sums and squares.

    Both shrink towards what features have in common, by as much as noise hides: features that cannot be told apart
    are better taken to be alike.
    """
    low, high = bounds
    d = len(low)
    contains_zero = (low <= 0) & (high >= 0)
    origin = np.where(contains_zero, 0.0, (low + high) / 2)  # data that have a zero are often near it
    max_distance = np.maximum(high - origin, origin - low)
    norm = 2 if session.is_gaussian else 1
    max_norm = float(d ** (1 / norm))
    norms = NormHistogram(session, (origin, max_distance, 0.0, max_norm, norm))
    radius = 1.2 * norms.quantile(0.7, prior_share=0.35)
    weight = _COUNT_WEIGHT * radius
    ball_radius = math.hypot(radius, weight) if session.is_gaussian else radius + weight
    sd = session.sd(ball_radius)
    total = session.sum(_count_and_powers, (origin, max_distance, weight), size=1 + 2 * d, radius=ball_radius)
    count, count_sd = combine_counts([norms.count, total[0] / weight], [norms.count_sd, sd / weight])
    total, sd = total[1:] / count, sd / count
    mean, mean_variance = _shrunken_means(total[:d], sd)
    variance = _shrunken_variances(
        total[d:] / _SQUARE_WEIGHT - mean**2, (sd / _SQUARE_WEIGHT) ** 2 + 4 * mean**2 * mean_variance
    )
    return FeatureScaling(origin + max_distance * mean, max_distance * np.sqrt(variance), count, count_sd)


def combine_counts(counts: Sequence[float], sds: Sequence[float]) -> tuple[float, float]:
    """Return the best of several noisy counts of the same units, at least 1, and its deviation."""
    precision = 1 / np.square(sds)
    return max(float(np.sum(counts * precision) / precision.sum()), 1.0), float(precision.sum() ** -0.5)


def excess_variance(noise_variance: np.ndarray, squares: np.ndarray) -> float:
    """Return the mean of squares beyond what the noise's variance explains, carefully: one standard error less."""
    # The variance of a square of Laplace noise is 5 times its squared variance; of Gaussian noise, 2 times.
    return float(np.mean(squares - noise_variance) - np.mean(noise_variance) * np.sqrt(5 / squares.size))


def _shrunken_means(means: np.ndarray, sd: float) -> tuple[np.ndarray, float]:
    """Return means drawn to their own mean, and the variance that is left in each."""
    middle = np.clip(means.mean(), -1, 1)
    between = max(float(means.var()) - sd**2, 0.02**2)
    factor = between / (between + sd**2)
    return np.clip(middle + (means - middle) * factor, -1, 1), factor * sd**2


def _shrunken_variances(raw: np.ndarray, noise_variance: np.ndarray) -> np.ndarray:
    """Return variances drawn to a common one, and that to the usual one."""
    precision = len(raw) / max(float(noise_variance.mean()), 1e-15)
    common = (raw.mean() * precision + _PRIOR_VARIANCE / _PRIOR_VARIANCE_ERROR) / (
        precision + 1 / _PRIOR_VARIANCE_ERROR
    )
    common = max(float(common), _PRIOR_VARIANCE_ERROR)
    between = max(excess_variance(noise_variance, (raw - raw.mean()) ** 2), (0.3 * common) ** 2)
    return np.clip(common + (raw - common) * between / (between + noise_variance), _MIN_RELATIVE_VARIANCE * common, 1.0)


class NormHistogram:
    """A noisy histogram of how long rows are, in an l1 or l2 norm, once features are centred and scaled.

    `public` is (centre, scale, threshold, longest, norm).
    """

    def __init__(self, session: FitSession, public: PublicValues) -> None:
        self.max_norm, self.sd = float(public[3]), session.sd()
        self.counts = session.histogram(_norm_cell, public, cells=NORM_CELLS)
        self.count, self.count_sd = float(self.counts.sum()), self.sd * NORM_CELLS**0.5

    def quantile(self, share: float, prior_share: float) -> float:
        """Return a length that this share of the rows does not exceed; near `prior_share`·longest where noise hides it."""
        weights = np.maximum(self.counts - self.sd, 0)
        weights[int(prior_share * NORM_CELLS)] += 2 * self.sd
        cumulative = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
        return float(np.interp(share, cumulative, np.linspace(0, self.max_norm, NORM_CELLS + 1)))


def standardise(rows: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return features as rows, in deviations from their centres; the target, a last column, is left out."""
    deviations = (rows[:, : len(centre)].T - centre[:, np.newaxis]) / scale[:, np.newaxis]
    return np.asarray(np.clip(deviations, -MAX_DEVIATIONS, MAX_DEVIATIONS))


def soft_threshold(threshold: float, values: np.ndarray) -> np.ndarray:
    """Return by how much numbers exceed a threshold, on either side of zero."""
    return np.asarray(values - np.clip(values, -threshold, threshold)) if threshold else values


def sequential_sum(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Add up along an axis, one after the other: numpy's own sums depend on how many rows there are."""
    return np.asarray(np.take(np.add.accumulate(values, axis=axis), -1, axis=axis))


def _norm_cell(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    centre, scale, threshold, max_norm, norm = public
    excess = np.abs(soft_threshold(threshold, standardise(rows, centre, scale)))
    row_norm = sequential_sum(excess) if norm == 1 else np.sqrt(sequential_sum(excess * excess))
    return np.asarray(np.minimum(row_norm * (NORM_CELLS / max_norm), NORM_CELLS - 1), np.int64)


def _count_and_powers(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    origin, max_distance, weight = public
    d = len(origin)
    out = np.empty((1 + 2 * d, len(rows)))
    out[0] = weight
    out[1 : d + 1] = standardise(rows, origin, max_distance)
    out[d + 1 :] = _SQUARE_WEIGHT * out[1 : d + 1] ** 2
    return out.T
