"""Turns between persons: many requests of one person do not keep those of others waiting."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from discreet.server.errors import RateLimited

_MAX_WAITING = 64  # requests of one person


class FairTurns:
    """Some turns at once, at most one of each person; they go round, and each person's requests keep their order.

    >>> async def two_questions():
    ...     turns = FairTurns()
    ...     async with turns.turn("ana"):
    ...         return turns.waiting
    >>> asyncio.run(two_questions())
    0
    """

    def __init__(self, at_once: int = 1) -> None:
        self._at_once = at_once
        self._holders: set[str] = set()
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return sum(map(len, self._queues.values()))

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait for this person's turn, and hold it; refuse if too many of their requests wait."""
        await self._acquire(name)
        try:
            yield
        finally:
            self._release(name)

    async def _acquire(self, name: str) -> None:
        if len(self._holders) < self._at_once and name not in self._holders:
            self._holders.add(name)
            return
        queue = self._queues.setdefault(name, deque())
        if len(queue) >= _MAX_WAITING:
            raise RateLimited(f"{_MAX_WAITING} of your requests are waiting. Try again when they are answered.", 1.0)
        future = asyncio.get_running_loop().create_future()
        queue.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._release(name)  # the turn had just come
            raise

    def _release(self, name: str) -> None:
        """End a turn, and give it to the person who has waited longest and has none."""
        self._holders.discard(name)
        if name in self._queues:
            self._queues.move_to_end(name)
        for waiting in [each for each in self._queues if each not in self._holders]:
            queue = self._queues.pop(waiting)
            while queue and queue[0].done():  # cancelled
                queue.popleft()
            if queue:
                queue.popleft().set_result(None)
                self._holders.add(waiting)
                if queue:
                    self._queues[waiting] = queue  # behind all others
                return
