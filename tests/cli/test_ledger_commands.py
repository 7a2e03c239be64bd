"""discreet ledger show, verify, acknowledge and move, as an owner runs them, on files and on PostgreSQL."""

import os
import pty
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.curator.ledger_location import address_without_user, checkpoint_path, open_or_create_ledger
from discreet.kernel.errors import Refused
from discreet.kernel.event import Event
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_sqlite import create_ledger
from discreet.policy import Policy

EVENT = Event(mechanism='{"name":"laplace","scale":"10"}', sensitivity="{}", question="how many visitors?", by="ana")
NUMBERS = count()
POLICY = """
[data]
name = "Our visits"
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


def run(*words):
    done = CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def write(folder, ledger):
    (folder / "policy.toml").write_text(POLICY.format(ledger=ledger))
    return folder / "policy.toml"


def new_database(cluster):
    import psycopg

    name = f"commands_{next(NUMBERS)}"
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return cluster.url(name)


@pytest.fixture(params=["file", "database"])
def policy_file(request, tmp_path):
    (tmp_path / "visits.csv").write_text("patient\n1\n2\n")
    place = "ledger.sqlite" if request.param == "file" else new_database(request.getfixturevalue("postgres"))
    path = write(tmp_path, place)
    with open_or_create_ledger(Policy.load(path)) as ledger:
        ledger.settle(ledger.charge(Loss("1/10"), EVENT), b"731")
        ledger.charge(Loss("1/5"), EVENT)
    return path


def test_a_ledger_is_shown_verified_and_acknowledged_wherever_it_is(policy_file):
    shown = run("ledger", "show", policy_file, "--long")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert re.search(r"ana +released +epsilon 0.1\n    how many visitors\?\n    laplace 10\n", shown.stdout)
    assert "spent epsilon 0.3 of epsilon 1\n" in shown.stdout
    assert "moved" not in shown.stdout
    verified = run("ledger", "verify", policy_file)
    assert verified.stdout.startswith(f"{policy_file}: 2 charges; all hashes")
    with open_or_create_ledger(Policy.load(policy_file)) as ledger:
        assert len(ledger.unsettled_events()) == 1
        assert run("ledger", "acknowledge", policy_file).stdout == f"{policy_file}: acknowledged\n"
        assert len(ledger.unsettled_events()) == 0


def test_a_ledger_is_found_by_its_location_and_name(policy_file):
    place = Policy.load(policy_file).ledger_location
    shown = run("ledger", "show", place, "--name", "Our visits")
    assert (shown.exit_code, shown.stdout.count("how many visitors?")) == (0, 2), shown.stderr
    assert run("ledger", "verify", place, "--name", "Our visits").exit_code == 0
    other = run("ledger", "verify", place, "--name", "others")
    assert (other.exit_code, other.stdout) == (2, "")
    assert "Our visits" in other.stderr or "the ledger does not exist" in other.stderr
    nameless = run("ledger", "verify", place)
    assert (nameless.exit_code, nameless.stdout) == (2, "")
    assert "Add --name" in nameless.stderr


@pytest.mark.long(only=["database-database"])
@pytest.mark.parametrize("kind", ["file", "database"])
def test_a_ledger_moves_and_the_policy_follows(policy_file, kind, request):
    folder = policy_file.parent
    target = folder / "new.sqlite" if kind == "file" else new_database(request.getfixturevalue("postgres"))
    moved = run("ledger", "move", policy_file, "--to", target)
    where = address_without_user(target)
    line = 'ledger = "new.sqlite"' if kind == "file" else f'ledger = "{target}"'
    assert (moved.exit_code, moved.stderr) == (0, "")
    assert moved.stdout.startswith(f"{policy_file}: 2 charges moved to {where}.")
    assert moved.stdout.endswith(f"\n{line}\n")
    again = run("ledger", "move", policy_file, "--to", target)
    assert (again.exit_code, again.stderr) == (0, "")
    assert f"2 charges had already been moved, unchanged, to {where}." in again.stdout
    assert again.stdout.endswith(f"\n{line}\n")
    # Whoever did not change the policy is told to, and can still look.
    asked = run("ask", policy_file, "SELECT COUNT(*) FROM visits", "--epsilon", "1/10")
    assert (asked.exit_code, asked.stdout) == (2, "")
    assert f'ledger = "{where}"' in asked.stderr
    assert run("ledger", "verify", policy_file).exit_code == 0
    assert run("ledger", "show", policy_file).stdout.endswith(f"\nmoved to {where}\n")
    refused = run("ledger", "acknowledge", policy_file)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "moved" in refused.stderr
    # With the line in the policy, everything goes on.
    write(folder, re.fullmatch('ledger = "(.*)"', line)[1])
    assert "2 charges;" in run("ledger", "verify", policy_file).stdout
    policy = Policy.load(policy_file)
    with open_or_create_ledger(policy) as ledger:
        ledger.charge(Loss("1/5"), EVENT)
        with pytest.raises(Refused, match="not enough budget left for ana"):
            ledger.charge(Loss("1/10"), EVENT)
    assert checkpoint_path(policy).exists() == (kind == "database" or "postgresql" in asked.stderr.split("write")[0])


def test_a_moved_ledger_is_not_moved_twice(policy_file):
    folder = policy_file.parent
    run("ledger", "move", policy_file, "--to", folder / "new.sqlite")
    other = run("ledger", "move", policy_file, "--to", folder / "other.sqlite")
    assert (other.exit_code, other.stdout) == (2, "")
    assert str(folder / "new.sqlite") in other.stderr


def test_a_ledger_without_a_policy_moves_too(tmp_path, postgres):
    with create_ledger(tmp_path / "old.sqlite", name="demo", budget=Budget(1)) as ledger:
        ledger.charge(Loss("1/10"), EVENT)
    url = new_database(postgres)
    moved = run("ledger", "move", tmp_path / "old.sqlite", "--name", "demo", "--to", url)
    assert (moved.exit_code, moved.stdout.endswith(f'\nledger = "{url}"\n')) == (0, True), moved.stderr
    back = run("ledger", "move", url, "--name", "demo", "--to", tmp_path / "back.sqlite")
    assert (back.exit_code, back.stdout.endswith(f'\nledger = "{tmp_path / "back.sqlite"}"\n')) == (0, True), (
        back.stderr
    )
    verified = run("ledger", "verify", tmp_path / "back.sqlite", "--name", "demo")
    assert "1 charge;" in verified.stdout


@pytest.fixture
def plain(tmp_path):
    path = write(tmp_path, "ledger.sqlite")
    open_or_create_ledger(Policy.load(path)).close()
    return path


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:geheim@db.example/clinic",
        "postgres://db.example/clinic?user=ana&password=geheim",
        "postgresql://db.example/clinic?%70assword=geheim",
        "postgresql://ana:geheim%40x@db.example/clinic",
    ],
)
def test_a_password_on_the_command_line_is_refused_and_not_repeated(plain, url):
    moved = run("ledger", "move", plain, "--to", url)
    shown = run("ledger", "show", url, "--name", "demo")
    for said, done in (("--to", moved), ("POLICY", shown)):
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith(f"discreet: {said}: ")
        assert "PGPASSWORD" in done.stderr
        assert "geheim" not in done.stderr


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("mysql://db.example/clinic", "--to: "),
        ("postgresql://127.0.0.1:1/clinic", "127.0.0.1:1"),
        ("nowhere/new.sqlite", "nowhere does not exist"),
        ("policy.toml", "file is not a database"),
        ("ledger.sqlite", "ledger.sqlite: "),
    ],
)
def test_an_unusable_location_is_named_and_the_ledger_stays(plain, to, said, monkeypatch):
    monkeypatch.chdir(plain.parent)
    done = run("ledger", "move", plain, "--to", to)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    with open_or_create_ledger(Policy.load(plain)) as ledger:
        ledger.charge(Loss("1/10"), EVENT)
        verify_ledger(ledger)


def test_usage_is_explained(plain):
    assert run("ledger", "move", plain).exit_code == 2
    assert "--to" in run("ledger", "move", "--help").stdout
    missing = run("ledger", "move", "none.toml", "--to", "new.sqlite")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "none.toml" in missing.stderr
    assert not Path("new.sqlite").exists()


@pytest.mark.long
def test_progress_is_shown_on_a_terminal_only(plain):
    shown, terminal = pty.openpty()
    command = [sys.executable, "-c", "from discreet.cli import app; app()", "ledger", "move", plain, "--to"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(
        [*command, plain.parent / "new.sqlite"], stdout=subprocess.PIPE, stderr=terminal, env=environment, check=True
    )
    os.close(terminal)
    assert b"Moving the ledger" in os.read(shown, 100_000)
    os.close(shown)
    assert done.stdout.endswith(b'\nledger = "new.sqlite"\n')
    again = subprocess.run([*command, plain.parent / "new.sqlite"], capture_output=True, env=environment, check=True)
    assert again.stderr == b""
