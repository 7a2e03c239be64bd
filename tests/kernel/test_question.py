"""How far one unit can move totals: never farther than a question says, on any database that was found."""

import random
import sys
from collections import Counter
from fractions import Fraction
from math import sqrt
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.sql_totals import compute_totals as gathered
from discreet.kernel.ball import WEIGHT_BITS, Ball, Norm, ball_for
from discreet.kernel.expr import Call, Column, Constant, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import Derive, EachRow, JoinKind, JoinPublic, PerUnit, PublicTable, Scan, UnitKey
from discreet.kernel.totals import (
    Count,
    CountDistinct,
    CountUnits,
    HistogramTree,
    SelectionWeight,
    Sum,
    max_abs_contribution,
)
from tests.reference.engine import ReferenceEngine

sys.path.insert(0, str(Path(__file__).parents[1] / "matrix"))
import strategies
from strategies import differences

INT, REAL, TEXT = Type.INTEGER, Type.REAL, Type.TEXT
USER, PLACE, X = Column("user", INT), Column("place", INT), Column("x", REAL)
VISITS = Scan("visits", (USER, PLACE, X), UnitKey((USER,)), max_rows=10_000)
EVENTS = Scan("visits", (USER, PLACE, X), EachRow(), max_rows=10_000)
BY_PLACE = (("place", PLACE),)
ALONE = PublicGroups(())


def by_reference(tables, question):
    return strategies.Seen(question, ReferenceEngine(tables).totals(question))


def by_duckdb(tables, question):
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET disabled_optimizers = 'filter_pushdown'")
        strategies.load(connection, tables)
        found = gathered(question, lambda sql: connection.sql(sql).to_arrow_table(), DUCKDB)
        return strategies.Seen(question, found)


def check_bound(one, other, question):
    """Stop if a total moved farther than the question says, and return whether any moved."""
    moved = False
    for place, total in enumerate(question.totals):
        changes = differences(one, other, question, place)
        sensitivity = question.sensitivity_of(total)
        assert sum(map(abs, changes)) <= sensitivity.l1, (question, place)
        assert sum(change * change for change in changes) <= sensitivity.l2_squared, (question, place)
        moved |= any(changes)
    return moved


@pytest.mark.parametrize("block", range(8))
def test_removing_a_unit_moves_totals_by_at_most_the_sensitivity(block):
    moved = 0
    for seed in range(block * 25, block * 25 + 25):
        rng = random.Random(f"neighbours {seed}")
        tables = strategies.database(rng)
        for _ in range(3):
            kind = rng.choice([0, 0, 0, 1, 2])
            question = strategies.question(rng, tables, kind)
            full = by_reference(tables, question)
            for unit in strategies.units_of(tables, kind):
                moved += check_bound(full, by_reference(strategies.without(tables, kind, unit), question), question)
    assert moved > 20


@pytest.mark.long
def test_removing_a_unit_moves_totals_by_at_most_the_sensitivity_in_duckdb():
    moved = 0
    for seed in range(8):
        rng = random.Random(f"neighbours in duckdb {seed}")
        tables = strategies.database(rng, finite=True)
        kind = rng.choice([0, 0, 0, 1, 2])
        question = strategies.question(rng, tables, kind)
        full = by_duckdb(tables, question)
        for unit in strategies.units_of(tables, kind)[:3]:
            moved += check_bound(full, by_duckdb(strategies.without(tables, kind, unit), question), question)
    assert moved > 1


@pytest.mark.slow
@pytest.mark.parametrize("block", range(6))
def test_removing_a_unit_moves_totals_by_at_most_the_sensitivity_thousands_of_times(block):
    for seed in range(400):
        rng = random.Random(f"many neighbours {block} {seed}")
        tables = strategies.database(rng, most=25)
        for _ in range(4):
            kind = rng.choice([0, 0, 0, 1, 2])
            question = strategies.question(rng, tables, kind, depth=4)
            full = by_reference(tables, question)
            for unit in strategies.units_of(tables, kind):
                check_bound(full, by_reference(strategies.without(tables, kind, unit), question), question)


# One table, one heavy unit in many groups, with all that moves most.

