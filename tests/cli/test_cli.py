"""The commands, as a user runs them."""

import io
import json
import re
from fractions import Fraction

import pyarrow.parquet as pq
import pytest
from commands import run, run_process

import discreet as dc
from discreet.cli.terminal import format_fraction, format_rounded_down

ASKED = """
[data]
name = "visits"
version = "1"
[budget]
epsilon = 1.0
[budget.analysts]
ana = { epsilon = 0.5 }
[tables.visits]
source = "visits.csv"
unit = "patient"
groups = 1
rows = 2
[tables.visits.columns]
patient = { type = "integer" }
ward = { type = "text", in = ["A", "B"] }
"""


@pytest.fixture
def policy_file(tmp_path):
    (tmp_path / "visits.csv").write_text("patient,ward\n" + "".join(f"{i},{'AB'[i % 2]}\n" for i in range(900)))
    path = tmp_path / "policy.toml"
    path.write_text(ASKED)
    return path


COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.mark.parametrize("run", [run, pytest.param(run_process, marks=pytest.mark.long)])
def test_queries_are_answered_explained_and_charged(tmp_path, policy_file, run):
    explained = run("explain", policy_file, COUNT, "--epsilon", "1/2", cwd=tmp_path)
    assert (explained.returncode, explained.stderr) == (0, "")
    assert "epsilon 0.5" in explained.stdout
    asked = run("ask", policy_file, COUNT, "--epsilon", "1/4", "--by", "ana", cwd=tmp_path)
    assert asked.returncode == 0, asked.stderr
    assert "±" in asked.stdout
    csv = run("ask", policy_file, COUNT, "--epsilon", "1/2", "--format", "csv", cwd=tmp_path)
    header, *rows = csv.stdout.splitlines()
    assert header == '"ward","n","n_margin","n_bias","n_bias_low"'
    assert [row.split(",")[0] for row in rows] == ['"A"', '"B"']
    assert "Charged epsilon 0.25" in csv.stderr
    once = ("--epsilon", "1/8", "--rows", "1")
    plain = run("ask", policy_file, "-", *once, "--format", "json", cwd=tmp_path, input=COUNT)
    assert [sorted(row) for row in json.loads(plain.stdout)["rows"]] == [
        ["n", "n_bias", "n_bias_low", "n_margin", "ward"]
    ] * 2
    shown = run("budget", policy_file, cwd=tmp_path)
    assert "epsilon 0.625" in shown.stdout
    assert "ana" in shown.stdout
    ledger = run("ledger", "show", policy_file, cwd=tmp_path)
    assert ledger.stdout.count("released") == 3
    assert ledger.stdout.count(f"\n    {COUNT}") == 3  # readable as a whole
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d  ana    released  epsilon 0.25$", ledger.stdout, re.MULTILINE)
    assert "laplace" not in ledger.stdout
    assert max(map(len, ledger.stdout.splitlines())) <= 80
    assert "laplace" in run("ledger", "show", policy_file, "--long", cwd=tmp_path).stdout
    assert "3 charges" in run("ledger", "verify", policy_file, cwd=tmp_path).stdout


def test_parquet_goes_to_standard_output(tmp_path, policy_file):
    asked = run("ask", policy_file, COUNT, "--epsilon", "1/4", "--format", "parquet", cwd=tmp_path, text=False)
    assert pq.read_table(io.BytesIO(asked.stdout)).column_names == ["ward", "n", "n_margin", "n_bias", "n_bias_low"]


