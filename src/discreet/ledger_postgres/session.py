"""Exclusive, durable transactions on a shared ledger; handling of lost connections and forks."""

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import RowKind
from discreet.kernel.ledger.checkpoint import EMPTY_CHECKPOINT, Checkpoint, hash_at_checkpoint
from discreet.ledger_postgres.location import PostgresLocation, is_connection_lost, ledger_errors
from discreet.ledger_postgres.schema import TABLES
from discreet.ledger_postgres.table import PostgresTable
from discreet.postgres.server import driver

if TYPE_CHECKING:
    import psycopg

# Seconds. A client that is idle in a transaction is disconnected before those who wait for it time out.
IDLE_TIMEOUT, LOCK_TIMEOUT, STATEMENT_TIMEOUT = 15, 60, 120
READER_IDLE_TIMEOUT = 3600  # readers block nobody

_BEGIN_WRITE = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit TO on; "
    "SET LOCAL idle_in_transaction_session_timeout TO '{standstill}s'; SET LOCAL lock_timeout TO '{queue}s'; "
    "SET LOCAL statement_timeout TO '{statement}s'; SELECT pg_advisory_xact_lock({lock})"
)
_BEGIN_READ = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
    "SET LOCAL idle_in_transaction_session_timeout TO '{standstill}s'; SET LOCAL statement_timeout TO '{statement}s'"
)
_DURABILITY_QUERY = """SELECT current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('server_encoding'), (SELECT bool_and(relpersistence = 'p') FROM pg_class
    WHERE oid IN (to_regclass(%(rows)s), to_regclass(%(answers)s)))"""
_COMMIT_UNKNOWN = (
    "the connection was lost during the commit, so the row may or may not have been written. If it was, it is charged. "
    "Repeat the request with the same key, or the same command, to find out."
)


