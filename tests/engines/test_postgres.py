"""The PostgreSQL engine: the same totals as DuckDB, from one snapshot, read-only, whatever happens to the server."""

import logging
import os
import signal
import threading
import time
import warnings

import numpy as np
import pyarrow as pa
import pytest

from discreet.engines import server_session
from discreet.engines.duckdb.engine import DuckDB, Tuning
from discreet.engines.postgres import session
from discreet.engines.postgres.engine import Postgres
from discreet.engines.table_source import EngineError, TableSource, Unavailable
from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Column, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import Scan, UnitKey
from discreet.kernel.totals import Count, CountDistinct, CountUnits, HistogramTree, SelectionWeight, Sum
from discreet.postgres.server import connect, driver

N, R, B, X, D, S = Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TEXT, Type.DATE, Type.TIMESTAMP
TYPES = {"patient": N, "ward": X, "cost": R, "kept": B}
ROWS = 4000
WARDS = ["A", "B", "Ä", "b", " "]


def visits():
    """Return the same rows for both engines: some units have many, some values lack."""
    places = range(ROWS)
    return {
        "patient": [place % 211 if place % 13 else None for place in places],
        "ward": [WARDS[place % 7] if place % 7 < 5 else None for place in places],
        "cost": [(place * 37 % 1000) / 8 if place % 11 else None for place in places],
        "kept": [place % 3 == 0 if place % 5 else None for place in places],
    }


SETUP = """
CREATE SCHEMA clinic;
CREATE TABLE clinic.visits (patient integer, ward text, cost numeric, kept boolean, secret text);
CREATE TABLE "Odd Name" ("Patient" bigint, "a ""b"" c" text);
INSERT INTO "Odd Name" VALUES (1, 'x');
CREATE TABLE parts (patient integer, ward text) PARTITION BY LIST (ward);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('A');
CREATE TABLE parts_rest PARTITION OF parts DEFAULT;
INSERT INTO parts VALUES (1, 'A'), (2, 'B'), (3, NULL);
CREATE VIEW seen AS SELECT patient, ward FROM clinic.visits;
CREATE MATERIALIZED VIEW kept AS SELECT patient, ward FROM parts;
CREATE TABLE regions (name text, region text, size integer);
INSERT INTO regions VALUES ('A', 'west', 1), ('B', 'west', 2), ('Ä', 'south', NULL), (NULL, 'west', 2);
CREATE TABLE "twice" (x integer, "X" integer, amount money, tags text[], kept boolean);
CREATE TABLE hidden (x integer, y integer);
CREATE VIEW slow AS
SELECT patient FROM clinic.visits, LATERAL (SELECT pg_sleep(0.01 + COALESCE(patient, 0) * 1e-9)) AS waited;
CREATE VIEW many AS
SELECT (g / 3)::integer AS unit, g::double precision AS x, g AS n FROM generate_series(1, 300000) AS g;
CREATE FUNCTION fail() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RAISE 'read'; END $$;
CREATE VIEW touchy AS SELECT fail() AS x;
CREATE TABLE words (word text);
INSERT INTO words VALUES ('secret-7f3a');
CREATE VIEW numbers AS SELECT word::integer AS x FROM words;
CREATE TYPE public."numeric" AS (x integer);
CREATE TABLE shapes (x public."numeric");
GRANT USAGE ON SCHEMA clinic TO engine_reader;
GRANT SELECT ON clinic.visits, "Odd Name", parts, seen, kept, regions, twice, slow, many, touchy TO engine_reader;
GRANT SELECT ON numbers, shapes TO engine_reader;
GRANT SELECT (x) ON hidden TO engine_reader;
"""


@pytest.fixture(scope="session")
def admin(postgres):
    """Create a database for this module, and return its URL as a superuser."""
    with connect(postgres.url()) as server:
        server.execute("DROP DATABASE IF EXISTS engine_test WITH (FORCE)")
        server.execute("CREATE DATABASE engine_test")
        server.execute("CREATE ROLE engine_reader LOGIN")
    url, rows = postgres.url("engine_test"), visits()
    with connect(url) as server:
        server.execute(SETUP)
        with server.cursor().copy("COPY clinic.visits (patient, ward, cost, kept) FROM STDIN") as copy:
            for row in zip(*rows.values(), strict=True):
                copy.write_row(row)
    return url


@pytest.fixture
def url(admin):
    """Return the URL with a read-only role."""
    return admin.replace("postgres@", "engine_reader@")


VISITS = {"visits": TableSource("clinic.visits", TYPES)}


@pytest.fixture
def engine(url):
    with Postgres(VISITS, url=url) as found:
        yield found


