"""The defaults of a dialect are exact on 64-bit integers, and never raise."""

import duckdb
import pytest

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.kernel.expr import Type
from discreet.kernel.sqlgen.dialect import quote_name

LEAST, MOST = -(1 << 63), (1 << 63) - 1
NAMES = ("one", 'o"ther')


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect(config={"threads": "1"}) as connection:
        yield connection


def computed(engine, sql, *rows):
    """Return the value of a SELECT list over two columns of integers."""
    names = ", ".join(map(quote_name, NAMES))
    values = ", ".join(f"(CAST({one} AS BIGINT), CAST({other} AS BIGINT))" for one, other in rows)
    return [value for (value,) in engine.execute(f"SELECT {sql} FROM (VALUES {values}) AS v({names})").fetchall()]


@pytest.mark.parametrize(
    ("template", "meant"),
    [
        (DUCKDB.quotient, lambda one, other: one // other),
        (DUCKDB.right_shift, lambda one, other: one >> min(other, 63)),
        (DUCKDB.sign, lambda one, _: (one > 0) - (one < 0)),
    ],
    ids=["quotient", "right_shift", "sign"],
)
def test_operations_on_integers_are_exact(engine, template, meant):
    pairs = [(one, other) for one in (0, 1, 7, 1 << 40, MOST) for other in (1, 2, 3, 20, 62)]
    if template == DUCKDB.sign:
        pairs += [(-1, 1), (-7, 1), (LEAST, 1)]
    sql = template.format(*map(quote_name, NAMES))
    assert computed(engine, sql, *pairs) == [meant(*pair) for pair in pairs]


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ((1, 2, "NULL"), 3),
        ((MOST, LEAST, MOST - 7), MOST - 8),
        ((LEAST,), LEAST),
        (("NULL", "NULL"), None),
    ],
)
def test_sums_of_integers_are_exact(engine, values, total):
    rows, one = [(value, 0) for value in values], quote_name("one")
    assert computed(engine, DUCKDB.bigint_sum.format(one), *rows) == [total]
    assert computed(engine, DUCKDB.sum_or_null.format(one), *rows) == [total]
    assert computed(engine, DUCKDB.sum_or_zero.format(one), *rows) == [total or 0]
    assert computed(engine, DUCKDB.sum_in_group.format(one), *rows) == [total or 0]


def test_a_sum_that_does_not_fit_is_null(engine):
    for values in ((MOST, 1), (LEAST, -1), (MOST, MOST, MOST)):
        rows = [(value, 0) for value in values]
        assert computed(engine, DUCKDB.sum_or_null.format(quote_name("one")), *rows) == [None]


def test_values_are_equal_or_both_null(engine):
    pairs = [(1, 1), (1, 2), ("NULL", 1), (1, "NULL"), ("NULL", "NULL")]
    sql = DUCKDB.null_safe_equal(*map(quote_name, NAMES), Type.INTEGER)
    assert computed(engine, sql, *pairs) == [one == other for one, other in pairs]


def test_the_least_and_the_greatest_value(engine):
    rows = [(value, 0) for value in (3, "NULL", LEAST, MOST)]
    for function, value in (("MIN", LEAST), ("MAX", MOST)):
        assert computed(engine, DUCKDB.min_or_max(function, quote_name("one"), Type.INTEGER), *rows) == [value]
