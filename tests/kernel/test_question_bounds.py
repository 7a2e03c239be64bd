"""Contribution bounds of questions: exact values for each kind of total, and the largest numbers that are accepted."""

from math import isqrt

import pytest

from discreet.kernel.ball import Ball, Norm, ball_for
from discreet.kernel.expr import Column, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import EachRow, JoinKind, JoinPublic, PerUnit, PublicTable, Scan, UnitKey
from discreet.kernel.totals import Count, CountDistinct, CountUnits, HistogramTree, SelectionWeight, Sum

INT = Type.INTEGER
USER, PLACE, OTHER = Column("user", INT), Column("place", INT), Column("other", INT)


def scan(max_rows=10_000, owner=UnitKey((USER,))):  # noqa: B008
    return Scan("visits", (USER, PLACE), owner, max_rows=max_rows)


def three_times(relation, column):
    return JoinPublic(relation, PublicTable("public", ((column.name, column),)), (), None, JoinKind.INNER, fanout=3)


VISITS, EVENTS = scan(), scan(owner=EachRow())
UNITS = PerUnit(VISITS, (), ())  # one row per unit
THREE, EVENTS_THREE_TIMES = three_times(UNITS, PLACE), three_times(EVENTS, OTHER)
ALONE, TWO, NINE, SELECTED = (
    PublicGroups(()),
    PublicGroups(((0, 1),)),
    PublicGroups((tuple(range(9)),)),
    SelectedGroups(5),
)
L1, L2 = Norm.L1, Norm.L2
SUM = Sum(PLACE, Grid(-3, 7, 1))
TREE = HistogramTree(PLACE, (0, 1, 2, 3), branching=2, depth=2)
ONE = 1 << 20  # with all fractional bits


def ask(relation, groups, bounds, total=Count()):  # noqa: B008
    by = () if groups is ALONE else (("place", PLACE),)
    first = (SelectionWeight(),) if isinstance(groups, SelectedGroups) else ()
    others = () if isinstance(total, SelectionWeight) else (total,)
    return Question(relation, by, groups, ContributionBounds(*bounds), first + others)


@pytest.mark.parametrize(
    ("relation", "groups", "bounds", "expected"),
    [
        (VISITS, SELECTED, (2, 4), (True, None, True, 2, 4)),
        (VISITS, NINE, (2, 4), (True, 9, True, 2, 4)),
        (VISITS, TWO, (2, 4), (True, 2, False, 2, 4)),
        (VISITS, TWO, (5, 4), (True, 2, False, 2, 4)),
        (VISITS, ALONE, (5, 4), (True, 1, False, 1, 4)),
        (scan(max_rows=3), SELECTED, (2, 4), (True, None, True, 2, 3)),
        (THREE, SELECTED, (2, 4), (True, 3, True, 2, 3)),
        (THREE, SELECTED, (3, 2), (True, 3, False, 3, 2)),
        (THREE, TWO, (5, 9), (True, 2, False, 2, 3)),
        (THREE, NINE, (5, 9), (True, 3, False, 3, 3)),
        (UNITS, ALONE, (2, 4), (False, 1, False, 1, 1)),
        (EVENTS, SELECTED, (2, 4), (False, 1, False, 1, 1)),
        (EVENTS_THREE_TIMES, NINE, (2, 4), (False, 3, False, 3, 3)),
    ],
)
def test_the_rows_and_groups_of_a_unit_are_limited_by_the_bounds_the_relation_and_the_keys(
    relation, groups, bounds, expected
):
    q = ask(relation, groups, bounds)
    found = (q.needs_clipping, q.max_groups_per_unit, q.needs_l0_clipping, q.l0_bound, q.max_rows_per_group)
    assert found == expected


@pytest.mark.parametrize(
    ("relation", "max_groups", "keys"), [(VISITS, 5, 5), (THREE, 5, 3), (THREE, 2, 2), (EVENTS, 5, 1)]
)
def test_a_unit_counts_in_partition_selection_with_as_many_keys_as_it_can_have(relation, max_groups, keys):
    assert ask(relation, SelectedGroups(max_groups), (2, 4)).max_selection_keys == keys


