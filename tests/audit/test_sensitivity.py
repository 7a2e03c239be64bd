"""Sensitivities by trying."""

import math

import numpy as np
import pytest

from discreet import audit


def test_a_bound_of_two_derived_by_hand_is_really_the_root_of_four_and_a_half():
    # A point that is whitened and clipped to length r = sqrt(2), whose outer product with itself is released beside it
    # and beside its weight. "The weight moves by 1, the point by sqrt(2), and the outer product by 1 after division by
    # r²: 2 in all." But what is divided by r² has its trace left in: the diagonal is counted twice.
    def statistic(rows):
        points = np.reshape(rows, (-1, 2))
        outer = points.T @ points / 2
        return [len(points), *points.sum(axis=0), *outer.ravel(), np.trace(outer) / math.sqrt(2)]

    def one_point(rng):
        angle = rng.uniform(0, 2 * math.pi)
        return [[math.sqrt(2) * math.cos(angle), math.sqrt(2) * math.sin(angle)]], []

    moved = audit.sensitivity(statistic, one_point, tries=200, random_state=0)
    assert moved.l2 > 2
    assert moved.l2**2 == pytest.approx(4.5)


def test_the_farthest_pair_is_kept():
    pairs = [([1.0], []), ([5.0, 1.0], [1.0]), ([2.0], [])]
    moved = audit.sensitivity(lambda rows: [sum(rows), -sum(rows)], pairs)
    assert (moved.l1, moved.l2) == (10.0, pytest.approx(math.sqrt(50)))
    assert moved.worst_l1 == pairs[1] == moved.worst_l2
    assert "l1 at least 10" in str(moved)


def test_not_a_number_is_beyond_every_bound():
    pairs = [([1.0], []), ([math.nan], []), ([2.0], [])]
    moved = audit.sensitivity(sum, pairs)
    assert moved.l1 == math.inf
    assert moved.worst_l1 is not pairs[2]


def test_clipped_statistics_stay_within_their_bound_on_every_neighbour():
    def clipped(rows):
        return np.clip(np.nan_to_num(rows), 0, 10).sum()

    moved = audit.sensitivity(clipped, audit.edge_case_neighbours(0, 10), tries=2000, random_state=0)
    assert moved.l1 == pytest.approx(10)
    assert moved.pairs == 2000


def test_a_statistic_whose_size_depends_on_the_data_is_refused():
    with pytest.raises(ValueError, match="must not depend on the data"):
        audit.sensitivity(lambda rows: rows, [([1.0], [])])


def test_nothing_to_try_is_refused():
    with pytest.raises(ValueError, match="neighbours must not be empty"):
        audit.sensitivity(len, [])


@pytest.mark.parametrize(
    ("statistic", "message"), [(3, "statistic must be a function"), (lambda rows: "many", "must return numbers")]
)
def test_a_value_that_is_not_a_statistic_is_refused(statistic, message):
    with pytest.raises(TypeError, match=message):
        audit.sensitivity(statistic, [([1.0], [])])
