"""A question that waits for a change of a table sees the state after it, and never one in between."""

import threading
import time

import pytest

from discreet.engines.postgres import session
from discreet.engines.postgres.engine import Postgres
from discreet.engines.table_source import EngineError, TableSource, Unavailable
from discreet.kernel.expr import Type
from discreet.postgres.server import connect

COLUMNS = {"p": Type.INTEGER, "x": Type.INTEGER}
SETUP = """
CREATE TABLE plain AS SELECT g AS p, 1 AS x, 1 AS note FROM generate_series(1, 100) AS g;
CREATE TABLE narrow AS SELECT * FROM plain;
CREATE TABLE parts (p integer, x integer, note integer) PARTITION BY RANGE (p);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM (0) TO (51);
CREATE TABLE parts_b PARTITION OF parts FOR VALUES FROM (51) TO (1001);
INSERT INTO parts SELECT * FROM plain;
CREATE TABLE "Below" AS SELECT * FROM plain;
CREATE VIEW seen AS SELECT p, x FROM (SELECT * FROM "Below") AS b WHERE p IN (SELECT p FROM parts);
CREATE MATERIALIZED VIEW stored AS SELECT p, x FROM plain;
CREATE ROLE changes_reader LOGIN;
GRANT SELECT ON plain, parts, seen, stored TO changes_reader;
GRANT SELECT (p, x) ON narrow TO changes_reader;
"""
REFILLED = "TRUNCATE {0}; INSERT INTO {0} SELECT g, 1, 1 FROM generate_series(1, 80) AS g"
REWRITTEN = "ALTER TABLE {0} ALTER COLUMN note TYPE bigint USING note * 2"
SWAPPED = (
    "CREATE TABLE {0}_new AS SELECT g AS p, 1 AS x, 1 AS note FROM generate_series(1, 60) AS g; "
    "ALTER TABLE {0} RENAME TO {0}_old; ALTER TABLE {0}_new RENAME TO {0}; GRANT SELECT ON {0} TO changes_reader"
)
EXCHANGED = (
    "ALTER TABLE parts DETACH PARTITION parts_b; DROP TABLE parts_b; CREATE TABLE parts_b PARTITION OF parts "
    "FOR VALUES FROM (51) TO (1001); INSERT INTO parts SELECT g, 1, 1 FROM generate_series(51, 90) AS g"
)
CHANGES = {
    "a table that is filled anew": ("plain", REFILLED.format("plain"), 80),
    "a table that is rewritten": ("plain", REWRITTEN.format("plain"), 100),
    "a table that another one replaces": ("plain", SWAPPED.format("plain"), 60),
    "partitions that are filled anew": ("parts", REFILLED.format("parts"), 80),
    "a partition that is filled anew": ("parts", REFILLED.format("parts_a").replace("80", "40"), 90),
    "a partition that another one replaces": ("parts", EXCHANGED, 90),
    "what is behind a view": ("seen", REFILLED.format('"Below"'), 80),
    "what is behind a part of a view": ("seen", REFILLED.format("parts"), 80),
    "a stored view": ("stored", "INSERT INTO plain SELECT * FROM plain; REFRESH MATERIALIZED VIEW stored", 200),
}


@pytest.fixture
def admin(postgres):
    """Create a database for one test, and return its URL as a superuser."""
    with connect(postgres.url()) as server:
        server.execute("DROP DATABASE IF EXISTS changes_test WITH (FORCE)")
        server.execute("DROP ROLE IF EXISTS changes_reader")
        server.execute("CREATE DATABASE changes_test")
    with connect(postgres.url("changes_test")) as server:
        server.execute(SETUP)
    return postgres.url("changes_test")


def opened(admin, *places):
    sources = {place: TableSource(place, COLUMNS) for place in places}
    return Postgres(sources, url=admin.replace("postgres@", "changes_reader@"))


def waited(admin, engine, place, change, *others):
    """Ask how many rows there are while a change is under way, and return what is told after it.

    Other tables are used by the question, too, which is about this one.
    """
    found = []

    def ask():
        try:
            usage = dict.fromkeys((place, *others), frozenset(COLUMNS))
            with engine.prepare(usage) as reader:
                found.append(reader.run_select(f"SELECT COUNT(*) AS n FROM public.{place}").column("n")[0].as_py())
        except EngineError as error:
            found.append(error)

    with connect(admin) as writer:
        asking = threading.Thread(target=ask)
        with writer.transaction():
            writer.execute(change)
            asking.start()
            wait_for_lock(admin)
        asking.join(240)
    return found[0]


def wait_for_lock(admin):
    asked = "SELECT 1 FROM pg_stat_activity WHERE usename = 'changes_reader' AND wait_event_type = 'Lock'"
    with connect(admin) as server:
        for _ in range(12_000):  # 240 s, which nothing but a real hang reaches
            if server.execute(asked).fetchall():
                return
            time.sleep(0.02)
    raise AssertionError("no question waits")


@pytest.mark.parametrize("case", CHANGES)
def test_a_question_that_waited_for_a_change_sees_it(admin, case):
    place, change, rows = CHANGES[case]
    with opened(admin, place) as engine:
        assert engine.fanout(place, ()) == 100
        assert waited(admin, engine, place, change) == rows
        assert engine.fanout(place, ()) == rows


def test_all_tables_are_waited_for_before_any_is_read(admin):
    """The state that a question sees is taken when nobody can replace a table any more: of no table is it older."""
    with opened(admin, "parts", "seen", "plain") as engine:
        assert (
            waited(
                admin, engine, "parts", REFILLED.format("plain") + "; DELETE FROM parts WHERE p > 30", "seen", "plain"
            )
            == 30
        )


@pytest.mark.parametrize("change", [REFILLED, REWRITTEN, SWAPPED], ids=["filled anew", "rewritten", "replaced"])
def test_a_role_that_cannot_wait_gets_an_error_and_no_number(admin, change):
    """Who may read some columns only may not lock the table."""
    with opened(admin, "narrow") as engine:
        assert engine.fanout("narrow", ()) == 100
        failed = waited(admin, engine, "narrow", change.format("narrow"))
        assert "table narrow: it was replaced while the query was being prepared" in failed.reason
        assert 'GRANT SELECT ON "public"."narrow"' in failed.reason
        assert engine.fanout("narrow", ()) > 0


def test_waiting_too_long_for_a_lock_is_reported_once(admin, monkeypatch):
    monkeypatch.setattr(session, "_LOCK_TIMEOUT", 0.5)
    with opened(admin, "plain") as engine, connect(admin) as writer:
        engine.fanout("plain", ())
        with writer.transaction():
            writer.execute("LOCK TABLE plain IN ACCESS EXCLUSIVE MODE")
            before = engine._session._connection
            with pytest.raises(Unavailable, match="locked by another session") as locked:
                engine.fanout("plain", ())
            assert "SQLSTATE 55P03" in locked.value.reason
            assert engine._session._connection is before  # and did not wait again, with a new one
        assert engine.fanout("plain", ()) == 100


def test_limits_of_time_before_a_question_is_read(admin):
    """To connect, for a lock, and for as long as a charge may take; what is read then has the question's own limit."""
    with opened(admin, "plain") as engine, engine._session.locked_snapshot(20) as snapshot:
        limits = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"
        names = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"]
        found = {name: round(int(setting), -3) for name, setting in snapshot.catalog_rows(limits, [names])}
    assert found == dict(zip(names, (60000, 30000, 310000), strict=True))
