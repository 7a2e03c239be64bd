"""The scores are right on examples that a reader can check by hand."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from versus import scoring

TRUTH = {("a",): 10.0, ("b",): 30.0}


def test_the_error_is_the_root_mean_square_in_percent_of_the_mean_cell():
    assert scoring.error({("a",): (13.0, None, None), ("b",): (26.0, None, None)}, TRUTH) == pytest.approx(
        100 * (25 / 2) ** 0.5 / 20
    )


def test_a_group_that_is_not_shown_counts_as_zero_and_one_that_does_not_exist_is_ignored():
    shown = {("a",): (10.0, None, None), ("elsewhere",): (7.0, None, None)}
    assert scoring.error(shown, TRUTH) == pytest.approx(100 * (900 / 2) ** 0.5 / 20)


def test_coverage_counts_intervals_that_contain_the_truth_ends_included():
    found = scoring.intervals({("a",): (12.0, 10.0, 14.0), ("b",): (20.0, 15.0, 25.0)}, TRUTH)
    assert (found["coverage"], found["cells"]) == (0.5, 2)
    assert found["width"] == pytest.approx(100 * (4 + 10) / 2 / 20)
    # The second interval misses 30 by 5: its score is 10 + 40 * 5.
    assert found["interval_score"] == pytest.approx(100 * (4 + 210) / 2 / 20)


@pytest.mark.parametrize(("low", "high", "score"), [(9, 12, 3), (11, 13, 2 + 40), (4, 9.5, 5.5 + 20)])
def test_the_interval_score_is_the_width_and_forty_times_the_distance_of_a_miss(low, high, score):
    assert scoring.interval_score(low, high, 10) == pytest.approx(score)


def test_no_printed_interval_has_no_score():
    assert scoring.intervals({("a",): (12.0, None, None)}, TRUTH) is None
    assert scoring.intervals({}, TRUTH) is None


def tables(total, wards, months, cells):
    def priced(numbers):
        return {key: (value, None, None) for key, value in numbers.items()}

    return {
        "visits": priced({(): total}),
        "visits_by_ward": priced(wards),
        "visits_by_month": priced(months),
        "visits_by_ward_and_month": priced(cells),
    }


CELLS = {("A", "1"): 1.0, ("A", "2"): 2.0, ("B", "1"): 3.0, ("B", "2"): 4.0}


def test_tables_that_add_up_have_no_gap():
    good = tables(10, {("A",): 3, ("B",): 7}, {("1",): 4, ("2",): 6}, CELLS)
    assert scoring.largest_gap(good) == 0


@pytest.mark.parametrize(
    ("total", "wards", "months", "gap"),
    [
        (12, {("A",): 3, ("B",): 7}, {("1",): 4, ("2",): 6}, 2),
        (10, {("A",): 3, ("B",): 7}, {("1",): 4.5, ("2",): 6}, 0.5),
        (10, {("A",): -3, ("B",): 13}, {("1",): 4, ("2",): 6}, 6),
    ],
)
def test_the_largest_gap_is_between_any_total_and_the_sum_of_its_parts(total, wards, months, gap):
    assert scoring.largest_gap(tables(total, wards, months, CELLS)) == pytest.approx(gap)


def test_tables_that_are_missing_cannot_add_up():
    assert scoring.largest_gap({"visits": {(): (1.0, None, None)}}) is None


def test_the_interval_of_a_mean_is_student_s():
    mean, low, high = scoring.mean_interval([1.0, 2.0, 3.0])
    assert (mean, low, high) == pytest.approx((2, 2 - 4.30265 / 3**0.5, 2 + 4.30265 / 3**0.5), rel=1e-4)


def test_the_interval_of_a_share_is_exact_at_its_ends():
    assert scoring.share_interval(0, 10) == pytest.approx((0, 0, 1 - 0.025**0.1))
    assert scoring.share_interval(10, 10) == pytest.approx((1, 0.025**0.1, 1))
