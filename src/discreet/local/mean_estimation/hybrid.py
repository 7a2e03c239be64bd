"""The hybrid mechanism: a random choice between the piecewise mechanism and Duchi's."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.kernel.noise.bernoulli import bernoulli_bits
from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number
from discreet.local.domain import GRID_STEPS, Interval
from discreet.local.estimation import MeanError, smallest_uint
from discreet.local.mean_estimation.duchi import DuchiScheme
from discreet.local.mean_estimation.piecewise import PiecewiseScheme, width_for
from discreet.local.oracle import Oracle, parse_epsilon


def Hybrid(low: Number, high: Number, epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return the mean of numbers by the hybrid mechanism (Wang, Xiao, Yang and others 2019): the least worst variance.

    A person tosses a coin between `Piecewise` and `Duchi`; up to epsilon 0.61 it is always `Duchi`.

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
    """A report of the window with the window's own `truth`, else a bit; bits stand behind the window's reports."""

    piecewise: PiecewiseScheme
    duchi: DuchiScheme

    name = "hybrid"

    @property
    def max_count_per_report(self) -> int:
        """The most that one report adds to a count."""
        return self.size

    @property
    def size(self) -> int:
        """How many reports there are."""
        return self.piecewise.size + 2

    @property
    def dtype(self) -> np.dtype:
        """A report is a place among all."""
        return smallest_uint(self.size)

    @cached_property
    def worst_variance(self) -> Fraction:
        """The variance of what one report tells, which is the same for all steps.

        At a distance c from the middle the window's is least/truth² + c²·(1-truth)/truth, the bit's worst - c²:
        with the window's truth as its share, what depends on c cancels.
        """
        share = self.piecewise.truth
        return self.piecewise.middle_variance / share + (1 - share) * self.duchi.worst_variance

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a report for each step.

        Claim: a report is at most odds times likelier under one step than under another.
        Proof: which of the two schemes reports is tossed without looking at the step, and can be seen in the report;
            each of them holds it.
        Needs: PiecewiseScheme.perturb, DuchiScheme.perturb, tosses.
        Checked by: test_reports_of_numbers_have_the_law_that_is_claimed,
            test_the_worst_log_ratio_of_numbers_is_the_claimed_epsilon
        Seal: 9ecd5a9c81d4
        """
        is_piecewise = bernoulli_bits(thread_keystream(), len(codes), self.piecewise.truth)
        bits = self.duchi.perturb(codes).astype(np.int64) + self.piecewise.size
        return np.where(is_piecewise, self.piecewise.perturb(codes), bits).astype(self.dtype)

    def check(self, reports: np.ndarray) -> None:
        """Stop at a report of neither."""
        if len(reports) and reports.max() >= self.size:
            raise ValueError(f"reports: {int(reports.max())} is beyond the last, {self.size - 1}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the sum of reported numbers, the number of bits, and that of ones among them."""
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
        """Return how likely a report is."""
        share, bit = self.piecewise.truth, int(report) - self.piecewise.size
        if bit < 0:
            return share * self.piecewise.probability(report, code)
        return (1 - share) * self.duchi.probability(bit, code)

    def outcomes(self) -> range:
        """Return all reports."""
        return range(len(self.piecewise.outcomes()) + 2)
