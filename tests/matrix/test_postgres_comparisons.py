"""What PostgreSQL's dialect compares by type: NULL with NULL, the least and the greatest, and lists of constants."""

from datetime import date, datetime

import pytest
from postgres_under import fill
from strategies import BOOL, DATE, INT, REAL, TEXT, TIME

from discreet.engines.postgres.dialect import POSTGRES
from discreet.kernel.expr import Call, Constant
from discreet.kernel.sqlgen.expr_sql import write_expr

# Two values of each type; the first may replace NULL in a comparison.
VALUES = {
    INT: (0, 1),
    REAL: (0.0, 0.5),
    BOOL: (False, True),
    TEXT: ("", "a"),
    DATE: (date(1, 1, 1), date(9999, 12, 31)),
    TIME: (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)),
}


@pytest.mark.parametrize("kind", VALUES)
def test_null_equals_null_and_nothing_else(connection, kind):
    rows = [{"a": one, "b": other} for one in (None, *VALUES[kind]) for other in (None, *VALUES[kind])]
    fill(connection, "given", {"a": kind, "b": kind}, rows)
    sql = f"SELECT a, b, {POSTGRES.null_safe_equal('a', 'b', kind)} FROM given"
    assert {(one, other, one == other) for one, other in (row.values() for row in rows)} == set(connection.execute(sql))


@pytest.mark.parametrize("kind", VALUES)
def test_the_least_and_the_greatest_of_a_column(connection, kind):
    least, greatest = VALUES[kind]
    fill(connection, "given", {"a": kind}, [{"a": value} for value in (None, greatest, least, greatest)])
    ends = ", ".join(POSTGRES.min_or_max(function, "a", kind) for function in ("MIN", "MAX"))
    assert connection.execute(f"SELECT {ends} FROM given").fetchall() == [(least, greatest)]


def test_a_constant_is_not_in_a_list_because_it_is_a_constant(connection):
    expr = Call("one_of", tuple(Constant(value, INT) for value in (3, 1, 2)))
    assert connection.execute(f"SELECT {write_expr(expr, POSTGRES)}").fetchall() == [(False,)]


@pytest.mark.parametrize(("end", "inwards"), [(-(1 << 63), 1), ((1 << 63) - 1, -1)])
def test_a_sum_of_integers_is_exact_up_to_the_ends_and_null_beyond(connection, end, inwards):
    for more, expected in ((0, end), (inwards, end + inwards), (-inwards, None)):
        sql = f"SELECT {POSTGRES.sum_or_null.format('a')} FROM (VALUES (CAST('{end}' AS BIGINT)), ({more})) AS t(a)"
        assert connection.execute(sql).fetchall() == [(expected,)]
