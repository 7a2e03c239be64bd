"""One open connection to a shared ledger: transactions that run alone, lost connections, and forks."""

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import Kind
from discreet.kernel.ledger.head import BEGINNING, Head, hash_at
from discreet.postgres.connecting import driver
from discreet.postgres.ledger_errors import is_lost, named
from discreet.postgres.ledger_place import Database
from discreet.postgres.ledger_schema import TABLES
from discreet.postgres.ledger_table import PostgresTable

if TYPE_CHECKING:
    import psycopg

# Seconds. Who stands still inside of a transaction is put out before anybody who waits gives up.
STANDSTILL, QUEUE, STATEMENT = 15, 60, 120
READER_STANDSTILL = 3600  # a reader stops nobody

_WRITE = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit TO on; "
    "SET LOCAL idle_in_transaction_session_timeout TO '{standstill}s'; SET LOCAL lock_timeout TO '{queue}s'; "
    "SET LOCAL statement_timeout TO '{statement}s'; SELECT pg_advisory_xact_lock({lock})"
)
_READ = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
    "SET LOCAL idle_in_transaction_session_timeout TO '{standstill}s'; SET LOCAL statement_timeout TO '{statement}s'"
)
_DURABLE = """SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('server_encoding'),
    (SELECT bool_and(relpersistence = 'p') FROM pg_class
    WHERE oid IN (to_regclass(%(rows)s), to_regclass(%(answers)s)))"""
_UNKNOWN = (
    "the connection was lost while a row was being written, so it is not known whether it was. If it was, it counts: "
    "use the same key, or give the same command, again, and you will see."
)


