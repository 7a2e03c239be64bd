# ruff: noqa: DTZ901 - a table's times are local ones
"""Every kind of source with every kind of value shows exactly the declared columns, and no scan raises."""

import gzip
import os
import random
import tempfile
import threading
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines.duckdb.casts import cast_select
from discreet.engines.duckdb.engine import DuckDB, Tuning
from discreet.engines.table_source import EngineError, TableSource
from discreet.kernel.errors import DiscreetError, PolicyError
from discreet.kernel.expr import Type

N, R, B, X, D, S = Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TEXT, Type.DATE, Type.TIMESTAMP
NAN, INF = float("nan"), float("inf")
FAR = 2**63 - 5


def rows(place, timezone="UTC", /, **types):
    """Return what a table shows of its columns."""
    with DuckDB({"t": TableSource(place, types)}, timezone=timezone) as engine:
        found = engine.query("SELECT * FROM t")
        assert dict(zip(found.column_names, found.schema.types, strict=True)) == {
            name: ARROW[kind] for name, kind in types.items()
        }
        return found.to_pydict()


ARROW = {N: pa.int64(), R: pa.float64(), B: pa.bool_(), X: pa.string(), D: pa.date32(), S: pa.timestamp("us")}


def parquet(folder, name="t.parquet", **columns):
    path = folder / name
    pq.write_table(pa.table(columns), path)
    return str(path)


def csv(folder, text, name="t.csv"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def database(folder, *statements):
    path = folder / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def stamps(unit, *numbers, zone=None):
    return pa.array(numbers, pa.int64()).view(pa.timestamp(unit, zone))


def broken_text(*values):
    """Make an Arrow column of texts that are not all UTF-8."""
    return pa.array(values, pa.binary()).view(pa.string())


# What is stored, as what it is declared, what questions see.
VALUES = {
    "int8": (pa.array([-128, None], pa.int8()), N, [-128, None]),
    "int32": (pa.array([2**31 - 1, -5], pa.int32()), N, [2**31 - 1, -5]),
    "int64": (pa.array([2**63 - 1, -(2**63)]), N, [2**63 - 1, -(2**63)]),
    "uint32": (pa.array([2**32 - 1], pa.uint32()), N, [2**32 - 1]),
    "uint64": (pa.array([5, 2**64 - 1], pa.uint64()), N, [5, None]),
    "whole reals": (
        pa.array([3.0, -0.0, 3.7, NAN, INF, 1e300, 2.0**63, -(2.0**63)]),
        N,
        [3, 0, None, None, None, None, None, -(2**63)],
    ),
    "whole decimals": (
        pa.array([Decimal("3.00"), Decimal("3.70"), Decimal(10**30)], pa.decimal128(38, 2)),
        N,
        [3, None, None],
    ),
    "bits as integers": (pa.array([True, False, None]), N, [1, 0, None]),
    "whole texts": (
        pa.array(["12", " -7 ", "3.0", "1e3", "3.7", "abc", "", "9223372036854775808", "1_000", "0x10", "+5"]),
        N,
        [12, -7, 3, None, None, None, None, None, None, None, 5],
    ),
    "texts with many blanks": (
        pa.array([" " * 399 + "3", " " * 400 + "3", "3." + "0" * 398, "3." + "0" * 399]),
        N,
        [3, None, 3, None],
    ),
    "real texts with many blanks": (pa.array([" " * 397 + "0.5", " " * 398 + "0.5"]), R, [0.5, None]),
    "whole texts beyond a double": (
        pa.array(["9007199254740993", "9007199254740993.0", "9007199254740993.5", "-9223372036854775808"]),
        N,
        [9007199254740993, 9007199254740993, None, -(2**63)],
    ),
    "reals": (pa.array([1.5, NAN, INF, -INF, None, 1e308]), R, [1.5, None, None, None, None, 1e308]),
    "reals with a NaN that statistics leave out": (pa.array([1.5, NAN]), R, [1.5, None]),
    "single reals with such a NaN": (pa.array([1.5, NAN], pa.float32()), R, [1.5, None]),
    "single reals": (pa.array([1.5, NAN, INF], pa.float32()), R, [1.5, None, None]),
    "half reals": (pa.array(np.array([1.5, NAN], np.float16)), R, [1.5, None]),
    "decimals": (pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)), R, [1.25, None]),
    "wide decimals": (pa.array([Decimal("1.25")], pa.decimal256(60, 2)), R, [1.25]),
    "integers as reals": (pa.array([3, None]), R, [3.0, None]),
    "huge integers as reals": (pa.array([2**64 - 1], pa.uint64()), R, [2.0**64]),
    "real texts": (
        pa.array(["1.5", "1e400", "-1e400", "nan", "inf", "", "1,5", ".5", "5.", " 2 ", "1e-400", "1_0"]),
        R,
        [1.5, None, None, None, None, None, None, 0.5, 5.0, 2.0, 0.0, None],
    ),
    "booleans": (pa.array([True, None]), B, [True, None]),
    "decimal bits": (pa.array([Decimal(0), Decimal("0.5"), None], pa.decimal128(38, 38)), B, [False, None, None]),
    "decimals below one": (pa.array([Decimal(0), Decimal("0." + 38 * "9")], pa.decimal128(38, 38)), N, [0, None]),
    "bits": (pa.array([0, 1, 2, None]), B, [False, True, None, None]),
    "real bits": (pa.array([0.0, -0.0, 1.0, NAN, 0.5]), B, [False, False, True, None, None]),
    "boolean texts": (
        pa.array(["TRUE", "f", " yes ", "0", "2", "", "on"]),
        B,
        [True, False, True, False, None, None, None],
    ),
    "texts": (pa.array(["a", "", None, "é\n'\"", "nul\0byte"]), X, ["a", "", None, "é\n'\"", "nul\0byte"]),
    "long texts": (pa.array(["a" * 100_000], pa.large_string()), X, ["a" * 100_000]),
    "labels": (pa.array(["b", "a", None, "b"]).dictionary_encode(), X, ["b", "a", None, "b"]),
    "labels of numbers": (pa.array(["7", "x"]).dictionary_encode(), N, [7, None]),
    "numbers as texts": (pa.array([7, None]), X, ["7", None]),
    "dates": (
        stamps("us", 0).cast(pa.date32()),
        D,
        [date(1970, 1, 1)],
    ),
    "far dates": (
        pa.array(
            [0, 6_585_442, 2**31 - 1, 2**31 - 2, -(2**31), -(2**31) + 1, -(2**31) + 2, 2_932_896, -719_162, -719_163],
            pa.int32(),
        ).view(pa.date32()),
        D,
        [date(1970, 1, 1), *[None] * 6, date.max, date.min, None],
    ),
    "days of milliseconds": (
        pa.array([0, 86_400_000, 2**62], pa.int64()).view(pa.date64()),
        D,
        [date(1970, 1, 1), date(1970, 1, 2), None],
    ),
    "dates as times": (
        pa.array([1, 2**31 - 2], pa.int32()).view(pa.date32()),
        S,
        [datetime(1970, 1, 2), None],
    ),
    "times": (
        stamps("us", 1, FAR, -FAR, 2**63 - 1, -(2**63), 253_402_300_799_999_999, 253_402_300_800_000_000),
        S,
        [datetime(1970, 1, 1, 0, 0, 0, 1), None, None, None, None, datetime.max, None],
    ),
    "first times": (
        stamps("us", -62_135_596_800_000_000, -62_135_596_800_000_001),
        S,
        [datetime.min, None],
    ),
    "times as days": (
        stamps("us", -1, FAR, -(2**63), -(2**63) + 2),
        D,
        [date(1969, 12, 31), None, None, None],
    ),
    "instants as days": (stamps("us", -1, -(2**63), FAR, zone="UTC"), D, [date(1969, 12, 31), None, None]),
    "texts as days": (
        pa.array(
            ["2026-01-31", "2026-01-31 23:59:59", "20000-01-01", "2026-02-30", "2026-01-31T23:30:00-02:00", "now"]
        ),
        D,
        [date(2026, 1, 31), date(2026, 1, 31), None, None, date(2026, 2, 1), None],
    ),
    "texts as times": (
        pa.array(
            [
                *(
                    "2026-01-31",
                    " 2026-01-31T10:00 ",
                    "2026-01-31 10:00:00.5Z",
                    "2026-01-31 10:00:00+01:00",
                    "infinity",
                ),
                *("20000-01-01", "0000-01-01", "epoch", "", "2026-01-31 25:00:00", "9999-12-31 23:59:59-12:00"),
                *("2026-02-30 10:00", "2026-02-30 10:00Z"),
            ]
        ),
        S,
        [
            *(datetime(2026, 1, 31), datetime(2026, 1, 31, 10), datetime(2026, 1, 31, 10, 0, 0, 500_000)),
            *(datetime(2026, 1, 31, 9), *[None] * 9),
        ],
    ),
    "nothing": (pa.nulls(2), R, [None, None]),
    "broken texts": (broken_text(b"a", b"b\xffc", None), X, None),
}
for unit, second in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
    for zone in (None, "UTC", "America/New_York"):
        VALUES[f"times in {unit}, {zone}"] = (
            stamps(unit, second, -second, zone=zone),
            S,
            [datetime(1970, 1, 1, 0, 0, 1), datetime(1969, 12, 31, 23, 59, 59)],
        )
        if unit != "ns":
            VALUES[f"far times in {unit}, {zone}"] = (
                stamps(unit, second, FAR, -FAR, 2**63 - 1, -(2**63), 253_402_300_800 * second, zone=zone),
                S,
                [datetime(1970, 1, 1, 0, 0, 1), None, None, None, None, None],
            )