@pytest.mark.parametrize(
    ("relation", "groups", "bounds", "total", "terms", "l1", "l2_squared"),
    # terms: whether they are capped, the largest, whether a ball is needed, bits before and after weighting
    [
        (VISITS, NINE, (2, 4, L1), Count(), (False, 4, True, 0, 20), 8 * ONE, (8 * ONE) ** 2),
        (VISITS, NINE, (2, 4, L2), Count(), (False, 4, True, 0, 20), isqrt(2 * 9 * (4 * ONE) ** 2), 32 * ONE**2),
        (VISITS, NINE, (2, 4, L1, True), Count(), (True, 4, True, 0, 20), 8 * ONE, (8 * ONE) ** 2),
        (VISITS, NINE, (2, 4, L1), SUM, (False, 28, True, 0, 20), 56 * ONE, (56 * ONE) ** 2),
        (VISITS, NINE, (2, 4, L1, True), SUM, (True, 28, True, 20, 20), 56 * ONE, (56 * ONE) ** 2),
        (
            VISITS,
            NINE,
            (2, 4, L2, True),
            SUM,
            (True, 28, True, 20, 20),
            isqrt(18 * (28 * ONE) ** 2),
            2 * (28 * ONE) ** 2,
        ),
        (VISITS, NINE, (2, 4, L1), CountUnits(), (True, 1, True, 0, 20), 2 * ONE, 4 * ONE**2),
        (VISITS, NINE, (2, 4, L1), CountDistinct(PLACE), (True, 4, False, 0, 0), 8, 32),
        (VISITS, NINE, (2, 4, L2), CountDistinct(PLACE), (True, 4, False, 0, 0), 8, 32),
        (VISITS, NINE, (2, 4, L1), TREE, (True, 4, False, 0, 20), 16 * ONE, 64 * ONE**2),
        (VISITS, NINE, (2, 4, L2), TREE, (True, 4, False, 0, 20), 16 * ONE, 64 * ONE**2),
        (VISITS, TWO, (2, 4, L1, True), Count(), (True, 4, False, 0, 0), 8, 32),
        (VISITS, TWO, (2, 4, L1, True), SUM, (True, 28, False, 0, 0), 56, 2 * 28**2),
        (VISITS, TWO, (2, 4, L1), Count(), (False, 4, True, 0, 20), 8 * ONE, (8 * ONE) ** 2),
        (VISITS, TWO, (2, 4, L1), CountUnits(), (True, 1, False, 0, 0), 2, 2),
        (VISITS, ALONE, (2, 4, L1), Count(), (False, 4, False, 0, 0), 4, 16),
        (VISITS, ALONE, (2, 4, L2), SUM, (False, 28, False, 0, 0), 28, 28**2),
        (VISITS, SELECTED, (2, 4, L1), SelectionWeight(), (True, 1, False, 0, 20), isqrt(5 * ONE**2), ONE**2),
        (THREE, SELECTED, (2, 4, L1), SelectionWeight(), (True, 1, False, 0, 20), isqrt(3 * ONE**2), ONE**2),
        (THREE, SELECTED, (2, 4, L1), Count(), (False, 3, True, 0, 20), 6 * ONE, (6 * ONE) ** 2),
        (THREE, NINE, (5, 4, L2), SUM, (False, 21, True, 0, 20), 63 * ONE, 3 * (21 * ONE) ** 2),
        (THREE, NINE, (5, 4, L2, True), SUM, (True, 21, False, 0, 0), 63, 3 * 21**2),
        (UNITS, ALONE, (2, 4, L1), Count(), (False, 1, False, 0, 0), 1, 1),
        (EVENTS, SELECTED, (2, 4, L1), SelectionWeight(), (True, 1, False, 0, 0), 1, 1),
        (EVENTS, SELECTED, (2, 4, L1), TREE, (True, 1, False, 0, 0), 2, 2),
        (EVENTS, NINE, (2, 4, L1), SUM, (False, 7, False, 0, 0), 7, 49),
        (EVENTS_THREE_TIMES, NINE, (2, 4, L1), SUM, (False, 21, False, 0, 0), 21, 441),
        (EVENTS_THREE_TIMES, NINE, (2, 4, L1, True), SUM, (True, 21, False, 0, 0), 21, 441),
    ],
)
def test_each_kind_of_total_has_its_terms_and_its_sensitivity(relation, groups, bounds, total, terms, l1, l2_squared):  # noqa: PLR0917
    q = ask(relation, groups, bounds, total)
    found = (q.caps_terms(total), q.max_term(total), q.needs_ball(total), q.term_bits(total), q.fraction_bits(total))
    assert found == terms
    assert (q.sensitivity_of(total).l1, q.sensitivity_of(total).l2_squared) == (l1, l2_squared)
    assert (q.ball_of(total) is not None) == q.needs_ball(total)


def test_sensitivities_of_several_totals_add_up():
    q = Question(VISITS, (), ALONE, ContributionBounds(1, 4), (Count(), SUM, CountUnits()))
    assert (q.sensitivity().l1, q.sensitivity().l2_squared) == (4 + 28 + 1, 16 + 784 + 1)


def test_the_ball_of_a_total_is_that_of_its_largest_terms_and_sums():
    assert ask(VISITS, NINE, (2, 4, L1)).ball_of(Count()) == Ball(L1, 8)
    assert ask(VISITS, TWO, (5, 4, L2)).ball_of(Count()) == Ball(L2, 32)  # only two groups exist
    for groups, max_terms in ((NINE, 9), (SELECTED, 10_000)):
        ball = ball_for(L2, 28, 2, max_sum=70_000, max_terms=max_terms)
        assert ask(VISITS, groups, (2, 4, L2), SUM).ball_of(SUM) == ball
        rows = ball_for(L2, 4, 2, max_sum=10_000, max_terms=max_terms)  # a mean weighs units by their row counts
        assert rows != ball
        assert ask(VISITS, groups, (2, 4, L2, True), SUM).ball_of(SUM) == rows


