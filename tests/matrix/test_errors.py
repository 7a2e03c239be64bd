"""Expressions with which engines stop at one row, and so tell of it: here they have a value or are NULL, or are refused
before any row is read.
"""

import os
from dataclasses import dataclass, field
from datetime import date, datetime

import compare
import duckdb
import postgres_under
import pyarrow as pa
import pytest
import spark_under
import strategies
from compare import Under
from servers.spark import session

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.postgres.dialect import POSTGRES
from discreet.engines.spark.dialect import SPARK
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Type
from discreet.policy import Policy
from discreet.postgres.server import connect, driver
from discreet.query.passes import plan_query

SCHEMA = {
    "user": Type.INTEGER,
    "n": Type.INTEGER,
    "m": Type.INTEGER,
    "x": Type.REAL,
    "y": Type.REAL,
    "t": Type.TEXT,
    "d": Type.DATE,
    "s": Type.TIMESTAMP,
}
POLICY = Policy.parse(
    """
[data]
name = "people"
[budget]
epsilon = 1
[tables.people]
source = "people.parquet"
unit = "user"
groups = 1
rows = 5
[tables.people.columns]
"""
    + "\n".join(f'{name} = {{ type = "{kind.name.lower()}" }}' for name, kind in SCHEMA.items())
)
ORDINARY = {
    "n": 3,
    "m": 2,
    "x": 1.0,
    "y": 0.5,
    "t": "2021-02-03",
    "d": date(2021, 2, 3),
    "s": datetime(2021, 2, 3, 4, 5, 6),
}
LEAST, MOST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class Trap:
    """What an analyst writes, the values of the one row at which an engine stops, and those of the other rows."""

    text: str
    values: dict
    others: dict = field(default_factory=dict)


BATTERY = [
    Trap("1 / n", {"n": 0}),
    Trap("n % m", {"m": 0}),
    Trap("MOD(n, m)", {"m": 0}),
    Trap("n / m", {"n": LEAST, "m": -1}),
    Trap("1 / x", {"x": 0.0}),
    Trap("x / y", {"x": 1e300, "y": 1e-300}),
    Trap("x / y", {"x": 1e-300, "y": 1e300}),
    Trap("n + m", {"n": MOST, "m": 1}),
    Trap("n - m", {"n": LEAST, "m": 1}),
    Trap("n * m", {"n": MOST, "m": 2}),
    Trap("-n", {"n": LEAST}),
    Trap("ABS(n)", {"n": LEAST}),
    Trap("x * y", {"x": 1e300, "y": 1e300}),
    Trap("x * y", {"x": 1e-300, "y": 1e-300}),
    Trap("x + y", {"x": 1e308, "y": 1e308}),
    Trap("x - y", {"x": 1e308, "y": -1e308}),
    Trap("EXP(x)", {"x": 1000.0}),
    Trap("EXP(x)", {"x": -1000.0}),
    Trap("POWER(x, y)", {"x": 10.0, "y": 400.0}),
    Trap("POWER(x, y)", {"x": 10.0, "y": -400.0}),
    Trap("POWER(x, y)", {"x": -1.0, "y": 0.5}),
    Trap("POWER(x, y)", {"x": 0.0, "y": -1.0}),
    Trap("LN(x)", {"x": 0.0}),
    Trap("LOG10(x)", {"x": -1.0}),
    Trap("SQRT(x)", {"x": -1.0}),
    Trap("CAST(x AS BIGINT)", {"x": 1e19}),
    Trap("CAST(x AS INTEGER)", {"x": 1e10}),
    Trap("CAST(n AS SMALLINT)", {"n": 100_000}),
    Trap("CAST(x AS NUMERIC(3, 1))", {"x": 1000.0}),
    Trap("CAST(t AS BIGINT)", {"t": "many"}, {"t": "12"}),
    Trap("CAST(SUBSTRING(t, 1, 4) AS BIGINT)", {"t": "12e4"}),
    Trap("CAST(t AS DOUBLE PRECISION)", {"t": "1e999"}, {"t": "1e9"}),
    Trap("CAST(t AS DATE)", {"t": "2021-02-30"}),
    Trap("CAST(t AS TIMESTAMP)", {"t": "2021-02-03 25:00"}),
    Trap("CAST(t AS BOOLEAN)", {"t": "perhaps"}, {"t": "true"}),
    Trap("d - 2000000", {"d": date(1, 1, 1)}),
    Trap("d + CAST(n AS INTEGER)", {"n": 1 << 30}),
    Trap("s + INTERVAL '1 second'", {"s": datetime(9999, 12, 31, 23, 59, 59)}),
    Trap("CHR(CAST(n AS INTEGER))", {"n": -1}),
    Trap("REPEAT(t, CAST(n AS INTEGER))", {"n": 2_000_000_000}),
    Trap("SUBSTRING(t, 1, CAST(n AS INTEGER))", {"n": -1}),
    Trap("t LIKE t", {"t": "\\"}),
    Trap("t ~ t", {"t": "("}),
    Trap("DATE_TRUNC(t, s)", {"t": "fortnight"}, {"t": "week"}),
    Trap("MAKE_DATE(CAST(n AS INTEGER), 2, 3)", {"n": -5_000_000}),
    Trap("ASIN(x)", {"x": 2.0}),
]
REFUSED = {
    "d + CAST(n",
    "CHR",
    "REPEAT",
    "SUBSTRING(t, 1, CAST(n",
    "t LIKE t",
    "t ~ t",
    "DATE_TRUNC(t",
    "MAKE_DATE",
    "ASIN",
}
each_trap = pytest.mark.parametrize("trap", BATTERY, ids=[f"{trap.text} {[*trap.values.values()]}" for trap in BATTERY])


