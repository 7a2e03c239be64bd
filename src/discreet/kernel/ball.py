"""Norm balls: a unit's terms of a total, one integer per group, are scaled down together until their norm fits."""

from dataclasses import dataclass
from enum import Enum
from math import isqrt

from discreet.kernel.relation import MAX_SUM

WEIGHT_BITS = 20  # weights of clipped units are multiples of 2^-20
_MAX_LIMIT_BITS = 42  # of an l1 radius, which is multiplied by 2^20
_CUT_RADII = 16  # a single term is first cut to this many radii, if the sum of squares could otherwise be too large


class Norm(Enum):
    """The norm that the noise needs: l1 for Laplace, l2 for Gaussian."""

    L1 = "l1"
    L2 = "l2"


@dataclass(frozen=True)
class Ball:
    """A ball for the terms of a unit: the sum of |y| (l1) or of y² (l2) is at most `limit`.

    y is a term in steps of 2^shift, rounded away from zero. Terms are cut to `cut` first; None if none can be larger.
    """

    norm: Norm
    limit: int
    shift: int = 0
    cut: int | None = None

    @property
    def weight_numerator(self) -> int:
        """The weight of a unit with a sum N above the limit is the floor of this over N (l1) or over sqrt(N) (l2).

        Claim: for a sum N > limit this weight is below 2^20, and scales the terms into the ball: multiplied by the
            weight and divided by 2^20, their l1 norm is at most limit·2^shift, or their squared l2 norm at most
            limit·4^shift. A term times the weight is at most 2^20 times the radius.
        Proof: the l1 norm of the terms is at most N·2^shift, the squared l2 norm at most N·4^shift, as y is rounded
            away from zero. l1: weight <= limit·2^20/N exactly, in integers. l2: with K = isqrt(limit·4^20) < 2^52 the
            quotient of the doubles K - 1 and sqrt(N) is at most (K-1)/sqrt(N)·(1+2^-51) <= K/sqrt(N), as conversion,
            root and quotient are rounded correctly (IEEE 754) with a relative error of 2^-53 each, and K·2^-51 <= 1. So
            weight² <= limit·4^20/N. One term alone is at most its norm.
        Needs: ball_for.
        Checked by: test_a_clipped_vector_is_in_the_ball, test_a_weight_above_the_exact_quotient_is_caught
        """
        return self.limit << WEIGHT_BITS if self.norm is Norm.L1 else isqrt(self.limit << 2 * WEIGHT_BITS) - 1


def ball_for(norm: Norm, size: int, groups: int, *, max_sum: int, max_terms: int) -> Ball:
    """Return the ball with a radius of groups·size (l1) or sqrt(groups)·size (l2).

    `max_sum` bounds the sum of a unit's absolute terms, `max_terms` their number.

    Claim: limit·4^shift is at most groups·size² (l2), limit·2^shift at most groups·size, limit below 2^42 (l1); each
        sum of |y| or y² is below 2^63, and no cut is below the radius.
    Proof: l2: y < |x|/2^shift + 1, so the sum of |y| is at most D = floor(max_sum/2^shift) + max_terms + 1, and y is at
        most cut/2^shift + 1 = floor(2^62/D); the sum of y² is at most the product of both. l1: without a shift the sum
        is at most max_sum, with one at most max_sum/2 + max_terms, and both numbers are below 2^62.
    Needs: nothing.
    Checked by: test_a_clipped_vector_is_in_the_ball, test_no_intermediate_value_exceeds_64_bits

    >>> ball_for(Norm.L2, size=10, groups=5, max_sum=10**9, max_terms=10**9)
    Ball(norm=<Norm.L2: 'l2'>, limit=500, shift=0, cut=None)
    """
    if norm is Norm.L1:
        shift = max(0, (groups * size).bit_length() - _MAX_LIMIT_BITS)
        return Ball(norm, groups * size >> shift, shift)
    square = groups * size**2
    enough = min(max_sum, _CUT_RADII * (isqrt(square) + 1))
    for shift in range((square.bit_length() + 1) // 2):
        cut = (MAX_SUM // ((max_sum >> shift) + max_terms + 1) - 1) << shift
        if cut >= enough:
            limit = min(square >> 2 * shift, MAX_SUM)  # no sum exceeds that
            return Ball(norm, limit, shift, None if cut >= max_sum else cut)
    raise ValueError("a unit can have too many groups to measure its norm in 64 bits. Use a lower rows_max.")
