"""Neighbouring data for the audit of a policy, and the questions that are asked of them."""

import math

import pyarrow.compute as pc
import pytest

from discreet.audit.hypothesis_tests import Proportion, rho_lower_bound
from discreet.audit.policy.neighbouring_databases import PLACEMENTS, contribution_bounds, neighbouring_databases
from discreet.audit.policy.query_suite import audit_queries
from discreet.policy import Policy

HOSPITAL = Policy.parse(
    """
[data]
name = "hospital"
[budget]
epsilon = 4
delta = 1e-9
[tables.stays]
source = "stays.parquet"
unit = "patient"
groups = 2
rows = 3
[tables.stays.columns]
id = { type = "integer" }
patient = { type = "text" }
admitted = { type = "timestamp", between = [2022-01-01, 2024-12-31] }
ward = { type = "text", in = ["surgery", "medicine", "children"] }
days = { type = "integer", between = [0, 60] }
cost = { type = "decimal", between = [0, 99.5] }
[tables.labs]
source = "labs.parquet"
unit = { through = "stays", on = "stay", key = "id" }
[tables.labs.columns]
stay = { type = "integer" }
test = { type = "text" }
glucose = { type = "real", between = [-5, 500] }
site = { type = "text", references = "sites.name" }
[tables.sites]
source = "sites.csv"
public = true
[tables.sites.columns]
name = { type = "text" }
"""
)
DAYS = Policy.parse(
    """
[data]
name = "days"
[budget]
epsilon = 1
[tables.hits]
source = "hits.parquet"
unit = "user"
window = "1 day"
time = "at"
groups = 2
rows = 2
[tables.hits.columns]
user = { type = "integer" }
at = { type = "timestamp", between = [2024-01-01, 2024-12-31] }
size = { type = "real", between = [0, 1] }
"""
)
ROWS = Policy.parse(
    """
[data]
name = "rows"
[budget]
epsilon = 1
[tables.forms]
source = "forms.csv"
unit = "row"
[tables.forms.columns]
age = { type = "integer", between = [0, 120] }
"""
)


@pytest.fixture(scope="module")
def hospital():
    return {each.placement.name: each for each in neighbouring_databases(HOSPITAL)}


def planted(each, table):
    return each.present[table].slice(each.absent[table].num_rows)


def test_every_pair_differs_in_the_rows_of_one_unit(hospital):
    for each in hospital.values():
        absent = each.absent["stays"]
        assert each.present["stays"].slice(0, absent.num_rows) == absent
        (who,) = set(planted(each, "stays")["patient"].to_pylist())
        assert who not in absent["patient"].to_pylist()
        stays = set(planted(each, "stays")["id"].to_pylist())
        assert set(planted(each, "labs")["stay"].to_pylist()) <= stays | {None}
        assert not stays & set(absent["id"].to_pylist())
        assert not stays & set(each.absent["labs"]["stay"].to_pylist())
        assert each.present["sites"] == each.absent["sites"]


def test_the_planted_unit_has_more_rows_and_groups_than_allowed(hospital):
    groups, rows = contribution_bounds(HOSPITAL.tables["stays"])
    often = planted(hospital["same row too often, highest values"], "stays")
    assert often.num_rows > groups * rows
    assert len(set(often["ward"].to_pylist())) == 1
    assert set(often["days"].to_pylist()) == {60}
    wide = planted(hospital["too many groups, lowest values"], "stays")
    assert len(set(wide["ward"].to_pylist())) == 3 > groups
    assert len(set(pc.strftime(wide["admitted"], "%Y-%m").to_pylist())) > groups
    assert set(wide["days"].to_pylist()) == {0}


def test_the_planted_unit_exceeds_large_bounds_too():
    text = """
[data]
name = "large"
[budget]
epsilon = 1
[tables.hits]
source = "hits.parquet"
unit = "user"
groups = 1000
rows = 100_000
[tables.hits.columns]
user = { type = "integer" }
"""
    policy = Policy.parse(text)
    assert {(asked.groups, asked.rows) for asked in audit_queries(policy)} == {(20, 400)}
    assert max(planted(each, "hits").num_rows for each in neighbouring_databases(policy)) > 20 * 400