each_value = pytest.mark.parametrize(("stored", "kind", "seen"), VALUES.values(), ids=VALUES)
PARQUET = {name: value for name, value in VALUES.items() if not name.startswith("far times in s")}  # it has no seconds
each_value_of_parquet = pytest.mark.parametrize(("stored", "kind", "seen"), PARQUET.values(), ids=PARQUET)


@each_value
def test_every_value_in_arrow_is_unchanged_or_null(stored, kind, seen):
    found = rows(pa.table({"x": stored}), x=kind)["x"]
    if seen is None:
        assert found == ["a", "b\N{REPLACEMENT CHARACTER}c", None]
    else:
        assert found == seen


@each_value_of_parquet
def test_every_value_in_parquet_is_unchanged_or_null(tmp_path, stored, kind, seen):
    found = rows(parquet(tmp_path, x=stored), x=kind)["x"]
    assert found == (["a", "b?c", None] if seen is None else seen)


TEXTS = [name for name, (stored, _, _) in VALUES.items() if stored.type == pa.string() and "broken" not in name]


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_in_csv_is_unchanged_or_null(tmp_path, name):
    stored, kind, seen = VALUES[name]
    lines = ["" if value is None else '"' + value.replace('"', '""') + '"' for value in stored.to_pylist()]
    place = csv(tmp_path, "k,x\n" + "".join(f"1,{line}\n" for line in lines))
    assert rows(place, x=kind)["x"] == seen


@pytest.fixture(scope="module")
def unoptimized():
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET TimeZone = 'UTC'; PRAGMA disable_optimizer")
        yield connection


# The others the engine reads in its own way.
PLAIN = [name for name in VALUES if name not in ("broken texts", "half reals", "wide decimals") and name[:5] != "far t"]


