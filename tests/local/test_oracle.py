"""What all oracles share: domains, messages, accumulators, margins, and how wrong input is refused."""

import datetime as dt
import math
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import discreet as dc
from discreet.kernel.numbers import exp_bounds
from discreet.local import oracle as oracle_module
from discreet.local.estimation import debias_shares
from discreet.local.oracle import odds_for

COLOURS = ["red", "green", "blue"]


def test_values_outside_the_domain_are_refused_by_name():
    survey = dc.local.GRR(COLOURS, 1)
    with pytest.raises(ValueError, match="values: 'pink' is not in the domain: 'red', 'green', 'blue'"):
        survey.perturb(["red", "pink"])
    numbers = dc.local.GRR(3, 1)
    with pytest.raises(ValueError, match="values: 3 is outside the domain 0 to 2"):
        numbers.perturb([0, 3])
    with pytest.raises(ValueError, match="values: -1 is outside the domain"):
        numbers.perturb([-1, 0])
    for bad in ([0.5], ["0"], [None], [math.nan]):
        with pytest.raises((TypeError, ValueError), match="values"):
            numbers.perturb(bad)
    with pytest.raises(ValueError, match="dimensions"):
        numbers.perturb([[0, 1]])


@pytest.mark.parametrize("bad", [1, 0, -3, 2.5, "ab", None, ["a"], ["a", "a"], [[1], [2]], 1 << 31, True])
def test_bad_domains_are_refused_by_name(bad):
    with pytest.raises((TypeError, ValueError), match="domain"):
        dc.local.GRR(bad, 1)


@pytest.mark.parametrize("bad", [0, -1, math.inf, math.nan, "x", None, 65, True])
def test_bad_epsilons_are_refused_by_name(bad):
    with pytest.raises((TypeError, ValueError), match="epsilon"):
        dc.local.GRR(3, bad)


def test_labels_of_every_kind_are_found():
    days = [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]
    for domain in (["a", "b", "ü"], [1, 2, 3], [1.5, 2.5], [True, False], days, [None, "x", 3], [(1, 2), (3, 4)]):
        oracle = dc.local.GRR(domain, 20)
        shares = oracle.estimate(oracle.perturb([domain[-1]] * 5 + [domain[0]] * 5)).estimates
        assert shares[0] == pytest.approx(0.5, abs=1e-5)
    with pytest.raises(ValueError, match=r"values: \[1\] is not in the domain"):
        dc.local.GRR(["a", "b"], 1).perturb([[1]])


def test_zero_reports_give_no_estimate():
    survey = dc.local.GRR(3, 1)
    assert len(survey.perturb([])) == 0
    with pytest.raises(ValueError, match="reports must not be empty"):
        survey.estimate(survey.perturb([]))


def test_messages_are_read_as_they_were_sent():
    survey = dc.local.GRR(COLOURS, "1/2")
    reports = survey.perturb(COLOURS * 50)
    sent = list(reports.messages())
    assert {len(message) for message in sent} == {7}
    for received in (bytes(reports), bytearray(bytes(reports)), sent, iter(sent)):
        again = survey.read(received)
        assert np.array_equal(np.asarray(again), np.asarray(reports))
        assert np.array_equal(survey.estimate(again).estimates, survey.estimate(reports).estimates)


def test_reports_of_another_configuration_or_version_are_refused():
    survey = dc.local.GRR(COLOURS, 1)
    reports = survey.perturb(COLOURS)
    for other in (dc.local.GRR(COLOURS, 2), dc.local.GRR(COLOURS[::-1], 1), dc.local.GRR(3, 1)):
        with pytest.raises(ValueError, match="configuration"):
            other.read(bytes(reports))
        with pytest.raises(ValueError, match="their configuration is"):
            other.estimate(reports)
        with pytest.raises(ValueError, match="configuration"):
            dc.local.Aggregator(other).merge(dc.local.Aggregator(survey))
    with pytest.raises(ValueError, match="format version 2 is not supported"):
        survey.read(b"\x02" + bytes(reports)[1:])
    with pytest.raises(ValueError, match="configuration"):
        survey.read([*reports.messages(), *dc.local.GRR(COLOURS, 2).perturb(COLOURS).messages()])


