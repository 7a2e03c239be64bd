"""The parts of a ledger in PostgreSQL one by one, without a server: locks, connections, checkpoints, transactions."""

import fcntl
import os
import stat
import struct
import threading
import time
import warnings
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from types import SimpleNamespace

import pytest

psycopg = pytest.importorskip("psycopg")

from discreet.kernel.errors import LedgerError, PolicyError  # noqa: E402 - after the check of psycopg
from discreet.kernel.ledger.chain import GENESIS, Chain, RowKind  # noqa: E402
from discreet.kernel.ledger.checkpoint import EMPTY_CHECKPOINT, Checkpoint, checkpoint_of  # noqa: E402
from discreet.kernel.ledger.table import FORMAT  # noqa: E402
from discreet.kernel.ledger.terms import Terms, terms_text  # noqa: E402
from discreet.kernel.loss import Budget, Loss  # noqa: E402
from discreet.ledger_postgres import ledger as ledgers  # noqa: E402
from discreet.ledger_postgres import location as locations  # noqa: E402
from discreet.ledger_postgres import session as sessions  # noqa: E402
from discreet.ledger_postgres.key_locks import KeyLocks  # noqa: E402
from discreet.ledger_postgres.location import (  # noqa: E402
    PostgresLocation,
    ServerConnection,
    is_connection_lost,
    ledger_errors,
    lock_number,
)
from discreet.ledger_postgres.schema import create_statements, postgres_dialect, schema_name  # noqa: E402
from discreet.ledger_postgres.session import PostgresSession, checkpoint_at, milestones  # noqa: E402
from discreet.ledger_sqlite.checkpoint_file import read_checkpoint, write_checkpoint  # noqa: E402
from discreet.postgres.server import ServerUnreachable  # noqa: E402

URL = "postgresql://127.0.0.1:1/clinic"
STATES = psycopg.pq.TransactionStatus
ONE, TWO, THREE = (Checkpoint(seq, "ab", "0 0 0") for seq in (1, 2, 3))


def state_error(state, kind=psycopg.OperationalError):
    return type("StateError", (kind,), {"sqlstate": state})()


LOST = state_error("57P01")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint"


@pytest.fixture
def location(path):
    return PostgresLocation(URL, "demo", path)


class Cursor:
    description = None
    statusmessage = "COMMIT"

    def __init__(self, rows=()):
        self.rows = list(rows)

    def fetchall(self):
        return self.rows


class Connection:
    """A connection that records what it is asked, and fails if an error is next."""

    def __init__(self):
        self.asked, self.errors, self.rows, self.closed, self.handlers = [], [], [], False, []
        self.info = SimpleNamespace(transaction_status=STATES.IDLE)
        self.cursor, self.pgconn = Cursor(), SimpleNamespace(socket=-1)

    def execute(self, statement, values=None):
        self.asked.append((statement, values))
        if self.errors:
            raise self.errors.pop(0)
        self.cursor.rows = self.rows
        return self.cursor

    def add_notice_handler(self, handler):
        self.handlers.append(handler)

    def close(self):
        self.closed = True


class RecordingLock:
    """A lock that takes down what happens inside and outside of it."""

    def __init__(self, look):
        self.seen, self._look = [], look

    def __enter__(self):
        self.seen.append(self._look())

    def __exit__(self, *_):
        self.seen.append(self._look())


# The schema.


def test_the_tables_of_this_format_are_fixed():
    """A change of these statements makes another format."""
    text = "\n".join(create_statements("s"))
    assert (FORMAT, sha256(text.encode()).hexdigest()) == (
        8,
        "86f6e810c6726d0730f9b15b0a5b6a4cf0ef0651e500b16f2982201ac17789d6",
    )
    dialect = postgres_dialect("s")
    assert (dialect.schema, dialect.placeholder, dialect.create_schema) == ("s", "%s", ("CREATE SCHEMA s",))
    assert dialect.create_tables == tuple(create_statements("s"))
    assert dialect.read_format == (
        "SELECT CASE WHEN to_regnamespace('s') IS NOT NULL THEN coalesce(substring("
        "obj_description(to_regnamespace('s')::oid, 'pg_namespace') "
        "FROM '^Discreet ledger, format ([-0-9]+)$')::int, 0) END"
    )
    assert dialect.write_format == "COMMENT ON SCHEMA s IS 'Discreet ledger, format {}'"
    assert "schema s from a backup" in dialect.nothing_here


