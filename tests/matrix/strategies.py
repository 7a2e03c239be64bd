"""Random databases, expressions, relations and questions, with the values and names that break things.

Everything is drawn from a random.Random: from a seed, which explores more in a second, or from Hypothesis, which finds
a smaller example of what it found.
"""

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime

import pyarrow as pa
from hypothesis import strategies as st

from discreet.engines.reference.evaluate import evaluate, finite_or_null
from discreet.kernel.ball import Norm
from discreet.kernel.expr import SIGNATURES, AggregateFunction, Call, Column, Constant, Expr, Type, UnitAggregate, Value
from discreet.kernel.grid import Grid
from discreet.kernel.histogram_tree import CellCounts
from discreet.kernel.partition_selection import _UNLISTABLE
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
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
    Relation,
    Scan,
    SemiJoinKind,
    SemiJoinOnUnit,
    Union,
    UnitKey,
    Where,
)
from discreet.kernel.release import EngineTotals
from discreet.kernel.totals import Count, CountDistinct, CountUnits, HistogramTree, SelectionWeight, Sum, Total
from tests.reference.engine import ReferenceEngine

INT, REAL, BOOL, TEXT, DATE, TIME = Type

POOLS: dict[Type, list[Value]] = {
    INT: [0, 1, 2, 3, -1, -7, 10, 1000, (1 << 63) - 1, -(1 << 63), 1 << 40, -(1 << 53) - 1],
    REAL: [0.0, -0.0, 1.0, 2.5, -2.5, 0.1, 1e308, -1e308, 5e-324, 1e-300, 3.0, 0.49999999999999994, 1234.5678, -1e15],
    BOOL: [True, False],
    TEXT: [
        *("", "a", "A", "b", "ab", " a ", "é", "e\u0301", "ß", "ẞ", "İ", "👩‍👩‍👧"),
        *("o'brien", 'say "hi"', "%", "_", "\\"),
        *("a\nb", "a\n", "12", "-7", "+1.5e3", ".5", "1e999", "2021-02-28", "2021-02-30", "0000-01-01"),
        *("2020-12-31 23:59:59.5", "9999-12-31T24:00", "2021-01-01 10:10:60", "0001-01-01 00:00"),
    ],
    DATE: [
        date(1, 1, 1),
        date(9999, 12, 31),
        date(2020, 2, 29),
        date(2021, 1, 3),
        date(1969, 12, 31),
        date(2024, 12, 30),
    ],
    TIME: [
        datetime(1, 1, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999999),
        datetime(2020, 12, 31, 23, 59, 59, 999999),
        datetime(2021, 1, 3),
        datetime(1969, 12, 31, 23, 59, 59, 1),
        datetime(2024, 2, 29, 12, 30, 15),
    ],
}
STRANGE = [math.inf, -math.inf, math.nan]
LONG = "ab" * 1000 + "cé"  # longer than a constant may be, and than a pattern looks
PATTERNS = ["", "a", "^a", "a$", "b$", "c", "a|b$", "^(a|b)*$", "[^a]", "b+.", "a{1,2}", "é", "^.$", "\\.", "[0-9]{4}-"]
LIKES = ["", "%b", "%c%", "%", "_", "a%", "%a", "a_", "\\%", "%\\_%", "\\\\", "é", "E%", "__", "%'%", "ẞ", "i%", "a\\a"]
SPANS = {
    "round": [[-15, -2, -1, 0, 1, 2, 15]],
    "part": [[1, 2, 2000], [0, 1, 3, 2000]],
    "keep_last": [[1, 2, 7, 1999, 100_000]],
    "drop_last": [[1, 2, 7, 1999, 100_000]],
    "add_days": [[0, 1, -1, 366, 3_652_059, -3_652_059]],
    "add_seconds": [[0, 1, -1, 86_400, 10**11, -(10**11)]],
}
SEARCHES: dict[str, list[list[Value]]] = {  # lists of constants
    "position": [
        ["a"],
        ["b"],
        ["c"],
        ["é"],
        ["\u0301"],
        ["👩"],
        ["'"],
        ["\\"],
        ["%"],
        ["A"],
        [" "],
        ["ab" * 900],
        ["."],
    ],
    "replace": [
        ["a", ""],
        ["a", "bb"],
        ["ab", "a"],
        ["👩", "é"],
        ["'", "''"],
        ["\\", "\\\\"],
        ["b", "b" * 8],
        ["$", "\\1"],
        [".", "$0"],
    ],
    "split_part": [
        *(
            [1, "a"],
            [2, "a"],
            [-1, "a"],
            [-2, "a"],
            [2, "ab"],
            [-2, "ba"],
            [1000, "b"],
            [-1001, "b"],
            [2, "-"],
            [1, "é"],
        ),
        *([-1, "."], [2, "|"], [1, "\\"], [-1, "'"], [2000, "ab"], [-2000, "ab"], [1, "👩"]),
    ],
}
NAMES = ["a", "b c", 'q"q', "select", "k0", "t0", "v0", "x0", "s", "p", "é", "user", "n", "one", "'", "--", "m1", ";"]

