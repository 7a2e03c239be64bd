"""When answers leave: at multiples of the policy's tick or, in strict mode, at its time limit.

With a tick, the time of an answer or a failure after a charge is rounded up, so that it says little about how long the
engine took. Until then the ledger shows the answer to the thread of executions only: for everybody else the charge has
no answer yet, and the history of the ledger ends before that answer, so that neither a copy of the question nor a list
of charges shows how long it took. A publication is in no list before. In strict mode the time says nothing: every
answer leaves one time limit after the question began, whether it was stored, computed or failed, and an answer that was
computed is stored only then, so that nobody can replay it before. Questions that read data are executed one at a time,
each for a whole time limit, or else the time-out of one would depend on the data that another reads. Refusals are
decided without private data, so they are immediate.
"""

import asyncio
import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import get_ident
from typing import Protocol

from discreet.engines.interface import Tuning
from discreet.kernel.errors import LedgerError
from discreet.kernel.event import Event, EventState, Receipt
from discreet.kernel.ledger import Ledger
from discreet.kernel.ledger.chain import RowKind
from discreet.kernel.ledger.checkpoint import check_checkpoint
from discreet.policy import Policy
from discreet.publish.ledger_history import LedgerHistory, read_history

ENGINE_SHARE = 0.9  # of the time limit in strict mode; the rest is for noise and the ledger
_MAX_RELEASE_TIMES = 200  # that are kept, besides those in the future


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
    """One execution in strict mode: stages of one time limit each, each of which stores an answer or is waited for."""

    def __init__(self, clock: ReleaseClock, limit: float) -> None:
        self._clock, self._limit = clock, limit
        self._end = clock.source.now() + limit
        self.is_open = True  # whether something happened since a stage ended, so that the end of this one is due

    def end_stage(self) -> None:
        """Wait until an answer may be stored, and begin the next stage; LedgerError if it comes too late."""
        if self._clock.source.now() > self._end:
            raise LedgerError("the question exceeded the time limit of strict mode")
        self._clock.sleep_until(self._end)
        self._end, self.is_open = self._end + self._limit, False

    def wait(self) -> None:
        """Wait for the end of the stage; after an overrun, for a whole number of time limits."""
        now = self._clock.source.now()
        if now > self._end:
            self._clock.overruns += 1
            self._end = self._clock.release_time(self._end, now)
        self._clock.sleep_until(self._end)


class ReleaseTimes:
    """When stored answers leave: those of the running execution are not known, and those of others may be to come.

    Answers are named by their receipts, and publications by their folders.

    >>> times = ReleaseTimes(ReleaseClock(tick=0.25, limit=None))
    >>> with times.execution(asked=times.clock.source.now()):
    ...     times.hide("5e1f")
    >>> times.is_hidden("5e1f"), times.is_hidden("77aa")
    (True, False)
    """

    def __init__(self, clock: ReleaseClock) -> None:
        self.clock = clock
        self._times: dict[str, tuple[float, float]] = {}  # by name: when it was asked for, and when it leaves
        self._asked, self._running, self._thread = 0.0, list[str](), 0

    @contextmanager
    def execution(self, asked: float) -> Iterator[None]:
        """Run an execution in this thread, which sees all answers; the others see its own at their release time."""
        self._asked, self._running, self._thread = asked, [], get_ident()
        try:
            yield
        finally:
            now = self.clock.source.now()
            leaves = now if self.clock.is_strict else self.clock.release_time(asked, now)
            self._times |= dict.fromkeys(self._running, (asked, leaves))
            self._thread = 0

    def hide(self, name: str) -> None:
        """Hide what the running execution stores next from all other threads, until it leaves."""
        if self._thread != get_ident():
            return
        if len(self._times) >= _MAX_RELEASE_TIMES:
            now = self.clock.source.now()
            self._times = {name: times for name, times in self._times.items() if times[1] > now}
        self._running.append(name)
        self._times[name] = self._asked, math.inf

    def first_asked(self, name: str, asked: float) -> float:
        """Return when the question was asked whose answer was stored under a name, if that was lately; or `asked`."""
        return self._times.get(name, (asked, 0.0))[0]

    def is_hidden(self, name: str) -> bool:
        """Whether this thread must not see an answer yet."""
        _, leaves = self._times.get(name, (0.0, -math.inf))
        return self._thread != get_ident() and leaves > self.clock.source.now()

    def hidden(self) -> list[str]:
        """Return the names of all that has not left yet."""
        now = self.clock.source.now()
        return [name for name, (_, leaves) in list(self._times.items()) if leaves > now]


class TimedLedger(Ledger):
    """The ledger of a service: nobody but the thread of executions sees an answer before its release time.

    In strict mode, an answer is stored at the end of its time limit, and not before.
    """

    def __init__(self, ledger: Ledger, clock: ReleaseClock | None = None) -> None:
        super().__init__(ledger.session, ledger.dataset)
        self.turn: Turn | None = None  # of the question that is being executed
        self.release_times = ReleaseTimes(clock or ReleaseClock(tick=0, limit=None))

    def settle(self, receipt: Receipt, answer: bytes) -> None:
        """Store an answer, once it may be seen, or else hide it until then."""
        if self.turn:
            self.turn.end_stage()
        elif self.release_times.clock.tick:
            self.release_times.hide(receipt.id)
        super().settle(receipt, answer)

    def answers(
        self, fingerprints: Iterable[str] = (), *, keys: Iterable[tuple[str, str]] = ()
    ) -> list[tuple[Event, bytes | None]]:
        """Return the charges with any of these fingerprints or keys, and their answers as far as they have left."""
        found = super().answers(fingerprints, keys=keys)
        return [
            (replace(event, state=EventState.RESERVED), None)
            if self.release_times.is_hidden(event.id)
            else (event, answer)
            for event, answer in found
        ]

    def history(self) -> LedgerHistory:
        """Return everything in the ledger up to the first answer that has not left yet."""
        is_hidden = self.release_times.is_hidden
        return read_history(self, until=lambda row: row.kind == RowKind.SETTLE and is_hidden(row.receipt or ""))

    def visible_state(self) -> tuple[int, str, int]:
        """Return what changes whenever a stored answer may: not when another is stored, but when that leaves.

        These are the number and the hash of the last row, compared with the checkpoint, and how many answers before it
        have not left; the row of an answer that has not left is passed over.
        """
        with self._read(check_checkpoint) as (_, chain):
            hidden = self.release_times.hidden()  # after the rows: each was hidden before it was written
            rows = {chain.settlements[name][0] for name in hidden if name in chain.settlements}
            last = chain.last.seq
            while last in rows:
                last -= 1
            return last, chain.hash_at(last) or "", sum(row < last for row in rows)


def served_tuning(tuning: Tuning, clock: ReleaseClock) -> Tuning:
    """Return the engine's settings for a service: in strict mode it stops early enough for the answer to leave in time.

    >>> served_tuning(Tuning(seconds=10), ReleaseClock(tick=0.25, limit=10.0)).seconds
    9.0
    """
    return tuning if clock.limit is None else replace(tuning, seconds=max(0.001, ENGINE_SHARE * clock.limit))