def test_statistics_reach_a_cast_only_where_it_has_no_condition():
    own, other = (cast_select("t", {"c": ('"x"', native, Type.INTEGER)}, "UTC") for native in ("BIGINT", "VARCHAR"))
    assert ('TRY("x")' in own, 'TRY("x")' in other) == (False, True)


@pytest.mark.parametrize("name", PLAIN)
def test_no_cast_relies_on_the_optimizer(unoptimized, name):
    """It compares a date with a timestamp as two dates, for instance: the cast that it leaves out can fail."""
    stored, kind, seen = VALUES[name]
    unoptimized.register("given", pa.table({"x": stored}))
    native = str(unoptimized.table("given").types[0])
    found = unoptimized.execute(cast_select("given", {"x": ("x", native, kind)}, "UTC")).fetchall()
    assert [value for (value,) in found] == seen


def test_zero_keeps_its_value_whatever_its_sign(tmp_path):
    found = rows(parquet(tmp_path, x=pa.array([-0.0, 0.0])), x=R)["x"]
    assert found == [0.0, 0.0]


def test_values_of_a_duckdb_file_are_unchanged_or_null(tmp_path):
    path = database(
        tmp_path,
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE t (h HUGEINT, u UHUGEINT, m mood, e ENUM ('1', 'x'), s TIMESTAMP_S, n TIMESTAMP_NS, "
        "z TIMESTAMPTZ, d DATE, i UUID, f DOUBLE)",
        "INSERT INTO t VALUES (7, 8, 'glad', '1', '2026-01-01', '2026-01-01 00:00:00.000001', "
        "'2026-01-01 00:00:00+00', '2026-01-01', '00000000-0000-0000-0000-000000000001', 1.5)",
        "INSERT INTO t VALUES (170141183460469231731687303715884105727, 340282366920938463463374607431768211455, "
        "'sad', 'x', 'infinity', 'infinity', 'infinity', '-infinity', NULL, 'nan')",
    )
    types = {"h": N, "u": N, "m": X, "e": N, "s": S, "n": S, "z": S, "d": D, "i": X, "f": R}
    found = rows(f"{path}/t", **types)
    assert {name: values[1] for name, values in found.items() if name != "m"} == dict.fromkeys(types.keys() - {"m"})
    assert [values[0] for values in found.values()] == [
        *(7, 8, "glad", 1, datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 0, 1), datetime(2026, 1, 1)),
        *(date(2026, 1, 1), "00000000-0000-0000-0000-000000000001", 1.5),
    ]


SPRING = [datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC), datetime(2026, 3, 29, 1, 0, tzinfo=UTC)]
AUTUMN = [datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)]
IN_BERLIN = [datetime(2026, 3, 29, 1, 59, 59), datetime(2026, 3, 29, 3), *[datetime(2026, 10, 25, 2, 30)] * 2]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_instants_become_local_times_also_when_clocks_change(tmp_path, unit):
    stored = pa.array(SPRING + AUTUMN, pa.timestamp(unit, "America/New_York"))
    assert rows(pa.table({"x": stored}), "Europe/Berlin", x=S)["x"] == IN_BERLIN
    assert rows(parquet(tmp_path, x=stored), "Europe/Berlin", x=S)["x"] == IN_BERLIN
    assert rows(parquet(tmp_path, x=stored), "Europe/Berlin", x=D)["x"] == [each.date() for each in IN_BERLIN]


def test_texts_with_a_time_zone_are_converted_and_others_are_local(tmp_path):
    lines = ["2026-03-29T01:00:00Z", "2026-03-29 03:00:00+02:00", "2026-03-29 03:00+02", "2026-03-29 02:30:00"]
    lines.append("2026-02-29 03:00:00Z")
    found = rows(csv(tmp_path, "x\n" + "\n".join(lines) + "\n"), "Europe/Berlin", x=S)["x"]
    assert found == [*[datetime(2026, 3, 29, 3)] * 3, datetime(2026, 3, 29, 2, 30), None]  # the fourth, no clock showed


def test_out_of_range_instants_are_null_in_every_zone(tmp_path):
    stored = stamps("us", FAR, -FAR, -(2**63), 253_402_300_799_999_999, -62_135_596_800_000_000, zone="UTC")
    east, west = (rows(parquet(tmp_path, x=stored), zone, x=S)["x"] for zone in ("Asia/Tokyo", "America/New_York"))
    assert [each is None for each in east] == [True, True, True, True, False]
    assert [each is None for each in west] == [True, True, True, False, True]


def test_names_may_have_capitals_quotes_and_blanks(tmp_path):
    odd = "a \"quoted\" 'name', and more"
    place = parquet(tmp_path, "it's [1] *?.parquet", **{odd: [1], "Mixed": [2], "select": [3]})
    with DuckDB({odd: TableSource(place, {odd: N, "mixed": N, "select": N})}) as engine:
        doubled = odd.replace('"', '""')
        found = engine.query(f'SELECT * FROM "{doubled}"').to_pydict()
        assert found == {odd: [1], "mixed": [2], "select": [3]}
        assert engine.columns(odd) == {odd: N, "mixed": N, "select": N}


def test_columns_that_are_not_declared_do_not_exist(tmp_path):
    with DuckDB({"t": TableSource(parquet(tmp_path, a=[1], b=[2]), {"a": N})}) as engine:
        assert engine.query("SELECT * FROM t").column_names == ["a"]
        with pytest.raises(EngineError):
            engine.query("SELECT b FROM t")