# The tables: three kinds of units, which never meet, and a public table.
_user, _id, _who = Column("user", INT), Column("id", INT), Column("who", TEXT)
VISITS = Scan(
    "visits",
    (
        _user,
        *(Column(name, kind) for name, kind in zip(("n", 'x"q', "flag", "place", "day", "time"), Type, strict=True)),
    ),
    UnitKey((_user,)),
    max_rows=1000,
)
STAYS = Scan("sta ys", (_id, _user, Column("place", TEXT), Column("x", REAL)), UnitKey((_user,)), max_rows=10**9)
ITEMS = Scan(
    "items",
    (Column("stay", INT), Column("label", TEXT), Column("n", INT)),
    ParentUnit("stay", STAYS, "id"),
    max_rows=1000,
)
PARTS = Scan("par'ts", (Column("item", TEXT), Column("x", REAL)), ParentUnit("item", ITEMS, "label"), max_rows=50)
_day = Call("trunc_day", (Column("time", TIME),))
DAYS = Scan(
    "days", (_who, Column("time", TIME), Column("n", INT), Column("x", REAL)), UnitKey((_who, _day)), max_rows=1000
)
NOTES = Scan("notes", (Column("whose", TEXT), Column("n", INT)), ParentUnit("whose", DAYS, "who"), max_rows=1000)
EVENTS = Scan(
    "events",
    (Column("n", INT), Column("x", REAL), Column("flag", BOOL), Column("place", TEXT)),
    EachRow(),
    max_rows=10**6,
)
KINDS = ((VISITS, STAYS, ITEMS, PARTS), (DAYS, NOTES), (EVENTS,))
PRIVATE = {scan.table: scan for kind in KINDS for scan in kind}
REGIONS = {"name": TEXT, "zone": INT, "score": REAL, "opened": DATE, "ok": BOOL}
PUBLIC = {"regions": REGIONS}
SCHEMAS = {name: scan.shape.schema for name, scan in PRIVATE.items()} | PUBLIC

# Few different people, keys and places, so that they meet.
NARROW = {"user": [1, 2, 3, 4], "id": [1, 2, 3], "stay": [1, 2, 3], "who": ["a", "A", "é"], "whose": ["a", "A", "é"]}
NARROW |= {"label": ["a", "b", ""], "item": ["a", "b", ""], "place": ["a", "b", "é", "👩‍👩‍👧"]}

Tables = dict[str, list[dict[str, Value]]]


def database(rng: random.Random, most: int = 12, *, finite: bool = False) -> Tables:
    """Draw the rows of all tables; one in six values is NULL, and a few reals are not finite."""
    strange = [] if finite else STRANGE
    return {
        name: [_rows(rng, schema, strange) for _ in range(rng.randint(0, most))] for name, schema in SCHEMAS.items()
    }


def crowd(rng: random.Random) -> Tables:
    """Draw tables of thousands of rows, more than an engine handles at once; child tables would be slow here."""
    tables = database(rng, 5)
    for scan in (VISITS, DAYS, EVENTS):
        many = [_rows(rng, scan.shape.schema, STRANGE, 40) for _ in range(rng.randint(2000, 5000))]
        tables[scan.table] = many
    return tables | {NOTES.table: []}


def _rows(rng: random.Random, schema: Mapping[str, Type], strange: list[float], people: int = 0) -> dict[str, Value]:
    row = {column: _stored(rng, column, kind, strange) for column, kind in schema.items()}
    if people and row.get("user"):
        row["user"] = rng.randint(1, people)
    return row


