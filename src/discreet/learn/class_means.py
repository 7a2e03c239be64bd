"""How many units each class has, and where its features lie: what naive Bayes and logistic regression begin with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from discreet.learn.session import Session
from discreet.learn.spread import CAP, Lengths, Spread, beyond, centred, without

_LOUD, _DEAFENING, _HOPELESS = 0.25, 0.6, 2.0  # noise of a class's means, in deviations
# Far from the centre, rows of different classes differ by more of their length, and lengths are what noise is for; so
# under noise only what exceeds a threshold counts. With each: the mean of a normal number's excess.
_ROOT = math.sqrt(2 * math.pi)
_EXCESS = {0.0: 0.8, 0.5: 0.4, 1.0: 0.167}


@dataclass(frozen=True)
class ClassMeans:
    """Counts of classes, and means and variances of every feature in every class, in deviations from the centre.

    `unsure` is the variance that noise has left in the means; `radius` the length of a usual row, and `threshold` what
    features must exceed to count in it.
    """

    counts: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    unsure: np.ndarray
    radius: float
    threshold: float

    @property
    def shares(self) -> np.ndarray:
        """The share of every class."""
        return np.asarray(self.counts / self.counts.sum())


def class_means(
    session: Session, spread: Spread, marks: np.ndarray, shares: Sequence[float], *, own: bool = False
) -> ClassMeans:
    """Return what two draws, of these shares of the price, tell of the classes whose marks the last column holds.

    `own` asks for variances of every class; otherwise they have common ones.
    """
    classes, d = len(marks), len(spread.centre)
    gaussian = session.is_gaussian
    ratio = shares[0] / shares[1]
    length = math.sqrt(d) if gaussian else 0.8 * d
    noise = session.sd(length) * (math.sqrt(ratio) if gaussian else ratio)
    noise *= classes / max(spread.count - spread.count_sd, 10.0)
    threshold = 0.0 if gaussian or own or noise < _LOUD else 0.5 if noise < _DEAFENING else 1.0
    longest = 1.5 * length if gaussian else 1.95 * _EXCESS[threshold] * d
    lengths = Lengths(session, (spread.centre, spread.scale, threshold, longest, 2 if gaussian else 1))
    radius = lengths.quantile(0.6 if noise > 0.05 else 0.98, usual=0.65 if gaussian else 0.52)
    weight = radius * (0.5 if gaussian else 0.1 if noise < _HOPELESS else 1.0)
    square = (0.25 if own else 0.1 if noise < 0.15 else 0.0) * (2 if gaussian else 1)
    public = (spread.centre, spread.scale, threshold, weight, square, marks, classes if own else 1)
    ball = _ball((radius, weight, square), d, 2 if gaussian else 1)
    squares = (classes if own else 1) * d if square else 0
    sd = session.sd(ball)
    total = session.sum(_class_sums, public, size=classes * (1 + d) + squares, radius=ball)
    sums = total[: classes * (1 + d)].reshape(classes, 1 + d)
    seen = np.array([spread.count, lengths.counts.sum(), sums[:, 0].sum() / weight])
    sds = np.array([spread.count_sd, lengths.sd * len(lengths.counts) ** 0.5, sd / weight * classes**0.5])
    counts = _counts(sums[:, 0] / weight, sd / weight, max(float((seen / sds**2).sum() / (1 / sds**2).sum()), 1.0))
    means, unsure = _means(sums[:, 1:], sd, counts)
    if threshold:
        means, unsure = _without_threshold(means, threshold), unsure / math.erfc(threshold / math.sqrt(2)) ** 2
    variances = _common_variances(means, counts)
    if square:
        variances = _variances(total[classes * (1 + d) :].reshape(-1, d) / square, sd / square, means, counts)
    return ClassMeans(counts, means, variances + unsure, unsure, radius, threshold)


def _ball(parts: tuple[float, float, float], d: int, norm: int) -> float:
    radius, weight, square = parts
    if norm == 1:
        return radius + weight + square * d
    return math.sqrt(radius**2 + weight**2 + 3 * d * square**2)  # a normal number's square has a mean square of 3


def _counts(raw: np.ndarray, sd: float, total: float) -> np.ndarray:
    """Return counts of classes, drawn to equal ones by as much as noise hides."""
    even = total / len(raw)
    between = max(float(raw.var()) - sd**2, 0.0) + (0.15 * even) ** 2
    return np.maximum(even + (raw - even) * between / (between + sd**2), 0.1 * even)


def _means(sums: np.ndarray, sd: float, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means drawn to the mean of all classes, and that to the centre; and the variance that noise has left.

    Features may lie off the centre, by more than classes differ: drawn to the centre one by one, a class with few
    units would seem to differ by that.
    """
    shared = sums.sum(axis=0) / counts.sum()
    noise = np.full(len(shared), len(counts) * (sd / counts.sum()) ** 2)
    between = max(without(noise, shared**2), 0.05**2)
    apart = sums / counts[:, np.newaxis] - shared
    inverse = 1 / counts[:, np.newaxis]
    own = inverse**2 - 2 * inverse / counts.sum() + len(counts) / counts.sum() ** 2  # the shared mean has its part of it
    noises = np.broadcast_to(sd**2 * own, apart.shape)
    spread = max(without(noises, apart**2), 0.05**2)
    kept = spread / (spread + noises.mean())
    means = shared * between / (between + noise) + apart * kept
    return means, np.full(len(shared), float(kept * noises.mean()))


