"""Bounds and an estimate of the clipping bias, and the choice of a radius, from a contribution histogram."""

import bisect
import math
from statistics import NormalDist

import numpy as np
import pytest

from discreet.answer.bias import Bias
from discreet.engines.reference.evaluate import evaluate
from discreet.estimate.contribution_buckets import (
    ContributionBuckets,
    RadiusGoal,
    _quantile,
    choose_radius,
    clipped_rows,
    forecast_bias,
)
from discreet.estimate.contribution_histogram import HALF_OCTAVE, OCTAVE, bucket_ends, octave_ends
from discreet.kernel.ball import Norm
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.query.aggregation.contribution_histogram import _bucket_number

LADDER = tuple(2 ** (place / 2) for place in range(41))
NOISES = (Gaussian(22), Laplace(20))


def pareto_norms(units, alpha):
    """Norms with P[norm >= x] = x^-alpha, as evenly distributed as possible."""
    return ((np.arange(units) + 0.5) / units) ** (-1 / alpha)


def pareto_counts(units, alpha, lows=LADDER):
    return np.histogram(pareto_norms(units, alpha), [*lows, math.inf])[0]


def buckets_of(counts, noise=NOISES[0], lows=LADDER):
    return ContributionBuckets(lows, np.array([*counts, *[0] * (len(lows) - len(counts))], np.int64), noise)


def test_one_bucket_above_the_radius_is_bounded_by_the_quantile_of_its_noise():
    buckets = ContributionBuckets((4.0, 10.0), np.array([5000, 100]), Gaussian(1000))
    assert clipped_rows(buckets, 4).low == 0
    buckets = ContributionBuckets((4.0, 10.0), np.array([5000, 10_000]), Gaussian(1000))
    expected = 6 * (10_000 - 1000 * NormalDist().inv_cdf(0.95))
    assert clipped_rows(buckets, 4).low == pytest.approx(expected, abs=6)  # a rounding slack of at most one unit
    buckets = ContributionBuckets((4.0, 10.0), np.array([5000, 10_000]), Laplace(1000))
    assert clipped_rows(buckets, 4).low == pytest.approx(6 * (10_000 - 1000 * math.log(10)), abs=6)


@pytest.mark.parametrize("noise", NOISES)
def test_bounds_and_estimate_are_in_order_and_never_negative(noise):
    rng = np.random.default_rng(3)
    for _ in range(20):
        counts = np.rint(rng.normal(0, 200, 12) + 3000 * 0.4 ** np.arange(12)).astype(np.int64)
        for radius in (1.0, 3.0, 40.0):
            bias = clipped_rows(buckets_of(counts, noise, LADDER[:12]), radius, most=100.0)
            assert 0 <= bias.low <= bias.estimate <= bias.high


def test_a_far_bucket_of_noise_does_not_lower_the_bound():
    near = clipped_rows(buckets_of([5000, 3000, 1000]), 1.0)
    far = clipped_rows(buckets_of([5000, 3000, 1000, *[0] * 20, -60]), 1.0)
    assert far == near


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("radius", [2.0, 1000.0])
def test_a_wide_ladder_has_the_quantile_of_its_largest_weights(noise, radius):
    lows = (math.sqrt(radius**2 + 1), *(radius * 2 ** (place / 2) for place in range(1, 41)))
    weights = np.array(lows) - radius
    quantile = _quantile(ContributionBuckets(lows, np.zeros(41, np.int64), noise), weights, 0.001)
    draws = np.random.default_rng(5).standard_exponential((2, 20_000, 41))
    drawn = draws[0] - draws[1] if isinstance(noise, Laplace) else np.random.default_rng(5).normal(size=(20_000, 41))
    assert np.mean(drawn @ weights * float(noise.scale) > quantile) < 0.002
    assert quantile < 1.1 * np.quantile(drawn @ weights, 0.999) * float(noise.scale)


def test_a_bound_for_a_chosen_radius_is_lower_than_for_a_fixed_one():
    buckets = buckets_of([5000, 3000, 1000])
    assert 0 < clipped_rows(buckets, 1.0, candidates=41).low < clipped_rows(buckets, 1.0).low


