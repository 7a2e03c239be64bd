"""DuckDB computes what the reference says, on random databases and questions."""

import random

import compare
import duckdb
import operations
import pyarrow as pa
import pytest
import situations
import strategies
from compare import Under, comparable, expected
from hypothesis import given, settings
from pyarrow import parquet
from strategies import BOOL, TEXT, VISITS

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.reference.evaluate import evaluate
from discreet.engines.sql_totals import compute_totals
from discreet.engines.table_source import TableSource
from discreet.kernel.expr import Call, Column, Constant, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import Scan
from discreet.kernel.sqlgen.expr_sql import write_expr
from discreet.kernel.totals import CountDistinct, SelectionWeight, Sum


@pytest.fixture(scope="module")
def plain():
    """A plain DuckDB, but for the optimizer that lets statistics of the data decide filters, and then errs."""
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET disabled_optimizers = 'filter_pushdown'")
        yield connection


def under(connection, dialect=DUCKDB):
    return Under(
        dialect,
        lambda sql: connection.sql(sql).to_arrow_table(),
        lambda tables: strategies.load(connection, tables),
    )


def computed(connection, question):
    return compare.computed(under(connection), question)


def explore(connection, seeds, **words):
    return compare.explore(under(connection), seeds, **words)[0]


def test_the_engine_equals_the_reference_on_a_few_questions(plain):
    assert explore(plain, range(2)) > 1


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_the_engine_equals_the_reference(plain, block):
    deep = explore(plain, range(block * 16, block * 16 + 16))
    wide = explore(plain, range(9000 + block * 3, 9003 + block * 3), questions=15, depth=0, inner=0, most=60)
    assert deep > 15
    assert wide > 8


@pytest.mark.long
@given(strategies.programs)
@settings(max_examples=50)
def test_the_engine_equals_the_reference_where_hypothesis_looks(program):
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET disabled_optimizers = 'filter_pushdown'")
        strategies.load(connection, program.tables)
        assert computed(connection, program.question) == expected(program.tables, program.question)


@pytest.mark.long
def test_the_engine_equals_the_reference_on_thousands_of_rows(plain):
    """More rows than the engine handles at once."""
    plain.execute("SET threads = 2")
    full = 0
    for seed in range(3):
        rng = random.Random(f"crowd {seed}")
        tables = strategies.crowd(rng)
        strategies.load(plain, tables)
        for _ in range(8):
            question = strategies.question(rng, tables, rng.choice([0, 0, 1, 2]), 1, 1)
            wanted = expected(tables, question)
            assert computed(plain, question) == wanted, question
            full += any(wanted.values())
    assert full > 5


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_the_engine_equals_the_reference_thousands_of_times(plain, block):
    explore(plain, range(1000 + block * 200, 1200 + block * 200))
    explore(plain, range(10_000 + block * 40, 10_040 + block * 40), depth=5, most=30)
    explore(plain, range(20_000 + block * 40, 20_040 + block * 40), questions=20, depth=1, inner=0, most=80)


@pytest.mark.long
def test_patterns_at_the_limit_are_compiled(plain):
    for drawn in operations.large_patterns(40):
        call = Call("matches", (Column("t", TEXT), Constant(drawn, TEXT)))
        rows = [{"t": text} for text in ("", "a", "ab")]
        found = plain.execute(f"SELECT {write_expr(call, DUCKDB)} FROM (VALUES (''), ('a'), ('ab')) AS v(t)").fetchall()
        assert found == [(evaluate(call, row),) for row in rows]


@pytest.mark.long(but=["4", "5", "6"])
@pytest.mark.parametrize("seed", range(8))
def test_conditions_keep_the_same_rows(plain, tmp_path, seed):
    """Also in a file of many small parts, each with its least and greatest values: whether one can be left out is
    decided by them.
    """
    rng = random.Random(f"conditions {seed}")
    schema = {f"{kind.value}{place}": kind for kind in Type for place in range(2)}
    for number in range(3):
        known = {name: [*rng.sample(strategies.POOLS[kind], 2), None] for name, kind in schema.items()}
        rows = [{name: rng.choice(values) for name, values in known.items()} for _ in range(12)]
        fields = pa.schema([(column, strategies.ARROW[kind]) for column, kind in schema.items()])
        path = tmp_path / f"{number}.parquet"
        parquet.write_table(pa.Table.from_pylist(rows, schema=fields), path, row_group_size=rng.choice([2, 5]))
        for _ in range(20):
            condition = strategies.expression(rng, schema, BOOL, 3)
            found = plain.execute(f"SELECT COUNT(*) FROM '{path}' WHERE {write_expr(condition, DUCKDB)}").fetchall()
            assert found == [(sum(evaluate(condition, row) is True for row in rows),)], condition


