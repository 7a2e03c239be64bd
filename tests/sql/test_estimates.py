"""Margins cover the truth at least as often as they say, and are hardly wider than they must be."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet import privacy
from discreet.estimate.estimators import (
    Moments,
    NoisyTotal,
    NumberKind,
    ValueRange,
    VarianceStatistic,
    count,
    describe_noise,
    mean,
    sum_from_centre,
    sum_of,
    variance_estimate,
)
from discreet.estimate.intervals import JointNoise, _rounding_slack, largest_deviation
from discreet.kernel.mechanism import Gaussian, Laplace

DRAWS = 20_000
ALARM = 1e-9
LAWS = [Laplace, Gaussian]
each_law = pytest.mark.parametrize("law", LAWS)
AGES = ValueRange(Fraction(0), Fraction(100), centre=Fraction(50))
FINE, COARSE = Fraction(1, 1 << 20), Fraction(1)


def drawn(noise, n, seed):
    """Draw discrete noise of the mechanism's law, the same in every run."""
    rng, scale = np.random.default_rng(seed), float(noise.scale)
    if isinstance(noise, Laplace):
        stop = -math.expm1(-1 / scale)
        return rng.geometric(stop, n) - rng.geometric(stop, n)
    if scale > 1000:  # the rounded continuous noise has a relative variance of 1e-7 more
        return np.rint(rng.normal(0, scale, n)).astype(np.int64)
    support = np.arange(-math.ceil(12 * scale), math.ceil(12 * scale) + 1)
    weights = np.exp(-((support / scale) ** 2) / 2)
    return rng.choice(support, n, p=weights / weights.sum())


def noised(truth, noise, step, n, seed):
    return NoisyTotal(round(truth / step) + drawn(noise, n, seed), noise, step)


def people(law, scale, size, *, average, deviation, step, seed=1, n=DRAWS, draw=noised):
    """Return many releases of one group's moments, and its true mean and variance."""
    offset, shift = average - 50, 1250
    square = deviation**2 + offset**2 - shift
    sized = draw(size, law(Fraction(scale) / step), step, n, seed)
    total = draw(Fraction(size * offset), law(Fraction(50 * scale) / Fraction(1, 1024)), Fraction(1, 1024), n, seed + 1)
    squares = draw(Fraction(size * square), law(Fraction(1250 * scale) / Fraction(1, 16)), Fraction(1, 16), n, seed + 2)
    return Moments(replace(squares, shift=Fraction(shift)), total, sized), average, deviation**2


def covered(estimate, truth):
    known = ~np.isnan(estimate.values)
    return np.abs(estimate.values - truth)[known] <= estimate.margins[known] * (1 + 1e-12) + 1e-9


def assert_covers(estimate, truth):
    hits = covered(estimate, truth)
    print(hits.mean(), hits.size)
    assert hits.sum() >= stats.binom.ppf(ALARM, hits.size, 0.95)


# Counts and sums


@each_law
@pytest.mark.parametrize("scale", ["1/3", "1", "12.5", "400"])
def test_a_count_has_the_smallest_margin_of_its_exact_distribution(law, scale):
    noise = law(scale)
    margin = int(count(NoisyTotal(np.array([10]), noise)).margins[0])
    inside = sum(privacy.pmf(noise, k) for k in range(-margin, margin + 1))
    assert inside >= 0.95
    assert margin == 0 or inside - 2 * privacy.pmf(noise, margin) < 0.95


def test_counts_are_integers_and_may_be_negative():
    found = count(NoisyTotal(np.array([731, -2]), Laplace(10)))
    assert found.values.dtype == np.int64
    assert found.values.tolist() == [731, -2]
    assert found.margins.tolist() == [30.0, 30.0]


