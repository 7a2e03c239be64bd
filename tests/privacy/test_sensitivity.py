"""The global sensitivities, compared with brute force over all neighbours."""

import math
import statistics
from fractions import Fraction

import pytest

from discreet.privacy import sensitivity

GRID = [Fraction(k, 4) for k in range(5)]
ENDS = [Fraction(-3), Fraction(0), Fraction(2)]
sizes = pytest.mark.parametrize("n", [3, 4, 5])


def mean(data):
    return Fraction(sum(data), len(data))


def variance(data):
    return mean([(x - mean(data)) ** 2 for x in data])


@sizes
def test_a_count_and_a_sum_of_bits_move_by_one(n):
    assert sensitivity.brute_force(len, [0, 1], n, neighbours="removal") == sensitivity.count() == 1
    assert sensitivity.brute_force(sum, [0, 1], n) == 1
    assert sensitivity.sum(0, 1) == sensitivity.sum(0, 1, neighbours="replacement") == 1


@sizes
def test_sums_move_by_their_bounds(n):
    assert sensitivity.brute_force(sum, ENDS, n, neighbours="removal") == sensitivity.sum(-3, 2) == 3
    assert sensitivity.brute_force(sum, ENDS, n) == sensitivity.sum(-3, 2, neighbours="replacement") == 5


@pytest.mark.long(only=["0-4"])
@sizes
@pytest.mark.parametrize("low", [0, -3])
def test_means_medians_and_variances_move_as_the_formulas_say(n, low):
    grid = GRID[:: 1 if n < 5 else 2] if low == 0 else ENDS
    high = max(grid)
    assert sensitivity.brute_force(mean, grid, n) == sensitivity.mean(low, high, n)
    assert sensitivity.brute_force(statistics.median, grid, n) == sensitivity.median(low, high, n)
    assert sensitivity.brute_force(variance, grid, n) == sensitivity.variance(low, high, n)
    assert sensitivity.brute_force(statistics.variance, grid, n) == sensitivity.variance(low, high, n, ddof=1)


@sizes
def test_the_numbers_of_the_unit_interval(n):
    assert sensitivity.mean(0, 1, n) == Fraction(1, n)
    assert sensitivity.median(0, 1, n) == (Fraction(1) if n % 2 else Fraction(1, 2))
    assert sensitivity.variance(0, 1, n) == Fraction(n - 1, n**2)
    assert sensitivity.variance(0, 1, n, ddof=1) == Fraction(1, n)


@pytest.mark.parametrize("n", [1, 2])
def test_the_smallest_data_sets(n):
    assert sensitivity.brute_force(statistics.median, GRID, n) == sensitivity.median(0, 1, n) == Fraction(1, n)
    assert sensitivity.brute_force(variance, GRID, n) == sensitivity.variance(0, 1, n)
    assert sensitivity.variance(0, math.inf, 1) == 0


def test_without_a_size_a_median_moves_by_the_whole_range():
    assert sensitivity.median(0, 1) == 1
    assert sensitivity.median(-5, "0.5") == Fraction(11, 2)


def test_a_replaced_person_moves_two_cells_of_a_histogram():
    assert sensitivity.histogram() == 1
    assert sensitivity.histogram(neighbours="replacement") == 2


def test_over_the_reals_nothing_but_a_count_is_bounded():
    assert sensitivity.sum(-math.inf, math.inf) == math.inf
    assert sensitivity.sum(0, math.inf) == sensitivity.sum(-math.inf, 0) == math.inf
    assert sensitivity.sum(0, math.inf, neighbours="replacement") == math.inf
    assert sensitivity.mean(0, math.inf, 10) == sensitivity.median(0, math.inf) == math.inf
    assert sensitivity.variance(-math.inf, 0, 10) == math.inf


def test_formulas_are_exact_fractions():
    assert sensitivity.mean(0, 0.1, 3) == Fraction(1, 30)
    assert isinstance(sensitivity.sum(0, 1.5), Fraction)
    assert sensitivity.sum(5, 5, neighbours="replacement") == 0


def test_usefulness_compares_the_noise_with_the_statistic():
    rows = {row.statistic: row for row in sensitivity.usefulness(0, 1, n=1001, epsilon="1/10")}
    assert rows["mean"].noise_share == rows["sum"].noise_share == rows["count"].noise_share == Fraction(10, 1001)
    assert rows["median"].noise_share == 10
    assert rows["variance"].sensitivity == Fraction(1000, 1001**2)
    assert [name for name, row in rows.items() if not row.is_useful] == ["median"]
    unbounded = {row.statistic: row for row in sensitivity.usefulness(0, math.inf, n=1001, epsilon="1/10")}
    assert [name for name, row in unbounded.items() if row.is_useful] == ["count"]
    assert not any(row.is_useful for row in sensitivity.usefulness(0, 1, n=10, epsilon="1/10"))


def test_wrong_bounds_and_sizes_are_refused():
    with pytest.raises(ValueError, match="high"):
        sensitivity.sum(1, 0)
    with pytest.raises(ValueError, match="low"):
        sensitivity.sum(math.nan, 0)
    with pytest.raises(ValueError, match="a finite value between"):
        sensitivity.sum(math.inf, math.inf)
    with pytest.raises(ValueError, match="n must be"):
        sensitivity.mean(0, 1, 0)
    with pytest.raises(TypeError, match="n must be"):
        sensitivity.median(0, 1, 2.5)
    with pytest.raises(ValueError, match="ddof"):
        sensitivity.variance(0, 1, 1, ddof=1)
    with pytest.raises(ValueError, match="sideways"):
        sensitivity.sum(0, 1, neighbours="sideways")
    with pytest.raises(ValueError, match="too many"):
        sensitivity.brute_force(sum, range(100), 5)