VALUES = [-1e300, -7.0, -1.0, -0.4, 0.0, 0.6, 1.0, 9.0, 1e300, None]


def totals_of(draw):
    grid = Grid(
        draw(st.sampled_from([-10, -3, 0, 2])), draw(st.sampled_from([2, 10, 100])), draw(st.sampled_from([1, "1/3"]))
    )
    sums = [Sum(X, grid, power, shift) for power in (1, 2) for shift in (0, 5, -5)]
    cells = [HistogramTree(X, grid, branching=fan, depth=9 if fan == 3 else 1) for fan in (3, 1000)] + [
        HistogramTree(PLACE, (0, 1, 7), 3, 1)
    ]
    others = [Count(), Count(X), CountUnits(X), CountDistinct(PLACE), *cells, *sums]
    return tuple(draw(st.lists(st.sampled_from([*others, CountUnits()]), min_size=1, max_size=4)))


@st.composite
def heavy(draw):
    """Draw a question, and the rows of one unit and of others."""
    places = st.integers(0, draw(st.sampled_from([0, 3, 40])))
    rows = st.lists(st.tuples(places, st.sampled_from(VALUES)), max_size=draw(st.sampled_from([3, 80])))
    keys = (
        PublicGroups((tuple(range(41)),)) if draw(st.booleans()) else SelectedGroups(draw(st.sampled_from([1, 5, 50])))
    )
    norm, cap_rows = draw(st.sampled_from(Norm)), draw(st.booleans())
    limit = ContributionBounds(draw(st.integers(1, 4)), draw(st.integers(1, 3)), norm, cap_rows)
    first = (SelectionWeight(),) if isinstance(keys, SelectedGroups) else ()
    question = Question(VISITS, BY_PLACE, keys, limit, first + totals_of(draw))
    return question, draw(rows), draw(rows), draw(rows)


def visits(*units):
    return {"visits": [{"user": user, "place": place, "x": x} for user, rows in enumerate(units) for place, x in rows]}


@pytest.mark.long
@given(heavy())
@settings(max_examples=200)
def test_a_unit_with_many_rows_moves_totals_by_at_most_the_sensitivity(drawn):
    question, others, unit, _ = drawn
    full, less = (by_reference(visits(others, rows), question) for rows in (unit, []))
    check_bound(full, less, question)


@pytest.mark.parametrize("block", range(3))
def test_removing_a_unit_moves_cells_and_distinct_values_by_at_most_the_sensitivity(block):
    """Many values and places of one unit, in all orders: what is chosen or scaled is this unit's alone."""
    moved = Counter()
    for seed in range(block * 40, block * 40 + 40):
        rng = random.Random(f"apart {seed}")
        tree = HistogramTree(X, Grid(0, 9, 1), branching=rng.choice([2, 4, 10]), depth=4)
        totals = (
            CountUnits() if seed % 2 else SelectionWeight(),
            CountDistinct(rng.choice([PLACE, Column("user", INT)])),
            CountDistinct(Call("to_integer", (X,))),
            tree,
        )
        totals += (HistogramTree(PLACE, (0, 1, 2, 3), 4, 1), Count(X))
        limit = ContributionBounds(rng.randint(1, 3), rng.randint(1, 3))
        groups = PublicGroups((tuple(range(5)),)) if seed % 2 else SelectedGroups(rng.choice([1, 2, 50]))
        question = Question(VISITS, BY_PLACE, groups, limit, totals)
        people = [
            [(rng.randrange(5), rng.choice([None, *map(float, range(10))])) for _ in range(rng.randrange(14))]
            for _ in range(3)
        ]
        full, less = (by_reference(visits(*rows), question) for rows in (people, people[:2]))
        check_bound(full, less, question)
        for place, total in enumerate(totals):
            moved[type(total)] += any(differences(full, less, question, place))
    assert all(moved[kind] > 5 for kind in (HistogramTree, CountDistinct))


