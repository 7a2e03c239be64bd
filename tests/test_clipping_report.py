"""Answers report by how much clipping makes their numbers too low, and claim no more than the histogram shows."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.answer.bias import POSSIBLE_BIAS, Bias
from discreet.answer.text import round_down
from discreet.estimate import clipped_release
from discreet.estimate.clipped_release import ClippedRelease, MeasuredClipping, can_be_clipped
from discreet.estimate.clipping_report import (
    ReportWords,
    _hidden_units,
    automatic_bounds_sentence,
    clipping_notes,
    clipping_sentence,
    contribution_max,
)
from discreet.estimate.contribution_buckets import ContributionBuckets, clipped_rows
from discreet.estimate.contribution_histogram import AutomaticBounds, ChosenBounds, PossibleContribution
from discreet.estimate.estimators import NumberKind
from discreet.estimate.planned_release import Mean, Measure, NoisyCount, NoisySum, PlannedRelease
from discreet.kernel.expr import Column, Constant, Type
from discreet.kernel.grid import Grid
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import ContributionBounds, Norm, PublicGroups, Question
from discreet.kernel.relation import Derive, JoinKind, JoinOnUnit, Scan, Union, UnitKey, Where
from discreet.kernel.totals import Count, CountUnits, Sum
from discreet.policy import Policy
from discreet.policy.declarations import SimpleRandomSample

PATIENT, CLINIC, COST = (Column(name, Type.INTEGER) for name in ("patient", "clinic", "cost"))
VISITS = Scan("visits", (PATIENT, CLINIC, COST), UnitKey((PATIENT,)), max_rows=10**6)
COUNT, UNITS, PAID = Count(), CountUnits(), Sum(COST, Grid(0, 100, Fraction(1)))
LOWS = tuple(8 * 2 ** (place / 2) for place in range(8))
HEAVY = np.array([4000, 2000, 1000, 500, 200, 80, 30, 10])
FIRST_COUNT = NoisyCount(0)
PATIENTS = ReportWords("patients")


def buckets(counts=HEAVY, noise=None):
    return ContributionBuckets(LOWS, np.asarray(counts), noise or Gaussian(5))


def clipped(
    counts,
    totals=(COUNT,),
    estimators=(FIRST_COUNT,),
    histogram=None,
    *,
    counted=COUNT,
    norm=Norm.L2,
    scale=40,
    **changes,
):
    """Return a release with one group per count, with bounds of 4 rows in each of 4 groups, or of 8 in one."""
    bounds = ContributionBounds(4, 4, norm) if len(counts) > 1 else ContributionBounds(1, 8, norm)
    by = (("clinic", CLINIC),) if len(counts) > 1 else ()
    groups = PublicGroups((tuple(range(len(counts))),) if by else ())
    measures = tuple(Measure(f"m{place}", f"m{place}", estimator) for place, estimator in enumerate(estimators))
    question = Question(VISITS, by, groups, bounds, totals)
    release = PlannedRelease("r0", question, ("clinic",) if by else (), measures, (), (), **changes)
    table = pa.table({measure.name: pa.array(counts) for measure in measures})
    measured = None if histogram is None else MeasuredClipping(histogram, 8.0, counted)
    noise = (Laplace if norm is Norm.L1 else Gaussian)(scale)
    return ClippedRelease(release, table, (noise,) * len(totals), measured)


def of_first(one):
    return one.bias_of(one.release.measures[0])


# The bias of each number


def test_a_count_without_groups_has_the_bounds_of_the_histogram():
    one = clipped([9000], histogram=buckets())
    assert of_first(one) == [clipped_rows(buckets(), 8.0)]
    assert 0 < of_first(one)[0].low < of_first(one)[0].estimate
    declared = dataclasses.replace(one, contribution_max=200)
    assert of_first(declared) == [clipped_rows(buckets(), 8.0, most=200)]
    assert of_first(declared)[0].high > of_first(one)[0].estimate


def test_bounds_that_were_chosen_from_the_histogram_have_a_lower_bound_for_every_choice():
    automatic = clipped(
        [9000], histogram=buckets(), automatic=AutomaticBounds("k", groups=False, rows=True, chosen=True)
    )
    assert of_first(automatic) == [clipped_rows(buckets(), 8.0, candidates=len(buckets().radii))]
    assert of_first(automatic)[0].low < of_first(clipped([9000], histogram=buckets()))[0].low
    declared = dataclasses.replace(automatic.release.automatic, declared=ChosenBounds(1, 8))
    release = dataclasses.replace(automatic.release, automatic=declared)
    assert of_first(dataclasses.replace(automatic, release=release))[0].low < of_first(automatic)[0].low


@pytest.mark.parametrize("norm", Norm)
def test_a_group_has_a_share_of_the_estimate_and_no_bounds(norm):
    one = dataclasses.replace(clipped([6000, 3000, 1000, -50], histogram=buckets(), norm=norm), contribution_max=200)
    found = of_first(one)
    assert [(bias.low, bias.high) for bias in found] == [(0, None)] * 4
    assert sum(bias.estimate for bias in found) == pytest.approx(one.removed.estimate)
    assert [bias.estimate / one.removed.estimate for bias in found] == pytest.approx([0.6, 0.3, 0.1, 0])


def test_the_excess_of_an_l1_norm_is_what_all_groups_lose():
    excess = clipped_rows(buckets(), 8.0)
    assert clipped([500] * 9, histogram=buckets(), norm=Norm.L1).removed == Bias(excess.low, excess.estimate)


def test_all_groups_lose_more_than_the_excess_of_an_l2_norm():
    excess = clipped_rows(buckets(), 8.0)
    even, skewed = (clipped(counts, histogram=buckets()) for counts in ([500] * 9, [8000, *[1] * 8]))
    assert even.removed.low == skewed.removed.low == excess.low
    assert even.removed.estimate == pytest.approx(3 * excess.estimate)
    assert excess.estimate < skewed.removed.estimate < 1.01 * excess.estimate
    alone = clipped([500] * 9, histogram=buckets(), possible=PossibleContribution(groups=1))
    assert alone.removed.estimate == pytest.approx(excess.estimate)


def test_no_estimate_is_spread_over_groups_that_look_empty():
    assert of_first(clipped([0, -3], histogram=buckets())) == [POSSIBLE_BIAS] * 2


def test_without_a_histogram_a_number_is_only_marked():
    assert of_first(clipped([9000])) == [POSSIBLE_BIAS]


@pytest.mark.parametrize(
    ("totals", "estimator"),
    [
        ((PAID,), NoisySum(0, NumberKind.WHOLE)),
        ((PAID, COUNT), Mean(0, 1, Fraction(0), Fraction(100))),
        ((Count(COST),), NoisyCount(0)),
    ],
)
def test_numbers_that_the_histogram_is_not_about_are_only_marked(totals, estimator):
    assert of_first(clipped([9000], totals, (estimator,), buckets())) == [POSSIBLE_BIAS]


def test_a_count_of_values_has_the_bounds_of_its_own_histogram():
    values = clipped([9000], (Count(COST),), (NoisyCount(0),), buckets(), counted=Count(COST))
    assert of_first(values) == [clipped_rows(buckets(), 8.0)]


def test_a_number_of_units_can_be_clipped_by_groups_only():
    (measure,) = clipped([9000], (UNITS,)).release.measures
    assert not clipped([9000], (UNITS,)).may_bias(measure)
    several = clipped([900] * 9, (UNITS,), histogram=buckets(), counted=UNITS)
    assert several.may_bias(measure)
    assert several.bias_of(measure) == [POSSIBLE_BIAS] * 9
    alone = clipped([900] * 9, (UNITS,), possible=PossibleContribution(groups=2))
    assert not alone.may_bias(measure)


def test_the_bias_of_a_sample_is_expanded_like_its_count():
    sampled = clipped([9000], histogram=buckets(), sample=SimpleRandomSample(100, 250))
    assert of_first(sampled) == [clipped_rows(buckets(), 8.0).scaled(2.5)]
    low = 2.5 * sampled.removed.low
    assert f"({round_down(100 * low / (9000 + low))} %, " in clipping_sentence(sampled, PATIENTS)


@pytest.mark.parametrize(
    ("possible", "clips"),
    [
        (PossibleContribution(), True),
        (PossibleContribution(groups=1, rows=8), False),
        (PossibleContribution(groups=4, rows=4), False),
        (PossibleContribution(groups=4, rows=5), True),
        (PossibleContribution(groups=1, rows=9), True),
        (PossibleContribution(groups=5, rows=4), True),
    ],
)
def test_a_release_is_clipped_only_if_a_unit_can_have_a_larger_norm(possible, clips):
    release = dataclasses.replace(clipped([9000] * 9).release, possible=possible)
    assert can_be_clipped(release) is clips


@pytest.mark.parametrize("norm", Norm)
def test_nothing_is_clipped_if_the_owner_states_that_nobody_has_more_rows_than_the_bounds_allow(norm):
    without_groups, with_groups = clipped([9000], norm=norm).release, clipped([9000] * 9, norm=norm).release
    assert (can_be_clipped(without_groups, 8), can_be_clipped(without_groups, 9)) == (False, True)
    radius = 16 if norm is Norm.L1 else 8
    assert (can_be_clipped(with_groups, radius), can_be_clipped(with_groups, radius + 1)) == (False, True)
    units = clipped([9000] * 9, (UNITS,), histogram=buckets(), counted=UNITS, norm=norm)
    assert [
        dataclasses.replace(units, contribution_max=most).may_bias(units.release.measures[0]) for most in (4, 5)
    ] == [
        False,
        True,
    ]


def test_no_clipping_is_reported_that_the_owner_s_statement_rules_out():
    with opened(extra="contribution_max = 3") as curator:  # not true of these data, so that a histogram would show it
        answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=20)
    assert (answer.bias, answer.clipping) == ({}, ())


# One line of text


def test_the_line_states_the_lower_bound_its_share_and_better_bounds():
    one = clipped([9000], histogram=buckets())
    line = clipping_sentence(one, PATIENTS)
    low, share = one.removed.low, 100 * one.removed.low / (9000 + one.removed.low)
    amount = f"{round_down(low)} rows ({round_down(share)} %, 95 % confidence)"
    assert line.startswith(f"Clipping removed at least {amount}: ")
    assert "counts are too low; consider rows = " in line
    assert line.endswith(' or rows = "auto".')


def test_the_suggested_bound_is_the_smallest_whose_estimate_is_within_the_margin():
    one = clipped([9000], histogram=buckets())
    rows = int(clipping_sentence(one, PATIENTS).split("rows = ")[1].split()[0].replace(",", ""))

    def is_within(bound):
        return clipped_rows(buckets(), bound).estimate <= one.count_margin * bound / 8

    ladder = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120]
    assert rows == next(bound for bound in ladder if is_within(bound))
    assert rows > 10


def test_no_other_bounds_are_suggested_if_the_bias_is_within_the_margin_or_the_bounds_are_automatic():
    assert "consider" not in clipping_sentence(clipped([9000], histogram=buckets(), scale=30_000), PATIENTS)
    automatic = AutomaticBounds("k", groups=False, rows=True, chosen=True)
    assert "consider" not in clipping_sentence(clipped([9000], histogram=buckets(), automatic=automatic), PATIENTS)


def test_the_bound_of_several_groups_is_for_all_of_them():
    one = clipped([500] * 9, histogram=buckets())
    assert " over all groups: counts are too low" in clipping_sentence(one, PATIENTS)
    assert any("not for a single one" in note for note in clipping_notes([one], PATIENTS))


def test_units_in_the_bucket_with_the_radius_may_exceed_the_bounds():
    one = clipped([9000], histogram=buckets([0, 0, 0, 700, 0, 0, 0, 0]))
    one = dataclasses.replace(one, measured=dataclasses.replace(one.measured, radius=LOWS[3] * 1.1))
    assert _hidden_units(one) > 700
    above = dataclasses.replace(one, measured=dataclasses.replace(one.measured, radius=LOWS[4]))
    assert _hidden_units(above) < 100


def test_too_little_to_be_seen_is_stated_with_what_could_be_hidden():
    one = clipped([9000], histogram=buckets([3, -2, 1, 0, 4, -1, 0, 2]))
    assert one.removed.low == 0
    line = clipping_sentence(one, PATIENTS)
    assert line.startswith("Fewer than about ")
    assert line.endswith(" patients exceed the bounds; what they lose is not in the margins.")
    assert any("unnoticed" in note for note in clipping_notes([one], PATIENTS))
    louder = clipped([9000], histogram=buckets([3, -2, 1, 0, 4, -1, 0, 2], Gaussian(50)))
    rows = [
        int(text.split("about ")[1].split()[0].replace(",", "")) for text in (line, clipping_sentence(louder, PATIENTS))
    ]
    assert rows[1] > 5 * rows[0]
    declared = dataclasses.replace(one, contribution_max=200)
    assert not any("unnoticed" in note for note in clipping_notes([declared], PATIENTS))
    assert "removed fewer than about" in clipping_sentence(declared, PATIENTS)


def test_an_estimate_that_is_not_proved_is_below_detection():
    one = clipped([9000], histogram=buckets([200, 100, 0, 0, 0, 0, 0, 0], Gaussian(60)))
    assert one.removed.low == 0
    assert one.removed.estimate > 1
    line = clipping_sentence(one, PATIENTS)
    assert line.endswith(" patients exceed the bounds; what they lose is not in the margins.")
    assert one.removed.magnitude == 0


def test_bounds_that_were_chosen_automatically_are_named():
    def chosen(counts, totals=(COUNT,), estimators=(FIRST_COUNT,), norm=Norm.L2, **changes):
        automatic = AutomaticBounds("k", groups=True, rows=True, chosen=True)
        automatic = dataclasses.replace(automatic, **changes)
        release = clipped(counts, totals, estimators, norm=norm, automatic=automatic).release
        return automatic_bounds_sentence(release, "patient", "patients")

    full = "Chosen automatically: each patient counts in full "
    assert chosen([9]) == f"{full}with up to 8 rows."
    assert chosen([9] * 9) == f"{full}with up to 4 rows in each of 4 groups."
    assert chosen([9] * 9, norm=Norm.L1) == f"{full}with up to 16 rows in all groups together."
    assert chosen([9] * 9, (UNITS,)) == f"{full}in up to 4 groups."
    spent = dataclasses.replace(PAID, max_term=700), (NoisySum(0, NumberKind.WHOLE),)
    assert chosen([9] * 9, spent[:1], spent[1]) == f"{full}with up to 700 of m0 in each of 4 groups."
    blind = chosen([9], blind=True)
    assert blind == (
        "Too few patients to choose the bounds well at this epsilon: each counts in full with up to 8 rows."
    )
    declared = chosen([9], blind=True, declared=ChosenBounds(1, 8, blind=True))
    assert "those that the policy declares were used, so each counts in full with up to 8 rows." in declared
    assert chosen([9], chosen=False) == ""


def test_what_was_not_measured_is_stated():
    words = dataclasses.replace(PATIENTS, reason=" (bounds_report = 0)")
    line = clipping_sentence(clipped([9000]), words)
    assert line == "Clipping was not measured (bounds_report = 0): counts may be too low."


def test_sums_and_averages_have_lines_of_their_own():
    totals, mean = (PAID, COUNT), Mean(0, 1, Fraction(0), Fraction(100))
    sums = clipped([9000], (PAID,), (NoisySum(0, NumberKind.WHOLE),), buckets())
    line = clipping_sentence(sums, PATIENTS)
    assert line.startswith("At least ")
    assert " rows (95 % confidence) are above the bounds: sums may be biased; " in line
    means = clipped([9000], totals, (mean, NoisyCount(1)), buckets())
    assert ": counts are too low and patients with many rows count for less in averages; " in clipping_sentence(
        means, PATIENTS
    )
    assert "Patients with many rows count for less in averages, because of clipping." in clipping_notes(
        [means], PATIENTS
    )


def test_units_that_are_counted_in_too_few_groups_are_stated():
    line = clipping_sentence(clipped([900] * 9, (UNITS,), histogram=buckets(), counted=UNITS), PATIENTS)
    assert line.startswith("Clipping removed at least ")
    assert " patients (" in line
    assert "distinct counts are too low; consider groups = " in line


# The owner's statement


def policy(extra="", report="bounds_report = 0.02", rows="rows = 3"):
    return Policy.parse(f"""
        [data]
        name = "region"
        protects = "patient"
        ledger = ":memory:"
        [budget]
        epsilon = 100
        delta = 1e-6
        {report}
        [tables.visits]
        source = "visits.parquet"
        unit = "patient"
        groups = 2
        {rows}
        {extra}
        [tables.visits.columns]
        patient = {{ type = "integer" }}
        clinic = {{ type = "integer", between = [0, 3] }}
        cost = {{ type = "integer", between = [0, 100] }}
        [tables.patients]
        source = "patients.parquet"
        unit = "patient"
        groups = 1
        rows = 1
        [tables.patients.columns]
        patient = {{ type = "integer" }}
    """)


def test_the_largest_contribution_follows_from_what_the_owner_states():
    stated, always = policy("contribution_max = 50"), Constant(value=True, type=Type.BOOLEAN)
    assert contribution_max(VISITS, stated) == 50
    assert contribution_max(VISITS, policy()) is None
    assert contribution_max(Derive(Where(VISITS, always), (("c", COST),)), stated) == 50
    assert contribution_max(Union(VISITS, VISITS), stated) == 100
    other = Derive(VISITS, (("c", COST),))
    assert contribution_max(JoinOnUnit(VISITS, other, None, JoinKind.INNER, 7), stated) is None


# Whole answers


def visits(people=2000):
    often = np.minimum(60, (np.arange(1, people + 1) / people) ** -0.7).astype(int)
    patient = np.repeat(np.arange(people), often)
    return pa.table({"patient": patient, "clinic": np.arange(len(patient)) % 4, "cost": patient % 100})


def opened(**changes):
    patients = pa.table({"patient": np.arange(2000)})
    return dc.open(policy(**changes), data={"visits": visits(), "patients": patients})


@pytest.fixture
def bounds_used(monkeypatch):
    """The results of clipped_rows for radii that contributions were clipped to."""
    results = []

    def recorded(*arguments):
        results.append(clipped_rows(*arguments))
        return results[-1]

    monkeypatch.setattr(clipped_release, "clipped_rows", recorded)
    return results


def test_the_answer_to_a_count_prints_the_bounds_of_its_histogram(bounds_used):
    with opened() as curator:
        answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=20)
    (bound,) = bounds_used
    assert answer.bias == {"n": [bound]}
    assert f"Clipping removed at least {round_down(bound.low)} rows" in " ".join(repr(answer).split())
    lost = np.maximum(np.bincount(visits()["patient"].to_numpy()) - 3, 0).sum()
    assert 0.3 * lost < bound.low <= lost
    table = answer.with_margins()
    assert table.column_names == ["n", "n_margin", "n_bias", "n_bias_low"]
    assert table.to_pylist()[0]["n_bias_low"] == bound.low


def test_a_declared_largest_contribution_gives_an_upper_bound():
    with opened(extra="contribution_max = 60") as curator:
        (bias,) = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=20).bias["n"]
    assert bias.low <= np.maximum(np.bincount(visits()["patient"].to_numpy()) - 3, 0).sum() <= bias.high


def test_the_bias_follows_the_rows_of_the_answer(bounds_used):
    sql = "SELECT clinic, COUNT(*) AS n, 2 * COUNT(*) AS m FROM visits WHERE clinic < 3 OR cost < 50 GROUP BY clinic"
    with opened() as curator:
        forwards = curator.ask(f"{sql} ORDER BY clinic", epsilon=20)
        backwards = curator.ask(f"{sql} ORDER BY clinic DESC LIMIT 2", epsilon=20)
    assert len(forwards.bias["n"]) == 4
    assert backwards.bias["n"] == forwards.bias["n"][:1:-1]
    shares = [bias.estimate / count for bias, (_, count, _) in zip(forwards.bias["n"], forwards, strict=True)]
    assert shares == pytest.approx([shares[0]] * 4)
    assert shares[0] > 0
    assert forwards.bias["m"] == [POSSIBLE_BIAS] * 4
    assert all(bias.low == 0 for bias in forwards.bias["n"])
    assert bounds_used


def test_numbers_that_clipping_cannot_change_have_no_bias():
    with opened() as curator:
        units = curator.ask("SELECT COUNT(DISTINCT patient) AS n FROM visits", epsilon=1)
        one_row_each = curator.ask("SELECT COUNT(*) AS n FROM patients", epsilon=1)
        per_patient = curator.ask(
            "SELECT AVG(CLIP(n, 0, 60)) AS m FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient) AS p",
            epsilon=1,
        )
    for answer in (units, per_patient):
        assert (answer.bias, answer.clipping) == ({}, ())
        assert "Clipping" not in repr(answer) + answer.details()
    assert one_row_each.bias.keys() <= {"n"}


def test_a_missing_row_of_an_outer_join_has_no_bias():
    sql = """
        SELECT a.clinic, b.n FROM (SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic) AS a LEFT JOIN
        (SELECT clinic, COUNT(*) AS n FROM visits WHERE cost < 50 GROUP BY clinic HAVING clinic < 2) AS b
        ON a.clinic = b.clinic ORDER BY a.clinic
    """
    with opened() as curator:
        answer = curator.ask(sql, epsilon=20)
    assert [bias is None for bias in answer.bias["n"]] == [False, False, True, True]


def test_a_report_that_is_switched_off_leaves_the_mark():
    with opened(report="bounds_report = 0") as curator:
        answer = curator.ask("SELECT COUNT(*) AS n, AVG(cost) AS c FROM visits", epsilon=1)
    assert answer.bias == {"n": [POSSIBLE_BIAS], "c": [POSSIBLE_BIAS]}
    assert answer.clipping[0].startswith("Clipping was not measured (bounds_report = 0)")


def test_a_cached_answer_has_the_same_bias():
    with opened() as curator:
        first, second = (curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=2) for _ in range(2))
    assert (second.bias, second.clipping) == (first.bias, first.clipping)
    assert second.paid == dc.Loss(0)


def test_the_bias_makes_a_number_unreliable():
    with opened(rows="rows = 1") as curator:
        answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=20)
    assert answer.margin < 0.05 * answer.value
    assert answer.reliable == {"n": [False]}
    assert "~ unreliable: margin and bias exceed 25 % of the value" in " ".join(repr(answer).split())
    assert math.isfinite(answer.bias["n"][0].magnitude)


def test_the_tables_of_a_union_have_one_sentence_on_clipping_that_was_not_detected():
    visits = pa.table({"patient": range(600), "ward": ["A", "B"] * 300, "sex": ["f", "m", "m"] * 200})
    columns = {"ward": ["A", "B"], "sex": ["f", "m"]}
    with dc.open(
        visits, unit="patient", budget=(8, "1e-6"), columns=columns, groups=2, rows=3, ledger=":memory:"
    ) as curator:
        wards, sexes = (
            f"SELECT {key} AS k, COUNT(*) AS n FROM data WHERE patient IS NOT NULL{more} GROUP BY {key}"
            for key, more in (("ward", ""), ("sex", " AND ward = 'A'"))
        )
        apart = [curator.ask(sql, epsilon=1).clipping for sql in (wards, sexes)]
        together = curator.ask(f"{wards} UNION ALL {sexes}", epsilon=1).clipping
    assert all(len(sentences) == 1 and "exceed the bounds" in sentences[0] for sentences in (*apart, together))