def rows(trap, *, victim):
    """Return the table, with one row more if the victim is there."""
    ordinary = [{"user": user, **ORDINARY, **trap.others} for user in (1, 2)]
    return [*ordinary, {**ordinary[0], "user": 3, **trap.values}] if victim else ordinary


def questions(trap):
    """Give the questions that come of a trap: in a count, and in a condition."""
    for sql in (
        f"SELECT COUNT({trap.text}) AS n FROM people",
        f"SELECT COUNT(*) AS n FROM people WHERE ({trap.text}) IS NULL",
    ):
        yield from (part.question for part in plan_query(sql, POLICY, {}).releases)


def check(engine: Under, trap: Trap) -> None:
    """An engine computes what the reference says, with the victim and without, or the query is refused by its text."""
    if any(trap.text.startswith(text) for text in REFUSED):
        with pytest.raises(Refused):
            list(questions(trap))
        return
    asked = list(questions(trap))
    for victim in (False, True):
        tables = {"people": rows(trap, victim=victim)}
        engine.load(tables)
        for question in asked:
            assert compare.computed(engine, question) == compare.expected(tables, question)


def stops(run, load, stop):
    """Return the traps at which an engine stops, if it is asked as they are written, because of the victim's row."""
    found = []
    for trap in BATTERY:
        load({"people": rows(trap, victim=False)})
        naive = f"SELECT COUNT(*) AS n FROM (SELECT DISTINCT {trap.text} AS v FROM people) AS s"
        run(naive)
        load({"people": rows(trap, victim=True)})
        try:
            run(naive)
        except stop:
            found.append(trap)
    return found


@pytest.fixture(scope="session")
def embedded():
    with duckdb.connect(config={"threads": "1"}) as connection:

        def load(tables):
            fields = pa.schema([(name, strategies.ARROW[kind]) for name, kind in SCHEMA.items()])
            connection.register("given", pa.Table.from_pylist(tables["people"], schema=fields))
            connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM given")

        yield Under(DUCKDB, lambda sql: connection.sql(sql).to_arrow_table(), load)


@pytest.fixture(scope="session")
def server(postgres):
    name = f"errors_{os.getpid()}"
    with connect(postgres.url()) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with connect(postgres.url(name)) as connection:

        def load(tables):
            postgres_under.fill(connection, "people", SCHEMA, tables["people"])

        yield Under(POSTGRES, lambda sql: postgres_under.run(connection, sql), load)


@pytest.fixture(scope="module")
def sails(sail):
    with session(sail.url) as opened:
        spark_under.prepare(opened)

        def load(tables):
            spark_under.fill(opened, "people", SCHEMA, tables["people"])

        yield Under(SPARK, lambda sql: spark_under.run(opened, sql), load)


@each_trap
def test_duckdb_never_raises_because_of_a_row(embedded, trap):
    check(embedded, trap)


@pytest.mark.long(only=["CAST(t AS BOOLEAN) ['perhaps']"])
@each_trap
def test_postgresql_never_raises_because_of_a_row(server, trap):
    check(server, trap)


@pytest.mark.long
@each_trap
def test_spark_sql_never_raises_because_of_a_row(sails, trap):
    check(sails, trap)


@pytest.mark.long
def test_duckdb_raises_on_many_expressions_as_written(embedded):
    assert len(stops(embedded.run, embedded.load, duckdb.Error)) >= 15


def test_postgresql_raises_on_most_expressions_as_written(server):
    assert len(stops(server.run, server.load, driver().Error)) >= 40
