"""The groups of each unit are computed once for a release, and give the same totals as if each question read them."""

import random
from dataclasses import replace
from datetime import date, timedelta

import pyarrow as pa
import pytest

import discreet as dc
from discreet.engines.column_usage import usage_of_questions
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.duckdb.engine import DuckDB, Tuning
from discreet.engines.stored_groups import StoredGroups, groups_units
from discreet.engines.table_source import EngineError, TableSource
from discreet.kernel.expr import AggregateFunction, Call, Column, Constant, Type, UnitAggregate
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import PerUnit, Scan, UnitKey, Where
from discreet.kernel.totals import Count, CountUnits, SelectionWeight, Sum

INT, REAL, TEXT = Type.INTEGER, Type.REAL, Type.TEXT
USER, N, X, PLACE = Column("user", INT), Column("n", INT), Column("x", REAL), Column("place", TEXT)
CITY = Column("city", TEXT)
VISITS = Scan("visits", (USER, N, X, PLACE, CITY), UnitKey((USER,)), max_rows=10**6)
ROWS = UnitAggregate(AggregateFunction.ROWS)
BOUNDS = ContributionBounds(groups=2, rows=3)
LISTED = PublicGroups((("a", "b", "d"),))
BY_PLACE = Question(VISITS, (("k", PLACE),), LISTED, BOUNDS, (Count(),))
SELECTED = replace(BY_PLACE, groups=SelectedGroups(9), totals=(SelectionWeight(), Count()))
DAYS = [date(2026, 1, 1) + timedelta(days=day) for day in range(20)]
POLICY = """
[data]
name = "visits"
ledger = ":memory:"
[budget]
epsilon = 10
{delta}
[tables.visits]
source = "visits"
unit = "user"
groups = 2
rows = 3
[tables.visits.columns]
user = {{ type = "integer" }}
n = {{ type = "integer", in = [3, 1, 2, 4] }}
odd = {{ type = "integer", in = [1, 3], null = true }}
day = {{ type = "date", between = [2026-01-01, 2026-01-12] }}
x = {{ type = "real", between = [0, 10] }}
place = {{ type = "text", in = ["a", "b", "d"] }}
city = {{ type = "text" }}
"""
QUERIES = (  # with how many tables are stored for the query and its histograms
    ("SELECT COUNT(*) AS c FROM visits", 1),
    ("SELECT place, COUNT(*) AS c FROM visits GROUP BY place", 1),
    ("SELECT n, COUNT(*) AS c, SUM(x) AS s FROM visits GROUP BY n", 1),
    ("SELECT odd, COUNT(*) AS c FROM visits GROUP BY odd", 1),
    ("SELECT day, COUNT(*) AS c FROM visits GROUP BY day", 1),
    ("SELECT n, place, AVG(x) AS m FROM visits WHERE x > 1 AND place <> 'b' GROUP BY n, place", 1),
    ("SELECT place, COUNT(*) AS c FROM visits WHERE place IN ('a', 'b', 'd') GROUP BY place", 1),
    ("SELECT place, COUNT(DISTINCT user) AS c FROM visits GROUP BY place", 1),
    ("SELECT city, COUNT(*) AS c, SUM(x) AS s, AVG(x) AS m FROM visits GROUP BY city", 1),
    ("SELECT COUNT(DISTINCT user) AS c FROM visits", 0),
)


def visits(size=400):
    rng = random.Random("visits")
    return pa.table(
        {
            "user": [rng.choice([None, *range(1, 20), *[7] * 30]) for _ in range(size)],
            "n": [rng.choice([None, 0, 1, 2, 3, 4, 5]) for _ in range(size)],
            "odd": [rng.choice([None, 1, 2, 3]) for _ in range(size)],
            "day": [rng.choice([None, *DAYS]) for _ in range(size)],
            "x": [rng.choice([None, float("nan"), -1.0, 0.5, 3.25, 99.0]) for _ in range(size)],
            "place": [rng.choice([None, "a", "b", "c", "d"]) for _ in range(size)],
            "city": [rng.choice([None, *"xyz"]) for _ in range(size)],
        }
    )


