"""The Database API 2.0: what generic programs rely on, and what must be refused."""

import datetime as dt
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

import discreet as dc
from discreet import dbapi
from discreet.curator.curator import Curator
from discreet.dbapi import parameters as binding
from discreet.dbapi.parameters import bind, literal
from discreet.query.syntax.parse import parse_query

SURE = 500  # an epsilon at which no noise is left: one draw in e^200 is not 0
NASTY = [
    "plain",
    "O'Hara",
    "''",
    "' OR '1'='1",
    "'; DROP TABLE data; --",
    "/* no comment */",
    "*/ OR TRUE /*",
    "-- ?",
    "?",
    ":name",
    "$$ OR TRUE $$",
    "$tag$",
    "\\",
    "\\' OR TRUE --",
    "\\'' OR TRUE --",
    "E'\\x27'",
    '"ward"',
    "a\nb\r\nc\td",
    "Zoë 😀 \u02bc\u2019\uff07",  # apostrophes of other kinds
    "\u202e\ufeff\u00a0",
    "{{ jinja }} {% raw %} {# #}",
    "%s %(name)s %%",
    "",
    " ",
    "NULL",
    "x' UNION ALL SELECT 1 --",
]
POLICY = """
[data]
name = "visits"
ledger = "visits.sqlite"
[budget]
epsilon = 1000
[budget.analysts]
ana = { epsilon = 1.0, each = 0.25 }
bob = { epsilon = 1.0 }
[tables.visits]
source = "visits.csv"
unit = "patient"
groups = 1
rows = 1
[tables.visits.columns]
patient = { type = "integer" }
ward = { type = "text", in = ["A", "B"] }
age = { type = "integer", between = [0, 120] }
"""
COUNT = "SELECT COUNT(*) AS n FROM visits"


def times(place):
    return place % 4 + 1


def nasty_rows():
    """A text that stands at place i of the list is in i % 4 + 1 rows."""
    texts = [text for place, text in enumerate(NASTY) for _ in range(times(place))]
    size = len(texts)
    return pa.table(
        {
            "patient": range(size),
            "ward": texts,
            "age": [i % 90 - 5 for i in range(size)],
            "cost": [i / 4 - 2 for i in range(size)],
            "day": [dt.date(2026, 1, 1 + i % 28) for i in range(size)],
            "time": [dt.datetime(2026, 1, 1 + i % 28, 12, 30, 0, 1) for i in range(size)],
            "new": [i % 3 == 0 for i in range(size)],
        }
    )


@pytest.fixture(scope="module")
def curator():
    year = (dt.date(2026, 1, 1), dt.date(2026, 12, 31))
    columns = {"ward": NASTY, "age": (-5, 120), "cost": (-100, 100), "day": year, "time": year, "new": "boolean"}
    with dc.open(
        nasty_rows(), unit="patient", budget=10**6, columns=columns, groups=1, rows=1, ledger=":memory:"
    ) as found:
        yield found


