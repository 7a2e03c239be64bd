"""Weights of a logistic regression in a few noisy steps, from where the means of classes lie.

Two classes have one score, which is that of the second; more have one each.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.classes.class_means import ClassMeans
from discreet.learn.classes.spread import Spread, added, beyond, centred
from discreet.learn.session import Session

_STEEPEST = 3.0  # the first weight, at most: features that go together make class means look surer than they are
_CURVATURE = 0.5  # weight of second derivatives beside first ones
_REACH = 3.0  # of a score along a direction
_FEW, _QUIET = 20, 0.05  # so few features are refined one by one, if noise leaves their second derivatives standing
_STEP = 2.5  # no number moves farther at once
_FLAT = 0.06  # of the largest variance: a feature with less may be constant for all one knows
# The noise of class means, times this, that a variance must exceed for its feature to have its full weight. Of several
# classes all weights are one direction, which later steps cannot take apart, so nothing is taken from it.
_BLURS, _BLURS_MOST = 2.0, 0.2
_HIDDEN = 0.2  # of a direction's square, what must be more than noise

Weights = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Problem:
    """What is to be fitted: features in deviations from the centre, classes by their marks, and a penalty."""

    spread: Spread
    means: ClassMeans
    marks: np.ndarray
    penalty: float
    intercept: bool

    @property
    def count(self) -> float:
        """The noisy number of units."""
        return float(self.means.counts.sum())

    @property
    def active(self) -> int:
        """How many scores there are."""
        return 1 if len(self.marks) == 2 else len(self.marks)


@dataclass(frozen=True)
class _Fit:
    """Weights as a sum of directions, each times a number; the last numbers are those of the offsets."""

    directions: np.ndarray  # directions × scores × features
    numbers: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        return np.asarray(np.tensordot(self.numbers[: len(self.directions)], self.directions, axes=1))

    def offsets(self, active: int) -> np.ndarray:
        rest = self.numbers[len(self.directions) :]
        return rest if len(rest) else np.zeros(active)


def refined(session: Session, problem: Problem) -> Weights:
    """Return weights and offsets, by three draws.

    Few features under little noise take three Newton steps. Otherwise one is taken along the direction of the class
    means, a second direction is that in which the likelihood still rises, and a last step is taken along both.
    """
    fit = _beginning(problem)
    length = 1 + problem.means.radius
    radius = length / 2 + _CURVATURE * length**2 / 10
    d = len(problem.spread.centre)
    noise = session.sd(radius) / problem.count / _CURVATURE * math.sqrt(d)
    if problem.active == 1 and d <= _FEW and noise < _QUIET:
        fit = _Fit(np.eye(d)[:, np.newaxis, :], np.concatenate([fit.weights[0], fit.numbers[1:]]))
        radius *= min(max(0.3 * _QUIET / noise, 0.6), 4.0)  # the longer the fewer rows are shortened
        for _ in range(3):
            fit = _stepped(session, problem, fit, radius)
    else:
        radius = 3.0 if problem.active == 1 else 4.5
        fit = _stepped(session, problem, fit, radius)
        fit = _stepped(session, problem, _wider(session, problem, fit), radius)
    return fit.weights, fit.offsets(problem.active)


def _beginning(problem: Problem) -> _Fit:
    """Return the direction from class mean to class mean, as naive Bayes has it, but not as steep."""
    means, shares = problem.means, problem.means.shares
    # A feature that hardly varies has no weight that could be seen: dividing by its variance would only enlarge noise.
    hidden = min(_BLURS * means.unsure, _BLURS_MOST) if problem.active == 1 else 0.0
    weights = means.means * means.variances / (means.variances**2 + hidden**2)
    offsets = -(means.means * weights).sum(axis=1) / 2
    logs = np.log(shares)
    if problem.active == 1:
        weights, offsets, logs = weights[1:] - weights[:1], offsets[1:] - offsets[:1], logs[1:] - logs[:1]
    else:
        weights, offsets = weights - shares @ weights, offsets - offsets.mean()
    direction, size = _normed(weights)
    first = min(size, _STEEPEST)
    rest = logs + offsets * (first / size) if problem.intercept else np.empty(0)
    return _Fit(direction[np.newaxis], np.concatenate([[first], rest]))


def _normed(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return weights whose scores have a deviation near 1, whether features go together or not, and their size."""
    ones, twos = np.abs(weights).sum(axis=1).mean(), np.sqrt((weights**2).sum(axis=1)).mean()
    size = max(float(np.sqrt(ones * twos)), 1e-9)
    return weights / size, size


