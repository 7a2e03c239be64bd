"""Rows that one unit owns: nothing that can be written makes a row depend on anybody else."""

import random
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from discreet.engines.reference.engine import ReferenceEngine
from discreet.kernel.expr import AggregateFunction, Call, Column, Constant, Type, UnitAggregate
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, Count, PublicGroups, Question
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
    tables_of,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "matrix"))
import strategies

INT, REAL, BOOL, TEXT = Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TEXT
USER, NAME, X = Column("user", INT), Column("name", TEXT), Column("x", REAL)
VISITS = Scan("visits", (USER, NAME, X), UnitKey((USER,)), max_rows=100)
EVENTS = Scan("events", (USER, NAME, X), EachRow(), max_rows=100)
NAMED = Scan("named", (USER, NAME, X), UnitKey((NAME,)), max_rows=100)
TOWNS = PublicTable("towns", (("town", NAME), ("size", Column("size", INT))))
RENAMED = Derive(VISITS, (("other", X),))
YES = Constant(None, BOOL)


def multiset(rows):
    return Counter(repr((unit, list(row.items()))) for unit, row in rows)


@pytest.mark.parametrize("block", range(6))
def test_each_row_depends_on_its_own_unit_alone(block):
    """Without a unit, a relation is what it was less this unit's rows, whatever it does."""
    full = 0
    for seed in range(block * 40, block * 40 + 40):
        rng = random.Random(f"owned {seed}")
        tables, kind = strategies.database(rng), rng.choice([0, 0, 1])
        relation = strategies.relation(rng, kind, rng.randint(1, 4))
        rows = ReferenceEngine(tables).owned_rows(relation)
        full += bool(rows)
        for unit in strategies.units_of(tables, kind):
            left = [(owner, row) for owner, row in rows if owner != unit]
            without = ReferenceEngine(strategies.without(tables, kind, unit)).owned_rows(relation)
            assert multiset(without) == multiset(left), relation
    assert full > 8


@pytest.mark.parametrize("block", range(3))
def test_each_row_that_is_a_unit_depends_on_itself_alone(block):
    for seed in range(block * 40, block * 40 + 40):
        rng = random.Random(f"events {seed}")
        tables = strategies.database(rng)
        relation = strategies.relation(rng, 2, 4)
        rows = ReferenceEngine(tables).owned_rows(relation)
        for place in range(len(tables["events"])):
            kept = tables | {"events": [row for at, row in enumerate(tables["events"]) if at != place]}
            left = [((), row) for owner, row in rows if owner != ("events", place)]
            assert multiset(((), row) for _, row in ReferenceEngine(kept).owned_rows(relation)) == multiset(left)


@pytest.mark.parametrize("block", range(6))
def test_no_unit_has_more_rows_than_the_shape_says(block):
    tight = 0
    for seed in range(block * 60, block * 60 + 60):
        rng = random.Random(f"shaped {seed}")
        tables = strategies.database(rng)
        relation = strategies.relation(rng, rng.choice([0, 0, 1, 2]), 4)
        rows = ReferenceEngine(tables).owned_rows(relation)
        most = max(Counter(unit for unit, _ in rows).values(), default=0)
        copies = relation.shape.max_rows_per_unit
        assert copies is None or most <= copies, relation
        assert len(rows) <= relation.shape.max_rows
        assert all(list(row) == list(relation.shape.schema) for _, row in rows)
        tight += bool(rows) and most == copies
    assert tight > 2


def test_values_have_the_types_of_the_schema():
    kinds = {int: INT, float: REAL, bool: BOOL, str: TEXT}
    for seed in range(150):
        rng = random.Random(f"typed {seed}")
        tables = strategies.database(rng)
        relation = strategies.relation(rng, rng.choice([0, 0, 1, 2]), 3)
        for _, row in ReferenceEngine(tables).owned_rows(relation):
            for name, value in row.items():
                assert (
                    value is None or kinds.get(type(value), relation.shape.schema[name]) is relation.shape.schema[name]
                )


