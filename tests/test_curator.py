"""End to end: a policy, a query, a private answer, and what must not happen."""

import gc
import json
import os
import re
from fractions import Fraction
from functools import cache

import duckdb
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest

import discreet as dc
from discreet.curator.curator import Curator
from discreet.curator.ledger_terms import policy_terms
from discreet.curator.open import engine_sources
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.totals_cache import TotalsCache
from discreet.ledger_sqlite import memory_ledger
from discreet.policy import Policy

POLICY = """
[data]
name = "shop"
version = "2026-11"
ledger = ":memory:"
[budget]
epsilon = 4.0
{delta}
[budget.analysts]
ana = {{ epsilon = 1.0, each = 0.25, tables = ["sales"] }}
bob = {{ epsilon = 0.5 }}
[tables.sales]
source = "sales.parquet"
unit = "customer"
groups = 2
rows = 5
rows_max = 1000000
[tables.sales.columns]
customer = {{ type = "integer" }}
city = {{ type = "text", in = ["Bonn", "Köln", "Trier"] }}
street = {{ type = "text" }}
amount = {{ type = "real", between = [0, 100] }}
pieces = {{ type = "integer", between = [0, 9] }}
time = {{ type = "timestamp", between = [2026-01-01, 2026-12-31] }}
[tables.staff]
source = "staff.parquet"
unit = "person"
groups = 1
rows = 1
[tables.staff.columns]
person = {{ type = "integer" }}
[tables.regions]
source = "regions.parquet"
public = true
"""
DELTA = "delta = 1e-6"


def tables(rows=600):
    cities = ["Bonn", "Köln", "Trier"]
    return {
        "sales": pa.table(
            {
                "customer": [i % 300 for i in range(rows)],
                "city": [cities[i % 2] for i in range(rows)],
                "street": ["Main" if i % 5 else f"lane {i}" for i in range(rows)],
                "amount": [float(i % 50) for i in range(rows)],
                "pieces": [i % 7 for i in range(rows)],
                "time": pa.array([1767225600000000 + i * 10**9 for i in range(rows)], pa.timestamp("us")),
            }
        ),
        "staff": pa.table({"person": [1, 2, 3]}),
        "regions": pa.table({"name": cities, "region": ["west", "west", "south"]}),
    }


class _SharedEngine(DuckDB):
    def close(self):
        """Stay open for the next test."""


@cache
def _usual_engine():
    policy = Policy.parse(POLICY.format(delta=""))
    return _SharedEngine(engine_sources(policy, tables()))


def opened_with_shared_engine(delta=""):
    """Open a curator of the usual data, with a ledger of its own; to open an engine takes longer than a query."""
    policy, engine = Policy.parse(POLICY.format(delta=delta)), _usual_engine()
    engine._totals_cache = TotalsCache(engine.tuning.totals_cache)
    return Curator(policy, engine, memory_ledger(**policy_terms(policy)))


def opened(delta="", data=None, **changes):
    text = POLICY.format(delta=delta)
    for old, new in changes.items():
        text = text.replace(old, new)
    return dc.open(Policy.parse(text), data=data or tables())


@pytest.fixture
def curator():
    with opened() as found:
        yield found


@pytest.fixture
def approximate():
    with opened(DELTA) as found:
        yield found


def test_a_count_is_private_with_a_margin_a_cost_and_a_receipt(curator):
    answer = curator.ask("SELECT COUNT(DISTINCT customer) AS n FROM sales", epsilon="1/2")
    assert answer.table.column_names == ["n"]
    assert answer.margin == dc.privacy.margin(dc.Laplace(2), "0.95")
    assert abs(answer.value - 300) < 100
    assert answer.loss.epsilon == Fraction(1, 2)
    assert answer.share == Fraction(1, 8)
    (event,) = curator.ledger.events()
    assert (event.id, event.state) == (answer.receipt.id, "released")
    assert json.loads(event.question)["version"] == "2026-11"


def test_the_requested_cost_is_charged_whatever_the_number_of_aggregates(curator):
    sql = "SELECT city, COUNT(*), SUM(amount), AVG(amount), VAR_SAMP(pieces), STDDEV(amount) FROM sales GROUP BY city"
    curator.ask(sql, epsilon="1/3")
    assert curator.budget().spent.epsilon == Fraction(1, 3)
    assert curator.budget().remaining.epsilon == Fraction(11, 3)


