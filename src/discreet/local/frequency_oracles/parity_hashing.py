"""Local hashing with linear functions, aggregated for all values at once by one transform.

A mask of `bits` bits makes `checks` masks, each of which says whether an even or an odd number of its bits are set in a
value, too: the value's bucket is that row of even and odd. Each set of checks is one term of Walsh and Hadamard's
transform, so a table of 2^bits numbers keeps all that reports say about values below 2^bits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from discreet.kernel.noise.bernoulli import bernoulli_bits, uniform_integers
from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number
from discreet.local.domain import Domain
from discreet.local.estimation import debias_shares, smallest_uint
from discreet.local.frequency_oracles.hadamard_response import bit_parity, walsh_hadamard
from discreet.local.oracle import Oracle, parse_epsilon

MAX_POSITION_BITS = 24  # bits; longer tables are better split into rows
MAX_CHECKS = 8  # at most: a report adds 2^checks terms to the table
# x^bits + … in two: by it a mask becomes the next, as its multiple by x in a field of 2^bits elements.
_FIELD_POLYNOMIALS = (3, 3, 3, 5, 3, 3, 27, 3, 9, 5, 9, 27, 33, 3, 43, 9, 9, 39, 9, 5, 3, 33, 27)


def expand_mask(mask: np.ndarray, bits: int, checks: int) -> list[np.ndarray]:
    """Return the masks that a report's mask stands for.

    If the mask is uniform, two different values below 2^bits have the same bucket with probability 2^-checks,
    exactly: a check misses their difference d if <M^i·mask, d> = <mask, N^i·d> is even, where M multiplies by x in
    the field and N is its transpose. A sum of some of the N^i·d is p(N)·d with a polynomial p of degree below bits,
    which the field makes invertible; so it is not zero, the N^i·d are independent, and the checks are fair coins.

    >>> [int(mask[0]) for mask in expand_mask(np.array([0b1001]), bits=4, checks=3)]
    [9, 1, 2]
    """
    masks, kind = [mask], mask.dtype.type
    for _ in range(checks - 1):
        top = mask >> kind(bits - 1)
        mask = (mask << kind(1)) & kind((1 << bits) - 1) ^ top * kind(_FIELD_POLYNOMIALS[bits - 2])
        masks.append(mask)
    return masks


def parity_buckets(masks: list[np.ndarray], values: np.ndarray) -> np.ndarray:
    """Return each value's bucket by the masks of the same row: one bit a mask, the first the lowest."""
    buckets = np.zeros(len(values), np.uint8)
    for number, mask in enumerate(masks):
        buckets |= bit_parity(mask & values) << np.uint8(number)
    return buckets


def add_terms(table: np.ndarray, start: np.ndarray, masks: list[np.ndarray], buckets: np.ndarray) -> None:
    """Add reports to the tables that begin at `start`, every set of checks once; the empty set counts the people."""
    position, sign = start.copy(), np.ones(len(start), np.int64)
    np.add.at(table, position, sign)
    for number in range(1, 1 << len(masks)):
        # In Gray's order, the next set has one check more or less.
        flipped_check = (number & -number).bit_length() - 1
        position ^= masks[flipped_check]
        sign *= 1 - 2 * (buckets >> np.uint8(flipped_check) & 1).astype(np.int64)
        np.add.at(table, position, sign)


def best_checks(odds: Fraction, bits: int) -> int:
    """Return how many checks give the least variance, for values that nobody or hardly anybody has.

    >>> [best_checks(Fraction(odds), bits=16) for odds in (2, 3, 8, 55)]
    [2, 2, 3, 6]
    """
    tried = range(1, min(bits, MAX_CHECKS) + 1)
    return min(tried, key=lambda checks: (odds - 1 + (1 << checks)) ** 2 / ((1 << checks) - 1))


_BLOCK_SIZE = 1 << 16
_MAX_OUTCOMES = 1 << 16


