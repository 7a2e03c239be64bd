"""Advice on a policy: it is charged, follows from released numbers, and becomes lines that a policy accepts."""

import tomllib
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.advise.unfinished_policy import load_unfinished
from discreet.kernel.loss import ZERO_LOSS
from discreet.policy import Policy
from discreet.publish.plan import PublicationPlan

POLICY = """
[data]
name = "visits"
protects = "patient"
version = "1"
ledger = "{ledger}"
[budget]
epsilon = 8
{delta}
[tables.visits]
source = "visits.parquet"
unit = "patient"
{bounds}
[tables.visits.columns]
patient = {{ type = "integer" }}
ward = {{ type = "text", in = ["A", "B", "C"] }}
cost = {{ type = "real" }}
age = {{ type = "integer"{age} }}
seen = {{ type = "date"{seen} }}
[tables.wards]
source = "wards.parquet"
public = true
"""
DELTA = "delta = 1e-6"


def visits(units=4_000):
    rng = np.random.default_rng(5)
    rows = np.minimum((rng.pareto(2, units) + 1).astype(int), 100)
    patient = np.repeat(np.arange(units), rows)
    days = np.datetime64("2022-03-10") + rng.integers(0, 800, len(patient))
    return pa.table(
        {
            "patient": patient,
            "ward": np.array(["A", "B", "C"])[rng.integers(0, 3, len(patient))],
            "cost": pa.array(rng.lognormal(4, 1, len(patient)), mask=rng.random(len(patient)) < 0.1),
            "age": 18 + patient * 7919 % 70,
            "seen": days,
        }
    )


DATA = visits()
WARDS = pa.table({"name": ["A", "B", "C"]})


def policy_text(delta="", bounds="", ledger=":memory:", age="", seen=""):
    return POLICY.format(delta=delta, bounds=bounds, ledger=ledger, age=age, seen=seen)


def opened(data=DATA, **more):
    return dc.open(Policy.parse(policy_text(**more)), data={"visits": data, "wards": WARDS})


@pytest.fixture(params=["", DELTA], ids=["pure", "delta"])
def curator(request):
    with opened(delta=request.param) as found:
        yield found


def amount(loss):
    return loss.rho if loss.epsilon is None else loss.epsilon


def spent(curator):
    return amount(curator.budget().spent)


def test_advice_costs_what_was_asked_and_asking_again_is_free(curator):
    asked = amount(dc.privacy.cost_of(curator.policy.budget, 2))
    advice = curator.advise(epsilon=2, by_columns=["ward"], columns=["cost"])
    assert spent(curator) == amount(advice.cost) == amount(advice.paid) == asked
    again = curator.advise(epsilon=2, by_columns=["ward"], columns=["cost"])
    assert (spent(curator), again.paid, again.cost) == (asked, ZERO_LOSS, advice.cost)
    assert again.toml() == advice.toml()
    assert "No charge: " in str(again)
    assert {event.id for event in curator.ledger.events()} == set(advice.receipts)
    curator.ledger.verify()


def test_a_plan_is_free_and_states_the_cost(curator):
    plan = curator.plan_advice(epsilon=1, by_columns=["ward", ""], columns=["cost", "age"])
    assert (spent(curator), curator.ledger.events()) == (0, [])
    assert plan.histograms == 2 + 2 * 2
    assert "6 histograms" in str(plan)
    assert amount(plan.cost) == amount(dc.privacy.cost_of(curator.policy.budget, 1))


def test_by_default_columns_without_a_range_are_advised_on():
    with opened(age=", between = [0, 120]") as curator:
        assert [each.column.name for each in curator.plan_advice(epsilon=1).columns] == ["cost", "seen"]
        named = curator.plan_advice("visits", epsilon=1, columns=["AGE"])
    assert [each.column.name for each in named.columns] == ["age"]


