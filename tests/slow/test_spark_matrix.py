"""Spark itself computes what the reference says: as tests/matrix/test_spark.py, where another engine speaks for it."""

import random
import time

import compare
import operations
import pytest
import situations
import spark_under
import strategies
from servers.spark import no_spark, session, spark_local
from spark_under import EXACT, compared
from strategies import BOOL, INT, REAL, TEXT
from test_errors import BATTERY, SCHEMA, check
from test_spark import PATTERNS, TEXTS, borders

from discreet.engines.spark.dialect import SPARK
from discreet.engines.spark.literals import requote_names
from discreet.engines.unsupported import unsupported_reason
from discreet.kernel.expr import SIGNATURES, Call, Column, Constant, Type
from discreet.kernel.question import (
    ContributionBounds,
    Count,
    PublicGroups,
    Question,
)
from discreet.kernel.relation import Derive
from discreet.kernel.sqlgen.dialect import quote_name
from discreet.kernel.sqlgen.expr_sql import write_expr

pytestmark = [pytest.mark.slow, pytest.mark.skipif(no_spark() is not None, reason=str(no_spark()))]
T = Column("t", TEXT)


@pytest.fixture(scope="module")
def spark():
    with spark_local(memory="2g") as server, session(server.url) as opened:
        yield spark_under.prepare(opened)


@pytest.fixture
def engine(spark):
    return spark_under.under(spark)


@pytest.mark.parametrize("op", SIGNATURES)
def test_each_operation_means_the_same(spark, op):
    for schema, calls, rows in operations.trials(op, most=300):
        compared(spark, [call for call in calls if not SPARK.unsupported_reason(call)], schema, rows)


@pytest.mark.parametrize("op", SIGNATURES)
def test_an_operation_means_the_same_where_it_is_compared(spark, op):
    """An optimizer likes to compare what an operation was computed from, also where there is no result."""
    for schema, exprs, rows in spark_under.comparisons(op, numbers_only=False):
        compared(spark, exprs, schema, rows)


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "less", "equal", "least", "greatest"])
def test_operations_on_pairs_of_reals_agree_at_every_boundary(spark, op):
    values = borders()[::3]
    rows = [{"a": one, "b": other} for one in values for other in values]
    compared(spark, [Call(op, (Column("a", REAL), Column("b", REAL)))], {"a": REAL, "b": REAL}, rows)


def test_operations_on_single_reals_agree_at_every_boundary(spark):
    a = Column("a", REAL)
    calls = [Call(op, (a,)) for op in ("negate", "abs", "sign", "floor", "ceil", "sqrt", "to_integer")]
    calls += [Call("round", (a, Constant(places, INT))) for places in range(-15, 16)]
    compared(spark, calls, {"a": REAL}, [{"a": x} for x in borders()])


@pytest.mark.parametrize("op", ["add", "negate", "not", "join", "case"])
def test_expressions_may_be_as_deep_as_spark_allows(spark, op):
    compared(spark, [spark_under.deep(op)], *spark_under.SHALLOW)


@pytest.mark.parametrize("block", range(4))
def test_spark_equals_the_reference(engine, block):
    deep, _ = spark_under.explore(engine, range(block * 10, block * 10 + 10))
    wide, _ = spark_under.explore(engine, range(9000 + block, 9001 + block), questions=15, depth=0, inner=0, most=60)
    assert deep > 10
    assert wide > 2


def test_spark_equals_the_reference_on_thousands_of_rows(engine):
    rng = random.Random("crowd 0")
    tables = strategies.crowd(rng)
    engine.load(tables)
    full = 0
    while full < 6:
        question = strategies.question(rng, tables, rng.choice([0, 0, 1, 2]), 1, 1)
        if not unsupported_reason(question, EXACT):
            wanted = compare.expected(tables, question)
            assert compare.computed(engine, question) == wanted, question
            full += any(wanted.values())


@pytest.mark.parametrize("name", situations.SITUATIONS)
def test_situations(engine, name):
    situations.check(engine, situations.SITUATIONS[name])


