"""The reference engine on small tables, with totals computed by hand from the definitions."""

import math
from dataclasses import replace
from datetime import date, datetime

import pytest

from discreet.kernel.expr import AggregateFunction, Call, Column, Constant, Type, UnitAggregate
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
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
from discreet.kernel.totals import Count, CountUnits, SelectionWeight, Sum
from tests.reference.engine import ReferenceEngine

INT, REAL, TEXT = Type.INTEGER, Type.REAL, Type.TEXT
USER, CITY, X, ID = Column("user", INT), Column("city", TEXT), Column("x", REAL), Column("id", INT)
VISITS = Scan("visits", (USER, CITY, X), UnitKey((USER,)), max_rows=1000)
STAYS = Scan("stays", (ID, USER), UnitKey((USER,)), max_rows=1000)
ITEMS = Scan("items", (Column("stay", INT), Column("n", INT)), ParentUnit("stay", STAYS, "id"), max_rows=1000)
PARTS = Scan("parts", (Column("n", INT), Column("m", INT)), ParentUnit("n", ITEMS, "n"), max_rows=1000)
EVENTS = Scan("events", (CITY, X), EachRow(), max_rows=1000)
TABLES = {
    "visits": [
        {"user": 1, "city": "a", "x": 1.0},
        {"user": 1, "city": "a", "x": -3.0},
        {"user": 1, "city": "b", "x": None},
        {"user": 2, "city": "a", "x": 9.0},
        {"user": None, "city": "a", "x": 5.0},
    ],
    "stays": [{"id": 7, "user": 1}, {"id": 8, "user": 2}, {"id": 8, "user": 1}, {"id": 9, "user": None}],
    "items": [{"stay": 7, "n": 1}, {"stay": 8, "n": 2}, {"stay": 9, "n": 3}, {"stay": None, "n": 4}],
    "parts": [{"n": 1, "m": 10}, {"n": 2, "m": 20}, {"n": 3, "m": 30}],
    "events": [{"city": "a", "x": 1.0}, {"city": "a", "x": 2.0}],
    "cities": [
        {"name": "a", "zone": 1},
        {"name": "a", "zone": 2},
        {"name": "a", "zone": None},
        {"name": None, "zone": 4},
    ],
    "empty": [],
}
REFERENCE = ReferenceEngine(TABLES)
BY_CITY = (("city", CITY),)
CITIES = PublicGroups((("a", "b"),))
WHOLE = Grid(-10, 10, 1)


def rows_of(relation):
    return [(unit, tuple(row.values())) for unit, row in REFERENCE.owned_rows(relation)]


def totals_of(question, tables=TABLES):
    found = ReferenceEngine(tables).totals(question)
    return dict(zip(found.keys, map(tuple, found.values.tolist()), strict=True))


def test_a_row_without_an_owner_is_left_out():
    assert [unit for unit, _ in REFERENCE.owned_rows(VISITS)] == [(1,), (1,), (1,), (2,)]


def test_a_child_belongs_to_the_one_owner_of_its_parents():
    assert rows_of(ITEMS) == [((1,), (7, 1))]  # 8 has two owners, 9 none


def test_a_grandchild_of_a_row_with_several_owners_has_no_owner():
    assert rows_of(PARTS) == [((1,), (1, 10))]


def test_each_row_is_a_unit_of_its_own():
    units = [unit for unit, _ in REFERENCE.owned_rows(EVENTS)]
    assert len(set(units)) == 2


def test_only_declared_columns_are_there():
    assert rows_of(Scan("visits", (USER,), UnitKey((USER,)), max_rows=9))[0] == ((1,), (1,))


def test_conditions_that_are_null_keep_nothing():
    positive = Call("less", (Constant(0.0, REAL), X))
    assert [row["x"] for _, row in REFERENCE.owned_rows(Where(VISITS, positive))] == [1.0, 9.0]


