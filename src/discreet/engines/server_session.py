"""The session of an engine on a server, and how it is closed while a question may be running."""

import os
import threading
import time
import weakref
from abc import ABC, abstractmethod

from discreet.engines.table_source import EngineError

_STOP_TIMEOUT = 2.0  # seconds from interrupting a question to cutting its connection


class ServerSession(ABC):
    """A connection to a server; other threads may interrupt it, and it belongs to the process that opened it."""

    def __init__(self) -> None:
        self._ended = False
        self._pid = os.getpid()

    @property
    def is_own_process(self) -> bool:
        """Whether this process, and not its parent, opened the session; a connection must not be shared."""
        return os.getpid() == self._pid

    def check_usable(self) -> None:
        """Raise EngineError if the session is closed or belongs to another process."""
        if not self.is_own_process:
            raise EngineError("the engine was opened in another process. Open one engine per process.")
        if self._ended:
            raise EngineError("the engine is closed. Open a new one.")

    def stop_accepting(self) -> None:
        """Refuse further questions."""
        self._ended = True

    def close(self) -> None:
        """Release the session; in another process than the one that opened it, it is left alone."""
        self._ended = True
        if self.is_own_process:
            self.drop()

    @abstractmethod
    def drop(self) -> None:
        """Release the connection, if there is one; the next question may open another."""

    @abstractmethod
    def interrupt(self) -> None:
        """Ask the server to stop the running question."""

    @abstractmethod
    def disconnect(self) -> None:
        """Cut the connection."""


def close_when_idle(session: ServerSession, question_lock: threading.Lock, finalizer: weakref.finalize) -> None:  # type: ignore[type-arg]
    """Interrupt a running question, cut its connection if it does not end, and release all resources."""
    start = time.monotonic()
    while not (acquired := question_lock.acquire(timeout=0.05)):
        waited = time.monotonic() - start
        if waited > 2 * _STOP_TIMEOUT:
            break  # a consumer of batches() has stopped reading and holds the lock
        (session.interrupt if waited < _STOP_TIMEOUT else session.disconnect)()
    finalizer()
    if acquired:
        question_lock.release()