def test_a_schema_is_named_after_its_data_set_readably_and_uniquely():
    for name, readable in (("Visits 2024", "_visits_2024"), ("a" * 30, "_" + "a" * 20), ("ä!", ""), ("-a-", "_a")):
        assert schema_name(name) == f"discreet{readable}_{sha256(name.encode()).hexdigest()[:32]}"


# The location.


def test_a_location_connects_with_settings_that_other_users_cannot_change(location, monkeypatch):
    monkeypatch.setattr(locations, "connect", lambda url, **settings: (url, settings))
    assert location.connect() == (
        URL,
        {
            "search_path": "pg_catalog",
            "client_min_messages": "warning",
            "tcp_keepalives_idle": "10",
            "tcp_keepalives_interval": "5",
            "tcp_keepalives_count": "4",
            "tcp_user_timeout": "30000",
        },
    )
    assert str(location) == "PostgreSQL at 127.0.0.1:1, database clinic"
    assert location.schema == schema_name("demo")
    assert location.dialect == postgres_dialect(location.schema)
    assert location.lock_number == lock_number(location.schema)
    with pytest.raises(PolicyError, match="several servers"):
        PostgresLocation("postgresql://a.example,b.example/clinic", "demo", None)


def test_the_number_of_a_lock_is_64_bits_of_a_hash():
    for name in "abcdefgh":
        assert lock_number(name) == struct.unpack(">q", sha256(name.encode()).digest()[:8])[0]
    assert {lock_number(name) > 0 for name in "abcdefgh"} == {True, False}


def test_a_checkpoint_is_there_or_lost_or_was_never_there(location, path):
    alone = PostgresLocation(URL, "demo", None)
    assert (alone.has_checkpoint, alone.lost_checkpoint, alone.checkpoint()) == (False, False, EMPTY_CHECKPOINT)
    alone.store_checkpoint(ONE)
    assert (location.has_checkpoint, location.lost_checkpoint, location.checkpoint()) == (False, False, None)
    location.store_checkpoint(ONE)
    assert (location.has_checkpoint, location.lost_checkpoint, location.checkpoint()) == (True, False, ONE)
    assert PostgresLocation(URL, "demo", os.path.relpath(path)).checkpoint() == ONE
    path.unlink()
    assert (location.has_checkpoint, location.lost_checkpoint, location.checkpoint()) == (False, True, None)
    path.with_name("checkpoint.lock").unlink()
    path.write_text("garbled")
    assert (location.has_checkpoint, location.lost_checkpoint, location.checkpoint()) == (True, False, None)


@pytest.mark.parametrize(
    ("stored", "new", "replaces", "kept"),
    [
        (None, ONE, None, ONE),
        (ONE, TWO, None, TWO),
        (TWO, replace(TWO, hash="cd"), None, TWO),
        (THREE, TWO, None, THREE),
        (THREE, TWO, THREE, TWO),
        (THREE, TWO, replace(THREE, hash="cd"), THREE),
        (ONE, THREE, TWO, THREE),
    ],
)
def test_a_checkpoint_goes_back_only_from_the_one_that_it_replaces(path, stored, new, replaces, kept):
    location = PostgresLocation(URL, "demo", path)
    if stored:
        write_checkpoint(path, stored)
    location.store_checkpoint(new, replaces)
    assert read_checkpoint(path) == kept


