"""Spark casts columns as DuckDB does, for every type and value, and no value makes it fail."""

import pytest

from discreet.engines.spark import casts
from discreet.kernel.expr import Type
from tests.engines.spark_values import KINDS, STORED, differences, write

# What Sail does and Spark does not: it reads unsigned numbers of 64 bits as signed ones, and stops.
NOT_SAIL = {"unsigned bigint"}
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Pacific/Apia"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    names = {name: column for name, column in STORED.items() if name not in NOT_SAIL}
    return write(tmp_path_factory.mktemp("columns") / "t.parquet", names), list(names)


@pytest.mark.long
@pytest.mark.parametrize("zone", ZONES)
def test_every_value_equals_that_of_duckdb_in_every_time_zone(sail, stored, zone):
    path, names = stored
    timed = [name for name in names if "time" in name or "date" in name]
    assert differences(sail.url, path, names if zone == "UTC" else timed, zone) == []


NATIVES = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "nrbx"),
    **dict.fromkeys(("float", "double", "decimal(10,2)"), "nrb"),
    "boolean": "nb",
    **dict.fromkeys(("string", "varchar(5)", "char(5)", "string collate UNICODE_CI"), "nrbxds"),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), "ds"),
    "void": "nrbxds",
    **dict.fromkeys(("binary", "array<bigint>", "struct<a:int>", "map<string,int>", "variant", "time(6)"), ""),
    **dict.fromkeys(("interval day", "calendar_interval", "array<decimal(10,2)>", "geometry"), ""),
    **dict.fromkeys(("array<string collate UNICODE_CI>", "struct<a:int,b:string collate UNICODE_CI>"), ""),
}


@pytest.mark.parametrize("native", NATIVES)
def test_a_type_is_accepted_if_any_of_its_values_can_be_cast(native):
    fitting = [letter for letter, kind in KINDS.items() if casts.can_cast(native, kind)]
    assert "".join(fitting) == NATIVES[native]
    natural = casts.default_type(native)
    assert natural is None if native == "void" or not fitting else casts.can_cast(native, natural)


def test_a_collation_does_not_make_two_texts_equal():
    (text,), _ = casts.cast_columns({"x": ("c0", "string collate UNICODE_CI", Type.TEXT)}, "UTC")
    assert text == "TRY_VALIDATE_UTF8((c0 COLLATE UTF8_BINARY)) AS v0"


@pytest.mark.long
def test_a_column_that_holds_nothing_is_null_in_every_type(sail, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from discreet.engines.spark.engine import Spark
    from discreet.engines.table_source import TableSource

    pq.write_table(pa.table({"x": pa.nulls(2)}), tmp_path / "t.parquet")
    sources = {letter: TableSource(str(tmp_path / "t.parquet"), {"x": kind}) for letter, kind in KINDS.items()}
    with Spark(sources, url=sail.url) as engine:
        for letter in KINDS:
            assert engine.query(f"SELECT x FROM {engine.dialect.table_source(letter)}").to_pydict() == {
                "x": [None, None]
            }