SCAN = Scan("visits", tuple(Column(name, kind) for name, kind in TYPES.items()), UnitKey((Column("patient", N),)), ROWS)
COST, WARD = Column("cost", R), Column("ward", X)
BY_WARD = (("ward", WARD),)
SIZES = Grid(0, 125, "1/8")
LIMIT = ContributionBounds(2, 5)
DECLARED = PublicGroups((("A", "B", "Ä", "b", " ", "other", None),))
QUESTIONS = {
    "whole": Question(SCAN, (), PublicGroups(()), LIMIT, (CountUnits(), Count(), Count(COST), Sum(COST, SIZES))),
    "declared": Question(SCAN, BY_WARD, DECLARED, LIMIT, (CountUnits(), Count(), Sum(COST, SIZES))),
    "discovered": Question(SCAN, BY_WARD, SelectedGroups(10), LIMIT, (SelectionWeight(), Count(), Sum(COST, SIZES))),
    "cells": Question(SCAN, BY_WARD, DECLARED, LIMIT, (CountUnits(), HistogramTree(COST, SIZES, 11, 3))),
    "values": Question(SCAN, BY_WARD, DECLARED, LIMIT, (CountDistinct(Column("kept", B)), Count())),
}
COUNT = Question(SCAN, (), PublicGroups(()), LIMIT, (CountUnits(),))


def comparable(found):
    """Return totals in a form that does not depend on the order of keys."""
    rows = dict(zip(found.keys, map(tuple, found.values.tolist()), strict=True))
    cells = {}
    for place, tally in found.cell_counts.items():
        each = zip(tally.groups.tolist(), tally.cells.tolist(), tally.weights.tolist(), strict=True)
        cells[place] = sorted((str(found.keys[group]), cell, weight) for group, cell, weight in each)
    return rows, cells


@pytest.mark.parametrize("name", QUESTIONS)
def test_totals_are_those_of_duckdb(engine, name):
    with DuckDB({"visits": TableSource(pa.table(visits()), TYPES)}) as other:
        wanted = comparable(other.totals(QUESTIONS[name]))
    assert comparable(engine.totals(QUESTIONS[name])) == wanted
    assert sum(sum(row) for row in wanted[0].values()) > 100


def shown(url, place, **types):
    """Return a table's columns as questions see them."""
    with Postgres({"t": TableSource(place, types)}, url=url) as engine:
        return sorted(engine.query(f"SELECT * FROM {engine.dialect.table_source('t')} AS t").to_pylist(), key=str)


PLACES = {
    "clinic.visits": ROWS,
    "CLINIC . Visits": ROWS,
    '"clinic"."visits"': ROWS,
    "seen": ROWS,
    "public.seen": ROWS,
    "parts": 3,
    "kept": 3,
}


@pytest.mark.parametrize("place", PLACES)
def test_tables_views_and_partitions_are_read(url, place):
    found = shown(url, place, patient=N, ward=X)
    assert len(found) == PLACES[place]
    assert set(found[0]) == {"patient", "ward"}


def test_names_are_quoted_as_in_sql_and_columns_found_in_any_case(url):
    assert shown(url, '"Odd Name"', **{"PATIENT": N, 'A "B" c': X}) == [{"PATIENT": 1, 'A "B" c': "x"}]


def test_a_table_of_another_server_is_read(admin, url, postgres):
    with connect(admin) as server:
        if not server.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'postgres_fdw'").fetchall():
            pytest.skip("the extension postgres_fdw is not installed")
        server.execute("CREATE EXTENSION postgres_fdw")
        options = f"host '127.0.0.1', port '{postgres.port}', dbname 'engine_test'"
        server.execute(f"CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({options})")
        mapping = "OPTIONS (user 'postgres', password_required 'false')"
        server.execute(f"CREATE USER MAPPING FOR PUBLIC SERVER elsewhere {mapping}")
        table = "CREATE FOREIGN TABLE far (name text, size integer) SERVER elsewhere OPTIONS (table_name 'regions')"
        server.execute(table)
        server.execute("GRANT SELECT ON far TO engine_reader")
    found = shown(url, "far", name=X, size=N)
    assert {row["name"] for row in found} == {"A", "B", "Ä", None}


def test_public_tables_expose_their_columns_values_and_fanout(url):
    rows = {"name": ["A", "B", "Ä", None], "region": ["west", "west", "south", "west"], "size": [1, 2, None, 2]}
    with (
        Postgres({"r": TableSource("regions")}, url=url) as engine,
        DuckDB({"r": TableSource(pa.table(rows))}) as other,
    ):
        for each in (engine, other):
            assert each.columns("r") == {"name": X, "region": X, "size": N}
            assert each.values("r", "name") == ["A", "B", "Ä"]
            assert each.values("r", "size") == [1, 2]
            assert each.fanout("r", ()) == 4
            assert each.fanout("r", ("region",)) == 3
            assert each.fanout("r", ("region", "size")) == 2
            assert sorted(each.rows("r", ("size", "name"), 9).column("name").drop_null().to_pylist()) == ["A", "B", "Ä"]
            assert each.rows("r", ("size",), 2).num_rows == 2
            with pytest.raises(KeyError, match="column nothing of table r"):
                each.values("r", "nothing")


