"""Empirical lower bounds on the privacy loss of fits, from many fits with and without one person.

There are two adversaries. One sees the fitted attributes, and learns a score from pilot fits. The other sees every
noisy sum and knows both data sets: its score is the exact likelihood ratio, which is optimal. On fresh fits events are
counted, with Clopper-Pearson bounds on their probabilities.
"""

import math
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta, norm

from discreet.engines.row_sums import sum_rows
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.reservation import CLIP_RADIUS, reserve
from discreet.learn import fit_session

MISSED = 1e-10  # false-alarm probability
_INTERVALS = 6  # two directions and one for Gaussian noise, of two intervals each


class Data(NamedTuple):
    """The arguments of `fit`."""

    X: np.ndarray
    y: np.ndarray | None = None
    unit: np.ndarray | None = None


class Audit(NamedTuple):
    """Lower bounds: on epsilon, and on mu of Gaussian differential privacy."""

    epsilon: float
    mu: float


class Draw(NamedTuple):
    """One noisy sum of a fit: its rows, rule, noise and result."""

    rows: Any
    rule: Any
    public: tuple
    more: dict
    noise: Any
    told: np.ndarray


def without(data, gone):
    """Return the data without the rows of one person."""
    return Data(*(None if part is None else part[~gone] for part in data))


def fitted(model, data):
    more = {} if data.unit is None else {"unit": data.unit}
    return model.fit(data.X, data.y, **more)


def learned(model):
    """Return all numeric fitted attributes in one vector."""
    kept = {name: value for name, value in vars(model).items() if name.endswith("_") and name[0] != "_"}
    parts = [part for name in sorted(kept) for part in parts_of(kept[name])]
    return np.concatenate([np.ravel(part) for part in parts if part.dtype.kind in "if"]).astype(float)


def parts_of(value):
    """Return an attribute as arrays: itself, or those that it is a list of."""
    ragged = isinstance(value, list) and any(isinstance(each, np.ndarray) for each in value)
    return [np.asarray(each) for each in (value if ragged else [value])]


# --- How probable events are, and what follows


def least(hits, runs, missed):
    return beta.ppf(missed, hits, runs - hits + 1) if hits else 0.0


def most(hits, runs, missed):
    return beta.ppf(1 - missed, hits + 1, runs - hits) if hits < runs else 1.0


def epsilon_low(hits, other, runs, *, delta, missed):
    """Return a lower bound on epsilon from the counts of an event on two data sets."""
    surely = least(hits, runs, missed) - delta
    return math.log(surely / most(other, runs, missed)) if surely > 0 else -math.inf


def mu_low(hits, other, runs, *, missed):
    """Return a lower bound on mu from the counts of an event on two data sets."""
    return float(norm.ppf(least(hits, runs, missed)) - norm.ppf(most(other, runs, missed)))


def judged(pilot, fresh, *, delta=0.0, missed=MISSED):
    """Return lower bounds from scores: thresholds come from pilot fits, counts from fresh fits."""
    here, there = fresh
    each = missed / _INTERVALS
    runs = min(len(here), len(there))

    def above(threshold):
        return int((here[:runs] > threshold).sum()), int((there[:runs] > threshold).sum())

    def shows(threshold, *, forwards):
        with_them, without_them = above(threshold)
        counts = (with_them, without_them) if forwards else (runs - without_them, runs - with_them)
        return epsilon_low(*counts, runs, delta=delta, missed=each)

    ends = [_threshold(pilot, lambda *seen: epsilon_low(*seen, delta=delta, missed=0.05))]
    ends.append(-_threshold((-pilot[1], -pilot[0]), lambda *seen: epsilon_low(*seen, delta=delta, missed=0.05)))
    middle = _threshold(pilot, lambda *seen: mu_low(*seen, missed=0.05))
    shown = [shows(end, forwards=forwards) for end, forwards in zip(ends, (True, False), strict=True)]
    return Audit(max(0.0, *shown), max(0.0, mu_low(*above(middle), runs, missed=each)))


