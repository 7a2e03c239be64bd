"""A number as one bit: one of its two bounds, the nearer more often."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.kernel.exact import Number
from discreet.kernel.noise.chance import dice, tosses
from discreet.kernel.noise.keystream import stream
from discreet.local.domain import STEPS, Interval
from discreet.local.oracle import Oracle, priced
from discreet.local.schemes.averaging import Spread


def Duchi(low: Number, high: Number, epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return the mean of numbers of which each person sends one bit (Duchi, Jordan, Wainwright 2018).

    A person names one of the bounds, by chance so that it is the number on average; or tosses a coin.

    >>> import discreet as dc
    >>> salaries = dc.local.Duchi(0, 200_000, epsilon=1)
    >>> mean, margin = salaries.estimate(salaries.perturb([30_000, 90_000] * 5_000))
    >>> abs(mean - 60_000) < 4 * margin
    True
    """
    price, odds = priced(epsilon)
    return Oracle(Interval.of(low, high), price, Binary(STEPS, odds))


@dataclass(frozen=True)
class Binary:
    """A step from 0 to `steps`, rounded at random to one of the ends with probability `truth`; else a fair coin."""

    steps: int
    odds: Fraction

    name = "duchi"
    most_counted = 1
    dtype = np.dtype("<u1")

    @cached_property
    def truth(self) -> Fraction:
        """How often the report is not left to a coin."""
        return (self.odds - 1) / (self.odds + 1)

    @cached_property
    def worst(self) -> Fraction:
        """The variance of what one report tells of a step in the middle; of any other it is less."""
        return (self.steps / self.truth) ** 2 / 4

    def perturb(self, places: np.ndarray) -> np.ndarray:
        """Return a bit for each step.

        Claim: a report is 1 with probability (1-truth)/2 + truth·step/steps, exactly; so one end reports itself odds
            times as often as the other end does, and steps between them differ by less.
        Proof: a die with `steps` faces is below the step with probability step/steps. The probability is linear in
            the step, from (1-truth)/2 = 1/(odds+1) to odds/(odds+1).
        Needs: tosses, dice.
        Checked by: test_reports_of_numbers_have_the_law_that_is_claimed,
            test_the_worst_log_ratio_of_numbers_is_the_claimed_epsilon
        Seal: e34eb86113f2
        """
        source = stream()
        told = tosses(source, len(places), self.truth)
        upper = dice(source, len(places), self.steps) < places
        coin = tosses(source, len(places), Fraction(1, 2))
        return np.where(told, upper, coin).astype(self.dtype)

    def check(self, reports: np.ndarray) -> None:
        """Stop at what is not a bit."""
        if len(reports) and reports.max() > 1:
            raise ValueError(f"reports: {int(reports.max())} is not a bit, 0 or 1")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the number of ones."""
        return np.array([np.count_nonzero(reports)], np.int64)

    def estimate(self, counts: np.ndarray, people: int, spreads: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and its margin, in steps."""
        truth, unit = float(self.truth), float(self.steps / self.truth)
        mean = self.total(int(counts[0]), people) / people
        likely = (1 - truth) / 2 + truth * min(max(mean / self.steps, 0), 1)
        # Whoever answers the mean's bit has the largest variance that people with this mean can have.
        spread = Spread(likely * (1 - likely) * unit**2, float(self.worst), reach=unit)
        return np.array([mean]), np.array([spread.margin(people, spreads)])

    def total(self, ones: int, people: int) -> float:
        """Return the sum of so many people's steps, unbiased."""
        return (ones - people * float(1 - self.truth) / 2) * float(self.steps / self.truth)

    def probability(self, report: Any, place: int) -> Fraction:
        """Return how likely a bit is."""
        one = (1 - self.truth) / 2 + self.truth * Fraction(place, self.steps)
        return {1: one, 0: 1 - one}.get(int(report), Fraction(0))

    def outcomes(self) -> range:
        """Return both bits."""
        return range(2)