WRONG = {
    "no table": ("visit", {"x": N}, "table t: visit does not exist in the database. Did you mean clinic.visits?"),
    "another case": (
        '"Clinic".visits',
        {"x": N},
        'table t: "Clinic".visits does not exist in the database. Did you mean clinic.visits?',
    ),
    "quotes": (
        "odd_name",
        {"x": N},
        'table t: odd_name does not exist in the database. Did you mean public."Odd Name"?',
    ),
    "nothing near": ("zzzz.qqqq", {"x": N}, "zzzz.qqqq does not exist in the database. Correct the name"),
    "a file": ("visits.parquet/", {"x": N}, "table t: source must be the name of a table or view in the database"),
    "a server": ("postgresql://db/clinic", {"x": N}, "source must be the name of a table or view in the database"),
    "no name": (5, {"x": N}, "source must be the name of a table or view in the database"),
    "a database too": ("engine_test.clinic.visits", {"x": N}, "source must be the name of a table or view"),
    "no column": ("seen", {"patent": N}, 'column patent: it does not exist in the source. The source has "patient".'),
    "two columns": ("twice", {"x": N}, "table t, column x: the source has several columns of this name"),
    "money": ("twice", {"amount": R}, "table t, column amount: it is stored as money, which is not supported."),
    "lists": ("twice", {"tags": X}, "table t, column tags: it is stored as text[], which is not supported."),
    "a type of one's own": (
        "shapes",
        {"x": R},
        'column x: it is stored as public."numeric", which is not supported.',
    ),
    "a type": (
        "twice",
        {"kept": D},
        'column kept: cannot cast boolean to date. Declare type = "boolean"',
    ),
    "no right": (
        "hidden",
        {"y": N},
        'table t, column y: permission denied. Run GRANT SELECT ON "public"."hidden" TO',
    ),
    "no schema": (
        "locked.t",
        {"x": N},
        'permission denied for schema locked. Run GRANT USAGE ON SCHEMA "locked" TO',
    ),
}


NO_NAMES = ("a file", "a server", "no name", "a database too")  # wrong whatever the database has


@pytest.mark.parametrize("case", WRONG)
def test_a_mismatched_table_is_reported_with_cause_and_fix(admin, url, case):
    with connect(admin) as server:
        server.execute("CREATE SCHEMA IF NOT EXISTS locked; CREATE TABLE IF NOT EXISTS locked.t (x integer)")
    place, types, words = WRONG[case]
    if case in NO_NAMES:
        with pytest.raises(PolicyError) as caught:
            Postgres({"t": TableSource(place, types)}, url=url)
    else:
        with pytest.warns(UserWarning, match="Queries that use it are refused"):
            engine = Postgres({"t": TableSource(place, types)}, url=url)
        with engine, pytest.raises(PolicyError) as caught:
            engine.fanout("t", tuple(types))
    assert words in str(caught.value)


def test_columns_may_be_granted_one_by_one(url):
    assert shown(url, "hidden", x=N) == []


def test_opening_a_table_reads_no_row(url):
    with Postgres({"t": TableSource("touchy", {"x": N})}, url=url) as engine:
        assert engine.columns("t") == {"x": N}
        with pytest.raises(EngineError, match=r"the engine failed: the server reported an error \(SQLSTATE P0001"):
            engine.values("t", "x")


def test_server_messages_are_kept_out_of_logs(url, caplog):
    """It quotes values: neither the text, nor what led to it, nor a log of both may have one."""
    with Postgres({"t": TableSource("numbers", {"x": N})}, url=url) as engine:
        with pytest.raises(EngineError, match=r"SQLSTATE 22P02, 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC") as caught:
            engine.values("t", "x")
        logging.getLogger("discreet").error("a question failed", exc_info=caught.value)
        with pytest.raises(EngineError, match=r"cannot be read \(KeyError\)") as caught:
            engine.query("SELECT 1.5 AS x")
        assert caught.value.__cause__ is None
    assert "SQLSTATE 22P02" in caplog.text
    assert "secret-7f3a" not in caplog.text


def test_a_time_zone_unknown_to_the_server_is_reported(url):
    with pytest.raises(PolicyError, match=r'timezone "Mars/Crater" is unknown to PostgreSQL'):
        Postgres(VISITS, url=url, timezone="Mars/Crater")


