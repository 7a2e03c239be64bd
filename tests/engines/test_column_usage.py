"""The columns that a question depends on: changes of others do not affect its totals."""

import pytest

from discreet.engines.column_usage import usage_of_questions, usage_of_relation
from discreet.kernel.expr import AggregateFunction, Call, Column, Constant, Type, UnitAggregate
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
from discreet.kernel.totals import Count, CountUnits
from tests.reference.engine import ReferenceEngine

N, B = Type.INTEGER, Type.BOOLEAN
USER, A, C, D = (Column(name, N) for name in ("user", "a", "c", "d"))
VISITS = Scan("visits", (USER, A, C, D), UnitKey((USER,)), max_rows=100)
EVENTS = Scan("events", (A, C), EachRow(), max_rows=100)
LINES = Scan("lines", (Column("visit", N), Column("weight", N)), ParentUnit("visit", VISITS, "a"), max_rows=100)
TOWNS = PublicTable("towns", (("town", Column("name", N)), ("size", Column("size", N))))


def above(column):
    return Call("less", (Constant(1, N), column))


CASES = {
    "a count": (VISITS, (), Count(), {"visits": {"user"}}),
    "rows that are units": (EVENTS, (), Count(), {"events": set()}),
    "a column that is counted": (VISITS, (), Count(A), {"visits": {"user", "a"}}),
    "a key": (VISITS, (("k", C),), Count(), {"visits": {"user", "c"}}),
    "a condition": (Where(VISITS, above(D)), (), Count(A), {"visits": {"user", "a", "d"}}),
    "the owner of a parent row": (LINES, (), CountUnits(), {"lines": {"visit"}, "visits": {"user", "a"}}),
    "a column that is computed": (
        Derive(VISITS, (("x", C), ("y", D))),
        (),
        Count(Column("x", N)),
        {"visits": {"user", "c"}},
    ),
    "a public table": (
        JoinPublic(VISITS, TOWNS, (("a", "town"),), None, JoinKind.INNER, 1),
        (),
        Count(),
        {"visits": {"user", "a"}, "towns": {"name", "size"}},
    ),
    "rows of which some are kept": (
        JoinOnUnit(VISITS, Derive(VISITS, (("x", C),)), None, JoinKind.INNER, 2),
        (),
        Count(),
        {"visits": {"user", "a", "c", "d"}},
    ),
    "units that have a row elsewhere": (
        SemiJoinOnUnit(VISITS, Where(LINES, above(Column("weight", N))), SemiJoinKind.SEMI),
        (),
        Count(),
        {"visits": {"user", "a"}, "lines": {"visit", "weight"}},
    ),
    "what a unit has in all": (
        PerUnit(
            VISITS,
            (("k", C),),
            (("n", UnitAggregate(AggregateFunction.COUNT, A)), ("m", UnitAggregate(AggregateFunction.COUNT, D))),
        ),
        (),
        Count(Column("n", N)),
        {"visits": {"user", "a", "c"}},
    ),
    "two relations": (
        Union(Derive(VISITS, (("x", A),)), Derive(VISITS, (("x", D),))),
        (),
        Count(Column("x", N)),
        {"visits": {"user", "a", "d"}},
    ),
}


def question(relation, by, total):
    return Question(relation, by, PublicGroups(tuple((1, 2) for _ in by)), ContributionBounds(2, 2), (total,))


@pytest.mark.parametrize("case", CASES)
def test_a_question_uses_its_columns_and_those_of_its_unit(case):
    relation, by, total, expected = CASES[case]
    assert usage_of_questions([question(relation, by, total)]) == {
        table: frozenset(names) for table, names in expected.items()
    }


@pytest.mark.parametrize("case", CASES)
def test_columns_that_are_not_used_can_be_missing(case):
    """With NULL in their place, the exact totals are the same."""
    relation, by, total, _ = CASES[case]
    asked = question(relation, by, total)
    usage = usage_of_questions([asked])

    def totals(without):
        tables = {
            table: [{name: None if (table, name) in without else value for name, value in row.items()} for row in rows]
            for table, rows in ROWS.items()
        }
        found = ReferenceEngine(tables).totals(asked)
        return dict(zip(found.keys, found.values.tolist(), strict=True))

    named = {(table, name) for table, rows in ROWS.items() for name in rows[0]}
    used = {(table, name) for table, names in usage.items() for name in names}
    assert totals(named - used) == totals(set())


ROWS = {
    "visits": [{"user": i % 3, "a": i % 2 + 1, "c": i % 2 + 1, "d": i % 4} for i in range(12)],
    "events": [{"a": 1, "c": 2}] * 3,
    "lines": [{"visit": i % 3, "weight": i} for i in range(9)],
    "towns": [{"name": 1, "size": 5}, {"name": 2, "size": 6}],
}


def test_rows_for_a_model_use_what_their_columns_are_made_of():
    rows = Derive(Where(VISITS, above(D)), (("x", A), ("y", C)))
    assert usage_of_relation(rows, ("x",)) == {"visits": frozenset({"user", "a", "d"})}