@pytest.fixture(params=["", "delta = 1e-6"], ids=["pure", "zCDP"])
def curator(request):
    policy = dc.policy.Policy.parse(POLICY.format(delta=request.param))
    with dc.open(policy, data={"visits": visits()}, tuning=dc.Tuning(totals_cache=0)) as opened:
        yield opened


def comparable(totals):
    return dict(zip(totals.keys, totals.values.tolist(), strict=True))


def stored_tables(engine):
    return engine._connection.execute("SELECT table_name FROM duckdb_tables() WHERE temporary").fetchall()


@pytest.mark.parametrize(("sql", "count"), QUERIES)
def test_stored_groups_do_not_change_totals(curator, monkeypatch, sql, count):
    if "GROUP BY city" in sql and curator.policy.budget.delta == 0:
        pytest.skip("partition selection needs a delta")
    engine = curator._engine
    questions = [part.question for part in curator.releases.plan_query(sql, "owner", None, None).releases]
    if isinstance(questions[0].groups, SelectedGroups):
        later = SelectedGroups(questions[0].groups.max_groups, (("x",),))
        questions.append(replace(questions[0], groups=later, totals=questions[0].totals[:1]))
    assert len(questions) > bool(count)
    wanted = [comparable(engine.totals(question)) for question in questions]
    run, ran = engine._run, []
    monkeypatch.setattr(engine, "_run", lambda *sql: ran.append("".join(reversed(sql))) or run(*sql))
    with engine.prepare(usage_of_questions(questions)) as reader:
        assert stored_tables(engine) == []  # nothing is read before the charge
        assert [comparable(reader.totals(question)) for question in questions] == wanted
        assert len(stored_tables(engine)) == count
    assert stored_tables(engine) == []
    assert [text.startswith("CREATE TEMP TABLE") for text in ran if '"visits"' in text] == [bool(count)]


def rows_of(source, keys=(("k0", PLACE),), values=(("f0", ROWS),)):
    return PerUnit(source, keys, values)


def one_of(key, *values):
    return Call("one_of", (key, *(Constant(value, key.type) for value in values)))


def between(key, low, high):
    low, high = (Constant(end, key.type) for end in (low, high))
    return Call("and", (Call("at_most", (key, high)), Call("at_most", (low, key))))


def test_the_same_groups_are_those_that_are_stored():
    listed = Where(VISITS, one_of(PLACE, "d", "a", "b"))
    stored = StoredGroups(".groups", BY_PLACE)
    assert stored.find(BY_PLACE, DUCKDB) == '".groups"'
    assert stored.find(replace(BY_PLACE, bounds=ContributionBounds(1, 1)), DUCKDB) == '".groups"'
    assert stored.find(rows_of(listed), DUCKDB) == 'SELECT ".u0" AS ".u0", k0 AS "k0", m AS "f0" FROM ".groups" AS s'
    assert stored.find(rows_of(listed, ()), DUCKDB) == (
        'SELECT ".u0" AS ".u0", CAST(SUM(m) AS BIGINT) AS "f0" FROM ".groups" AS s GROUP BY ".u0"'
    )
    assert StoredGroups(".groups", SELECTED).find(rows_of(VISITS), DUCKDB)
    later = replace(SELECTED, groups=SelectedGroups(9, (("a",),)), totals=(SelectionWeight(),))
    assert StoredGroups(".groups", SELECTED).find(later, DUCKDB) == '".groups"'
    by_n = replace(BY_PLACE, by=(("k", N),), groups=PublicGroups(((4, 3, None, 2),)))
    with_null = Call("or", (Call("is_null", (N,)), between(N, 2, 4)))
    assert StoredGroups(".groups", by_n).find(rows_of(Where(VISITS, with_null), (("k0", N),)), DUCKDB)
    only_null = replace(BY_PLACE, groups=PublicGroups(((None,),)))
    unknown = rows_of(Where(VISITS, Call("is_null", (PLACE,))))
    assert StoredGroups(".groups", only_null).find(unknown, DUCKDB)
    flag = Column("flag", Type.BOOLEAN)
    flagged = Where(replace(VISITS, columns=(*VISITS.columns, flag)), flag)
    assert StoredGroups(".groups", replace(SELECTED, relation=flagged)).find(rows_of(flagged), DUCKDB)


