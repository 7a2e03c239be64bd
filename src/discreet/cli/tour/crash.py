"""A worker is killed in the middle of its charges; what it had shown is compared with what the ledger holds."""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import discreet as dc
from discreet.cli.tour import worker
from discreet.cli.tour.recorder import Recorder

_KILLS = 4


def tell(recorder: Recorder) -> None:
    """Kill a worker a few times, and compare what it had shown with the ledger after each."""
    recorder.title("kill -9 while answers are charged and stored")
    with tempfile.TemporaryDirectory() as folder:
        rows = list(recorder.watch(survive(Path(folder) / "ledger.sqlite", _KILLS), "killing a process", _KILLS))
    recorder.table(("killed after", "answers seen", "answers stored", "charges", "hash chain"), rows)
    _, seen, stored, charged, _ = rows[-1]
    recorder.say(
        f"All answers that anyone saw ({seen}) are among those stored ({stored}). Charges whose answer was lost remain "
        f"charged: {int(charged) - int(stored)}."
    )


def survive(path: Path, kills: int) -> Iterator[tuple[str, str, str, str, str]]:
    """Kill a worker at random moments; after each kill, yield what it had shown and what the ledger holds."""
    dc.create_ledger(path, name=worker.NAME, budget=dc.Budget(1)).close()
    seen: dict[str, str] = {}
    for _ in range(kills):
        working = subprocess.Popen(  # noqa: S603 - our own module, our own arguments
            [sys.executable, "-P", worker.__file__, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert working.stdout is not None
        shown = [working.stdout.readline()]
        wait = random.uniform(0, 0.05)  # noqa: S311 - when to strike, not noise
        time.sleep(wait)
        working.kill()
        # A line that was cut off was not an answer that anybody could read.
        shown += [line for line in working.communicate()[0].splitlines(keepends=True) if line.endswith("\n")]
        for line in shown:
            receipt, answer = line.split()
            seen[receipt] = answer
        yield f"{wait * 1000:.0f} ms", *_found(path, seen)


def _found(path: Path, seen: dict[str, str]) -> tuple[str, str, str, str]:
    with dc.open_ledger(path, name=worker.NAME) as ledger:
        ledger.verify()
        events = ledger.events()
        stored = {event.id for event in events if event.state == "released"}
        assert seen.keys() <= stored
        return str(len(seen)), str(len(stored)), str(len(events)), "valid"