@pytest.mark.parametrize("cap_rows", [False, True])
@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize(
    "total",
    [Count(), Sum(X, Grid(-8, 3, "1/2")), Sum(X, Grid(-8, 3, 1), 2, 3), Sum(X, Grid(-8, 3, 1), max_term=5)],
    ids=["count", "sum", "squares", "sum with its own limit"],
)
def test_a_unit_attains_the_sensitivity(total, groups, rows, norm, cap_rows):
    """A unit at the limit in every way: a smaller sensitivity would be a lie."""
    if cap_rows and isinstance(total, Sum) and total.max_term:
        return  # refused
    bounds = ContributionBounds(groups, rows, norm, cap_rows)
    question = Question(VISITS, BY_PLACE, SelectedGroups(9), bounds, (SelectionWeight(), total))
    unit = [(place, -100.0) for place in range(groups) for _ in range(rows)]
    full = by_reference(visits([], unit), question)
    sensitivity = question.sensitivity_of(total)
    changes = [full[key][1] for key in full]
    moved = sum(map(abs, changes)) if norm is Norm.L1 else sum(x * x for x in changes)
    limit = sensitivity.l1 if norm is Norm.L1 else sensitivity.l2_squared
    if isinstance(total, Sum) and total.max_term:  # this unit is above the limit, and weights are rounded down
        assert limit * (1 - 1e-4) < moved <= limit
    else:
        assert moved == limit


def test_a_limit_of_a_sum_decides_about_its_sensitivity_whatever_the_rows_and_values():
    for norm, radius in ((Norm.L1, 3 * 7), (Norm.L2, 3**0.5 * 7)):
        for rows in (1, 50):
            total, bounds = Sum(X, Grid(-900, 900, 1), max_term=7), ContributionBounds(3, rows, norm)
            sensitivity = Question(VISITS, BY_PLACE, PublicGroups((tuple(range(9)),)), bounds, (total,)).sensitivity()
            steps = sensitivity.l1 if norm is Norm.L1 else sensitivity.l2_squared**0.5
            assert steps / (1 << WEIGHT_BITS) == pytest.approx(radius)
    alone = Question(VISITS, (), ALONE, ContributionBounds(1, 50), (total,))
    assert alone.sensitivity().l1 == 7
    assert by_reference(visits([], [(0, 400.0), (0, 500.0)]), alone)[()] == [7]
    assert by_reference(visits([], [(0, -400.0), (0, 398.0)]), alone)[()] == [-2]


@pytest.mark.parametrize("limit", [0, -1, 1.5, "7", True])
def test_a_limit_of_a_sum_is_a_positive_integer(limit):
    with pytest.raises((ValueError, TypeError), match="max_term"):
        Sum(X, Grid(0, 9, 1), max_term=limit)


def test_a_limit_of_a_sum_is_refused_where_rows_are_capped_or_it_could_exceed_64_bits():
    limited = Sum(X, Grid(0, 9, 1), max_term=7)
    with pytest.raises(ValueError, match="max_term"):
        Question(VISITS, (), ALONE, ContributionBounds(1, 1, cap_rows=True), (limited,))
    with pytest.raises(ValueError, match="64 bits"):
        Question(VISITS, (), ALONE, ContributionBounds(1, 1), (Sum(X, Grid(0, 9, 1), max_term=(1 << 42) + 1),))


def terms_of_one_unit(places, bounds, total=Count()):  # noqa: B008
    """Return what one unit with these places adds to each group, and the sensitivity."""
    question = Question(VISITS, BY_PLACE, SelectedGroups(99), bounds, (SelectionWeight(), total))
    full = by_reference(visits([], [(place, 1.0) for place in places]), question)
    return {key[0]: row[1] for key, row in full.items()}, question


def test_contributions_to_all_groups_are_scaled_together():
    """The direction of a unit's vector is kept; only its length is clipped."""
    places = [0] * 30 + [1] * 40
    terms, question = terms_of_one_unit(places, ContributionBounds(4, 5, Norm.L2))
    assert [round(terms[place] / 2 ** question.fraction_bits(Count()), 3) for place in (0, 1)] == [6, 8]
    terms, question = terms_of_one_unit(places, ContributionBounds(2, 5, Norm.L1))
    assert [round(terms[place] / 2 ** question.fraction_bits(Count()), 3) for place in (0, 1)] == [4.286, 5.714]


