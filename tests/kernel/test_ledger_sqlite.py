"""The storage of a ledger in SQLite: its files, locks, transactions and checkpoint, also across a fork."""

import fcntl
import json
import os
import sqlite3
import stat
import threading
import warnings
from pathlib import Path

import pytest

from discreet.kernel.errors import LedgerError, Refused
from discreet.kernel.event import Event
from discreet.kernel.ledger.checkpoint import Checkpoint
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_sqlite import create_ledger, location, memory_ledger, open_ledger, session
from discreet.ledger_sqlite.checkpoint_file import read_checkpoint, write_checkpoint

CENT = Loss("1/100")
EVENT = Event(mechanism="{}", sensitivity="{}", question="count")
FULL = Checkpoint(7, "ab" * 32, "1/2 1/8 0", "elsewhere", ((1, "cd"), (5, "ef")))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path):
    with create_ledger(path, name="demo", budget=Budget(1)) as ledger:
        yield ledger


def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def assert_closed(connection):
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


# The checkpoint file.


@pytest.mark.parametrize("checkpoint", [FULL, Checkpoint(3, "ab", "- 1/8 0")])
def test_a_checkpoint_file_is_read_back_and_only_the_owner_reads_it(tmp_path, checkpoint):
    path = tmp_path / "checkpoint"
    (tmp_path / "checkpoint.new").write_text("left by a crash; longer than what replaces it" * 99)
    (tmp_path / "checkpoint.new").chmod(0o600)
    for each in (FULL, checkpoint):
        write_checkpoint(path, each)
        assert read_checkpoint(path) == each
    assert [found.name for found in tmp_path.iterdir()] == ["checkpoint"]
    write_checkpoint(tmp_path / "new", checkpoint)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_a_checkpoint_file_has_a_fixed_format(tmp_path):
    path = tmp_path / "checkpoint"
    write_checkpoint(path, Checkpoint(3, "ab", "0 0 0"))
    assert path.read_text() == '{"hash":"ab","seq":3,"spent":"0 0 0"}'
    write_checkpoint(path, FULL)
    assert json.loads(path.read_text()) == {
        "seq": 7,
        "hash": "ab" * 32,
        "spent": "1/2 1/8 0",
        "moved": "elsewhere",
        "earlier": [[1, "cd"], [5, "ef"]],
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"hash":"ab","seq":3}',
        '{"hash":"ab","seq":3,"spent":"all"}',
        '{"hash":"ab","seq":3,"spent":1}',
        '{"hash":"ab","seq":"x","spent":"0 0 0"}',
        '{"hash":"ab","seq":3,"spent":"0 0 0","earlier":[1]}',
    ],
)
def test_an_invalid_checkpoint_file_is_like_a_missing_one(tmp_path, text):
    path = tmp_path / "checkpoint"
    assert read_checkpoint(path) is None
    path.write_text(text)
    assert read_checkpoint(path) is None


def test_a_checkpoint_is_on_disk_before_it_replaces_the_old_one_and_so_is_its_name_afterwards(tmp_path, monkeypatch):
    path, seen = tmp_path / "checkpoint", []
    write_checkpoint(path, FULL)

    def sync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        written = "" if is_folder else Path(f"{path}.new").read_text()
        seen.append((descriptor, is_folder, '"seq":8' in written, read_checkpoint(path).seq))

    monkeypatch.setattr("os.fsync", sync)
    write_checkpoint(path, Checkpoint(8, "ab", "0 0 0"))
    assert [each[1:] for each in seen] == [(False, True, 7), (True, False, 8)]
    assert not any(is_open(descriptor) for descriptor, *_ in seen)


# The file of the ledger.


def test_the_name_of_a_new_file_is_durable(path, monkeypatch):
    seen = []
    monkeypatch.setattr(location, "sync_folder", lambda folder: seen.append((folder, path.exists())))
    create_ledger(path, name="demo", budget=Budget(1)).close()
    assert seen == [(path.parent, True)]


@pytest.mark.parametrize("content", [b"", b"anything"])
def test_a_file_that_exists_is_never_made_a_ledger(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="the file already exists"):
        create_ledger(path, name="demo", budget=Budget(1))
    assert path.read_bytes() == content


def test_a_file_that_was_replaced_or_linked_while_open_is_not_written(ledger, path, tmp_path):
    (tmp_path / "link").hardlink_to(path)
    with pytest.raises(LedgerError, match="several hard links"):
        ledger.charge(CENT, EVENT)
    (tmp_path / "link").unlink()
    ledger.charge(CENT, EVENT)
    create_ledger(tmp_path / "other", name="demo", budget=Budget(1)).close()
    (tmp_path / "other").replace(path)
    with pytest.raises(LedgerError, match="replaced while it was open"):
        ledger.charge(CENT, EVENT)


class OtherSettings:
    """A connection that reads another value of a setting than was set."""

    def __init__(self, connection, setting):
        self.connection, self.setting = connection, setting

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def execute(self, statement, *values):
        changed = statement == f"PRAGMA {self.setting}"
        return self.connection.execute("SELECT 0" if changed else statement, *values)


@pytest.mark.parametrize("setting", ["journal_mode", "synchronous", "fullfsync"])
def test_a_file_without_durable_commits_is_refused_and_its_connection_closed(path, monkeypatch, setting):
    create_ledger(path, name="demo", budget=Budget(1)).close()
    made, connect = [], location._connect

    def changed(address):
        made.append(connect(address))
        return OtherSettings(made[-1], setting)

    monkeypatch.setattr(location, "_connect", changed)
    with pytest.raises(LedgerError, match=f"does not support {setting}"):
        open_ledger(path, name="demo")
    assert_closed(made[0])


