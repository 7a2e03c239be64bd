"""PostgreSQL computes every operation as the reference does: on columns, computed values and constants."""

import math
import operator
import random
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from itertools import pairwise

import operations
import postgres_under
import pytest
import strategies
from operations import same
from postgres_under import compared
from strategies import BOOL, DATE, INT, REAL, TEXT, TIME

from discreet.engines.postgres.dialect import POSTGRES
from discreet.engines.reference.evaluate import evaluate, finite_or_null
from discreet.engines.unsupported import unsupported_reason
from discreet.kernel.expr import SIGNATURES, Call, Column, Constant, Type
from discreet.kernel.relation import Derive, EachRow, Scan
from discreet.kernel.sqlgen.expr_sql import write_expr, write_key


def test_each_operation_has_its_meaning(connection):
    assert operations.without_meaning(POSTGRES, lambda sql: connection.execute(sql).fetchone()) == []


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
    shifts = [Constant(sign * n, INT) for n in spans for sign in (1, -1)]
    for op, kind, values in (("add_days", DATE, days), ("add_seconds", TIME, moments)):
        calls = [Call(op, (Column("x", kind), by)) for by in shifts]
        compared(connection, calls, {"x": kind}, [{"x": value} for value in values])


ENDS = [(date.min, operator.add), (date.max, operator.sub)]


@pytest.mark.parametrize("op", ["multiply", "inside"])
def test_an_argument_that_an_operation_repeats_is_written_once(op):
    x = Column("x", REAL)
    more = [Constant(1.0, REAL)] * (len(SIGNATURES[op].split()) - 2)
    lengths, expr = [], Call("abs", (x,))
    for _ in range(5):
        expr = Call(op, (expr, *more))
        lengths.append(len(write_expr(expr, POSTGRES)))
    assert len({after - before for before, after in pairwise(lengths)}) == 1


@pytest.mark.long(only=["coalesce", "greatest", "least", "upper"])
@pytest.mark.parametrize("op", SIGNATURES)
def test_each_operation_means_the_same(connection, op):
    for schema, calls, rows in operations.trials(op):
        compared(connection, calls, schema, rows)


@pytest.mark.long(only=["greatest", "least", "upper"])
@pytest.mark.parametrize("op", SIGNATURES)
def test_each_operation_means_the_same_on_computed_values(connection, op):
    """An argument that an operation names more than once is then computed by itself, once."""
    for schema, calls, rows in operations.trials(op, most=100):
        made = {name: Call("coalesce", (Column(name, kind), Column(name, kind))) for name, kind in schema.items()}
        deeper = [
            Call(op, tuple(made[arg.name] if isinstance(arg, Column) else arg for arg in call.args)) for call in calls
        ]
        compared(connection, deeper[:5], schema, rows)


@pytest.mark.parametrize("op", SIGNATURES)
def test_each_operation_means_the_same_on_constants(connection, op):
    """Constants are folded before the first row is read, which must not fail either."""
    for _, calls, rows in operations.trials(op, most=25):
        held = [row for row in rows if all(map(may_be_constant, row.values()))]
        exprs = [Call(op, tuple(fixed(arg, row) for arg in call.args)) for call in calls[:5] for row in held]
        columns = ", ".join(f"{write_expr(expr, POSTGRES)} AS c{place}" for place, expr in enumerate(exprs))
        found = postgres_under.run(connection, f"SELECT {columns}").to_pylist()[0].values()
        pairs = zip(exprs, found, strict=True)
        assert [(expr, value) for expr, value in pairs if not same(value, evaluate(expr, {}))] == []


def may_be_constant(value):
    return value is None or (finite_or_null(value) is not None and value != strategies.LONG)


def fixed(arg, row):
    return Constant(row[arg.name], arg.type) if isinstance(arg, Column) else arg


@pytest.mark.parametrize("op", SIGNATURES)
def test_a_null_keeps_its_type(connection, op):
    for expr in operations.of_nulls(op):
        found = postgres_under.run(connection, f"SELECT {write_expr(expr, POSTGRES)} AS v").column("v")
        assert found.type == strategies.ARROW[expr.type]
        assert found.to_pylist() == [evaluate(expr, {})]


@pytest.mark.parametrize("seed", range(6))
def test_nested_expressions_mean_the_same(connection, seed):
    rng = random.Random(seed)
    schema = {"i": INT, "j": INT, "r": REAL, "x": REAL, "b": BOOL, "t": TEXT, "u": TEXT, "d": DATE, "s": TIME}
    values = {kind: operations.values_of(kind, 20) for kind in Type}
    rows = [{name: rng.choice(values[kind]) for name, kind in schema.items()} for _ in range(30)]
    exprs = [strategies.expression(rng, schema, rng.choice(list(Type)), depth=4) for _ in range(30)]
    compared(connection, exprs, schema, rows)
    compared(connection, exprs[:10], schema, rows, write_key)


@pytest.mark.long
@pytest.mark.parametrize(
    "op", ["add", "multiply", "negate", "abs", "floor", "round", "least", "greatest", "trim", "lower", "add_days"]
)
def test_expressions_may_be_as_deep_as_the_kernel_allows(connection, op):
    schema = {"i": INT, "r": REAL, "t": TEXT, "d": DATE}
    rows = [{"i": 3, "r": 1.25, "t": " aÉ", "d": date(2020, 2, 29)}, dict.fromkeys(schema)]
    rows.append({"i": (1 << 63) - 1, "r": 1e308, "t": "A" * 3000, "d": date.max})
    first = SIGNATURES[op][0]
    name = next(name for name, kind in schema.items() if kind.value == {"N": "r", "A": "r"}.get(first, first))
    rest = [Constant(0 if op == "round" else 1, INT)] if "!" in SIGNATURES[op] else [Column(name, schema[name])]
    expr = Column(name, schema[name])
    scan = Scan("t", tuple(Column(*column) for column in schema.items()), EachRow(), max_rows=9)
    more = rest * (len(SIGNATURES[op].split()) - 2)
    with suppress(ValueError):  # of the limits of expressions
        while not unsupported_reason(Derive(scan, (("v", deeper := Call(op, (expr, *more))),)), POSTGRES):
            expr = deeper
    compared(connection, [expr], schema, rows)
