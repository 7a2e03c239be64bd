"""The meaning of each operation, and that DuckDB computes exactly that."""

import math
import random
import sys
from datetime import date, datetime
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
KINDS = {int: INT, float: REAL, bool: BOOL, str: TEXT, date: DATE, datetime: TIME}
LEAST, MOST = -(1 << 63), (1 << 63) - 1
INF, NAN = math.inf, math.nan


def call_of(op, values):
    """Call an operation on values: its constants as constants, the others as columns; a NULL is of the other's type."""
    *wanted, _ = SIGNATURES.get(op, "A* A").split()
    wanted += [wanted[-1]] * (len(values) - len(wanted))
    known = next((KINDS[type(value)] for value in values if value is not None), TEXT)
    kinds = [Type(text[0]) if text[0] in "irbtds" else known for text in wanted]
    args = tuple(
        Constant(value, kind) if "!" in text else Column(f"c{place}", kind)
        for place, (value, kind, text) in enumerate(zip(values, kinds, wanted, strict=True))
    )
    return Call(op, args), {f"c{place}": value for place, value in enumerate(values)}


MEANINGS = [
    ("add", (MOST, 1), None),
    ("add", (1, None), None),
    ("add", (1e308, 1e308), INF),
    ("subtract", (LEAST, 1), None),
    ("multiply", (1 << 40, 1 << 40), None),
    ("multiply", (-1e308, 10.0), -INF),
    ("divide", (-7, 2), -3),
    ("divide", (7, -2), -3),
    ("divide", (LEAST, -1), None),
    ("divide", (1, 0), None),
    ("divide", (1.0, -0.0), None),
    ("divide", (1e308, 0.1), INF),
    ("modulo", (-7, 2), -1),
    ("modulo", (7, -2), 1),
    ("modulo", (LEAST, -1), 0),
    ("modulo", (1, 0), None),
    ("negate", (LEAST,), None),
    ("abs", (LEAST,), None),
    ("abs", (-2.5,), 2.5),
    ("sign", (-3,), -1),
    ("sign", (NAN,), 0.0),
    ("floor", (-2.5,), -3.0),
    ("ceil", (-2.5,), -2.0),
    ("floor", (INF,), INF),
    ("round", (2.5, 0), 3.0),
    ("round", (-2.5, 0), -3.0),
    ("round", (0.49999999999999994, 0), 0.0),
    ("round", (1250.0, -2), 1300.0),
    ("round", (1e308, 15), 1e308),
    ("sqrt", (-1.0,), None),
    ("ln", (0.0,), None),
    ("log10", (1000.0,), 3.0),
    ("exp", (710.0,), None),
    ("exp", (NAN,), None),
    ("exp", (-1e9,), math.exp(-708)),
    ("power", (0.0, -1.0), None),
    ("power", (-1.0, 0.5), None),
    ("power", (10.0, 400.0), None),
    ("power", (2.0, 10.0), 1024.0),
    ("power", (INF, -1.0), None),
    ("power", (1.0, NAN), None),
    ("power", (10.0, 307.5), None),
    ("power", (-10.0, -307.5), None),
    ("power", (10.0, -308.0), 0.0),
    ("power", (-10.0, -3.0), -0.001),
    ("power", (0.0, 0.0), 1.0),
    ("least", (None, 3, 2), 2),
    ("greatest", (None, 3, 2), 3),
    ("least", (None, None), None),
    ("greatest", (NAN, 1e308), NAN),
    ("clip", (7, 0, 5), 5),
    ("clip", (NAN, 0.0, 5.0), 5.0),
    ("inside", (7, 0, 5), None),
    ("inside", (5, 0, 5), 5),
    ("inside", (NAN, 0.0, 5.0), None),
    ("to_integer", (2.5,), 2),
    ("to_integer", (3.5,), 4),
    ("to_integer", (1e19,), None),
    ("to_integer", (NAN,), None),
    ("read_integer", ("+12",), 12),
    ("read_integer", (" 12",), None),
    ("read_integer", ("1" * 19,), None),
    ("read_real", ("1e999",), None),
    ("read_real", ("1e200",), None),
    ("read_real", ("-1.5E+199",), -1.5e199),
    ("read_real", ("9" * 100 + "." + "9" * 100 + "e-199",), 1e-99),
    ("read_real", ("1" * 101,), None),
    ("read_real", ("nan",), None),
    ("read_date", ("2021-02-30",), None),
    ("read_date", ("0000-01-01",), None),
    ("read_date", ("2020-02-29",), date(2020, 2, 29)),
    ("read_timestamp", ("2021-01-01T10:11:12.5",), datetime(2021, 1, 1, 10, 11, 12, 500000)),
    ("read_timestamp", ("2021-01-01 24:00",), None),
    ("write_boolean", (True,), "true"),
    ("write_date", (date(1, 1, 1),), "0001-01-01"),
    ("equal", (NAN, NAN), True),
    ("equal", (0.0, -0.0), True),
    ("equal", (None, None), None),
    ("less", (INF, NAN), True),
    ("at_most", ("a", "B"), False),
    ("and", (None, False), False),
    ("and", (None, True), None),
    ("or", (None, True), True),
    ("or", (None, False), None),
    ("not", (None,), None),
    ("is_null", (None,), True),
    ("one_of", (None, 1), None),
    ("one_of", (3, 1, 3), True),
    ("coalesce", (None, 2, 3), 2),
    ("nullif", (1, 1), None),
    ("nullif", (1, None), 1),
    ("nullif", (None, 1), None),
    ("lower", ("İA",), "ia"),
    ("upper", ("ßﬀᾀa",), "ẞﬀᾈA"),
    ("trim", ("  a\t ",), "a\t"),
    ("length", ("e\u0301👩‍👩‍👧",), 7),
    ("part", ("a👩b", 2, 1), "👩"),
    ("part", ("ab", 3, 5), ""),
    ("join", ("a", None), None),
    ("join", ("a" * 2000, "b"), "a" * 2000),
    ("upper", ("a" * 2001,), "A" * 2000),
    ("like", ("a" * 2000 + "b", "%b"), False),
    ("matches", ("a" * 2000 + "b", "a$"), True),
    ("like", ("a%", "a\\%"), True),
    ("like", ("ab", "a\\%"), False),
    ("like", ("a\nb", "a_b"), True),
    ("like_any_case", ("ÉA", "é_"), True),
    ("matches", ("a\n", "a$"), False),
    ("matches", ("xa", "b|a$"), True),
    ("matches", ("a$", "a\\$"), True),
    ("matches", ("a\nb", "a.b"), False),
    ("week", (datetime(2021, 1, 3),), 53),
    ("dow", (datetime(2021, 1, 3),), 0),
    ("isodow", (datetime(2021, 1, 3),), 7),
    ("quarter", (datetime(2021, 12, 3),), 4),
    ("second", (datetime(2021, 12, 3, 1, 2, 3, 999999),), 3),
    ("trunc_quarter", (datetime(2021, 12, 3, 1),), datetime(2021, 10, 1)),
    ("trunc_week", (datetime(1, 1, 7, 1),), datetime(1, 1, 1)),
    ("trunc_minute", (datetime(2021, 12, 3, 1, 2, 3),), datetime(2021, 12, 3, 1, 2)),
    ("days_between", (date(1, 1, 1), date(9999, 12, 31)), 3_652_058),
    ("add_days", (date(9999, 12, 31), 1), None),
    ("add_seconds", (datetime(2020, 12, 31, 23, 59, 59), 1), datetime(2021, 1, 1)),
    ("add_seconds", (datetime(1, 1, 1), -1), None),
    ("add", (2, 3), 5),
    ("add", (0.5, 0.25), 0.75),
    ("subtract", (7, 2), 5),
    ("subtract", (0.5, 0.25), 0.25),
    ("multiply", (7, 2), 14),
    ("multiply", (3.0, 0.5), 1.5),
    ("divide", (3.0, 0.5), 6.0),
    ("negate", (3,), -3),
    ("abs", (-3,), 3),
    ("sign", (-2.5,), -1.0),
    ("sqrt", (0.0,), 0.0),
    ("sqrt", (6.25,), 2.5),
    ("ln", (1.0,), 0.0),
    ("log10", (0.0,), None),
    ("exp", (0.0,), 1.0),
    ("exp", (709.0,), math.exp(709)),
    ("power", (-10.0, 309.0), None),
    ("power", (10.0, 307.0), 1e307),
    ("power", (10.0, -307.0), 1e-307),
    ("power", (10.0, -400.0), 0.0),
    ("greatest", (1, None, 5, 3, 2), 5),
    ("least", (4, None, 5, 3, 6), 3),
    ("clip", (-1, 0, 5), 0),
    ("clip", (3, 0, 5), 3),
    ("less", (1, 1), False),
    ("at_most", (1, 1), True),
    ("days_between", (date(2020, 1, 1), date(2020, 3, 1)), 60),
    ("add_days", (date(9999, 12, 30), 1), date(9999, 12, 31)),
    ("add_days", (date(1, 1, 1), -1), None),
    ("add_days", (date(1, 1, 2), -1), date(1, 1, 1)),
    ("add_seconds", (datetime(9999, 12, 31, 23, 59, 59), 1), None),
]