OTHERS = {
    "all rows": rows_of(VISITS),
    "fewer keys are listed": rows_of(Where(VISITS, one_of(PLACE, "a", "b"))),
    "more keys are listed": rows_of(Where(VISITS, one_of(PLACE, "a", "b", "c", "d"))),
    "another column is listed": rows_of(Where(VISITS, one_of(CITY, "a", "b", "d"))),
    "a condition more": rows_of(Where(VISITS, Call("and", (one_of(PLACE, "a", "b", "d"), Call("is_null", (N,)))))),
    "another key": rows_of(Where(VISITS, one_of(PLACE, "a", "b", "d")), (("k0", N),)),
    "another aggregate": rows_of(
        Where(VISITS, one_of(PLACE, "a", "b", "d")), values=(("f0", UnitAggregate(AggregateFunction.COUNT, N)),)
    ),
    "another table": rows_of(Where(replace(VISITS, table="others"), one_of(PLACE, "a", "b", "d"))),
    "another relation": replace(BY_PLACE, relation=Where(VISITS, Call("is_null", (N,)))),
    "other groups": replace(BY_PLACE, groups=PublicGroups((("a", "b"),))),
    "groups from the data": SELECTED,
    "other keys": replace(BY_PLACE, by=(("k", Call("lower", (PLACE,))),)),
    "other totals": replace(BY_PLACE, totals=(Sum(N, Grid(0, 9, 1)),)),
    "a total more": replace(BY_PLACE, totals=(Count(), CountUnits())),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_groups_are_not_those_that_are_stored(name):
    assert StoredGroups(".groups", BY_PLACE).find(OTHERS[name], DUCKDB) == ""


def test_other_sums_and_conditions_with_exchanged_operands_are_not_those_that_are_stored():
    another_sum = replace(SELECTED, totals=(SelectionWeight(), Sum(N, Grid(0, 9, 1))))
    assert StoredGroups(".groups", SELECTED).find(another_sum, DUCKDB) == ""
    below, above = (Where(VISITS, Call("less", ends)) for ends in ((N, USER), (USER, N)))
    stored = StoredGroups(".groups", replace(SELECTED, relation=below))
    assert (stored.find(rows_of(below), DUCKDB) != "", stored.find(rows_of(above), DUCKDB)) == (True, "")


def test_groups_are_stored_if_any_total_reads_them():
    total = replace(BY_PLACE, by=(), groups=PublicGroups(()))
    assert groups_units(replace(total, totals=(CountUnits(), Count())))
    assert not groups_units(replace(total, totals=(CountUnits(),)))


def test_ranges_with_a_gap_and_lists_of_reals_are_not_those_that_are_stored():
    by_n = replace(BY_PLACE, by=(("k", N),), groups=PublicGroups(((1, 2, 4),)))
    assert StoredGroups(".groups", by_n).find(rows_of(Where(VISITS, between(N, 1, 4)), (("k0", N),)), DUCKDB) == ""
    # A real that is not finite is NULL as a key, and not NULL in a condition.
    by_x = replace(BY_PLACE, by=(("k", X),), groups=PublicGroups(((1.0, None),)))
    listed = Call("or", (one_of(X, 1.0), Call("is_null", (X,))))
    assert StoredGroups(".groups", by_x).find(rows_of(Where(VISITS, listed), (("k0", X),)), DUCKDB) == ""


def test_a_release_that_fails_leaves_no_table(curator, monkeypatch):
    engine, question = (
        curator._engine,
        curator.releases.plan_query(QUERIES[1][0], "owner", None, None).releases[0].question,
    )
    monkeypatch.setattr(engine, "query", lambda _sql: (_ for _ in ()).throw(EngineError("lost")))
    with engine.prepare(usage_of_questions([question])) as reader:
        with pytest.raises(EngineError, match="lost"):
            reader.totals(question)
        assert len(stored_tables(engine)) == 1
    assert stored_tables(engine) == []


def test_a_closed_engine_has_no_table_to_remove(curator):
    engine, question = (
        curator._engine,
        curator.releases.plan_query(QUERIES[1][0], "owner", None, None).releases[0].question,
    )
    with engine.prepare(usage_of_questions([question])) as reader:
        reader.totals(question)
        engine.close()


def test_a_table_is_kept_until_the_last_release_ends_and_only_a_few_are_kept(curator):
    engine = curator._engine
    queries = [f"SELECT place, COUNT(*) AS c FROM visits WHERE x > {n} GROUP BY place" for n in range(6)]
    questions = [curator.releases.plan_query(sql, "owner", None, None).releases[0].question for sql in queries]
    with engine.prepare(usage_of_questions(questions)):
        with engine.prepare(usage_of_questions(questions)) as reader:
            totals = [comparable(reader.totals(question)) for question in questions]
        assert len(stored_tables(engine)) == 4
        assert [comparable(reader.totals(question)) for question in questions] == totals
    assert stored_tables(engine) == []


def array_bits(engine):
    return int(engine._connection.execute("SELECT current_setting('perfect_ht_threshold')").fetchall()[0][0])


def test_arrays_are_no_larger_than_the_stored_groups_and_have_a_limit_for_all_totals():
    visits = pa.table({"user": range(40_000), "place": ["a"] * 40_000})
    tables = {"visits": TableSource(visits, {"user": INT, "place": TEXT})}
    scan = Scan("visits", (USER, PLACE), UnitKey((USER,)), max_rows=10**6)
    question, small = (replace(BY_PLACE, relation=rows) for rows in (scan, Where(scan, between(USER, 1, 9))))
    many = replace(question, totals=tuple(Count(Call("equal", (USER, Constant(n, INT)))) for n in range(200)))
    with DuckDB(tables, tuning=Tuning(threads=2, totals_cache=0)) as engine:
        for asked, bits in ((question, 16), (small, 12), (many, 14)):
            with engine.prepare(usage_of_questions([asked])) as reader:
                totals = reader.totals(asked)
                assert array_bits(engine) == bits
            assert array_bits(engine) == 12
            if asked is not many:
                assert comparable(totals)[("a",)] == [(9 if asked is small else 40_000) << 20]


class Recorder:
    """A connection that records what is executed."""

    def __init__(self, connection):
        self.connection, self.executed = connection, []

    def execute(self, statement):
        self.executed.append(getattr(statement, "query", statement))
        return self.connection.execute(statement)

    def __getattr__(self, name):
        return getattr(self.connection, name)


@pytest.mark.parametrize(("count", "settings"), [(40_000, 2), (40, 0)])
def test_the_size_of_arrays_is_set_only_if_it_changes(count, settings):
    visits = pa.table({"user": range(count), "place": ["a"] * count})
    tables = {"visits": TableSource(visits, {"user": INT, "place": TEXT})}
    question = replace(BY_PLACE, relation=Scan("visits", (USER, PLACE), UnitKey((USER,)), max_rows=10**6))
    with DuckDB(tables, tuning=Tuning(threads=2, totals_cache=0)) as engine:
        connection = engine._connection = Recorder(engine._connection)
        with engine.prepare(usage_of_questions([question])) as reader:
            reader.totals(question)
        engine._connection = connection.connection
    assert sum(text.startswith("SET ") for text in connection.executed) == settings
