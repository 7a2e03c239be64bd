"""Local hashing with linear functions, aggregated for all values at once by a Walsh-Hadamard transform.

A mask of `bits` bits is expanded to `checks` masks. The parities of the bits that each of them has in common with a
value form the value's bucket. Every subset of the checks is one coefficient of a Walsh-Hadamard transform, so a table
of 2^bits numbers is sufficient for all values below 2^bits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number
from discreet.local.domain import Domain
from discreet.local.estimation import debias_shares, smallest_uint
from discreet.local.frequency_oracles.hadamard_response import bit_parity, walsh_hadamard
from discreet.local.oracle import Oracle, parse_epsilon
from discreet.local.random_variables import bernoulli_bits, uniform_integers

MAX_POSITION_BITS = 24  # longer tables are better split into rows
MAX_CHECKS = 8  # a report adds 2^checks terms to the table
# Irreducible polynomials over GF(2), by degree from 2, as binary numbers without the leading term: in the field that
# they define, each mask is x times the one before.
_FIELD_POLYNOMIALS = (3, 3, 3, 5, 3, 3, 27, 3, 9, 5, 9, 27, 33, 3, 43, 9, 9, 39, 9, 5, 3, 33, 27)


def expand_mask(mask: np.ndarray, bits: int, checks: int) -> list[np.ndarray]:
    """Return the masks that a report's mask is expanded to.

    If the mask is uniform, two different values below 2^bits have the same bucket with probability exactly 2^-checks:
    a check does not separate them, with difference d, if <M^i·mask, d> = <mask, N^i·d> is even, where M multiplies by
    x in the field and N is its transpose. A sum of some of the N^i·d is p(N)·d with a polynomial p of degree below
    bits, and p(N) is invertible because of the field. So no sum is zero, the N^i·d are linearly independent, and the
    checks are independent fair coins.

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
    """Return each value's bucket under the masks of the same row: one bit per mask, the first is the lowest."""
    buckets = np.zeros(len(values), np.uint8)
    for number, mask in enumerate(masks):
        buckets |= bit_parity(mask & values) << np.uint8(number)
    return buckets


def add_terms(table: np.ndarray, start: np.ndarray, masks: list[np.ndarray], buckets: np.ndarray) -> None:
    """Add the terms of reports, one for every subset of checks, to the tables that begin at `start`."""
    position, sign = start.copy(), np.ones(len(start), np.int64)
    np.add.at(table, position, sign)
    for number in range(1, 1 << len(masks)):
        # In Gray code order, consecutive subsets differ in one check.
        flipped_check = (number & -number).bit_length() - 1
        position ^= masks[flipped_check]
        sign *= 1 - 2 * (buckets >> np.uint8(flipped_check) & 1).astype(np.int64)
        np.add.at(table, position, sign)


def best_checks(odds: Fraction, bits: int) -> int:
    """Return the number of checks with the smallest variance for rare values.

    >>> [best_checks(Fraction(odds), bits=16) for odds in (2, 3, 8, 55)]
    [2, 2, 3, 6]
    """
    tried = range(1, min(bits, MAX_CHECKS) + 1)
    return min(tried, key=lambda checks: (odds - 1 + (1 << checks)) ** 2 / ((1 << checks) - 1))


_BLOCK_SIZE = 1 << 16
_MAX_OUTCOMES = 1 << 16


def ParityHashing(domain: int | Sequence[Any], epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return local hashing with linear functions: best for thousands or millions of values.

    A person draws a mask, which maps the domain to 2^checks buckets, and reports the bucket of the value by generalised
    randomised response. A single transform tests every value against every report.

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
    """Return the number of bits of a code, at least 2, the smallest degree with a field polynomial here."""
    return max(2, (size - 1).bit_length())


@dataclass(frozen=True)
class ParityHashingScheme:
    """The bucket of a code under a mask: `checks` parity bits, one for each expanded mask."""

    size: int
    odds: Fraction
    checks: int

    @property
    def name(self) -> str:
        """The name of the protocol and its parameters."""
        return f"parity hashing, {self.checks} checks"

    @property
    def bits(self) -> int:
        """The number of bits of a code, and of a mask."""
        return code_bits(self.size)

    @property
    def mask_count(self) -> int:
        """The number of masks; mask 0 is excluded, because all values have the same bucket under it."""
        return (1 << self.bits) - 1

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return 1 << self.checks

    @property
    def truth(self) -> Fraction:
        """The probability of a truthful bucket."""
        return (self.odds - 1) / (self.odds - 1 + self.buckets)

    @property
    def rates(self) -> tuple[Fraction, Fraction]:
        """The probability that a report's bucket is that of its person's value, and that of any other value.

        Two values have the same bucket under 2^(bits-checks) of all masks (see `expand_mask`), one of which is 0.
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
        """The maximum that one report adds to a count: all subsets of checks may have the same position."""
        return self.buckets

    @property
    def dtype(self) -> np.dtype:
        """A report is a mask and a bucket."""
        return np.dtype([("mask", smallest_uint(1 << self.bits)), ("bucket", smallest_uint(self.buckets))])

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each code.

        Claim: given the mask, which does not depend on the code, the bucket of a person's own code is reported with
            exactly odds times the probability of any other bucket.
        Proof: the uniform draw gives any bucket the probability (1-truth)/buckets, and the own bucket has truth more;
            truth = (odds-1)·(1-truth)/buckets by its definition.
        Needs: bernoulli_bits, uniform_integers.
        Checked by: test_parity_reports_have_the_claimed_distribution,
            test_reports_have_the_claimed_distribution, test_the_worst_log_ratio_of_every_oracle_is_the_claimed_epsilon
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
        """Raise ValueError if a mask or bucket does not exist."""
        for field, limit in (("mask", 1 << self.bits), ("bucket", self.buckets)):
            if len(reports) and reports[field].max() >= limit:
                raise ValueError(f"reports: {field} {int(reports[field].max())} is not below {limit}")
        if not reports["mask"].all():
            raise ValueError("reports: mask 0 is not used")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the coefficients whose Walsh-Hadamard transform gives the support of each value."""
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
        """Return the exact probability of a report, including its mask, given the code."""
        mask, bucket = (int(part) for part in report)
        if not (0 < mask <= self.mask_count and 0 <= bucket < self.buckets):
            return Fraction(0)
        own = int(parity_buckets(expand_mask(np.array([mask]), self.bits, self.checks), np.array([code]))[0])
        uniform_rate = (1 - self.truth) / self.buckets
        return (uniform_rate + self.truth if own == bucket else uniform_rate) / self.mask_count

    def outcomes(self) -> Iterator[tuple[int, int]]:
        """Return every mask with every bucket."""
        if self.buckets << self.bits > _MAX_OUTCOMES:
            raise ValueError(
                "parity hashing has too many possible reports to list. Use pmf for the probability of one."
            )
        return product(range(1, 1 << self.bits), range(self.buckets))
