"""Limits on how often something may happen in a minute, by name or address, in bounded memory."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock

from discreet.server.errors import RateLimited

_WINDOW = 60.0
_MAX_NAMES = 10_000  # that are remembered; those that were quiet for longest are forgotten


class MinuteLimit:
    """Counts events of the last minute by name; `check` refuses a name that has reached the limit.

    >>> limit = MinuteLimit("logins", 1)
    >>> limit.add("ana")
    >>> limit.check("ana")
    Traceback (most recent call last):
    discreet.server.errors.RateLimited: logins: more than 1 in a minute. Try again in 60 seconds.
    """

    def __init__(self, what: str, limit: int, now: Callable[[], float] = time.monotonic) -> None:
        self._what, self._limit, self._now = what, limit, now
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = Lock()

    def check(self, name: str) -> None:
        """Raise RateLimited if the limit was reached within the last minute."""
        with self._lock:
            times = self._recent(name)
            if len(times) < self._limit:
                return
            wait = max(0.0, times[0] + _WINDOW - self._now())
        message = f"{self._what}: more than {self._limit} in a minute. Try again in {wait:.0f} seconds."
        raise RateLimited(message, wait)

    def add(self, name: str) -> None:
        """Count an event."""
        with self._lock:
            times = self._times.setdefault(name, deque(maxlen=self._limit))
            times.append(self._now())
            self._times.move_to_end(name)
            if len(self._times) > _MAX_NAMES:
                self._times.popitem(last=False)

    def _recent(self, name: str) -> deque[float]:
        times = self._times.get(name, deque())
        while times and times[0] <= self._now() - _WINDOW:
            times.popleft()
        return times
