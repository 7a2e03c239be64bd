"""Asking again costs nothing: the ledger has the answer, whoever asked, however it was written."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dc
from discreet.curator import plan_cache, query_releases
from discreet.curator.plan_cache import PlanCache
from discreet.engines.table_source import EngineError
from discreet.kernel.loss import ZERO_LOSS
from discreet.policy import Policy

sys.path.insert(0, str(Path(__file__).parent))
from kernel.ledger_locations import FilePlace
from test_curator import DELTA, POLICY, opened, opened_with_shared_engine, tables

COUNT = "SELECT COUNT(*) AS n FROM sales"
BY_CITY = "SELECT city, COUNT(*) AS n, SUM(pieces) AS s FROM sales GROUP BY city"


@pytest.fixture(params=["", DELTA], ids=["pure", "delta"])
def curator(request):
    with opened_with_shared_engine(request.param) as found:
        yield found


def bytes_of(answer):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, answer.table.schema) as writer:
        writer.write_table(answer.table)
    return sink.getvalue().to_pybytes()


@pytest.mark.long
def test_three_hundred_repeats_cost_nothing_and_return_the_same_bytes(curator):
    first = curator.ask(BY_CITY, epsilon="1/2")
    spent, events = curator.budget().spent, curator.ledger.events()
    for _ in range(300):
        again = curator.ask(BY_CITY, epsilon="1/2")
        assert bytes_of(again) == bytes_of(first)
        assert (again.margins, again.receipt, again.loss) == (first.margins, first.receipt, first.loss)
        assert again.paid == ZERO_LOSS
    assert (curator.budget().spent, curator.ledger.events()) == (spent, events)
    assert first.paid == first.loss


@pytest.mark.parametrize(
    "other",
    [
        "select\n  count( * )  from SALES",
        "SELECT COUNT(*) FROM sales AS x",
        "WITH a AS (SELECT * FROM sales) SELECT COUNT(*) AS people FROM a",
        "SELECT COUNT(*) AS n FROM sales ORDER BY n LIMIT 1",
    ],
)
def test_spelling_does_not_matter(curator, other):
    first = curator.ask(COUNT, epsilon="1/2")
    again = curator.ask(other, epsilon="1/2")
    assert (again.value, again.paid) == (first.value, ZERO_LOSS)


def test_post_processing_does_not_affect_caching(curator):
    first = curator.ask(COUNT, epsilon="1/2")
    half = curator.ask("SELECT COUNT(*) / 2.0 FROM sales", epsilon="1/2")
    assert half.value == first.value / 2
    assert half.margin == pytest.approx(first.margin / 2, rel=0.2)
    assert curator.budget().spent == first.loss


def test_the_order_of_aggregates_does_not_matter_and_a_subset_is_free_too(curator):
    first = curator.ask(BY_CITY, epsilon="1/2")
    turned = curator.ask("SELECT SUM(pieces) AS s, city, COUNT(*) AS n FROM sales GROUP BY city", epsilon="1/2")
    alone = curator.ask("SELECT city, COUNT(*) AS n FROM sales GROUP BY city", epsilon="1/10")
    assert turned.table.select(["city", "n", "s"]) == first.table
    assert alone.table == first.table.select(["city", "n"])
    assert alone.margins["n"] == first.margins["n"]
    assert curator.budget().spent == first.loss


def test_only_the_new_part_of_a_query_is_charged(curator):
    first = curator.ask("SELECT city, COUNT(*) AS n FROM sales GROUP BY city", epsilon="1/2")
    both = curator.ask(BY_CITY, epsilon="1/2")
    assert both.table["n"] == first.table["n"]
    assert ZERO_LOSS.rho < both.paid.rho < dc.privacy.cost_of(curator.policy.budget, "1/2").rho
    assert curator.budget().spent.rho == first.paid.rho + both.paid.rho
    assert " ".join(repr(both).split()).count(": partly reused from earlier answers, full cost epsilon ") == 1


def test_a_lower_cost_is_served_by_the_more_accurate_answer(curator):
    first = curator.ask(COUNT, epsilon="1/2")
    again = curator.ask(COUNT, epsilon="1/100")
    assert (again.value, again.margin, again.loss) == (first.value, first.margin, first.loss)


def test_cached_answers_are_shared_but_access_is_checked(curator):
    first = curator.ask(COUNT, by="ana", epsilon="1/4")
    assert curator.ask(COUNT, by="bob", epsilon="1/4").value == first.value
    assert curator.budget("bob").spent == ZERO_LOSS
    curator.ask("SELECT COUNT(*) FROM staff", epsilon="1/4")
    with pytest.raises(dc.Refused, match="staff"):
        curator.ask("SELECT COUNT(*) FROM staff", by="ana", epsilon="1/4")
    with pytest.raises(dc.Refused, match="'eve' has no access"):
        curator.ask(COUNT, by="eve", epsilon="1/4")


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 4},
        {"groups": 1, "sql": BY_CITY},
        {"sql": f"{COUNT} WHERE pieces > 1"},
        {"sql": "SELECT COUNT(city) FROM sales"},
    ],
    ids=str,
)
def test_other_bounds_rows_or_values_are_another_query(curator, change):
    curator.ask(COUNT, epsilon="1/4")
    curator.ask(BY_CITY, epsilon="1/4")
    other = curator.ask(**{"sql": COUNT, "epsilon": "1/4", **change})
    assert other.paid != ZERO_LOSS


@pytest.mark.long
def test_another_version_of_the_data_is_another_question(tmp_path):
    text = POLICY.format(delta="").replace(":memory:", str(tmp_path / "ledger.sqlite"))
    with dc.open(Policy.parse(text), data=tables()) as curator:
        first = curator.ask(COUNT, epsilon="1/2")
    # The same version with other rows: what is stored is keyed by the owner's word, never by content.
    with dc.open(Policy.parse(text), data=tables(rows=60)) as curator:
        assert curator.ask(COUNT, epsilon="1/2").value == first.value
    with dc.open(Policy.parse(text.replace("2026-11", "2026-12")), data=tables(rows=60)) as curator:
        other = curator.ask(COUNT, epsilon="1/2")
        assert other.paid == other.loss
        assert curator.budget().spent.epsilon == 1
        curator.ledger.verify()


def test_a_repeat_reads_no_data_and_is_served_while_the_data_set_is_suspended(curator, monkeypatch):
    first = curator.ask(COUNT, epsilon="1/10")
    monkeypatch.setattr(type(curator._engine), "totals", lambda *_: 1 / 0)
    for number in range(3):
        with pytest.raises(dc.Failed):
            curator.ask(f"{COUNT} WHERE pieces > {number}", epsilon="1/10")
    with pytest.raises(dc.Refused, match="suspended after 3 failed queries"):
        curator.ask("SELECT COUNT(city) FROM sales", epsilon="1/10")
    assert curator.ask(COUNT, epsilon="1/10").value == first.value


def test_explain_says_that_it_is_free_and_reads_only_the_ledger(curator, monkeypatch):
    assert repr(curator.explain(COUNT, epsilon="1/2")).startswith("Would cost")
    answer = curator.ask(COUNT, epsilon="1/2")
    monkeypatch.setattr(type(curator._engine), "totals", lambda *_: pytest.fail("read"))
    said = curator.explain(COUNT, epsilon="1/4")
    assert repr(said).startswith("No charge: the answer is cached")
    assert said.columns[0].margin == answer.margin
    assert (said.paid, said.cost.loss) == (ZERO_LOSS, answer.loss)
    assert said.to_dict()["paid"]["epsilon"] == 0


def test_the_answer_says_that_nothing_was_charged(curator):
    first, again = (curator.ask(COUNT, epsilon="1/2") for _ in range(2))
    assert "no charge" not in repr(first)
    assert "No charge: cached answer, which cost epsilon " in " ".join(repr(again).split())
    assert "No charge: cached answer" in again._repr_html_()


def test_a_key_keeps_its_answer_also_when_there_is_a_better_one(curator):
    first = curator.ask(COUNT, epsilon="1/2", key="k")
    better = curator.ask(COUNT, epsilon=1)
    again = curator.ask(COUNT, epsilon="1/2", key="k")
    assert bytes_of(again) == bytes_of(first)
    assert (again.margin, again.receipt.id, again.paid) == (first.margin, first.receipt.id, ZERO_LOSS)
    assert curator.ask(COUNT, epsilon="1/2").value == better.value
    with pytest.raises(dc.Refused, match=r"^key: "):
        curator.ask(BY_CITY, epsilon="1/2", key="k")
    with pytest.raises(dc.Refused, match=r"^key: "):
        curator.ask(COUNT, epsilon="3/4", key="k")
    assert curator.ask(COUNT, epsilon="1/2", key="k", by="bob").value == better.value  # a key is its analyst's own


def test_a_key_of_a_question_that_has_another_meaning_now_is_refused(tmp_path):
    """The text, the limits and the version are the same; the owner has listed one more value."""
    rows, asked = pa.table({"who": [1, 2], "ward": ["A", "B"]}), "SELECT ward, COUNT(*) AS n FROM data GROUP BY ward"
    words = {"unit": "who", "budget": 4, "groups": 1, "rows": 1, "ledger": tmp_path / "ledger.sqlite", "name": "wards"}
    with dc.open(rows, columns={"ward": ["A", "B"]}, **words) as curator:
        curator.ask(asked, epsilon=1, key="k")
    with dc.open(rows, columns={"ward": ["A", "B", "C"]}, **words) as curator:
        with pytest.raises(dc.Refused, match=r"^key: "):
            curator.ask(asked, epsilon=1, key="k")
        assert curator.budget().spent.epsilon == 1
        assert curator.ask(asked, epsilon=1, key="other").paid.epsilon == 1


def test_a_total_that_two_parts_of_a_query_need_is_drawn_once(curator):
    sql = """
        SELECT a.n, b.n AS again, b.s FROM (SELECT COUNT(*) AS n FROM sales) AS a,
            (SELECT COUNT(*) AS n, SUM(pieces) AS s FROM sales) AS b
    """
    answer = curator.ask(sql, epsilon=1)
    assert answer.table["n"] == answer.table["again"]
    assert curator.budget().spent.rho <= dc.privacy.cost_of(curator.policy.budget, 1).rho
    assert curator.ask(sql, epsilon=1).table == answer.table


def test_partition_selection_and_quantiles_are_cached_too():
    with opened(DELTA) as curator:
        for sql in ("SELECT street, COUNT(*) AS n FROM sales GROUP BY street", "SELECT MEDIAN(amount) AS m FROM sales"):
            first = curator.ask(sql, epsilon=1)
            again = curator.ask(sql, epsilon="1/2")
            assert (again.table, again.margins, again.paid) == (first.table, first.margins, ZERO_LOSS)
        other = curator.ask("SELECT QUANTILE_CONT(amount, 0.9) AS m FROM sales", epsilon="1/2")
        assert other.paid == other.loss  # another walk in the tree saw other counts


@pytest.mark.long
def test_an_answer_outlives_its_process(tmp_path):
    text = POLICY.format(delta=DELTA).replace(":memory:", str(tmp_path / "ledger.sqlite"))
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import discreet as dc; from test_curator import tables; from discreet.policy import Policy
with dc.open(Policy.parse({text!r}), data=tables()) as curator:
    answer = curator.ask({BY_CITY!r}, epsilon=1)
    print(answer.table.to_pylist(), answer.margins, answer.receipt.id)
"""
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout


@pytest.mark.long
def test_contribution_bounds_mean_the_same_in_python_on_the_command_line_and_in_the_query(tmp_path):
    text = POLICY.format(delta="").replace(":memory:", str(tmp_path / "ledger.sqlite"))
    for name, table in tables().items():
        pa.parquet.write_table(table, tmp_path / f"{name}.parquet")
    policy = tmp_path / "policy.toml"
    policy.write_text(text)
    with dc.open(policy) as curator:
        first = curator.ask(BY_CITY, epsilon="1/2", groups=1, rows=3)
        options = (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, max_groups_contributed=1, max_rows_contributed=3)"
        )
        again = curator.ask(BY_CITY.replace("SELECT", options))
        assert (again.table, again.paid, again.bounds) == (first.table, ZERO_LOSS, first.bounds)
        assert curator.ask(BY_CITY, epsilon="1/2").bounds != first.bounds
        spent = curator.budget().spent.epsilon
    command = [sys.executable, "-c", "from discreet.cli import app; app()", "ask", str(policy), BY_CITY]
    more = ["--epsilon", "1/2", "--groups", "1", "--rows", "3"]
    run = subprocess.run([*command, *more], capture_output=True, text=True, check=True)
    assert "No charge: cached answer" in " ".join(run.stdout.split())
    with dc.open(policy) as curator:
        assert curator.budget().spent.epsilon == spent == Fraction(1)