def test_a_group_may_take_up_the_whole_radius_unless_rows_are_capped():
    terms, question = terms_of_one_unit([0] * 10, ContributionBounds(4, 5, Norm.L2))
    assert terms[0] == 10 << question.fraction_bits(Count())
    terms, question = terms_of_one_unit([0] * 10, ContributionBounds(4, 5, Norm.L2, cap_rows=True))
    assert terms[0] == 5 << question.fraction_bits(Count())


@pytest.mark.parametrize("norm", Norm)
def test_a_cap_and_a_ball_never_clip_more_than_a_weight_by_the_number_of_groups(norm):
    for seed in range(60):
        rng = random.Random(f"never more {seed}")
        groups, rows = rng.randint(1, 4), rng.randint(1, 5)
        counts = {place: rng.randint(1, 12) for place in range(rng.randint(1, 12))}
        places = [place for place, count in counts.items() for _ in range(count)]
        terms, question = terms_of_one_unit(places, ContributionBounds(groups, rows, norm, cap_rows=True))
        by_groups = min(1, Fraction(groups, len(counts)))
        for place, count in counts.items():
            before = min(count, rows) * by_groups * (1 - Fraction(1, 1 << 18))
            assert Fraction(terms[place], 1 << question.fraction_bits(Count())) >= before - Fraction(1, 1 << 18)


@pytest.mark.parametrize("norm", Norm)
def test_a_mean_has_the_same_weight_above_and_below(norm):
    """Units with many rows count for less, but their own mean stays what it is."""
    total = Sum(X, Grid(-4, 4, 1))
    bounds = ContributionBounds(1, 1, norm, cap_rows=True)
    question = Question(VISITS, BY_PLACE, PublicGroups((tuple(range(9)),)), bounds, (Count(), total))
    full = by_reference(visits([(place, 3.0) for place in range(9) for _ in range(5)]), question)
    bits = [question.fraction_bits(each) for each in question.totals]
    for count, summed in full.values():
        assert summed / 2 ** bits[1] == pytest.approx(3 * count / 2 ** bits[0], rel=1e-4)


def test_gaussian_noise_on_an_l1_ball_and_laplace_noise_on_an_l2_ball_cost_what_their_own_norms_allow():
    """An l2 ball has a larger l1 norm, and the other way round: neither is taken for the other."""
    many = [place for place in range(40) for _ in range(3)]
    for norm in Norm:
        terms, question = terms_of_one_unit(many, ContributionBounds(4, 3, norm))
        sensitivity = question.sensitivity_of(Count())
        assert sum(terms.values()) <= sensitivity.l1
        assert sum(term * term for term in terms.values()) <= sensitivity.l2_squared
    radius = 12 << 20
    l1_ball, l2_ball = (
        Question(VISITS, BY_PLACE, PublicGroups((tuple(range(40)),)), ContributionBounds(4, 3, norm), (Count(),))
        for norm in Norm
    )
    assert (l1_ball.sensitivity().l1, l1_ball.sensitivity().l2_squared) == (radius, radius**2)
    assert l2_ball.sensitivity().l2_squared == radius**2 // 4
    assert radius * 3 < l2_ball.sensitivity().l1 <= radius * 3.17  # sqrt(40) times the radius of 6


