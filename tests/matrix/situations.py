"""Questions and tables that random programs rarely draw; every engine must agree with the reference."""

import math
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import product

import compare
import strategies
from strategies import BOOL, DATE, EVENTS, INT, KINDS, REAL, STAYS, TEXT, TIME, VISITS

from discreet.engines.reference.evaluate import finite_or_null
from discreet.kernel.ball import Norm
from discreet.kernel.expr import AggregateFunction, Call, Column, Constant, UnitAggregate
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import (
    Derive,
    JoinKind,
    JoinPublic,
    NumberRows,
    PerUnit,
    PublicTable,
    Scan,
    Union,
    Where,
)
from discreet.kernel.totals import Count, CountDistinct, CountUnits, HistogramTree, SelectionWeight, Sum

N, X, PLACE = Column("n", INT), Column("x", REAL), Column("place", TEXT)
ANY = ContributionBounds(groups=5, rows=5)
ALWAYS, NEVER = (Constant(value, BOOL) for value in (True, False))


@dataclass(frozen=True)
class Situation:
    """Tables, a question, and its totals where they are known without the reference."""

    tables: strategies.Tables
    question: Question
    totals: dict | None = None


def check(engine: compare.Under, situation: Situation) -> None:
    """Compare an engine with the reference."""
    engine.load(situation.tables)
    found = compare.computed(engine, situation.question)
    assert found == compare.expected(situation.tables, situation.question)
    assert situation.totals is None or found == situation.totals
    # Which of two zeros is shown would tell whose row came first.
    assert all(math.copysign(1, key) == 1 for keys in found for key in keys if isinstance(key, float) and key == 0)


def small(**rows):
    """Return tables of which only these have rows."""
    return {name: rows.get(name, []) for name in strategies.SCHEMAS}


def event(place, n=0):
    """Return a row of events."""
    return {"n": n, "x": 0.0, "flag": None, "place": place}


def visit(**values):
    """Return a row of visits, of the first user."""
    return dict.fromkeys(VISITS.shape.schema) | {"user": 1} | values


def _statistics():
    """DuckDB's statistics of a column are those of everybody's rows: what follows from them must be true."""
    is_a = Call("equal", (PLACE, Constant("A", TEXT)))
    ways = {
        "nullif": Call("nullif", (Constant("A", TEXT), PLACE)),
        "case": Call("case", (is_a, Constant(None, TEXT), Constant("A", TEXT))),
    }
    for way, key in ways.items():
        question = Question(EVENTS, (("k", key),), PublicGroups((("A", "C"),)), ANY, (Count(),))
        for others in ([], ["A"], ["B"]):
            rows = [event(place) for place in [None, None, None, "a", "b", *others]]
            known = {("A",): (5 + (others == ["B"]),)}
            yield f"one row does not decide about others: {way} {''.join(others)}", small(events=rows), question, known
            filters = {
                "like": Call("like", (key, Constant("A%", TEXT))),
                "one of": Call("one_of", (key, Constant("A", TEXT), Constant("B", TEXT))),
                "equal": Call("equal", (key, Constant("A", TEXT))),
            }
            for name, condition in filters.items():
                kept = Question(Where(EVENTS, condition), (), PublicGroups(()), ANY, (Count(),))
                title = f"one row does not decide about others: {way} {name} {''.join(others)}"
                yield title, small(events=rows), kept, {(): known["A",]}