def test_a_database_of_another_encoding_is_refused(admin, url):
    with connect(admin) as server:
        server.execute("DROP DATABASE IF EXISTS ascii_test WITH (FORCE)")
        server.execute("CREATE DATABASE ascii_test ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(PolicyError, match=r"encoding SQL_ASCII .* is not supported"):
        Postgres({"t": TableSource("pg_class", {"x": N})}, url=url.replace("engine_test", "ascii_test"))


def test_a_role_that_only_reads_gives_no_warning(url):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Postgres(VISITS, url=url).close()


HELPER = "CREATE ROLE helper {}; GRANT helper TO mighty"
ROLES = {
    "a superuser": ("SUPERUSER", "", "It can do everything, as a superuser."),
    "one who makes roles": ("CREATEROLE CREATEDB", "", "It can create roles; create databases."),
    "one who bypasses": ("BYPASSRLS REPLICATION", "", "It can bypass row-level security; replicate the whole server."),
    "one who writes files": ("", "GRANT pg_write_server_files TO mighty", "It can act as pg_write_server_files."),
    "one who inserts": (
        "",
        "GRANT INSERT, UPDATE ON clinic.visits TO mighty",
        (
            'It can INSERT, UPDATE on "clinic"."visits". Use a read-only role instead: '
            'CREATE ROLE discreet_reader LOGIN; GRANT USAGE ON SCHEMA "clinic" TO discreet_reader; GRANT SELECT ON '
            '"clinic"."visits" TO discreet_reader; ALTER ROLE discreet_reader SET default_transaction_read_only = on;'
        ),
    ),
    "one who creates": ("", "GRANT CREATE ON SCHEMA clinic TO mighty", "It can create in schema clinic."),
    "one who makes schemas": (
        "",
        "GRANT CREATE ON DATABASE engine_test TO mighty",
        "It can create schemas in the database.",
    ),
    "one who changes some columns": (
        "",
        "GRANT UPDATE (cost), INSERT (cost, kept) ON clinic.visits TO mighty",
        'It can INSERT, UPDATE on "clinic"."visits".',
    ),
    "one who can become another": (
        "NOINHERIT",
        HELPER.format("")
        + "; GRANT TRIGGER, INSERT ON clinic.visits TO helper; GRANT CREATE ON SCHEMA clinic TO helper",
        'It can create in schema clinic; INSERT, TRIGGER on "clinic"."visits".',
    ),
    "one who can become a superuser": (
        "NOINHERIT",
        HELPER.format("SUPERUSER"),
        "It can do everything, as helper, a superuser.",
    ),
    "one who can become mighty": (
        "",
        HELPER.format("CREATEROLE"),
        "It can create roles, as helper.",
    ),
    "one who was one before": (
        "SUPERUSER",
        (
            "CREATE ROLE helper; GRANT SELECT ON clinic.visits TO helper; GRANT USAGE ON SCHEMA clinic TO helper; "
            "ALTER ROLE mighty SET role = helper"
        ),
        "It can do everything, as a superuser.",
    ),
    "one who writes elsewhere": (
        "",
        'GRANT UPDATE ON "Odd Name" TO mighty; GRANT DELETE ON regions TO PUBLIC',
        'It can UPDATE on "public"."Odd Name"; DELETE on "public"."regions".',
    ),
    "one who writes everywhere": (
        "",
        "GRANT INSERT ON ALL TABLES IN SCHEMA public TO mighty; GRANT DELETE ON clinic.visits TO mighty",
        ' on "clinic"."visits"; INSERT on "public"."Odd Name"; INSERT on ',
    ),
    "an owner": (
        "",
        "ALTER TABLE clinic.visits OWNER TO mighty",
        'It can change and drop "clinic"."visits", which it owns.',
    ),
}


@pytest.mark.parametrize("case", ROLES)
def test_a_role_that_can_do_more_than_read_is_warned_of(admin, case):
    options, grant, words = ROLES[case]
    with connect(admin) as server:
        server.execute(f"CREATE ROLE mighty LOGIN {options}")
        server.execute("GRANT USAGE ON SCHEMA clinic TO mighty; GRANT SELECT ON clinic.visits TO mighty")
        if grant:
            server.execute(grant)
        try:
            with pytest.warns(UserWarning, match="the role has more privileges than reading") as warned:
                Postgres(VISITS, url=admin.replace("postgres@", "mighty@")).close()
        finally:
            server.execute("ALTER TABLE clinic.visits OWNER TO postgres; REVOKE DELETE ON regions FROM PUBLIC")
            server.execute("REVOKE CREATE ON DATABASE engine_test FROM mighty; DROP OWNED BY mighty; DROP ROLE mighty")
            if "helper" in grant:
                server.execute("DROP OWNED BY helper; DROP ROLE helper")
    assert words in str(warned[0].message)
    assert ("more tables" in str(warned[0].message)) == ("everywhere" in case)
    assert len(warned) == 1


def test_what_a_role_can_do_behind_a_view_is_warned_of(admin):
    with connect(admin) as server:
        server.execute(
            "CREATE ROLE mighty LOGIN; GRANT SELECT ON seen TO mighty; GRANT INSERT ON clinic.visits TO mighty"
        )
        try:
            with pytest.warns(UserWarning, match=r'It can INSERT on "clinic"."visits"\. '):
                Postgres({"t": TableSource("seen", {"patient": N})}, url=admin.replace("postgres@", "mighty@")).close()
        finally:
            server.execute("DROP OWNED BY mighty; DROP ROLE mighty")


def test_rows_that_the_server_hides_are_warned_of(admin, url):
    with connect(admin) as server:
        server.execute("CREATE TABLE guarded AS SELECT 1 AS x; ALTER TABLE guarded ENABLE ROW LEVEL SECURITY")
        server.execute("GRANT SELECT ON guarded TO engine_reader")
    with pytest.warns(
        UserWarning, match=r'table t: row-level security hides rows of "public"."guarded" from this role'
    ):
        assert shown(url, "guarded", x=N) == []


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO clinic.visits VALUES (1)",
        "CREATE TABLE public.more (x integer)",
        "SELECT 1; DROP TABLE clinic.visits",
        "COMMIT",
        "COMMIT; DELETE FROM clinic.visits",
        "SELECT 1 AS x; SELECT 2 AS x",
        "SELECT nextval('public.counter')",
        "DELETE FROM clinic.visits",
        "WITH gone AS (DELETE FROM clinic.visits RETURNING 1) SELECT COUNT(*) FROM gone",
        "SELECT set_config('transaction_read_only', 'off', true)",
    ],
)
def test_a_role_that_may_write_only_reads(admin, sql):
    with connect(admin) as server:
        server.execute("CREATE SEQUENCE IF NOT EXISTS counter")
    with pytest.warns(UserWarning, match="as a superuser"):
        engine = Postgres(VISITS, url=admin)
    with engine:
        with pytest.raises(EngineError):
            engine.query(sql)
        assert engine.totals(COUNT).values.tolist() == [[211]]
    with connect(admin) as server:
        assert server.execute("SELECT COUNT(*) FROM clinic.visits").fetchone() == (ROWS,)