def _stored(rng: random.Random, column: str, kind: Type, strange: list[float]) -> Value:
    if rng.random() < 1 / 6:
        return None
    if kind is REAL and strange and rng.random() < 0.1:
        return rng.choice(strange)
    if kind is REAL and rng.random() < 0.3:
        return rng.uniform(-20, 20)
    if kind is TEXT and rng.random() < 0.02:
        return LONG
    return rng.choice(NARROW.get(column, POOLS[kind]))


def without(tables: Tables, kind: int, unit: tuple) -> Tables:
    """Return the tables without all rows of a unit, also those that it owns together with others."""
    owners = ReferenceEngine(tables)
    kept = dict(tables)
    for scan in KINDS[kind]:
        rows = tables[scan.table]
        kept[scan.table] = [row for place, row in enumerate(rows) if unit not in owners._owners(scan, place, row)]
    return kept


def units_of(tables: Tables, kind: int) -> list[tuple]:
    """Return every unit of a kind that owns a row, alone or with others."""
    owners = ReferenceEngine(tables)
    found = {
        unit
        for scan in KINDS[kind]
        for place, row in enumerate(tables[scan.table])
        for unit in owners._owners(scan, place, row)
    }
    return sorted(found, key=repr)


# Expressions.

_RESULTS: dict[Type, list[str]] = {
    kind: [
        op
        for op, text in SIGNATURES.items()
        if text[-1] in {kind.value, "A"} or (text[-1] == "N" and kind in (INT, REAL))
    ]
    for kind in Type
}


def constant(rng: random.Random, kind: Type, *, null: bool = True) -> Constant:
    if null and rng.random() < 0.1:
        return Constant(None, kind)
    return Constant(rng.choice(POOLS[kind]), kind)


def expression(rng: random.Random, schema: Mapping[str, Type], kind: Type, depth: int = 2) -> Expr:
    """Draw an expression of a type over the columns of a schema."""
    columns = [Column(name, found) for name, found in schema.items() if found is kind]
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(columns) if columns and rng.random() < 0.85 else constant(rng, kind)
    op = rng.choice(["case", *_RESULTS[kind]])
    with suppress(ValueError):  # too heavy: a smaller one will do
        return Call(op, tuple(_arguments(rng, schema, op, kind, depth)))
    return rng.choice(columns) if columns else constant(rng, kind)


def _arguments(rng: random.Random, schema: Mapping[str, Type], op: str, kind: Type, depth: int) -> Iterator[Expr]:
    if op == "case":
        for _ in range(rng.randint(1, 2)):
            yield expression(rng, schema, BOOL, depth - 1)
            yield expression(rng, schema, kind, depth - 1)
        yield expression(rng, schema, kind, depth - 1)
        return
    *wanted, result = SIGNATURES[op].split()
    if wanted[-1].endswith("*"):
        wanted += [wanted[-1]] * rng.randint(0, 2)
    free = kind if result in {"N", "A"} else rng.choice([INT, REAL] if "N" in wanted[0] else list(Type))
    constants = iter(SPANS.get(op, ()))
    searched = iter(rng.choice(SEARCHES.get(op, [()])))
    for pattern in wanted:
        found = Type(pattern[0]) if pattern[0] in "irbtds" else free
        if "!" not in pattern:
            yield expression(rng, schema, found, depth - 1)
        elif op == "matches":
            yield Constant(rng.choice(PATTERNS), TEXT)
        elif op in {"like", "like_any_case"}:
            yield Constant(rng.choice(LIKES), TEXT)
        elif op in SEARCHES:
            yield Constant(next(searched), found)
        elif op in SPANS:
            yield Constant(rng.choice(next(constants)), INT)
        else:
            yield constant(rng, found, null=False)


# Relations.


