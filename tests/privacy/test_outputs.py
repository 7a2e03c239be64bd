"""The exact output distributions of the mechanisms have exactly the declared loss."""

import math
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.local.randomized_response import RandomizedResponse
from discreet.privacy import hockey_stick, max_divergence, output, renyi
from discreet.privacy.selection import Exponential, PermuteAndFlip
from discreet.privacy.tail_enclosures import tail_bounds

scales = st.fractions("1/3", 40, max_denominator=12)


def exact_delta(mechanism, shift, epsilon, power):
    """Add up max(0, p - exp(epsilon)·q) over all integers that matter, with 60 digits."""
    with mpmath.workdps(60):
        scale = mpmath.mpf(mechanism.scale.numerator) / mechanism.scale.denominator
        epsilon = mpmath.mpf(epsilon.numerator) / epsilon.denominator

        def weight(k):
            return mpmath.exp(-((abs(mpmath.mpf(k)) / scale) ** power) / power)

        reach = shift + (math.ceil(16 * mechanism.scale) if power == 2 else math.ceil(80 * mechanism.scale))
        rise = mpmath.exp(epsilon)
        norm = mpmath.fsum(weight(k) for k in range(-reach, reach + 1))
        excess = (weight(k) - rise * weight(k - shift) for k in range(-reach, reach + 1))
        return float(mpmath.fsum(max(0, e) for e in excess) / norm)


def test_a_count_with_laplace_noise_loses_exactly_epsilon():
    here, there = output(Laplace(10), 0), output(Laplace(10), 1)
    assert max_divergence(here, there) == max_divergence(there, here) == Fraction(1, 10)
    assert isinstance(max_divergence(here, there), Fraction)
    assert hockey_stick(here, there, 0.1) == 0
    assert hockey_stick(here, there, "0.099") > 0
    assert renyi(here, there, math.inf) == 0.1


@pytest.mark.long
@given(scales, st.integers(-50, 50), st.integers(-50, 50))
def test_laplace_divergence_is_the_shift_over_the_scale(scale, x, y):
    divergence = max_divergence(output(Laplace(scale), x), output(Laplace(scale), y))
    assert divergence == abs(x - y) / scale
    cut = range(-60, 61)
    here, there = ({k: privacy.pmf(Laplace(scale), k - v) for k in cut} for v in (x, y))
    assert max(abs(math.log(here[k] / there[k])) for k in cut if here[k] and there[k]) <= divergence + 1e-9


@pytest.mark.long
@given(st.integers(0, 6), st.integers(1, 6), scales)
def test_a_group_of_k_loses_k_epsilon_through_a_chain_of_neighbours(start, k, scale):
    laws = [output(Laplace(scale), start + i) for i in range(k + 1)]
    steps = [max_divergence(a, b) for a, b in pairwise(laws)]
    assert sum(steps) == max_divergence(laws[0], laws[-1]) == k * max_divergence(laws[0], laws[1])
    assert privacy.for_group(Laplace(scale).loss(Sensitivity(1, 1)), k).epsilon == sum(steps)
    gaussians = [output(Gaussian(scale), start), output(Gaussian(scale), start + k)]
    assert renyi(*gaussians, 2) == pytest.approx(
        2 * float(privacy.for_group(Gaussian(scale).loss(Sensitivity(1, 1)), k).rho), rel=1e-12
    )


def test_removal_loses_epsilon_and_replacement_two_of_a_histogram():
    histograms = list(product(range(4), repeat=3))
    removed, replaced = [], []
    for a, b in product(histograms, repeat=2):
        change = sorted(y - x for x, y in zip(a, b, strict=True))
        if change in ([-1, 0, 0], [0, 0, 1]):
            removed.append(max_divergence(output(Laplace(10), a), output(Laplace(10), b)))
        if change == [-1, 0, 1]:
            replaced.append(max_divergence(output(Laplace(10), a), output(Laplace(10), b)))
    assert set(removed) == {Fraction(1, 10)}
    assert set(replaced) == {Fraction(1, 5)}
    assert privacy.for_substitution(Loss("1/10")).epsilon == max(replaced)


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(st.fractions("1/2", 8, max_denominator=4), st.integers(1, 5), st.fractions(0, 2, max_denominator=10))
def test_laplace_delta_agrees_with_the_sum_over_all_integers(scale, shift, epsilon):
    found = hockey_stick(output(Laplace(scale), 0), output(Laplace(scale), shift), epsilon)
    assert found == pytest.approx(exact_delta(Laplace(scale), shift, epsilon, 1), rel=1e-12, abs=1e-30)
    assert hockey_stick(output(Laplace(scale), 0), output(Laplace(scale), -shift), epsilon) == found


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(st.fractions("1/2", 20, max_denominator=4), st.integers(1, 5), st.fractions(0, 3, max_denominator=10))
def test_gaussian_delta_agrees_with_the_sum_over_all_integers(scale, shift, epsilon):
    found = hockey_stick(output(Gaussian(scale), 0), output(Gaussian(scale), shift), epsilon)
    expected = exact_delta(Gaussian(scale), shift, epsilon, 2)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-45)