def test_a_public_table_gives_its_first_rows_in_order():
    table = PublicTable("cities", (("name", Column("name", TEXT)), ("zone", Column("zone", INT))))
    one = Derive(Where(VISITS, Call("equal", (X, Constant(9.0, REAL)))), BY_CITY)
    kept = JoinPublic(one, table, (("city", "name"),), None, JoinKind.INNER, fanout=2)
    assert rows_of(kept) == [((2,), ("a", "a", 1)), ((2,), ("a", "a", 2))]
    all_three = JoinPublic(one, table, (("city", "name"),), None, JoinKind.INNER, fanout=9)
    assert rows_of(all_three)[-1] == ((2,), ("a", "a", None))
    also = Call("equal", (Column("zone", INT), Constant(4, INT)))
    assert rows_of(JoinPublic(one, table, (), also, JoinKind.INNER, fanout=4)) == [((2,), ("a", None, 4))]
    assert rows_of(JoinPublic(one, table, (), also, JoinKind.LEFT, fanout=3)) == [((2,), ("a", None, None))]


def test_a_join_on_the_unit_matches_only_the_first_rows_of_a_unit():
    right = Derive(STAYS, (("stay", ID),))
    join = JoinOnUnit(Derive(VISITS, (("x", X),)), right, None, JoinKind.INNER, max_rows_per_unit=2)
    assert rows_of(join) == [
        ((1,), (-3.0, 7)),
        ((1,), (-3.0, 8)),
        ((1,), (1.0, 7)),
        ((1,), (1.0, 8)),
        ((2,), (9.0, 8)),
    ]
    none = Where(right, Call("less", (Column("stay", INT), Constant(8, INT))))
    left = JoinOnUnit(Derive(VISITS, (("x", X),)), none, None, JoinKind.LEFT, max_rows_per_unit=1)
    assert rows_of(left) == [((1,), (-3.0, 7)), ((2,), (9.0, None))]


def test_semi_and_anti_joins_keep_units_with_and_without_a_row():
    in_b = Where(VISITS, Call("equal", (CITY, Constant("b", TEXT))))
    for has, users in ((SemiJoinKind.SEMI, {1}), (SemiJoinKind.ANTI, {2})):
        assert {row["user"] for _, row in REFERENCE.owned_rows(SemiJoinOnUnit(VISITS, in_b, has))} == users


def test_one_row_for_each_unit_and_key():
    folds = tuple(
        (fold.value, UnitAggregate(fold, None if fold is AggregateFunction.ROWS else X))
        for fold in list(AggregateFunction)[:5]
    )
    assert rows_of(PerUnit(VISITS, (), folds)) == [((1,), (3, 2, 2, -3.0, 1.0)), ((2,), (1, 1, 1, 9.0, 9.0))]
    steps = (("steps", UnitAggregate(AggregateFunction.GRID_SUM, X, Grid(-1, 5, "1/2", 1))),)
    assert rows_of(PerUnit(VISITS, BY_CITY, steps)) == [((1,), ("a", -2)), ((1,), ("b", None)), ((2,), ("a", 9))]


def test_a_sum_of_integers_is_null_where_64_bits_do_not_hold_it():
    tables = {"stays": [{"id": (1 << 63) - 1, "user": 1}, {"id": 1, "user": 1}, {"id": 5, "user": 2}]}
    per = PerUnit(STAYS, (), (("s", UnitAggregate(AggregateFunction.SUM, ID)),))
    assert [row["s"] for _, row in ReferenceEngine(tables).owned_rows(per)] == [None, 5]


def test_a_union_has_the_rows_of_both():
    assert len(REFERENCE.owned_rows(Union(VISITS, VISITS))) == 8


def test_unlisted_keys_do_not_count():
    question = Question(
        VISITS,
        BY_CITY,
        PublicGroups((("a", None),)),
        ContributionBounds(groups=2, rows=9, cap_rows=True),
        (Count(), CountUnits(), Count(X)),
    )
    assert totals_of(question) == {("a",): (3, 2, 3)}


