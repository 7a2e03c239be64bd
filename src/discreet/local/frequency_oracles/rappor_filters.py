"""The bits that encode a value in RAPPOR: one for each value, or a Bloom filter."""

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from discreet.local.estimation import debias_shares, project_onto_simplex

SupportRates = tuple[Fraction, Fraction]
_MIN_EIGENVALUE = 1e-6  # how far the smallest eigenvalue of a filter must be from zero, where the diagonal is one


class RapporFilter(Protocol):
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

    def value_bits(self, cohort: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the bits that stand for each person's place, people × hashes, all different in a row."""

    def decode(self, ones: np.ndarray, people: int, rates: SupportRates, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins from how many people set each bit, cohorts × bits."""


@dataclass(frozen=True)
class OneBitPerValue:
    """Every value has a bit: basic RAPPOR."""

    bits: int

    hashes = cohorts = 1

    @property
    def name(self) -> str:
        """What a reader must know."""
        return "a bit to each value"

    def value_bits(self, cohort: np.ndarray, codes: np.ndarray) -> np.ndarray:  # noqa: ARG002 - all are of one cohort
        """Return each place as the number of its bit."""
        return codes[:, None]

    def decode(self, ones: np.ndarray, people: int, rates: SupportRates, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins: a bit supports its value."""
        return debias_shares(ones[0], people, rates, z)


@dataclass(frozen=True)
class BloomFilter:
    """In each cohort, `hashes` different bits of `bits` stand for a value, by SHA-256."""

    size: int
    bits: int
    hashes: int
    cohorts: int

    def __post_init__(self) -> None:
        _inverse_gram(self)  # refuses at once what could not be read later

    @property
    def name(self) -> str:
        """What a reader must know."""
        return f"{self.hashes} of {self.bits} bits in {self.cohorts} cohorts"

    def value_bits(self, cohort: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the bits of each place in its person's cohort."""
        bits: np.ndarray = _bit_table(self)[cohort, codes]
        return bits

    def decode(self, ones: np.ndarray, people: int, rates: SupportRates, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins by least squares.

        With X = 1 where a cohort's bit stands for a value, people set a bit X·shares·gap + other times on average
        if all of them were in its cohort, of which they are one part in `cohorts`; so inverse(X'X)·X' of what is
        above chance is unbiased. How many people drew a cohort does not matter: every value has as many bits in
        each, so a surplus of chance in one makes up for what is missing in the others.
        """
        gap = float(rates[0] - rates[1])
        excess = (ones * (self.cohorts / people) - float(rates[1])) / gap
        excess_of_value = excess[np.arange(self.cohorts)[:, None, None], _bit_table(self)].sum(axis=(0, 2))
        shares = _inverse_gram(self) @ excess_of_value
        variance, max_weight = self._variance_per_person(project_onto_simplex(shares), rates)
        # One report more or less in the count that weighs most: margins hold for few people, too.
        return shares, z * np.sqrt(variance / people) + max_weight * self.cohorts / (people * gap)

    def _variance_per_person(self, shares: np.ndarray, rates: SupportRates) -> tuple[np.ndarray, np.ndarray]:
        """Return the variance of what one person adds to each value's estimate, and its largest weight of a bit.

        A person of value v in cohort c adds weights·(bits - other)·cohorts/gap. Its variance is that of the bits,
        given the cohort, and that of its mean over bits, weights·X[:, v]·cohorts, which is over all cohorts 1 for
        v and 0 for the others.
        """
        own, other = map(float, rates)
        gap = float(rates[0] - rates[1])
        variance, max_weight = np.zeros(self.size), np.zeros(self.size)
        for incidence in map(self._incidence_matrix, _bit_table(self)):
            weights = _inverse_gram(self) @ incidence
            joint_shares = incidence.T @ (
                shares[:, None] * incidence
            )  # the share of people for whose value both bits stand
            bit_shares = np.diag(joint_shares)
            bit_variance = bit_shares * own * (1 - own) + (1 - bit_shares) * other * (1 - other)
            mean_variance = np.einsum("vb,vb->v", weights @ joint_shares, weights)
            variance += weights**2 @ bit_variance / gap**2 + mean_variance
            max_weight = np.maximum(max_weight, np.abs(weights).max(axis=1))
        return np.maximum(self.cohorts * variance - shares, 0), max_weight  # 0 may be rounded to less

    def _incidence_matrix(self, bits_of: np.ndarray) -> np.ndarray:
        """Return X' of a cohort: 1 where a bit stands for a value, values × bits."""
        incidence = np.zeros((self.size, self.bits))
        incidence[np.arange(self.size)[:, None], bits_of] = 1
        return incidence


@lru_cache(maxsize=4)
def _bit_table(bloom: BloomFilter) -> np.ndarray:
    """Return the bits of every value in every cohort, cohorts × size × hashes.

    Floyd's method on the words of a digest, so that the bits of a value differ.
    """
    texts = (f"{cohort} {code}" for cohort in range(bloom.cohorts) for code in range(bloom.size))
    digests = b"".join(hashlib.sha256(f"discreet rappor {text}".encode()).digest() for text in texts)
    words = np.frombuffer(digests, "<u4").reshape(-1, 8).astype(np.int64)
    bits = np.empty((len(words), bloom.hashes), np.int64)
    for number in range(bloom.hashes):
        last = bloom.bits - bloom.hashes + number
        hashed = words[:, number] % (last + 1)
        taken = (bits[:, :number] == hashed[:, None]).any(axis=1)
        bits[:, number] = np.where(taken, last, hashed)
    return bits.reshape(bloom.cohorts, bloom.size, bloom.hashes)


@lru_cache(maxsize=4)
def _inverse_gram(bloom: BloomFilter) -> np.ndarray:
    """Return the inverse of how many bits each two values share; ValueError if values cannot be told apart."""
    shared = np.zeros((bloom.size, bloom.size))
    for bits_of in _bit_table(bloom):
        for bit in range(bloom.bits):
            values = np.flatnonzero((bits_of == bit).any(axis=1))
            shared[np.ix_(values, values)] += 1
    bits_per_value = bloom.cohorts * bloom.hashes  # what stands in the diagonal
    try:
        np.linalg.cholesky(shared - _MIN_EIGENVALUE * bits_per_value * np.eye(bloom.size))
    except np.linalg.LinAlgError:
        raise ValueError(
            f"cohorts: {bloom.size:,} values cannot be told apart by {bloom.bits} bits in each of {bloom.cohorts} "
            f"cohorts; take more bits or more cohorts, such as {2 * -(-bloom.size // bloom.bits) + 4} cohorts"
        ) from None
    return np.linalg.inv(shared)