ODD = {
    "search_path": "evil, pg_catalog",
    "datestyle": "German, MDY",
    "timezone": "'Asia/Tokyo'",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "default_transaction_isolation": "'read committed'",
    "client_encoding": "LATIN1",
    "row_security": "off",
    "extra_float_digits": "-5",
}


def test_settings_of_a_role_change_no_answer(admin, url):
    """Another way to write dates, other time zones, other functions under the same names: none of it counts."""
    with connect(admin) as server:
        server.execute("CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO PUBLIC")
        server.execute("CREATE FUNCTION evil.lower(text) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$")
        server.execute("CREATE TABLE evil.visits AS SELECT 1 AS patient")
        server.execute("CREATE TABLE moments (at timestamptz, words text); GRANT SELECT ON moments TO engine_reader")
        server.execute("INSERT INTO moments VALUES ('2026-07-01 10:00+00', '2026-02-01 10:00:00+00')")
        for name, value in ODD.items():
            server.execute(f"ALTER ROLE engine_reader SET {name} = {value}")
    try:
        sources = {**VISITS, "m": TableSource("public.moments", {"at": S, "words": S})}
        with Postgres(sources, url=url, timezone="Europe/Berlin") as engine:
            found = engine.query(f"SELECT * FROM {engine.dialect.table_source('m')} AS m").to_pydict()
            assert {name: str(values[0]) for name, values in found.items()} == {
                "at": "2026-07-01 12:00:00",
                "words": "2026-02-01 11:00:00",
            }
            words = engine.query(r"SELECT lower('A') AS x, '\' AS y, NULL = NULL AS z").to_pylist()
            assert words == [{"x": "a", "y": "\\", "z": None}]
            kind = "SELECT current_setting('transaction_isolation') || current_setting('transaction_read_only') AS x"
            assert engine.query(kind).to_pydict() == {"x": ["repeatable readon"]}
            assert engine.totals(COUNT).values.tolist() == [[211]]
    finally:
        with connect(admin) as server:
            server.execute("ALTER ROLE engine_reader RESET ALL")


def test_a_setting_that_the_server_ignores_is_detected(url, monkeypatch):
    monkeypatch.setitem(session._SETTINGS, "extra_float_digits", "+1")
    with pytest.raises(EngineError, match="setting extra_float_digits"):
        Postgres(VISITS, url=url)


def test_all_selects_of_a_question_see_one_snapshot(admin, engine, monkeypatch):
    """While a question runs, between its SELECTs, somebody adds rows that the next question sees."""
    question = QUESTIONS["cells"]
    before = comparable(engine.totals(question))
    read, asked = session.Snapshot.run_select, []

    def meddled(snapshot, sql):
        asked.append(sql)
        with connect(admin) as server:
            server.execute("INSERT INTO clinic.visits SELECT -g, 'A', 1 FROM generate_series(1, 50) AS g")
        return read(snapshot, sql)

    monkeypatch.setattr(session.Snapshot, "run_select", meddled)
    try:
        assert comparable(engine.totals(question)) == before
        assert len(asked) == 2
        monkeypatch.undo()
        assert comparable(engine.totals(question)) != before
    finally:
        with connect(admin) as server:
            server.execute("DELETE FROM clinic.visits WHERE patient < 0")


@pytest.fixture
def turns(admin):
    """Make a table that a test changes, and return a connection of who may."""
    with connect(admin) as server:
        server.execute(
            "DROP TABLE IF EXISTS turns, turned; CREATE TABLE turns AS SELECT g AS x, 2 * g AS y FROM "
            "generate_series(1, 3) AS g; GRANT SELECT ON turns TO engine_reader"
        )
        yield server
        server.execute("DROP TABLE IF EXISTS turns, turned")


