"""Drafts from a real PostgreSQL database: names and types come from its catalog, and no row is read."""

import pytest

from discreet.kernel.errors import PolicyError
from discreet.policy.drafting.draft import draft
from discreet.postgres.server import connect

DATABASE = "drafting"


@pytest.fixture(scope="session")
def database(postgres):
    with connect(postgres.url()) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        connection.execute(f"CREATE DATABASE {DATABASE}")
    url = postgres.url(DATABASE)
    with connect(url) as connection:
        connection.execute(
            """
            CREATE DOMAIN age AS INTEGER CHECK (value >= 0);
            CREATE TYPE ward AS ENUM ('secret ward', 'B');
            CREATE TABLE visits (patient_id BIGINT, years age, ward ward, cost NUMERIC(8, 2), seen TIMESTAMPTZ,
                raw BYTEA, "Odd name" TEXT);
            CREATE SCHEMA billing;
            CREATE TABLE billing.claims (patient_id BIGINT, amount MONEY, day DATE) PARTITION BY RANGE (day);
            CREATE TABLE billing.claims_new PARTITION OF billing.claims FOR VALUES FROM ('2020-01-01') TO (MAXVALUE);
            CREATE TABLE hidden (patient_id BIGINT);
            CREATE TABLE "Odd Table" (patient_id BIGINT);
            CREATE TABLE bills (bill INTEGER PRIMARY KEY, patient_id BIGINT UNIQUE, mail TEXT UNIQUE, day DATE,
                room INT, part INT, UNIQUE (day, room));
            CREATE UNIQUE INDEX ON bills (part) WHERE room > 7;
            DROP ROLE IF EXISTS drafter;
            CREATE ROLE drafter LOGIN;
            GRANT USAGE ON SCHEMA billing TO drafter;
            GRANT SELECT ON visits, billing.claims, "Odd Table", bills TO drafter;
            """
        )
    return postgres.url(DATABASE, "drafter")


def lines(text):
    return [line.split("  #")[0] for line in text.splitlines()]


def test_tables_that_the_user_may_read_are_drafted_with_their_types(database):
    text = draft([database], unit="patient_id")
    assert 'engine   = "postgresql"' in text
    assert f'connection = "{database}"' in lines(text)
    assert [line for line in lines(text) if line.startswith(("[tables", "source"))] == [
        *('[tables."Odd Table"]', r'source = "public.\"Odd Table\""', '[tables."Odd Table".columns]'),
        *("[tables.bills]", 'source = "public.bills"', "[tables.bills.columns]"),
        *("[tables.visits]", 'source = "public.visits"', "[tables.visits.columns]"),
        *("[tables.billing_claims]", 'source = "billing.claims"', "[tables.billing_claims.columns]"),
    ]
    for column in ('patient_id = { type = "integer"', 'years = { type = "integer"', 'seen = { type = "timestamp"'):
        assert column in text
    assert "secret ward" not in text  # the labels of an enumeration may be data


def test_named_tables_alone_are_drafted(database):
    assert "[tables.visits]" not in draft([database, "billing.claims"], unit="patient_id")
    assert "Odd Table" in draft([database, "odd table"], unit="patient_id")
    with pytest.raises(PolicyError, match=r'table "visit" does not exist.*; did you mean "visits"'):
        draft([database, "visit"])
    with pytest.raises(PolicyError, match='table "hidden" does not exist'):
        draft([database, "hidden"])


def test_server_refusals_are_reported_in_our_own_words(postgres, database):
    with connect(postgres.url(DATABASE)) as server:
        server.execute("REVOKE SELECT ON pg_attribute FROM PUBLIC")
        try:
            with pytest.raises(PolicyError, match=r"drafting: .*SQLSTATE 42501"):
                draft([database])
        finally:
            server.execute("GRANT SELECT ON pg_attribute TO PUBLIC")


def test_a_user_defined_type_is_not_mistaken_for_another(postgres, database):
    with connect(postgres.url(DATABASE)) as server:
        server.execute('CREATE TYPE public."numeric" AS (x integer)')
        server.execute('CREATE TABLE shapes (p bigint, x public."numeric")')
        try:
            text = draft([postgres.url(DATABASE), "shapes"], unit="p")
        finally:
            server.execute('DROP TABLE shapes; DROP TYPE public."numeric"')
    assert '# x is omitted: type public."numeric" is not supported' in text


def test_a_password_in_the_url_is_refused(database):
    with pytest.raises(PolicyError, match="must not contain a password") as caught:
        draft([database.replace("drafter@", "drafter:hunter2@")])
    assert "hunter2" not in str(caught.value)


def test_a_column_that_the_database_keeps_unique_is_declared_so_but_not_the_unit(database):
    text = draft([database, "bills"], unit="patient_id")
    found = [line for line in lines(text) if "unique" in line]
    assert found == ['bill = { type = "integer", unique = true }', 'mail = { type = "text", unique = true }']


def test_null_is_offered_for_every_nullable_column_of_a_database(database):
    text = draft([database, "bills"], unit="patient_id")
    offered = [line.split(" = ")[0] for line in text.splitlines() if "null = true makes NULL a group" in line]
    assert offered == ["day", "room", "part"]  # bill is a primary key, and mail is unique