@pytest.mark.parametrize("step", [Fraction(1, 8), Fraction(1, 3), Fraction(3, 5), Fraction(2), Fraction(7, 4)])
def test_the_margin_of_a_count_includes_rounding(step):
    noisy = np.arange(-100, 100)
    noise = Laplace(4)
    found, steps = count(NoisyTotal(noisy, noise, step)), privacy.margin(noise, 0.95)
    moved = [
        abs(Fraction(value) - Fraction(n) * step)
        for value, n in zip(found.values.tolist(), noisy.tolist(), strict=True)
    ]
    allowed = Fraction(found.margins[0]) - steps * step
    assert max(moved) <= Fraction(1, 2)
    assert 0 <= allowed - max(moved) < Fraction(1, 10**9)  # what is paid is what rounding can cost, and no more


@pytest.mark.long
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    st.fractions(min_value=Fraction(1, 2**20), max_value=2, max_denominator=2**20),
    st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=1000),
)
def test_integer_sums_are_rounded_exactly_and_clamped_to_int64(noisy, step, centre):
    column = np.array(noisy, np.int64)
    found = sum_from_centre(
        NoisyTotal(column, Laplace(3), step), NoisyTotal(column, Laplace(3)), centre=centre, kind=NumberKind.WHOLE
    )
    for value, n in zip(found.values.tolist(), noisy, strict=True):
        exact = n * step + centre * n
        assert value == min(max(math.floor(exact + Fraction(1, 2)), -(2**63)), 2**63 - 1)


def test_a_sum_of_reals_is_scaled_by_its_step():
    found = sum_of(NoisyTotal(np.array([1000, -3]), Laplace(8), Fraction(1, 4)), kind=NumberKind.REAL)
    assert found.values.tolist() == [250.0, -0.75]
    assert found.margins.tolist() == [privacy.margin(Laplace(8), 0.95) / 4] * 2


def test_a_margin_that_no_float_equals_is_rounded_up():
    assert Fraction(
        sum_of(NoisyTotal(np.array([1]), Laplace(7), Fraction(1, 3)), kind=NumberKind.REAL).margins[0]
    ) >= 21 * Fraction(1, 3)
    margins = [
        Fraction(sum_of(NoisyTotal(np.array([1]), Laplace(7), Fraction(1, d)), kind=NumberKind.REAL).margins[0])
        for d in range(1, 60)
    ]
    assert all(margin >= Fraction(privacy.margin(Laplace(7), 0.95), d) for d, margin in enumerate(margins, start=1))


@each_law
@pytest.mark.parametrize("kind", list(NumberKind))
def test_a_sum_around_a_centre_covers_the_truth(law, kind):
    total = noised(Fraction(-3000), law(40 * 64), Fraction(1, 64), DRAWS, 3)
    sized = noised(500, law(1 << 20), FINE, DRAWS, 4)
    found = sum_from_centre(total, sized, centre=Fraction(50), kind=kind)
    assert found.values.dtype == (np.int64 if kind is NumberKind.WHOLE else np.float64)
    assert_covers(found, 22_000)
    narrow = np.abs(found.values - 22_000) <= 0.9 * found.margins
    assert narrow.mean() < 0.945


def test_a_sum_around_zero_is_the_sum():
    total = NoisyTotal(np.array([7, 8]), Gaussian(30))
    found = sum_from_centre(total, NoisyTotal(np.array([1, 1]), Gaussian(5)), centre=Fraction(0), kind=NumberKind.WHOLE)
    assert found.margins.tolist() == count(total).margins.tolist()


# Quantiles


@pytest.mark.parametrize("tail", [0.05, 0.045, 0.005])
@pytest.mark.parametrize(
    "scales", [(1,), (3, 1), (1, 3), (1, 1), (1, 1.00001), (5, 2, 1), (1, 1, 1), (2, 1, 2), (1, 1e-7, 1e3)]
)
def test_laplace_quantiles_solve_the_tail_of_the_sum(scales, tail):
    noises = JointNoise(Laplace, tuple(map(float, scales)), (0.0,) * len(scales))
    reached = noises.quantile(tail, *[1.0] * len(scales)).item()
    # Gil-Pelaez: P[|X| > x] from the characteristic function, the product of 1/(1 + b²u²).
    u = (np.arange(200_000) + 0.5) * (0.0005 / max(scales))
    transform = np.prod([1 / (1 + (b * u) ** 2) for b in scales], axis=0)
    beyond = 1 - 2 / np.pi * np.sum(np.sin(reached * u) / u * transform) * (u[1] - u[0])
    assert beyond == pytest.approx(tail, rel=5e-3)
    assert beyond <= tail * (1 + 1e-3)


