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

from discreet.engines.duckdb.dialect import DUCKDB, opaque
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.reference.evaluate import evaluate
from discreet.engines.sql_totals import compute_totals
from discreet.engines.table_source import TableSource
from discreet.kernel.ball import Norm
from discreet.kernel.expr import Call, Column, Constant, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import Scan, Where
from discreet.kernel.sqlgen.dialect import quote_name
from discreet.kernel.sqlgen.expr_sql import write_expr
from discreet.kernel.totals import Count, CountDistinct, SelectionWeight, Sum


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


def stored(connection, kind, values):
    """Store a column x, whose statistics DuckDB then knows."""
    connection.register("given", pa.table({"x": pa.array(values, strategies.ARROW[kind])}))
    connection.execute('CREATE OR REPLACE TEMP TABLE ".stored" AS SELECT * FROM given')
    connection.unregister("given")


@pytest.mark.parametrize("kind", Type)
def test_statistics_do_not_reach_expressions(plain, kind):
    for values in ([strategies.POOLS[kind][0]], [None]):
        stored(plain, kind, values)
        bare, hidden = (
            plain.execute(f'SELECT STATS({text}) FROM ".stored"').fetchall()[0][0] for text in ("x", opaque("x"))
        )
        assert bare["has_null"] != bare["has_no_null"]
        assert hidden["has_null"]
        assert hidden["has_no_null"]
        assert hidden.keys() & {"min", "max"} == set()


@pytest.mark.parametrize("kind", [Type.REAL, Type.DATE, Type.TIMESTAMP], ids=lambda kind: kind.value)
def test_columns_that_a_view_computes_have_no_statistics(kind, tmp_path):
    name = next(name for name, found in VISITS.shape.schema.items() if found is kind)
    tables = {other: [] for other in strategies.SCHEMAS} | {"visits": [{"user": 1, name: strategies.POOLS[kind][0]}]}
    with opened(tables, tmp_path) as engine:
        ((known,),) = engine._connection.execute(f"SELECT STATS({quote_name(name)}) FROM visits").fetchall()
        assert known == {"has_null": True, "has_no_null": True}


def decidable(x):
    """Yield conditions that the statistics of a column may decide, or make part of a CASE decidable."""
    null = Constant(None, x.type)
    a, b = (Constant(value, x.type) for value in strategies.POOLS[x.type][:2])
    comparisons = [Call("is_null", (x,)), *(Call(op, (x, a)) for op in ("equal", "less", "at_most", "one_of"))]
    values = [x, Call("nullif", (a, x)), Call("nullif", (x, a))]
    for test in comparisons:
        values += [Call("case", (test, *ends)) for ends in ((b, null), (null, a), (a, b), (x, null), (a, x))]
    values += [Call("coalesce", (value, a)) for value in values[3::3]]
    for value in values:
        yield Call("one_of", (value, a))
        yield Call("equal", (value, b))
        yield Call("not", (Call("less", (value, a)),))
        yield Call("is_null", (value,))


@pytest.mark.long(but=["t"])
@pytest.mark.parametrize("kind", Type, ids=lambda kind: kind.value)
def test_no_plan_fails_depending_on_the_rows(plain, kind):
    """With statistics of a column, DuckDB 2.0 fails on CASE WHEN x IS NULL THEN 'b' END = 'a' unless some x is NULL."""
    a, b, *_ = strategies.POOLS[kind]
    conditions = list(decidable(Column("x", kind)))
    for values in ([a], [b, None]) if kind is TEXT else ([], [a], [b], [None], [a, None], [b, None], [a, b]):
        stored(plain, kind, values)
        counts = [f'SELECT COUNT(*) FROM ".stored" WHERE {write_expr(condition, DUCKDB)}' for condition in conditions]
        found = [plain.execute(count).fetchall()[0][0] for count in counts]
        assert found == [sum(evaluate(condition, {"x": x}) is True for x in values) for condition in conditions]


@pytest.mark.long
@pytest.mark.parametrize("place", ["frame", "file"])
@pytest.mark.parametrize("kind", Type, ids=lambda kind: kind.value)
def test_no_release_fails_depending_on_the_rows(kind, place, tmp_path):
    """Statistics of columns, also of stored groups, decide how a release is planned."""
    a, b, *_ = strategies.POOLS[kind]
    column = Column(next(name for name, found in VISITS.shape.schema.items() if found is kind), kind)
    by = ((("k", column),), PublicGroups((tuple({a: None, b or None: None}),)))
    bounds, totals = ContributionBounds(1, 1, Norm.L2), (Count(), Count(column))
    for values in ([], [a], [None], [b, None], [a, b, None]):
        rows = [
            dict.fromkeys(VISITS.shape.schema) | {"user": user, column.name: x} for user in (1, 1, 2) for x in values
        ]
        tables = {other: [] for other in strategies.SCHEMAS} | {"visits": rows}
        with opened(tables, tmp_path if place == "file" else None) as engine:
            for question in (
                Question(VISITS, *by, bounds, totals),
                *(
                    Question(Where(VISITS, condition), (), PublicGroups(()), bounds, totals)
                    for condition in list(decidable(column))[::9]
                ),
            ):
                assert asked(engine, question) == expected(tables, question), (values, question)
