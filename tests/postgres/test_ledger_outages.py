"""What a shared ledger keeps when servers stop, connections break and clients stand still."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from kernel.ledger_locations import PostgresPlace
from servers.postgres import Cluster, binaries

from discreet.kernel.errors import Failed, LedgerError, PolicyError
from discreet.kernel.event import Event
from discreet.kernel.ledger.chain import Chain, RowKind, event_text
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_postgres import session as ledger_session
from discreet.ledger_postgres.ledger import create_postgres_ledger, open_postgres_ledger
from discreet.postgres.server import connect, driver

HERE = Path(__file__).parent
CENT = Loss("1/100")
EVENT = Event(mechanism="{}", sensitivity="{}", question="count")


@pytest.fixture(scope="module")
def cluster():
    """Give a server of this module's own: it is stopped and started at will."""
    pytest.importorskip("psycopg")
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt install postgresql)")
    cluster = Cluster().start()
    yield cluster
    cluster.stop()


@pytest.fixture
def place(cluster, tmp_path):
    return PostgresPlace(cluster.url(), tmp_path, binaries()).empty()


@pytest.fixture
def ledger(place):
    with place.create() as ledger:
        yield ledger


class Worker:
    """A process whose lines are read as they come."""

    def __init__(self, script, *arguments):
        command = [sys.executable, str(HERE / script), *map(str, arguments)]
        paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, env=environment, **pipes)
        self.lines, self._seen = [], 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def wait_for(self, text, meanwhile=lambda: None):
        """Wait for a line that has this text and was not waited for before."""
        end = time.monotonic() + 300
        while time.monotonic() < end:
            for number in range(self._seen, len(self.lines)):
                if text in self.lines[number]:
                    self._seen = number + 1
                    return
            meanwhile()
            time.sleep(0.05)
        raise AssertionError(f"no {text} in {self.lines}")

    def end(self):
        """Tell the process to end, and return all its lines."""
        self.process.stdin.close()
        assert self.process.wait(300) == 0
        self._reader.join()
        return self.lines

    def clear_up(self):
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()
        self.process.stdin.close()


@pytest.fixture
def worker():
    """Give a way to start workers that end with the test, whatever happens."""
    started = []

    def start(*arguments):
        started.append(Worker(*arguments))
        return started[-1]

    yield start
    for each in started:
        each.clear_up()


