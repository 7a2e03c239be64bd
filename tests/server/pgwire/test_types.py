"""Values as text and as binary: psycopg reads what is written, and writes what is read, for every type."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from discreet.server.pgwire.encodings import UnreadableValue
from discreet.server.pgwire.parameter_values import read_parameter
from discreet.server.pgwire.pg_types import encode_columns, pg_type

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'discreet[postgres]'")

DATES = st.dates()
TIMES = st.datetimes()
VALUES = {
    "int2": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "int4": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int8": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "oid": (pa.uint32(), st.integers(0, 2**32 - 1)),
    "float4": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "float8": (pa.float64(), st.floats(allow_nan=False)),
    "bool": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))),
    "date": (pa.date32(), DATES),
    "timestamp": (pa.timestamp("us"), TIMES),
    "timestamptz": (pa.timestamp("us", "UTC"), st.datetimes(dt.datetime(1900, 1, 1), timezones=st.just(dt.UTC))),
    "time": (pa.time64("us"), st.times()),
    "interval": (pa.duration("us"), st.timedeltas(dt.timedelta(-(10**6)), dt.timedelta(10**6))),
    "numeric": (pa.decimal128(38, 6), st.decimals(-(10**30), 10**30, places=6)),
}
FORMATS = {"text": 0, "binary": 1}


def read_by_psycopg(data, oid, form):
    return psycopg.adapt.Transformer().get_loader(oid, psycopg.pq.Format(form)).load(data)


def cell(kind, value, form):
    ((field,),) = encode_columns(pa.table({"x": pa.array([value], kind)}), [form])
    assert int.from_bytes(field[:4]) == len(field) - 4
    return field[4:]


def same(kind, found, value):
    """Compare values; the shortest text of a float of 32 bits is that of another one of 64."""
    return pa.scalar(found, kind) == pa.scalar(value, kind) if kind == pa.float32() else found == value


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
def test_psycopg_reads_every_value(name, form, data):
    kind, values = VALUES[name]
    value, found = data.draw(values), pg_type(kind)
    assert found.name == name
    assert same(kind, read_by_psycopg(cell(kind, value, form), found.oid, form), value)


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("name", sorted(set(VALUES) - {"interval", "timestamptz"}))
@given(data=st.data())
def test_a_parameter_is_read_as_it_would_be_written(name, form, data):
    kind, values = VALUES[name]
    value = data.draw(values)
    assert same(kind, read_parameter(cell(kind, value, form), pg_type(kind).oid, form), value)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**200), max_value=10**200))
@example(Decimal(0))
@example(Decimal("0.00"))
@example(Decimal("-0.0001"))
@example(Decimal("1E+10"))
@example(Decimal("123456789.987654321"))
def test_decimals_of_all_sizes_are_read_from_what_psycopg_writes(value):
    dumper = psycopg.types.numeric.DecimalBinaryDumper(Decimal)
    assert read_parameter(bytes(dumper.dump(value)), 1700, 1) == value


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize(
    "values", [[], ["a", "b c", 'q"', "\\", "", None, "NULL", "{x}", "a,b"], ["é"]], ids=["empty", "odd", "one"]
)
def test_arrays_are_read_by_psycopg_and_back(values, form):
    data = cell(pa.list_(pa.string()), values, form)
    assert read_by_psycopg(data, 1009, form) == values
    assert read_parameter(data, 1009, form) == values


def test_spaces_between_the_elements_of_an_array_do_not_count():
    assert read_parameter(b'{"p", "f g" ,NULL, r}', 1009, 0) == ["p", "f g", None, "r"]


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_null_has_no_bytes(form):
    ((field,),) = encode_columns(pa.table({"x": pa.array([None], pa.int64())}), [form])
    assert field == b"\xff\xff\xff\xff"
    assert read_parameter(None, 20, form) is None


def test_floats_that_are_not_finite_are_written_as_postgresql_does():
    assert cell(pa.float64(), float("nan"), 0) == b"NaN"
    assert cell(pa.float64(), float("-inf"), 0) == b"-Infinity"
    assert cell(pa.float64(), 2.0, 0) == b"2"


@pytest.mark.parametrize(
    ("data", "oid", "form"),
    [
        (b"x", 23, 0),
        (b"", 16, 0),
        (b"maybe", 16, 0),
        (b"\x00", 23, 1),
        (b"2026-02-30", 1082, 0),
        (b"\x7f\xff\xff\xff", 1082, 1),
        (b"\x7f" + b"\xff" * 7, 1114, 1),
        (b"\xff", 25, 0),
        (b"1e99999999", 1700, 0),
        (b"9" * 2000, 1700, 0),
        (b"\x00\x01\x7f\xff\x00\x00\x00\x00\x00\x01", 1700, 1),
        (b"\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01", 1700, 1),
        (b"1", 1186, 0),
        (b"1", 600, 0),
        (b"{1,x}", 1007, 0),
        (b"1,2", 1007, 0),
        (b"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x17\x7f\xff\xff\xff\x00\x00\x00\x01", 1007, 1),
        (b"\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x17\x00\x00\x00\x01\x00\x00\x00\x01", 1007, 1),
        (b"\x00", 1007, 1),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(data, oid, form):
    with pytest.raises(UnreadableValue):
        read_parameter(data, oid, form)
