"""Aggregates that choose values: quantiles, ends, the most frequent, different values; and whom the limits touch."""

import json
import re
from datetime import date, datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.estimate.quantiles import numbers_per_group
from discreet.policy import Policy

POLICY = """
[data]
name = "clinic"
protects = "patient"
ledger = ":memory:"
[budget]
epsilon = 1000000
{delta}
{report}
[tables.visits]
source = "visits"
unit = "patient"
groups = 2
rows = 3
rows_max = 1000000
[tables.visits.columns]
patient = {{ type = "integer" }}
ward = {{ type = "text", in = ["A", "B", "C"] }}
street = {{ type = "text" }}
age = {{ type = "integer", between = [0, 110] }}
cost = {{ type = "real", between = [0, 1000] }}
big = {{ type = "integer", between = [-5_000_000, 5_000_000] }}
day = {{ type = "date", between = [2026-01-01, 2026-12-31] }}
time = {{ type = "timestamp", between = [2026-01-01, 2026-12-31] }}
code = {{ type = "integer" }}
ok = {{ type = "boolean" }}
"""
PEOPLE = 4000
SURE = 10_000  # an epsilon at which there is hardly any noise


def visits(people=PEOPLE):
    n = np.arange(people)
    days = (n * 7) % 365
    first = date(2026, 1, 1)
    return pa.table(
        {
            "patient": n,
            "ward": np.array(["A", "B", "A", "C"])[n % 4],
            "street": np.char.add("s", (n % 50).astype(str)),
            "age": (n * 37) % 101,
            "cost": pa.array(np.where(n % 10 == 0, np.nan, (n % 1000) * 1.0), from_pandas=True),
            "big": (n * 1009) % 1_000_003,
            "day": [first + timedelta(days=int(day)) for day in days],
            "time": [datetime(2026, 1, 1, 12) + timedelta(days=int(day)) for day in days],
            "code": n % 123,
            "ok": n % 3 == 0,
        }
    )


def opened(delta="", report="", data=None):
    return dc.open(Policy.parse(POLICY.format(delta=delta, report=report)), data={"visits": data or visits()})


@pytest.fixture(scope="module", params=["", "delta = 1e-9"], ids=["pure", "delta"])
def curator(request):
    with opened(request.param) as found:
        yield found


def value(curator, sql, epsilon=SURE, **more):
    return curator.ask(f"SELECT {sql} AS v FROM visits", epsilon=epsilon, **more).value


TRUTHS = {
    "MEDIAN(age)": (50, 1),
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age)": (90, 1),
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age DESC)": (10, 1),
    "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY age)": (25, 1),
    "QUANTILE_CONT(age, 0.25)": (25, 1),
    "QUANTILE(age, 0.75)": (75, 1),
    "APPROX_QUANTILE(age, 0.1)": (10, 1),
    "MIN(age)": (0, 3),
    "MAX(age)": (100, 3),
    "MEDIAN(cost)": (500, 5),
    "MEDIAN(cost) FILTER (WHERE cost < 100)": (50, 3),
    "MEDIAN(CLIP(cost, 0, 400))": (400, 1),
    "MEDIAN(age * 2 + 1)": (101, 3),
    "MEDIAN(big)": (500_000, 5_000),
    "COUNT(DISTINCT code)": (123, 1),
    "COUNT(DISTINCT street)": (50, 1),
    "COUNT(DISTINCT ok)": (2, 1),
    "COUNT(DISTINCT day)": (365, 1),
    "COUNT(DISTINCT street) FILTER (WHERE street LIKE 's1%')": (11, 1),
    "APPROX_COUNT_DISTINCT(code)": (123, 1),
}


@pytest.mark.parametrize("sql", TRUTHS)
def test_with_hardly_any_noise_the_answer_is_nearly_the_truth(curator, sql):
    truth, near = TRUTHS[sql]
    assert abs(value(curator, sql) - truth) <= near


def test_quantiles_of_dates_and_times_are_accurate_to_days(curator):
    assert abs(value(curator, "MEDIAN(day)") - date(2026, 7, 2)) <= timedelta(days=2)
    assert abs(value(curator, "MIN(day)") - date(2026, 1, 1)) <= timedelta(days=3)
    assert abs(value(curator, "MAX(time)") - datetime(2026, 12, 31)) <= timedelta(days=3)
    answer = curator.ask("SELECT MEDIAN(time) AS v FROM visits", epsilon=SURE)
    assert answer.table.schema.field("v").type == pa.timestamp("us")
    assert answer.margins["v"][0] <= 3  # days