@pytest.mark.long
@given(
    st.sampled_from(Norm),
    st.integers(1, 1 << 30),
    st.integers(1, 50),
    st.lists(st.integers(0, 1 << 40), min_size=1, max_size=60),
    st.integers(0, 1 << 20),
)
@settings(max_examples=300)
def test_a_clipped_vector_is_in_the_ball(norm, size, groups, terms, spare):
    largest = sum(terms) + spare + 1
    ball = ball_for(norm, size, groups, max_sum=largest, max_terms=len(terms) + spare)
    radius_squared = groups * size**2 if norm is Norm.L2 else (groups * size) ** 2
    cut = [term if ball.cut is None else min(term, ball.cut) for term in terms]
    assert ball.cut is None or ball.cut**2 >= radius_squared
    steps = [-(-term >> ball.shift) for term in cut]
    norms = sum(steps) if norm is Norm.L1 else sum(step * step for step in steps)
    assert norms <= 1 << 62
    weight = 1 << 20
    if norms > ball.limit:
        weight = ball.weight_numerator // norms if norm is Norm.L1 else int(ball.weight_numerator / sqrt(norms))
        assert weight < 1 << 20
    clipped = [term * weight for term in cut]
    length = sum(clipped) ** 2 if norm is Norm.L1 else sum(term * term for term in clipped)
    assert length <= radius_squared << 40
    exact = sum(terms) ** 2 if norm is Norm.L1 else sum(term * term for term in terms)
    if norms > ball.limit and exact > radius_squared and ball.cut is None and weight > 1 << 14 and not ball.shift:
        assert length >= (radius_squared << 40) * 0.999  # and it reaches its surface


