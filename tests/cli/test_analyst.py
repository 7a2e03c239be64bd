"""discreet analyst, as an owner runs it."""

import re

import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.policy import Policy
from discreet.server.approvals import Approvals
from discreet.server.errors import ApprovalNeeded
from discreet.server.people import People, Role

POLICY = """
[data]
name = "visits"
ledger = "{ledger}"
[budget]
epsilon = 1.0
[budget.analysts]
ana = {{ epsilon = 0.5 }}
[tables.visits]
source = "visits.csv"
unit = "patient"
groups = 1
rows = 2
[tables.visits.columns]
patient = {{ type = "integer" }}
"""


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(POLICY.format(ledger="ledger.sqlite"))
    return path


def run(*words):
    done = CliRunner().invoke(app, ["analyst", *map(str, words)], env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_a_token_is_printed_once_alone_on_stdout_and_works(policy):
    done = run("add", policy, "ana", "--until", "2999-12-31")
    assert done.exit_code == 0
    token = done.stdout.strip()
    assert re.fullmatch(r"dsc_[\w-]{43}", token)
    assert token not in done.stderr
    assert "ana: analyst, until 2999-12-31" in done.stderr
    assert People(Policy.load(policy)).person_for_token(token, "").name == "ana"
    listed = run("list", policy).stdout
    assert listed == "ana: analyst, until 2999-12-31\n"


def test_roles_are_chosen_and_the_acts_are_listed_with_the_ledger(policy):
    run("add", policy, "audit office", "--role", "auditor")
    run("add", policy, "Dr. Vogel", "--role", "owner")
    run("revoke", policy, "audit office")
    assert [person.role for person in People(Policy.load(policy)).everybody()] == [Role.OWNER]
    shown = CliRunner().invoke(app, ["ledger", "show", str(policy)]).output
    assert "token issued: name audit office, role auditor" in shown
    assert "token revoked: name audit office" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["add", "zoe"], r"\[budget.analysts\]"),
        (["add", "ana", "--role", "king"], "--role.*analyst|auditor|owner"),
        (["add", "ana", "--until", "soon"], "--until.*2026-12-31"),
        (["revoke", "ana"], "no token"),
        (["approve", "5e1f"], "no request"),
        (["reject", "5e1f"], "no request"),
    ],
)
def test_mistakes_are_named_and_exit_with_2(policy, words, message):
    command, *rest = words
    done = run(command, policy, *rest)
    assert done.exit_code == 2
    assert re.search(message, done.stderr)
    assert done.stdout == ""


def test_a_ledger_in_memory_is_refused(policy):
    policy.write_text(POLICY.format(ledger=":memory:"))
    done = run("add", policy, "ana")
    assert done.exit_code == 2
    assert ":memory:" in done.stderr


def test_requests_that_wait_are_listed_approved_and_rejected(policy):
    approvals = Approvals(Policy.load(policy))
    with pytest.raises(ApprovalNeeded) as needed:
        approvals.require("ana", "SELECT 1\nFROM visits", {"epsilon": "1"}, cost="epsilon 1", purpose="a study")
    listed = run("approvals", policy).stdout
    assert re.search(r"ana  epsilon 1  waiting, purpose: a study\n    SELECT 1\n    FROM visits", listed)
    assert run("approve", policy, needed.value.approval).exit_code == 0
    assert "approved, not used yet" in run("approvals", policy).stdout
    assert run("reject", policy, needed.value.approval).exit_code == 0
    assert run("approvals", policy).stdout == ""
