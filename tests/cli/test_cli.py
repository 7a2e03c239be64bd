"""The commands, as a user runs them."""

import os
import subprocess
import sys

import pytest

import discreet as dc


def run(*words, cwd):
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-c", "from discreet.cli import app; app()", *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_the_tour_shows_everything_and_saves_its_pictures(tmp_path):
    shown = run("demo", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "worst log-ratio 1/10, exactly epsilon" in shown.stdout
    assert "worst log-ratio inf" in shown.stdout
    assert "simultaneous 95 % margin: ± 12" in shown.stdout
    assert "0.311" in shown.stdout
    assert "answered: 100;  spent: 1, exactly" in shown.stdout
    assert shown.stdout.count("valid") == 4
    assert max(map(len, shown.stdout.splitlines())) <= 80
    for name in ("neighbours.svg", "names.svg"):
        assert (tmp_path / "tour" / name).read_text().lstrip().startswith("<?xml")


def test_version_and_help(tmp_path):
    assert run("--version", cwd=tmp_path).stdout == f"discreet {dc.__version__}\n"
    assert "demo" in run("--help", cwd=tmp_path).stdout


@pytest.fixture
def ledger_file(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with dc.create_ledger(path, name="visits", budget=dc.Budget(1)) as ledger:
        event = dc.Event(mechanism=str(dc.Laplace(10)), sensitivity="{}", question="how many visitors?")
        ledger.settle(ledger.charge(dc.Loss("1/10"), event), b"731")
    return path


def test_a_ledger_is_shown_and_verified(tmp_path, ledger_file):
    verified = run("ledger", "verify", ledger_file, "--name", "visits", cwd=tmp_path)
    assert verified.returncode == 0
    assert "1 charges" in verified.stdout
    shown = run("ledger", "show", ledger_file, "--name", "visits", cwd=tmp_path)
    assert shown.returncode == 0
    assert "released" in shown.stdout
    assert "spent epsilon 1/10 of Budget(epsilon=1)" in shown.stdout


@pytest.mark.parametrize("command", ["verify", "show"])
def test_a_wrong_or_missing_ledger_is_named_on_stderr(tmp_path, ledger_file, command):
    missing = run("ledger", command, "none.sqlite", "--name", "visits", cwd=tmp_path)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "none.sqlite" in missing.stderr
    other = run("ledger", command, ledger_file, "--name", "others", cwd=tmp_path)
    assert (other.returncode, other.stdout) == (2, "")
    assert "visits" in other.stderr


POLICY = """
[data]
name = "visits"
[budget]
epsilon = 1.0
[tables.visits]
source = "visits.csv"
unit = "patient"
[tables.visits.columns]
patient = { type = "integer" }
weight = { type = "real" }
"""


def test_a_policy_is_explained_and_its_hazards_are_named(tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY)
    checked = run("check", "policy.toml", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "Protected: each person, with all of their rows in visits." in checked.stdout
    assert "D004 visits, weight" in checked.stdout
    assert max(map(len, checked.stdout.splitlines())) <= 80


def test_a_wrong_policy_names_line_cause_and_fix(tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY.replace('unit = "patient"', 'unit = "patinet"'))
    checked = run("check", "policy.toml", cwd=tmp_path)
    assert (checked.returncode, checked.stdout) == (2, "")
    assert 'policy.toml, line 8: table visits: unit names "patinet"' in checked.stderr
    assert 'did you mean "patient"?' in checked.stderr
