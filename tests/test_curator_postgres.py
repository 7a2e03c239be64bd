"""End to end with the data in PostgreSQL: the same policy and query give the same exact totals as in DuckDB."""

import logging
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.cli import app
from discreet.engines.postgres import session
from discreet.kernel.errors import FAILED
from discreet.kernel.ledger import Ledger
from discreet.policy import Policy
from discreet.postgres.server import connect
from discreet.query.passes import plan_query

POLICY = """
[data]
name = "shop"
timezone = "Europe/Berlin"
{server}
ledger = "{ledger}"
[budget]
epsilon = 100.0
delta = 1e-6
[budget.analysts]
ana = {{ epsilon = 40.0 }}
[tables.sales]
source = "{sales}"
unit = "customer"
groups = 3
rows = 5
rows_max = 1000000
[tables.sales.columns]
customer = {{ type = "integer" }}
city = {{ type = "text", references = "regions.name" }}
street = {{ type = "text" }}
amount = {{ type = "decimal", between = [0, 100], step = 0.01 }}
pieces = {{ type = "integer", between = [0, 9] }}
paid = {{ type = "boolean" }}
time = {{ type = "timestamp", between = [2026-01-01, 2026-12-31] }}
[tables.lines]
source = "{lines}"
unit = {{ through = "sales", on = "sale", key = "customer" }}
groups = 3
rows = 5
[tables.lines.columns]
sale = {{ type = "integer" }}
weight = {{ type = "real", between = [0, 10], step = 0.125 }}
[tables.regions]
source = "{regions}"
public = true
[tables.regions.columns]
name = {{ type = "text" }}
region = {{ type = "text" }}
"""
SETUP = """
CREATE SCHEMA shop;
CREATE TYPE shop.city AS ENUM ('Bonn', 'Köln', 'Trier');
CREATE TABLE shop.sales (
    customer integer, city shop.city, street varchar(40), amount numeric(10, 2), pieces smallint, paid boolean,
    time timestamptz
) PARTITION BY HASH (customer);
CREATE TABLE shop.sales_0 PARTITION OF shop.sales FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE shop.sales_1 PARTITION OF shop.sales FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE shop.lines (sale bigint, weight real);
CREATE TABLE shop.regions (name text, region text);
CREATE VIEW shop.slow AS
SELECT s.* FROM shop.sales AS s, LATERAL (SELECT pg_sleep(0.01 + COALESCE(customer, 0) * 1e-9)) AS waited;
GRANT USAGE ON SCHEMA shop TO shop_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA shop TO shop_reader;
"""
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM sales",
    "SELECT COUNT(DISTINCT customer) AS n FROM sales WHERE paid",
    "SELECT city, COUNT(*) AS n, SUM(amount) AS s, AVG(pieces) AS a FROM sales GROUP BY city",
    "SELECT r.region, COUNT(*) AS n FROM sales AS s JOIN regions AS r ON s.city = r.name GROUP BY r.region",
    "SELECT street, COUNT(*) AS n FROM sales GROUP BY street",
    "SELECT EXTRACT(MONTH FROM time) AS m, COUNT(*) AS n FROM sales GROUP BY m",
    "SELECT CAST(time AS DATE) AS d, COUNT(*) AS n FROM sales WHERE time < TIMESTAMP '2026-01-08 00:00:00' GROUP BY d",
    "SELECT QUANTILE_CONT(amount, 0.5) AS m FROM sales",
    "SELECT COUNT(DISTINCT street) AS n FROM sales",
    "SELECT SUM(weight) AS w FROM lines",
    "SELECT COUNT(*) AS n FROM sales WHERE LOWER(street) LIKE 'lane%' AND amount / NULLIF(pieces, 0) > 3",
    """SELECT n, COUNT(*) AS k FROM (SELECT customer, COUNT(*) AS n FROM sales GROUP BY customer) AS t
    WHERE n BETWEEN 1 AND 5 GROUP BY n""",
]
AWAY = "the data is not available at the moment. Nothing was charged. Try again later; the log has the reason."
CITIES = ["Bonn", "Köln", "Trier"]