@pytest.mark.parametrize(("scale", "shift", "epsilon"), [(10, 1, "1/2"), (50, 3, "1/4"), (20, 20, 3)])
def test_gaussian_delta_lies_within_the_enclosed_tails(scale, shift, epsilon):
    mechanism, bits = Gaussian(scale), 200
    last = math.ceil(Fraction(shift, 2) - Fraction(epsilon) * scale**2 / shift) - 1
    (near_low, near_high), (far_low, far_high) = (tail_bounds(mechanism, k, bits) for k in (-last, shift - last))
    with mpmath.workdps(60):
        rise = mpmath.exp(mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator)
        low, high = ((a - rise * b) / 2**bits for a, b in ((near_low, far_high), (near_high, far_low)))
        found = hockey_stick(output(mechanism, 0), output(mechanism, shift), epsilon)
        assert low * (1 - 1e-12) <= found <= high * (1 + 1e-12)


def test_wide_gaussian_noise_nears_the_continuous_one():
    found = hockey_stick(output(Gaussian(300_000), 0), output(Gaussian(300_000), 100_000), "1/2")
    assert found == pytest.approx(privacy.gaussian_delta(3, 0.5), rel=1e-8)


def test_gaussian_noise_has_no_pure_epsilon():
    here, there = output(Gaussian(10), 0), output(Gaussian(10), 1)
    assert max_divergence(here, there) == math.inf
    assert max_divergence(here, here) == 0
    assert hockey_stick(here, here, 0) == 0
    assert hockey_stick(here, there, 1) > 0


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.fractions("1/3", 5, max_denominator=6), st.integers(1, 4), st.fractions("11/10", 12, max_denominator=10))
def test_gaussian_renyi_agrees_with_the_sum_and_never_exceeds_rho(scale, shift, order):
    found = renyi(output(Gaussian(scale), 0), output(Gaussian(scale), shift), order)
    with mpmath.workdps(40):
        variance = mpmath.mpf(scale.numerator) ** 2 / mpmath.mpf(scale.denominator) ** 2
        a = mpmath.mpf(order.numerator) / order.denominator
        reach = range(-90, 91)
        norm = mpmath.fsum(mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * variance)) for k in reach)
        total = mpmath.fsum(
            mpmath.exp(-(a * mpmath.mpf(k) ** 2 + (1 - a) * mpmath.mpf(k - shift) ** 2) / (2 * variance)) for k in reach
        )
        expected = float(mpmath.log(total / norm) / (a - 1))
    assert found == pytest.approx(expected, rel=1e-11)
    assert found <= order * Gaussian(scale).loss(Sensitivity(1, shift)).rho * (1 + Fraction(1, 10**12))


def test_renyi_of_laplace_is_below_that_of_any_epsilon():
    here, there = output(Laplace(2), 0), output(Laplace(2), 3)
    listed = {k: privacy.pmf(Laplace(2), k) for k in range(-80, 81)}
    moved = {k: privacy.pmf(Laplace(2), k - 3) for k in range(-80, 81)}
    for order in (1, 1.5, 2, 10, 100):
        assert renyi(here, there, order) == pytest.approx(renyi(listed, moved, order), rel=1e-9)
        assert renyi(here, there, order) <= min(1.5, 1.5**2 / 2 * order)


