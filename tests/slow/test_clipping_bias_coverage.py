"""How often bounds on the clipping bias hold, over many releases of a contribution histogram."""

import math

import numpy as np
import pytest

from discreet.estimate.contribution_buckets import (
    _TAIL_DECAY,
    ContributionBuckets,
    RadiusGoal,
    _quantile,
    choose_radius,
    clipped_rows,
)
from discreet.kernel.mechanism import Gaussian, Laplace

pytestmark = pytest.mark.slow

RELEASES, MANY = 1000, 50_000
LADDER = tuple(2 ** (place / 2) for place in range(26))
MOST = 4096.0
NOISES = (Gaussian(22), Laplace(20))
POPULATIONS = {
    "pareto": lambda rng: np.minimum(rng.random(100_000) ** (-1 / 1.5), MOST),
    "lognormal": lambda rng: np.clip(np.exp(rng.normal(1, 1.5, 50_000)), 1, MOST),
    "few": lambda rng: np.clip(np.exp(rng.normal(4, 1, 600)), 1, MOST),
    "at the lower ends": lambda rng: np.repeat(LADDER[:-4], 50_000 // 2 ** np.arange(22)),  # the bound is tight
}


def released(norms, noise):
    counts = np.histogram(norms, [*LADDER, math.inf])[0].astype(np.int64)
    return (ContributionBuckets(LADDER, noise.perturb(counts), noise) for _ in range(RELEASES))


def lower_bounds(counts, noise, radius, scale=1.0):
    """The lower bounds of many releases at once: the quantiles of the noise are the same for all of them."""
    above = [low - radius for low in LADDER if low > radius]
    buckets = ContributionBuckets(LADDER, counts[0], noise)
    weights = np.array(above)
    tails = _TAIL_DECAY ** np.arange(len(above))
    tails *= 0.05 / tails.sum()
    quantiles = [_quantile(buckets, weights[: size + 1], tails[size]) for size in range(len(above))]
    totals = np.cumsum(counts[:, -len(above) :] * weights, axis=1)
    return np.maximum(0, (totals - scale * np.array(quantiles)).max(axis=1))


def many_releases(norms, noise):
    counts = np.histogram(norms, [*LADDER, math.inf])[0].astype(np.int64)
    return noise.perturb(np.tile(counts, (MANY, 1)))


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("radius", [1.0, 8.0, 64.0])
def test_the_lower_bound_holds_in_95_of_100_releases(noise, population, radius):
    norms = POPULATIONS[population](np.random.default_rng(1))
    counts = many_releases(norms, noise)
    lows = lower_bounds(counts, noise, radius)
    for released_counts, low in zip(counts[:20], lows, strict=False):
        assert clipped_rows(ContributionBuckets(LADDER, released_counts, noise), radius).low == pytest.approx(low)
    # 96 % or more is expected, because bounds of several prefixes are combined; the deviation of the mean is 0.1 %.
    assert np.mean(lows <= np.maximum(norms - radius, 0).sum()) >= 0.95


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_quantiles_that_are_a_tenth_too_small_are_noticed(noise):
    norms = POPULATIONS["at the lower ends"](None)
    lows = lower_bounds(many_releases(norms, noise), noise, 64.0, scale=0.9)
    assert np.mean(lows <= np.maximum(norms - 64.0, 0).sum()) < 0.945


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("goal", RadiusGoal)
def test_the_lower_bound_holds_if_the_radius_was_chosen_from_the_same_histogram(noise, population, goal):
    norms = POPULATIONS[population](np.random.default_rng(2))
    held = []
    for buckets in released(norms, noise):
        radius = choose_radius(buckets, 5.0, 100, goal).radius
        low = clipped_rows(buckets, radius, candidates=len(LADDER)).low
        held.append(low <= np.maximum(norms - radius, 0).sum())
    assert np.mean(held) >= 0.95


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("radius", [1.0, 8.0, 64.0])
def test_the_interval_of_a_declared_largest_contribution_holds(noise, population, radius):
    norms = POPULATIONS[population](np.random.default_rng(3))
    truth = np.maximum(norms - radius, 0).sum()
    biases = [clipped_rows(buckets, radius, most=MOST) for buckets in released(norms, noise)]
    assert np.mean([bias.low <= truth <= bias.high for bias in biases]) >= 0.93


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_lower_bound_is_near_the_truth_where_bounds_are_far_too_low(noise):
    norms = POPULATIONS["at the lower ends"](None)
    truth = np.maximum(norms - 1.0, 0).sum()
    lows = [clipped_rows(buckets, 1.0).low for buckets in released(norms, noise)]
    assert np.median(lows) > 0.8 * truth


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_bound_that_ignores_the_noise_would_be_noticed(noise):
    norms = POPULATIONS["at the lower ends"](None)
    weights = np.array(LADDER) - 1.0
    truth = np.maximum(norms - 1.0, 0).sum()
    held = [float(np.cumsum(buckets.counts * weights).max()) <= truth for buckets in released(norms, noise)]
    assert np.mean(held) < 0.7
