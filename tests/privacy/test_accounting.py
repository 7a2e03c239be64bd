"""Events are converted, and numerical accounting is a valid and tight upper bound."""

import math
import subprocess
import sys
from fractions import Fraction

import dp_accounting
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st

from discreet import privacy
from discreet.kernel.event import Event, canonical_json
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.partition_selection import Threshold
from discreet.local.randomized_response import RandomizedResponse
from discreet.privacy import composed_dp_event, declared_count, declared_epsilon, to_dp_event
from discreet.privacy.accounted_releases import account_release
from discreet.privacy.selection import Exponential, PermuteAndFlip

ONE = Sensitivity(groups=1, size=1)


def event(mechanism, sensitivity="{}", loss=None):
    return Event(mechanism=str(mechanism), sensitivity=str(sensitivity), question="q", loss=loss)


def test_336_counts_fixed_beforehand_fit_where_the_ledger_admits_299():
    count = Laplace(100)
    assert declared_count(count, ONE, 1, 1e-9) == 336
    assert declared_epsilon([(count, ONE)] * 336, 1e-9) <= 1 < declared_epsilon([(count, ONE)] * 338, 1e-9)
    each = count.loss(ONE)
    fits = [n for n in range(250, 350) if Budget(1, "1e-9").covers(Loss(n * each.epsilon, n * each.rho))]
    assert max(fits) == 299


@pytest.mark.parametrize(("count", "private"), [(336, True), (337, False)])
def test_the_exact_distribution_of_336_counts_agrees(count, private):
    laws = privacy.output(Laplace(100), [0] * count), privacy.output(Laplace(100), [1] * count)
    assert (privacy.hockey_stick(*laws, 1) <= 1e-9) is private


@pytest.mark.long(only=["mechanism2-100-30"])
@pytest.mark.parametrize(
    ("mechanism", "moved", "least"),
    [
        (Laplace(10**6), 10**5, 3),  # an l1 too large for its own law
        (Laplace(10**9), 1, 10**16),  # losses too fine for the grid, and more of them than can be composed
        (Gaussian(5000), 100, 30),
    ],
)
def test_unusual_sizes_are_counted_in_reasonable_time(mechanism, moved, least):
    assert declared_count(mechanism, moved, 1, 1e-9) >= least


def test_without_a_delta_epsilons_add():
    assert declared_count(Laplace(100), 1, 1, 0) == 100
    assert declared_epsilon([(Laplace(100), 1)] * 100, 0) == 1
    assert declared_count(Laplace(1), 1, "1/2", 0) == 0


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_declared_epsilon_of_counts_is_that_of_the_exact_distribution(count):
    found = declared_epsilon([(Laplace(2), 1)] * count, 1e-3)
    laws = privacy.output(Laplace(2), [0] * count), privacy.output(Laplace(2), [1] * count)
    assert privacy.hockey_stick(*laws, found) <= 1e-3
    assert privacy.hockey_stick(*laws, found - 1e-3) > 1e-3


@pytest.mark.long
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.fractions("1/2", 6, max_denominator=3),
    st.fractions(0, 3, max_denominator=9),
)
def test_moving_one_coordinate_is_worse_than_moving_several(moves, scale, epsilon):
    """Why the l1 norm decides: in log-concave noise the tests of a chain of moves add up to one test."""
    zero = [0] * len(moves)
    several = privacy.output(Laplace(scale), zero), privacy.output(Laplace(scale), moves)
    one = privacy.output(Laplace(scale), 0), privacy.output(Laplace(scale), sum(moves))
    assert privacy.hockey_stick(*several, epsilon) <= privacy.hockey_stick(*one, epsilon) + 1e-14


@pytest.mark.parametrize("scale", ["1/2", 1, 3, 20])
@pytest.mark.parametrize("size", [1, 3])
def test_the_declared_epsilon_of_one_gaussian_is_that_of_the_discrete_distribution(scale, size):
    found = declared_epsilon([(Gaussian(scale), size)], 1e-6)
    laws = privacy.output(Gaussian(scale), 0), privacy.output(Gaussian(scale), size)
    assert privacy.hockey_stick(*laws, found) <= 1e-6
    assert privacy.hockey_stick(*laws, max(0, found - 2e-4)) > 1e-6
    assert found <= privacy.to_epsilon(Gaussian(scale).loss(Sensitivity(1, size)), "1e-6")


