"""Queries that read no private table: what they answer, and that they need neither budget nor private data."""

import csv
import io
import json
from dataclasses import replace
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.kernel.errors import PolicyError, Refused
from discreet.kernel.loss import ZERO_LOSS
from discreet.postprocess import sandbox
from discreet.query import free_query

POLICY = """
[data]
name = "shop"
ledger = "ledger.sqlite"
[budget]
epsilon = 4
[budget.analysts]
ana = { epsilon = 1, tables = ["Sales"] }

[tables.Sales]
source = "sales.parquet"
unit = "customer"
groups = 1
rows = 1
[tables.Sales.columns]
customer = { type = "integer" }
SEX = { type = "text", in = ["m", "f"], null = true }
price = { type = "decimal", between = [0, 99.5] }
city = { type = "text", references = "cities.name" }

[tables.refunds]
source = "refunds.parquet"
unit = "customer"
[tables.refunds.columns]
customer = { type = "integer" }

[tables.cities]
source = "cities.parquet"
public = true
"""
SALES = {"customer": [1, 2], "SEX": ["m", None], "price": [1.5, 2.5], "city": ["Bonn", "Bonn"], "secret": [7, 8]}
CITIES = {"name": ["Bonn", "Köln", "Trier"], "Area": [141.0, float("inf"), 117.1], "state": ["NRW", "NRW", None]}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A curator whose private files have been removed since it was opened."""
    folder = tmp_path_factory.mktemp("shop")
    pq.write_table(pa.table(SALES), folder / "sales.parquet")
    pq.write_table(pa.table({"customer": [1]}), folder / "refunds.parquet")
    pq.write_table(pa.table(CITIES), folder / "cities.parquet")
    (folder / "policy.toml").write_text(POLICY)
    with dc.open(folder / "policy.toml") as curator:
        for name in ("sales", "refunds"):
            (folder / f"{name}.parquet").unlink()
        yield curator


def ledger_bytes(curator):
    return {path.name: path.read_bytes() for path in sorted(curator.policy.base.glob("ledger.sqlite*"))}


ANSWERS = [
    ("SHOW TABLES", [("Sales", "YES"), ("refunds", "YES"), ("cities", "NO")]),
    (
        "DESCRIBE sales;",
        [
            ("customer", "bigint", "NO", None, None, None, "YES"),
            ("SEX", "text", "YES", None, None, '["m", "f"]', "NO"),
            ("price", "numeric", "NO", "0", "99.5", None, "NO"),
            ("city", "text", "NO", None, None, "those of cities.name", "NO"),
        ],
    ),
    ('desc "refunds"', [("customer", "bigint", "NO", None, None, None, "YES")]),
    ("show columns in Refunds", [("customer", "bigint", "NO", None, None, None, "YES")]),
    (
        "SELECT column_name, ordinal_position, data_type FROM INFORMATION_SCHEMA.columns WHERE table_name = 'cities'",
        [("name", 1, "text"), ("Area", 2, "double precision"), ("state", 3, "text")],
    ),
    (
        "SELECT table_catalog, table_schema, COUNT(*) FROM information_schema.tables GROUP BY 1, 2",
        [("shop", "public", 3)],
    ),
    (
        """SELECT t.privacy_unit, columns.column_name FROM information_schema.tables AS t
        JOIN information_schema.columns USING (table_name) WHERE is_private = 'YES' AND column_name = t.privacy_unit""",
        [("customer", "customer"), ("customer", "customer")],
    ),
    ("SELECT 1", [(1,)]),
    ("SELECT 7 / 2, 'a' || 'b', CAST('2026-01-31' AS date) - 1 > '2026-01-01', 1 / 0", [(3, "ab", True, None)]),
    ("SELECT 1 UNION ALL SELECT 2 ORDER BY 1 DESC", [(2,), (1,)]),
    ("SELECT a FROM (VALUES (1), (2)) AS t(a) WHERE a > 1", [(2,)]),
    ("SELECT * FROM cities", [("Bonn", 141.0, "NRW"), ("Köln", None, "NRW"), ("Trier", 117.1, None)]),
    ("SELECT state, COUNT(*), SUM(area) FROM Cities GROUP BY state HAVING COUNT(*) > 1", [("NRW", 2, 141.0)]),
    ("SELECT name FROM cities WHERE area > (SELECT AVG(area) FROM cities)", [("Bonn",)]),
    ("WITH sales AS (SELECT name FROM cities LIMIT 1) SELECT * FROM sales", [("Bonn",)]),
    ("SELECT name, table_name FROM cities, information_schema.tables AS t LIMIT 1", [("Bonn", "Sales")]),
]


@pytest.mark.parametrize(("sql", "rows"), ANSWERS, ids=[sql for sql, _ in ANSWERS])
def test_they_are_answered_without_a_cost_an_entry_or_the_private_files(shop, sql, rows):
    before = ledger_bytes(shop)
    answer = shop.ask(sql)
    assert list(answer) == rows
    assert ledger_bytes(shop) == before
    assert (answer.loss, answer.paid, answer.share, answer.receipt) == (ZERO_LOSS, ZERO_LOSS, 0, None)
    assert answer.margins == answer.bias == answer.noise == {}
    assert repr(answer).endswith("Cost: none (no private data was read).")
    assert "Ledger entry: none." in answer.details()


DECLARED = [
    ("SELECT DISTINCT SEX FROM Sales", [("m",), ("f",), (None,)]),
    (
        "SELECT SEX AS s, SEX = 'm' FROM Sales WHERE price > 1 GROUP BY 1 ORDER BY s LIMIT 2",
        [("f", False), ("m", True)],
    ),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT SEX FROM Sales) AS t", [(3,)]),
    ("SELECT DISTINCT SEX FROM Sales UNION ALL SELECT SEX FROM Sales GROUP BY SEX", 2 * [("m",), ("f",), (None,)]),
]


@pytest.mark.parametrize(("sql", "rows"), DECLARED, ids=[sql for sql, _ in DECLARED])
def test_declared_groups_alone_follow_from_the_policy(shop, sql, rows):
    before = ledger_bytes(shop)
    answer = shop.ask(sql)
    assert list(answer) == rows
    assert ledger_bytes(shop) == before
    assert (answer.loss, answer.receipt) == (ZERO_LOSS, None)
    assert "declared" in repr(answer)
    assert shop.explain(sql).cost.loss == ZERO_LOSS


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT SEX, COUNT(*) FROM Sales GROUP BY SEX",
        "SELECT DISTINCT price FROM Sales",
        "SELECT SEX FROM Sales GROUP BY SEX HAVING COUNT(*) > 1",
    ],
)
def test_what_depends_on_the_rows_needs_a_cost(shop, sql):
    with pytest.raises(Refused):
        shop.ask(sql)


def test_a_cost_that_is_given_is_not_charged(shop):
    before = ledger_bytes(shop)
    for cost in ({"epsilon": 1}, {"margin": 5}, {"key": "monday", "epsilon": 1000}):
        assert shop.ask("SELECT 1 AS One", by="ana", **cost).table.to_pylist() == [{"One": 1}]
    assert ledger_bytes(shop) == before
    assert shop.budget("ana").remaining.epsilon == 1


def test_the_answer_has_the_usual_methods(shop):
    answer = shop.ask("SELECT name AS Name FROM cities ORDER BY 1")
    assert answer.to_pandas()["Name"].tolist() == ["Bonn", "Köln", "Trier"]
    assert json.loads(answer.to_arrow().schema.metadata[b"discreet"])["receipt"] is None
    assert answer.with_margins().column_names == ["Name"]
    assert "<table" in answer._repr_html_()
    assert shop.ask("SELECT 2").value == 2
    assert shop.ask("SELECT 2").margin is None


def test_explain_says_that_they_are_free(shop):
    for sql in ("SELECT 1", "EXPLAIN SELECT * FROM cities", "SHOW TABLES", "EXPLAIN DESCRIBE Sales"):
        assert repr(shop.explain(sql)) == "No charge: this query reads no private data."
    with pytest.raises(Refused, match="EXPLAIN"):
        shop.ask("EXPLAIN SELECT 1")


def test_an_analyst_sees_the_tables_that_they_may_query_and_no_others(shop):
    assert [row[0] for row in shop.ask("SHOW TABLES", by="ana")] == ["Sales", "cities"]
    tables = shop.ask("SELECT DISTINCT table_name AS t FROM information_schema.columns", by="ana").table["t"]
    assert set(tables.to_pylist()) == {"Sales", "cities"}
    with pytest.raises(Refused, match=r'table "refunds" does not exist. Available: Sales, cities'):
        shop.ask("DESCRIBE refunds", by="ana")
    for sql in ("SHOW TABLES", "SELECT 1", "SELECT * FROM cities"):
        with pytest.raises(Refused, match="'eve' has no access"):
            shop.ask(sql, by="eve")


def test_only_what_the_policy_declares_is_shown(shop):
    shown = "".join(map(str, [*shop.ask("SELECT * FROM information_schema.columns"), *shop.ask("SHOW TABLES")]))
    assert not any(word in shown for word in ("secret", "parquet", str(shop.policy.base)))


REFUSED = [
    ("DESCRIBE", "syntax error"),
    ("DESCRIBE 'cities'", "syntax error"),
    ("DESCRIBE SELECT 1", "syntax error"),
    ("SHOW", "syntax error"),
    ("SHOW DATABASES", "SHOW TABLES"),
    ("SHOW COLUMNS", "DESCRIBE"),
    ("SHOW TABLES; SELECT 1", "one statement"),
    ("DESCRIBE nothing", 'table "nothing" does not exist'),
    ("SELECT * FROM information_schema.schemata", "does not exist. Available: tables, columns"),
    ("SELECT * FROM pg_catalog.pg_class", "schema names"),
    ("SELECT * FROM shop.information_schema.tables", "schema names"),
    ("SELECT now()", "changes from call to call"),
    ("SELECT random()", "changes from call to call"),
    ("SELECT pg_sleep(10)", "not supported"),
    ("SELECT current_setting('x')", "not supported"),
    ("SELECT * FROM read_parquet('sales.parquet')", "FROM"),
    ("SELECT * FROM 'sales.parquet'", "does not exist"),
    ("SELECT COUNT(*) FROM duckdb_tables()", "FROM"),
    ("SELECT COUNT(*) FROM t0", "does not exist"),
    ("SELECT * FROM Sales", "individual rows"),
    ("SELECT name FROM cities WHERE name IN (SELECT city FROM Sales)", "private rows"),
    ("SELECT (SELECT MAX(price) FROM Sales), 1", "the cost of the answer is missing"),
    ("SELECT t.table_name, COUNT(*) FROM information_schema.tables AS t, Sales GROUP BY 1", "Query it alone"),
    ("SELECT COUNT(*) FROM Sales", "the cost of the answer is missing"),
]


@pytest.mark.parametrize(("sql", "cause"), REFUSED, ids=[sql for sql, _ in REFUSED])
def test_everything_else_is_refused_before_a_charge(shop, sql, cause):
    before = ledger_bytes(shop)
    with pytest.raises(Refused, match=cause):
        shop.ask(sql)
    assert ledger_bytes(shop) == before


EXPRESSIONS = st.recursive(
    st.sampled_from(["1", "2.5", "'a'", "NULL", "name", "area", "state", "TRUE", "table_name", "COUNT(*)"]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "/", "%", "||", "=", "<", "AND", "LIKE"]), inner, inner).map(
            lambda parts: f"({parts[1]} {parts[0]} {parts[2]})"
        ),
        st.tuples(st.sampled_from(["ABS", "LN", "SQRT", "UPPER", "LENGTH", "MAX", "SUM", "COALESCE"]), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})"
        ),
        inner.map(lambda part: f"(SELECT {part} FROM cities LIMIT 1)"),
        inner.map(lambda part: f"CAST({part} AS integer)"),
    ),
    max_leaves=5,
)
SOURCES = st.sampled_from(
    ["", "cities", "information_schema.tables", "cities, information_schema.tables", "Sales", "x"]
)


@settings(max_examples=40)
@given(select=EXPRESSIONS, source=SOURCES, where=EXPRESSIONS, tail=st.sampled_from(["", " GROUP BY 1", " LIMIT 2"]))
def test_no_free_query_changes_the_ledger_or_reads_private_data(shop, select, source, where, tail):
    """Of random queries each is answered or refused; none fails, which a read of the removed files would do."""
    before = ledger_bytes(shop)
    begin = f" FROM {source}" if source else ""
    try:
        answer = shop.ask(f"SELECT {select} AS a{begin} WHERE {where}{tail}")
        assert answer.loss == ZERO_LOSS
        assert source != "Sales"
    except Refused:
        pass
    assert ledger_bytes(shop) == before


def test_a_plan_cannot_have_a_private_table_read(shop):
    plan = shop.releases.plan_query("SELECT name FROM cities", "owner", None, None)
    forged = replace(plan, postprocess=replace(plan.postprocess, tables=(("Sales", ("customer",)),)))
    with pytest.raises(KeyError):
        shop._answer_without_charge(forged)


def test_public_tables_that_are_too_large_are_refused(shop, monkeypatch):
    monkeypatch.setattr(free_query, "MAX_PUBLIC_ROWS", 2)
    with pytest.raises(Refused, match="more than 2 rows"):
        shop.ask("SELECT COUNT(*) FROM cities")


def test_answers_that_are_too_large_are_refused(shop, monkeypatch):
    monkeypatch.setattr(sandbox, "_MAX_ROWS", 8)
    with pytest.raises(Refused, match="exceeded the limits"):
        shop.ask("SELECT a.name FROM cities AS a, cities AS b")


def test_a_removed_public_table_is_a_refusal(tmp_path):
    pq.write_table(pa.table(CITIES), tmp_path / "cities.parquet")
    for name in ("sales", "refunds"):
        pq.write_table(pa.table(SALES), tmp_path / f"{name}.parquet")
    (tmp_path / "policy.toml").write_text(POLICY)
    with dc.open(tmp_path / "policy.toml") as curator:
        (tmp_path / "cities.parquet").unlink()
        with pytest.raises(Refused, match="Nothing was charged"):
            curator.ask("SELECT * FROM cities")


def test_the_database_interface_needs_no_cost_for_them(shop):
    with dc.connect(shop, by="ana") as connection:
        cursor = connection.cursor()
        assert cursor.execute("SHOW TABLES").fetchall() == [("Sales", "YES"), ("cities", "NO")]
        assert cursor.execute("describe cities").rowcount == 3
        assert cursor.execute("SELECT name AS Name FROM cities WHERE state = ?", ["NRW"]).fetchall() == [
            ("Bonn",),
            ("Köln",),
        ]
        assert [column[0] for column in cursor.description] == ["Name"]
        assert cursor.answer.loss == ZERO_LOSS
        assert cursor.execute("EXPLAIN SELECT 1").fetchall() == [("No charge: this query reads no private data.",)]
        assert cursor.execute("SHOW epsilon").fetchall() == [(None,)]
        with pytest.raises(Refused, match="SET epsilon"):
            cursor.execute("SELECT COUNT(*) FROM sales")


def test_the_command_line_needs_no_cost_for_them(tmp_path):
    for name, table in {"sales": SALES, "refunds": {"customer": [1]}, "cities": CITIES}.items():
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    (tmp_path / "policy.toml").write_text(POLICY)
    shown = run("ask", "policy.toml", "SHOW TABLES", cwd=tmp_path)
    assert (shown.returncode, shown.stdout.splitlines()[1]) == (0, "Sales       YES")
    done = run("ask", "policy.toml", "SELECT name AS Name FROM cities LIMIT 1", "--format", "csv", cwd=tmp_path)
    assert list(csv.reader(io.StringIO(done.stdout))) == [["Name"], ["Bonn"]]
    assert done.stderr == "Cost: none (no private data was read).\n"
    as_json = run("ask", "policy.toml", "SELECT 1 AS One", "--format", "json", cwd=tmp_path)
    assert json.loads(as_json.stdout)["rows"] == [{"One": 1}]
    assert "No charge" in run("explain", "policy.toml", "DESCRIBE sales", cwd=tmp_path).stdout
    missing = run("ask", "policy.toml", "SELECT COUNT(*) FROM sales", cwd=tmp_path)
    assert missing.returncode == 2
    assert "discreet: --epsilon: the cost of the answer is missing" in missing.stderr
    assert "such as 0.1, or --margin 50." in missing.stderr


FRAME = pd.DataFrame({"ID": range(6), "SEX": ["m", "f"] * 3, "Kids": [1, 2, None, 1, 2, 1]})


@pytest.fixture(scope="module")
def survey():
    columns = {"SEX": ["m", "f"], "Kids": [1, 2]}
    with dc.open(
        FRAME, table="Survey", unit="ID", budget=10**6, columns=columns, groups=1, rows=1, ledger=":memory:"
    ) as curator:
        yield curator


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT SEX, COUNT(*) AS N FROM survey GROUP BY SEX", ["SEX", "N"]),
        ("SELECT Sex, COUNT(*) FROM Survey GROUP BY sex", ["Sex", "count"]),
        ("SELECT sex, SUM(KIDS) FROM survey GROUP BY 1 ORDER BY SEX", ["sex", "sum"]),
        ('SELECT "SEX" AS "Sex or not", COUNT(*) AS n, COUNT(*) FROM survey GROUP BY 1', ["Sex or not", "n", "count"]),
        ("SELECT * FROM (SELECT SEX AS Gender, COUNT(*) AS N FROM survey GROUP BY 1) AS t", ["Gender", "N"]),
        ("WITH t AS (SELECT SEX AS S FROM survey) SELECT S, COUNT(*) AS N FROM t GROUP BY s", ["S", "N"]),
        ('SELECT t."n" FROM (SELECT COUNT(*) AS N FROM survey) AS t ORDER BY "N"', ["n"]),
        ("SELECT COUNT(*) AS N, 1 AS n FROM survey", ["N", "n_1"]),
        ("SELECT T.A FROM (SELECT COUNT(*) FROM survey) AS T(A)", ["A"]),
    ],
)
def test_columns_come_back_as_they_are_written(survey, sql, names):
    answer = survey.ask(sql, epsilon=1)
    assert answer.table.column_names == names
    assert list(answer.to_pandas().columns) == names
    with dc.connect(survey, epsilon=1) as connection:
        described = [column[0] for column in connection.cursor().execute(sql).description]
    assert [name for name in described if not name.endswith(("_margin", "_bias", "_bias_low"))] == names


def test_a_margin_may_name_a_column_in_any_case(survey):
    answer = survey.ask("SELECT COUNT(*) AS N, SUM(Kids) AS S FROM survey", margin={"n": 9, "S": 8})
    assert (answer.margins["N"][0] <= 9, answer.margins["S"][0] <= 8) == (True, True)


def test_integers_with_missing_values_in_a_pandas_frame_may_have_listed_values(survey):
    assert FRAME["Kids"].dtype == "float64"
    assert survey.policy.tables["Survey"].columns["Kids"].type == "integer"
    answer = survey.ask("SELECT Kids, COUNT(*) AS n FROM survey GROUP BY Kids", epsilon=500)
    assert list(answer) == [(1, 3), (2, 2)]
    declared = {"Kids": {"in": [1, 2, 3], "null": True}}
    with dc.open(FRAME, unit="ID", budget=10**6, columns=declared, groups=1, rows=1, ledger=":memory:") as curator:
        answer = curator.ask("SELECT Kids, COUNT(*) AS n FROM data GROUP BY Kids", epsilon=Fraction(500))
        assert list(answer) == [(1, 3), (2, 2), (3, 0), (None, 1)]


@pytest.mark.parametrize("listed", [[1, 9], [0.5, 1.5], [0.5, 1.5, 2.5]])
def test_lists_that_may_be_ranges_or_are_not_whole_are_refused(listed):
    with pytest.raises(PolicyError, match="Kids"):
        dc.open(FRAME, unit="ID", budget=1, columns={"Kids": listed}, groups=1, rows=1, ledger=":memory:")


def test_the_lines_below_the_table_say_which_rows_are_in_no_group(survey):
    """By the query and the policy alone: the sentence is the same for data with and without such rows."""
    sql = "SELECT Kids, COUNT(*) AS n FROM survey GROUP BY Kids"
    sentence = "Rows are left out where Kids is NULL or not declared."
    answer = survey.ask(sql, epsilon=3)
    assert answer.left_out == (sentence,)
    below = repr(answer).split("\n\n")[1]
    assert sentence in below
    assert below.endswith("remains.")  # the cost is the last line
    assert sentence in " ".join(answer.details().split())
    assert sentence in repr(survey.explain(sql, epsilon=1))
    assert answer.to_dict()["left_out"] == [sentence]
    assert survey.ask("SELECT COUNT(*) AS n FROM survey", epsilon=3).left_out == ()
