"""What remains for one more query under all budgets, and how the owner resumes a suspended data set."""

import re
import shlex
from fractions import Fraction

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.cli import app
from discreet.policy import Policy
from discreet.pricing.remaining_budget import BudgetLimit, shortage_text

SQL = "SELECT COUNT(*) AS n FROM visits WHERE patient < {}"
TOML = """
[data]
name = "our visits"
ledger = "{ledger}"
[budget]
epsilon = 1.0
{delta}
[budget.analysts]
ana = {{ epsilon = 0.9 }}
bob = {{ epsilon = 0.9 }}
[tables.visits]
source = "visits.csv"
unit = "patient"
groups = 1
rows = 1
[tables.visits.columns]
patient = {{ type = "integer", between = [0, 100] }}
"""
BUDGETS = {"pure": "", "delta": "delta = 1e-6"}
both = pytest.mark.parametrize("delta", BUDGETS.values(), ids=BUDGETS)


def opened(delta, ledger=":memory:"):
    policy = Policy.parse(TOML.format(ledger=ledger, delta=delta))
    return dc.open(policy, data={"visits": pa.table({"patient": [1, 2, 3]})})


@both
def test_the_whole_budget_remains_at_first_and_nothing_in_the_end(delta):
    with opened(delta) as curator:
        assert curator.budget().remaining.epsilon == 1
        assert curator.budget("ana").remaining.epsilon == Fraction(9, 10)
        curator.ask(SQL.format(5), epsilon=1)
        assert curator.budget().remaining.epsilon == curator.budget("ana").remaining.epsilon == 0


@both
@pytest.mark.parametrize("spent", ["1/3", "1/7", "0.999"])
def test_the_remaining_budget_can_be_spent_and_no_more(delta, spent):
    with opened(delta) as curator:
        curator.ask(SQL.format(5), epsilon=spent)
        left = curator.budget().remaining
        assert left.epsilon > 0
        with pytest.raises(dc.Refused, match="budget"):
            curator.ask(SQL.format(6), epsilon=left.epsilon * Fraction(102, 100))
        curator.ask(SQL.format(7), epsilon=left.epsilon)
        assert curator.budget().remaining.rho < left.rho


def test_with_a_delta_the_remaining_budget_is_a_short_decimal_rounded_down():
    with opened(BUDGETS["delta"]) as curator:
        for number in range(1, 8):
            curator.ask(SQL.format(number), epsilon="1/7")
            left = curator.budget().remaining
            assert (left.epsilon * 10**6).denominator == 1
            assert dc.privacy.cost_of(curator.policy.budget, left.epsilon).rho <= left.rho


@both
def test_an_analyst_is_shown_the_smallest_remaining_budget(delta):
    with opened(delta) as curator:
        curator.ask(SQL.format(5), epsilon="0.8", by="ana")
        assert (
            curator.budget("ana").remaining.epsilon
            < curator.budget().remaining.epsilon
            == curator.budget("bob").remaining.epsilon
        )
        assert curator.budget("bob").spent == dc.Loss(0)
        curator.ask(SQL.format(6), epsilon=curator.budget().remaining.epsilon, by="bob")
        own, all_of_it = curator.budget("bob"), curator.budget()
        assert own.total.epsilon == Fraction(9, 10)
        assert own.remaining == all_of_it.remaining
        assert own.remaining.epsilon < Fraction(1, 20)


def command(*words):
    done = CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "visits.csv").write_text("patient\n1\n2\n3\n")
    path = tmp_path / "policy.toml"
    path.write_text(TOML.format(ledger="ledger.sqlite", delta=""))
    return path


def test_the_command_line_shows_analysts_zero_when_the_total_is_spent(policy):
    command("ask", policy, SQL.format(5), "--epsilon", "1/2", "--by", "ana")
    command("ask", policy, SQL.format(6), "--epsilon", "1/2", "--by", "bob")
    rows = [line.split("│")[1:-1] for line in command("budget", policy).splitlines() if line.startswith("│")]
    largest = {row[0].strip(): row[-1].strip() for row in rows}
    assert largest == dict.fromkeys(("everyone", "ana", "bob"), "epsilon 0")


