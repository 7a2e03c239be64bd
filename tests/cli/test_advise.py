"""discreet advise, as an owner runs it on a policy that has no ranges yet."""

import tomllib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run

import discreet as dc
from discreet.engines.duckdb.engine import DuckDB

POLICY = """
[data]
name = "visits"
protects = "patient"
version = "1"
[budget]
epsilon = 4
[tables.visits]
source = "visits.parquet"
unit = "patient"
groups = "FILL IN"
rows = "FILL IN"
[tables.visits.columns]
patient = { type = "integer" }
ward = { type = "text", in = ["A", "B"] }
cost = { type = "real", between = ["FILL IN", "FILL IN"] }
"""
ADVISE = ("advise", "policy.toml", "--epsilon", "2")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    patient = np.arange(6_000) // 2
    table = {"patient": patient, "ward": np.array(["A", "B"])[patient % 2], "cost": rng.lognormal(4, 1, 6_000)}
    pq.write_table(pa.table(table), tmp_path / "visits.parquet")
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


def test_advice_fills_in_a_policy_and_is_free_the_second_time(folder):
    done = run(*ADVISE, "--by-columns", "ward", "--out", "lines.toml", cwd=folder)
    assert done.returncode == 0
    assert "visits.cost: between = [0, " in done.stdout
    assert "histogram of visits.cost …" in done.stderr
    lines = tomllib.loads((folder / "lines.toml").read_text())["tables"]["visits"]
    filled = tomllib.loads(POLICY)
    filled["tables"]["visits"] |= {"groups": lines["groups"], "rows": lines["rows"]}
    filled["tables"]["visits"]["columns"] |= lines["columns"]
    policy = dc.policy.Policy.from_dict(filled, folder)
    with dc.open(policy) as curator:
        assert curator.budget().spent.epsilon == 2
    again = run(*ADVISE, "--by-columns", "ward", cwd=folder)
    assert "No charge: " in again.stdout
    assert (folder / "lines.toml").read_text() in again.stdout


def test_a_dry_run_shows_the_cost_and_charges_nothing(folder):
    done = run(*ADVISE, "--columns", "cost", "--dry-run", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "range of visits.cost: 2 histograms" in done.stdout
    with dc.open(
        dc.policy.Policy.parse(POLICY.replace('"FILL IN"', "1").replace("[1, 1]", "[0, 1]"), folder)
    ) as curator:
        assert curator.ledger.events() == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("advise", "policy.toml"), 2, "--epsilon"),
        (("advise", "policy.toml", "--epsilon", "0"), 2, "--epsilon"),
        ((*ADVISE, "--query-epsilon", "x"), 2, "--query-epsilon"),
        ((*ADVISE, "--out", "no/lines.toml"), 2, "--out"),
        ((*ADVISE, "--plot", "a.gif"), 2, "--plot"),
        (("advise", "nosuch.toml", "--epsilon", "1"), 2, "nosuch.toml"),
        ((*ADVISE, "--table", "nosuch"), 3, "--table"),
        ((*ADVISE, "--columns", "nosuch"), 3, "--columns"),
        ((*ADVISE, "--by-columns", "patient"), 3, "GROUP BY"),
        (("advise", "policy.toml", "--epsilon", "5"), 3, "--epsilon"),
    ],
)
def test_errors_have_their_exit_code_and_name_the_option(folder, words, code, message):
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


def test_a_failure_after_the_charge_has_exit_code_4(folder, monkeypatch):
    def fail(*_, **__):
        raise OSError("the disk is gone")

    monkeypatch.setattr(DuckDB, "totals", fail)
    done = run(*ADVISE, "--columns", "cost", cwd=folder)
    assert (done.returncode, done.stdout) == (4, "")
    assert "disk" not in done.stderr


@pytest.mark.long
def test_a_picture_is_drawn(folder):
    done = run(*ADVISE, "--plot", "advice.svg", cwd=folder)
    assert (done.returncode, "<svg" in (folder / "advice.svg").read_text()) == (0, True)