SAME = {
    "keys": (
        "SELECT city, pieces, COUNT(*) AS n FROM sales GROUP BY city, pieces",
        "SELECT city, pieces, COUNT(*) AS n FROM sales GROUP BY pieces, city",
    ),
    "columns": (
        "SELECT city, pieces, COUNT(*) AS n, SUM(amount) AS s FROM sales GROUP BY 1, 2",
        "SELECT SUM(amount) AS s, pieces, COUNT(*) AS n, city FROM sales GROUP BY pieces, city",
    ),
    "columns beside a quantile": (
        "SELECT city, MEDIAN(amount) AS half, COUNT(*) AS n, MAX(amount) AS most FROM sales GROUP BY city",
        "SELECT MAX(amount) AS most, COUNT(*) AS n, city, MEDIAN(amount) AS half FROM sales GROUP BY city",
    ),
    "columns beside different values and a choice": (
        "SELECT COUNT(DISTINCT street) AS a, MODE(city) AS b, SUM(pieces) AS c FROM sales",
        "SELECT SUM(pieces) AS c, MODE(city) AS b, COUNT(DISTINCT street) AS a FROM sales",
    ),
    "and": (
        "SELECT COUNT(*) AS n FROM sales WHERE pieces > 2 AND city = 'Bonn' AND amount < 9",
        "SELECT COUNT(*) AS n FROM sales WHERE amount < 9 AND (city = 'Bonn' AND pieces > 2) AND pieces > 2",
    ),
    "or": (
        "SELECT COUNT(*) AS n FROM sales WHERE pieces > 2 OR city = 'Bonn' OR amount < 9",
        "SELECT COUNT(*) AS n FROM sales WHERE 9 > amount OR ('Bonn' = city OR 2 < pieces)",
    ),
    "filter": (
        "SELECT COUNT(*) FILTER (WHERE pieces > 2 AND city = 'Bonn') AS n FROM sales",
        "SELECT COUNT(*) FILTER (WHERE city = 'Bonn' AND pieces > 2) AS n FROM sales",
    ),
    "lists": (
        "SELECT COUNT(*) AS n FROM sales WHERE city IN ('Bonn', 'Trier')",
        "SELECT COUNT(*) AS n FROM sales WHERE city IN ('Trier', 'Bonn', 'Trier')",
    ),
    "between": (
        "SELECT COUNT(*) AS n FROM sales WHERE pieces BETWEEN 2 AND 4",
        "SELECT COUNT(*) AS n FROM sales WHERE pieces <= 4 AND pieces >= 2",
    ),
    "operands": ("SELECT SUM(pieces * amount) AS n FROM sales", "SELECT SUM(amount * pieces) AS n FROM sales"),
    "conditions outside and inside": (
        "SELECT COUNT(*) AS n FROM (SELECT * FROM sales WHERE pieces > 2) AS t WHERE city = 'Bonn'",
        "SELECT COUNT(*) AS n FROM sales WHERE city = 'Bonn' AND pieces > 2",
    ),
    "aliases": (
        "SELECT twice, COUNT(*) AS n FROM (SELECT pieces * 2 AS twice FROM sales) AS t GROUP BY twice",
        "WITH a AS (SELECT 2 * pieces AS b FROM sales) SELECT b AS twice, COUNT(*) AS n FROM a GROUP BY b",
    ),
    "aliases of tables": (
        "SELECT COUNT(*) AS n FROM sales AS a JOIN sales AS b ON a.customer = b.customer AND a.pieces < b.pieces",
        "SELECT COUNT(*) AS n FROM sales AS x JOIN sales AS y ON x.pieces < y.pieces AND y.customer = x.customer",
    ),
    "aliases of public tables": (
        "SELECT r.region, COUNT(*) AS n FROM sales JOIN regions AS r ON city = r.name GROUP BY r.region",
        "SELECT q.region, COUNT(*) AS n FROM sales JOIN regions AS q ON q.name = city GROUP BY q.region",
    ),
    "order in a subquery per unit": (
        """SELECT COUNT(*) AS n
            FROM (SELECT customer, SUM(pieces) AS p, COUNT(*) AS k FROM sales GROUP BY 1) AS t WHERE p > k""",
        """SELECT COUNT(*) AS n
            FROM (SELECT COUNT(*) AS a, SUM(pieces) AS b, customer FROM sales GROUP BY 3) AS u WHERE a < b""",
    ),
    "keys of a subquery per unit": (
        "SELECT COUNT(*) AS n FROM (SELECT customer, city, pieces FROM sales GROUP BY customer, city, pieces) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT customer, city, pieces FROM sales GROUP BY pieces, customer, city) AS t",
    ),
    "columns of a union": (
        """SELECT SUM(a) AS n FROM (SELECT pieces AS a, city AS b FROM sales UNION ALL SELECT 1, city FROM sales) AS t
            WHERE b = 'Bonn'""",
        """SELECT SUM(y) AS n FROM (SELECT city AS x, pieces AS y FROM sales UNION ALL SELECT city, 1 FROM sales) AS u
            WHERE x = 'Bonn'""",
    ),
    "units with other rows": (
        """SELECT COUNT(*) AS n FROM sales WHERE customer IN (SELECT customer FROM sales WHERE pieces > 5)
            AND customer NOT IN (SELECT customer FROM sales WHERE amount > 9) AND city = 'Bonn'""",
        """SELECT COUNT(*) AS n FROM sales WHERE customer NOT IN (SELECT customer FROM sales WHERE amount > 9)
            AND city = 'Bonn' AND customer IN (SELECT customer FROM sales WHERE pieces > 5)""",
    ),
    "releases of one query": (
        """SELECT (SELECT COUNT(*) FROM sales) AS a, (SELECT SUM(pieces) FROM sales) AS b,
            (SELECT COUNT(city) FROM sales) AS c""",
        """SELECT (SELECT COUNT(city) FROM sales) AS c, (SELECT SUM(pieces) FROM sales) AS b,
            (SELECT COUNT(*) FROM sales) AS a""",
    ),
}