def test_files_of_a_pattern_may_store_a_column_in_different_types(tmp_path):
    parquet(tmp_path, "1.parquet", n=pa.array([1], pa.int32()), t=["a"], more=[1])
    parquet(tmp_path, "2.parquet", t=["b"], n=pa.array([2**40], pa.int64()))
    parquet(tmp_path, "3.parquet", n=pa.array(["3", "x"]), t=pa.array(["c", "d"]).dictionary_encode())
    parquet(tmp_path, "4.parquet", n=pa.array([NAN, 4.0]), t=["e", "f"])
    found = rows(str(tmp_path / "*.parquet"), n=N, t=X)
    pairs = sorted(zip(found["t"], found["n"], strict=True))
    assert pairs == [("a", 1), ("b", 2**40), ("c", 3), ("d", None), ("e", None), ("f", 4)]


def test_a_pattern_reaches_into_folders(tmp_path):
    (tmp_path / "2026" / "05").mkdir(parents=True)
    parquet(tmp_path / "2026" / "05", "x.parquet", a=[1])
    parquet(tmp_path, "y.parquet", a=[2])
    assert sorted(rows(str(tmp_path / "**" / "*.parquet"), a=N)["a"]) == [1, 2]


def test_compressed_csv_and_tab_separated_files_are_read(tmp_path):
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(b"a,b\n1,x\n2,\xff\n"))
    assert rows(str(packed), a=N, b=X) == {"a": [1], "b": ["x"]}
    assert rows(csv(tmp_path, "a\tb\n1\tx,y\n", "t.tsv"), a=N, b=X) == {"a": [1], "b": ["x,y"]}


def test_csv_is_text_whatever_it_looks_like(tmp_path):
    place = csv(tmp_path, "zip,when\n00123,2026-01-01\n7,12\n")
    assert rows(place, zip=X, when=X) == {"zip": ["00123", "7"], "when": ["2026-01-01", "12"]}


def test_an_empty_field_of_csv_is_null_and_an_empty_text_is_not(tmp_path):
    place = csv(tmp_path, 'a,b,c\n,,\n"","",""\n')
    assert rows(place, a=N, b=X, c=D) == {"a": [None, None], "b": [None, ""], "c": [None, None]}


CSV = {
    "too few fields": ("a,b\n1,x\n2\n3,y\n", [(1, "x"), (3, "y")]),
    "too many fields": ("a,b\n1,x\n2,y,z\n3,y\n", [(1, "x"), (2, "y"), (3, "y")]),
    "blank lines": ("a,b\n\n1,x\n\n3,y\n", [(1, "x"), (3, "y")]),
    "no last line break": ("a,b\n1,x\n3,y", [(1, "x"), (3, "y")]),
    "mixed line breaks": ("a,b\r\n1,x\n3,y\r\n", [(1, "x"), (3, "y")]),
    "line breaks in quotes": ('a,b\n1,"x\n2,z"\n3,y\n', [(1, "x\n2,z"), (3, "y")]),
    "quotes in quotes": ('a,b\n1,"x ""z"""\n3,y\n', [(1, 'x "z"'), (3, "y")]),
    "words behind quotes": ('a,b\n1,x\n2,"z"w\n3,y\n', [(1, "x"), (2, None), (3, "y")]),
    "broken bytes": (b"a,b\n1,x\n2,\xff\n3,y\n", [(1, "x"), (3, "y")]),
    "a byte order mark": (b"\xef\xbb\xbfa,b\n1,x\n3,y\n", [(1, "x"), (3, "y")]),
    "a line that is too long": ("a,b\n1,x\n2," + "z" * 3_000_000 + "\n3,y\n", [(1, "x"), (3, "y")]),
}


@pytest.mark.parametrize(("text", "seen"), CSV.values(), ids=CSV)
def test_a_broken_row_of_csv_affects_no_other(tmp_path, text, seen):
    found = rows(csv(tmp_path, text), a=N, b=X)
    kept = [(a, None if a == 2 and (2, None) in seen else b) for a, b in zip(found["a"], found["b"], strict=True)]
    assert kept == seen


@pytest.mark.long
def test_no_csv_raises(tmp_path):
    chance = random.Random(20261116)
    sources = {}
    for place in range(300):
        body = bytes(chance.choice(b',,,""\n\n\raab1\xff\x00\xc3') for _ in range(chance.randint(0, 80)))
        path = csv(tmp_path, b"a,b,c\n1,2,3\n" + body + b"\n4,5,6\n", f"{place}.csv")
        sources[f"t{place}"] = TableSource(path, {"a": N, "b": X, "c": R})
    with DuckDB(sources) as engine:
        for table in sources:
            found = engine.query(f"SELECT * FROM {table}").to_pylist()
            assert found[0] == {"a": 1, "b": "2", "c": 3.0}


def test_a_text_never_becomes_another_persons_row(tmp_path):
    lines = "9,9,9\n" * 5000
    row = f'1,2,"{lines}"\n'
    place = csv(tmp_path, "user,b,c\n" + row * 600)  # more than one thread would read at once
    with DuckDB({"t": TableSource(place, {"user": N, "c": X})}, tuning=Tuning(threads=4)) as engine:
        found = engine.query('SELECT "user", COUNT(*) AS n, MIN(LENGTH(c)) AS l FROM t GROUP BY 1').to_pydict()
    assert found == {"user": [1], "n": [600], "l": [len(lines)]}


def frame():
    return {
        "user": [1, 2, 3],
        "name": ["a", None, "c"],
        "x": [1.5, NAN, INF],
        "day": [datetime(2026, 1, 1), None, datetime(2026, 1, 3)],
        "yes": [True, False, True],
    }


TYPES = {"user": N, "name": X, "x": R, "day": D, "yes": B}
SEEN = {
    "user": [1, 2, 3],
    "name": ["a", None, "c"],
    "x": [1.5, None, None],
    "day": [date(2026, 1, 1), None, date(2026, 1, 3)],
    "yes": [True, False, True],
}