def test_narrower_continuous_noise_bounds_the_discrete_distribution():
    """A scale is called wide from 1000 on; here the same bound at small scales, where it has to hold too."""
    for scale, shift in ((2, 1), (5, 1), (5, 3), (20, 1), (64, 9)):
        multiplier = to_dp_event(Gaussian(scale), shift).noise_multiplier
        for epsilon in (0, Fraction(1, 10), Fraction(1, 2), 1, 2):
            laws = privacy.output(Gaussian(scale), 0), privacy.output(Gaussian(scale), shift)
            exact = privacy.hockey_stick(*laws, epsilon)
            assert exact <= privacy.gaussian_delta(multiplier, epsilon) * (1 + 1e-9)


def test_continuous_noise_of_the_same_scale_would_not_bound_it():
    laws = privacy.output(Gaussian(20), 0), privacy.output(Gaussian(20), 1)
    assert privacy.hockey_stick(*laws, "0.15") > 1.001 * privacy.gaussian_delta(20, "0.15")


def test_gaussian_vectors_and_wide_noise_are_tighter_than_rho():
    for mechanism, moved in ((Gaussian(30), Sensitivity(4, 1)), (Gaussian(5000), Sensitivity(1, 200))):
        added = privacy.to_epsilon(sum(mechanism.loss(moved) for _ in range(20)), "1e-6")
        found = declared_epsilon([(mechanism, moved)] * 20, 1e-6)
        continuous = float(mechanism.scale) / math.sqrt(20 * moved.l2_squared)
        assert privacy.gaussian_delta(continuous, found) <= 1e-6
        assert 0.9 * added < found < added


def test_narrow_vectors_are_left_to_rho():
    moved = Sensitivity(4, 1)
    assert declared_epsilon([(Gaussian(1), moved)], 1e-6) == pytest.approx(
        float(privacy.to_epsilon(Gaussian(1).loss(moved), "1e-6"))
    )


def test_mixed_releases_cost_no_more_than_their_added_loss():
    releases = [
        (Laplace(20), ONE),
        (Gaussian(20), ONE),
        (Gaussian(1), Sensitivity(2, 1)),
        (RandomizedResponse("1/10"), None),
        *[(Exponential(40), 1)] * 5,
        (Threshold(Laplace(20), cut=400, groups=1), None),
    ]
    total = sum((account_release(release).loss for release in releases[1:]), Laplace(20).loss(ONE))
    found = declared_epsilon(releases, 1e-6)
    assert found <= float(privacy.to_epsilon(total, "1e-6")) * (1 + 1e-12)
    without = [release for release in releases if release[0] != Gaussian(1)]
    assert declared_epsilon(without, 1e-6) < found


def test_exponential_selections_use_the_better_of_epsilon_and_rho():
    few, many = [(Exponential(2), 1)], [(Exponential(40), 1)] * 200
    assert declared_epsilon(few, 1e-9) <= 1
    added = privacy.to_epsilon(Loss(None, 200 * Exponential(40).loss(1).rho), "1e-9")
    assert declared_epsilon(many, 1e-9) == pytest.approx(float(added))
    by_epsilon_alone = [(PermuteAndFlip(40), 1)] * 200
    assert declared_epsilon(by_epsilon_alone, 1e-9) > 1.5 * added


def test_a_releases_own_delta_is_subtracted():
    threshold = Threshold(Laplace(1), cut=20, groups=1)
    own = threshold.loss().delta
    assert declared_epsilon([(threshold, None)], own) == 1
    with pytest.raises(ValueError, match="delta must be at least"):
        declared_epsilon([(threshold, None)], own / 2)
    assert declared_count(threshold, None, 10**6, 3 * own) == 3


def test_what_cannot_be_declared_is_refused():
    with pytest.raises(ValueError, match="above the sum"):
        declared_epsilon([(Gaussian(10), ONE)], 0)
    with pytest.raises(ValueError, match="delta"):
        declared_epsilon([(Laplace(10), ONE)], -1)
    with pytest.raises(ValueError, match="epsilon"):
        declared_count(Laplace(10), ONE, 0, 1e-9)
    with pytest.raises(ValueError, match="sensitivity is missing"):
        to_dp_event(Laplace(10))
    with pytest.raises(TypeError, match="mechanism"):
        to_dp_event("laplace", ONE)
    with pytest.raises(ValueError, match="its mechanism is unknown"):
        to_dp_event(event(canonical_json({"name": "novel"})))


