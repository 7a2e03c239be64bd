"""The ledger: how long a charge and its settlement take, alone and with eight processes at once."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import discreet as dc

NAME = "bench"
PROCESSES, CHARGES = 8, 50


def once(ledger, number):
    event = dc.Event(mechanism=str(dc.Laplace(10)), sensitivity="{}", question=f"count {number}")
    began = time.perf_counter()
    receipt = ledger.charge(dc.Loss("1/100000"), event)
    charged = time.perf_counter()
    ledger.settle(receipt, b"731")
    return charged - began, time.perf_counter() - charged


def worker(path):
    with dc.open_ledger(path, name=NAME) as ledger:
        print(max(once(ledger, number)[0] for number in range(CHARGES)))


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        with dc.create_ledger(path, name=NAME, budget=dc.Budget(1)) as ledger:
            both = [sum(once(ledger, number)) for number in range(500)]
        median = statistics.median(both) * 1000
        print(f"charge + settle, alone            median {median:6.2f} ms      bar 5 ms      {verdict(median < 5)}")
        began = time.perf_counter()
        workers = [
            subprocess.Popen([sys.executable, "-m", "bench.ledger", str(path)], stdout=subprocess.PIPE, text=True)
            for _ in range(PROCESSES)
        ]
        longest = max(float(each.communicate()[0]) for each in workers)
        took = time.perf_counter() - began
        with dc.open_ledger(path, name=NAME) as ledger:
            began = time.perf_counter()
            ledger.verify()
            verified = time.perf_counter() - began
            assert len(ledger.events()) == 500 + PROCESSES * CHARGES
        print(f"{PROCESSES} processes x {CHARGES} charges           {took:6.2f} s in all, start-up included")
        print(f"longest wait for one charge       {longest:6.3f} s           bar 1 s       {verdict(longest < 1)}")
        print(f"verify {500 + PROCESSES * CHARGES} charges                {verified:6.3f} s")


def verdict(good):
    return "ok" if good else "short of the bar"


if __name__ == "__main__":
    worker(sys.argv[1])