@pytest.mark.parametrize(
    "made",
    [
        lambda: pd.DataFrame(frame()),
        lambda: pd.DataFrame(frame()).convert_dtypes(),
        lambda: pd.DataFrame(frame()).astype({"name": "category", "user": "category"}),
        lambda: pd.DataFrame(frame()).astype({"name": object, "user": object, "x": object, "day": object}),
        lambda: pd.DataFrame(frame()).astype({"name": "string", "day": "datetime64[s]"}),
        lambda: pd.DataFrame(frame()).convert_dtypes(dtype_backend="pyarrow"),
        lambda: pl.DataFrame(frame()),
        lambda: pl.DataFrame(frame()).lazy(),
        lambda: pl.DataFrame(frame()).with_columns(pl.col("name").cast(pl.Categorical), pl.col("user").cast(pl.UInt64)),
        lambda: pl.DataFrame(frame()).with_columns(pl.col("name").cast(pl.Enum(["a", "c"]))),
        lambda: pa.table(frame()),
        lambda: pa.RecordBatch.from_pydict(frame()),
        lambda: pa.table(frame()).to_reader(),
    ],
    ids=[
        *("pandas", "pandas nullable", "pandas categories", "pandas objects", "pandas strings", "pandas of Arrow"),
        *("polars", "polars lazy", "polars categories", "polars enum", "Arrow", "Arrow batch", "Arrow reader"),
    ],
)
def test_every_kind_of_frame_shows_the_same_rows(made):
    assert rows(made(), **TYPES) == SEEN


def test_objects_in_pandas_are_read_as_their_texts():
    things = [1, 2.0, 3.5, "4", "x", None, NAN, pd.NA, pd.NaT, Decimal("5.0"), Decimal("NaN"), True, np.int64(6)]
    things += [np.float64(7), 10**5000, [8], b"9", {"a": 1}, np.True_]
    frame = pd.DataFrame({"x": pd.Series(things, dtype=object)})
    assert rows(frame, x=N)["x"] == [1, 2, None, 4, *[None] * 5, 5, None, None, 6, 7, *[None] * 5]
    assert rows(frame, x=X)["x"][:8] == ["1", "2.0", "3.5", "4", "x", None, None, None]
    moments = [date(2026, 1, 1), datetime(2026, 1, 1, 12), pd.Timestamp("2026-01-01T12:00+02:00"), "2026-01-02", 7]
    frame = pd.DataFrame({"x": pd.Series([*moments, "\ud800", UUID(int=1)], dtype=object)})
    seen = [datetime(2026, 1, 1), datetime(2026, 1, 1, 12), datetime(2026, 1, 1, 10), datetime(2026, 1, 2)]
    assert rows(frame, x=S)["x"] == [*seen, None, None, None]
    assert rows(frame, x=X)["x"][5:] == ["?", "00000000-0000-0000-0000-000000000001"]


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame])
def test_later_changes_to_a_frame_do_not_matter(made):
    numbers = np.array([1.0, 2.0])
    given = made({"x": numbers}) if made is pl.DataFrame else pd.DataFrame({"x": numbers}, copy=False)
    with DuckDB({"t": TableSource(given, {"x": R})}) as engine:
        numbers[:] = 9
        if made is pd.DataFrame:
            given.loc[:, "x"] = 9.0
        assert engine.query("SELECT x FROM t").to_pydict() == {"x": [1.0, 2.0]}


def test_a_frame_that_raises_is_refused_without_its_message(tmp_path):
    lazy = pl.scan_csv(csv(tmp_path, "x\n1\nsecret\n"), schema={"x": pl.Int64})
    words = refused(lazy, x=N)
    assert "cannot be read" in words
    assert "secret" not in words


def test_a_frame_may_hold_undeclared_columns_that_nobody_can_read():
    assert rows(pd.DataFrame({"x": [1], "p": pd.period_range("2026", periods=1)}), x=N) == {"x": [1]}
    assert rows(pl.DataFrame({"x": [1], "o": pl.Series([object()], dtype=pl.Object)}), x=N) == {"x": [1]}
    assert rows(pa.table({"x": [1], "l": [[1]]}), x=N) == {"x": [1]}


@pytest.mark.parametrize(
    "place",
    [
        lambda folder: parquet(folder, a=pa.array([], pa.int32()), b=pa.array([], pa.string())),
        lambda folder: parquet(folder, a=pa.array([], pa.timestamp("ms")), b=pa.array([], pa.string())),
        lambda folder: csv(folder, "a,b\n"),
        lambda folder: csv(folder, "a,b"),
        lambda folder: pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())}),
        lambda folder: pd.DataFrame({"a": [], "b": []}),
        lambda folder: pl.DataFrame({"a": [], "b": []}),
        lambda folder: f"{database(folder, 'CREATE TABLE t (a INTEGER, b TEXT)')}/t",
    ],
)
def test_a_table_without_rows_is_a_table(tmp_path, place):
    made = place(tmp_path)
    kind = (
        S if isinstance(made, str) and made.endswith("parquet") and pq.read_schema(made).types[0] != pa.int32() else N
    )
    assert rows(made, a=kind, b=X if "float" not in str(getattr(made, "dtypes", "")) else R) == {"a": [], "b": []}


def test_public_tables_show_all_columns_that_have_a_type(tmp_path):
    place = parquet(tmp_path, n=[1], r=[1.5], t=["x"], d=[date(2026, 1, 1)], b=[b"x"], l=[[1]], q=[True], z=pa.nulls(1))
    with DuckDB({"p": TableSource(place), "c": TableSource(csv(tmp_path, "k,v\n1,2\n"))}) as engine:
        assert engine.columns("p") == {"n": N, "r": R, "t": X, "d": D, "q": B}
        assert engine.columns("c") == {"k": X, "v": X}
        assert engine.query("SELECT * FROM p").column_names == ["n", "r", "t", "d", "q"]


