"""Noisy class counts, and means and variances of the features in each class."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from discreet.learn.feature_scaling import (
    MAX_DEVIATIONS,
    FeatureScaling,
    NormHistogram,
    combine_counts,
    excess_variance,
    soft_threshold,
    standardise,
)
from discreet.learn.fit_session import FitSession

# Noise in the class means, in standard deviations of a feature.
_LOW_NOISE, _HIGH_NOISE, _VERY_HIGH_NOISE, _EXTREME_NOISE = 0.05, 0.25, 0.6, 2.0
_MIN_CLASS_DIFFERENCE_SQUARED = 0.15**2  # in squared deviations: the assumed difference of classes below the noise
# Noise scales with the norm of rows, and values far from the centre separate the classes best per unit of norm; so
# under strong noise only the excess over a threshold is summed. The values are E[max(|z| - threshold, 0)] of a standard
# normal z.
_ROOT_TWO_PI = math.sqrt(2 * math.pi)
_MEAN_EXCESS = {0.0: 0.8, 0.5: 0.4, 1.0: 0.167}


@dataclass(frozen=True)
class ClassMoments:
    """Class counts, and the mean and variance of each feature in each class, in standardised units.

    `variances` include the remaining noise in the means, whose standard deviation is `mean_sd`. `usual_norm` is the
    norm of a typical row after soft thresholding at `threshold`.
    """

    counts: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    usual_norm: float
    threshold: float
    mean_sd: float

    @property
    def shares(self) -> np.ndarray:
        """Each class's share of the units."""
        return np.asarray(self.counts / self.counts.sum())


@dataclass(frozen=True)
class _ClassSumPlan:
    """The weights, threshold and norm bound of the class sums."""

    norms: NormHistogram
    threshold: float
    usual_norm: float
    count_weight: float  # of a row's presence
    square_weight: float  # of the squares of its features
    variance_groups: int  # classes with their own variances, or 1 if shared

    def ball_radius(self, d: int, norm: int) -> float:
        """Return the radius that a typical row just reaches."""
        if norm == 1:
            return self.usual_norm + self.count_weight + self.square_weight * d
        fourth_moment = 3  # of a standard normal
        return math.sqrt(self.usual_norm**2 + self.count_weight**2 + fourth_moment * d * self.square_weight**2)


def noisy_class_moments(
    session: FitSession,
    scaling: FeatureScaling,
    label_codes: np.ndarray,
    shares: Sequence[float],
    *,
    own_variances: bool = False,
) -> ClassMoments:
    """Return class moments from two noisy releases; the last column of a row holds its class code.

    `shares` are the budget shares of the two releases. With `own_variances`, each class has its own variances.
    """
    n_classes, d = len(label_codes), len(scaling.centre)
    plan = _plan_class_sums(
        session, scaling, shares, variance_groups=n_classes if own_variances else 1, n_classes=n_classes
    )
    public = (
        scaling.centre,
        scaling.scale,
        plan.threshold,
        plan.count_weight,
        plan.square_weight,
        label_codes,
        plan.variance_groups,
    )
    radius = plan.ball_radius(d, 2 if session.is_gaussian else 1)
    size = n_classes * (1 + d)
    sd = session.sd(radius)
    squares = plan.variance_groups * d if plan.square_weight else 0
    total = session.sum(_class_sums, public, size=size + squares, radius=radius)
    sums = total[:size].reshape(n_classes, 1 + d)
    raw, raw_sd = sums[:, 0] / plan.count_weight, sd / plan.count_weight
    count, _ = combine_counts(
        [scaling.count, plan.norms.count, raw.sum()],
        [scaling.count_sd, plan.norms.count_sd, raw_sd * n_classes**0.5],
    )
    counts = _shrunken_counts(raw, raw_sd, count)
    means, mean_variance = _shrunken_means(sums[:, 1:], sd, counts)
    if plan.threshold:
        # The derivative of a mean excess with respect to the mean.
        mean_variance = mean_variance / math.erfc(plan.threshold / math.sqrt(2)) ** 2
        means = _means_from_excesses(means, plan.threshold)
    variances = _common_variances(means, counts)
    if plan.square_weight:
        variances = _shrunken_variances(
            total[size:].reshape(-1, d) / plan.square_weight, sd / plan.square_weight, means, counts
        )
    return ClassMoments(
        counts, means, variances + mean_variance, plan.usual_norm, plan.threshold, math.sqrt(mean_variance)
    )


