"""Calibrated noise is private by its own exact divergence and hardly more than the least; a threshold is the lowest."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import log_ndtr

from discreet.kernel.loss import zcdp_rho
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.partition_selection import Threshold
from discreet.privacy import calibration
from discreet.privacy.bisection import lowest_float
from discreet.privacy.calibration import gaussian_for, laplace_for, sqrt_up, threshold_for

COUNT = Sensitivity(groups=1, size=1)


def exact_delta(sigma, epsilon):
    """Return the hockey-stick divergence of a count with and without one unit, summed over all outcomes."""
    with mpmath.workdps(50):
        s, e = mpmath.mpf(sigma.numerator) / sigma.denominator, mpmath.mpf(epsilon.numerator) / epsilon.denominator
        reach = int(30 * s) + 30
        weights = {k: mpmath.exp(-((k / s) ** 2) / 2) for k in range(-reach - 1, reach + 1)}
        everything = mpmath.fsum(weights.values())
        factor = mpmath.exp(e)
        found = mpmath.fsum(max(0, weights[k] - factor * weights[k - 1]) for k in range(-reach, reach + 1))
        return found / everything


def vector_delta(sigma, epsilon, change):
    """Return the same for a vector of totals that moves by `change`, from the law of the privacy loss.

    The loss at noise z is the sum of (2·c·z + c²)/(2·sigma²), so the law of the sum of c·z is all that is needed.
    """
    reach = int(10 * sigma) + 10
    z = np.arange(-reach, reach + 1)
    pmf = np.exp(-((z / sigma) ** 2) / 2)
    pmf /= pmf.sum()
    total, offset, unit = np.ones(1), 0, math.gcd(*change)
    for c in (c // unit for c in change):
        spread = np.zeros(2 * reach * c + 1)
        spread[::c] = pmf
        total, offset = np.convolve(total, spread), offset + reach * c
    sums = unit * (np.arange(len(total)) - offset)
    losses = (2 * sums + sum(c * c for c in change)) / (2 * sigma**2)
    return float(total @ np.maximum(0, -np.expm1(np.minimum(epsilon - losses, 0))))


def analytic(epsilon, delta, l2=1.0):
    """Return the least sigma of continuous noise (Balle and Wang 2018)."""

    def excess(log_sigma):
        r = math.exp(log_sigma)
        first = log_ndtr(0.5 / r - epsilon * r)
        second = epsilon + log_ndtr(-0.5 / r - epsilon * r)
        return first + math.log(-math.expm1(min(second - first, -1e-300))) - math.log(delta)

    return l2 * math.exp(optimize.brentq(excess, math.log(1e-3), math.log(1e9), xtol=1e-13, rtol=1e-14))


def classic(epsilon, delta, l2=1.0):
    return l2 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


GRID = list(itertools.product(("1/100", "1/10", "1/2", "1", "3", "10"), ("1e-2", "1e-6", "1e-9", "1e-15")))


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_calibrated_gaussian_is_private_and_near_the_analytic_one(epsilon, delta):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    sigma = gaussian_for(COUNT, epsilon, delta).scale
    best = analytic(float(epsilon), float(delta))
    ratio = float(sigma) / best
    print(f"({float(epsilon):g}, {float(delta):g}): sigma {float(sigma):.6g}, analytic {best:.6g}, ratio {ratio:.6f}")
    if sigma < 200:
        assert exact_delta(sigma, epsilon) <= mpmath.mpf(delta.numerator) / delta.denominator
    assert sigma <= calibration._scale_for_rho(COUNT, zcdp_rho(epsilon, delta))
    if best >= 25:
        assert 0.999 < ratio < 1.001
    if epsilon <= 1:
        assert sigma < classic(float(epsilon), float(delta))


CHANGES = {
    Sensitivity(groups=2, size=1): [(1, 1), (1,)],
    Sensitivity(groups=1, size=3): [(3,), (2,), (1, 1)],
    Sensitivity(groups=3, size=2): [(2, 2, 2), (2, 1)],
    Sensitivity.of_norms(l1=4, l2_squared=6): [(2, 1, 1), (1, 1, 1, 1)],
    Sensitivity(groups=30, size=1): [(1,) * 30],
    Sensitivity(groups=2, size=40): [(40, 40)],
}


@pytest.mark.parametrize("sensitivity", CHANGES, ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 1e-3), (1, 1e-6), (4, 1e-9), (8, 1e-2)])
def test_calibrated_vectors_are_private_and_near_the_analytic_ones(sensitivity, epsilon, delta):
    sigma = float(gaussian_for(sensitivity, epsilon, delta).scale)
    for change in CHANGES[sensitivity]:
        assert sum(change) <= sensitivity.l1
        assert sum(c * c for c in change) <= sensitivity.l2_squared
        assert vector_delta(sigma, epsilon, change) <= delta * (1 + 1e-9)
    best = analytic(epsilon, delta, math.sqrt(sensitivity.l2_squared))
    print(f"{sensitivity} at {epsilon}, {delta}: ratio {sigma / best:.6f}")
    if best >= 25:
        assert sigma / best < 1.001
    assert sigma >= best * 0.97  # much less would be too good to be true


def test_bisection_ends_where_the_lowest_number_is_zero():
    assert lowest_float(lambda x: x >= 0, -10.0, 40.0, 1e-15) == 0


def test_both_ways_to_sum_agree():
    for sigma, epsilon in ((2.0, 1.0), (7.5, 0.3)):
        one = vector_delta(sigma, epsilon, (1,))
        assert one == pytest.approx(float(exact_delta(Fraction(sigma), Fraction(epsilon))), rel=1e-9)
        assert vector_delta(sigma, epsilon, (1, 1)) > one


@pytest.mark.parametrize("delta", [1e-2, 1e-3, 1e-6, 1e-9])
def test_the_classic_formula_is_not_private_at_epsilon_10_and_ours_is(delta):
    assert exact_delta(gaussian_for(COUNT, 10, delta).scale, Fraction(10)) <= delta
    wide = Sensitivity(groups=1, size=1000)  # on a fine grid the noise is all but continuous
    assert vector_delta(classic(10, delta, 1000), 10, (1000,)) > 1.2 * delta
    ours = float(gaussian_for(wide, 10, delta).scale)
    assert ours > classic(10, delta, 1000)
    assert vector_delta(ours, 10, (1000,)) <= delta


@pytest.mark.parametrize(("s", "first"), [(0.6, 1.0), (0.8, 3.0), (1.2, 0.5)])
def test_random_rounding_gives_the_discrete_distribution_up_to_the_stated_factor(s, first):
    """The lemma behind _smoothed, by numerical integration at every outcome near the middle."""
    sigma = math.hypot(s, first)
    h = 2 * math.exp(-2 * math.pi**2 * s * s) * 1.001
    z = np.arange(-80, 81)
    step = 1 / 128
    y = np.arange(-40, 40 + step, step)  # the trapezium's rule is exact to the last digit for such integrands
    kernel = np.exp(-(((z - y[:, None]) / s) ** 2) / 2)
    normaliser = kernel.sum(axis=1)
    relative = normaliser / (s * math.sqrt(2 * math.pi))
    assert np.abs(relative - 1).max() <= h + 1e-14
    assert np.abs(relative - 1).max() >= h / 1.01 - 1e-14  # h is not more than it needs to be
    density = np.exp(-((y / first) ** 2) / 2) / (first * math.sqrt(2 * math.pi))
    rounded = (density / normaliser) @ kernel * step
    discrete = np.exp(-((z / sigma) ** 2) / 2)
    discrete /= discrete.sum()
    middle = np.abs(z) <= 6 * sigma
    assert rounded.sum() == pytest.approx(1, rel=1e-12)
    assert np.abs(discrete[middle] / rounded[middle] - 1).max() <= h + 1e-11


def test_the_slack_of_the_lemma_is_what_its_factors_need():
    for h in (Fraction(1, 10**4), Fraction(1, 200), Fraction(1, 100)):
        assert 3 * h >= mpmath.log(
            (1 + mpmath.mpf(h.numerator) / h.denominator) / (1 - mpmath.mpf(h.numerator) / h.denominator)
        )
        for m in (1, 5, 50):
            if m * h < 1:
                assert (1 + h) ** m <= 1 / (1 - m * h)


@pytest.mark.parametrize("l1", [1, 7, 300])
def test_the_continuous_calibration_subtracts_the_slack_of_the_lemma(l1, monkeypatch):
    asked = []

    def recorded(sensitivity, epsilon, delta):
        asked.append((epsilon, delta))
        return Fraction(1)

    monkeypatch.setattr(calibration, "_continuous_sigma", recorded)
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    scales = calibration._scales_by_smoothing(Sensitivity(groups=l1, size=1), epsilon, delta)
    with mpmath.workdps(40):
        for sigma, (e, d) in zip(scales, asked, strict=True):
            s = mpmath.sqrt(mpmath.mpf(sigma.numerator) ** 2 / sigma.denominator**2 - 1)
            assert s >= mpmath.mpf("0.6") - mpmath.mpf(10) ** -9
            h = 2 * mpmath.nsum(lambda k, s=s: mpmath.exp(-2 * (mpmath.pi * s * k) ** 2), [1, 6])
            lost = mpmath.mpf((epsilon - e).numerator) / (epsilon - e).denominator
            kept = mpmath.mpf((d / delta).numerator) / (d / delta).denominator
            assert l1 * mpmath.log((1 + h) / (1 - h)) <= lost <= 0.03
            assert kept <= (1 + h) ** -l1


def test_floats_only_suggest_a_scale(monkeypatch):
    right = calibration._continuous_sigma(COUNT, Fraction(1), Fraction(1, 10**6))

    class Wrong:
        """A mathematics in which the tails are a hundred times too thin."""

        def __getattr__(self, name):
            return getattr(math, name)

        def erfc(self, x):
            return math.erfc(x) / 100

    monkeypatch.setattr(calibration, "math", Wrong())
    still = calibration._continuous_sigma(COUNT, Fraction(1), Fraction(1, 10**6))
    assert right <= still <= 2 * right


@pytest.mark.long
@pytest.mark.parametrize(("groups", "size"), [(1, 1), (5, 1), (3, 50)])
def test_each_calibration_route_alone_is_private(groups, size):
    epsilon, delta, sensitivity = Fraction(1), Fraction(1, 10**5), Sensitivity(groups, size)
    change = (size,) * groups
    scales = calibration._scales_by_smoothing(sensitivity, epsilon, delta)
    assert scales
    for sigma in scales:
        assert vector_delta(float(sigma), 1, change) <= 1e-5
    if sensitivity == COUNT:
        (summed,) = calibration._scale_by_summation(epsilon, delta, min(scales))
        assert summed < min(scales)
        assert exact_delta(summed, epsilon) <= 1e-5
        assert exact_delta(summed * Fraction(99_999, 100_000), epsilon) > 1e-5  # the least
        assert calibration._scale_by_summation(epsilon, delta, Fraction(61)) == []


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), ("1/10", 1e-9), (3, 1e-3)])
def test_the_scale_of_a_count_is_the_least(epsilon, delta):
    sigma = gaussian_for(COUNT, epsilon, delta).scale
    if sigma < 60:
        assert exact_delta(sigma * Fraction(99_998, 100_000), Fraction(epsilon)) > delta


def test_more_epsilon_or_delta_needs_less_noise():
    for row in (
        [gaussian_for(COUNT, e, "1e-6").scale for e in ("1/10", "1/2", 1, 2, 5)],
        [gaussian_for(COUNT, 1, d).scale for d in ("1e-12", "1e-9", "1e-6", "1e-3")],
    ):
        assert row == sorted(row, reverse=True)
        assert len(set(row)) == len(row)
    for rho in ("1/200", "1/3", 2):
        assert gaussian_for(COUNT, rho=rho).scale == calibration._scale_for_rho(COUNT, Fraction(rho))
    assert gaussian_for(COUNT, rho="1/200") == Gaussian(10)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "x"])
def test_bad_numbers_are_refused_by_name(bad):
    for name, chosen in (
        ("epsilon", {"epsilon": bad, "delta": "1e-6"}),
        ("delta", {"epsilon": 1, "delta": bad}),
        ("rho", {"rho": bad}),
    ):
        with pytest.raises((ValueError, TypeError), match=name):
            gaussian_for(COUNT, **chosen)


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"epsilon": 1},
        {"delta": 0.1},
        {"rho": 1, "epsilon": 1},
        {"rho": 1, "delta": 0.1},
        {"epsilon": 1, "delta": 1},
    ],
)
def test_an_incomplete_or_ambiguous_cost_is_refused(chosen):
    with pytest.raises(ValueError, match=r"rho|delta"):
        gaussian_for(COUNT, **chosen)


@pytest.mark.parametrize("epsilon", [500_000, 10**6, 10**8])
def test_an_enormous_epsilon_terminates(epsilon):
    assert 0 < gaussian_for(Sensitivity(groups=1, size=1), epsilon, "1e-6").scale < Fraction(1, 500)


@given(st.integers(1, 50), st.integers(1, 10**6), st.fractions(Fraction(1, 10**4), 10, max_denominator=10**6))
@settings(deadline=None)
def test_calibration_spends_what_was_requested(groups, size, price):
    sensitivity = Sensitivity(groups, size)
    if price:
        assert laplace_for(sensitivity, price).loss(sensitivity).epsilon == price
        assert laplace_for(sensitivity, price).scale == Fraction(groups * size) / price
        spent = gaussian_for(sensitivity, rho=price).loss(sensitivity).rho
        assert price * (1 - Fraction(1, 10**9)) <= spent <= price


def test_the_scale_of_a_count_is_one_over_epsilon():
    assert laplace_for(COUNT, 1).scale == 1
    assert laplace_for(COUNT, 0.1).scale == 10
    assert laplace_for(Sensitivity.of_norms(l1=7, l2_squared=20), "1/2").scale == 14


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "x", None])
def test_bad_costs_are_refused_by_name(bad):
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        laplace_for(COUNT, bad)


def test_a_value_that_is_not_a_sensitivity_is_refused_by_name():
    for call in (lambda: laplace_for(1, "1/10"), lambda: gaussian_for(1, rho=1)):
        with pytest.raises(TypeError, match="sensitivity must be of type Sensitivity"):
            call()


@pytest.mark.long
@settings(deadline=None, derandomize=True)
@given(st.fractions(min_value=Fraction(1, 10**40)), st.integers(1, 30))
def test_square_roots_are_rounded_up_to_a_few_digits(x, digits):
    root = sqrt_up(x, digits)
    assert root * root >= x
    numbers = math.isqrt(math.floor(x * 10**200))  # sqrt(x)·10^100, rounded down
    assert root * 10**100 <= (numbers + 1) * (1 + Fraction(100, 10**digits))
    # Few digits: the root is a whole number of a power of ten that is not far below it.
    mantissa = root / Fraction(10) ** (len(str(math.floor(root))) if root >= 1 else 0)
    assert (mantissa * 10 ** (digits + 45)).denominator == 1


def test_exact_square_roots_stay_exact():
    for n in (1, 2, 3, 10, 12_345, 10**9):
        assert sqrt_up(Fraction(n * n)) == n
        assert sqrt_up(Fraction(1, n * n)) >= Fraction(1, n)
    assert sqrt_up(Fraction(2)) == Fraction("1.414213562374")


NOISES = [Laplace(1), Laplace("5/2"), Gaussian(1), Gaussian("7/2")]


CASES = [(1, 1, 1), (2, 1, 2), (3, 4, 3), (2, 4, 9), (1, 6, 30), (5, 20, 40)]


@pytest.mark.long
@pytest.mark.parametrize("noise", [*NOISES, Laplace(40), Gaussian(80)], ids=str)
@pytest.mark.parametrize(("groups", "size", "most"), [*CASES, (5, 64, 6000)])
def test_threshold_for_finds_the_lowest_threshold(noise, groups, size, most):
    if most > 4096 and noise not in (Laplace("5/2"), Laplace(40)):
        most = 200
    for delta in ("1e-9", "1/50", "0.9"):
        found = threshold_for(noise, groups=groups, delta=delta, size=size, most=most)
        assert (found.noise, found.groups, found.size, found.most) == (noise, groups, size, most)
        assert found.loss().delta <= Fraction(delta)
        if found.cut > 1:
            assert Threshold(noise, found.cut - 1, groups, size, most).loss().delta > Fraction(delta)
        if most > 4096:
            break


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_delta_that_a_threshold_has_exactly_is_enough_for_it(noise):
    exact = Threshold(noise, cut=12, groups=2, most=3)
    assert threshold_for(noise, groups=2, delta=exact.loss().delta, most=3) == exact


def test_without_a_number_a_unit_is_in_as_many_groups_as_it_counts_in():
    assert threshold_for(Laplace(1), groups=3, delta="1e-9").most == 3


def test_bad_thresholds_are_refused_by_name():
    for bad in (0, 1, -1, math.nan, "x", True):
        with pytest.raises((ValueError, TypeError), match="delta"):
            threshold_for(Laplace(1), groups=1, delta=bad)
    for bad in (0, 1.5, "2"):
        with pytest.raises((ValueError, TypeError), match="groups"):
            threshold_for(Laplace(1), groups=bad, delta="1e-9")
