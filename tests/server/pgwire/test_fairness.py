"""What one person sends does not keep others waiting: it is read in threads, by turns, and counts as requests."""

import threading
from contextlib import contextmanager

import pytest
from clinic import clinic_policy
from running import running
from wire_client import SYNC, WireClient, kinds, parse, query

from discreet.server.pgwire import text_reader
from discreet.server.pgwire.catalog.engine import CatalogEngine

SQL = "SELECT COUNT(*) AS n FROM visits WHERE age > {}"


@pytest.fixture
def blocked(monkeypatch):
    """Give a function that lets the next call of something wait until the test ends, and returns when it began."""
    began, go_on = threading.Event(), threading.Event()

    def block(owner, name):
        work = getattr(owner, name)

        def wait_first(*arguments):
            if not began.is_set():
                began.set()
                assert go_on.wait(60)
            return work(*arguments)

        monkeypatch.setattr(owner, name, wait_first)
        return began

    yield block
    go_on.set()


@contextmanager
def limited_clients():
    """Give a connection of each of two people who may send 30 requests a minute."""
    with running(clinic_policy(requests_per_minute=30)) as found:
        clients = [WireClient(found.port), WireClient(found.port)]
        for client, name in zip(clients, ("ana", "bob"), strict=True):
            client.log_in(name, found.tokens[name], options="-c epsilon=1e-3")
        yield clients
        for client in clients:
            client.close()


def test_a_text_that_takes_long_to_read_keeps_nobody_else_waiting(blocked, wire):
    slow, other = wire("ana"), wire("bob")
    began = blocked(text_reader, "parse_query")
    slow.send(query(SQL.format(1)))
    assert began.wait(30)
    assert kinds(other.ask(query("SELECT 1; SELECT 2"))) == "TDCTDCZ"
    assert kinds(other.ask(query("EXPLAIN SELECT COUNT(*) AS n FROM visits WHERE age > 2"))).endswith("CZ")


def test_a_slow_query_on_the_catalog_keeps_nobody_else_waiting(blocked, wire):
    slow, second, other = wire("ana"), wire("ana"), wire("bob")
    for connection in (slow, other):
        connection.ask(query("SELECT 1 FROM pg_class"))
    began = blocked(CatalogEngine, "run")
    slow.send(query("SELECT relname FROM pg_class"))
    assert began.wait(30)
    second.send(query("SELECT 2 FROM pg_class"))  # waits behind the first one of the same person
    assert kinds(other.ask(query("SELECT 3 FROM pg_class LIMIT 1"))) == "TDCZ"


@pytest.mark.parametrize(
    "sql", ["SELECT 1 FROM pg_class", "SELECT {} FROM pg_class", "SELECT {}", "SHOW epsilon; SELECT {}"]
)
def test_what_a_client_sends_counts_as_requests_of_its_person(sql):
    with limited_clients() as (connection, other):
        replies = [connection.ask(query(sql.format(number))) for number in range(40)]
        refused = [body for reply in replies for kind, body in reply if kind == b"E"]
        assert 10 <= len(refused) < 40
        assert all(b"C53400\0" in body and b"requests: more than 30 in a minute" in body for body in refused)
        assert kinds(other.ask(query("SELECT 1"))) == "TDCZ"


def test_parsing_counts_even_if_nothing_is_asked():
    with limited_clients() as (connection, _):
        for number in range(31):
            replies = connection.ask(parse(SQL.format(number)), SYNC)
        assert kinds(replies) == "EZ"


def test_a_text_that_is_no_number_of_seconds_is_refused_and_leaves_no_traceback(wire, caplog):
    client = wire("ana")
    (_, body), _ = client.ask(query("SELECT pg_sleep('x')"))
    assert b"C22P02\0" in body
    assert not [record for record in caplog.records if record.exc_info]
