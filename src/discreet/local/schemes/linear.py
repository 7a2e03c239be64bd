"""Local hashing by parities: the errors of `OLH`, in a time that hardly grows with the domain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from discreet.kernel.exact import Number
from discreet.kernel.noise.chance import dice, tosses
from discreet.kernel.noise.keystream import stream
from discreet.local.domain import Domain
from discreet.local.oracle import Oracle, priced
from discreet.local.schemes.parities import CHECKS, add_terms, buckets_of, masks_of
from discreet.local.schemes.supporting import shares_of, smallest
from discreet.local.schemes.walsh import walsh

_TOGETHER = 1 << 16
_LISTED = 1 << 16


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
    price, odds = priced(epsilon)
    values = Domain.of(domain)
    tried = (Linear(values.size, odds, checks) for checks in range(1, min(bits_of(values.size), CHECKS) + 1))
    return Oracle(values, price, min(tried, key=lambda scheme: scheme.variance))


def bits_of(size: int) -> int:
    """Return how many bits a place has; never one alone, as fields begin with two."""
    return max(2, (size - 1).bit_length())


@dataclass(frozen=True)
class Linear:
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
        return bits_of(self.size)

    @property
    def masks(self) -> int:
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

        Two values have the same bucket by 2^(bits-checks) of all masks (see `masks_of`), one of which is 0.
        """
        any_ = (1 - self.truth) / self.buckets
        meet = Fraction((1 << (self.bits - self.checks)) - 1, self.masks)
        return any_ + self.truth, any_ + self.truth * meet

    @property
    def variance(self) -> Fraction:
        """The variance of the share of a value that nobody has, times the number of people."""
        own, other = self.rates
        return other * (1 - other) / (own - other) ** 2

    @property
    def most_counted(self) -> int:
        """The most that one report adds to a count: every set of checks may meet in one place."""
        return self.buckets

    @property
    def dtype(self) -> np.dtype:
        """The mask, and the bucket."""
        return np.dtype([("mask", smallest(1 << self.bits)), ("bucket", smallest(self.buckets))])

    def perturb(self, places: np.ndarray) -> np.ndarray:
        """Return a report for each place.

        Claim: given the mask, which no place has an influence on, the bucket of a person's own place is reported
            with odds times the probability of any other bucket, exactly.
        Proof: any bucket has (1-truth)/buckets from the dice, the own bucket truth more; and
            truth = (odds-1)·(1-truth)/buckets by its definition.
        Needs: tosses, dice.
        Checked by: test_parity_reports_have_the_law_that_is_claimed,
            test_reports_have_the_law_that_is_claimed, test_the_worst_log_ratio_of_every_law_is_the_claimed_epsilon
        Seal: a6fbb41e9db1
        """
        source = stream()
        reports = np.empty(len(places), self.dtype)
        for start in range(0, len(places), _TOGETHER):
            part = reports[start : start + _TOGETHER]
            mask = dice(source, len(part), self.masks) + 1
            own = buckets_of(masks_of(mask, self.bits, self.checks), places[start : start + _TOGETHER])
            told = tosses(source, len(part), self.truth)
            part["mask"], part["bucket"] = mask, np.where(told, own, dice(source, len(part), self.buckets))
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
        for start in range(0, len(reports), _TOGETHER):
            part = reports[start : start + _TOGETHER]
            masks = masks_of(part["mask"].astype(np.int64), self.bits, self.checks)
            add_terms(table, np.zeros(len(part), np.int64), masks, part["bucket"])
        return table

    def estimate(self, counts: np.ndarray, people: int, spreads: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        return shares_of(walsh(counts)[: self.size] / self.buckets, people, self.rates, spreads)

    def probability(self, report: Any, place: int) -> Fraction:
        """Return how likely a report is, the drawing of its mask included."""
        mask, bucket = (int(part) for part in report)
        if not (0 < mask <= self.masks and 0 <= bucket < self.buckets):
            return Fraction(0)
        own = int(buckets_of(masks_of(np.array([mask]), self.bits, self.checks), np.array([place]))[0])
        any_ = (1 - self.truth) / self.buckets
        return (any_ + self.truth if own == bucket else any_) / self.masks

    def outcomes(self) -> Iterator[tuple[int, int]]:
        """Return every mask with every bucket."""
        if self.buckets << self.bits > _LISTED:
            raise ValueError("parity hashing: its reports are too many to list; pmf gives the probability of any")
        return product(range(1, 1 << self.bits), range(self.buckets))
