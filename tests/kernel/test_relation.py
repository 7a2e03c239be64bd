"""Rows that one unit owns: nothing that can be written makes a row depend on anybody else."""

import random
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.unsupported import check_supported
from discreet.kernel.errors import Refused
from discreet.kernel.expr import AggregateFunction, Call, Column, Constant, Type, UnitAggregate
from discreet.kernel.grid import Grid
from discreet.kernel.relation import (
    Derive,
    EachRow,
    JoinKind,
    JoinOnUnit,
    JoinPublic,
    NumberRows,
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
from tests.reference.engine import ReferenceEngine

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


# Node by node: each on top of random relations, and each kind of owner.

UNITS, WINDOWS, ROWS = range(3)  # the kinds of units in strategies
NODES = {
    "Scan of UnitKey": (lambda _: strategies.VISITS, UNITS),
    "Scan of UnitKey with a window": (lambda _: strategies.DAYS, WINDOWS),
    "Scan of ParentUnit": (lambda _: strategies.ITEMS, UNITS),
    "Scan of ParentUnit of ParentUnit": (lambda _: strategies.PARTS, UNITS),
    "Scan of ParentUnit with a window": (lambda _: strategies.NOTES, WINDOWS),
    "Scan of EachRow": (lambda _: strategies.EVENTS, ROWS),
    "Where": (lambda rng: strategies._where(rng, UNITS, 2), UNITS),
    "Where of EachRow": (lambda rng: strategies._where(rng, ROWS, 2), ROWS),
    "Derive": (lambda rng: strategies._derive(rng, UNITS, 2), UNITS),
    "JoinPublic": (lambda rng: strategies._join_public(rng, UNITS, 2), UNITS),
    "JoinPublic of EachRow": (lambda rng: strategies._join_public(rng, ROWS, 2), ROWS),
    "JoinPublic of PerUnit": (lambda rng: all_pairs(PerUnit(strategies.VISITS, (), ()), rng), UNITS),
    "JoinOnUnit": (lambda rng: strategies._join_own(rng, UNITS, 2), UNITS),
    "JoinOnUnit with a window": (lambda rng: strategies._join_own(rng, WINDOWS, 2), WINDOWS),
    "SemiJoinOnUnit": (lambda rng: strategies._semi_own(rng, UNITS, 2), UNITS),
    "PerUnit": (lambda rng: strategies._per_unit(rng, UNITS, 2), UNITS),
    "NumberRows": (lambda rng: strategies._number_rows(rng, UNITS, 2), UNITS),
    "NumberRows with a window": (lambda rng: strategies._number_rows(rng, WINDOWS, 2), WINDOWS),
    "Union": (lambda rng: strategies._union(rng, UNITS, 2), UNITS),
    "Union of PerUnit": (lambda rng: Union(*(strategies._per_unit(rng, UNITS, 1),) * 2), UNITS),
}
BOUNDED = {
    *("Scan of EachRow", "Where of EachRow", "JoinPublic of EachRow", "JoinPublic of PerUnit"),
    *("JoinOnUnit", "JoinOnUnit with a window", "Union of PerUnit"),
}


def all_pairs(source, rng):
    table = PublicTable("regions", (("zone", Column("zone", INT)),))
    return JoinPublic(source, table, (), None, rng.choice(list(JoinKind)), fanout=rng.randint(1, 3))


def check_ownership(make_engine, relation, tables, kind):
    """Stop unless each row depends on its unit alone; return the rows of the units, by number."""
    rows = make_engine(tables).owned_rows(relation)
    for unit in strategies.units_of(tables, kind):
        left = [(owner, row) for owner, row in rows if owner != unit]
        without = make_engine(strategies.without(tables, kind, unit)).owned_rows(relation)
        if kind == ROWS:  # a unit is called by the number of its row, which moves if one above it is removed
            left, without = ([((), row) for _, row in each] for each in (left, without))
        assert multiset(without) == multiset(left), relation
    assert len(rows) <= relation.shape.max_rows
    counts = Counter(unit for unit, _ in rows)
    assert max(counts.values(), default=0) <= (relation.shape.max_rows_per_unit or len(rows)), relation
    return counts


def spread(rng, tables):
    """Give each parent row a key of its own, so that no row has several owners."""
    stays, items, parts = (tables[table] for table in ("sta ys", "items", "par'ts"))
    for place, (row, column) in enumerate([*((row, "id") for row in stays), *((row, "label") for row in items)]):
        row[column] = place if column == "id" else str(place)
    for row in items:
        row["stay"] = rng.randrange(len(stays) + 1)
    for row in parts:
        row["item"] = str(len(stays) + rng.randrange(len(items) + 1))


@pytest.mark.parametrize("name", NODES)
def test_each_node_preserves_ownership(name):
    """On random databases and neighbours: other units' rows stay as they are, and a unit has no more rows than said."""
    make, kind = NODES[name]
    several = tight = 0
    for seed in range(100):
        rng = random.Random(f"{name} {seed}")
        tables, relation = strategies.database(rng, most=12), make(rng)
        if seed % 2:
            spread(rng, tables)
        counts = check_ownership(ReferenceEngine, relation, tables, kind)
        several += len(counts) > 1
        tight += max(counts.values(), default=0) == relation.shape.max_rows_per_unit
    assert several > 3
    assert tight > 2 or name not in BOUNDED


class Careless(ReferenceEngine):
    """An engine that joins, looks up, aggregates and limits over all units, and keeps the rows of several owners."""

    def owned_rows(self, relation):  # noqa: PLR0911 - one case per node
        exact = ReferenceEngine(self._tables)
        match relation:
            case JoinOnUnit(left, right):
                ours, theirs = exact.owned_rows(left), exact.owned_rows(right)
                return [(unit, {**a, **b}) for unit, a in ours for _, b in theirs]
            case SemiJoinOnUnit(source, other, kind):
                some = bool(exact.owned_rows(other))
                return exact.owned_rows(source) if (kind is SemiJoinKind.SEMI) is some else []
            case PerUnit(source):
                rows = exact.owned_rows(source)
                return [(unit, {"n": len(rows)}) for unit in {unit for unit, _ in rows}]
            case NumberRows(source, name, _, _, last):
                rows = list(enumerate(exact.owned_rows(source)[:last], 1))
                return [(unit, {**row, name: number}) for number, (unit, row) in rows]
            case Where(source):
                return exact.owned_rows(source)[:3]
            case Scan(table, columns, ParentUnit()):
                owned = [(self._owners(relation, place, row), row) for place, row in enumerate(self._tables[table])]
                names = [column.name for column in columns]
                return [(min(owners), {name: row[name] for name in names}) for owners, row in owned if owners]
        return exact.owned_rows(relation)


@pytest.mark.parametrize(
    "name", ["JoinOnUnit", "SemiJoinOnUnit", "PerUnit", "NumberRows", "Where", "Scan of ParentUnit"]
)
def test_a_node_that_looks_at_other_units_is_noticed(name):
    make, kind = NODES[name]
    noticed = 0
    for seed in range(30):
        rng = random.Random(f"careless {seed}")
        tables, relation = strategies.database(rng, most=9), make(rng)
        try:
            check_ownership(Careless, relation, tables, kind)
        except AssertionError:
            noticed += 1
    assert noticed > 2


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
    assert shape(Scan("visits", (USER,), UnitKey((USER,)), 9)) == (None, 9)
    assert shape(Scan("events", (USER,), EachRow(), 9)) == (1, 9)
    assert VISITS.shape.unit == (INT,)
    assert EVENTS.shape.unit is None
    assert Scan("notes", (USER, NAME), ParentUnit("user", NAMED, "user"), 9).shape.unit == NAMED.shape.unit == (TEXT,)
    assert shape(JoinPublic(EVENTS, TOWNS, (("name", "town"),), None, JoinKind.LEFT, 7)) == (7, 700)
    assert shape(JoinPublic(VISITS, TOWNS, (("name", "town"),), None, JoinKind.LEFT, 7)) == (None, 700)
    assert shape(JoinOnUnit(VISITS, RENAMED, None, JoinKind.LEFT, 3)) == (9, 300)
    assert shape(PerUnit(VISITS, (), ())) == (1, 100)
    assert shape(PerUnit(VISITS, (("name", NAME),), ())) == (None, 100)
    one = Derive(PerUnit(VISITS, (), (("n", UnitAggregate(AggregateFunction.ROWS)),)), (("n", Column("n", INT)),))
    assert shape(JoinOnUnit(one, RENAMED, None, JoinKind.LEFT, 3)) == (3, 300)
    assert shape(JoinOnUnit(RENAMED, one, None, JoinKind.LEFT, 3)) == (3, 300)
    assert shape(Union(one, one)) == (2, 200)
    assert shape(Union(VISITS, VISITS)) == (None, 200)
    any_number = Derive(VISITS, (("n", USER),))
    assert shape(Union(one, any_number)) == shape(Union(any_number, one)) == (None, 200)
    assert shape(SemiJoinOnUnit(one, VISITS, SemiJoinKind.ANTI)) == (1, 100)
    assert shape(Where(one, YES)) == (1, 100)
    twice, by = Union(one, one), ((Column("n", INT), False),)
    assert shape(numbered(VISITS)) == (None, 100)
    assert shape(numbered(VISITS, last=3)) == (3, 100)
    assert shape(numbered(VISITS, keys=(NAME,), last=3)) == (None, 100)
    assert shape(NumberRows(one, "m", (), by, 3)) == (1, 100)
    assert shape(NumberRows(twice, "m", (), by, 1)) == (1, 200)
    assert shape(NumberRows(twice, "m", (), by)) == (2, 200)


def numbered(source, *order, keys=(), last=None):
    """Number rows in an order, then in that of all columns."""
    return NumberRows(source, "n", keys, strategies.completed(order, source), last)


def test_rows_are_numbered_within_a_unit_only():
    values = ((1, "b", 2.0), (1, "a", 1.0), (2, "a", None), (2, "a", 0.0))
    engine = ReferenceEngine({"visits": [{"user": user, "name": name, "x": x} for user, name, x in values]})
    null_first, by_x = (Call("is_null", (X,)), True), (X, True)
    found = [(row["user"], row["x"], row["n"]) for _, row in engine.owned_rows(numbered(VISITS, null_first, by_x))]
    assert found == [(1, 2.0, 1), (1, 1.0, 2), (2, None, 1), (2, 0.0, 2)]
    found = [(row["user"], row["x"], row["n"]) for _, row in engine.owned_rows(numbered(VISITS, by_x, last=1))]
    assert found == [(1, 2.0, 1), (2, 0.0, 1)]
    found = [(row["name"], row["x"]) for _, row in engine.owned_rows(numbered(VISITS, by_x, keys=(NAME,), last=1))]
    assert found == [("b", 2.0), ("a", 1.0), ("a", 0.0)]
    tied = engine.owned_rows(numbered(VISITS, last=1))
    assert [(row["user"], row["name"]) for _, row in tied] == [(1, "a"), (2, "a")]


def test_rows_are_numbered_in_an_order_of_all_columns():
    everything = strategies.completed((), VISITS)
    for missing in everything:
        with pytest.raises(ValueError, match="all columns"):
            NumberRows(VISITS, "n", (), tuple(term for term in everything if term is not missing))
    with pytest.raises(ValueError, match="all columns"):
        NumberRows(VISITS, "n", (), ((Call("abs", (X,)), False), *everything[:2]))
    with pytest.raises(ValueError, match="does not exist"):
        numbered(VISITS, keys=(Column("nobody", INT),))
    with pytest.raises(ValueError, match="does not exist"):
        numbered(VISITS, (Column("nobody", INT), False))
    with pytest.raises(ValueError, match="last"):
        numbered(VISITS, last=0)
    with pytest.raises(ValueError, match="its own unit"):
        numbered(EVENTS)
    with pytest.raises(ValueError, match="distinct"):
        NumberRows(VISITS, "USER", (), everything)


def test_only_rows_of_the_same_kind_of_unit_are_joined():
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
def test_an_invalid_relation_is_refused(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


def test_a_grid_too_fine_for_so_many_rows_is_refused():
    many = Scan("t", (USER, X), UnitKey((USER,)), max_rows=1 << 30)
    with pytest.raises(ValueError, match="too small"):
        PerUnit(many, (), (("s", UnitAggregate(AggregateFunction.GRID_SUM, X, Grid(0, 1 << 33, 1))),))
    with pytest.raises(ValueError, match="too small"):  # exactly 2^62
        PerUnit(many, (), (("s", UnitAggregate(AggregateFunction.GRID_SUM, X, Grid(0, 1 << 32, 1))),))
    PerUnit(many, (), (("s", UnitAggregate(AggregateFunction.GRID_SUM, X, Grid(0, (1 << 32) - 1, 1))),))


@pytest.mark.parametrize(
    "owner",
    [None, "user", (USER,), EachRow, SimpleNamespace(unit=(USER,)), USER],
    ids=lambda owner: type(owner).__name__,
)
def test_an_invalid_owner_is_not_treated_as_row_level(owner):
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


def test_a_column_has_one_type_wherever_an_expression_reads_it():
    """The last one alone would be compared with the schema if columns were gathered by name."""
    as_integer = Call("equal", (Column("x", INT), Constant(1, INT)))
    both = Call("and", (as_integer, Call("equal", (X, X))))
    for make in (lambda: Where(VISITS, both), lambda: Derive(VISITS, (("a", both),))):
        with pytest.raises(ValueError, match="'x' of type integer does not exist"):
            make()


def test_what_is_joined_as_public_is_a_public_table():
    fake = SimpleNamespace(table="towns", schema={"town": TEXT}, columns=(), condition=None)
    for table in (fake, VISITS):
        with pytest.raises(TypeError, match="table must be"):
            JoinPublic(VISITS, table, (), None, JoinKind.LEFT, 1)
    aggregate = SimpleNamespace(type=INT, expr=None, grid=None)
    with pytest.raises(TypeError, match="values must be"):
        PerUnit(VISITS, (), (("n", aggregate),))


@pytest.mark.parametrize("grow", [lambda r: Union(r, r), lambda r: SemiJoinOnUnit(r, r, SemiJoinKind.SEMI)])
def test_a_relation_cannot_double_for_ever(grow):
    relation = VISITS
    for _ in range(7):
        relation = grow(relation)
    assert len(relation.shape.tables) == 128
    with pytest.raises(ValueError, match="too many tables"):
        grow(relation)


def test_a_relation_reads_two_hundred_tables_at_most():
    most = chain(lambda relation: Union(relation, VISITS), 199)
    assert len(most.shape.tables) == 200
    with pytest.raises(ValueError, match="too many tables"):
        Union(most, VISITS)


def test_a_table_may_have_as_many_rows_as_a_sum_can_count():
    assert Scan("t", (USER,), UnitKey((USER,)), (1 << 62) - 1).shape.max_rows == (1 << 62) - 1


def test_every_table_of_a_relation_is_found():
    child = Scan("child", (Column("name2", TEXT),), ParentUnit("name2", NAMED, "name"), max_rows=9)
    joined = JoinPublic(Derive(VISITS, (("a", X),)), TOWNS, (), None, JoinKind.LEFT, 1)
    left = JoinOnUnit(Where(joined, YES), RENAMED, None, JoinKind.LEFT, 1)
    tree = SemiJoinOnUnit(Derive(left, ()), PerUnit(Union(VISITS, VISITS), (), ()), SemiJoinKind.ANTI)
    assert tree.shape.tables == (VISITS, TOWNS, VISITS, VISITS, VISITS)
    assert child.shape.tables == (child,)
    again = Scan("again", (USER, NAME, X), UnitKey((USER,)), max_rows=100)
    assert Union(VISITS, again).shape.tables == (VISITS, again)


def test_equal_relations_are_equal_whatever_their_shape():
    again = Scan("visits", (USER, NAME, X), UnitKey((USER,)), max_rows=100)
    assert again == VISITS
    assert hash(UnitKey((USER,))) == hash(VISITS.owner)
    assert Scan("visits", (USER, NAME, X), UnitKey((Call("abs", (USER,)),)), max_rows=100) != VISITS


def test_relations_can_be_compared_and_kept_in_sets():
    """Their shapes are not compared: they hold mappings, and the relation itself."""

    def each_kind():
        scan = Scan("visits", (USER, NAME, X), UnitKey((USER,)), max_rows=100)
        renamed = Derive(scan, (("other", X),))
        yield from (scan, renamed, Where(scan, YES), JoinPublic(scan, TOWNS, (), None, JoinKind.LEFT, 1))
        yield JoinOnUnit(scan, renamed, None, JoinKind.INNER, 1)
        yield from (SemiJoinOnUnit(scan, renamed, SemiJoinKind.SEMI), PerUnit(scan, (), ()), Union(scan, scan))
        yield numbered(scan)

    assert list(each_kind()) == list(each_kind())
    assert len({*each_kind(), *each_kind()}) == 9


LIKE = Call("like", (NAME, Constant("a%", TEXT)))
HEAVY = {
    "many searches of a row": lambda: Where(VISITS, Call("and", (LIKE,) * 201)),
    "many searches, one below the other": lambda: chain(lambda r: Where(r, Call("and", (LIKE,) * 11)), 20),
    "conditions one below the other": lambda: chain(lambda r: Where(r, YES), 300),
    "an operation that repeats its argument": lambda: Where(VISITS, Call("less", (nested("clip", 40), X))),
    "a column that repeats its argument": lambda: chain(lambda r: Derive(r, (("user", USER), ("x", CLIPPED))), 40),
}


def chain(grow, times):
    relation = VISITS
    for _ in range(times):
        relation = grow(relation)
    return relation


CLIPPED = Call("clip", (X, Constant(0.0, REAL), Constant(1.0, REAL)))


def nested(op, times):
    expr = X
    for _ in range(times):
        expr = Call(op, (expr, *CLIPPED.args[1:]))
    return expr


@pytest.mark.parametrize("name", HEAVY)
def test_work_for_a_row_is_bounded(name):
    relation = HEAVY[name]()
    with pytest.raises(Refused, match="too long"):
        check_supported(relation, DUCKDB)


def test_a_unit_may_become_as_many_rows_as_are_allowed_and_no_more():
    one = PerUnit(VISITS, (), ())
    assert JoinPublic(one, TOWNS, (), None, JoinKind.LEFT, 1 << 22).shape.max_rows_per_unit == 1 << 22
    with pytest.raises(ValueError, match="too many rows"):
        JoinPublic(one, TOWNS, (), None, JoinKind.LEFT, (1 << 22) + 1)
