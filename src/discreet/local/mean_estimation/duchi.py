"""Duchi's mechanism: a mean from one bit per person."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number
from discreet.local.domain import GRID_STEPS, Interval
from discreet.local.estimation import MeanError
from discreet.local.oracle import Oracle, parse_epsilon
from discreet.local.random_variables import bernoulli_bits, uniform_integers


def Duchi(low: Number, high: Number, epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return an oracle for a mean from one bit per person (Duchi, Jordan, Wainwright 2018).

    A person rounds the number at random to one of the bounds, without bias, and reports it by randomised response.

    >>> import discreet as dc
    >>> salaries = dc.local.Duchi(0, 200_000, epsilon=1)
    >>> mean, margin = salaries.estimate(salaries.perturb([30_000, 90_000] * 5_000))
    >>> abs(mean - 60_000) < 4 * margin
    True
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    return Oracle(Interval.from_bounds(low, high), exact_epsilon, DuchiScheme(GRID_STEPS, odds))


@dataclass(frozen=True)
class DuchiScheme:
    """A step from 0 to `steps`: with probability `truth` rounded at random to one of the ends, else a fair coin."""

    steps: int
    odds: Fraction

    name = "duchi"
    max_count_per_report = 1
    dtype = np.dtype("<u1")

    @cached_property
    def truth(self) -> Fraction:
        """The probability of a truthful report."""
        return (self.odds - 1) / (self.odds + 1)

    @cached_property
    def worst_variance(self) -> Fraction:
        """The variance of one report's contribution for a step in the middle, where it is largest."""
        return (self.steps / self.truth) ** 2 / 4

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a bit for each step.

        Claim: a report is 1 with probability exactly (1-truth)/2 + truth·step/steps; so a bit is odds times likelier
            under one end than under the other, and the ratio is smaller for steps between them.
        Proof: a uniform integer below `steps` is below the step with probability step/steps. The probability is linear
            in the step, from (1-truth)/2 = 1/(odds+1) to odds/(odds+1).
        Needs: bernoulli_bits, uniform_integers.
        Checked by: test_reports_of_numbers_have_the_claimed_distribution,
            test_the_worst_log_ratio_of_numbers_is_the_claimed_epsilon
        """
        source = thread_keystream()
        is_truthful = bernoulli_bits(source, len(codes), self.truth)
        upper = uniform_integers(source, len(codes), self.steps) < codes
        coin = bernoulli_bits(source, len(codes), Fraction(1, 2))
        return np.where(is_truthful, upper, coin).astype(self.dtype)

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a report is not a bit."""
        if len(reports) and reports.max() > 1:
            raise ValueError(f"reports: {int(reports.max())} is not 0 or 1")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the number of ones."""
        return np.array([np.count_nonzero(reports)], np.int64)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and its margin, in steps."""
        truth, unit = float(self.truth), float(self.steps / self.truth)
        mean = self.estimate_sum(int(counts[0]), people) / people
        bit_probability = (1 - truth) / 2 + truth * min(max(mean / self.steps, 0), 1)
        # Of all distributions with this mean, a constant one has the largest variance of reports.
        error = MeanError(
            bit_probability * (1 - bit_probability) * unit**2, float(self.worst_variance), max_deviation=unit
        )
        return np.array([mean]), np.array([error.margin(people, z)])

    def estimate_sum(self, ones: int, people: int) -> float:
        """Return an unbiased estimate of the sum of the steps, from the number of ones."""
        return (ones - people * float(1 - self.truth) / 2) * float(self.steps / self.truth)

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the exact probability of a bit, given the step."""
        one = (1 - self.truth) / 2 + self.truth * Fraction(code, self.steps)
        return {1: one, 0: 1 - one}.get(int(report), Fraction(0))

    def outcomes(self) -> range:
        """Return both bits."""
        return range(2)
