"""kill -9 at every point of a publication, and two processes at the same moment: nothing is drawn or charged twice."""

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from publish.hospital import PEOPLE, ROWS, policy_text, visits
from publish.killed_publication import POINTS

import discreet as dc
from discreet.ledger_admin.verify import verify_ledger
from discreet.policy import Policy
from discreet.publish.manifest import verify
from discreet.publish.publication import publish

pytestmark = pytest.mark.long
PLAN = """
[release]
name = "Killed"
epsilon = 4
[tables.by_ward]
sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
[tables.by_sex]
sql = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
"""
LOST = {
    "charged": ("by_ward", "by_sex", "people", "rows"),
    "drawn": ("by_ward", "by_sex", "people", "rows"),
    "first part settled": ("people", "rows"),
    "all but the rows settled": ("rows",),
}


@pytest.fixture
def hospital(tmp_path):
    """Write the data, the policy and a plan; return the folder."""
    pq.write_table(visits(400, people=400), tmp_path / "visits.parquet")
    (tmp_path / "policy.toml").write_text(policy_text(ledger="visits.ledger"))
    (tmp_path / "plan.toml").write_text(f"{PLAN}{PEOPLE}{ROWS}")
    return tmp_path


def opened(folder):
    return dc.open(Policy.load(folder / "policy.toml"))


def command(folder, out, *more):
    script = Path(__file__).with_name("killed_publication.py")
    return [sys.executable, str(script), str(folder / "policy.toml"), str(folder / "plan.toml"), str(out), *more]


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_publication_is_charged_once_and_nothing_is_drawn_again(hospital, point):
    out, renamed = hospital / "out", point == "between two moves"
    if renamed:
        with opened(hospital) as curator:
            curator.publish(hospital / "plan.toml", out)
        before = contents(out)
    died = subprocess.run(command(hospital, out, point), capture_output=True, text=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stdout + died.stderr
    assert not out.exists(), "nothing is half written"
    left = [path for path in hospital.iterdir() if path.is_dir()]
    assert all(path.name.startswith(".out-") for path in left)
    if renamed:
        assert any(contents(path / "old") == before for path in left if (path / "old").exists())
    elif point != "to be moved":
        assert all(verify(path) == ["manifest.json: missing, so this is not a release"] for path in left)
    with opened(hospital) as curator:
        verify_ledger(curator.ledger)
        spent, events = curator.ledger.spent(), len(curator.ledger.events())
        assert events == 3
        stored = dict(_answers(curator))
        releases = [curator.publish(hospital / "plan.toml", folder) for folder in (out, hospital / "again")]
        assert (curator.ledger.spent(), len(curator.ledger.events())) == (spent, events)
        assert dict(_answers(curator)) == stored, "no part was drawn again"
        assert releases[0].missing == LOST.get(point, ())
        assert all(release.cost == spent and not release.paid.rho for release in releases)
        other = publish(curator, hospital / "plan.toml", hospital / "other", key="another draw")
        assert not other.missing
        assert curator.ledger.spent() == spent + other.paid
    states = {part.name: part.state for part in releases[0].record.parts}
    assert states == {name: "charged, missing" if name in LOST.get(point, ()) else "released" for name in states}
    tables = [{name: data for name, data in contents(out).items() if name.parts[0] in ("tables", "synthetic")}]
    tables.append({name: (hospital / "again" / name).read_bytes() for name in tables[0]})
    assert tables[0] == tables[1]
    assert {name.stem for name in tables[0]} == {*states} - {*LOST.get(point, ())}
    assert verify(out) == verify(hospital / "again") == []
    assert not [path for path in hospital.iterdir() if path.name.startswith(".out-")], "the next one tidies up"


def _answers(curator):
    keys = [(owner, key) for owner, _, key in curator.ledger._chain.keys]
    return [(event.id, answer) for event, answer in curator.ledger.answers(keys=keys)]


@pytest.mark.parametrize("same_folder", [True, False])
def test_processes_that_publish_the_same_plan_at_once_charge_it_once(hospital, same_folder):
    outs = [hospital / ("out" if same_folder else f"out{number}") for number in range(3)]
    plan = [sys.executable, "-m", "discreet", "publish", str(hospital / "policy.toml"), str(hospital / "plan.toml")]
    runs = [[*plan, "--out", str(out)] for out in outs]
    workers = [subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for run in runs]
    said = [worker.communicate(timeout=120) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], said
    assert sum("Cost: " in output for output, _ in said) == 1
    with opened(hospital) as curator:
        verify_ledger(curator.ledger)
        assert len(curator.ledger.events()) == 3
    tables = [{name: data for name, data in contents(out).items() if name.parts[0] == "tables"} for out in outs]
    assert tables[0] == tables[1] == tables[2]
    assert all(verify(out) == [] for out in outs)
    assert not [path for path in hospital.iterdir() if path.is_dir() and path not in outs]