def test_values_beyond_every_bound_missing_ones_and_nan_are_planted(hospital):
    beyond, below = hospital["above every bound"], hospital["below every bound"]
    assert max(planted(beyond, "stays")["days"].to_pylist()) == 2**63 - 1
    assert max(planted(beyond, "stays")["cost"].to_pylist()) > 10**20
    glucose = planted(beyond, "labs")["glucose"].to_pylist()
    assert math.inf in glucose
    assert -math.inf in planted(below, "labs")["glucose"].to_pylist()
    assert min(planted(below, "stays")["days"].to_pylist()) == -(2**63)
    assert "not in the list" in planted(beyond, "stays")["ward"].to_pylist()
    assert set(planted(hospital["missing values"], "stays")["ward"].to_pylist()) == {None}
    assert all(map(math.isnan, planted(hospital["NaN"], "labs")["glucose"].to_pylist()))


def test_a_unit_has_groups_that_nobody_else_has_and_groups_that_others_have(hospital):
    own, common = hospital["unique keys"], hospital["same row too often, highest values"]
    assert not set(planted(own, "labs")["test"].to_pylist()) & set(own.absent["labs"]["test"].to_pylist())
    (test,) = set(planted(common, "labs")["test"].to_pylist())
    assert common.absent["labs"]["test"].to_pylist().count(test) > 20


def test_a_unit_can_be_alone_in_the_data(hospital):
    alone = hospital["alone in the data"]
    assert (alone.absent["stays"].num_rows, alone.absent["labs"].num_rows) == (0, 0)
    assert alone.present["stays"].num_rows > 0
    assert alone.absent["sites"].num_rows > 0


def test_a_unit_of_a_window_is_planted_within_one_window():
    for each in neighbouring_databases(DAYS):
        at = planted(each, "hits")["at"].to_pylist()
        assert len({time.date() for time in at}) == 1


def test_a_unit_that_is_a_row_has_one_row():
    assert len(list(neighbouring_databases(ROWS))) == len(PLACEMENTS)
    assert all(planted(each, "forms").num_rows == 1 for each in neighbouring_databases(ROWS))


def test_the_questions_are_of_every_kind_that_a_policy_may_allow():
    kinds = {asked.name for asked in audit_queries(HOSPITAL)}
    assert {
        "stays: COUNT(*)",
        "stays: COUNT(DISTINCT patient)",
        "stays: AVG(days)",
        "stays: MEDIAN(cost)",
        "stays: COUNT(*) by ward",
        "stays: SUM(days) by ward",
        "stays: COUNT(*) by month of admitted",
        "stays: rows per unit",
        "stays: patient IN (SELECT …)",
        "labs: COUNT(*) by test (threshold)",
        "labs: COUNT(*) joined with stays",
        "labs: SUM(stays.days) joined",
        "labs: COUNT(*) joined with sites by site",
    } <= kinds


def test_two_tables_of_the_same_people_are_queried_together():
    two = Policy.parse(
        """
[data]
name = "two"
[budget]
epsilon = 1
[tables.a]
source = "a.csv"
unit = "who"
[tables.a.columns]
who = { type = "integer" }
[tables.b]
source = "b.csv"
unit = "person"
[tables.b.columns]
person = { type = "integer" }
"""
    )
    names = [asked.name for asked in audit_queries(two)]
    assert names[-3:] == ["a: joined with b", "a: who in b", "a: UNION ALL with b"]


def test_the_same_seed_generates_the_same_data(hospital):
    again = {each.placement.name: each for each in neighbouring_databases(HOSPITAL, random_state=0)}
    other = {each.placement.name: each for each in neighbouring_databases(HOSPITAL, random_state=1)}
    name = PLACEMENTS[0].name
    assert again[name].present["stays"] == hospital[name].present["stays"]
    assert other[name].present["stays"] != hospital[name].present["stays"]


def test_two_counts_prove_no_more_rho_than_gaussian_noise_has():
    # At rho = 1/2 the best threshold has probabilities 0.6915 and 0.3085, whose divergence is 0.309.
    assert 0.295 < rho_lower_bound(Proportion(691_500, 10**6), Proportion(308_500, 10**6), error=1e-9) < 0.309
    assert rho_lower_bound(Proportion(691_500, 10**6), Proportion(308_500, 10**6), delta=0.5, error=0.05) == 0
    assert rho_lower_bound(Proportion(3, 3), Proportion(0, 3), error=1e-9) == 0


def test_an_outcome_on_one_side_only_proves_a_large_rho():
    assert rho_lower_bound(Proportion(1000, 1000), Proportion(0, 1000), error=1e-9) > 2
