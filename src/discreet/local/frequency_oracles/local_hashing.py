"""Local hashing: each person hashes the domain to a few buckets and reports one of them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number, as_integer
from discreet.local.domain import Domain
from discreet.local.estimation import debias_shares, smallest_uint
from discreet.local.oracle import Oracle, parse_epsilon
from discreet.local.random_variables import bernoulli_bits, uniform_integers

MAX_BUCKETS = 1 << 16  # more would only help above epsilon 11
_BLOCK_SIZE = 1 << 14  # reports of so many people fit into the cache
_MAX_OUTCOMES = 1 << 16


def OLH(domain: int | Sequence[Any], epsilon: Number, *, buckets: int | None = None) -> Oracle:  # noqa: N802 - a protocol's name
    """Return optimal local hashing (Wang, Blocki, Li, Jha 2017): short reports, and an error independent of the domain.

    A person draws a hash function, and reports the bucket of the value by generalised randomised response. The server
    tests every value against every report, so its time is proportional to people times values.

    >>> import discreet as dc
    >>> survey = dc.local.OLH(1000, epsilon=2)
    >>> survey.scheme.buckets
    8
    >>> shares, margins = survey.estimate(survey.perturb([7] * 600 + [8] * 400))
    >>> bool(abs(shares[7] - 0.6) < 4 * margins[7])
    True
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    values = Domain.from_values(domain)
    bucket_count = best_buckets(odds) if buckets is None else as_integer(buckets, "buckets", 2)
    if bucket_count > MAX_BUCKETS:
        raise ValueError(f"buckets must be at most {MAX_BUCKETS:,}, not {bucket_count:,}")
    return Oracle(values, exact_epsilon, LocalHashingScheme(values.size, odds, bucket_count))


def best_buckets(odds: Fraction) -> int:
    """Return the number of buckets with the smallest variance for rare values.

    For g equal buckets the variance is (odds-1+g)^2 / ((odds-1)^2·(g-1)), with its minimum at g = odds + 1.

    >>> best_buckets(Fraction(3))
    4
    """
    candidates = {min(max(2, math.floor(odds) + offset), MAX_BUCKETS) for offset in (1, 2)}
    return min(sorted(candidates), key=lambda buckets: LocalHashingScheme(2, odds, buckets).variance)