@pytest.mark.parametrize("norms", [(1 << 52) + 1, 3 * (1 << 40), (1 << 61) - 1, 10**15 + 7])
def test_a_weight_above_the_exact_quotient_is_caught(norms):
    """Doubles round: without the one that is subtracted, a weight could exceed the quotient that the proof allows."""
    for limit in (norms - 1, norms // 2, norms // 4, (norms // 7) | 1):
        numerator = Ball(Norm.L2, limit).weight_numerator
        weight = int(numerator / sqrt(norms))
        assert weight**2 * norms <= limit << 40


def weights_of(places, max_groups, shown=()):
    groups = SelectedGroups(max_groups, tuple((place,) for place in shown))
    question = Question(VISITS, BY_PLACE, groups, ContributionBounds(2, 3), (SelectionWeight(),))
    full = by_reference(visits([], [(place, 1.0) for place in places for _ in range(2)]), question)
    return question.sensitivity_of(SelectionWeight()), [row[0] for row in full.values()]


@pytest.mark.parametrize("shown", [0, 3])
def test_removing_a_unit_moves_selection_weights_by_at_most_the_sensitivity(shown):
    """With every number of keys: the bound holds, is attained by one key, and by as many as count."""
    attained = []
    for k in range(1, 42):
        sensitivity, weights = weights_of(range(k), 16, range(shown))
        assert sum(weights) <= sensitivity.l1
        assert sum(weight * weight for weight in weights) <= sensitivity.l2_squared
        attained.append((sum(weights) == sensitivity.l1, sum(w * w for w in weights) == sensitivity.l2_squared))
        if k - shown > 16:
            assert not any(weights)
    assert attained[shown] == (False, True)
    assert attained[15 + shown] == (True, True)


@pytest.mark.parametrize("copies", [1, 3])
def test_a_row_of_its_own_attains_the_sensitivity(copies):
    table = PublicTable("many", (("k", Column("k", INT)),))
    relation = JoinPublic(EVENTS, table, (), None, JoinKind.INNER, fanout=copies)
    question = Question(relation, (), ALONE, ContributionBounds(1, 1), (Count(), Sum(X, Grid(0, 4, 1))))
    tables = visits([(0, 9.0)]) | {"many": [{"k": k} for k in range(5)]}
    assert by_reference(tables, question) == {(): [copies, 4 * copies]}
    assert [question.sensitivity_of(total).l1 for total in question.totals] == [copies, 4 * copies]


def test_one_row_for_each_unit_needs_no_limit():
    per = PerUnit(VISITS, (), ())
    question = Question(per, (), ALONE, ContributionBounds(7, 7), (Count(), CountUnits()))
    assert not question.needs_clipping
    assert question.sensitivity_of(Count()).l1 == 1


def test_the_l0_bound_is_at_most_the_number_of_listed_keys():
    question = Question(VISITS, BY_PLACE, PublicGroups(((0, 1),)), ContributionBounds(5, 1), (Count(),))
    assert (question.l0_bound, question.needs_l0_clipping, question.fraction_bits(CountUnits())) == (2, False, 0)
    wide = Question(VISITS, BY_PLACE, PublicGroups((tuple(range(9)),)), ContributionBounds(5, 1), (Count(),))
    assert (wide.l0_bound, wide.needs_l0_clipping, wide.fraction_bits(Count())) == (5, True, 20)


@pytest.mark.long
@given(
    st.integers(1, 1 << 61),
    st.integers(1, 1 << 42),
    st.integers(1, 1 << 42),
    st.integers(0, 1 << 38),
    st.integers(0, 1 << 38),
    st.sampled_from([1, 2]),
    st.integers(-(1 << 61), 1 << 61),
    st.sampled_from(Norm),
    st.booleans(),
    st.none() | st.integers(1, 1 << 43),
)
@settings(max_examples=500)
def test_no_intermediate_value_exceeds_64_bits(most, groups, rows, low, high, power, shift, norm, cap_rows, limit):  # noqa: PLR0917
    """Whatever a question allows, the numbers that render writes fit, with as many rows as there may be."""
    scan = Scan("visits", (USER, PLACE, X), UnitKey((USER,)), max_rows=most)
    try:
        total = Sum(X, Grid(-low, high, 1), power, shift, limit)
        bounds = ContributionBounds(groups, rows, norm, cap_rows)
        question = Question(scan, BY_PLACE, SelectedGroups(9), bounds, (SelectionWeight(), total))
    except ValueError:
        return
    for each in question.totals:
        fine, top = 1 << question.fraction_bits(each), max_abs_contribution(each)
        assert most * top * fine < 1 << 63  # a unit's sum in one group, made finer; and the sum of all units
        term = question.max_term(each) * fine
        assert term <= 1 << 42  # a unit's term in one group
        assert term << 20 < 1 << 63  # and with a weight
        assert most * question.max_rows_per_group < 1 << 63  # what is left of a division, times the rows
        if ball := question.ball_of(each):
            largest = most * (1 if cap_rows else top)  # the sum of a unit's terms or row counts
            for terms in ([largest], [largest - min(most - 1, 40), *[1] * min(most - 1, 40)]):
                limit = question.max_rows_per_group if cap_rows else ball.cut
                cut = [term if limit is None else min(term, limit) for term in terms]
                steps = [-(-term >> ball.shift) for term in cut]
                norms = sum(steps) if norm is Norm.L1 else sum(step * step for step in steps)
                assert norms < 1 << 63
                weight = ball.weight_numerator // norms if norm is Norm.L1 else int(ball.weight_numerator / sqrt(norms))
                assert norms <= ball.limit or max(cut) * weight < 1 << 63
                assert norms > ball.limit or max(cut) << 20 < 1 << 63


@pytest.mark.long
@given(
    st.integers(-(1 << 39), 1 << 39),
    st.integers(0, 1 << 38),
    st.integers(-(1 << 39), 1 << 39),
    st.sampled_from([1, 2]),
    st.integers(-100, 100),
)
@settings(max_examples=300)
def test_no_row_adds_more_than_max_abs_contribution(low, wide, offset, power, shift):
    grid = Grid(low, low + wide, 1, offset)
    try:
        total = Sum(X, grid, power, shift)
    except ValueError:
        return
    for value in (low, low + wide, 0, -1e300, 1e300, float(offset), low + wide / 2):
        assert abs((grid.index(float(value)) - offset) ** power - shift) <= max_abs_contribution(total)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2", None, (1 << 42) + 1])
@pytest.mark.parametrize("name", ["groups", "rows"])
def test_a_bound_is_an_integer_of_at_least_one(name, bad):
    with pytest.raises((ValueError, TypeError), match=name):
        ContributionBounds(**{"groups": 1, "rows": 1, name: bad})


def test_numbers_of_numpy_do_not_wrap():
    """An int64 of numpy that stayed in a question would make products wrap, and a sensitivity small."""
    limit = ContributionBounds(np.int64(1 << 40), np.int64(4), cap_rows=True)
    total = Sum(X, Grid(0, 1, 1), 1, np.int64(-(1 << 38)))
    scan = Scan("visits", (USER, PLACE, X), UnitKey((USER,)), max_rows=np.int64(10_000))
    question = Question(scan, BY_PLACE, SelectedGroups(np.int64(5)), limit, (SelectionWeight(), total))
    plain = Question(
        Scan("visits", (USER, PLACE, X), UnitKey((USER,)), max_rows=10_000),
        BY_PLACE,
        SelectedGroups(5),
        ContributionBounds(1 << 40, 4, cap_rows=True),
        (SelectionWeight(), Sum(X, Grid(0, 1, 1), 1, -(1 << 38))),
    )
    assert [question.sensitivity_of(each).l2_squared for each in question.totals] == [
        plain.sensitivity_of(each).l2_squared for each in plain.totals
    ]
    assert type(question.sensitivity_of(total).l1) is int
    for shift in (np.int64(-(1 << 62)), np.int64((1 << 62) + 5)):
        with pytest.raises(ValueError, match="64 bits"):
            Question(
                scan, BY_PLACE, SelectedGroups(5), limit, (SelectionWeight(), Sum(X, Grid(0, 1 << 31, 1), 2, shift))
            )
    wide = JoinPublic(scan, PublicTable("p", ()), (), None, JoinKind.LEFT, fanout=np.int64(1 << 40))
    assert type(wide.shape.max_rows) is int


def test_too_wide_a_sum_is_refused():
    fine = Sum(X, Grid(0, 1 << 39, 1))
    with pytest.raises(ValueError, match="64 bits"):
        Question(VISITS, (), ALONE, ContributionBounds(1, 9), (fine,))
    Question(VISITS, (), ALONE, ContributionBounds(1, 8), (fine,))
    with pytest.raises(ValueError, match="64 bits"):
        Question(
            Scan("visits", VISITS.columns, VISITS.owner, max_rows=1 << 23), (), ALONE, ContributionBounds(1, 1), (fine,)
        )


@pytest.mark.parametrize(
    ("end", "power", "shift"), [(1 << 39, 2, 1 << 78), (3_037_000_500, 2, 3_037_000_500**2), (1, 1, 1 << 62)]
)
def test_a_square_or_a_shift_that_could_exceed_64_bits_is_refused(end, power, shift):
    """A large shift would hide the square in the bound of a row, and an engine would fail at the first row."""
    with pytest.raises(ValueError, match="64 bits"):
        Sum(X, Grid(end, end, 1), power=power, shift=shift)


def test_terms_get_as_many_fractional_bits_as_64_bits_allow():
    def bits(max_rows, top, rows=1):
        scan = Scan("visits", VISITS.columns, VISITS.owner, max_rows=max_rows)
        total = Sum(X, Grid(0, top, 1))
        bounds = ContributionBounds(2, rows, cap_rows=True)
        return Question(scan, BY_PLACE, SelectedGroups(9), bounds, (SelectionWeight(), total)).fraction_bits(total)

    assert [bits(10, top) for top in (1, 1 << 22, (1 << 22) + 1, 1 << 39)] == [20, 20, 19, 3]  # the term of a unit
    assert bits(10, 1 << 22, rows=4) == 18
    assert [bits(rows, 1 << 20) for rows in (1 << 21, 1 << 22, 1 << 40)] == [20, 19, 1]  # the sum of all rows


NULL = Constant(None, INT)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"totals": ()}, ValueError, "1 to 200"),
        ({"totals": (Count(),) * 201}, ValueError, "1 to 200"),
        ({"totals": ("count",)}, TypeError, "totals must not contain str"),
        ({"totals": (Count(Column("nothing", INT)),)}, ValueError, "nothing"),
        ({"totals": (Count(Column("x", INT)),)}, ValueError, "'x' of type integer"),
        ({"by": (("k", Column("nothing", INT)),)}, ValueError, "nothing"),
        ({"by": (("k", PLACE), ("k", PLACE)), "groups": PublicGroups(((1,), (1,)))}, ValueError, "distinct"),
        ({"groups": PublicGroups(())}, ValueError, "per key"),
        ({"groups": PublicGroups(((1,), (2,)))}, ValueError, "per key"),
        ({"groups": PublicGroups((("a",),))}, TypeError, "integer"),
        ({"groups": PublicGroups(((1.0,),))}, TypeError, "integer"),
        ({"groups": SelectedGroups(3)}, ValueError, "partition selection"),
        ({"groups": None, "totals": (SelectionWeight(),)}, TypeError, "groups must be"),
        ({"groups": (("a",),), "totals": (CountUnits(),)}, TypeError, "groups must be"),
        ({"bounds": SimpleNamespace(groups=1, rows=1)}, TypeError, "bounds must be"),
        ({"bounds": (1, 1)}, TypeError, "bounds must be"),
        ({"relation": SimpleNamespace(shape=VISITS.shape)}, TypeError, "relation must be"),
        ({"groups": SelectedGroups(3), "totals": (CountUnits(),)}, ValueError, "partition selection"),
        ({"totals": (SelectionWeight(),)}, ValueError, "partition selection"),
        ({"groups": SelectedGroups(3), "totals": (SelectionWeight(),) * 2}, ValueError, "partition selection"),
        ({"groups": SelectedGroups(3), "totals": (Count(), SelectionWeight())}, ValueError, "partition selection"),
        ({"groups": SelectedGroups(3, ((1,),)), "totals": (SelectionWeight(), Count())}, ValueError, "later round"),
        ({"groups": SelectedGroups(3), "by": (), "totals": (SelectionWeight(),)}, ValueError, "partition selection"),
    ],
)
def test_an_invalid_question_is_refused(change, error, words):
    given_ = {
        "relation": VISITS,
        "by": BY_PLACE,
        "groups": PublicGroups(((1, 2),)),
        "bounds": ContributionBounds(1, 1),
        "totals": (Count(),),
    }
    Question(**given_)
    with pytest.raises(error, match=words):
        Question(**(given_ | change))


