"""Work in threads, in fair turns of persons: it does not stop the event loop, and one person uses one thread."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from discreet.server.fair_turns import FairTurns

T = TypeVar("T")


class FairThreads:
    """Runs work to its end, whoever still waits for it; until then its person has no other turn.

    >>> threads = FairThreads("light", 4)
    >>> asyncio.run(threads.run("ana", lambda: 42))
    42
    >>> threads.close()
    """

    def __init__(self, name: str, count: int = 1) -> None:
        self.turns = FairTurns(count)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=name)
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
        """End the threads, after what they are running."""
        self._threads.shutdown()

    async def _run_in_turn(self, name: str, work: Callable[[], T], has_begun: asyncio.Event) -> T:
        async with self.turns.turn(name):
            has_begun.set()
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be waiting for it any more