@pytest.fixture
def connection(curator):
    with dc.connect(curator, epsilon=SURE) as found:
        yield found


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "visits.toml").write_text(POLICY)
    lines = [f"{i},{'AB'[i % 2]},{i % 90}" for i in range(50)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,ward,age", *lines]) + "\n")
    return tmp_path


def asked(connection, sql, parameters=()):
    return connection.cursor().execute(sql, parameters).fetchall()


def number(connection, condition, parameters=()):
    ((found, margin, *_),) = asked(connection, f"SELECT COUNT(*) AS n FROM data WHERE {condition}", parameters)
    assert margin == 0
    return found


# What PEP 249 wants


def test_the_module_declares_its_level_and_style():
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    assert dc.connect is dbapi.connect
    for name in (
        "Interface",
        "Database",
        "Data",
        "Operational",
        "Integrity",
        "Internal",
        "Programming",
        "NotSupported",
    ):
        assert issubclass(getattr(dbapi, f"{name}Error"), dbapi.Error)
    assert issubclass(dbapi.Error, dc.DiscreetError)
    assert not issubclass(dbapi.InterfaceError, dbapi.DatabaseError)
    assert issubclass(dbapi.Warning, Exception)


def test_a_discreet_error_is_one_of_the_specification_too():
    assert issubclass(dbapi.QuestionRefused, dbapi.ProgrammingError)
    assert issubclass(dbapi.QuestionRefused, dc.Refused)
    assert issubclass(dbapi.QuestionFailed, dbapi.OperationalError)
    assert issubclass(dbapi.QuestionFailed, dc.Failed)
    assert issubclass(dbapi.LedgerStopped, dc.LedgerError)
    assert issubclass(dbapi.PolicyUnusable, dc.PolicyError)


def test_type_constructors_follow_the_specification():
    ticks = dt.datetime(2026, 1, 31, 12, 30).timestamp()
    assert dbapi.Date(2026, 1, 31) == dbapi.DateFromTicks(ticks) == dt.date(2026, 1, 31)
    assert dbapi.Time(12, 30) == dbapi.TimeFromTicks(ticks) == dt.time(12, 30)
    assert dbapi.Timestamp(2026, 1, 31, 12, 30) == dbapi.TimestampFromTicks(ticks) == dt.datetime(2026, 1, 31, 12, 30)
    assert dbapi.Binary(b"x") == b"x"
    groups = (dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID)
    assert [group == "real" for group in groups] == [False, False, True, False, False]
    assert [group != "real" for group in groups] == [True, True, False, True, True]
    assert dbapi.NUMBER == dbapi.NUMBER


def test_margin_and_bias_follow_each_noisy_column_and_types_are_described(connection):
    cursor = connection.cursor()
    sql = (
        "SELECT new, COUNT(*) AS n, AVG(cost) AS m, 'x' AS word, CAST('2026-01-31' AS DATE) AS d FROM data GROUP BY new"
    )
    assert cursor.execute(sql) is cursor
    names = [column[0] for column in cursor.description]
    codes = [column[1] for column in cursor.description]
    bias = [["n_bias", "n_bias_low"], ["m_bias", "m_bias_low"]]
    assert names == ["new", "n", "n_margin", *bias[0], "m", "m_margin", *bias[1], "word", "d"]
    assert codes == ["boolean", "integer", *["real"] * 7, "text", "date"]
    assert [code == dbapi.NUMBER for code in codes] == [True] * 9 + [False] * 2
    assert all(len(column) == 7 for column in cursor.description)
    assert cursor.rowcount == 2
    assert [row[2] for row in cursor.fetchall()] == cursor.answer.margins["n"]
    assert cursor.answer.loss.epsilon == SURE


def test_rows_are_fetched_one_by_one_some_or_all(connection):
    cursor = connection.cursor()
    sql = "SELECT ward, COUNT(*) AS n FROM data GROUP BY ward ORDER BY ward"
    everything = asked(connection, sql)
    assert len(everything) == len(NASTY)
    assert sorted(row[0] for row in everything) == sorted(NASTY)
    cursor.execute(sql)
    assert cursor.fetchone() == everything[0]
    assert cursor.fetchmany() == everything[1:2]
    cursor.arraysize = 3
    assert cursor.fetchmany() == everything[2:5]
    assert cursor.fetchmany(2) == everything[5:7]
    assert cursor.fetchmany(0) == cursor.fetchmany(-1) == []
    assert next(cursor) == everything[7]
    assert list(cursor) == everything[8:]
    assert cursor.fetchone() is None
    assert cursor.fetchmany() == cursor.fetchall() == []


def test_there_is_nothing_to_fetch_before_a_question_and_after_a_refusal(connection):
    cursor = connection.cursor()
    for sql in (None, "SET epsilon = 500", "SELECT nothing FROM data"):
        if sql == "SELECT nothing FROM data":
            cursor.execute("SELECT COUNT(*) FROM data")
            with pytest.raises(dbapi.ProgrammingError):
                cursor.execute(sql)
        elif sql:
            cursor.execute(sql)
        assert (cursor.description, cursor.rowcount, cursor.answer) == (None, -1, None)
        for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall):
            with pytest.raises(dbapi.InterfaceError, match="no result to fetch"):
                fetch()