def test_exit_codes_distinguish_refusals_from_mistakes(tmp_path, policy_file):
    refused = run("ask", policy_file, "SELECT patient FROM visits", "--epsilon", "1/2", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr.startswith("discreet: line 1")
    missing = run("ask", "none.toml", COUNT, "--epsilon", "1/2", cwd=tmp_path)
    assert (missing.returncode, missing.stdout) == (2, "")
    (tmp_path / "visits.csv").unlink()
    gone = run("ask", policy_file, COUNT, "--epsilon", "1/2", cwd=tmp_path)
    assert (gone.returncode, gone.stdout) == (2, "")
    assert "visits" in gone.stderr


@pytest.mark.long
def test_a_margin_determines_the_cost_and_asking_again_is_free(tmp_path, policy_file):
    asked = run("ask", policy_file, COUNT, "--margin", "60", "--format", "csv", cwd=tmp_path)
    assert (asked.returncode, len(asked.stdout.splitlines())) == (0, 3), asked.stderr
    assert "epsilon 0.1" in asked.stderr
    again = run("ask", policy_file, f"{COUNT} WITHIN 60", "--format", "csv", cwd=tmp_path)
    assert again.stdout == asked.stdout
    assert "No charge" in again.stderr
    finer = run("ask", policy_file, COUNT, "--margin", "n=40", cwd=tmp_path)
    assert (finer.returncode, "± 40" in finer.stdout) == (0, True), finer.stderr
    dear = run("ask", policy_file, COUNT, "--margin", "1", cwd=tmp_path)
    assert dear.returncode == 3
    assert "n ±" in dear.stderr


def test_explain_may_be_part_of_the_query(tmp_path, policy_file):
    said = run("ask", policy_file, f"EXPLAIN {COUNT}", "--margin", "60", cwd=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert "epsilon 0.1" in said.stdout
    assert "0 charges" in run("ledger", "verify", policy_file, cwd=tmp_path).stdout


@pytest.mark.parametrize(
    "words",
    [
        ["--epsilon", "1/2", "--rho", "1"],
        ["--epsilon", "1/2", "--margin", "50"],
        ["--epsilon", "much"],
        ["--margin", "n=0"],
        ["--margin", "5", "--margin", "n=5"],
        ["--epsilon", "1", "--rows", "0"],
        [],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_distinguished_from_a_refusal(tmp_path, policy_file, words):
    wrong = run("ask", policy_file, COUNT, *words, cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert (words[0] if words else "--epsilon") in wrong.stderr or "--rows" in wrong.stderr
    assert (
        not (tmp_path / "ledger.sqlite").exists()
        or "0 charges" in run("ledger", "verify", policy_file, cwd=tmp_path).stdout
    )


def test_a_refusal_names_the_option_that_it_is_about(tmp_path, policy_file):
    refused = run("ask", policy_file, COUNT, "--margin", "a=5", cwd=tmp_path)
    assert refused.returncode == 3
    assert refused.stderr.startswith("discreet: --margin: 'a'")
    automatic = ("--groups", "auto", "--rows", "auto", "--epsilon", "1/8")
    refused = run("ask", policy_file, "SELECT MODE(ward) AS w FROM visits", *automatic, cwd=tmp_path)
    assert refused.returncode == 3
    assert "Pass groups and rows" in refused.stderr


def test_version_and_help(tmp_path):
    assert run("--version", cwd=tmp_path).stdout == f"discreet {dc.__version__}\n"
    shown = run("--help", cwd=tmp_path).stdout
    assert "demo" in shown
    assert re.search(r"--version +Show the version", shown)  # a flag: no type beside it


def test_an_unknown_format_is_refused_in_plain_words(tmp_path, policy_file):
    asked = run("ask", policy_file, COUNT, "--epsilon", "1/2", "--format", "xlsx", cwd=tmp_path)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "--format: 'xlsx'" in asked.stderr
    assert "table, csv, json, parquet" in asked.stderr
    assert "0 charges" in run("ledger", "verify", policy_file, cwd=tmp_path).stdout or not list(
        tmp_path.glob("*.sqlite")
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [("1/10", "0.1"), ("2", "2"), ("1/3", "0.3333"), ("123457/1000000", "0.1235"), ("1/100000", "1e-05")],
)
def test_numbers_are_shown_as_decimals_with_four_digits(value, text):
    assert format_fraction(Fraction(value)) == text


def test_the_remaining_budget_is_never_overstated():
    for value in (Fraction(87659, 100000), Fraction(1, 3000), Fraction(99999999, 10**8), Fraction(0)):
        assert 0 <= value - Fraction(format_rounded_down(value)) <= value / 1000


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
    assert "1 charge;" in verified.stdout
    shown = run("ledger", "show", ledger_file, "--name", "visits", cwd=tmp_path)
    assert shown.returncode == 0
    assert "released" in shown.stdout
    assert "spent epsilon 0.1 of epsilon 1" in shown.stdout


def test_a_ledger_without_its_name_is_distinguished_from_a_policy(tmp_path, ledger_file):
    nameless = run("ledger", "verify", ledger_file, cwd=tmp_path)
    assert (nameless.returncode, nameless.stdout) == (2, "")
    assert "Add --name" in nameless.stderr


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
    assert 'policy.toml, line 8: table visits: unit: column "patinet"' in checked.stderr
    assert 'did you mean "patient"?' in checked.stderr
