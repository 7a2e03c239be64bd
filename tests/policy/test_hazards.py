"""The lint finds what it should, and nothing in a careful policy."""

import math
import re
from fractions import Fraction

import pytest
from policy_examples import REALISTIC, SMALL

from discreet.policy import RULES, Policy, explain, hazards
from discreet.policy.guarantee import max_posterior
from discreet.privacy import posterior_bound


def found(text):
    return [(hazard.id, hazard.table, hazard.column) for hazard in hazards(Policy.parse(text))]


WARD = 'ward = { type = "text", in = ["A", "B"] }'


LABS = """\
[tables.labs]
source = "labs.csv"
unit = { through = "visits", on = "ward" }
groups = 1
rows = 1
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
        ("[2024-01-01, 2024-12-31]", "[2024-01-01T06:47:46, 2024-12-31]", ("D014", "visits", "time")),
        ("[2024-01-01, 2024-12-31]", "[2024-01-01, 2024-12-31T23:59:58]", ("D014", "visits", "time")),
        ("groups = 3\n", "", ("D015", "visits", None)),
        ("rows = 10\n", "", ("D015", "visits", None)),
        ("between = [0, 5000], step = 0.01", "between = [0, 1_000_000_000], step = 100", ("D016", "visits", "cost")),
        (", step = 0.01", "", ("D017", "visits", "cost")),
        (WARD, 'hits = { type = "integer", between = [0, 3_000_000] }', ("D017", "visits", "hits")),
        ('in = ["A", "B"]', f"in = {[f'w{i}' for i in range(501)]}", ("D018", "visits", "ward")),
        (WARD, f"surname = {{ type = 'text', in = {[f'w{i}' for i in range(21)]} }}", ("D018", "visits", "surname")),
        ('in = ["A", "B"]', 'in = ["A", "ana@example.org"]', ("D018", "visits", "ward")),
        (", between = [2024-01-01, 2024-12-31]", "", ("D023", "visits", "time")),
    ],
)
def test_each_hazard_is_found_alone(old, new, hazard):
    assert old in SMALL
    assert found(SMALL.replace(old, new)) == [hazard]


def test_row_level_units_are_reported_and_so_are_the_people_in_them():
    assert found(SMALL.replace('unit = "patient"', 'unit = "row"')) == [
        ("D007", "visits", None),
        ("D002", "visits", "patient"),
    ]


def test_every_rule_has_a_case_above():
    tested = {"D007"} | {
        mark.args[1][i][2][0] for mark in test_each_hazard_is_found_alone.pytestmark for i in range(len(mark.args[1]))
    }
    around = {"D019", "D020", "D021", "D022", "D024", "D025"}  # of files: test_file_hazards.py, test_stored.py
    around |= {
        "D026",
        "D027",
        "D028",
        "D029",
    }  # of databases: test_curator_postgres.py; of CSV: test_policy_commands.py
    assert tested == set(RULES) - around


def test_a_careful_policy_has_no_hazards():
    assert found(SMALL) == []
    assert found(REALISTIC["checkins"]) == []


def test_weaker_guarantees_are_reported():
    assert {id_ for id_, *_ in found(REALISTIC["hospital"])} == {"D012", "D015"}
    assert {id_ for id_, *_ in found(REALISTIC["weblogs"])} == {"D011", "D015", "D017", "D023"}


def test_correct_settings_are_not_a_hazard():
    for fine in (
        'hits = { type = "integer", between = [0, 1_000_000] }',
        'hits = { type = "integer", between = [0, 1_500_000] }',
        'hits = { type = "integer", between = [0, 3_000_000], step = 1 }',
        f"ward = {{ type = 'text', in = {[f'w{i}' for i in range(500)]} }}",
        'client = { type = "text", in = ["web", "app"] }',
        'mobile = { type = "boolean" }',
        'seen = { type = "timestamp", between = [2024-01-01T12:30:00, 2024-12-31T23:59:59] }',
    ):
        assert found(SMALL.replace(WARD, fine)) == []


def test_the_margin_of_a_wide_sum_follows_from_the_contribution_bounds():
    text = SMALL.replace("between = [0, 5000], step = 0.01", "between = [0, 1_000_000_000], step = 100")
    (wide,) = hazards(Policy.parse(text))
    assert "about ±9e+10 at epsilon 1" in wide.message  # 3 groups with 10 rows of 10^9 each, and 3 scales


@pytest.mark.parametrize(
    ("rows_max", "steps", "warned"),
    [(1 << 36, (1 << 26) - 1, False), (1 << 36, 1 << 26, True), ((1 << 61) - 1, 2, False), (1 << 61, 2, True)],
)
def test_the_overflow_check_begins_at_2_to_the_62(rows_max, steps, warned):
    text = SMALL.replace("rows = 10", f"rows = 10\nrows_max = {rows_max}").replace("delta = 1e-9\n", "")
    text = text.replace("between = [0, 5000], step = 0.01", f"between = [-{steps}, 1], step = 1")
    assert (("D008", "visits", "cost") in found(text)) is warned


def test_a_finding_prints_its_id_location_message_and_fix():
    (hazard,) = hazards(Policy.parse(SMALL.replace(WARD, 'weight = { type = "real" }')))
    assert str(hazard).startswith("D004 table visits, column weight: a number without bounds")
    assert "Declare `between`" in hazard.hint
    (hazard,) = hazards(Policy.parse(SMALL.replace("epsilon = 2.0", "epsilon = 12")))
    assert str(hazard).startswith("D005 [budget]: epsilon 12 lets the odds about one person grow by a factor of e^12.")


GUARANTEE = """\
Protected: each person, with all of their rows in visits.
Whatever the queries, the distribution of the answers is nearly the same with and without all rows of one person; \
the budget bounds the difference.
Left out of every answer: rows where visits.patient is NULL. Values that cannot be read in the declared type are NULL.
Budget: epsilon 2 and delta 1e-9 (5e-10 of it for partition selection), in total for all queries of all analysts; \
it is never renewed.
Analysts: ana (epsilon 1); together they cannot exceed the total, even if they collude.
Except with probability 1e-9, in which case nothing is guaranteed: an adversary who knows all other data and sees \
all answers can raise their belief that a given person is in the data from 1 % to at most 6.95 % or \
from 50 % to at most 88.08 %.
Except with probability 8.4e-9, in which case nothing is guaranteed: the same adversary can raise their belief that \
a given person has a trait that one in a thousand people have from 0.1 % to at most 5.19 %; a substitution counts \
as one removal and one addition.
Less protected: groups. For 4 people together the bound is 4 times epsilon and a larger delta: a belief of 50 % that \
they are in the data can become 99.97 %.
Not protected: the public table regions.
Not protected: facts about the population, which can be learned with or without any one person; what can be inferred \
about a person from relatives, friends or copies of a row under another key; copies of the data kept or published \
elsewhere; the policy itself, with its names, bounds and listed values."""


def test_the_guarantee_is_explained_in_sentences():
    assert explain(Policy.parse(SMALL)) == GUARANTEE.splitlines()


def test_a_bound_that_says_nothing_is_not_shown_as_one():
    def guarantee(epsilon, delta="1e-9"):
        return "\n".join(
            explain(Policy.parse(SMALL.replace("epsilon = 2.0", f"epsilon = {epsilon}").replace("1e-9", delta)))
        )

    trait = "No useful bound can be given at this budget on an adversary's belief that a given person has a trait"
    assert trait in guarantee(30)
    assert trait in guarantee(10, "1e-5")  # with probability 0.23 nothing would be guaranteed
    assert trait not in guarantee(2)
    assert "is in the data from 1 % to at most 99.94 %.\n" in guarantee(12)  # from 50 % it would be 100 %
    assert (
        "No useful bound can be given at this budget on an adversary's belief that a given person is in the data.\n"
        in (guarantee(30))
    )
    assert "to at most 100 %" not in guarantee(30) + guarantee(12)


def test_weaker_units_state_what_is_not_protected():
    day = explain(Policy.parse(REALISTIC["weblogs"]))
    assert day[0] == (
        "Protected: each day of each user (time zone America/New_York), with all of its rows in hits and logins."
    )
    assert (
        "Not protected: one user as a whole. Over 30 days the bound is epsilon 45: a belief of 50 % can become 100 %. "
        "What all of their days have in common, such as where they live, is protected least."
    ) in day
    row = explain(Policy.parse(SMALL.replace('unit = "patient"', 'unit = "row"')))
    assert row[0] == "Protected: each single row of visits, but not all rows of one person together."
    assert any("Over 30 rows the bound is epsilon 60 and a larger delta" in line for line in row)
    hospital = explain(Policy.parse(REALISTIC["hospital"]))
    assert (
        "Assumed, not checked: each value of encounter in labs refers to rows of one patient only in encounters."
        in hospital
    )


def test_posterior_bounds_never_exceed_the_definition():
    sentences = explain(Policy.parse(SMALL))
    rare, group = (next(line for line in sentences if words in line) for words in ("has a trait", "4 people together"))
    for line, prior, epsilon in ((rare, Fraction(1, 1000), 4), (group, Fraction(1, 2), 8)):  # a change costs twice
        bound = 100 * posterior_bound(prior, epsilon)
        assert bound <= float(re.findall(r"([0-9.]+) %", line)[-1]) <= bound + 0.01
    delta = 1e-9 * (1 + math.exp(2))
    assert delta <= float(rare.split("probability ")[1].split(",")[0]) <= 1.1 * delta


def test_a_pure_budget_has_no_failure_probability():
    assert not [line for line in explain(Policy.parse(SMALL.replace("delta = 1e-9\n", ""))) if "Except" in line]


@pytest.mark.parametrize("epsilon", [0.01, 1, 4, 50, 10**6])
def test_the_stated_posterior_is_the_bound_of_the_definition(epsilon):
    policy = Policy.parse(SMALL.replace("epsilon = 2.0", f"epsilon = {epsilon}").replace("ana = ", "# ana = "))
    assert max_posterior(0.01, policy.budget.epsilon) == pytest.approx(posterior_bound(0.01, min(epsilon, 600)))
