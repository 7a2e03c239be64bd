"""ROLLUP, CUBE and GROUPING SETS: subtotals add up, cost nothing, and have margins of their own."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.estimate.grouping_sets import _summed_noise, _sums
from discreet.kernel.mechanism import Gaussian, Laplace
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
groups = 2
rows = 3
rows_max = 1000000
[tables.visits.columns]
patient = {{ type = "integer" }}
ward = {{ type = "text", in = ["A", "B", "C"] }}
sex = {{ type = "text", in = ["f", "m"] }}
street = {{ type = "text" }}
age = {{ type = "integer", between = [0, 110] }}
cost = {{ type = "real", between = [0, 1000] }}
"""
SURE = 100_000


def visits(people=3000):
    n = np.arange(people)
    return pd.DataFrame(
        {
            "patient": n,
            "ward": np.array(["A", "B", "A", "C"])[n % 4],
            "sex": np.array(["f", "m"])[n % 7 % 2],
            "street": np.char.add("s", (n % 5).astype(str)),
            "age": (n * 37) % 101,
            "cost": (n * 7 % 900) + 0.9 * ((n * 37) % 101),
        }
    )


@pytest.fixture(scope="module", params=["", "delta = 1e-9"], ids=["pure", "delta"])
def curator(request):
    with dc.open(Policy.parse(POLICY.format(delta=request.param)), data={"visits": visits()}) as found:
        yield found


def rows(answer, *keys):
    return {tuple(row[key] for key in keys): row for row in answer.table.to_pylist()}


def test_subtotals_add_up_to_what_is_shown_and_cost_nothing(curator):
    cells = curator.ask("SELECT ward, sex, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY ward, sex", epsilon=1)
    sql = "SELECT ward, sex, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY ROLLUP (ward, sex)"
    answer = curator.ask(sql, epsilon=1)
    assert answer.paid.rho == 0
    found = rows(answer, "ward", "sex")
    assert [found[key] for key in rows(cells, "ward", "sex")] == cells.table.to_pylist()
    for column in "ns":
        for ward in "ABC":
            assert found[ward, None][column] == found[ward, "f"][column] + found[ward, "m"][column]
        assert found[None, None][column] == sum(found[ward, None][column] for ward in "ABC")
    assert len(found) == 6 + 3 + 1
    assert any("Subtotals" in note for note in answer.bounds)


@pytest.mark.long
def test_ratios_of_subtotals_are_those_of_all_rows(curator):
    columns = "AVG(age) AS mean, STDDEV_POP(age) AS sd, CORR(cost, age) AS r, 1.0 * SUM(age) / COUNT(*) AS q"
    answer = curator.ask(f"SELECT ward, sex, {columns} FROM visits GROUP BY CUBE (ward, sex)", epsilon=SURE)
    frame, found = visits(), rows(answer, "ward", "sex")
    assert len(found) == 6 + 3 + 2 + 1
    for (ward, sex), row in found.items():
        kept = frame[(frame["ward"] == (ward or frame["ward"])) & (frame["sex"] == (sex or frame["sex"]))]
        assert row["mean"] == pytest.approx(kept["age"].mean(), rel=1e-3)
        assert row["q"] == pytest.approx(kept["age"].mean(), rel=1e-2)
        assert row["sd"] == pytest.approx(kept["age"].std(ddof=0), rel=1e-3)
        assert row["r"] == pytest.approx(np.corrcoef(kept["age"], kept["cost"])[0, 1], abs=1e-3)
    assert all(margin is not None for name in ("mean", "sd", "r", "q") for margin in answer.margins[name])