def test_the_values_of_a_public_column_are_sorted_and_not_null(tmp_path):
    place = parquet(tmp_path, n=[3, 1, None, 1], t=["b", "B", "é", "a"], x=[NAN, 1.0, 0.5, INF])
    with DuckDB({"p": TableSource(place)}) as engine:
        assert engine.values("p", "n") == [1, 3]
        assert engine.values("p", "t") == ["B", "a", "b", "é"]
        assert engine.values("p", "x") == [0.5, 1.0]
        with pytest.raises(KeyError, match="column m "):
            engine.values("p", "m")


def test_the_fanout_is_the_largest_number_of_rows_with_the_same_key(tmp_path):
    place = parquet(tmp_path, a=[1, 1, 1, 2, None, None, None, None], b=["x", "x", "y", "x", "x", "x", "x", None])
    empty = parquet(tmp_path, "empty.parquet", a=pa.array([], pa.int64()))
    with DuckDB({"p": TableSource(place), "none": TableSource(empty)}) as engine:
        assert engine.fanout("p", ("a",)) == 3
        assert engine.fanout("p", ("a", "b")) == 2
        assert engine.fanout("p", ()) == 8
        assert (engine.fanout("none", ("a",)), engine.fanout("none", ())) == (0, 0)


def refused(place, /, table="visits", **types):
    with pytest.raises(PolicyError) as caught:
        DuckDB({table: TableSource(place, types)}).close()
    assert str(caught.value).startswith(f"table {table}")
    return str(caught.value)


def test_a_missing_column_is_refused_with_a_similar_name(tmp_path):
    place = parquet(tmp_path, amount=[1])
    for given in (place, csv(tmp_path, "amount\n1\n"), pd.DataFrame({"amount": [1]}), pl.DataFrame({"amount": [1]})):
        assert 'column amont: it does not exist in the source. The source has "amount".' in refused(given, amont=N)
        assert "Correct its name" in refused(given, other=N)


def test_two_columns_that_differ_by_case_are_refused(tmp_path):
    both = pa.table([[1], [2]], names=["A", "a"])
    pq.write_table(both, tmp_path / "t.parquet")
    for given in (str(tmp_path / "t.parquet"), both, csv(tmp_path, "A,a\n1,2\n")):
        assert "several columns of this name" in refused(given, a=N)


@pytest.mark.parametrize(
    ("stored", "kind", "words"),
    [
        (pa.array([b"x"]), X, "stored as BLOB, which is not supported"),
        (pa.array([[1]]), N, "which is not supported"),
        (pa.array([{"a": 1}]), N, "which is not supported"),
        (pa.array([1.5]), X, ' to text. Declare type = "real"'),
        (pa.array([date(2026, 1, 1)]), N, ' to integer. Declare type = "date"'),
        (pa.array([1]), S, ' to timestamp. Declare type = "integer"'),
        (pa.array([True]), R, ' to real. Declare type = "boolean"'),
        (pa.array(["{}"], pa.json_()), N, "JSON"),
    ],
)
def test_a_type_that_never_fits_is_refused(tmp_path, stored, kind, words):
    if "JSON" not in words:
        assert words.removeprefix("stored as BLOB, ") in refused(pa.table({"x": stored}), x=kind)
    assert words in refused(parquet(tmp_path, x=stored), x=kind)


def test_a_generated_column_in_a_duckdb_file_is_refused_because_it_may_raise(tmp_path):
    path = database(tmp_path, "CREATE TABLE t (a INTEGER, b INTEGER AS (1 // a))", "CREATE VIEW v AS SELECT 1 AS a")
    assert "stored as a formula" in refused(f"{path}/t", b=N)
    assert "table v does not exist" in refused(f"{path}/v", a=N)
    assert rows(f"{path}/t", a=N) == {"a": []}


def test_tables_of_a_duckdb_file_are_found_in_their_schemas(tmp_path):
    path = database(
        tmp_path,
        "CREATE TABLE t AS SELECT 1 AS a",
        'CREATE TABLE "s.t" AS SELECT 2 AS a',
        "CREATE SCHEMA s",
        "CREATE TABLE s.u AS SELECT 3 AS a",
    )
    sources = {
        name: TableSource(f"{path}/{place}", {"a": N}) for name, place in (("x", "T"), ("y", "s.t"), ("z", "s.u"))
    }
    with DuckDB(sources) as engine:
        found = [engine.query(f"SELECT a FROM {name}").column("a").to_pylist() for name in sources]
    assert found == [[1], [2], [3]]


def test_a_missing_source_is_refused_with_a_hint(tmp_path):
    assert "no such file" in refused(str(tmp_path / "gone.parquet"), a=N)
    assert "no such file" in refused(str(tmp_path / "*.parquet"), a=N)
    assert "no such file" in refused(str(tmp_path / "gone.duckdb" / "t"), a=N)
    assert "is a folder" in refused(str(tmp_path), a=N)
    assert "Use files that end in .parquet" in refused(csv(tmp_path, "a\n1\n", "t.xlsx"), a=N)
    assert "list is not a table" in refused([{"a": 1}], a=N)
    csv(tmp_path, "a\n1\n", "m.csv")
    parquet(tmp_path, "m.parquet", a=[1])
    assert "one format" in refused(str(tmp_path / "m.*"), a=N)
    assert "has no header" in refused(csv(tmp_path, ""), a=N)


