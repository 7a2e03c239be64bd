"""Parity hashing: local hashing whose functions are linear, so that all values are tried on all reports at once.

A mask of `bits` bits makes `checks` masks, each of which says whether an even or an odd number of its bits are set in a
value, too: the value's bucket is that row of even and odd. Each set of checks is one term of Walsh and Hadamard's
transform, so a table of 2^bits numbers keeps all that reports say about values below 2^bits.
"""

from fractions import Fraction

import numpy as np

from discreet.local.schemes.walsh import odd_bits

WIDEST = 24  # bits; longer tables are better split into rows
CHECKS = 8  # at most: a report adds 2^checks terms to the table
# x^bits + … in two: by it a mask becomes the next, as its multiple by x in a field of 2^bits elements.
_TAILS = (3, 3, 3, 5, 3, 3, 27, 3, 9, 5, 9, 27, 33, 3, 43, 9, 9, 39, 9, 5, 3, 33, 27)


def masks_of(mask: np.ndarray, bits: int, checks: int) -> list[np.ndarray]:
    """Return the masks that a report's mask stands for.

    If the mask is uniform, two different values below 2^bits have the same bucket with probability 2^-checks,
    exactly: a check misses their difference d if <M^i·mask, d> = <mask, N^i·d> is even, where M multiplies by x in
    the field and N is its transpose. A sum of some of the N^i·d is p(N)·d with a polynomial p of degree below bits,
    which the field makes invertible; so it is not zero, the N^i·d are independent, and the checks are fair coins.

    >>> [int(mask[0]) for mask in masks_of(np.array([0b1001]), bits=4, checks=3)]
    [9, 1, 2]
    """
    masks, kind = [mask], mask.dtype.type
    for _ in range(checks - 1):
        top = mask >> kind(bits - 1)
        mask = (mask << kind(1)) & kind((1 << bits) - 1) ^ top * kind(_TAILS[bits - 2])
        masks.append(mask)
    return masks


def buckets_of(masks: list[np.ndarray], values: np.ndarray) -> np.ndarray:
    """Return each value's bucket by the masks of the same row: one bit a mask, the first the lowest."""
    buckets = np.zeros(len(values), np.uint8)
    for number, mask in enumerate(masks):
        buckets |= odd_bits(mask & values) << np.uint8(number)
    return buckets


def add_terms(table: np.ndarray, start: np.ndarray, masks: list[np.ndarray], buckets: np.ndarray) -> None:
    """Add reports to the tables that begin at `start`, every set of checks once; the empty set counts the people."""
    place, sign = start.copy(), np.ones(len(start), np.int64)
    np.add.at(table, place, sign)
    for number in range(1, 1 << len(masks)):
        # In Gray's order, the next set has one check more or less.
        turned = (number & -number).bit_length() - 1
        place ^= masks[turned]
        sign *= 1 - 2 * (buckets >> np.uint8(turned) & 1).astype(np.int64)
        np.add.at(table, place, sign)


def best_checks(odds: Fraction, bits: int) -> int:
    """Return how many checks give the least variance, for values that nobody or hardly anybody has.

    >>> [best_checks(Fraction(odds), bits=16) for odds in (2, 3, 8, 55)]
    [2, 2, 3, 6]
    """
    tried = range(1, min(bits, CHECKS) + 1)
    return min(tried, key=lambda checks: (odds - 1 + (1 << checks)) ** 2 / ((1 << checks) - 1))