def test_frequent_values_come_in_their_order(curator):
    assert value(curator, "MODE(ward)") == "A"
    assert value(curator, "MODE() WITHIN GROUP (ORDER BY ward)") == "A"
    assert json.loads(value(curator, "TOP_K(ward, 1)")) == ["A"]
    assert set(json.loads(value(curator, "APPROX_TOP_K(ward, 2)"))) in ({"A", "B"}, {"A", "C"})
    assert value(curator, "MODE(age / 60)") == 0
    assert value(curator, "MODE(ok)") is False
    counts = json.loads(value(curator, "HISTOGRAM(ward)"))
    assert counts.keys() == {"A", "B", "C"}
    assert all(abs(counts[ward] - truth) <= 2 for ward, truth in {"A": 2000, "B": 1000, "C": 1000}.items())
    assert list(json.loads(value(curator, "HISTOGRAM(ok)"))) == ["false", "true"]


def test_every_group_has_its_own_quantile(curator):
    columns = "MEDIAN(age) AS m, COUNT(DISTINCT street) AS s, MODE(ok) AS o, COUNT(*) AS n"
    found = curator.ask(f"SELECT ward, {columns} FROM visits GROUP BY ward", epsilon=SURE).table.to_pydict()
    assert found["ward"] == ["A", "B", "C"]
    assert all(abs(median - 50) <= 2 for median in found["m"])
    assert all(abs(count - 25) <= 1 for count in found["s"])
    assert all(abs(count - truth) <= 20 for count, truth in zip(found["n"], (2000, 1000, 1000), strict=True))


def test_groups_from_partition_selection_have_quantiles_too():
    with opened("delta = 1e-6") as curator:
        sql = "SELECT street, MEDIAN(cost) AS m FROM visits GROUP BY street"
        found = curator.ask(sql, epsilon=SURE).table
    assert found.num_rows == 50
    medians = dict(zip(found["street"].to_pylist(), found["m"].to_pylist(), strict=True))
    assert {street for street, median in medians.items() if median is None} <= {"s0", "s10", "s20", "s30", "s40"}
    assert all(abs(medians[f"s{number}"] - 500) <= 60 for number in range(50) if number % 10)


def test_post_processing_can_use_quantiles(curator):
    answer = curator.ask("SELECT 2 * MEDIAN(age) + 1 AS v, MAX(age) - MIN(age) AS w FROM visits", epsilon=100)
    assert abs(answer.table["v"][0].as_py() - 101) <= 6
    assert answer.margins["v"][0] is not None
    assert answer.margins["w"][0] is not None


@pytest.mark.long
@pytest.mark.parametrize("count", ["COUNT(*)", "COUNT(age)", "AVG(age)"])
def test_an_empty_group_with_a_count_has_no_median(curator, count):
    sql = f"SELECT MEDIAN(age) AS m, {count} AS n FROM visits WHERE age > 200"
    answers = [curator.ask(f"{sql} AND code <> {number}", epsilon=1) for number in range(60)]
    assert {answer.table["m"][0].as_py() for answer in answers} == {None}
    assert all("NULL: too few values" in str(answer) for answer in answers)


def test_frequent_values_of_nobody_are_null(curator):
    columns = "MODE(ward) AS most, TOP_K(ward, 2) AS two"
    (found,) = curator.ask(f"SELECT {columns} FROM visits WHERE age > 200", epsilon=1).table.to_pylist()
    assert found == {"most": None, "two": None}
    (found,) = curator.ask(f"SELECT {columns} FROM visits WHERE ward = 'B'", epsilon=100).table.to_pylist()
    assert found == {"most": "B", "two": '["B"]'}


@pytest.mark.parametrize(
    "number", ["MAX(day) - MIN(day)", "MEDIAN(day) - DATE '2026-01-01'", "EXTRACT(EPOCH FROM MEDIAN(time)) / 86400"]
)
def test_numbers_from_noisy_dates_have_margins(curator, number):
    answer = curator.ask(f"SELECT {number} AS n FROM visits WHERE code <> -7", epsilon=1)
    assert 1 <= answer.margin <= 120