def test_a_file_that_cannot_be_read_is_refused_without_its_contents(tmp_path):
    for name in ("t.parquet", "t.csv.gz", "t.duckdb"):
        place = csv(tmp_path, "secret, not what the name says", name)
        words = refused(f"{place}/t" if name == "t.duckdb" else place, a=N)
        assert "cannot " in words
        assert "secret" not in words
    assert "cannot be read" in refused(csv(tmp_path, "secret".encode("utf-16")), a=N)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path):
    place = csv(tmp_path, "a\n1\n")
    Path(place).chmod(0)
    assert "may not be read" in refused(place, a=N)


def test_names_that_the_engine_does_not_distinguish_are_refused():
    rows = pa.table({"a": [1]})
    with pytest.raises(PolicyError, match="another table's only in case"):
        DuckDB({"T": TableSource(rows, {"a": N}), "t": TableSource(rows, {"a": N})})
    with pytest.raises(PolicyError, match=r"column A: .* only in case"):
        DuckDB({"t": TableSource(rows, {"A": N, "a": N})})


def test_public_files_that_differ_must_be_declared(tmp_path):
    parquet(tmp_path, "1.parquet", a=[1])
    parquet(tmp_path, "2.parquet", a=["x"])
    assert "differ in columns or types" in refused(str(tmp_path / "*.parquet"))


@pytest.fixture(scope="module")
def locked_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("locked")


@pytest.fixture(scope="module")
def locked(locked_folder):
    """An engine with every kind of source, and a file that is none of its business."""
    (locked_folder / "other.csv").write_text("a\nother people's\n")
    path = database(locked_folder, "CREATE TABLE t AS SELECT 1 AS a")
    sources = {
        "p": TableSource(parquet(locked_folder, a=[1]), {"a": N}),
        "c": TableSource(csv(locked_folder, "a\n1\n"), {"a": N}),
        "d": TableSource(f"{path}/t", {"a": N}),
        "f": TableSource(pa.table({"a": [1]}), {"a": N}),
    }
    with DuckDB(sources) as engine:
        yield engine


