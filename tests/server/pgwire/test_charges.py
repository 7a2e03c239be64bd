"""What is charged over the PostgreSQL protocol: executions of new questions, once; nothing else."""

import re

import psycopg
import pyarrow as pa
import pytest
from wire_client import SYNC, bind, describe_portal, describe_statement, execute, kinds, parse

from discreet.server.pgwire.data_rows import align

BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"


def count(threshold):
    """A question that nobody has asked before."""
    return f"SELECT COUNT(*) AS n FROM visits WHERE age > {threshold}"


@pytest.fixture
def spent(server):
    """Give a function that returns what was spent since the test began."""
    before = server.spent()
    return lambda: float(server.spent() - before)


def test_an_answer_is_charged_and_has_its_margin_beside_it(connect, spent):
    cursor = connect().execute(count(1))
    assert [column.name for column in cursor.description] == ["n", "n_margin", "n_bias", "n_bias_low"]
    assert len(cursor.fetchall()) == 1
    assert spent() == 1


def test_the_same_question_again_is_free_and_has_the_same_answer(connect, spent):
    first = connect().execute(count(2)).fetchall()
    assert connect().execute(count(2)).fetchall() == first
    assert connect().execute(count(2), prepare=True).fetchall() == first
    assert connect(cursor_factory=psycopg.RawCursor).execute(count(2).replace("2", "$1"), [2]).fetchall() == first
    assert spent() == 1


def test_rollback_refunds_nothing_and_commit_charges_nothing(connect, spent):
    connection = connect(autocommit=False)
    connection.execute(count(3))
    connection.rollback()
    assert spent() == 1
    connection.execute(count(3))
    connection.commit()
    assert spent() == 1


def test_parse_and_describe_charge_nothing(wire, spent):
    client, sql = wire("ana"), count(4).replace("4", "$1")
    found = client.ask(parse(sql, "s"), describe_statement("s"), bind([b"4"], "s"), describe_portal(), SYNC)
    assert kinds(found) == "1tT2TZ"
    assert found[1][1] == b"\x00\x01" + (20).to_bytes(4)
    assert b"n_bias_low" in found[2][1]
    assert found[2] == found[4]
    assert spent() == 0
    found = client.ask(bind([b"4"], "s"), describe_portal(), execute(), execute(), SYNC)
    assert kinds(found) == "2NNTDCCZ"
    assert spent() == 1


def test_what_reads_no_private_table_is_free(connect, spent):
    connection = connect(options="")
    assert connection.execute("SELECT 1").fetchone() == (1,)
    assert connection.execute("SELECT floor FROM wards WHERE ward = %s", ["B"]).fetchall() == [(2,)]
    assert connection.execute("SHOW discreet.epsilon").fetchone() == (None,)
    assert connection.execute("SHOW TABLES").fetchall()[0] == ("visits", "YES")
    assert connection.execute("DESCRIBE patients").fetchall()[1][0] == "sex"
    assert connection.execute("SELECT table_name FROM information_schema.tables ORDER BY 1").fetchone() == ("patients",)
    assert spent() == 0


def test_explain_is_free_and_says_the_cost(connect, spent):
    connection = connect()
    lines = [line for (line,) in connection.execute(f"EXPLAIN {count(5)}").fetchall()]
    assert re.fullmatch(r"Would cost epsilon 1 \(.* of the budget\)\. No data was read\.", lines[0])
    assert re.fullmatch(r"n: ± [\d,.]+ \(95 %\); discrete Laplace, scale .*\.", lines[1])
    assert lines[2:]
    assert all(re.fullmatch(r"\S.*\.", line) and len(line) < 200 for line in lines)
    assert "FROM" not in " ".join(lines)
    connection.execute("SET details = on")
    detailed = [line for (line,) in connection.execute(f"EXPLAIN {count(5)}").fetchall()]
    assert detailed[: len(lines)] == lines
    assert 'FROM "visits"' in " ".join(detailed[len(lines) :])
    assert all(len(line) < 200 for line in detailed)
    assert connect().execute("EXPLAIN SELECT 1 FROM pg_class").fetchall() == [("Reads the catalog, which is free.",)]
    assert spent() == 0


def test_copy_is_charged_like_the_query(connect, spent):
    connection = connect()
    with connection.cursor().copy(f"COPY ({count(6)}) TO STDOUT") as copy:
        (row,) = list(copy.rows())
    answer = connection.execute(count(6)).fetchone()
    assert row[0] == str(answer[0])
    assert spent() == 1


def test_a_portal_that_is_fetched_in_portions_is_charged_once(connect, spent):
    connection = connect(autocommit=False)
    with connection.cursor("portions") as cursor:
        cursor.execute(BY_WARD.replace("n FROM", "m FROM"))
        assert [row[0] for row in (cursor.fetchone(), *cursor.fetchmany(1), *cursor.fetchall())] == ["A", "B", "C"]
    assert spent() == 1