def test_dates_from_noisy_dates_have_margins_in_days(curator):
    sql = "SELECT MEDIAN(day) AS one, MEDIAN(day) + INTERVAL '1 day' AS two FROM visits WHERE code <> -8"
    answer = curator.ask(sql, epsilon=1)
    assert 0.5 * answer.margins["one"][0] <= answer.margins["two"][0] <= 1.5 * answer.margins["one"][0]
    assert answer.margins["two"][0] >= 1


def test_the_margin_of_a_timestamp_spans_the_day(curator):
    answer = curator.ask("SELECT MEDIAN(time) AS m FROM visits", epsilon=SURE)
    assert answer.value.time() == datetime.min.time()
    middle = sorted(visits()["time"].to_pylist())[PEOPLE // 2]
    assert timedelta() < abs(answer.value - middle) <= timedelta(days=answer.margin)


def test_integer_division_is_mentioned_where_it_hides_the_noise(curator):
    answer = curator.ask("SELECT COUNT(*) FILTER (WHERE ok) / COUNT(*) AS share FROM visits", epsilon=SURE)
    assert (answer.value, answer.margin) == (0, 0)
    assert "Write 1.0 * a / b for a ratio." in str(answer).replace("\n", " ")


SUMS = ", ".join(f"SUM(CLIP(age, 0, {end})) AS a{end}" for end in range(1, 9))


@pytest.mark.long
@pytest.mark.parametrize("ask", ["ask", "explain"])
@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT FLOOR(cost * 500) AS c, {SUMS} FROM visits GROUP BY 1",
        "SELECT big / 40, MIN(age) FROM visits GROUP BY 1",
    ],
)
def test_an_answer_that_cannot_be_stored_is_refused_before_the_charge(curator, ask, sql):
    spent = curator.ledger.spent()
    with pytest.raises(dc.Refused, match=r"MB in the ledger, which stores at most 67 MB"):
        getattr(curator, ask)(sql, epsilon=1)
    assert curator.ledger.spent() == spent


@pytest.mark.parametrize(
    "columns",
    ["COUNT(*), SUM(cost)", "MIN(age), MEDIAN(age)", "MEDIAN(cost)", "MODE(ward)", "AVG(big), HISTOGRAM(age)"],
)
def test_an_answer_has_at_most_as_many_numbers_as_are_planned(curator, monkeypatch, columns):
    sql, stored = f"SELECT big / 100000 AS b, {columns} FROM visits GROUP BY 1", []
    settle = type(curator.ledger).settle
    monkeypatch.setattr(type(curator.ledger), "settle", lambda *args: (stored.append(args[2]), settle(*args)))
    curator.ask(sql, epsilon=Fraction(1, 10**9))
    plan = curator.releases.plan_query(sql, "owner", None, None)
    numbers = sum(part.question.groups.key_count * numbers_per_group(part) for part in plan.releases)
    assert 5 * numbers < len(stored[0]) <= 22 * numbers


def test_a_count_of_other_values_says_nothing_about_a_median(curator):
    sql = "SELECT MEDIAN(age) AS m, COUNT(CASE WHEN age > 200 THEN 1 END) AS n FROM visits"
    assert curator.ask(sql, epsilon=100).table["m"][0].as_py() is not None


def test_an_explanation_has_no_exponents_and_no_empty_sentences(curator):
    sql = "SELECT ward, AVG(cost) AS mean, (SELECT COUNT(*) FROM visits) AS n FROM visits GROUP BY ward"
    told = curator.explain(sql, epsilon=Fraction(1, 1000))
    assert re.search(r"± [\d,]{6,} to [\d,]{6,} divided", told.columns[0].margin_depends_on)
    assert told.groups == "3 declared groups, all shown."


def test_many_quantiles_of_one_column_share_one_tree(curator):
    one = curator.explain("SELECT MIN(age) FROM visits WHERE ok", epsilon=1)
    four = "SELECT MEDIAN(age), MAX(age), QUANTILE_CONT(age, 0.9), QUANTILE_CONT(age, 0.1) FROM visits WHERE ok"
    columns = curator.explain(four, epsilon=1).columns
    margins = [column.margin_depends_on.rpartition(" ") for column in (*one.columns, *columns)]
    assert [margin[2] for margin in margins] == ["minimum", "quantile", "maximum", "quantile", "quantile"]
    assert {margin[0] for margin in margins} == {margins[0][0]}
    assert all("discrete" in column.noise for column in columns)