@contextmanager
def held(path):
    with path.with_name("checkpoint.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield file


def test_the_checkpoint_is_used_by_one_process_at_a_time(location, path, monkeypatch):
    opened, seen, real = [], [], os.open

    def look(*_):
        with pytest.raises(BlockingIOError), held(path):
            pass
        seen.append(locations._WRITER_LOCK.locked())

    monkeypatch.setattr(locations, "write_checkpoint", look)
    monkeypatch.setattr(os, "open", lambda *words: opened.append(real(*words)) or opened[-1])
    location.store_checkpoint(ONE)
    monkeypatch.undo()
    assert seen == [True]
    assert not locations._WRITER_LOCK.locked()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(opened[0])
    with held(path) as lock:
        assert stat.S_IMODE(os.fstat(lock.fileno()).st_mode) == 0o600


def test_waiting_for_the_checkpoint_ends_when_it_is_free_or_after_a_time(location, path, monkeypatch):
    pauses = []
    location.store_checkpoint(ONE)
    path.unlink()
    with held(path) as lock:

        def pause(seconds):
            pauses.append(seconds)
            if len(pauses) == 3:
                fcntl.flock(lock, fcntl.LOCK_UN)
            assert len(pauses) < 9

        monkeypatch.setattr(time, "sleep", pause)
        location.store_checkpoint(TWO)
        assert (location.checkpoint(), pauses) == (TWO, [0.002] * 3)
        fcntl.flock(lock, fcntl.LOCK_EX)
        monkeypatch.setattr(locations, "CHECKPOINT_LOCK_TIMEOUT", -1)
        for use in (lambda: location.store_checkpoint(THREE), lambda: location.lost_checkpoint):
            with pytest.raises(TimeoutError, match="another process holds the lock"):
                print(use())
    assert location.checkpoint() == TWO


def test_a_child_does_not_inherit_a_lock_that_a_thread_holds(path):
    held_now = threading.Event()

    def hold():
        with locations._file_lock(path):
            held_now.set()
            time.sleep(0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    held_now.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks in a process with threads
        child = os.fork()
    if child == 0:
        os._exit(locations._WRITER_LOCK.locked())
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not locations._WRITER_LOCK.locked()


# Connections and errors.


class Connections:
    """A location whose connections are made up."""

    def __init__(self):
        self.made = []

    def connect(self):
        self.made.append(Connection())
        return self.made[-1]


def test_a_connection_is_opened_when_needed_and_replaced_when_lost():
    place, set_up = Connections(), []
    server = ServerConnection(place, set_up.append)
    assert server.execute_first("BEGIN") is place.made[0].cursor
    assert server.execute_first("SELECT %s", 1) is place.made[0].cursor
    assert place.made[0].asked == [("BEGIN", None), ("SELECT %s", (1,))]
    place.made[0].errors.append(LOST)
    assert server.execute_first("SELECT %s, %s", 1, 2) is place.made[1].cursor
    assert (place.made[0].closed, server.connection) == (True, place.made[1])
    assert place.made[1].asked == [("SELECT %s, %s", (1, 2))]
    assert set_up == place.made
    place.made[1].errors.append(state_error("53100"))
    with pytest.raises(psycopg.OperationalError):
        server.execute_first("BEGIN")
    assert (server.connection, place.made[1].closed, len(place.made)) == (place.made[1], False, 2)
    for _ in range(2):
        server.close()
        assert (server.connection, place.made[1].closed) == (None, True)
    server.execute_first("BEGIN")
    assert place.made[2].asked == [("BEGIN", None)]


def test_a_child_drops_the_connection_of_its_parent_without_ending_it():
    place = Connections()
    server = ServerConnection(place, lambda _: None)
    server.abandon()
    for _ in range(2):
        server.execute_first("BEGIN")
        connection = server.connection
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        connection.pgconn = SimpleNamespace(socket=writing)
        server.abandon()
        assert os.read(reading, 1) == b"", "the other end is closed"
        os.close(reading)
        assert (server.connection, connection.closed) == (None, False)
        assert any(each is connection for each in locations._ABANDONED_CONNECTIONS)
    server.execute_first("BEGIN")
    server.connection.pgconn = SimpleNamespace(socket=writing)
    server.abandon()  # the socket was closed before
    assert server.connection is None


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (psycopg.OperationalError(), True),
        *((state_error(state), True) for state in ("08006", "57P01", "57P05", "25P03", "25P04")),
        *((state_error(state), False) for state in ("53100", "57014", "25P02", "55P03")),
        (state_error("57P01", psycopg.DataError), False),
        (psycopg.ProgrammingError(), False),
        (OSError(), False),
    ],
)
def test_a_lost_connection_is_told_from_other_errors(error, lost):
    assert is_connection_lost(error) == lost