@pytest.mark.parametrize("trap", BATTERY, ids=[f"{trap.text} {[*trap.values.values()]}" for trap in BATTERY])
def test_spark_never_raises_because_of_a_row(spark, trap):
    def load(tables):
        spark_under.fill(spark, "people", SCHEMA, tables["people"])

    check(compare.Under(SPARK, lambda sql: spark_under.run(spark, sql), load), trap)


def test_nothing_is_put_in_place_of_a_name_or_a_constant(spark, engine):
    """Spark would write its own settings, and its server's environment, where a dollar and a brace stand."""
    names = ["${env:HOME}", "${spark.app.name}", "${system:user.name}", "${", "$`{", "{fn}", "?", ":x", "a--b", "/*"]
    derived = Derive(strategies.EVENTS, tuple((name, Constant(name, TEXT)) for name in names))
    keys = tuple((f"k{place}", Column(name, TEXT)) for place, name in enumerate(names))
    question = Question(
        derived, keys[:3], PublicGroups(tuple((name,) for name in names[:3])), ContributionBounds(5, 5), (Count(),)
    )
    tables = situations.small(events=[situations.event("a")])
    situations.check(engine, situations.Situation(tables, question, {tuple(names[:3]): (1,)}))
    listed = ", ".join(f"{write_expr(Constant(name, TEXT), SPARK)} AS {quote_name(name)}" for name in names)
    found = spark_under.run(spark, requote_names(f"SELECT {listed}"))
    assert found.column_names == names
    assert found.to_pylist() == [dict.fromkeys(names) | {name: name for name in names}]


# Patterns.

HARD = [
    "[a-z]+@[a-z]+\\.com",
    "(foo|bar).{0,9}baz",
    "a.{0,20}b",
    "^[^@]+@[^@.]+\\.com$",
    "(a?){3}b",
    "([0-9]{1,3}\\.){3}5",
]
HARD += ["^(ab|cd){1,99}$", "^((a|bb){9}){9}", "x{3,}y", "(jpg|png|gif)$", "^(.{0,9}){9}", "[^a]{20}b", "a{2,}b"]


def test_patterns_are_read_alike(spark):
    calls = [Call("matches", (T, Constant(pattern, TEXT))) for pattern in [*PATTERNS, *HARD]]
    calls += [Call(op, (T, Constant(each, TEXT))) for op in ("like", "like_any_case") for each in strategies.LIKES]
    compared(
        spark,
        [call for call in calls if not SPARK.unsupported_reason(call)],
        {"t": TEXT},
        [{"t": each} for each in TEXTS],
    )


def test_no_text_takes_too_much_time_or_stack(spark):
    """Neither a letter again and again, nor letters of two widths in turn, nor what almost fits."""
    hostile = ["a", "a@", "ab", "abc", "👩a", "foo", "1.1", "12.3", "x", "a\n", "bb", "cdab", "foobar"]
    rows = [{"t": (part * 2000)[:2000] + end} for part in hostile for end in ("", "b", "!")]
    calls = [Call("matches", (T, Constant(pattern, TEXT))) for pattern in [*PATTERNS, *HARD]]
    calls += [Call("like", (T, Constant(pattern, TEXT))) for pattern in ("%a%b%c%d%e%", "a%b%c%d", "%a_b%", "%a_")]
    calls = [call for call in calls if not SPARK.unsupported_reason(call)]
    assert len(calls) > 40
    compared(spark, calls, {"t": TEXT}, rows)
    began = time.perf_counter()
    compared(spark, calls, {"t": TEXT}, rows[:1])
    alone = time.perf_counter() - began
    began = time.perf_counter()
    compared(spark, calls, {"t": TEXT}, rows)
    assert time.perf_counter() - began - alone < 0.05 * len(calls) * len(rows)


# How a question is computed.


def test_types_are_the_kernels(spark):
    """Each as itself and as NULL."""
    pairs = [(kind, value) for kind in Type for value in (strategies.POOLS[kind][0], None)]
    listed = ", ".join(f"{write_expr(Constant(value, kind), SPARK)} AS c{n}" for n, (kind, value) in enumerate(pairs))
    found = spark_under.run(spark, f"SELECT {listed}")
    assert [field.type for field in found.schema] == [strategies.ARROW[kind] for kind, _ in pairs]
    assert BOOL in dict(pairs)