def test_the_cost_in_a_budget_with_a_delta_is_its_rho(approximate):
    answer = approximate.ask("SELECT COUNT(*) FROM sales", epsilon=1)
    assert answer.loss == dc.privacy.cost_of(approximate.policy.budget, 1)
    assert answer.loss.epsilon is None
    other = approximate.ask("SELECT COUNT(*) FROM sales WHERE pieces > 1", rho="1/1000")
    assert other.loss.rho == Fraction(1, 1000)


def test_a_refusal_states_the_largest_affordable_epsilon(approximate):
    approximate.ask("SELECT COUNT(*) FROM sales", epsilon=3)
    with pytest.raises(dc.Refused, match="largest affordable epsilon is") as refused:
        approximate.ask("SELECT COUNT(*) FROM sales WHERE pieces > 1", epsilon=4)
    most = re.search(r"epsilon is ([0-9.]+)\.$", str(refused.value))[1]
    assert float(most) > 1
    approximate.ask("SELECT COUNT(*) FROM sales WHERE pieces > 1", epsilon=most)
    assert float(approximate.budget().remaining.rho / approximate.budget().total.rho) < 0.02


def test_a_query_above_the_budget_is_refused_however_little_remains(approximate):
    remaining = approximate.budget().remaining.rho
    approximate.ask("SELECT COUNT(*) FROM sales", rho=remaining - Fraction(1, 10**30))
    with pytest.raises(dc.Refused, match="largest affordable epsilon is"):
        approximate.ask("SELECT COUNT(*) FROM sales WHERE pieces > 1", epsilon=1)


def test_the_remaining_budget_is_stated_only_if_the_cost_is_the_reason(approximate):
    approximate.ask("SELECT COUNT(*) FROM sales", epsilon=1, key="k")
    with pytest.raises(dc.Refused, match=r"^key: .*different query") as refused:
        approximate.ask("SELECT COUNT(pieces) FROM sales", epsilon=1, key="k")
    assert "affordable" not in str(refused.value)


def test_a_margin_of_exactly_zero_is_not_described_as_truncated():
    with opened(**{"epsilon = 4.0": "epsilon = 400"}) as curator:
        answer = curator.ask("SELECT COUNT(DISTINCT customer) AS n FROM sales", epsilon=100)
    assert answer.margins["n"] == [0.0]
    assert answer.notes == ()


def test_an_unknown_name_is_reported_before_row_level_selection(curator):
    with pytest.raises(dc.Refused, match=r"amont.*amount"):
        curator.ask("SELECT amont FROM sales", epsilon=1)
    with pytest.raises(dc.Refused, match="AGV"):
        curator.ask("SELECT AGV(amount) FROM sales", epsilon=1)


def test_declared_keys_are_all_shown_and_no_other(curator):
    answer = curator.ask("SELECT city, COUNT(*) AS n FROM sales GROUP BY city ORDER BY city", epsilon=1)
    assert answer.table["city"].to_pylist() == ["Bonn", "Köln", "Trier"]


def test_keys_of_a_single_person_are_not_shown_by_partition_selection(approximate):
    answer = approximate.ask("SELECT street, COUNT(*) AS n FROM sales GROUP BY street", epsilon=3)
    assert answer.table["street"].to_pylist() == ["Main"]
    assert answer.loss.delta == approximate.policy.budget.discover / 100


def test_an_answer_without_groups_names_the_threshold_that_none_reached(approximate):
    sql = "SELECT street, COUNT(*) AS n FROM sales {} GROUP BY street"
    empty = approximate.ask(sql.format("WHERE street LIKE 'lane%'"), epsilon=1)
    assert len(empty) == 0
    (sentence,) = (each for each in empty.left_out if "threshold" in each)
    assert sentence.startswith("No group reached the threshold of about 45 people; people in several groups")
    assert any("or 44.27 in the second" in each for each in empty.bounds)
    once = "SELECT k, COUNT(*) FROM (SELECT customer, COUNT(*) AS k FROM sales GROUP BY customer) AS c GROUP BY k"
    (sentence,) = (each for each in approximate.ask(once, epsilon="1/100").left_out if "threshold" in each)
    assert sentence.endswith(" people. More epsilon lowers it.")
    shown = approximate.ask(sql.format(""), epsilon=1).left_out
    assert any(each.startswith("Groups of fewer than about 45 people are left out, of totals too;") for each in shown)
    assert not any("threshold" in each for each in shown)