TEXTS = {
    "55P03": "lock of the ledger",
    "57014": "timed out or was cancelled",
    "25P03": "idle in a transaction",
    "25006": "read-only",
    "0A000": "read-only",
    "42501": "GRANT USAGE ON SCHEMA {schema} and GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA {schema}",
    "42P01": "a table of schema {schema} does not exist",
    "42P06": "already exists",
    "23505": "without the lock.*{schema}",
    "53100": "disk of the server is full",
    "P0001": "a trigger of schema {schema}",
    "57P01": "the connection to the server was lost",
    "22012": "SQLSTATE 22012",
}


@pytest.mark.parametrize("state", TEXTS)
def test_errors_of_the_server_are_explained_without_its_messages(location, state):
    with (
        pytest.raises(LedgerError, match=TEXTS[state].format(schema=location.schema)) as found,
        ledger_errors(location),
    ):
        raise state_error(state)
    assert str(found.value).startswith(f"{location}: ")
    assert "{" not in str(found.value)
    assert found.value.__cause__ is None
    assert found.value.__suppress_context__


def test_other_errors_name_the_location_once(location):
    cause = OSError(28, "No space left")
    for error, text in (
        (LedgerError("modified"), f"^{location}: modified$"),
        (ServerUnreachable("no server"), "^no server$"),
        (cause, f"^{location}: cannot read or write the checkpoint file .*No space left"),
    ):
        with pytest.raises(LedgerError, match=text), ledger_errors(location):
            raise error
    with pytest.raises(ZeroDivisionError), ledger_errors(location):
        raise ZeroDivisionError
    with ledger_errors(location):
        pass


# Checkpoints of rows.


def chain_of(count):
    chain = Chain()
    chain.add(chain.next_row(RowKind.CREATE, "owner", terms_text(Terms("demo", Budget(1), None))))
    rows = [chain.last]
    for _ in range(count - 1):
        chain.add(chain.next_row(RowKind.ACKNOWLEDGE, "owner", "{}", loss=Loss("1/100")))
        rows.append(chain.last)
    return rows


ROWS = chain_of(5)


class Rows:
    """The tables of a ledger with the rows above, as far as checkpoints need them."""

    dialect = SimpleNamespace(schema="s")
    last_appended = last_checked = None

    def __init__(self, connection=None):
        self.connection = connection

    def row_at(self, seq):
        return dict(enumerate(ROWS, 1)).get(seq)

    def query(self, statement, numbers):
        assert statement == "SELECT seq, hash FROM s.rows WHERE seq = ANY (?::bigint[]) ORDER BY seq"
        return [(seq, ROWS[seq - 1].hash) for seq in numbers]

    def rows(self):
        return iter(ROWS)


def test_a_checkpoint_lists_all_near_rows_and_ever_fewer_further_back():
    for seq in [*range(1, 300), 1000, 4097]:
        listed = {1} if seq > 1 else set()
        for distance in range(1, seq):
            step = 2 ** max(0, distance.bit_length() - 1 - 4)
            listed |= {seq - distance} if (seq - distance) % step == 0 else set()
        assert milestones(seq) == sorted(listed)