def test_there_is_an_upper_bound_only_with_a_declared_largest_contribution():
    buckets = buckets_of([5000, 3000, 1000])
    assert clipped_rows(buckets, 1.0).high is None
    assert clipped_rows(buckets, 1.0, most=4.0).high < clipped_rows(buckets, 1.0, most=64.0).high
    assert clipped_rows(buckets, 4.0, most=4.0) == Bias(0.0, 0.0, 0.0)


def test_the_estimate_is_near_the_truth_for_log_uniform_norms():
    rng = np.random.default_rng(8)
    norms = 2 ** rng.uniform(0, 5, 200_000)
    counts = np.histogram(norms, [*LADDER[:10], 32.0])[0]
    buckets = buckets_of(counts, Gaussian(1))
    for radius in (1.0, 3.0, 20.0):
        truth = np.maximum(norms - radius, 0).sum()
        assert clipped_rows(buckets, radius).estimate == pytest.approx(truth, rel=0.01)


def test_the_estimate_stops_after_two_empty_buckets():
    counts = [9000, 4000, 2000, 0, 500, 0, 0, 0, 0, 90]
    assert clipped_rows(buckets_of(counts), 1.0).estimate == clipped_rows(buckets_of(counts[:5]), 1.0).estimate


def test_buckets_below_the_smallest_contributions_may_be_empty():
    few, many = (
        choose_radius(buckets_of([0] * empty + [900, 2000, 800, 0, 0, 0]), 5.0, 1, RadiusGoal.MARGINS)
        for empty in (0, 12)
    )
    assert not many.blind
    assert many.radius / few.radius == pytest.approx(2**6, rel=0.01)


@pytest.mark.parametrize("noise", NOISES)
def test_noise_alone_has_no_bias_and_the_choice_is_blind(noise):
    buckets = buckets_of([10, -25, 30, 4, -12], noise)
    assert clipped_rows(buckets, 1.0) == Bias(0.0, 0.0, None)
    assert choose_radius(buckets, 5.0, 1, RadiusGoal.MARGINS).blind


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0])
def test_a_chosen_radius_keeps_the_bias_below_the_noise(noise, alpha):
    units, ratio = 200_000, 5.0
    choice = choose_radius(buckets_of(pareto_counts(units, alpha), noise), ratio, 1, RadiusGoal.MARGINS)
    norms = pareto_norms(units, alpha)
    bias = {radius: np.maximum(norms - radius, 0).sum() for radius in LADDER}
    best = min(LADDER, key=lambda radius: math.hypot(bias[radius], ratio * radius))
    assert not choice.blind
    assert bias[choice.radius] < 0.8 * ratio * choice.radius
    assert best <= choice.radius <= 4 * best


def test_the_more_the_bias_counts_the_larger_is_the_choice():
    for alpha in (1.5, 2.0, 3.0):
        buckets = buckets_of(pareto_counts(200_000, alpha))
        margins, error, means = (choose_radius(buckets, 5.0, 10, goal).radius for goal in RadiusGoal)
        assert means <= error <= margins


def test_more_cells_and_more_noise_lower_the_radius():
    buckets = buckets_of(pareto_counts(200_000, 2.0))
    radii = [choose_radius(buckets, 5.0, cells, RadiusGoal.MARGINS).radius for cells in (1, 25, 400)]
    assert radii == sorted(radii, reverse=True)
    assert radii[0] > radii[2]
    assert choose_radius(buckets, 50.0, 1, RadiusGoal.MARGINS).radius < radii[0]


def test_a_noisy_bucket_far_out_does_not_choose_the_radius():
    counts = pareto_counts(200_000, 3.0)
    noisy = counts.copy()
    noisy[35] += 70
    assert choose_radius(buckets_of(noisy), 5.0, 1, RadiusGoal.MARGINS).radius <= 64


def test_the_choice_for_few_units_lies_near_their_contributions():
    counts = [0] * 8 + [43, 76, 90, 75, 62, 61, 59, 41, 31, 32, 16, 12, 8]  # 610 raters with 16 to 1,500 ratings
    choice = choose_radius(buckets_of(counts, Gaussian(20)), 5.0, 1, RadiusGoal.MARGINS)
    assert choice.blind
    assert 500 <= choice.radius <= 3000


