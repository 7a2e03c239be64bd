"""Python's clients of PostgreSQL, unchanged: psycopg, asyncpg, SQLAlchemy, pandas, polars, ADBC and ODBC."""

import asyncio
import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

pytestmark = pytest.mark.long
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"
NAMES = ["ward", "n", "n_margin", "n_bias", "n_bias_low"]
OPTIONS = "&options=-c%20epsilon%3D1"
MOMENT, DAY = dt.datetime(2026, 1, 3, 12, 30), dt.date(2026, 2, 1)
TYPED = (
    "SELECT new, day, MAX(seen) AS m, AVG(weight) AS w, COUNT(*) AS n FROM visits "
    "WHERE day < '2026-01-04' GROUP BY new, day ORDER BY new, day"
)


@pytest.fixture(scope="module")
def answer(server):
    """The answer as the service gives it, which every client must give too."""
    import psycopg

    with psycopg.connect(server.url(options=OPTIONS), autocommit=True) as connection:
        rows = connection.execute(BY_WARD).fetchall()
    service, owner = server.service, next(p for p in server.service.people.everybody() if p.name == "ana")
    from discreet.server.requests import QueryRequest

    found = server.call(lambda: service.ask(owner, QueryRequest(BY_WARD, epsilon=1))).with_margins()
    assert [tuple(row.values()) for row in found.to_pylist()] == rows
    return rows


def test_psycopg_reads_text_and_binary_alike(server, answer):
    import psycopg

    with psycopg.connect(server.url(options=OPTIONS)) as connection:
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            assert cursor.execute(BY_WARD).fetchall() == answer
            assert [column.name for column in cursor.description] == NAMES
        text, binary = (connection.cursor(binary=each).execute(TYPED).fetchall() for each in (False, True))
        assert text == binary
        assert text[0][:2] == (False, dt.date(2026, 1, 1))
        assert list(connection.cursor().stream(BY_WARD)) == answer


def test_psycopg_passes_values_of_all_types(server):
    import psycopg

    sql = "SELECT COUNT(*) AS n FROM visits WHERE age > {0} AND cost < {0} AND day > {0} AND seen > {0} AND new = {0}"
    values = [3, Decimal("250.5"), DAY, MOMENT, True]
    with psycopg.connect(server.url(options=OPTIONS)) as connection:
        found = [connection.execute(sql.format(form), values).fetchall() for form in ("%s", "%t", "%b")]
        assert found[0] == found[1] == found[2]
        zone = dt.datetime(2026, 1, 3, 12, 30, tzinfo=dt.UTC)
        aware = connection.execute("SELECT COUNT(*) AS n FROM visits WHERE seen > %s", [zone]).fetchall()
        assert aware == connection.execute("SELECT COUNT(*) AS n FROM visits WHERE seen > %s", [MOMENT]).fetchall()


def test_psycopg_prepares_pipelines_and_copies(server, answer):
    import psycopg

    sql = "SELECT COUNT(*) AS n FROM visits WHERE ward = %s"
    with psycopg.connect(server.url(options=OPTIONS), autocommit=True) as connection:
        plain = [connection.execute(sql, [ward]).fetchone() for ward in "ABC"]
        assert [connection.execute(sql, [ward], prepare=True).fetchone() for ward in "ABCABC"] == plain * 2
        with connection.pipeline():
            cursors = [connection.execute(sql, [ward]) for ward in "ABC"]
        assert [cursor.fetchone() for cursor in cursors] == plain
        with connection.cursor().copy(f"COPY ({BY_WARD}) TO STDOUT (FORMAT BINARY)") as copy:
            copy.set_types(["text", "int8", "float8", "float8", "float8"])
            assert list(copy.rows()) == answer
    with psycopg.connect(server.url(options=OPTIONS)) as connection, connection.cursor("named") as cursor:
        cursor.itersize = 2
        assert list(cursor.execute(BY_WARD)) == answer


def test_psycopg_is_asynchronous(server, answer):
    import psycopg

    async def ask():
        async with await psycopg.AsyncConnection.connect(server.url(options=OPTIONS)) as connection:
            cursors = [await connection.execute(BY_WARD) for _ in range(3)]
            return [await cursor.fetchall() for cursor in cursors]

    assert asyncio.run(ask()) == [answer] * 3


def test_asyncpg_describes_prepares_and_pools(server, answer):
    asyncpg = pytest.importorskip("asyncpg")
    settings = {"server_settings": {"epsilon": "1"}}
    sql = "SELECT COUNT(*) AS n, AVG(age) AS a FROM visits WHERE ward = $1 AND age > $2 AND day > $3 AND cost > $4"

    async def ask():
        connection = await asyncpg.connect(server.url(), **settings)
        assert [tuple(row) for row in await connection.fetch(BY_WARD)] == answer
        row = await connection.fetchrow(sql, "A", 30, DAY, Decimal("2.5"))
        assert list(row.keys())[:2] == ["n", "n_margin"]
        prepared = await connection.prepare("SELECT COUNT(*) AS n FROM visits WHERE seen > $1 LIMIT $2")
        assert [kind.name for kind in prepared.get_parameters()] == ["timestamp", "int8"]
        assert [column.type.name for column in prepared.get_attributes()] == ["int8", "float8", "float8", "float8"]
        async with connection.transaction():
            assert [tuple(row) async for row in connection.cursor(BY_WARD, prefetch=2)] == answer
        listed = await connection.fetch("SELECT relname FROM pg_class WHERE relkind = ANY($1::text[])", ["r"])
        assert {"visits", "wards"} <= {row["relname"] for row in listed}
        await connection.close()
        async with asyncpg.create_pool(server.url(), min_size=1, max_size=3, **settings) as pool:
            counts = await asyncio.gather(
                *(pool.fetchval("SELECT COUNT(*) AS n FROM visits WHERE ward = $1", ward) for ward in "ABCABC")
            )
        assert counts[:3] == counts[3:]

    asyncio.run(ask())