@dataclass(frozen=True)
class LocalHashingScheme:
    """Bucket floor(((slope·value + shift) mod prime)·buckets / 2^bits) of `buckets`, with prime = 2^bits - 1.

    A report is (slope, shift, bucket). Slope and shift are uniform below the prime, independently of the value.
    """

    size: int
    odds: Fraction
    buckets: int
    bits: int = 31  # 2^bits - 1 must be prime; fewer bits allow listing the whole distribution of a small domain

    max_count_per_report = 1

    @property
    def name(self) -> str:
        """The name of the protocol and its parameters."""
        return f"olh {self.buckets} {self.prime}"

    @property
    def prime(self) -> int:
        """The number of slopes, and of shifts."""
        return (1 << self.bits) - 1

    @property
    def truth(self) -> Fraction:
        """The probability of a truthful bucket."""
        return (self.odds - 1) / (self.odds - 1 + self.buckets)

    @property
    def rates(self) -> tuple[Fraction, Fraction]:
        """The probability that a report's bucket is that of its person's value, and that of any other value.

        Any two values have the same bucket with the same probability: slope·x + shift and slope·y + shift take every
        pair of residues once, including a slope of 0.
        """
        uniform_rate = (1 - self.truth) / self.buckets
        sizes = np.diff(self._first_residues(np.arange(self.buckets + 1))).tolist()
        collision_probability = Fraction(sum(size * size for size in sizes), self.prime**2)
        return uniform_rate + self.truth, uniform_rate + self.truth * collision_probability

    @property
    def variance(self) -> Fraction:
        """The variance of the share of a value that nobody has, times the number of people."""
        own, other = self.rates
        return other * (1 - other) / (own - other) ** 2

    @property
    def dtype(self) -> np.dtype:
        """A report is a hash function and a bucket."""
        number = smallest_uint(self.prime)
        return np.dtype([("slope", number), ("shift", number), ("bucket", smallest_uint(self.buckets))])

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each code.

        Claim: given slope and shift, which do not depend on the code, the bucket of a person's own code is reported
            with exactly odds times the probability of any other bucket.
        Proof: the uniform draw gives any bucket the probability (1-truth)/buckets, and the own bucket has truth more;
            truth = (odds-1)·(1-truth)/buckets by its definition. All numbers are below 2^64, so the arithmetic is
            exact.
        Needs: bernoulli_bits, uniform_integers.
        Checked by: test_hashing_reports_have_the_claimed_distribution,
            test_reports_have_the_claimed_distribution, test_the_worst_log_ratio_of_every_oracle_is_the_claimed_epsilon
        """
        source = thread_keystream()
        reports = np.empty(len(codes), self.dtype)
        for start in range(0, len(codes), _BLOCK_SIZE):
            part = reports[start : start + _BLOCK_SIZE]
            slope, shift = (
                uniform_integers(source, len(part), self.prime),
                uniform_integers(source, len(part), self.prime),
            )
            own = self.hash_bucket(slope, shift, codes[start : start + _BLOCK_SIZE])
            is_truthful = bernoulli_bits(source, len(part), self.truth)
            part["slope"], part["shift"] = slope, shift
            part["bucket"] = np.where(is_truthful, own, uniform_integers(source, len(part), self.buckets))
        return reports

    def hash_bucket(self, slope: np.ndarray, shift: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the bucket of each code under the hash function of the same row."""
        uint64 = np.uint64
        residues = (slope.astype(uint64) * codes.astype(uint64) + shift.astype(uint64)) % uint64(self.prime)
        buckets: np.ndarray = residues * uint64(self.buckets) >> uint64(self.bits)
        return buckets

    def _first_residues(self, buckets: np.ndarray) -> np.ndarray:
        """Return the smallest residue of each bucket."""
        residues: np.ndarray = np.minimum(-(-(buckets << self.bits) // self.buckets), self.prime)
        return residues

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a hash function or bucket does not exist."""
        for field, limit in (("slope", self.prime), ("shift", self.prime), ("bucket", self.buckets)):
            if len(reports) and reports[field].max() >= limit:
                raise ValueError(f"reports: {field} {int(reports[field].max())} is not below {limit}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return for each code the number of reports whose bucket is that of the code."""
        counts = np.zeros(self.size, np.int64)
        for start in range(0, len(reports), _BLOCK_SIZE):
            self._add_counts(reports[start : start + _BLOCK_SIZE], counts)
        return counts

    def _add_counts(self, reports: np.ndarray, counts: np.ndarray) -> None:
        """Add the counts of one block; residues are updated by adding the slope, without multiplications."""
        prime = np.uint32(self.prime)
        bucket = reports["bucket"].astype(np.int64)
        low = self._first_residues(bucket)
        sizes = (self._first_residues(bucket + 1) - low).astype(np.uint32)
        slope = reports["slope"].astype(np.uint32)
        # Relative to its smallest residue, a bucket has the residues below its size.
        residues = ((reports["shift"] + (self.prime - low)) % self.prime).astype(np.uint32)
        reduced, inside = np.empty_like(residues), np.empty(len(residues), bool)
        for code in range(self.size):
            counts[code] += np.count_nonzero(np.less(residues, sizes, out=inside))
            residues += slope
            # If the sum is below the prime, the difference wraps around to a large number, and the minimum is the sum.
            np.minimum(residues, np.subtract(residues, prime, out=reduced), out=residues)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        return debias_shares(counts, people, self.rates, z)

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the exact probability of a report, including its hash function, given the code."""
        slope, shift, bucket = (int(part) for part in report)
        if not (0 <= slope < self.prime and 0 <= shift < self.prime and 0 <= bucket < self.buckets):
            return Fraction(0)
        uniform_rate = (1 - self.truth) / self.buckets
        own = (slope * code + shift) % self.prime * self.buckets >> self.bits
        return (uniform_rate + self.truth if own == bucket else uniform_rate) / self.prime**2

    def outcomes(self) -> Iterator[tuple[int, int, int]]:
        """Return every hash function with every bucket."""
        if self.prime**2 * self.buckets > _MAX_OUTCOMES:
            raise ValueError("olh has too many possible reports to list. Use pmf for the probability of one.")
        return product(range(self.prime), range(self.prime), range(self.buckets))