def test_nothing_but_released_numbers_decides(tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text(policy_text(ledger="l.sqlite"))
    pq.write_table(DATA, tmp_path / "visits.parquet")
    pq.write_table(WARDS, tmp_path / "wards.parquet")
    arguments = {"epsilon": 2, "by_columns": ["ward"], "columns": ["cost"]}
    with dc.open(policy) as curator:
        first = curator.advise(**arguments)
    pq.write_table(DATA.slice(0, 3), tmp_path / "visits.parquet")
    with dc.open(policy) as curator:
        second = curator.advise(**arguments)
    assert (str(second).rpartition("\n\n")[0], second.toml()) == (str(first).rpartition("\n\n")[0], first.toml())


@pytest.mark.long
def test_the_lines_make_a_policy_that_answers_sums_and_means(curator):
    advice = curator.advise(epsilon=4, by_columns=["ward"])
    lines = tomllib.loads(advice.toml())["tables"]["visits"]
    assert (lines["groups"], lines["rows"]) == (advice.bounds[0].bounds.groups, advice.bounds[0].bounds.rows)
    values = tomllib.loads(policy_text(delta=DELTA))
    table = values["tables"]["visits"]
    table |= {"groups": lines["groups"], "rows": lines["rows"]}
    table["columns"] |= lines["columns"]
    with dc.open(Policy.from_dict(values), data={"visits": DATA, "wards": WARDS}) as changed:
        answer = changed.ask("SELECT AVG(cost) AS m, SUM(age) AS s, MAX(seen) AS d FROM visits", epsilon=4)
    truth = np.nanmean(DATA["cost"].to_numpy())
    assert abs(answer.table["m"][0].as_py() - truth) < 0.3 * truth


def test_the_policy_gets_the_bounds_of_the_first_grouping_and_the_others_are_comments():
    with opened() as curator:
        advice = curator.advise(epsilon=2, by_columns=["ward", ""], columns=[])
        swapped = curator.advise(epsilon=2, by_columns=["", "ward"], columns=[])
    by_ward, total = advice.bounds
    assert tomllib.loads(advice.toml())["tables"]["visits"]["rows"] == by_ward.bounds.rows
    assert tomllib.loads(swapped.toml())["tables"]["visits"]["rows"] == total.bounds.rows != by_ward.bounds.rows
    assert f"ask with groups=1, rows={total.bounds.rows}" in advice.toml()
    assert swapped.paid == ZERO_LOSS


def test_the_lines_say_how_they_were_chosen_and_what_was_paid(curator):
    advice = curator.advise(epsilon=2, columns=["cost"])
    comments = " ".join(line.removeprefix("# ") for line in advice.toml().splitlines() if line.startswith("#"))
    assert "Chosen privately" in comments
    assert "epsilon 2" in comments
    assert all(receipt in comments for receipt in advice.receipts)


def test_the_range_of_integers_has_integers():
    with opened() as curator:
        (age,) = (each.column.domain for each in curator.advise(epsilon=3, columns=["age"]).ranges)
    assert (type(age.low), 0 <= age.low <= 18, 85 <= age.high <= 120) == (int, True, True)


def test_the_range_of_dates_has_whole_months():
    with opened() as curator:
        (seen,) = (each.column.domain for each in curator.advise(epsilon=3, columns=["seen"]).ranges)
    truth = DATA["seen"].to_pylist()
    assert seen.low <= min(truth)
    assert max(truth) <= seen.high
    assert seen.low.day == 1
    assert (seen.low.year, seen.high.year) == (2022, 2024)


def test_bounds_grow_with_the_cost_of_the_queries(curator):
    small = curator.advise(epsilon=2, columns=[], query_epsilon="1/50").bounds[0]
    large = curator.advise(epsilon=2, columns=[], query_epsilon=5).bounds[0]
    assert large.evidence.paid == ZERO_LOSS
    assert small.bounds.rows < large.bounds.rows
    assert small.radius(small.least_error) <= small.radius(small.bounds)


def test_forecasts_of_bias_fall_and_margins_rise_with_the_radius(curator):
    advice = curator.advise(epsilon=2, columns=[]).bounds[0]
    radii, biases = advice.bias(0.5)
    assert (np.diff(biases) <= 1e-9).all()
    assert (np.diff(advice.margin(radii)) > 0).all()
    norms = np.bincount(DATA["patient"].to_numpy())
    place = int(np.flatnonzero(radii >= 8)[0])
    true = np.maximum(norms - radii[place], 0).sum()
    assert 0.4 * true < biases[place] < 2.5 * true


def test_on_small_data_advice_says_that_it_cannot_tell(curator):
    with opened(visits(60), delta="delta = 1e-6" if curator.policy.budget.delta else "") as small:
        advice = small.advise(epsilon="1/10", columns=["cost"])
        assert advice.bounds[0].bounds.blind
        assert advice.ranges[0].chosen is None
        assert str(advice).count("cannot tell") == 2
        assert "or its values cannot be read, such as 12,5 or 31.12.2026." in " ".join(str(advice).split())
        assert tomllib.loads(advice.toml())["tables"]["visits"] == {"columns": {"cost": {"type": "real"}}}
        assert len(advice.receipts) == 2


def test_bins_are_written_as_a_publication_plan_has_them():
    with opened() as curator:
        advice = curator.advise(epsilon=4, columns=["age"])
    (line,) = (line for line in advice.toml().splitlines() if line.startswith("# bins"))
    plan = f"""
    [release]
    name = "v"
    epsilon = 1
    [synthetic.visits]
    table = "visits"
    columns = ["ward", "age"]
    {line.removeprefix("# ")}
    """
    (entry,) = PublicationPlan.parse(plan).synthetic.values()
    assert entry.bins == {"age": advice.ranges[0].chosen.bin_width}


def test_blind_advice_keeps_declared_bounds():
    with opened(visits(60), bounds="groups = 2\nrows = 7") as small:
        advice = small.advise(epsilon="1/10", columns=[])
    assert (advice.bounds[0].bounds.rows, advice.bounds[0].bounds.blind) == (7, True)
    assert "the declared bounds stay" in str(advice)
    assert tomllib.loads(advice.toml())["tables"]["visits"] == {}


def test_declared_groups_stay_if_no_grouping_is_named():
    with opened(bounds="groups = 2") as curator:
        lines = curator.advise(epsilon=2, columns=[]).toml()
    assert list(tomllib.loads(lines)["tables"]["visits"]) == ["rows"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": "wards"}, "table: .*private"),
        ({"columns": ["nosuch"]}, "columns: 'nosuch'"),
        ({"columns": ["ward"]}, "columns: 'ward'"),
        ({"columns": ["patient"]}, "columns: 'patient'"),
        ({"by_columns": ["nosuch"]}, "nosuch"),
        ({"by_columns": ["patient"]}, "GROUP BY"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 9}, "not enough budget"),
    ],
)
def test_what_cannot_be_advised_on_is_refused_before_a_charge(arguments, message):
    with opened() as curator:
        for method in (curator.plan_advice, curator.advise):
            with pytest.raises(dc.Refused, match=message):
                method(**{"epsilon": 1, **arguments})
        assert curator.ledger.events() == []