@pytest.mark.parametrize(
    "domains",
    [((),), ((1, 1),), ((0.0, -0.0),), (tuple(range(1001)), tuple(range(1000))), ((None, None),)],
    ids=range(5),
)
def test_listed_keys_differ_and_are_not_too_many(domains):
    with pytest.raises(ValueError, match="domains"):
        PublicGroups(domains)


@pytest.mark.parametrize("bad", [{"expr": PLACE, "power": 3}, {"expr": PLACE, "power": 0}, {"expr": Column("t", TEXT)}])
def test_a_sum_takes_a_number_and_a_power(bad):
    with pytest.raises(ValueError, match="a sum needs"):
        Sum(**{"grid": Grid(0, 1, 1), **bad})


def test_a_sum_takes_a_grid_and_nothing_that_only_looks_like_one():
    narrow = SimpleNamespace(first=0, last=0, offset=0, as_floats=(0.0, 1e9, 1.0))
    with pytest.raises(TypeError, match="grid must be"):
        Sum(X, narrow)


@pytest.mark.parametrize("bad", [1.5, None, "1", True])
def test_a_shift_is_an_integer(bad):
    with pytest.raises(TypeError, match="shift"):
        Sum(X, Grid(0, 1, 1), 1, bad)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, None])
def test_discover_takes_an_integer(bad):
    with pytest.raises((ValueError, TypeError), match="max_groups"):
        SelectedGroups(bad)


def test_norms_of_several_totals_add():
    question = Question(VISITS, (), ALONE, ContributionBounds(1, 3), (Count(), Sum(X, Grid(-2, 5, 1))))
    assert (question.sensitivity().l1, question.sensitivity().l2_squared) == (3 + 15, 9 + 225)


def test_a_smaller_step_gives_a_larger_sensitivity():
    for step in (1, Fraction(1, 2), Fraction(1, 4)):
        question = Question(
            Derive(VISITS, (("x", X),)), (), ALONE, ContributionBounds(1, 1), (Sum(X, Grid(0, 8, step)),)
        )
        assert question.sensitivity().l1 == 8 / step


@pytest.mark.parametrize(("branching", "depth"), [(2, 10**12), (10**12, 10**12), (1, 65)])
def test_a_tree_that_is_too_deep_is_refused_at_once(branching, depth):
    with pytest.raises(ValueError, match="leaf for every cell"):
        HistogramTree(Column("n", Type.INTEGER), (1,), branching, depth)
