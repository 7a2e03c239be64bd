"""Norm balls: radius, steps, cut and weights, at the limits where one more or less would count."""

from math import isqrt

import pytest

from discreet.kernel.ball import Ball, Norm, ball_for
from discreet.kernel.relation import MAX_SUM

MANY = 1 << 57  # rows: so many that a norm hardly fits in 64 bits


def test_a_ball_has_steps_of_one_and_no_cut_unless_they_are_needed():
    assert Ball(Norm.L1, 5) == Ball(Norm.L1, 5, shift=0, cut=None)


@pytest.mark.parametrize("limit", [1, 2, 7, 500, (1 << 42) - 1])
def test_weights_have_20_bits_and_the_numerator_of_an_l2_weight_is_below_the_exact_root(limit):
    assert Ball(Norm.L1, limit).weight_numerator == limit * 1_048_576
    below = Ball(Norm.L2, limit).weight_numerator + 1
    assert below**2 <= limit * 1_048_576**2 < (below + 1) ** 2


@pytest.mark.parametrize(
    ("size", "groups", "limit", "shift"),
    [
        (10, 5, 50, 0),
        (5, 10, 50, 0),
        ((1 << 42) - 1, 1, (1 << 42) - 1, 0),
        (1 << 42, 1, 1 << 41, 1),
        (3, 1 << 42, 3 << 40, 2),
        ((1 << 42) + 3, 5, (5 * (1 << 42) + 15) // 8, 3),
    ],
)
def test_an_l1_radius_is_measured_in_steps_in_which_it_is_below_2_to_the_42(size, groups, limit, shift):
    ball = ball_for(Norm.L1, size, groups, max_sum=1 << 60, max_terms=1 << 60)
    assert ball == Ball(Norm.L1, limit, shift)
    assert ball.weight_numerator < MAX_SUM


@pytest.mark.parametrize(
    ("size", "groups", "max_sum", "max_terms", "ball"),
    [
        # all terms fit: the product of the largest sum and the largest term is just below 2^62
        (1 << 30, 3, (1 << 31) - 2, 2, Ball(Norm.L2, 3 << 60)),
        # one more row, and a single term might not: it is cut, at far more than the radius
        (10, 3, (1 << 31) - 1, 1, Ball(Norm.L2, 300, 0, (1 << 31) - 2)),
        (10, 3, 10**12, 10**9, Ball(Norm.L2, 300, 0, MAX_SUM // (10**12 + 10**9 + 1) - 1)),
        # coarser steps, and the coarsest that leave a limit of at least 1
        (1, 20, MANY, MANY, Ball(Norm.L2, 1, 2, 96)),
        (1, 25, MANY, MANY, Ball(Norm.L2, 1, 2, 96)),  # 96 is 16·(5 + 1): just enough
        (13, 7, MANY, MANY, Ball(Norm.L2, 1, 5, 960)),
        (1 << 40, 9, 1 << 61, 1 << 20, Ball(Norm.L2, 9 << 34, 23, (MAX_SUM // ((1 << 38) + (1 << 20) + 1) - 1) << 23)),
    ],
)
def test_an_l2_ball_has_the_smallest_steps_in_which_sums_of_squares_fit_in_64_bits(
    size, groups, max_sum, max_terms, ball
):
    assert ball_for(Norm.L2, size, groups, max_sum=max_sum, max_terms=max_terms) == ball
    assert ball.limit >= 1
    assert ball.limit << 2 * ball.shift <= groups * size**2
    largest = max_sum if ball.cut is None else ball.cut
    assert ball.cut is None or largest >= 16 * isqrt(groups * size**2)
    steps = -(-largest >> ball.shift)
    assert steps * ((max_sum >> ball.shift) + max_terms) < MAX_SUM


@pytest.mark.parametrize("groups", [1, 4, 12, 169])
def test_a_ball_whose_norm_cannot_be_measured_in_64_bits_is_refused(groups):
    """Steps as large as the radius, or a cut below 16 radii, would be needed."""
    with pytest.raises(ValueError, match="rows_max"):
        ball_for(Norm.L2, 1, groups, max_sum=MANY, max_terms=MANY)