class PostgresSession:
    """The way to a shared ledger's tables for all threads of this process.

    A lost connection fails what was under way; the next use connects anew. A file cannot go on like that: after an
    I/O error, what its cache holds may differ from what is on the disk. Here the server answers for its disk, and
    every transaction begins with a look at what was committed.
    """

    def __init__(self, place: Database) -> None:
        self.place = place
        self.stopped: str | None = None
        self.threads = threading.Lock()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._owed: tuple[Head, Head | None] | None = None  # a head that could not be written yet
        self._warned = False
        _OPEN.add(self)

    @contextmanager
    def writing(self) -> Iterator[PostgresTable]:
        """Run one transaction, alone among all threads, processes and servers; move the head after the commit.

        Claim: no two of these run at the same time on one ledger; when it ends, what was written is on the server's
            disk; what raises leaves the rows as they were, or says that this is not known; the head never names a row
            that is not committed, and goes back only when the owner acknowledges a loss.
        Proof: the lock of the threads and that of the database, whose queue is fair, are held from before the first
            read until after the commit, and each statement sees what was committed before it began (READ COMMITTED).
            COMMIT returns after the rows are on the disk: each transaction sets synchronous_commit, and looks at the
            server's fsync and full_page_writes. Its answer is looked at, and so are warnings, which every connection
            asks for: it also succeeds when it undoes everything, or gave up on a standby. Whoever writes without the
            lock cannot write a second row of the same number: the table has one of each. The head is written after
            the commit, by one process at a time, and never replaces a later one.
        Needs: PostgreSQL's atomic commit, and a disk that keeps what it synced; flock between processes of one machine.
        Checked by: test_concurrent_processes_end_exactly_at_the_limit,
            test_nothing_seen_is_lost_and_nothing_charged_twice_while_the_server_goes_away,
            test_a_server_that_may_forget_is_refused, test_commits_are_durable_whatever_the_server_does_for_others,
            test_a_commit_that_the_server_did_not_make_is_noticed,
            test_a_client_that_is_told_of_errors_only_still_hears_of_the_standby,
            test_whoever_writes_without_the_lock_cannot_write_the_same_row,
            test_a_head_goes_back_only_from_the_one_that_was_acknowledged
        Seal: a512e6569dac
        """
        limits = {"standstill": STANDSTILL, "queue": QUEUE, "statement": STATEMENT}
        with self.threads, named(self.place):
            self._pay()
            with self._begun(_WRITE.format(lock=self.place.lock, **limits)) as table:
                self._check_durable(table)
                yield table
                head = self._next_head(table)
                self._commit(table)
            if head:
                self._owed = head
                self._pay()

    @contextmanager
    def reading(self) -> Iterator[PostgresTable]:
        """Read one state of the ledger, whatever others write meanwhile; the head follows what was seen."""
        limits = {"standstill": READER_STANDSTILL, "statement": STATEMENT}
        with self.threads, named(self.place):
            with self._begun(_READ.format(**limits)) as table:
                yield table
                head = self._next_head(table)
            if head:
                self.place.keep_head(*head)

    def begin_witness(self) -> None:
        """Make the head file of a server that sees this ledger for the first time; check that charges will be kept."""
        with self.reading() as table:
            self._check_durable(table)
            # A witness that was lost is not made anew: what it knew may be gone from the ledger, so the owner must say.
            known = self.place.has_head or self.place.lost_head
            head = None if known else table.head_at(table.last())
        if head:
            with named(self.place):
                self.place.keep_head(head)

    def close(self) -> None:
        """Let go of the connection, for good."""
        with self.threads:
            self.stopped = "the ledger is closed"
            self._disconnect()

    def _pay(self) -> None:
        """Write the head that is due: what cannot be witnessed is charged once, and not again and again."""
        if self._owed:
            self.place.keep_head(*self._owed)
            self._owed = None

    def _next_head(self, table: PostgresTable) -> tuple[Head, Head | None] | None:
        """Return the head after this transaction, and the one that an owner's act replaces; None if it stays."""
        known = self.place.head()
        if known == BEGINNING:
            return None
        if table.appended:
            replaced = known if table.appended.kind == Kind.ACKNOWLEDGE else None
            return table.head_at(table.appended), replaced
        row = table.seen
        if row is None or known is None or known.seq >= row.seq or hash_at(known, table.at) != known.hash:
            return None
        return table.head_at(row), None

    @contextmanager
    def _begun(self, begin: str) -> Iterator[PostgresTable]:
        """Begin a transaction, and undo whatever was not committed."""
        if self.stopped:
            raise LedgerError(self.stopped)
        try:
            yield PostgresTable(self._connected(begin), self.place.schema)
        finally:
            self._roll_back()

    def _connected(self, begin: str) -> "psycopg.Connection[tuple[Any, ...]]":
        """Begin on the connection that is open; one that was lost while nothing was under way is replaced."""
        if self._connection:
            try:
                self._connection.execute(begin)
            except driver().Error as error:
                if not is_lost(error):
                    raise
                self._disconnect()
            else:
                return self._connection
        self._connection = self.place.connect()
        self._connection.add_notice_handler(self._notice)
        self._connection.execute(begin)
        return self._connection

    def _check_durable(self, table: PostgresTable) -> None:
        tables = {name: f"{self.place.schema}.{name}" for name in TABLES}
        fsync, pages, encoding, logged = table.connection.execute(_DURABLE, tables).fetchall()[0]
        for setting, value in {"fsync": fsync, "full_page_writes": pages}.items():
            if value != "on":
                raise LedgerError(
                    f"the server's {setting} is {value}, so a crash could undo charges. Set {setting} = on there."
                )
        if encoding != "UTF8":
            raise LedgerError(f"the database stores texts as {encoding}. Use one that was made with ENCODING 'UTF8'.")
        if logged is False:
            raise LedgerError("a table is UNLOGGED, so a crash would empty it. Restore the ledger from a backup.")

    def _commit(self, table: PostgresTable) -> None:
        self._warned = False
        try:
            done = table.connection.execute("COMMIT").statusmessage
        except driver().Error:
            self._disconnect()
            raise LedgerError(_UNKNOWN) from None
        if done != "COMMIT":
            raise LedgerError("the server did not commit, and undid what was written")
        if self._warned:
            raise LedgerError(
                "the row was written, and the server did not wait for its standby. It counts; look at the standby."
            )

    def _notice(self, said: Any) -> None:
        self._warned = self._warned or said.severity_nonlocalized == "WARNING"

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

    def _forget(self) -> None:
        """In a forked child: leave the parent's connection alone, and open one of its own when it is needed."""
        self.threads = threading.Lock()
        if self._connection:
            with contextlib.suppress(driver().Error, OSError):
                os.close(self._connection.pgconn.socket)  # or the server would not see the parent's end
            _ABANDONED.append(self._connection)  # closing it would end the parent's session
            self._connection = None


_OPEN: weakref.WeakSet[PostgresSession] = weakref.WeakSet()
_ABANDONED: list[Any] = []


def _after_fork_in_child() -> None:
    for session in _OPEN:
        session._forget()  # noqa: SLF001 - this module's own


os.register_at_fork(after_in_child=_after_fork_in_child)
