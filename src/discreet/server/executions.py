"""Executions: one at a time, fairly between people, in a thread of their own; in strict mode, each for a time limit."""

import logging
from collections.abc import Callable
from typing import TypeVar

from discreet.kernel.errors import FAILED, DiscreetError, Failed, PolicyError, Refused
from discreet.server.fair_threads import FairThreads
from discreet.server.release_clock import ReleaseClock, TimedLedger, Turn

_LOG = logging.getLogger("discreet")
T = TypeVar("T")


class Executions:
    """Runs what reads private data: one question at a time, to its end, whoever still waits for it.

    >>> import asyncio
    >>> from discreet.ledger_sqlite import memory_ledger
    >>> from discreet.kernel.loss import Budget
    >>> ledger = TimedLedger(memory_ledger(name="demo", budget=Budget(1)))
    >>> executions = Executions(ReleaseClock(tick=0, limit=None), ledger)
    >>> asyncio.run(executions.run("ana", lambda: 42))
    42
    >>> executions.close()
    """

    def __init__(self, clock: ReleaseClock, ledger: TimedLedger) -> None:
        self._clock, self._ledger, self._thread = clock, ledger, FairThreads("execution")
        self.turns, self.finish, self.close = self._thread.turns, self._thread.finish, self._thread.close

    async def run(self, name: str, work: Callable[[], T], asked: float | None = None) -> T:
        """Run `work` in this person's turn. Cancelled before, it never begins; cancelled later, it runs to its end.

        Answers that it stores are visible to others at the release time of a question that was `asked` then, or now.
        """
        since = self._clock.source.now() if asked is None else asked
        return await self._thread.run(name, lambda: self._run(work, since))

    def _run(self, work: Callable[[], T], asked: float) -> T:
        with self._ledger.release_times.execution(asked):
            return self._run_in_time(work)

    def _run_in_time(self, work: Callable[[], T]) -> T:
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
        if turn and turn.is_open:
            turn.wait()
        return result


def _without_surprises(work: Callable[[], T]) -> T:
    """Run `work`; an error that is none of ours may depend on data, so that it is only in the owner's log."""
    try:
        return work()
    except DiscreetError:
        raise
    except Exception:  # noqa: BLE001 - its text may depend on the data
        _LOG.exception("an execution failed")
    raise Failed(FAILED)
