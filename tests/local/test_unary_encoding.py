"""Unary encodings: bits in bytes, of exactly the distribution and the errors that are claimed."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.local.frequency_oracles import packed_bits
from discreet.local.frequency_oracles.unary_encoding import OUE, SUE, root_down
from discreet.local.oracle import odds_for
from tests.local.measured import BY_CHANCE, fit, mean_by_distribution, surveyed, theory, uneven

EPSILONS = ["1/10", "1", "3", "8"]
both = pytest.mark.parametrize("protocol", [OUE, SUE])


@both
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_distribution_adds_up_to_one_and_its_worst_ratio_is_epsilon(protocol, epsilon):
    oracle = protocol(3, epsilon)
    distributions = [oracle.distribution(value) for value in range(3)]
    assert [sum(distribution.values()) for distribution in distributions] == [1, 1, 1]
    assert len(distributions[0]) == 8
    worst = max(p[report] / q[report] for p in distributions for q in distributions for report in p)
    assert worst <= odds_for(Fraction(epsilon))
    assert (worst == odds_for(Fraction(epsilon))) == (protocol is OUE)
    claimed = float(oracle.loss().epsilon)
    assert max(dc.privacy.max_divergence(p, q) for p in distributions for q in distributions) == pytest.approx(
        claimed, abs=1e-12
    )


@both
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_estimates_are_right_on_average_under_the_exact_distribution(protocol, epsilon):
    oracle = protocol(["a", "b", "c"], epsilon)
    for place, value in enumerate("abc"):
        assert mean_by_distribution(oracle, value) == pytest.approx(np.eye(3)[place], abs=1e-9)


@pytest.mark.long
@both
def test_reports_are_drawn_from_the_distribution_and_another_would_be_noticed(protocol):
    # Ten bits: two bytes, so that bits of both are seen together.
    oracle, other = protocol(10, "1/2"), protocol(10, "0.6")
    for value in (0, 7, 8):
        assert fit(oracle, value, 400_000, oracle.distribution(value)) > BY_CHANCE
    assert fit(oracle, 9, 400_000, other.distribution(9)) < BY_CHANCE
    assert fit(oracle, 9, 400_000, oracle.distribution(8)) < BY_CHANCE


@both
def test_every_bit_of_a_long_report_is_set_as_often_as_it_should(protocol):
    people, oracle = 100_000, protocol(131, 1)
    for place in (0, 63, 64, 128, 130):
        counts = oracle.counts(oracle.perturb(np.full(people, place)))
        chances = np.full(131, float(oracle.scheme.other))
        chances[place] = float(oracle.scheme.own)
        two_sided = 2 * np.minimum(
            stats.binom.cdf(counts, people, chances), stats.binom.sf(counts - 1, people, chances)
        )
        assert two_sided.min() > 1e-13


def test_bits_are_counted_where_they_stand():
    for size in (2, 8, 9, 130):
        oracle = OUE(size, 1)
        bits = np.random.default_rng(size).integers(0, 2, (5000, size)).astype(np.uint8)
        reports = packed_bits.rows_to_reports(np.packbits(bits, axis=1, bitorder="little"))
        assert np.array_equal(oracle.scheme.counts(reports), bits.sum(axis=0))
        assert np.array_equal(oracle.scheme.counts(reports[::3]), bits[::3].sum(axis=0))
        assert oracle.scheme.counts(reports[:0]).tolist() == [0] * size


def test_bits_of_groups_are_counted_apart():
    rng = np.random.default_rng(3)
    bits, group = rng.integers(0, 2, (3000, 21)), rng.integers(0, 5, 3000)
    rows = np.packbits(bits.astype(np.uint8), axis=1, bitorder="little")
    found = packed_bits.count_ones_by_group(rows, 21, group, 5)
    assert np.array_equal(found, [bits[group == number].sum(axis=0) for number in range(5)])


@both
@pytest.mark.parametrize("epsilon", ["1/2", "1", "4"])
def test_errors_are_those_of_theory_and_margins_hold(protocol, epsilon):
    oracle, values = protocol(128, epsilon), uneven(128, 2000)
    errors, margins = surveyed(oracle, values, 150)
    expected = theory((oracle.scheme.own, oracle.scheme.other), values, 128)
    # 19,200 squares: the quotient has a standard deviation of about 0.6 %.
    assert np.sqrt((errors**2).mean() / (expected**2).mean()) == pytest.approx(1, rel=0.05)
    assert 0.94 < (abs(errors) <= margins).mean() < 0.99


@both
def test_margins_of_many_people_are_not_wider_than_theory_says(protocol):
    oracle, values = protocol(128, 1), uneven(128, 100_000)
    margins = oracle.estimate(oracle.perturb(values)).margins
    expected = 1.959964 * theory((oracle.scheme.own, oracle.scheme.other), values, 128)
    assert margins == pytest.approx(expected, rel=0.02)
    assert (margins >= 0.99 * expected).all()


def test_oue_has_a_smaller_error_than_sue_and_grr_for_many_values():
    values = uneven(128, 1000)
    of_oue, of_sue = (theory((o.own, o.other), values, 128) for o in (OUE(128, 1).scheme, SUE(128, 1).scheme))
    direct = dc.local.GRR(128, 1)
    of_grr = theory((direct.pmf(0, 0), direct.pmf(0, 1)), values, 128)
    assert (of_oue**2).mean() < (of_sue**2).mean() < (of_grr**2).mean() / 9


@both
@pytest.mark.parametrize(("size", "length"), [(2, 1), (8, 1), (9, 2), (128, 16), (1000, 125)])
def test_messages_are_read_as_they_were_sent(protocol, size, length):
    oracle = protocol(size, 1)
    reports = oracle.perturb(np.arange(300) % size)
    sent = list(reports.messages())
    assert {len(message) for message in sent} == {6 + length}
    for received in (bytes(reports), sent):
        again = oracle.read(received)
        assert np.array_equal(oracle.estimate(again).estimates, oracle.estimate(reports).estimates)
    half = oracle.read(bytes(reports[::2]))
    assert np.array_equal(oracle.counts(half), oracle.counts(reports[::2]))
    assert oracle.pmf(np.asarray(reports)[0], 0) == oracle.pmf(np.asarray(reports).tolist()[0], 0) > 0


def test_impossible_messages_are_refused():
    oracle, tally = OUE(9, 1), dc.local.Aggregator(OUE(9, 1))
    sent = bytes(oracle.perturb([3]))
    for bad, why in [
        (sent[:-1], "wrong length"),
        (sent[:5], "5 bytes"),
        (b"\x02" + sent[1:], "format version 2"),
        (bytes(SUE(9, 1).perturb([3])), "configuration"),
        (bytes(OUE(9, 2).perturb([3])), "configuration"),
        (sent[:-1] + b"\x02", "padding after the last of 9 bits"),
    ]:
        with pytest.raises(ValueError, match=why):
            tally.add([sent, bad])
    assert tally.people == 0
    assert not tally.counts.any()


@both
def test_merged_aggregators_equal_a_single_one(protocol):
    oracle = protocol(20, 1)
    reports = oracle.perturb(np.arange(600) % 20)
    first, second = dc.local.Aggregator(oracle), dc.local.Aggregator(oracle)
    first.add(reports[:250])
    second.add(list(reports[250:].messages()))
    first.merge(dc.local.Aggregator.read(oracle, bytes(second)))
    assert first.people == 600
    assert np.array_equal(first.estimate().estimates, oracle.estimate(reports).estimates)


@both
@pytest.mark.parametrize("bad", [1, 0, 2.5, "ab", None, ["a"], ["a", "a"], (1 << 20) + 1, True])
def test_bad_domains_are_refused_by_name(protocol, bad):
    with pytest.raises((TypeError, ValueError), match="domain"):
        protocol(bad, 1)


@both
@pytest.mark.parametrize("bad", [0, -1, math.inf, math.nan, "x", None, 65, True])
def test_bad_epsilons_are_refused_by_name(protocol, bad):
    with pytest.raises((TypeError, ValueError), match="epsilon"):
        protocol(3, bad)


@both
@pytest.mark.parametrize("bad", [[3], [-1], [0.5], ["0"], [[0]], [None]])
def test_bad_values_are_refused_by_name(protocol, bad):
    with pytest.raises((TypeError, ValueError), match="values"):
        protocol(3, 1).perturb(bad)


def test_a_report_is_bytes_of_the_right_length():
    oracle = OUE(9, 1)
    for bad in (3, "ab", (1, 0), None):
        with pytest.raises(TypeError, match="report must be bytes"):
            oracle.pmf(bad, 0)
    with pytest.raises(ValueError, match="report must have 2 bytes, not 3"):
        oracle.pmf(b"abc", 0)
    assert oracle.pmf(b"\xff\xff", 0) == 0  # has bits that stand for nothing


def test_a_distribution_of_too_many_reports_is_refused():
    assert len(list(OUE(16, 1).scheme.outcomes())) == 1 << 16
    with pytest.raises(ValueError, match=r"too many .*to list"):
        OUE(17, 1).distribution(0)


def test_zero_reports_give_no_estimate():
    oracle = OUE(9, 1)
    assert len(oracle.perturb([])) == 0
    with pytest.raises(ValueError, match="empty"):
        oracle.estimate(oracle.perturb([]))


def test_roots_are_just_below():
    for odds in (Fraction(1), Fraction(2), odds_for(Fraction(1)), odds_for(Fraction(64))):
        for power in (2, 4, 6, 16):
            root = root_down(odds, power)
            assert root**power <= odds < (root + Fraction(1, 1 << 64)) ** power
