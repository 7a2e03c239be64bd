"""Private centres and scales of features, so that the next sums need a smaller clipping radius."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.bounds import BoundArrays
from discreet.learn.fit_session import FitSession, PublicValues

MAX_DEVIATIONS = 4.0  # standardised values are clamped to ± this
NORM_CELLS = 16  # of the histogram of row norms
_SQUARE_WEIGHT = 0.5  # weight of a square, relative to the value itself
_COUNT_WEIGHT = 0.2  # weight of a row's presence, relative to its typical norm
_PRIOR_VARIANCE, _PRIOR_VARIANCE_ERROR = 0.2**2, 0.03**2  # prior variance of a feature in [-1, 1], and its variance
_MIN_RELATIVE_VARIANCE = 0.5**2  # minimum variance of a feature, relative to the common variance


@dataclass(frozen=True)
class FeatureScaling:
    """The centre and scale of each feature, and the noisy number of units with its standard deviation."""

    centre: np.ndarray
    scale: np.ndarray
    count: float
    count_sd: float

    def centred_at_zero(self) -> "FeatureScaling":
        """Return the same scaling with all centres at zero."""
        return FeatureScaling(np.zeros_like(self.centre), np.hypot(self.centre, self.scale), self.count, self.count_sd)


def learn_scaling(session: FitSession, bounds: BoundArrays) -> FeatureScaling:
    """Return centres and scales from two releases: a histogram of row norms, then sums and sums of squares.

    Means and variances are shrunk towards their common values according to their noise.
    """
    low, high = bounds
    d = len(low)
    contains_zero = (low <= 0) & (high >= 0)
    origin = np.where(contains_zero, 0.0, (low + high) / 2)  # data whose range includes zero are often near zero
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
    """Return the inverse-variance weighted mean of several noisy counts, at least 1, and its standard deviation."""
    precision = 1 / np.square(sds)
    return max(float(np.sum(counts * precision) / precision.sum()), 1.0), float(precision.sum() ** -0.5)


def excess_variance(noise_variance: np.ndarray, squares: np.ndarray) -> float:
    """Return the mean of the squares in excess of the noise variance, less one standard error."""
    # A squared Laplace variable has a variance of 5 times its squared variance; a squared Gaussian, 2 times.
    return float(np.mean(squares - noise_variance) - np.mean(noise_variance) * np.sqrt(5 / squares.size))


def _shrunken_means(means: np.ndarray, sd: float) -> tuple[np.ndarray, float]:
    """Return means shrunk towards their common mean, and the remaining noise variance."""
    middle = np.clip(means.mean(), -1, 1)
    between = max(float(means.var()) - sd**2, 0.02**2)
    factor = between / (between + sd**2)
    return np.clip(middle + (means - middle) * factor, -1, 1), factor * sd**2


def _shrunken_variances(raw: np.ndarray, noise_variance: np.ndarray) -> np.ndarray:
    """Return variances shrunk towards a common one, which is shrunk towards the prior."""
    precision = len(raw) / max(float(noise_variance.mean()), 1e-15)
    common = (raw.mean() * precision + _PRIOR_VARIANCE / _PRIOR_VARIANCE_ERROR) / (
        precision + 1 / _PRIOR_VARIANCE_ERROR
    )
    common = max(float(common), _PRIOR_VARIANCE_ERROR)
    between = max(excess_variance(noise_variance, (raw - raw.mean()) ** 2), (0.3 * common) ** 2)
    return np.clip(common + (raw - common) * between / (between + noise_variance), _MIN_RELATIVE_VARIANCE * common, 1.0)


class NormHistogram:
    """A noisy histogram of the l1 or l2 norms of standardised rows.

    `public` is (centre, scale, threshold, max_norm, norm).
    """

    def __init__(self, session: FitSession, public: PublicValues) -> None:
        self.max_norm, self.sd = float(public[3]), session.sd()
        self.counts = session.histogram(_norm_cell, public, cells=NORM_CELLS)
        self.count, self.count_sd = float(self.counts.sum()), self.sd * NORM_CELLS**0.5

    def quantile(self, share: float, prior_share: float) -> float:
        """Return this quantile of the norms; near `prior_share` · max_norm where noise dominates."""
        weights = np.maximum(self.counts - self.sd, 0)
        weights[int(prior_share * NORM_CELLS)] += 2 * self.sd
        cumulative = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
        return float(np.interp(share, cumulative, np.linspace(0, self.max_norm, NORM_CELLS + 1)))


def standardise(rows: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the standardised features, one per row of the result; a target in the last column is left out."""
    deviations = (rows[:, : len(centre)].T - centre[:, np.newaxis]) / scale[:, np.newaxis]
    return np.asarray(np.clip(deviations, -MAX_DEVIATIONS, MAX_DEVIATIONS))


def soft_threshold(threshold: float, values: np.ndarray) -> np.ndarray:
    """Return values soft-thresholded: their excess over the threshold on either side of zero."""
    return np.asarray(values - np.clip(values, -threshold, threshold)) if threshold else values


def sequential_sum(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Sum along an axis in order: the rounding of numpy.sum depends on the number of rows."""
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