def test_closed_cursors_and_connections_are_unusable(curator):
    connection = dc.connect(curator, epsilon=SURE)
    with connection.cursor() as cursor:
        cursor.execute("SHOW epsilon")
    for use in (cursor.fetchall, lambda: cursor.execute("SHOW epsilon")):
        with pytest.raises(dbapi.InterfaceError, match="closed"):
            use()
    other = connection.cursor().execute("SHOW epsilon")
    connection.close()
    connection.close()
    for use in (connection.cursor, connection.commit, connection.rollback, other.fetchone):
        with pytest.raises(dbapi.InterfaceError, match="closed"):
            use()
    assert curator.budget().total.epsilon == 10**6  # it was not the connection's to close


def test_commit_and_rollback_change_nothing(connection):
    before = connection.curator.budget().spent
    number(connection, "age > 1")
    connection.rollback()
    connection.commit()
    assert connection.curator.budget().spent.epsilon == before.epsilon + SURE


def test_many_questions_at_once_are_refused_unread(connection):
    cursor = connection.cursor()
    with pytest.raises(dbapi.NotSupportedError, match="Call execute for each"):
        cursor.executemany("SELECT COUNT(*) FROM data WHERE age > ?", [[1], [2]])
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)


# Values


@pytest.mark.parametrize("place", range(len(NASTY)), ids=[repr(text)[:20] for text in NASTY])
def test_a_text_is_a_value_and_never_sql(connection, place):
    text = NASTY[place]
    assert number(connection, "ward = ?", [text]) == times(place)
    assert number(connection, "ward = :w AND ward = :w", {"w": text, "unused": 1}) == times(place)


@pytest.mark.long(only=["10"])
@pytest.mark.parametrize("place", [1, 4, 6, 10, 13])
def test_placeholders_in_texts_names_and_comments_are_ignored(connection, place):
    sql = (
        "/* ? /* ? */ :w */ ward = ? -- ? :w\n AND '?' <> '' AND ':w ''?' <> '' AND $$ ? $$ <> '' AND $q$ '? $q$ <> ''"
    )
    assert number(connection, sql, [NASTY[place]]) == times(place)
    named = sql.replace("= ?", "= :w")
    assert number(connection, named, {"w": NASTY[place]}) == times(place)


@pytest.mark.parametrize(
    ("condition", "parameters", "found"),
    [
        ("age = ?", [-5], lambda row: row["age"] == -5),
        ("age = 0-?", [5], lambda row: row["age"] == -5),
        ("age = -?", [5], lambda row: row["age"] == -5),
        ("age = --5\n ?", [3], lambda row: row["age"] == 3),
        ("age IN (?, ?)", [-4, 7], lambda row: row["age"] in (-4, 7)),
        ("age BETWEEN ? AND ?", (-3, 3), lambda row: -3 <= row["age"] <= 3),
        ("age = ?::integer", [4], lambda row: row["age"] == 4),
        ("age = ?", ["4"], lambda row: row["age"] == 4),
        ("new = ?", [True], lambda row: row["new"]),
        ("new = ?", [False], lambda row: not row["new"]),
        ("cost > ?", [1e-05], lambda row: row["cost"] > 0),
        ("cost < ?", [1e16], lambda row: True),
        ("cost = ?", [0.25], lambda row: row["cost"] == 0.25),
        ("cost = ?", [Decimal("-1.50")], lambda row: row["cost"] == -1.5),
        ("cost < ?", [Decimal("1E+3")], lambda row: True),
        ("day = ?", [dt.date(2026, 1, 3)], lambda row: row["day"] == dt.date(2026, 1, 3)),
        ("day > ?", [dt.date(2, 1, 1)], lambda row: True),
        ("time = ?", [dt.datetime(2026, 1, 3, 12, 30, 0, 1)], lambda row: row["day"].day == 3),
        ("time >= ?", [dt.datetime(2026, 1, 27)], lambda row: row["day"].day >= 27),
        ("time >= ?", [pd.Timestamp("2026-01-27")], lambda row: row["day"].day >= 27),
        ("age = ?", [np.int64(4)], lambda row: row["age"] == 4),
        ("cost = ?", [np.float32(0.25)], lambda row: row["cost"] == 0.25),
        ("new = ?", [np.True_], lambda row: row["new"]),
        ("ward = ?", [np.str_("plain")], lambda row: row["ward"] == "plain"),
        ("day = ?", [np.datetime64("2026-01-03")], lambda row: row["day"].day == 3),
        ("time >= ?", [np.datetime64("2026-01-27", "ns")], lambda row: row["day"].day >= 27),
        ("'%s' <> ''", {"a": 4}, lambda row: True),
        ("?::text = '-5'", [-5], lambda row: True),
        ("(ward = ?) IS NULL", [None], lambda row: True),
        ("ward = ?||?", ["pl", "ain"], lambda row: row["ward"] == "plain"),
        ("ward LIKE ?", ["%OR%"], lambda row: "OR" in row["ward"]),
        ("age > :date AND age < :select", {"date": 3, "select": 6}, lambda row: 3 < row["age"] < 6),
        ("age = :a::integer", {"a": 4}, lambda row: row["age"] == 4),
    ],
)
def test_every_type_of_parameter_keeps_its_value(connection, condition, parameters, found):
    assert number(connection, condition, parameters) == sum(map(found, nasty_rows().to_pylist()))


