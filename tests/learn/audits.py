"""What fits tell of one person: a lower bound of the loss, from many fits with them and without them.

Two adversaries look. One sees what a fit gives, and chooses on pilot fits how to weigh it. The other has seen all that
was ever drawn, and knows both data sets: its score is the exact likelihood ratio, which nobody can beat. On fresh fits
events are counted, and Clopper and Pearson say how probable they are at least and at most.
"""

import math
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta, norm

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.reservation import CLIP_RADIUS, reserve
from discreet.learn import fit_session

MISSED = 1e-10  # the chance that a sound model looks unsound
_INTERVALS = 6  # two directions and one for Gaussian noise, of two intervals each
_DRAWS = {name: getattr(fit_session, name) for name in ("noisy_sum", "noisy_histograms", "noisy_sparse_sum")}


class Data(NamedTuple):
    """What is given to `fit`."""

    X: np.ndarray
    y: np.ndarray | None = None
    unit: np.ndarray | None = None


class Audit(NamedTuple):
    """What was seen for certain: at least this epsilon, and at least Gaussian noise of this little spread (1/mu)."""

    epsilon: float
    mu: float


class Draw(NamedTuple):
    """What a model has drawn: from which rows, by which rule, with which noise, and what came out."""

    name: str
    rows: Any
    rule: Any
    public: tuple
    more: dict
    noise: Any
    told: np.ndarray


def without(data, gone):
    """Return data with rows taken away: those of one person."""
    return Data(*(None if part is None else part[~gone] for part in data))


def fitted(model, data):
    more = {} if data.unit is None else {"unit": data.unit}
    return model.fit(data.X, data.y, **more)


def learned(model):
    """Return all numbers that a fit gives, in one row."""
    kept = {name: value for name, value in vars(model).items() if name.endswith("_") and name[0] != "_"}
    arrays = [np.ravel(kept[name]) for name in sorted(kept) if np.asarray(kept[name]).dtype.kind in "if"]
    return np.concatenate(arrays).astype(float)


# --- How probable events are, and what follows


def least(hits, runs, missed):
    return beta.ppf(missed, hits, runs - hits + 1) if hits else 0.0


def most(hits, runs, missed):
    return beta.ppf(1 - missed, hits + 1, runs - hits) if hits < runs else 1.0


def epsilon_low(hits, other, runs, *, delta, missed):
    """Return the largest epsilon that an event shows, which two data sets gave so often."""
    surely = least(hits, runs, missed) - delta
    return math.log(surely / most(other, runs, missed)) if surely > 0 else -math.inf


def mu_low(hits, other, runs, *, missed):
    """Return by how many deviations of Gaussian noise the two data sets are surely apart."""
    return float(norm.ppf(least(hits, runs, missed)) - norm.ppf(most(other, runs, missed)))


def judged(pilot, fresh, *, delta=0.0, missed=MISSED):
    """Return what scores show: thresholds come from pilot fits, here and there, and counts from fresh ones."""
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
    """Return the threshold that would have shown most: halfway between two scores of the pilot fits."""
    here, there = pilot
    runs = min(len(here), len(there))
    scores = np.unique(np.concatenate(pilot))
    ends = np.append((scores[1:] + scores[:-1]) / 2, scores[0] - 1)
    ends = ends[:: max(1, len(ends) // 100)]
    hits = [(int((here[:runs] > end).sum()), int((there[:runs] > end).sum())) for end in ends]
    return ends[int(np.argmax([np.nan_to_num(worth(*counts, runs), nan=-9, neginf=-9) for counts in hits]))]


# --- The adversary who sees what comes out


class Projection:
    """Numbers of a fit, weighed as tells most of who was there: by Fisher's discriminant of pilot fits.

    Squares are weighed too: somebody may be known by how far numbers scatter.
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
    """Return what a release, a function from data to numbers, surely tells of who is here and not there."""

    def many(count):
        return [np.array([np.ravel(release(data)) for _ in range(count)], float) for data in (here, there)]

    tried, fresh = many(pilot), many(runs)
    score = Projection(*tried)
    return judged([score(each) for each in tried], [score(each) for each in fresh], delta=delta, missed=missed)


# --- The adversary who has seen every draw


class _Exact:
    """Keeps the integers that noise would have been added to."""

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
    """Give a list to which everything that models draw is added."""
    found = []

    def watching(name):
        def draw(rows, rule, public, **more):
            noise = more["reservation"].next_noise
            told = _DRAWS[name](rows, rule, public, **more)
            found.append(Draw(name, rows, rule, public, {k: more[k] for k in more if k != "reservation"}, noise, told))
            return told

        return draw

    with _instead(watching):
        yield found


def draws_of(model, data):
    with watched() as found:
        fitted(model, data)
    return found


@contextmanager
def replayed(draws):
    """Answer every draw with what was drawn before, whatever the rows are: nothing else of the data is to be had."""
    left = list(draws)

    def replaying(name):
        def draw(rows, rule, public, **more):
            before = left.pop(0)
            more["reservation"].take_noise()
            given = {key: more[key] for key in more if key != "reservation"}
            assert (name, rule, given) == (before.name, before.rule, before.more)
            assert len(public) == len(before.public)
            assert all(np.array_equal(one, other) for one, other in zip(public, before.public, strict=True))
            return before.told.copy()

        return draw

    with _instead(replaying):
        yield
    assert not left


@contextmanager
def one_chance():
    """Let all that is random after the draws be the same."""
    found = np.random.default_rng
    np.random.default_rng = lambda seed=0: found(seed)
    try:
        yield
    finally:
        np.random.default_rng = found


@contextmanager
def _instead(made):
    for name in _DRAWS:
        setattr(fit_session, name, made(name))
    try:
        yield
    finally:
        for name, draw in _DRAWS.items():
            setattr(fit_session, name, draw)


def attributes(model):
    """Return everything that a fit has set, as plain values."""
    return {name: np.asarray(value).tolist() for name, value in vars(model).items() if name.endswith("_")}


def exact(draw, rows):
    """Return the exact integers of a draw on other rows, and what one step of them is worth."""
    quiet = ExactLaplace(draw.noise.scale) if isinstance(draw.noise, Laplace) else ExactGaussian(draw.noise.scale)
    TOTALS.clear()
    _DRAWS[draw.name](rows, draw.rule, draw.public, **draw.more, reservation=reserve([quiet]))
    return np.ravel(TOTALS[0])


def steps_of(draw):
    """Return how many steps of the grid make a unit of what was told."""
    if draw.name == "noisy_histograms":
        tables = draw.more["tables"]
        return (
            CLIP_RADIUS // tables
            if isinstance(draw.noise, Laplace)
            else math.isqrt(CLIP_RADIUS * CLIP_RADIUS // tables)
        )
    return CLIP_RADIUS / draw.more["radius"]


def likelihood_ratio(draws, here, there):
    """Return the logarithm of how much likelier all draws are of the rows here than of those there."""
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
    """Return what these draws have cost, for these two data sets: the sums of epsilons, and of rhos."""
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
    """Return the noise that was really added, in units of what was paid for."""
    return [
        (np.ravel(draw.told) * float(steps_of(draw)) - exact(draw, rows)) / float(draw.noise.scale) for draw in draws
    ]


def audit_fits(model, here, there, *, pilot, runs, delta=0.0, missed=(MISSED,)):
    """Return what fits surely tell, for each chance to be wrong: first what they give, then all that they drew."""
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
