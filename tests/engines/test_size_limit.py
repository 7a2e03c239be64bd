"""SQL that would be too long or too deeply nested for an engine is refused before any of it is written."""

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.engines import size_limit
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.postgres.dialect import POSTGRES
from discreet.engines.row_selects import select_rows_by_unit
from discreet.engines.size_limit import check_size, parts_of
from discreet.engines.spark.dialect import SPARK
from discreet.engines.unsupported import unsupported_reason
from discreet.kernel.expr import AggregateFunction, Call, Column, Constant, Type, UnitAggregate
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question
from discreet.kernel.relation import (
    Derive,
    EachRow,
    JoinKind,
    JoinOnUnit,
    JoinPublic,
    ParentUnit,
    PerUnit,
    PublicTable,
    Scan,
    SemiJoinKind,
    SemiJoinOnUnit,
    Union,
    UnitKey,
    Where,
)
from discreet.kernel.sqlgen.expr_sql import write_expr
from discreet.kernel.sqlgen.question_sql import write_selects
from discreet.kernel.totals import Count, CountDistinct, HistogramTree, Sum

sys.path.insert(0, str(Path(__file__).parents[1] / "matrix"))
import operations

USER, X, NAME = Column("user", Type.INTEGER), Column("x", Type.REAL), Column("name", Type.TEXT)
VISITS = Scan("visits", (USER, X, NAME), UnitKey((USER,)), max_rows=1000)
YES = Constant(value=True, type=Type.BOOLEAN)
each_dialect = pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES, SPARK], ids=["duckdb", "postgres", "spark"])


@pytest.fixture(autouse=True)
def no_other_limits(monkeypatch):
    """Lift the limits of expressions and relations, so that this one alone decides."""
    for name in ("expr._MAX_SIZE", "expr._MAX_DEPTH", "relation._MAX_TABLES"):
        monkeypatch.setattr(f"discreet.kernel.{name}", 1 << 200)


def counted(relation, *totals):
    return Question(relation, (), PublicGroups(()), ContributionBounds(1, 1), totals or (Count(),))


def doubled(levels):
    """Return an expression that is the sum of itself twice, level by level."""
    expr = X
    for _ in range(levels):
        expr = Call("add", (expr, expr))
    return expr


def nested(levels, op="not", inner=YES):
    for _ in range(levels):
        inner = Call(op, (inner,))
    return inner


def measured(node, dialect=DUCKDB):
    meter = size_limit._Meter(dialect)
    meter.add(node, 1)
    return meter._length


@pytest.mark.long
@each_dialect
def test_the_length_is_that_of_the_sql(dialect):
    """To the last character, whatever the operation, and however often its SQL repeats an argument."""
    for op in operations.SIGNATURES:
        for _, calls, _ in operations.trials(op, most=0):
            for call in calls[:1]:
                wrapped = Call("coalesce", (call, call))
                length, nesting = size_limit._Meter(dialect)._expr_size(wrapped, {}, {}, 1)
                assert nesting == 2
                if op in size_limit.TEXT_SCANS:  # which count the same, however long their lists of letters are
                    assert 2 * size_limit._SCAN_LENGTH < length < 2 * size_limit._SCAN_LENGTH + 200
                else:
                    assert length == len(write_expr(wrapped, dialect))


def test_columns_of_columns_count_for_what_they_become():
    """DuckDB and Spark may inline them; PostgreSQL does not, behind its fence."""
    relation = Derive(VISITS, (("user", USER), ("c0", X)))
    for number in range(25):
        column = Column(f"c{number}", Type.REAL)
        relation = Derive(relation, (("user", USER), (f"c{number + 1}", Call("add", (column, column)))))
    condition = Call("less", (Column("c25", Type.REAL), Constant(1.0, Type.REAL)))
    for dialect in (DUCKDB, SPARK):
        with pytest.raises(ValueError, match="too long"):
            check_size(Where(relation, condition), dialect)
    check_size(Where(relation, condition), POSTGRES)
    once = Derive(VISITS, (("user", USER), ("c", Call("abs", (X,)))))
    twice = Where(once, Call("less", (Column("c", Type.REAL), Column("c", Type.REAL))))
    plain = Where(once, Call("less", (Column("user", Type.INTEGER), Column("user", Type.INTEGER))))
    written = len(write_expr(Call("abs", (X,)), DUCKDB))
    assert measured(twice) - measured(plain) == 2 * (written - len('"user"'))