def by_key(answer):
    """Return the rows of an answer, whatever the order of its rows and columns."""
    rows = [dict(sorted(row.items())) for row in answer.table.to_pylist()]
    return sorted(rows, key=repr)


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_an_equivalent_query_is_free(curator, one, other):
    first = curator.ask(one, epsilon="1/2")
    again = curator.ask(other, epsilon="1/2")
    assert (again.paid, by_key(again)) == (ZERO_LOSS, by_key(first))
    assert again.margins.keys() == first.margins.keys()
    assert [sorted(map(repr, again.margins[name])) for name in first.margins] == [
        sorted(map(repr, margins)) for margins in first.margins.values()
    ]


def test_rows_follow_the_order_of_the_keys_as_written_even_from_the_cache(curator):
    asked = "SELECT city, pieces, COUNT(*) AS n FROM sales GROUP BY {}"
    one, other = (curator.ask(asked.format(keys), epsilon="1/2") for keys in ("city, pieces", "pieces, city"))
    cities, pieces = ["Bonn", "Köln", "Trier"], range(10)
    assert [(row["city"], row["pieces"]) for row in one.table.to_pylist()] == [(c, p) for c in cities for p in pieces]
    assert [(row["city"], row["pieces"]) for row in other.table.to_pylist()] == [(c, p) for p in pieces for c in cities]
    assert by_key(one) == by_key(other)