def test_truncated_or_forged_messages_are_refused_and_not_counted():
    wide = dc.local.GRR(1000, 1)
    reports = wide.perturb(np.arange(1000))
    tally = dc.local.Aggregator(wide)
    for bad in (b"", b"\x01ab", bytes(reports)[:-1], [bytes(reports[:1]), b"\x01"], [bytes(reports[:2])]):
        with pytest.raises(ValueError, match="reports"):
            tally.add(bad)
    forged = bytes(reports)[:6] + np.array([1000], "<u2").tobytes()
    with pytest.raises(ValueError, match="1000 is outside the domain"):
        tally.add([bytes(reports[:1]), forged])
    assert tally.people == 0
    assert not tally.counts.any()
    for bad in ([1, 2], np.arange(3), "text", None):
        with pytest.raises(TypeError, match="reports must be bytes"):
            tally.add(bad)


def test_merged_aggregators_equal_a_single_one():
    survey = dc.local.GRR(COLOURS, 1)
    reports = survey.perturb(COLOURS * 100)
    parts = [dc.local.Aggregator(survey) for _ in range(3)]
    for i, tally in enumerate(parts):
        tally.add(reports[100 * i : 100 * i + 60])
        tally.add(list(reports[100 * i + 60 : 100 * i + 100].messages()))
    stored = bytes(parts[2])
    parts[0].merge(parts[1])
    parts[0].merge(dc.local.Aggregator.read(survey, stored))
    assert parts[0].people == 300
    assert np.array_equal(parts[0].estimate().estimates, survey.estimate(reports).estimates)
    with pytest.raises(ValueError, match=r"wrong length|bytes of counts"):
        dc.local.Aggregator.read(survey, stored[:-1])
    with pytest.raises(ValueError, match="configuration"):
        dc.local.Aggregator.read(dc.local.GRR(COLOURS, 2), stored)
    with pytest.raises(ValueError, match="configuration"):
        dc.local.Aggregator.read(survey, bytes(reports))


