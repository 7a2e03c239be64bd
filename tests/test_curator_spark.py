"""End to end with the data on Spark: the same policy and query give the same exact totals as in DuckDB."""

import logging
import threading

import pytest
from commands import run_process
from typer.testing import CliRunner

import discreet as dc
from discreet.cli import app
from discreet.engines.duckdb.engine import Tuning
from discreet.engines.spark import connection
from discreet.engines.spark import engine as module
from discreet.engines.table_source import EngineError
from discreet.kernel.errors import FAILED
from discreet.learn import GaussianMixture, LinearRegression
from discreet.policy import Policy
from tests.engines.spark_servers import FOREVER, again, sail_at, shared
from tests.engines.spark_shop import QUESTIONS, exact, here, tables, text, written
from tests.learn.spark_tables import learned, seeded


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return written(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def curator(sail, places):
    with dc.open(Policy.parse(text(sail.url, places))) as found:
        yield found


@pytest.fixture
def other():
    """Yield the same data and policy in DuckDB."""
    with dc.open(here(), data=tables()) as found:
        yield found


@pytest.mark.long(but=["SELECT COUNT(DISTINCT street) AS n FROM sales"])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_same_policy_gives_the_same_exact_totals(curator, other, sql):
    found = exact(curator, sql)
    assert found == exact(other, sql)
    assert any(each or any(cells) for each, cells in found)


@pytest.mark.long
def test_answers_are_accurate_and_charged(curator, other):
    sql = "SELECT city, COUNT(*) AS n, SUM(amount) AS s FROM sales GROUP BY city"
    answers = [each.ask(sql, epsilon=20) for each in (curator, other)]
    for name in ("n", "s"):
        (margin,) = set(answers[0].margins[name])
        for mine, theirs in zip(*(answer.table.column(name).to_pylist() for answer in answers), strict=True):
            assert abs(mine - theirs) < 5 * margin  # but for less than one run in 10^11
            assert abs(theirs) > margin
    assert curator.budget().spent == other.budget().spent
    assert curator.ask(sql, epsilon=20).table == answers[0].table
    assert curator.budget().spent == other.budget().spent


def test_an_explanation_has_the_engines_own_sql_and_nothing_of_its_files(curator, places):
    said = curator.explain(QUESTIONS[2], epsilon=1)
    assert "`amount`" in said.sql
    assert str(places["sales"]) not in said.sql
    assert curator.budget().spent.rho == 0


MODELS = {
    "mixture": lambda: GaussianMixture(2, epsilon=4, delta=1e-7),
    "regression": lambda: LinearRegression(epsilon=4),
}


@pytest.mark.long(but=["regression"])
@pytest.mark.parametrize("name", MODELS)
def test_models_learn_the_same_to_the_last_bit(curator, other, monkeypatch, name):
    begin, found = seeded(monkeypatch), []
    for each in (curator, other):
        begin()
        model = MODELS[name]()
        each.fit(model, "SELECT pieces, amount FROM sales")
        found.append({key: value for key, value in learned(model).items() if key != "receipt_"})
    assert found[0] == found[1]
    assert curator.budget().spent == other.budget().spent
    assert curator.budget().spent.rho > 0


@pytest.mark.long
def test_fits_of_one_query_at_once_are_all_answered(curator):
    """Also where somebody's question fails among their passes, which takes the session with it."""
    models, failed = [GaussianMixture(2, epsilon=4, delta=1e-7), LinearRegression(epsilon=4)], []

    def fit(model):
        try:
            curator.fit(model, "SELECT pieces, amount FROM sales")
        except Exception as error:  # noqa: BLE001 - a KeyError once
            failed.append(error)

    threads = [threading.Thread(target=fit, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        with pytest.raises(EngineError):
            curator._engine.query("SELECT nothing")
        threads[0].join(0.5)
        threads[1].join(0.5)
    assert failed == []
    assert all("receipt_" in vars(model) for model in models)


def test_what_the_engine_cannot_compute_is_refused_before_it_is_charged(curator):
    sql = "SELECT COUNT(*) AS n FROM sales WHERE street ~ '^((a|b)*c)*d$'"
    for attempt in (lambda: curator.ask(sql, epsilon=1), lambda: curator.explain(sql, epsilon=1)):
        with pytest.raises(dc.Refused):
            attempt()
    assert curator.budget().spent.rho == 0


def asked_in_thread(curator, sql="SELECT COUNT(*) AS n FROM sales"):
    outcome = []

    def run():
        try:
            outcome.append(curator.ask(sql, by="ana", epsilon=1))
        except dc.DiscreetError as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def wait():
        thread.join(240)  # far longer than it takes, so that a busy machine may be slow
        return outcome[0]

    return wait


PRICE = dc.privacy.cost_of(here().budget, 1).rho


def check_failed(curator, error):
    """Check that a failure discloses nothing, stays charged, and does not affect the next query."""
    assert isinstance(error, dc.Failed)
    assert str(error) == FAILED
    assert error.__cause__ is None
    assert curator.budget().spent.rho == PRICE
    assert curator.ask("SELECT SUM(weight) AS w FROM lines", by="ana", epsilon=1).value is not None
    assert curator.budget().spent.rho == 2 * PRICE


@pytest.mark.long
@pytest.mark.parametrize("how", ["killed", "late", "closed", "changed"])
def test_every_failure_has_the_same_message_and_its_charge_stands(places, monkeypatch, caplog, how):
    """The server dies, the time is over, the session is ended from outside: analysts see one message."""
    monkeypatch.setattr(connection, "_RETRY_TIMEOUT", 0.5)
    caplog.set_level(logging.ERROR, "discreet")
    server = sail_at()
    try:
        tuning = Tuning(seconds=1 if how == "late" else 600)
        with dc.open(Policy.parse(text(server.url, places)), tuning=tuning) as curator:
            run, ended = module._run_select, threading.Event()

            def interrupt(spark):
                """Stop what runs, again and again: what comes before the question begins is lost."""
                while not ended.wait(0.3):
                    spark.interruptAll()

            def meddled(spark, sql):
                """Let the first SELECT of the question take forever, and do something about it."""
                monkeypatch.setattr(module, "_run_select", run)
                if how == "killed":
                    threading.Timer(0.3, server.kill).start()
                elif how == "closed":
                    threading.Thread(target=interrupt, args=(spark,), daemon=True).start()
                elif how == "changed":
                    raise ValueError("customer 7 lives in Bonn")
                return run(spark, FOREVER)

            monkeypatch.setattr(module, "_run_select", meddled)
            error = asked_in_thread(curator)()
            ended.set()
            words = {
                "killed": "does not respond",
                "late": "time limit of 1 seconds",
                "changed": "ValueError at test_curator_spark.py",
            }
            assert words.get(how, "the engine failed") in caplog.text
            assert "customer 7" not in caplog.text
            if how == "killed":
                server = again(server)
            curator._engine.tuning = Tuning()
            check_failed(curator, error)
    finally:
        server.stop()


@pytest.mark.long
def test_a_question_is_stopped_after_its_time_limit(sail, places):
    shared(sail.url, endless=f"SELECT x AS sale, CAST(1 AS DOUBLE) AS weight FROM ({FOREVER})")
    slow = text(sail.url, {**places, "lines": "global_temp.endless"})
    with dc.open(Policy.parse(slow), tuning=Tuning(seconds=2)) as curator:
        with pytest.raises(dc.Failed):
            curator.ask("SELECT SUM(weight) AS w FROM lines", epsilon=1)
        curator._engine.tuning = Tuning()
        assert curator.ask("SELECT COUNT(*) AS n FROM sales", epsilon=1).value is not None


@pytest.mark.long
def test_a_server_that_was_started_again_between_questions_costs_nothing(places):
    server = sail_at()
    try:
        with dc.open(Policy.parse(text(server.url, places))) as curator:
            assert curator.ask("SELECT COUNT(*) AS n FROM sales", epsilon=1).value is not None
            server = again(server)
            assert curator.ask("SELECT COUNT(*) AS n FROM sales WHERE paid", epsilon=1).value is not None
            assert curator.budget().spent.rho == 2 * PRICE
    finally:
        server.stop()


@pytest.mark.long
def test_three_failures_suspend_the_data_set(sail, places, monkeypatch):
    with dc.open(Policy.parse(text(sail.url, places))) as curator:
        monkeypatch.setattr(module, "_run_select", lambda spark, sql: 1 / 0)
        for number in range(3):
            with pytest.raises(dc.Failed):
                curator.ask(f"SELECT COUNT(*) AS n FROM sales WHERE pieces > {number}", epsilon=1)
        monkeypatch.undo()
        with pytest.raises(dc.Refused, match="is suspended after 3 failed queries"):
            curator.ask("SELECT COUNT(*) AS n FROM sales", epsilon=1)


def test_frames_are_for_duckdb(sail, places):
    with pytest.raises(dc.PolicyError, match="data: frames need DuckDB, but the policy has engine = 'spark'"):
        dc.open(Policy.parse(text(sail.url, places)), data=tables())


def test_the_environment_can_name_the_server(sail, places, monkeypatch):
    without = text(sail.url, places).replace(f'connection = "{sail.url}"', "")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    with pytest.raises(dc.PolicyError, match="Spark: no server is configured"):
        dc.open(Policy.parse(without))
    monkeypatch.setenv("SPARK_REMOTE", sail.url)
    dc.open(Policy.parse(without)).close()


def test_a_policy_holds_no_token(sail, places):
    with pytest.raises(dc.PolicyError) as caught:
        Policy.parse(text(f"{sail.url}/;token=s3cr3t", places))
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.long
def test_commands_work_with_spark(sail, places, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(text(sail.url, places, ledger="shop.sqlite"))
    asked = "SELECT city, COUNT(*) AS n FROM sales GROUP BY city"
    for words in (("check",), ("explain", asked, "--epsilon", "1"), ("ask", asked, "--epsilon", "1"), ("budget",)):
        runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"})
        done = runner.invoke(app, [words[0], "policy.toml", *words[1:]])
        assert (words[0], done.exit_code, done.stderr) == (words[0], 0, "")
        assert words[0] != "ask" or "Köln" in done.stdout


@pytest.mark.long
def test_the_command_line_asks_spark_in_a_process_of_its_own(sail, places, tmp_path):
    """There `import pandas` fails, to save time; Spark's client needs pandas."""
    (tmp_path / "policy.toml").write_text(text(sail.url, places, ledger="shop.sqlite"))
    asked = "SELECT city, COUNT(*) AS n FROM sales GROUP BY city"
    done = run_process("ask", "policy.toml", asked, "--epsilon", "1", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Köln" in done.stdout


def test_check_reports_mismatches_on_spark(sail, places, tmp_path):
    """All of it at once: a table that is not there, a column, a type, a file that Spark does not read, and hazards."""
    file = tmp_path / "policy.toml"
    right = text(sail.url, places)
    file.write_text(right)
    assert CliRunner().invoke(app, ["check", str(file)]).exit_code == 0
    wrong = right.replace(str(places["regions"]), "lake.regions").replace("paid = {", "payed = {")
    file.write_text(wrong.replace(str(places["lines"]), "/data/lines.csv"))
    done = CliRunner().invoke(app, ["check", str(file)])
    assert done.exit_code == 2
    for words in ("table regions: table", "column payed: ", 'has "paid"', ".csv files"):
        assert words in done.output
    file.write_text(right.replace(sail.url, "sc://127.0.0.1:1"))
    done = CliRunner().invoke(app, ["check", str(file)])
    assert done.exit_code == 2
    assert "Spark at 127.0.0.1:1 does not respond" in done.output


@pytest.mark.long
def test_a_table_that_is_not_ready_is_refused_and_not_charged_on_spark(sail, places):
    shared(sail.url, ready="SELECT * FROM parquet.`{}`".format(places["lines"]))
    policy = Policy.parse(text(sail.url, {**places, "lines": "global_temp.ready"}))
    weight = "SELECT SUM(weight) AS w FROM lines"
    with dc.open(policy) as curator:
        shared(sail.url, ready="SELECT sale, weight AS mass FROM parquet.`{}`".format(places["lines"]))
        for _ in range(4):
            with pytest.raises(dc.PolicyError, match="column weight"):
                curator.ask(weight, epsilon=1)
        with pytest.raises(dc.PolicyError, match="column weight"):
            curator.fit(LinearRegression(epsilon=4), "SELECT weight, weight AS y FROM lines")
        assert curator.budget().spent.rho == 0
        assert curator.ask("SELECT COUNT(*) AS n FROM sales", epsilon=1).value is not None
        shared(sail.url, ready="SELECT * FROM parquet.`{}`".format(places["lines"]))
        assert curator.ask(weight, epsilon=1).value is not None


def test_a_policy_is_drafted_from_the_catalog_of_a_server(sail, places, tmp_path, monkeypatch):
    """Sail has a catalog for each session, so the table is made in the one that looks."""
    monkeypatch.chdir(tmp_path)
    columns = "patient BIGINT, ward STRING, cost DECIMAL(10, 2), seen TIMESTAMP, tags ARRAY<STRING>"

    def filled(spark, wanted, look=module.read_schemas):
        spark.sql("CREATE DATABASE clinic").toArrow()
        spark.sql(f"CREATE TABLE clinic.visits ({columns}) USING parquet LOCATION '{tmp_path}/visits'").toArrow()
        return look(spark, wanted)

    monkeypatch.setattr(module, "read_schemas", filled)
    run = CliRunner()
    assert run.invoke(app, ["init", sail.url, "--unit", "patient"]).exit_code == 0
    text = (tmp_path / "policy.toml").read_text()
    assert run.invoke(app, ["init", sail.url, places["lines"], "--out", "files.toml"]).exit_code == 0
    done = run.invoke(app, ["init", sail.url, "clinic.visit", "--out", "none.toml"])
    for line in (
        'engine   = "spark"',
        f'connection = "{sail.url}"',
        'source = "clinic.visits"',
        'unit = "patient"',
        'ward = { type = "text" }',
        'cost = { type = "decimal"',
        'seen = { type = "timestamp"',
        "# tags is omitted",
    ):
        assert line in text
    assert f'source = "{places["lines"]}"' in (tmp_path / "files.toml").read_text()
    assert done.exit_code == 2
    assert "clinic.visit" in done.output
