"""A mean from numbers to which each person adds discrete Laplace noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from discreet.kernel.mechanism import Laplace
from discreet.kernel.numbers import Number
from discreet.local.domain import GRID_STEPS, Interval
from discreet.local.estimation import ROUNDING_ERROR
from discreet.local.oracle import Oracle, parse_epsilon

MAX_NOISE_SCALES = 100  # exceeded with probability e^-100; reports within it fit in 64 bits
_HALF_BITS = 32


def NoisyMean(low: Number, high: Number, epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return an oracle for a mean of numbers to which each person adds Laplace noise: simple, but the least accurate.

    >>> import discreet as dc
    >>> salaries = dc.local.NoisyMean(0, 200_000, epsilon=1)
    >>> mean, margin = salaries.estimate(salaries.perturb([30_000, 90_000] * 5_000))
    >>> abs(mean - 60_000) < 4 * margin
    True
    """
    exact_epsilon, _ = parse_epsilon(epsilon)
    return Oracle(Interval.from_bounds(low, high), exact_epsilon, LaplaceScheme(GRID_STEPS, exact_epsilon))


@dataclass(frozen=True)
class LaplaceScheme:
    """A step from 0 to `steps`, with discrete Laplace noise of sensitivity `steps`."""

    steps: int
    epsilon: Fraction

    name = "noisy-mean"
    max_count_per_report = 1 << _HALF_BITS
    dtype = np.dtype("<i8")

    @cached_property
    def noise(self) -> Laplace:
        """The noise of one person."""
        return Laplace(self.steps / self.epsilon)

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each step.

        Claim: a report is at most exp(epsilon) times likelier under one step than under another.
        Proof: Laplace.loss at scale steps/epsilon, since another number changes the step by at most `steps`.
        Needs: Laplace.perturb, Laplace.loss.
        Checked by: test_local_noise_loses_exactly_epsilon, test_noisy_numbers_have_the_claimed_distribution
        """
        return self.noise.perturb(codes.astype(np.int64)).astype(self.dtype)

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a report is implausibly far from the bounds."""
        max_noise = math.ceil(MAX_NOISE_SCALES * self.noise.scale)
        if len(reports) and (reports.min() < -max_noise or reports.max() > self.steps + max_noise):
            raise ValueError(f"reports: one is more than {MAX_NOISE_SCALES} noise scales outside the bounds")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the sums of the high and the low halves of the reports, which do not overflow 64 bits."""
        return np.array([np.sum(reports >> _HALF_BITS), np.sum(reports & ((1 << _HALF_BITS) - 1))], np.int64)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and its margin, in steps."""
        total = (int(counts[0]) << _HALF_BITS) + int(counts[1])
        # The sum for few people has heavier tails than the normal distribution; the Cornish-Fisher expansion bounds it.
        tails = z**3 / (8 * people)
        margin = (z + tails) * laplace_standard_deviation(self.noise) / math.sqrt(people) + ROUNDING_ERROR
        return np.array([total / people]), np.array([margin])

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the probability of a report, given the step; as a float, because it is not rational."""
        decay = 1 / self.noise.scale
        return Fraction(math.tanh(decay / 2) * math.exp(-abs(int(report) - code) * decay))

    def outcomes(self) -> NoReturn:
        """Raise ValueError: the noise is unbounded."""
        raise ValueError("noisy-mean has too many possible reports to list. Use pmf for the probability of one.")


def laplace_standard_deviation(noise: Laplace) -> float:
    """Return the standard deviation of the discrete Laplace distribution: sqrt(2q)/(1-q) with q = exp(-1/scale).

    >>> round(laplace_standard_deviation(Laplace(100)), 3)
    141.421
    """
    return 1 / (math.sqrt(2) * math.sinh(1 / (2 * noise.scale)))