def at(seq):
    return checkpoint_of(ROWS[seq - 1], tuple((number, ROWS[number - 1].hash[:16]) for number in range(1, seq)))


def test_a_checkpoint_has_the_beginnings_of_the_hashes_of_earlier_rows():
    assert checkpoint_at(Rows(), ROWS[3]) == at(4)
    assert [len(prefix) for _, prefix in at(4).earlier] == [16] * 3


@pytest.fixture
def session(location):
    session = PostgresSession(location)
    session.server.connection = Connection()
    return session


def table_with(appended=None, checked=None):
    table = Rows()
    table.last_appended, table.last_checked = appended, checked
    return table


CHARGE = ROWS[4]._replace(kind="charge")


@pytest.mark.parametrize(
    ("current", "table", "following"),
    [
        (EMPTY_CHECKPOINT, table_with(appended=ROWS[4]), None),
        (at(4), table_with(appended=CHARGE), (replace(at(5), hash=CHARGE.hash), None)),
        (None, table_with(appended=CHARGE), (at(5), None)),
        (at(4), table_with(appended=ROWS[4]), (at(5), at(4))),
        (None, table_with(appended=ROWS[4]), (at(5), None)),
        (at(3), table_with(), None),
        (None, table_with(checked=ROWS[4]), None),
        (at(3), table_with(checked=ROWS[4]), (at(5), None)),
        (at(5), table_with(checked=ROWS[4]), None),
        (replace(at(5), seq=9), table_with(checked=ROWS[4]), None),
        (replace(at(3), hash="0" * 64), table_with(checked=ROWS[4]), None),
        (Checkpoint(-1, "ab", "0 0 0"), table_with(checked=ROWS[4]), None),
    ],
)
def test_the_checkpoint_follows_appended_and_checked_rows_only(session, monkeypatch, current, table, following):
    monkeypatch.setattr(session.location, "checkpoint", lambda: current)
    assert session._next_checkpoint(table) == following


# Transactions.


def test_a_transaction_begins_with_its_limits_and_the_lock(session):
    begin = (
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit TO on; "
        "SET LOCAL idle_in_transaction_session_timeout TO '15s'; SET LOCAL lock_timeout TO '60s'; "
        f"SET LOCAL statement_timeout TO '120s'; SELECT pg_advisory_xact_lock({session.location.lock_number})"
    )
    connection = session.server.connection
    connection.rows = [("on", "on", "UTF8", True)]
    with session.write_transaction() as table:
        assert session.thread_lock.locked()
        assert (table.connection, table.dialect) == (connection, session.location.dialect)
    assert not session.thread_lock.locked()
    assert [statement for statement, _ in connection.asked] == [begin, sessions._DURABILITY_QUERY, "COMMIT"]
    assert "WHERE oid IN (to_regclass(%(rows)s), to_regclass(%(answers)s))" in connection.asked[1][0]
    schema = session.location.schema
    assert connection.asked[1][1] == {"rows": f"{schema}.rows", "answers": f"{schema}.answers"}
    connection.asked.clear()
    with session.read_transaction():
        assert session.thread_lock.locked()
    begin = (
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
        "SET LOCAL idle_in_transaction_session_timeout TO '3600s'; SET LOCAL statement_timeout TO '120s'"
    )
    assert connection.asked == [(begin, None)]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (("off", "on", "UTF8", True), "fsync is off"),
        (("on", "off", "UTF8", True), "full_page_writes is off"),
        (("on", "on", "LATIN1", True), "encoding of the database is LATIN1"),
        (("on", "on", "UTF8", False), "UNLOGGED"),
    ],
)
def test_a_server_whose_commits_do_not_last_is_refused_before_anything_is_written(session, settings, problem):
    connection = session.server.connection
    connection.rows = [settings]
    with pytest.raises(LedgerError, match=problem), session.write_transaction():
        raise AssertionError("it was used")
    assert len(connection.asked) == 2
    with pytest.raises(LedgerError, match=problem):
        session.create_checkpoint()
    for fine in (True, None):  # None: there is no table yet
        connection.rows = [("on", "on", "UTF8", fine)]
        session._check_durable(Rows(connection))


