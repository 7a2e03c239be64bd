"""The owner's log on the command line: the reason of a failure, in a file that only the owner can read."""

import logging
import os

import pytest
from typer.testing import CliRunner

from discreet.cli import app, terminal
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.table_source import EngineError

POLICY = """
[data]
name = "visits"
[budget]
epsilon = 10.0
failures = 100
[tables.visits]
source = "visits.csv"
unit = "patient"
groups = 1
rows = 1
columns = { patient = { type = "integer" } }
"""
CANARY = "canary-4711"
ASK = ("SELECT COUNT(*) AS n FROM visits", "--epsilon", "1/10")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "visits.csv").write_text("patient\n1\n2\n")
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


@pytest.fixture
def failing(monkeypatch):
    def stop(*_):
        raise EngineError(f"the engine stopped at {CANARY}")

    monkeypatch.setattr(DuckDB, "totals", stop)


def run(folder, command, *words):
    environment = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner(env=environment).invoke(app, [command, str(folder / "policy.toml"), *map(str, words)])


def test_a_failure_is_logged_beside_the_ledger_and_names_the_log(folder, failing):
    before = os.umask(0)
    try:
        done = run(folder, "ask", *ASK)
    finally:
        os.umask(before)
    log = folder / "ledger.sqlite.log"
    assert done.exit_code == 4
    assert str(log) in done.stderr
    assert CANARY in log.read_text()
    assert CANARY not in done.output
    assert log.stat().st_mode & 0o777 == 0o600


def test_the_log_can_have_another_path(folder, failing):
    (folder / "logs").mkdir()
    done = run(folder, "ask", *ASK, "--log", folder / "logs" / "mine.log")
    assert str(folder / "logs" / "mine.log") in done.stderr
    assert CANARY in (folder / "logs" / "mine.log").read_text()
    assert not (folder / "ledger.sqlite.log").exists()
    nowhere = run(folder, "ask", *ASK, "--log", folder / "none" / "mine.log")
    assert (nowhere.exit_code, "--log" in nowhere.stderr) == (2, True)


def test_an_answer_leaves_no_log_and_no_handler(folder):
    before = {name: list(logging.getLogger(name).handlers) for name in ("discreet", "discreet.owner")}
    assert run(folder, "ask", *ASK).exit_code == 0
    assert run(folder, "budget").exit_code == 0
    assert not list(folder.glob("*.log"))
    assert before == {name: list(logging.getLogger(name).handlers) for name in before}


def test_a_log_that_others_could_read_is_made_private(folder, failing):
    log = folder / "ledger.sqlite.log"
    log.touch(0o644)
    run(folder, "ask", *ASK)
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_log_that_cannot_be_written_does_not_show_its_contents(folder, failing):
    (folder / "taken").mkdir()
    done = run(folder, "ask", *ASK, "--log", folder / "taken")
    assert done.exit_code == 4
    assert "cannot write the log" in done.stderr
    assert CANARY not in done.output


def test_the_log_has_a_maximum_size(folder, failing, monkeypatch):
    monkeypatch.setattr(terminal, "_MAX_BYTES", 1500)
    for number in range(5):
        run(folder, "ask", f"SELECT COUNT(*) AS n FROM visits WHERE patient > {number}", "--epsilon", "1/10")
    logs = sorted(path for path in folder.glob("ledger.sqlite.log*"))
    assert [path.name for path in logs] == ["ledger.sqlite.log", "ledger.sqlite.log.1"]
    assert all(path.stat().st_size < 9000 for path in logs)
    assert {path.stat().st_mode & 0o777 for path in logs} == {0o600}


@pytest.mark.parametrize(
    "command", [("ask", *ASK), ("explain", *ASK), ("budget",), ("check",)], ids=lambda words: words[0]
)
def test_changed_data_are_reported_on_the_terminal(folder, command):
    assert "version" not in run(folder, *command).stderr
    run(folder, "budget")
    (folder / "visits.csv").write_text("patient\n1\n2\n3\n")
    done = run(folder, *command)
    assert done.exit_code == 0
    (line,) = (line for line in done.stderr.splitlines() if "changed" in line)
    assert line.startswith("warning: ")
    assert "visits" in line
    assert "Declare version" in line
    assert "Declare version" not in done.stdout


def test_a_symlink_at_the_logs_path_is_not_followed(folder, failing):
    victim = folder / "victim"
    victim.write_text("kept")
    (folder / "visits.sqlite.log").symlink_to(victim)
    done = run(folder, "ask", *ASK)
    assert done.exit_code == 4
    assert CANARY not in done.output
    assert victim.read_text() == "kept"
