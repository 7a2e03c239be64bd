"""Local hashing: each person sorts the domain into a few buckets, by a public function of their own."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from discreet.kernel.exact import Number, whole
from discreet.kernel.noise.chance import dice, tosses
from discreet.kernel.noise.keystream import stream
from discreet.local.domain import Domain
from discreet.local.oracle import Oracle, priced
from discreet.local.schemes.supporting import shares_of, smallest

BUCKETS = 1 << 16  # at most: more would be of use beyond epsilon 11 only
_TOGETHER = 1 << 14  # people whose numbers fit into the processor's own memory
_LISTED = 1 << 16


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
    price, odds = priced(epsilon)
    values = Domain.of(domain)
    chosen = best_buckets(odds) if buckets is None else whole(buckets, "buckets", 2)
    if chosen > BUCKETS:
        raise ValueError(f"buckets must be at most {BUCKETS:,}, not {chosen:,}")
    return Oracle(values, price, Hashing(values.size, odds, chosen))


def best_buckets(odds: Fraction) -> int:
    """Return the number of buckets with the least variance, for values that nobody or hardly anybody has.

    For equal buckets it is (odds-1+g)^2 / ((odds-1)^2·(g-1)), which falls until g = odds + 1 and rises after.

    >>> best_buckets(Fraction(3))
    4
    """
    near = {min(max(2, math.floor(odds) + more), BUCKETS) for more in (1, 2)}
    return min(sorted(near), key=lambda buckets: Hashing(2, odds, buckets).variance)


@dataclass(frozen=True)
class Hashing:
    """Bucket floor(((slope·value + shift) mod prime)·buckets / 2^bits) of `buckets`, with prime = 2^bits - 1.

    A report is (slope, shift, bucket). Slope and shift are uniform below the prime, and tell nothing.
    """

    size: int
    odds: Fraction
    buckets: int
    bits: int = 31  # fewer, of which 2^bits - 1 is prime, to list the whole law of a small domain

    most_counted = 1

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
        any_ = (1 - self.truth) / self.buckets
        sizes = np.diff(self._edges(np.arange(self.buckets + 1))).tolist()
        together = Fraction(sum(size * size for size in sizes), self.prime**2)
        return any_ + self.truth, any_ + self.truth * together

    @property
    def variance(self) -> Fraction:
        """The variance of the share of a value that nobody has, times the number of people."""
        own, other = self.rates
        return other * (1 - other) / (own - other) ** 2

    @property
    def dtype(self) -> np.dtype:
        """The hash function, and the bucket."""
        number = smallest(self.prime)
        return np.dtype([("slope", number), ("shift", number), ("bucket", smallest(self.buckets))])

    def perturb(self, places: np.ndarray) -> np.ndarray:
        """Return a report for each place.

        Claim: given slope and shift, which no place has an influence on, the bucket of a person's own place is
            reported with odds times the probability of any other bucket, exactly.
        Proof: any bucket has (1-truth)/buckets from the dice, the own bucket truth more; and
            truth = (odds-1)·(1-truth)/buckets by its definition. The numbers stay below 2^64, so the arithmetic is
            exact.
        Needs: tosses, dice.
        Checked by: test_hashing_reports_have_the_law_that_is_claimed,
            test_reports_have_the_law_that_is_claimed, test_the_worst_log_ratio_of_every_law_is_the_claimed_epsilon
        Seal: 8c256cdffd97
        """
        source = stream()
        reports = np.empty(len(places), self.dtype)
        for start in range(0, len(places), _TOGETHER):
            part = reports[start : start + _TOGETHER]
            slope, shift = dice(source, len(part), self.prime), dice(source, len(part), self.prime)
            own = self.bucket(slope, shift, places[start : start + _TOGETHER])
            told = tosses(source, len(part), self.truth)
            part["slope"], part["shift"] = slope, shift
            part["bucket"] = np.where(told, own, dice(source, len(part), self.buckets))
        return reports

    def bucket(self, slope: np.ndarray, shift: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return the bucket of each place, by the function of the same row."""
        wide = np.uint64
        residues = (slope.astype(wide) * places.astype(wide) + shift.astype(wide)) % wide(self.prime)
        buckets: np.ndarray = residues * wide(self.buckets) >> wide(self.bits)
        return buckets

    def _edges(self, buckets: np.ndarray) -> np.ndarray:
        """Return the least residue of each bucket."""
        edges: np.ndarray = np.minimum(-(-(buckets << self.bits) // self.buckets), self.prime)
        return edges

    def check(self, reports: np.ndarray) -> None:
        """Stop at a function or a bucket that there is not."""
        for field, limit in (("slope", self.prime), ("shift", self.prime), ("bucket", self.buckets)):
            if len(reports) and reports[field].max() >= limit:
                raise ValueError(f"reports: {field} {int(reports[field].max())} is not below {limit}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return in how many reports each place has the bucket that was reported."""
        counts = np.zeros(self.size, np.int64)
        for start in range(0, len(reports), _TOGETHER):
            self._count(reports[start : start + _TOGETHER], counts)
        return counts

    def _count(self, reports: np.ndarray, counts: np.ndarray) -> None:
        """Add one block; a place's residue is that of the place before plus the slope, so nothing is multiplied."""
        prime = np.uint32(self.prime)
        bucket = reports["bucket"].astype(np.int64)
        low = self._edges(bucket)
        sizes = (self._edges(bucket + 1) - low).astype(np.uint32)
        slope = reports["slope"].astype(np.uint32)
        # Counted from the bucket's least residue, the bucket holds the residues below its size.
        residues = ((reports["shift"] + (self.prime - low)) % self.prime).astype(np.uint32)
        less, inside = np.empty_like(residues), np.empty(len(residues), bool)
        for place in range(self.size):
            counts[place] += np.count_nonzero(np.less(residues, sizes, out=inside))
            residues += slope
            # If the sum is below the prime, the difference wraps to a number beyond all others.
            np.minimum(residues, np.subtract(residues, prime, out=less), out=residues)

    def estimate(self, counts: np.ndarray, people: int, spreads: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        return shares_of(counts, people, self.rates, spreads)

    def probability(self, report: Any, place: int) -> Fraction:
        """Return how likely a report is, the drawing of its function included."""
        slope, shift, bucket = (int(part) for part in report)
        if not (0 <= slope < self.prime and 0 <= shift < self.prime and 0 <= bucket < self.buckets):
            return Fraction(0)
        any_ = (1 - self.truth) / self.buckets
        own = (slope * place + shift) % self.prime * self.buckets >> self.bits
        return (any_ + self.truth if own == bucket else any_) / self.prime**2

    def outcomes(self) -> Iterator[tuple[int, int, int]]:
        """Return every function with every bucket."""
        if self.prime**2 * self.buckets > _LISTED:
            raise ValueError("olh: its reports are too many to list; pmf gives the probability of any of them")
        return product(range(self.prime), range(self.prime), range(self.buckets))
