"""PostgreSQL's operations by example, and at the ends of integers and of the calendar."""

import math
import operator
from datetime import date, datetime, time, timedelta
from itertools import pairwise

import operations
import pytest
from postgres_under import compared
from strategies import DATE, INT, REAL, TIME

from discreet.engines.postgres.dialect import POSTGRES
from discreet.kernel.expr import SIGNATURES, Call, Column, Constant
from discreet.kernel.grid import Grid
from discreet.kernel.sqlgen.expr_sql import write_expr, write_grid_step


@pytest.mark.parametrize("group", ["changes of case", "others"])  # the former need lists of all letters
def test_each_operation_has_its_meaning(connection, monkeypatch, group):
    changes = ("lower", "upper", "like_any_case")
    cases = [case for case in operations.MEANINGS if (case[0] in changes) == (group == "changes of case")]
    monkeypatch.setattr(operations, "MEANINGS", cases)
    assert operations.without_meaning(POSTGRES, lambda sql: connection.execute(sql).fetchall()[0]) == []


def test_integers_are_exact_at_every_size(connection):
    sizes = [0, *(1 << power for power in (30, 31, 32, 60, 61, 62)), (1 << 63) - 1]
    values = sorted({sign * size + more for size in sizes for sign in (1, -1) for more in (-1, 0, 1)})
    values = [value for value in values if -(1 << 63) <= value < 1 << 63]
    schema = {"a": INT, "b": INT}
    calls = [Call(op, (Column("a", INT), Column("b", INT))) for op in ("add", "subtract", "multiply")]
    compared(connection, calls, schema, [{"a": one, "b": other} for one in values for other in values])
    ends = [x for end in (-(2.0**63), 2.0**63) for x in (end, math.nextafter(end, 0), math.nextafter(end, 2 * end))]
    compared(connection, [Call("to_integer", (Column("r", REAL),))], {"r": REAL}, [{"r": x} for x in ends])


def test_dates_and_times_are_shifted_to_the_ends_of_the_calendar(connection):
    spans = [1, 2, 60, 86_400, 400]
    days = [side(end, timedelta(n)) for end, side in ENDS for n in (0, 1, 2, 60, 86_400, 400, 401, 399)]
    moments = [
        side(datetime.combine(end, time.max if end == date.max else time.min), timedelta(seconds=n, microseconds=more))
        for end, side in ENDS
        for n in (0, *spans)
        for more in (-1, 0, 1)
        if n or more >= 0
    ]
    shifts = [Constant(sign * n, INT) for n in (0, *spans, MORE) for sign in (1, -1)]
    for op, kind, values in (("add_days", DATE, days), ("add_seconds", TIME, moments)):
        calls = [Call(op, (Column("x", kind), by)) for by in shifts]
        compared(connection, calls, {"x": kind}, [{"x": value} for value in values])


MORE = 3_652_059  # days, or seconds: more days than the calendar has
ENDS = [(date.min, operator.add), (date.max, operator.sub)]


@pytest.mark.parametrize("step", ["1", "3/2", "2", "5/2"])
def test_a_tiny_number_is_no_step_of_a_grid(connection, step):
    """A quotient that is too small for a double would raise."""
    sql = write_grid_step("x", Grid(-30, 30, step), POSTGRES)
    found = connection.execute(f"SELECT {sql} FROM (VALUES (FLOAT8 '5e-324'), ('-5e-324')) AS t(x)").fetchall()
    assert found == [(0,), (0,)]


@pytest.mark.parametrize("op", ["multiply", "inside"])
def test_an_argument_that_an_operation_repeats_is_written_once(op):
    x = Column("x", REAL)
    more = [Constant(1.0, REAL)] * (len(SIGNATURES[op].split()) - 2)
    lengths, expr = [], Call("abs", (x,))
    for _ in range(5):
        expr = Call(op, (expr, *more))
        lengths.append(len(write_expr(expr, POSTGRES)))
    assert len({after - before for before, after in pairwise(lengths)}) == 1
