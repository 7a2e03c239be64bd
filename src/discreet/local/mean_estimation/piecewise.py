"""The piecewise mechanism: a report from a window around the person's number, or from the whole range."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number
from discreet.local.domain import GRID_STEPS, Interval
from discreet.local.estimation import MeanError, smallest_uint
from discreet.local.oracle import Oracle, odds_for, parse_epsilon
from discreet.local.random_variables import bernoulli_bits, uniform_integers

MAX_OUTCOMES = 1 << 16
_SQUARE_BITS = 22  # kept of a square, so that sums of 2^41 squares fit in 64 bits


def Piecewise(low: Number, high: Number, epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return an oracle for a mean by the piecewise mechanism (Wang, Xiao, Yang and others 2019): for larger epsilons.

    A person sends a number from a window around their own, or from the whole range.

    >>> import discreet as dc
    >>> salaries = dc.local.Piecewise(0, 200_000, epsilon=4)
    >>> mean, margin = salaries.estimate(salaries.perturb([30_000, 90_000] * 5_000))
    >>> abs(mean - 60_000) < 4 * margin
    True
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    return Oracle(
        Interval.from_bounds(low, high),
        exact_epsilon,
        PiecewiseScheme(GRID_STEPS, width_for(GRID_STEPS, exact_epsilon), odds),
    )


def width_for(steps: int, epsilon: Fraction) -> int:
    """Return the width of the window, steps·exp(-epsilon/3), as in Zhao and others (2020).

    The original paper uses exp(-epsilon/2). That window is narrower, and its variance is larger from epsilon 1 on: in
    the worst case by 3 % at epsilon 1 and by 45 % at 4. The optimal width would reduce the variance by at most 5 %, up
    to epsilon 8.

    Claim: it is at least 1, and depends on public numbers only; privacy needs no more of it.
    Proof: PiecewiseScheme.perturb holds for every width.
    Needs: odds_for.
    Checked by: test_the_window_is_nearly_the_best_one
    """
    return max(1, round(steps / odds_for(epsilon / 3)))


@dataclass(frozen=True)
class PiecewiseScheme:
    """For a step m from 0 to `steps`, one of m, …, m+width-1 with probability `truth`, otherwise any report."""

    steps: int
    width: int
    odds: Fraction

    name = "piecewise"

    @property
    def max_count_per_report(self) -> int:
        """The maximum that one report adds to a count."""
        return max(self.size, 1 << _SQUARE_BITS)

    @property
    def size(self) -> int:
        """The number of possible reports: they range over the windows of all steps."""
        return self.steps + self.width

    @cached_property
    def truth(self) -> Fraction:
        """The probability that the report is drawn from the window."""
        excess_weight = (self.odds - 1) * self.width
        return excess_weight / (self.size + excess_weight)

    @property
    def dtype(self) -> np.dtype:
        """A report is the index of an outcome."""
        return smallest_uint(self.size)

    @cached_property
    def middle_variance(self) -> Fraction:
        """The variance of a report for a step in the middle."""
        return (self.truth * (self.width**2 - 1) + (1 - self.truth) * (self.size**2 - 1)) / 12

    @cached_property
    def max_deviation(self) -> float:
        """The maximum distance of one report's contribution from the middle."""
        return float(self.size / self.truth / 2)

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each step.

        Claim: a report in the window of a person's step has exactly odds times the probability of one outside.
        Proof: the uniform draw gives any report the probability (1-truth)/size, and one in the window has truth/width
            more; truth/width = (odds-1)·(1-truth)/size by its definition. All windows have the same width.
        Needs: bernoulli_bits, uniform_integers.
        Checked by: test_reports_of_numbers_have_the_claimed_distribution,
            test_the_worst_log_ratio_of_numbers_is_the_claimed_epsilon
        """
        source = thread_keystream()
        is_truthful = bernoulli_bits(source, len(codes), self.truth)
        near = uniform_integers(source, len(codes), self.width) + codes
        uniform_draw = uniform_integers(source, len(codes), self.size)
        return np.where(is_truthful, near, uniform_draw).astype(self.dtype)

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a report does not exist."""
        if len(reports) and reports.max() >= self.size:
            raise ValueError(f"reports: {int(reports.max())} is outside the range 0 to {self.size - 1}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the sum of the reports, and of the high bits of their squares."""
        wide_reports = reports.astype(np.int64)
        return np.array([wide_reports.sum(), (wide_reports * wide_reports >> self._dropped_bits).sum()], np.int64)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and its margin, in steps."""
        truth, middle_variance, middle = float(self.truth), float(self.middle_variance), (self.size - 1) / 2
        mean_report, square = int(counts[0]) / people, float(int(counts[1]) << self._dropped_bits) / people
        # For a step at a distance c from the middle, the mean squared deviation of a report from the middle is
        # truth·c² + middle_variance, and its variance is truth·(1-truth)·c² + middle_variance. The mean c² is estimated
        # from the squares, and clamped to the range that the bounds allow.
        mean_squared_distance = (square - 2 * middle * mean_report + middle**2 - middle_variance) / truth
        worst_variance = middle_variance + truth * (1 - truth) * self.steps**2 / 4
        variance = middle_variance + truth * (1 - truth) * min(max(mean_squared_distance, 0), self.steps**2 / 4)
        error = MeanError(variance / truth**2, worst_variance / truth**2, max_deviation=self.max_deviation)
        return np.array([self.estimate_sum(int(counts[0]), people) / people]), np.array([error.margin(people, z)])

    def estimate_sum(self, reports: int, people: int) -> float:
        """Return an unbiased estimate of the sum of people's steps, from the sum of their reports."""
        return (reports - people * (self.size - 1) / 2) / float(self.truth) + people * self.steps / 2

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the exact probability of a report, given the step."""
        uniform_rate = (1 - self.truth) / self.size
        if not 0 <= int(report) < self.size:
            return Fraction(0)
        return uniform_rate + self.truth / self.width if code <= int(report) < code + self.width else uniform_rate

    def outcomes(self) -> range:
        """Return every possible report."""
        if self.size > MAX_OUTCOMES:
            raise ValueError("piecewise has too many possible reports to list. Use pmf for the probability of one.")
        return range(self.size)

    @property
    def _dropped_bits(self) -> int:
        return max(0, 2 * self.size.bit_length() - _SQUARE_BITS)
