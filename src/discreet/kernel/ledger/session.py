"""One open connection: transactions that run alone, what happens after an error, and what happens at a fork."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.head import Head
from discreet.kernel.ledger.place import File, Memory, Place
from discreet.kernel.ledger.table import SQLiteTable


class SQLiteSession:
    """The way to a ledger's tables for all threads of this process; after an I/O error it is closed for good."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.stopped: str | None = None
        self.threads = threading.Lock()
        self._table: SQLiteTable | None = None
        _OPEN.add(self)

    @contextmanager
    def writing(self) -> Iterator[SQLiteTable]:
        """Run one transaction, alone among all threads and processes; move the head after the commit.

        Claim: no two of these run at the same time on one file; when it ends, what was written is on the disk; what
            raises leaves the rows as they were, or the session stopped; the head never names a row that is not
            committed, and goes back only when the owner acknowledges a loss.
        Proof: the lock of the threads and that of the file are held from before BEGIN until after the head is
            written, in this order; COMMIT returns after the rows are on the disk (WAL, synchronous=FULL, both read back
            when the file is opened); what was not committed is rolled back; after an I/O error, when the outcome
            is not known, every later use raises. The rows are numbered upwards, so the head is, too.
        Needs: SQLite's atomic commit; a disk that keeps what it synced; flock between processes of one machine; that
            nobody forks in between, which _before_fork
            sees to: a child would inherit SQLite's record of locks that it does not hold.
        Checked by: test_concurrent_processes_end_exactly_at_the_limit,
            test_concurrent_threads_end_exactly_at_the_limit, test_the_head_is_written_after_the_commit,
            test_an_error_at_commit_stops_the_ledger_until_it_is_opened_again,
            test_forked_children_open_the_ledger_anew
        Seal: 8a932e63f060
        """
        with self.threads, named(self.place):
            try:
                with self.place.alone():
                    table = self._connected()
                    with _begun(table, "IMMEDIATE"):
                        yield table
                        table.connection.execute("COMMIT")
                    row = table.appended
                    if row:
                        self.place.keep_head(Head.of(row))
            except (sqlite3.Error, OSError) as cause:
                # Whether the row was committed is not known: whoever goes on must read the file afresh.
                self.stopped = f"an earlier write failed ({cause}). Repair the cause, then open the ledger again"
                raise

    @contextmanager
    def reading(self) -> Iterator[SQLiteTable]:
        """Read one state of the ledger, whatever others write meanwhile."""
        with self.threads, named(self.place), _begun(self._connected(), "DEFERRED") as table:
            yield table

    def close(self) -> None:
        """Let go of the file, for good."""
        with self.threads:
            self.stopped = "the ledger is closed"
            self.disconnect()

    def disconnect(self) -> None:
        """Let go of the file until it is needed again; the caller holds the lock of the threads."""
        if self._table:
            self._table.connection.close()
            self._table = None

    def _connected(self) -> SQLiteTable:
        if self.stopped:
            raise LedgerError(self.stopped)
        if self._table is None:
            self._table = SQLiteTable(self.place.connect())
        return self._table


@contextmanager
def named(place: Place) -> Iterator[None]:
    """Turn what goes wrong into a LedgerError that names the place."""
    try:
        yield
    except LedgerError as error:
        raise LedgerError(f"{place}: {error}") from error.__cause__
    except (sqlite3.Error, OSError) as cause:
        raise LedgerError(
            f"{place}: the ledger cannot be read or written ({cause}). "
            "Check that the file is whole, the disk has space and the folder can be written to."
        ) from cause


@contextmanager
def _begun(table: SQLiteTable, how: str) -> Iterator[SQLiteTable]:
    """Begin a transaction, and undo whatever was not committed."""
    table.appended = None
    try:
        if table.connection.in_transaction:  # an interrupt left it open; nothing of it was committed
            table.connection.execute("ROLLBACK")
        table.connection.execute(f"BEGIN {how}")
        yield table
    finally:
        if table.connection.in_transaction:
            table.connection.execute("ROLLBACK")


# SQLite keeps, for the whole process, which locks it holds on a file, and a forked child inherits that record
# without the locks: not even a new connection is safe there. So no file may be connected when a fork happens.
_OPEN: weakref.WeakSet[SQLiteSession] = weakref.WeakSet()
_ONE_FORK = threading.Lock()
_HELD: list[SQLiteSession] = []


def _before_fork() -> None:
    _ONE_FORK.acquire()
    for session in sorted(_OPEN, key=id):
        session.threads.acquire()  # waits for the end of its transaction
        _HELD.append(session)
        if isinstance(session.place, File):
            session.disconnect()


def _after_fork() -> None:
    while _HELD:
        _HELD.pop().threads.release()
    _ONE_FORK.release()


def _after_fork_in_child() -> None:
    for session in _HELD:
        if isinstance(session.place, Memory):  # a copy would be spent a second time
            session.stopped = "it belongs to the process that made it; use a file to share it"
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
