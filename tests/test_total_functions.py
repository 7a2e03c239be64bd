"""One row must not decide between an answer and an error: expressions that raise in a raw engine, in every clause.

The same question is put to two data sets that differ in one person, whose rows hold what makes engines raise. Both must
end alike: the same refusal, or an answer of the same shape.
"""

from datetime import date, datetime

import duckdb
import pyarrow as pa
import pytest

import discreet as dc
from discreet.policy import Policy

POLICY = """
[data]
name = "poison"
ledger = ":memory:"
[budget]
epsilon = 1000
delta = 1e-6
[tables.t]
source = "t"
unit = "person"
groups = 2
rows = 3
rows_max = 1000
[tables.t.columns]
person = { type = "integer" }
i = { type = "integer", between = [-100, 100] }
r = { type = "real", between = [-100, 100] }
s = { type = "text" }
d = { type = "date", between = [2020-01-01, 2029-12-31] }
z = { type = "timestamp", between = [2020-01-01, 2029-12-31] }
b = { type = "boolean" }
[tables.p]
source = "p"
public = true
"""

NUMBERS = """
1 / i|1 % i|i / (i - i)|MOD(7, i)|1.0 / r|1 / (r - r)|i * i * i * i|i + 9223372036854775807
-i - 9223372036854775807|ABS(i)|-i|LN(r)|LN(i)|LOG(r)|LOG10(i)|LOG(2, r)|SQRT(r)|SQRT(i - 200)|EXP(r * 1000)
EXP(i)|POWER(r, 0.5)|POWER(0, i)|POWER(r, 1e9)|r ^ 400|CAST(s AS INTEGER)|CAST(s AS BIGINT)
CAST(s AS DOUBLE PRECISION)|s::numeric|CAST(r AS INTEGER)|CAST(r * 1e300 AS BIGINT)|r * 1e308 * 10|LENGTH(s)
EXTRACT(YEAR FROM z)|EXTRACT(MONTH FROM CAST(s AS DATE))|EXTRACT(HOUR FROM CAST(s AS TIMESTAMP))
d - DATE '2020-01-01'|CASE WHEN i = 0 THEN 1 ELSE 1 / i END|COALESCE(1 / NULLIF(i, 0), i / i)|ROUND(r, 15)
ROUND(r * 1e300, -15)|FLOOR(r * 1e300)|CEIL(r / r)|LEAST(1 / i, i)|GREATEST(LN(r), r)|SIGN(r)
NULLIF(1 / i, 1)|LENGTH(SUBSTR(s, 1, 5))|LENGTH(LOWER(s) || UPPER(s))|EXTRACT(DOY FROM d + 365)
EXTRACT(EPOCH FROM z)|EXTRACT(WEEK FROM z - INTERVAL '1000 days')|i << 70|i | 1|(i * 1e30)::int|TRUNC(r)
"""
NUMBERS = NUMBERS.replace("\n", "|").strip("|").split("|")

GOOD = {
    "person": [1, 1, 2, 3, 4],
    "i": [1, 2, 3, 4, 5],
    "r": [1.5, 2.5, 3.0, 9.0, 0.25],
    "s": ["1", "2", "3", "2024-01-01", "x"],
    "d": [date(2024, 1, n) for n in range(1, 6)],
    "z": [datetime(2024, 1, n, 12) for n in range(1, 6)],
    "b": [True, False, True, None, True],
}
BAD = {
    "person": [5] * 9,
    "i": [0, -(1 << 63), (1 << 63) - 1, None, -1, 0, 1 << 62, 7, -7],
    "r": [0.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, -0.0, None],
    "s": ["", "abc", "99999999999999999999", "1e999", "-0", "2024-02-30", "'", "\u0001é🤦", None],
    "d": [date(1, 1, 1), date(9999, 12, 31), None, date(2020, 2, 29)] + [date(2024, 1, 1)] * 5,
    "z": [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None] + [datetime(2024, 3, 31, 2, 30)] * 6,
    "b": [None, True, False] * 3,
}
TYPES = [pa.int64(), pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.timestamp("us"), pa.bool_()]


def table(*parts):
    columns = [[value for part in parts for value in part[name]] for name in GOOD]
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, TYPES, strict=True)], names=list(GOOD))


PUBLIC = pa.table({"k": pa.array([1, 2, 3], pa.int64()), "w": [0.5, 1.5, 2.5]})


@pytest.fixture(scope="module")
def curators():
    policy = Policy.parse(POLICY)
    with (
        dc.open(policy, data={"t": table(GOOD), "p": PUBLIC}) as clean,
        dc.open(policy, data={"t": table(GOOD, BAD), "p": PUBLIC}) as poisoned,
    ):
        yield clean, poisoned


def outcome(curator, sql):
    """Return how a question ends: its kind, and every word or shape that an analyst sees and noise does not make."""
    try:
        answer = curator.ask(sql, epsilon=1)
    except (dc.Refused, dc.Failed) as error:
        return type(error).__name__, str(error)
    return "answered", str(answer.table.schema), len(answer) if "GROUP BY" not in sql else None


CLAUSES = {
    "SELECT": "SELECT COUNT({0}), SUM(CLIP({0}, -10, 10)), AVG(CLIP({0}, -10, 10)) FROM t",
    "WHERE": "SELECT COUNT(*) FROM t WHERE {0} > 0",
    "FILTER": "SELECT COUNT(*) FILTER (WHERE {0} < 1) FROM t",
    "GROUP BY": "SELECT CAST(CLIP({0}, -10, 10) AS INTEGER) AS g, COUNT(*) FROM t GROUP BY 1",
    "JOIN ON": "SELECT COUNT(*) FROM t JOIN p ON p.w > {0}",
    "PER PERSON": "SELECT COUNT(*) FROM (SELECT person, MAX({0}) FROM t GROUP BY person HAVING MIN({0}) < 5) AS u",
}


@pytest.mark.long
@pytest.mark.parametrize("clause", CLAUSES)
def test_one_row_never_decides_between_an_answer_and_an_error(curators, clause):
    answered = 0
    for expression in NUMBERS:
        sql = CLAUSES[clause].format(expression)
        clean, poisoned = (outcome(curator, sql) for curator in curators)
        assert clean == poisoned, sql
        assert clean[0] != "Failed", sql
        answered += clean[0] == "answered"
    assert len(NUMBERS) >= 43
    assert answered >= 40  # the others are refused, in the same words for both


@pytest.mark.long
def test_post_processing_does_not_fail_either(curators):
    for expression in ("1 / (n - n)", "n % (n - n)", "LN(-ABS(n) - 1)", "SQRT(-ABS(n) - 1)", "n * 1e308 * 1e308"):
        sql = f"SELECT n, {expression} AS x FROM (SELECT COUNT(*) AS n FROM t) AS r"
        for curator in curators:
            assert outcome(curator, sql)[0] == "answered", sql
        above = expression.replace("n", "COUNT(*)", 1)
        having = f"SELECT b, COUNT(*) AS n FROM t GROUP BY b HAVING COUNT(*) / (COUNT(*) - COUNT(*)) > 1 OR {above} > 0"
        assert outcome(curators[0], having)[0] == outcome(curators[1], having)[0] != "Failed"


def test_the_same_expressions_do_raise_in_the_raw_engine():
    connection = duckdb.connect()
    connection.register("t", table(GOOD, BAD))
    raised = 0
    for expression in NUMBERS:
        try:
            connection.sql(f"SELECT COUNT({expression}) FROM t WHERE {expression} > 0").fetchall()
        except duckdb.Error:
            raised += 1
    assert raised >= 10