@settings(max_examples=60, deadline=None)
@given(st.fractions("1/2", 60, max_denominator=4), st.integers(1, 4), st.sampled_from(["1/100", "1e-6", "1e-12"]))
def test_the_conversion_of_rho_is_never_below_the_exact_hockey_stick(scale, shift, delta):
    loss = Gaussian(scale).loss(Sensitivity(1, shift))
    epsilon = privacy.to_epsilon(loss, delta)
    exact = hockey_stick(output(Gaussian(scale), 0), output(Gaussian(scale), shift), epsilon)
    assert exact <= float(Fraction(delta))


def test_the_conversion_of_rho_is_nearly_tight():
    epsilon = privacy.to_epsilon(Gaussian(10).loss(Sensitivity(1, 1)), "1e-6")
    assert hockey_stick(output(Gaussian(10), 0), output(Gaussian(10), 1), epsilon * Fraction(9, 10)) > 1e-6


def test_coin_flips_lose_ln_3():
    mechanism = RandomizedResponse("1/2")
    no, yes = output(mechanism, 0), output(mechanism, 1)
    assert max_divergence(no, yes) == max_divergence(yes, no) == math.log(3)
    assert max_divergence(no, yes) <= mechanism.loss().epsilon <= max_divergence(no, yes) + 1e-11
    assert yes.probability(1) == Fraction(3, 4)
    assert hockey_stick(no, yes, 0) == 0.5
    assert privacy.likelihood_ratio(yes, no, 1) == 3
    assert output(mechanism, True) == yes  # noqa: FBT003 - a bit


def test_bits_lose_as_often_as_they_differ():
    mechanism = RandomizedResponse("1/3")
    a, b = output(mechanism, (0, 1, 1)), output(mechanism, np.array([False, False, False]))
    everything = {bits: a.probability(bits) for bits in product((0, 1), repeat=3)}
    elsewhere = {bits: b.probability(bits) for bits in product((0, 1), repeat=3)}
    assert sum(everything.values()) == sum(elsewhere.values()) == 1
    assert max_divergence(a, b) == pytest.approx(2 * math.log(2))
    assert max_divergence(a, b) == pytest.approx(max_divergence(everything, elsewhere))
    for epsilon in (0, "1/2", 1):
        assert hockey_stick(a, b, epsilon) == pytest.approx(hockey_stick(everything, elsewhere, epsilon))
    assert renyi(a, b, 3) == pytest.approx(renyi(everything, elsewhere, 3))
    assert renyi(a, b, 3) <= 3 * 2 * mechanism.loss().rho


def test_laplace_noise_on_a_vector_agrees_with_the_product_of_its_coordinates():
    a, b = output(Laplace("1/2"), (0, 5, 7)), output(Laplace("1/2"), (2, 4, 7))
    reach = range(-15, 21)
    here = {k: a.probability((*k, 7)) for k in product(reach, reach)}
    there = {k: b.probability((*k, 7)) for k in product(reach, reach)}
    ratio = privacy.pmf(Laplace("1/2"), 0)  # the third coordinate does not move
    here, there = ({k: p / ratio for k, p in law.items()} for law in (here, there))
    assert max_divergence(a, b) == 6
    for epsilon in (0, "1/2", 2, 5):
        assert hockey_stick(a, b, epsilon) == pytest.approx(hockey_stick(here, there, epsilon), abs=1e-11)
    losses = privacy.privacy_loss(a, b)
    assert set(losses) == {2 * m for m in (-3, -1, 1, 3)}
    assert sum(losses.values()) == pytest.approx(1, abs=1e-14)


@pytest.mark.long
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-1, 1)), min_size=1, max_size=5), scales)
def test_selections_lose_at_most_their_epsilon(utilities, scale):
    before, after = [u for u, _ in utilities], [u + move for u, move in utilities]
    for mechanism in (Exponential(scale), PermuteAndFlip(scale)):
        lost = max_divergence(output(mechanism, before), output(mechanism, after))
        assert lost <= float(mechanism.loss(1).epsilon) + 1e-9


def test_an_exponential_selection_attains_its_epsilon_for_opposite_changes():
    here, there = output(Exponential(2), [1000, 0]), output(Exponential(2), [999, 1])
    assert max_divergence(there, here) == pytest.approx(float(Exponential(2).loss(1).epsilon), abs=1e-9)
    assert privacy.likelihood_ratio(there, here, 1) == pytest.approx(math.e)
    assert output(Exponential(2), [0.5, "1/2"]).probability(0) == 0.5
    assert output(Exponential(2), [0, 0]).probability(2) == 0


