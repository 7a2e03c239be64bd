"""discreet publish, as an owner runs it: help, dry run, costs, exit codes and progress."""

import sys

import pyarrow.parquet as pq
import pytest
import typer
from commands import run
from publish.hospital import policy_text, visits

import discreet as dc
from discreet.cli import app, publish, report, terminal  # noqa: F401 - imported before any test is timed
from discreet.publish.manifest import verify

PLAN = """
[release]
name = "Wards"
{cost}
[tables.by_ward]
sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
[tables.by_sex]
sql = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
"""


@pytest.fixture
def folder(tmp_path):
    pq.write_table(visits(), tmp_path / "visits.parquet")
    (tmp_path / "policy.toml").write_text(policy_text(ledger="ledger"))
    (tmp_path / "plan.toml").write_text(PLAN.format(cost="epsilon = 2"))
    return tmp_path


def test_a_plan_is_shown_then_published_then_free(folder):
    dry = run("publish", "policy.toml", "plan.toml", "--dry-run", cwd=folder)
    assert dry.returncode == 0
    assert "would cost epsilon 2 at delta 5e-7 (" in dry.stdout
    assert "by_ward: 3 cells; n ± " in dry.stdout
    assert not (folder / "out").exists()
    done = run("publish", "policy.toml", "plan.toml", "--out", "out", cwd=folder)
    assert done.returncode == 0
    assert "2 tables published" in done.stdout
    cost = dry.stdout.partition("would cost ")[2].partition(". No")[0]
    assert f"Cost: {cost}; epsilon " in done.stdout
    assert "lists all charged queries, with constants and who asked: read it" in done.stdout.splitlines()[-1]
    for shown in (dry.stdout, done.stdout):
        assert "sex is NULL or not declared (because of by_sex)" in shown
        assert "Clipping bias is not measured for tables that add up" in shown
    assert [line for line in done.stderr.splitlines() if line.endswith(" …")][:2] == [
        "charging the ledger …",
        "releasing family-1 …",
    ]
    assert verify(folder / "out") == []
    again = run("publish", "policy.toml", "plan.toml", "--out", "again", cwd=folder)
    assert "Nothing was charged" in again.stdout
    assert again.stdout.rpartition("; ")[2] == done.stdout.rpartition("; ")[2]
    assert (folder / "out/tables/by_ward.csv").read_bytes() == (folder / "again/tables/by_ward.csv").read_bytes()
    verified = run("report", "policy.toml", "--verify", "out", cwd=folder)
    assert verified.returncode == 0


def test_a_release_in_python_is_verified_with_the_policy_s_file(folder):
    with dc.open(folder / "policy.toml") as curator:
        curator.publish(folder / "plan.toml", folder / "out", key="first")
    assert run("report", "policy.toml", "--verify", "out", cwd=folder).returncode == 0
    (folder / "policy.toml").write_text(policy_text(ledger="ledger").replace("[0, 500]", "[0, 600]"))
    changed = run("report", "policy.toml", "--verify", "out", cwd=folder)
    assert (changed.returncode, "policy.toml: changed" in changed.stderr) == (2, True)


def test_the_cost_of_a_pure_budget_is_an_epsilon(folder):
    (folder / "policy.toml").write_text(policy_text(ledger="pure", budget="epsilon = 4"))
    dry = run("publish", "policy.toml", "plan.toml", "--dry-run", cwd=folder)
    assert "would cost epsilon 2 (50 % of the budget)" in dry.stdout
    assert "family-1: 100 % of it (epsilon 2)" in dry.stdout


@pytest.mark.parametrize(
    ("words", "cost", "code", "named"),
    [
        ([], "epsilon = 2", 2, "--out"),
        (["--out", "out"], "epsilon = 0", 2, "line 4"),
        (["--out", "out"], "epsilon = 9", 3, "not enough budget"),
    ],
    ids=["no folder", "bad plan", "too expensive"],
)
def test_mistakes_and_refusals_have_their_exit_codes_and_leave_nothing(folder, words, cost, code, named):
    (folder / "plan.toml").write_text(PLAN.format(cost=cost))
    done = run("publish", "policy.toml", "plan.toml", *words, cwd=folder)
    assert done.returncode == code
    assert named in done.stderr
    assert not (folder / "out").exists()


def test_a_missing_part_has_an_exit_code_of_its_own(folder, monkeypatch):
    monkeypatch.setattr("discreet.publish.parts.publish_family", lambda *_: 1 / 0)
    done = run("publish", "policy.toml", "plan.toml", "--out", "out", cwd=folder)
    assert done.returncode == 4
    assert "by_ward: charged, but its result is missing" in done.stderr


def test_the_usage_names_arguments_and_sections_of_the_plan(tmp_path):
    shown = " ".join(run("publish", "--help", cwd=tmp_path).stdout.replace("│", " ").split())
    assert "[OPTIONS] POLICY PLAN" in shown
    assert "release, tables.NAME and synthetic.NAME" in shown


def _texts(command):
    """Yield the help texts of a command and of those below it."""
    yield command.help or ""
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""
    for below in getattr(command, "commands", {}).values():
        yield from _texts(below)


def test_no_help_text_has_brackets_which_would_be_read_as_markup():
    texts = list(_texts(typer.main.get_command(app)))
    assert len(texts) > 100
    assert [text for text in texts if "[" in text] == []


def test_steps_are_a_bar_on_a_terminal_and_lines_elsewhere(capsys, monkeypatch):
    with terminal.step_progress() as progress:
        progress("reading [rows]")
    assert capsys.readouterr().err == "reading [rows] …\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with terminal.step_progress() as progress:
        progress("reading [rows]")
    shown = capsys.readouterr().err
    assert "reading [rows]" in shown
    assert "…" not in shown
