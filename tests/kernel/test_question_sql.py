"""The SQL of a question gives the totals of the reference: hand-made questions on one database, on DuckDB."""

import sys
from dataclasses import replace
from datetime import date, datetime
from itertools import product
from pathlib import Path

import duckdb
import pytest

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.kernel.ball import Ball, Norm
from discreet.kernel.expr import Call, Column, Constant
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import PerUnit, UnitKey
from discreet.kernel.sqlgen.counts_and_sums import _write_step
from discreet.kernel.sqlgen.question_sql import write_selects
from discreet.kernel.totals import Count, CountDistinct, CountUnits, HistogramTree, SelectionWeight, Sum

sys.path.insert(0, str(Path(__file__).parents[1] / "matrix"))
import compare
import strategies
from strategies import BOOL, DATE, DAYS, EVENTS, INT, REAL, TEXT, TIME, VISITS

N, X, FLAG, PLACE, DAY = (
    Column(name, kind) for name, kind in (("n", INT), ('x"q', REAL), ("flag", BOOL), ("place", TEXT), ("day", DATE))
)
BIG = 10**9
GONE = Call("nullif", (N, N))


def visits(user, *rows):
    """Return the rows of a user, each of a place and a number; the other columns follow from these."""
    return [
        {
            "user": user,
            "place": place,
            "n": n,
            'x"q': {None: None, 5: float("nan"), 6: float("-inf"), 0: -0.0}.get(n, (n or 0) * 0.75),
            "flag": None if n == 1 else (n or 0) % 2 == 0,
            "day": None if n == 2 else date(2021, 1, 1 + (n or 0) % 7),
            "time": datetime(2021, 1, 1 + user % 3, 12),
        }
        for place, n in rows
    ]


ROWS = [
    *visits(1, ("a", 3)),
    *visits(2, ("a", 2), ("a", 2), ("b", 2), ("b", 2)),  # on the boundary of two groups of two rows
    *visits(3, ("a", 7), ("a", -3), ("a", 5), ("b", 1), ("c", 8), (None, 4)),
    *visits(4, *product(("a", "b", "c", "d", None), (-3, -2, -2))),
    *visits(5, ("a", None), ("a", None), ("b", None), ("z", 6), ("z", 0)),
    *visits(6, *(("c", n) for n in (1, 2, 3, 4, 5, 6, 7, -3, -1))),
    *visits(7, *product("abcd", (0, 1))),
    *visits(8, *(("a", BIG) for _ in range(9)), ("b", 3)),
    *visits(9, *(("b", -BIG) for _ in range(9)), ("c", 3), ("d", -BIG)),
    *visits(10, ("a", 41), ("a", 42), ("b", None)),  # a NULL takes no value's place
]
TABLES = {name: [] for name in strategies.SCHEMAS} | {
    "visits": ROWS,
    "events": [{"n": row["n"], "x": row['x"q'], "flag": row["flag"], "place": row["place"]} for row in ROWS],
    "days": [
        {"who": "aA"[row["user"] % 2], "time": row["time"], "n": row["n"], "x": row['x"q']}
        for row in ROWS
        if row["place"] != "a"
    ],
}

LISTED = PublicGroups((("a", None, "b", "c", "d"),))
WITHOUT_NULL = PublicGroups((("c", "a", "b"),))
ONLY_NULL = PublicGroups(((None,),))
BY_PLACE = (("place", PLACE),)
SHIFTED = Sum(N, Grid(-3, 8, 1), shift=2)
SUMS = (
    SHIFTED,
    Sum(N, Grid(-3, 8, 1)),
    Sum(N, Grid(-3, 8, 1), power=2),
    Sum(N, Grid(-3, 8, 1), power=2, shift=9),
    Sum(X, Grid(-10, 10, "1/8")),
)
COUNTS = (Count(), Count(N), Count(X), Count(GONE), CountUnits(), CountUnits(X), CountUnits(GONE))
WIDE = replace(VISITS, max_rows=10**12)
DAILY = UnitKey((Call("trunc_day", (Column("time", TIME),)),))


def question(totals, groups=LISTED, bounds=(2, 2), by=BY_PLACE, relation=VISITS, *, norm=Norm.L1, cap_rows=False):
    """Return a question, with the weight of partition selection if its groups are selected."""
    first = (SelectionWeight(),) if isinstance(groups, SelectedGroups) and by else ()
    return Question(relation, by, groups, ContributionBounds(*bounds, norm, cap_rows), (*first, *totals))


