"""Hadamard response, and the Walsh-Hadamard transform."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number
from discreet.local.domain import Domain
from discreet.local.estimation import smallest_uint
from discreet.local.oracle import Oracle, parse_epsilon
from discreet.local.random_variables import bernoulli_bits, uniform_integers


def walsh_hadamard(numbers: np.ndarray) -> np.ndarray:
    """Return the Walsh-Hadamard transform: for each i, the sum over j of (-1)^popcount(i & j)·numbers[j].

    The last dimension is transformed; its length must be a power of two.

    >>> walsh_hadamard(np.array([5, 1, 0, 2]))
    array([8, 2, 4, 6])
    """
    for _ in range(numbers.shape[-1].bit_length() - 1):
        even, odd = numbers[..., ::2], numbers[..., 1::2]
        # The bit that was summed becomes the highest, so that every bit has been summed once after all rounds.
        numbers = np.concatenate((even + odd, even - odd), axis=-1)
    return numbers


def bit_parity(numbers: np.ndarray) -> np.ndarray:
    """Return 1 where an odd number of bits is set, otherwise 0."""
    odd: np.ndarray = np.bitwise_count(numbers) & 1
    return odd


_BLOCK_SIZE = 1 << 16
_MAX_OUTCOMES = 1 << 16


def Hadamard(domain: int | Sequence[Any], epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return Hadamard response (Acharya, Sun, Zhang 2019): very fast for any domain size, with short reports.

    >>> import discreet as dc
    >>> survey = dc.local.Hadamard(["tea", "coffee", "water"], epsilon=1)
    >>> shares, margins = survey.estimate(survey.perturb(["tea"] * 500 + ["water"] * 500))
    >>> bool(abs(shares[0] - 0.5) < 4 * margins[0])
    True
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    values = Domain.from_values(domain)
    return Oracle(values, exact_epsilon, HadamardScheme(values.size, odds, best_blocks(values.size, odds)))


def best_blocks(size: int, odds: Fraction) -> int:
    """Return the number of blocks, a power of two, with the smallest variance; at most one block per value.

    >>> best_blocks(1000, Fraction(3)), best_blocks(1000, Fraction(50))
    (1, 32)
    """
    tried = [1 << power for power in range((size - 1).bit_length() + 1)]
    return min(tried, key=lambda blocks: HadamardScheme(size, odds, blocks).variance)


@dataclass(frozen=True)
class HadamardScheme:
    """Points in `blocks` blocks; a value owns the half of one block where its row of the Hadamard matrix is +1.

    The first row of each block, which is all +1, is not used. The halves of two values of one block share half of
    their points.
    """

    size: int
    odds: Fraction
    blocks: int

    max_count_per_report = 1

    @property
    def name(self) -> str:
        """The name of the protocol and its parameters."""
        return f"hadamard {self.blocks}"

    @property
    def width(self) -> int:
        """The number of points in a block: a power of two above the number of its values."""
        return 1 << (-(-self.size // self.blocks)).bit_length()

    @property
    def points(self) -> int:
        """The number of points in all blocks."""
        return self.blocks * self.width

    @property
    def truth(self) -> Fraction:
        """The probability that the point is drawn from the half of the true value, not from all points."""
        return (self.odds - 1) / (self.odds - 1 + 2 * self.blocks)

    @property
    def variance(self) -> Fraction:
        """The variance of a share times the number of people, averaged over equally frequent values."""
        values_per_block, larger_blocks = divmod(self.size, self.blocks)
        neighbours = Fraction(
            larger_blocks * (values_per_block + 1) ** 2 + (self.blocks - larger_blocks) * values_per_block**2,
            self.size**2,
        )
        inside = self.truth * neighbours + (1 - self.truth) / self.blocks
        return inside / self.truth**2 - Fraction(1, self.size)

    @property
    def dtype(self) -> np.dtype:
        """A report is a point."""
        return smallest_uint(self.points)

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each code.

        Claim: a point of the code's half is reported with exactly odds times the probability of any other.
        Proof: the uniform draw gives any point the probability (1-truth)/points. With probability truth, the low bits
            of such a point are moved to the code's block, and where the row has -1, a bit of the row is flipped: this
            pairs the half with the rest of the block, so each of its width/2 points has 2·truth/width more. With
            points = blocks·width, that is (odds-1)·(1-truth)/points by the definition of truth.
        Needs: bernoulli_bits, uniform_integers.
        Checked by: test_hadamard_reports_have_the_claimed_distribution,
            test_reports_have_the_claimed_distribution, test_the_worst_log_ratio_of_every_oracle_is_the_claimed_epsilon
        """
        source = thread_keystream()
        reports = np.empty(len(codes), self.dtype)
        for start in range(0, len(codes), _BLOCK_SIZE):
            block, row = self._block_and_row(codes[start : start + _BLOCK_SIZE])
            points = uniform_integers(source, len(row), self.points)
            inside = points & (self.width - 1)
            inside ^= (row & -row) * bit_parity(inside & row)
            is_truthful = bernoulli_bits(source, len(row), self.truth)
            reports[start : start + _BLOCK_SIZE] = np.where(is_truthful, block * self.width + inside, points)
        return reports

    def _block_and_row(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the block and row of each code; consecutive codes are in different blocks."""
        return codes % self.blocks, codes // self.blocks + 1

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a point does not exist."""
        if len(reports) and reports.max() >= self.points:
            raise ValueError(f"reports: point {int(reports.max())} is not below {self.points}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the number of reports of each point."""
        return np.bincount(reports, minlength=self.points)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins.

        A report counts +1 in a value's half, -1 in the rest of its block, and 0 elsewhere; the expectation is truth for
        the own value, and 0 for every other, since two rows agree on half of a block.
        """
        block, row = self._block_and_row(np.arange(self.size))
        sums = walsh_hadamard(counts.reshape(self.blocks, self.width))
        truth = float(self.truth)
        shares = sums[block, row] / (people * truth)
        # The squared count of a report is 1 if it is in the block.
        elsewhere = float((1 - self.truth) / self.blocks)
        inside = np.clip(sums[block, 0] / people, elsewhere, elsewhere + truth)
        variance = np.maximum(inside - np.clip(shares, 0, 1) * truth**2, 0)
        return shares, (z * np.sqrt(people * variance) + 1) / (people * truth)

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the exact probability of a report, given the code."""
        block, row = code % self.blocks, code // self.blocks + 1
        reported_block, inside = divmod(int(report), self.width)
        if not 0 <= int(report) < self.points:
            return Fraction(0)
        uniform_rate = (1 - self.truth) / self.points
        is_own_half = reported_block == block and (inside & row).bit_count() % 2 == 0
        return uniform_rate + 2 * self.truth / self.width if is_own_half else uniform_rate

    def outcomes(self) -> range:
        """Return every point."""
        if self.points > _MAX_OUTCOMES:
            raise ValueError("hadamard has too many possible reports to list. Use pmf for the probability of one.")
        return range(self.points)
