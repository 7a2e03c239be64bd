"""The long versions of the ledger's races and kills."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel.ledger_locations import KINDS, place_of

from discreet.kernel.loss import Budget
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_sqlite import create_ledger, open_ledger

SCRIPTS = Path(__file__).parent.parent / "kernel"


def run(script, *arguments):
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    paths = os.pathsep.join([str(SCRIPTS.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    return place_of(request.param, request, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_kills_lose_nothing_that_was_seen(place, seed):
    found = run("ledger_kills.py", place.text, 300, seed)
    print(found)
    assert found["kills"] >= 300
    assert found["unknown"] > 0, "no kill fell between a charge and its answer"


@pytest.mark.slow
@pytest.mark.parametrize("time", range(10))
def test_64_processes_end_exactly_at_the_limit(tmp_path, time):
    path = tmp_path / "ledger.sqlite"
    create_ledger(path, name="demo", budget=Budget(50)).close()
    found = run("ledger_race.py", path, 64, 100)
    print(found)
    assert (found["granted"], found["refused"], found["failed"]) == (5000, 1400, 0)
    with open_ledger(path, name="demo") as ledger:
        assert ledger.spent().epsilon == 50
        verify_ledger(ledger)