def _stepped(session: Session, problem: Problem, fit: _Fit, radius: float) -> _Fit:
    """Take a Newton step, in each of its directions by as much as noise lets be seen of it."""
    q, m = len(fit.numbers), len(fit.directions)
    alone = m == len(problem.spread.centre)
    spread = problem.spread
    public = (spread.centre, spread.scale, fit.directions, fit.numbers, problem.marks, math.inf if alone else _REACH)
    noise = session.sd(radius) / problem.count
    total = session.sum(_derivatives, public, size=q + q * (q + 1) // 2, radius=radius) / problem.count
    rows, columns = np.triu_indices(q)
    second = np.zeros((q, q))
    second[rows, columns] = second[columns, rows] = total[q:] / _CURVATURE
    along = fit.directions.reshape(m, -1)
    penalty = np.zeros((q, q))
    penalty[:m, :m] = along @ along.T * problem.penalty / problem.count
    curvature, axes = np.linalg.eigh(second + penalty)
    curved = (axes * np.maximum(curvature, 1e-4)) @ axes.T
    slope = total[:q] + penalty @ fit.numbers
    hidden = noise**2 * (1 + _CURVATURE**-2)  # a number is taken to be off by about 1
    flat = np.zeros(q)
    if alone:  # a feature that hardly varies is expected to have no weight, rather than about the one it has
        varied = problem.means.variances.mean(axis=0)
        flat[:m] = np.maximum(_FLAT * varied.max() / varied - 1, 0)
    pulled = curved @ slope + hidden * flat * fit.numbers
    step = -np.linalg.solve(curved @ curved + hidden * np.diag(1 + flat), pulled)
    return _Fit(fit.directions, fit.numbers + np.clip(step, -_STEP, _STEP))


def _wider(session: Session, problem: Problem, fit: _Fit) -> _Fit:
    """Add the direction in which the likelihood rises, unless noise hides it."""
    spread, means, active = problem.spread, problem.means, problem.active
    radius = means.radius * (0.5 if active == 1 else 0.8)
    noise = session.sd(radius) ** 2
    weights = fit.weights
    public = (spread.centre, spread.scale, means.threshold, weights, fit.offsets(active), problem.marks)
    slope = session.sum(_slopes, public, size=weights.size, radius=radius).reshape(weights.shape)
    square = float((slope**2).mean())
    if square - noise * (1 + math.sqrt(5 / slope.size)) < _HIDDEN * square:
        return fit
    m = len(fit.directions)
    directions = np.concatenate([fit.directions, _normed(-slope)[0][np.newaxis]])
    return _Fit(directions, np.insert(fit.numbers, m, 0.0))


def _probabilities(scores: np.ndarray) -> np.ndarray:
    """Return the probabilities of the classes that have a score, scores × rows."""
    if len(scores) == 1:
        return np.asarray(1 / (1 + np.exp(-np.clip(scores, -30, 30))))
    powers = np.exp(scores - scores.max(axis=0))
    return np.asarray(powers / added(powers))


def _surprises(scores: np.ndarray, label: np.ndarray, marks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities, and by how much they exceed what was seen; both are zero for rows of no class."""
    own = (label == marks[:, np.newaxis]).astype(np.float64)
    known = added(own)
    expected = _probabilities(scores) * known
    return expected, expected - own[-len(scores) :]


def _slopes(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    centre, scale, threshold, weights, offsets, marks = public
    features = centred(rows, centre, scale)
    scores = added(weights[:, :, np.newaxis] * features, axis=1) + offsets[:, np.newaxis]
    _, surprise = _surprises(scores, rows[:, -1], marks)
    excess = beyond(threshold, features)
    return np.asarray((surprise[:, np.newaxis, :] * excess).reshape(-1, len(rows)).T)


def _derivatives(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Return the first derivatives by every number, and the second ones by every two."""
    centre, scale, directions, numbers, marks, reach = public
    (m, active, _), q, n = directions.shape, len(numbers), len(rows)
    features = centred(rows, centre, scale)
    parts = np.zeros((q, active, n))
    for k in range(m):
        parts[k] = np.clip(added(directions[k][:, :, np.newaxis] * features, axis=1), -reach, reach)
    for k in range(q - m):
        parts[m + k, k] = 1
    scores = added(numbers[:, np.newaxis, np.newaxis] * parts)
    expected, surprise = _surprises(scores, rows[:, -1], marks)
    first = added(surprise * parts, axis=1)
    means = added(expected * parts, axis=1)
    out = [first]
    for k in range(q):
        both = added(expected * parts[k] * parts[k:], axis=1) - means[k] * means[k:]
        out.append(_CURVATURE * both)
    return np.concatenate(out).T
