"""What the ledger keeps when processes race, are killed, fork, or run out of disk."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kernel.ledger_locations import KINDS, place_of

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import Event
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_sqlite import create_ledger, open_ledger

HERE = Path(__file__).parent


def run(script, *arguments, before=()):
    command = [*before, sys.executable, str(HERE / script), *map(str, arguments)]
    # Native threads of numpy would make every fork a fork of a threaded process.
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def own_mounts():
    """Return the command that gives a process mounts of its own, or skip."""
    command = ["unshare", "--map-root-user", "--mount"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this system gives processes no mounts of their own (unshare)")
    return command


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    return place_of(request.param, request, tmp_path)


@pytest.mark.long
def test_concurrent_processes_end_exactly_at_the_limit(place):
    place.create(budget=Budget(3)).close()
    found = json.loads(run("ledger_race.py", place.text, 8, 50))
    print(found)
    assert (found["granted"], found["refused"], found["failed"]) == (300, 100, 0)
    # Who starves waits for nearly all of the run; on a busy machine a fair wait may be long, too.
    assert found["longest"] < max(120, found["seconds"] / 2), "somebody starved"
    with place.open() as ledger:
        assert ledger.spent().epsilon == 3
        verify_ledger(ledger)


@pytest.mark.long
def test_killed_workers_lose_nothing_that_was_seen(place):
    found = json.loads(run("ledger_kills.py", place.text, 40, 1))
    assert found["kills"] >= 40
    assert found["shown"] > 0, "every worker was killed before it did anything"


@pytest.mark.long
def test_forked_children_reopen_the_ledger(place):
    assert run("ledger_fork.py", place.text) == "whole"


def test_files_that_cannot_grow_stop_the_ledger_and_lose_nothing(tmp_path):
    assert run("ledger_full.py", tmp_path / "ledger.sqlite", "limit") == "whole"


def test_a_full_disk_stops_the_ledger_and_loses_nothing(tmp_path):
    assert run("ledger_full.py", tmp_path, "tmpfs", before=own_mounts()) == "whole"


READ_ONLY = """
import sys
from discreet.kernel.errors import LedgerError
from discreet.kernel.event import Event
from discreet.ledger_sqlite import create_ledger, open_ledger
from discreet.kernel.loss import Budget, Loss
try:
    with open_ledger(sys.argv[1], name="demo") as ledger:
        ledger.charge(Loss("1/100"), Event(mechanism="{}", sensitivity="{}", question="count"))
except LedgerError as error:
    print(error)
try:
    create_ledger(sys.argv[1] + "2", name="demo", budget=Budget(1))
except LedgerError as error:
    print(error)
"""


def test_a_read_only_file_system_is_named_and_changes_nothing(tmp_path):
    path = tmp_path / "ledger.sqlite"
    event = Event(mechanism="{}", sensitivity="{}", question="count")
    with create_ledger(path, name="demo", budget=Budget(1)) as ledger:
        ledger.charge(Loss("1/100"), event)
    shell = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" -c "$3" "$4"'
    arguments = ["sh", "-c", shell, "sh", tmp_path, sys.executable, READ_ONLY, path]
    done = subprocess.run([*own_mounts(), *arguments], capture_output=True, text=True, timeout=240, check=False)
    if "mount:" in done.stderr:
        pytest.skip(f"this system cannot make a mount read-only: {done.stderr}")
    opened, created = done.stdout.splitlines()
    assert opened.startswith(f"{path}: cannot read or write the ledger")
    assert "permissions of the folder" in opened
    assert "Read-only file system" in created
    with open_ledger(path, name="demo") as ledger:
        verify_ledger(ledger)
        assert ledger.spent() == Loss("1/100")


def test_two_ledger_objects_in_one_process_share_one_account(place):
    event = Event(mechanism="{}", sensitivity="{}", question="count")
    with place.create() as one, place.open() as two:
        receipt = one.charge(Loss("1/2"), event, "k")
        two.settle(receipt, b"by the other")
        assert one.charge(Loss("1/2"), event, "k").answer == b"by the other"
        two.set_budget(Budget("1/2"), analysts=None)
        with pytest.raises(LedgerError, match="already settled"):
            one.settle(receipt, b"again")
        assert one.terms.budget == Budget("1/2")
        verify_ledger(one)
