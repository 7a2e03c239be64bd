"""Exclusive, durable transactions on a SQLite ledger; handling of I/O errors and forks."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.checkpoint import checkpoint_of
from discreet.kernel.ledger.table import LedgerTable
from discreet.ledger_sqlite.location import FileLocation, MemoryLocation, SQLiteLocation
from discreet.ledger_sqlite.schema import SQLITE_DIALECT


class SQLiteSession:
    """Access to a ledger's tables for all threads of this process; an I/O error during a write stops it for good."""

    def __init__(self, location: SQLiteLocation) -> None:
        self.location = location
        self.stop_reason: str | None = None
        self.thread_lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        _OPEN_SESSIONS.add(self)

    @contextmanager
    def write_transaction(self) -> Iterator[LedgerTable]:
        """Run one transaction, exclusive among all threads and processes; update the checkpoint after the commit.

        Claim: no two of these run at the same time on one file; when it ends, everything written is on disk; an
            exception leaves the rows unchanged or the session stopped; the checkpoint never names a row that is not
            committed, and goes back only when the owner acknowledges a loss.
        Proof: the thread lock and the file lock are held, in this order, from before BEGIN until after the checkpoint
            is written; COMMIT returns after the rows are on disk (WAL, synchronous=FULL, both read back when the file
            is opened); uncommitted changes are rolled back; after an I/O error, when the outcome is unknown, every
            later use raises. Row numbers increase, so that of the checkpoint does, too.
        Needs: FileLocation, MemoryLocation, SQLITE_SCHEMA, LedgerTable.add_row, checkpoint_of, write_checkpoint;
            SQLite's atomic commit; a disk that keeps synced data; flock between processes of one machine; no fork in
            between, which _before_fork ensures: a child would inherit SQLite's record of locks that it does not hold.
        Checked by: test_concurrent_processes_end_exactly_at_the_limit,
            test_concurrent_threads_end_exactly_at_the_limit, test_the_checkpoint_is_written_after_the_commit,
            test_an_error_at_commit_stops_the_ledger_until_it_is_opened_again,
            test_forked_children_reopen_the_ledger
        """
        with self.thread_lock, ledger_errors(self.location):
            try:
                with self.location.exclusive_lock():
                    with self._transaction("BEGIN IMMEDIATE") as table:
                        yield table
                        table.connection.execute("COMMIT")
                    if table.last_appended:
                        self.location.store_checkpoint(checkpoint_of(table.last_appended))
            except (sqlite3.Error, OSError) as cause:
                # Whether the row was committed is unknown, so the file must be read again before any further use.
                self.stop_reason = f"an earlier write failed ({cause}). Fix the cause, then reopen the ledger"
                raise

    @contextmanager
    def read_transaction(self) -> Iterator[LedgerTable]:
        """Read a snapshot of the ledger."""
        with self.thread_lock, ledger_errors(self.location), self._transaction("BEGIN") as table:
            yield table

    def close(self) -> None:
        """Close the session for good."""
        with self.thread_lock:
            self.stop_reason = "the ledger is closed"
            self.disconnect()

    def disconnect(self) -> None:
        """Close the connection until it is needed again; the caller holds the thread lock."""
        if self._connection:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[LedgerTable]:
        """Begin a transaction and roll back whatever was not committed."""
        if self.stop_reason:
            raise LedgerError(self.stop_reason)
        connection = self._connection = self._connection or self.location.connect()
        try:
            if connection.in_transaction:  # left open by an interrupt, uncommitted
                connection.execute("ROLLBACK")
            connection.execute(begin)
            yield LedgerTable(connection, SQLITE_DIALECT)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


@contextmanager
def ledger_errors(location: SQLiteLocation) -> Iterator[None]:
    """Convert errors to LedgerErrors that name the location."""
    try:
        yield
    except LedgerError as error:
        raise LedgerError(f"{location}: {error}") from error.__cause__
    except (sqlite3.Error, OSError) as cause:
        raise LedgerError(
            f"{location}: cannot read or write the ledger ({cause}). "
            "Check the file, the free disk space and the permissions of the folder."
        ) from cause


# SQLite records per process which locks it holds on a file, and a forked child inherits this record without the locks:
# not even a new connection would be safe there. So all connections are closed before a fork.
_OPEN_SESSIONS: weakref.WeakSet[SQLiteSession] = weakref.WeakSet()
_FORK_LOCK = threading.Lock()
_LOCKED_SESSIONS: list[SQLiteSession] = []


def _before_fork() -> None:
    _FORK_LOCK.acquire()
    for session in sorted(_OPEN_SESSIONS, key=id):
        session.thread_lock.acquire()  # waits until its transaction ends
        _LOCKED_SESSIONS.append(session)
        if isinstance(session.location, FileLocation):
            session.disconnect()


def _after_fork() -> None:
    while _LOCKED_SESSIONS:
        _LOCKED_SESSIONS.pop().thread_lock.release()
    _FORK_LOCK.release()


def _after_fork_in_child() -> None:
    for session in _LOCKED_SESSIONS:
        if isinstance(session.location, MemoryLocation):  # the budget of a copy could be spent a second time
            session.stop_reason = "an in-memory ledger belongs to the process that created it; use a file to share one"
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