def relation(rng: random.Random, kind: int, depth: int = 3) -> Relation:
    """Draw a relation of one kind of unit."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(KINDS[kind])
    nodes = [_where, _derive, _join_public]
    if KINDS[kind][0].shape.unit is not None:
        nodes += [_join_own, _semi_own, _per_unit, _number_rows, _union]
    return rng.choice(nodes)(rng, kind, depth)


def _where(rng: random.Random, kind: int, depth: int) -> Relation:
    source = relation(rng, kind, depth - 1)
    return Where(source, expression(rng, source.shape.schema, BOOL))


def _names(rng: random.Random, taken: set[str], most: int = 4) -> list[str]:
    """Draw new names; those of DuckDB are equal if they differ by case only."""
    free = [name for name in NAMES if name.casefold() not in {other.casefold() for other in taken}]
    return rng.sample(free, min(len(free), rng.randint(0, most)))


def _derive(rng: random.Random, kind: int, depth: int) -> Relation:
    source = relation(rng, kind, depth - 1)
    schema = source.shape.schema
    kept = [(name, Column(name, found)) for name, found in schema.items() if rng.random() < 0.5]
    made = _names(rng, {name for name, _ in kept})
    free = [name for name in schema if name not in {*dict(kept), *made}]
    if free and rng.random() < 0.3:  # an old name for something else
        made.append(rng.choice(free))
    made = list({name.casefold(): name for name in made}.values())
    return Derive(source, (*kept, *((name, expression(rng, schema, rng.choice(list(Type)))) for name in made)))


def _public(rng: random.Random, taken: set[str]) -> PublicTable:
    columns = [Column(name, kind) for name, kind in REGIONS.items() if rng.random() < 0.7]
    names = [f"r{place} {column.name}" for place, column in enumerate(columns)]
    while {name.casefold() for name in names} & {name.casefold() for name in taken}:
        names = [f"{name}'" for name in names]
    schema = {name: column.type for name, column in zip(names, columns, strict=True)}
    condition = expression(rng, schema, BOOL) if rng.random() < 0.3 else None
    return PublicTable("regions", tuple(zip(names, columns, strict=True)), condition)


def _join_public(rng: random.Random, kind: int, depth: int) -> Relation:
    source = relation(rng, kind, depth - 1)
    ours = source.shape.schema
    table = _public(rng, set(ours))
    pairs = [(a, b) for a, left in ours.items() for b, right in table.schema.items() if left is right]
    equal = tuple(rng.sample(pairs, min(len(pairs), rng.choice([0, 1, 1, 1, 2]))))
    also = expression(rng, {**ours, **table.schema}, BOOL) if rng.random() < 0.3 else None
    return JoinPublic(source, table, equal, also, rng.choice(list(JoinKind)), fanout=rng.randint(1, 3))


def _apart(source: Relation, taken: set[str]) -> Relation:
    """Give a relation's columns names that are not taken."""
    low = {name.casefold() for name in taken}
    names = list(source.shape.schema)
    while {name.casefold() for name in names} & low:
        names = [f"{name}2" for name in names]
    pairs = zip(names, source.shape.schema.items(), strict=True)
    return Derive(source, tuple((new, Column(old, kind)) for new, (old, kind) in pairs))


def _join_own(rng: random.Random, kind: int, depth: int) -> Relation:
    left = relation(rng, kind, depth - 1)
    right = _apart(relation(rng, kind, rng.randint(0, depth - 1)), set(left.shape.schema))
    schema = {**left.shape.schema, **right.shape.schema}
    also = expression(rng, schema, BOOL) if rng.random() < 0.4 else None
    return JoinOnUnit(left, right, also, rng.choice(list(JoinKind)), max_rows_per_unit=rng.choice([1, 2, 3, 50]))


def _semi_own(rng: random.Random, kind: int, depth: int) -> Relation:
    other = relation(rng, kind, rng.randint(0, depth - 1))
    return SemiJoinOnUnit(relation(rng, kind, depth - 1), other, rng.choice(list(SemiJoinKind)))


def _per_unit(rng: random.Random, kind: int, depth: int) -> Relation:
    source = relation(rng, kind, depth - 1)
    schema = source.shape.schema
    names = list(
        {
            name.casefold(): name for name in [*_names(rng, set()), *rng.sample(list(schema), min(1, len(schema)))]
        }.values()
    )
    cut = rng.randint(0, len(names)) if rng.random() < 0.6 else 0
    keys = tuple((name, expression(rng, schema, rng.choice(list(Type)), depth=1)) for name in names[:cut])
    return PerUnit(source, keys, tuple((name, folded(rng, schema)) for name in names[cut:]))


def completed(order, source: Relation):
    """Return an order that all columns of a relation complete."""
    columns = (Column(name, kind) for name, kind in source.shape.schema.items())
    return (*order, *((column, False) for column in columns if column not in dict(order)))


def _number_rows(rng: random.Random, kind: int, depth: int) -> Relation:
    source = relation(rng, kind, depth - 1)
    schema = source.shape.schema
    name = next(name for name in (*NAMES, "number") if name.casefold() not in {other.casefold() for other in schema})
    keys = tuple(expression(rng, schema, rng.choice(list(Type)), depth=1) for _ in range(rng.choice([0, 0, 0, 1, 2])))
    order = tuple(
        (expression(rng, schema, rng.choice(list(Type)), depth=1), rng.random() < 0.5)
        for _ in range(rng.choice([0, 1, 1, 2]))
    )
    return NumberRows(source, name, keys, completed(order, source), rng.choice([None, 1, 1, 2, 3]))


