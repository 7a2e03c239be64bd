"""What a chapter needs: the recorder, the town, and two more processes for long computations."""

import signal
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
    # A forked child of a process in which DuckDB has threads may hang; one that starts afresh does not.
    pool = ProcessPoolExecutor(_HANDS, get_context("spawn"), _end_quietly)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _end_quietly() -> None:
    """Let Ctrl-C end a process without a word; the first one says it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
