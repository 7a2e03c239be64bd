"""Covariances, correlations and regressions: their values, and how often their margins cover the truth."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.estimate.estimators import NoisyTotal, ValueRange
from discreet.estimate.pair_statistics import PairStatistic, PairTotals, pair_estimate
from discreet.kernel.mechanism import Gaussian, Laplace

DRAWS, ALARM = 4_000, 1e-9
X, Y = (ValueRange(Fraction(0), Fraction(high), Fraction(high, 2)) for high in (100, 1000))
SHIFT = Fraction(1, 8)  # of the squared range
TRUTHS = {
    PairStatistic.COVAR_POP: lambda x, y: np.cov(x, y, ddof=0)[0, 1],
    PairStatistic.COVAR_SAMP: lambda x, y: np.cov(x, y)[0, 1],
    PairStatistic.CORR: lambda x, y: np.corrcoef(x, y)[0, 1],
    PairStatistic.REGR_SLOPE: lambda x, y: stats.linregress(x, y).slope,
    PairStatistic.REGR_INTERCEPT: lambda x, y: stats.linregress(x, y).intercept,
    PairStatistic.REGR_R2: lambda x, y: np.corrcoef(x, y)[0, 1] ** 2,
}


def line(size, seed=1):
    """Return values in their ranges, with a correlation of about 0.6, away from the centre."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(10, 70, size)
    return x, np.clip(100 + 8 * x + rng.normal(0, 180, size), 0, 1000)


def noised(truth, noise, rng, draws, *, real):
    """Return many releases of one total, in steps of 1/1024."""
    steps = np.full(draws, round(truth * 1024), np.int64)
    if real:
        return NoisyTotal(noise.perturb(steps), noise, Fraction(1, 1024))
    size = float(noise.scale)
    added = rng.laplace(0, size, draws) if isinstance(noise, Laplace) else rng.normal(0, size, draws)
    return NoisyTotal(steps + np.rint(added).astype(np.int64), noise, Fraction(1, 1024))


def released(x, y, statistic, law, *, scale=2, draws=DRAWS, real=False):
    """Return many releases of the totals of a statistic, with noise for contributions as large as the ranges allow."""
    rng, u, v = np.random.default_rng(3), x - 50, y - 500
    sums = [(np.sum(u * v), 25_000), (u.sum(), 50), (v.sum(), 500), (len(x), 1)]
    totals = [noised(total, law(1024 * Fraction(most * scale)), rng, draws, real=real) for total, most in sums]
    squares = []
    for used, values, high in ((statistic.uses_x_squares, u, 100), (statistic.uses_y_squares, v, 1000)):
        shift = SHIFT * high**2
        if used:
            total = noised(np.sum(values**2 - float(shift)), law(1024 * shift * scale), rng, draws, real=real)
            squares.append(replace(total, shift=shift))
    return PairTotals(*totals, *squares)


def coverage(x, y, statistic, law, **more):
    found = pair_estimate(released(x, y, statistic, law, **more), X, Y, statistic)
    known = ~np.isnan(found.values)
    return np.abs(found.values - TRUTHS[statistic](x, y))[known] <= found.margins[known] * (1 + 1e-12), found


each_law = pytest.mark.parametrize("law", [Laplace, Gaussian])
each_statistic = pytest.mark.parametrize("statistic", list(PairStatistic))


@each_law
@each_statistic
@pytest.mark.parametrize("size", [60, 300, 2000, 50_000])
def test_a_statistic_of_pairs_covers_the_truth(law, statistic, size):
    hits, _ = coverage(*line(size), statistic, law)
    print(hits.mean(), hits.size)
    assert hits.sum() >= stats.binom.ppf(ALARM, hits.size, 0.95)


@each_law
@each_statistic
def test_the_margin_of_a_statistic_of_pairs_is_hardly_wider_than_necessary(law, statistic):
    x, y = line(20_000)
    _, found = coverage(x, y, statistic, law)
    needed = np.quantile(np.abs(found.values - TRUTHS[statistic](x, y)), 0.95)
    print(np.median(found.margins) / needed)
    assert 0.95 * needed < np.median(found.margins) < 1.12 * needed


@pytest.mark.slow
@each_law
@each_statistic
@pytest.mark.parametrize("size", [60, 500, 20_000])
def test_a_statistic_of_pairs_from_real_noise_covers_the_truth(law, statistic, size):
    hits, _ = coverage(*line(size), statistic, law, draws=100_000, real=True)
    print(hits.mean(), hits.size)
    assert hits.sum() >= stats.binom.ppf(ALARM, hits.size, 0.95)


@each_statistic
def test_without_noise_a_statistic_of_pairs_is_that_of_the_values(statistic):
    x, y = line(5000)
    found = pair_estimate(released(x, y, statistic, Gaussian, scale=Fraction(1, 100_000), draws=1), X, Y, statistic)
    assert found.values == pytest.approx([TRUTHS[statistic](x, y)], rel=1e-4)
    assert 0 < found.margins[0] < 1e-3 * abs(found.values[0])


def test_a_statistic_of_pairs_stays_in_its_range():
    x, y = line(25)
    for statistic, most in {
        PairStatistic.CORR: 1,
        PairStatistic.REGR_R2: 1,
        PairStatistic.COVAR_POP: 25_000,
        PairStatistic.COVAR_SAMP: 50_000,
    }.items():
        found = pair_estimate(released(x, y, statistic, Laplace), X, Y, statistic)
        known = ~np.isnan(found.values)
        assert known.any()
        assert (np.abs(found.values[known]) <= most).all()
        assert (found.margins[known] <= 2 * most).all()
        assert statistic is not PairStatistic.REGR_R2 or (found.values[known] >= 0).all()


def test_there_is_no_slope_without_a_variance_above_its_margin():
    x, y = np.full(5000, 40.0), line(5000)[1]
    for statistic in (PairStatistic.REGR_SLOPE, PairStatistic.REGR_INTERCEPT, PairStatistic.CORR):
        found = pair_estimate(released(x, y, statistic, Gaussian), X, Y, statistic)
        assert np.isnan(found.values).mean() > 0.9
        assert np.array_equal(np.isnan(found.values), np.isnan(found.margins))