def test_a_question_whose_ball_cannot_be_measured_is_refused():
    with pytest.raises(ValueError, match="norm"):
        ask(scan(1 << 57), SELECTED, (12, 1, L2))
    ask(scan(1 << 57), SELECTED, (12, 1, L1))


def wide(top):
    return Sum(PLACE, Grid(0, top, 1))


@pytest.mark.parametrize(
    ("max_rows", "groups", "accepted", "refused"),
    [
        # all rows, times the rows of a unit or the largest value
        (1 << 40, ALONE, ((1, (1 << 22) - 1), Count()), ((1, 1 << 22), Count())),
        (1 << 40, ALONE, ((1, 1), wide((1 << 22) - 1)), ((1, 1), wide(1 << 22))),
        # the term of a unit, which may take up the whole radius unless it is capped
        (9, ALONE, ((1, 8), wide(1 << 39)), ((1, 9), wide(1 << 39))),
        (9, ALONE, ((1, 8), wide(1 << 39)), ((1, 8), wide((1 << 39) + 1))),
        (9, NINE, ((8, 1), wide(1 << 39)), ((9, 1), wide(1 << 39))),
        (9, NINE, ((9, 8, L1, True), wide(1 << 39)), ((9, 9, L1, True), wide(1 << 39))),
        (9, NINE, ((1 << 42, 1), CountUnits()), ((1 << 42, 2), Count())),
    ],
)
def test_the_largest_sums_that_fit_in_64_bits_are_accepted_and_no_larger_ones(max_rows, groups, accepted, refused):
    ask(scan(max_rows), groups, *accepted)
    with pytest.raises(ValueError, match="64 bits"):
        ask(scan(max_rows), groups, *refused)


def test_fractional_bits_are_what_64_bits_leave():
    def bits(max_rows, top, bounds=(2, 1)):
        return ask(scan(max_rows), NINE, bounds, wide(top)).fraction_bits(wide(top))

    assert [bits(1 << 21, 1 << 20), bits(1 << 22, 1 << 20), bits(1 << 40, 1 << 20)] == [20, 19, 1]  # all rows
    assert bits((1 << 31) + 1, (1 << 31) - 1) == 0  # the largest product below 2^62
    assert [bits(10, 1 << 21), bits(10, (1 << 21) + 1), bits(10, 1 << 39)] == [20, 19, 2]  # a term of two groups
    assert [bits(10, 1 << 22, (2, 1, L1, True)), bits(10, (1 << 22) + 1, (2, 1, L1, True))] == [20, 19]  # of one


def test_bounds_are_for_laplace_noise_and_without_a_cap_unless_they_say_so():
    assert ContributionBounds(2, 3) == ContributionBounds(2, 3, Norm.L1, cap_rows=False)
    assert ContributionBounds(1 << 42, 1 << 42).rows == 1 << 42
    for bad in ({"norm": "l1"}, {"norm": None}, {"cap_rows": 1}, {"cap_rows": None}):
        with pytest.raises(TypeError, match=next(iter(bad))):
            ContributionBounds(1, 1, **bad)


def test_listed_keys_are_all_combinations_and_at_most_a_million():
    assert [PublicGroups(d).key_count for d in ((), ((1,),), ((1, 2), (1, 2, 3)))] == [1, 1, 6]
    assert PublicGroups((tuple(range(1000)),) * 2).key_count == 1_000_000
    with pytest.raises(ValueError, match="domains"):
        PublicGroups((tuple(range(101)), tuple(range(9901))))  # one more
    for domains in (((1,), (1, 1)), ((1,), ()), ((1, 1), (1,))):
        with pytest.raises(ValueError, match="domains"):
            PublicGroups(domains)


def test_a_question_has_up_to_200_totals_and_a_later_round_of_selection_only_the_weight():
    bounds = ContributionBounds(1, 1)
    by = (("place", PLACE),)
    assert len(Question(VISITS, (), ALONE, bounds, (Count(),) * 200).totals) == 200
    with pytest.raises(ValueError, match="totals"):
        Question(VISITS, (), ALONE, bounds, (Count(),) * 201)
    later = Question(VISITS, by, SelectedGroups(3, ((1,),)), bounds, (SelectionWeight(),))
    assert later.max_selection_keys == 3
    Question(VISITS, by, SelectedGroups(3), bounds, (SelectionWeight(), Count(), SUM))
    Question(VISITS, by, TWO, bounds, (Count(), SUM, TREE))


def test_a_question_takes_only_totals_of_columns_that_exist_and_a_weight_only_with_a_key():
    bounds = ContributionBounds(1, 1)
    for totals, error in ((("count",), TypeError), ((Count(OTHER),), ValueError)):
        with pytest.raises(error, match=r"totals|other"):
            Question(VISITS, (), ALONE, bounds, totals)
    with pytest.raises(ValueError, match="key"):
        Question(VISITS, (), SELECTED, bounds, (SelectionWeight(),))