def ParityHashing(domain: int | Sequence[Any], epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return local hashing with linear functions: best for thousands or millions of values.

    A person draws a mask, which sorts the domain into a power of two of buckets, and reports the bucket of the value
    through generalised randomized response. One transform of all reports tries every value on every report.

    >>> import discreet as dc
    >>> survey = dc.local.ParityHashing(100_000, epsilon=2)
    >>> shares, margins = survey.estimate(survey.perturb([7] * 600 + [8] * 400))
    >>> bool(abs(shares[7] - 0.6) < 4 * margins[7])
    True
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    values = Domain.from_values(domain)
    candidates = (
        ParityHashingScheme(values.size, odds, checks)
        for checks in range(1, min(code_bits(values.size), MAX_CHECKS) + 1)
    )
    return Oracle(values, exact_epsilon, min(candidates, key=lambda scheme: scheme.variance))


def code_bits(size: int) -> int:
    """Return how many bits a place has; never one alone, as fields begin with two."""
    return max(2, (size - 1).bit_length())


@dataclass(frozen=True)
class ParityHashingScheme:
    """A place's bucket by a mask: `checks` bits, each the parity of those that one of the mask's multiples picks."""

    size: int
    odds: Fraction
    checks: int

    @property
    def name(self) -> str:
        """The protocol, and what a reader must know of it."""
        return f"parity hashing, {self.checks} checks"

    @property
    def bits(self) -> int:
        """How many bits a place has, and a mask."""
        return code_bits(self.size)

    @property
    def mask_count(self) -> int:
        """How many masks there are: 0, by which all values have the same bucket, is none."""
        return (1 << self.bits) - 1

    @property
    def buckets(self) -> int:
        """How many buckets a mask has."""
        return 1 << self.checks

    @property
    def truth(self) -> Fraction:
        """How often the bucket is not left to chance."""
        return (self.odds - 1) / (self.odds - 1 + self.buckets)

    @property
    def rates(self) -> tuple[Fraction, Fraction]:
        """How often a report's bucket is that of its owner's value, and that of any other value.

        Two values have the same bucket by 2^(bits-checks) of all masks (see `expand_mask`), one of which is 0.
        """
        uniform_rate = (1 - self.truth) / self.buckets
        collision_probability = Fraction((1 << (self.bits - self.checks)) - 1, self.mask_count)
        return uniform_rate + self.truth, uniform_rate + self.truth * collision_probability

    @property
    def variance(self) -> Fraction:
        """The variance of the share of a value that nobody has, times the number of people."""
        own, other = self.rates
        return other * (1 - other) / (own - other) ** 2

    @property
    def max_count_per_report(self) -> int:
        """The most that one report adds to a count: every set of checks may meet in one place."""
        return self.buckets

    @property
    def dtype(self) -> np.dtype:
        """The mask, and the bucket."""
        return np.dtype([("mask", smallest_uint(1 << self.bits)), ("bucket", smallest_uint(self.buckets))])

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a report for each place.

        Claim: given the mask, which no place has an influence on, the bucket of a person's own place is reported
            with odds times the probability of any other bucket, exactly.
        Proof: any bucket has (1-truth)/buckets from the dice, the own bucket truth more; and
            truth = (odds-1)·(1-truth)/buckets by its definition.
        Needs: tosses, dice.
        Checked by: test_parity_reports_have_the_law_that_is_claimed,
            test_reports_have_the_law_that_is_claimed, test_the_worst_log_ratio_of_every_law_is_the_claimed_epsilon
        Seal: 71633225f94e
        """
        source = thread_keystream()
        reports = np.empty(len(codes), self.dtype)
        for start in range(0, len(codes), _BLOCK_SIZE):
            part = reports[start : start + _BLOCK_SIZE]
            mask = uniform_integers(source, len(part), self.mask_count) + 1
            own = parity_buckets(expand_mask(mask, self.bits, self.checks), codes[start : start + _BLOCK_SIZE])
            is_truthful = bernoulli_bits(source, len(part), self.truth)
            part["mask"], part["bucket"] = (
                mask,
                np.where(is_truthful, own, uniform_integers(source, len(part), self.buckets)),
            )
        return reports

    def check(self, reports: np.ndarray) -> None:
        """Stop at a mask or a bucket that there is not."""
        for field, limit in (("mask", 1 << self.bits), ("bucket", self.buckets)):
            if len(reports) and reports[field].max() >= limit:
                raise ValueError(f"reports: {field} {int(reports[field].max())} is not below {limit}")
        if not reports["mask"].all():
            raise ValueError("reports: mask 0 is not used")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the terms of the transform whose values are the numbers of supports."""
        table = np.zeros(1 << self.bits, np.int64)
        for start in range(0, len(reports), _BLOCK_SIZE):
            part = reports[start : start + _BLOCK_SIZE]
            masks = expand_mask(part["mask"].astype(np.int64), self.bits, self.checks)
            add_terms(table, np.zeros(len(part), np.int64), masks, part["bucket"])
        return table

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        return debias_shares(walsh_hadamard(counts)[: self.size] / self.buckets, people, self.rates, z)

    def probability(self, report: Any, code: int) -> Fraction:
        """Return how likely a report is, the drawing of its mask included."""
        mask, bucket = (int(part) for part in report)
        if not (0 < mask <= self.mask_count and 0 <= bucket < self.buckets):
            return Fraction(0)
        own = int(parity_buckets(expand_mask(np.array([mask]), self.bits, self.checks), np.array([code]))[0])
        uniform_rate = (1 - self.truth) / self.buckets
        return (uniform_rate + self.truth if own == bucket else uniform_rate) / self.mask_count

    def outcomes(self) -> Iterator[tuple[int, int]]:
        """Return every mask with every bucket."""
        if self.buckets << self.bits > _MAX_OUTCOMES:
            raise ValueError("parity hashing: its reports are too many to list; pmf gives the probability of any")
        return product(range(1, 1 << self.bits), range(self.buckets))
