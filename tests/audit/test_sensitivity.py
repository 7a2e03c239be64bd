"""Sensitivities by trying."""

import math

import numpy as np
import pytest

from discreet import audit


def test_a_bound_of_two_derived_by_hand_is_really_the_root_of_four_and_a_half():
    # "Each of two means moves by 1 and each of two spreads by 1/2, so l2 is at most 2": but a point of weight 1/2 in
    # both clusters moves four cross terms too.
    def statistic(rows):
        z = np.asarray(rows)
        parts = [np.ones_like(z), z, z * z - 0.5, math.sqrt(2) * z * np.abs(z) + 0 * z]
        return [math.sqrt(0.9) * part.sum() for part in parts[:2]] + [part.sum() for part in parts[2:]]

    moved = audit.sensitivity(statistic, lambda rng: ([float(rng.choice([-1, 0, 1]))], []), tries=200, random_state=0)
    assert moved.l2 > 2
    assert moved.l2**2 == pytest.approx(0.9 + 0.9 + 0.25 + 2)


def test_the_farthest_pair_is_kept():
    pairs = [([1.0], []), ([5.0, 1.0], [1.0]), ([2.0], [])]
    moved = audit.sensitivity(lambda rows: [sum(rows), -sum(rows)], pairs)
    assert (moved.l1, moved.l2) == (10.0, pytest.approx(math.sqrt(50)))
    assert moved.worst_l1 == pairs[1] == moved.worst_l2
    assert "l1 at least 10" in str(moved)


def test_not_a_number_is_beyond_every_bound():
    pairs = [([1.0], []), ([math.nan], []), ([2.0], [])]
    moved = audit.sensitivity(lambda rows: sum(rows), pairs)
    assert moved.l1 == math.inf
    assert moved.worst_l1 is not pairs[2]


def test_clipped_statistics_stay_within_their_bound_on_every_neighbour():
    def clipped(rows):
        return np.clip(np.nan_to_num(rows), 0, 10).sum()

    moved = audit.sensitivity(clipped, audit.nearby(0, 10), tries=2000, random_state=0)
    assert moved.l1 == pytest.approx(10)
    assert moved.pairs == 2000


def test_a_statistic_whose_size_tells_of_the_data_is_refused():
    with pytest.raises(ValueError, match="size must not depend"):
        audit.sensitivity(lambda rows: rows, [([1.0], [])])


def test_nothing_to_try_is_refused():
    with pytest.raises(ValueError, match="neighbours must not be empty"):
        audit.sensitivity(len, [])
