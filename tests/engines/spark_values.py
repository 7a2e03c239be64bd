"""Columns with every kind of value in one Parquet file, cast by Spark and DuckDB to each kernel type."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.engines.duckdb import casts
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.spark import casts as spark_columns
from discreet.engines.spark.engine import Spark
from discreet.engines.table_source import TableSource
from discreet.kernel.expr import Type

KINDS = {"n": Type.INTEGER, "r": Type.REAL, "b": Type.BOOLEAN, "x": Type.TEXT, "d": Type.DATE, "s": Type.TIMESTAMP}
NAN, INF = float("nan"), float("inf")
FAR = 2**63 - 5
YEAR_1, YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000  # in microseconds
HOUR = 3_600_000_000

WHOLE_TEXTS = [
    *("12", " -7 ", "3.0", "3.", "+3.", "1e3", "3.7", "abc", "", " ", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "-9223372036854775809", "-9223372036854775808.0", "1_000", "0x10", "+5", "-0", "--5"),
    *("00000000000000000003", "0000000000000000003", "9007199254740993", "9007199254740993.5", "١٢", "12\n", "\t12"),
    *(
        "3." + "0" * 398,
        "3." + "0" * 399,
        " " * 399 + "3",
        " " * 400 + "3",
        "1 2",
        "5-",
        ".",
        "+",
        "1d",
        "12L",
        "3.0.0",
    ),
]
REAL_TEXTS = [
    *("1.5", "1e400", "-1e400", "nan", "NaN", "inf", "-Infinity", "1,5", ".5", "5.", " 2 ", "1e-400", "1_0", "1.5f"),
    *("1e308", "1.7976931348623157e308", "1.7976931348623159e308", "4.9e-324", "2e-324", "0e999", "1e0005", "1e005"),
    *("1.e5", "+.5", "1e", "e5", "1e5.0", "0.1", "123456789.123456789", "9" * 309, "9" * 308, "0" * 400 + "1", "0x1p3"),
]
TRUTHS = ["TRUE", "f", " yes ", "0", "1", "on", "No", "\u00a0true", "true\n", "Y", "t r", "\uff34rue", "\tno"]
TIME_TEXTS = [
    *("2026-01-31", " 2026-01-31T10:00 ", "2026-01-31 10:00:00.5Z", "2026-01-31 10:00:00+01:00", "infinity", "epoch"),
    *("20000-01-01", "0000-01-01", "0001-01-01", "9999-12-31", "2026-02-29", "2024-02-29", "1900-02-29", "2000-02-29"),
    *("2026-04-31", "2026-13-01", "2026-00-10", "2026-01-00", "2026-01-32", "now", "today", "2026", "2026-01"),
    *("2026-01-31 25:00:00", "2026-01-31 24:00:00", "2026-01-31 23:59:60", "2026-01-31 23:60", "2026-01-31 10:00Z"),
    *("2026-01-31 23:59:59.9999999", "9999-12-31 23:59:59.9999999", "1969-12-31 23:59:59.999999999"),
    *("2026-01-31 10:00:00.1234565", "2026-01-31 10:00:00.1234567890", "2026-01-31 10:00:00.", "2026-01-31 10"),
    *("9999-12-31 23:59:59-12:00", "0001-01-01 00:00+12", "9999-12-31 23:59:59.999999Z", "0001-01-01T00:00:00Z"),
    *("2026-01-31 10:00+15:59", "2026-01-31 10:00-1559", "2026-01-31 10:00+16", "2026-01-31 10:00+14:60"),
    *(
        "2026-01-31 10:00:00.123456789+01",
        "2026-01-31Z",
        "2026-01-31+01",
        "2026-1-31",
        "31.01.2026",
        "2026-01-31 10+01",
    ),
    *("2026-01-31 10:00 CET", "2026-01-31  10:00", "2026-01-31t10:00", "2026-01-31 10:00z", "2026-01-31 10:00-00:30"),
    *(
        "2026-03-29 02:30:00",
        "2026-03-29 02:30:00+01",
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:30:00+01",
        "20260131",
    ),
    *(" " * 390 + "2026-01-31", " " * 391 + "2026-01-31", "2026-01-31\n", "-2026-01-31", "+2026-01-31", "1850-01-01Z"),
]
REALS = [
    *(0.0, -0.0, 1.0, 0.5, 3.0, 3.7, -3.0, NAN, INF, -INF, 1e300, -1e300, 5e-324, 2.0**63, -(2.0**63), None),
    *(2.0**63 - 1024, -(2.0**63) - 2048, 1e19, 2.5, 1.7976931348623157e308, 2.0**53 + 2),
]
SINGLES = [0.0, 1.0, 3.0, 3.7, NAN, INF, -INF, 3e38, 1e-45, 2.0**63, -9e18, 2.5, None]
MICROSECONDS = [
    *(0, 1, -1, FAR, -FAR, 2**63 - 1, -(2**63), -(2**63) + 2, YEAR_1, YEAR_1 - 1, YEAR_10000, YEAR_10000 - 1, None),
    *(YEAR_1 + 6 * HOUR, YEAR_1 - 6 * HOUR, YEAR_10000 + 6 * HOUR, YEAR_10000 - 6 * HOUR, -3_786_825_600_000_000),
    *(1_774_745_999_000_000, 1_774_746_000_000_000, 1_792_888_200_000_000, 1_792_891_800_000_000),  # clocks change
]
DAYS = [0, 6_585_442, 2**31 - 1, -(2**31), -(2**31) + 1, 2_932_896, 2_932_897, -719_162, -719_163, None]
STORED = {
    "tinyint": pa.array([-128, 0, 1, 2, None], pa.int8()),
    "smallint": pa.array([-32768, 0, 1, None], pa.int16()),
    "int": pa.array([2**31 - 1, -5, 0, 1, None], pa.int32()),
    "bigint": pa.array([2**63 - 1, -(2**63), 0, 1, None]),
    "unsigned byte": pa.array([255, 0, 1], pa.uint8()),
    "unsigned int": pa.array([2**32 - 1, 0, 1], pa.uint32()),
    "unsigned bigint": pa.array([5, 2**64 - 1, 0, 1], pa.uint64()),
    "double": pa.array(REALS),
    "float": pa.array(SINGLES, pa.float32()),
    "decimal(10,2)": pa.array([Decimal("1.25"), Decimal("3.00"), Decimal(0), Decimal(1), None], pa.decimal128(10, 2)),
    "decimal(38,2)": pa.array([Decimal("3.00"), Decimal("-3.70"), Decimal(10**30), Decimal(1)], pa.decimal128(38, 2)),
    "decimal(38,0)": pa.array(
        [Decimal(2**63 - 1), Decimal(2**63), Decimal(-(2**63)), Decimal(-(2**63) - 1), Decimal(10**38 - 1)],
        pa.decimal128(38, 0),
    ),
    "decimal(38,38)": pa.array(
        [Decimal(0), Decimal("0." + 38 * "9"), Decimal("0.5"), Decimal("1e-38")], pa.decimal128(38, 38)
    ),
    "boolean": pa.array([True, False, None]),
    "whole texts": pa.array(WHOLE_TEXTS),
    "real texts": pa.array(REAL_TEXTS),
    "truths": pa.array(TRUTHS),
    "time texts": pa.array(TIME_TEXTS),
    "texts": pa.array(["a", "", None, "é\n'\"\\", "nul\0byte", "𝄞", "\u0301", "${env:HOME}", "a" * 100_000]),
    "date": pa.array(DAYS, pa.int32()).view(pa.date32()),
    "timestamp_ntz": pa.array(MICROSECONDS, pa.int64()).view(pa.timestamp("us")),
    "timestamp": pa.array(MICROSECONDS, pa.int64()).view(pa.timestamp("us", "UTC")),
    "timestamp_ntz in milliseconds": pa.array([1000, -1, 2**53, None], pa.int64()).view(pa.timestamp("ms")),
    "timestamp in milliseconds": pa.array([1000, -1, 2**53, None], pa.int64()).view(pa.timestamp("ms", "UTC")),
}


def write(path, columns):
    """Write columns side by side, the shorter ones with NULLs below, and the numbers of the rows as i."""
    longest = max(map(len, columns.values()))
    rows = {name: pa.concat_arrays([each, pa.nulls(longest - len(each), each.type)]) for name, each in columns.items()}
    # Without Arrow's own schema, which only some readers look at.
    pq.write_table(pa.table({"i": range(longest), **rows}), path, store_schema=False)
    return str(path)


def differences(url, path, names, zone="UTC"):
    """Return where Spark and DuckDB differ: the column, the kind, the row, and what each of them shows."""
    natives = {field.name: field.type for field in pq.read_schema(path)}
    found = []
    sources = {}
    for letter, kind in KINDS.items():
        fitting = {name: kind for name in names if _fits(natives[name], kind)}
        sources[letter] = TableSource(path, {"i": Type.INTEGER, **fitting})
    with Spark(sources, url=url, timezone=zone) as spark, DuckDB(sources, timezone=zone) as duck:
        for letter, source in sources.items():
            ours = spark.query(f"SELECT * FROM {spark.dialect.table_source(letter)}").sort_by("i")
            theirs = duck.query(f'SELECT * FROM "{letter}" ORDER BY i')
            assert ours.schema.types == theirs.schema.types
            for name in source.columns:
                pairs = zip(ours.column(name).to_pylist(), theirs.column(name).to_pylist(), strict=True)
                found += [(name, letter, row, *pair) for row, pair in enumerate(pairs) if str(pair[0]) != str(pair[1])]
    return found


def _fits(stored, kind):
    """Whether the column fits in both; that they agree about it is another test."""
    spark, duck = NATIVES[str(stored)]
    return casts.can_cast(duck, kind) and spark_columns.can_cast(spark, kind)


NATIVES = {  # what Arrow calls it, Spark, and DuckDB
    "int8": ("tinyint", "TINYINT"),
    "int16": ("smallint", "SMALLINT"),
    "int32": ("int", "INTEGER"),
    "int64": ("bigint", "BIGINT"),
    "uint8": ("smallint", "UTINYINT"),
    "uint32": ("bigint", "UINTEGER"),
    "uint64": ("decimal(20,0)", "UBIGINT"),
    "double": ("double", "DOUBLE"),
    "float": ("float", "FLOAT"),
    "bool": ("boolean", "BOOLEAN"),
    "string": ("string", "VARCHAR"),
    "date32[day]": ("date", "DATE"),
    "timestamp[us]": ("timestamp_ntz", "TIMESTAMP"),
    "timestamp[ms]": ("timestamp_ntz", "TIMESTAMP"),
    "timestamp[us, tz=UTC]": ("timestamp", "TIMESTAMP WITH TIME ZONE"),
    "timestamp[ms, tz=UTC]": ("timestamp", "TIMESTAMP WITH TIME ZONE"),
    **{f"decimal128({at})": (f"decimal({at})", f"DECIMAL({at})") for at in ("10, 2", "38, 2", "38, 0", "38, 38")},
}
