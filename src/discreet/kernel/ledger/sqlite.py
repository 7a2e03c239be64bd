"""The ledger in SQLite: exclusive durable transactions; create, open and in-memory ledgers."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from discreet.kernel.errors import LedgerError, PolicyError
from discreet.kernel.ledger.account import Account
from discreet.kernel.ledger.chain import first_row
from discreet.kernel.ledger.checkpoint import Checkpoint
from discreet.kernel.ledger.sqlite_location import FileLocation, MemoryLocation, SQLiteLocation
from discreet.kernel.ledger.sqlite_table import SQLiteTable
from discreet.kernel.ledger.storage import data_set_name
from discreet.kernel.ledger.terms import Terms
from discreet.kernel.loss import Budget


class SQLiteSession:
    """The way to a ledger's tables for all threads of this process; after an I/O error it is closed for good."""

    def __init__(self, location: SQLiteLocation) -> None:
        self.location = location
        self.stop_reason: str | None = None
        self.thread_lock = threading.Lock()
        self._table: SQLiteTable | None = None
        _OPEN_SESSIONS.add(self)

    @contextmanager
    def write_transaction(self) -> Iterator[SQLiteTable]:
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
        Seal: 1243f73d0cd8
        """
        with self.thread_lock, ledger_errors(self.location):
            try:
                with self.location.exclusive_lock():
                    table = self._open_table()
                    with _transaction(table, "IMMEDIATE"):
                        yield table
                        table.connection.execute("COMMIT")
                    row = table.last_appended
                    if row:
                        self.location.store_checkpoint(Checkpoint.of_row(row))
            except (sqlite3.Error, OSError) as cause:
                # Whether the row was committed is not known: whoever goes on must read the file afresh.
                self.stop_reason = f"an earlier write failed ({cause}). Repair the cause, then open the ledger again"
                raise

    @contextmanager
    def read_transaction(self) -> Iterator[SQLiteTable]:
        """Read one state of the ledger, whatever others write meanwhile."""
        with self.thread_lock, ledger_errors(self.location), _transaction(self._open_table(), "DEFERRED") as table:
            yield table

    def close(self) -> None:
        """Let go of the file, for good."""
        with self.thread_lock:
            self.stop_reason = "the ledger is closed"
            self.disconnect()

    def disconnect(self) -> None:
        """Let go of the file until it is needed again; the caller holds the lock of the threads."""
        if self._table:
            self._table.connection.close()
            self._table = None

    def _open_table(self) -> SQLiteTable:
        if self.stop_reason:
            raise LedgerError(self.stop_reason)
        if self._table is None:
            self._table = SQLiteTable(self.location.connect())
        return self._table


@contextmanager
def ledger_errors(location: SQLiteLocation) -> Iterator[None]:
    """Turn what goes wrong into a LedgerError that names the place."""
    try:
        yield
    except LedgerError as error:
        raise LedgerError(f"{location}: {error}") from error.__cause__
    except (sqlite3.Error, OSError) as cause:
        raise LedgerError(
            f"{location}: the ledger cannot be read or written ({cause}). "
            "Check that the file is whole, the disk has space and the folder can be written to."
        ) from cause


@contextmanager
def _transaction(table: SQLiteTable, mode: str) -> Iterator[SQLiteTable]:
    """Begin a transaction, and undo whatever was not committed."""
    table.last_appended = None
    try:
        if table.connection.in_transaction:  # an interrupt left it open; nothing of it was committed
            table.connection.execute("ROLLBACK")
        table.connection.execute(f"BEGIN {mode}")
        yield table
    finally:
        if table.connection.in_transaction:
            table.connection.execute("ROLLBACK")


# SQLite keeps, for the whole process, which locks it holds on a file, and a forked child inherits that record
# without the locks: not even a new connection is safe there. So no file may be connected when a fork happens.
_OPEN_SESSIONS: weakref.WeakSet[SQLiteSession] = weakref.WeakSet()
_FORK_LOCK = threading.Lock()
_LOCKED_SESSIONS: list[SQLiteSession] = []


def _before_fork() -> None:
    _FORK_LOCK.acquire()
    for session in sorted(_OPEN_SESSIONS, key=id):
        session.thread_lock.acquire()  # waits for the end of its transaction
        _LOCKED_SESSIONS.append(session)
        if isinstance(session.location, FileLocation):
            session.disconnect()


def _after_fork() -> None:
    while _LOCKED_SESSIONS:
        _LOCKED_SESSIONS.pop().thread_lock.release()
    _FORK_LOCK.release()


def _after_fork_in_child() -> None:
    for session in _LOCKED_SESSIONS:
        if isinstance(session.location, MemoryLocation):  # a copy would be spent a second time
            session.stop_reason = "it belongs to the process that made it; use a file to share it"
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


class SQLiteLedger(Account):
    """A ledger that is open. Made by create_ledger, open_ledger or memory_ledger."""

    _session: SQLiteSession

    def __init__(self, location: SQLiteLocation) -> None:
        super().__init__(SQLiteSession(location))


def create_ledger(
    path: str | os.PathLike[str],
    *,
    name: str,
    budget: Budget,
    analysts: Mapping[str, Budget] | None = None,
    unit_declaration: str = "",
) -> SQLiteLedger:
    """Make a new ledger for the data set `name`, at a path where none was before.

    >>> from tempfile import mkdtemp
    >>> path = mkdtemp() + "/ledger.sqlite"
    >>> create_ledger(path, name="demo", budget=Budget(1)).close()
    >>> create_ledger(path, name="demo", budget=Budget(1))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...ledger.sqlite: the file exists. Open it with open_ledger, ...
    """
    terms = Terms(name, budget, analysts, unit_declaration)
    return _write_first_row(create_empty_ledger(path), terms)


def create_empty_ledger(path: str | os.PathLike[str]) -> SQLiteLedger:
    """Take a path where no ledger was; whoever does must make the tables and the first row, in one transaction.

    >>> from tempfile import mkdtemp
    >>> with create_empty_ledger(mkdtemp() + "/ledger.sqlite") as ledger:
    ...     ledger.spent()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...ledger.sqlite: the ledger cannot be read or written (no such table: rows)...
    """
    location = FileLocation(path)
    with ledger_errors(location):
        location.create()
    return SQLiteLedger(location)


def open_target_ledger(path: str | os.PathLike[str]) -> SQLiteLedger:
    """Open a path that a ledger moves to: a fresh one, or one where an earlier try came to some point.

    >>> from tempfile import mkdtemp
    >>> open_target_ledger(mkdtemp() + "/moved.sqlite").close()
    """
    location = FileLocation(path)
    with ledger_errors(location):
        location.create_or_reuse()
    return SQLiteLedger(location)


def memory_ledger(
    *, name: str, budget: Budget, analysts: Mapping[str, Budget] | None = None, unit_declaration: str = ""
) -> SQLiteLedger:
    """Make a ledger that ends with its process: for trying things out.

    >>> from discreet.kernel.event import Event
    >>> from discreet.kernel.loss import Loss
    >>> ledger = memory_ledger(name="demo", budget=Budget(1))
    >>> receipt = ledger.charge(Loss("1/4"), Event(mechanism="{}", sensitivity="{}", question="count"))
    >>> ledger.settle(receipt, b"42")
    >>> ledger.spent()
    Loss(epsilon=1/4, rho=1/32)
    >>> ledger.close()
    """
    return _write_first_row(SQLiteLedger(MemoryLocation()), Terms(name, budget, analysts, unit_declaration))


def open_ledger(path: str | os.PathLike[str], *, name: str) -> SQLiteLedger:
    """Open the ledger of the data set `name`, which must exist.

    >>> open_ledger("nowhere.sqlite", name="demo")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...nowhere.sqlite: there is no ledger here. Correct the path, ...
    """
    ledger = SQLiteLedger(FileLocation(path))
    try:
        with ledger._session.read_transaction() as table:  # noqa: SLF001 - the constructor's other half
            table.check_format()
            stored_name = data_set_name(table)
    except BaseException:
        ledger.close()
        raise
    if stored_name != name:
        ledger.close()
        raise PolicyError(f"name: the ledger {path} belongs to {stored_name!r}, not {name!r}. Give each its own file.")
    return ledger


def _write_first_row(ledger: SQLiteLedger, terms: Terms) -> SQLiteLedger:
    try:
        with ledger._session.write_transaction() as table:  # noqa: SLF001 - the constructor's other half
            table.create()
            table.add_row(first_row(terms))
    except BaseException:
        ledger.close()
        raise
    return ledger