def test_rows_that_noisy_values_select_without_being_shown_are_marked_below_the_table(curator):
    sql = "SELECT city{} FROM sales GROUP BY city {}"
    for ending in ("HAVING COUNT(*) > 100", "ORDER BY COUNT(*) DESC LIMIT 1"):
        assert "selected by noisy values that are not shown" in " ".join(
            repr(curator.ask(sql.format("", ending), epsilon="1/4")).split()
        )
        shown = curator.ask(sql.format(", COUNT(*) AS n", ending), epsilon="1/4")
        assert not any("not shown" in each for each in shown.left_out)


def test_partition_selection_is_refused_on_a_pure_budget_with_a_hint(curator):
    with pytest.raises(dc.Refused, match=r"street.*delta"):
        curator.ask("SELECT street, COUNT(*) FROM sales GROUP BY street", epsilon=1)
    assert curator.budget().spent.epsilon == 0


@pytest.mark.long
def test_the_hundredth_query_is_affordable_and_the_next_is_refused():
    with opened(**{"epsilon = 4.0": "epsilon = 1.0", "0.5 }": "0.5 }"}) as curator:
        for number in range(100):
            curator.ask(f"SELECT COUNT(*) FROM sales WHERE amount < {number}", epsilon="1/100")
        with pytest.raises(dc.Refused, match="not enough budget left"):
            curator.ask("SELECT COUNT(*) FROM sales", epsilon="1/100")


def test_analysts_have_their_own_budget_access_and_default_cost(curator):
    assert curator.ask("SELECT COUNT(*) FROM sales", by="ana").loss.epsilon == Fraction(1, 4)
    with pytest.raises(dc.Refused, match="staff"):
        curator.ask("SELECT COUNT(*) FROM staff", by="ana", epsilon="1/10")
    with pytest.raises(dc.Refused, match="has no access"):
        curator.ask("SELECT COUNT(*) FROM sales", by="eve", epsilon="1/10")
    with pytest.raises(dc.Refused, match="has no access"):
        curator.explain("SELECT COUNT(*) FROM sales", by="eve", epsilon="1/10")
    with pytest.raises(dc.Refused, match="epsilon"):
        curator.ask("SELECT COUNT(*) FROM sales", by="bob")
    with pytest.raises(dc.Refused, match="not enough budget left"):
        curator.ask("SELECT COUNT(*) FROM sales WHERE pieces > 1", by="bob", epsilon="0.6")
    assert curator.budget("ana").spent.epsilon == Fraction(1, 4)


def test_explaining_is_free_and_reads_no_data(curator, monkeypatch):
    monkeypatch.setattr(type(curator._engine), "totals", lambda *_: pytest.fail("read"))
    said = curator.explain("SELECT city, COUNT(*) AS n, AVG(amount) AS a FROM sales GROUP BY city", epsilon=1)
    assert [column.name for column in said.columns] == ["n", "a"]
    assert said.columns[0].margin > 0
    assert "sales" in said.sql
    assert curator.ledger.events() == []


def test_explain_states_the_margin_that_ask_gives(curator):
    sql = "SELECT city, COUNT(*) AS n, SUM(pieces) AS s FROM sales GROUP BY city"
    said, answer = curator.explain(sql, epsilon=1), curator.ask(sql, epsilon=1)
    assert {column.name: [column.margin] * 3 for column in said.columns} == answer.margins


def test_options_in_the_query_set_the_cost_the_bounds_and_delta(approximate):
    options = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2, delta=1e-8, max_groups_contributed=1)"
    answer = approximate.ask(f"{options} street, COUNT(*) AS n FROM sales GROUP BY street")
    assert answer.loss.rho == dc.privacy.cost_of(approximate.policy.budget, 2).rho
    assert answer.loss.delta == Fraction(1, 10**8)
    assert any("in 1 group" in sentence for sentence in answer.bounds)
    with pytest.raises(dc.Refused, match=r"^OPTIONS: .*already given by epsilon"):
        approximate.ask(f"{options} COUNT(*) FROM sales", epsilon=1)
    with pytest.raises(dc.Refused, match="privacy_unit_column"):
        approximate.ask(f"{options[:-1]}, privacy_unit_column=pieces) COUNT(*) FROM sales")
    with pytest.raises(dc.Refused, match="WITHIN"):
        approximate.ask("SELECT COUNT(*) FROM sales WITHIN 50", epsilon=1)
    with pytest.raises(dc.Refused, match="EXPLAIN"):
        approximate.ask("EXPLAIN SELECT COUNT(*) FROM sales", epsilon=1)


