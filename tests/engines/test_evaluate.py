"""The meaning of each operation, and that DuckDB computes exactly that."""

import math
import random
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.reference.evaluate import evaluate, finite_or_null, sort_key
from discreet.kernel.expr import SIGNATURES, Call, Column, Constant, Type
from discreet.kernel.sqlgen.expr_sql import write_expr, write_key

sys.path.insert(0, str(Path(__file__).parents[1] / "matrix"))

import operations
import strategies

INT, REAL, BOOL, TEXT, DATE, TIME = Type
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(("op", "args", "result"), operations.MEANINGS)
def test_each_operation_has_its_meaning(op, args, result):
    found = evaluate(*operations.call_of(op, args))
    assert found == result or (result is NAN and math.isnan(found))
    assert type(found) is type(result)


def test_case_takes_the_first_condition_that_is_true():
    flag, n = Column("flag", BOOL), Column("n", INT)
    case = Call("case", (flag, n, Call("is_null", (flag,)), Constant(5, INT), Constant(None, INT)))
    assert [evaluate(case, {"flag": flag, "n": 3}) for flag in (True, None, False)] == [3, 5, None]


def test_null_is_last_and_nan_before_it():
    assert sorted([None, NAN, 1.0, -INF, INF], key=sort_key)[-2:] != [1.0, INF]
    assert [sort_key(x) < sort_key(y) for x, y in ((INF, NAN), (NAN, None), (NAN, INF), (None, NAN))] == [
        True,
        True,
        False,
        False,
    ]


def test_aggregated_values_are_finite_and_zero_has_one_sign():
    assert [finite_or_null(x) for x in (INF, -INF, NAN, None, 3, "a")] == [None, None, None, None, 3, "a"]
    assert math.copysign(1, finite_or_null(-0.0)) == 1


# DuckDB computes the same, for all values that break things, and many others.


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect(config={"threads": "1"}) as connection:
        yield connection


def compare(engine, exprs, schema, rows, how=write_expr):
    fields = pa.schema([("row", pa.int64()), *((name, strategies.ARROW[kind]) for name, kind in schema.items())])
    engine.register("given", pa.Table.from_pylist([{"row": at, **row} for at, row in enumerate(rows)], schema=fields))
    for expr in exprs:
        got = engine.execute(f"SELECT {how(expr, DUCKDB)} AS v, typeof(v) FROM given ORDER BY row").fetchall()
        for row, (value, kind) in zip(rows, got, strict=True):
            wanted = evaluate(expr, row)
            if how is write_key:
                wanted = finite_or_null(wanted)
            assert operations.same(value, wanted), (expr, row, value, wanted)
            assert kind == DUCKDB.types[expr.type]


def test_each_operation_has_its_meaning_in_the_engine(engine):
    assert operations.without_meaning(DUCKDB, lambda sql: engine.execute(sql).fetchall()[0]) == []


@pytest.mark.long(only=["coalesce", "greatest", "least"])
@pytest.mark.parametrize("op", SIGNATURES)
def test_each_operation_means_the_same_in_the_engine(engine, op):
    for schema, calls, rows in operations.trials(op):
        compare(engine, calls, schema, rows)


def test_a_number_is_rounded_once_in_the_engine(engine):
    """Not to a half first, and from there to an even integer."""
    rows = [{"x": x} for x in (2.54, 3.46, -2.54, 0.54, 2.5, 3.5)]
    compare(engine, [Call("to_integer", (Column("x", REAL),))], {"x": REAL}, rows)


def test_a_key_is_finite_and_zero_has_one_sign_in_the_engine(engine):
    """Two zeros with different texts would have different hashes."""
    key = write_key(Column("x", REAL), DUCKDB)
    rows = ", ".join(f"(CAST('{x}' AS DOUBLE))" for x in (-0.0, INF, -INF, NAN, 1.5))
    found = engine.execute(f"SELECT {key}, CAST({key} AS VARCHAR) FROM (VALUES {rows}) AS t(x)").fetchall()
    assert found == [(0.0, "0.0"), (None, None), (None, None), (None, None), (1.5, "1.5")]


@pytest.mark.parametrize("op", SIGNATURES)
def test_a_null_keeps_its_type_in_the_engine(engine, op):
    """Else a column of a UNION would become another's type."""
    for expr in operations.of_nulls(op):
        found = engine.execute(f"SELECT typeof({write_expr(expr, DUCKDB)}), {write_expr(expr, DUCKDB)}").fetchall()
        assert found == [(DUCKDB.types[expr.type], evaluate(expr, {}))]


@pytest.mark.long
def test_upper_case_is_that_of_the_engine(engine):
    """One code point to one, for every letter that is older than the Unicode of this Python and of DuckDB."""
    rows = engine.execute(
        "SELECT chr(i::INTEGER) AS c, upper(c), lower(c) FROM range(1, 100000) t(i) WHERE i NOT BETWEEN 55296 AND 57343"
    ).fetchall()
    upper, lower = (Call(op, (Column("c", TEXT),)) for op in ("upper", "lower"))
    differ = [c for c, up, low in rows if (evaluate(upper, {"c": c}), evaluate(lower, {"c": c})) != (up, low)]
    assert len(differ) < 20  # letters that were added lately
    assert all(ord(c) > 0x250 for c in differ)


@pytest.mark.parametrize("seed", range(12))
def test_nested_expressions_mean_the_same_in_the_engine(engine, seed):
    rng = random.Random(seed)
    schema = {"i": INT, "j": INT, "r": REAL, "x": REAL, "b": BOOL, "t": TEXT, "u": TEXT, "d": DATE, "s": TIME}
    rows = [{name: rng.choice(operations.values_of(kind, 20)) for name, kind in schema.items()} for _ in range(30)]
    exprs = [strategies.expression(rng, schema, rng.choice(list(Type)), depth=4) for _ in range(30)]
    compare(engine, exprs, schema, rows)
    compare(engine, exprs[:10], schema, rows, write_key)


def test_a_text_that_almost_fits_a_pattern_of_like_is_decided_at_once():
    """Backtracking would try every place of every letter: for 2,000 letters, longer than anybody waits."""
    like = Call("like", (Column("t", Type.TEXT), Constant("%a%b%c%d%e%", Type.TEXT)))
    assert evaluate(like, {"t": "abcd" * 500}) is False
    assert evaluate(like, {"t": "abcd" * 400 + "e"}) is True
