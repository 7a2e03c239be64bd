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

_LOW_NOISE, _HIGH_NOISE, _VERY_HIGH_NOISE, _EXTREME_NOISE = (
    0.05,
    0.25,
    0.6,
    2.0,
)  # noise of a class's means, in deviations
_MIN_CLASS_DIFFERENCE_SQUARED = (
    0.15**2
)  # deviations, squared: by how much classes are taken to differ where noise hides it
# Far from the centre, rows of different classes differ by more of their length, and lengths are what noise is for; so
# under noise only what exceeds a threshold counts. With each: the mean of a normal number's excess.
_ROOT_TWO_PI = math.sqrt(2 * math.pi)
_MEAN_EXCESS = {0.0: 0.8, 0.5: 0.4, 1.0: 0.167}


@dataclass(frozen=True)
class ClassMoments:
    """Counts of classes, and means and variances of every feature in every class, in deviations from the centre.

    Variances include what noise has left in the means; `unsure` is the deviation of that. `usual_norm` is the length of a
    usual row, in which features count by what they exceed the `threshold`.
    """

    counts: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    usual_norm: float
    threshold: float
    mean_sd: float

    @property
    def shares(self) -> np.ndarray:
        """The share of every class."""
        return np.asarray(self.counts / self.counts.sum())


@dataclass(frozen=True)
class _ClassSumPlan:
    """How class sums are drawn: what counts of a row, and with which weights."""

    norms: NormHistogram
    threshold: float
    usual_norm: float
    count_weight: float  # of a row as such
    square_weight: float  # of the squares of its features
    variance_groups: int  # of classes that have squares of their own

    def ball_radius(self, d: int, norm: int) -> float:
        """Return the radius that a usual row just fills."""
        if norm == 1:
            return self.usual_norm + self.count_weight + self.square_weight * d
        return math.sqrt(
            self.usual_norm**2 + self.count_weight**2 + 3 * d * self.square_weight**2
        )  # 3: the mean of a normal x⁴


def noisy_class_moments(
    session: FitSession,
    scaling: FeatureScaling,
    label_codes: np.ndarray,
    shares: Sequence[float],
    *,
    own_variances: bool = False,
) -> ClassMoments:
    """Return what two draws, of these shares of the price, tell of the classes whose marks the last column holds.

    `own` asks for variances of every class; otherwise they have common ones.
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
        mean_variance = (
            mean_variance / math.erfc(plan.threshold / math.sqrt(2)) ** 2
        )  # by which an excess grows with the mean
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
    """Decide by how loud the noise of class means will be; one draw tells how long rows are."""
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
    """Return counts of classes, drawn to equal ones by as much as noise hides."""
    equal_count = total / len(raw)
    between = max(float(raw.var()) - sd**2, 0.0) + (0.15 * equal_count) ** 2
    min_count = min(0.1 * equal_count, max(sd, 1.0))
    return np.maximum(equal_count + (raw - equal_count) * between / (between + sd**2), min_count)


def _shrunken_means(sums: np.ndarray, sd: float, counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Return means drawn to the mean of all classes, and that to the centre; and the variance that noise has left.

    Features may lie off the centre, by more than classes differ: drawn to the centre one by one, a class with few
    units would seem to differ by that.
    """
    common_mean = sums.sum(axis=0) / counts.sum()
    common_noise = np.full(len(common_mean), len(counts) * (sd / counts.sum()) ** 2)
    between = max(excess_variance(common_noise, common_mean**2), 0.05**2)
    differences = sums / counts[:, np.newaxis] - common_mean
    inverse = 1 / counts[:, np.newaxis]
    noise_factors = (
        inverse**2 - 2 * inverse / counts.sum() + len(counts) / counts.sum() ** 2
    )  # the shared mean has its part of it
    noise_variances = np.broadcast_to(sd**2 * noise_factors, differences.shape)
    class_variance = max(float(np.mean(differences**2 - noise_variances)), _MIN_CLASS_DIFFERENCE_SQUARED)
    factor = class_variance / (class_variance + noise_variances.mean())
    means = common_mean * between / (between + common_noise) + differences * factor
    return means, float(factor * noise_variances.mean())


def _means_from_excesses(excesses: np.ndarray, threshold: float) -> np.ndarray:
    """Return the means of normal numbers, of deviation 1, that have these mean excesses over a threshold."""
    means = np.linspace(-MAX_DEVIATIONS, MAX_DEVIATIONS, 321)
    above, below = means - threshold, -means - threshold
    excess = (
        above * ndtr(above) - below * ndtr(below) + (np.exp(-(above**2) / 2) - np.exp(-(below**2) / 2)) / _ROOT_TWO_PI
    )
    return np.asarray(np.interp(excesses, excess, means))


def _common_variances(means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return what is left of a variance of 1 within classes whose means differ."""
    shares = counts[:, np.newaxis] / counts.sum()
    between_classes = (shares * (means - (shares * means).sum(axis=0)) ** 2).sum(axis=0)
    return np.tile(np.clip(1 - between_classes, 0.2, 1), (len(means), 1))


def _shrunken_variances(squares: np.ndarray, sd: float, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return variances within classes from sums of squares: of all together, or of each class."""
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