@pytest.mark.parametrize(
    ("sql", "parameters", "words"),
    [
        ("age = ?", [], r"placeholders \(\?\) is 1, but the number of values is 0"),
        ("age = ?", [1, 2], r"number of values is 2"),
        ("age = 1", [1], r"placeholders \(\?\) is 0"),
        ("age = %s", [1], r"%s is not supported\. Use \?"),
        ("age = %(a)s", {"a": 1}, r"%s is not supported"),
        ("age = ?", [np.datetime64("NaT")], r"type datetime64"),
        ("age = ?", [np.datetime64("200000-01-01", "s")], r"type datetime64"),
        ("age = ?", [np.timedelta64(3, "ns")], r"type timedelta64"),
        ("age = ?", [np.float32("nan")], r"not finite"),
        ("age = ?", "1", r"expected a list .* or a dict"),
        ("age = ?", b"1", r"expected a list"),
        ("age = ?", 1, r"expected a list"),
        ("age = ?", {"a": 1}, r"needs a list, not a dict"),
        ("age = :b", {"a": 1}, r"there is no value for :b"),
        ("age = :b", [], r"parameters are not supported here"),
        ("age = : b", {"b": 1}, r"parameters are not supported here|syntax error"),
        ("age = $1", [], r"parameters are not supported here"),
        ("age = ? ?", [1, 2], r"syntax error"),
        ("age = ?", [float("nan")], r"not finite"),
        ("age = ?", [float("inf")], r"not finite"),
        ("age = ?", [Decimal("NaN")], r"not finite"),
        ("age = ?", [Decimal("1E+999999")], r"too large"),
        ("age = ?", [10**2000], r"too large"),
        ("ward = ?", [b"x"], r"type bytes"),
        ("ward = ?", [["x"]], r"type list"),
        ("ward = ?", [object()], r"type object"),
        ("ward = ?", [dt.timedelta(1)], r"type timedelta"),
        ("time = ?", [pd.NaT], r"a datetime is NaT"),
        ("time = ?", [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)], r"has a time zone"),
        ("ward = ?", ["a\0b"], r"parameters: .*NUL"),
        ("ward = ?", ["\ud800"], r"parameters: .*lone surrogate"),
    ],
)
def test_values_that_cannot_be_bound_are_refused_and_free(connection, sql, parameters, words):
    before = connection.curator.budget().spent
    with pytest.raises(dbapi.ProgrammingError, match=words) as refused:
        number(connection, sql, parameters)
    assert isinstance(refused.value, dc.Refused)
    assert connection.curator.budget().spent == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM ?",
        "SELECT COUNT(*) FROM data ?",
        "SELECT COUNT(*) AS ? FROM data",
        "WITH ? AS (SELECT COUNT(*) AS n FROM data) SELECT n FROM data",
    ],
)
def test_a_parameter_cannot_be_a_name(connection, sql):
    with pytest.raises(dc.Refused, match="a placeholder cannot replace the name"):
        asked(connection, sql, ["data"])
    with pytest.raises(dc.Refused, match="a placeholder cannot replace the name"):
        asked(connection, sql.replace("?", ":x"), {"x": "data"})