def _threshold(pilot, worth):
    """Return the threshold with the best lower bound on the pilot fits."""
    here, there = pilot
    runs = min(len(here), len(there))
    scores = np.unique(np.concatenate(pilot))
    ends = np.append((scores[1:] + scores[:-1]) / 2, scores[0] - 1)
    ends = ends[:: max(1, len(ends) // 100)]
    hits = [(int((here[:runs] > end).sum()), int((there[:runs] > end).sum())) for end in ends]
    return ends[int(np.argmax([np.nan_to_num(worth(*counts, runs), nan=-9, neginf=-9) for counts in hits]))]


# --- The adversary who sees what comes out


class Projection:
    """Fisher's linear discriminant of fitted attributes and their squares, from pilot fits.

    Squares are included because one person may change only the variance.
    """

    def __init__(self, here, there):
        both = np.concatenate([here, there])
        self.ends = np.quantile(both, [0.02, 0.98], axis=0)
        self.middle = np.median(both, axis=0)
        self.spread = np.ptp(self.ends, axis=0) + 1e-9 * np.abs(self.middle) + 1e-300
        one, other = self._seen(here), self._seen(there)
        scatter = np.cov(one.T) + np.cov(other.T)
        ridge = 0.1 * np.trace(scatter) / len(scatter) + 1e-12
        self.weights = np.linalg.solve(scatter + ridge * np.eye(len(scatter)), one.mean(axis=0) - other.mean(axis=0))

    def _seen(self, numbers):
        z = (np.clip(numbers, *self.ends) - self.middle) / self.spread
        return np.concatenate([z, z * z], axis=1)

    def __call__(self, numbers):
        return self._seen(numbers) @ self.weights


def audit(release, here, there, *, pilot, runs, delta=0.0, missed=MISSED):
    """Return lower bounds on the loss of a release, a function from data to numbers."""

    def many(count):
        return [np.array([np.ravel(release(data)) for _ in range(count)], float) for data in (here, there)]

    tried, fresh = many(pilot), many(runs)
    score = Projection(*tried)
    return judged([score(each) for each in tried], [score(each) for each in fresh], delta=delta, missed=missed)


# --- The adversary who has seen every draw


class _Exact:
    """Records the integers before noise and adds none."""

    def perturb(self, values):
        TOTALS.append(values)
        return values


class ExactLaplace(_Exact, Laplace):
    pass


class ExactGaussian(_Exact, Gaussian):
    pass


TOTALS = []


@contextmanager
def watched():
    """Yield a list that collects every noisy sum of a fit."""
    found = []

    def watching(rows, rule, public, **more):
        noise = more["reservation"].next_noise
        told = sum_rows(rows, rule, public, **more)
        found.append(Draw(rows, rule, public, {k: more[k] for k in more if k != "reservation"}, noise, told))
        return told

    with _instead(watching):
        yield found


def draws_of(model, data):
    with watched() as found:
        fitted(model, data)
    return found


@contextmanager
def replayed(draws):
    """Replay recorded noisy sums instead of computing them, whatever the rows."""
    left = list(draws)

    def replaying(rows, rule, public, **more):
        before = left.pop(0)
        more["reservation"].take_noise()
        assert (rule, {key: more[key] for key in more if key != "reservation"}) == (before.rule, before.more)
        assert len(public) == len(before.public)
        assert all(np.array_equal(one, other) for one, other in zip(public, before.public, strict=True))
        return before.told.copy()

    with _instead(replaying):
        yield
    assert not left


@contextmanager
def one_chance():
    """Make all randomness after the noisy sums deterministic."""
    found = np.random.default_rng
    np.random.default_rng = lambda seed=0: found(seed)
    try:
        yield
    finally:
        np.random.default_rng = found


@contextmanager
def _instead(made):
    fit_session.sum_rows = made
    try:
        yield
    finally:
        fit_session.sum_rows = sum_rows


def attributes(model):
    """Return all fitted attributes as plain values."""
    return {
        name: [part.tolist() for part in parts_of(value)] for name, value in vars(model).items() if name.endswith("_")
    }


def exact(draw, rows):
    """Return the exact integers of a recorded sum on other rows."""
    quiet = ExactLaplace(draw.noise.scale) if isinstance(draw.noise, Laplace) else ExactGaussian(draw.noise.scale)
    TOTALS.clear()
    sum_rows(rows, draw.rule, draw.public, **draw.more, reservation=reserve([quiet]))
    return np.ravel(TOTALS[0])


def steps_of(draw):
    """Return the number of grid steps per unit of the result."""
    return CLIP_RADIUS / draw.more["radius"]


def likelihood_ratio(draws, here, there):
    """Return the log-likelihood ratio of all noisy sums between two data sets."""
    total = 0.0
    for draw in draws:
        told = np.ravel(draw.told) * float(steps_of(draw))
        near, far = told - exact(draw, here), told - exact(draw, there)
        scale = float(draw.noise.scale)
        if isinstance(draw.noise, Laplace):
            total += float((np.abs(far) - np.abs(near)).sum()) / scale
        else:
            total += float((far * far - near * near).sum()) / (2 * scale * scale)
    return total


def spent(draws, here, there):
    """Return the exact epsilon and rho of these noisy sums for two data sets."""
    epsilon, rho = Fraction(0), Fraction(0)
    for draw in draws:
        moved = [int(one) - int(other) for one, other in zip(exact(draw, here), exact(draw, there), strict=True)]
        pure = Fraction(sum(map(abs, moved))) / draw.noise.scale
        epsilon += pure if isinstance(draw.noise, Laplace) else math.inf
        # Laplace noise of epsilon is epsilon²/2 for zCDP (Bun and Steinke 2016).
        squares = sum(each * each for each in moved)
        rho += pure**2 / 2 if isinstance(draw.noise, Laplace) else Fraction(squares) / (2 * draw.noise.scale**2)
    return epsilon, rho


def residuals(draws, rows):
    """Return the noise that was added, in units of its declared scale."""
    return [
        (np.ravel(draw.told) * float(steps_of(draw)) - exact(draw, rows)) / float(draw.noise.scale) for draw in draws
    ]


def audit_fits(model, here, there, *, pilot, runs, delta=0.0, missed=(MISSED,)):
    """Return lower bounds for each error probability: from the fitted attributes, then from all noisy sums."""
    rows = [draws_of(model, data)[0].rows for data in (here, there)]

    def many(count):
        numbers, ratios = ([], []), ([], [])
        for side, data in enumerate((here, there)):
            for _ in range(count):
                draws = draws_of(model, data)
                numbers[side].append(learned(model))
                ratios[side].append(likelihood_ratio(draws, *rows))
        return [np.array(each) for each in numbers], [np.array(each) for each in ratios]

    (tried, tried_ratios), (fresh, fresh_ratios) = many(pilot), many(runs)
    score = Projection(*tried)
    scores = [[score(each) for each in both] for both in (tried, fresh)]
    return [
        [judged(*seen, delta=delta, missed=chance) for chance in missed]
        for seen in (scores, (tried_ratios, fresh_ratios))
    ]