def test_a_column_of_an_aggregate_or_a_join_counts_as_it_is_computed():
    heavy = Derive(VISITS, (("user", USER), ("c", doubled(8))))
    column = Column("c", Type.REAL)
    condition = Call("less", (column, column))
    inlined = len(write_expr(doubled(8), DUCKDB)) - len('"c"')
    for source in (heavy, Where(heavy, YES), Union(heavy, VISITS_C), Union(VISITS_C, heavy)):
        plain = measured(Where(source, YES)) - len("TRUE")
        assert measured(Where(source, condition)) == plain + len(write_expr(condition, DUCKDB)) + 2 * inlined
    folded = PerUnit(heavy, (), (("c", UnitAggregate(AggregateFunction.MAX, column)),))
    plain = measured(Where(folded, YES)) - len("TRUE")
    assert measured(Where(folded, condition)) == plain + len(write_expr(condition, DUCKDB))


def test_the_nesting_of_a_column_counts_where_it_is_named_beside_others():
    deep = Derive(VISITS, (("c", nested(4, "abs", X)), ("x", X)))
    named = Call("add", (Column("c", Type.REAL), X))
    relation = Where(deep, Call("is_null", (nested(4, "abs", named),)))
    check_size(relation, replace(DUCKDB, max_nesting=11))  # level 1, and 1 + 4 + 1 + 4 operations
    with pytest.raises(ValueError, match="nested"):
        check_size(relation, replace(DUCKDB, max_nesting=10))


VISITS_C = Derive(VISITS, (("user", USER), ("c", X)))


@each_dialect
def test_what_is_too_long_for_an_engine_is_refused_before_it_is_written(dialect, monkeypatch):
    for module in ("kernel.sqlgen.counts_and_sums", "engines.row_selects"):
        monkeypatch.setattr(f"discreet.{module}.select_rows", lambda *_: pytest.fail("written"))
    wide = Call("and", (Call("less", (doubled(12), doubled(12))),) * 20)
    for question in (
        counted(Where(VISITS, wide)),
        counted(VISITS, Sum(doubled(17), Grid(0, 1, 1))),
        counted(Where(VISITS, nested(dialect.max_nesting))),
        counted(Where(VISITS, nested(350))),
    ):
        began = time.process_time()
        with pytest.raises(ValueError, match="too long or too deeply nested"):
            write_selects(question, dialect)
        assert "Simplify" in unsupported_reason(question, dialect)
        assert time.process_time() - began < 5  # written out, the second has 2^17 parts
    with pytest.raises(ValueError, match="too long"):
        select_rows_by_unit(Where(VISITS, wide), ("x",), dialect)


@each_dialect
def test_a_relation_that_doubles_is_refused(dialect):
    for grow in (
        lambda r: Union(r, r),
        lambda r: SemiJoinOnUnit(r, r, SemiJoinKind.SEMI),
        lambda r: JoinOnUnit(Derive(r, (("a", USER),)), Derive(r, (("b", USER),)), None, JoinKind.INNER, 1),
    ):
        relation = PerUnit(VISITS, (("user", USER),), ())
        accepted = 0
        while not unsupported_reason(relation, dialect):
            relation = Derive(grow(relation), (("user", Constant(1, Type.INTEGER)),))
            accepted += 1
        assert 4 <= accepted < 20


def test_the_limits_are_met_to_the_last_character_and_level(monkeypatch):
    question = counted(Where(VISITS, Call("like", (NAME, Constant("a%", Type.TEXT)))))
    length = measured(question)
    monkeypatch.setattr(size_limit, "_MAX_LENGTH", length)
    check_size(question, DUCKDB)
    monkeypatch.setattr(size_limit, "_MAX_LENGTH", length - 1)
    with pytest.raises(ValueError, match="too long"):
        check_size(question, DUCKDB)
    monkeypatch.undo()
    # The question is level 1, the condition's SELECT level 2, and each operation one more.
    for levels in range(1, 5):
        deep = counted(Where(VISITS, nested(levels)))
        check_size(deep, replace(DUCKDB, max_nesting=max(3, 2 + levels)))
        with pytest.raises(ValueError, match="nested"):
            check_size(deep, replace(DUCKDB, max_nesting=1 + levels))
    with pytest.raises(ValueError, match="nested"):
        check_size(counted(Where(Where(VISITS, YES), YES)), replace(DUCKDB, max_nesting=3))