def _types():
    week = Call("week", (Constant(None, TIME),))
    union = Union(Derive(VISITS, (("n", N),)), Derive(VISITS, (("n", week),)))
    question = Question(union, (("k", Call("write_integer", (N,))),), SelectedGroups(5), ANY, (SelectionWeight(),))
    known = {("-7",): (741_455,), (None,): (741_455,)}  # floor(2^20/sqrt(2))
    tables = small(visits=[visit(n=-7)])
    yield "a NULL on one side of a union keeps the type of the other", tables, question, known
    constants = ((f"c{kind.value}", Constant(values[0], kind)) for kind, values in strategies.POOLS.items())
    nulls = ((f"n{kind.value}", Constant(None, kind)) for kind in strategies.POOLS)
    per = PerUnit(VISITS, (*constants, *nulls), (("rows", UnitAggregate(AggregateFunction.ROWS)),))
    question = Question(per, (("k", Column("cb", BOOL)),), SelectedGroups(5), ANY, (SelectionWeight(), Count()))
    yield "a unit's rows may be gathered by constants", tables, question, {(True,): (1 << 20, 1 << 20)}
    per = PerUnit(
        VISITS,
        (),
        tuple(
            (fold.name, UnitAggregate(fold, Constant(3, INT)))
            for fold in (AggregateFunction.SUM, AggregateFunction.COUNT)
        ),
    )
    by = tuple((name, Column(name, INT)) for name in ("SUM", "COUNT"))
    question = Question(per, by, SelectedGroups(5), ANY, (SelectionWeight(),))
    tables = small(visits=[visit(), visit(), visit(user=2)])
    known = {(6, 2): (1,), (3, 1): (1,)}
    yield "a unit may gather constants", tables, question, known
    table = PublicTable("regions", (("opened", Column("opened", DATE)),))
    join = JoinPublic(VISITS, table, (("day", "opened"),), NEVER, JoinKind.INNER, 2)
    day, other = Column("day", DATE), Column("opened", DATE)
    key = Call("least", (other, day, other, day))
    question = Question(join, (("k", key),), PublicGroups(((date(2021, 1, 3),),)), ANY, (Count(),))
    tables = small(visits=[visit(day=date(2021, 1, 3))])
    yield "the least of many may name a column twice", tables, question, {}


def _wide():
    """The largest terms, weights and sums that a question may have."""
    scan = Scan("visits", VISITS.columns, VISITS.owner, max_rows=1 << 20)
    rows = [visit(n=n, place=place) for n in (-(1 << 62), 1 << 62) for place in "abcd"]
    capped = [(1, 1), (1 << 42, 1), (1, 1 << 20), (3, 1 << 20)]
    limits = [ContributionBounds(*bounds, norm, cap_rows=True) for bounds in capped for norm in Norm]
    limits += [
        ContributionBounds(*bounds, norm) for bounds in ((1, 1), (4, 1), (1, 4), (1 << 10, 1 << 10)) for norm in Norm
    ]
    for limit in limits:
        total = Sum(N, Grid(-(1 << 20), 1 << 20, 1), power=2, shift=0)
        largest = limit.rows * (1 if limit.cap_rows else limit.groups)
        narrow = Sum(N, Grid(-(1 << 22), 0, 1))
        widest = total if largest << 40 <= 1 << 42 else narrow
        question = Question(scan, (("k", PLACE),), SelectedGroups(9), limit, (SelectionWeight(), Count(), widest))
        name = f"{limit.groups} groups, {limit.rows} rows, {limit.norm}{', capped' if limit.cap_rows else ''}"
        yield f"the widest numbers fit: {name}", small(visits=rows * 3), question, None


def _finite():
    rows = [event("a") | {"x": x} for x in (-0.0, -0.0, math.inf, math.nan, None, 1.5)]
    question = Question(EVENTS, (("k", X),), PublicGroups(((-0.0, None, 1.5),)), ANY, (Count(), Count(X)))
    known = {(0.0,): (2, 2), (None,): (3, 0), (1.5,): (1, 1)}
    yield "a real key has one zero and no infinity", small(events=rows), question, known
    strange = [(1, math.inf), (1, -0.0), (1, 0.0), (1, 2.0), (2, math.nan), (3, math.nan), (3, -math.inf), (3, 1.0)]
    tables = small(**{"sta ys": [dict.fromkeys(STAYS.shape.schema) | {"user": user, "x": x} for user, x in strange]})
    for fold in (AggregateFunction.COUNT, AggregateFunction.DISTINCT, AggregateFunction.MIN, AggregateFunction.MAX):
        per = PerUnit(STAYS, (), (("v", UnitAggregate(fold, X)),))
        question = Question(
            per, (("user", Column("v", per.shape.schema["v"])),), SelectedGroups(3), ANY, (SelectionWeight(), Count())
        )
        yield f"what a unit gathers is finite: {fold.name.lower()}", tables, question, None