FORBIDDEN = [
    "SELECT * FROM read_csv('{other}')",
    "SELECT * FROM read_text('{other}')",
    "SELECT * FROM '{other}'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM visible_variable",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY (SELECT 1 AS a) TO '{folder}/t.parquet'",
    "EXPORT DATABASE '{folder}/out'",
    "ATTACH '{folder}/new.duckdb'",
    "ATTACH '{folder}/data.duckdb' AS again",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET threads = 1",
    "SET enable_external_access = true",
    "SET allowed_paths = ['{other}']",
    "SET allowed_directories = ['{folder}']",
    "SET lock_configuration = false",
    "SET python_enable_replacements = true",
    "SET TimeZone = 'Asia/Tokyo'",
    "SET max_execution_time = 0",
    "RESET memory_limit",
    "PRAGMA enable_profiling",
    'INSERT INTO ".file3".main.t VALUES (2)',
    "CREATE PERSISTENT SECRET s (TYPE http)",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_locked_engine_reaches_nothing_else(locked, locked_folder, statement):
    visible_variable = pa.table({"a": [1]})
    assert visible_variable.num_rows == 1
    before = {path.name: path.stat().st_mtime_ns for path in locked_folder.iterdir()}
    with pytest.raises(duckdb.Error):
        locked._connection.sql(statement.format(folder=locked_folder, other=locked_folder / "other.csv")).fetchall()
    assert {path.name: path.stat().st_mtime_ns for path in locked_folder.iterdir()} == before
    for table in "pcdf":
        assert locked.query(f"SELECT a FROM {table}").to_pydict() == {"a": [1]}


@pytest.mark.parametrize(
    "statement",
    [
        *FORBIDDEN,
        "CREATE TABLE x AS SELECT 1",
        "DROP VIEW p",
        "DELETE FROM f",
        "ATTACH ':memory:' AS m",
        "SET VARIABLE x = 1",
        "SELECT 1; SELECT 2",
        "",
        "EXPLAIN ANALYZE SELECT 1",
        "CALL pragma_version()",
        "BEGIN",
        "not SQL",
    ],
)
def test_a_question_is_one_select(locked, locked_folder, statement):
    with pytest.raises(EngineError):
        locked.query(statement.format(folder=locked_folder, other=locked_folder / "other.csv"))
    assert locked.query("SELECT COUNT(*) AS n FROM f").to_pydict() == {"n": [1]}


def test_the_configuration_is_what_the_lock_down_says(locked, locked_folder):
    wanted = {
        "enable_external_access": "false",
        "lock_configuration": "true",
        "python_enable_replacements": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    names = ", ".join(f"'{name}'" for name in [*wanted, "allowed_paths", "allowed_directories"])
    lines = locked.query(f"SELECT name, value FROM duckdb_settings() WHERE name IN ({names})").to_pylist()
    found = {line["name"]: line["value"] for line in lines}
    paths, folders = found.pop("allowed_paths"), found.pop("allowed_directories")
    assert found == wanted
    assert folders.startswith(f"[{tempfile.gettempdir()}/discreet-")  # its own, for what does not fit in memory
    assert "," not in folders
    known = [path.removesuffix(".recovery").removesuffix(".checkpoint") for path in paths.strip("[]").split(", ")]
    names = (
        "t.parquet",
        "t.csv",
        "data.duckdb",
        "data.duckdb.wal",
    )  # the last two by DuckDB itself, since it holds them
    assert set(known) == {str(locked_folder / name) for name in names}


def test_a_question_that_takes_too_long_is_stopped_and_the_next_is_answered():
    tuning = Tuning(seconds=0.05, threads=1)
    with DuckDB({"t": TableSource(pa.table({"a": [1]}), {"a": N})}, tuning=tuning) as engine:
        with pytest.raises(EngineError, match="time"):
            engine.query("SELECT COUNT(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range) = b.range")
        found = None
        while found is None:  # on a busy machine, any question may take too long
            with suppress(EngineError):
                found = engine.query("SELECT a FROM t")
        assert found.to_pydict() == {"a": [1]}


def test_a_question_that_takes_too_much_memory_is_stopped_and_the_next_is_answered(tmp_path):
    tuning = Tuning(memory="20MB", threads=1, folder=str(tmp_path))
    with DuckDB({"t": TableSource(pa.table({"a": [1]}), {"a": N})}, tuning=tuning) as engine:
        with pytest.raises(EngineError, match="Memory"):
            engine.query("SELECT LENGTH(STRING_AGG(REPEAT('x', 100000), '')) FROM range(1000)")
        assert engine.query("SELECT a FROM t").to_pydict() == {"a": [1]}


@pytest.mark.long
def test_data_that_exceeds_memory_spills_to_a_folder_that_is_removed(tmp_path):
    with DuckDB({}, tuning=Tuning(memory="60MB", threads=1, folder=str(tmp_path))) as engine:
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        sql = "SELECT COUNT(*) AS n FROM (SELECT range % 2000000 AS k, MAX(hash(range)) FROM range(3000000) GROUP BY k)"
        assert engine.query(sql).to_pydict() == {"n": [2_000_000]}
    assert list(tmp_path.iterdir()) == []


def test_a_question_that_takes_too_much_of_the_disk_is_stopped_and_the_next_is_answered(tmp_path):
    tuning = Tuning(memory="60MB", threads=1, folder=str(tmp_path), disk="1MB")
    with DuckDB({"t": TableSource(pa.table({"a": [1]}), {"a": N})}, tuning=tuning) as engine:
        with pytest.raises(EngineError, match="max_temp_directory_size"):
            engine.query("SELECT COUNT(*) FROM (SELECT range AS k, MAX(hash(range)) FROM range(6000000) GROUP BY k)")
        assert engine.query("SELECT a FROM t").to_pydict() == {"a": [1]}


def test_a_failed_open_leaves_nothing_behind(tmp_path):
    with pytest.raises(PolicyError):
        DuckDB({"t": TableSource(str(tmp_path / "gone.csv"))}, tuning=Tuning(folder=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_wrong_tuning_and_zones_are_refused():
    with pytest.raises(ValueError, match="memory must be a share or a size"):
        DuckDB({}, tuning=Tuning(memory="much"))
    with pytest.raises(ValueError, match="disk must be a size"):
        DuckDB({}, tuning=Tuning(disk="much"))
    with pytest.raises(ValueError, match="seconds"):
        Tuning(seconds=0)
    with pytest.raises(ValueError, match="threads"):
        Tuning(threads=0)
    with pytest.raises(PolicyError, match='timezone "Mars" is unknown'):
        DuckDB({}, timezone="Mars")


@pytest.mark.parametrize("change", ["removed", "replaced", "rewritten", "grown"])
@pytest.mark.parametrize("end", ["parquet", "csv", "duckdb"])
def test_a_file_that_changes_after_the_engine_was_opened_is_not_read(tmp_path, change, end):
    made = {"parquet": lambda folder: parquet(folder, a=[1]), "csv": lambda folder: csv(folder, "a\n1\n")}
    path = Path(made[end](tmp_path)) if end in made else database(tmp_path, "CREATE TABLE t AS SELECT 1 AS a")
    with DuckDB({"t": TableSource(f"{path}/t" if end == "duckdb" else str(path), {"a": N})}) as engine:
        assert engine.query("SELECT a FROM t").to_pydict() == {"a": [1]}
        data = path.read_bytes()
        if change == "removed":
            path.unlink()
        elif change == "replaced":
            (tmp_path / "new").write_bytes(data)
            (tmp_path / "new").replace(path)
        elif change == "rewritten":
            path.write_bytes(data)
            os.utime(path, ns=(1, 1))
        else:
            path.write_bytes(data + b"1\n")
        with pytest.raises(EngineError, match=r"table t: .* was changed or removed"):
            engine.query("SELECT a FROM t")


def test_a_file_that_changes_while_a_question_runs_invalidates_the_answer(tmp_path, monkeypatch):
    place = parquet(tmp_path, a=[1])
    with DuckDB({"t": TableSource(place, {"a": N})}) as engine:
        run = engine._run

        def slow(*sql):
            found = run(*sql)
            parquet(tmp_path, a=[1, 2, 3])
            return found

        monkeypatch.setattr(engine, "_run", slow)
        with pytest.raises(EngineError, match="was changed"):
            engine.query("SELECT a FROM t")


def test_threads_take_turns():
    place = pa.table({"a": list(range(1000))})
    with DuckDB({"t": TableSource(place, {"a": N})}) as engine:
        found = []

        def ask():
            found.extend(engine.query("SELECT SUM(a)::BIGINT AS s FROM t").column("s").to_pylist() for _ in range(20))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [[499_500]] * 80


def test_a_closed_engine_answers_nothing_and_closes_again():
    engine = DuckDB({})
    assert engine.query("SELECT 1 AS a").to_pydict() == {"a": [1]}
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.query("SELECT 1")


def test_closing_stops_a_question_that_is_running():
    engine, failed = DuckDB({}), []

    def ask():
        try:
            engine.query("SELECT COUNT(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range) = b.range")
        except EngineError as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not engine._connection_lock.locked():
        thread.join(0.001)
    engine.close()
    thread.join()
    assert len(failed) == 1


def test_a_child_of_the_process_cannot_use_the_engine(monkeypatch):
    with DuckDB({}) as engine:
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(EngineError, match="another process"):
            engine.query("SELECT 1")
        engine.close()
        monkeypatch.undo()
        assert engine.query("SELECT 1 AS a").to_pydict() == {"a": [1]}


def test_an_engine_error_is_one_of_discreets_own():
    assert issubclass(EngineError, DiscreetError)