def test_gaussian_quantiles_are_those_of_the_normal_distribution():
    noises = JointNoise(Gaussian, (3.0, 4.0), (0.0, 0.0))
    assert noises.quantile(0.05, 1.0, np.array([1.0, 0.0])) == pytest.approx(stats.norm.isf(0.025) * np.array([5, 3]))


@each_law
def test_quantiles_are_convex_in_the_weights(law):
    noises = JointNoise.from_parts((law(30), Fraction(1)), (law(7), Fraction(1, 3)), (law(2), Fraction(5)))
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, 3, 50_000)) * np.exp(rng.normal(size=(2, 3, 50_000)))
    middle = noises.quantile(0.05, *((a + b) / 2))
    assert (middle <= (noises.quantile(0.05, *a) + noises.quantile(0.05, *b)) / 2 * (1 + 2e-4)).all()


@pytest.mark.parametrize("scale", [0.1, 0.3, 0.5, 0.7, 1, 2, 5, 10, 30])
@each_law
def test_integer_noise_is_within_its_slack_of_the_continuous_noise(law, scale):
    noise, slack = law(scale), _rounding_slack(scale)
    beyond, k = 1 - privacy.pmf(noise, 0), 0
    while beyond > ALARM:
        # |noise| > k where the continuous one is beyond this; drawn together they differ by what is left of k or k+1.
        there = -scale * math.log(beyond) if law is Laplace else scale * stats.norm.isf(beyond / 2)
        assert there - k <= slack + 1e-6
        assert k + 1 - there <= slack + 1e-6
        k += 1
        beyond -= 2 * privacy.pmf(noise, k)
    assert k > 0 or scale < 0.2


@each_law
@pytest.mark.parametrize("scale", ["1/3", "1", "2", "7", "50"])
def test_the_quantile_of_one_integer_noise_is_not_below_its_exact_margin(law, scale):
    exact = privacy.margin(law(scale), 0.95)
    assert exact <= JointNoise.from_parts((law(scale), Fraction(1))).quantile(0.05, 1.0).item() <= exact + 2


def test_noise_of_two_distributions_is_not_combined():
    with pytest.raises(TypeError, match="all Laplace or all Gaussian"):
        JointNoise.from_parts((Laplace(1), Fraction(1)), (Gaussian(1), Fraction(1)))


@each_law
def test_the_largest_deviation_is_never_too_small_and_hardly_too_large(law):
    rng = np.random.default_rng(6)
    noises = JointNoise.from_parts((law(1000), Fraction(50, 1000)), (law(1000), Fraction(1, 1000)))
    size, at = np.exp(rng.uniform(0, 10, 5000)), rng.uniform(-80, 80, 5000)
    slope = noises.quantile(0.05, 0.0, 1.0).item()
    limit = np.maximum(50 - at, 0)

    def push(d):
        return noises.quantile(0.05, 1.0, at + d)

    found = largest_deviation(size, push, slope, 50 - at)
    assert np.isinf(found[size <= slope]).all()
    size, at, limit, found = (x[size > slope] for x in (size, at, limit, found))
    low, high = np.zeros_like(size), np.full_like(size, 1e9)
    for _ in range(100):
        middle = (low + high) / 2
        inside = middle * size <= push(middle)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    excess = np.minimum(found, limit) - np.minimum(low, limit)
    assert (excess >= -1e-9 * low).all()
    assert (excess <= 0.02 * low).all()
    assert np.quantile(excess / low, 0.9) < 1e-4


# Means


