"""Totals: what one row can contribute, and which totals are refused."""

from itertools import product

import pytest

from discreet.kernel.expr import Column, Type
from discreet.kernel.grid import Grid
from discreet.kernel.relation import MAX_SUM
from discreet.kernel.totals import (
    Count,
    CountDistinct,
    CountUnits,
    HistogramTree,
    SelectionWeight,
    Sum,
    max_abs_contribution,
)

X, N, T = Column("x", Type.REAL), Column("n", Type.INTEGER), Column("t", Type.TEXT)


@pytest.mark.parametrize("power", [1, 2])
def test_the_largest_contribution_is_that_of_some_step_and_never_below_1(power):
    """Every small grid and shift, by enumeration of all steps."""
    for low, width, shift in product(range(-4, 3), range(5), range(-7, 10)):
        total = Sum(X, Grid(low, low + width, 1), power, shift)
        rows = [abs(x**power - shift) for x in range(low, low + width + 1)]
        assert max_abs_contribution(total) == max(1, *rows), total


@pytest.mark.parametrize(
    "total",
    [Count(), Count(X), CountUnits(), CountDistinct(N), HistogramTree(N, (5, 7), 2, 1), SelectionWeight()],
    ids=lambda total: type(total).__name__,
)
def test_a_row_counts_once(total):
    assert max_abs_contribution(total) == 1


def test_a_sum_is_of_the_values_themselves_unless_a_power_or_a_shift_is_given():
    assert Sum(N, Grid(0, 9, 1)) == Sum(N, Grid(0, 9, 1), power=1, shift=0)


def test_a_power_other_than_1_or_2_is_refused():
    for power in (-1, 0, 3):
        with pytest.raises(ValueError, match="power"):
            Sum(X, Grid(0, 9, 1), power)


@pytest.mark.parametrize(("wrong", "error"), [("9", TypeError), (1.5, TypeError), (-1, ValueError)])
def test_the_largest_term_is_an_integer(wrong, error):
    assert Sum(X, Grid(0, 9, 1), max_term=9).max_term == 9
    with pytest.raises(error, match="max_term"):
        Sum(X, Grid(0, 9, 1), max_term=wrong)


@pytest.mark.parametrize("kind", [Type.TEXT, Type.DATE, Type.BOOLEAN, Type.TIMESTAMP])
def test_a_grid_needs_a_number(kind):
    with pytest.raises(ValueError, match="numeric"):
        Sum(Column("c", kind), Grid(0, 9, 1))
    with pytest.raises(ValueError, match="numeric"):
        HistogramTree(Column("c", kind), Grid(0, 9, 1), 10, 1)


def test_squares_and_shifts_stay_below_2_to_the_62():
    below = (1 << 31) - 1
    Sum(X, Grid(-below, below, 1), 2, MAX_SUM - 1)
    Sum(X, Grid(-below, below, 1), 2, 1 - MAX_SUM)
    for grid, shift in ((Grid(0, below + 1, 1), 0), (Grid(0, 1, 1), MAX_SUM), (Grid(0, 1, 1), -MAX_SUM)):
        with pytest.raises(ValueError, match="64 bits"):
            Sum(X, grid, 2, shift)


@pytest.mark.parametrize("kind", Type)
def test_distinct_values_are_counted_only_where_engines_convert_them_to_text_alike(kind):
    if kind in (Type.REAL, Type.TIMESTAMP):
        with pytest.raises(ValueError, match="distinct"):
            CountDistinct(Column("c", kind))
    else:
        CountDistinct(Column("c", kind))


def test_a_tree_has_a_cell_for_each_step_of_a_grid_or_value_of_a_list():
    grid = HistogramTree(X, Grid(-3, 8, 1), branching=3, depth=3)
    assert grid.cell_count == 12
    listed = HistogramTree(T, ("a", "b", "c"), branching=3, depth=1)
    assert listed.cell_count == 3
    single = HistogramTree(N, (7,), branching=1, depth=1)
    assert single.cell_count == 1


@pytest.mark.parametrize(
    ("expr", "domain", "branching", "depth", "error"),
    [
        (N, (), 1, 1, ValueError),
        (N, (1, 2, 1), 3, 1, ValueError),
        (N, (1, None), 2, 1, ValueError),
        (N, (1, None, 1, None), 4, 1, ValueError),
        (N, (1, "a"), 2, 1, TypeError),
        (T, (1, 2), 2, 1, TypeError),
        (N, (1, 2, 3), 2, 1, ValueError),  # fewer leaves than cells
        (X, Grid(0, 8, 1), 2, 3, ValueError),
        (X, Grid(0, 5, 1), 2, 2, ValueError),
        (N, (1,), 2, 21, ValueError),  # too many leaves
        (N, (1,), 1025, 2, ValueError),
        (N, (1,), 0, 1, ValueError),
        (N, (1,), 1, 0, ValueError),
        (N, (1,), 1.5, 1, TypeError),
        (N, (1,), 1, "1", TypeError),
    ],
)
def test_a_tree_has_a_leaf_for_each_of_its_distinct_values(expr, domain, branching, depth, error):
    with pytest.raises(error):
        HistogramTree(expr, domain, branching, depth)


def test_a_tree_has_at_most_64_levels():
    assert HistogramTree(N, (7,), branching=1, depth=64).depth == 64
    with pytest.raises(ValueError, match="depth"):
        HistogramTree(N, (7,), branching=1, depth=65)


def test_a_tree_has_up_to_2_to_the_20_leaves_and_a_cell_for_each():
    assert HistogramTree(X, Grid(0, (1 << 20) - 1, 1), branching=2, depth=20).cell_count == 1 << 20


def test_a_selection_weight_has_no_expression():
    assert SelectionWeight().expr is None
    with pytest.raises(TypeError):
        SelectionWeight(X)