def notice(severity):
    return SimpleNamespace(severity_nonlocalized=severity)


def test_a_commit_is_believed_only_if_the_server_says_so_without_a_warning(session):
    connection = session.server.connection
    table = Rows(connection)
    session._on_notice(notice("NOTICE"))
    session._on_notice(notice("WARNING"))  # before the commit, about something else
    session._commit(table)

    class Warned(Cursor):
        @property
        def statusmessage(self):
            for severity in ("WARNING", "NOTICE"):
                session._on_notice(notice(severity))
            return "COMMIT"

    class Noticed(Cursor):
        @property
        def statusmessage(self):
            session._on_notice(notice("NOTICE"))
            return "COMMIT"

    connection.cursor = Noticed()
    session._commit(table)
    connection.cursor = Warned()
    with pytest.raises(LedgerError, match=r"is charged, but .*standby"):
        session._commit(table)
    connection.cursor = Cursor()
    connection.cursor.statusmessage = "ROLLBACK"
    with pytest.raises(LedgerError, match="rolled the transaction back"):
        session._commit(table)
    assert not connection.closed
    connection.errors.append(LOST)
    with pytest.raises(LedgerError, match="may or may not have been written"):
        session._commit(table)
    assert (connection.closed, session.server.connection) == (True, None)


def test_warnings_reach_the_session_from_every_connection(location, monkeypatch):
    connection = Connection()
    monkeypatch.setattr(location, "connect", lambda: connection)
    session = PostgresSession(location)
    with session.read_transaction():
        pass
    (handler,) = connection.handlers
    handler(notice("WARNING"))
    assert session._warned


@pytest.mark.parametrize(
    ("status", "error", "asked", "closed"),
    [
        (STATES.IDLE, None, [], False),
        (STATES.INTRANS, None, ["ROLLBACK"], False),
        (STATES.INERROR, None, ["ROLLBACK"], False),
        (STATES.INTRANS, LOST, ["ROLLBACK"], True),
        (STATES.ACTIVE, None, [], True),
        (STATES.UNKNOWN, None, [], True),
    ],
)
def test_what_was_not_committed_is_rolled_back_or_the_connection_closed(session, status, error, asked, closed):
    connection = session.server.connection

    def stop():
        connection.info.transaction_status = status
        connection.errors = [error] if error else []
        connection.asked.clear()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), session.read_transaction():
        stop()
    assert [statement for statement, _ in connection.asked] == asked
    assert (connection.closed, session.server.connection is None) == (closed, closed)
    session.server.connection = None
    session._roll_back()


def test_a_checkpoint_is_stored_after_the_commit_and_before_the_next_transaction(session, monkeypatch):
    connection = session.server.connection
    connection.rows, events = [("on", "on", "UTF8", True)], []
    monkeypatch.setattr(session, "_next_checkpoint", lambda _: (TWO, ONE))

    def store(checkpoint, replaces=None):
        events.append((checkpoint, replaces, [statement for statement, _ in connection.asked][-1]))
        if len(events) == 1:
            raise OSError(28, "No space left")

    monkeypatch.setattr(session.location, "store_checkpoint", store)
    with pytest.raises(LedgerError, match="No space left"), session.write_transaction():
        pass
    monkeypatch.setattr(session, "_next_checkpoint", lambda _: None)
    connection.asked.append(("later", None))
    with session.write_transaction():
        pass
    with session.write_transaction():
        pass
    assert events == [(TWO, ONE, "COMMIT"), (TWO, ONE, "later")]
    monkeypatch.setattr(session, "_next_checkpoint", lambda _: (THREE, None))
    with session.read_transaction():
        connection.asked.append(("read", None))
    assert events[2:] == [(THREE, None, "read")]


