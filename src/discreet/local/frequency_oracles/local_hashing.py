"""Local hashing: each person hashes the domain to a few buckets and reports one of them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from discreet.kernel.noise.bernoulli import bernoulli_bits, uniform_integers
from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number, as_integer
from discreet.local.domain import Domain
from discreet.local.estimation import debias_shares, smallest_uint
from discreet.local.oracle import Oracle, parse_epsilon

MAX_BUCKETS = 1 << 16  # at most: more would be of use beyond epsilon 11 only
_BLOCK_SIZE = 1 << 14  # people whose numbers fit into the processor's own memory
_MAX_OUTCOMES = 1 << 16


def OLH(domain: int | Sequence[Any], epsilon: Number, *, buckets: int | None = None) -> Oracle:  # noqa: N802 - a protocol's name
    """Return optimal local hashing (Wang, Blocki, Li, Jha 2017): short reports, and errors that no domain enlarges.

    A person draws a hash function, and reports the bucket of the value through generalised randomized response. The
    server tries every value on every report: its time grows with people times values.

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
    """Return the number of buckets with the least variance, for values that nobody or hardly anybody has.

    For equal buckets it is (odds-1+g)^2 / ((odds-1)^2·(g-1)), which falls until g = odds + 1 and rises after.

    >>> best_buckets(Fraction(3))
    4
    """
    candidates = {min(max(2, math.floor(odds) + offset), MAX_BUCKETS) for offset in (1, 2)}
    return min(sorted(candidates), key=lambda buckets: LocalHashingScheme(2, odds, buckets).variance)


@dataclass(frozen=True)
class LocalHashingScheme:
    """Bucket floor(((slope·value + shift) mod prime)·buckets / 2^bits) of `buckets`, with prime = 2^bits - 1.

    A report is (slope, shift, bucket). Slope and shift are uniform below the prime, and tell nothing.
    """

    size: int
    odds: Fraction
    buckets: int
    bits: int = 31  # fewer, of which 2^bits - 1 is prime, to list the whole law of a small domain

    max_count_per_report = 1

    @property
    def name(self) -> str:
        """The protocol, and what a reader must know of it."""
        return f"olh {self.buckets} {self.prime}"

    @property
    def prime(self) -> int:
        """How many slopes and shifts there are."""
        return (1 << self.bits) - 1

    @property
    def truth(self) -> Fraction:
        """How often the bucket is not left to chance."""
        return (self.odds - 1) / (self.odds - 1 + self.buckets)

    @property
    def rates(self) -> tuple[Fraction, Fraction]:
        """How often a report's bucket is that of its owner's value, and that of any other value.

        Two values have the same bucket with the same probability, whichever they are: slope·x + shift and
        slope·y + shift take every pair of residues once, a slope of 0 included.
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
        """The hash function, and the bucket."""
        number = smallest_uint(self.prime)
        return np.dtype([("slope", number), ("shift", number), ("bucket", smallest_uint(self.buckets))])

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a report for each place.

        Claim: given slope and shift, which no place has an influence on, the bucket of a person's own place is
            reported with odds times the probability of any other bucket, exactly.
        Proof: any bucket has (1-truth)/buckets from the dice, the own bucket truth more; and
            truth = (odds-1)·(1-truth)/buckets by its definition. The numbers stay below 2^64, so the arithmetic is
            exact.
        Needs: tosses, dice.
        Checked by: test_hashing_reports_have_the_law_that_is_claimed,
            test_reports_have_the_law_that_is_claimed, test_the_worst_log_ratio_of_every_law_is_the_claimed_epsilon
        Seal: ff87ca392bd1
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
        """Return the bucket of each place, by the function of the same row."""
        uint64 = np.uint64
        residues = (slope.astype(uint64) * codes.astype(uint64) + shift.astype(uint64)) % uint64(self.prime)
        buckets: np.ndarray = residues * uint64(self.buckets) >> uint64(self.bits)
        return buckets

    def _first_residues(self, buckets: np.ndarray) -> np.ndarray:
        """Return the least residue of each bucket."""
        residues: np.ndarray = np.minimum(-(-(buckets << self.bits) // self.buckets), self.prime)
        return residues

    def check(self, reports: np.ndarray) -> None:
        """Stop at a function or a bucket that there is not."""
        for field, limit in (("slope", self.prime), ("shift", self.prime), ("bucket", self.buckets)):
            if len(reports) and reports[field].max() >= limit:
                raise ValueError(f"reports: {field} {int(reports[field].max())} is not below {limit}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return in how many reports each place has the bucket that was reported."""
        counts = np.zeros(self.size, np.int64)
        for start in range(0, len(reports), _BLOCK_SIZE):
            self._add_counts(reports[start : start + _BLOCK_SIZE], counts)
        return counts

    def _add_counts(self, reports: np.ndarray, counts: np.ndarray) -> None:
        """Add one block; a place's residue is that of the place before plus the slope, so nothing is multiplied."""
        prime = np.uint32(self.prime)
        bucket = reports["bucket"].astype(np.int64)
        low = self._first_residues(bucket)
        sizes = (self._first_residues(bucket + 1) - low).astype(np.uint32)
        slope = reports["slope"].astype(np.uint32)
        # Counted from the bucket's least residue, the bucket holds the residues below its size.
        residues = ((reports["shift"] + (self.prime - low)) % self.prime).astype(np.uint32)
        reduced, inside = np.empty_like(residues), np.empty(len(residues), bool)
        for code in range(self.size):
            counts[code] += np.count_nonzero(np.less(residues, sizes, out=inside))
            residues += slope
            # If the sum is below the prime, the difference wraps to a number beyond all others.
            np.minimum(residues, np.subtract(residues, prime, out=reduced), out=residues)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        return debias_shares(counts, people, self.rates, z)

    def probability(self, report: Any, code: int) -> Fraction:
        """Return how likely a report is, the drawing of its function included."""
        slope, shift, bucket = (int(part) for part in report)
        if not (0 <= slope < self.prime and 0 <= shift < self.prime and 0 <= bucket < self.buckets):
            return Fraction(0)
        uniform_rate = (1 - self.truth) / self.buckets
        own = (slope * code + shift) % self.prime * self.buckets >> self.bits
        return (uniform_rate + self.truth if own == bucket else uniform_rate) / self.prime**2

    def outcomes(self) -> Iterator[tuple[int, int, int]]:
        """Return every function with every bucket."""
        if self.prime**2 * self.buckets > _MAX_OUTCOMES:
            raise ValueError("olh: its reports are too many to list; pmf gives the probability of any of them")
        return product(range(self.prime), range(self.prime), range(self.buckets))