def clipped_questions():
    """Questions with each norm, with and without a cap."""
    for norm, cap_rows in product(Norm, (False, True)):
        more = {"norm": norm, "cap_rows": cap_rows}
        name = f"{norm.value}{', capped' if cap_rows else ''}"
        yield f"{name}: counts and sums of listed groups", question(COUNTS + SUMS, **more)
        yield f"{name}: one total", question((Sum(X, Grid(-10, 10, "1/8")),), bounds=(1, 3), **more)
        yield f"{name}: other bounds", question((Count(), CountUnits(), SHIFTED), bounds=(3, 1), **more)
        yield f"{name}: bounds that nobody exceeds", question((Count(), SHIFTED), bounds=(5, 20), **more)
        yield f"{name}: one group", question(COUNTS + SUMS, PublicGroups(()), by=(), **more)
        yield f"{name}: keys with NULL", question((Count(), SHIFTED), ONLY_NULL, bounds=(1, 1), **more)
        yield f"{name}: selected groups", question((Count(X), SHIFTED), SelectedGroups(3), **more)
        two = (("flag", FLAG), ("place", PLACE))
        both = PublicGroups(((True, None), ("a", "c")))
        yield f"{name}: two keys", question((Count(), SHIFTED, CountUnits()), both, by=two, **more)
        by_day = question((Count(), Sum(N, Grid(-3, 8, 1))), SelectedGroups(9), (1, 2), (("n", N),), DAYS, **more)
        yield f"{name}: a unit of two columns", by_day
        top = (1 << 61) // 10**12 // 3
        # Squares of these sums do not fit in 64 bits: they are cut first, and measured in coarse steps.
        wide = (Sum(N, Grid(-top, top, 1)), Sum(N, Grid(0, 1000, 1), 2, shift=7), Count())
        yield f"{name}: wide sums", question(wide, bounds=(2, 1), relation=WIDE, **more)
        narrow = (Sum(N, Grid(-(1 << 22), 1 << 22, 1)),)
        yield f"{name}: all fractional bits", question(narrow, bounds=(2, 1), **more)


def other_questions():
    """Questions without clipping, of cells, of distinct values, and of partition selection."""
    x = Column("x", REAL)
    one_row = PerUnit(VISITS, (), ())
    unclipped = (Count(), CountUnits(), Count(N), Count(x), Sum(N, Grid(-3, 8, 1), 2, shift=9), Sum(N, Grid(-3, 8, 1)))
    yield "rows of their own", question(unclipped, relation=EVENTS)
    yield "rows of their own, summed reals", question((Count(x), Sum(x, Grid(-4, 4, "1/2"))), relation=EVENTS)
    yield "rows of their own, only counted", question((Count(),), PublicGroups(()), by=(), relation=EVENTS)
    yield "units, only counted", question((CountUnits(),))
    yield "rows of their own, without NULL", question((Count(),), WITHOUT_NULL, relation=EVENTS)
    yield "rows of their own, selected", question((Count(),), SelectedGroups(3), relation=EVENTS)
    yield "rows of their own, in one group", question(unclipped, PublicGroups(()), by=(), relation=EVENTS)
    yield "one row for each unit", question((Count(), CountUnits()), PublicGroups(()), by=(), relation=one_row)
    grid = HistogramTree(N, Grid(0, 7, 1), branching=8, depth=1)
    reals = HistogramTree(X, Grid(-2, 2, "1/2"), branching=3, depth=2)
    places = HistogramTree(PLACE, ("b", "a", "d"), branching=3, depth=1)
    flags = (("flag", FLAG),)
    both = PublicGroups(((True, False, None),))
    cells = (grid, Count(), reals, places)
    yield "cells", question(cells, both, (2, 2), flags)
    yield "cells, no more groups than the bound", question(cells, both, (3, 2), flags)
    yield "cells in one group", question(cells, PublicGroups(()), (1, 2), ())
    yield "cells of selected groups", question((grid, places), SelectedGroups(3), (1, 3))
    yield "cells of a unit of two columns", question((grid,), SelectedGroups(9), (2, 1), (("n", N),), DAYS)
    own = (replace(grid, expr=N), replace(places, expr=PLACE))
    yield "cells of rows of their own", question(own, both, (2, 2), flags, EVENTS)
    for expr in (N, PLACE, DAY, FLAG):
        for bounds in ((1, 1), (1, 2), (2, 2), (3, 1), (1, 4)):
            yield f"distinct {expr.name} {bounds}", question((CountDistinct(expr), Count()), LISTED, bounds)
    units = UnitKey((PLACE,)), UnitKey((DAY,)), DAILY, UnitKey((FLAG, N)), UnitKey((*DAILY.unit, PLACE))
    for (number, unit), bounds in product(enumerate(units), ((1, 2), (1, 3))):
        relation = replace(VISITS, owner=unit)
        distinct = question((CountDistinct(N),), PublicGroups(((True, False),)), bounds, flags, relation)
        yield f"distinct values of other units {number} {bounds}", distinct
    yield "distinct values of a unit of two columns", question((CountDistinct(N),), PublicGroups(()), (1, 1), (), DAYS)
    yield "distinct values in one group", question((CountDistinct(N),), PublicGroups(()), (1, 2), ())
    yield "distinct values of selected groups", question((CountDistinct(N),), SelectedGroups(9), (1, 2), flags)
    yield "distinct values of rows of their own", question((CountDistinct(N),), both, (1, 1), flags, EVENTS)
    for most, shown in product((1, 3, 9), ((), (("a",), (None,)))):
        yield f"weights {most} {len(shown)}", question((), SelectedGroups(most, shown))
        own = question((), SelectedGroups(most, shown), relation=EVENTS)
        yield f"weights of rows of their own {most} {len(shown)}", own
    two = (("place", PLACE), ("n", N))
    yield "weights of two keys", question((), SelectedGroups(9, (("a", 2), (None, None), ("b", 7))), by=two)
    yield "weights of a unit of two columns", question((), SelectedGroups(4), by=(("n", N),), relation=DAYS)