def rows(count=1500):
    """Return the same rows for both engines; the last column is an instant."""
    start = 1_767_225_600_000_000  # 2026-01-01 in UTC
    return {
        "sales": pa.table(
            {
                "customer": [i % 400 if i % 17 else None for i in range(count)],
                "city": [CITIES[i % 3] if i % 5 else None for i in range(count)],
                "street": ["Main" if i % 4 else f"Lane {i % 50}" for i in range(count)],
                "amount": [(i * 37 % 10_000) / 100 for i in range(count)],
                "pieces": [i % 7 for i in range(count)],
                "paid": [i % 3 == 0 for i in range(count)],
                "time": pa.array([start + i * 10**10 for i in range(count)], pa.timestamp("us", "UTC")),
            }
        ),
        "lines": pa.table({"sale": [i % 500 for i in range(count)], "weight": [i % 80 / 8 for i in range(count)]}),
        "regions": pa.table({"name": CITIES, "region": ["west", "west", "south"]}),
    }


@pytest.fixture(scope="session")
def admin(postgres):
    """Create a database for this module, and return its URL as a superuser."""
    with connect(postgres.url()) as server:
        server.execute("DROP DATABASE IF EXISTS shop_test WITH (FORCE)")
        server.execute("CREATE DATABASE shop_test")
        server.execute("CREATE ROLE shop_reader LOGIN")
    url = postgres.url("shop_test")
    with connect(url) as server:
        server.execute(SETUP)
        for name, table in rows().items():
            with server.cursor().copy(f"COPY shop.{name} FROM STDIN") as copy:
                for row in table.to_pylist():
                    copy.write_row(list(row.values()))
    return url


@pytest.fixture
def url(admin):
    return admin.replace("postgres@", "shop_reader@")


def policy_text(url, sales="shop.sales", ledger=":memory:"):
    server = f'engine = "postgresql"\nconnection = "{url}"'
    return POLICY.format(server=server, ledger=ledger, sales=sales, lines="shop.lines", regions="shop.regions")


def in_files():
    places = {name: f"{name}.parquet" for name in ("sales", "lines", "regions")}
    return Policy.parse(POLICY.format(server="", ledger=":memory:", **places))


@pytest.fixture
def curator(url):
    with dc.open(Policy.parse(policy_text(url))) as found:
        yield found


@pytest.fixture
def other():
    """Yield the same data and policy in DuckDB."""
    with dc.open(in_files(), data=rows()) as found:
        yield found


def exact(curator, sql):
    """Return the exact totals of a question: for the test only."""
    plan = plan_query(sql, curator.policy, curator._engine, by="owner", groups=None, rows=None)
    found = []
    for part in plan.releases:
        totals = curator._engine.totals(part.question)
        each = dict(zip(totals.keys, map(tuple, totals.values.tolist()), strict=True))
        cells = [
            sorted(
                (str(totals.keys[group]), cell, weight) for group, cell, weight in zip(*places, strict=True) if weight
            )
            for tally in totals.cell_counts.values()
            for places in [[column.tolist() for column in (tally.groups, tally.cells, tally.weights)]]
        ]
        found.append(({key: row for key, row in each.items() if any(row)}, cells))
    return found


@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_same_policy_gives_the_same_exact_totals(curator, other, sql):
    found = exact(curator, sql)
    assert found == exact(other, sql)
    assert any(each or any(cells) for each, cells in found)


def test_answers_are_accurate_and_charged(curator, other):
    sql = "SELECT city, COUNT(*) AS n, SUM(amount) AS s FROM sales GROUP BY city"
    answers = [each.ask(sql, epsilon=20) for each in (curator, other)]
    for name in ("n", "s"):
        (margin,) = set(answers[0].margins[name])
        for here, there in zip(*(answer.table.column(name).to_pylist() for answer in answers), strict=True):
            assert abs(here - there) < 5 * margin  # but for less than one run in 10^11
            assert abs(there) > margin
    assert curator.budget().spent == other.budget().spent
    assert curator.ask(sql, epsilon=20).table == answers[0].table
    assert curator.budget().spent == other.budget().spent


def test_an_explanation_has_the_engines_own_sql_and_nothing_of_the_database(curator):
    shown = curator.explain(QUESTIONS[2], epsilon=1)
    assert '"sales"' in shown.sql
    assert "FLOAT8" in shown.sql or "DOUBLE PRECISION" in shown.sql
    assert "shop" not in shown.sql
    assert curator.budget().spent.rho == 0


