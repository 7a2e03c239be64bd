"""Subset selection: uniform subsets, of the best size, of exactly the distribution and the errors that are claimed."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.local.frequency_oracles.subset_selection import SubsetScheme, SubsetSelection
from discreet.local.oracle import odds_for
from tests.local.measured import BY_CHANCE, fit, mean_by_distribution, surveyed, theory, uneven

EPSILONS = ["1/10", "1", "3", "8"]
SIZES = [2, 3, 5, 9]


def exact_variance(scheme):
    """Return the summed variance of one report's estimates, of people spread evenly over the values."""
    distribution = {report: scheme.probability(report, 0) for report in scheme.outcomes()}
    holds = [sum(p for report, p in distribution.items() if report[i // 8] >> i % 8 & 1) for i in range(scheme.size)]
    return sum(p * (1 - p) for p in holds) / (holds[0] - holds[1]) ** 2


@pytest.mark.long(only=["1/10-9"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_distribution_adds_up_to_one_and_its_worst_ratio_is_exactly_the_odds(size, epsilon):
    oracle = SubsetSelection(size, epsilon)
    distributions = [oracle.distribution(value) for value in range(size)]
    assert all(sum(distribution.values()) == 1 for distribution in distributions)
    assert len(distributions[0]) == math.comb(size, oracle.scheme.subset_size)
    assert max(p[r] / q[r] for p in distributions for q in distributions for r in p) == odds_for(Fraction(epsilon))
    claimed = float(oracle.loss().epsilon)
    assert max(dc.privacy.max_divergence(p, q) for p in distributions for q in distributions) == pytest.approx(
        claimed, abs=1e-12
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_estimates_are_right_on_average_under_the_exact_distribution(size, epsilon):
    oracle = SubsetSelection(size, epsilon)
    for value in range(size):
        assert mean_by_distribution(oracle, value) == pytest.approx(np.eye(size)[value], abs=1e-8)


@pytest.mark.parametrize("epsilon", ["1/100", "1/2", "1", "2", "4"])
@pytest.mark.parametrize("size", [2, 3, 4, 7, 12])
def test_no_other_subset_size_has_a_smaller_error(size, epsilon):
    odds = odds_for(Fraction(epsilon))
    variances = {chosen: exact_variance(SubsetScheme(size, odds, chosen)) for chosen in range(1, size)}
    assert variances[SubsetSelection(size, epsilon).scheme.subset_size] == min(variances.values())


def test_at_a_large_epsilon_it_is_direct_encoding():
    few, direct = SubsetSelection(9, 4), dc.local.GRR(9, 4)
    assert few.scheme.subset_size == 1
    for place in (0, 5):
        assert list(few.distribution(5).values())[place] == direct.pmf(place, 5)


@pytest.mark.long(only=["10"])
@pytest.mark.parametrize("size", [3, 6, 10])
def test_reports_are_drawn_from_the_distribution_and_another_would_be_noticed(size):
    oracle, other = SubsetSelection(size, "0.5"), SubsetSelection(size, "0.6")
    assert oracle.scheme.subset_size == other.scheme.subset_size > 0
    for value in (0, size // 2, size - 1):
        assert fit(oracle, value, 200_000, oracle.distribution(value)) > BY_CHANCE
    assert fit(oracle, 1, 800_000, other.distribution(1)) < BY_CHANCE
    assert fit(oracle, 1, 200_000, oracle.distribution(0)) < BY_CHANCE


@pytest.mark.long(only=["1/2", "1"])
@pytest.mark.parametrize("epsilon", ["1/2", "1", "4"])
def test_errors_are_those_of_theory_and_margins_hold(epsilon):
    oracle, values = SubsetSelection(128, epsilon), uneven(128, 2000)
    errors, margins = surveyed(oracle, values, 150)
    expected = theory((oracle.scheme.own, oracle.scheme.other), values, 128)
    # 19,200 squares, nearly independent: the quotient has a standard deviation of about 0.6 %.
    assert np.sqrt((errors**2).mean() / (expected**2).mean()) == pytest.approx(1, rel=0.05)
    assert 0.94 < (abs(errors) <= margins).mean() < 0.99


def test_margins_of_many_people_are_not_wider_than_theory_says():
    oracle, values = SubsetSelection(128, 1), uneven(128, 100_000)
    margins = oracle.estimate(oracle.perturb(values)).margins
    expected = 1.959964 * theory((oracle.scheme.own, oracle.scheme.other), values, 128)
    assert margins == pytest.approx(expected, rel=0.02)


def test_its_error_is_at_most_that_of_any_other_protocol():
    values = uneven(128, 1000)
    for epsilon in ("1/4", "1", "3", "6"):
        subset, unary = SubsetSelection(128, epsilon).scheme, dc.local.OUE(128, epsilon).scheme
        direct = dc.local.GRR(128, epsilon)
        best = (theory((subset.own, subset.other), values, 128) ** 2).mean()
        assert best < (theory((unary.own, unary.other), values, 128) ** 2).mean()
        assert best <= (theory((direct.pmf(0, 0), direct.pmf(0, 1)), values, 128) ** 2).mean() * (1 + 1e-12)


@pytest.mark.parametrize("size", [2, 9, 128, 1000])
def test_every_subset_has_the_size_and_is_read_as_it_was_sent(size):
    oracle = SubsetSelection(size, 1)
    reports = oracle.perturb(np.arange(3000) % size)
    held = np.unpackbits(np.frombuffer(np.asarray(reports).tobytes(), np.uint8).reshape(3000, -1), axis=1)
    assert set(held.sum(axis=1)) == {oracle.scheme.subset_size}
    again = oracle.read(list(reports.messages()))
    assert np.array_equal(oracle.estimate(again).estimates, oracle.estimate(reports).estimates)
    assert np.array_equal(oracle.counts(oracle.read(bytes(reports[::2]))), oracle.counts(reports[::2]))


def test_impossible_messages_are_refused():
    oracle, tally = SubsetSelection(9, 1), dc.local.Aggregator(SubsetSelection(9, 1))
    assert oracle.scheme.subset_size == 2
    head, good = bytes(oracle.perturb([])), bytes(oracle.perturb([3]))
    for bad, why in [
        (good[:-1], "wrong length"),
        (b"\x02" + good[1:], "format version 2"),
        (bytes(SubsetSelection(9, 2).perturb([3])), "configuration"),
        (head + b"\x01\x00", "every subset must have exactly 2 of the 9 values"),
        (head + b"\x07\x00", "every subset must have exactly 2 of the 9 values"),
        (head + b"\x01\x02", "padding"),
    ]:
        with pytest.raises(ValueError, match=why):
            tally.add([good, bad])
    assert tally.people == 0
    tally.add(head + b"\x03\x00")
    assert tally.counts.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0]


def test_merged_aggregators_equal_a_single_one():
    oracle = SubsetSelection(20, 1)
    reports = oracle.perturb(np.arange(600) % 20)
    first, second = dc.local.Aggregator(oracle), dc.local.Aggregator(oracle)
    first.add(reports[:250])
    second.add(bytes(reports[250:]))
    first.merge(second)
    assert np.array_equal(first.estimate().estimates, oracle.estimate(reports).estimates)


@pytest.mark.parametrize("bad", [1, 0, 2.5, "ab", None, ["a"], ["a", "a"], (1 << 16) + 1, True])
def test_bad_domains_are_refused_by_name(bad):
    with pytest.raises((TypeError, ValueError), match="domain"):
        SubsetSelection(bad, 1)


@pytest.mark.parametrize("bad", [0, -1, math.inf, math.nan, "x", None, 65, True])
def test_bad_epsilons_are_refused_by_name(bad):
    with pytest.raises((TypeError, ValueError), match="epsilon"):
        SubsetSelection(3, bad)


@pytest.mark.parametrize("bad", [[3], [-1], [0.5], ["0"], [[0]], [None]])
def test_bad_values_are_refused_by_name(bad):
    with pytest.raises((TypeError, ValueError), match="values"):
        SubsetSelection(3, 1).perturb(bad)


def test_a_report_is_bytes_and_of_probability_zero_if_nobody_sends_it():
    oracle = SubsetSelection(9, 1)
    with pytest.raises(TypeError, match="report must be bytes"):
        oracle.pmf(3, 0)
    with pytest.raises(ValueError, match="report must have 2 bytes"):
        oracle.pmf(b"a", 0)
    assert oracle.pmf(b"\x01\x00", 0) == oracle.pmf(b"\x01\x02", 0) == 0
    assert oracle.pmf(b"\x03\x00", 0) == oracle.pmf(np.void(b"\x03\x00"), 0) > oracle.pmf(b"\x03\x00", 5) > 0


def test_a_distribution_of_too_many_subsets_is_refused():
    with pytest.raises(ValueError, match="too many subsets of 34 of 128"):
        SubsetSelection(128, 1).distribution(0)
