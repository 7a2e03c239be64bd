"""Which bits stand for a value in RAPPOR: one to each value, or some of a Bloom filter, which values may share."""

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from discreet.local.schemes.supporting import shares_of
from discreet.local.simplex import onto_simplex

Rates = tuple[Fraction, Fraction]
_SURE = 1e-6  # how far the smallest eigenvalue of a filter must be from zero, where the diagonal is one


class Filter(Protocol):
    """The public part of RAPPOR: what is set before any noise, and how sums of noisy bits are read."""

    @property
    def name(self) -> str:
        """What a reader must know."""

    @property
    def bits(self) -> int:
        """How many bits a report has."""

    @property
    def hashes(self) -> int:
        """How many of them stand for a value."""

    @property
    def cohorts(self) -> int:
        """Into how many groups people fall, each with hash functions of its own."""

    def own(self, cohort: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return the bits that stand for each person's place, people × hashes, all different in a row."""

    def decoded(self, ones: np.ndarray, people: int, rates: Rates, spreads: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins from how many people set each bit, cohorts × bits."""


@dataclass(frozen=True)
class OneBitEach:
    """Every value has a bit: basic RAPPOR."""

    bits: int

    hashes = cohorts = 1

    @property
    def name(self) -> str:
        """What a reader must know."""
        return "a bit to each value"

    def own(self, cohort: np.ndarray, places: np.ndarray) -> np.ndarray:  # noqa: ARG002 - all are of one cohort
        """Return each place as the number of its bit."""
        return places[:, None]

    def decoded(self, ones: np.ndarray, people: int, rates: Rates, spreads: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins: a bit supports its value."""
        return shares_of(ones[0], people, rates, spreads)


@dataclass(frozen=True)
class Bloom:
    """In each cohort, `hashes` different bits of `bits` stand for a value, by SHA-256."""

    size: int
    bits: int
    hashes: int
    cohorts: int

    def __post_init__(self) -> None:
        _inverse(self)  # refuses at once what could not be read later

    @property
    def name(self) -> str:
        """What a reader must know."""
        return f"{self.hashes} of {self.bits} bits in {self.cohorts} cohorts"

    def own(self, cohort: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return the bits of each place in its person's cohort."""
        found: np.ndarray = _table(self)[cohort, places]
        return found

    def decoded(self, ones: np.ndarray, people: int, rates: Rates, spreads: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins by least squares.

        With X = 1 where a cohort's bit stands for a value, people set a bit X·shares·gap + other times on average
        if all of them were in its cohort, of which they are one part in `cohorts`; so inverse(X'X)·X' of what is
        above chance is unbiased. How many people drew a cohort does not matter: every value has as many bits in
        each, so a surplus of chance in one makes up for what is missing in the others.
        """
        gap = float(rates[0] - rates[1])
        excess = (ones * (self.cohorts / people) - float(rates[1])) / gap
        of_each = excess[np.arange(self.cohorts)[:, None, None], _table(self)].sum(axis=(0, 2))
        shares = _inverse(self) @ of_each
        spread, most = self._spread(onto_simplex(shares), rates)
        # One report more or less in the count that weighs most: margins hold for few people, too.
        return shares, spreads * np.sqrt(spread / people) + most * self.cohorts / (people * gap)

    def _spread(self, shares: np.ndarray, rates: Rates) -> tuple[np.ndarray, np.ndarray]:
        """Return the variance of what one person adds to each value's estimate, and its largest weight of a bit.

        A person of value v in cohort c adds weights·(bits - other)·cohorts/gap. Its variance is that of the bits,
        given the cohort, and that of its mean over bits, weights·X[:, v]·cohorts, which is over all cohorts 1 for
        v and 0 for the others.
        """
        own, other = map(float, rates)
        gap = float(rates[0] - rates[1])
        variance, most = np.zeros(self.size), np.zeros(self.size)
        for stands in map(self._stands, _table(self)):
            weights = _inverse(self) @ stands
            together = stands.T @ (shares[:, None] * stands)  # the share of people for whose value both bits stand
            likely = np.diag(together)
            of_bits = likely * own * (1 - own) + (1 - likely) * other * (1 - other)
            of_mean = np.einsum("vb,vb->v", weights @ together, weights)
            variance += weights**2 @ of_bits / gap**2 + of_mean
            most = np.maximum(most, np.abs(weights).max(axis=1))
        return np.maximum(self.cohorts * variance - shares, 0), most  # 0 may be rounded to less

    def _stands(self, bits_of: np.ndarray) -> np.ndarray:
        """Return X' of a cohort: 1 where a bit stands for a value, values × bits."""
        stands = np.zeros((self.size, self.bits))
        stands[np.arange(self.size)[:, None], bits_of] = 1
        return stands


@lru_cache(maxsize=4)
def _table(bloom: Bloom) -> np.ndarray:
    """Return the bits of every value in every cohort, cohorts × size × hashes.

    Floyd's method on the words of a digest, so that the bits of a value differ.
    """
    texts = (f"{cohort} {place}" for cohort in range(bloom.cohorts) for place in range(bloom.size))
    digests = b"".join(hashlib.sha256(f"discreet rappor {text}".encode()).digest() for text in texts)
    words = np.frombuffer(digests, "<u4").reshape(-1, 8).astype(np.int64)
    found = np.empty((len(words), bloom.hashes), np.int64)
    for number in range(bloom.hashes):
        last = bloom.bits - bloom.hashes + number
        any_ = words[:, number] % (last + 1)
        taken = (found[:, :number] == any_[:, None]).any(axis=1)
        found[:, number] = np.where(taken, last, any_)
    return found.reshape(bloom.cohorts, bloom.size, bloom.hashes)


@lru_cache(maxsize=4)
def _inverse(bloom: Bloom) -> np.ndarray:
    """Return the inverse of how many bits each two values share; ValueError if values cannot be told apart."""
    shared = np.zeros((bloom.size, bloom.size))
    for bits_of in _table(bloom):
        for bit in range(bloom.bits):
            values = np.flatnonzero((bits_of == bit).any(axis=1))
            shared[np.ix_(values, values)] += 1
    of_each = bloom.cohorts * bloom.hashes  # what stands in the diagonal
    try:
        np.linalg.cholesky(shared - _SURE * of_each * np.eye(bloom.size))
    except np.linalg.LinAlgError:
        raise ValueError(
            f"cohorts: {bloom.size:,} values cannot be told apart by {bloom.bits} bits in each of {bloom.cohorts} "
            f"cohorts; take more bits or more cohorts, such as {2 * -(-bloom.size // bloom.bits) + 4} cohorts"
        ) from None
    return np.linalg.inv(shared)
