"""The SQL of each relation gives exactly the rows of the reference, each with its owner."""

import math
from collections import Counter

import duckdb
import pyarrow as pa
import pytest

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.postgres.dialect import POSTGRES
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
from discreet.kernel.sqlgen.relation_sql import group_by, select_rows, unit_columns
from tests.reference.engine import ReferenceEngine

INT, REAL, BOOL, TEXT, _, _ = Type
ARROW = {INT: pa.int64(), REAL: pa.float64(), BOOL: pa.bool_(), TEXT: pa.string()}
USER, DAY, N, X = Column("user", INT), Column("day", TEXT), Column("n", INT), Column("x", REAL)
ON, KEY, LABEL = Column("on", INT), Column("key", INT), Column("label", TEXT)
INNER, LEFT = JoinKind.INNER, JoinKind.LEFT

VISITS = Scan("visits", (USER, DAY, N, X), UnitKey((USER,)), max_rows=100)
DAYS = Scan("visits", (KEY, USER, DAY, N), UnitKey((USER, DAY)), max_rows=100)
OF_DAYS = Scan("items", (ON, LABEL), ParentUnit("on", DAYS, "key"), max_rows=100)
OF_ITEMS = Scan("parts", (LABEL, N), ParentUnit("label", OF_DAYS, "label"), max_rows=100)
EVENTS = Scan("visits", (USER, N), EachRow(), max_rows=100)
TABLES = {
    "visits": [
        dict(zip(("key", "user", "day", "n", "x"), values, strict=True))
        for values in (
            (1, 1, "mo", 5, 0.0),  # key 1 has one owner, although another row has none
            (1, None, "tu", 6, None),
            (2, 1, "mo", 5, 0.0),  # key 2 has two, of the same user
            (2, 1, "tu", None, math.nan),
            (3, 1, "mo", 7, -0.0),  # key 3 has two, of the same day
            (3, 2, "mo", 7, 1.5),
            (4, 2, None, 8, 2.5),  # key 4 has none: half of one and half of another are not one
            (4, None, "tu", 9, 2.5),
            (5, 3, "we", -4, -math.inf),  # key 5 has one, twice
            (5, 3, "we", 1 << 62, 2.0),
            (None, 3, "th", 1 << 62, 2.0),
            (6, 4, "fr", 1, 0.25),
        )
    ],
    "items": [
        {"on": on, "label": label}
        for on, label in ((1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e"), (5, "a"), (6, "b"), (None, "f"), (9, "f"))
    ],
    "parts": [{"label": label, "n": n} for n, label in enumerate(["a", "b", "c", "d", "e", "e", None, "f", "g"])],
    "towns": [
        {"town": town, "size": size, "code": code}
        for town, size, code in (
            ("mo", 3, 1),
            ("mo", None, 2),
            ("mo", 1, 3),
            ("tu", 2, 4),
            ("we", 2, 5),
            ("we", 1, 6),
            (None, 0, 7),
        )
    ],
}
TOWN, SIZE = Column("town", TEXT), Column("size", INT)
TOWNS = PublicTable("towns", (("town", TOWN), ("size", SIZE)))
OTHER = Derive(VISITS, (("other", N), ("S", DAY)))
LATE = Where(OTHER, Call("equal", (Column("S", TEXT), Constant("we", TEXT))))
ONE = PerUnit(VISITS, (), (("rows", UnitAggregate(AggregateFunction.ROWS)),))
TWO = Derive(Union(ONE, ONE), (("other", Column("rows", INT)),))


def less(one, other):
    return Call("less", (one, other))


def named(**exprs):
    return tuple(exprs.items())


def aggregates(expr, *functions):
    return tuple((function.name, UnitAggregate(function, expr)) for function in functions)


COUNT, DISTINCT, MIN, MAX, SUM = (AggregateFunction[name] for name in ("COUNT", "DISTINCT", "MIN", "MAX", "SUM"))


def all_columns(source):
    """Return the order of all columns."""
    return tuple((Column(name, kind), False) for name, kind in source.shape.schema.items())


CASES = {
    "rows with an owner": VISITS,
    "rows with an owner in two parts": DAYS,
    "rows that are units": EVENTS,
    "rows that are units, without columns": Scan("visits", (), EachRow(), max_rows=100),
    "rows of a parent": OF_DAYS,
    "rows of a parent of a parent": OF_ITEMS,
    "a condition": Where(VISITS, less(N, Constant(6, INT))),
    "computed columns": Derive(DAYS, named(user=N, twice=Call("add", (N, N)))),
    "no columns": Derive(DAYS, ()),
    "no columns of rows that are units": Derive(EVENTS, ()),
    "a public table": JoinPublic(VISITS, TOWNS, (("day", "town"),), None, INNER, 2),
    "a public table, once": JoinPublic(VISITS, TOWNS, (("day", "town"),), None, LEFT, 1),
    "a public table, on two columns": JoinPublic(VISITS, TOWNS, (("day", "town"), ("n", "size")), None, LEFT, 1),
    "a public table, on nothing": JoinPublic(DAYS, TOWNS, (), None, INNER, 3),
    "a public table under a condition": JoinPublic(DAYS, TOWNS, (), less(SIZE, Constant(3, INT)), LEFT, 4),
    "a public table with a condition": JoinPublic(
        EVENTS, PublicTable("towns", (("t", SIZE),), less(Constant(1, INT), Column("t", INT))), (), None, LEFT, 2
    ),
    "a public table without columns": JoinPublic(Derive(EVENTS, ()), PublicTable("towns", ()), (), None, INNER, 2),
    "pairs of a unit": JoinOnUnit(DAYS, Derive(DAYS, named(other=N)), None, INNER, 50),
    "pairs of a unit's first row": JoinOnUnit(VISITS, OTHER, None, LEFT, 1),
    "pairs of a unit's first rows": JoinOnUnit(VISITS, OTHER, None, INNER, 2),
    "pairs of a unit under a condition": JoinOnUnit(VISITS, OTHER, less(N, Column("other", INT)), LEFT, 3),
    "pairs with a unit's only row": JoinOnUnit(ONE, OTHER, None, INNER, 2),
    "pairs with a unit's two rows": JoinOnUnit(ONE, TWO, None, LEFT, 2),
    "pairs with one of a unit's two rows": JoinOnUnit(TWO, ONE, None, LEFT, 1),
    "units with a row": SemiJoinOnUnit(DAYS, OF_DAYS, SemiJoinKind.SEMI),
    "units without a row": SemiJoinOnUnit(DAYS, OF_DAYS, SemiJoinKind.ANTI),
    "units with a row that has a column S": SemiJoinOnUnit(VISITS, LATE, SemiJoinKind.SEMI),
    "units without a row that has a column S": SemiJoinOnUnit(VISITS, LATE, SemiJoinKind.ANTI),
    "aggregates of integers": PerUnit(VISITS, (), aggregates(N, *(COUNT, DISTINCT, MIN, MAX, SUM))),
    "aggregates of texts": PerUnit(DAYS, named(n=N), aggregates(DAY, *(COUNT, DISTINCT, MIN, MAX))),
    "aggregates by a real": PerUnit(VISITS, named(k=X, n=N), (("rows", UnitAggregate(AggregateFunction.ROWS)),)),
    "sums on a grid": PerUnit(
        VISITS, (), (("sum", UnitAggregate(AggregateFunction.GRID_SUM, X, Grid(-1, 2, "1/4", 3))),)
    ),
    "numbers": NumberRows(VISITS, "number", (), all_columns(VISITS)),
    "the first row": NumberRows(VISITS, "number", (), ((X, True), *all_columns(VISITS)), 1),
    "the last rows of a unit and key": NumberRows(
        VISITS, "number", (N,), tuple((each, True) for each, _ in all_columns(VISITS)), 2
    ),
    "numbers within two parts of a unit": NumberRows(DAYS, "number", (), all_columns(DAYS), 2),
    "both sides of a union": Union(DAYS, Derive(DAYS, named(key=KEY, user=N, day=Constant(None, TEXT), n=USER))),
    "a union with itself": Union(ONE, ONE),
}


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect(config={"threads": "1"}) as connection:
        columns = {KEY, USER, DAY, N, X, ON, LABEL, TOWN, SIZE, Column("code", INT)}
        types = {column.name: ARROW[column.type] for column in columns}
        for name, rows in TABLES.items():
            connection.register(
                "given", pa.Table.from_pylist(rows, pa.schema([(each, types[each]) for each in rows[0]]))
            )
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        yield connection


def multiset(rows):
    return Counter(repr(row) for row in rows)


@pytest.mark.parametrize("name", CASES)
def test_the_sql_of_a_relation_gives_its_rows_and_their_owners(engine, name):
    relation = CASES[name]
    units, names = unit_columns(relation), list(relation.shape.schema)
    wanted = [[*(unit if units else ()), *row.values()] for unit, row in ReferenceEngine(TABLES).owned_rows(relation)]
    found = engine.execute(select_rows(relation, DUCKDB))
    assert [column[0] for column in found.description] == [unit.strip('"') for unit in units] + (
        names or [".one"] * (not units)
    )
    rows = [list(row)[: len(units) + len(names)] for row in found.fetchall()]
    assert len(rows) > 1
    assert multiset(rows) == multiset(wanted)


def test_computed_columns_are_fenced_off_where_an_engine_would_inline_them():
    """PostgreSQL would compute an inlined column as often as it is named, and SQL could grow without bound."""
    fence = POSTGRES.optimization_fence
    twice = Call("add", (N, N))
    assert fence
    for columns in (named(twice=twice), named(n=N, twice=twice)):
        assert select_rows(Derive(VISITS, columns), POSTGRES).endswith(fence)
    assert not select_rows(Derive(VISITS, named(n=N)), POSTGRES).endswith(fence)


def test_no_column_hides_the_alias_of_the_outer_row():
    """Within EXISTS, Spark would take s for the column S of the other side."""
    other = f'(SELECT ".u0" FROM ({select_rows(OTHER, DUCKDB)}) AS o) AS o'
    assert other in select_rows(SemiJoinOnUnit(VISITS, OTHER, SemiJoinKind.SEMI), DUCKDB)
    plain = f"EXISTS (SELECT 1 FROM ({select_rows(VISITS, DUCKDB)}) AS o WHERE "
    assert plain in select_rows(SemiJoinOnUnit(OTHER, VISITS, SemiJoinKind.SEMI), DUCKDB)


def test_without_keys_there_is_no_group_by_clause():
    assert group_by([]) == ""
    assert group_by(["a", "b"]) == " GROUP BY a, b"
