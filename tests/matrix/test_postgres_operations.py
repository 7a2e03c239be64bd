"""PostgreSQL computes every operation as the reference does: on columns, computed values and constants."""

import random
from contextlib import suppress
from datetime import date

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
