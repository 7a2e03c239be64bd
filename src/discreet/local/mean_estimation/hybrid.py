"""The hybrid mechanism: a random choice between the piecewise and Duchi's mechanism."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number
from discreet.local.domain import GRID_STEPS, Interval
from discreet.local.estimation import MeanError, smallest_uint
from discreet.local.mean_estimation.duchi import DuchiScheme
from discreet.local.mean_estimation.piecewise import PiecewiseScheme, width_for
from discreet.local.oracle import Oracle, parse_epsilon
from discreet.local.random_variables import bernoulli_bits


def Hybrid(low: Number, high: Number, epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return an oracle for a mean by the hybrid mechanism (Wang, Xiao, Yang and others 2019).

    A person uses `Piecewise` or `Duchi` at random, which has the smallest worst-case variance; up to epsilon 0.61 it is
    always `Duchi`.

    >>> import discreet as dc
    >>> salaries = dc.local.Hybrid(0, 200_000, epsilon=1)
    >>> mean, margin = salaries.estimate(salaries.perturb([30_000, 90_000] * 5_000))
    >>> abs(mean - 60_000) < 4 * margin
    True
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    duchi = DuchiScheme(GRID_STEPS, odds)
    hybrid = HybridScheme(PiecewiseScheme(GRID_STEPS, width_for(GRID_STEPS, exact_epsilon), odds), duchi)
    return Oracle(
        Interval.from_bounds(low, high),
        exact_epsilon,
        hybrid if hybrid.worst_variance < duchi.worst_variance else duchi,
    )


@dataclass(frozen=True)
class HybridScheme:
    """A piecewise report with probability `piecewise.truth`, otherwise Duchi's bit; bits follow the piecewise codes."""

    piecewise: PiecewiseScheme
    duchi: DuchiScheme

    name = "hybrid"

    @property
    def max_count_per_report(self) -> int:
        """The maximum that one report adds to a count."""
        return self.size

    @property
    def size(self) -> int:
        """The number of possible reports."""
        return self.piecewise.size + 2

    @property
    def dtype(self) -> np.dtype:
        """A report is the index of an outcome."""
        return smallest_uint(self.size)

    @cached_property
    def worst_variance(self) -> Fraction:
        """The variance of one report's contribution, which is the same for all steps.

        At a distance c from the middle, the variance is middle_variance/truth² + c²·(1-truth)/truth for the piecewise
        mechanism and worst_variance - c² for Duchi's. With the probabilities truth and 1-truth, the terms in c cancel.
        """
        share = self.piecewise.truth
        return self.piecewise.middle_variance / share + (1 - share) * self.duchi.worst_variance

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each step.

        Claim: a report is at most odds times likelier under one step than under another.
        Proof: the choice between the two schemes is independent of the step and visible in the report, and each of them
            satisfies the claim.
        Needs: PiecewiseScheme.perturb, DuchiScheme.perturb, bernoulli_bits.
        Checked by: test_reports_of_numbers_have_the_claimed_distribution,
            test_the_worst_log_ratio_of_numbers_is_the_claimed_epsilon
        """
        is_piecewise = bernoulli_bits(thread_keystream(), len(codes), self.piecewise.truth)
        bits = self.duchi.perturb(codes).astype(np.int64) + self.piecewise.size
        return np.where(is_piecewise, self.piecewise.perturb(codes), bits).astype(self.dtype)

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a report does not exist."""
        if len(reports) and reports.max() >= self.size:
            raise ValueError(f"reports: {int(reports.max())} is outside the range 0 to {self.size - 1}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the sum of the piecewise reports, the number of bits, and the number of ones."""
        is_bit = reports >= self.piecewise.size
        numbers = np.where(is_bit, 0, reports).astype(np.int64)
        return np.array([numbers.sum(), is_bit.sum(), np.count_nonzero(reports == self.size - 1)], np.int64)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and its margin, in steps."""
        numbers, bits, ones = (int(count) for count in counts)
        total = self.piecewise.estimate_sum(numbers, people - bits) + self.duchi.estimate_sum(ones, bits)
        error = MeanError(
            float(self.worst_variance), float(self.worst_variance), max_deviation=self.piecewise.max_deviation
        )
        return np.array([total / people]), np.array([error.margin(people, z)])

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the exact probability of a report, given the step."""
        share, bit = self.piecewise.truth, int(report) - self.piecewise.size
        if bit < 0:
            return share * self.piecewise.probability(report, code)
        return (1 - share) * self.duchi.probability(bit, code)

    def outcomes(self) -> range:
        """Return every possible report."""
        return range(len(self.piecewise.outcomes()) + 2)