# The engine that is shipped: it reads frames and files, and reals that are not finite are NULL there.


def opened(tables, folder=None):
    """Open the engine on frames, or on files of many small parts."""
    sources = {}
    for place, (name, schema) in enumerate(strategies.SCHEMAS.items()):
        fields = pa.schema([(column, strategies.ARROW[kind]) for column, kind in schema.items()])
        table = pa.Table.from_pylist(tables[name], schema=fields)
        if folder:
            parquet.write_table(table, folder / f"{place}.parquet", row_group_size=3)
        sources[name] = TableSource(str(folder / f"{place}.parquet") if folder else table, schema)
    return DuckDB(sources)


def asked(engine, question):
    return comparable(question, engine.totals(question))


@pytest.mark.long(but=["6", "7", "8", "10"])
@pytest.mark.parametrize("seed", range(14))
def test_the_shipped_engine_equals_the_reference(seed, tmp_path):
    rng = random.Random(f"shipped {seed}")
    tables = strategies.database(rng, finite=True)
    with opened(tables, tmp_path if seed % 2 else None) as engine:
        for _ in range(6):
            question = strategies.question(rng, tables, rng.choice([0, 0, 0, 1, 2]))
            assert asked(engine, question) == expected(tables, question), question


@pytest.mark.parametrize("name", situations.SITUATIONS)
def test_situations(plain, name):
    situations.check(under(plain), situations.SITUATIONS[name])


@pytest.mark.parametrize("name", [name for name in situations.SITUATIONS if name.startswith("one row")])
def test_one_row_does_not_affect_others(name, tmp_path):
    """Nor in files, whose statistics DuckDB reads."""
    situation = situations.SITUATIONS[name]
    for folder in (None, tmp_path):
        with opened(situation.tables, folder) as engine:
            assert asked(engine, situation.question) == situation.totals


def test_sums_that_need_more_than_64_bits_are_refused():
    scan = Scan("visits", VISITS.columns, VISITS.owner, max_rows=1 << 20)
    n, place = situations.N, situations.PLACE
    for limit in (
        ContributionBounds(1, 1),
        ContributionBounds(1 << 42, 1),
        ContributionBounds(1, 1 << 20),
        ContributionBounds(3, 1 << 20),
    ):
        with pytest.raises(ValueError, match="64 bits"):
            Question(
                scan, (("k", place),), SelectedGroups(9), limit, (SelectionWeight(), Sum(n, Grid(-(1 << 22), 0, 1), 2))
            )


def test_where_hashes_collide_the_value_decides_what_counts(plain):
    """Else other units' rows would: an engine puts equal hashes in any order, and they can be made for MD5."""
    empty = dict.fromkeys(VISITS.shape.schema)
    people = list(range(200))
    random.Random(1).shuffle(people)
    visits = [empty | {"user": user, "place": place} for user in people for place in ("ba"[user % 2], "ab"[user % 2])]
    strategies.load(plain, situations.small(visits=visits))
    question = Question(VISITS, (), PublicGroups(()), ContributionBounds(1, 1), (CountDistinct(Column("place", TEXT)),))
    found = compute_totals(question, lambda sql: plain.sql(sql.replace("MD5(", "LENGTH(")).to_arrow_table(), DUCKDB)
    assert found.values.tolist() == [[1]]  # of the two that everybody has, everybody's first


@pytest.mark.parametrize("place", [["A"], ["A", None]], ids=["without NULL", "with NULL"])
def test_a_plan_does_not_fail_depending_on_the_stored_values(place):
    """With statistics, DuckDB 2.0 fails on this condition unless some value is NULL, in the tables that it stores."""
    with opened({name: [] for name in strategies.SCHEMAS}, None) as engine:
        engine._connection.register("given", pa.table({"place": pa.array(place, pa.string())}))
        engine._connection.execute('CREATE TEMP TABLE ".stored" AS SELECT * FROM given')
        condition = "CASE WHEN place IS NULL THEN 'B' END IN ('A')"
        assert engine.query(f'SELECT COUNT(*) AS n FROM ".stored" WHERE {condition}')["n"].to_pylist() == [0]