def test_the_same_key_gives_the_same_answer_and_is_charged_once(curator):
    first = curator.ask("SELECT city, COUNT(*) AS n FROM sales GROUP BY city", epsilon=1, key="k")
    again = curator.ask("SELECT city, COUNT(*) AS n FROM sales GROUP BY city", epsilon=1, key="k")
    assert first.table == again.table
    assert first.margins == again.margins
    assert curator.budget().spent.epsilon == 1
    with pytest.raises(dc.Refused, match=r"^key: .*different query"):
        curator.ask("SELECT city, COUNT(*) AS n FROM sales GROUP BY city", epsilon="1/2", key="k")


def test_a_failure_is_charged_and_discloses_nothing_and_three_suspend_the_data_set(curator, monkeypatch, caplog):
    canary = "canary-4711"

    def burst(*_):
        raise RuntimeError(canary)

    monkeypatch.setattr(type(curator._engine), "totals", burst)
    for number in range(3):
        with pytest.raises(dc.Failed) as failed:
            curator.ask("SELECT COUNT(*) FROM sales", epsilon="1/10")
        assert canary not in str(failed.value)
        assert failed.value.__context__ is None
        assert curator.budget().spent.epsilon == Fraction(number + 1, 10)
    assert canary in caplog.text  # the owner's log has it
    with pytest.raises(dc.Refused, match="failed queries"):
        curator.ask("SELECT COUNT(*) FROM sales", epsilon="1/10")
    monkeypatch.undo()
    curator.ledger.acknowledge()
    assert curator.ask("SELECT COUNT(DISTINCT customer) FROM sales", epsilon=1).value > 200


@pytest.mark.parametrize("change", ["removed", "rewritten"])
def test_a_file_that_is_not_the_one_that_was_opened_costs_nothing(tmp_path, change):
    for name, table in tables().items():
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
    with dc.open(Policy.parse(POLICY.format(delta=""), base=tmp_path)) as curator:
        place = tmp_path / "sales.parquet"
        if change == "removed":
            place.unlink()
        else:
            os.utime(place, ns=(10**18, 10**18))
        for _ in range(4):  # more than the failures that would stop the data set
            with pytest.raises(dc.Refused, match="Nothing was charged") as refused:
                curator.ask("SELECT COUNT(*) AS n FROM sales", epsilon=1)
            assert "sales.parquet" not in str(refused.value)  # a path may hold a value
        assert curator.budget().spent.epsilon == 0


def test_a_policy_with_another_unit_is_not_opened_on_the_same_ledger(tmp_path):
    text = POLICY.format(delta="").replace(":memory:", str(tmp_path / "ledger.sqlite"))
    with dc.open(Policy.parse(text), data=tables()) as curator:
        curator.ask("SELECT COUNT(*) FROM sales", epsilon=1)
    with pytest.raises(dc.PolicyError, match="unit"):
        dc.open(Policy.parse(text.replace('unit = "customer"', 'unit = "pieces"')), data=tables())
    with dc.open(Policy.parse(text.replace("epsilon = 4.0", "epsilon = 5.0")), data=tables()) as curator:
        assert curator.budget().total.epsilon == 5
        assert curator.budget().spent.epsilon == 1


def test_post_processing_runs_on_noisy_numbers(curator):
    sql = """
        WITH cities AS (SELECT city, COUNT(*) AS n, COUNT(*) FILTER (WHERE pieces > 3) AS many FROM sales GROUP BY city)
        SELECT city, 100.0 * many / n AS share, RANK() OVER (ORDER BY n DESC) AS place FROM cities
        WHERE n > 100 ORDER BY share DESC LIMIT 2
    """
    answer = curator.ask(sql, epsilon=3)
    assert answer.table.column_names == ["city", "share", "place"]
    assert len(answer) == 2
    assert all(margin > 0 for margin in answer.margins["share"])
    assert any("selected by noisy values" in note for note in answer.notes)


def test_a_truncated_ratio_is_distinguished_from_an_exact_number(curator):
    answer = curator.ask("SELECT COUNT(*) / (COUNT(*) + 5000) AS none FROM sales", epsilon=2)
    assert answer.margins["none"] == [0.0]
    assert any("truncates" in note for note in answer.notes)


