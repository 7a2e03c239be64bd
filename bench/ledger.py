"""The ledger: time of a charge and its settlement, alone and with eight processes, on SQLite and PostgreSQL."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import discreet as dc
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_postgres.ledger import create_postgres_ledger, open_postgres_ledger

NAME = "bench"
ALONE, CHARGES = 500, 50
PROCESSES = (1, 4, 8)


def once(ledger, number):
    event = dc.Event(mechanism=str(dc.Laplace(10)), sensitivity="{}", question=f"count {number}")
    began = time.perf_counter()
    receipt = ledger.charge(dc.Loss("1/100000"), event)
    charged = time.perf_counter()
    ledger.settle(receipt, b"731")
    return charged - began, time.perf_counter() - charged


def opened(place):
    """Open a ledger by its place: a path, or a URL and the path of this server's head."""
    path, *head = json.loads(place)
    return open_postgres_ledger(path, name=NAME, checkpoint=head[0]) if head else dc.open_ledger(path, name=NAME)


def worker(place):
    with opened(place) as ledger:
        print("ready", flush=True)
        sys.stdin.readline()
        print(max(once(ledger, number)[0] for number in range(CHARGES)))


def at_once(place, processes):
    """Let processes charge at once; return how many charges a second there were, and the longest wait for one."""
    command = [sys.executable, "-m", "bench.ledger", json.dumps(place)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    workers = [subprocess.Popen(command, text=True, **pipes) for _ in range(processes)]
    for each in workers:
        each.stdout.readline()
    began = time.perf_counter()
    for each in workers:
        each.stdin.write("go\n")
        each.stdin.flush()
    longest = max(float(each.stdout.readline()) for each in workers)
    took = time.perf_counter() - began
    for each in workers:
        each.communicate()
    return processes * CHARGES / took, longest


def measure(title, ledger, place):
    print(title)
    with ledger:
        median = statistics.median(sum(once(ledger, number)) for number in range(ALONE)) * 1000
    print(f"  charge + settle, alone          median {median:6.2f} ms      target 5 ms   {verdict(median < 5)}")
    for processes in PROCESSES:
        rate, longest = at_once(place, processes)
        print(f"  {processes} processes x {CHARGES}                {rate:6.0f} charges a second, each settled")
    print(f"  longest wait for one charge     {longest:6.3f} s             target 1 s    {verdict(longest < 1)}")
    with opened(json.dumps(place)) as again:
        charges = len(again.events())
        began = time.perf_counter()
        verify_ledger(again)
        print(f"  verify {charges} charges             {time.perf_counter() - began:6.3f} s")
    assert charges == ALONE + sum(PROCESSES) * CHARGES


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        measure("SQLite", dc.create_ledger(path, name=NAME, budget=dc.Budget(1)), [str(path)])
        from tests.servers.postgres import Cluster, binaries

        if binaries() is None:
            print("PostgreSQL: not measured because it is not installed")
            return
        cluster = Cluster().start()
        try:
            place = [cluster.url(), str(Path(folder) / "head")]
            ledger = create_postgres_ledger(place[0], name=NAME, budget=dc.Budget(1), checkpoint=place[1])
            measure("PostgreSQL, on the same machine", ledger, place)
        finally:
            cluster.stop()


def verdict(good):
    return "ok" if good else "misses the target"


if __name__ == "__main__":
    worker(sys.argv[1])