def _plan_class_sums(
    session: FitSession, scaling: FeatureScaling, shares: Sequence[float], *, variance_groups: int, n_classes: int
) -> _ClassSumPlan:
    """Choose threshold, radius and weights by the expected noise in class means and a noisy histogram of norms."""
    d, gaussian = len(scaling.centre), session.is_gaussian
    ratio = shares[0] / shares[1]
    usual_length = math.sqrt(d) if gaussian else _MEAN_EXCESS[0.0] * d
    noise = session.sd(usual_length) * (math.sqrt(ratio) if gaussian else ratio)
    noise *= n_classes / max(scaling.count - scaling.count_sd, 10.0)
    own_variances = variance_groups > 1
    threshold = 0.0 if gaussian or own_variances or noise < _HIGH_NOISE else 0.5 if noise < _VERY_HIGH_NOISE else 1.0
    max_norm = 1.5 * usual_length if gaussian else 1.95 * _MEAN_EXCESS[threshold] * d
    norms = NormHistogram(session, (scaling.centre, scaling.scale, threshold, max_norm, 2 if gaussian else 1))
    radius = norms.quantile(0.6 if noise > _LOW_NOISE else 0.98, prior_share=0.65 if gaussian else 0.52)
    count_weight = radius * (0.5 if gaussian else 0.1 if noise < _EXTREME_NOISE else 1.0)
    square_weight = (0.25 if own_variances else 0.1 if noise < 3 * _LOW_NOISE else 0.0) * (2 if gaussian else 1)
    return _ClassSumPlan(norms, threshold, radius, count_weight, square_weight, variance_groups)


def _shrunken_counts(raw: np.ndarray, sd: float, total: float) -> np.ndarray:
    """Return class counts, shrunk towards equal counts."""
    equal_count = total / len(raw)
    between = max(float(raw.var()) - sd**2, 0.0) + (0.15 * equal_count) ** 2
    min_count = min(0.1 * equal_count, max(sd, 1.0))
    return np.maximum(equal_count + (raw - equal_count) * between / (between + sd**2), min_count)


def _shrunken_means(sums: np.ndarray, sd: float, counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Return class means shrunk towards the overall mean (itself shrunk towards 0), and their noise variance.

    The overall mean can be farther from the centre than the classes are from each other: shrinking each class towards
    the centre on its own would make a small class look different.
    """
    common_mean = sums.sum(axis=0) / counts.sum()
    common_noise = np.full(len(common_mean), len(counts) * (sd / counts.sum()) ** 2)
    between = max(excess_variance(common_noise, common_mean**2), 0.05**2)
    differences = sums / counts[:, np.newaxis] - common_mean
    inverse = 1 / counts[:, np.newaxis]
    # A class mean and the overall mean share noise.
    noise_factors = inverse**2 - 2 * inverse / counts.sum() + len(counts) / counts.sum() ** 2
    noise_variances = np.broadcast_to(sd**2 * noise_factors, differences.shape)
    class_variance = max(float(np.mean(differences**2 - noise_variances)), _MIN_CLASS_DIFFERENCE_SQUARED)
    factor = class_variance / (class_variance + noise_variances.mean())
    means = common_mean * between / (between + common_noise) + differences * factor
    return means, float(factor * noise_variances.mean())


def _means_from_excesses(excesses: np.ndarray, threshold: float) -> np.ndarray:
    """Return the means of unit-variance normals whose soft-thresholded means are `excesses`."""
    means = np.linspace(-MAX_DEVIATIONS, MAX_DEVIATIONS, 321)
    above, below = means - threshold, -means - threshold
    excess = (
        above * ndtr(above) - below * ndtr(below) + (np.exp(-(above**2) / 2) - np.exp(-(below**2) / 2)) / _ROOT_TWO_PI
    )
    return np.asarray(np.interp(excesses, excess, means))


def _common_variances(means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the variance within classes, given a total variance of 1."""
    shares = counts[:, np.newaxis] / counts.sum()
    between_classes = (shares * (means - (shares * means).sum(axis=0)) ** 2).sum(axis=0)
    return np.tile(np.clip(1 - between_classes, 0.2, 1), (len(means), 1))


def _shrunken_variances(squares: np.ndarray, sd: float, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return variances within classes from sums of squares, which are pooled or per class."""
    shares = counts[:, np.newaxis] / counts.sum()
    between_classes = (shares * means**2).sum(axis=0)
    common = squares.sum(axis=0) / counts.sum()
    noise = len(squares) * (sd / counts.sum()) ** 2
    common = np.maximum(1 + (common - 1) * 0.3**2 / (0.3**2 + noise) - between_classes, 0.02)
    if len(squares) == 1:
        return np.tile(common, (len(means), 1))
    raw = squares / counts[:, np.newaxis] - means**2
    noise_variances = np.broadcast_to((sd / counts[:, np.newaxis]) ** 2, raw.shape)
    between = max(excess_variance(noise_variances, (raw - common) ** 2), 0.05**2)
    return np.asarray(np.maximum(common + (raw - common) * between / (between + noise_variances), 0.02))


def _class_sums(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    centre, scale, threshold, count_weight, square_weight, label_codes, variance_groups = public
    d, label = len(centre), rows[:, -1]
    features = standardise(rows, centre, scale)
    excess = soft_threshold(threshold, features)
    sums = np.empty((len(label_codes), 1 + d, len(rows)))
    squares = np.zeros((variance_groups if square_weight else 0, d, len(rows)))
    for k, code in enumerate(label_codes):
        in_class = (label == code).astype(np.float64)
        sums[k, 0] = count_weight * in_class
        np.multiply(excess, in_class, out=sums[k, 1:])
        if square_weight:
            squares[k % variance_groups] += square_weight * in_class * features**2
    return np.concatenate([sums.reshape(-1, len(rows)), squares.reshape(-1, len(rows))]).T