def acknowledged_by(message, pattern, policy):
    """Run the command that a message names."""
    (found,) = re.findall(pattern, message)
    words = shlex.split(found.replace("POLICY", str(policy)).replace("LEDGER", str(policy.with_name("ledger.sqlite"))))
    assert words.pop(0) == "discreet"
    command(*words)


@pytest.mark.parametrize("pattern", [r"run: (discreet .* POLICY)", r"file: (discreet .* LEDGER .*)\)"])
def test_the_command_that_failures_name_lets_the_data_set_serve_again(policy, pattern, monkeypatch, caplog):
    with dc.open(policy) as curator:
        totals = curator._engine.totals
        monkeypatch.setattr(curator._engine, "totals", lambda question: 1 / 0)
        for _ in range(3):
            with pytest.raises(dc.Failed):
                curator.ask(SQL.format(5), epsilon="1/10")
        monkeypatch.setattr(curator._engine, "totals", totals)
        with pytest.raises(dc.Refused, match="failed queries") as refused:
            curator.ask(SQL.format(5), epsilon="1/10")
        acknowledged_by(str(refused.value), pattern, policy)
        curator.ask(SQL.format(5), epsilon="1/10")


def test_the_command_that_a_lost_checkpoint_names_lets_the_ledger_serve_again(policy):
    with dc.open(policy) as curator:
        policy.with_name("ledger.sqlite.checkpoint").unlink()
        with pytest.raises(dc.LedgerError, match="checkpoint file is missing") as refused:
            curator.ask(SQL.format(5), epsilon="1/10")
        acknowledged_by(str(refused.value), r"owner: (discreet .* POLICY)", policy)
        curator.ask(SQL.format(5), epsilon="1/10")


def test_a_ledger_in_memory_is_acknowledged_from_python(monkeypatch, caplog):
    with opened("") as curator:
        monkeypatch.setattr(curator._engine, "totals", lambda question: 1 / 0)
        for _ in range(3):
            with pytest.raises(dc.Failed):
                curator.ask(SQL.format(5), epsilon="1/10")
        with pytest.raises(dc.Refused, match=r"curator\.ledger\.acknowledge\(\)"):
            curator.ask(SQL.format(5), epsilon="1/10")


def test_without_a_budget_nobody_learns_whether_the_data_can_be_reached(tmp_path):
    (tmp_path / "visits.csv").write_text("patient\n1\n2\n")
    with dc.open(Policy.parse(TOML.format(ledger=":memory:", delta=""), tmp_path)) as curator:
        curator.ask(SQL.format(5), epsilon=1)
        with pytest.raises(dc.Refused) as before:
            curator.ask(SQL.format(6), epsilon="1/10")
        (tmp_path / "visits.csv").unlink()
        with pytest.raises(dc.Refused) as after:
            curator.ask(SQL.format(6), epsilon="1/10")
        assert str(after.value) == str(before.value)


def test_a_shortage_states_the_cost_and_what_remains_of_every_limit():
    total, own = dc.Budget(1, "1e-6", discover="1/2"), dc.Budget("1/2")
    half = dc.Loss(None, total.rho / 2, total.discover)
    limits = [BudgetLimit("in total", total, half), BudgetLimit("for ana", own, dc.Loss("1/4"))]
    assert limits[0].remaining == dc.Loss(None, total.rho / 2, 0)
    assert shortage_text(limits, dc.Loss(None, total.rho, "1e-12")) == (
        "not enough budget left: this needs epsilon 1 (rho 0.0229375 and delta 1e-12). "
        "Remaining: rho 0.0114687 with delta 0 in total; epsilon 0.25 for ana."
    )
    unspent = BudgetLimit("in total", dc.Budget(1, "1e-6"), dc.Loss(0))
    assert ", or epsilon 1 without a delta, in total." in shortage_text([unspent], dc.Loss(9))


def test_a_fit_that_exceeds_the_budget_states_what_remains():
    with (
        opened("") as curator,
        pytest.raises(dc.Refused, match=r"not enough budget left for ana\. Remaining: .* 0.9 for ana"),
    ):
        curator.fit(dc.learn.StandardScaler(epsilon=0.95), "SELECT patient FROM visits", by="ana")