TURNS = {"t": TableSource("turns", {"x": N, "y": N})}


def test_a_column_that_gets_another_type_is_read_as_that_type(turns, url):
    with Postgres(TURNS, url=url) as engine:
        turns.execute("ALTER TABLE turns ADD COLUMN z integer; ALTER TABLE turns ALTER COLUMN y TYPE text")
        assert engine.values("t", "y") == [2, 4, 6]


def test_a_renamed_column_stops_the_questions_that_use_it_and_no_others(turns, url):
    with Postgres(TURNS, url=url) as engine:
        turns.execute("ALTER TABLE turns RENAME COLUMN y TO yy")
        assert engine.values("t", "x") == [1, 2, 3]
        with pytest.raises(PolicyError, match=r'table t, column y: .* The source has "yy"'):
            engine.values("t", "y")
        turns.execute("ALTER TABLE turns RENAME COLUMN yy TO y")
        assert engine.values("t", "y") == [2, 4, 6]


def test_an_engine_opens_without_a_column_that_is_not_there(turns, url):
    turns.execute("ALTER TABLE turns DROP COLUMN y")
    with pytest.warns(UserWarning, match="table t, column y: it does not exist"):
        engine = Postgres(TURNS, url=url)
    with engine:
        assert engine.values("t", "x") == [1, 2, 3]
        with pytest.raises(PolicyError, match="column y"):
            engine.values("t", "y")


def test_a_right_to_a_column_that_is_taken_away_stops_the_questions_that_use_it(turns, url):
    with Postgres(TURNS, url=url) as engine:
        turns.execute("REVOKE SELECT ON turns FROM engine_reader; GRANT SELECT (x) ON turns TO engine_reader")
        assert engine.values("t", "x") == [1, 2, 3]
        with pytest.raises(PolicyError, match=r"column y: permission denied\. Run GRANT SELECT"):
            engine.values("t", "y")
        turns.execute("REVOKE SELECT (x) ON turns FROM engine_reader")
        with pytest.raises(PolicyError, match="column x: permission denied"):
            engine.values("t", "x")


def test_a_table_that_is_dropped_stops_its_questions_until_it_is_there_again(turns, url):
    with Postgres({**TURNS, **VISITS}, url=url) as engine:
        turns.execute("ALTER TABLE turns RENAME TO turned")
        with pytest.raises(PolicyError, match="table t: turns does not exist"):
            engine.fanout("t", ())
        assert engine.totals(COUNT).values.tolist() == [[211]]
        turns.execute("ALTER TABLE turned RENAME TO turns")
        assert engine.fanout("t", ()) == 3


def test_preparing_a_question_reads_no_row(admin, url):
    """A function that stands behind a view fails for every row: to prepare calls it for none."""
    with Postgres({"t": TableSource("touchy", {"x": N})}, url=url) as engine:
        with engine.prepare({"t": frozenset({"x"})}):
            pass
        with pytest.raises(EngineError, match="the server reported an error"):
            engine.values("t", "x")


def test_a_question_is_prepared_on_one_snapshot_under_read_locks_only(turns, url):
    """Between a charge and the read nobody can change the table's columns, and what is written is not seen."""
    question = Question(
        Scan("t", (Column("x", N), Column("y", N)), UnitKey((Column("x", N),)), 100),
        (),
        PublicGroups(()),
        ContributionBounds(1, 1),
        (Count(),),
    )
    modes = "SELECT DISTINCT mode FROM pg_locks WHERE relation = 'turns'::regclass AND granted"
    with Postgres(TURNS, url=url) as engine, engine.prepare({"t": frozenset({"x", "y"})}) as reader:
        assert turns.execute(modes).fetchall() == [("AccessShareLock",)]
        turns.execute("INSERT INTO turns VALUES (4, 4)")
        with turns.transaction(force_rollback=True), pytest.raises(driver().errors.LockNotAvailable):
            turns.execute("SET LOCAL lock_timeout = 1; ALTER TABLE turns DROP COLUMN y")
        assert reader.totals(question).values.tolist() == [[3]]
        assert reader.totals(question).values.tolist() == [[3]]


@pytest.mark.parametrize("own", ["0", "20s", "2min"])
def test_the_shorter_of_the_roles_time_limit_and_ours_applies(admin, url, own):
    limits = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    with connect(admin) as server:
        for name in limits:
            server.execute(f"ALTER ROLE engine_reader SET {name} = '{own}'")
    try:
        with Postgres(VISITS, url=url, tuning=Tuning(seconds=60)) as engine, engine._session.snapshot(60) as snapshot:
            snapshot.run_select("SELECT 1::bigint AS x")
            asked = "SELECT name, setting::bigint FROM pg_settings WHERE name = ANY(%s)"
            found = dict(snapshot.catalog_rows(asked, [list(limits)]))
    finally:
        with connect(admin) as server:
            server.execute("ALTER ROLE engine_reader RESET ALL")
    if own == "20s":
        assert set(found.values()) == {20_000}
    else:
        assert 0 < found["statement_timeout"] <= 60_000
        assert found["lock_timeout"] == 30_000
        assert found["idle_in_transaction_session_timeout"] == (120_000 if own == "2min" else 310_000)