def _without_threshold(excesses: np.ndarray, threshold: float) -> np.ndarray:
    """Return the means of normal numbers, of deviation 1, that have these mean excesses over a threshold."""
    means = np.linspace(-CAP, CAP, 321)
    above, below = means - threshold, -means - threshold
    excess = above * ndtr(above) - below * ndtr(below) + (np.exp(-(above**2) / 2) - np.exp(-(below**2) / 2)) / _ROOT
    return np.asarray(np.interp(excesses, excess, means))


def _common_variances(means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return what is left of a variance of 1 within classes whose means differ."""
    shares = counts[:, np.newaxis] / counts.sum()
    apart = (shares * (means - (shares * means).sum(axis=0)) ** 2).sum(axis=0)
    return np.tile(np.clip(1 - apart, 0.2, 1), (len(means), 1))


def _variances(squares: np.ndarray, sd: float, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return variances within classes from sums of squares: of all together, or of each class."""
    shares = counts[:, np.newaxis] / counts.sum()
    apart = (shares * means**2).sum(axis=0)
    common = squares.sum(axis=0) / counts.sum()
    noise = len(squares) * (sd / counts.sum()) ** 2
    common = np.maximum(1 + (common - 1) * 0.3**2 / (0.3**2 + noise) - apart, 0.02)
    if len(squares) == 1:
        return np.tile(common, (len(means), 1))
    raw = squares / counts[:, np.newaxis] - means**2
    noises = np.broadcast_to((sd / counts[:, np.newaxis]) ** 2, raw.shape)
    between = max(without(noises, (raw - common) ** 2), 0.05**2)
    return np.asarray(np.maximum(common + (raw - common) * between / (between + noises), 0.02))


def _class_sums(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    centre, scale, threshold, weight, square, marks, groups = public
    d, label = len(centre), rows[:, -1]
    features = centred(rows, centre, scale)
    excess = beyond(threshold, features)
    sums = np.empty((len(marks), 1 + d, len(rows)))
    squares = np.zeros((groups if square else 0, d, len(rows)))
    for k, mark in enumerate(marks):
        here = (label == mark).astype(np.float64)
        sums[k, 0] = weight * here
        np.multiply(excess, here, out=sums[k, 1:])
        if square:
            squares[k % groups] += square * here * features**2
    return np.concatenate([sums.reshape(-1, len(rows)), squares.reshape(-1, len(rows))]).T
