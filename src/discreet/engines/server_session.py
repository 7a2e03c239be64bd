"""How the session of an engine on a server is closed while a question may be running."""

import threading
import time
import weakref
from typing import Protocol

_STOP_TIMEOUT = 2.0  # seconds from interrupting a question to cutting its connection


class ServerSession(Protocol):
    """A connection to a server that can be interrupted from another thread."""

    def interrupt(self) -> None:
        """Ask the server to stop the running question."""

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