@each_law
@pytest.mark.parametrize("step", [FINE, COARSE])
@pytest.mark.parametrize("size", [1, 3, 8, 20, 60, 300, 100_000])
@pytest.mark.parametrize("average", [50, 81, 100])
def test_a_mean_covers_the_truth_in_groups_of_any_size(law, step, size, average):
    moments, truth, _ = people(law, 2, size, average=average, deviation=0, step=step)
    found = mean(moments.total, moments.count, within=AGES)
    assert_covers(found, truth)
    known = ~np.isnan(found.values)
    assert ((found.values >= 0) & (found.values <= 100))[known].all()
    assert (found.margins[known] <= 100).all()


@each_law
def test_the_margin_of_a_mean_is_no_wider_than_necessary(law):
    moments, truth, _ = people(law, 2, 2000, average=58, deviation=0, step=FINE)
    found = mean(moments.total, moments.count, within=AGES)
    held = covered(found, truth)
    assert abs(held.mean() - 0.95) < 6 * math.sqrt(0.95 * 0.05 / held.size)
    assert (np.abs(found.values - truth) <= 0.95 * found.margins).mean() < 0.945


def test_a_mean_reaches_exactly_as_far_as_fieller_says():
    total, sized = NoisyTotal(np.array([8000]), Gaussian(500)), NoisyTotal(np.array([1000]), Gaussian(100))
    found = mean(total, sized, within=AGES)
    # The farther root of (S - tN)² = z²(s² + t²n²), with the half steps that integers may be off.
    z = stats.norm.isf(0.025)
    roots = np.roots([1000**2 - (z * 100) ** 2, -2 * 8000 * 1000, 8000**2 - (z * 500) ** 2])
    assert found.values[0] == 58
    assert found.margins[0] == pytest.approx(max(abs(roots - 8)), rel=0.01)
    assert found.margins[0] >= max(abs(roots - 8))


def test_the_mean_of_an_empty_group_is_null():
    total, sized = NoisyTotal(np.array([5, 5, 5]), Laplace(10)), NoisyTotal(np.array([0, -4, 7]), Laplace(1))
    found = mean(total, sized, within=AGES)
    assert np.isnan(found.values).tolist() == [True, True, False]
    assert np.isnan(found.margins).tolist() == [True, True, False]


@each_law
def test_the_margin_of_a_mean_of_too_few_values_reaches_the_farther_end_of_its_range(law):
    total, sized = NoisyTotal(np.array([30, 400, -900]), law(500)), NoisyTotal(np.array([3, 4, 5]), law(10))
    found = mean(total, sized, within=AGES)
    assert found.values.tolist() == [60, 100, 0]
    assert found.margins.tolist() == [60, 100, 100]


def test_a_mean_outside_its_range_is_clamped_and_keeps_its_margin():
    sized = NoisyTotal(np.array([1000, 1000]), Gaussian(10))
    found = mean(NoisyTotal(np.array([50_000, 50_700]), Gaussian(500)), sized, within=AGES)
    assert found.values.tolist() == [100, 100]
    assert found.margins[1] == pytest.approx(found.margins[0], rel=0.05)


def test_a_mean_far_from_zero_stays_within_its_range():
    years = ValueRange(Fraction(10**17), Fraction(10**17 + 1), centre=Fraction(10**17))
    found = mean(
        NoisyTotal(np.array([10**6]), Laplace(1), Fraction(1, 10**6)),
        NoisyTotal(np.array([1]), Laplace(1)),
        within=years,
    )
    assert 10**17 <= found.values[0] <= 10**17 + 1


def test_a_mean_of_one_possible_value_is_that_value():
    only = ValueRange(Fraction(7), Fraction(7), centre=Fraction(7))
    found = mean(NoisyTotal(np.array([3]), Laplace(1)), NoisyTotal(np.array([500]), Laplace(1)), within=only)
    assert (found.values[0], found.margins[0]) == (7, 0)


# Spreads


