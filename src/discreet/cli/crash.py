"""A worker that charges and settles until it is killed, and what is found afterwards."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import discreet as dc

_NAME = "crash"
_PRICE = "1/100000"
_WORKER = "import sys; from discreet.cli.crash import work; work(sys.argv[1])"


def survive(path: Path, kills: int) -> Iterator[tuple[str, str, str, str, str]]:
    """Kill a worker so many times at random moments; after each, tell what it had shown and what the ledger holds."""
    dc.create_ledger(path, name=_NAME, budget=dc.Budget(1)).close()
    seen: dict[str, str] = {}
    for _ in range(kills):
        worker = subprocess.Popen(  # noqa: S603 - our own module, our own arguments
            [sys.executable, "-c", _WORKER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert worker.stdout is not None
        shown = [worker.stdout.readline()]
        wait = random.uniform(0, 0.05)  # noqa: S311 - when to strike, not noise
        time.sleep(wait)
        worker.kill()
        # A line that was cut off was not an answer that anybody could read.
        shown += [line for line in worker.communicate()[0].splitlines(keepends=True) if line.endswith("\n")]
        for line in shown:
            receipt, answer = line.split()
            seen[receipt] = answer
        yield f"{wait * 1000:.0f} ms", *_found(path, seen)


def _found(path: Path, seen: dict[str, str]) -> tuple[str, str, str, str]:
    with dc.open_ledger(path, name=_NAME) as ledger:
        ledger.verify()
        events = ledger.events()
        stored = {event.id for event in events if event.state == "released"}
        assert seen.keys() <= stored
        return str(len(seen)), str(len(stored)), str(len(events)), "valid"


def work(path: str) -> None:
    """Charge and settle for ever, and print each answer when it is stored."""
    mechanism = dc.Laplace(10)
    with dc.open_ledger(path, name=_NAME) as ledger:
        number = 0
        while True:
            number += 1
            event = dc.Event(mechanism=str(mechanism), sensitivity="{}", question=f"count {number}")
            receipt = ledger.charge(dc.Loss(_PRICE), event)
            answer = mechanism.perturb(731)
            ledger.settle(receipt, str(answer).encode())
            sys.stdout.write(f"{receipt.id} {answer}\n")
            sys.stdout.flush()