def test_partition_selection_is_the_same_in_any_order_of_the_keys():
    asked = "SELECT city, street, COUNT(*) AS n FROM sales GROUP BY {}"
    with opened(DELTA) as curator:
        one, other = (curator.ask(asked.format(keys), epsilon=2) for keys in ("city, street", "street, city"))
        assert one.table.num_rows > 1
        assert (by_key(one), other.paid) == (by_key(other), ZERO_LOSS)
        for answer, keys in ((one, ("city", "street")), (other, ("street", "city"))):
            shown = [tuple(row[key] for key in keys) for row in answer.table.to_pylist()]
            assert shown == sorted(shown)


def test_a_refined_answer_in_another_order_of_keys_costs_the_difference(curator):
    asked = "SELECT city, pieces, COUNT(*) AS n FROM sales GROUP BY {}"
    coarse = curator.ask(asked.format("city, pieces"), epsilon="1/2")
    fine = curator.ask(asked.format("pieces, city"), epsilon=1)
    whole, paid = dc.privacy.cost_of(curator.policy.budget, 1), (coarse.paid, fine.paid)
    if whole.epsilon is None:
        assert sum(each.rho for each in paid) == whole.rho
    else:
        assert sum(each.epsilon for each in paid) == whole.epsilon
    assert fine.margins["n"][0] < coarse.margins["n"][0]


