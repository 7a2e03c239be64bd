"""Noise has the probabilities that are shown, and stays within its margins as often as they say."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from discreet import privacy
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity

COUNT = Sensitivity(groups=1, size=1)
ALARM = 1e-10


BOTH = [Laplace, Gaussian]


def real(x):
    return mpmath.mpf(x.numerator) / x.denominator


def inside(noise, m):
    """Return P[|noise| <= m] by an independent sum."""
    if m < 0:
        return mpmath.mpf(0)
    s = real(noise.scale)
    if isinstance(noise, Laplace):
        q = mpmath.exp(-1 / s)
        return 1 - 2 * q ** (m + 1) / (1 + q)
    reach = max(m, int(25 * s)) + 25
    weights = [mpmath.exp(-((k / s) ** 2) / 2) for k in range(reach)]
    return (2 * mpmath.fsum(weights[: m + 1]) - 1) / (2 * mpmath.fsum(weights) - 1)


@pytest.mark.parametrize(
    "noise",
    [Laplace("1/3"), Laplace(1), Laplace(40), Gaussian("1/3"), Gaussian("19/10"), Gaussian(2), Gaussian(30)],
    ids=str,
)
def test_probabilities_are_those_of_the_distribution(noise):
    s = real(noise.scale)
    power = (lambda k: abs(k) / s) if isinstance(noise, Laplace) else (lambda k: (k / s) ** 2 / 2)
    everything = mpmath.fsum(mpmath.exp(-power(k)) for k in range(-3000, 3001))
    for k in (0, 1, -1, 2, -5, 17, -100):
        exact = mpmath.exp(-power(k)) / everything
        assert privacy.pmf(noise, k) == pytest.approx(float(exact), rel=1e-11, abs=1e-300)
    assert privacy.pmf(noise, 3) == privacy.pmf(noise, -3)


CONFIDENCES = ["1/2", "0.95", "0.999999"]


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("count", [1, 3, 10_000])
@pytest.mark.parametrize(
    "noise",
    [
        Laplace("1/3"),
        Laplace(1),
        Laplace("5/2"),
        Laplace("1000.7"),
        Gaussian("1/4"),
        Gaussian(1),
        Gaussian("17/3"),
        Gaussian(63),
    ],
    ids=str,
)
def test_margins_are_the_least_that_hold_for_all_at_once(noise, confidence, count):
    m = privacy.margin(noise, confidence, count)
    level = real(Fraction(confidence))
    with mpmath.workdps(60):
        assert inside(noise, m) ** count >= level
        assert inside(noise, m - 1) ** count < level


@pytest.mark.long(but=["100-10000", "64-1"])
@pytest.mark.parametrize(("sigma", "count"), [(64, 1), (100, 10_000), (300, 1), (300, 50)])
def test_margins_of_wide_gaussian_noise_hold_and_are_within_one_of_the_least(sigma, count):
    noise = Gaussian(sigma)
    m = privacy.margin(noise, "0.95", count)
    with mpmath.workdps(40):
        assert inside(noise, m) ** count >= real(Fraction("0.95"))
        assert inside(noise, m - 2) ** count < real(Fraction("0.95"))
    print(f"sigma {sigma}, {count} at once: {m}, of which the last is needed: {inside(noise, m - 1) ** count < 0.95}")


def test_margins_of_very_wide_noise_are_those_of_the_normal_distribution():
    for sigma in (10**6, 10 << 20):
        assert privacy.margin(Gaussian(sigma), "0.95") == pytest.approx(stats.norm.isf(0.025) * sigma, abs=2)
    assert privacy.margin(Laplace(10**9), "0.95") == pytest.approx(math.log(20) * 10**9, abs=2)


@pytest.mark.parametrize("scale", ["1/2", 1, 3, 50])
@pytest.mark.parametrize("count", [1, 2, 100, 10_000, 10**6])
def test_margins_are_never_looser_than_the_union_bound(scale, count):
    for kind in BOTH:
        noise = kind(scale)
        m = privacy.margin(noise, "0.95", count)
        if m:
            # at m - 1 even the union bound would not do
            assert count * (1 - inside(noise, m - 1)) > mpmath.mpf("0.05") * (1 - mpmath.mpf(10) ** -12)


def test_ten_thousand_names_at_epsilon_one_are_within_twelve():
    noise = privacy.laplace_for(COUNT, 1)
    assert privacy.margin(noise, "0.95", count=10_000) == 12
    exact = inside(noise, 12) ** 10_000
    print(f"all of 10,000 names within 12: {float(exact):.5f}; within 11: {float(inside(noise, 11) ** 10_000):.5f}")
    assert inside(noise, 11) ** 10_000 < 0.95 <= exact
    assert math.log(10_000 / 0.05) == pytest.approx(12.2, abs=0.01)
    times = 1000
    held = sum(np.abs(noise.perturb(np.zeros(10_000, np.int64))).max() <= 12 for _ in range(times))
    assert stats.binomtest(held, times, float(exact)).pvalue > ALARM
    assert held > 0.9 * times


@pytest.mark.parametrize("noise", [Laplace(3), Laplace("1/2"), Gaussian(5), Gaussian(100), Laplace(5000)], ids=str)
def test_real_noise_is_within_its_margin_as_often_as_in_theory(noise):
    n, m = 100_000, privacy.margin(noise, "0.95")
    held = int((np.abs(noise.perturb(np.zeros(n, np.int64))) <= m).sum())
    exact = float(inside(noise, m))
    assert exact >= 0.95
    assert stats.binomtest(held, n, exact).pvalue > ALARM


def test_extreme_confidence_and_counts_have_margins_too():
    nines = "0." + "9" * 60
    with mpmath.workdps(100):
        for noise in (Laplace(1), Gaussian(1)):
            for confidence, count in ((nines, 1), ("0.95", 10**60)):
                m = privacy.margin(noise, confidence, count)
                level = mpmath.log(real(Fraction(confidence))) / count
                assert mpmath.log(inside(noise, m - 1)) < level <= mpmath.log(inside(noise, m))


@pytest.mark.parametrize("bad", [0, 1, -1, 2, math.nan, math.inf, True, "x", None])
def test_bad_margins_are_refused_by_name(bad):
    with pytest.raises((ValueError, TypeError), match="confidence"):
        privacy.margin(Laplace(1), bad)
    if bad not in (1, 2) or bad is True:
        with pytest.raises((ValueError, TypeError), match="count"):
            privacy.margin(Gaussian(1), "0.95", bad)