def test_a_declared_cursor_that_nobody_reads_costs_nothing(connect, spent):
    connection = connect(autocommit=False)
    connection.execute(f"DECLARE unread CURSOR FOR {count(7)}")
    connection.commit()
    assert spent() == 0


def test_a_refused_question_costs_nothing(connect, spent):
    with pytest.raises(psycopg.errors.FeatureNotSupported) as refusal:
        connect().execute("SELECT * FROM visits LIMIT 10")
    assert "Aggregate them" in refusal.value.diag.message_hint
    assert refusal.value.diag.statement_position == "1"
    assert spent() == 0


def test_the_cost_may_be_set_and_stated_in_many_ways(connect, spent):
    connection = connect(options="-c discreet.epsilon=0.5 -c purpose=planning")
    assert connection.execute("SHOW epsilon").fetchone() == ("1/2",)
    connection.execute(count(8))
    assert spent() == 0.5
    connection.execute("SET epsilon = '1/4'")
    connection.execute(count(9))
    assert spent() == 0.75
    connection.execute("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 2) COUNT(*) AS n FROM visits WHERE age > 10")
    assert spent() == 2.75
    connection.execute("SET margin = 40")
    assert connection.execute("SHOW epsilon").fetchone() == (None,)
    assert connection.execute(count(11)).fetchone()[1] <= 40
    connection.execute("RESET margin")
    assert connection.execute("SHOW epsilon").fetchone() == ("1/2",)
    assert connection.execute("SHOW purpose").fetchone() == ("planning",)


def test_without_a_cost_the_question_is_refused_and_says_how_to_state_it(connect, spent):
    with pytest.raises(psycopg.Error) as refusal:
        connect(options="").execute(count(12))
    assert refusal.value.sqlstate == "22023"
    assert "SET epsilon" in refusal.value.diag.message_primary + refusal.value.diag.message_hint
    assert spent() == 0


def test_the_policy_may_have_a_default_and_a_limit_of_an_analyst(connect, spent):
    connection = connect("bob", options="")
    assert connection.execute("SHOW epsilon").fetchone() == ("1/4",)
    connection.execute(count(13))
    assert spent() == 0.25
    connection.execute("SET epsilon = 1")
    with pytest.raises(psycopg.Error) as refusal:
        connection.execute(count(14))
    assert refusal.value.sqlstate == "53400"
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT COUNT(*) FROM patients")


def test_notices_state_the_cost_and_what_remains(connect):
    connection, texts = connect(), []
    connection.add_notice_handler(lambda notice: texts.append(notice.message_primary))
    connection.execute(count(15))
    connection.execute(count(15))
    assert texts[0].startswith("Cost: epsilon 1 ")
    assert "remains" in texts[0]
    assert "exceed the bounds; what they lose is not in the margins" in texts[1]
    assert "No charge: cached answer" in texts[2]
    connection.execute("SET details = on")
    connection.execute(count(15))
    assert "Ledger entry" in texts[6]
    connection.execute("SET client_min_messages = warning")
    connection.execute(count(15))
    assert len(texts) == 7


def test_an_auditor_reads_the_catalog_and_asks_nothing(connect, spent):
    connection = connect("vera", options="")
    assert connection.execute("SELECT count(*) FROM pg_tables").fetchone() == (4,)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(count(16))
    assert spent() == 0


def test_the_owner_asks_without_a_limit_of_their_own(connect, spent):
    assert connect("otto").execute(count(17)).fetchone()
    assert spent() == 1


def test_a_result_is_brought_into_the_shape_that_was_announced():
    announced = pa.schema([("n", pa.int64()), ("n_bias", pa.float64())])
    table = pa.table({"other": ["x"], "n": [7]})
    assert align(("other", "n"), table, announced.names, announced).to_pylist() == [{"n": 7, "n_bias": None}]
    same = pa.table({"n": [1], "n_bias": [0.5]})
    assert align(("n", "n_bias"), same, announced.names, announced) is same


NASTY = ["O'Hara", "' OR '1'='1", "'; DROP TABLE visits; --", "$1", "?", ":name", "\\", "\\' OR TRUE --", "a\nb", "😀"]


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("form", ["%s", "%b"], ids=["text", "binary"])
def test_a_parameter_is_a_value_and_never_sql(connect, text, form):
    connection = connect()
    sql = f"SELECT {form} AS same, '$1' AS other FROM wards WHERE ward = 'A' AND ward <> {form} -- $1"
    assert connection.execute(sql, [text, text]).fetchall() == [(text, "$1")]
    assert connection.execute(f"SELECT {form}::text, version() FROM pg_am LIMIT 1", [text]).fetchone()[0] == text
    for place in ("FROM %s", "FROM wards AS %s", "FROM wards GROUP BY wards.%s", "FROM pg_catalog.%s"):
        with pytest.raises(psycopg.Error):
            connection.execute(f"SELECT COUNT(*) AS n {place}", [text])