@pytest.mark.parametrize(
    "other",
    [
        "SELECT COUNT(*) AS n FROM sales WHERE pieces > 2 OR city = 'Bonn'",
        "SELECT COUNT(*) AS n FROM sales WHERE pieces > 2 AND NOT city = 'Bonn'",
        "SELECT COUNT(*) AS n FROM sales WHERE 2 > pieces AND city = 'Bonn'",
        "SELECT COUNT(*) AS n FROM sales WHERE pieces > 2 AND city = 'Trier'",
    ],
)
def test_conditions_that_differ_are_another_question(curator, other):
    curator.ask("SELECT COUNT(*) AS n FROM sales WHERE pieces > 2 AND city = 'Bonn'", epsilon="1/2")
    assert curator.ask(other, epsilon="1/2").paid != ZERO_LOSS


TAMPERED = {
    "no answers": ["DELETE FROM answers"],
    "another answer": ["UPDATE answers SET answer = CAST(CAST(answer AS TEXT) || ' ' AS BLOB)"],
    "a cheaper charge": ["UPDATE rows SET loss = '1/1000 1/2000000 0' WHERE kind = 'charge'"],
    "no charge": ["DELETE FROM rows WHERE kind = 'charge'"],
}


@pytest.mark.parametrize("when", ["before it is opened", "while it is open"])
@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED)
def test_nothing_is_served_or_charged_from_a_ledger_that_was_tampered_with(tmp_path, statement, when):
    place = FilePlace(tmp_path / "ledger.sqlite")
    policy = Policy.parse(POLICY.replace(":memory:", str(place.path)).format(delta=""))
    with dc.open(policy, data=tables()) as curator:
        curator.ask(COUNT, epsilon="1/10")
        assert bytes_of(curator.ask(COUNT, epsilon="1/10")) == bytes_of(curator.ask(COUNT, epsilon="1/10"))
        if when == "while it is open":
            place.tamper(statement)
            with pytest.raises(dc.LedgerError, match="backup"):
                curator.ask(COUNT, epsilon="1/10")
            return
    place.tamper(statement)
    rows = place.rows()
    with pytest.raises(dc.LedgerError, match="backup"), dc.open(policy, data=tables()) as curator:
        curator.ask(COUNT, epsilon="1/10")
    assert place.rows() == rows


TWO_TABLES = """
[data]
name = "shop"
ledger = ":memory:"
[budget]
epsilon = 9
[tables.sales]
source = "sales"
unit = "user"
groups = 1
rows = 1
[tables.sales.columns]
user = { type = "integer" }
"""
PUBLIC_TABLE = '[tables.cities]\nsource = "cities"\npublic = true\n'


CITY_COLUMN = 'city = { type = "text", references = "cities.city" }\n'
PER_CITY = "SELECT city, COUNT(*) AS n FROM sales GROUP BY city"
JOINED = "SELECT COUNT(*) AS n FROM sales JOIN cities ON sales.city = cities.city"


