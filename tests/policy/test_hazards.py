"""The lint finds what it should, and nothing in a careful policy."""

import pytest
from policy_examples import REALISTIC, SMALL

from discreet.policy import RULES, Policy, explain, hazards
from discreet.policy.explain import posterior
from discreet.privacy import posterior_bound


def found(text):
    return [(hazard.id, hazard.table, hazard.column) for hazard in hazards(Policy.parse(text))]


WARD = 'ward = { type = "text", in = ["A", "B"] }'


LABS = """\
[tables.labs]
source = "labs.csv"
unit = { through = "visits", on = "ward" }
columns.ward.type = "text"
"""


@pytest.mark.parametrize(
    ("old", "new", "hazard"),
    [
        ("patient", "device_id", ("D001", "visits", "device_id")),
        ("patient", "cookieId", ("D001", "visits", "cookieId")),
        (WARD, 'doctor_email = { type = "text" }', ("D002", "visits", "doctor_email")),
        (WARD, 'CustomerNo = { type = "integer" }', ("D002", "visits", "CustomerNo")),
        (WARD, 'order_id = { type = "integer" }', ("D002", "visits", "order_id")),
        (WARD, '"Last Name" = { type = "text" }', ("D002", "visits", "Last Name")),
        ('name = { type = "text" }', 'name.type = "text"\nremarks.type = "text"', ("D003", "regions", "remarks")),
        (WARD, 'weight = { type = "real" }', ("D004", "visits", "weight")),
        ("epsilon = 2.0", "epsilon = 10.5", ("D005", None, None)),
        ("delta = 1e-9", "delta = 1e-5", ("D006", None, None)),
        ("rows = 10", "rows = 10\nrows_max = 10_000_000_000", ("D006", None, None)),
        ("step = 0.01", "step = 1e-9", ("D008", "visits", "cost")),
        (
            'patient = { type = "integer" }',
            'patient = { type = "integer", in = [1, 2] }',
            ("D009", "visits", "patient"),
        ),
        (SMALL[SMALL.index("[tables.regions.columns]") :], "", ("D010", "regions", None)),
        ('unit = "patient"', 'unit = "patient"\nwindow = "1 day"\ntime = "time"', ("D011", "visits", None)),
        (
            "[tables.regions]",
            f"{LABS}[tables.regions]",
            ("D012", "labs", "ward"),
        ),
        ('name = { type = "text" }', 'name.type = "text"\nPatient.type = "integer"', ("D013", "regions", "Patient")),
        ('name = { type = "text" }', 'name.type = "text"\nphone.type = "text"', ("D013", "regions", "phone")),
        ("between = [0, 5000]", "between = [0, 4987.35]", ("D014", "visits", "cost")),
    ],
)
def test_each_hazard_is_found_alone(old, new, hazard):
    assert old in SMALL
    assert found(SMALL.replace(old, new)) == [hazard]


def test_rows_as_units_are_said_out_loud_and_so_are_the_people_in_them():
    assert found(SMALL.replace('unit = "patient"', 'unit = "row"')) == [
        ("D007", "visits", None),
        ("D002", "visits", "patient"),
    ]


def test_every_rule_has_a_case_above():
    tested = {"D007"} | {
        mark.args[1][i][2][0] for mark in test_each_hazard_is_found_alone.pytestmark for i in range(len(mark.args[1]))
    }
    assert tested == set(RULES)


def test_a_careful_policy_has_no_hazards():
    assert found(SMALL) == []
    assert found(REALISTIC["checkins"]) == []


def test_weaker_promises_are_said_out_loud():
    assert {id_ for id_, *_ in found(REALISTIC["hospital"])} == {"D012"}
    assert {id_ for id_, *_ in found(REALISTIC["weblogs"])} == {"D011"}


@pytest.mark.parametrize(
    ("rows_max", "steps", "warned"),
    [(1 << 36, (1 << 26) - 1, False), (1 << 36, 1 << 26, True), ((1 << 61) - 1, 2, False), (1 << 61, 2, True)],
)
def test_the_overflow_check_begins_at_2_to_the_62(rows_max, steps, warned):
    text = SMALL.replace("rows = 10", f"rows = 10\nrows_max = {rows_max}").replace("delta = 1e-9\n", "")
    text = text.replace("between = [0, 5000], step = 0.01", f"between = [-{steps}, 1], step = 1")
    assert (("D008", "visits", "cost") in found(text)) is warned


def test_a_finding_prints_its_id_place_message_and_fix():
    (hazard,) = hazards(Policy.parse(SMALL.replace(WARD, 'weight = { type = "real" }')))
    assert str(hazard) == (
        "D004 table visits, column weight: a number without bounds cannot be summed or averaged. "
        "Declare `between` from what the number means, not from the data."
    )
    (hazard,) = hazards(Policy.parse(SMALL.replace("epsilon = 2.0", "epsilon = 12")))
    assert str(hazard).startswith("D005 [budget]: epsilon 12 lets the odds about one person grow by a factor of e^12.")


PROMISE = """\
Protected: each person, with all of their rows in visits.
Whatever is asked, the answers are nearly as likely from data that lack all rows of one person; \
the budget says how nearly.
Budget: epsilon 2 in all, delta 1e-9, of which 5e-10 is for discovering groups. \
For all questions and all analysts together, for ever.
Analysts: ana 1; together never more than the total, even if they collude.
Except with probability 1e-9, in which case nothing is promised: somebody who knows all other data and sees \
all answers can raise their belief that a certain person is in the data from 1 % to at most 6.95 %, \
from 50 % to at most 88.08 %.
Not protected: anything in regions, declared public.
Not protected: what is true of many, and is learned with or without any one person; what relatives or copies \
of a row under another key tell; the policy itself, with its names, bounds and listed values."""


def test_the_promise_is_told_in_sentences():
    assert explain(Policy.parse(SMALL)) == PROMISE.splitlines()


def test_weaker_units_tell_what_is_lost():
    day = explain(Policy.parse(REALISTIC["weblogs"]))
    assert day[0] == "Protected: each day of each user (in America/New_York), with all rows of it in hits and logins."
    assert (
        "Not protected: one user as a whole. Over 30 days the bound is epsilon 45: a belief of 50 % may become 100 %."
        in day
    )
    row = explain(Policy.parse(SMALL.replace('unit = "patient"', 'unit = "row"')))
    assert row[0] == "Protected: each single row of visits; not one person with all of their rows."
    assert any("Over 30 rows the bound is epsilon 60 and a larger delta" in line for line in row)
    hospital = explain(Policy.parse(REALISTIC["hospital"]))
    assert "Taken on trust: a row of labs leads, by encounter, to rows of encounters of one patient only." in hospital


@pytest.mark.parametrize("epsilon", [0.01, 1, 4, 50, 10**6])
def test_the_belief_is_the_definitions_bound(epsilon):
    policy = Policy.parse(SMALL.replace("epsilon = 2.0", f"epsilon = {epsilon}").replace("ana = ", "# ana = "))
    assert posterior(0.01, policy.budget.epsilon) == pytest.approx(posterior_bound(0.01, min(epsilon, 600)))
