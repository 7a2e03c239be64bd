"""What a release lost is counted as the definitions say."""

import pyarrow as pa
import pytest

from discreet.anonymity import measure, read_hierarchy

BEFORE = pa.table(
    {
        "age": [20, 24, 30, 60, 40, 41],
        "town": ["Oslo", "Rome", "Nice", "Oslo", "Bonn", "Rome"],
        "job": ["cook", "nurse", "cook", "smith", "smith", "nurse"],
    }
)


def lost(release, quasi, **given):
    return measure(pa.table(release), quasi, original=BEFORE, **given).loss


def test_an_unchanged_table_loses_nothing():
    loss = measure(BEFORE, ["age", "town"], original=BEFORE).loss
    assert (loss.ncp, loss.suppressed, loss.discernibility, loss.average_class) == (0, 0, 6, 1)


def test_numbers_lose_the_width_of_their_range():
    loss = lost({"age": ["20-24", "20-24", "30-60", "30-60", "40-41", "40-41"]}, "age")
    assert loss.columns == pytest.approx({"age": (2 * 4 / 40 + 2 * 30 / 40 + 2 * 1 / 40) / 6})
    assert (loss.discernibility, loss.average_class) == (12, 1)


def test_a_range_is_as_wide_as_the_original_values_in_it():
    assert lost({"age": ["0-29"] * 2 + ["*"] * 4}, "age").ncp == pytest.approx((2 * 4 / 40 + 4) / 6)


def test_categories_lose_the_share_of_values_in_their_set():
    loss = lost({"town": ["{Oslo, Rome}"] * 2 + ["Nice", "Oslo", "*", "*"]}, "town")
    assert loss.ncp == pytest.approx((2 * 2 / 4 + 0 + 0 + 2) / 6)


def test_labels_of_a_hierarchy_lose_the_share_of_its_leaves():
    tree = read_hierarchy("Oslo;North;*\nBonn;North;*\nNice;South;*\nRome;South;*\nPisa;South;*")
    loss = lost({"town": ["North", "South", "South", "North", "Bonn", "*"]}, "town", hierarchies={"town": tree})
    assert loss.ncp == pytest.approx((2 / 5 + 3 / 5 + 3 / 5 + 2 / 5 + 0 + 1) / 6)


def test_suppressed_rows_lose_everything():
    loss = lost({"age": [20, 24, 30, 60], "town": ["*"] * 4}, ["age", "town"])
    assert loss.suppressed == 2
    assert loss.columns == pytest.approx({"age": 2 / 6, "town": 1})
    assert loss.ncp == pytest.approx((2 / 6 + 1) / 2)
    assert loss.discernibility == 4 + 2 * 6


def test_null_among_numbers_may_be_anything():
    before = pa.table({"a": [1, 2, 3, None]})
    assert measure(pa.table({"a": ["*", "*", "1-3", None]}), "a", original=before).loss.ncp == pytest.approx(3 / 4)
    assert measure(pa.table({"a": ["{3, null}", "2", "2-3", "1"]}), "a", original=before).loss.ncp == pytest.approx(
        1.5 / 4
    )


def test_a_label_used_twice_counts_as_the_larger():
    tree = read_hierarchy("Oslo;X;Y;*\nRome;X;Y;*\nNice;Z;X;*\nBonn;B;B;*")
    loss = lost({"town": ["X", "X", "X", "X", "Bonn", "X"]}, "town", hierarchies={"town": tree})
    assert loss.ncp == pytest.approx(5 * 2 / 4 / 6)


def test_a_constant_column_and_an_infinite_one_have_no_width_to_lose():
    before = pa.table({"a": [5, 5], "b": [float("inf"), 1.0]})
    loss = measure(pa.table({"a": ["*", "*"], "b": [1.0, float("inf")]}), ["a", "b"], original=before).loss
    assert loss.ncp == 0


def test_the_loss_is_reported():
    risk = measure(pa.table({"age": ["20-60"] * 5}), "age", original=BEFORE)
    assert "information loss (NCP): 100 %, 1 row suppressed" in str(risk)