def shape(relation):
    return relation.shape.max_rows_per_unit, relation.shape.max_rows


def test_the_shape_of_each_node():
    assert shape(VISITS) == (None, 100)
    assert shape(EVENTS) == (1, 100)
    assert VISITS.shape.unit == (INT,)
    assert EVENTS.shape.unit is None
    assert shape(JoinPublic(EVENTS, TOWNS, (("name", "town"),), None, JoinKind.LEFT, 7)) == (7, 700)
    assert shape(JoinPublic(VISITS, TOWNS, (("name", "town"),), None, JoinKind.LEFT, 7)) == (None, 700)
    assert shape(JoinOnUnit(VISITS, RENAMED, None, JoinKind.LEFT, 3)) == (9, 300)
    assert shape(PerUnit(VISITS, (), ())) == (1, 100)
    assert shape(PerUnit(VISITS, (("name", NAME),), ())) == (None, 100)
    one = Derive(PerUnit(VISITS, (), (("n", UnitAggregate(AggregateFunction.ROWS)),)), (("n", Column("n", INT)),))
    assert shape(JoinOnUnit(one, RENAMED, None, JoinKind.LEFT, 3)) == (3, 300)
    assert shape(Union(one, one)) == (2, 200)
    assert shape(Union(VISITS, VISITS)) == (None, 200)
    assert shape(SemiJoinOnUnit(one, VISITS, SemiJoinKind.ANTI)) == (1, 100)
    assert shape(Where(one, YES)) == (1, 100)


def test_only_rows_of_the_same_kind_of_unit_meet():
    for left, right in ((VISITS, NAMED), (EVENTS, EVENTS), (VISITS, EVENTS), (EVENTS, VISITS)):
        other = Derive(right, (("other", X),))
        for make in (
            lambda a, b: JoinOnUnit(a, b, None, JoinKind.LEFT, 1),
            lambda a, b: SemiJoinOnUnit(a, b, SemiJoinKind.SEMI),
            lambda a, _: Union(a, a if a.shape.unit is None else NAMED),
        ):
            with pytest.raises(ValueError, match="privacy unit"):
                make(left, other)
    with pytest.raises(ValueError, match="its own unit"):
        PerUnit(EVENTS, (), ())