QUESTIONS = dict([*clipped_questions(), *other_questions()])


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET disabled_optimizers = 'filter_pushdown'")
        strategies.load(connection, TABLES)
        yield compare.Under(DUCKDB, lambda sql: connection.sql(sql).to_arrow_table(), lambda _: None)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_sql_of_a_question_gives_its_totals(engine, name):
    wanted = compare.expected(TABLES, QUESTIONS[name])
    assert compare.computed(engine, QUESTIONS[name]) == wanted
    assert any(map(any, wanted.values()))


@pytest.mark.parametrize("expr", [N, FLAG, DAY], ids=lambda expr: expr.name)
def test_a_value_is_chosen_by_the_text_that_the_dialect_writes(engine, expr):
    """Not by what an engine makes of it unasked, which its settings may change. With one text for all, the value."""
    same = dict.fromkeys(("write_integer", "write_boolean", "write_date"), "'same'")
    dialect = replace(DUCKDB, operations={**DUCKDB.operations, **same})
    values = {}
    for row in ROWS:
        values.setdefault(row["user"], set()).add(row[expr.name])
    smallest = {min(each - {None}) for each in values.values() if each - {None}}
    asked = question((CountDistinct(expr),), PublicGroups(()), (1, 1), ())
    assert compare.computed(replace(engine, dialect=dialect), asked) == {(): ((len(smallest),), [])}


@pytest.mark.parametrize(("norm", "shift"), [*product(Norm, range(4))])
def test_a_term_is_measured_in_steps_rounded_away_from_zero(norm, shift):
    terms = range(-17, 18)
    text = _write_step("x", Ball(norm, limit=1, shift=shift), DUCKDB)
    found = duckdb.execute(f"SELECT {text} FROM (SELECT UNNEST(?::BIGINT[]) AS x) AS r", [list(terms)]).fetchall()
    sizes = [-(-abs(term) // 2**shift) for term in terms]
    assert found == [(size if norm is Norm.L1 else size**2,) for size in sizes]


def test_only_computed_columns_are_fenced():
    """A fence keeps an engine from computing an expression for rows that a condition leaves out."""
    fenced = replace(DUCKDB, optimization_fence=" OFFSET 0")
    added = (("more", Call("add", (N, Constant(1, INT)))),)
    known = PublicGroups(((1, 2),))
    for computed, each in (
        (True, question((Count(N),))),
        (True, question((Count(),), known, by=added)),
        (True, question((Count(N),), known, by=added)),
        (True, question((Count(),), PublicGroups(((1, 2), ("a",))), by=(*added, *BY_PLACE))),
        (False, question((Count(),))),
        (False, question((Count(),), PublicGroups(()), by=())),
    ):
        assert all(("OFFSET 0" in text) is computed for text in write_selects(each, fenced).values())


def test_a_question_is_checked_before_its_selects_are_written_and_finished():
    each, seen = QUESTIONS["cells"], []
    dialect = replace(
        DUCKDB,
        check_size=lambda *given: seen.append(given),
        finish_select=lambda text: seen.append(text) or f"{text};",
    )
    selects = write_selects(each, dialect)
    assert seen[0] == (each, dialect)
    assert [f"{text};" for text in seen[1:]] == list(selects.values())
    assert list(selects) == [0, None, 2, 3]
    assert list(write_selects(question(SUMS), DUCKDB)) == [None]


def test_rows_of_their_own_are_read_once_for_selection_and_totals():
    selected = question((Count(), SHIFTED, CountDistinct(N)), SelectedGroups(3), relation=EVENTS)
    assert list(write_selects(selected, DUCKDB)) == [None, 3]
    assert list(write_selects(replace(selected, relation=VISITS), DUCKDB)) == [0, None, 3]


def test_a_faster_sum_is_used_within_groups_if_the_engine_has_one():
    (fast,) = write_selects(question(SUMS), replace(DUCKDB, sum_in_group="FAST({0})")).values()
    (same,) = write_selects(question(SUMS), replace(DUCKDB, sum_in_group="")).values()
    assert "FAST(" in fast
    assert fast.count(DUCKDB.sum_or_zero.split("{")[0]) < same.count(DUCKDB.sum_or_zero.split("{")[0])


def test_no_list_of_keys_is_empty():
    """An empty list is a syntax error on some engines."""
    lists = []
    dialect = replace(DUCKDB, write_in_list=lambda _name, values, _kind: lists.append(values) or "TRUE")
    for groups in (ONLY_NULL, LISTED):
        write_selects(question((Count(),), groups), dialect)
    assert lists == [["a", "b", "c", "d"]]