def test_gaussian_losses_add_over_coordinates_in_every_order():
    a, b = output(Gaussian(5), (1, 2, 3)), output(Gaussian(5), (1, 4, 2))
    assert renyi(a, b, 3) == pytest.approx(3 * 5 / 50)
    assert max_divergence(a, b) == math.inf
    with pytest.raises(ValueError, match="only one coordinate may differ"):
        hockey_stick(a, b, 1)
    one = output(Gaussian(5), (1, 2, 5))
    assert hockey_stick(a, one, "1/2") == hockey_stick(output(Gaussian(5), 0), output(Gaussian(5), 2), "1/2")


def test_the_gaussian_loss_distribution_is_a_gaussian_of_losses():
    losses = privacy.privacy_loss(output(Gaussian(10), 0), output(Gaussian(10), 2))
    mean = math.fsum(float(loss) * chance for loss, chance in losses.items())
    spread = math.fsum((float(loss) - mean) ** 2 * chance for loss, chance in losses.items())
    assert sum(losses.values()) == pytest.approx(1)
    assert mean == pytest.approx(4 / 200)
    assert spread == pytest.approx(4 / 100)


def test_likelihood_ratios_in_the_tails_are_exact():
    here, there = output(Laplace(10), 0), output(Laplace(10), 1)
    assert privacy.likelihood_ratio(here, there, 100_000) == pytest.approx(math.exp(-0.1))
    assert privacy.likelihood_ratio(here, there, -100_000) == pytest.approx(math.exp(0.1))
    assert privacy.likelihood_ratio(here, there, range(-5, 1)) == pytest.approx(math.exp(0.1))
    assert privacy.likelihood_ratio(output(Gaussian(10), 0), output(Gaussian(10), 1), -100) == pytest.approx(
        math.exp(201 / 200)
    )
    assert privacy.likelihood_ratio(output(Gaussian(1), 0), output(Gaussian(1), 1), -1000) == math.inf


def test_what_cannot_be_compared_is_refused():
    here = output(Laplace(10), 0)
    with pytest.raises(ValueError, match="same mechanism"):
        max_divergence(here, output(Laplace(11), 0))
    with pytest.raises(ValueError, match="coordinates"):
        max_divergence(here, output(Laplace(10), (0, 1)))
    with pytest.raises(TypeError, match="two pmfs or two outputs"):
        hockey_stick(here, {0: 1.0}, 1)
    with pytest.raises(TypeError, match="two pmfs or two outputs"):
        max_divergence({0: 1.0}, here)
    with pytest.raises(ValueError, match="coordinates"):
        here.probability((0, 1))
    with pytest.raises(ValueError, match="coordinates"):
        privacy.likelihood_ratio(here, here, (0, 1))
    with pytest.raises(ValueError, match="700 scales"):
        max_divergence(output(Exponential(1), [0, 800]), output(Exponential(1), [0, 801]))
    with pytest.raises(ValueError, match="positive probability"):
        privacy.likelihood_ratio(output(RandomizedResponse("1/2"), 0), output(RandomizedResponse("1/2"), 1), 2)
    with pytest.raises(ValueError, match="differ by more"):
        hockey_stick(here, output(Laplace(10), 2_000_000), 1)
    with pytest.raises(ValueError, match="too large"):
        privacy.privacy_loss(output(Gaussian(10**6), 0), output(Gaussian(10**6), 1))
    with pytest.raises(ValueError, match="at most"):
        hockey_stick(output(Gaussian(10**7), 0), output(Gaussian(10**7), 1), 1)


@pytest.mark.parametrize(
    ("mechanism", "value", "error"),
    [
        (Laplace(1), 0.5, TypeError),
        (Laplace(1), (), ValueError),
        (Laplace(1), True, TypeError),
        (RandomizedResponse("1/2"), 2, ValueError),
        (Exponential(1), [math.nan], ValueError),
        ("laplace", 1, TypeError),
    ],
)
def test_wrong_inputs_are_refused(mechanism, value, error):
    with pytest.raises(error):
        output(mechanism, value)
