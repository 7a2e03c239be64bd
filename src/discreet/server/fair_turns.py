"""One execution at a time, by turns: many questions of one person do not block those of others."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from discreet.server.errors import RateLimited

_MAX_WAITING = 64  # questions of one person


class FairTurns:
    """A lock that goes round between persons; each person's own questions keep their order.

    >>> async def two_questions():
    ...     turns = FairTurns()
    ...     async with turns.turn("ana"):
    ...         return turns.waiting
    >>> asyncio.run(two_questions())
    0
    """

    def __init__(self) -> None:
        self.is_taken = False
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """The number of questions that wait."""
        return sum(map(len, self._queues.values()))

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait for this person's turn, and hold it; refuse if too many of their questions wait."""
        await self._acquire(name)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, name: str) -> None:
        if not self.is_taken:
            self.is_taken = True
            return
        queue = self._queues.setdefault(name, deque())
        if len(queue) >= _MAX_WAITING:
            raise RateLimited(f"{_MAX_WAITING} of your questions are waiting. Try again when they are answered.", 1.0)
        future = asyncio.get_running_loop().create_future()
        queue.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._release()  # the turn had just come
            raise

    def _release(self) -> None:
        while self._queues:
            name, queue = self._queues.popitem(last=False)
            future = queue.popleft()
            if queue:
                self._queues[name] = queue  # behind all others
            if not future.done():  # not cancelled
                future.set_result(None)
                return
        self.is_taken = False