def stop_backends(place):
    """End all connections of others, as an operator can."""
    others = "application_name = 'discreet' AND pid <> pg_backend_pid()"
    place.run([f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"])


def start_after_kill(cluster):
    """Start the server again when the children of the one that was killed are gone."""
    for _ in range(2400):
        try:
            cluster.start()
        except subprocess.CalledProcessError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the server does not start again")


# What happens, until when all workers have noticed, and what ends it.
OUTAGES = {
    "stopped": (lambda cluster: cluster.halt("fast"), lambda _: None, lambda cluster: cluster.start()),
    "crashed": (lambda cluster: cluster.halt("immediate"), lambda _: None, lambda cluster: cluster.start()),
    "killed": (lambda cluster: cluster.kill(), lambda _: None, start_after_kill),
    "connections ended": (lambda _: None, stop_backends, lambda _: None),
}
SLOW = [pytest.param(how, 5, marks=pytest.mark.slow) for how in OUTAGES]


@pytest.mark.long
@pytest.mark.parametrize(("how", "times"), [("stopped", 1), ("crashed", 1), ("connections ended", 2), *SLOW])
def test_nothing_seen_is_lost_and_nothing_charged_twice_while_the_server_goes_away(cluster, place, worker, how, times):
    begin, keep_on, finish = OUTAGES[how]
    place.create(budget=Budget(10**6)).close()
    workers = [worker("ledger_outage.py", place.text, name) for name in "ab"]
    for _ in range(times):
        for each in workers:
            each.wait_for("-")
        begin(cluster)
        for each in workers:
            each.wait_for("failing", lambda: keep_on(place))
        finish(cluster)
    for each in workers:
        each.wait_for("-")
    lines = [line.split() for each in workers for line in each.end()]
    shown = {words[0]: words[1] for words in lines if words != ["failing"]}
    with place.open() as ledger:
        verify_ledger(ledger)
        events = ledger.events()
        assert ledger.spent().epsilon == len(events) * Loss("1/1000").epsilon
        for key, answer in shown.items():
            assert ledger.charge(Loss("1/1000"), EVENT, key).answer == answer.encode()
        assert len(ledger.events()) == len(events), "a replay was charged"
        assert sum(event.state == "released" for event in events) == len(shown)


def test_a_server_that_is_down_is_named_and_one_that_is_back_works(cluster, place, ledger):
    ledger.charge(CENT, EVENT, key="k")
    cluster.halt()
    try:
        for act in (lambda: ledger.charge(CENT, EVENT), ledger.spent, lambda: verify_ledger(ledger)):
            with pytest.raises(LedgerError, match=r"127\.0\.0\.1:\d+, database postgres: cannot connect"):
                act()
        with pytest.raises(LedgerError, match="cannot connect"):
            place.open()
    finally:
        cluster.start()
    ledger.charge(CENT, EVENT)
    assert ledger.spent() == CENT + CENT
    verify_ledger(ledger)


def test_a_connection_lost_between_charges_is_replaced_silently(cluster, place, ledger):
    ledger.charge(CENT, EVENT)
    stop_backends(place)
    ledger.charge(CENT, EVENT)
    cluster.restart()
    assert ledger.spent() == CENT + CENT


def test_a_connection_lost_in_a_charge_fails_it_and_the_next_works(place, ledger, monkeypatch):
    from discreet.kernel.ledger import ledger as account

    write = account.event_text

    def cut(event):
        stop_backends(place)
        return write(event)

    with monkeypatch.context() as patch:
        patch.setattr(account, "event_text", cut)
        lost = "connection to the server was lost, and nothing was written"
        with pytest.raises(LedgerError, match=lost):
            ledger.charge(CENT, EVENT)
    assert ledger.spent() == ZERO_LOSS
    ledger.charge(CENT, EVENT)
    verify_ledger(ledger)


class Cut:
    """A connection that breaks at COMMIT, before the server got it or after."""

    def __init__(self, connection, place, when):
        self._connection, self._place, self._when = connection, place, when

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def execute(self, statement, *values):
        if statement != "COMMIT":
            return self._connection.execute(statement, *values)
        if self._when == "after":
            self._connection.execute(statement)
        stop_backends(self._place)
        return self._connection.execute("SELECT 1")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_lost_at_the_commit_leaves_the_outcome_to_be_found_by_the_key(place, ledger, when):
    server = ledger.session.server
    server.connection = Cut(server.connection, place, when)
    with pytest.raises(LedgerError, match="may or may not have been written"):
        ledger.charge(CENT, EVENT, key="k")
    assert ledger.spent() == (ZERO_LOSS if when == "before" else CENT)
    if when == "before":
        ledger.charge(CENT, EVENT, key="k")
    else:
        with pytest.raises(Failed, match="outcome is unknown"):
            ledger.charge(CENT, EVENT, key="k")
    assert ledger.spent() == CENT
    verify_ledger(ledger)


@pytest.mark.long
def test_a_client_that_hangs_during_a_charge_is_disconnected(place, ledger, worker):
    client = worker("ledger_stopped.py", place.text, 2)
    client.wait_for("begun")
    client.process.send_signal(signal.SIGSTOP)
    try:
        ledger.charge(CENT, EVENT)
    finally:
        client.process.send_signal(signal.SIGCONT)
    _, failed, charged = client.end()
    assert "was idle in a transaction" in failed or "connection was lost" in failed
    assert charged == "charged"
    assert ledger.spent() == CENT + CENT
    verify_ledger(ledger)


def test_a_charge_that_waits_too_long_fails_with_the_reason(place, ledger, monkeypatch):
    monkeypatch.setattr(ledger_session, "LOCK_TIMEOUT", 1)  # of the lock that the other holds all the time
    with connect(place.url) as other:
        other.execute("BEGIN")
        other.execute("SELECT pg_advisory_xact_lock(%s)", [ledger.session.location.lock_number])
        with pytest.raises(LedgerError, match="timed out waiting for the lock"):
            ledger.charge(CENT, EVENT)
        assert ledger.spent() == ZERO_LOSS, "readers wait for nobody"
    monkeypatch.undo()
    ledger.charge(CENT, EVENT)


def test_a_writer_without_the_lock_cannot_write_the_same_row(place, ledger):
    """The lock is for fairness and speed; that two rows are one after the other is the table's own law."""
    session = open_postgres_ledger(place.url, name="demo").session
    session.location.lock_number += 1
    ready, done = threading.Event(), threading.Event()

    def write_beside():
        with session.write_transaction() as table:
            chain = Chain().extend(table.rows())
            table.add_row(chain.next_row(RowKind.CHARGE, "owner", event_text(EVENT), receipt="r", loss=CENT))
            ready.set()
            wait_for_a_queue(place)
        done.set()

    thread = threading.Thread(target=write_beside)
    thread.start()
    ready.wait()
    with pytest.raises(LedgerError, match="wrote without the lock"):
        ledger.set_budget(Budget(2), analysts=None)
    thread.join()
    session.close()
    assert done.is_set()
    ledger.set_budget(Budget(3), analysts=None)
    verify_ledger(ledger)


def wait_for_a_queue(place):
    """Wait until somebody waits for a row that is not committed yet."""
    for _ in range(4800):
        if place.run(["SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"]):
            return
        time.sleep(0.05)
    raise AssertionError("nobody waits")


# Durability.


@pytest.fixture
def setting(place):
    """Change a setting of the running server; it is as before afterwards."""
    changed = {}

    def change(name, value):
        changed.setdefault(name, place.run([f"SHOW {name}"]))
        place.run([f"ALTER SYSTEM SET {name} = '{value}'"], ["SELECT pg_reload_conf()"])
        until(name, [(value,)])

    def until(name, value):
        while place.run([f"SHOW {name}"]) != value:
            time.sleep(0.05)
        stop_backends(place)  # who connects now has the new setting

    yield change
    for name, value in changed.items():
        place.run([f"ALTER SYSTEM RESET {name}"], ["SELECT pg_reload_conf()"])
        until(name, value)


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_a_server_without_durable_commits_is_refused(place, ledger, setting, name):
    setting(name, "off")
    with pytest.raises(LedgerError, match=f"{name} is off on the server, so a crash could undo charges"):
        ledger.charge(CENT, EVENT)
    with pytest.raises(LedgerError, match=f"Set {name} = on"):
        place.open()
    assert ledger.spent() == ZERO_LOSS


def test_commits_are_durable_whatever_the_server_does_for_others(place, ledger, setting):
    setting("synchronous_commit", "off")
    seen = []

    class Watching(Cut):
        def execute(self, statement, *values):
            if statement == "COMMIT":
                seen.append(self._connection.execute("SHOW synchronous_commit").fetchall())
            return self._connection.execute(statement, *values)

    with ledger.session.read_transaction():
        pass
    server = ledger.session.server
    server.connection = Watching(server.connection, place, "")
    ledger.charge(CENT, EVENT)
    assert seen == [[("on",)]]


def test_a_commit_that_did_not_happen_is_detected(ledger):
    """After an error inside, COMMIT succeeds and undoes everything."""

    def go_on_after_an_error():
        with ledger.session.write_transaction() as table, pytest.raises(driver().Error):
            table.connection.execute("SELECT 1 / 0")

    with pytest.raises(LedgerError, match="rolled the transaction back"):
        go_on_after_an_error()
    assert ledger.spent() == ZERO_LOSS


def test_an_unresponsive_standby_is_not_ignored_silently(place, ledger, setting):
    """A commit that an operator cancels while it waits for the standby has happened, with a warning only."""
    setting("synchronous_standby_names", "nowhere")
    cancelled = threading.Thread(target=cancel_commit, args=(place,))
    cancelled.start()
    with pytest.raises(LedgerError, match="did not wait for its standby"):
        ledger.charge(CENT, EVENT)
    cancelled.join()
    assert ledger.spent() == CENT


def cancel_commit(place):
    for _ in range(4800):
        time.sleep(0.05)
        if place.run(["SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"]):
            return


def test_a_client_that_shows_errors_only_still_detects_the_standby_warning(place, ledger, setting):
    setting("client_min_messages", "error")
    test_an_unresponsive_standby_is_not_ignored_silently(place, ledger, setting)


def test_a_database_of_another_encoding_is_refused(place):
    place.run(
        ["DROP DATABASE IF EXISTS latin"],
        ["CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"],
    )
    with pytest.raises(LedgerError, match="encoding of the database is LATIN1"):
        create_postgres_ledger(place.url.rpartition("/")[0] + "/latin", name="demo", budget=Budget(1))


def test_a_standby_can_be_read_and_is_named_when_charged(cluster, ledger):
    signal_file = cluster.folder / "data" / "standby.signal"
    ledger.charge(CENT, EVENT)
    cluster.halt()
    signal_file.touch()
    try:
        cluster.start()
        assert ledger.spent() == CENT
        verify_ledger(ledger)
        with pytest.raises(LedgerError, match="read-only"):
            ledger.charge(CENT, EVENT)
    finally:
        cluster.halt()
        signal_file.unlink()
        cluster.start()
    ledger.charge(CENT, EVENT)


def test_a_read_only_default_for_transactions_is_overridden(ledger, setting):
    setting("default_transaction_read_only", "on")
    ledger.charge(CENT, EVENT)
    verify_ledger(ledger)


# Secrets.


def test_no_text_has_a_password(cluster, place):
    url = place.url.replace("postgres@", "postgres:hush-hush@")
    texts = []
    with create_postgres_ledger(url, name="demo", budget=Budget(1)) as ledger:
        texts += [repr(ledger), str(ledger.session.location), repr(ledger.session.location), repr(ledger.session)]
        place.tamper(["UPDATE rows SET hash = 'x'"])
        for act in (lambda: verify_ledger(ledger), ledger.spent, lambda: ledger.charge(CENT, EVENT)):
            with pytest.raises(LedgerError) as found:
                act()
            texts.append(str(found.value))
    for wrong in (url.replace(str(cluster.port), "1"), url + "_that_is_not_there", url.replace("postgres:", "nobody:")):
        with pytest.raises((LedgerError, PolicyError)) as found:
            open_postgres_ledger(wrong, name="demo")
        texts.append(str(found.value))
    assert "hush" not in " ".join(texts)
    assert all("127.0.0.1" in text for text in texts[1:2] + texts[4:])


def test_server_messages_are_not_repeated(place, ledger):
    """It may quote what is stored."""
    with pytest.raises(LedgerError, match="SQLSTATE 22P02") as found, ledger.session.write_transaction() as table:
        table.connection.execute("SELECT 'secret'::int")
    assert "secret" not in str(found.value)
    assert found.value.__cause__ is None