def test_models_learn_from_rows_in_the_database(curator, other):
    from discreet.learn import LinearRegression

    found = []
    for each in (curator, other):
        model = LinearRegression(epsilon=20)
        each.fit(model, "SELECT pieces, amount FROM sales")
        found.append(model)
    assert curator.budget().spent == other.budget().spent
    assert curator.budget().spent.rho > 0


def refusing(dialect):
    return replace(dialect, unsupported_reason=lambda call: "LOWER: not here." if call.op == "lower" else "")


def test_what_the_engine_cannot_compute_is_refused_before_it_is_charged(other):
    other._engine.dialect = refusing(other._engine.dialect)
    sql = "SELECT COUNT(*) AS n FROM sales WHERE LOWER(street) = 'main'"
    for attempt in (
        lambda: other.ask(sql, epsilon=1),
        lambda: other.explain(sql, epsilon=1),
        lambda: other.fit(
            dc.learn.LinearRegression(epsilon=1), "SELECT pieces, amount FROM sales WHERE LOWER(street) = 'x'"
        ),
    ):
        with pytest.raises(dc.Refused, match=r"LOWER: not here\."):
            attempt()
    assert other.budget().spent.rho == 0
    assert other.ask("SELECT COUNT(*) AS n FROM sales", epsilon=1).value is not None


def asked_in_thread(curator, sql="SELECT COUNT(*) AS n FROM sales", **price):
    outcome = []

    def run():
        try:
            outcome.append(curator.ask(sql, by="ana", **(price or {"epsilon": 1})))
        except dc.DiscreetError as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def wait():
        thread.join(240)  # far longer than it takes, so that a busy machine may be slow
        return outcome[0]

    return wait


def check_failed(curator, error, spent):
    """Check that a failure discloses nothing, stays charged, and does not affect the next query."""
    assert isinstance(error, dc.Failed)
    assert str(error) == FAILED
    assert error.__cause__ is None
    assert curator.budget().spent.rho == spent
    answer = curator.ask("SELECT SUM(weight) AS w FROM lines", by="ana", epsilon=1)
    assert answer.value is not None
    assert curator.budget().spent.rho == 2 * spent


PRICE = dc.privacy.cost_of(
    Policy.parse(POLICY.format(server="", ledger=":memory:", sales="a", lines="b", regions="c")).budget, 1
).rho


def test_a_connection_that_is_ended_while_a_question_runs(admin, url, caplog):
    caplog.set_level(logging.ERROR, "discreet")
    asked = "SELECT pid FROM pg_stat_activity WHERE usename = 'shop_reader' AND wait_event = 'PgSleep'"
    with dc.open(Policy.parse(policy_text(url, sales="shop.slow"))) as curator, connect(admin) as server:
        failed = asked_in_thread(curator)
        start = time.monotonic()
        while not (found := server.execute(asked).fetchall()) and time.monotonic() < start + 240:
            time.sleep(0.02)
        server.execute("SELECT pg_terminate_backend(%s)", found[0])
        error = failed()
        assert "the server ended the connection (SQLSTATE 57P01" in caplog.text
        server.execute("CREATE OR REPLACE VIEW shop.slow AS SELECT * FROM shop.sales")  # which is quick
        check_failed(curator, error, PRICE)


@pytest.mark.parametrize("how", ["terminated", "restarted", "late"])
def test_every_failure_has_the_same_message_and_its_charge_stands(postgres, admin, url, monkeypatch, how):
    """The connection is ended, the server restarted, or the time is over: analysts see one message."""
    with dc.open(Policy.parse(policy_text(url))) as curator:
        read_table = session.Snapshot.run_select

        def meddled(snapshot, sql):
            monkeypatch.setattr(session.Snapshot, "run_select", read_table)
            if how == "terminated":
                with connect(admin) as server:
                    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop_reader'"
                    server.execute(ended)
            elif how == "restarted":
                postgres.restart("immediate")
            else:
                snapshot._connection.execute("SET LOCAL statement_timeout = 50; SELECT pg_sleep(1)")
            return read_table(snapshot, sql)

        monkeypatch.setattr(session.Snapshot, "run_select", meddled)
        error = asked_in_thread(curator)()
        check_failed(curator, error, PRICE)


