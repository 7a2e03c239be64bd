"""How many units each class has, and where its features lie: what naive Bayes and logistic regression begin with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from discreet.learn.classes.spread import CAP, Lengths, Spread, beyond, centred, weighed, without
from discreet.learn.session import Session

_QUIET, _LOUD, _DEAFENING, _HOPELESS = 0.05, 0.25, 0.6, 2.0  # noise of a class's means, in deviations
_DIFFERENT = 0.15**2  # deviations, squared: by how much classes are taken to differ where noise hides it
# Far from the centre, rows of different classes differ by more of their length, and lengths are what noise is for; so
# under noise only what exceeds a threshold counts. With each: the mean of a normal number's excess.
_ROOT = math.sqrt(2 * math.pi)
_EXCESS = {0.0: 0.8, 0.5: 0.4, 1.0: 0.167}


@dataclass(frozen=True)
class ClassMeans:
    """Counts of classes, and means and variances of every feature in every class, in deviations from the centre.

    Variances include what noise has left in the means; `unsure` is the deviation of that. `radius` is the length of a
    usual row, in which features count by what they exceed the `threshold`.
    """

    counts: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    radius: float
    threshold: float
    unsure: float

    @property
    def shares(self) -> np.ndarray:
        """The share of every class."""
        return np.asarray(self.counts / self.counts.sum())


@dataclass(frozen=True)
class _Plan:
    """How class sums are drawn: what counts of a row, and with which weights."""

    lengths: Lengths
    threshold: float
    radius: float
    weight: float  # of a row as such
    square: float  # of the squares of its features
    groups: int  # of classes that have squares of their own

    def ball(self, d: int, norm: int) -> float:
        """Return the radius that a usual row just fills."""
        if norm == 1:
            return self.radius + self.weight + self.square * d
        return math.sqrt(self.radius**2 + self.weight**2 + 3 * d * self.square**2)  # 3: the mean of a normal x⁴


def class_means(
    session: Session, spread: Spread, marks: np.ndarray, shares: Sequence[float], *, own: bool = False
) -> ClassMeans:
    """Return what two draws, of these shares of the price, tell of the classes whose marks the last column holds.

    `own` asks for variances of every class; otherwise they have common ones.
    """
    classes, d = len(marks), len(spread.centre)
    plan = _plan(session, spread, shares, groups=classes if own else 1, classes=classes)
    public = (spread.centre, spread.scale, plan.threshold, plan.weight, plan.square, marks, plan.groups)
    radius = plan.ball(d, 2 if session.is_gaussian else 1)
    size = classes * (1 + d)
    sd = session.sd(radius)
    squares = plan.groups * d if plan.square else 0
    total = session.sum(_class_sums, public, size=size + squares, radius=radius)
    sums = total[:size].reshape(classes, 1 + d)
    raw, raw_sd = sums[:, 0] / plan.weight, sd / plan.weight
    count, _ = weighed(
        [spread.count, plan.lengths.count, raw.sum()],
        [spread.count_sd, plan.lengths.count_sd, raw_sd * classes**0.5],
    )
    counts = _counts(raw, raw_sd, count)
    means, unsure = _means(sums[:, 1:], sd, counts)
    if plan.threshold:
        unsure = unsure / math.erfc(plan.threshold / math.sqrt(2)) ** 2  # by which an excess grows with the mean
        means = _without_threshold(means, plan.threshold)
    variances = _common_variances(means, counts)
    if plan.square:
        variances = _variances(total[size:].reshape(-1, d) / plan.square, sd / plan.square, means, counts)
    return ClassMeans(counts, means, variances + unsure, plan.radius, plan.threshold, math.sqrt(unsure))


def _plan(session: Session, spread: Spread, shares: Sequence[float], *, groups: int, classes: int) -> _Plan:
    """Decide by how loud the noise of class means will be; one draw tells how long rows are."""
    d, gaussian = len(spread.centre), session.is_gaussian
    ratio = shares[0] / shares[1]
    length = math.sqrt(d) if gaussian else _EXCESS[0.0] * d
    noise = session.sd(length) * (math.sqrt(ratio) if gaussian else ratio)
    noise *= classes / max(spread.count - spread.count_sd, 10.0)
    own = groups > 1
    threshold = 0.0 if gaussian or own or noise < _LOUD else 0.5 if noise < _DEAFENING else 1.0
    longest = 1.5 * length if gaussian else 1.95 * _EXCESS[threshold] * d
    lengths = Lengths(session, (spread.centre, spread.scale, threshold, longest, 2 if gaussian else 1))
    radius = lengths.quantile(0.6 if noise > _QUIET else 0.98, usual=0.65 if gaussian else 0.52)
    weight = radius * (0.5 if gaussian else 0.1 if noise < _HOPELESS else 1.0)
    square = (0.25 if own else 0.1 if noise < 3 * _QUIET else 0.0) * (2 if gaussian else 1)
    return _Plan(lengths, threshold, radius, weight, square, groups)


def _counts(raw: np.ndarray, sd: float, total: float) -> np.ndarray:
    """Return counts of classes, drawn to equal ones by as much as noise hides."""
    even = total / len(raw)
    between = max(float(raw.var()) - sd**2, 0.0) + (0.15 * even) ** 2
    least = min(0.1 * even, max(sd, 1.0))
    return np.maximum(even + (raw - even) * between / (between + sd**2), least)


def _means(sums: np.ndarray, sd: float, counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Return means drawn to the mean of all classes, and that to the centre; and the variance that noise has left.

    Features may lie off the centre, by more than classes differ: drawn to the centre one by one, a class with few
    units would seem to differ by that.
    """
    shared = sums.sum(axis=0) / counts.sum()
    noise = np.full(len(shared), len(counts) * (sd / counts.sum()) ** 2)
    between = max(without(noise, shared**2), 0.05**2)
    apart = sums / counts[:, np.newaxis] - shared
    inverse = 1 / counts[:, np.newaxis]
    own = (
        inverse**2 - 2 * inverse / counts.sum() + len(counts) / counts.sum() ** 2
    )  # the shared mean has its part of it
    noises = np.broadcast_to(sd**2 * own, apart.shape)
    spread = max(float(np.mean(apart**2 - noises)), _DIFFERENT)
    kept = spread / (spread + noises.mean())
    means = shared * between / (between + noise) + apart * kept
    return means, float(kept * noises.mean())


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