def _empty():
    bare = Derive(EVENTS, ())
    joined = JoinPublic(bare, PublicTable("regions", ()), (), None, JoinKind.LEFT, 2)
    tables = small(events=[event("a")] * 3, regions=[dict.fromkeys(strategies.REGIONS)] * 3)
    for name, relation, count in (
        ("plain", bare, 3),
        ("with a condition", Where(bare, ALWAYS), 3),
        ("joined", joined, 6),
    ):
        question = Question(relation, (), PublicGroups(()), ANY, (Count(),))
        yield f"rows without columns are counted: {name}", tables, question, {(): (count,)}
    for scan in (scan for kind in KINDS for scan in kind):
        one = Question(scan, (), PublicGroups(()), ANY, (Count(), CountUnits()))
        yield f"nothing has one empty total: {scan.table}", small(), one, {(): (0, 0)}
        by = tuple((column.name, column) for column in scan.columns[:1])
        keyed = Question(scan, by, SelectedGroups(3), ANY, (SelectionWeight(), Count()))
        yield f"nothing has no keys: {scan.table}", small(), keyed, {}


def _names():
    """Names that an engine may cut off, or take for its own."""
    long = ["é" * 60 + ending for ending in ("a", "b", 'b"', "'")]
    derived = Derive(EVENTS, tuple((name, Call("add", (N, Constant(n, INT)))) for n, name in enumerate(long)))
    key = Call("add", tuple(Column(name, INT) for name in long[1:3]))
    question = Question(derived, (("k", key),), PublicGroups(((13, 14),)), ANY, (Count(Column(long[3], INT)),))
    yield "long names that begin alike", small(events=[event("a", n) for n in (5, 5, 6)]), question, {(13,): (2,)}
    for name in ("a0", "a1", "z", "y", "n", "total", "c", "ctid", "oid", "user", "position", "value"):
        derived = Derive(EVENTS, ((name, X), ("other", N)))
        number, other = Column(name, REAL), Call("to_real", (Column("other", INT),))
        nested = Call(
            "multiply", (Call("add", (number, other)), Call("divide", (number, Call("add", (other, number)))))
        )
        question = Question(derived, (), PublicGroups(()), ANY, (Sum(nested, Grid(0, 1000, "1/8")),))
        rows = [event("a", n) | {"x": float(n)} for n in range(9)]
        yield f"a column may be called {name}", small(events=rows), question, None


def _long_lists():
    """More keys than an engine may write one by one."""
    days = [date(2020, 1, 1) + timedelta(days=n) for n in range(200)]
    times = [strategies.POOLS[TIME][1], *(datetime(2020, 1, 1) + timedelta(seconds=n) for n in range(200))]
    keys = {
        INT: (N, [*range(-100, 100), -(1 << 63), (1 << 63) - 1]),
        REAL: (X, [n / 8 for n in range(-100, 100)]),
        TEXT: (PLACE, [f"\"{n},\\{{}}\n'é" for n in range(200)] + ["", "NULL", "null", " a ", "\\"]),
        DATE: (Call("add_days", (Constant(days[0], DATE), Constant(3, INT))), days),
        TIME: (Call("to_timestamp", (Constant(days[0], DATE),)), times),
    }
    for kind, (expr, listed) in keys.items():
        places = listed if kind is TEXT else ["a"]
        rows = [event(place, n) | {"x": n / 8} for n in (-3, 0, 7) for place in places]
        for name, known in (("listed", tuple(listed)), ("listed, with NULL", (*listed, None))):
            question = Question(EVENTS, (("k", expr),), PublicGroups((known,)), ANY, (Count(),))
            yield f"many keys, {name}: {kind.name.lower()}", small(events=rows), question, None
        cells = HistogramTree(expr, tuple(listed), branching=len(listed), depth=1)
        yield (
            f"many cells: {kind.name.lower()}",
            small(events=rows),
            Question(EVENTS, (), PublicGroups(()), ANY, (cells,)),
            None,
        )


