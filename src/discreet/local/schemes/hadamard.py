"""Hadamard response: one of many points, more often one on the own value's side."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.exact import Number
from discreet.kernel.noise.chance import dice, tosses
from discreet.kernel.noise.keystream import stream
from discreet.local.domain import Domain
from discreet.local.oracle import Oracle, priced
from discreet.local.schemes.supporting import smallest
from discreet.local.schemes.walsh import odd_bits, walsh

_TOGETHER = 1 << 16
_LISTED = 1 << 16


def Hadamard(domain: int | Sequence[Any], epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return Hadamard response (Acharya, Sun, Zhang 2019): very fast for domains of any size, with short reports.

    >>> import discreet as dc
    >>> survey = dc.local.Hadamard(["tea", "coffee", "water"], epsilon=1)
    >>> shares, margins = survey.estimate(survey.perturb(["tea"] * 500 + ["water"] * 500))
    >>> bool(abs(shares[0] - 0.5) < 4 * margins[0])
    True
    """
    price, odds = priced(epsilon)
    values = Domain.of(domain)
    return Oracle(values, price, Halves(values.size, odds, best_blocks(values.size, odds)))


def best_blocks(size: int, odds: Fraction) -> int:
    """Return the power of two with the least variance; one block a value at most.

    >>> best_blocks(1000, Fraction(3)), best_blocks(1000, Fraction(50))
    (1, 32)
    """
    tried = [1 << power for power in range((size - 1).bit_length() + 1)]
    return min(tried, key=lambda blocks: Halves(size, odds, blocks).variance)


@dataclass(frozen=True)
class Halves:
    """Points in `blocks` blocks; a value owns the half of one block on which its row of Hadamard's matrix is +1.

    The first row of each block, all +1, belongs to nobody. Halves of one block share half of their points.
    """

    size: int
    odds: Fraction
    blocks: int

    most_counted = 1

    @property
    def name(self) -> str:
        """The protocol, and what a reader must know of it."""
        return f"hadamard {self.blocks}"

    @property
    def width(self) -> int:
        """Points in a block: a power of two beyond the number of its values."""
        return 1 << (-(-self.size // self.blocks)).bit_length()

    @property
    def points(self) -> int:
        """Points in all blocks."""
        return self.blocks * self.width

    @property
    def truth(self) -> Fraction:
        """How often the point is one of the own half, and not left to chance."""
        return (self.odds - 1) / (self.odds - 1 + 2 * self.blocks)

    @property
    def variance(self) -> Fraction:
        """The variance of a share times the number of people, averaged over values, if all are equally frequent."""
        few, fuller = divmod(self.size, self.blocks)
        neighbours = Fraction(fuller * (few + 1) ** 2 + (self.blocks - fuller) * few**2, self.size**2)
        inside = self.truth * neighbours + (1 - self.truth) / self.blocks
        return inside / self.truth**2 - Fraction(1, self.size)

    @property
    def dtype(self) -> np.dtype:
        """A report is a point."""
        return smallest(self.points)

    def perturb(self, places: np.ndarray) -> np.ndarray:
        """Return a report for each place.

        Claim: a point of the place's half is reported with odds times the probability of any other, exactly.
        Proof: any point has (1-truth)/points from the dice. With truth, the last bits of such a point go to the
            place's block, and where the row has -1 a bit of the row is turned over: this pairs the half with the
            rest of the block, so each of its width/2 points has 2·truth/width more. With points = blocks·width
            that is (odds-1)·(1-truth)/points by the definition of truth.
        Needs: tosses, dice.
        Checked by: test_hadamard_reports_have_the_law_that_is_claimed,
            test_reports_have_the_law_that_is_claimed, test_the_worst_log_ratio_of_every_law_is_the_claimed_epsilon
        Seal: f898e73f1045
        """
        source = stream()
        reports = np.empty(len(places), self.dtype)
        for start in range(0, len(places), _TOGETHER):
            block, row = self._owned(places[start : start + _TOGETHER])
            points = dice(source, len(row), self.points)
            inside = points & (self.width - 1)
            inside ^= (row & -row) * odd_bits(inside & row)
            told = tosses(source, len(row), self.truth)
            reports[start : start + _TOGETHER] = np.where(told, block * self.width + inside, points)
        return reports

    def _owned(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return block and row: neighbours in the domain go to different blocks."""
        return places % self.blocks, places // self.blocks + 1

    def check(self, reports: np.ndarray) -> None:
        """Stop at a point that there is not."""
        if len(reports) and reports.max() >= self.points:
            raise ValueError(f"reports: point {int(reports.max())} is not below {self.points}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return how many reports name each point."""
        return np.bincount(reports, minlength=self.points)

    def estimate(self, counts: np.ndarray, people: int, spreads: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins.

        A report counts +1 in the own half, -1 in the rest of the block and 0 elsewhere; on average that is truth for
        the own value, and 0 for every other, since two rows agree on half of a block.
        """
        block, row = self._owned(np.arange(self.size))
        sums = walsh(counts.reshape(self.blocks, self.width))
        truth = float(self.truth)
        shares = sums[block, row] / (people * truth)
        # The square of what a report counts is 1 if it is in the block at all.
        elsewhere = float((1 - self.truth) / self.blocks)
        inside = np.clip(sums[block, 0] / people, elsewhere, elsewhere + truth)
        variance = np.maximum(inside - np.clip(shares, 0, 1) * truth**2, 0)
        return shares, (spreads * np.sqrt(people * variance) + 1) / (people * truth)

    def probability(self, report: Any, place: int) -> Fraction:
        """Return how likely a report is."""
        block, row = place % self.blocks, place // self.blocks + 1
        at, inside = divmod(int(report), self.width)
        if not 0 <= int(report) < self.points:
            return Fraction(0)
        any_ = (1 - self.truth) / self.points
        owned = at == block and (inside & row).bit_count() % 2 == 0
        return any_ + 2 * self.truth / self.width if owned else any_

    def outcomes(self) -> range:
        """Return every point."""
        if self.points > _LISTED:
            raise ValueError("hadamard: its reports are too many to list; pmf gives the probability of any of them")
        return range(self.points)