FIT = Scan("many", (Column("unit", N), Column("x", R), Column("n", N)), UnitKey((Column("unit", N),)), 10**7)
MANY = {"many": TableSource("many", {"unit": N, "x": R, "n": N})}
SLOW = {"slow": TableSource("slow", {"patient": N}), **VISITS}


def test_rows_come_in_batches_unit_by_unit(engine):
    with DuckDB({"visits": TableSource(pa.table(visits()), TYPES)}) as other:
        sides = [list(each.batches(SCAN, ("cost", "kept"), 500)) for each in (engine, other)]
    rows = []
    for batches in sides:
        numbers, places = (np.concatenate(parts) for parts in zip(*batches, strict=True))
        assert numbers.dtype == np.float64
        assert (np.diff(places) >= 0).all()
        rows.append(sorted(zip(places.tolist(), map(tuple, numbers.tolist()), strict=True)))
    assert rows[0] == rows[1]
    assert len(rows[0]) > 1000
    assert max(len(numbers) for numbers, _ in sides[0]) == 500


def test_rows_that_were_not_fetched_stay_on_the_server(admin, url):
    """The server waits with the rest: the memory that batches need does not grow with the rows."""
    with Postgres(MANY, url=url) as engine:
        batches = engine.batches(FIT, ("x", "n"), 1000)
        numbers, places = next(batches)
        assert numbers[0].tolist() == [1.0, 1.0]
        assert places[:4].tolist() == [1, 1, 2, 2]
        with connect(admin) as server:
            running(server, "ClientWrite")
        batches.close()
        assert engine.fanout("many", ("unit",)) == 3


def in_thread(call):
    """Begin something that fails, and return what waits for the words of its error."""
    words = []

    def run():
        try:
            call()
        except EngineError as error:
            words.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()

    def wait():
        thread.join(240)
        return words[0]

    return wait


def running(server, what="PgSleep"):
    """Wait until a question of the engine waits for something, and return the number of its process on the server."""
    asked = "SELECT pid FROM pg_stat_activity WHERE usename = 'engine_reader' AND wait_event = %s"
    for _ in range(12_000):  # 240 s, which nothing but a real hang reaches
        if found := server.execute(asked, [what]).fetchall():
            return found[0][0]
        time.sleep(0.02)
    raise AssertionError("no question is under way")


def connections(server):
    asked = "SELECT pid FROM pg_stat_activity WHERE usename = 'engine_reader'"
    return [number for (number,) in server.execute(asked).fetchall()]


def only_connection(server):
    """Return the one connection of the engine, once the server has ended those of earlier tests."""
    for _ in range(600):
        if len(found := connections(server)) == 1:
            return found[0]
        time.sleep(0.1)
    raise AssertionError(found)


def test_a_question_that_is_under_way_is_stopped_by_closing(admin, url):
    with Postgres(SLOW, url=url) as engine, connect(admin) as server:
        failed = in_thread(lambda: engine.fanout("slow", ()))
        running(server)
        engine.close()
        assert "or was cancelled (SQLSTATE 57014" in failed()
        engine.close()
        with pytest.raises(EngineError, match=r"the engine is closed"):
            engine.fanout("slow", ())


def test_closing_works_while_rows_are_left(url, monkeypatch):
    monkeypatch.setattr(server_session, "_STOP_TIMEOUT", 0.2)
    engine = Postgres(MANY, url=url)
    batches = engine.batches(FIT, ("x",), 1000)
    next(batches)
    engine.close()
    with pytest.raises(EngineError):
        list(batches)


def test_a_question_whose_connection_is_ended_fails_and_the_next_one_works(admin, url):
    with Postgres(SLOW, url=url) as engine, connect(admin) as server:
        failed = in_thread(lambda: engine.fanout("slow", ()))
        server.execute("SELECT pg_terminate_backend(%s)", [running(server)])
        assert "the server ended the connection (SQLSTATE 57P01" in failed()
        assert engine.totals(COUNT).values.tolist() == [[211]]
        process = only_connection(server)
        server.execute("SELECT pg_terminate_backend(%s)", [process])  # between two questions: nobody sees it
        assert engine.totals(COUNT).values.tolist() == [[211]]


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_restart_of_the_server_ends_a_question_and_not_the_engine(postgres, admin, url, how):
    with Postgres(SLOW, url=url) as engine:
        failed = in_thread(lambda: engine.fanout("slow", ()))
        with connect(admin) as server:
            running(server)
        postgres.halt(how)
        try:
            assert "the engine failed" in failed()
            with pytest.raises(Unavailable) as away:
                engine.totals(COUNT)
            assert "database engine_test: cannot connect to the server. Check the host" in away.value.reason
        finally:
            postgres.start()
        assert engine.totals(COUNT).values.tolist() == [[211]]