@pytest.mark.parametrize("state", ["new", "kept", "lost"])
def test_only_a_new_server_gets_a_checkpoint(session, path, monkeypatch, state):
    @contextmanager
    def reading():
        yield Rows(Connection())

    monkeypatch.setattr(session, "read_transaction", reading)
    monkeypatch.setattr(session, "_check_durable", lambda _: None)
    if state != "new":
        session.location.store_checkpoint(ONE)
    if state == "lost":
        path.unlink()
    session.create_checkpoint()
    assert session.location.checkpoint() == {"new": at(5), "kept": ONE, "lost": None}[state]
    if state == "new":
        path.unlink()
        path.with_name("checkpoint.lock").unlink()
        path.parent.rmdir()
        with pytest.raises(LedgerError, match="cannot read or write the checkpoint file"):
            session.create_checkpoint()


def test_a_closed_session_stays_closed(session, monkeypatch):
    connection = session.server.connection
    lock = RecordingLock(lambda: (session.stop_reason, connection.closed))
    with monkeypatch.context() as patch:
        patch.setattr(session, "thread_lock", lock)
        session.close()
    assert lock.seen == [(None, False), ("the ledger is closed", True)]
    for use in (session.write_transaction, session.read_transaction):
        with pytest.raises(LedgerError, match="the ledger is closed"), use():
            raise AssertionError("it was used")