def engines(server):
    import sqlalchemy

    yield sqlalchemy.create_engine(server.url(options=OPTIONS).replace("postgresql", "postgresql+psycopg", 1))


def test_sqlalchemy_reflects_the_policy(server):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    for engine in engines(server):
        inspector = sqlalchemy.inspect(engine)
        assert sorted(inspector.get_table_names()) == ["patients", "tests", "visits", "wards"]
        kinds = {column["name"]: str(column["type"]) for column in inspector.get_columns("visits")}
        assert (kinds["age"], kinds["cost"], kinds["seen"]) == ("BIGINT", "NUMERIC", "TIMESTAMP")
        assert [key["referred_table"] for key in inspector.get_foreign_keys("tests")] == ["patients", "wards"]
        assert "Private" in inspector.get_table_comment("visits")["text"]
        metadata = sqlalchemy.MetaData()
        metadata.reflect(engine)
        visits = metadata.tables["visits"]
        query = sqlalchemy.select(visits.c.ward, sqlalchemy.func.count().label("n")).group_by(visits.c.ward)
        with engine.connect() as connection:
            assert len(connection.execute(query.where(visits.c.day > DAY)).fetchall()) == 3
        engine.dispose()


def test_pandas_reads_by_sqlalchemy(server, answer):
    pandas, sqlalchemy = pytest.importorskip("pandas"), pytest.importorskip("sqlalchemy")
    for engine in engines(server):
        frame = pandas.read_sql(BY_WARD, engine)
        assert list(frame.columns) == NAMES
        assert frame["n"].tolist() == [row[1] for row in answer]
        assert frame["n"].dtype == "int64"
        query = sqlalchemy.text("SELECT COUNT(*) AS n FROM visits WHERE ward = :ward")
        assert len(pandas.read_sql(query, engine, params={"ward": "A"})) == 1
        with engine.connect().execution_options(stream_results=True) as connection:
            assert [len(part) for part in pandas.read_sql(BY_WARD, connection, chunksize=2)] == [2, 1]
        engine.dispose()


def test_sqlalchemy_is_asynchronous_by_asyncpg(server, answer):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    pytest.importorskip("asyncpg")
    from sqlalchemy.ext.asyncio import create_async_engine

    async def ask():
        url = server.url().replace("postgresql", "postgresql+asyncpg", 1).replace("sslmode", "ssl")
        engine = create_async_engine(url, connect_args={"server_settings": {"epsilon": "1"}})
        async with engine.connect() as connection:
            rows = (await connection.execute(sqlalchemy.text(BY_WARD))).fetchall()
            names = await connection.run_sync(lambda each: sqlalchemy.inspect(each).get_table_names())
        await engine.dispose()
        return [tuple(row) for row in rows], len(names)

    assert asyncio.run(ask()) == (answer, 4)


@pytest.mark.parametrize("engine", ["connectorx", "adbc"])
def test_polars_reads_by_both_of_its_engines(server, answer, engine):
    polars = pytest.importorskip("polars")
    pytest.importorskip({"adbc": "adbc_driver_postgresql"}.get(engine, engine))
    frame = polars.read_database_uri(BY_WARD, server.url(options=OPTIONS), engine=engine)
    assert frame.columns == NAMES
    assert frame.rows() == answer


def test_adbc_reads_arrow_and_the_catalog(server, answer):
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with adbc.connect(server.url(options=OPTIONS)) as connection:
        with connection.cursor() as cursor:
            cursor.execute(BY_WARD)
            assert [tuple(row.values()) for row in cursor.fetch_arrow_table().to_pylist()] == answer
            cursor.execute("SELECT COUNT(*) AS n FROM visits WHERE ward = $1", ("A",))
            assert len(cursor.fetchall()) == 1
        assert connection.adbc_get_table_schema("visits").names[:2] == ["patient", "ward"]
        (found,) = connection.adbc_get_objects(depth="tables", db_schema_filter="public").read_all().to_pylist()
        assert len(found["catalog_db_schemas"][0]["db_schema_tables"]) == 4


@pytest.mark.parametrize("extra", ["", "UseServerSidePrepare=0", "UseDeclareFetch=1;Fetch=2"])
def test_odbc_reads_answers_and_the_catalog(server, answer, extra):
    pyodbc = pytest.importorskip("pyodbc")
    drivers = list(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"))
    if not drivers:
        pytest.skip("the ODBC driver is not installed (Debian: apt install odbc-postgresql)")
    connection = pyodbc.connect(
        f"Driver={drivers[0]};Server=127.0.0.1;Port={server.port};Database=clinic;Uid=ana;Pwd={server.tokens['ana']};"
        f"SSLmode=disable;pqopt={{options=-cepsilon=1}};{extra}"
    )
    cursor = connection.cursor()
    assert [tuple(row) for row in cursor.execute(BY_WARD).fetchall()] == answer
    sql = "SELECT COUNT(*) AS n FROM visits WHERE ward = ? AND age > ? AND day > ?"
    assert len(cursor.execute(sql, "A", 3, DAY).fetchall()) == 1
    assert [row.table_name for row in cursor.tables()] == ["patients", "tests", "visits", "wards"]
    assert [row.column_name for row in cursor.columns(table="wards")] == ["ward", "floor"]
    with pytest.raises(pyodbc.Error, match="individual rows"):
        cursor.execute("SELECT * FROM visits").fetchall()
    connection.close()