@pytest.mark.parametrize(
    "sql", ["SELECT city, COUNT(*) AS n FROM sales GROUP BY city", "SELECT COUNT(*) AS n FROM sales"]
)
def test_a_server_that_is_down_costs_nothing(postgres, url, caplog, sql):
    caplog.set_level(logging.ERROR, "discreet")
    with dc.open(Policy.parse(policy_text(url))) as curator:
        postgres.halt()
        try:
            for _ in range(4):  # more than the failures that would stop the data set
                with pytest.raises(dc.Refused) as refused:
                    curator.ask(sql, by="ana", epsilon=1)
                assert str(refused.value) == AWAY
        finally:
            postgres.start()
        assert "cannot connect to the server" in caplog.text
        assert curator.budget().spent.rho == 0
        assert curator.ask(sql, by="ana", epsilon=1).table.num_rows


CHANGES = {
    "a renamed column": ("ALTER TABLE shop.lines RENAME COLUMN weight TO mass", dc.PolicyError, "column weight"),
    "a column of another type": (
        "ALTER TABLE shop.lines ALTER COLUMN weight TYPE date USING NULL",
        dc.PolicyError,
        "cannot cast date",
    ),
    "a dropped table": ("ALTER TABLE shop.lines RENAME TO gone", dc.PolicyError, "shop.lines does not exist"),
    "a right that is taken away": ("REVOKE SELECT ON shop.lines FROM shop_reader", dc.PolicyError, "permission denied"),
    "a lock": ("LOCK TABLE shop.lines IN ACCESS EXCLUSIVE MODE", dc.Refused, "table lines or sales is locked"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_or_locked_tables_are_refused_and_not_charged(admin, url, monkeypatch, change):
    """Also not counted as a failure: questions and models go on with other tables, and with this one afterwards."""
    statement, kind, words = CHANGES[change]
    monkeypatch.setattr(session, "_LOCK_TIMEOUT", 0.05)
    weight = "SELECT SUM(weight) AS w FROM lines"
    model = dc.learn.StandardScaler(epsilon=1)
    with connect(admin) as server, dc.open(Policy.parse(policy_text(url))) as curator:
        with server.transaction() if change == "a lock" else nullcontext():
            server.execute(statement)
            for _ in range(2):
                with pytest.raises(kind, match=words):
                    curator.ask(weight, epsilon=1)
                with pytest.raises(kind, match=words):
                    curator.fit(model, "SELECT weight FROM lines")
            assert curator.ledger.spent().rho == 0
            assert curator.ask("SELECT COUNT(*) AS n FROM sales", epsilon=1).value is not None
        if change != "a lock":
            server.execute(UNDONE[change])
        assert curator.ask(weight, epsilon=1).value is not None


def test_a_table_that_is_locked_at_opening_is_named_and_refused(admin, url, monkeypatch):
    monkeypatch.setattr(session, "_LOCK_TIMEOUT", 0.05)
    with connect(admin) as server, server.transaction():
        server.execute("LOCK TABLE shop.lines IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(dc.Refused, match="table lines is locked by another session"):
            dc.open(Policy.parse(policy_text(url)))


UNDONE = {
    "a renamed column": "ALTER TABLE shop.lines RENAME COLUMN mass TO weight",
    "a column of another type": "ALTER TABLE shop.lines ALTER COLUMN weight TYPE real USING 1",
    "a dropped table": "ALTER TABLE shop.gone RENAME TO lines",
    "a right that is taken away": "GRANT SELECT ON shop.lines TO shop_reader",
}


def test_a_question_about_other_columns_is_answered_with_one_renamed(admin, url):
    """Also by who opens the data set afterwards, as every command does."""
    with connect(admin) as server, dc.open(Policy.parse(policy_text(url))) as curator:
        server.execute("ALTER TABLE shop.sales RENAME COLUMN pieces TO items")
        try:
            assert curator.ask("SELECT SUM(amount) AS s FROM sales", epsilon=1).value is not None
            with pytest.warns(UserWarning, match="column pieces"):
                opened = dc.open(Policy.parse(policy_text(url)))
            with opened:
                assert opened.ask("SELECT SUM(amount) AS s FROM sales", epsilon=1).value is not None
                with pytest.raises(dc.PolicyError, match="column pieces"):
                    opened.ask("SELECT SUM(pieces) AS s FROM sales", epsilon=1)
                with pytest.raises(dc.PolicyError, match="column pieces"):
                    opened.ask("SELECT SUM(amount) AS s FROM sales WHERE pieces > 1", epsilon=1)
        finally:
            server.execute("ALTER TABLE shop.sales RENAME COLUMN items TO pieces")


def test_three_failures_suspend_the_data_set(admin, url, monkeypatch):
    def ended(snapshot, sql):
        snapshot._connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with dc.open(Policy.parse(policy_text(url))) as curator:
        with monkeypatch.context() as patched:
            patched.setattr(session.Snapshot, "run_select", ended)
            for number in range(3):
                with pytest.raises(dc.Failed):
                    curator.ask(f"SELECT COUNT(*) AS n FROM sales WHERE pieces > {number}", epsilon=1)
        with pytest.raises(dc.Refused, match="is suspended after 3 failed queries"):
            curator.ask("SELECT COUNT(*) AS n FROM sales", epsilon=1)
        curator.ledger.acknowledge()
        assert curator.ask("SELECT COUNT(*) AS n FROM sales", epsilon=1).value is not None


def test_frames_are_for_duckdb(url):
    with pytest.raises(dc.PolicyError, match="data: frames need DuckDB, but the policy has engine = 'postgresql'"):
        dc.open(Policy.parse(policy_text(url)), data=rows())


def test_the_environment_can_name_the_server(url, monkeypatch):
    text = policy_text(url).replace(f'connection = "{url}"', "")
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("DISCREET_POSTGRES", raising=False)
    with pytest.raises(dc.PolicyError, match=r"connection: no PostgreSQL server is configured"):
        dc.open(Policy.parse(text))
    monkeypatch.setenv("DISCREET_POSTGRES", url.replace("@", ":secret@"))
    dc.open(Policy.parse(text)).close()
    monkeypatch.delenv("DISCREET_POSTGRES")
    host, port = url.partition("@")[2].partition("/")[0].split(":")
    for name, value in {"PGHOST": host, "PGPORT": port, "PGUSER": "shop_reader", "PGDATABASE": "shop_test"}.items():
        monkeypatch.setenv(name, value)
    dc.open(Policy.parse(text)).close()


def run(*words):
    """Run a command in this process, where it is quick."""
    done = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}).invoke(app, list(map(str, words)))
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def file(tmp_path, url, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(policy_text(url, ledger="shop.sqlite"))
    return tmp_path / "policy.toml"


def test_commands_work_with_a_database(file):
    sql = "SELECT city, COUNT(*) AS n FROM sales GROUP BY city"
    said = {}
    for word, more in {
        "check": (),
        "explain": (sql, "--epsilon", "1"),
        "ask": (sql, "--epsilon", "1"),
        "fit": ("linear-regression", "SELECT pieces, amount FROM sales", "--epsilon", "1"),
        "budget": (),
    }.items():
        code, said[word], problems = run(word, file.name, *more)
        assert (word, code, problems) == (word, 0, "")
    assert "Köln" in said["ask"]
    assert "D026" not in said["check"]


@pytest.mark.long
def test_check_reports_privileges_and_row_security_of_the_role(file, admin):
    text = file.read_text()
    with connect(admin) as server:
        server.execute("ALTER TABLE shop.lines ENABLE ROW LEVEL SECURITY")
    try:
        assert re.search(
            r"D027 lines \(line \d+\): row-level security hides rows", run("check", file.name)[1].replace("\n", " ")
        )
    finally:
        with connect(admin) as server:
            server.execute("ALTER TABLE shop.lines DISABLE ROW LEVEL SECURITY")
    file.write_text(text.replace("shop_reader@", "postgres@"))
    code, said, problems = run("check", file.name)
    assert (code, problems) == (0, "")
    assert "D026 [data]" in said
    assert run("check", file.name, "--strict")[0] == 2
    command = [sys.executable, "-c", "from discreet.cli import app; app()", "budget", file.name]
    warned = subprocess.run(command, capture_output=True, text=True, check=True)
    assert warned.stderr.startswith("discreet: PostgreSQL: the role has more privileges than reading. It can do")


def test_check_reports_mismatches(file, url):
    text = file.read_text()
    wrong = text.replace("sale = {", "sail = {").replace('on = "sale"', 'on = "sail"')
    wrong = wrong.replace("shop.regions", "shop.region").replace('paid = { type = "boolean"', 'paid = { type = "date"')
    file.write_text(wrong)
    code, _, problems = run("check", file.name)
    assert code == 2
    assert problems.splitlines() == [
        (
            "policy.toml: table sales, column paid: cannot cast boolean to date. Declare "
            'type = "boolean", or change the stored type.'
        ),
        'policy.toml: table lines, column sail: it does not exist in the source. The source has "sale".',
        "policy.toml: table regions: shop.region does not exist in the database. Did you mean shop.regions?",
    ]
    file.write_text(text.replace(url, "postgresql://reader@127.0.0.1:1/x"))
    code, _, problems = run("check", file.name)
    assert code == 2
    assert "PostgreSQL at 127.0.0.1:1, database x: cannot connect to the server" in problems


def test_a_ledger_in_the_same_database_is_charged(postgres, url, tmp_path):
    with connect(postgres.url()) as server:
        server.execute("DROP DATABASE IF EXISTS shop_ledger WITH (FORCE)")
        server.execute("CREATE DATABASE shop_ledger")
    policy = Policy.parse(policy_text(url, ledger=postgres.url("shop_ledger")), base=tmp_path)
    with dc.open(policy) as curator:
        curator.ask("SELECT COUNT(*) AS n FROM sales", rho=Fraction(1, 100))
    with dc.open(policy) as curator:
        assert curator.budget().spent.rho == Fraction(1, 100)


@pytest.fixture
def shared(postgres, url, tmp_path):
    """Give a policy whose data and ledger are on one server."""
    with connect(postgres.url()) as server:
        server.execute("DROP DATABASE IF EXISTS shop_ledger WITH (FORCE)")
        server.execute("CREATE DATABASE shop_ledger")
    return Policy.parse(policy_text(url, ledger=postgres.url("shop_ledger")), base=tmp_path)


@pytest.mark.parametrize("moment", ["read", "stored", "shown"])
def test_a_server_that_dies_with_data_and_ledger_ends_like_every_failure(postgres, shared, monkeypatch, moment):
    """Whether it dies before the data are read, before the answer is stored, or before it is shown."""
    places = {
        "read": (session.Snapshot, "run_select"),
        "stored": (Ledger, "settle"),
        "shown": (Ledger, "answers"),
    }
    kind, name = places[moment]
    works, calls = getattr(kind, name), []

    def dies(*given):
        calls.append(name)
        if (
            moment != "shown" or len(calls) == 3
        ):  # two are before the charge: with and without the lock on equal queries
            postgres.halt("immediate")
        return works(*given)

    with dc.open(shared) as curator:
        with monkeypatch.context() as patched:
            patched.setattr(kind, name, dies)
            try:
                with pytest.raises(dc.Failed) as failed:
                    curator.ask("SELECT COUNT(*) AS n FROM sales", epsilon=1)
            finally:
                postgres.start()
        assert str(failed.value) == FAILED
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None or moment == "shown"
        assert curator.budget().spent.rho == PRICE
        failures = curator.releases.circuit_breaker
        failures.check()
        assert len(failures._failed_ids) == (
            moment != "shown"
        )  # the circuit breaker has seen it, once the ledger is back


def test_a_command_whose_server_dies_after_the_charge_ends_with_4(postgres, shared, monkeypatch):
    read_table = session.Snapshot.run_select

    def dies(*given):
        postgres.halt("immediate")
        return read_table(*given)

    file = shared.base / "policy.toml"
    file.write_text(policy_text(shared.data.connection, ledger=shared.data.ledger))
    monkeypatch.setattr(session.Snapshot, "run_select", dies)
    try:
        done = CliRunner().invoke(app, ["ask", str(file), "SELECT COUNT(*) AS n FROM sales", "--epsilon", "1"])
    finally:
        postgres.start()
    assert done.exit_code == 4
    assert FAILED in done.output