CHILD = (Column("visit", INT), Column("z", REAL))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Scan("", (USER,), UnitKey((USER,)), 9), "name"),
        (lambda: Scan(".a", (USER,), UnitKey((USER,)), 9), "dot"),
        (lambda: Scan("t", (USER, USER), UnitKey((USER,)), 9), "distinct"),
        (lambda: Scan("t", (USER, Column("USER", TEXT)), UnitKey((USER,)), 9), "distinct"),
        (lambda: Scan("t", (USER,), UnitKey(()), 9), "type real"),
        (lambda: Scan("t", (USER, X), UnitKey((X,)), 9), "type real"),
        (lambda: Scan("t", (X,), UnitKey((USER,)), 9), "column 'user' of type integer"),
        (lambda: Scan("t", (USER,), UnitKey((USER,)), 0), "max_rows"),
        (lambda: Scan("t", (USER,), UnitKey((USER,)), 1.5), "max_rows"),
        (lambda: Scan("t", (USER,), UnitKey((USER,)), max_rows=True), "max_rows"),
        (lambda: Scan("t", (USER,), UnitKey((USER,)), 1 << 62), "rows_max"),
        (lambda: Scan("t", CHILD, ParentUnit("visit", EVENTS, "user"), 9), "on and key"),
        (lambda: Scan("t", CHILD, ParentUnit("nothing", VISITS, "user"), 9), "on and key"),
        (lambda: Scan("t", CHILD, ParentUnit("visit", VISITS, "nothing"), 9), "on and key"),
        (lambda: Scan("t", CHILD, ParentUnit("visit", VISITS, "name"), 9), "on and key"),
        (lambda: Scan("t", CHILD, ParentUnit("z", VISITS, "x"), 9), "on and key"),
        (lambda: Where(VISITS, USER), "boolean"),
        (lambda: Where(VISITS, Column("nothing", BOOL)), "does not exist"),
        (lambda: Derive(VISITS, (("a", X), ("A", X))), "distinct"),
        (lambda: Derive(VISITS, ((".u0", X),)), "dot"),
        (lambda: Derive(VISITS, (("a", Column("x", INT)),)), "'x' of type integer does not exist"),
        (lambda: PublicTable("", ()), "name"),
        (lambda: PublicTable("t", (("a", X), ("a", X))), "distinct"),
        (lambda: PublicTable("t", (("a", X),), Column("x", BOOL)), "does not exist"),
        (lambda: PublicTable("t", (("a", X),), Column("a", REAL)), "boolean"),
        (lambda: JoinPublic(VISITS, PublicTable("t", (("NAME", NAME),)), (), None, JoinKind.LEFT, 1), "distinct"),
        (lambda: JoinPublic(VISITS, TOWNS, (("name", "size"),), None, JoinKind.LEFT, 1), "same type"),
        (lambda: JoinPublic(VISITS, TOWNS, (("no", "nothing"),), None, JoinKind.LEFT, 1), "same type"),
        (lambda: JoinPublic(VISITS, TOWNS, (), X, JoinKind.LEFT, 1), "boolean"),
        (lambda: JoinPublic(VISITS, TOWNS, (), None, JoinKind.LEFT, 0), "fanout"),
        (lambda: JoinPublic(VISITS, TOWNS, (), None, JoinKind.LEFT, 1 << 60), "rows_max"),
        (lambda: JoinOnUnit(VISITS, VISITS, None, JoinKind.LEFT, 1), "distinct"),
        (lambda: JoinOnUnit(VISITS, RENAMED, None, JoinKind.LEFT, 0), "max_rows_per_unit"),
        (lambda: JoinOnUnit(VISITS, RENAMED, Column("no", BOOL), JoinKind.LEFT, 1), "does not exist"),
        (lambda: Union(VISITS, RENAMED), "same columns"),
        (lambda: Union(Derive(VISITS, (("a", X), ("b", X))), Derive(VISITS, (("b", X), ("a", X)))), "same columns"),
        (lambda: PerUnit(VISITS, (("a", X),), (("A", UnitAggregate(AggregateFunction.ROWS)),)), "distinct"),
        (
            lambda: PerUnit(VISITS, (), (("a", UnitAggregate(AggregateFunction.COUNT, Column("no", INT))),)),
            "does not exist",
        ),
        (lambda: PerUnit(VISITS, (), ((".a", UnitAggregate(AggregateFunction.ROWS)),)), "dot"),
        (lambda: UnitAggregate(AggregateFunction.ROWS, X), "arguments"),
        (lambda: UnitAggregate(AggregateFunction.COUNT), "arguments"),
        (lambda: UnitAggregate(AggregateFunction.SUM, X), "arguments"),
        (lambda: UnitAggregate(AggregateFunction.SUM, USER, Grid(0, 1, 1)), "arguments"),
        (lambda: UnitAggregate(AggregateFunction.GRID_SUM, X), "arguments"),
        (lambda: UnitAggregate(AggregateFunction.GRID_SUM, NAME, Grid(0, 1, 1)), "arguments"),
    ],
)
def test_a_relation_that_makes_no_sense_is_refused(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


def test_a_grid_too_fine_for_so_many_rows_is_refused():
    many = Scan("t", (USER, X), UnitKey((USER,)), max_rows=1 << 30)
    with pytest.raises(ValueError, match="too small"):
        PerUnit(many, (), (("s", UnitAggregate(AggregateFunction.GRID_SUM, X, Grid(0, 1 << 33, 1))),))
    PerUnit(many, (), (("s", UnitAggregate(AggregateFunction.GRID_SUM, X, Grid(0, 1 << 31, 1))),))


@pytest.mark.parametrize(
    "owner",
    [None, "user", (USER,), EachRow, SimpleNamespace(unit=(USER,)), USER],
    ids=lambda owner: type(owner).__name__,
)
def test_what_is_no_owner_is_not_taken_for_each_row(owner):
    with pytest.raises(TypeError):
        Scan("t", (USER,), owner, max_rows=9)


def test_a_source_is_a_relation():
    fake = SimpleNamespace(shape=VISITS.shape, source=VISITS)
    for make in (
        lambda: Where(fake, YES),
        lambda: Derive(fake, ()),
        lambda: JoinPublic(fake, TOWNS, (), None, JoinKind.LEFT, 1),
        lambda: JoinOnUnit(RENAMED, fake, None, JoinKind.LEFT, 1),
        lambda: SemiJoinOnUnit(VISITS, fake, SemiJoinKind.SEMI),
        lambda: PerUnit(fake, (), ()),
        lambda: Union(VISITS, fake),
    ):
        with pytest.raises(TypeError, match="relation"):
            make()


def grown(grow, times):
    """Grow a relation until it is refused, and return the last that was not."""
    relation = VISITS
    for _ in range(times):
        try:
            relation = grow(relation)
        except ValueError as refusal:
            assert "Simplify it" in str(refusal)  # noqa: PT017 - how far it came matters too
            return relation
    raise AssertionError("it grew for ever")


def test_a_relation_is_neither_too_deep_nor_too_wide():
    assert 40 < grown(lambda r: Where(r, YES), 100).shape.depth < 100
    for grow in (lambda r: Union(r, r), lambda r: SemiJoinOnUnit(r, r, SemiJoinKind.SEMI)):
        assert 30 < len(tables_of(grown(grow, 59))) < 1000


def test_every_table_is_found_wherever_it_stands():
    child = Scan("child", (Column("name2", TEXT),), ParentUnit("name2", NAMED, "name"), max_rows=9)
    joined = JoinPublic(Derive(VISITS, (("a", X),)), TOWNS, (), None, JoinKind.LEFT, 1)
    left = JoinOnUnit(Where(joined, YES), RENAMED, None, JoinKind.LEFT, 1)
    tree = SemiJoinOnUnit(Derive(left, ()), PerUnit(Union(VISITS, VISITS), (), ()), SemiJoinKind.ANTI)
    assert tables_of(tree) == (VISITS, TOWNS, VISITS, VISITS, VISITS)
    assert tables_of(child) == (child,)


def test_equal_relations_are_equal_whatever_their_shape():
    again = Scan("visits", (USER, NAME, X), UnitKey((USER,)), max_rows=100)
    assert again == VISITS
    assert hash(UnitKey((USER,))) == hash(VISITS.owner)
    assert Scan("visits", (USER, NAME, X), UnitKey((Call("abs", (USER,)),)), max_rows=100) != VISITS


def test_work_for_a_row_is_bounded_to_the_last_operation():
    like = Call("like", (NAME, Constant("a%", TEXT)))  # 110
    heavy, rest = Call("and", (like,) * 45), Call("and", (like, *(YES,) * 85))  # 4,951 and 196
    relation = VISITS
    for condition in (heavy, heavy, heavy, heavy, rest):
        relation = Where(relation, condition)
    assert relation.shape.work == 20_000
    with pytest.raises(ValueError, match="too much per row"):
        Where(relation, YES)
    Question(relation, (), PublicGroups(()), ContributionBounds(1, 1), (Count(),))
    for by, groups, total in (((), PublicGroups(()), Count(X)), ((("x", X),), PublicGroups(((1.0,),)), Count())):
        with pytest.raises(ValueError, match="too much per row"):
            Question(relation, by, groups, ContributionBounds(1, 1), (total,))


def test_a_unit_may_become_as_many_rows_as_are_allowed_and_no_more():
    one = PerUnit(VISITS, (), ())
    assert JoinPublic(one, TOWNS, (), None, JoinKind.LEFT, 1 << 22).shape.max_rows_per_unit == 1 << 22
    with pytest.raises(ValueError, match="too many rows"):
        JoinPublic(one, TOWNS, (), None, JoinKind.LEFT, (1 << 22) + 1)
