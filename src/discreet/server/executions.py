"""Executions: one at a time, fairly between people, in a thread of their own; in strict mode, each for a time limit."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from discreet.kernel.errors import FAILED, DiscreetError, Failed, PolicyError, Refused
from discreet.server.fair_turns import FairTurns
from discreet.server.release_clock import ReleaseClock, TimedLedger, Turn

_LOG = logging.getLogger("discreet")
T = TypeVar("T")


class Executions:
    """Runs what reads private data: one question at a time, to its end, whoever still waits for it.

    >>> from discreet.ledger_sqlite import memory_ledger
    >>> from discreet.kernel.loss import Budget
    >>> ledger = TimedLedger(memory_ledger(name="demo", budget=Budget(1)))
    >>> executions = Executions(ReleaseClock(tick=0, limit=None), ledger)
    >>> asyncio.run(executions.run("ana", lambda: 42))
    42
    >>> executions.close()
    """

    def __init__(self, clock: ReleaseClock, ledger: TimedLedger) -> None:
        self._clock, self._ledger, self.turns = clock, ledger, FairTurns()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="execution")
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, name: str, work: Callable[[], T]) -> T:
        """Run `work` in this person's turn. Cancelled before, it never begins; cancelled later, it runs to its end."""
        has_begun = asyncio.Event()
        task = asyncio.create_task(self._run_in_turn(name, work, has_begun))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not has_begun.is_set():
                task.cancel()
            raise

    async def finish(self) -> None:
        """Wait until everything that has begun, or waits for its turn, has ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def close(self) -> None:
        """End the thread, after what it is running."""
        self._thread.shutdown()

    async def _run_in_turn(self, name: str, work: Callable[[], T], has_begun: asyncio.Event) -> T:
        async with self.turns.turn(name):
            has_begun.set()
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work)

    def _run(self, work: Callable[[], T]) -> T:
        """Run `work` in the thread; in strict mode, return or fail at the end of a time limit."""
        limit = self._clock.limit
        turn = self._ledger.turn = None if limit is None else Turn(self._clock, limit)
        try:
            result = _without_surprises(work)
        except (Refused, PolicyError):
            raise  # decided without private data
        except DiscreetError:
            if turn:
                turn.wait()
            raise
        finally:
            self._ledger.turn = None
        if turn and not turn.has_stored:
            turn.wait()
        return result

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be waiting for it any more


def _without_surprises(work: Callable[[], T]) -> T:
    """Run `work`; an error that is none of ours may depend on data, so that it is only in the owner's log."""
    try:
        return work()
    except DiscreetError:
        raise
    except Exception:  # noqa: BLE001 - its text may depend on the data
        _LOG.exception("an execution failed")
    raise Failed(FAILED)
