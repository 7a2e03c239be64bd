"""A number sometimes as another number, sometimes as one bit: what one of them does badly, the other does well."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.kernel.exact import Number
from discreet.kernel.noise.chance import tosses
from discreet.kernel.noise.keystream import stream
from discreet.local.domain import STEPS, Interval
from discreet.local.oracle import Oracle, priced
from discreet.local.schemes.averaging import Spread
from discreet.local.schemes.binary import Binary
from discreet.local.schemes.piecewise import Window, width_for
from discreet.local.schemes.supporting import smallest


def Hybrid(low: Number, high: Number, epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return the mean of numbers by the hybrid mechanism (Wang, Xiao, Yang and others 2019): the least worst variance.

    A person tosses a coin between `Piecewise` and `Duchi`; up to epsilon 0.61 it is always `Duchi`.

    >>> import discreet as dc
    >>> salaries = dc.local.Hybrid(0, 200_000, epsilon=1)
    >>> mean, margin = salaries.estimate(salaries.perturb([30_000, 90_000] * 5_000))
    >>> abs(mean - 60_000) < 4 * margin
    True
    """
    price, odds = priced(epsilon)
    binary = Binary(STEPS, odds)
    either = Either(Window(STEPS, width_for(STEPS, price), odds), binary)
    return Oracle(Interval.of(low, high), price, either if either.worst < binary.worst else binary)


@dataclass(frozen=True)
class Either:
    """A report of the window with the window's own `truth`, else a bit; bits stand behind the window's reports."""

    window: Window
    binary: Binary

    name = "hybrid"

    @property
    def most_counted(self) -> int:
        """The most that one report adds to a count."""
        return self.size

    @property
    def size(self) -> int:
        """How many reports there are."""
        return self.window.size + 2

    @property
    def dtype(self) -> np.dtype:
        """A report is a place among all."""
        return smallest(self.size)

    @cached_property
    def worst(self) -> Fraction:
        """The variance of what one report tells, which is the same for all steps.

        At a distance c from the middle the window's is least/truth² + c²·(1-truth)/truth, the bit's worst - c²:
        with the window's truth as its share, what depends on c cancels.
        """
        share = self.window.truth
        return self.window.least / share + (1 - share) * self.binary.worst

    def perturb(self, places: np.ndarray) -> np.ndarray:
        """Return a report for each step.

        Claim: a report is at most odds times likelier under one step than under another.
        Proof: which of the two schemes reports is tossed without looking at the step, and can be seen in the report;
            each of them holds it.
        Needs: Window.perturb, Binary.perturb, tosses.
        Checked by: test_reports_of_numbers_have_the_law_that_is_claimed,
            test_the_worst_log_ratio_of_numbers_is_the_claimed_epsilon
        Seal: d59fc0f37fb8
        """
        number = tosses(stream(), len(places), self.window.truth)
        bits = self.binary.perturb(places).astype(np.int64) + self.window.size
        return np.where(number, self.window.perturb(places), bits).astype(self.dtype)

    def check(self, reports: np.ndarray) -> None:
        """Stop at a report of neither."""
        if len(reports) and reports.max() >= self.size:
            raise ValueError(f"reports: {int(reports.max())} is beyond the last, {self.size - 1}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the sum of reported numbers, the number of bits, and that of ones among them."""
        bits = reports >= self.window.size
        numbers = np.where(bits, 0, reports).astype(np.int64)
        return np.array([numbers.sum(), bits.sum(), np.count_nonzero(reports == self.size - 1)], np.int64)

    def estimate(self, counts: np.ndarray, people: int, spreads: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and its margin, in steps."""
        numbers, bits, ones = (int(count) for count in counts)
        total = self.window.total(numbers, people - bits) + self.binary.total(ones, bits)
        spread = Spread(float(self.worst), float(self.worst), reach=self.window.reach)
        return np.array([total / people]), np.array([spread.margin(people, spreads)])

    def probability(self, report: Any, place: int) -> Fraction:
        """Return how likely a report is."""
        share, bit = self.window.truth, int(report) - self.window.size
        if bit < 0:
            return share * self.window.probability(report, place)
        return (1 - share) * self.binary.probability(bit, place)

    def outcomes(self) -> range:
        """Return all reports."""
        return range(len(self.window.outcomes()) + 2)
