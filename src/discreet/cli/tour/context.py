"""The context of a chapter: recorder, town, worker processes and numbers of repetitions."""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context

from discreet.cli.tour.recorder import Recorder
from discreet.worlds.town import Town

_WORKERS = 2


@dataclass(frozen=True)
class Repetitions:
    """Numbers of copies of the town, of plays of the differencing game, and of repeated queries."""

    copies: int = 100
    plays: int = 600
    repeats: int = 200


FULL_TOUR = Repetitions()


@dataclass(frozen=True)
class TourContext:
    """Everything that a chapter needs."""

    recorder: Recorder
    town: Town
    workers: Executor
    repetitions: Repetitions


@contextmanager
def worker_pool() -> Iterator[Executor]:
    """Yield a pool of worker processes; jobs that have not started are cancelled at the end."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # more threads than cores slow the workers down
    # Forking a process in which DuckDB runs threads may hang the child; spawning does not.
    pool = ProcessPoolExecutor(_WORKERS, get_context("spawn"), _initialise_worker)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _initialise_worker() -> None:
    """Let Ctrl-C end a worker silently, and hide its progress: the main process reports both."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for as long as the process runs