@pytest.mark.long
def test_means_variances_and_joins_are_near_the_truth(approximate):
    data = tables()
    connection = duckdb.connect()
    for name, table in data.items():
        connection.register(name, table)
    for sql in (
        "SELECT AVG(amount) FROM sales",
        "SELECT STDDEV(amount) FROM sales",
        "SELECT region, COUNT(*) FROM sales JOIN regions ON city = name GROUP BY region ORDER BY region DESC",
        "SELECT AVG(CLIP(n, 0, 10)) FROM (SELECT customer, COUNT(*) AS n FROM sales GROUP BY customer) AS c",
        "SELECT COUNT(*) FROM sales WHERE customer IN (SELECT customer FROM sales WHERE pieces = 6)",
        "SELECT date_trunc('month', time) AS m, SUM(pieces) FROM sales GROUP BY m ORDER BY m LIMIT 1",
    ):
        truth = connection.sql(sql.replace("CLIP(n, 0, 10)", "n")).fetchall()
        answer = approximate.ask(sql, epsilon=1, groups=12, rows=6)
        margins = list(answer.margins.values())[-1]
        for (*_, true), row, margin in zip(truth, answer, margins, strict=False):
            assert abs(row[-1] - true) <= 4 * margin, sql


def test_no_value_of_the_data_is_in_a_refusal(curator):
    canaries = ("lane 5", "Main")
    for sql in (
        "SELECT nothing FROM sales",
        "SELECT street FROM sales",
        "SELECT * FROM sales LIMIT 5",
        "SELECT MAX(street) FROM sales",
    ):
        with pytest.raises(dc.Refused) as refused:
            curator.ask(sql, epsilon=1)
        assert not any(canary in str(refused.value) for canary in canaries)
        assert re.match(r"line \d", str(refused.value))


@pytest.mark.long
def test_a_closed_curator_releases_all_resources():
    curator = opened()
    curator.close()
    curator.close()
    with pytest.raises(dc.LedgerError):
        curator.ask("SELECT COUNT(*) FROM sales", epsilon=1)
    gc.collect()


def test_texts_that_double_from_step_to_step_are_refused_before_the_charge(curator):
    steps = ", ".join(f"a{i} AS (SELECT customer, s || s AS s FROM a{i - 1})" for i in range(1, 16))
    sql = f"WITH a0 AS (SELECT customer, street AS s FROM sales), {steps} SELECT COUNT(*) FROM a15 WHERE s > 'x'"
    with pytest.raises(dc.Refused, match="too long"):
        curator.ask(sql, epsilon=1)
    assert curator.ledger.events() == []


def test_joins_that_explode_are_refused_before_the_charge():
    data = tables()
    data["regions"] = pa.table({"name": ["Bonn"] * 400, "region": ["west"] * 400})
    with opened(data=data) as curator:
        for sql in (
            "SELECT COUNT(*) FROM sales JOIN regions AS a ON city = a.name JOIN regions AS b ON city = b.name",
            "SELECT COUNT(*) FROM sales, regions AS a, regions AS b",
            "WITH a AS (SELECT customer FROM sales, regions) SELECT COUNT(*) FROM a JOIN a AS b USING (customer)",
        ):
            with pytest.raises(dc.Refused, match=r"JOIN: .*160,000 rows; the limit is 1,000"):
                curator.ask(sql, epsilon=1)
        assert curator.ledger.events() == []


@pytest.mark.parametrize(
    "wrong",
    [{"rows": 0}, {"groups": -1}, {"rows": True}, {"rows": 1 << 43}, {"key": ""}, {"by": []}, {"epsilon": "1e-300"}]
    + [{"epsilon": value} for value in (0, -1, float("nan"), float("inf"), True, "much", None)],
    ids=str,
)
def test_wrong_arguments_are_refused_by_name(curator, wrong):
    with pytest.raises(dc.Refused) as refused:
        curator.ask("SELECT COUNT(*) FROM sales", **{"epsilon": 1, **wrong})
    assert str(refused.value).startswith(next(iter(wrong)))
    assert curator.ledger.events() == []


def test_neighbouring_data_give_the_same_metadata():
    data = tables()
    less = {**data, "sales": data["sales"].filter(pa.compute.not_equal(data["sales"]["customer"], 7))}
    sql = "SELECT city, COUNT(*) AS n, AVG(amount) AS a FROM sales GROUP BY city"
    with opened(data=data) as one, opened(data=less) as other:
        assert repr(one.explain(sql, epsilon=1)) == repr(other.explain(sql, epsilon=1))
        answers = [curator.ask(sql, epsilon=1) for curator in (one, other)]
        assert answers[0].table.schema == answers[1].table.schema
        assert answers[0].table["city"] == answers[1].table["city"]
        assert answers[0].margins["n"] == answers[1].margins["n"]
        assert answers[0].bounds == answers[1].bounds  # `touched` has a noisy number, paid for like the others
        assert one.budget() == other.budget()