def test_deltas_too_small_for_floats_are_left_to_exact_fractions():
    assert declared_epsilon([(Laplace(100), 1)] * 50, "1e-15") == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("mechanism", "sensitivity", "expected"),
    [
        (Laplace(10), Sensitivity(2, 3), dp_event.DiscreteLaplaceDpEvent(0.1, 6)),
        (Gaussian(10), Sensitivity(2, 3), dp_event.GaussianDpEvent(math.sqrt(98 / 18))),
        (Gaussian(1), ONE, dp_event.ZCDpEvent(0.5)),
        (Exponential(5), 1, dp_event.DiscreteLaplaceDpEvent(0.4, 1)),
        (PermuteAndFlip(5), "1/2", dp_event.DiscreteLaplaceDpEvent(0.2, 1)),
        (RandomizedResponse("1/2"), None, dp_event.DiscreteLaplaceDpEvent(pytest.approx(math.log(3)), 1)),
    ],
)
def test_every_mechanism_converts_and_so_does_its_event(mechanism, sensitivity, expected):
    assert to_dp_event(mechanism, sensitivity) == expected
    moved = sensitivity
    if not isinstance(sensitivity, Sensitivity):
        moved = "{}" if sensitivity is None else canonical_json({"l1": str(sensitivity), "l2_squared": "1"})
    assert to_dp_event(event(mechanism, moved)) == expected
    assert isinstance(to_dp_event(mechanism, sensitivity), dp_accounting.DpEvent)


def test_a_threshold_converts_to_its_noise_and_a_delta():
    threshold = Threshold(Laplace(1), cut=20, groups=2, most=3)
    expected = dp_event.ComposedDpEvent(
        [
            dp_event.DiscreteLaplaceDpEvent(1.0, 2),
            dp_event.PoissonSampledDpEvent(float(threshold.loss().delta), dp_event.NonPrivateDpEvent()),
        ]
    )
    assert to_dp_event(threshold) == expected
    assert to_dp_event(event(threshold, loss=threshold.loss())) == expected


def test_an_event_that_cost_more_than_its_mechanism_is_converted_by_its_loss():
    assert to_dp_event(event(Laplace(10), ONE, Loss("1/10"))) == dp_event.DiscreteLaplaceDpEvent(0.1, 1)
    assert to_dp_event(event(Laplace(10), Sensitivity(1, 3), Loss("1/2"))) == (dp_event.DiscreteLaplaceDpEvent(0.5, 1))
    assert to_dp_event(event(Gaussian(10), ONE, Loss(None, "1/50"))) == dp_event.ZCDpEvent(0.02)
    assert to_dp_event(event(Gaussian(10), ONE, Loss(None, "0.005000000001"))) == to_dp_event(Gaussian(10), 1)
    assert to_dp_event(event(Laplace(10), ONE, Loss("1/10", delta="1e-6"))).events[1] == (
        dp_event.PoissonSampledDpEvent(1e-6, dp_event.NonPrivateDpEvent())
    )


@pytest.mark.parametrize(
    "mechanism", [{"name": "novel"}, ["laplace"], {"name": "laplace"}, {"name": "laplace", "scale": "x"}, {}]
)
def test_an_unknown_event_is_converted_by_its_loss(mechanism):
    known = event(canonical_json(mechanism), ONE, Loss("1/4"))
    assert to_dp_event(known) == dp_event.DiscreteLaplaceDpEvent(0.25, 1)
    assert to_dp_event(event(canonical_json(mechanism), ONE, Loss(0))) == dp_event.NoOpDpEvent()


def test_repeats_are_counted_and_the_library_agrees():
    releases = [(Laplace(100), ONE)] * 300 + [(RandomizedResponse("1/100"), None)] * 36
    composed = composed_dp_event(releases)
    assert [part.count for part in composed.events] == [300, 36]
    accountant = PLDAccountant().compose(composed)
    assert accountant.get_epsilon(1e-9) == pytest.approx(declared_epsilon(releases, 1e-9), rel=0.02)
    assert composed_dp_event([event(Laplace(10), ONE)]).events == [dp_event.DiscreteLaplaceDpEvent(0.1, 1)]


def test_moving_discrete_laplace_noise_by_one_is_the_worst_case_of_its_epsilon():
    """Why it stands for every pure mechanism: its loss has only the two values ±epsilon."""
    laws = privacy.output(Laplace("1/2"), 0), privacy.output(Laplace("1/2"), 1)
    losses = privacy.privacy_loss(*laws)
    assert set(losses) == {2, -2}
    assert losses[2] == pytest.approx(math.exp(2) / (1 + math.exp(2)))


def test_the_library_is_imported_only_when_needed():
    code = "import sys, discreet.privacy; sys.exit('dp_accounting' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match=r"pip install 'discreet\[accounting\]'"):
        to_dp_event(Laplace(10), ONE)
    with pytest.raises(ImportError, match=r"pip install 'discreet\[accounting\]'"):
        declared_epsilon([(Laplace(10), ONE)], 1e-9)