def coverage(rates, people, true, spreads):
    """Return the exact probability that a share lies within its margin."""
    chances = [
        stats.binom.pmf(range(n + 1), n, float(rate)) for n, rate in zip((true, people - true), rates, strict=True)
    ]
    shares, margins = debias_shares(np.arange(people + 1), people, rates, spreads)
    return float(np.convolve(*chances)[abs(shares - true / people) <= margins].sum())


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
@pytest.mark.parametrize("epsilon", ["1/10", "1", "4", "10"])
@pytest.mark.parametrize("protocol", [dc.local.GRR, dc.local.OUE])
def test_margins_hold_exactly_for_few_people_and_many(protocol, epsilon, confidence):
    spreads = stats.norm.ppf((1 + confidence) / 2)
    found = {}
    for size in (2, 10, 1000):
        scheme = protocol(size, epsilon).scheme
        first = (scheme.probability(0, 0), scheme.probability(0, 1)) if protocol is dc.local.GRR else None
        for people in (1, 2, 5, 20, 100, 400):
            for true in {0, 1, people // 10, people // 3, people // 2, people}:
                rates = first or (scheme.own, scheme.other)
                found[size, people, true] = coverage(rates, people, true, spreads)
    worst = min(found, key=found.get)
    assert found[worst] >= confidence, worst


def test_margins_are_as_wide_as_theory_says():
    oracle = dc.local.GRR(128, 1)
    own, other = (float(oracle.pmf(0, place)) for place in (0, 1))
    _, margins = oracle.estimate_counts(np.full(128, 7813), 10**6, 0.95, "none")
    theory = 1.96 * math.sqrt(other * (1 - other) / 10**6) / (own - other)
    assert margins[0] == pytest.approx(theory, rel=0.03)
    wider = oracle.estimate_counts(np.full(128, 7813), 10**6, 0.999, "none").margins
    assert wider[0] / margins[0] == pytest.approx(3.29 / 1.96, rel=0.02)


@pytest.mark.parametrize("bad", [0, 1, -1, 95, math.nan, "x", True, "0.99999999999999999999"])
def test_bad_confidences_are_refused_by_name(bad):
    survey = dc.local.GRR(3, 1)
    with pytest.raises((TypeError, ValueError), match="confidence"):
        survey.estimate(survey.perturb([0]), confidence=bad)


def test_the_projection_is_the_nearest_point_of_the_simplex():
    rng = np.random.default_rng(5)
    for _ in range(50):
        shares = rng.normal(0.1, 0.3, 10)
        near = dc.local.project_onto_simplex(shares)
        assert near.sum() == pytest.approx(1)
        assert near.min() >= 0
        others = rng.dirichlet(np.ones(10), 200)
        assert (np.linalg.norm(others - shares, axis=1) >= np.linalg.norm(near - shares) - 1e-12).all()


def test_consistent_shares_are_nearer_to_the_truth_and_still_within_their_margins():
    truth = np.array([0.7, 0.2, 0.1] + [0.0] * 61)
    survey = dc.local.GRR(64, 2)
    values = np.repeat(np.arange(64), (truth * 5000).astype(int))
    raw_error, near_error, covered = 0.0, 0.0, []
    for _ in range(60):
        reports = survey.perturb(values)
        raw = survey.estimate(reports)
        near = survey.estimate(reports, consistency="simplex")
        raw_error += float(((raw.estimates - truth) ** 2).sum())
        near_error += float(((near.estimates - truth) ** 2).sum())
        covered.append(abs(near.estimates - truth) <= near.margins)
    assert near_error < raw_error  # always: the truth is a distribution, and a projection brings nearer to it
    assert np.mean(covered) >= 0.95
    with pytest.raises(ValueError, match="consistency"):
        survey.estimate(reports, consistency="yes")


def test_reports_are_sliced_and_shown_as_arrays_only():
    reports = dc.local.GRR(3, 1).perturb([0, 1, 2])
    assert len(reports[:2]) == 2
    with pytest.raises(TypeError, match="slice"):
        reports[0]
    assert np.asarray(reports).dtype == np.uint8


def test_the_response_of_the_kernel_is_the_same_class():
    assert dc.local.RandomizedResponse is dc.RandomizedResponse


@pytest.mark.parametrize("bad", ["often", b"often", None, 2, 2.5, True])
def test_a_single_value_is_not_accepted_as_a_list(bad):
    for oracle in (dc.local.GRR(list("often"), 1), dc.local.GRR(8, 1), dc.local.NoisyMean(0, 9, 1)):
        with pytest.raises(TypeError, match=r"values must be a list, not .* one person"):
            oracle.perturb(bad)
    with pytest.raises(TypeError, match="domain must be a list"):
        dc.local.GRR("often", 1)


def test_columns_of_every_library_are_lists_and_tables_are_not():
    labelled, numbered = dc.local.GRR(["a", "b"], 30), dc.local.GRR(2, 30)
    for column in (
        pd.Series(["a", "b"]),
        pl.Series(["a", "b"]),
        pa.array(["a", "b"]),
        np.array(["a", "b"]),
        ("a", "b"),
    ):
        assert np.asarray(labelled.perturb(column)).tolist() == [0, 1]
        assert dc.local.GRR(column, 30).configuration == labelled.configuration
    for column in (pd.Series([0, 1]), pl.Series([0, 1]), pa.chunked_array([[0], [1]]), range(2)):
        assert np.asarray(numbered.perturb(column)).tolist() == [0, 1]
    for table in (pd.DataFrame({"a": ["b"]}), {"a": "b"}, np.array([["a"]])):
        with pytest.raises(TypeError, match="one column of a table"):
            labelled.perturb(table)
    for oracle, values in ((numbered, [0, 1]), (labelled, ["a", "b"]), (dc.local.Duchi(0, 1, 1), [0.5, 1])):
        with pytest.raises((TypeError, ValueError), match=r"masked|dimensions"):
            oracle.perturb(np.ma.array(values, mask=[True, False]))


def test_a_likely_typing_error_gets_a_hint():
    with pytest.raises(ValueError, match=r"'oftn' is not in the domain: .* Did you mean 'often'\?"):
        dc.local.GRR(["never", "often"], 1).perturb(["oftn"])


def test_nan_is_refused_as_a_domain_value():
    with pytest.raises(ValueError, match="NaN cannot be a value"):
        dc.local.GRR([1.0, math.nan], 1)


def test_estimates_accept_bytes_and_lists_of_messages():
    survey = dc.local.GRR(COLOURS, 1)
    reports = survey.perturb(COLOURS * 20)
    expected = survey.estimate(reports).estimates
    for received in (bytes(reports), bytearray(bytes(reports)), list(reports.messages())):
        assert np.array_equal(survey.estimate(received).estimates, expected)
    for bad in (None, 3, "text", [1], ["text"]):
        with pytest.raises(TypeError, match="reports must be bytes"):
            survey.estimate(bad)
    with pytest.raises(ValueError, match=r"wrong length|bytes of counts"):
        survey.read([bytes(reports)[:6]])  # all but the report


def test_an_aggregator_is_merged_only_with_another_aggregator():
    tally = dc.local.Aggregator(dc.local.GRR(COLOURS, 1))
    with pytest.raises(ValueError, match="twice"):
        tally.merge(tally)
    for bad in (bytes(tally), [tally], None):
        with pytest.raises(TypeError, match="must be an Aggregator"):
            tally.merge(bad)
    for bad in (dc.RandomizedResponse("1/2"), "GRR", None):
        with pytest.raises(TypeError, match=r"oracle must be an oracle of discreet\.local"):
            dc.local.Aggregator(bad)
    with pytest.raises(TypeError, match="shares or find"):
        dc.local.Aggregator(dc.local.Sketch(1)).estimate()


def test_an_estimate_is_a_named_pair_with_a_repr(tmp_path):
    survey = dc.local.GRR(COLOURS, 20)
    found = survey.estimate(survey.perturb(COLOURS * 100))
    shares, margins = found
    assert shares is found.estimates
    assert margins is found[1]
    assert found.names == tuple(COLOURS)
    assert repr(found).splitlines()[0].startswith("red    0.33")
    frame = found.to_pandas()
    assert list(frame.index) == COLOURS
    assert frame["estimate"].tolist() == shares.tolist()
    axes = found.plot(tmp_path / "found.svg")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == COLOURS
    assert (tmp_path / "found.svg").stat().st_size > 1000
    mean = dc.local.NoisyMean(0, 100, 30)
    told = mean.estimate(mean.perturb([25.0] * 10_000))
    assert isinstance(told.estimates, float)
    assert repr(told).startswith("2")
    many = dc.local.GRR(1000, 20)
    assert repr(many.estimate(many.perturb([5]))).endswith("… 1,000 values")


def test_every_object_has_a_descriptive_repr():
    survey = dc.local.GRR(COLOURS, "1/2")
    assert repr(survey) == "<grr for 3 values, epsilon 0.5>"
    assert repr(dc.local.Duchi(0, 10, 1)) == "<duchi for numbers from 0 to 10, epsilon 1>"
    assert repr(dc.local.Aggregator(survey)) == "<Aggregator of 0 people: <grr for 3 values, epsilon 0.5>>"
    assert repr(survey.perturb(COLOURS)).startswith("<3 reports of 1 byte: {")
    assert "anything" in repr(dc.local.Sketch(1))
    assert "heavy hitters" in repr(dc.local.HeavyHitters(dc.local.IntegerDomain(16), 1))


def test_an_invalid_report_has_no_probability():
    for oracle in (
        dc.local.GRR(COLOURS, 1),
        dc.local.OUE(COLOURS, 1),
        dc.local.OLH(COLOURS, 1),
        dc.local.Hadamard(COLOURS, 1),
    ):
        sent = np.asarray(oracle.perturb(["red"]))[0]
        assert 0 < oracle.pmf(sent, "red") < 1
        for bad in ("red", None, [1, 2]):
            with pytest.raises((TypeError, ValueError), match=r"np\.asarray\(reports\)"):
                oracle.pmf(bad, "red")


def test_nobody_sends_two_reports_in_one_message():
    survey = dc.local.GRR(COLOURS, 1)
    first, *others = survey.perturb(COLOURS).messages()
    tally = dc.local.Aggregator(survey)
    for bad in (first + b"\0", first + bytes(1000), first[:6]):
        with pytest.raises(ValueError, match="wrong length"):
            tally.add([*others, bad])
    assert tally.people == 0
    assert len(survey.read(bytes(survey.perturb([])))) == 0


def test_reports_put_together_by_hand_are_refused():
    survey = dc.local.GRR(2, 1)
    for array in ([7, 1], np.array([0, 1]), np.zeros((2, 2), np.uint8), None):
        with pytest.raises(TypeError, match="perturb or read returns"):
            survey.estimate(dc.local.Reports(survey.configuration, array))


@pytest.mark.parametrize(
    "oracle",
    [
        dc.local.GRR(3, 1),
        dc.local.OUE(3, 1),
        dc.local.OLH(3, 1),
        dc.local.Hadamard(3, 1),
        dc.local.ParityHashing(3, 4),
        dc.local.SubsetSelection(3, 1),
        dc.local.RAPPOR(3, 1),
        dc.local.NoisyMean(0, 1, "1/1000"),
        dc.local.Duchi(0, 1, 1),
        dc.local.Piecewise(0, 1, 1),
        dc.local.Hybrid(0, 1, 4),
    ],
    ids=lambda oracle: oracle.scheme.name,
)
def test_stored_aggregators_are_read_and_forged_ones_refused(oracle):
    tally = dc.local.Aggregator(oracle)
    tally.add(oracle.perturb([1] * 300))
    again = dc.local.Aggregator.read(oracle, bytes(tally))
    assert np.all(again.estimate().estimates == tally.estimate().estimates)
    stored = bytes(tally)
    for people in (-5, 1 << 40, 0):
        with pytest.raises(ValueError, match=r"stored: .* impossible"):
            dc.local.Aggregator.read(oracle, stored[:6] + people.to_bytes(8, "little", signed=True) + stored[14:])
    with pytest.raises(ValueError, match=r"stored: .* impossible"):
        dc.local.Aggregator.read(oracle, stored[:14] + (1 << 62).to_bytes(8, "little") + stored[22:])
    again.people = 1 << 31
    with pytest.raises(ValueError, match="Start another"):
        again.merge(tally)


def test_impossible_reports_have_no_probability():
    for oracle, bad in (
        (dc.local.GRR(3, 1), 99),
        (dc.local.Hadamard(3, 1), 999),
        (dc.local.OLH(3, 1), (1, 1, 77)),
        (dc.local.ParityHashing(3, 1), (1, 77)),
        (dc.local.Duchi(0, 1, 1), 7),
        (dc.local.Piecewise(0, 1, 1), 10**9),
        (dc.local.Hybrid(0, 1, 4), 10**9),
    ):
        assert oracle.pmf(bad, 1) == 0


@pytest.mark.parametrize("bounds", [(2**53, 2**53 + 1), (0, 5e-324), (1, "1.00000000000000000001"), (0, 10**400)])
def test_bounds_between_which_floats_are_indistinguishable_are_refused(bounds):
    with pytest.raises(ValueError, match="low, high"):
        dc.local.Duchi(*bounds, 1)


def test_values_that_cannot_be_looked_up_are_refused_by_name():
    for bad in (bytearray(b"a"), [1], {}):
        with pytest.raises(ValueError, match="is not in the domain"):
            dc.local.GRR([b"a", b"b"], 1).perturb([bad])


@pytest.mark.parametrize("epsilon", ["1/1000000", "1/10", "1/2", "1", "ln", "3", "10", "64"])
def test_odds_are_just_below_the_exponential(epsilon):
    asked = Fraction(1098612288669, 10**12) if epsilon == "ln" else Fraction(epsilon)
    odds = odds_for(asked)
    with mpmath.workdps(120):
        short = (
            mpmath.exp(mpmath.mpf(asked.numerator) / asked.denominator) - mpmath.mpf(odds.numerator) / odds.denominator
        )
        assert 0 <= short < mpmath.mpf(2) ** -62
    assert (odds * 2**64).denominator == 1


@pytest.mark.parametrize("epsilon", ["1/10", "1", "10"])
def test_odds_use_the_more_private_side_of_the_enclosure(epsilon, monkeypatch):
    # An enclosure is right however wide it is: only its upper end is surely not below exp(-epsilon).
    asked, wide = Fraction(epsilon), 1 << 100
    narrow = odds_for(asked)
    monkeypatch.setattr(
        oracle_module, "exp_bounds", lambda x, bits: (exp_bounds(x, bits)[0] - wide, exp_bounds(x, bits)[1] + wide)
    )
    assert odds_for(asked) < narrow
