"""The rows that models are computed from: without NULL, NaN and infinity, and numbered by unit."""

import math

import duckdb
import pyarrow as pa

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.row_selects import select_rows_by_unit
from discreet.kernel.expr import Call, Column, Type
from discreet.kernel.relation import Derive, EachRow, Scan, UnitKey

A, B, X, N = (
    Column(name, kind) for name, kind in zip("abxn", (Type.INTEGER, Type.TEXT, Type.REAL, Type.INTEGER), strict=True)
)
ROWS = [
    {"a": 2, "b": "u", "x": 3.0, "n": 1},
    {"a": 1, "b": "v", "x": 1e200, "n": 2},  # its square is infinite
    {"a": 1, "b": "u", "x": 5.0, "n": 3},
    {"a": 1, "b": "u", "x": math.nan, "n": 4},
    {"a": 2, "b": "u", "x": None, "n": 5},
    {"a": 2, "b": "u", "x": 4.0, "n": None},
    {"a": 1, "b": "v", "x": 2.0, "n": 6},
    {"a": 2, "b": "u", "x": 6.0, "n": 7},
]


def selected(owner):
    scan = Scan("given", (A, B, X, N), owner, max_rows=9)
    relation = Derive(scan, (("square", Call("multiply", (X, X))), ("n", N)))
    with duckdb.connect() as connection:
        connection.register("given", pa.Table.from_pylist(ROWS))
        return connection.sql(select_rows_by_unit(relation, ("square", "n"), DUCKDB)).fetchall()


def test_incomplete_rows_are_left_out_and_the_others_numbered_by_unit():
    found = selected(UnitKey((A, B)))
    assert [number for number, _, _ in found] == [1, 2, 3, 3]
    assert sorted(found) == [(1, 25.0, 3), (2, 4.0, 6), (3, 9.0, 1), (3, 36.0, 7)]


def test_each_row_has_a_number_of_its_own_if_it_is_a_unit():
    found = selected(EachRow())
    assert [number for number, _, _ in found] == [1, 2, 3, 4]
    assert sorted(row for _, *row in found) == [[4.0, 6], [9.0, 1], [25.0, 3], [36.0, 7]]