class PostgresSession:
    """Access to a shared ledger's tables for all threads of this process.

    A lost connection fails the current transaction; the next one reconnects. This is safe here, unlike with a file,
    because the server is responsible for its disk and every transaction begins by reading the committed rows.
    """

    def __init__(self, location: PostgresLocation) -> None:
        self.location = location
        self.stop_reason: str | None = None
        self.thread_lock = threading.Lock()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._pending_checkpoint: tuple[Checkpoint, Checkpoint | None] | None = None  # could not be written yet
        self._warned = False
        _OPEN_SESSIONS.add(self)

    @contextmanager
    def write_transaction(self) -> Iterator[PostgresTable]:
        """Run one transaction, exclusive among all threads, processes and servers; then update the checkpoint.

        Claim: no two of these run at the same time on one ledger; when it ends, everything written is on the server's
            disk; an exception leaves the rows unchanged or says that this is unknown; the checkpoint never names a row
            that is not committed, and goes back only when the owner acknowledges a loss.
        Proof: the thread lock and the database lock, whose queue is fair, are held from before the first read until
            after the commit, and each statement sees what was committed before it began (READ COMMITTED). COMMIT
            returns after the rows are on disk: each transaction sets synchronous_commit and checks the server's fsync
            and full_page_writes. Its command tag is checked, and so are warnings, which every connection enables:
            COMMIT also succeeds if it rolls back, or if it stopped waiting for a standby. A client that writes without
            the lock cannot write a second row with the same number, which is the primary key. The checkpoint is
            written after the commit, by one process at a time, and never replaces a later one.
        Needs: PostgreSQL's atomic commit; a disk that keeps synced data; flock between processes of one machine.
        Checked by: test_concurrent_processes_end_exactly_at_the_limit,
            test_nothing_seen_is_lost_and_nothing_charged_twice_while_the_server_goes_away,
            test_a_server_that_may_forget_is_refused, test_commits_are_durable_whatever_the_server_does_for_others,
            test_a_commit_that_the_server_did_not_make_is_noticed,
            test_a_client_that_is_told_of_errors_only_still_hears_of_the_standby,
            test_whoever_writes_without_the_lock_cannot_write_the_same_row,
            test_a_head_goes_back_only_from_the_one_that_was_acknowledged
        Seal: 8fb03b903104
        """
        limits = {"standstill": IDLE_TIMEOUT, "queue": LOCK_TIMEOUT, "statement": STATEMENT_TIMEOUT}
        with self.thread_lock, ledger_errors(self.location):
            self._store_pending_checkpoint()
            with self._transaction(_BEGIN_WRITE.format(lock=self.location.lock_number, **limits)) as table:
                self._check_durable(table)
                yield table
                checkpoint = self._next_checkpoint(table)
                self._commit(table)
            if checkpoint:
                self._pending_checkpoint = checkpoint
                self._store_pending_checkpoint()

    @contextmanager
    def read_transaction(self) -> Iterator[PostgresTable]:
        """Read a snapshot of the ledger, and advance the checkpoint to its last row."""
        limits = {"standstill": READER_IDLE_TIMEOUT, "statement": STATEMENT_TIMEOUT}
        with self.thread_lock, ledger_errors(self.location):
            with self._transaction(_BEGIN_READ.format(**limits)) as table:
                yield table
                checkpoint = self._next_checkpoint(table)
            if checkpoint:
                self.location.store_checkpoint(*checkpoint)

    def create_checkpoint(self) -> None:
        """Create the checkpoint if this server opens the ledger for the first time; check that commits are durable."""
        with self.read_transaction() as table:
            self._check_durable(table)
            # A lost checkpoint is not recreated: the ledger may have lost rows since, so the owner must acknowledge it.
            has_or_had_one = self.location.has_checkpoint or self.location.lost_checkpoint
            checkpoint = None if has_or_had_one else table.checkpoint_at(table.last_row())
        if checkpoint:
            with ledger_errors(self.location):
                self.location.store_checkpoint(checkpoint)

    def close(self) -> None:
        """Close the session for good."""
        with self.thread_lock:
            self.stop_reason = "the ledger is closed"
            self._disconnect()

    def _store_pending_checkpoint(self) -> None:
        """Store the pending checkpoint, if any; while this fails, nothing more is charged."""
        if self._pending_checkpoint:
            self.location.store_checkpoint(*self._pending_checkpoint)
            self._pending_checkpoint = None

    def _next_checkpoint(self, table: PostgresTable) -> tuple[Checkpoint, Checkpoint | None] | None:
        """Return the next checkpoint, and the one that an acknowledgement replaces; None if it does not change."""
        current = self.location.checkpoint()
        if current == EMPTY_CHECKPOINT:
            return None
        if table.last_appended:
            replaced = current if table.last_appended.kind == RowKind.ACKNOWLEDGE else None
            return table.checkpoint_at(table.last_appended), replaced
        row = table.last_seen
        if (
            row is None
            or current is None
            or current.seq >= row.seq
            or hash_at_checkpoint(current, table.row_at) != current.hash
        ):
            return None
        return table.checkpoint_at(row), None

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[PostgresTable]:
        """Begin a transaction and roll back whatever was not committed."""
        if self.stop_reason:
            raise LedgerError(self.stop_reason)
        try:
            yield PostgresTable(self._begin_on_connection(begin), self.location.schema)
        finally:
            self._roll_back()

    def _begin_on_connection(self, begin: str) -> "psycopg.Connection[tuple[Any, ...]]":
        """Begin a transaction on the open connection; reconnect if it was lost while idle."""
        if self._connection:
            try:
                self._connection.execute(begin)
            except driver().Error as error:
                if not is_connection_lost(error):
                    raise
                self._disconnect()
            else:
                return self._connection
        self._connection = self.location.connect()
        self._connection.add_notice_handler(self._on_notice)
        self._connection.execute(begin)
        return self._connection

    def _check_durable(self, table: PostgresTable) -> None:
        tables = {name: f"{self.location.schema}.{name}" for name in TABLES}
        fsync, pages, encoding, logged = table.connection.execute(_DURABILITY_QUERY, tables).fetchall()[0]
        for setting, value in {"fsync": fsync, "full_page_writes": pages}.items():
            if value != "on":
                raise LedgerError(
                    f"{setting} is {value} on the server, so a crash could undo charges. Set {setting} = on there."
                )
        if encoding != "UTF8":
            raise LedgerError(f"the encoding of the database is {encoding}. Use a database with ENCODING 'UTF8'.")
        if logged is False:
            raise LedgerError("a table is UNLOGGED, so a crash would empty it. Restore the ledger from a backup.")

    def _commit(self, table: PostgresTable) -> None:
        self._warned = False
        try:
            status = table.connection.execute("COMMIT").statusmessage
        except driver().Error:
            self._disconnect()
            raise LedgerError(_COMMIT_UNKNOWN) from None
        if status != "COMMIT":
            raise LedgerError("the server rolled the transaction back, and nothing was written. Try again.")
        if self._warned:
            raise LedgerError(
                "the row was written and is charged, but the server did not wait for its standby. Check the standby."
            )

    def _on_notice(self, notice: Any) -> None:
        self._warned = self._warned or notice.severity_nonlocalized == "WARNING"

    def _roll_back(self) -> None:
        connection, states = self._connection, driver().pq.TransactionStatus
        if connection is None or connection.info.transaction_status == states.IDLE:
            return
        if connection.info.transaction_status in (states.INTRANS, states.INERROR):
            with contextlib.suppress(driver().Error):
                connection.execute("ROLLBACK")
                return
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def _abandon_connection(self) -> None:
        """Drop the inherited connection in a forked child without ending the parent's session."""
        self.thread_lock = threading.Lock()
        if self._connection:
            with contextlib.suppress(driver().Error, OSError):
                os.close(self._connection.pgconn.socket)  # otherwise the server would not notice when the parent exits
            _ABANDONED_CONNECTIONS.append(self._connection)  # closing it would end the parent's session
            self._connection = None


_OPEN_SESSIONS: weakref.WeakSet[PostgresSession] = weakref.WeakSet()
_ABANDONED_CONNECTIONS: list[Any] = []


def _after_fork_in_child() -> None:
    for session in _OPEN_SESSIONS:
        session._abandon_connection()  # noqa: SLF001 - same module


os.register_at_fork(after_in_child=_after_fork_in_child)
