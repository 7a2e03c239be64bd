"""Workers that check queries side by side, and a watch over them: one that is silent for too long is ended."""

import json
import os
import selectors
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

HUNG = "no answer and no refusal: the worker was ended"
_SILENT = 60  # seconds for one query, on a machine that others use too; checking.SLOWEST is about its own work
_WORKER = Path(__file__).with_name("worker.py")


@dataclass
class Report:
    """What became of the queries: how many ended how, the seconds of each, and the numbers of those with problems."""

    endings: dict[str, int] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    @property
    def printed(self):
        """What all workers printed."""
        return "".join(self.outputs)

    def add(self, number, ending, seconds, problems):
        """Note one query."""
        kind = f"{'made' if number % 5 < 3 else 'changed'}, {ending}"
        self.endings[kind] = self.endings.get(kind, 0) + 1
        self.seconds[number] = seconds
        self.problems += [(number, problem) for problem in problems]

    def outliers(self, times=20):
        """Return the queries that took so many times as long as the one in the middle, slowest first."""
        middle = sorted(self.seconds.values())[len(self.seconds) // 2]
        return sorted((number for number, each in self.seconds.items() if each > times * middle), key=self._slowness)

    def _slowness(self, number):
        return -self.seconds[number]


def checked(seed, count, workers):
    """Check so many queries in several processes."""
    report = Report()
    threads = [Thread(target=_share, args=(report, seed, first, count, workers)) for first in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return report


def _share(report, seed, number, count, step):
    """Check every so many-th query; after one that hangs, begin anew with the next."""
    while number < count:
        number = _run(report, seed, number, count, step)


def _run(report, seed, number, count, step):
    """Follow one worker to its end, and return the number of the next query."""
    reading, writing = os.pipe()
    command = [sys.executable, "-W", "always", str(_WORKER), seed, str(number), str(count), str(step), str(writing)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, pass_fds=[writing], **streams) as worker, os.fdopen(reading, "rb", 0) as lines:
        os.close(writing)
        try:
            for line in _lines(lines):
                report.add(*json.loads(line))
                number += step
            if number < count:
                report.add(number, "crashed", 0.0, [f"the worker ended with {worker.wait(_SILENT)}"])
        except TimeoutError:
            report.add(number, "hung", _SILENT, [HUNG])
            worker.kill()
        report.outputs.append(worker.stdout.read())  # not +=, which loses what another thread adds meanwhile
    return number + step if number < count else number


def _lines(pipe):
    """Yield whole lines until the other end is closed; TimeoutError if nothing comes for too long."""
    selector, rest = selectors.DefaultSelector(), b""
    selector.register(pipe, selectors.EVENT_READ)
    while selector.select(_SILENT):
        more = pipe.read(1 << 16)
        if not more:
            return
        *whole, rest = (rest + more).split(b"\n")
        yield from whole
    raise TimeoutError