def test_a_child_opens_a_connection_of_its_own(session, monkeypatch):
    connection = session.server.connection
    reading, writing = os.pipe()
    connection.pgconn = SimpleNamespace(socket=writing)
    with session.thread_lock:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks in a process with threads
            child = os.fork()
        if child == 0:
            abandoned = any(each is connection for each in locations._ABANDONED_CONNECTIONS)
            fine = abandoned and session.server.connection is None and not session.thread_lock.locked()
            os._exit(0 if fine else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert session.server.connection is connection
        monkeypatch.setattr(sessions, "_OPEN_SESSIONS", {session})
        sessions._after_fork_in_child()
        assert (session.server.connection, connection.closed, session.thread_lock.locked()) == (None, False, False)
    os.close(reading)


# Locks of keys.


def test_a_key_is_locked_while_it_is_used(location, monkeypatch):
    connections, tried = Connections(), []
    monkeypatch.setattr(location, "connect", connections.connect)
    locks, number = KeyLocks(location), lock_number(f"{location.schema} k")

    def wait(attempt):
        connections.connect()
        locks.server.connection = connections.made[-1]
        for free in (False, True):
            connections.made[-1].rows = [(free,)]
            tried.append(attempt())

    with locks.exclusive_lock("k", wait):
        assert tried == [False, True]
        connection = locks.server.connection
        assert connection.asked == [("SELECT pg_try_advisory_lock(%s)", (number,))] * 2
    assert connection.asked[2:] == [("SELECT pg_advisory_unlock(%s)", (number,))]
    with locks.exclusive_lock("k", wait):
        locks.server.connection.errors.append(LOST)  # the lock went with the connection
    with locks.exclusive_lock("k", wait):
        locks.server.connection = None
    assert not locks._thread_lock.locked()


def test_the_connection_of_key_locks_does_not_end_when_idle_and_errors_name_the_location(location, monkeypatch):
    connections = Connections()
    monkeypatch.setattr(location, "connect", connections.connect)
    locks = KeyLocks(location)
    with pytest.raises(IndexError), locks.exclusive_lock("k", lambda attempt: attempt()):
        pass
    query = "SELECT set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name = 'idle_session_timeout'"
    assert connections.made[0].asked[0] == (query, None)
    connections.made[0].errors.append(state_error("53100"))
    with pytest.raises(LedgerError, match="disk of the server is full"), locks.exclusive_lock("k", lambda each: each()):
        pass


def test_key_locks_are_closed_or_abandoned_by_a_child(location):
    locks, connection = KeyLocks(location), Connection()
    locks.server.connection = connection
    locks._thread_lock = RecordingLock(lambda: connection.closed)
    seen = locks._thread_lock.seen
    locks.close()
    assert seen == [False, True]
    connection = locks.server.connection = Connection()
    reading, writing = os.pipe()
    connection.pgconn = SimpleNamespace(socket=writing)
    locks.abandon_connection()
    os.close(reading)
    assert (locks.server.connection, connection.closed, locks._thread_lock.locked()) == (None, False, False)


# Creating and opening.


@pytest.mark.parametrize(("trace", "exists"), [(False, False), (False, True), (True, False), (True, True)])
def test_a_ledger_whose_checkpoint_exists_is_not_created_again(path, monkeypatch, trace, exists):
    made = []
    monkeypatch.setattr(ledgers, "create_in", lambda *words: made.append(words) or "ledger")
    monkeypatch.setattr(ledgers, "has_postgres_ledger", lambda url, name: (url, name) == (URL, "demo") and exists)
    if trace:
        path.write_text("")
    terms = {"budget": Budget(1), "analysts": {"ana": Budget(1)}, "unit_declaration": "u", "datasets": {}}
    if trace and not exists:
        with pytest.raises(LedgerError, match=r"^PostgreSQL at .*: the ledger is missing, but its checkpoint exists"):
            ledgers.create_postgres_ledger(URL, name="demo", checkpoint=path, **terms)
        assert made == []
        return
    assert ledgers.create_postgres_ledger(URL, name="demo", checkpoint=path, dataset="d", **terms) == "ledger"
    ((session, given, dataset),) = made
    assert (given, dataset) == (Terms("demo", Budget(1), {"ana": Budget(1)}, "u", {}), "d")
    assert (str(session.location), session.location.schema) == (
        "PostgreSQL at 127.0.0.1:1, database clinic",
        schema_name("demo"),
    )
    assert session.location.has_checkpoint == trace


class Session:
    """A session that can be opened, and may fail to create its checkpoint."""

    def __init__(self, location, error=None, number=None):
        self.location, self.error, self.number, self.closed, self.created = location, error, number, False, False

    def create_checkpoint(self):
        if self.error:
            raise self.error
        self.created = True

    @contextmanager
    def read_transaction(self):
        yield SimpleNamespace(format=lambda: self.number)

    def close(self):
        self.closed = True


def test_opening_a_ledger_creates_a_checkpoint_or_closes_it(path, monkeypatch):
    made, error = [], None
    monkeypatch.setattr(ledgers, "PostgresSession", lambda place: made.append(Session(place, error)) or made[-1])
    monkeypatch.setattr(ledgers, "open_in", lambda *words: words)
    assert ledgers.open_postgres_ledger(URL, name="demo", dataset="d", checkpoint=path) == (made[0], "demo", "d")
    assert (made[0].created, made[0].closed) == (True, False)
    assert (made[0].location.schema, made[0].location.checkpoint()) == (schema_name("demo"), None)
    error = LedgerError("no")
    with pytest.raises(LedgerError):
        ledgers.open_postgres_ledger(URL, name="demo")
    assert made[1].closed


@pytest.mark.parametrize(("number", "exists"), [(None, False), (0, True), (-1, True), (FORMAT, True)])
def test_a_ledger_or_a_reservation_for_one_exists_if_its_schema_has_a_format(monkeypatch, number, exists):
    made = []
    monkeypatch.setattr(
        ledgers, "PostgresSession", lambda place: made.append(Session(place, number=number)) or made[-1]
    )
    assert ledgers.has_postgres_ledger(URL, name="demo") == exists
    assert (made[0].location.schema, made[0].closed) == (schema_name("demo"), True)


def test_the_first_row_has_no_earlier_ones():
    assert checkpoint_at(Rows(), ROWS[0]) == checkpoint_of(ROWS[0])
    assert GENESIS.seq == 0