@pytest.fixture
def planned(monkeypatch):
    """Return the texts of all queries that are planned."""
    texts, plan_query = [], query_releases.plan_query
    monkeypatch.setattr(query_releases, "plan_query", lambda *a, **k: texts.append(a[0]) or plan_query(*a, **k))
    return texts


def opened_with_cities():
    policy = Policy.parse(TWO_TABLES + CITY_COLUMN + PUBLIC_TABLE)
    frames = {"sales": pa.table({"user": [1, 2], "city": ["a", "a"]}), "cities": pa.table({"city": ["a"]})}
    return dc.open(policy, data=frames)


def test_a_repeated_query_is_planned_once(planned):
    with opened_with_cities() as curator:
        answers = [curator.ask(sql, epsilon=1) for sql in (COUNT, PER_CITY, JOINED, COUNT, PER_CITY, JOINED)]
        curator.explain(PER_CITY, epsilon=1)
    assert planned == [COUNT, PER_CITY, JOINED]
    assert [bytes_of(answer) for answer in answers[3:]] == [bytes_of(answer) for answer in answers[:3]]


def test_a_query_is_planned_anew_if_public_rows_that_its_plan_depends_on_have_changed(planned, monkeypatch):
    with opened_with_cities() as curator:
        for sql in (COUNT, PER_CITY, JOINED):
            curator.ask(sql, epsilon=1)
        monkeypatch.setattr(curator._engine, "values", lambda *_: ["a", "b"])
        for _ in range(2):
            assert curator.ask(PER_CITY, epsilon=1).table["city"].to_pylist() == ["a", "b"]
        monkeypatch.setattr(curator._engine, "fanout", lambda *_: 2)
        for _ in range(2):
            curator.ask(JOINED, epsilon=1)
            curator.ask(COUNT, epsilon=1)
    assert planned == [COUNT, PER_CITY, JOINED, PER_CITY, JOINED]


def test_a_plan_made_while_public_rows_changed_is_not_kept():
    cities, plans = [["a"], ["b"]], (SimpleNamespace(number=n, releases=(), catalog=None) for n in range(9))

    class Changing:
        def values(self, *_):
            return cities.pop(0) if len(cities) > 1 else cities[0]

    def read_twice(tables):
        tables.values("cities", "city")
        tables.values("cities", "city")
        return next(plans)

    cache = PlanCache(Changing())
    assert [cache.plan("request", read_twice).number for _ in range(3)] == [0, 1, 1]


def test_public_rows_that_cannot_be_read_any_more_refuse_a_kept_plan(monkeypatch):
    def fail(*_):
        raise EngineError("wards.csv was removed")

    with opened_with_cities() as curator:
        curator.explain(PER_CITY, epsilon=1)
        monkeypatch.setattr(curator._engine, "values", fail)
        with pytest.raises(dc.Refused, match="not available"):
            curator.explain(PER_CITY, epsilon=1)


def test_only_some_plans_are_kept(monkeypatch, planned):
    monkeypatch.setattr(plan_cache, "_MAX_PLANS", 2)
    with dc.open(Policy.parse(TWO_TABLES), data={"sales": pa.table({"user": [1, 2]})}) as curator:
        for rows in (1, 2, 2, 3, 1):
            curator.explain(COUNT, epsilon=1, rows=rows)
    assert len(planned) == 4


@pytest.mark.parametrize(
    "sql", ["SELECT city, COUNT(*) FROM sales GROUP BY city", "SELECT city FROM sales GROUP BY city"]
)
def test_only_some_listed_keys_are_kept(sql, monkeypatch, planned):
    monkeypatch.setattr(plan_cache, "_MAX_KEYS", 5)  # three plans would list six
    policy = Policy.parse(TWO_TABLES + 'city = { type = "text", in = ["a", "b"] }\n')
    frame = pa.table({"user": [1, 2], "city": ["a", "b"]})
    with dc.open(policy, data={"sales": frame}) as curator:
        for rows in (1, 2, 2, 3, 1):
            curator.explain(sql, epsilon=1, rows=rows)
    assert len(planned) == 4
