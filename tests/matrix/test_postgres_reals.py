"""Doubles in PostgreSQL at every boundary where it would raise an error."""

import math
import random
import sys

import postgres_under
import pytest
import strategies
from postgres_under import compared
from strategies import INT, REAL

from discreet.engines.postgres.dialect import POSTGRES
from discreet.engines.postgres.float_arithmetic import DIVIDE
from discreet.engines.reference.evaluate import finite_or_null
from discreet.kernel.expr import Call, Column, Constant
from discreet.kernel.grid import Grid
from discreet.kernel.sqlgen.expr_sql import write_grid_step

OPERATORS = ["add", "subtract", "multiply", "divide", "power"]


def borders():
    """Return doubles at which something begins or ends: powers of two with their neighbours, and the least and most."""
    powers = [
        -1074,
        -1073,
        -1022,
        -575,
        -562,
        -538,
        -537,
        -512,
        -511,
        -500,
        -51,
        -50,
        -1,
        0,
        1,
        50,
        53,
        500,
        512,
        538,
        970,
        1023,
    ]
    ends = [*(math.ldexp(1, power) for power in powers), 1e150, 1e-150, 8e307, 1e307, 1e-307]
    near = {each for x in ends for each in (x, math.nextafter(x, 0), math.nextafter(x, math.inf), x * 1.5)}
    sizes = [*sorted(x for x in near if math.isfinite(x)), sys.float_info.max, 3 * 5e-324, 0.1]
    return [*sizes, *(-x for x in sizes), 0.0, -0.0, *strategies.STRANGE]


def meeting():
    """Give pairs whose product is next to half of the least double, or to the first that is too large."""
    rng = random.Random("products")
    for power in range(-1074, -1):
        one = 1 + (rng.getrandbits(26) | 1) * math.ldexp(1, rng.randint(0, 25) - 52)
        for other in (1 / one, math.nextafter(1 / one, 2), math.nextafter(1 / one, 0)):
            yield math.ldexp(one, power), math.ldexp(other, -1075 - power)
            if power > -1022:
                yield math.ldexp(one, 1024 + power), math.ldexp(other, -power)


# Pairs at which one case of the SQL ends, and few others show it.
NARROW = [
    *((0.0, 0.0), (math.inf, math.inf), (-math.inf, 2.0), (-math.inf, -1.0), (2.0**1023, 2.0**1023), (1e308, 8.5e307)),
    *((1e308, -8.5e307), (2.0**-50, 5e-324), (1.5 * 2.0**-50, 5e-324), (2.0**-51, 1e160), (1.5 * 2.0**-52, 1.7e308)),
    *((-(2.0**1023), -(2.0**1023)), (2.0**1023, -(2.0**1023))),  # a sum and a difference that are just too large
    *((2.0**1023, math.nextafter(1, 0)), (-1.0, 5e-324), (1.0, -5e-324), (-1.0, -5e-324), (-1.0, 2.0), (-1.0, 3.0)),
    *((5e-324, 2.0), (5e-324, -2.0), (5e-324, 1.5), (-5e-324, 1.5), (-1e-160, 2.0), (1.0, 2.0**-538)),
]


def test_arithmetic_is_that_of_doubles_at_some_boundaries(connection):
    rng = random.Random("some")
    values = borders()
    pairs = [*((rng.choice(values), rng.choice(values)) for _ in range(700)), *rng.sample([*meeting()], 100), *NARROW]
    schema = {"a": REAL, "b": REAL}
    calls = [Call(op, tuple(Column(*column) for column in schema.items())) for op in OPERATORS]
    compared(connection, calls, schema, [{"a": one, "b": other} for one, other in pairs])


def test_no_number_is_divided_by_infinity(connection):
    """Older versions raise an error there, as if the quotient were too small."""
    divided = "CASE WHEN ABS({1}) = 'Infinity' AND ABS({0}) < 'Infinity' THEN {0} / 0 ELSE {0} / {1} END"
    sql = DIVIDE.replace("{0} / {1}", divided).format("a", "b")
    given = "VALUES (FLOAT8 '1', FLOAT8 'Infinity'), (-1, '-Infinity')"
    assert sql.count("/ 0") == DIVIDE.count("{0} / {1}")
    assert connection.execute(f"SELECT {sql} FROM ({given}) AS t(a, b)").fetchall() == [(0.0,), (0.0,)]


@pytest.mark.long
@pytest.mark.parametrize("op", OPERATORS)
def test_arithmetic_is_that_of_doubles_at_every_boundary(connection, op):
    values = borders()
    pairs = [*((one, other) for one in values for other in values), *meeting()]
    rows = [{"a": one, "b": other} for one, other in pairs]
    schema = {"a": REAL, "b": REAL}
    compared(connection, [Call(op, (Column("a", REAL), Column("b", REAL)))], schema, rows)
    assert len(rows) > 20_000


@pytest.mark.parametrize("places", range(-15, 16))
def test_numbers_are_rounded_alike_at_every_boundary(connection, places):
    factor = 10.0**places
    near = [sys.float_info.max / max(factor, 1 / factor), 0.5 / factor, 2.5 / factor, 0.25 / factor, 2.0**52, 2.0**53]
    around = [y for x in near for y in (x, math.nextafter(x, 0), math.nextafter(x, math.inf), x / 3)]
    rows = [{"a": x} for x in [*borders(), *around, *(-x for x in around)]]
    compared(connection, [Call("round", (Column("a", REAL), Constant(places, INT)))], {"a": REAL}, rows)


@pytest.mark.parametrize("step", ["1", "1/7", "7", "1e-300", "1e290", "1e300", "0.1", "1e20"])
def test_the_steps_of_a_grid_are_the_kernels_own(connection, step):
    """Where a step is large, a tiny number of steps must not be too small for PostgreSQL."""
    ends = {"1e-300": "1e-290", "1e290": "1e300", "1e300": "1e300", "1e20": "1e30"}.get(step, "1e6")
    grids = [Grid(low, high, step) for low, high in ((f"-{ends}", ends), (0, ends), (f"-{ends}", 0), (0, 0))]
    width = float(grids[0].step)
    values = [*borders(), *(width * x for x in (0.5, 1.5, 2.5, 0.49999999999999994, -0.5, -1.5, 3, -7)), None]
    rows = [{"a": x} for x in values if x is None or not math.isnan(x)]
    postgres_under.fill(connection, "given", {"row": INT, "a": REAL}, [{"row": n, **row} for n, row in enumerate(rows)])
    for grid in grids:
        sql = f"SELECT {write_grid_step('a', grid, POSTGRES)} AS v FROM given ORDER BY row"
        found = postgres_under.run(connection, sql).column("v").to_pylist()
        assert found == [
            None if finite_or_null(row["a"]) is None else grid.index(row["a"]) - grid.offset for row in rows
        ]
