"""Numbers on a public grid: whatever a value is, it stays within the ends."""

import math
import random
import struct
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.kernel.grid import Grid
from discreet.kernel.sqlgen.expr_sql import write_grid_step

ENDS = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e300, 1e300), st.fractions(-1000, 1000, max_denominator=999))
STEPS = st.one_of(
    st.integers(1, 10**6), st.floats(1e-300, 1e300), st.fractions(Fraction(1, 999), 1000, max_denominator=999)
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def grids(draw):
    low, high = draw(ENDS), draw(ENDS)
    try:
        return Grid(min(low, high), max(low, high), draw(STEPS), draw(st.integers(-1000, 1000)))
    except ValueError:
        return reject()


@pytest.mark.long
@given(grids(), st.lists(FINITE, min_size=1, max_size=20))
@settings(max_examples=500)
def test_the_index_never_leaves_the_range(grid, values):
    low, high, step = grid.as_floats
    near = [low, high, *(math.nextafter(end, way) for end in (low, high) for way in (-math.inf, math.inf))]
    middle = [low + step / 2, high - step / 2, low / 2 + high / 2]
    for value in (x for x in (*values, *near, *middle, 0.0, -0.0, 5e-324, 1.7e308, -1.7e308) if math.isfinite(x)):
        assert grid.first <= grid.index(value) - grid.offset <= grid.last
        assert abs(grid.index(value) - grid.offset) <= grid.max_abs_index
    assert abs(grid.first) < 1 << 42


@pytest.mark.long
@given(grids(), FINITE, FINITE)
@settings(max_examples=300)
def test_the_step_is_monotone_in_the_value(grid, one, other):
    assert grid.index(min(one, other)) <= grid.index(max(one, other))


@pytest.mark.long
@given(st.integers(-1000, 1000), st.integers(0, 1000), st.sampled_from([1, 2, 10, 3, 7]), st.floats(-2000, 2000))
@settings(max_examples=300)
def test_the_step_is_the_nearest_one(low, wide, parts, value):
    grid = Grid(low, low + wide, Fraction(1, parts))
    clipped = min(max(value, low), low + wide)
    assert abs(grid.index(value) - Fraction(clipped) * parts) <= Fraction(1, 2) + Fraction(1, 10**9)


def test_ties_round_up_and_an_offset_shifts_the_range():
    grid = Grid(-10, 10, 4, offset=2)
    assert [grid.index(x) for x in (-6.0, -2.0, 2.0, 6.0)] == [-1, 0, 1, 2]
    assert (grid.first, grid.last, grid.max_abs_index) == (-2 - 2, 3 - 2, 4)
    assert Grid(0, 0, 1).max_abs_index == 1


GRIDS = [
    Grid(0, 500, "1/2"),
    Grid(-90, 90, "1e-4", 7),
    Grid("1/3", "22/7", "0.1", -3),
    Grid(-1e300, 1e300, 1e290),
    Grid(0, 1e-290, 1e-300),
    Grid(-(10**12), 10**12, 1),
    Grid(5, 5, 3),
    Grid(-100.25, -3, 0.3),
]


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect(config={"threads": "1"}) as connection:
        rng = random.Random(5)
        drawn = [struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0] for _ in range(400)]
        drawn += [rng.randint(-400, 400) / rng.choice([2, 3, 8, 10]) for _ in range(800)]
        drawn += [math.inf, -math.inf, math.nan, None, 0.0, -0.0, 1e308, -1e308, 5e-324, 0.49999999999999994]
        ties = [(k + 0.5) * grid.as_floats[2] for grid in GRIDS for k in range(-20, 20)]
        drawn += [near for tie in ties for near in (math.nextafter(tie, -math.inf), tie, math.nextafter(tie, math.inf))]
        connection.register("given", pa.table({"row": range(len(drawn)), "x": pa.array(drawn, pa.float64())}))
        whole = [rng.getrandbits(64) - (1 << 63) for _ in range(200)] + [*range(-50, 50), None]
        connection.register("counted", pa.table({"row": range(len(whole)), "x": pa.array(whole, pa.int64())}))
        yield connection, {"given": drawn, "counted": whole}


@pytest.mark.parametrize("grid", GRIDS, ids=range(len(GRIDS)))
@pytest.mark.parametrize("table", ["given", "counted"])
def test_the_engine_finds_the_same_step(engine, grid, table):
    connection, rows = engine
    sql = f"SELECT {write_grid_step('x', grid, DUCKDB)} AS v, typeof(v) FROM {table} ORDER BY row"
    for value, (found, kind) in zip(rows[table], connection.execute(sql).fetchall(), strict=True):
        held = value is not None and math.isfinite(value)
        assert found == (grid.index(float(value)) - grid.offset if held else None), value
        assert kind == "BIGINT"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((1, 0, 1), "low"),
        ((0, 1, 0), "step"),
        ((0, 1, -1), "step"),
        ((0, math.inf, 1), "high"),
        ((math.nan, 1, 1), "low"),
        ((0, 1 << 40, 1), "too many steps"),
        ((-(1 << 40), 0, 1), "too many steps"),
        ((0, 1, 1, (1 << 40) + 1), "too many steps"),
        ((0, 1, 1, -(1 << 40) - 1), "offset"),
        ((0, "1e301", 1), "double"),
        ((0, 1, "1e-301"), "double"),
        ((0, 1, "1e301"), "double"),
        ((True, 2, 1), "low"),
        ((0, None, 1), "high"),
        ((0, 1, 1, 1.5), "offset"),
        ((0, 1, 1, True), "offset"),
    ],
)
def test_a_grid_that_doubles_cannot_represent_is_refused(args, words):
    with pytest.raises((ValueError, TypeError), match=words):
        Grid(*args)


def test_the_largest_number_of_steps_is_accepted():
    most = 1 << 40
    assert Grid(0, most - 1, 1).last == most - 1
    assert Grid(1 - most, 0, 1).first == 1 - most
    assert Grid(0, 0, 1, most).last == -most
    assert Grid(0, 0, 1, -most).first == most == Grid(0, 0, 1, -most).max_abs_index


def test_numpy_numbers_become_python_numbers():
    grid = Grid(np.int64(0), np.float64(2), np.int32(1), np.int64(1 << 39))
    assert type(grid.offset) is int
    assert type(grid.last) is int
    assert grid == Grid(0, 2, 1, 1 << 39)


def test_the_widest_range_of_doubles_is_accepted():
    top = Fraction(10) ** 300
    assert Grid(0, 0, top).last == 0
    assert Grid(0, 0, 1 / top).last == 0
    assert Grid(-top, top, top).last == 1
    for args in ((0, 0, top + 1), (0, 0, 1 / (top + 1)), (0, top + 1, top), (-top - 1, 0, top)):
        with pytest.raises(ValueError, match="double"):
            Grid(*args)