TRUTHS = {
    VarianceStatistic.VAR_POP: lambda v, n: v,
    VarianceStatistic.VAR_SAMP: lambda v, n: v * n / (n - 1),
    VarianceStatistic.STDDEV_POP: lambda v, n: math.sqrt(v),
    VarianceStatistic.STDDEV_SAMP: lambda v, n: math.sqrt(v * n / (n - 1)),
}


@each_law
@pytest.mark.parametrize("statistic", list(VarianceStatistic))
@pytest.mark.parametrize(("average", "deviation"), [(58, 20), (50, 0), (50, 50), (99, 1)])
@pytest.mark.parametrize("size", [2, 6, 20, 100, 600, 100_000])
def test_a_variance_covers_the_truth_in_groups_of_any_size(law, statistic, size, average, deviation):
    moments, _, variance = people(law, 2, size, average=average, deviation=deviation, step=FINE)
    found = variance_estimate(moments, within=AGES, statistic=statistic)
    assert_covers(found, TRUTHS[statistic](variance, size))
    assert not (found.values < 0).any()


@each_law
@pytest.mark.parametrize("size", [500, 2000])
@pytest.mark.parametrize("statistic", list(VarianceStatistic))
def test_a_variance_covers_the_truth_when_the_mean_is_uncertain(law, statistic, size):
    squares, sized = noised(0, law(16), Fraction(1, 16), DRAWS, 7), noised(size, law(1 << 20), FINE, DRAWS, 8)
    shifted = replace(squares, shift=Fraction(400))
    moments = Moments(shifted, noised(0, law(5000), Fraction(1), DRAWS, 9), sized)
    assert_covers(variance_estimate(moments, within=AGES, statistic=statistic), TRUTHS[statistic](400, size))


@each_law
@pytest.mark.parametrize("statistic", list(VarianceStatistic))
def test_a_variance_covers_the_truth_when_counts_have_coarse_steps(law, statistic):
    moments, _, variance = people(law, 2, 200, average=58, deviation=20, step=COARSE)
    assert_covers(variance_estimate(moments, within=AGES, statistic=statistic), TRUTHS[statistic](variance, 200))


@each_law
@pytest.mark.parametrize("statistic", list(VarianceStatistic))
def test_the_margin_of_a_variance_in_a_large_group_is_hardly_wider_than_necessary(law, statistic):
    moments, _, variance = people(law, 2, 20_000, average=58, deviation=20, step=FINE)
    found, truth = variance_estimate(moments, within=AGES, statistic=statistic), TRUTHS[statistic](variance, 20_000)
    assert np.median(found.margins) < 1.1 * np.quantile(np.abs(found.values - truth), 0.95)


def test_the_variance_of_an_empty_group_is_null_and_a_sample_needs_two():
    sized = NoisyTotal(np.array([-1, 0, 1, 2]), Laplace(1))
    moments = Moments(NoisyTotal(np.full(4, 9), Laplace(1)), NoisyTotal(np.full(4, 1), Laplace(1)), sized)
    everyone = variance_estimate(moments, within=AGES, statistic=VarianceStatistic.VAR_POP)
    sample = variance_estimate(moments, within=AGES, statistic=VarianceStatistic.STDDEV_SAMP)
    assert np.isnan(everyone.values).tolist() == np.isnan(everyone.margins).tolist() == [True, True, False, False]
    assert np.isnan(sample.values).tolist() == np.isnan(sample.margins).tolist() == [True, True, True, False]


def test_a_variance_follows_from_the_moments():
    ages = np.array([20.0, 30.0, 70.0, 90.0])
    offsets, size = ages - 50, ages.size
    moments = Moments(
        NoisyTotal(np.array([round(sum(offsets**2 - 1250))]), Laplace(1), shift=Fraction(1250)),
        NoisyTotal(np.array([round(sum(offsets))]), Laplace(1)),
        NoisyTotal(np.array([size]), Laplace(1)),
    )
    found = [
        variance_estimate(moments, within=AGES, statistic=statistic).values.item() for statistic in VarianceStatistic
    ]
    assert found == pytest.approx([np.var(ages), np.var(ages, ddof=1), np.std(ages), np.std(ages, ddof=1)])