def test_stored_advice_needs_no_remaining_budget():
    with opened() as curator:
        curator.advise(epsilon=8, columns=["cost"])
        assert curator.budget().remaining.epsilon == 0
        assert curator.advise(epsilon=8, columns=["cost"]).paid == ZERO_LOSS


def test_days_of_people_can_be_the_unit():
    with opened(bounds='window = "1 day"\ntime = "seen"') as curator:
        advice = curator.advise(epsilon=3, by_columns=["ward"], columns=["age"])
        assert len(advice.bounds[0].evidence.buckets) == 2
        assert advice.bounds[0].bounds.rows <= 4


def test_single_rows_need_no_bounds():
    policy = Policy.from_dict(
        {
            "data": {"name": "v", "ledger": ":memory:"},
            "budget": {"epsilon": 5},
            "tables": {"v": {"source": "v", "unit": "row", "columns": {"cost": {"type": "real"}}}},
        }
    )
    with dc.open(policy, data={"v": DATA.select(["cost"])}) as curator:
        advice = curator.advise(epsilon=2)
        assert advice.bounds == ()
        assert len(advice.receipts) == 2
        assert "every row is a unit" in str(advice)
        assert tomllib.loads(advice.toml())
        with pytest.raises(dc.Refused, match="columns"):
            curator.advise(epsilon=1, columns=[])


def test_released_histograms_serve_automatic_bounds_and_have_the_whole_cost(curator):
    evidence = curator.contribution_histograms("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    assert amount(evidence.paid) == amount(dc.privacy.cost_of(curator.policy.budget, 1)) == spent(curator)
    answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1, groups="auto", rows="auto")
    assert "chosen automatically" in answer.bounds[-1]
    share = Fraction(19, 20) * amount(dc.privacy.cost_of(curator.policy.budget, 1))
    assert amount(answer.paid) == share
    assert len(curator.ledger.events()) == 2


@pytest.mark.parametrize("sql", ["SELECT name FROM wards", "SELECT AVG(QUANTILE) FROM visits", "SELECT 1"])
def test_other_queries_have_no_contribution_histogram(curator, sql):
    with pytest.raises(dc.Refused):
        curator.contribution_histograms(sql, epsilon=1)
    assert curator.ledger.events() == []


def test_a_policy_to_be_filled_in_is_read_as_far_as_advice_needs_it(tmp_path):
    file = tmp_path / "policy.toml"
    text = policy_text(bounds='groups = "FILL IN"\nrows = "FILL IN"', age=', between = ["FILL IN", "FILL IN"]')
    file.write_text(text)
    policy = load_unfinished(file)
    assert (policy.tables["visits"].groups, policy.base) == (None, tmp_path)
    assert policy == load_unfinished(_written(file, policy_text()))
    _written(file, text.replace("epsilon = 8", 'epsilon = "FILL IN"'))
    with pytest.raises(dc.PolicyError, match=r"line 8.*epsilon"):
        load_unfinished(file)


def _written(file, text):
    file.write_text(text)
    return file


@pytest.mark.long
def test_pictures_show_every_grouping_and_column(curator):
    figure = curator.advise(epsilon=2, by_columns=["", "ward"], columns=["cost", "seen"]).plot()
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles[:2] == ["visits, without GROUP BY", "visits, GROUP BY ward"]
    assert [title.partition(":")[0] for title in titles[2:]] == ["visits.cost", "visits.seen"]
