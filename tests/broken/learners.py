"""Learners that are wrong on purpose. Each is a mistake that somebody has made, or could make with our own parts.

Each claims EPSILON for the removal of one row. `told` is what it gives away, as numbers.
"""

import numpy as np

from discreet.kernel.mechanism import Laplace
from discreet.kernel.reservation import CLIP_RADIUS
from discreet.learn.fit_session import FitSource, open_session
from discreet.learn.preprocessing import StandardScaler
from discreet.learn.row_sources import array_rows

EPSILON = 0.5
LOW, HIGH = -5.0, 5.0


def opened(X, shares=(1,), *, epsilon=EPSILON, delta=0):
    ends = np.full(X.shape[1], LOW), np.full(X.shape[1], HIGH)
    return open_session(FitSource(array_rows(X, ends)), name="Broken", epsilon=epsilon, delta=delta, shares=shares)


def scaled(rows, public):
    """Each column in units of half the box, divided by the number of columns: a vector of the unit ball."""
    return rows / (HIGH * rows.shape[1])


class ExactCountDivides:
    """A noisy sum divided by the number of rows, which nobody has paid for."""

    def fit(self, X):
        self.n_ = len(X)
        self.mean_ = opened(X).sum(scaled, (), size=X.shape[1], radius=1) / self.n_
        return self

    def told(self, X):
        return self.fit(X).mean_


class ExactSizeScalesNoise:
    """Means of a cluster whose noise is scaled by the cluster's exact size, as the sensitivity of a mean suggests."""

    def fit(self, X):
        noise = np.random.default_rng().laplace(0, 1 / (EPSILON * len(X)), X.shape[1])
        self.mean_ = np.clip(X, LOW, HIGH).mean(axis=0) / (HIGH * X.shape[1]) + noise
        return self

    def told(self, X):
        return np.log(np.abs(self.fit(X).mean_).mean(keepdims=True))


def kept_by_rounding_alone(vectors, *, l1):
    """What `_kept` would be if somebody forgot to clip."""
    return np.rint(vectors)


def entries_by_rounding_alone(part, _, indices, numbers):
    """What `_sum_entries` would be for one row per unit if somebody forgot to clip."""
    lengths = np.array(part.blocks or [part.size // indices.shape[1]] * indices.shape[1])
    is_inside = (indices >= 0) & (indices < lengths)
    places = (indices + np.cumsum(lengths) - lengths)[is_inside]
    return np.bincount(places, np.rint(np.broadcast_to(numbers, indices.shape) * part.steps)[is_inside], part.size)


def unscaled(rows, public):
    """Columns as they are, which are far from the unit ball."""
    return rows * 1.0


class ForgetsToClip:
    """A sum of rows that are larger than the radius; it is `_kept` that must care."""

    def told(self, X):
        return opened(X).sum(unscaled, (), size=X.shape[1], radius=1)


class StopsWhenItFits:
    """Noisy means, drawn anew until the exact error is small enough: how many draws it took tells of the data.

    `bought` is how many draws of a reservation there are; without it, each is paid for as if it were one of twenty.
    """

    def __init__(self, bought=None):
        self.bought = bought

    def told(self, X):
        paid = None if self.bought is None else opened(X, (1,) * self.bought)
        mean, steps = None, 0
        while steps < 20 and (mean is None or ((X - mean) ** 2).mean() > 4.5):
            session = opened(X, epsilon=EPSILON / 20) if paid is None else paid
            noisy = session.sum(scaled, (), size=X.shape[1], radius=1) * HIGH * X.shape[1] / 10
            mean, steps = np.clip(noisy, LOW, HIGH), steps + 1
        return np.array([steps])


class BoundsFromTheData:
    """Ranges a little wider than what was found, so that nobody notices."""

    def told(self, X):
        ends = X.min(axis=0) - 0.001, X.max(axis=0) + 0.001
        model = StandardScaler(epsilon=EPSILON, bounds=ends).fit(X)
        return np.log(model.scale_)


def centred(rows, public):
    """Rows without the mean of their batch."""
    return (rows - rows.mean(axis=0)) / (HIGH * 4)


def centred_a_little(rows, public):
    """The batch's mean, so small that nobody would see it."""
    return rows / (HIGH * 4) + rows.mean(axis=0) * 1e-9


def knows_its_neighbours(rows, public):
    """Whether the first row of a batch is beyond the last."""
    return np.column_stack([rows[:, 0] * 0, np.full(len(rows), float(rows[0, 0] > rows[-1, 0]))])


def knows_large_batches(rows, public):
    return rows * float(len(rows) > 40)


def knows_being_alone(rows, public):
    return rows * float(len(rows) == 1)


def knows_the_far_corner(rows, public):
    """Whether anybody is at the end of the box."""
    return rows / (HIGH * 4) + float((rows >= HIGH).any())


def cells_of_ranks(rows, public):
    return np.argsort(np.argsort(rows[:, 0])) // 8


def entries_of_ranks(rows, public):
    return cells_of_ranks(rows, public)[:, np.newaxis], rows[:, :1] / HIGH


def with_a_secret(rows, public, *, secret=HIGH):
    return rows / (secret * 4)


class CentresByTheBatch:
    def told(self, X):
        return opened(X).sum(centred, (), size=X.shape[1], radius=1)


class BestOfMany:
    """Many noisy means, each paid for, of which the one is shown that fits the data best."""

    def told(self, X, tries=20):
        session = opened(X, (1,) * tries)
        found = [session.sum(scaled, (), size=X.shape[1], radius=1) * HIGH * X.shape[1] / 10 for _ in range(tries)]
        candidates = np.clip(found, LOW, HIGH)
        errors = [((X - mean) ** 2).mean() for mean in candidates]
        return candidates[int(np.argmin(errors))]


class OneNoiseForTwoSums:
    """The same noise on the sum of a column and on the sum of another: their difference has none."""

    def fit(self, X):
        noise = Laplace(int(2 * CLIP_RADIUS / EPSILON)).perturb(np.zeros(1, np.int64))[0]
        sums = np.rint(np.clip(X, LOW, HIGH) / HIGH * CLIP_RADIUS).astype(np.int64).sum(axis=0)
        self.sums_ = (sums + noise) / CLIP_RADIUS
        return self

    def told(self, X):
        return np.diff(self.fit(X).sums_)


class PaysOnceForTwo:
    """The whole price for each of two draws, by a reservation of its own; only one of the prices is told."""

    def fit(self, X, y=None):
        for _ in range(2):
            session = opened(X)
            self.sums_ = session.sum(scaled, (), size=X.shape[1], radius=1)
        self.loss_ = session.loss
        return self


class LabelsFromTheData:
    """Classes are whatever labels there are."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def told(self, data):
        X, y = data[:, :-1], data[:, -1]
        return np.isin([0, 1, 7], self.fit(X, y).classes_).astype(float)