def test_few_quantiles_of_one_column_are_selected_at_a_cost_for_each(curator):
    """One in a pure budget, up to three in one with a delta; decided by the query and the budget alone."""
    levels = (0.2, 0.4, 0.6, 0.8)
    selected = []
    for count in range(1, 5):
        quantiles = ", ".join(f"QUANTILE_CONT(age, {level})" for level in levels[:count])
        columns = curator.explain(f"SELECT {quantiles} FROM visits WHERE ok", epsilon=1).columns
        selected.append({column.noise.partition(",")[0] == "exponential mechanism" for column in columns})
    most = 3 if curator.policy.budget.delta else 1
    assert selected == [{count <= most} for count in range(1, 5)]
    both = curator.explain("SELECT MEDIAN(age), MEDIAN(cost) FROM visits WHERE ok", epsilon=1).columns
    assert all("exponential" in column.noise for column in both)


def test_a_count_beside_a_median_is_explained_as_it_is_alone():
    with opened() as curator:
        sql = "SELECT {}COUNT(*) AS n FROM visits"
        (alone,) = curator.explain(sql.format(""), epsilon=1).columns
        quantile, beside = curator.explain(sql.format("MEDIAN(age) AS half, "), epsilon=1).columns
    assert (quantile.name, quantile.margin) == ("half", None)
    assert beside.margin > alone.margin > 0


@pytest.mark.long
def test_margins_of_medians_cover_the_truth():
    """100 draws on copies of the data: with 95 % right, fewer than 75 would come up less than once in 10^9 times."""
    inside = 0
    with opened() as curator:
        for number in range(100):
            answer = curator.ask(f"SELECT MEDIAN(age) AS m FROM visits WHERE code <> {-number - 1}", epsilon="1/20")
            inside += abs(answer.value - 50) <= answer.margin
    assert inside >= 75


def test_minimum_and_maximum_are_described_as_quantiles(curator):
    answer = curator.ask("SELECT MIN(age) AS low, MAX(age) AS high FROM visits", epsilon=1)
    told = str(answer).replace("\n", " ")
    assert "MIN(age) is a private quantile: about" in told
    assert "MAX(age) is a private quantile" in told


def test_the_cost_is_as_requested_whatever_the_query(curator):
    columns = "MEDIAN(age), MODE(ok), HISTOGRAM(ok), COUNT(DISTINCT code), AVG(cost), COUNT(*)"
    sql = f"SELECT ward, {columns} FROM visits WHERE age < 99 GROUP BY 1"  # nothing of it is stored
    before = curator.ledger.spent()
    curator.ask(sql, epsilon="1/3")
    spent = curator.ledger.spent()
    if curator.policy.budget.rho is None:
        assert spent.epsilon - before.epsilon == Fraction(1, 3)
    else:
        assert spent.rho - before.rho == dc.privacy.cost_of(curator.policy.budget, "1/3").rho


REFUSED = {
    "MEDIAN(code)": "needs bounds",
    "MEDIAN(ward)": "needs a number or a date, not text",
    "MEDIAN(patient)": "unit's own column",
    "MODE(patient)": "unit's own column",
    "MODE(street)": "none are declared",
    "HISTOGRAM(big / 1000)": "more than 1,000",
    "TOP_K(ward, 0)": "number of values",
    "TOP_K(ward)": "number of values",
    "TOP_K(ward, 1000)": "number of values",
    "QUANTILE_CONT(age, 2)": "between 0 and 1",
    "QUANTILE_CONT(age, age)": "between 0 and 1",
    "QUANTILE_CONT(age)": "an expression and a fraction",
    "PERCENTILE_CONT(0.5)": "an expression and a fraction",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age, cost)": "one expression",
    "COUNT(DISTINCT cost)": "is not supported",
    "COUNT(DISTINCT time)": "is not supported",
    "COUNT(DISTINCT (code, ward))": "several expressions",
    "MEDIAN(SUM(age))": "cannot be nested",
    "MEDIAN((SELECT 1))": "subquery",
    "STRING_AGG(ward, ',')": "individual rows",
    "ARRAY_AGG(age)": "individual rows",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_unsupported_aggregates_are_refused_with_a_reason(curator, sql):
    before = curator.ledger.spent()
    with pytest.raises(dc.Refused, match=REFUSED[sql]):
        curator.ask(f"SELECT {sql} FROM visits", epsilon=1)
    assert curator.ledger.spent() == before


