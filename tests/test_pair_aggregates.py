"""CORR, COVAR and REGR over private rows."""

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.policy import Policy

POLICY = """
[data]
name = "clinic"
protects = "patient"
ledger = ":memory:"
[budget]
epsilon = 1000000
{delta}
[tables.visits]
source = "visits"
unit = "patient"
groups = 1
rows = 2
rows_max = 1000000
[tables.visits.columns]
patient = {{ type = "integer" }}
ward = {{ type = "text", in = ["A", "B"] }}
age = {{ type = "integer", between = [0, 110] }}
cost = {{ type = "real", between = [0, 1000] }}
weight = {{ type = "real" }}
"""
SURE = 100_000  # an epsilon at which there is hardly any noise


def visits(people=2000):
    rng = np.random.default_rng(5)
    age = rng.integers(20, 90, people)
    frame = pd.DataFrame(
        {
            "patient": np.arange(people),
            "ward": np.array(["A", "B"])[np.arange(people) % 2],
            "age": pd.array(age, dtype="Int64"),
            "cost": 150 + 6 * age + rng.normal(0, 60, people),
            "weight": rng.uniform(50, 100, people),
        }
    )
    frame.loc[rng.random(people) < 0.1, "age"] = pd.NA
    frame.loc[rng.random(people) < 0.1, "cost"] = np.nan
    return frame


@pytest.fixture(scope="module", params=["", "delta = 1e-9"], ids=["pure", "delta"])
def curator(request):
    with dc.open(Policy.parse(POLICY.format(delta=request.param)), data={"visits": visits()}) as found:
        yield found


def truths(frame):
    """Return every statistic of cost and age, over the rows where both are known."""
    known = frame.dropna(subset=["age", "cost"])
    x, y = known["age"].to_numpy(float), known["cost"].to_numpy(float)
    slope, intercept = np.polyfit(x, y, 1)
    r = np.corrcoef(x, y)[0, 1]
    return {
        "CORR": r,
        "COVAR_POP": np.cov(x, y, ddof=0)[0, 1],
        "COVAR_SAMP": np.cov(x, y)[0, 1],
        "REGR_SLOPE": slope,
        "REGR_INTERCEPT": intercept,
        "REGR_R2": r**2,
        "REGR_COUNT": len(x),
        "REGR_AVGX": x.mean(),
        "REGR_AVGY": y.mean(),
    }


def test_values_are_those_of_the_rows_where_both_are_known(curator):
    frame = visits()
    names = list(truths(frame))
    columns = ", ".join(f"{name}(cost, age) AS {name}" for name in names)
    sql = f"SELECT ward, {columns} FROM visits GROUP BY ward"
    answer = curator.ask(sql, epsilon=SURE)
    for ward, row in zip("AB", answer.table.to_pylist(), strict=True):
        for name, truth in truths(frame[frame["ward"] == ward]).items():
            assert row[name] == pytest.approx(truth, rel=1e-3), name
    assert all(margin is not None for name in names for margin in answer.margins[name])


def test_a_filter_and_bounds_of_the_query_apply_to_both_values(curator):
    frame = visits()
    sql = "SELECT CORR(CLIP(weight, 50, 100), cost + age) FILTER (WHERE age > 40) AS r FROM visits"
    known = frame.dropna(subset=["age", "cost"])
    known = known[known["age"] > 40]
    truth = np.corrcoef(known["weight"], (known["cost"] + known["age"]).to_numpy(float))[0, 1]
    assert curator.ask(sql, epsilon=SURE).value == pytest.approx(truth, abs=1e-3)


def test_both_orders_of_a_symmetric_statistic_are_one_release(curator):
    first = curator.ask("SELECT CORR(cost, age) AS r FROM visits WHERE age > 30", epsilon=1)
    again = curator.ask("SELECT CORR(age, cost) AS r FROM visits WHERE age > 30", epsilon=1)
    assert again.value == first.value
    assert again.paid.rho == 0


def test_totals_that_an_earlier_answer_has_are_not_charged_again(curator):
    asked = "FROM visits WHERE age > 31"
    curator.ask(f"SELECT CORR(cost, age) AS r {asked}", epsilon=1)
    for name in ("REGR_SLOPE", "REGR_INTERCEPT", "COVAR_SAMP", "REGR_R2"):
        sql = f"SELECT {name}(cost, age) AS v {asked}"
        assert curator.explain(sql, epsilon="1/100").paid.rho == 0


def test_units_with_many_rows_are_capped_as_for_means():
    few = visits(2000)
    heavy = pd.DataFrame({"patient": -1, "ward": "A", "age": 20, "cost": 1000.0, "weight": 60.0}, index=range(3000))
    heavy["age"] = heavy["age"].astype("Int64")
    with dc.open(Policy.parse(POLICY.format(delta="")), data={"visits": pd.concat([few, heavy])}) as curator:
        slope = curator.ask("SELECT REGR_SLOPE(cost, age) AS v FROM visits", epsilon=SURE)
    assert slope.value == pytest.approx(truths(few)["REGR_SLOPE"], rel=0.02)
    assert any("at most 2 rows" in note for note in slope.bounds)


@pytest.mark.parametrize(
    ("call", "clause", "cause"),
    [
        ("CORR(cost, weight)", "CORR", "weight in CORR needs bounds"),
        ("CORR(ward, cost)", "CORR", "needs two numbers, and ward is not one"),
        ("REGR_SLOPE(cost)", "REGR_SLOPE", "takes two expressions"),
        ("CORR(patient, cost)", "CORR", "disclose individuals"),
        ("CORR(SUM(cost), age)", "SELECT", "nested"),
        ("REGR_SXX(cost, age)", "SELECT", "is not supported"),
    ],
)
def test_other_uses_are_refused_before_the_charge(curator, call, clause, cause):
    before = curator.ledger.spent()
    with pytest.raises(dc.Refused, match=f"line 1, {clause}: .*{cause}.*[.] \\S"):
        curator.ask(f"SELECT {call} AS v FROM visits", epsilon=1)
    assert curator.ledger.spent() == before


def test_the_explanation_says_what_a_margin_depends_on(curator):
    (column,) = curator.explain("SELECT CORR(cost, age) AS r FROM visits WHERE age > 32", epsilon=1).columns
    assert "variances" in column.margin_depends_on
    with pytest.raises(dc.Refused, match="not known in advance"):
        curator.ask("SELECT CORR(cost, age) AS r FROM visits WHERE age > 32", margin="1/10")