@pytest.mark.parametrize(("op", "args", "result"), MEANINGS)
def test_each_operation_has_its_meaning(op, args, result):
    found = evaluate(*call_of(op, args))
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
    columns, values = [], {}
    for place, (op, args, _) in enumerate(MEANINGS):
        call, row = call_of(op, args)
        moved = {name: f"c{place}_{name}" for name in row}
        held = [Column(moved[arg.name], arg.type) if isinstance(arg, Column) else arg for arg in call.args]
        columns.append(f"{write_expr(Call(op, tuple(held)), DUCKDB)} AS v{place}")
        values |= {moved[arg.name]: written(row[arg.name], arg.type) for arg in call.args if isinstance(arg, Column)}
    found = engine.execute(
        f"SELECT {', '.join(columns)} FROM (VALUES ({', '.join(values.values())})) AS t ({', '.join(values)})"
    ).fetchone()
    different = [case for case, value in zip(MEANINGS, found, strict=True) if not operations.same(value, case[2])]
    assert different == []


def written(value, kind):
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return f"CAST({'NULL' if value is None else repr(str(value))} AS {DUCKDB.types[kind]})"
    return DUCKDB.constant(value, kind)


@pytest.mark.long(only=["coalesce", "greatest", "least"])
@pytest.mark.parametrize("op", SIGNATURES)
def test_each_operation_means_the_same_in_the_engine(engine, op):
    for schema, calls, rows in operations.trials(op):
        compare(engine, calls, schema, rows)


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