def test_a_value_may_equal_a_name_that_is_written(connection):
    sql = 'SELECT COUNT(*) AS "plain" FROM data WHERE ward = ?'
    assert asked(connection, sql, ["plain"]) == [(1, 0, None, 0)]


def test_a_value_begins_no_second_statement(connection):
    for value in ("data", "; SELECT 1", 1):
        with pytest.raises(dc.Refused, match="only one statement"):
            asked(connection, "SELECT COUNT(*) FROM data; ?", [value])


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.sampled_from("'\\?:$-/*\"\n;"))


@pytest.mark.long
@given(TEXTS, TEXTS)
@example("'", "\\")
@example("\\'", "''")
@example("$$", "/*")
def test_a_text_parameter_never_changes_the_rest_of_the_query(one, other):
    for sql in (
        "SELECT COUNT(*) FROM t WHERE a = ? AND b <> '?' -- ?\n AND c =?",
        "SELECT COUNT(*) FROM t WHERE a = E'\\'' OR b IN (?,$$?$$,?)/* ? */",
        'SELECT COUNT(*) AS "?" FROM t WHERE a=?||? LIMIT 3',
    ):
        wanted = parse_query(bind(sql, ["one", "other"])).query
        for node in list(wanted.find_all(exp.Literal)):
            if node.this in ("one", "other"):
                node.set("this", one if node.this == "one" else other)
        assert parse_query(bind(sql, [one, other])).query == wanted


class Cunning(str):
    __slots__ = ()

    def replace(self, *_):
        return "x' OR TRUE --"

    def __str__(self):
        return "x' OR TRUE --"


def test_bound_parameters_are_parsed_again(connection, monkeypatch):
    monkeypatch.setattr(binding, "literal", lambda value: f"'{value}'")
    assert number(connection, "ward = ?", ["plain"]) == 1
    with pytest.raises(dc.Refused, match="Put spaces around it"):
        number(connection, "ward = ?", ["x' OR 'a' = 'a"])


def test_a_value_cannot_choose_how_it_is_written():
    assert literal(Cunning("it's")) == "'it''s'"
    assert bind("SELECT ?", [Cunning("it's")]) == "SELECT  'it''s' "


# Prices


def test_a_cost_is_set_shown_and_reset(curator):
    connection = dc.connect(curator, epsilon="1/3")
    assert asked(connection, "SHOW epsilon") == [("1/3",)]
    for sql, shown in [
        ("SET epsilon = '1/10'", "1/10"),
        ("set Epsilon to 0.25;", "1/4"),
        ("SET epsilon = 1/8", "1/8"),
        ("/* as before */ RESET epsilon", "1/3"),
        ("SET epsilon = 2", "2"),
        ("SET epsilon = DEFAULT", "1/3"),
    ]:
        connection.cursor().execute(sql)
        assert asked(connection, "SHOW epsilon;") == [(shown,)]
    connection.cursor().execute("SET epsilon = ?", ["1/7"])
    cursor = connection.cursor().execute("SELECT COUNT(*) AS n FROM data WHERE age = 11")
    assert cursor.answer.loss.epsilon == Fraction(1, 7)


@pytest.mark.parametrize(
    "sql",
    [
        "SET epsilon = 0",
        "SET epsilon = -1",
        "SET epsilon = ''",
        "SET epsilon = 'nan'",
        "SET epsilon = much",
        "SET epsilon",
        "SET epsilon = 1, rho = 2",
        "SET epsilon 1",
        "SET budget = 10",
        "SET",
        "SHOW",
        "SHOW ALL",
        "SHOW epsilon = 3",
        "RESET ALL",
        "RESET epsilon = 3",
        "SET rho = 1",
    ],
)
def test_a_wrong_setting_is_refused_and_changes_nothing(connection, sql):
    with pytest.raises(dbapi.ProgrammingError):
        connection.cursor().execute(sql)
    assert asked(connection, "SHOW epsilon") == [(str(SURE),)]