def test_grouping_tells_subtotals_from_groups(curator):
    columns = "GROUPING(ward) AS w, GROUPING(ward, sex) AS both, COUNT(*) AS n"
    sql = f"SELECT ward, sex, {columns} FROM visits GROUP BY GROUPING SETS ((ward), (sex), ()) ORDER BY both, ward, sex"
    found = curator.ask(sql, epsilon=1).table.to_pydict()
    assert found["both"] == [1, 1, 1, 2, 2, 3]
    assert found["w"] == [0, 0, 0, 1, 1, 1]
    assert found["ward"] == ["A", "B", "C", None, None, None]
    plain = curator.ask("SELECT ward, GROUPING(ward) AS g, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    assert plain.table["g"].to_pylist() == [0, 0, 0]


def test_subtotals_are_over_the_groups_that_are_shown():
    with dc.open(Policy.parse(POLICY.format(delta="delta = 1e-6")), data={"visits": visits()}) as curator:
        sql = "SELECT street, COUNT(*) AS n FROM visits GROUP BY ROLLUP (street)"
        found = rows(curator.ask(sql, epsilon=5), "street")
        assert len(found) == 6
        assert found[None,]["n"] == sum(row["n"] for key, row in found.items() if key != (None,))


def test_margins_of_subtotals_cover_as_often_as_they_say(curator):
    """Fresh answers by conditions that change nothing: 48 subtotals, of which few are beyond their margins."""
    inside, count = 0, 0
    truth = {None: 3000} | dict(visits()["ward"].value_counts())
    for number in range(12):
        sql = f"SELECT ward, COUNT(*) AS n FROM visits WHERE age < {200 + number} GROUP BY ROLLUP (ward, sex, age / 60)"
        answer = curator.ask(f"{sql} HAVING GROUPING(sex) = 1", epsilon="1/10")
        for ward, n, margin in zip(*answer.table.to_pydict().values(), answer.margins["n"], strict=True):
            inside, count = inside + (abs(n - truth[ward]) <= margin), count + 1
    assert count == 48
    assert inside >= 40


def test_the_noise_of_a_sum_has_its_tail():
    """Against the sums of many draws: hardly wider than necessary, never narrower."""
    rng = np.random.default_rng(1)
    for law, draw in ((Laplace, rng.laplace), (Gaussian, rng.normal)):
        for terms in ([(law(100), 2)], [(law(100), 5)], [(law(100), 3), (law(30), 40)]):
            sums = sum(draw(0, float(noise.scale), (count, 200_000)).sum(axis=0) for noise, count in terms)
            needed = np.quantile(np.abs(sums), 0.95)
            assert 0.995 * needed <= 1.96 * float(_summed_noise(terms).scale) <= 1.02 * needed
    assert _summed_noise([(Laplace(7), 1)]) == Laplace(7)


def test_sums_are_exact_and_stay_in_64_bits():
    large = np.array([[2**62], [2**62 - 1], [-5], [3]])
    assert _sums(large, np.array([0, 1, 1, 1]), 2).tolist() == [[2**62], [2**62 - 3]]
    assert _sums(np.full((3, 1), 2**62), np.zeros(3, np.int64), 1).tolist() == [[2**63 - 1]]


@pytest.mark.parametrize(
    ("sql", "cause"),
    [
        ("SELECT ward, MEDIAN(age) FROM visits GROUP BY ROLLUP (ward)", "MEDIAN"),
        ("SELECT ward, COUNT(DISTINCT street) FROM visits GROUP BY CUBE (ward)", "COUNT"),
        ("SELECT ward, COUNT(DISTINCT patient) FROM visits GROUP BY ROLLUP (ward)", "COUNT"),
        ("SELECT ward, HISTOGRAM(sex) FROM visits GROUP BY ROLLUP (ward)", "HISTOGRAM"),
        ("SELECT GROUPING(age), COUNT(*) FROM visits GROUP BY ROLLUP (ward)", "GROUPING"),
        ("SELECT COUNT(*) FROM visits GROUP BY CUBE (1, ward, sex, age, cost, street, patient)", "grouping sets"),
        ("SELECT COUNT(*) FROM (SELECT patient, COUNT(*) FROM visits GROUP BY ROLLUP (patient)) AS p", "one unit"),
    ],
)
def test_what_cannot_be_added_up_is_refused_before_the_charge(curator, sql, cause):
    before = curator.ledger.spent()
    with pytest.raises(dc.Refused, match=f"line 1, .*{cause}.*[.] \\S"):
        curator.ask(sql, epsilon=1)
    assert curator.ledger.spent() == before


def test_a_margin_cannot_be_given_for_groups_and_subtotals_together(curator):
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)"
    with pytest.raises(dc.Refused, match="wider margins in subtotals"):
        curator.ask(sql, margin=50)
    assert "subtotal" in curator.explain(sql, epsilon=Fraction(1, 2)).columns[0].margin_depends_on
    assert curator.explain(sql.replace("COUNT(*)", "AVG(age)"), epsilon=1).columns[0].margin_depends_on
