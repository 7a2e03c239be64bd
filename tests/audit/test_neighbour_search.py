"""The search for bad neighbours finds what is wrong in one place only, and leaves what is sound alone."""

import sys
from pathlib import Path

import numpy as np
import pytest

from discreet import audit

sys.path.insert(0, str(Path(__file__).parents[1] / "broken"))
import audited


def worst_of(broken, **more):
    mechanism = broken(np.random.default_rng(0))
    with np.errstate(all="ignore"):
        return audit.search(mechanism, audit.edge_case_neighbours(0, 10), 1, 800, tries=75, random_state=0, **more)


@pytest.mark.long
def test_a_failure_on_empty_data_only_is_found():
    result = worst_of(audited.silent_when_empty)
    assert not result.holds
    assert len(result.details["D2"]) == 0


@pytest.mark.long
def test_a_failure_at_a_bound_only_is_found():
    result = worst_of(audited.exact_at_the_bound)
    assert not result.holds
    assert result.details["D"][-1] == audited.HIGH


@pytest.mark.long
def test_a_failure_for_nan_only_is_found():
    result = worst_of(audited.spoiled_by_nan)
    assert not result.holds
    assert np.isnan(result.details["D"][-1])


@pytest.mark.long
def test_a_failure_for_values_beyond_all_bounds_is_found():
    result = worst_of(audited.spoiled_by_the_huge)
    assert not result.holds
    assert result.details["D"][-1] > audited.HIGH


@pytest.mark.long
def test_a_sound_sum_is_not_refuted():
    result = worst_of(audited.sound_sum, confidence=1 - 1e-9)
    assert result.holds
    assert result.details["pairs tried"] == 75


def test_a_function_that_makes_neighbours_is_enough():
    def one_more(rng):
        rows = rng.uniform(0, 10, rng.integers(0, 3))
        return np.append(rows, 10.0), rows

    mechanism = audited.exact_at_the_bound(np.random.default_rng(0))
    result = audit.search(mechanism, one_more, 1, 500, tries=4, random_state=1)
    assert not result.holds


def test_the_search_reports_its_progress():
    said = []
    audit.search(
        lambda rows: 0, [([1], []), ([2], [])], 1, 200, progress=lambda *done: said.append(done), random_state=0
    )
    assert said[:2] == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("neighbours", "message"),
    [
        ([], "neighbours must not be empty"),
        ([3], "neighbours must be a list of pairs"),
        (3, "neighbours must be a list of pairs"),
        ("pairs", "neighbours must be a list of pairs"),
        (lambda rng: 3, r"must return a pair \(D, D2\), not int"),
    ],
)
def test_pairs_that_are_not_neighbours_are_refused(neighbours, message):
    with pytest.raises((TypeError, ValueError), match=message):
        audit.search(lambda rows: 0, neighbours, 1, 200)


def test_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(ValueError, match="low must be below high"):
        audit.edge_case_neighbours(1, 1)


def test_nearby_data_sets_differ_in_one_row():
    rng = np.random.default_rng(0)
    for each in audit.edge_case_neighbours(-1, 1, rows=4):
        first, second = each(rng) if callable(each) else each
        assert np.array_equal(first[:-1], second, equal_nan=True)


@pytest.mark.long
def test_the_worst_pair_is_summarised():
    result = worst_of(audited.exact_at_the_bound)
    said = dict(result.summary_rows())["worst pair"]
    assert said.startswith("D = array([")
    assert ", D2 = array([" in said
    crowd = np.arange(1000.0)
    told = audit.search(len, [(np.append(crowd, 7.5), crowd)], 1, 200, random_state=0)
    said = dict(told.summary_rows())["worst pair"]
    assert len(said) < 160
    assert "7.5" in said


def test_pairs_on_which_every_run_fails_are_not_taken_for_the_worst():
    def fails_on_nothing(rows):
        return rng.integers(3) / (len(rows) > 1)

    rng = np.random.default_rng(0)
    pairs = [([1], []), ([1, 2, 3], [1, 2]), ([1], [])]
    with np.errstate(divide="raise", invalid="raise"):
        result = audit.search(fails_on_nothing, pairs, 1, 200, random_state=0, confidence=1 - 1e-9)
    assert result.details["D2"] == [1, 2]
