"""What a chapter needs: the recorder, the town, and two more processes for long computations."""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context

from discreet.cli.tour.recorder import Recorder
from discreet.cli.tour.town import Town

_HANDS = 2


@dataclass(frozen=True)
class Sizes:
    """How often things are repeated: copies of the town, plays of the differencing game, and repeated queries."""

    copies: int = 100
    plays: int = 600
    times: int = 200


FULL = Sizes()


@dataclass(frozen=True)
class Stage:
    """Everything that a chapter needs."""

    recorder: Recorder
    town: Town
    hands: Executor
    sizes: Sizes


@contextmanager
def hands() -> Iterator[Executor]:
    """Lend the processes; whatever they still have to do is dropped at the end."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes whose arithmetic has several threads wait for each other
    # A forked child of a process in which DuckDB has threads may hang; one that starts afresh does not.
    pool = ProcessPoolExecutor(_HANDS, get_context("spawn"), _end_quietly)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _end_quietly() -> None:
    """Let Ctrl-C end a process silently, and show no progress of its own: the first process does both."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for as long as the process runs