def test_rows_above_the_bound_are_scaled_to_the_bound():
    question = Question(
        VISITS,
        (),
        PublicGroups(()),
        ContributionBounds(groups=1, rows=1, cap_rows=True),
        (Count(), Sum(X, WHOLE), Sum(X, WHOLE, 2, 1)),
    )
    assert totals_of(question) == {(): (2, -1 + 9, ((1 - 1) + (9 - 1)) // 2 + 80)}
    uncapped = replace(question, bounds=ContributionBounds(groups=1, rows=1))
    assert totals_of(uncapped) == {(): (2, -2 + 9, (1 - 1) + (9 - 1) + 80)}  # limited to 1, 9 and 80


def test_sums_are_scaled_towards_zero():
    tables = {"visits": [{"user": 1, "city": "a", "x": x} for x in (-1.0, -1.0, -1.0, 0.0)]}
    bounds = ContributionBounds(groups=1, rows=1, cap_rows=True)
    question = Question(VISITS, (), PublicGroups(()), bounds, (Sum(X, WHOLE),))
    assert totals_of(question, tables) == {(): (0,)}  # -3/4


def test_a_unit_in_too_many_groups_is_scaled_to_the_bound():
    tables = {"visits": [{"user": 1, "city": city, "x": -1.0} for city in "abc"]}
    question = Question(
        VISITS,
        BY_CITY,
        SelectedGroups(max_groups=3),
        ContributionBounds(groups=1, rows=1),
        (SelectionWeight(), CountUnits(), Sum(X, Grid(-1, 1, 1))),
    )
    third = (1 << 20) // 3
    assert question.fraction_bits(question.totals[1]) == 20
    weight = math.isqrt((1 << 40) // 3)
    assert totals_of(question, tables) == {(city,): (weight, third, -third) for city in "abc"}


def test_a_unit_in_too_many_groups_does_not_count_in_partition_selection():
    many = [{"user": 1, "city": city, "x": 1.0} for city in "abc"]
    question = Question(
        VISITS,
        BY_CITY,
        SelectedGroups(max_groups=2),
        ContributionBounds(groups=1, rows=1),
        (SelectionWeight(), Count()),
    )
    third = (1 << 20) // 3
    assert totals_of(question, {"visits": many}) == {(city,): (0, third) for city in "abc"}
    with_another = totals_of(question, {"visits": [*many, {"user": 2, "city": "b", "x": None}]})
    assert with_another == {("a",): (0, third), ("b",): (1 << 20, (1 << 20) + third), ("c",): (0, third)}


def test_a_unit_has_more_weight_where_some_of_its_keys_were_shown():
    rows = [{"user": 1, "city": city, "x": 1.0} for city in (*"abc", None)]

    def weights(*shown):
        groups = SelectedGroups(2, tuple((city,) for city in shown))
        return totals_of(
            Question(VISITS, BY_CITY, groups, ContributionBounds(1, 1), (SelectionWeight(),)), {"visits": rows}
        )

    assert weights() == {("a",): (0,), ("b",): (0,), ("c",): (0,), (None,): (0,)}
    assert weights("a", None) == {("b",): (math.isqrt(1 << 39),), ("c",): (math.isqrt(1 << 39),)}
    assert weights("a", "b", None, "z") == {("c",): (1 << 20,)}


def test_units_with_a_value_are_counted_once():
    question = Question(VISITS, BY_CITY, CITIES, ContributionBounds(groups=2, rows=2), (CountUnits(X), CountUnits()))
    assert totals_of(question) == {("a",): (2, 2), ("b",): (0, 1)}


def test_event_level_totals_are_not_bounded():
    question = Question(
        EVENTS, BY_CITY, CITIES, ContributionBounds(groups=1, rows=1), (Count(), CountUnits(), Sum(X, WHOLE))
    )
    assert totals_of(question) == {("a",): (2, 2, 3)}


def test_a_question_without_keys_has_one_group_even_without_rows():
    for scan in (VISITS, EVENTS):
        question = Question(scan, (), PublicGroups(()), ContributionBounds(groups=1, rows=1), (Count(), CountUnits()))
        assert totals_of(question, {"visits": [], "events": []}) == {(): (0, 0)}


def test_public_tables_agree_with_the_engine():
    tables = {
        **TABLES,
        "all": [
            {"i": None, "r": 1.0, "b": True, "t": "é", "d": date(2020, 1, 1), "s": datetime(2020, 1, 1), "n": None},
            {"i": 1, "r": None, "b": None, "t": None, "d": None, "s": None, "n": None},
        ],
    }
    reference = ReferenceEngine(tables)
    assert list(reference.columns("all").values()) == [*Type, TEXT]
    assert reference.columns("empty") == {}
    assert reference.values("cities", "zone") == [1, 2, 4]
    assert [reference.fanout("cities", names) for names in (("name",), ("name", "zone"), (), ("zone",))] == [3, 1, 4, 1]
    assert reference.fanout("empty", ("name",)) == 0


def test_an_unknown_table_is_an_error():
    with pytest.raises(KeyError):
        REFERENCE.owned_rows(Scan("nowhere", (USER,), UnitKey((USER,)), max_rows=9))
