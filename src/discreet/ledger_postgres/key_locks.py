"""Locks of idempotency keys on a PostgreSQL server, held by one connection."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from discreet.ledger_postgres.location import PostgresLocation, is_connection_lost, ledger_errors
from discreet.postgres.server import driver

if TYPE_CHECKING:
    import psycopg

# A setting of newer servers: they would end a connection that waits for its question to be answered.
_NO_IDLE_TIMEOUT = "SELECT set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name = 'idle_session_timeout'"
_ABANDONED_CONNECTIONS: list[Any] = []


class KeyLocks:
    """The keys that this process uses, locked for all servers that share a ledger.

    If the connection is lost, so are the locks: another server then finds the outcome of a question unknown that is
    still under way here. Nothing is charged twice for it, and its answer is there for the key when it is stored.
    """

    def __init__(self, location: PostgresLocation) -> None:
        self._location = location
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._thread_lock = threading.Lock()

    @contextmanager
    def exclusive_lock(self, name: str, wait: Callable[[Callable[[], bool]], None]) -> Iterator[None]:
        """Hold the lock of a key; `wait` tries until it is free."""
        digest = sha256(f"{self._location.schema} {name}".encode()).digest()
        number = int.from_bytes(digest[:8], "big", signed=True)
        wait(lambda: self._query_flag("SELECT pg_try_advisory_lock(%s)", number))
        try:
            yield
        finally:
            with self._thread_lock, contextlib.suppress(driver().Error):
                if self._connection:
                    self._connection.execute("SELECT pg_advisory_unlock(%s)", (number,))

    def close(self) -> None:
        """Let go of the connection, and of all locks."""
        with self._thread_lock:
            if self._connection:
                self._connection.close()
                self._connection = None

    def abandon_connection(self) -> None:
        """In a forked child: leave the parent's connection alone."""
        self._thread_lock = threading.Lock()
        if self._connection:
            with contextlib.suppress(driver().Error, OSError):
                os.close(self._connection.pgconn.socket)  # or the server would not see the parent's end
            _ABANDONED_CONNECTIONS.append(self._connection)  # closing it would end the parent's session
            self._connection = None

    def _query_flag(self, query: str, number: int) -> bool:
        with self._thread_lock, ledger_errors(self._location):
            if self._connection:
                try:
                    return bool(self._connection.execute(query, (number,)).fetchall()[0][0])
                except driver().Error as error:
                    if not is_connection_lost(error):
                        raise
                    self._connection.close()
            self._connection = self._location.connect()
            self._connection.execute(_NO_IDLE_TIMEOUT)
            return bool(self._connection.execute(query, (number,)).fetchall()[0][0])
