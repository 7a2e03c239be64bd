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

# Newer servers have this setting and would close the connection while its query is being answered.
_NO_IDLE_TIMEOUT = "SELECT set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name = 'idle_session_timeout'"
_ABANDONED_CONNECTIONS: list[Any] = []


class KeyLocks:
    """Locks on the keys in use by this process, valid for all servers that share a ledger.

    If the connection is lost, so are the locks: another server then reports an unknown outcome for a query that is
    still running here. The query is not charged twice, and the key returns its answer once it is stored.
    """

    def __init__(self, location: PostgresLocation) -> None:
        self._location = location
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._thread_lock = threading.Lock()

    @contextmanager
    def exclusive_lock(self, name: str, wait: Callable[[Callable[[], bool]], None]) -> Iterator[None]:
        """Hold the lock of a key; `wait` calls the given function until it returns True."""
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
        """Close the connection, which releases all locks."""
        with self._thread_lock:
            if self._connection:
                self._connection.close()
                self._connection = None

    def abandon_connection(self) -> None:
        """Drop the inherited connection in a forked child without ending the parent's session."""
        self._thread_lock = threading.Lock()
        if self._connection:
            with contextlib.suppress(driver().Error, OSError):
                os.close(self._connection.pgconn.socket)  # otherwise the server would not notice when the parent exits
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