def test_addresses_are_uris_and_transactions_explicit(monkeypatch):
    """Some builds of SQLite take every name that begins with file: for a URI, and others only if they are told."""
    made, connect = [], sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda address, **options: made.append(options) or connect(address, **options)
    )
    memory_ledger(name="demo", budget=Budget(1)).close()
    assert [(options["uri"], options["isolation_level"]) for options in made] == [(True, None)]


def test_every_commit_is_synced_also_where_the_disk_has_a_cache(ledger):
    with ledger.session.read_transaction() as table:
        settings = [table.query(f"PRAGMA {name}") for name in ("journal_mode", "synchronous", "fullfsync")]
    assert settings == [[("wal",)], [(2,)], [(1,)]]


def try_lock(path):
    with Path(f"{path}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_write_holds_the_lock_file_and_releases_it_even_if_a_copy_of_the_descriptor_stays_open(
    ledger, path, monkeypatch
):
    lock, copies, descriptors = fcntl.flock, [], []

    def copied(descriptor, operation):
        lock(descriptor, operation)
        if operation == fcntl.LOCK_EX:
            descriptors.append(descriptor)
            copies.append(os.dup(descriptor))  # as a child that was forked meanwhile has it

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", copied)
        with ledger.session.write_transaction():
            patch.undo()
            with pytest.raises(BlockingIOError):
                try_lock(path)
    try_lock(path)
    for copy in copies:
        os.close(copy)
    assert len(descriptors) == 1
    assert not is_open(descriptors[0])
    with pytest.raises(ZeroDivisionError), ledger.session.write_transaction():
        raise ZeroDivisionError
    try_lock(path)


def test_lookups_of_keys_and_receipts_use_an_index(ledger):
    lookups = {
        'SELECT 1 FROM rows WHERE "by" = ? AND dataset = ? AND key = ?': "rows_key",
        "SELECT 1 FROM rows WHERE receipt = ? AND kind = ?": "rows_receipt",
        "SELECT 1 FROM answers WHERE receipt = ?": "answers_receipt",
    }
    with ledger.session.read_transaction() as table:
        for query, index in lookups.items():
            plan = table.query(f"EXPLAIN QUERY PLAN {query}", *("x" * query.count("?")))
            assert f"INDEX {index} (" in plan[0][-1]


# Transactions.


def test_a_transaction_that_was_left_open_is_rolled_back(ledger):
    ledger.charge(CENT, EVENT)
    connection = ledger.session._connection
    connection.execute("BEGIN IMMEDIATE")  # as an interrupt between two statements leaves it
    connection.execute("CREATE TABLE left_open (x)")
    ledger.charge(CENT, EVENT)
    assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'left_open'").fetchone() == (0,)
    assert ledger.spent() == CENT + CENT


def test_no_transaction_stays_open(ledger):
    with pytest.raises(Refused):
        ledger.charge(Loss(2), EVENT)
    assert not ledger.session._connection.in_transaction
    ledger.spent()
    assert not ledger.session._connection.in_transaction


def test_closing_waits_for_the_transaction_of_another_thread_and_closes_the_connection(ledger):
    states, connection = [], ledger.session._connection

    class Lock:
        def __enter__(self):
            states.append(ledger.session.stop_reason)

        def __exit__(self, *_):
            states.append((ledger.session.stop_reason, ledger.session._connection))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger.session, "thread_lock", Lock())
        ledger.close()
    assert states == [None, ("the ledger is closed", None)]
    assert_closed(connection)


# Forks.


@pytest.fixture
def memory():
    with memory_ledger(name="demo", budget=Budget(1)) as memory:
        yield memory


@pytest.fixture
def locks(ledger, memory):
    """Return a function that tells which locks are held; afterwards none is, so that closing never waits."""
    both = (ledger.session, memory.session)
    yield lambda: [lock.locked() for lock in (session._FORK_LOCK, *(each.thread_lock for each in both))]
    session._LOCKED_SESSIONS.clear()
    for each in both:
        each.thread_lock = threading.Lock()
    if session._FORK_LOCK.locked():
        session._FORK_LOCK.release()


def test_before_a_fork_transactions_end_and_files_are_closed(ledger, memory, locks):
    connection = ledger.session._connection
    session._before_fork()
    assert locks() == [True, True, True]
    assert (ledger.session._connection, memory.session._connection is None) == (None, False)
    assert_closed(connection)
    session._after_fork()
    assert locks() == [False, False, False]
    assert not session._LOCKED_SESSIONS
    ledger.charge(CENT, EVENT)
    memory.charge(CENT, EVENT)
    session._before_fork()
    session._after_fork_in_child()
    assert locks() == [False, False, False]
    assert (ledger.session.stop_reason, memory.session.stop_reason is None) == (None, False)
    ledger.charge(CENT, EVENT)


def test_in_a_child_a_file_is_opened_anew_and_memory_is_refused(ledger, memory, locks):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks in a process with threads
        child = os.fork()
    if child == 0:
        outcome = 1
        try:
            if any(locks()):
                os._exit(2)
            ledger.charge(CENT, EVENT)
            with pytest.raises(LedgerError, match="belongs to the process that created it"):
                memory.charge(CENT, EVENT)
            outcome = 0
        finally:
            os._exit(outcome)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not any(locks())
    memory.charge(CENT, EVENT)
    ledger.charge(CENT, EVENT)
    assert (memory.spent(), ledger.spent()) == (CENT, CENT + CENT)