def folded(rng: random.Random, schema: Mapping[str, Type]) -> UnitAggregate:
    fold = rng.choice(list(AggregateFunction))
    if fold is AggregateFunction.ROWS:
        return UnitAggregate(fold)
    kind = (
        INT
        if fold is AggregateFunction.SUM
        else rng.choice([INT, REAL] if fold is AggregateFunction.GRID_SUM else list(Type))
    )
    return UnitAggregate(
        fold, expression(rng, schema, kind, depth=1), grid(rng) if fold is AggregateFunction.GRID_SUM else None
    )


def grid(rng: random.Random) -> Grid:
    low = rng.choice([-10, -2.5, 0, 0, "1/3", 5])
    high = rng.choice([5, 7.25, 10, 100, "1e6"])
    return Grid(low, high, rng.choice([1, "1/4", 0.1, "1/3", 7, 100]), rng.choice([0, 0, 3, -4, 20]))


def _union(rng: random.Random, kind: int, depth: int) -> Relation:
    """Draw two relations, and give them the same columns."""
    left, right = (relation(rng, kind, rng.randint(0, depth - 1)) for _ in range(2))
    columns = [(name, rng.choice(list(Type))) for name in _names(rng, set())]
    sides = [
        Derive(side, tuple((name, expression(rng, side.shape.schema, found, depth=1)) for name, found in columns))
        for side in (left, right)
    ]
    return Union(*sides)


# Questions.


@dataclass(frozen=True)
class Program:
    """A database and a question about one of its kinds of units."""

    tables: Tables
    kind: int
    question: Question


def question(rng: random.Random, tables: Tables, kind: int, depth: int = 3, inner: int = 2) -> Question:
    """Draw a question; most of its listed keys are found in the data, so that there is something to count."""
    while True:
        with suppress(ValueError):  # the sum could exceed 64 bits
            source = relation(rng, kind, rng.randint(0, depth))
            schema = source.shape.schema
            kinds = [rng.choice(list(Type)) for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))]
            by = tuple(
                (f"g{place}", expression(rng, schema, found, min(inner, 1))) for place, found in enumerate(kinds)
            )
            numbers = [expression(rng, schema, rng.choice([INT, REAL]), inner) for _ in range(2)]
            totals = tuple(total(rng, schema, numbers) for _ in range(rng.randint(1, 4)))
            if rng.random() < 0.2:
                totals = tuple(replace(each, max_term=9) if isinstance(each, Sum) else each for each in totals)
            limit = ContributionBounds(
                groups=rng.choice([1, 1, 2, 3, 100]),
                rows=rng.choice([1, 1, 2, 3, 100]),
                norm=rng.choice(list(Norm)),
                cap_rows=rng.random() < 0.5,
            )
            if by and rng.random() < 0.4:
                return Question(
                    source, by, SelectedGroups(rng.choice([1, 2, 3, 50])), limit, (SelectionWeight(), *totals)
                )
            return Question(source, by, PublicGroups(_domains(rng, ReferenceEngine(tables), source, by)), limit, totals)


def next_round(rng: random.Random, question: Question, keys: list[tuple[Value, ...]]) -> Question:
    """Draw a later round of partition selection, in which some keys, and perhaps one that nobody has, were shown."""
    shown = [key for key in keys if rng.random() < 0.5 and not any(map(_UNLISTABLE, map(str, key)))]
    shown += [tuple(rng.choice([None, *POOLS[expr.type]]) for _, expr in question.by)] * (rng.random() < 0.3)
    groups = replace(question.groups, shown=tuple(shown))
    return replace(question, groups=groups, totals=(SelectionWeight(),))


def total(rng: random.Random, schema: Mapping[str, Type], numbers: list[Expr]) -> Total:
    """Draw a total; several of a question are often of the same number, as a mean or a variance needs them."""
    draw = rng.random()
    if draw < 0.1:
        return cells(rng, schema, numbers)
    if draw < 0.2:
        return CountDistinct(expression(rng, schema, rng.choice([INT, BOOL, TEXT, DATE])))
    if draw < 0.4:
        expr = rng.choice([None, *numbers, expression(rng, schema, rng.choice(list(Type)))])
        return Count(expr) if draw < 0.3 else CountUnits(expr)
    fixed = Grid(-10, 100, "1/4")
    grids = rng.choice([fixed, fixed, grid(rng)])
    return Sum(rng.choice(numbers), grids, power=rng.choice([1, 1, 2]), shift=rng.choice([0, 0, 0, 5, -3]))


