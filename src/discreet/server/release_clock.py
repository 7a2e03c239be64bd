"""When answers leave: at multiples of the policy's tick or, in strict mode, at its time limit.

With a tick, the time of an answer or a failure after a charge is rounded up, so that it says little about how long
the engine took. In strict mode it says nothing: every answer leaves one time limit after the question began, whether it
was stored, computed or failed, and an answer that was computed is stored only then, so that nobody can replay it
before. Questions that read data are executed one at a time, each for a whole time limit, or else the time-out of one
would depend on the data that another reads. Refusals are decided without private data, so they are immediate.
"""

import asyncio
import math
import time
from dataclasses import replace
from typing import Protocol

from discreet.engines.interface import Tuning
from discreet.kernel.errors import LedgerError
from discreet.kernel.event import Receipt
from discreet.kernel.ledger import Ledger
from discreet.kernel.ledger.checkpoint import check_checkpoint
from discreet.policy import Policy

ENGINE_SHARE = 0.9  # of the time limit in strict mode; the rest is for noise and the ledger


class TimeSource(Protocol):
    """A clock and two ways to wait; tests replace it."""

    def now(self) -> float:
        """Return the seconds since some fixed moment."""

    def sleep(self, seconds: float) -> None:
        """Wait in a thread."""

    async def wait(self, seconds: float) -> None:
        """Wait in a coroutine."""


class SystemTime:
    """The monotonic clock of the machine.

    >>> SystemTime().now() > 0
    True
    """

    def now(self) -> float:
        """Return the seconds since some fixed moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait in a thread."""
        time.sleep(seconds)

    async def wait(self, seconds: float) -> None:
        """Wait in a coroutine."""
        await asyncio.sleep(seconds)


class ReleaseClock:
    """Decides when answers leave, and waits for it.

    >>> clock = ReleaseClock(tick=0.25, limit=None)
    >>> clock.release_time(asked=10.0, ready=10.3)
    10.5
    >>> ReleaseClock(tick=0.25, limit=2.0).release_time(asked=10.0, ready=10.3)
    12.0
    """

    def __init__(self, tick: float, limit: float | None, source: TimeSource | None = None) -> None:
        self.tick, self.limit, self.source = tick, limit, source or SystemTime()
        self.overruns = 0  # executions that ended after their time limit, in strict mode

    @classmethod
    def of_policy(cls, policy: Policy, source: TimeSource | None = None) -> "ReleaseClock":
        """Return the clock that a policy asks for."""
        server, seconds = policy.server, policy.tuning.seconds
        return cls(float(server.tick), float(seconds) if server.strict and seconds else None, source)

    @property
    def is_strict(self) -> bool:
        """Whether every answer leaves at the time limit."""
        return self.limit is not None

    def release_time(self, asked: float, ready: float) -> float:
        """Return when an answer leaves that was asked and became ready at these times."""
        step = self.tick if self.limit is None else self.limit
        if not step:
            return ready
        steps = math.ceil((ready - asked) / step - 1e-9)  # a wait that ends on time is not late
        return asked + step * max(steps, 0 if self.limit is None else 1)

    async def wait_for_release(self, asked: float) -> None:
        """Wait until an answer that is ready now may leave."""
        moment = self.release_time(asked, self.source.now())
        while (seconds := moment - self.source.now()) > 0:
            await self.source.wait(seconds)

    def sleep_until(self, moment: float) -> None:
        """Wait in the thread that executes questions."""
        while (seconds := moment - self.source.now()) > 0:
            self.source.sleep(seconds)


class Turn:
    """One execution in strict mode: stages of one time limit each, of which every one but the last stores an answer."""

    def __init__(self, clock: ReleaseClock, limit: float) -> None:
        self._clock, self._limit = clock, limit
        self._end = clock.source.now() + limit
        self.has_stored = False  # an answer, so that the end of a stage was waited for

    def end_stage(self) -> None:
        """Wait until an answer may be stored, and begin the next stage; LedgerError if it comes too late."""
        if self._clock.source.now() > self._end:
            raise LedgerError("the question exceeded the time limit of strict mode")
        self._clock.sleep_until(self._end)
        self._end, self.has_stored = self._end + self._limit, True

    def wait(self) -> None:
        """Wait for the end of the stage; after an overrun, for a whole number of time limits."""
        now = self._clock.source.now()
        if now > self._end:
            self._clock.overruns += 1
            self._end = self._clock.release_time(self._end, now)
        self._clock.sleep_until(self._end)


class TimedLedger(Ledger):
    """The ledger of a service: in strict mode, an answer is stored at the end of its time limit, and not before."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger.session, ledger.dataset)
        self.turn: Turn | None = None  # of the question that is being executed

    def settle(self, receipt: Receipt, answer: bytes) -> None:
        """Store an answer, once it may be seen."""
        if self.turn:
            self.turn.end_stage()
        super().settle(receipt, answer)

    def last_row(self) -> tuple[int, str]:
        """Return the number and the hash of the last row, compared with the checkpoint."""
        with self._read(check_checkpoint) as (_, chain):
            return chain.last.seq, chain.last.hash


def served_tuning(tuning: Tuning, clock: ReleaseClock) -> Tuning:
    """Return the engine's settings for a service: in strict mode it stops early enough for the answer to leave in time.

    >>> served_tuning(Tuning(seconds=10), ReleaseClock(tick=0.25, limit=10.0)).seconds
    9.0
    """
    return tuning if clock.limit is None else replace(tuning, seconds=max(0.001, ENGINE_SHARE * clock.limit))