@pytest.mark.parametrize(
    ("statistic", "most"), [(VarianceStatistic.VAR_POP, 2500), (VarianceStatistic.STDDEV_SAMP, math.sqrt(5000))]
)
def test_a_variance_is_between_zero_and_what_the_range_allows(statistic, most):
    sized = NoisyTotal(np.array([3, 3]), Laplace(1))
    moments = Moments(
        NoisyTotal(np.array([-(10**6), 10**6]), Laplace(1)),
        NoisyTotal(np.zeros(2, int), Laplace(1)),
        sized,
    )
    found = variance_estimate(moments, within=AGES, statistic=statistic)
    assert found.values.tolist() == [0, most]
    assert found.margins.tolist() == [most, most]


# All of them


def test_no_groups_give_no_estimates():
    none = NoisyTotal(np.array([], np.int64), Laplace(1))
    found = [
        count(none),
        sum_from_centre(none, none, centre=Fraction(5), kind=NumberKind.REAL),
        mean(none, none, within=AGES),
        variance_estimate(Moments(none, none, none), within=AGES, statistic=VarianceStatistic.VAR_SAMP),
    ]
    assert all(one.values.shape == one.margins.shape == (0,) for one in found)


def test_the_same_release_always_gives_the_same_estimate():
    moments, _, _ = people(Laplace, 2, 50, average=58, deviation=20, step=FINE, n=10)
    first, second = (variance_estimate(moments, within=AGES, statistic=VarianceStatistic.VAR_SAMP) for _ in range(2))
    assert first.margins.tolist() == second.margins.tolist()


def test_the_estimate_of_a_group_does_not_depend_on_other_groups():
    sizes, sums = np.array([5, 50, 500, 5000]), np.array([10, 900, -3000, 2000])
    together = mean(NoisyTotal(sums, Laplace(100)), NoisyTotal(sizes, Laplace(2)), within=AGES)
    for i in range(4):
        alone = mean(NoisyTotal(sums[i : i + 1], Laplace(100)), NoisyTotal(sizes[i : i + 1], Laplace(2)), within=AGES)
        assert alone.values[0] == together.values[i]
        assert alone.margins[0] == pytest.approx(together.margins[i], rel=1e-3)


@pytest.mark.parametrize("noisy", [np.array([1.0]), np.array([1], np.int32), np.array([[1]])])
def test_a_total_is_one_column_of_int64(noisy):
    with pytest.raises(TypeError, match="int64"):
        NoisyTotal(noisy, Laplace(1))


def test_an_invalid_step_or_range_is_refused():
    with pytest.raises(ValueError, match="step must be above 0"):
        NoisyTotal(np.array([1]), Laplace(1), Fraction(0))
    with pytest.raises(ValueError, match="low must not exceed high"):
        ValueRange(Fraction(1), Fraction(0), centre=Fraction(0))


def test_noise_is_described_in_the_units_of_the_answer():
    assert describe_noise(NoisyTotal(np.array([1]), Gaussian(3 << 20), FINE)) == "discrete Gaussian, scale 3"


# The real mechanisms


def perturbed(truth, noise, step, n, seed):
    return NoisyTotal(noise.perturb(np.full(n, round(truth / step), np.int64)), noise, step)


@pytest.mark.slow
@each_law
@pytest.mark.parametrize("step", [FINE, COARSE])
@pytest.mark.parametrize("size", [3, 30, 3000])
def test_estimates_from_real_noise_cover_the_truth(law, step, size):
    moments, average, variance = people(law, 2, size, average=58, deviation=20, step=step, n=100_000, draw=perturbed)
    assert_covers(count(moments.count), size)
    assert_covers(sum_from_centre(moments.total, moments.count, centre=Fraction(50), kind=NumberKind.REAL), 58 * size)
    assert_covers(mean(moments.total, moments.count, within=AGES), average)
    for statistic in VarianceStatistic:
        assert_covers(variance_estimate(moments, within=AGES, statistic=statistic), TRUTHS[statistic](variance, size))
