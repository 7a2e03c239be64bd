"""Public cells: they cover all values, end at round numbers, and are written exactly."""

from fractions import Fraction

import pytest

from discreet.advise.value_cells import ValueCells, ValueScale, coarse_cells, fine_cells, round_step
from discreet.policy.toml import decimal_text


@pytest.mark.parametrize("kind", ["integer", "real", "decimal", "date", "timestamp"])
def test_coarse_cells_are_the_same_for_all_data_and_increase(kind):
    edges = coarse_cells(kind).edges
    assert list(edges) == sorted(set(edges))
    assert 100 < len(edges) < 400


@pytest.mark.parametrize("kind", ["integer", "real"])
def test_ends_of_coarse_cells_are_round_and_symmetric(kind):
    edges = coarse_cells(kind).edges
    assert {-edge for edge in edges} == set(edges)
    assert {str(decimal_text(abs(edge))).strip("0.") for edge in edges if edge} == {"1", "2", "5"}


def test_dates_and_times_have_a_cell_for_each_year():
    cells = coarse_cells("timestamp")
    assert cells.scale is ValueScale.YEAR
    assert {1900, 1999, 2000, 2026, 2100} <= set(cells.edges)
    assert 'EXTRACT(YEAR FROM "seen")' in cells.count_sql("visits", "seen")


def test_fine_cells_divide_the_ends_only():
    fine = fine_cells((Fraction(10), Fraction(20)), (Fraction(500), Fraction(1000)), ValueScale.VALUE, whole=True)
    assert {10, 20, 500, 1000} <= set(fine.edges)
    assert not [edge for edge in fine.edges if 20 < edge < 500]
    assert 20 < len(fine.edges) < 45


def test_integers_are_never_divided_and_years_are_divided_into_months():
    assert fine_cells((0, 1), (5, 10), ValueScale.VALUE, whole=True).edges == (0, 1, 5, 6, 7, 8, 9, 10)
    months = fine_cells(
        (Fraction(2020), Fraction(2021)), (Fraction(2024), Fraction(2025)), ValueScale.YEAR, whole=False
    )
    assert months.scale is ValueScale.MONTH
    assert months.edges == (*range(2020 * 12, 2021 * 12 + 1), *range(2024 * 12, 2025 * 12 + 1))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (17, 90), (-3, 1e6), (1e-7, 2e-7), (2000, 2001)])
@pytest.mark.parametrize("cells", [2, 20, 200])
def test_a_round_step_is_the_smallest_that_makes_few_enough_cells(low, high, cells):
    low, high = Fraction(str(low)), Fraction(str(high))
    step = round_step(low, high, cells, whole=False)
    assert (high - low) / step <= cells < 2.5 * (high - low) / step + 1e-9
    assert decimal_text(step).strip("0.") in ("1", "2", "5")


def test_numbers_and_names_are_written_exactly():
    assert [decimal_text(Fraction(text)) for text in ("0.000001", "-2.5", "0", "5e14")] == [
        "0.000001",
        "-2.5",
        "0",
        "500000000000000",
    ]
    assert 'FROM "a ""b"""' in ValueCells((Fraction(0),)).count_sql('a "b"', "x")
