"""Spark servers listen on loopback only and leave nothing behind; the real ones need Java and are slow."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from servers.spark import SECONDS, Server, no_sail, no_spark, sail, session, spark_cluster, spark_local

needs_sail = pytest.mark.skipif(no_sail() is not None, reason=str(no_sail()))
needs_spark = pytest.mark.skipif(no_spark() is not None, reason=str(no_spark()))
COUNT = "SELECT COUNT(*) AS n, SUM(CAST(id AS DECIMAL(28, 0))) AS s FROM range(1000)"
ORPHAN = """
import sys, time
from servers.spark import sail
server = sail()
print(*server.processes(), server.folder, flush=True)
time.sleep(60)
"""


def ask(spark, sql):
    return [tuple(row.values()) for row in spark.sql(sql).toArrow().to_pylist()]


def listening(processes):
    """Return the addresses at which these processes wait for others, as the kernel writes them."""
    held = set()
    for process in processes:
        for link in Path(f"/proc/{process}/fd").iterdir():
            if link.is_symlink() and "socket:" in str(link.readlink()):
                held.add(str(link.readlink()).removeprefix("socket:[").removesuffix("]"))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and inode in held:
                found.append(local.partition(":")[0])
    return found


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1, also as a part of IPv6


def with_this_python():
    """Return a function for executors: made here, it is sent as a whole; they cannot import a module of tests."""

    def summed(batches):
        import sys

        import numpy as np
        import pyarrow as pa

        import discreet

        for batch in batches:
            total = int(np.sum(batch.column("id").to_numpy()))
            yield pa.RecordBatch.from_pydict({"s": [total], "v": [f"{discreet.__version__} {sys.executable}"]})

    return summed


def gone(process):
    return not Path(f"/proc/{process}").exists()


@needs_sail
def test_sail_answers_on_loopback_alone(sail):
    with session(sail.url) as spark:
        assert ask(spark, COUNT) == [(1000, 499500)]
    assert set(listening(sail.processes())) == {"0100007F"}


@needs_sail
def test_sail_starts_quickly_and_leaves_nothing_behind():
    began = time.monotonic()
    with sail() as server:
        print(f"started in {time.monotonic() - began:.2f} s")
        assert server.url.startswith("sc://127.0.0.1:")
        processes = server.processes()
        assert len(processes) == 1
    assert all(gone(process) for process in processes)
    assert not server.folder.exists()
    server.stop()  # again


@needs_sail
def test_sessions_have_views_of_their_own(sail):
    with session(sail.url) as one, session(sail.url) as other:
        one.range(1).createOrReplaceTempView("mine")
        assert ask(one, "SELECT * FROM mine") == [(0,)]
        with pytest.raises(Exception, match="mine"):
            ask(other, "SELECT * FROM mine")


@needs_sail
def test_a_server_ends_with_the_process_that_started_it():
    here = str(Path(__file__).resolve().parents[1])
    with subprocess.Popen([sys.executable, "-c", ORPHAN], cwd=here, stdout=subprocess.PIPE, text=True) as parent:
        *processes, folder = parent.stdout.readline().split()
        parent.kill()
    until = time.monotonic() + 240
    while Path(folder).exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert processes
    assert all(map(gone, processes))
    assert not Path(folder).exists()


def test_a_server_that_does_not_start_reports_its_output():
    server = Server()
    began = time.monotonic()
    with pytest.raises(RuntimeError, match=r"(?s)did not start.*no such Java"):
        server.run([sys.executable, "-c", "print('no such Java')"], r"started at (\S+)")
    assert time.monotonic() - began < SECONDS
    server.stop()
    assert not server.folder.exists()


@pytest.mark.slow
@needs_spark
def test_spark_answers_on_loopback_alone_and_runs_functions_with_this_python():
    with spark_local() as server, session(server.url) as spark:
        assert spark.version.startswith("4.")
        assert ask(spark, COUNT) == [(1000, 499500)]
        assert spark.conf.get("spark.sql.ansi.enabled") == "true"
        found = spark.range(0, 100, 1, 2).mapInArrow(with_this_python(), "s bigint, v string").toArrow().to_pydict()
        assert sum(found["s"]) == 4950
        assert {line.split(" ", 1)[1] for line in found["v"]} == {sys.executable}
        assert set(listening(server.processes())) <= LOOPBACK
        processes = server.processes()
    assert processes
    assert all(gone(process) for process in processes)
    assert not server.folder.exists()


@pytest.mark.slow
@needs_spark
def test_a_cluster_answers_alike_after_its_executors_died():
    with spark_cluster(workers=2) as server, session(server.url) as spark:
        found = spark.range(0, 100, 1, 4).mapInArrow(with_this_python(), "s bigint, v string").toArrow().to_pydict()
        assert sum(found["s"]) == 4950
        assert len(server.processes("CoarseGrainedExecutorBackend")) == 2
        assert set(listening(server.processes())) <= LOOPBACK
        assert len(server.kill("CoarseGrainedExecutorBackend")) == 2
        assert ask(spark, COUNT) == [(1000, 499500)]
        processes = server.processes()
    assert all(gone(process) for process in processes)
    assert not server.folder.exists()