def cells(rng: random.Random, schema: Mapping[str, Type], numbers: list[Expr]) -> HistogramTree:
    """Draw a list or a grid of cells, and a tree above them."""
    if rng.random() < 0.5:
        kind = rng.choice(list(Type))
        listed = tuple(dict.fromkeys(rng.sample(POOLS[kind], min(len(POOLS[kind]), rng.randint(1, 5)))))
        return HistogramTree(expression(rng, schema, kind), listed, branching=len(listed), depth=1)
    places = Grid(-10, 100, rng.choice(["1/4", 1, 7]), rng.choice([0, 3]))
    fan = rng.choice([2, 3, 16, 1000])
    depth = next(depth for depth in range(1, 12) if fan**depth >= places.last - places.first + 1)
    return HistogramTree(rng.choice(numbers), places, fan, depth)


def _domains(
    rng: random.Random, reference: ReferenceEngine, source: Relation, by: tuple
) -> tuple[tuple[Value, ...], ...]:
    rows = reference.owned_rows(source)
    domains = []
    for _, expr in by:
        found = [finite_or_null(evaluate(expr, row)) for _, row in rows]
        known = [value for value in dict.fromkeys(found) if rng.random() < 0.7]
        others = [rng.choice(POOLS[expr.type])]
        domains.append(tuple(dict.fromkeys([*known, *others])))
    return tuple(domains)


def program(rng: random.Random, depth: int = 3, most: int = 12) -> Program:
    tables = database(rng, most)
    kind = rng.choice([0, 0, 0, 1, 2])
    return Program(tables, kind, question(rng, tables, kind, depth))


programs = st.randoms(use_true_random=False).map(program)
seeds = st.integers(0, 1 << 32)

# The same tables in DuckDB.

ARROW = {
    INT: pa.int64(),
    REAL: pa.float64(),
    BOOL: pa.bool_(),
    TEXT: pa.string(),
    DATE: pa.date32(),
    TIME: pa.timestamp("us"),
}


def load(connection, tables: Tables) -> None:
    """Make the tables in DuckDB with exactly the kernel's types."""
    for name, schema in SCHEMAS.items():
        fields = pa.schema([(column, ARROW[kind]) for column, kind in schema.items()])
        connection.register("given", pa.Table.from_pylist(tables[name], schema=fields))
        connection.execute(f"CREATE OR REPLACE TABLE {_quoted(name)} AS SELECT * FROM given")
        connection.unregister("given")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Seen(dict):
    """The totals of every key; and in `cells`, by the place of a total, the weight of every node of its tree."""

    def __init__(self, question: Question, found: EngineTotals) -> None:
        super().__init__(zip(found.keys, found.values.tolist(), strict=True))
        self.cells = {
            place: _nodes(question.totals[place], found.keys, tally) for place, tally in found.cell_counts.items()
        }


def _nodes(total: HistogramTree, keys: list, tally: CellCounts) -> dict[tuple, int]:
    weights: dict[tuple, int] = {}
    columns = (tally.groups.tolist(), tally.cells.tolist(), tally.weights.tolist())
    for group, cell, weight in zip(*columns, strict=True):
        for level in range(total.depth):
            node = (keys[group], level, cell // total.branching**level)
            weights[node] = weights.get(node, 0) + weight
    return weights


def differences(one: Seen, other: Seen, question: Question, place: int) -> list[int]:
    """Return by how much each number of a total differs.

    A discovered group that only one side has is never shown on the other: its number of units says whether it is
    shown, and that is what the threshold's delta pays for.
    """
    total, both = question.totals[place], set(one) & set(other)
    hidden = isinstance(question.groups, SelectedGroups) and place > 0
    if isinstance(total, HistogramTree):
        left, right = one.cells[place], other.cells[place]
        nodes = [node for node in left | right if not hidden or node[0] in both]
        return [left.get(node, 0) - right.get(node, 0) for node in nodes]
    nothing = [0] * len(question.totals)
    keys = both if hidden else set(one) | set(other)
    return [one.get(key, nothing)[place] - other.get(key, nothing)[place] for key in keys]