def test_the_cost_may_be_a_rho_in_a_delta_budget():
    rows = pa.table({"patient": [1, 2]})
    with (
        dc.open(rows, unit="patient", budget=(1, 1e-6), columns={}, groups=1, rows=1, ledger=":memory:") as curator,
        dc.connect(curator) as connection,
    ):
        connection.cursor().execute("SET rho = '1/1000'")
        assert asked(connection, "SHOW rho") == [("1/1000",)]
        assert asked(connection, "SHOW epsilon") == [(None,)]
        answer = connection.cursor().execute("SELECT COUNT(*) AS n FROM data").answer
        assert answer.loss.rho == Fraction(1, 1000)


def test_a_query_without_a_cost_is_refused(curator):
    connection = dc.connect(curator)
    assert asked(connection, "SHOW epsilon") == [(None,)]
    with pytest.raises(dc.Refused, match=r"SET epsilon = 0\.1, or SET margin = 50"):
        asked(connection, "SELECT COUNT(*) FROM data")


def test_a_cost_in_the_query_is_what_is_charged(connection):
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5) COUNT(*) AS n FROM data WHERE age <> 11"
    assert connection.cursor().execute(sql).answer.loss.epsilon == Fraction(1, 2)


def test_an_explanation_is_lines_of_text_and_free(connection):
    before = connection.curator.budget().spent
    sql = "EXPLAIN SELECT COUNT(*) AS n FROM data WHERE ward = ? AND age <> 12"
    cursor = connection.cursor().execute(sql, ["O'Hara"])
    assert [column[:2] for column in cursor.description] == [("explanation", "text")]
    lines = [line for (line,) in cursor.fetchall()]
    assert lines[0].startswith(f"Would cost epsilon {SURE}")
    assert any("'O''Hara'" in line for line in lines)
    assert cursor.answer is None
    assert connection.curator.budget().spent == before
    with pytest.raises(dc.Refused, match="EXPLAIN without ANALYZE"):
        cursor.execute("EXPLAIN ANALYZE SELECT COUNT(*) FROM data")


# Files, analysts, errors


def test_a_policy_file_is_opened_and_closed(folder):
    with dc.connect(folder / "visits.toml", epsilon="1/2") as connection:
        assert len(asked(connection, COUNT)) == 1
    with dc.connect(str(folder / "visits.toml")) as connection:
        assert connection.curator.budget().spent.epsilon == Fraction(1, 2)
    with pytest.raises(dc.LedgerError):
        connection.curator.budget()


def test_an_analysts_default_cost_comes_from_the_policy(folder):
    with dc.connect(folder / "visits.toml", by="ana") as connection:
        assert asked(connection, "SHOW epsilon") == [("1/4",)]
        assert connection.cursor().execute(COUNT).answer.loss.epsilon == Fraction(1, 4)
        connection.cursor().execute("SET epsilon = '1/8'")
        assert connection.cursor().execute(f"{COUNT} WHERE age > 3").answer.loss.epsilon == Fraction(1, 8)
        assert connection.curator.budget("ana").spent.epsilon == Fraction(3, 8)
    with dc.connect(folder / "visits.toml", by="bob") as connection, pytest.raises(dc.Refused, match="no default"):
        asked(connection, COUNT)


def test_an_unlisted_analyst_cannot_connect(folder, monkeypatch):
    closed = []

    def close(self):
        closed.append(self)

    monkeypatch.setattr(Curator, "close", close)
    with pytest.raises(dbapi.ProgrammingError, match="'eve' has no access") as refused:
        dc.connect(folder / "visits.toml", by="eve")
    assert isinstance(refused.value, dc.Refused)
    (curator,) = closed  # what was opened for nothing is closed again; one that was given is not
    with pytest.raises(dc.Refused, match="'eve' has no access"):
        dc.connect(curator, by="eve")
    assert len(closed) == 1
    monkeypatch.undo()
    curator.close()


def test_connecting_with_an_invalid_cost_or_policy_is_refused(folder):
    with pytest.raises(dbapi.ProgrammingError, match="epsilon must be above 0"):
        dc.connect(folder / "visits.toml", epsilon=0)
    with pytest.raises(dbapi.OperationalError, match=r"nowhere\.toml") as wrong:
        dc.connect(folder / "nowhere.toml")
    assert isinstance(wrong.value, dc.PolicyError)
    (folder / "visits.sqlite").unlink()
    with pytest.raises(dbapi.OperationalError, match="checkpoint") as stopped:
        dc.connect(folder / "visits.toml")
    assert isinstance(stopped.value, dc.LedgerError)