def _heavy():
    """Units with more groups, rows and values than their limits, and NULL among the keys."""
    rows = [
        visit(user=user, n=n % 7, place=[None, "a", "b", "é", "c", "d"][n % 6], flag=n % 2 == 0)
        for user in range(1, 9)
        for n in range(user * 9)
    ]
    for kind, key in (("text", PLACE), ("integer", N), ("boolean", Column("flag", BOOL))):
        for name, total in (
            ("cells", HistogramTree(N, Grid(0, 6, 1), branching=7, depth=1)),
            ("values", CountDistinct(PLACE)),
        ):
            question = Question(
                VISITS, (("k", key),), SelectedGroups(50), ContributionBounds(2, 3), (SelectionWeight(), total)
            )
            yield f"units with too much: {name} by {kind}", small(visits=rows), question, None


def _clipped():
    """Units above one bound and not above the other, with every norm, with and without a cap per group."""
    groups = {
        1: "aaa",  # too many rows in one group
        2: "abc",  # too many groups
        3: "aaabbbccc",  # both
        4: "ab",  # neither
        5: "abcd",  # too many groups to count for the selection
    }
    rows = [visit(user=user, place=place, n=1) for user, places in groups.items() for place in places]
    for name, keys in (("listed", PublicGroups((("a", "b", "c", "d"),))), ("selected", SelectedGroups(3))):
        first = (SelectionWeight(),) if name == "selected" else ()
        totals = (*first, Count(), CountUnits(), Sum(N, Grid(-3, 3, 1), shift=2), Sum(N, Grid(-3, 3, "1/4096"), 2))
        for norm, cap_rows in product(Norm, (False, True)):
            question = Question(VISITS, (("k", PLACE),), keys, ContributionBounds(2, 2, norm, cap_rows), totals)
            yield f"units above one bound: {name} {norm} {cap_rows}", small(visits=rows), question, None
    for cap_rows, known in ((False, (10, 5)), (True, (10, 5))):
        bounds = ContributionBounds(2, 2, Norm.L2, cap_rows)
        few = Question(VISITS, (), PublicGroups(()), bounds, (Count(), CountUnits()))
        yield f"units above one bound: one group {cap_rows}", small(visits=rows), few, {(): known}