OCTAVES = tuple(2.0**place for place in range(30))


def octaves_of(norms, noise=NOISES[0]):
    return ContributionBuckets(OCTAVES, np.histogram(norms, [*OCTAVES, math.inf])[0].astype(np.int64), noise)


def test_radii_are_steps_of_sqrt_2_whatever_the_buckets():
    assert octaves_of([1]).radii == pytest.approx([2 ** (place / 2) for place in range(59)])
    assert buckets_of([1]).radii == pytest.approx(LADDER)


@pytest.mark.parametrize("noise", [Gaussian(43), Laplace(40)], ids=str)
def test_tails_that_end_abruptly_get_a_smaller_radius_than_heavy_ones_with_the_same_median(noise):
    chance = (np.arange(7000) + 0.5) / 7000
    shapes = {
        "exponential": 12 * -np.log(chance) / math.log(2),
        "log-normal": 12 * np.exp(1.2 * np.array([NormalDist().inv_cdf(each) for each in chance])),
        "Pareto": 12 * (2 * chance) ** (-1 / 1.5),
    }
    radii = [choose_radius(octaves_of(norms, noise), 5.0, 1, RadiusGoal.MARGINS).radius for norms in shapes.values()]
    assert radii == sorted(radii)
    for norms, radius in zip(shapes.values(), radii, strict=True):
        error = {each: math.hypot(np.maximum(norms - each, 0).sum(), 5.0 * each) for each in octaves_of(norms).radii}
        assert error[radius] < 3 * min(error.values())


@pytest.mark.parametrize(("units", "alpha", "ratio"), [(20_000, 1.1, 5.0), (20_000, 1.1, 50.0), (200_000, 1.02, 50.0)])
def test_the_middle_forecast_of_the_bias_is_at_most_half_the_noise_however_heavy_the_tail(units, alpha, ratio):
    buckets = octaves_of(pareto_norms(units, alpha))
    radius = choose_radius(buckets, ratio, 1, RadiusGoal.MARGINS).radius
    forecast = forecast_bias(buckets, 1)
    middle = dict(zip(forecast.radii, forecast.quantile(0.5), strict=True))
    assert middle[radius] <= 0.5 * ratio * radius


def test_a_histogram_that_is_not_a_ladder_is_refused():
    with pytest.raises(ValueError, match="length"):
        ContributionBuckets((1.0, 2.0), np.array([1]), NOISES[0])
    with pytest.raises(ValueError, match="increasing"):
        ContributionBuckets((2.0, 2.0), np.array([1, 1]), NOISES[0])


def test_a_spike_of_noise_far_above_the_radius_does_not_count_in_the_estimate():
    lows = tuple(8 * 2 ** (place / 2) for place in range(60))
    counts = np.zeros(60, np.int64)
    counts[[0, 1, 50]] = 60, 40, 80
    spiked = ContributionBuckets(lows, counts, Laplace(12))
    counts_below = counts.copy()
    counts_below[50] = 0
    plain = ContributionBuckets(lows, counts_below, Laplace(12))
    assert clipped_rows(spiked, 8).estimate == clipped_rows(plain, 8).estimate > 0
    assert clipped_rows(spiked, 64).estimate == 0


@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("radius", [1, 2, 3, 4, 9, 16, 50, 144, 500, 12_345, 1 << 40])
def test_the_number_of_a_bucket_follows_from_its_lower_end(norm, radius):
    for ends, factor in ((octave_ends(norm, radius), OCTAVE), (bucket_ends(norm, radius, 1 << 62), HALF_OCTAVE)):
        number = _bucket_number(ends, norm, factor)
        assert evaluate(number, {"f0": None}) == len(ends) - 1  # it does not fit in 64 bits
        for size in {0, 1, (1 << 63) - 1} | {end + step for end in ends for step in (-1, 0, 1) if end < 1 << 40}:
            place = bisect.bisect_right(ends, size) - 1
            assert evaluate(number, {"f0": size}) == (None if place < 0 else place)
        assert all(evaluate(number, {"f0": end}) == place for place, end in enumerate(ends))
