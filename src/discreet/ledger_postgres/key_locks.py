"""Locks of idempotency keys on a PostgreSQL server, held by one connection."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from discreet.ledger_postgres.location import PostgresLocation, ServerConnection, ledger_errors, lock_number
from discreet.postgres.server import driver

# Newer servers have this setting and would close the connection while its query is being answered.
_NO_IDLE_TIMEOUT = "SELECT set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name = 'idle_session_timeout'"


class KeyLocks:
    """Locks on the keys in use by this process, valid for all servers that share a ledger.

    If the connection is lost, so are the locks: another server then reports an unknown outcome for a query that is
    still running here. The query is not charged twice, and the key returns its answer once it is stored.
    """

    def __init__(self, location: PostgresLocation) -> None:
        self._location, self._thread_lock = location, threading.Lock()
        self.server = ServerConnection(location, lambda connection: connection.execute(_NO_IDLE_TIMEOUT))

    @contextmanager
    def exclusive_lock(self, name: str, wait: Callable[[Callable[[], bool]], None]) -> Iterator[None]:
        """Hold the lock of a key; `wait` calls the given function until it returns True."""
        number = lock_number(f"{self._location.schema} {name}")
        wait(lambda: self._try_lock(number))
        try:
            yield
        finally:
            with self._thread_lock, contextlib.suppress(driver().Error):
                if self.server.connection:
                    self.server.connection.execute("SELECT pg_advisory_unlock(%s)", (number,))

    def close(self) -> None:
        """Close the connection, which releases all locks."""
        with self._thread_lock:
            self.server.close()

    def abandon_connection(self) -> None:
        """Drop the inherited connection in a forked child without ending the parent's session."""
        self._thread_lock = threading.Lock()
        self.server.abandon()

    def _try_lock(self, number: int) -> bool:
        with self._thread_lock, ledger_errors(self._location):
            return bool(self.server.execute_first("SELECT pg_try_advisory_lock(%s)", number).fetchall()[0][0])