def _wide_vectors():
    """Terms so large or so many that their squares are measured in coarse steps, after a cut."""
    rows = [visit(user=user, place=f"p{place}", n=n) for user, place, n in product(range(3), range(7), (5, -3, 10**9))]
    rows += [visit(user=9, place="p0", n=10**9) for _ in range(40)]
    for most, rows_bound, norm in product((10**6, 10**12), (1, 3), Norm):
        scan = replace(VISITS, max_rows=most)
        top = min(10**9, (1 << 61) // most // 3)
        totals = (Count(), Sum(N, Grid(-top, top, 1)), Sum(N, Grid(0, 1000, 1), 2, shift=7))
        groups = PublicGroups((tuple(f"p{place}" for place in range(7)),))
        bounds = ContributionBounds(2, rows_bound, norm)
        yield (
            f"wide vectors: {most} {rows_bound} {norm}",
            small(visits=rows),
            Question(scan, (("k", PLACE),), groups, bounds, totals),
            None,
        )


def _later_rounds():
    """What was shown is left out, in every type and with NULL; a unit's weight is that of the keys that are left."""
    half, third = 741_455, 605_395  # floor(2^20/sqrt(k))
    rows = [visit(user=1, place=place, n=n) for place, n in (("a", 1), ("b", 1), ("it's", None), (None, 1))]
    rows += [visit(user=2, place=None, n=None), visit(user=2, place="a", n=2)]
    by = (("k", PLACE), ("n", N))
    for name, shown, known in (
        (
            "two keys",
            (("a", 1), (None, None)),
            {("b", 1): third, ("it's", None): third, (None, 1): third, ("a", 2): 1 << 20},
        ),
        (
            "a NULL in one",
            (("it's", None), (None, 1), ("z", 9)),
            {("a", 1): half, ("b", 1): half, (None, None): half, ("a", 2): half},
        ),
    ):
        question = Question(VISITS, by, SelectedGroups(3, shown), ContributionBounds(1, 1), (SelectionWeight(),))
        yield f"a later round: {name}", small(visits=rows), question, {key: (weight,) for key, weight in known.items()}
    long = tuple((f"key {number} 'é", number) for number in range(3000))
    question = Question(
        VISITS, by, SelectedGroups(9, (("a", 1), *long)), ContributionBounds(1, 1), (SelectionWeight(),)
    )
    yield "a later round: after many keys", small(visits=rows), question, None
    for kind, values in strategies.POOLS.items():
        column = {TEXT: "place", INT: "n", REAL: 'x"q', BOOL: "flag", TIME: "time"}.get(kind, "day")
        found = [value for value in values if value is not None][:4]
        rows = [visit(user=user, **{column: value}) for user in (1, 2) for value in [*found, None]]
        shown = tuple((finite_or_null(value),) for value in [None, *found[:2]])
        question = Question(VISITS, (("k", Column(column, kind)),), SelectedGroups(9, shown), ANY, (SelectionWeight(),))
        yield f"a later round: keys of type {kind.name.lower()}", small(visits=rows), question, None


def _numbered():
    """The first rows of a unit, in orders with ties, NULL, both zeros, numbers that are not finite and texts."""
    reals = [0.0, -0.0, None, math.nan, math.inf, -math.inf, -1.5]
    rows = [
        visit(user=user, n=number % 3, place=place, **{'x"q': real})
        for user in (1, 2)
        for number, (real, place) in enumerate(product(reals, ["b", "B", "é", None, "👩", ""]))
    ]
    rows += [visit(user=3, n=1), visit(user=3, n=1), visit(user=None, n=0)]
    number = Column("number", INT)
    source = Derive(VISITS, (("x", Column('x"q', REAL)), ("n", N), ("place", PLACE)))
    null_first = ((Call("is_null", (PLACE,)), True), (PLACE, True))
    orders = {
        "an integer": ((N, True),),
        "a text": ((PLACE, False),),
        "a text from the end, NULL first": null_first,
        "a real": ((X, True), (PLACE, False)),
        "nothing": (),
    }
    for name, order in orders.items():
        for last, keys in ((1, ()), (3, ()), (None, ()), (1, (N,)), (2, (PLACE,))):
            relation = NumberRows(source, "number", keys, strategies.completed(order, source), last)
            by = (("k", number), ("n", N), ("place", PLACE), ("x", X))
            totals, bounds = (SelectionWeight(), Count()), ContributionBounds(99, 9)
            question = Question(relation, by, SelectedGroups(50), bounds, totals)
            yield f"rows are numbered by {name}: {last} of {len(keys)} keys", small(visits=rows), question, None


_ALL = (
    _numbered,
    _statistics,
    _types,
    _wide,
    _finite,
    _empty,
    _names,
    _long_lists,
    _heavy,
    _clipped,
    _wide_vectors,
    _later_rounds,
)
SITUATIONS = {name: Situation(*rest) for found in _ALL for name, *rest in found()}