def test_what_is_measured_is_compared_with_a_quarter_of_a_million():
    """Each SELECT counts for 800 characters, each search of a text for 1,250."""
    names = ["user", "x", "name", "user"]  # the last one is the unit's key
    scan = 800 + sum(len(f'"{name}"') for name in names)
    assert measured(VISITS) == scan
    like = Call("like", (NAME, Constant("a%", Type.TEXT)))
    assert measured(Where(VISITS, like)) == scan + 800 + 1250 + len('"name"') + len("'a%'")

    def padded(characters):
        texts = [Constant("a" * length, Type.TEXT) for length in (*[1900] * 129, characters)]
        return Where(VISITS, Call("or", tuple(Call("equal", (NAME, text)) for text in texts)))

    left = 250_000 - measured(padded(0))
    check_size(padded(left), DUCKDB)
    with pytest.raises(ValueError, match="too long"):
        check_size(padded(left + 1), DUCKDB)


def test_the_nesting_is_compared_before_the_next_level_is_entered():
    """Else Python would run out of stack, and the error would be another one."""
    with pytest.raises(ValueError, match="nested"):
        check_size(Where(VISITS, nested(600)), DUCKDB)
    bare = Scan("visits", (), EachRow(), max_rows=9)
    check_size(bare, replace(DUCKDB, max_nesting=1))
    with pytest.raises(ValueError, match="nested"):
        check_size(bare, replace(DUCKDB, max_nesting=0))


def test_a_row_is_searched_at_most_two_hundred_times():
    def searched(times):
        like = Call("like", (NAME, Constant("a%", Type.TEXT)))
        return counted(Where(VISITS, Call("or", (like,) * times)))

    check_size(searched(180), DUCKDB)
    with pytest.raises(ValueError, match="too long"):
        check_size(searched(200), DUCKDB)


def test_every_expression_and_relation_is_found_wherever_it_is():
    marks = iter(range(1000))

    def marked(kind=Type.BOOLEAN):
        number = next(marks)
        return Constant({Type.BOOLEAN: True, Type.INTEGER: number, Type.REAL: float(number)}[kind], kind)

    def found(node):
        return list(parts_of(node))

    key, child = marked(Type.INTEGER), Column("parent", Type.INTEGER)
    parent = Scan("parents", (USER,), UnitKey((key,)), max_rows=9)
    assert found(parent) == [USER, key]
    scan = Scan("children", (child,), ParentUnit("parent", parent, "user"), max_rows=9)
    assert found(scan) == [child, parent]
    one, two, three = marked(), marked(), marked(Type.REAL)
    table = PublicTable("towns", (("town", Column("name", Type.TEXT)),), one)
    assert found(JoinPublic(VISITS, table, (("name", "town"),), two, JoinKind.LEFT, 1)) == [
        VISITS,
        Column("name", Type.TEXT),
        one,
        two,
    ]
    assert found(Where(VISITS, one)) == [VISITS, one]
    renamed = Derive(VISITS, (("a", three),))
    assert found(renamed) == [VISITS, three]
    assert found(JoinOnUnit(VISITS, renamed, two, JoinKind.LEFT, 1)) == [VISITS, renamed, two]
    assert found(SemiJoinOnUnit(VISITS, renamed, SemiJoinKind.ANTI)) == [VISITS, renamed]
    assert found(Union(VISITS, VISITS)) == [VISITS, VISITS]
    fold = UnitAggregate(AggregateFunction.GRID_SUM, three, Grid(0, 9, 1))
    assert found(PerUnit(VISITS, (("k", one),), (("v", fold),))) == [VISITS, one, three]
    totals = (Count(one), Sum(three, Grid(0, 9, 1)), HistogramTree(X, Grid(0, 9, 1), 10, 1), CountDistinct(key))
    question = Question(VISITS, (("k", two),), PublicGroups(((True,),)), ContributionBounds(1, 1), totals)
    assert found(question) == [VISITS, two, one, three, X, key]