def test_a_failure_is_an_operational_error_and_stays_charged(folder, monkeypatch):
    with dc.connect(folder / "visits.toml", epsilon=1) as connection:
        monkeypatch.setattr(type(connection.curator._engine), "totals", None)
        with pytest.raises(dbapi.OperationalError) as failed:
            asked(connection, COUNT)
        assert isinstance(failed.value, dc.Failed)
        assert connection.curator.budget().spent.epsilon == 1


def test_a_query_that_is_not_text_is_refused(connection):
    with pytest.raises(dbapi.ProgrammingError, match="expected SQL as a string, not bytes"):
        connection.cursor().execute(b"SELECT 1")


def test_a_spent_budget_refuses_queries(curator):
    rows = pa.table({"patient": [1, 2]})
    with dc.open(rows, unit="patient", budget=1, columns={}, groups=1, rows=1, ledger=":memory:") as small:
        connection = dc.connect(small, epsilon="2/3")
        asked(connection, "SELECT COUNT(*) AS n FROM data")
        with pytest.raises(dbapi.ProgrammingError):
            asked(connection, "SELECT COUNT(*) AS n FROM data WHERE patient > 1")


def test_pandas_reads_from_a_connection(connection):
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pd.read_sql("SELECT new, COUNT(*) AS n FROM data WHERE age > ? GROUP BY new", connection, params=[80])
    assert list(frame.columns) == ["new", "n", "n_margin", "n_bias", "n_bias_low"]
    assert frame["n"].sum() == number(connection, "age > 80")


@pytest.mark.long
def test_threads_share_a_connection_and_cannot_overspend_it(tmp_path):
    rows = pa.table({"patient": range(20), "age": range(20)})
    said = {"unit": "patient", "columns": {"age": (0, 120)}, "groups": 1, "rows": 1}
    outcomes = []

    def work(connection, mine):
        for age in mine:
            try:
                ((_, margin, *_),) = asked(connection, "SELECT COUNT(*) AS n FROM data WHERE age > ?", [age])
                outcomes.append(margin > 0)
            except dc.Refused:
                outcomes.append(False)

    with (
        dc.open(rows, budget="1/4", ledger=tmp_path / "l.sqlite", **said) as curator,
        dc.connect(curator, epsilon="1/100") as connection,
    ):
        threads = [threading.Thread(target=work, args=(connection, range(part, 32, 4))) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(outcomes), sum(outcomes)) == (32, 25)
        assert curator.budget().spent.epsilon == Fraction(1, 4)
        curator.ledger.verify()


def test_set_takes_a_margin_a_purpose_and_details_with_or_without_a_prefix(connection):
    cursor = connection.cursor()
    cursor.execute("SET discreet.margin = 40")
    assert cursor.execute("SHOW margin").fetchall() == [("40",)]
    assert cursor.execute("SHOW epsilon").fetchall() == [(None,)]
    assert cursor.execute("SELECT COUNT(*) AS n FROM data").fetchone()[1] <= 40
    assert cursor.messages == []
    cursor.execute("SET details TO on").execute("SET LOCAL purpose = 'planning of beds'")
    assert cursor.execute("SHOW discreet.purpose").fetchall() == [("planning of beds",)]
    cursor.execute("SELECT COUNT(*) AS n FROM data")
    ((_, text),) = cursor.messages
    assert "Ledger entry" in text
    cursor.execute("SELECT COUNT(*) AS n FROM data WHERE age > 3")
    assert "planning of beds" in list(connection.curator.ledger.events())[-1].question
    cursor.execute("RESET details").execute("RESET margin")
    assert cursor.execute("SHOW details").fetchall() == [("off",)]
    assert cursor.execute("SHOW epsilon").fetchall() == [(str(SURE),)]


@pytest.mark.parametrize("statement", ["SET details = maybe", f"SET purpose = '{'x' * 2000}'", "SET margin = -1"])
def test_a_setting_that_makes_no_sense_is_refused(connection, statement):
    with pytest.raises(dbapi.ProgrammingError):
        connection.cursor().execute(statement)