def heavy(people, rows):
    """Return visits of people of whom the first hundred have so many rows in each of three wards."""
    table = visits(people)
    more = [{**row, "ward": ward} for row in table.slice(0, 100).to_pylist() for ward in "ABC" for _ in range(rows)]
    return pa.concat_tables([table, pa.Table.from_pylist(more, schema=table.schema)])


def test_the_clipping_report_can_be_switched_off_and_has_its_share_of_the_cost():
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    with (
        opened() as curator,
        opened(report="bounds_report = 0") as silent,
        opened(report="bounds_report = 0.5") as half,
    ):
        margins = [each.explain(sql, epsilon=1).columns[0].margin for each in (silent, curator, half)]
    assert margins[1] == pytest.approx(margins[0] / 0.98, rel=0.02)
    assert margins[2] == pytest.approx(margins[0] * 2, rel=0.02)


def test_units_with_many_values_count_up_to_the_bound():
    rows = {"patient": [1] * 100 + [2], "code": [*range(100), 7]}
    empty = visits(1).slice(0, 0)
    data = pa.Table.from_pylist(
        [{"patient": p, "code": c, "ward": "A"} for p, c in zip(*rows.values(), strict=True)], schema=empty.schema
    )
    with opened(data=data) as curator:
        found = [value(curator, "COUNT(DISTINCT code)", rows=limit) for limit in (1, 3, 10, 200)]
    assert [round(count) for count in found] == pytest.approx([2, 4, 10, 100], abs=1.1)


@pytest.mark.long
def test_a_group_with_too_few_rows_has_no_minimum_or_maximum():
    """Noise feigns enough rows in less than one of a hundred cases."""
    sql = "SELECT MIN(age) AS low, MAX(age) AS high FROM visits WHERE code <> {}"
    with opened(data=visits(40)) as curator:
        found = [curator.ask(sql.format(-n), epsilon="1/10").table.to_pylist() for n in range(1, 21)]
    assert sum(each == [{"low": None, "high": None}] for each in found) >= 10


@pytest.mark.long
@pytest.mark.parametrize("budget", [90, (90, "1e-7")], ids=["pure", "delta"])
@pytest.mark.parametrize("value", [40.0, 60.0])
def test_clipping_does_not_move_a_mean_away_from_the_centre_of_its_range(budget, value):
    """Every value is the same, so every unit's mean is too, whatever the bounds, in one group and in several."""
    units = np.repeat(np.arange(400), 60)
    table = pa.table(
        {"unit": units, "g": units * 7 % 3, "h": np.arange(len(units)) % 4, "x": np.full(len(units), value)}
    )
    columns = {"g": [0, 1, 2], "h": [0, 1, 2, 3], "x": (0, 100)}
    with dc.open(table, unit="unit", budget=budget, columns=columns, groups=2, rows=10, ledger=":memory:") as curator:
        for select in ("AVG(x) AS m", "g, AVG(x) AS m", "h, AVG(x) AS m, COUNT(*) AS n, SUM(x) AS s"):
            group = f" GROUP BY {select[0]}" if select[1] == "," else ""
            answer = curator.ask(f"SELECT {select} FROM data{group}", epsilon=9)
            for mean, margin in zip(answer.table.column("m").to_pylist(), answer.margins["m"], strict=True):
                assert abs(mean - value) <= 4 * margin + 0.01
                assert margin < 5
        answer = curator.ask("SELECT SUM(x) AS s, COUNT(x) AS n FROM data", epsilon=9)
        assert answer.table.column("s")[0].as_py() > 0.9 * 400 * 10 * value


@pytest.mark.parametrize("bound", [10**6, 10**11, 10**12])
def test_deviations_of_wide_integers_are_within_their_margins(bound):
    numbers = np.array([0, 1, -1, 2**62, -(2**62), 10**18, 7, -7, 2**31, 2] * 10)
    table = pa.table({"u": range(100), "n": numbers})
    columns = {"n": {"type": "integer"}}
    with dc.open(table, unit="u", budget=10**6, groups=1, rows=1, columns=columns, ledger=":memory:") as curator:
        answer = curator.ask(f"SELECT STDDEV_POP(CLIP(n, {-bound}, {bound})) AS x FROM data", epsilon=1000)
    truth = np.clip(numbers.astype(float), -bound, bound).std()
    assert abs(answer.table["x"][0].as_py() - truth) <= 2 * answer.margins["x"][0] <= truth / 50
