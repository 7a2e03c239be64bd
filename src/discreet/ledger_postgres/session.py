"""Exclusive, durable transactions on a shared ledger; handling of lost connections and forks."""

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import Chain, LedgerRow, RowKind
from discreet.kernel.ledger.checkpoint import EMPTY_CHECKPOINT, Checkpoint, checkpoint_of
from discreet.kernel.ledger.table import LedgerTable
from discreet.ledger_postgres.location import PostgresLocation, ServerConnection, ledger_errors
from discreet.ledger_postgres.schema import TABLES
from discreet.postgres.server import driver

# Seconds. A client that is idle in a transaction is disconnected before those who wait for it time out.
IDLE_TIMEOUT, LOCK_TIMEOUT, STATEMENT_TIMEOUT = 15, 60, 120
READER_IDLE_TIMEOUT = 3600  # readers block nobody
_NEAR_BITS = 4  # 2**4 milestones in each interval of distances from 2**n to 2**(n+1)
_HASH_PREFIX = 16  # characters of the hash of an earlier row in a checkpoint

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
        self.server = ServerConnection(location, lambda connection: connection.add_notice_handler(self._on_notice))
        self._pending_checkpoint: tuple[Checkpoint, Checkpoint | None] | None = None  # could not be written yet
        self._warned = False
        _OPEN_SESSIONS.add(self)

    @contextmanager
    def write_transaction(self) -> Iterator[LedgerTable]:
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
            written after the commit, by one process at a time, and never replaces a later one. A reader advances it to
            a row that the ledger has checked with all before it (LedgerTable.last_checked), and to no other.
        Needs: PostgresLocation, ServerConnection, create_statements, checkpoint_at, LedgerTable.add_row,
            write_checkpoint; PostgreSQL's atomic commit; a disk that keeps synced data; flock
            between processes of one machine.
        Checked by: test_concurrent_processes_end_exactly_at_the_limit,
            test_nothing_seen_is_lost_and_nothing_charged_twice_while_the_server_goes_away,
            test_a_server_without_durable_commits_is_refused,
            test_commits_are_durable_whatever_the_server_does_for_others, test_a_commit_that_did_not_happen_is_detected,
            test_a_client_that_shows_errors_only_still_detects_the_standby_warning,
            test_a_writer_without_the_lock_cannot_write_the_same_row,
            test_a_checkpoint_goes_back_only_from_the_acknowledged_one,
            test_a_checkpoint_never_advances_to_a_row_that_was_not_checked
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
    def read_transaction(self) -> Iterator[LedgerTable]:
        """Read a snapshot of the ledger, and advance the checkpoint to its last row."""
        limits = {"standstill": READER_IDLE_TIMEOUT, "statement": STATEMENT_TIMEOUT}
        with self.thread_lock, ledger_errors(self.location):
            with self._transaction(_BEGIN_READ.format(**limits)) as table:
                yield table
                checkpoint = self._next_checkpoint(table)
            if checkpoint:
                self.location.store_checkpoint(*checkpoint)

    def create_checkpoint(self) -> None:
        """Create the checkpoint if this server opens the ledger for the first time; check that commits are durable.

        Claim: a checkpoint that was lost is not created again: the ledger may have lost rows since, so the owner must
            acknowledge it. The first one names a row whose chain was checked.
        Proof: the lock file is created before the first checkpoint is written, and is never removed. Chain.extend.
        Needs: PostgresLocation.has_checkpoint, PostgresLocation.lost_checkpoint, PostgresLocation.store_checkpoint,
            checkpoint_at, Chain.extend, LedgerTable.rows.
        Checked by: test_a_server_that_lost_its_checkpoint_charges_nothing_until_acknowledged
        """
        with self.read_transaction() as table:
            self._check_durable(table)
            has_or_had_one = self.location.has_checkpoint or self.location.lost_checkpoint
            checkpoint = None if has_or_had_one else checkpoint_at(table, Chain().extend(table.rows()).last)
        if checkpoint:
            with ledger_errors(self.location):
                self.location.store_checkpoint(checkpoint)

    def close(self) -> None:
        """Close the session for good."""
        with self.thread_lock:
            self.stop_reason = "the ledger is closed"
            self.server.close()

    def _store_pending_checkpoint(self) -> None:
        """Store the pending checkpoint, if any; while this fails, nothing more is charged."""
        if self._pending_checkpoint:
            self.location.store_checkpoint(*self._pending_checkpoint)
            self._pending_checkpoint = None

    def _next_checkpoint(self, table: LedgerTable) -> tuple[Checkpoint, Checkpoint | None] | None:
        """Return the next checkpoint, and the one that an acknowledgement replaces; None if it does not change."""
        current = self.location.checkpoint()
        if current == EMPTY_CHECKPOINT:
            return None
        if table.last_appended:
            replaced = current if table.last_appended.kind == RowKind.ACKNOWLEDGE else None
            return checkpoint_at(table, table.last_appended), replaced
        last = table.last_checked
        if last is None or current is None or current.seq >= last.seq:
            return None
        known = table.row_at(current.seq)
        return (checkpoint_at(table, last), None) if known and known.hash == current.hash else None

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[LedgerTable]:
        """Begin a transaction and roll back whatever was not committed."""
        if self.stop_reason:
            raise LedgerError(self.stop_reason)
        try:
            self.server.execute_first(begin)
            yield LedgerTable(self.server.connection, self.location.dialect)
        finally:
            self._roll_back()

    def _check_durable(self, table: LedgerTable) -> None:
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

    def _commit(self, table: LedgerTable) -> None:
        self._warned = False
        try:
            status = table.connection.execute("COMMIT").statusmessage
        except driver().Error:
            self.server.close()
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
        connection, states = self.server.connection, driver().pq.TransactionStatus
        if connection is None or connection.info.transaction_status == states.IDLE:
            return
        if connection.info.transaction_status in (states.INTRANS, states.INERROR):
            with contextlib.suppress(driver().Error):
                connection.execute("ROLLBACK")
                return
        self.server.close()


def checkpoint_at(table: LedgerTable, row: LedgerRow) -> Checkpoint:
    """Return the checkpoint for this row, with some earlier rows."""
    query = f"SELECT seq, hash FROM {table.dialect.schema}.rows WHERE seq = ANY (?::bigint[]) ORDER BY seq"  # noqa: S608 - constant
    rows = table.query(query, milestones(row.seq))
    return checkpoint_of(row, tuple((seq, row_hash[:_HASH_PREFIX]) for seq, row_hash in rows))


def milestones(seq: int) -> list[int]:
    """Return the earlier rows that a checkpoint lists: all of the nearest ones, ever fewer further back.

    >>> milestones(20)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
    >>> len(milestones(1_000_000)), milestones(1_000_000)[:3]
    (270, [1, 32768, 65536])
    """
    numbers = {1} if seq > 1 else set()
    for size in range((seq - 1).bit_length()):  # rows at a distance from 2**size to 2**(size+1)
        step = 1 << max(0, size - _NEAR_BITS)
        nearest, farthest = seq - (1 << size), max(1, seq + 1 - (2 << size))
        numbers.update(range(-(-farthest // step) * step, nearest + 1, step))
    return sorted(numbers)


_OPEN_SESSIONS: weakref.WeakSet[PostgresSession] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for session in _OPEN_SESSIONS:
        session.thread_lock = threading.Lock()
        session.server.abandon()


os.register_at_fork(after_in_child=_after_fork_in_child)
