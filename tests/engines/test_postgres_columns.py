"""PostgreSQL casts columns as DuckDB does, for every type and value, and no value makes it fail."""

import random
import struct
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from itertools import product

import duckdb
import pyarrow as pa
import pytest

from discreet.engines.duckdb import casts
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.postgres import casts as postgres_columns
from discreet.engines.postgres.engine import Postgres
from discreet.engines.table_source import TableSource
from discreet.kernel.expr import Type
from discreet.postgres.server import connect

KINDS = {"n": Type.INTEGER, "r": Type.REAL, "b": Type.BOOLEAN, "x": Type.TEXT, "d": Type.DATE, "s": Type.TIMESTAMP}

NUMBERS = ["0", "1", "-1", "2", "7", "127", "-128", "32767", "-32768"]
WHOLE_TEXTS = [
    *("12", " -7 ", "3.0", "3.", "+3.", "1e3", "3.7", "abc", "", " ", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "-9223372036854775809", "-9223372036854775808.0", "1_000", "0x10", "+5", "-0", "--5"),
    *("00000000000000000003", "0000000000000000003", "9007199254740993", "9007199254740993.5", "١٢", "12\n", "\t12"),
    *("3." + "0" * 398, "3." + "0" * 399, " " * 399 + "3", " " * 400 + "3", "1 2", "5-", ".", "+", "- 5", "0b1", "1d"),
]
REAL_TEXTS = [
    *("1.5", "1e400", "-1e400", "nan", "NaN", "inf", "-Infinity", "1,5", ".5", "5.", " 2 ", "1e-400", "-1e-400"),
    *("1e308", "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "1.8e308", "1e999"),
    *("4.9e-324", "2.4703282292062328e-324", "2.4703282292062327e-324", "2e-324", "1e-999", "0e999", "0.0e-999"),
    *("1e0005", "1e005", "1.e5", ".5e3", "+.5", "1e", "e5", "1e+", "1e5.0", "0.1", "123456789.123456789"),
    *("9" * 309, "9" * 308, "0" * 399 + "1", "0" * 400 + "1", "0." + "0" * 390 + "1e390", "2.2250738585072011e-308"),
]
TRUTHS = ["TRUE", "f", " yes ", "0", "1", "on", "No", "\u00a0true", "true\n", "Y", "t r", "\u212aes", "\uff34rue"]
TIME_TEXTS = [
    *("2026-01-31", " 2026-01-31T10:00 ", "2026-01-31 10:00:00.5Z", "2026-01-31 10:00:00+01:00", "infinity", "epoch"),
    *("20000-01-01", "0000-01-01", "0001-01-01", "9999-12-31", "2026-02-29", "2024-02-29", "1900-02-29", "2000-02-29"),
    *("0004-02-29", "0100-02-29", "2026-04-31", "2026-13-01", "2026-00-10", "2026-01-00", "2026-01-32", "now", "today"),
    *("2026-01-31 25:00:00", "2026-01-31 24:00:00", "2026-01-31 24:00", "2026-01-31 23:59:60", "2026-01-31 23:60"),
    *("2026-01-31 23:59:59.9999999", "9999-12-31 23:59:59.9999999", "1969-12-31 23:59:59.999999999"),
    *("2026-01-31 10:00:00.1234565", "2026-01-31 10:00:00.1234567890", "2026-01-31 10:00:00.", "2026-01-31 10"),
    *("9999-12-31 23:59:59-12:00", "0001-01-01 00:00+12", "9999-12-31 23:59:59.999999Z", "0001-01-01T00:00:00Z"),
    *("2026-01-31 10:00+15:59", "2026-01-31 10:00-1559", "2026-01-31 10:00+16", "2026-01-31 10:00+14:60"),
    *("2026-01-31 10:00:00.123456789+01", "2026-01-31Z", "2026-01-31+01", "2026-1-31", "31.01.2026", "01/31/2026"),
    *("2026-01-31 10:00:00 PM", "2026-01-31 10:00 CET", "2026-01-31  10:00", "2026-01-31t10:00", "2026-01-31 10:00z"),
    *("2026-03-29 02:30:00", "2026-03-29 02:30:00+01", "2026-10-25T02:30:00+02:00", "2026-01-31 10:00 BC", "20260131"),
    *(" " * 390 + "2026-01-31", " " * 391 + "2026-01-31", "2026-01-31\n", "allballs", "-2026-01-31", "+2026-01-31"),
]
TEXTS = [*WHOLE_TEXTS, *REAL_TEXTS, *TRUTHS, *TIME_TEXTS, "a", "é\n'\"\\", "𝄞", "%", "\u0301"]
REALS = [
    *("0", "-0", "1", "0.5", "3", "3.7", "-3", "NaN", "Infinity", "-Infinity", "1e300", "-1e300", "1e-300", "5e-324"),
    *("9223372036854775807", "-9223372036854775808", "9223372036854774784", "-9223372036854777856", "1e19", "2.5"),
    *("1.7976931348623157e308", "-1.7976931348623157e308", "9007199254740993"),
]
SINGLES = ["0", "1", "3", "3.7", "NaN", "Infinity", "-Infinity", "3e38", "1e-45", "9223372036854775807", "-9e18", "2.5"]
DECIMALS = ["0", "1", "3", "3.7", "-3", "0.1", "12345678.12", "-99999999.99", "0.01", "1.00"]
WIDE = ["0", "1", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "3.5"]
DATES = ["2026-01-31", "0001-01-01", "9999-12-31", "10000-01-01", "infinity", "-infinity", "1969-12-31", "2024-02-29"]
TIMES = [
    *("2026-01-31 10:00:00", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00"),
    *("infinity", "-infinity", "1969-12-31 23:59:59.999999", "290000-01-01 00:00:00", "2026-03-29 02:30:00"),
]
INSTANTS = [
    *("2026-01-31 10:00:00+00", "0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00", "10000-01-01 00:00:00+00"),
    *("infinity", "-infinity", "290000-01-01 00:00:00+00", "2026-03-29 00:59:59+00", "2026-03-29 01:00:00+00"),
    *("2026-10-25 00:30:00+00", "2026-10-25 01:30:00+00", "0001-01-01 12:00:00+00", "9999-12-31 12:00:00+00"),
]
UUIDS = ["00000000-0000-0000-0000-000000000001", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"]
LABELS = ["sad", "1", "2026-01-31", "yes"]

# PostgreSQL's type, DuckDB's, and what is stored.
STORED = {
    "smallint": ("SMALLINT", NUMBERS),
    "integer": ("INTEGER", [*NUMBERS, "2147483647", "-2147483648"]),
    "bigint": ("BIGINT", [*NUMBERS, "9223372036854775807", "-9223372036854775808"]),
    "real": ("FLOAT", SINGLES),
    "double precision": ("DOUBLE", REALS),
    "numeric(10, 2)": ("DECIMAL(10, 2)", DECIMALS),
    "numeric(38, 1)": ("DECIMAL(38, 1)", WIDE),
    "boolean": ("BOOLEAN", ["true", "false"]),
    "text": ("VARCHAR", TEXTS),
    "varchar(1000)": ("VARCHAR", TEXTS),
    "name": ("VARCHAR", LABELS),
    "uuid": ("UUID", UUIDS),
    "mood": ("mood", LABELS),
    "date": ("DATE", DATES),
    "timestamp": ("TIMESTAMP", TIMES),
    "timestamptz": ("TIMESTAMP WITH TIME ZONE", INSTANTS),
    "whole": ("BIGINT", NUMBERS),  # a domain
    "small_day": ("DATE", DATES[:3]),  # a domain of a domain
}
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Pacific/Apia"]


@pytest.fixture(scope="session")
def database(postgres):
    """Yield a database for this module and a read-only role."""
    with connect(postgres.url()) as server:
        server.execute("DROP DATABASE IF EXISTS columns_test WITH (FORCE)")
        server.execute("CREATE DATABASE columns_test")
    url = postgres.url("columns_test")
    with connect(url) as server:
        server.execute(f"CREATE TYPE mood AS ENUM ({', '.join(map(literal, LABELS))})")
        server.execute("CREATE DOMAIN whole AS bigint")
        server.execute("CREATE DOMAIN day AS date CHECK (VALUE > '0001-01-01' OR VALUE <= '0001-01-01')")
        server.execute("CREATE DOMAIN small_day AS day NOT NULL DEFAULT '2026-01-01'")
        server.execute("CREATE EXTENSION citext")
        server.execute("CREATE ROLE columns_reader LOGIN")
        server.execute("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO columns_reader")
    return url


def literal(text):
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def table(url, *columns):
    """Make a table of columns (name, type, values) in PostgreSQL, with its rows in order."""
    with connect(url) as server:
        server.execute("DROP TABLE IF EXISTS t CASCADE")
        server.execute(f"CREATE TABLE t (i integer, {', '.join(f'{name} {kind}' for name, kind, _ in columns)})")
        longest = max(len(values) for _, _, values in columns)
        rows = [(i, *(values[i] if i < len(values) else None for _, _, values in columns)) for i in range(longest)]
        with server.cursor().copy("COPY t FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    yield url.replace("postgres@", "columns_reader@")


def seen(url, columns, zone="UTC"):
    """Return what PostgreSQL shows of columns: name there, and as what."""
    sources = {name: TableSource("t", {"i": Type.INTEGER, column: kind}) for name, (column, kind) in columns.items()}
    with Postgres(sources, url=url, timezone=zone) as engine:
        return {
            name: engine.query(f"SELECT {column} FROM {engine.dialect.table_source(name)} AS t ORDER BY i")
            .column(0)
            .to_pylist()
            for name, (column, _) in columns.items()
        }


def seen_by_duckdb(path, kind, values, kinds, zone="UTC"):
    """Return what DuckDB shows of the same texts, stored in a type of its own."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        if kind == "mood":
            connection.execute(f"CREATE TYPE mood AS ENUM ({', '.join(map(literal, LABELS))})")
        connection.register("given", pa.table({"i": range(len(values)), "x": values}))
        connection.execute(f"CREATE TABLE t AS SELECT i, CAST(x AS {kind}) AS v FROM given")
    sources = {name: TableSource(f"{path}/t", {"i": Type.INTEGER, "v": each}) for name, each in kinds.items()}
    with DuckDB(sources, timezone=zone) as engine:
        return {name: engine.query(f"SELECT v FROM {name} ORDER BY i").column(0).to_pylist() for name in kinds}


@pytest.mark.long(only=["text", "timestamptz"])
@pytest.mark.parametrize("stored", STORED)
def test_every_value_equals_that_of_duckdb(database, tmp_path, stored):
    other, values = STORED[stored]
    native = native_of(database, stored)
    fitting = {
        name: kind for name, kind in KINDS.items() if casts.can_cast(other if stored != "mood" else "ENUM", kind)
    }
    assert fitting == {name: kind for name, kind in KINDS.items() if postgres_columns.can_cast(native, kind)}
    zones = ZONES if stored in ("timestamptz", "text") else ["UTC"]
    for place, zone in enumerate(zones):
        wanted = seen_by_duckdb(tmp_path / f"{place}.duckdb", other, values, fitting, zone)
        with table(database, ("v", stored, values)) as url:
            found = seen(url, {name: ("v", kind) for name, kind in fitting.items()}, zone)
        for name in fitting:
            assert dict(zip(values, found[name], strict=True)) == dict(zip(values, wanted[name], strict=True)), name


def native_of(url, stored):
    with connect(url) as server:
        if stored in ("whole", "small_day", "mood"):
            return {"whole": "bigint", "small_day": "date", "mood": "enum"}[stored]
        return server.execute("SELECT format_type(%s::regtype, NULL)", [stored]).fetchone()[0]


HUGE = ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e131071", "1e-400", "-1e-16000", "1.7976931348623158e308"]
HUGE += [
    "1.7976931348623159e308",
    "2.4703282292062328e-324",
    "2.4703282292062327e-324",
    "1e18",
    "1e19",
    "0.1",
    "1",
    "0",
    "1.797693134862315807937289714053e308",  # the first that is too large, and the first that is not 0
    "2.4703282292062327208828439643412e-324",
]


def test_values_that_only_postgresql_stores_are_unchanged_or_null(database):
    """Numbers that are none or too large, days before there were years, and texts that are padded or have no case."""
    columns = {
        "huge": ("numeric", HUGE),
        "day": ("date", ["4713-01-01 BC", "0001-12-31 BC", "5874897-12-31", "infinity"]),
        "time": ("timestamp", ["4713-01-01 00:00:00 BC", "294276-12-31 23:59:59.999999", "0001-12-31 23:59:59 BC"]),
        "instant": (
            "timestamptz",
            ["4713-01-02 00:00:00 BC", "294276-12-31 23:59:59.999999+00", "2026-01-31 10:00+00"],
        ),
        "padded": ("char(8)", ["a", " b", "2026 ", "12"]),
        "anycase": ("citext", ["Ana", "ana", "12"]),
        "alike": ('text COLLATE "anycase"', ["Ana", "ana", "12"]),
    }
    with connect(database) as server:
        server.execute(
            """CREATE COLLATION anycase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"""
        )
    with table(database, *[(name, kind, values) for name, (kind, values) in columns.items()]) as url:
        asked = {
            f"{name}_{word}": (name, kind)
            for name in columns
            for word, kind in KINDS.items()
            if postgres_columns.can_cast(native_of_column(database, name), kind)
        }
        found = seen(url, asked, "Asia/Tokyo")
    kept = {name: values[: len(columns[asked[name][0]][1])] for name, values in found.items()}
    assert kept["huge_n"] == [*[None] * 9, None, None, None, 10**18, None, None, 1, 0, None, None]
    assert kept["huge_r"] == [
        *[None] * 6,
        *(0.0, 0.0, 1.7976931348623157e308, None, 5e-324, 0.0, 1e18, 1e19, 0.1, 1.0, 0.0, None, 5e-324),
    ]
    assert kept["huge_b"] == [*[None] * 15, True, False, None, None]
    assert kept["day_d"] == kept["day_s"] == [None] * 4
    assert kept["time_d"] == kept["time_s"] == [None] * 3
    assert kept["instant_s"] == [None, None, datetime(2026, 1, 31, 19)]
    assert kept["instant_d"] == [None, None, date(2026, 1, 31)]
    assert kept["padded_x"] == ["a", " b", "2026", "12"]
    assert kept["padded_n"] == [None, None, 2026, 12]
    for name in ("anycase", "alike"):
        assert kept[f"{name}_x"] == ["Ana", "ana", "12"]
        assert kept[f"{name}_n"] == [None, None, 12]
        assert kept[f"{name}_s"] == [None] * 3


def native_of_column(url, name):
    with connect(url) as server:
        asked = "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = %s"
        return server.execute(asked, [name]).fetchone()[0]


def test_texts_are_compared_byte_by_byte_whatever_their_collation(database):
    with connect(database) as server:
        server.execute(
            "CREATE COLLATION IF NOT EXISTS alike (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
        )
    words = ["ana", "Ana", "aná", "b"]
    with (
        table(database, ("v", 'text COLLATE "alike"', words)) as url,
        Postgres({"t": TableSource("t", {"v": Type.TEXT})}, url=url) as engine,
    ):
        assert engine.values("t", "v") == sorted(words)
        assert engine.fanout("t", ("v",)) == 1


def test_constants_of_a_view_are_not_cast_before_they_are_checked(database):
    """The server computes with constants while it plans, when no row and no CASE stands before them."""
    values = {"v": "abc", "w": "1e5000", "x": "2026-02-30", "y": "NaN", "z": "2026-01-31 10:00:00+01:00"}
    with connect(database) as server:
        server.execute("DROP VIEW IF EXISTS fixed")
        shown = ", ".join(f"{literal(value)}::text AS {name}" for name, value in values.items())
        server.execute(
            f"CREATE VIEW fixed AS SELECT {shown}, 'NaN'::numeric AS n, 'infinity'::timestamptz AS i, 1e300 AS f"
        )
    kinds = {f"{name}_{word}": (name, kind) for name, (word, kind) in product(values, KINDS.items())}
    kinds |= {
        "n_n": ("n", Type.INTEGER),
        "n_r": ("n", Type.REAL),
        "i_s": ("i", Type.TIMESTAMP),
        "f_n": ("f", Type.INTEGER),
    }
    sources = {name: TableSource("fixed", {column: kind}) for name, (column, kind) in kinds.items()}
    found = {}
    with Postgres(sources, url=database.replace("postgres@", "columns_reader@")) as engine:
        for name in sources:
            found |= engine.query(
                f"SELECT {name[0]} AS {name} FROM {engine.dialect.table_source(name)} AS t"
            ).to_pydict()
    shown = {name: values[0] for name, values in found.items() if values[0] is not None}
    assert shown == {
        **{f"{name}_x": value for name, value in values.items()},
        "z_s": datetime(2026, 1, 31, 9),
        "z_d": date(2026, 1, 31),
    }


SIGNS = "0123456789" * 2 + "+-:.TZeE   " + "٣½é\n"
FORMS = [
    "{y:04}-{m:02}-{d:02}",
    "{y:04}-{m:02}-{d:02} {h:02}:{i:02}",
    "{y:04}-{m:02}-{d:02}T{h:02}:{i:02}:{s:02}",
    "{y:04}-{m:02}-{d:02} {h:02}:{i:02}:{s:02}.{f}",
    "{y:04}-{m:02}-{d:02} {h:02}:{i:02}:{s:02}.{f}Z",
    "{y:04}-{m:02}-{d:02} {h:02}:{i:02}{g}{z:02}",
    "{y:04}-{m:02}-{d:02}T{h:02}:{i:02}:{s:02}{g}{z:02}:{i:02}",
    "{f}.{f}e{g}{z}",
    "{g}{f}{f}",
    "{g}{f}{f}.000",
]


def scribble(rng):
    """Return a text that is nearly a number, a date or a time, and sometimes is one."""
    parts = {"y": rng.choice([0, 1, 4, 100, 1900, 2000, 2024, 2026, 9999, 10000]), "m": rng.randint(0, 13)}
    parts |= {
        "d": rng.choice([0, 1, 28, 29, 30, 31, 32]),
        "h": rng.choice([0, 1, 23, 24]),
        "i": rng.choice([0, 59, 60]),
    }
    parts |= {"s": rng.choice([0, 59, 60]), "f": rng.randint(0, 10 ** rng.randint(1, 10)), "g": rng.choice("+-")}
    text = rng.choice(FORMS).format(**parts, z=rng.choice([0, 1, 14, 15, 16, 23]))
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(SIGNS) + text[at + rng.randint(0, 1) :]
    return text


@pytest.mark.long(but=["UTC"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_random_texts_equal_those_of_duckdb(database, tmp_path, zone):
    rng = random.Random(f"texts {zone}")
    values = list(dict.fromkeys(scribble(rng) for _ in range(4000)))
    wanted = seen_by_duckdb(tmp_path / "t.duckdb", "VARCHAR", values, KINDS, zone)
    with table(database, ("v", "text", values)) as url:
        found = seen(url, {name: ("v", kind) for name, kind in KINDS.items()}, zone)
    for name in KINDS:
        different = [each for each in zip(values, found[name], wanted[name], strict=True) if each[1] != each[2]]
        assert different == [], name
        assert sum(value is not None for value in found[name]) > 100 or name == "b"


@pytest.mark.long
def test_random_doubles_and_instants_equal_those_of_duckdb(database, tmp_path):
    rng = random.Random("bits")
    reals = [repr(struct.unpack("<d", rng.randbytes(8))[0]) for _ in range(2000)]
    reals += [repr(float(rng.randint(-(2**64), 2**64))) for _ in range(500)]
    start = datetime(1, 1, 3)
    instants = [f"{start + timedelta(days=rng.uniform(0, 3_652_050))}+00" for _ in range(3000)]
    for kind, other, values, kinds in (
        ("float8", "DOUBLE", reals, {name: KINDS[name] for name in "nrb"}),
        ("timestamptz", "TIMESTAMP WITH TIME ZONE", instants, {name: KINDS[name] for name in "ds"}),
    ):
        zone = "Europe/Berlin"
        wanted = seen_by_duckdb(tmp_path / f"{kind}.duckdb", other, values, kinds, zone)
        with table(database, ("v", kind, values)) as url:
            found = seen(url, {name: ("v", each) for name, each in kinds.items()}, zone)
        assert found == wanted


def test_an_overlong_text_is_null_and_raises_nothing(postgres):
    """Functions of PostgreSQL stop where a result would have a gigabyte: one row would tell of itself by that."""
    with connect(postgres.url()) as connection:
        connection.execute("DROP TABLE IF EXISTS endless")
        connection.execute("CREATE TABLE endless AS SELECT 1 AS who, REPEAT('a', 140000000) AS t")
        try:
            sources = {kind.value: TableSource("public.endless", {"t": kind}) for kind in Type}
            with pytest.warns(UserWarning, match="superuser"):
                opened = Postgres(sources, url=postgres.url())
            with opened as engine:
                for kind in Type:
                    sql = f"SELECT COUNT(*) AS n FROM {engine.dialect.table_source(kind.value)} AS s WHERE t IS NULL"
                    assert engine.query(sql).column("n").to_pylist() == [1], kind
        finally:
            connection.execute("DROP TABLE endless")


def test_one_long_text_does_not_affect_the_running_time(database):
    """One of 16 MB, of blanks alone, would take seconds: a time that tells of its row."""
    sizes = [65_536, 65_537, 1 << 24]
    with connect(database) as server:
        server.execute("DROP TABLE IF EXISTS long; CREATE TABLE long (n integer, x text)")
        server.execute("INSERT INTO long SELECT n, repeat(' ', n) FROM unnest(%s::integer[]) AS n", [sizes])
        server.execute(
            "INSERT INTO long SELECT -n, repeat('é', n / 2) FROM unnest(%s::integer[]) AS n", [[65_536, 65_538]]
        )
    columns = {"n": Type.INTEGER, "x": Type.TEXT}
    with Postgres({"t": TableSource("long", columns)}, url=database.replace("postgres@", "columns_reader@")) as engine:
        rows = f"FROM {engine.dialect.table_source('t')} AS t"
        kept = engine.query(f"SELECT n {rows} WHERE x IS NOT NULL ORDER BY n").column("n").to_pylist()
        trimmed = ", ".join(f"SUM(CHAR_LENGTH(BTRIM(x || '{i}', ' ')))::bigint AS x{i}" for i in range(18))
        lengths = engine.query(f"SELECT {trimmed} {rows}").to_pylist()[0]
    assert max(lengths.values()) <= 2 * 65_540  # so much is trimmed, whatever is stored
    assert kept == [-65_536, 65_536]