def test_a_question_that_takes_too_long_is_stopped(url):
    with Postgres(SLOW, url=url, tuning=Tuning(threads=1)) as engine:
        engine.seconds = 0.5
        with pytest.raises(EngineError, match="exceeded the time limit or"):
            engine.fanout("slow", ())
        engine.seconds = 600
        assert engine.totals(COUNT).values.tolist() == [[211]]
        assert engine.query("SHOW max_parallel_workers_per_gather").column(0).to_pylist() == ["0"]


def test_the_time_limit_applies_to_the_whole_question(engine):
    with engine._session.snapshot(100) as snapshot:
        left = []
        for _ in range(3):
            asked = "SELECT setting::bigint AS x FROM pg_settings WHERE name = 'statement_timeout'"
            left += snapshot.run_select(asked).column("x").to_pylist()
            time.sleep(0.05)
    assert 100_000 >= left[0] > left[1] + 45 > left[2] + 90
    engine.seconds = 0.001
    with pytest.raises(EngineError, match="time limit"):
        engine.totals(QUESTIONS["cells"])


def test_an_unresponsive_server_does_not_block_the_engine(admin, url, monkeypatch):
    """A process that no longer answers keeps its connection open: only the engine's own clock ends the question."""
    limit_next = session.Snapshot._set_statement_timeout
    with Postgres(SLOW, url=url) as engine, connect(admin) as server:
        process = only_connection(server)

        def stopped(snapshot):
            limit_next(snapshot)
            os.kill(process, signal.SIGSTOP)

        try:
            with monkeypatch.context() as patched:
                patched.setattr(session, "_GRACE", 0.5)
                patched.setattr(session.Snapshot, "_set_statement_timeout", stopped)
                engine.seconds = 2
                with pytest.raises(EngineError, match="the engine failed"):
                    engine.fanout("slow", ())
        finally:
            os.kill(process, signal.SIGCONT)
        engine.seconds = 600
        assert engine.totals(COUNT).values.tolist() == [[211]]


def test_a_server_that_was_unresponsive_before_does_not_block_the_engine(admin, url, monkeypatch):
    with Postgres(VISITS, url=url) as engine, connect(admin) as server:
        process = only_connection(server)
        os.kill(process, signal.SIGSTOP)
        try:
            with monkeypatch.context() as patched:
                patched.setattr(session, "_GRACE", 0.2)
                patched.setattr(session, "_PREPARE_TIMEOUT", 0.3)
                with pytest.raises(Unavailable) as away:
                    engine.totals(COUNT)
            assert "time limit" in away.value.reason
        finally:
            os.kill(process, signal.SIGCONT)
        assert engine.totals(COUNT).values.tolist() == [[211]]


def test_a_question_that_exceeds_the_disk_fails_and_the_next_works(admin, url):
    with connect(admin) as server:
        server.execute("ALTER ROLE engine_reader SET temp_file_limit = '100kB'")
        server.execute("ALTER ROLE engine_reader SET work_mem = '64kB'")
    try:
        with Postgres({**MANY, **VISITS}, url=url) as engine:
            with pytest.raises(EngineError, match="exceeds a configured limit of the server"):
                list(engine.batches(FIT, ("x",), 1000))
            assert engine.totals(COUNT).values.tolist() == [[211]]
    finally:
        with connect(admin) as server:
            server.execute("ALTER ROLE engine_reader RESET ALL")


def test_a_lock_on_a_table_does_not_block_a_question_for_ever(admin, engine, monkeypatch):
    monkeypatch.setattr(session, "_LOCK_TIMEOUT", 0.3)
    with connect(admin) as server, server.transaction():
        server.execute("LOCK TABLE clinic.visits IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Unavailable, match=r"table visits is locked by another session.* Nothing was charged"):
            engine.totals(COUNT)
    assert engine.totals(COUNT).values.tolist() == [[211]]


def test_threads_ask_one_after_the_other(engine):
    found = []
    threads = [threading.Thread(target=lambda: found.append(engine.totals(COUNT).values.tolist())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert found == [[[211]]] * 8


def test_a_child_process_does_not_share_the_connection(engine):
    process = os.fork()
    if not process:
        code = 1
        try:
            engine.totals(COUNT)
        except EngineError as error:
            code = 0 if "opened in another process" in str(error) else 2
        engine.close()
        os._exit(code)
    assert os.waitpid(process, 0)[1] == 0
    assert engine.totals(COUNT).values.tolist() == [[211]]


def test_an_unreferenced_engine_closes_its_connection(admin, url):
    with connect(admin) as server:
        engine = Postgres(VISITS, url=url)
        only_connection(server)
        del engine
        for _ in range(4800):
            if not connections(server):
                break
            time.sleep(0.05)
        assert connections(server) == []


def test_types_that_no_question_can_have_are_an_error(engine):
    with pytest.raises(EngineError, match="the engine failed"):
        engine.query("SELECT 1.5 AS x")
    assert engine.query("SELECT 1::smallint AS x").to_pydict() == {"x": [1]}
