"""Spilled files contain raw values: they are private and are removed soon after their process ends."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.engines.duckdb.engine import DuckDB, Tuning
from discreet.engines.duckdb.spill import PREFIX, make_spill_folder
from discreet.engines.locked_folder import remove_orphans
from discreet.engines.table_source import TableSource
from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Type

ROWS = 300_000  # more than fits into 8 MB
SPILLS = "SELECT SUM(m) AS s FROM (SELECT u, MAX(x) AS m FROM t GROUP BY u)"


def many_rows():
    return TableSource(
        pa.table({"u": np.arange(ROWS), "x": np.arange(ROWS, dtype=float)}), {"u": Type.INTEGER, "x": Type.REAL}
    )


def orphan(place, name="discreet-spill-abcdefgh"):
    folder = place / name
    folder.mkdir(mode=0o700)
    (folder / "duckdb_temp_1_0_storage_DEFAULT-0.tmp").write_bytes(b"raw values")
    return folder


def test_spilled_files_can_be_read_by_their_owner_only_from_the_start(tmp_path):
    before = os.umask(0)  # the umask is not what protects them
    try:
        with DuckDB({"t": many_rows()}, tuning=Tuning(memory="8MB", threads=1, folder=str(tmp_path))) as engine:
            engine.query(SPILLS)
            (folder,) = tmp_path.iterdir()
            modes = {oct(path.stat().st_mode & 0o777) for path in folder.iterdir()}
            assert oct(folder.stat().st_mode & 0o777) == "0o700"
    finally:
        os.umask(before)
    assert modes == {"0o600"}
    assert list(tmp_path.iterdir()) == []


KILLED = """
import itertools, os, signal, sys, threading, time
from pathlib import Path
import discreet as dc

def kill_when_spilling(place):
    while not any(b"canary-" in path.read_bytes() for path in place.glob("*/*.tmp")):
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)

place = Path(sys.argv[2])
threading.Thread(target=kill_when_spilling, args=(place,), daemon=True).start()
with dc.open(sys.argv[1], tuning=dc.Tuning(memory="20MB", threads=1, folder=str(place))) as curator:
    for number in itertools.count():  # until it is killed
        curator.ask(f"SELECT COUNT(DISTINCT name) AS n FROM people WHERE x > {number}", epsilon="1/1000")
"""
POLICY = """
[data]
name = "people"
[budget]
epsilon = 100.0
[tables.people]
source = "people.parquet"
unit = "name"
groups = 1
rows = 1
[tables.people.columns]
name = { type = "text" }
x = { type = "integer", between = [0, 1000000] }
"""


@pytest.mark.long
def test_a_killed_query_leaves_no_raw_values_on_disk_after_the_next_open(tmp_path):
    import pyarrow.parquet as pq

    names = [f"canary-{number:020}" for number in range(ROWS)]
    pq.write_table(pa.table({"name": names, "x": np.arange(ROWS)}), tmp_path / "people.parquet")
    (tmp_path / "policy.toml").write_text(POLICY)
    place = tmp_path / "place"
    place.mkdir()
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "policy.toml", place], check=False)
    assert killed.returncode == -signal.SIGKILL
    left = [path for path in place.rglob("*") if path.is_file()]
    assert any(b"canary-" in path.read_bytes() for path in left)  # so there was something to find
    assert {path.stat().st_mode & 0o077 for path in left} == {0}
    with dc.open(tmp_path / "policy.toml", tuning=Tuning(folder=str(place))):
        assert not any(b"canary-" in path.read_bytes() for path in place.rglob("*") if path.is_file())
    assert list(place.iterdir()) == []


def test_an_orphan_is_removed_at_the_next_open_and_a_folder_in_use_stays(tmp_path):
    gone = orphan(tmp_path)
    with DuckDB({}, tuning=Tuning(folder=str(tmp_path))):
        (used,) = tmp_path.iterdir()
        assert used != gone
        with DuckDB({}, tuning=Tuning(folder=str(tmp_path))):
            assert used.exists()
        assert list(tmp_path.iterdir()) == [used]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_by_another_process_stays(tmp_path):
    code = (
        "import sys; from discreet.engines.duckdb.spill import make_spill_folder; "
        "print(make_spill_folder(sys.argv[1]).path, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdin=-1, stdout=-1, text=True) as other:
        used = Path(other.stdout.readline().strip())
        remove_orphans(str(tmp_path), PREFIX)
        assert used.exists()
        other.kill()
    remove_orphans(str(tmp_path), PREFIX)
    assert not used.exists()


def test_only_spill_folders_are_ever_removed(tmp_path):
    orphan(tmp_path, "discreet-notes")
    orphan(tmp_path, "discreet-spill-more-than-that")
    (tmp_path / "discreet-spill-a_filexx").write_text("a file")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "discreet-spill-a_linkxx").symlink_to(orphan(tmp_path / "elsewhere"))
    before = sorted(tmp_path.rglob("*"))
    remove_orphans(str(tmp_path), PREFIX)
    assert sorted(tmp_path.rglob("*")) == before


def test_folders_of_other_accounts_are_left_alone(tmp_path, monkeypatch):
    folder = orphan(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    remove_orphans(str(tmp_path), PREFIX)
    assert folder.exists()


def test_concurrent_opens_that_find_the_same_orphans_do_not_interfere(tmp_path):
    for number in range(20):
        orphan(tmp_path, f"discreet-spill-{number:08}")
    failed, made, start = [], [], threading.Barrier(8)

    def open_one():
        try:
            start.wait()
            made.append(make_spill_folder(str(tmp_path)))
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=open_one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(folder.path for folder in made) == sorted(map(str, tmp_path.iterdir()))
    for folder in made:
        folder.remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("module", "step"), [(os, "open"), (fcntl, "flock")], ids=["opened", "locked"])
def test_a_folder_that_is_removed_before_it_is_locked_is_created_again(tmp_path, monkeypatch, module, step):
    real, removed = getattr(module, step), []

    def removing(*arguments, **named):
        if not removed:
            removed.extend(tmp_path.iterdir())
            remove_orphans(str(tmp_path), PREFIX)
        return real(*arguments, **named)

    monkeypatch.setattr(module, step, removing)
    folder = make_spill_folder(str(tmp_path))
    assert len(removed) == 1
    assert list(map(str, tmp_path.iterdir())) == [folder.path] != list(map(str, removed))
    folder.remove()


def test_an_unusable_folder_is_named(tmp_path):
    with pytest.raises(PolicyError, match=r"folder: .*nowhere"):
        make_spill_folder(str(tmp_path / "nowhere"))
