"""The public bits that encode a value in RAPPOR: one for each value, or a Bloom filter; and decoding of noisy sums."""

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.local.estimation import debias_shares, project_onto_simplex

SupportRates = tuple[Fraction, Fraction]
_MIN_EIGENVALUE = 1e-6  # of the Gram matrix with a unit diagonal, so that its inverse is stable


@dataclass(frozen=True)
class OneBitPerValue:
    """Basic RAPPOR: every value has its own bit."""

    bits: int

    hashes = cohorts = 1

    @property
    def name(self) -> str:
        """The name of the encoding and its parameters."""
        return "one bit per value"

    def value_bits(self, cohort: np.ndarray, codes: np.ndarray) -> np.ndarray:  # noqa: ARG002 - all are of one cohort
        """Return the code itself as the only bit."""
        return codes[:, None]

    def decode(self, ones: np.ndarray, people: int, rates: SupportRates, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins: each bit supports its value."""
        return debias_shares(ones[0], people, rates, z)


@dataclass(frozen=True)
class BloomFilter:
    """A Bloom filter: in each cohort, SHA-256 assigns `hashes` distinct bits of `bits` to a value."""

    size: int
    bits: int
    hashes: int
    cohorts: int

    def __post_init__(self) -> None:
        _inverse_gram(self)  # refuses a filter that cannot be decoded

    @property
    def name(self) -> str:
        """The name of the encoding and its parameters."""
        return f"{self.hashes} of {self.bits} bits in {self.cohorts} cohorts"

    def value_bits(self, cohort: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the bits of each code in its person's cohort."""
        bits: np.ndarray = _bit_table(self)[cohort, codes]
        return bits

    def decode(self, ones: np.ndarray, people: int, rates: SupportRates, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins by least squares.

        With X = 1 where a cohort's bit belongs to a value, the expected share of set bits is X·shares·gap + other in
        each cohort, and a person is in a given cohort with probability 1/cohorts; so inverse(X'X)·X' applied to the
        excess over `other` is unbiased. The random sizes of the cohorts cancel: every value has the same number of
        bits in each of them.
        """
        gap = float(rates[0] - rates[1])
        excess = (ones * (self.cohorts / people) - float(rates[1])) / gap
        excess_of_value = excess[np.arange(self.cohorts)[:, None, None], _bit_table(self)].sum(axis=(0, 2))
        shares = _inverse_gram(self) @ excess_of_value
        variance, max_weight = self._variance_per_person(project_onto_simplex(shares), rates)
        # A continuity correction of one report in the count with the largest weight: margins hold for few people too.
        return shares, z * np.sqrt(variance / people) + max_weight * self.cohorts / (people * gap)

    def _variance_per_person(self, shares: np.ndarray, rates: SupportRates) -> tuple[np.ndarray, np.ndarray]:
        """Return the variance of one person's contribution to each value's estimate, and the largest weight of a bit.

        A person with value v in cohort c contributes weights·(bits - other)·cohorts/gap. Its variance is that of the
        bits given the cohort, plus that over cohorts of the conditional mean weights·X[:, v]·cohorts, whose mean over
        cohorts is 1 for v and 0 for the others.
        """
        own, other = map(float, rates)
        gap = float(rates[0] - rates[1])
        variance, max_weight = np.zeros(self.size), np.zeros(self.size)
        for incidence in map(self._incidence_matrix, _bit_table(self)):
            weights = _inverse_gram(self) @ incidence
            joint_shares = incidence.T @ (shares[:, None] * incidence)  # of people whose value has both bits
            bit_shares = np.diag(joint_shares)
            bit_variance = bit_shares * own * (1 - own) + (1 - bit_shares) * other * (1 - other)
            mean_variance = np.einsum("vb,vb->v", weights @ joint_shares, weights)
            variance += weights**2 @ bit_variance / gap**2 + mean_variance
            max_weight = np.maximum(max_weight, np.abs(weights).max(axis=1))
        return np.maximum(self.cohorts * variance - shares, 0), max_weight  # rounding can make 0 negative

    def _incidence_matrix(self, bits_of: np.ndarray) -> np.ndarray:
        """Return X' of a cohort: 1 where a bit belongs to a value, values × bits."""
        incidence = np.zeros((self.size, self.bits))
        incidence[np.arange(self.size)[:, None], bits_of] = 1
        return incidence


RapporFilter = OneBitPerValue | BloomFilter


@lru_cache(maxsize=4)
def _bit_table(bloom: BloomFilter) -> np.ndarray:
    """Return the bits of every value in every cohort, cohorts × size × hashes.

    Floyd's sampling on the words of a digest makes the bits of a value distinct.
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
    """Return the inverse of the matrix of shared bits of two values; ValueError if it is (nearly) singular."""
    shared = np.zeros((bloom.size, bloom.size))
    for bits_of in _bit_table(bloom):
        for bit in range(bloom.bits):
            values = np.flatnonzero((bits_of == bit).any(axis=1))
            shared[np.ix_(values, values)] += 1
    bits_per_value = bloom.cohorts * bloom.hashes  # the diagonal
    try:
        np.linalg.cholesky(shared - _MIN_EIGENVALUE * bits_per_value * np.eye(bloom.size))
    except np.linalg.LinAlgError:
        raise ValueError(
            f"cohorts: {bloom.bits} bits in each of {bloom.cohorts} cohorts cannot distinguish {bloom.size:,} values. "
            f"Use more bits or more cohorts, for example {2 * -(-bloom.size // bloom.bits) + 4} cohorts."
        ) from None
    return np.linalg.inv(shared)
